"""WallRepulsion: contract cases, ellipsoids of any shape, runs, and equilibrium in front of a wall."""

import warnings

import numpy as np
import pytest
from builders import orients, refuses, system_with
from forces.references.ellipsoids import matrices
from scipy.spatial.transform import Rotation

import medyanpy as mp
from medyanpy.forces import WallRepulsion
from medyanpy.testing import ForceCase, check_chi_square, check_force, check_mean, thermal

FORMS = ("WCA", "soft")
NORMAL = np.array([2.0, -1.0, 2.0])
UNIT = NORMAL / 3.0


def look(system, word="BAB", threads=1):
    context = mp.Context(system, mp.SplittingIntegrator(word, 1e-3), threads=threads)
    return context.get_state(positions=True, forces=True, energy=True)


def law(gap, epsilon, sigma, form):
    """The energy of a gap, once more."""
    mu = 1.0 + np.asarray(gap) / sigma
    if form == "soft":
        return epsilon * np.where(mu < 1.0, (mu - 1.0) ** 2, 0.0)
    r6 = mu**-6.0
    return np.where(mu < 2.0 ** (1 / 6), 4.0 * epsilon * r6 * (r6 - 1.0) + epsilon, 0.0)


# The contract --------------------------------------------------------------------------------------------------------


def things():
    """Beads, a membrane with points, balls and bodies, near and far from an oblique plane; (topology, handles)."""
    rng = np.random.default_rng(51)
    topology = mp.Topology()
    sheet = mp.TriangleMesh.flat_sheet(3, 4, 2.0)
    across = np.linalg.svd(NORMAL[None])[2][1:]
    sheet = sheet.with_vertices(sheet.vertices[:, :2] @ across + rng.uniform(0.1, 2.5, (len(sheet.vertices), 1)) * UNIT)

    def in_front(n, low, high):
        return rng.normal(0.0, 4.0, (n, 2)) @ across + rng.uniform(low, high, (n, 1)) * UNIT

    handles = {
        "beads": topology.add_beads(in_front(5, 0.05, 3.0), mass=1.0),
        "membrane": topology.add_membrane(sheet, vertex_mass=1.0),
    }
    handles["points"] = topology.add_intriangle_points(handles["membrane"], 6, mass=1.0, seed=2)
    radius = rng.uniform(0.5, 2.0, 6)
    handles["balls"] = topology.add_balls(in_front(6, 0.1, 2.0) + radius[:, None] * UNIT, radius, mass=1.0)
    handles["filaments"] = topology.add_filaments([in_front(4, 0.1, 2.5), in_front(3, 0.1, 2.5)], node_mass=1.0,
                                                  constrained=False)  # fmt: skip
    handles["bodies"] = topology.add_rigid_bodies(in_front(7, 0.5, 2.5), orients(rng, 7), 1.0, [1.0, 1.2, 1.5])
    return topology, handles


WALL = mp.boundaries.Plane(2.0 * UNIT + [0.4, 0.0, -0.4], NORMAL)
# All are in front of this one, some of them touch it.
BEHIND = mp.boundaries.Plane(-0.2 * UNIT, NORMAL)


def spheres(form):
    def build():
        topology, h = things()
        parts = [h["filaments"], h["points"], h["membrane"], h["balls"], h["beads"]]
        return topology, WallRepulsion(BEHIND if form == "WCA" else WALL, parts, 2.5, 9.0, form=form)

    balls = things()[1]["balls"]
    wall = BEHIND if form == "WCA" else WALL

    def energy(x, q):
        radius = np.zeros(len(x))
        radius[balls.beads] = balls.radius
        gap = (x - wall.point) @ UNIT - radius
        gap = np.delete(gap, things()[1]["bodies"].beads)
        assert (law(gap, 1.0, 9.0, form) > 0.0).sum() > 8
        return np.sum(law(gap, 2.5, 9.0, form))

    # In steps of this no gap opens or closes.
    return ForceCase(f"wall, {form}", build, energy, 0.5 if form == "WCA" else 0.05)


def thick_spheres():
    """Radii one by one, of bead numbers in no order."""
    topology, _ = things()
    return topology, WallRepulsion(WALL, [9, 30, 1, 20], 2.5, 1.5, radius=[1.0, 2.0, 0.5, 0.0], form="soft")


def thick_energy(x, q):
    gap = (x[[9, 30, 1, 20]] - WALL.point) @ UNIT - [1.0, 2.0, 0.5, 0.0]
    return np.sum(law(gap, 2.5, 1.5, "soft"))


AXES = np.random.default_rng(52).uniform(0.5, 3.0, (7, 3))


def reach(axes, q):
    return np.linalg.norm(axes * np.einsum("nij,i->nj", matrices(q), UNIT), axis=1)


def of_ellipsoids(form):
    bodies = things()[1]["bodies"]
    start = reach(AXES, bodies.orientations)
    # One ellipsoid has hardly room.
    room = ((bodies.positions @ UNIT) - start).min()
    wall = mp.boundaries.Plane((room - 0.09) * UNIT, NORMAL) if form == "WCA" else WALL

    def build():
        topology, h = things()
        return topology, WallRepulsion(wall, h["bodies"], 3.0, 12.0, semi_axes=AXES, form=form)

    def energy(x, q):
        gap = (x[bodies.beads] - wall.point) @ UNIT - reach(AXES, q)
        assert (law(gap, 1.0, 12.0, form) > 0.0).sum() >= 2
        return np.sum(law(gap, 3.0, 12.0, form))

    return ForceCase(f"wall of ellipsoids, {form}", build, energy, 0.05)


CASES = [
    *(spheres(form) for form in FORMS),
    ForceCase("wall of radii", thick_spheres, thick_energy, 0.5),
    *(of_ellipsoids(form) for form in FORMS),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_contract(case):
    check_force(case)


# Single bodies -------------------------------------------------------------------------------------------------------


def one(x, q, axes, wall, form="WCA", sigma=0.7, **sphere):
    topology = mp.Topology()
    body = topology.add_rigid_bodies([x], [q], 1.0, [1.0, 1.0, 1.0])
    system = mp.System(topology)
    given = sphere or {"semi_axes": axes}
    system.add_force(WallRepulsion(wall, body, 3.0, sigma, form=form, **given))
    return look(system)


@pytest.mark.parametrize("ratio", [1.0, 3.0, 10.0, 100.0])
def test_touching_anywhere(ratio):
    """Wherever the lowest point of an ellipsoid is put onto the wall, the energy is ε, the force along the normal, and
    the torque that of the force at this point. Points of the surface show that it is the lowest."""
    rng = np.random.default_rng(int(ratio))
    for _ in range(40):
        axes, q = np.exp(rng.uniform(0.0, np.log(ratio), 3)) if ratio > 1.0 else np.ones(3), orients(rng, 1)[0]
        n, point = rng.normal(size=3), rng.normal(size=3)
        n /= np.linalg.norm(n)
        R = matrices(q)[0]
        # On the unit sphere, b.u is smallest at -b/|b|.
        b = axes * (R.T @ n)
        lowest = R @ (axes * -b / np.linalg.norm(b))
        wall = mp.boundaries.Plane(point, n)
        state = one(point - lowest, q, axes, wall)
        assert state.potential_energy == pytest.approx(3.0, rel=1e-11 * ratio)
        f = state.forces[0]
        np.testing.assert_allclose(f, 24.0 * 3.0 / 0.7 * n, rtol=0.0, atol=1e-9 * ratio)
        torque = R @ state.torques[0]
        size = 1e-9 * ratio * np.linalg.norm(f) * axes.max()
        np.testing.assert_allclose(torque, np.cross(lowest, f), rtol=0.0, atol=size)
        # No point of the surface is behind the wall.
        u = rng.normal(size=(2000, 3))
        u /= np.linalg.norm(u, axis=1)[:, None]
        assert wall.distance((axes * u) @ R.T + point - lowest).min() > -1e-12 * axes.max()


@pytest.mark.parametrize("form", FORMS)
def test_ellipsoids_that_are_spheres(form):
    """Have the force of spheres to rounding, and no torque at all."""
    wall = mp.boundaries.Plane([0.0, 0.0, 0.0], NORMAL)
    for height in (1.25, 1.31) if form == "WCA" else (1.2, 0.3, -4.0):
        x, q = height * UNIT, orients(np.random.default_rng(3), 1)[0]
        both = one(x, q, [1.25] * 3, wall, form), one(x, q, None, wall, form, radius=1.25)
        assert both[0].potential_energy == pytest.approx(both[1].potential_energy, rel=1e-12)
        np.testing.assert_allclose(both[0].forces, both[1].forces, rtol=1e-12)
        assert (both[0].torques == 0.0).all()
        assert both[0].forces[0] @ UNIT > 0.5


def test_range():
    wall = mp.boundaries.Plane()
    for form, end in (("WCA", 0.7 * (2.0 ** (1 / 6) - 1.0)), ("soft", 0.0)):
        inside, outside = (one([0, 0, 2.0 + end + d], [1.0, 0, 0, 0], [1, 1, 2], wall, form) for d in (-1e-6, 1e-6))
        assert 0.0 < inside.potential_energy < 1e-9
        assert outside.potential_energy == 0.0
        assert (outside.forces == 0.0).all()


def test_soft_walls_push_back_from_any_depth():
    wall = mp.boundaries.Plane()
    for depth in (0.1, 5.0, 1e4):
        f = one([0, 0, 2.0 - depth], [1.0, 0, 0, 0], [1, 1, 2], wall, "soft").forces[0]
        np.testing.assert_allclose(f, [0.0, 0.0, 2.0 * 3.0 / 0.7**2 * depth], rtol=1e-9)


def test_deeper_than_the_wall_the_run_ends():
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0, 5.0], [3.0, 0, 0.01]], mass=1.0)
    context = mp.Context(system_with(topology, WallRepulsion(mp.boundaries.Plane(), beads, 3.0, 0.5)),
                         mp.VerletIntegrator(1e-3))  # fmt: skip
    context.set_positions([[0.0, 0, 5.0], [3.0, 0, -0.6]])
    with pytest.raises(mp.SimulationError, match="bead 1") as ended:
        context.step(1)
    assert ended.value.bead == 1
    assert ended.value.force == "WallRepulsion"


# Runs ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_energy_of_a_bouncing_needle_is_of_second_order(form):
    """A needle that falls onto a wall turned askew, and bounces several times, changing spin for flight.

    Where the energy begins, its second derivative jumps: each halving gives 3.6 to 4.8, three together 62."""
    errors, steps = [], np.array([8e-4, 4e-4, 2e-4, 1e-4])
    for h in steps:
        topology = mp.Topology()
        q = Rotation.from_rotvec([0.4, 0.7, 0.0]).as_quat()[[3, 0, 1, 2]]
        needle = topology.add_rigid_bodies([[0, 0, 4.0]], [q], 1.0, mp.rigid.ellipsoid_inertia([0.5, 0.7, 2.0], 1.0))
        system = mp.System(topology)
        wall = mp.boundaries.Plane(normal=[0.1, 0.0, 1.0])
        system.add_force(WallRepulsion(wall, needle, 2.0, 2.0, semi_axes=[0.5, 0.7, 2.0], form=form))
        system.add_force(mp.forces.UniformField(needle, [0.0, 0.0, -1.0]))
        context = mp.Context(system, mp.VerletIntegrator(h), threads=1)
        start, worst, most = context.get_state(energy=True).total_energy, 0.0, 0.0
        for _ in range(500):
            context.step(round(0.032 / h))
            now = context.get_state(energy=True)
            worst = max(worst, abs(now.total_energy - start))
            most = max(most, now.energies["WallRepulsion"])
        assert most > 1.0
        errors.append(worst)
    assert np.polyfit(np.log(steps), np.log(errors), 1)[0] == pytest.approx(2.0, abs=0.15)


# U'' = 456 ε/σ² where the wall is touched, so ω h = 0.4.
SEDIMENT = (0.4, 0.6, 1.5)
WEIGHT = 1.7


@pytest.fixture(scope="module")
def sediment():
    """Gaps and directions of the long axes of 8000 ellipsoids that sink onto a wall, each for itself."""
    n, h, word = 8000, 0.012, "BAOAB"
    rng = np.random.default_rng(7)
    topology = mp.Topology()
    x = np.column_stack([rng.uniform(0.0, 100.0, (n, 2)), 1.6 + rng.exponential(0.5, n)])
    bodies = topology.add_rigid_bodies(x, orients(rng, n), 1.0, mp.rigid.ellipsoid_inertia(SEDIMENT, 1.0), (1.0, 1.0))
    system = system_with(topology, WallRepulsion(mp.boundaries.Plane(), bodies, 1.0, 0.8, semi_axes=SEDIMENT),
                         mp.forces.UniformField(bodies, [0.0, 0.0, -WEIGHT]))  # fmt: skip
    context = mp.Context(system, mp.SplittingIntegrator(word, h, kT=thermal(word, 1.0), seed=3), threads=2)
    context.set_velocities_to_temperature(kT=1.0, seed=4)
    context.step(1500)
    state = context.get_state(positions=True)
    b = matrices(state.orientations)[:, 2, :]
    return state.positions[:, 2] - np.linalg.norm(SEDIMENT * b, axis=1), b


@pytest.mark.slow
def test_density_in_front_of_a_wall(sediment):
    """p(g, turn) ∝ exp(-(V(g) + F g)/kT) exp(-F h(turn)/kT): gaps have a density of their own, whatever the turn."""
    gap, b = sediment
    g = np.linspace(-0.5, 12.0, 400_001)
    weight = np.exp(-law(g, 1.0, 0.8, "WCA") - WEIGHT * g)
    weight[g < -0.79] = 0.0
    whole = np.cumsum(weight)
    edges = np.interp(np.arange(1, 24) / 24.0, whole / whole[-1], g)
    counts = np.histogram(gap, np.concatenate([[-np.inf], edges, [np.inf]]))[0]
    check_chi_square("gaps", counts, np.full(24, len(gap) / 24.0), sees=0.12)
    check_mean("gap", gap, np.sum(weight * g) / whole[-1], sees=0.055)
    # Independent of each other.
    check_mean("gap and turn", (gap - gap.mean()) * (b[:, 2] ** 2 - np.mean(b[:, 2] ** 2)), 0.0, sees=0.02)


@pytest.mark.slow
def test_directions_in_front_of_a_wall(sediment):
    """Those of hard ellipsoids at a hard wall, p ∝ exp(-F h/kT) with h how far they reach, at any softness: uniform
    ones would have <cos²> = 1/3 where it is 0.15, twenty times what is seen."""
    _, b = sediment
    # By quadrature over the direction of the wall in the body frame: middles of equal steps of cos and around.
    c, phi = (np.arange(2000) + 0.5) / 2000, (np.arange(200) + 0.5) * (0.5 * np.pi / 200)
    s = np.sqrt(1.0 - c**2)
    n = np.stack([s[:, None] * np.cos(phi), s[:, None] * np.sin(phi), c[:, None] + 0.0 * phi], axis=-1)
    weight = np.exp(-WEIGHT * np.linalg.norm(SEDIMENT * n, axis=-1))
    for k in range(3):
        expected = np.sum(weight * n[..., k] ** 2) / weight.sum()
        assert abs(expected - 1.0 / 3.0) > 0.02
        check_mean(f"cos² of axis {k}", b[:, k] ** 2, expected, sees=0.03)
    share = np.concatenate([[0.0], np.cumsum(weight.sum(axis=1))]) / weight.sum()
    edges = np.interp(np.arange(17) / 16.0, share, np.arange(2001) / 2000)
    counts = np.histogram(np.minimum(np.abs(b[:, 2]), 1.0), edges)[0]
    check_chi_square("directions of the long axis", counts, np.full(16, len(b) / 16.0), sees=0.12)


@pytest.mark.parametrize("threads", [2, 3])
def test_same_bits_of_many(threads):
    def state(threads):
        rng = np.random.default_rng(6)
        topology = mp.Topology()
        x = np.column_stack([rng.normal(size=(5000, 2)), rng.uniform(3.0, 3.2, 5000)])
        bodies = topology.add_rigid_bodies(x, orients(rng, 5000), 1.0, [1.0, 1.0, 1.0])
        system = mp.System(topology)
        system.add_force(WallRepulsion(mp.boundaries.Plane(), bodies, 1.0, 4.0, semi_axes=[1.0, 2.0, 3.0]))
        return look(system, threads=threads)

    one, other = state(1), state(threads)
    assert one.potential_energy == other.potential_energy != 0.0
    np.testing.assert_array_equal(one.forces, other.forces)
    np.testing.assert_array_equal(one.torques, other.torques)


def test_sites():
    """A site on the end of a body turns it; means of beads share the force."""
    topology = mp.Topology()
    body = topology.add_rigid_bodies([[0.0, 0, 1.0]], [[1.0, 0, 0, 0]], 1.0, [1.0, 1.0, 1.0])
    system = system_with(topology, WallRepulsion(mp.boundaries.Plane(), body.sites([[2.0, 0.0, -1.0]]), 3.0, 0.5))
    state = look(system)
    np.testing.assert_allclose(state.forces, [[0.0, 0.0, 144.0]], rtol=1e-12)
    np.testing.assert_allclose(state.torques, [[0.0, -288.0, 0.0]], rtol=1e-12)


# What is refused -----------------------------------------------------------------------------------------------------


def refused(error, message, **changed):
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0, 9.0]] * 2, mass=1.0)
    bodies = topology.add_rigid_bodies([[0.0, 0, 9.0], [0.0, 1.0, 1.5]], [[1.0, 0, 0, 0]] * 2, 1.0, [1.0, 1.0, 1.0],
                                       name="proteins")  # fmt: skip
    balls = topology.add_balls([[0.0, 0, 9.0], [7.0, 0, 1.5]], [1.0, 2.0], mass=1.0)
    handles = {"beads": beads, "bodies": bodies, "balls": balls, "all": [beads, bodies]}
    given = {"wall": mp.boundaries.Plane(), "epsilon": 1.0, "sigma": 1.0} | changed
    beads = given.pop("beads", "bodies")
    beads = beads(topology) if callable(beads) else handles[beads]
    wall = given.pop("wall")
    refuses(error, message, lambda: look(system_with(topology, WallRepulsion(wall, beads, **given))))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"semi_axes": [1.0, 1.0, 2.0]},
         r"bead 3 of RigidBodies\('proteins', 2 rigid bodies\) at \[0.0, 1.0, 1.5\] starts 0.5 nm behind the wall "
         r"Plane\(.*\), counted from its surface, which reaches 2 nm; move it, or begin with form"),
        ({"beads": "balls"}, r"bead 5 of Balls\('balls', 2 balls\) .* starts 0.5 nm behind the wall"),
        ({"beads": "balls", "radius": [1.0, 4.0]}, "bead 5 .* starts 2.5 nm behind the wall"),
        ({"beads": lambda t: t.handles[1].sites([[0.0, 0, 0], [0.0, 0, -2.0]])}, "site 3 at .* starts 0.5 nm behind"),
        ({"wall": mp.surfaces.Torus(3.0, 1.0)}, "boundaries.Sphere or boundaries.Capsule, not a surfaces.Torus"),
        ({"form": "hard"}, "form = 'hard' but must be 'WCA' or 'soft'"),
        ({"sigma": 0.0}, "sigma = 0.0 but must be finite and > 0"),
        ({"radius": 1.0, "semi_axes": [1.0, 1.0, 1.0]}, "give radius= or semi_axes=, not both"),
        ({"semi_axes": [1.0, 0.0, 1.0]}, r"semi_axes\[1\] = 0.0 but must be finite and > 0"),
        ({"semi_axes": [1.0, 1.0]}, r"semi_axes must have shape \(3,\)"),
        ({"radius": [1.0, -1.0]}, r"radius\[1\] = -1.0 but must be finite and >= 0"),
        ({"beads": "all", "semi_axes": [1.0, 1.0, 1.0]}, "bead 0 of Beads.* does not turn: give radius=, not semi_ax"),
    ],
)  # fmt: skip
def test_refusals(changed, message):
    refused(mp.ParameterError, message, **changed)


def test_refusals_of_beads():
    refused(mp.TopologyError, "sites have no orientation", beads=lambda t: t.handles[1].sites([[1.0, 0, 0]] * 2),
            semi_axes=[1.0, 1.0, 1.0])  # fmt: skip
    refused(mp.TopologyError, "names bead 2 twice|bead 2", beads=lambda t: [2, 2])
    refused(mp.TopologyError, "77", beads=lambda t: [77])


def test_numbers_that_are_set_are_for_where_beads_are():
    """Not for where they started; a new context begins there, and is refused."""
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0, 1.0]], mass=1.0)
    system = mp.System(topology)
    force = system.add_force(WallRepulsion(mp.boundaries.Plane(), beads, 3.0, 0.5))
    context = mp.Context(system, mp.VerletIntegrator(1e-3))
    context.set_positions([[0.0, 0, 3.0]])
    force.set(radius=3.0)
    assert context.get_state(energy=True).potential_energy == pytest.approx(3.0, rel=1e-12)
    refuses(mp.ParameterError, "starts 2 nm behind the wall", mp.Context, system, mp.VerletIntegrator(1e-3))


def test_soft_walls_take_any_start():
    topology = mp.Topology()
    balls = topology.add_balls([[0.0, 0, -3.0]], radius=1.0, mass=1.0, friction=1.0)
    system = system_with(topology, WallRepulsion(mp.boundaries.Plane(), balls, 1.0, 1.0, form="soft"))
    simulation = mp.Simulation(system, mp.VerletIntegrator(0.01))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mp.ConvergenceWarning)
        simulation.minimize_energy(tolerance=1e-6)
    assert 0.999 < simulation.context.get_state(positions=True).positions[0, 2] < 1.2
