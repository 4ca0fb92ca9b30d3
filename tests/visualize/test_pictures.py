"""Pictures of curvatures, of links and bonds, and of bodies as the spheres of their bead model."""

import matplotlib
import numpy as np
import pytest
from builders import like, pixels, refuses, system_with

import medyanpy as mp
from medyanpy.visualize import draw, figures, renderer, scene

# Pictures: no kernel that other tests do not reach.
pytestmark = pytest.mark.slow

SIZE = (400, 300)


def test_curvatures_by_name_are_those_of_the_mesh_as_it_is_now():
    mesh = mp.TriangleMesh.red_blood_cell(frequency=8)
    topology = mp.Topology()
    topology.add_membrane(mesh, vertex_mass=1.0)
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(1.0))
    x = mesh.vertices * [1.0, 1.0, 1.7]
    context.set_positions(x)
    now = mp.TriangleMesh(x, mesh.faces)
    for name, values in (("mean_curvature", now.mean_curvatures), ("gaussian_curvature", now.gaussian_curvatures)):
        label = {"mean_curvature": "mean curvature (1/nm)", "gaussian_curvature": "Gaussian curvature (1/nm²)"}[name]
        figure = draw(context, values=name, size=SIZE)
        assert figure.axes[-1].get_ylabel() == label
        np.testing.assert_array_equal(pixels(figure), pixels(draw(context, values=values, label=label, size=SIZE)))
    assert draw(context, values="mean_curvature", label="H", size=SIZE).axes[-1].get_ylabel() == "H"
    assert draw(context, values="mean_curvature", unit="", size=SIZE).axes[-1].get_ylabel() == "mean curvature"
    with pytest.raises(mp.ParameterError, match="there is no name of values 'mean_curvatur': did you mean 'mean_curv"):
        draw(context, values="mean_curvatur", size=SIZE)
    beads = mp.Topology()
    beads.add_beads([[0.0, 0, 0]], mass=1.0)
    alone = mp.Context(mp.System(beads), mp.VerletIntegrator(1.0))
    with pytest.raises(mp.ParameterError, match="values = 'mean_curvature', but there is no membrane"):
        draw(alone, values="mean_curvature", size=SIZE)


def test_borders_keep_the_colour_of_membranes():
    """A dome: what is inside has a colour of the map, its rim fades to that of membranes."""
    sheet = mp.TriangleMesh.flat_sheet(9, 9, 1.0)
    x = sheet.vertices - sheet.vertices.mean(axis=0)
    dome = mp.TriangleMesh(x + [0.0, 0, 1] * (-0.05 * (x**2).sum(axis=1))[:, None], sheet.faces)
    image = pixels(draw(dome, values="mean_curvature", view=(90, 0), size=SIZE))[:, :340]
    assert like(image, scene.MEMBRANE_COLOR, within=0.1).sum() > 100
    assert np.isnan(dome.mean_curvatures).sum() == 2 * (9 + 9) - 4


def test_figures_are_what_notebooks_show():
    """The pixels of the figure as it is saved, and a figure of Matplotlib for everybody else."""
    from io import BytesIO

    from matplotlib.figure import Figure
    from matplotlib.image import imread

    figure = draw(mp.TriangleMesh.icosphere(1.0, 2), size=(200, 150))
    assert isinstance(figure, Figure)
    image = imread(BytesIO(figure._repr_png_()))
    assert image.shape[:2] == (150, 200)
    np.testing.assert_allclose(image[..., :3], pixels(figure), atol=1e-6)
    # Changes are seen.
    figure.axes[0].text(0.0, 0.0, "here")
    assert not np.array_equal(imread(BytesIO(figure._repr_png_())), image)


def linked(folder):
    """Balls that a force joins in a row, of which one pair is bound by a jump, and a filament with a bond along it."""
    topology = mp.Topology()
    balls = topology.add_balls([[20.0 * i, 0, 0] for i in range(4)], radius=3.0, mass=1.0, friction=1.0, name="balls")
    nodes = np.array([[20.0 * i, 40.0, 0] for i in range(4)])
    filaments = topology.add_filaments([nodes], node_mass=1.0, node_friction=1.0, name="actin")
    bodies = topology.add_rigid_bodies([[0.0, 80.0, 0], [40.0, 80.0, 0]], [[1, 0, 0, 0]] * 2, 1.0,
                                       mp.rigid.ellipsoid_inertia((4.0, 3.0, 3.0), 1.0), (1.0, 10.0),
                                       name="bodies")  # fmt: skip
    b, n = balls.beads, filaments.beads
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links(b[:1], b[1:2], stiffness=0.1, length=20.0))
    system.add_force(mp.forces.HarmonicBonds([[b[1], b[2]], [n[0], n[1]], [b[0], b[1]]], 0.1, 20.0))
    arms = bodies.sites([[4.0, 0, 0]])
    system.add_force(mp.forces.Links(arms[:1], arms[1:], stiffness=0.1, length=36.0, name="arms"))
    system.add_jump(mp.jumps.LinkBinding(links, b[2:3], b[3:4], off_rate=0.1, on_rate=0.0, bound=[(0, 0)],
                                         name="bound"))  # fmt: skip
    simulation = mp.Simulation(system, mp.SplittingIntegrator("JBAOABJ", 1e-3, kT=1e-3, seed=1), threads=1)
    simulation.reporters.append(mp.reporters.TrajectoryReporter(folder / "run.h5", 1))
    simulation.step(1)
    simulation.close()
    return simulation


def test_links_and_bonds(tmp_path):
    """Each once, in the colour of what it is; a frame of the file shows the same."""
    simulation = linked(tmp_path)
    made = scene.scene_of(simulation, {})
    x = simulation.context.get_state(positions=True).positions
    assert list(made.links) == ["bound", "Links", "arms", "bonds"]
    np.testing.assert_allclose(made.links["bound"], [x[[2, 3]]])
    np.testing.assert_allclose(made.links["Links"], [x[[0, 1]]])
    # From where it holds the bodies, to their arms.
    np.testing.assert_allclose(made.links["arms"], [x[[8, 9]] + [4.0, 0.0, 0.0]], atol=0.1)
    # Neither the bond along the filament, which is seen already, nor that of links.
    np.testing.assert_allclose(made.links["bonds"], [x[[1, 2]]])
    options = {"view": (90.0, 0.0), "size": SIZE}
    image = pixels(draw(simulation, **options))
    for k in (3, 4):
        assert like(image[:, :320], renderer.POINT_COLORS[k], within=0.12).sum() > 20
    assert [line.get_text() for line in draw(simulation, **options).axes[0].get_legend().get_texts()] == [
        "4 balls", "actin", "2 bodies", "bound", "Links", "arms", "bonds",
    ]  # fmt: skip
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        np.testing.assert_array_equal(pixels(draw(trajectory[-1], **options)), image)
        theirs = scene.scene_of(trajectory[-1], {})
        assert {name: ends.shape for name, ends in theirs.links.items()} == {
            name: ends.shape for name, ends in made.links.items()
        }
        mp.visualize.movie(trajectory, tmp_path / "a.gif", size=(100, 100))


def bodies():
    topology = mp.Topology()
    turns = [[1.0, 0, 0, 0], [np.sqrt(0.5), 0, 0, np.sqrt(0.5)]]
    topology.add_rigid_bodies([[0.0, 0, 0], [40.0, 0, 0]], turns, 1.0, [1.0, 1.0, 1.0], name="dimers")
    return mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.1), threads=1)


def test_bodies_as_the_spheres_of_their_bead_model(tmp_path):
    """Dumbbells along x of each body, the second one turned by a quarter: as many balls look the same."""
    simulation = bodies()
    model = ([[-6.0, 0, 0], [6.0, 0, 0]], [4.0, 2.0])
    options = {"view": (90.0, 0.0), "size": SIZE}
    image = pixels(draw(simulation, spheres={"dimers": model}, **options))[:, :280]
    topology = mp.Topology()
    places = [[-6.0, 0, 0], [6.0, 0, 0], [40.0, -6, 0], [40.0, 6, 0]]
    topology.add_balls(places, radius=[4.0, 2.0, 4.0, 2.0], mass=1.0, name="dimers")
    made = scene.objects_of(scene.scene_of(simulation, {}, {"dimers": [scene.BeadModel(*map(np.array, model))]}))[1][0]
    np.testing.assert_allclose(made.instead[0], places, atol=1e-12)
    np.testing.assert_allclose(made.instead[1], [4.0, 2.0, 4.0, 2.0])
    np.testing.assert_allclose(made.radius, 10.0)
    assert made.legend == "2 dimers"
    # Balls, wide apart, and no ellipsoid between.
    blue = like(image, renderer.POINT_COLORS[0])
    balls = draw(mp.Context(mp.System(topology), mp.VerletIntegrator(0.1)), **options)
    share = blue.sum() / like(pixels(balls)[:, :280], renderer.POINT_COLORS[0]).sum()
    assert 0.7 < share < 1.3
    # Each of two bodies has its own; a movie shows them, with trails.
    two = [(np.zeros((1, 3)), 4.0), ([[0.0, 0, 5.0]], [2.0])]
    models = [scene.BeadModel(np.array(centers), np.broadcast_to(radii, 1)) for centers, radii in two]
    apart = scene.scene_of(simulation, {}, {"dimers": models})
    np.testing.assert_allclose(scene.objects_of(apart)[1][0].instead[0], [[0.0, 0, 0], [40.0, 0, 5.0]])
    draw(simulation, spheres={"dimers": two}, **options)
    mp.visualize.movie([simulation] * 2, tmp_path / "a.gif", spheres={"dimers": model}, trail=1, size=(100, 100))


def test_spheres_that_cannot_be_drawn():
    simulation = bodies()
    one = (np.zeros((1, 3)), 1.0)
    for spheres, message in (
        (3, "spheres must be a dict of names of handles, not int"),
        ({"others": one}, "spheres: 'others' are not rigid bodies, only dimers are"),
        ({"dimers": [one] * 3}, r"spheres\['dimers'\] has 3 bead models, of which 2 bodies are not copies"),
        ({"dimers": []}, r"spheres\['dimers'\] must be \(centers, radii\), or a list of these"),
        ({"dimers": (np.zeros((0, 3)), 1.0)}, "centers must hold at least one sphere"),
        ({"dimers": (np.zeros((1, 3)), 0.0)}, r"radii\S* = 0"),
        ({"dimers": (np.zeros((1, 2)), 1.0)}, "centers must have shape"),
    ):
        refuses(mp.ParameterError, message, draw, simulation, spheres=spheres, size=SIZE)


def test_the_spheres_of_a_molecule():
    """Where its atoms are, in the frame of each body: turned back they are those of the structure."""
    n = 12
    angle = np.arange(n) * 1.745
    alpha = np.column_stack([0.23 * np.cos(angle), 0.23 * np.sin(angle), 0.15 * np.arange(n)])
    structure = structure_of(alpha)
    molecule = mp.rigid.from_structure(structure, mp.presets.WATER, model="residues")
    for model, radius in (("atoms", 0.29), ("residues", 0.484)):
        ((centers, radii),) = molecule.spheres(model)
        np.testing.assert_allclose(molecule.bodies[0].to_space(centers), alpha, atol=1e-12)
        np.testing.assert_array_equal(radii, np.full(n, radius))
    refuses(mp.ParameterError, "model = 'sphere' but must be one of 'atoms', 'residues'", molecule.spheres, "sphere")
    refuses(mp.ParameterError, "the molecule of a preset holds no structure", mp.presets.adenylate_kinase().spheres)
    # In a picture as well.
    topology = mp.Topology()
    topology.add_rigid_bodies(**molecule.arguments(mass_scale=1e6), name="helix")
    simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(1e-9), threads=1)
    (drawn,) = scene.objects_of(scene.scene_of(simulation, {}, {"helix": [scene.BeadModel(*molecule.spheres()[0])]}))[1]
    middle = molecule.center_of_mass
    np.testing.assert_allclose(drawn.instead[0], alpha - middle, atol=1e-6)


def structure_of(alpha):
    """A chain of nothing but Cα."""
    from medyanpy.rigid.structures import Residue, Structure

    n = len(alpha)
    fields = {
        "positions": alpha, "masses": np.full(n, 2e-22), "elements": np.array(["C"] * n), "names": np.array(["CA"] * n),
        "residue_of": np.arange(n), "alpha": np.arange(n), "b_factors": np.zeros(n), "breaks": np.empty(0, int),
    }  # fmt: skip
    return Structure(residues=tuple(Residue("A", str(i + 1), "ALA") for i in range(n)), **fields)


# Letters, colours, views ---------------------------------------------------------------------------------------------


def heights(figure):
    """Of the letters of scale bar, legend and colour bar, in pixels."""
    texts = [*figure.axes[0].texts]
    if figure.axes[0].get_legend() is not None:
        texts += figure.axes[0].get_legend().get_texts()
    for axes in figure.axes[1:]:
        texts += [axes.yaxis.label, *axes.get_yticklabels()]
    return [text.get_fontsize() * figure.dpi / 72.0 for text in texts if text.get_text()]


def test_letters_can_be_read_in_every_size_and_stay_inside():
    """At least 10 pixels high from 400 x 300 on, a seventieth of the width of large pictures, inside the picture."""
    mesh = mp.TriangleMesh.icosphere(10.0, 1)
    colored, _ = scene.objects_of(scene.scene_of(mesh, {}))
    scene.give_values(colored, 0.01 * mesh.vertices[:, 2])
    surfaces, solids = scene.objects_of(scene.scene_of(things(8), {}))
    for size in ((400, 300), (500, 500), (1600, 1200)):
        for sheets, others, more in ((surfaces, solids, {"title": "title"}), (colored, [], {"label": "height (nm)"})):
            window = renderer.window_of("draw", sheets, others, None, None)
            figure, _ = figures.framed(np.broadcast_to(1.0, (*size[::-1], 3)), window, sheets, others, **more)
            found = heights(figure)
            assert len(found) >= 3
            assert min(found) >= max(10.0, size[0] / 80.0 if size[0] >= 1600 else 0.0)
            assert max(found) <= max(17.0, size[0] / 45.0)
            figure.draw_without_rendering()
            legend = figure.axes[0].get_legend()
            artists = [*figure.axes[0].texts, *(axes.yaxis.label for axes in figure.axes[1:])]
            for box in [a.get_window_extent() for a in (*artists, *([legend] if legend else []))]:
                assert (box.min >= 0.0).all()
                assert (box.max <= size).all()


def things(n):
    """Beads by n names."""
    topology = mp.Topology()
    for k in range(n):
        topology.add_beads([[10.0 * k, 0.0, 0.0], [10.0 * k, 10.0, 0.0]], mass=1.0, name=f"kind {k}")
    return mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.5), threads=1)


# What eyes without one kind of cones see: G. Machado and others, IEEE Trans. Vis. Comput. Graph. 15, 1291 (2009).
CONES = {
    "all": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(color, cones):
    """CIELAB of sRGB."""
    c = np.asarray(color, float)
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.transpose(CONES[cones]), 0.0, 1.0)
    xyz = seen @ np.transpose([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x = xyz / [0.9505, 1.0, 1.089]
    f = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16.0 / 116.0)
    return np.array([116.0 * f[1] - 16.0, 500.0 * (f[0] - f[1]), 200.0 * (f[1] - f[2])])


@pytest.mark.parametrize("cones", CONES)
def test_twelve_colours_that_all_eyes_tell_apart(cones):
    seen = np.array([lab(color, cones) for color in renderer.POINT_COLORS])
    apart = np.linalg.norm(seen[:, None] - seen, axis=2)[np.triu_indices(len(seen), 1)]
    assert len(seen) == 12
    assert apart.min() >= 9.0
    palette = renderer.palette_of(scene.objects_of(scene.scene_of(things(12), {}))[1])
    assert len({tuple(color) for color in palette}) == 12


def test_a_periodic_box_is_seen_from_a_corner():
    """Seven of its corners are apart in the picture, and no edge hides another: six would be, seen along a side."""
    topology = mp.Topology()
    topology.add_beads(np.random.default_rng(2).uniform(0.0, 30.0, (50, 3)), mass=1.0, name="melt")
    simulation = mp.Simulation(mp.System(topology, box=(30.0, 30.0, 30.0)), mp.VerletIntegrator(0.5), threads=1)
    surfaces, solids = scene.objects_of(scene.scene_of(simulation, {}))
    window = renderer.window_of("draw", surfaces, solids, None, None)
    corners = scene.scene_of(simulation, {}).corners @ window.camera.T[:, :2]
    apart = np.linalg.norm(corners[:, None] - corners, axis=2)[np.triu_indices(8, 1)]
    assert apart.min() > 0.1 * 30.0
    sides = np.abs(window.camera[2])
    assert sides.min() > 0.3
    # Up stays up, and `view` says otherwise.
    assert window.camera[1, 2] > 0.8
    along = renderer.window_of("draw", surfaces, solids, (0.0, 0.0), None)
    assert np.abs(along.camera[2]).max() == pytest.approx(1.0)


def test_bonds_with_an_energy_of_their_own_are_drawn():
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0], [30.0, 0, 0], [60.0, 0, 0]], mass=1.0, name="chain")
    system = system_with(topology, mp.forces.CustomBonds([[0, 1], [1, 2]], "k*(r - 30)^2", k=1.0))
    simulation = mp.Simulation(system, mp.VerletIntegrator(0.01), threads=1)
    made = scene.scene_of(simulation, {})
    np.testing.assert_array_equal(made.links["bonds"][:, :, 0], [[0.0, 30.0], [30.0, 60.0]])
    image = pixels(draw(simulation, view=(90.0, 0.0), size=SIZE))[:240]
    assert like(image, renderer.POINT_COLORS[1], within=0.12).sum() > 50


def test_beads_without_a_radius_are_seen():
    """A melt of 500 in a picture of 1600 pixels: spheres a third of the distance to the next, not dots."""
    rng = np.random.default_rng(1)
    topology = mp.Topology()
    topology.add_beads(rng.uniform(0.0, 30.0, (500, 3)), mass=1.0, name="melt")
    simulation = mp.Simulation(mp.System(topology, box=(30.0,) * 3), mp.VerletIntegrator(0.5), threads=1)
    surfaces, solids = scene.objects_of(scene.scene_of(simulation, {}))
    for size in ((400, 300), (1600, 1200), (3200, 2400)):
        scale = renderer.window_of("draw", surfaces, solids, None, None).scale(size, 0.0)
        radius = renderer.default_radius(surfaces, solids, scale, size)
        assert 0.15 < radius / (30.0 / 500.0 ** (1.0 / 3.0)) < 0.5, size
        assert radius / scale >= 5.0


def vesicle_with_a_ball():
    topology = mp.Topology()
    topology.add_membrane(mp.TriangleMesh.icosphere(50.0, 2), vertex_mass=1.0, name="vesicle")
    topology.add_balls([[0.0, 0, 0]], 20.0, mass=1.0, friction=0.0, name="cargo")
    return mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.5), threads=1)


def test_opacity_colours_and_edges():
    simulation = vesicle_with_a_ball()
    options = {"size": SIZE, "view": (20.0, 0.0)}
    plain = pixels(draw(simulation, **options))[:240]
    blue = renderer.POINT_COLORS[0]
    assert like(plain, blue, within=0.15).sum() == 0
    # Half of each: what is inside is seen through the membrane, and the white of the page.
    seen = pixels(draw(simulation, opacity=0.5, **options))[:240]
    nothing = pixels(draw(simulation, opacity=0.0, **options))[:240]
    np.testing.assert_allclose(seen, 0.5 * plain + 0.5 * nothing, atol=0.01)
    assert like(nothing, blue, within=0.15).sum() > 500
    assert like(nothing, scene.MEMBRANE_COLOR, within=0.1).sum() == 0
    np.testing.assert_array_equal(pixels(draw(simulation, opacity=1.0, **options))[:240], plain)
    # Colours by name, also in the legend.
    figure = draw(simulation, colors={"vesicle": "tab:green", "cargo": (1.0, 0.0, 0.0)}, opacity=0.3, **options)
    image = pixels(figure)[:240]
    assert like(image, (1.0, 0.35, 0.35), within=0.35).sum() > 300
    assert like(pixels(draw(simulation, colors={"vesicle": "tab:green"}, **options))[:240],
                (0.17, 0.63, 0.17), within=0.15).sum() > 5000  # fmt: skip
    assert tuple(figure.axes[0].get_legend().get_lines()[0].get_markerfacecolor()) == (1.0, 0.0, 0.0)
    # Edges darken some of the membrane and nothing else.
    lines = pixels(draw(simulation, edges=True, **options))[:240]
    darker = (lines < plain - 0.05).any(axis=2)
    assert 0.02 < darker.sum() / like(plain, scene.MEMBRANE_COLOR).sum() < 0.4
    assert (lines <= plain + 1e-9).all()
    for wrong, message in (
        ({"colors": {"vesicel": "red"}}, "there is no drawn object 'vesicel': did you mean 'vesicle'"),
        ({"colors": {"vesicle": "reddish"}}, r"colors\['vesicle'\] = 'reddish' but must be a colour"),
        ({"colors": ["red"]}, "colors must be a dict"),
        ({"opacity": 1.5}, "opacity = 1.5"),
    ):
        refuses(mp.ParameterError, message, draw, simulation, **wrong, **options)


@pytest.mark.parametrize("of", ["vertices", "faces"])
def test_two_values_are_two_colours_with_a_legend(of):
    mesh = mp.TriangleMesh.icosphere(50.0, 3)
    x = mesh.vertices if of == "vertices" else mesh.vertices[mesh.faces].mean(axis=1)
    values = np.where(x[:, 2] > 10.0, 3.0, -1.0)
    figure = draw(mesh, values=values, label="phase", size=(800, 600), view=(0.0, 0.0))
    assert len(figure.axes) == 1
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["phase: -1", "phase: 3"]
    # The ends of the map are seen, and nothing between: without shading, two colours.
    image = pixels(figure)[:450]
    dark, light = (np.array(matplotlib.colormaps["viridis"](k))[:3] for k in (0.0, 1.0))
    seen = (image < 0.97).any(axis=2)
    of_one = like(image, dark, within=0.3) | like(image, light, within=0.3)
    assert of_one.sum() > 0.985 * seen.sum() > 10_000
    assert like(image, dark, within=0.3).sum() > 0.3 * seen.sum()
    between = pixels(draw(mesh, values=np.append(values[:-1], 1.0), size=(800, 600), view=(0.0, 0.0)))[:450, :700]
    if of == "vertices":
        seen = (between < 0.97).any(axis=2)
        assert (like(between, dark, within=0.3) | like(between, light, within=0.3)).sum() < 0.98 * seen.sum()
    # Three are a range again, and one too rare for percentiles is a colour of its own.
    assert len(draw(mesh, values=np.append(values[:-1], 1.0), size=SIZE).axes) == 2
    rare = np.zeros(len(values))
    rare[7] = 1.0
    assert [t.get_text() for t in draw(mesh, values=rare, size=SIZE).axes[0].get_legend().get_texts()] == [
        "value: 0", "value: 1",
    ]  # fmt: skip
    rare[:] = 0.0
    rare[np.argmax(x @ [1.0, 0.0, 0.0])] = 1.0
    for view in ((0.0, 90.0), (0.0, -90.0)):
        image = pixels(draw(mesh, values=rare, size=SIZE, view=view))[:240]
        found = like(image, light, within=0.3).sum()
        if found:
            break
    assert 20 < found < 2000
