"""Inactive rows: room for beads that are to come, which take no part in anything before."""

import functools

import numpy as np
import pytest
import test_bits as bits
from builders import refuses, system_with

import medyanpy as mp
from medyanpy import boundaries, forces
from medyanpy.beads import Membrane

pytestmark = pytest.mark.frictionless

MORE = 3


def with_room(system):
    """Rows asleep behind those of each handle in memory; those that users see come last."""
    for handle in system.topology.handles:
        if not isinstance(handle, Membrane | mp.beads.Constraints):
            handle.reserve(handle.capacity + MORE)


def haunt(context):
    """Put what is asleep where somebody is, and give it a direction: whoever looked at it would find something."""
    store, layout = context._store, context.layout
    rng = np.random.default_rng(3)
    for handle in layout.handles:
        block, own = layout.block_of(handle), layout.slice_of(handle)
        asleep = np.arange(own.stop, block.stop)
        if len(asleep) and own.stop > own.start:
            near = rng.integers(own.start, own.stop, len(asleep))
            store.x[asleep] = store.x[near] + (0.0 if handle.kind.comes_and_goes else 1e-3)
            for name in {column.array for column in handle.kind.columns} & {"triangle", "barycentric", "orientation"}:
                first = layout.first_place(handle.kind.rows_of)
                store.arrays[name][asleep - first] = store.arrays[name][near - first]
    store.program.changed()


def same(part, other, n, name=""):
    """Whether two parts of states are the same in the rows that both have, and nobody is in the others."""
    if isinstance(part, dict):
        inner = {k: name if name == "virials" else k for k in part}
        return part.keys() == other.keys() and all(same(part[k], other[k], n, inner[k]) for k in part)
    if isinstance(part, float):
        return part == pytest.approx(other, rel=1e-12, abs=1e-12) or (np.isnan(part) and np.isnan(other))
    if isinstance(part, np.ndarray) and part.shape[1:] == other.shape[1:] and len(part) <= len(other):
        rest = other[len(part) :]
        nobody = np.isnan(rest) if rest.dtype == np.float64 else rest == -1
        # Of the virial in a box the parts off the diagonal are not known.
        close = np.array_equal if name in n else functools.partial(np.allclose, equal_nan=name == "virials")
        return close(part, other[: len(part)]) and nobody.all()
    return True


# Paths along a surface, and all pairs, take long without the compiler's help.
def is_long(kind):
    return kind == "beads along surfaces" or kind.startswith("spheres ")


CASES = [pytest.param(*case, marks=pytest.mark.slow if is_long(case[0]) else ()) for case in bits.ONE_OF_EACH]


@pytest.mark.parametrize(("kind", "word"), CASES)
def test_inactive_rows_take_no_part_in_anything(kind, word):
    """Of every kind of bead and every force, by every letter: the same bits with rows asleep in between, wherever
    these are. Sums over all beads are added up in another order, and may differ in last bits."""
    looks = []
    for room in (False, True):
        system, changes = bits.build(kind)
        if room:
            with_room(system)
        simulation = bits.simulate(kind, system, word, 2)
        simulation.context.set_velocities_to_temperature(kT=1.0, seed=4)
        if room:
            haunt(simulation.context)
        for step in range(8):
            if step in changes:
                changes[step](simulation)
            simulation.step(1)
        wanted = {"positions": True, "velocities": True, "forces": True, "energy": True, "virial": True}
        looks.append(simulation.context.get_state(**wanted))
    alone, roomy = looks
    columns = {c.name for c in simulation.topology.columns} | {"forces", "torques"}
    parts = [name for name in alone._parts if name not in ("who", "links")]
    assert [name for name in parts if not same(alone._parts[name], roomy._parts[name], columns, name)] == []
    n = len(alone.positions)
    assert roomy.alive[:n].all()
    assert not roomy.alive[n:].any()
    assert (roomy.ids[:n] == np.arange(n)).all()
    assert (roomy.ids[n:] == -1).all()
    assert np.isnan(roomy.positions[n:]).all()
    for handle in simulation.topology.handles:
        assert np.array_equal(np.sort(handle.beads), roomy.living(handle))


def everybody(capacity=None):
    """Beads, balls, filaments, bodies, a rod, walkers and points, of each a few, with room for more of them."""
    rng = np.random.default_rng(1)
    room = {} if capacity is None else {"capacity": capacity}
    q = rng.normal(size=(3, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    topology = mp.Topology()
    topology.add_beads(rng.normal(size=(4, 3)), 1.0, 0.5, **room)
    topology.add_balls(rng.normal(size=(3, 3)), 0.5, 1.0, 0.5, **room)
    chain = np.arange(5)[:, None] * [1.0, 0.0, 0.0]
    topology.add_filaments([chain, chain + 3.0], 1.0, 0.5, **room)
    topology.add_filament(chain - 4.0, 1.0, 0.5, directors="parallel", director_mass=1.0, **room)
    topology.add_rigid_bodies(rng.normal(size=(3, 3)), q, 1.0, [1.0, 1.5, 2.0], (0.5, 0.5), **room)
    nodes, frames = mp.rods.uniform(6, 0.5, [0.0, 0.1, 0.0])
    topology.add_rod(nodes, frames, 0.5, 2.0, [1.0, 1.0, 1.5], friction=1.0, **room)
    sphere = mp.surfaces.Sphere(3.0)
    topology.add_surface_points(sphere, [[0.0, 0, 3.0], [3.0, 0, 0]], 1.0, 0.4, **room)
    vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(5.0, 1), 1.0, 0.5)
    topology.add_intriangle_points(vesicle, 6, mass=1.0, friction=0.5, seed=1, **room)
    return topology


def test_capacity_is_room_behind_the_beads():
    topology = everybody(20)
    first = 0
    for handle in topology.handles:
        n, capacity = len(handle), len(handle) if isinstance(handle, Membrane) else 20
        assert handle.capacity == capacity
        assert handle.beads.tolist() == handle.ids.tolist() == list(range(first, first + n))
        first += capacity
    assert topology.n_beads == first
    state = mp.Context(mp.System(topology), mp.BAGOGABIntegrator(0.01, kT=1.0)).get_state(positions=True)
    assert len(state.positions) == first
    there = np.concatenate([handle.beads for handle in topology.handles])
    assert np.flatnonzero(state.alive).tolist() == there.tolist()
    assert np.isfinite(state.positions[there]).all()
    assert np.isnan(np.delete(state.positions, there, axis=0)).all()
    points, bodies = topology["points"], topology["rigid bodies"]
    assert (state.intriangle.triangles[points.rows] >= 0).all()
    assert (np.delete(state.intriangle.triangles, np.r_[points.rows]) == -1).all()
    assert np.isnan(state.orientations).any(axis=1).sum() == 20 - 3 + 20 - 6
    assert np.isfinite(state.orientations[bodies.rows]).all()


def test_room_alone_is_enough_to_begin_with():
    """Handles without beads: forces on them are 0, and what is added later is as if it had been there."""
    topology = mp.Topology()
    nobody = np.empty((0, 3))
    beads = topology.add_beads(nobody, 1.0, 0.5, capacity=4)
    balls = topology.add_balls(nobody, 0.5, 1.0, 0.5, capacity=4)
    chains = topology.add_filaments([], 1.0, 0.5, capacity=10)
    bodies = topology.add_rigid_bodies(nobody, np.empty((0, 4)), 1.0, [1.0, 1.5, 2.0], (0.5, 0.5), capacity=3)
    system = system_with(topology, forces.HarmonicTrap([beads, balls], 1.0, [0.0, 0.0, 0.0]),
                         forces.SoftSphere(balls, balls, 2.0), forces.SoftCollisions([balls, chains], 2.0, 0.5),
                         forces.FilamentBending(chains, 3.0), forces.FixmanPotential(chains, kT=1.0),
                         forces.EllipsoidRepulsion(bodies, bodies, 1.0, [0.5, 0.5, 1.0]),
                         forces.EllipsoidCollisions(bodies, [balls, chains], 1.0, [0.5, 0.5, 1.0], 0.5))  # fmt: skip
    below = boundaries.Plane((0.0, 0.0, -1.0))
    system.add_force(forces.WallRepulsion(below, bodies, 1.0, 0.5, semi_axes=[0.5, 0.5, 1.0]))
    system.add_force(forces.WallRepulsion(below, [beads, balls, chains], 1.0, 0.5, name="spheres"))
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(0.01, kT=1.0, seed=3), threads=1)
    simulation.step(3)
    state = simulation.context.get_state(energy=True, forces=True)
    assert state.total_energy == 0.0
    with topology.edit():
        assert beads.add([[1.0, 0.0, 0.0]]).tolist() == [0]
        assert balls.add([[0.0, 1.0, 0.0], [0.0, 1.5, 0.0]]).tolist() == [4, 5]
        assert chains.add([[5.0, 0, 0], [6.0, 0, 0], [6.0, 1.0, 0]]).tolist() == [0]
        bodies.add([[9.0, 0, 0]], [[1.0, 0, 0, 0]])
    assert topology.n_beads == 21
    state = simulation.context.get_state(energy=True, forces=True, positions=True)
    assert state.energies["HarmonicTrap"] == pytest.approx(0.5 * (1.0 + 1.0 + 2.25))
    assert state.energies["SoftSphere"] == pytest.approx(0.5 * 2.0 * 0.5**2)
    assert state.energies["FilamentBending"] == pytest.approx(3.0)
    # Of new beads no id is that of a row: those were given to the room.
    assert sorted(state.ids[state.alive].tolist()) == list(range(21, 28))
    simulation.step(50)
    assert np.isfinite(simulation.context.get_state(positions=True).positions[state.alive]).all()


def without_beads(*forces_of, **options):
    """Handles of all kinds without beads, of actin in its units and at 300 K: a simulation."""
    topology = mp.Topology()
    none, numbers = np.empty((0, 3)), (4e-12, 4e-6)
    topology.add_beads(none, *numbers, capacity=4, name="beads")
    topology.add_balls(none, 2.0, *numbers, capacity=4, name="balls")
    topology.add_filaments([], *numbers, capacity=10, name="chains")
    room = {"capacity_links": 8, "capacity_filaments": 10}
    topology.add_filaments([], *numbers, rise=2.7, **room, name="actin")
    topology.add_rigid_bodies(none, np.empty((0, 4)), 4e-12, [1e-10] * 3, (4e-6, 4e-4), capacity=3, name="bodies")
    system = system_with(topology, *(force(topology) for force in forces_of), **options)
    return mp.Simulation(system, mp.BAGOGABIntegrator(1e-9, temperature=300.0), threads=1)


def held(topology):
    return forces.HarmonicTrap([topology["beads"], topology["actin"]], 1.0, [0.0, 0.0, 0.0])


def test_handles_without_beads_are_looked_at():
    """What takes the largest or the mean of all beads does so of none."""
    simulation = without_beads(
        held, lambda t: forces.SoftSphere(t["balls"], t["balls"], 2.0),
        lambda t: forces.FilamentBending(t["actin"], 7e4),
    )  # fmt: skip
    assert "SoftSphere" in str(simulation.check())
    simulation.minimize_energy(max_iterations=2)
    simulation.step(2)
    state = simulation.context.get_state(positions=True)
    for handle in ("chains", "actin"):
        own = simulation.system.topology[handle]
        assert len(mp.analysis.end_to_end(state, own)) == 0
        for asked in (mp.analysis.tangent_correlation, mp.analysis.persistence_length):
            refuses(mp.TopologyError, "there are no filaments in", asked, state, own)


@pytest.mark.parametrize("box", [None, (900.0,) * 3])
def test_handles_without_beads_are_written_and_drawn(box, tmp_path):
    simulation = without_beads(held, box=box)
    with mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1) as reporter:
        simulation.reporters.append(reporter)
        simulation.step(2)
    for ending in (".xyz", ".pdb", ".simularium", ".vtkhdf"):
        assert mp.export(tmp_path / "run.h5", tmp_path / f"run{ending}").n_frames == 2
    mp.visualize.draw(simulation.context, size=(100, 100))
    mp.visualize.movie(mp.Trajectory(tmp_path / "run.h5"), tmp_path / "run.gif", size=(100, 100))


@pytest.mark.parametrize("word", ["BAGOGAB", "BAGAB"])
def test_temperature_counts_the_living(word):
    states = []
    for capacity in (None, 30):
        topology = everybody(capacity)
        kT = 1.0 if "O" in word else None
        simulation = mp.Simulation(mp.System(topology), mp.SplittingIntegrator(word, 0.01, kT=kT, seed=2), threads=1)
        # Numbers of beads are keyed by ids, which are others: the same velocities for both.
        rng = np.random.default_rng(6)
        v = np.zeros((topology.n_beads, 3))
        v[np.concatenate([h.beads for h in topology.handles])] = rng.normal(size=(sum(map(len, topology.handles)), 3))
        simulation.context.set_velocities(v)
        states.append(simulation.context.get_state(energy=True))
    assert states[0].temperature == pytest.approx(states[1].temperature, rel=1e-12)
    assert states[0].temperatures == pytest.approx(states[1].temperatures, rel=1e-12)


def test_a_python_force_is_handed_the_living():
    topology = everybody(12)
    system = mp.System(topology)
    seen = {}

    def whole(x):
        seen["whole"] = x
        return 0.5 * float((x**2).sum()), -x

    def some(x, q):
        seen["some"] = x, q
        return 0.0, 2.0 * np.ones_like(x), np.ones((len(q), 3))

    balls, bodies = topology["balls"], topology["rigid bodies"]
    system.add_force(forces.PythonForce(whole, name="whole"))
    system.add_force(forces.PythonForce(some, beads=[bodies, balls], orientations=True, name="some"))
    context = mp.Context(system, mp.BAGOGABIntegrator(0.01, kT=1.0, seed=1))
    state = context.get_state(positions=True, forces=True, energy=True)
    assert np.array_equal(seen["whole"], state.positions[state.alive])
    rows = np.append(bodies.beads, balls.beads)
    assert np.array_equal(seen["some"][0], state.positions[rows])
    assert np.array_equal(seen["some"][1], state.orientations[bodies.rows])
    expected = -state.positions
    expected[rows] += 2.0
    assert np.array_equal(state.forces, expected, equal_nan=True)
    assert (state.torques[bodies.rows] == 1.0).all()
    assert np.isnan(np.delete(state.torques, np.r_[bodies.rows, topology["rod"].rows], axis=0)).all()


def test_setting_values_ignores_inactive_rows():
    topology = everybody(12)
    context = mp.Context(mp.System(topology), mp.BAGOGABIntegrator(0.01, kT=1.0, seed=1))
    context.step(3)
    state = context.get_state(positions=True, velocities=True)
    x, q = state.positions.copy(), state.orientations.copy()
    beads, bodies = topology["beads"], topology["rigid bodies"]
    x[beads.beads] += 1.0
    context.set_positions(x)
    assert np.array_equal(context.get_state(positions=True).positions[beads.beads], x[beads.beads])
    q[bodies.rows] = [1.0, 0.0, 0.0, 0.0]
    context.set_orientations(q)
    triangles, weights = (a.copy() for a in (state.intriangle.triangles, state.intriangle.barycentric))
    triangles[topology["points"].rows] = 7
    context.set_intriangle(triangles, weights)
    context.set_velocities(state.velocities)
    context.set_state(state)
    again = context.get_state(positions=True, velocities=True)
    for name in ("positions", "orientations", "triangles", "barycentric"):
        assert np.array_equal(again.column(name), state.column(name), equal_nan=True)
    for name in ("velocities", "angular_momenta"):
        np.testing.assert_allclose(again.column(name), state.column(name), rtol=1e-12, atol=1e-12)
    bad = x.copy()
    bad[beads.beads[1], 2] = np.nan
    refuses(mp.TopologyError, r"set_positions: positions\[1, 2\] = nan", context.set_positions, bad)


def test_minimisation_and_derivatives_leave_out_inactive_rows():
    found = []
    for capacity in (None, 8):
        topology = mp.Topology()
        rng = np.random.default_rng(3)
        beads = topology.add_beads(rng.normal(size=(5, 3)), 1.0, 0.5, **({} if capacity is None else {"capacity": 8}))
        balls = topology.add_balls(rng.normal(size=(3, 3)), 0.5, 1.0, 0.5)
        system = system_with(topology, forces.HarmonicTrap([beads, balls], 1.0, [0.0, 0.0, 0.0]),
                             forces.Coulomb([beads, balls], np.arange(8.0) + 1.0, constant=0.1),
                             forces.ExternalField(beads, "sin(x)*y"))  # fmt: skip
        simulation = mp.Simulation(system, mp.BAGOGABIntegrator(0.01, kT=1.0, seed=1))
        rows = np.append(beads.beads, balls.beads)
        directions = np.zeros((topology.n_beads, 3))
        directions[rows] = rng.normal(size=(8, 3))
        hessian = simulation.context.hessian().toarray().reshape(topology.n_beads, 3, topology.n_beads, 3)
        third = simulation.context.third_derivative(directions)
        asleep = np.setdiff1d(np.arange(topology.n_beads), rows)
        assert not hessian[asleep].any()
        assert not third[asleep].any()
        left = simulation.minimize_energy(tolerance=1e-6)
        end = simulation.context.get_state(positions=True, energy=True)
        found.append((hessian[rows][:, :, rows], third[rows], end.positions[rows], end.potential_energy, float(left)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("wrong", "text"), [
    (lambda t: t.add_beads([[0.0, 0, 0]] * 3, 1.0, capacity=2), "add_beads: capacity = 2 but must be .*>= 3"),
    (lambda t: t.add_balls([[0.0, 0, 0]], 1.0, 1.0, capacity=1.5), "add_balls: capacity = 1.5 but must be"),
    (lambda t: t.add_filament([[0.0, 0, 0], [1, 0, 0]], 1.0, capacity=2**31), "add_filament: capacity"),
    (lambda t: t["beads"].reserve(1), r"beads\.reserve: capacity = 1 but must be .*>= 4"),
    (lambda t: t.add_beads(np.empty((0, 3)), 1.0), "nothing to add"),
])  # fmt: skip
def test_room_that_cannot_be(wrong, text):
    topology = everybody()
    n = topology.n_beads
    refuses(mp.MedyanError, text, wrong, topology)
    assert topology.n_beads == n


def test_terms_on_inactive_rows_are_refused():
    topology = everybody(12)
    row = topology["beads"].capacity - 1
    for force in (
        forces.HarmonicBonds([[0, row]], 1.0, 1.0),
        forces.Links([0], [row], 1.0),
        forces.HarmonicTrap([row], 1.0, [0.0, 0.0, 0.0]),
        forces.SoftSphere([0, row], [1], 1.0, 1.0),
        forces.RigidTrianglePenalty([[0, 1, row]], 1.0, [1.0, 1.0, 1.0]),
        forces.PythonForce(lambda x: (0.0, 0.0 * x), beads=[row]),
    ):
        system = system_with(topology, force)
        with pytest.raises(mp.TopologyError, match=rf"bead {row} is a row of .*'beads'.* without a bead"):
            mp.Context(system, mp.BAGOGABIntegrator(0.01, kT=1.0))


def test_no_beads_have_no_temperature():
    """Also where momentum is kept, of which degrees of freedom are taken off."""
    topology = mp.Topology()
    topology.add_beads(np.empty((0, 3)), mass=1.0, capacity=4)
    state = mp.Context(mp.System(topology), mp.VerletIntegrator(0.1)).get_state(energy=True)
    assert np.isnan(state.temperature)
    assert state.kinetic_energy == 0.0
