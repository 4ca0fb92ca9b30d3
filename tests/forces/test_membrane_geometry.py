"""The geometry that all forces on one membrane share: measured once where beads are, and never of where they were."""

import functools
import itertools

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp

FORCES = {
    "vertex": lambda m: mp.forces.MembraneBending(m, 82.0, 0.01, name="vertex"),
    "area": lambda m: mp.forces.MembraneArea(m, 200.0, 1200.0, name="area"),
    "triangles": lambda m: mp.forces.MembraneArea(m, 200.0, 0.9, per_triangle=True, name="triangles"),
    "tension": lambda m: mp.forces.MembraneTension(m, 0.02, name="tension"),
    "volume": lambda m: mp.forces.MembraneVolume(m, 0.8, 4000.0, name="volume"),
    "dihedral": lambda m: mp.forces.MembraneBending(m, 41.0, 0.02, "dihedral", name="dihedral"),
}
ALL = tuple(FORCES)
# How often faces are measured and sums round vertices taken, where beads have moved once.
PASSES = {
    ("vertex",): (1, 1),
    ("dihedral",): (1, 0),
    ("area",): (1, 1),
    ("tension",): (1, 1),
    ("triangles",): (1, 0),
    ("volume",): (1, 1),
    ("dihedral", "triangles"): (1, 0),
    ("area", "vertex", "volume"): (1, 1),
    ("triangles", "volume", "dihedral", "tension"): (1, 1),
    ALL: (1, 1),
    ALL[::-1]: (1, 1),
    (*ALL, *ALL): (1, 1),
}


@functools.cache
def mesh():
    """1280 triangles, so that there is more than one block of them."""
    sphere = mp.TriangleMesh.icosphere(10.0, 3)
    return sphere.with_vertices(sphere.vertices + np.random.default_rng(1).normal(0.0, 0.1, sphere.vertices.shape))


def system_of(names, membranes=1):
    """Forces on each of some membranes, the first of which is not the first thing there is."""
    topology = mp.Topology()
    topology.add_beads(np.zeros((2, 3)), mass=1.0)
    handles = [topology.add_membrane(mesh(), vertex_mass=1.0, vertex_friction=1.0) for _ in range(membranes)]
    system = mp.System(topology)
    for name in names:
        for handle in handles:
            system.add_force(FORCES[name](handle))
    return system


def context_of(system, threads=1, timestep=1e-4):
    return mp.Context(system, mp.VerletIntegrator(timestep), threads=threads)


def geometries(context):
    return [context.layout.geometry(m) for m in context.system.topology.membranes]


def passes(context):
    """How often faces have been measured and sums been taken, of each membrane."""
    return np.array([(g.face_passes, g.ring_passes) for g in geometries(context)])


def moved(context, seed, size=0.05):
    """Places near those where beads are now."""
    x = context.get_state(positions=True).positions
    return x + np.random.default_rng(seed).normal(0.0, size, x.shape)


def look(context):
    return context.get_state(positions=True, forces=True, energy=True, virial=True)


def assert_same(one, other):
    assert one.energies == other.energies
    assert (one.forces == other.forces).all()
    assert all((one.virials[name] == other.virials[name]).all() for name in other.virials)


def assert_right(context, names, membranes=1):
    """Energies, forces and virials are those of a new Context with beads in the same places."""
    state = look(context)
    new = context_of(system_of(names, membranes))
    new.set_positions(state.positions)
    assert_same(state, look(new))
    return state


# Once -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", PASSES, ids="-".join)
def test_a_membrane_is_measured_once_where_beads_are(names):
    context = context_of(system_of(names))
    look(context)
    before = passes(context)
    context.step(7)
    assert (passes(context) - before == 7 * np.array(PASSES[names])).all()
    before = passes(context)
    context.set_positions(moved(context, 2))
    look(context)
    look(context)
    assert (passes(context) - before == PASSES[names]).all()


def test_membranes_are_measured_apart():
    names = ("vertex", "volume")
    context = context_of(system_of(names, membranes=3))
    x = moved(context, 3)
    context.set_positions(x)
    before = passes(context)
    look(context)
    assert (passes(context) - before == 1).all()
    assert len({id(g) for g in geometries(context)}) == 3
    assert_right(context, names, membranes=3)


@pytest.mark.parametrize("names", [n for n in PASSES if len(n) > 1], ids="-".join)
def test_forces_together_are_what_each_is_alone(names):
    together = context_of(system_of(names))
    x = moved(together, 4, 0.2)
    together.set_positions(x)
    state = look(together)
    total = np.zeros_like(x)
    for name, energy in zip(names, state.energies.values(), strict=True):
        alone = context_of(system_of([name]))
        alone.set_positions(x)
        one = look(alone)
        assert list(one.energies.values()) == [energy]
        total += one.forces
    assert (state.forces == total).all()
    for threads in (2, 3):
        other = context_of(system_of(names), threads)
        other.set_positions(x)
        assert_same(look(other), state)


def test_sums_go_by_the_numbers_of_corners():
    """So that a mesh that is mended somewhere has the bits of one that is made anew."""
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh(), vertex_mass=1.0)
    system = system_with(topology, mp.forces.MembraneTension(membrane, 1.0))
    context = context_of(system)
    x = moved(context, 6)
    context.set_positions(x)
    corners = x[mesh().faces]
    e = np.roll(corners, 1, axis=1) - np.roll(corners, -1, axis=1)
    n = np.cross(e[:, 0], e[:, 1])
    n *= 1.0 / np.sqrt(n[:, :1] ** 2 + n[:, 1:2] ** 2 + n[:, 2:] ** 2)
    gradients = 0.5 * np.cross(n[:, None], e)
    gradients[:, 2] = -(gradients[:, 0] + gradients[:, 1])
    total = np.zeros_like(x)
    # One after another, as they come.
    np.add.at(total, mesh().faces.ravel(), gradients.reshape(-1, 3))
    assert (context.get_state(forces=True).forces == -total).all()


# Never of where beads were ----------------------------------------------------------------------------------


def test_setting_positions_is_noticed():
    context = context_of(system_of(ALL))
    seen = [look(context).forces]
    for seed in range(3):
        context.set_positions(moved(context, seed))
        seen.append(assert_right(context, ALL).forces)
    assert all((a != b).any() for a, b in itertools.pairwise(seen))


def test_steps_are_noticed():
    context = context_of(system_of(ALL))
    for n in (1, 2, 5):
        context.step(n)
        assert_right(context, ALL)


def test_setting_a_state_is_noticed():
    context = context_of(system_of(ALL))
    start = context.get_state(positions=True, velocities=True)
    first = look(context)
    context.step(5)
    assert (look(context).forces != first.forces).any()
    context.set_state(start)
    assert_same(assert_right(context, ALL), first)


def test_numbers_that_change_where_beads_are_need_no_new_geometry_but_new_forces():
    names = ("vertex", "area", "volume")
    context = context_of(system_of(names))
    x = moved(context, 5)
    context.set_positions(x)
    look(context)
    for factor in (2.0, 3.0):
        for force in context.system.forces:
            for name, value in force.parameters.items():
                force.set(**{name: factor * value})
        other = system_of(names)
        for force, changed in zip(other.forces, context.system.forces, strict=True):
            force.set(**changed.parameters)
        new = context_of(other)
        new.set_positions(x)
        assert_same(look(context), look(new))


@pytest.mark.filterwarnings("ignore::medyanpy.errors.ConvergenceWarning")
def test_the_minimiser_and_the_integrator_do_not_take_each_others_geometry():
    system = system_of(ALL)
    simulation = mp.Simulation(system, mp.VerletIntegrator(1e-4), threads=1)
    context = simulation.context
    for n in (1, 4, 2):
        simulation.minimize_energy(tolerance=1e-9, max_iterations=n)
        assert_right(context, ALL)
        context.step(n)
        assert_right(context, ALL)


def test_programs_that_come_and_go_are_told_apart():
    """Each counts changes of positions from the same number, and may be where another one was in memory."""
    context = context_of(system_of(ALL))
    store, schedule = context._store, context._schedule
    start = store.x.copy()
    forces = schedule.make_force_sum(list(schedule.bound))
    for seed in range(6):
        store.x[:] = start + np.random.default_rng(seed).normal(0.0, 0.1, start.shape)
        program = store.make_program(store.v, store.mass, store.inverse_mass, [])
        forces.refresh(program, True)
        found = forces.f_array[store.layout.rank], dict(zip(ALL, (b.energy for b in schedule.bound), strict=True))
        del program
        new = context_of(system_of(ALL))
        new.set_positions(store.x[store.layout.rank])
        expected = look(new)
        assert (found[0] == expected.forces).all()
        assert found[1] == expected.energies


def test_programs_that_take_turns_are_told_apart():
    context = context_of(system_of(ALL))
    store, schedule = context._store, context._schedule
    programs = [store.make_program(store.v, store.mass, store.inverse_mass, []) for _ in range(2)]
    forces = schedule.make_force_sum(list(schedule.bound))
    start = store.x.copy()
    for turn in range(6):
        store.x[:] = start * (1.0 + 0.01 * turn)
        programs[turn % 2].changed()
        forces.refresh(programs[turn % 2], True)
        new = context_of(system_of(ALL))
        new.set_positions(store.x[store.layout.rank])
        assert (forces.f_array[store.layout.rank] == look(new).forces).all()


def test_two_contexts_of_one_system_have_each_their_own():
    system = system_of(ALL)
    contexts = [context_of(system, timestep=h) for h in (1e-4, 2e-4)]
    assert geometries(contexts[0])[0] is not geometries(contexts[1])[0]
    for _ in range(3):
        for context in contexts:
            context.step(1)
        first, second = (assert_right(context, ALL) for context in contexts)
        assert (first.forces != second.forces).any()


def test_a_loaded_checkpoint_is_noticed(tmp_path):
    def simulation():
        return mp.Simulation(system_of(ALL), mp.VerletIntegrator(1e-4), threads=1)

    one = simulation()
    one.step(3)
    one.save_checkpoint(tmp_path / "saved")
    expected = look(one.context)
    one.step(4)
    after = look(one.context)
    for other in (one, simulation()):
        look(other.context)
        other.load_checkpoint(tmp_path / "saved")
        assert_same(assert_right(other.context, ALL), expected)
        other.step(4)
        assert_same(assert_right(other.context, ALL), after)


@pytest.mark.parametrize("replay", [True, False])
def test_going_back_after_a_fault_is_noticed(replay):
    """The geometry is then of the step that failed, the state of one before."""
    system = system_of(ALL)
    beads = system.topology.membranes[0].beads
    start = mesh().vertices

    def fails_far_from_the_start(positions):
        if np.abs(positions[beads] - start).max() > 0.01:
            raise ValueError("too far")
        return 0.0, np.zeros_like(positions)

    system.add_force(mp.forces.PythonForce(fails_far_from_the_start, replay=replay, name="fails"))
    context = context_of(system)
    look(context)
    refuses(mp.SimulationError, "too far", context.step, 1000)
    assert context.step_count > 0 or not replay
    state = look(context)
    new = context_of(system_of(ALL))
    new.set_positions(state.positions)
    expected = look(new)
    assert {name: state.energies[name] for name in ALL} == expected.energies
    assert (state.forces == expected.forces).all()
    assert all((state.virials[name] == expected.virials[name]).all() for name in ALL)


def test_a_change_of_connectivity_is_noticed():
    context = context_of(system_of(ALL))
    before, first = look(context), passes(context)
    look(context)
    assert (passes(context) == first).all()
    membrane = context.system.topology.membranes[0]
    made = context.flip_edges(membrane, membrane.mesh.edges[:1])
    assert look(context).energies != before.energies
    context.flip_edges(membrane, made)
    assert_same(look(context), before)
    assert (passes(context) == first + 2)[passes(context) > first].all()
