"""Pictures of periodic boxes."""

import numpy as np
import pytest

import medyanpy as mp
from medyanpy._tools.images import box_lengths, nearest_image, wrapped
from medyanpy.mesh import geometry
from medyanpy.mesh.images import with_images
from medyanpy.visualize import draw, movie
from medyanpy.visualize.scene import give_values, objects_of, scene_of

pytest.importorskip("matplotlib")


def rough_sheet(by=0.6):
    mesh = mp.TriangleMesh.flat_sheet(12, 10, 10.0, periodic=True)
    return mesh.with_vertices(mesh.vertices + np.random.default_rng(1).normal(0.0, by, mesh.vertices.shape))


def filled(move=(0.0, 0.0, 0.0), whole=0):
    """A patch with points, a vesicle across a corner with points, filaments, balls, a bond and links; some of it by
    other images."""
    rng = np.random.default_rng(3)
    topology = mp.Topology()
    mesh = rough_sheet()
    box = (*mesh.box[:2], None)
    far = whole * box_lengths(box)
    patch = topology.add_membrane(mesh.translated(move), vertex_mass=1e-6, vertex_friction=1e-3, name="patch")
    sphere = mp.TriangleMesh.icosphere(15.0, 2).translated([118.0, 88.0, 30.0] + far)
    vesicle = topology.add_membrane(sphere, vertex_mass=1e-6, vertex_friction=1e-3, name="vesicle")
    for one in (patch, vesicle):
        topology.add_intriangle_points(one, 12, mass=1e-6, friction=1e-3, seed=1, name=f"on {one.name}")
    starts = rng.uniform([75.0, 70.0, 0.0], [118.0, 86.0, 60.0], (4, 3)) - far
    nodes = [start + np.arange(6)[:, None] * [9.0, 3.0, 0.5] for start in starts]
    actin = topology.add_filaments(nodes, node_mass=1e-7, node_friction=1e-4, name="actin")
    balls = topology.add_balls(rng.uniform(0.0, 86.0, (10, 3)) + 2 * far, radius=4.0, mass=1e-7, friction=1e-4,
                               name="balls")  # fmt: skip
    beads = topology.add_beads(rng.uniform(0.0, 86.0, (4, 3)) - far, mass=1e-7, friction=1e-4, name="beads")
    system = mp.System(topology, box=box)
    system.add_force(mp.forces.MembraneEdgeSprings(patch, 0.1))
    system.add_force(mp.forces.Links(balls.beads[:4], actin.beads[:4], stiffness=1e-5, length=30.0))
    place = mp.Sites.anchors([[119.0, 2.0, 0.0]])
    system.add_force(mp.forces.Links([balls.beads[5]], place, stiffness=1e-5, length=3.0, name="anchored"))
    system.add_force(mp.forces.HarmonicBonds(beads.beads.reshape(-1, 2), stiffness=1e-4, length=30.0))
    return mp.Simulation(system, mp.BAGOGABIntegrator(1e-7, kT=4.1, seed=3), threads=1)


def pixels(figure):
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)


# Triangles -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", ["x", "y", "xy"])
def test_no_triangle_lies_across_a_side(axes):
    mesh = mp.TriangleMesh.flat_sheet(9, 8, 2.0, periodic=axes)
    rng = np.random.default_rng(4)
    lengths = box_lengths(mesh.box)
    # Vertices wherever they have gone, each by an image of its own.
    x = mesh.vertices + rng.normal(0.0, 0.1, mesh.vertices.shape) + lengths * rng.integers(-3, 4, mesh.vertices.shape)
    vertices, faces, source = with_images(x, mesh.faces, lengths)
    corners = vertices[faces]
    assert np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max() < 3.0
    assert (vertices[: len(x)] == x).all()
    assert (source[faces] == mesh.faces).all()
    assert np.abs(nearest_image(vertices - x[source], lengths)).max() < 1e-12
    assert geometry.area_vectors(vertices, faces) == pytest.approx(
        geometry.area_vectors(x, mesh.faces, lengths), abs=1e-12
    )
    inside = wrapped(x, lengths)
    vertices, faces, _ = with_images(inside, mesh.faces, lengths)
    # A row along each side through which it closes, at the far end of it.
    rows = {"x": 8, "y": 9, "xy": 8 + 9 + 1}[axes]
    assert len(vertices) - len(x) == pytest.approx(rows, abs=6)
    assert (vertices[len(x) :][:, lengths > 0.0] >= 0.0).all()


def test_contours_that_do_not_cross_stay():
    mesh = mp.TriangleMesh.icosphere(10.0, 1)
    for box in (None, np.array([50.0, 0.0, 40.0])):
        vertices, faces, source = with_images(mesh.vertices, mesh.faces, box)
        assert vertices is mesh.vertices
        assert faces is mesh.faces
        assert (source == np.arange(42)).all()


# Scenes --------------------------------------------------------------------------------------------------------------


def drawn(simulation):
    surfaces, solids = objects_of(scene_of(simulation, {}))
    return {s.name: s for s in surfaces}, {s.name: s for s in solids}


def test_everything_is_in_the_box_or_whole():
    simulation = filled(move=(307.0, 51.0, 0.0), whole=2)
    sheets, solids = drawn(simulation)
    state = simulation.context.get_state(positions=True)
    lengths = np.array(box_lengths(state.box))
    for name in ("balls", "beads"):
        x = solids[name].centers
        assert ((x[:, :2] >= 0.0) & (x[:, :2] < lengths[:2])).all()
        assert (x == state.wrapped_positions[simulation.topology[name].beads]).all()
    for k in range(4):
        x = solids["actin"].centers[6 * k : 6 * k + 6]
        own = state.positions[simulation.topology["actin"].beads[6 * k : 6 * k + 6]]
        assert np.diff(x, axis=0) == pytest.approx(np.diff(own, axis=0), abs=1e-9)
        assert ((x.mean(axis=0) >= 0.0) & (x.mean(axis=0) < lengths))[:2].all()
    assert sheets["vesicle"].closed
    assert sheets["vesicle"].source is None
    assert np.ptp(sheets["vesicle"].vertices, axis=0) == pytest.approx([30.0] * 3, rel=0.1)
    assert not sheets["patch"].closed
    x = sheets["patch"].own[0]
    assert ((x[:, :2] >= 0.0) & (x[:, :2] < lengths[:2])).all()
    # Points are in their triangles as these are drawn.
    for name in ("patch", "vesicle"):
        points = simulation.topology[f"on {name}"]
        sheet = sheets[name]
        corners = sheet.vertices[sheet.faces[points.triangles]]
        places = np.einsum("pk,pkc->pc", points.barycentric, corners)
        assert solids[f"on {name}"].centers == pytest.approx(places, abs=1e-9)
        assert np.linalg.norm(solids[f"on {name}"].normals, axis=1) == pytest.approx(1.0)
    box = solids["box"]
    assert np.ptp(box.centers, axis=0)[:2] == pytest.approx(lengths[:2])
    assert len(box.links) == 12


def test_links_begin_at_their_beads_and_go_to_the_nearest_image():
    simulation = filled(whole=1)
    _, solids = drawn(simulation)
    state = simulation.context.get_state(positions=True)
    balls = solids["balls"].centers
    ends = solids["Links"].centers.reshape(-1, 2, 3)
    assert (ends[:, 0] == balls[:4]).all()
    across = ends[:, 1] - ends[:, 0]
    assert (nearest_image(across, state.box) == across).all()
    bonds = solids["bonds"].centers.reshape(-1, 2, 3)
    assert (bonds[:, 0] == solids["beads"].centers[[0, 2]]).all()
    assert np.abs(bonds[:, 1] - bonds[:, 0])[:, 0].max() < 60.0
    anchored = solids["anchored"].centers
    assert (anchored[0] == balls[5]).all()
    assert np.abs(nearest_image(anchored[1] - [119.0, 2.0, 0.0], state.box)).max() < 1e-9


def test_normals_and_curvatures_know_no_seam():
    simulation = filled(move=(37.0, 51.0, 0.0))
    mesh = rough_sheet()
    sheet = drawn(simulation)[0]["patch"]
    assert len(sheet.vertices) > len(mesh.vertices)
    own, faces = sheet.own
    vectors = geometry.area_vectors(mesh.vertices, mesh.faces, box_lengths(mesh.box))
    normals = geometry.corner_sums(own, faces, np.repeat(vectors[:, None], 3, axis=1))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    assert sheet.smooth_normals() == pytest.approx(normals[sheet.source], abs=1e-9)
    for name, wanted in (("mean_curvature", mesh.mean_curvatures), ("gaussian_curvature", mesh.gaussian_curvatures)):
        give_values([sheet], name)
        assert np.isfinite(sheet.values).all()
        assert sheet.values == pytest.approx(wanted[mesh.faces], abs=1e-9), name
    give_values([sheet], np.arange(len(mesh.vertices)))
    assert (sheet.values == mesh.faces).all()
    give_values([sheet], np.arange(len(mesh.faces)))
    assert (sheet.values == np.arange(len(mesh.faces))[:, None]).all()


def test_pictures_do_not_depend_on_images():
    size = {"size": (300, 220), "view": (40.0, 20.0)}
    one, other = (pixels(draw(filled(whole=whole), **size)) for whole in (0, 3))
    assert (np.abs(one - other).max(axis=2) > 3).mean() < 1e-3


def test_frames_look_as_the_simulation_did(tmp_path):
    simulation = filled(whole=1)
    with mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1) as reporter:
        simulation.reporters.append(reporter)
        simulation.step(2)
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert (pixels(draw(trajectory[-1], size=(300, 220))) == pixels(draw(simulation, size=(300, 220)))).all()


def test_the_box_is_drawn_in_its_own_colour_and_is_in_no_legend():
    topology = mp.Topology()
    topology.add_balls([[5.0, 5.0, 5.0]], radius=1.0, mass=1.0)
    simulation = mp.Simulation(mp.System(topology, box=(10.0, 10.0, 10.0)), mp.VerletIntegrator(0.5))
    figure = draw(simulation, size=(300, 300))
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["1 balls"]
    image = pixels(figure)
    grey = (np.ptp(image, axis=2) < 12) & (image.max(axis=2) < 235)
    blue = image[..., 2] - image[..., 0] > 60
    assert 300 < grey.sum() < 0.2 * grey.size
    assert blue.sum() > 300
    # Without the legend.
    rows = np.nonzero(blue[:250])[0]
    # The ball is in the middle of a box that is much larger.
    assert 4 < np.ptp(np.nonzero(grey)[0]) / np.ptp(rows) < 12


def test_trails_lead_to_where_beads_are():
    topology = mp.Topology()
    topology.add_beads([[9.0, 5.0, 5.0]], mass=1.0)
    simulation = mp.Simulation(mp.System(topology, box=(10.0, 10.0, 10.0)), mp.VerletIntegrator(0.5))
    simulation.context.set_velocities([[1.0, 0.0, 0.0]])
    earlier = []
    for _ in range(4):
        earlier.append(scene_of(simulation, {}))
        simulation.step(1)
    now = scene_of(simulation, {})
    assert now.positions[0] == pytest.approx([1.0, 5.0, 5.0])
    assert now.past(earlier)[:, 0, 0] == pytest.approx([-1.0, -0.5, 0.0, 0.5])
    past = [[[9.0, 5.0, 5.0]], [[9.5, 5.0, 5.0]], [[10.0, 5.0, 5.0]], [[10.5, 5.0, 5.0]]]
    assert now.led_here(np.array(past))[:, 0, 0] == pytest.approx([-1.0, -0.5, 0.0, 0.5])


def test_a_movie_of_a_box_that_grows(tmp_path):
    simulation = filled()

    def frames():
        for k in range(3):
            simulation.context.set_box((120.0 + 4.0 * k, *simulation.context.get_state().box[1:]))
            yield simulation

    movie(frames(), tmp_path / "box.gif", size=(160, 120), trail=2)
    assert (tmp_path / "box.gif").read_bytes()[:3] == b"GIF"


def test_a_mesh_in_a_box_is_drawn_whole():
    sheet = objects_of(scene_of(rough_sheet(), {}))[0][0]
    corners = sheet.vertices[sheet.faces]
    assert np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max() < 20.0


def test_scenes_that_turn_have_the_box_too():
    pytest.importorskip("pyvista", reason="pyvista is not installed: pip install 'medyanpy[notebooks]'")
    from medyanpy.visualize.interactive import _scene

    scene = _scene(filled(whole=1), "mean_curvature", "", "viridis", None, 1.0, None, None, None, "nm", None)
    pieces = {piece.name: piece for piece in scene.pieces}
    assert "box" in pieces
    assert "box" not in [name for name, _ in scene.legend]
    patch = pieces["patch"]
    corners = patch.vertices[patch.faces]
    assert np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max() < 20.0
