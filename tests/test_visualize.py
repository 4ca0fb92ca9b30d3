"""draw: pictures that show what is there, in front of what is behind it."""

import numpy as np
import pytest

import medyanpy as mp
from medyanpy import visualize
from medyanpy.trajectory import Trajectory
from medyanpy.visualize import draw

SIZE = (400, 300)


def pixels(figure):
    """(height, width, 3) numbers from 0 to 1."""
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3] / 255.0


def like(image, color, within=0.25):
    """Where a colour is seen, in whatever light."""
    direction = np.asarray(color) / np.linalg.norm(color)
    norm = np.linalg.norm(image, axis=2)
    return (norm > 0.05) & (np.linalg.norm(image / np.maximum(norm, 1e-9)[..., None] - direction, axis=2) < within)


@pytest.fixture(scope="module")
def simulation():
    topology = mp.Topology()
    vesicle = topology.add_membrane(mp.TriangleMesh.red_blood_cell(frequency=8), vertex_mass=4e-12)
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
    assert like(image, visualize.MEMBRANE_COLOR).mean() > 0.2
    assert like(image, visualize.POINT_COLORS[0]).sum() > 100
    # A margin that is white, and light and shadow within.
    assert (image[:5] == 1.0).all()
    assert image[100:200, 100:300].std() > 0.05
    with pytest.raises(mp.ParameterError, match="exists; give overwrite=True"):
        draw(simulation, path, size=SIZE)
    draw(simulation, path, size=SIZE, overwrite=True)


def test_the_users_backend_is_left_alone(simulation):
    import matplotlib

    before = matplotlib.rcParams._get_backend_or_none()
    draw(simulation, size=(100, 100))
    assert matplotlib.rcParams._get_backend_or_none() == before
    import sys

    assert "matplotlib.pyplot" not in sys.modules or before is not None


def test_what_is_behind_the_membrane_is_not_seen():
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
        camera = visualize._camera([], [], view)
        # Where the viewer stands.
        turn = np.degrees(np.arctan2(camera[2, 1], camera[2, 0]))
        image = pixels(draw(context, view=(0.0, -turn), size=SIZE, point_radius=20.0))[:240, 40:]
        if abs(visualize._camera([], [], (0.0, -turn))[2, 0] - 1.0) > 1e-9:
            image = pixels(draw(context, view=(0.0, turn), size=SIZE, point_radius=20.0))[:240, 40:]
        assert (like(image, visualize.POINT_COLORS[0]).sum() > 50) == seen


def test_the_camera_is_a_rotation_and_looks_from_where_it_is_told():
    for view in ((0.0, 0.0), (35.0, 0.0), (90.0, 20.0), (-30.0, 200.0)):
        camera = visualize._camera([], [], view)
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
    sheet = topology.add_membrane(mp.TriangleMesh.flat_sheet(8, 8, 10.0), vertex_mass=4e-12)
    topology.add_intriangle_points(sheet, 20, mass=4e-12, friction=4e-6, seed=1)
    topology.add_balls([[0.0, 0, 30.0]], radius=12.0, mass=1e-12, friction=1e-6)
    simulation = mp.Simulation(mp.System(topology), mp.BAGOGABIntegrator(1e-9, temperature=300.0), threads=1)
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1))
    simulation.step(2)
    simulation.close()
    with Trajectory(tmp_path / "run.h5") as trajectory:
        image = pixels(draw(trajectory[-1], size=SIZE))
    assert like(image, visualize.MEMBRANE_COLOR).mean() > 0.1
    assert like(pixels(draw(simulation, size=SIZE)), visualize.POINT_COLORS[1]).sum() > 100
    # From below one sees the other side.
    image = pixels(draw(simulation.topology.membranes[0].mesh, view=(-50.0, 0.0), size=SIZE))
    assert like(image, visualize.INSIDE_COLOR, within=0.1).mean() > 0.1


def test_depth_decides_what_is_seen_not_the_order():
    """Two spheres one behind the other: the buffer keeps the nearer, in any order."""
    for order in ((0, 1), (1, 0)):
        buffer = visualize._Buffer(20, 20)
        centers = np.array([[10.0, 10.0, 0.0], [10.0, 10.0, 5.0]])[list(order)]
        visualize._put_spheres(buffer, (centers, np.array([6.0, 6.0]), np.zeros(2, int)), 0)
        seen = buffer.item.reshape(20, 20)
        assert seen[10, 10] == order.index(1)
        assert seen[0, 0] == -1


def test_what_cannot_be_drawn():
    with pytest.raises(mp.ParameterError, match="cannot draw int"):
        draw(3)
    with pytest.raises(mp.ParameterError, match="size"):
        draw(mp.TriangleMesh.icosphere(1.0, 0), size=(10, 10))
    with pytest.raises(mp.ParameterError, match="point_radius"):
        draw(mp.TriangleMesh.icosphere(1.0, 0), point_radius=-1.0, size=(100, 100))


@pytest.mark.parametrize(
    ("wanted", "length"), [(0.9, 0.5), (1.0, 1.0), (3.0, 2.0), (180.0, 100.0), (5000.0, 5000.0), (9999.0, 5000.0)]
)
def test_scale_bars_have_round_lengths(wanted, length):
    assert visualize._round_length(wanted) == pytest.approx(length)
    assert visualize._length_text(500.0) == "500 nm"
    assert visualize._length_text(2000.0) == "2 µm"
