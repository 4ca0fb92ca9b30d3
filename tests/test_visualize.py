"""draw: pictures that show what is there, in front of what is behind it."""

import sys

import numpy as np
import pytest
from builders import like, pixels, refuses

import medyanpy as mp
from medyanpy import visualize
from medyanpy._tools import quaternions
from medyanpy.beads import rigid_bodies
from medyanpy.files.trajectory import Trajectory
from medyanpy.visualize import draw, figures, renderer, scene

# Pictures: no kernel that other tests do not reach.
pytestmark = pytest.mark.slow

SIZE = (400, 300)


def gray(image):
    """Where a surface is seen that beads are held to."""
    light = image.max(axis=2)
    return (light < 0.95) & (light > 0.15) & (np.ptp(image, axis=2) < 0.05)


@pytest.fixture(scope="module")
def simulation():
    topology = mp.Topology()
    mesh = mp.TriangleMesh.red_blood_cell(frequency=8)
    vesicle = topology.add_membrane(mesh, vertex_mass=4e-12, vertex_friction=4e-6)
    topology.add_intriangle_points(vesicle, 200, mass=4e-12, friction=4e-6, seed=1, name="proteins")
    return mp.Simulation(mp.System(topology), mp.BAGOGABIntegrator(1e-7, temperature=300.0), threads=1)


def test_a_simulation_becomes_a_png(simulation, tmp_path):
    path = tmp_path / "a.png"
    figure = draw(simulation, path, size=SIZE, title="red cell")
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    from matplotlib.image import imread

    image = imread(path)[..., :3]
    assert image.shape == (300, 400, 3)
    np.testing.assert_allclose(image, pixels(figure), atol=0.01)
    assert like(image, scene.MEMBRANE_COLOR).mean() > 0.2
    assert like(image, renderer.POINT_COLORS[0]).sum() > 100
    # A margin that is white, and light and shadow within.
    assert (image[:5] == 1.0).all()
    assert image[100:200, 100:300].std() > 0.05
    refuses(mp.ParameterError, r"exists; give overwrite=True to replace it$", draw, simulation, path, size=SIZE)
    draw(simulation, path, size=SIZE, overwrite=True)


def test_the_users_backend_is_left_alone(simulation):
    import matplotlib

    # Tests of other modules may have imported it.
    before, imported = matplotlib.rcParams._get_backend_or_none(), "matplotlib.pyplot" in sys.modules
    draw(simulation, size=(100, 100))
    assert matplotlib.rcParams._get_backend_or_none() == before
    assert ("matplotlib.pyplot" in sys.modules) == imported


def test_beads_behind_the_membrane_are_hidden():
    """One point in front, one behind, seen from +x."""
    mesh = mp.TriangleMesh.icosphere(100.0, 3)
    center = mesh.vertices[mesh.faces].mean(axis=1)
    for direction, seen in ((1.0, True), (-1.0, False)):
        topology = mp.Topology()
        vesicle = topology.add_membrane(mesh, vertex_mass=1.0)
        face = int(np.argmax(direction * center[:, 0]))
        topology.add_intriangle_points(vesicle, triangles=[face], barycentric=[[1 / 3] * 3], mass=1.0)
        context = mp.Context(mp.System(topology), mp.VerletIntegrator(1.0))
        view = (0.0, 0.0)
        camera = renderer._camera([], [], view)
        # Where the viewer stands.
        turn = np.degrees(np.arctan2(camera[2, 1], camera[2, 0]))
        image = pixels(draw(context, view=(0.0, -turn), size=SIZE, point_radius=20.0))[:240, 40:]
        if abs(renderer._camera([], [], (0.0, -turn))[2, 0] - 1.0) > 1e-9:
            image = pixels(draw(context, view=(0.0, turn), size=SIZE, point_radius=20.0))[:240, 40:]
        assert (like(image, renderer.POINT_COLORS[0]).sum() > 50) == seen


def test_the_camera_is_a_rotation_and_looks_from_where_it_is_told():
    for view in ((0.0, 0.0), (35.0, 0.0), (90.0, 20.0), (-30.0, 200.0)):
        camera = renderer._camera([], [], view)
        np.testing.assert_allclose(camera @ camera.T, np.eye(3), atol=1e-14)
        assert np.linalg.det(camera) == pytest.approx(1.0)
        assert camera[2, 2] == pytest.approx(np.sin(np.radians(view[0])))


def test_values_are_shown_as_colours():
    mesh = mp.TriangleMesh.icosphere(100.0, 3)
    figure = draw(mesh, values=mesh.vertices[:, 2], label="height (nm)", colormap="coolwarm", size=SIZE, view=(0, 0))
    image = pixels(figure)
    # Red above, blue below.
    assert image[70, 200, 0] > image[70, 200, 2] + 0.2
    assert image[210, 200, 2] > image[210, 200, 0] + 0.1
    draw(mesh, values=mesh.face_areas, size=SIZE)
    with pytest.raises(mp.ParameterError, match=r"values has 3 numbers, but there are 642 vertices and 1280 faces"):
        draw(mesh, values=[1.0, 2.0, 3.0])
    with pytest.raises(mp.ParameterError, match="colormap = 'nonsense'"):
        draw(mesh, values=mesh.face_areas, colormap="nonsense", size=SIZE)


def test_frames_of_trajectories_open_meshes_and_free_beads(tmp_path):
    topology = mp.Topology()
    sheet = topology.add_membrane(mp.TriangleMesh.flat_sheet(8, 8, 10.0), vertex_mass=4e-12, vertex_friction=4e-6)
    topology.add_intriangle_points(sheet, 20, mass=4e-12, friction=4e-6, seed=1)
    topology.add_balls([[0.0, 0, 30.0]], radius=12.0, mass=1e-12, friction=1e-6)
    simulation = mp.Simulation(mp.System(topology), mp.BAGOGABIntegrator(1e-9, temperature=300.0), threads=1)
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1))
    simulation.step(2)
    simulation.close()
    with Trajectory(tmp_path / "run.h5") as trajectory:
        image = pixels(draw(trajectory[-1], size=SIZE))
    assert like(image, scene.MEMBRANE_COLOR).mean() > 0.1
    assert like(pixels(draw(simulation, size=SIZE)), renderer.POINT_COLORS[1]).sum() > 100
    # From below one sees the other side.
    image = pixels(draw(simulation.topology.membranes[0].mesh, view=(-50.0, 0.0), size=SIZE))
    assert like(image, scene.INSIDE_COLOR, within=0.1).mean() > 0.1


# Surfaces, trails, movies ------------------------------------------------------------------------------------


def test_links_that_jumps_have_bound_are_drawn_as_thin_lines():
    """Between two filaments, from where they are bound; before there are any, pictures keep their colours."""
    topology = mp.Topology()
    nodes = [np.column_stack([np.linspace(-30.0, 30.0, 4), np.full(4, y), np.zeros(4)]) for y in (-10.0, 10.0)]
    filaments = topology.add_filaments(nodes, node_mass=1.0, node_friction=1.0, name="actin")
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=1.0, length=20.0))
    a, b = (filaments.sites([k] * 3, range(3), 0.5) for k in (0, 1))
    bound = [(1, 1)]
    for name, of in (("bound", bound), ("free", [])):
        system.add_jump(mp.jumps.LinkBinding(links, a, b, off_rate=1.0, on_rate=0.0, bound=of, name=name))
    context = mp.Context(system, mp.SplittingIntegrator("JBAOABJ", 0.1, kT=1.0, seed=1))
    image = pixels(draw(context, view=(90.0, -90.0), size=(400, 300)))
    # Without what the legend says: across, in the middle, as long as its filaments are apart.
    place, actin = (np.argwhere(like(image[:, :280], renderer.POINT_COLORS[k])) for k in (1, 0))
    across = int(np.argmin(np.ptp(actin, axis=0)))
    assert len(place) > 20
    assert np.ptp(place[:, 1 - across]) < 8
    assert 0.8 < np.ptp(place[:, across]) / np.ptp(actin[:, across]) < 1.0
    np.testing.assert_allclose(place.mean(axis=0), actin.mean(axis=0), atol=4.0)
    assert not like(image[:, :280], renderer.POINT_COLORS[2]).any()


def on_a_surface(surface, positions, velocities=None, **more):
    topology = mp.Topology()
    topology.add_surface_points(surface, positions, mass=1.0, name="beads", **more)
    simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.02), threads=1)
    if velocities is not None:
        simulation.context.set_velocities(velocities)
    return simulation


def test_surfaces_are_drawn_with_what_is_in_front_of_them():
    """One bead in front of a sphere, one behind; also where the gradient points inwards."""
    pytest.importorskip("skimage")
    outward = mp.surfaces.Sphere(2.0)
    inward = mp.surfaces.Polynomial("4 - x**2 - y**2 - z**2", bounding_box=outward.bounding_box)
    for surface in (outward, inward):
        image = pixels(draw(on_a_surface(surface, [[0.0, 0.0, 2.0]]), view=(90, 0), size=SIZE, point_radius=0.3))
        assert gray(image[:240]).mean() > 0.2
        assert like(image[:240, 40:], renderer.POINT_COLORS[0]).sum() > 100
        image = pixels(draw(on_a_surface(surface, [[0.0, 0.0, -2.0]]), view=(90, 0), size=SIZE, point_radius=0.3))
        assert like(image[:240, 40:], renderer.POINT_COLORS[0]).sum() == 0
    image = pixels(draw(outward, size=SIZE))
    assert gray(image).mean() > 0.2
    refuses(mp.ParameterError, "no known bounds", draw, mp.surfaces.Plane(), size=SIZE)


@pytest.mark.parametrize(
    "surface",
    [mp.surfaces.Plane(), mp.surfaces.Cylinder(1.0), mp.surfaces.Gyroid(3.0), mp.surfaces.Polynomial("x*y - z")],
    ids=lambda s: type(s).__name__,
)
def test_unbounded_surfaces_are_drawn_around_the_points(surface):
    pytest.importorskip("skimage")
    x = surface.sample(30, seed=1, box=[[-2.0] * 3, [2.0] * 3])
    image = pixels(draw(on_a_surface(surface, x), size=SIZE, view=(50, 20)))
    assert gray(image[:240]).mean() > 0.1
    assert like(image, renderer.POINT_COLORS[0]).sum() > 100
    # Of one point alone there is a patch.
    draw(on_a_surface(surface, x[:1]), size=SIZE)


def test_without_scikit_image_points_are_drawn_alone(monkeypatch):
    # Both: what has been imported before is found without asking for its parent.
    for name in ("skimage", "skimage.measure"):
        monkeypatch.setitem(sys.modules, name, None)
    sphere = mp.surfaces.Sphere(2.0)
    image = pixels(draw(on_a_surface(sphere, sphere.sample(30, seed=1)), size=SIZE))
    assert like(image, renderer.POINT_COLORS[0]).sum() > 100
    assert gray(image[:240]).mean() < 0.01
    refuses(ImportError, "scikit-image", draw, mp.surfaces.Sphere(1.0), size=SIZE)


def test_trails_are_seen_and_get_thinner_towards_the_past():
    """A bead that came along the x axis, seen from above."""
    topology = mp.Topology()
    topology.add_beads([[10.0, 0.0, 0.0]], mass=1.0)
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(1.0))
    past = [[[x, 0.0, 0.0]] for x in np.arange(10.0)]
    options = {"view": (90.0, 0.0), "size": (600, 300), "point_radius": 0.7}
    seen = like(pixels(draw(context, trails=past, **options))[:240], renderer.POINT_COLORS[0])
    columns = np.flatnonzero(seen.any(axis=0))
    width = seen.sum(axis=0)[columns[0] : columns[-1] + 1]
    assert len(width) > 300
    # The bead is at one end.
    if width[-20:].max() > width[:20].max():
        width = width[::-1]
    assert width[:40].max() > width[100] > width[200] > width[-20] > 0
    assert like(pixels(draw(context, trails=[], **options))[:240], renderer.POINT_COLORS[0]).any(axis=0).sum() < 400
    with pytest.raises(mp.ParameterError, match=r"trails must have shape \(n, 1, 3\)"):
        draw(context, trails=[[0.0, 0.0, 0.0]], size=SIZE)


def frames_of(path):
    """(n, height, width, 3) numbers from 0 to 1, and the milliseconds each is shown."""
    from PIL import Image

    with Image.open(path) as image:
        frames = []
        for k in range(image.n_frames):
            image.seek(k)
            frames.append(np.asarray(image.convert("RGB")) / 255.0)
        return np.array(frames), image.info["duration"]


def test_a_movie_of_a_running_simulation(tmp_path):
    """A bead that circles a sphere, seen from above: it moves, nothing else does."""
    pytest.importorskip("skimage")
    simulation = on_a_surface(mp.surfaces.Sphere(1.0), [[1.0, 0.0, 0.0]], [[0.0, 5.0, 0.0]])

    def run():
        for _ in range(4):
            yield simulation
            simulation.step(4)

    path = tmp_path / "a.gif"
    visualize.movie(run(), path, trail=2, fps=20, size=SIZE, view=(70.0, 0.0), point_radius=0.15, unit="")
    frames, milliseconds = frames_of(path)
    assert frames.shape == (4, 300, 400, 3)
    assert milliseconds == 50
    blue = [like(f[:240], renderer.POINT_COLORS[0]) for f in frames]
    counts = [b.sum() for b in blue]
    assert min(counts) > 50
    assert counts[2] > counts[0] + 20  # a trail
    where = np.array([np.argwhere(b).mean(axis=0) for b in blue])
    assert np.linalg.norm(np.diff(where, axis=0), axis=1).min() > 5.0
    # The sphere stays where it is: its outline, far from the bead.
    seen = [gray(f) for f in frames]
    assert seen[0].mean() > 0.2
    for g in seen[1:]:
        assert (g != seen[0]).mean() < 0.05


def test_a_movie_of_every_other_frame_keeps_the_trails_of_all(tmp_path):
    """Its pictures are those of the whole movie, with the places that it leaves out on the trails."""
    pytest.importorskip("skimage")
    found = []
    for every in (1, 2):
        simulation = on_a_surface(mp.surfaces.Sphere(1.0), [[1.0, 0.0, 0.0]], [[0.0, 5.0, 0.0]])

        def run(simulation=simulation):
            for _ in range(5):
                yield simulation
                simulation.step(4)

        path = tmp_path / f"{every}.gif"
        visualize.movie(run(), path, trail=3, every=every, size=SIZE, view=(70.0, 0.0), point_radius=0.15, unit="")
        found.append(frames_of(path)[0])
    whole, other = found
    assert (len(whole), len(other)) == (5, 3)
    assert np.array_equal(whole[::2], other)
    assert not np.array_equal(whole[2], whole[3])


@pytest.mark.parametrize("kind", ["membrane", "filaments", "surface"])
def test_a_movie_of_a_trajectory(tmp_path, kind):
    """Of any kind of system; in the same window, though things move out of that of the first frame."""
    topology = mp.Topology()
    if kind == "membrane":
        vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(100.0, 1), vertex_mass=1.0)
        topology.add_intriangle_points(vesicle, 10, mass=1.0, seed=1)
    elif kind == "filaments":
        topology.add_filaments([np.linspace([-100.0, 0, 0], [100.0, 0, 0], 6)], node_mass=1.0)
        topology.add_balls([[0.0, 0.0, 50.0]], radius=20.0, mass=1.0)
    else:
        plane = mp.surfaces.Plane()
        topology.add_surface_points(plane, 100.0 * plane.sample(10, 1, box=[[-1.0] * 3, [1.0] * 3]), mass=1.0)
    simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(1.0), threads=1)
    v = np.zeros((topology.n_beads, 3))
    if kind == "membrane":
        v[: len(vesicle)] = [100.0, 0.0, 0.0]
    else:
        v[:] = [100.0, 0.0, 0.0]
    simulation.context.set_velocities(v)
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1))
    simulation.step(3)
    simulation.close()
    options = {"trail": 5, "size": (200, 150), "view": (30.0, 0.0)}
    with Trajectory(tmp_path / "run.h5") as trajectory:
        visualize.movie(trajectory, tmp_path / "all.gif", **options)
        visualize.movie(trajectory[::2], tmp_path / "two.gif", **options)
    frames, _ = frames_of(tmp_path / "all.gif")
    assert len(frames) == 3
    assert len(frames_of(tmp_path / "two.gif")[0]) == 2
    drawn = [(f[:110, 20:] < 0.9).any(axis=2) for f in frames]
    assert all(d.sum() > 20 for d in drawn)
    # Nothing touches the border.
    assert all((f[0] > 0.98).all() and (f[:, 0] > 0.98).all() and (f[:, -1] > 0.98).all() for f in frames)
    if kind != "surface":
        middle = [np.argwhere(d)[:, 1].mean() for d in drawn]
        assert abs(middle[2] - middle[0]) > 10.0


def test_movies_that_cannot_be_made(tmp_path, monkeypatch):
    mesh = mp.TriangleMesh.icosphere(1.0, 0)
    for frames, name, message in (
        ([], "a.gif", "there are no frames"),
        (3, "a.gif", "frames must be a Trajectory or an iterable, not int"),
        ([mesh, 3], "a.gif", "cannot draw int"),
        ([mesh, mp.TriangleMesh.icosphere(1.0, 1)], "a.gif", "frame 1 has 42 beads, the first has 12"),
        ([mesh], "a.avi", r"must end in \.gif or \.mp4, not '\.avi'"),
        ([mesh], "a", "must end in"),
    ):
        refuses(mp.ParameterError, message, visualize.movie, frames, tmp_path / name, size=(100, 100))
        assert not (tmp_path / name).exists()
    for wrong in ({"trail": -1}, {"every": 0}, {"fps": 0}, {"fps": 61}, {"size": (10, 10)}):
        with pytest.raises(mp.ParameterError, match=f"movie: {next(iter(wrong))}"):
            visualize.movie([mesh], tmp_path / "a.gif", **({"size": (100, 100)} | wrong))
    visualize.movie([mesh], tmp_path / "a.gif", size=(100, 100))
    with pytest.raises(mp.ParameterError, match=r"exists; give overwrite=True to replace it$"):
        visualize.movie([mesh], tmp_path / "a.gif", size=(100, 100))
    monkeypatch.setattr("matplotlib.animation.FFMpegWriter.isAvailable", lambda: False)
    with pytest.raises(mp.ParameterError, match=r"a\.mp4 needs the program ffmpeg, which is not here"):
        visualize.movie([mesh], tmp_path / "a.mp4", size=(100, 100))


def test_a_movie_by_ffmpeg(tmp_path):
    from matplotlib.animation import FFMpegWriter

    if not FFMpegWriter.isAvailable():
        pytest.skip("there is no ffmpeg")
    meshes = [mp.TriangleMesh.icosphere(r, 2) for r in (1.0, 1.1, 1.2)]
    visualize.movie(meshes, tmp_path / "a.mp4", size=(201, 151))
    assert (tmp_path / "a.mp4").read_bytes()[4:8] == b"ftyp"


# Rigid bodies ------------------------------------------------------------------------------------------------


def rigid(semi_axes, positions=((0.0, 0.0, 0.0),), orientations=((1.0, 0.0, 0.0, 0.0),), inertia=None):
    topology = mp.Topology()
    mass = 3.0
    moments = mp.rigid.ellipsoid_inertia(semi_axes, mass) if inertia is None else inertia
    topology.add_rigid_bodies(positions, orientations, mass, moments, name="bodies")
    return mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.1), threads=1)


def test_a_solid_sphere_looks_like_a_ball(monkeypatch):
    """To the eye: the paths of the light are the same."""
    topology = mp.Topology()
    topology.add_balls([[0.0, 0.0, 0.0], [3.0, 1.0, 0.5]], radius=2.0, mass=1.0, name="bodies")
    ball = mp.Context(mp.System(topology), mp.VerletIntegrator(1.0))
    turns = [[0.5, 0.5, -0.5, 0.5], [0.6, 0.0, 0.8, 0.0]]
    body = rigid((2.0, 2.0, 2.0), [[0.0, 0.0, 0.0], [3.0, 1.0, 0.5]], turns)
    monkeypatch.setattr(renderer, "TIP", 2.0)
    difference = np.abs(pixels(draw(body, size=SIZE)) - pixels(draw(ball, size=SIZE)))
    assert difference.max() < 0.1
    assert difference.mean() < 1e-4


@pytest.mark.parametrize("semi_axes", [(8.0, 3.0, 1.0), (6.0, 6.0, 0.5), (2.0, 2.0, 7.0)])
def test_outlines_of_ellipsoids(semi_axes):
    """Seen from anywhere: the area of a shadow is π √(Σ (aⱼ aₖ nᵢ)²), with n the line of sight in the body frame."""
    a = np.array(semi_axes)
    for k, view in enumerate(((90.0, 0.0), (0.0, 0.0), (30.0, 75.0))):
        q = np.random.default_rng(k).normal(size=(1, 4))
        q /= np.linalg.norm(q)
        simulation = rigid(a, orientations=q)
        image = pixels(draw(simulation, size=(600, 450), view=view))[:400, 60:450]
        camera = renderer._camera([], [], view)
        n = camera[2] @ quaternions.matrices(q)[0]
        shadow = np.pi * np.sqrt(sum((a[(i + 1) % 3] * a[(i + 2) % 3] * n[i]) ** 2 for i in range(3)))
        surfaces, spheres = scene.objects_of(scene.scene_of(simulation, {}))
        scale = renderer.window_of("draw", surfaces, spheres, view, None).scale((600, 450), 0.0)
        assert ((image < 0.97).any(axis=2)).sum() * scale**2 == pytest.approx(shadow, rel=0.03)


def test_bodies_hide_each_other_and_show_where_they_point():
    """Seen from above: a rod along x over one along y, with its light end where its first axis points."""
    s = np.sqrt(0.5)
    for heights in ((2.0, -2.0), (-2.0, 2.0)):
        places = [[0.0, 0.0, heights[0]], [0.0, 0.0, heights[1]]]
        simulation = rigid((8.0, 2.0, 2.0), places, [[1, 0, 0, 0], [s, 0, 0, s]])
        buffer = renderer.Buffer(400, 400)
        _, spheres = scene.objects_of(scene.scene_of(simulation, {}))
        turn = np.diag([10.0, -10.0, 10.0])
        centers = spheres[0].centers @ turn + [200.0, 200.0, 0.0]
        bodies = renderer._Ellipsoids(centers, turn @ spheres[0].half_axes, np.zeros(2, int))
        renderer._put_ellipsoids(buffer, bodies, 0)
        item = buffer.item.reshape(400, 400)
        assert item[200, 200] == int(heights[1] > heights[0])
        assert item[200, 270] == 0
        assert item[130, 200] == item[270, 200] == 1
        assert item[130, 130] == -1
        # The highest points: of the upper rod its radius over the axis.
        assert buffer.depth.max() == pytest.approx(40.0, abs=0.01)
    image = pixels(draw(rigid((8.0, 2.0, 2.0)), view=(90.0, 0.0), size=SIZE))[:240]
    light = image.min(axis=2)
    body = np.argwhere((light < 0.9) & like(image, renderer.POINT_COLORS[0]))
    tip = np.argwhere((light > 0.35) & (light < 0.95))
    assert len(tip) > 100
    ahead = renderer._camera([], [], (90.0, 0.0))[:2, 0]
    along = (tip.mean(axis=0) - body.mean(axis=0))[::-1] * [1.0, -1.0]
    assert along @ ahead > 0.9 * np.linalg.norm(along) > 20.0


def test_elastic_rods_are_tubes_of_their_thickness(tmp_path):
    """A straight rod and a ring of the radius 1.5, seen from above; frames of the file look like the simulation."""
    section = mp.rods.CircularSection(1.5, 1.0, 0.3, 1.0)
    n = 40
    turn = np.tile([np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0], (n, 1))  # the third axis along x
    angle = 2.0 * np.pi * np.arange(n) / n
    ring = n / (2.0 * np.pi) * np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle]) + [0.0, 15.0, 0.0]
    topology = mp.Topology()
    numbers = (1.0, section.linear_density, section.inertia_density)
    topology.add_rod(np.arange(n)[:, None] * [1.0, 0.0, 0.0], turn, *numbers, name="line", ends="clamped")
    topology.add_rod(ring, mp.rods.frames(ring, closed=True), *numbers, closed=True, name="ring")
    simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.1), threads=1)
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1))
    simulation.step(1)
    simulation.close()
    options = {"view": (90.0, 0.0), "size": (600, 450)}
    image = pixels(draw(simulation, **options))
    with Trajectory(tmp_path / "run.h5") as trajectory:
        np.testing.assert_allclose(pixels(draw(trajectory[0], **options)), image, atol=1e-6)
    surfaces, spheres = scene.objects_of(scene.scene_of(simulation, {}))
    scale = renderer.window_of("draw", surfaces, spheres, (90.0, 0.0), None).scale((600, 450), 0.0)
    # Round ends; the area of the ring is that of its mid line times its width (Pappus). The legend is below.
    areas = (3.0 * (n - 1) + np.pi * 1.5**2, 3.0 * n)
    for color, area in zip(renderer.POINT_COLORS, areas, strict=False):
        seen = like(image[:390], color, within=0.15)
        assert seen.sum() * scale**2 == pytest.approx(area, rel=0.06)


def test_semi_axes_of_inertia_and_given_ones():
    mass = np.array([2.0, 2.0])
    moments = np.array([mp.rigid.ellipsoid_inertia((5.0, 2.0, 3.0), 2.0), [1.0, 1.0, 2.0]])
    a = rigid_bodies.solid_semi_axes(mass, moments)
    np.testing.assert_allclose(a[0], [5.0, 2.0, 3.0], rtol=1e-14)
    # A disc of no thickness gets some.
    np.testing.assert_allclose(a[1], np.sqrt(2.5) * np.array([1.0, 1.0, rigid_bodies.THINNEST]), rtol=1e-14)
    flat = rigid(None, inertia=[1.0, 1.0, 2.0])
    flat_seen = [like(pixels(draw(flat, size=SIZE, **more)), renderer.POINT_COLORS[0], 0.4)[:240].sum() for more in (
        {}, {"semi_axes": {"bodies": (1e-9, 1.0, 1e-9)}}, {"semi_axes": {"bodies": [[1.0, 1.0, 1.0]]}},
    )]  # fmt: skip
    assert 50 < flat_seen[1] < flat_seen[0] < flat_seen[2]
    for given, message in (
        ({"others": (1.0, 1.0, 1.0)}, "'others' are not rigid bodies, only bodies are"),
        ({"bodies": np.ones((2, 3))}, r"semi_axes\['bodies'\] must have shape \(3,\) or \(1, 3\), not \(2, 3\)"),
        ({"bodies": (1.0, 0.0, 1.0)}, r"semi_axes\['bodies'\] = 0 but must be > 0"),
        ({"bodies": (1.0, 1.0)}, "must have shape"),
        (3.0, "semi_axes must be a dict of names of handles, not float"),
    ):
        refuses(mp.ParameterError, message, draw, flat, size=SIZE, semi_axes=given)
    with pytest.raises(mp.ParameterError, match="'bodies' are not rigid bodies, there are none"):
        draw(mp.TriangleMesh.icosphere(1.0, 0), semi_axes={"bodies": (1.0, 1.0, 1.0)}, size=SIZE)


def test_a_movie_of_a_body_that_turns(tmp_path):
    """A rod that flies and turns about z; frames of the file look like the simulation."""
    simulation = rigid((6.0, 2.0, 2.0))
    inertia = simulation.topology.handles[0].inertia[0, 2]
    simulation.context.set_angular_momenta([[0.0, 0.0, inertia * np.pi]])
    simulation.context.set_velocities([[5.0, 0.0, 0.0]])
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 5))
    options = {"size": SIZE, "view": (90.0, 0.0)}
    pictures = []
    for _ in range(3):
        simulation.step(5)
        pictures.append(pixels(draw(simulation, **options)))
    simulation.close()
    with Trajectory(tmp_path / "run.h5") as trajectory:
        for frame, picture in zip(trajectory, pictures, strict=True):
            assert np.abs(pixels(draw(frame, **options)) - picture).max() < 1e-6
        visualize.movie(trajectory, tmp_path / "a.gif", trail=1, semi_axes={"bodies": (6.0, 2.0, 1.0)}, **options)
    frames, _ = frames_of(tmp_path / "a.gif")
    seen = [(f[:230, 20:] < 0.9).any(axis=2) for f in frames]
    # Half a turn a second: across, along, and across again.
    spread = [np.ptp(np.argwhere(b), axis=0) for b in seen]
    assert spread[0][0] > 1.5 * spread[1][0] or spread[1][0] > 1.5 * spread[0][0]
    assert all((f[0] > 0.98).all() and (f[:, 0] > 0.98).all() and (f[:, -1] > 0.98).all() for f in frames)


def test_depth_decides_what_is_seen_not_the_order():
    """Two spheres one behind the other: the buffer keeps the nearer, in any order."""
    for order in ((0, 1), (1, 0)):
        buffer = renderer.Buffer(20, 20)
        centers = np.array([[10.0, 10.0, 0.0], [10.0, 10.0, 5.0]])[list(order)]
        renderer._put_spheres(buffer, (centers, np.array([6.0, 6.0]), np.zeros(2, int)), 0)
        seen = buffer.item.reshape(20, 20)
        assert seen[10, 10] == order.index(1)
        assert seen[0, 0] == -1


def test_refusals_of_drawing():
    refuses(mp.ParameterError, "cannot draw int", draw, 3)
    refuses(mp.ParameterError, "size", draw, mp.TriangleMesh.icosphere(1.0, 0), size=(10, 10))
    with pytest.raises(mp.ParameterError, match="point_radius"):
        draw(mp.TriangleMesh.icosphere(1.0, 0), point_radius=-1.0, size=(100, 100))


@pytest.mark.parametrize(
    ("wanted", "length"), [(0.9, 0.5), (1.0, 1.0), (3.0, 2.0), (180.0, 100.0), (5000.0, 5000.0), (9999.0, 5000.0)]
)
def test_scale_bars_have_round_lengths(wanted, length):
    assert figures._round_length(wanted) == pytest.approx(length)
    assert figures._length_text(500.0) == "500 nm"
    assert figures._length_text(2000.0) == "2 µm"


def test_a_view_is_where_the_viewer_stands():
    """In front (against y) at azimuth 0, at the end of the x axis at 90, above at an elevation of 90."""
    for view, toward, right in (((0, 0), [0, -1, 0], [1, 0, 0]), ((0, 90), [1, 0, 0], [0, 1, 0])):
        camera = renderer._camera([], [], view)
        np.testing.assert_allclose(camera, [right, [0, 0, 1], toward], atol=1e-15)
    np.testing.assert_allclose(renderer._camera([], [], (90, 0)), [[1, 0, 0], [0, 1, 0], [0, 0, 1]], atol=1e-15)
