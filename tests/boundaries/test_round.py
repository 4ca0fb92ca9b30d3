"""boundaries.Sphere and boundaries.Capsule: geometry, how they are written down, and what is kept in them."""

import copy
import pickle

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.boundaries import Capsule, Sphere
from medyanpy.errors import ParameterError

WALLS = {
    "cell": Sphere([1.0, -2.0, 0.5], 3.0),
    "obstacle": Sphere([1.0, -2.0, 0.5], 3.0, inside=False),
    "bacterium": Capsule([1.0, -2.0, 0.5], [3.0, 1.0, -2.0], 2.0),
    "rod": Capsule([1.0, -2.0, 0.5], [3.0, 1.0, -2.0], 2.0, inside=False),
}


@pytest.mark.parametrize("name", WALLS)
def test_distances_are_those_to_the_nearest_place(name):
    """Of very many on the wall, to their spacing; and normals are the gradient, to differences."""
    wall, rng = WALLS[name], np.random.default_rng(1)
    x = rng.normal(1.0, 3.0, (40, 3))
    a, b = (wall.center, wall.center) if isinstance(wall, Sphere) else (wall.a, wall.b)
    way = rng.normal(size=(40_000, 3))
    way /= np.linalg.norm(way, axis=1)[:, None]
    # Places at that distance from places of the segment, and from no other place of it nearer.
    part = rng.uniform(-0.6, 1.6, (len(way), 1)).clip(0.0, 1.0)
    axis = (b - a) / max(1e-9, np.linalg.norm(b - a))
    across = way - (way @ axis)[:, None] * axis
    way = np.where((part > 0.0) & (part < 1.0), across / np.linalg.norm(across, axis=1)[:, None], way)
    surface = a + part * (b - a) + wall.radius * way
    surface = surface[np.abs(wall.distance(surface)) < 1e-12]
    assert len(surface) > 5_000
    right = np.array([np.linalg.norm(surface - place, axis=1).min() for place in x])
    np.testing.assert_allclose(np.abs(wall.distance(x)), right, atol=0.05)
    inside = np.linalg.norm(x - a, axis=1) < wall.radius
    assert ((wall.distance(x[inside]) > 0.0) == wall.inside).all()
    h = 1e-6
    slope = [(wall.distance(x + h * e) - wall.distance(x - h * e)) / (2.0 * h) for e in np.eye(3)]
    np.testing.assert_allclose(wall.normals(x), np.transpose(slope), atol=1e-8)


@pytest.mark.parametrize("name", WALLS)
def test_they_are_written_down_to_the_bit(name):
    wall, x = WALLS[name], np.random.default_rng(2).normal(size=(9, 3))
    for again in (mp.deserialize(mp.serialize(wall)), pickle.loads(pickle.dumps(wall)), copy.deepcopy(wall)):
        assert type(again) is type(wall)
        assert repr(again) == repr(wall)
        assert again.distance(x).tobytes() == wall.distance(x).tobytes()
    surface = mp.surfaces.Sphere(2.0)
    assert type(mp.deserialize(mp.serialize(surface))) is mp.surfaces.Sphere


@pytest.mark.parametrize("name", WALLS)
def test_walls_of_surfaces_are_the_same(name):
    """Distances, forces of walls and adhesion to the bit, whichever module made the wall."""
    wall, rng = WALLS[name], np.random.default_rng(5)
    where = (3.0, [1.0, -2.0, 0.5]) if isinstance(wall, Sphere) else ([1.0, -2.0, 0.5], [3.0, 1.0, -2.0], 2.0)
    kind = mp.surfaces.Sphere if isinstance(wall, Sphere) else mp.surfaces.Capsule
    same = kind(*where, inside=wall.inside)
    x = rng.normal(1.0, 3.0, (40, 3))
    assert same.distance(x).tobytes() == wall.distance(x).tobytes()
    found = []
    for one in (wall, same):
        topology = mp.Topology()
        cell = topology.add_membrane(mp.TriangleMesh.icosphere(2.0, 1), vertex_mass=1.0)
        system = system_with(topology, mp.forces.WallRepulsion(one, cell, 1.0, 1.0, form="soft"),
                             mp.forces.MembraneAdhesion(cell, one, 1.0, 2.0))  # fmt: skip
        context = mp.Context(system, mp.VerletIntegrator(1e-3))
        found.append(context.get_state(forces=True).forces.tobytes())
    assert found[0] == found[1]


@pytest.mark.parametrize("name", WALLS)
def test_beads_are_held_to_them(name):
    """The function is zero where the distance is, and its derivatives are those of differences."""
    wall = WALLS[name]
    x = wall.sample(200, seed=1)
    np.testing.assert_allclose(wall.distance(x), 0.0, atol=1e-11)
    np.testing.assert_allclose(np.linalg.norm(wall.gradient(x), axis=1), 2.0 * wall.radius, rtol=1e-10)
    h = 1e-6
    slope = np.stack([(wall.gradient(x + h * e) - wall.gradient(x - h * e)) / (2.0 * h) for e in np.eye(3)], axis=1)
    off = np.abs(slope - wall.hessian(x)).max(axis=(1, 2))
    # Where the cylinder meets a hemisphere they jump.
    assert np.count_nonzero(off > 1e-7) <= 1
    topology = mp.Topology()
    topology.add_surface_points(wall, x, mass=1.0)
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(1e-2))
    context.set_velocities(np.random.default_rng(1).normal(size=x.shape))
    context.step(200)
    state = context.get_state(positions=True, energy=True)
    np.testing.assert_allclose(wall.distance(state.positions), 0.0, atol=1e-10)
    assert np.linalg.norm(state.positions - x, axis=1).max() > 1.0


def test_the_middle_has_no_direction_and_no_force():
    wall = Sphere([1.0, 2.0, 3.0], 2.0)
    assert wall.distance([[1.0, 2.0, 3.0]]).tolist() == [2.0]
    assert wall.normals([[1.0, 2.0, 3.0]]).tolist() == [[0.0, 0.0, 0.0]]
    topology = mp.Topology()
    ball = topology.add_balls([[1.0, 2.0, 3.0]], radius=2.5, mass=1.0)
    state = mp.Context(system_with(topology, mp.forces.WallRepulsion(wall, ball, 3.0, 1.0, form="soft")),
                       mp.VerletIntegrator(0.01)).get_state(energy=True, forces=True)  # fmt: skip
    assert state.potential_energy == 0.75
    assert np.abs(state.forces).max() == 0.0


@pytest.mark.parametrize("name", WALLS)
def test_hidden_layers_keep_order_and_energy(name):
    """Fast balls for a hundred collisions: the energy is off by what falls as the square of the timestep."""
    wall, rng = WALLS[name], np.random.default_rng(3)
    x = rng.uniform(-4.0, 6.0, (4000, 3))
    x = x[wall.distance(x) > 0.6][:60]
    off = []
    for timestep in (2e-3, 1e-3):
        topology = mp.Topology()
        balls = topology.add_balls(x, radius=0.5, mass=1.0)
        system = mp.System(topology)
        system.add_force(mp.forces.WallRepulsion(wall, balls, 1.0, 0.4))
        # Outside, something has to bring them back.
        system.add_force(mp.forces.HarmonicTrap(balls, 1.0, [2.0, -0.5, -0.5]))
        context = mp.Context(system, mp.VerletIntegrator(timestep))
        context.set_velocities(np.random.default_rng(4).normal(0.0, 1.5, x.shape))
        energy = []
        for _ in range(100):
            context.step(round(0.04 / timestep))
            state = context.get_state(energy=True, positions=True)
            energy.append(state.total_energy)
            assert wall.distance(state.positions).min() > 0.35
        off.append(np.ptp(energy))
    assert off[1] < 0.4 * off[0]
    assert off[1] < 0.02 * energy[0]


@pytest.mark.parametrize(("make", "message"), [
    (lambda: Sphere(radius=0.0), "Sphere: radius = 0.0 but must be finite and > 0"),
    (lambda: Sphere([1.0, 2.0], 3.0), "Sphere: center"),
    (lambda: Sphere([1.0, 2.0, np.inf], 3.0), "Sphere: center"),
    (lambda: Sphere(radius=1.0, inside="no"), "Sphere: inside must be True or False, not 'no'"),
    (lambda: Capsule([1.0, 2, 3], [1.0, 2, 3], 1.0), "must be different places.*there is Sphere"),
    (lambda: Capsule([1.0, 2, 3], [1.0, 2, 4], -1.0), "Capsule: radius = -1.0 but must be"),
    (lambda: WALLS["cell"].distance([1.0, 2.0, 3.0]), "Sphere.distance: positions"),
    (lambda: WALLS["rod"].normals([[1.0, 2.0]]), "Capsule.normals: positions"),
])  # fmt: skip
def test_refusals(make, message):
    refuses(ParameterError, message, make)


def test_functions_for_planes_alone_say_so():
    topology = mp.Topology()
    bodies = topology.add_rigid_bodies([[0.0, 0, 0]], [[1.0, 0, 0, 0]], mass=1.0, inertia=[1.0, 1.0, 1.0])
    with pytest.raises(ParameterError, match=r"how far an ellipsoid is from Sphere.*only from a plane: give radius="):
        mp.forces.WallRepulsion(WALLS["cell"], bodies, 1.0, 1.0, semi_axes=[1.0, 1.0, 2.0])
    balls = topology.add_balls([[0.0, 0, 0]], radius=1.0, mass=1.0, friction=1.0)
    with pytest.raises(ParameterError, match=r"wall must be a boundaries.Plane, not Sphere"):
        mp.hydrodynamics.RotnePrager(1.0, balls, wall=WALLS["cell"])
    system = system_with(topology, mp.forces.WallRepulsion(Sphere(radius=1.5), balls, 1.0, 1.0))
    mp.Context(system, mp.VerletIntegrator(1e-3))
    system = system_with(topology, mp.forces.WallRepulsion(Sphere(radius=0.8), balls, 1.0, 1.0))
    refuses(ParameterError, r"starts 0.2 nm behind the wall Sphere", mp.Context, system, mp.VerletIntegrator(1e-3))
