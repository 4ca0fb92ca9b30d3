"""Handles that grow and shrink: what stays goes on with the same bits, what has gone is nowhere, and whoever takes its
row is somebody else."""

import copy
import json
import pickle

import numpy as np
import pytest
from builders import balanced, refuses, system_with
from test_editing import ALL, KINDS, WORDS, assert_same, look, parts, simulation_of

import medyanpy as mp
from medyanpy import boundaries, forces

pytestmark = pytest.mark.frictionless

# How beads of a kind go: (handle, what to give to `remove`), and how some come: (rows or numbers, how many beads).

GOES = {
    "beads": lambda h: h.remove(h.beads[2]),
    "balls": lambda h: h.remove(h.beads[[0, 2]]),
    "filaments": lambda h: h.remove(0),
    "twistable": lambda h: h.remove([0]),
    "bodies": lambda h: h.remove(ids=h.ids[1]),
    "rod": lambda h: h.remove(0),
    "walkers": lambda h: h.remove(h.beads[:1]),
    "membrane": lambda h: h.topology["points of membrane"].remove(h.topology["points of membrane"].beads[3:7]),
}


def more_filaments(handle, x):
    nodes = x + np.arange(5)[:, None] * [1.0, 0.0, 0.0]
    handle.add([nodes, nodes + [0.0, 3.0, 0.0]])


def more_of_a_rod(handle, x):
    nodes, frames = mp.rods.uniform(5, 0.5, [0.0, 0.1, 0.0])
    handle.add(nodes + x, frames)


def more_walkers(handle, _):
    handle.add(handle.surface.sample(2, seed=4))


COMES = {
    "beads": lambda h, x: h.add(x + [[0.0, 0, 0], [1.0, 0, 0]]),
    "balls": lambda h, x: h.add(x + [[0.0, 0, 0], [0.8, 0, 0]]),
    "filaments": more_filaments,
    "twistable": more_filaments,
    "bodies": lambda h, x: h.add(x + [[0.0, 0, 0], [0.8, 0, 0]], [[1.0, 0, 0, 0], [0.6, 0.8, 0, 0]]),
    "rod": more_of_a_rod,
    "walkers": more_walkers,
    "membrane": lambda h, _: h.topology["points of membrane"].add(3, seed=8),
}
FAR = np.array([0.0, 700.0, 0.0])


def goes(simulation, kind):
    with simulation.topology.edit():
        GOES[kind](simulation.topology[kind])


def comes(simulation, kind, where=FAR):
    with simulation.topology.edit():
        COMES[kind](simulation.topology[kind], where)


def of(kind):
    """Names of the handles whose beads act on those that come or go."""
    return {"membrane": ["membrane", "points of membrane"], "twistable": ["twistable", "directors of twistable"]}.get(
        kind, [kind]
    )


# The bits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("kind", ALL)
def test_other_beads_keep_their_bits(kind, word):
    """While beads of one kind come, go and come again, and rows are taken, given back and made."""
    alone, edited = simulation_of(ALL, word), simulation_of(ALL, word, threads=2)
    others = [h.name for h in alone.topology.handles if h.name not in of(kind)]
    for n, edit in ((3, comes), (5, goes), (4, comes), (0, goes)):
        for one in (alone, edited):
            one.step(n)
        edit(edited, kind)
        assert_same(alone, edited, others)
    for one in (alone, edited):
        one.step(10)
    assert_same(alone, edited, others)
    assert edited.current_step == 22


def test_points_added_on_one_membrane_change_no_bit_on_another():
    """What they push on vertices is added up on a grid, which is that of their membrane."""

    def make(threads):
        topology = mp.Topology()
        system = mp.System(topology)
        for k, n in enumerate((40, 160, 20)):
            mesh = mp.TriangleMesh.icosphere(10.0 + k, 1).translated([50.0 * k, 0.0, 0.0])
            membrane = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=0.5, name=f"membrane {k}")
            points = topology.add_intriangle_points(membrane, n, mass=1.0, friction=0.5, seed=k, name=f"points {k}")
            system.add_force(mp.forces.MembraneEdgeSprings(membrane, 5.0))
            system.add_force(mp.forces.HarmonicTrap(points, 1.0, [0.0, 0.0, 0.0]))
        topology.add_intriangle_points(topology["membrane 0"], 9, mass=3.0, friction=0.5, seed=7, name="more")
        simulation = mp.Simulation(system, mp.BAGOGABIntegrator(0.05, kT=1.0, seed=3), threads=threads)
        simulation.context.set_velocities_to_temperature(kT=1.0, seed=1)
        return simulation

    alone, edited = make(1), make(2)
    others = ["membrane 0", "points 0", "more", "membrane 2", "points 2"]
    for change in (
        lambda p: p.remove(p.beads[:100]),
        lambda p: p.add(300, seed=9, mass=1e4, friction=0.5),
        lambda p: p.add(1, seed=4, mass=0.1, friction=0.5),
    ):
        for one in (alone, edited):
            one.step(20)
        with edited.topology.edit():
            change(edited.topology["points 1"])
        for _ in range(3):
            for one in (alone, edited):
                one.step(15)
            assert_same(alone, edited, others)


@pytest.mark.parametrize("kind", ALL)
def test_remaining_beads_of_a_handle_keep_their_bits(kind):
    """Where nothing of the handle acts on anything else of it: without its force."""

    def make(threads):
        topology = mp.Topology()
        KINDS[kind](topology, np.zeros(3), kind)
        integrator = mp.SplittingIntegrator("JBAGOGABJ", 0.02, kT=1.0, seed=6)
        simulation = mp.Simulation(mp.System(topology), integrator, threads=threads)
        simulation.context.set_velocities_to_temperature(kT=1.0, seed=2)
        return simulation

    alone, edited = make(1), make(2)
    for one in (alone, edited):
        one.step(6)
    goes(edited, kind)
    comes(edited, kind)
    # Points act on each other by the membrane that they share.
    names = [name for name in of(kind) if kind != "membrane"]
    stay = {n: np.intersect1d(alone.topology[n].ids, edited.topology[n].ids) for n in names}
    for _ in range(2):
        for name, ids in stay.items():
            one, other = look(alone), look(edited)
            a, b = one.rows_of_ids(ids), other.rows_of_ids(ids)
            for part in ("positions", "velocities"):
                assert np.array_equal(getattr(one, part)[a], getattr(other, part)[b]), (name, part)
            for column in (c for c in alone.topology[name].kind.columns if c.of != "beads"):
                rows = (s.topology.rows_in(column.of, r) for s, r in ((alone, a), (edited, b)))
                values = (s.column(column.name)[r] for s, r in zip((one, other), rows, strict=True))
                assert np.array_equal(*values), (name, column.name)
        for one in (alone, edited):
            one.step(12)


@pytest.mark.parametrize("kind", ALL)
def test_existing_beads_equal_new_ones(kind):
    """After beads have come and gone energies and forces are those of a simulation made at once, from the same state;
    so is what follows, to what constraints are put right by."""
    edited = simulation_of(ALL)
    edited.step(9)
    goes(edited, kind)
    comes(edited, kind)
    edited.step(4)
    comes(edited, kind, FAR + 50.0)
    state = look(edited)
    whole = mp.Simulation(copy.deepcopy(edited.system), mp.SplittingIntegrator("JBAGOGABJ", 0.02, kT=1.0, seed=6))
    whole.context.set_state(state)
    same = look(whole)
    assert np.array_equal(same.alive, state.alive)
    assert np.array_equal(same.ids, state.ids)
    assert state.energies == same.energies
    assert np.array_equal(state.forces, same.forces, equal_nan=True)
    assert state.kinetic_energies == pytest.approx(same.kinetic_energies, rel=1e-9)
    # Of whom somebody has come to or gone from the temperature is that of now, as of all in a new context.
    for name in of(kind):
        if name in state.temperatures and name != "membrane":
            assert state.temperatures[name] == pytest.approx(same.temperatures[name], rel=1e-9)
    for one in (edited, whole):
        one.step(20)
    for part in ("positions", "velocities"):
        np.testing.assert_allclose(getattr(look(edited), part), getattr(look(whole), part), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ALL)
def test_restarts_have_the_same_bits(kind, tmp_path):
    """From a checkpoint alone, and one loaded into a copy; rows, ids and what is asleep are in documents."""
    simulation = simulation_of(ALL)
    simulation.step(4)
    comes(simulation, kind)
    goes(simulation, kind)
    with simulation.topology.edit():
        for handle in simulation.topology.handles:
            if handle.name == kind and handle.kind != "vertices":
                handle.reserve(handle.capacity + 5)
    simulation.step(3)
    simulation.save_checkpoint(tmp_path / "run")
    document = mp.serialize(simulation.system)
    again = mp.deserialize(document)
    assert mp.serialize(again) == document
    system = pickle.loads(pickle.dumps(simulation.system))
    assert mp.serialize(system) == document
    loaded = mp.Simulation(system, mp.SplittingIntegrator("JBAGOGABJ", 0.02, kT=1.0, seed=6), threads=1)
    loaded.load_checkpoint(tmp_path / "run")
    resumed = mp.Simulation.resume(tmp_path / "run", threads=2)
    for one in (simulation, loaded, resumed):
        one.step(9)
        comes(one, kind, FAR * 2)
        one.step(3)
    here = look(simulation)
    for one in (loaded, resumed):
        there = look(one)
        assert np.array_equal(here.ids, there.ids)
        for name in ("positions", "velocities", "forces"):
            assert np.array_equal(getattr(here, name), getattr(there, name), equal_nan=True)


# Rows and ids ------------------------------------------------------------------------------------------------------


def test_rows_are_taken_again_and_ids_are_not():
    topology = mp.Topology()
    beads = topology.add_beads(np.arange(15.0).reshape(5, 3), 1.0, 0.5, capacity=6)
    after = topology.add_beads([[99.0, 0, 0]], 1.0, 0.5, name="after")
    simulation = mp.Simulation(mp.System(topology), mp.BAGOGABIntegrator(0.01, kT=1.0, seed=2), threads=1)
    simulation.step(1)
    start = look(simulation)
    assert start.ids.tolist() == [0, 1, 2, 3, 4, -1, 6]
    assert start.living(beads).tolist() == [0, 1, 2, 3, 4]
    with topology.edit():
        beads.remove([3, 1])
        assert beads.beads.tolist() == [0, 2, 4]
        assert beads.add([[7.0, 7, 7], [8.0, 8, 8], [9.0, 9, 9], [10.0, 10, 10]]).tolist() == [1, 3, 5, 7]
    state = look(simulation)
    assert beads.beads.tolist() == [0, 2, 4, 1, 3, 5, 7]
    assert beads.ids.tolist() == [0, 2, 4, 7, 8, 9, 10]
    assert state.ids.tolist() == [0, 7, 2, 8, 4, 9, 6, 10]
    assert state.positions[state.rows_of_ids([10, 7])].tolist() == [[10.0, 10, 10], [7.0, 7, 7]]
    assert topology.rows_of_ids(8).tolist() == [3]
    # What stayed is where it was, under its row.
    for row in (0, 2, 4, 6):
        assert np.array_equal(state.positions[row], start.positions[row])
    assert after.beads.tolist() == [6]
    refuses(mp.TopologyError, r"ids\[0\] = 1, but its bead is gone", state.rows_of_ids, [1])
    refuses(mp.TopologyError, r"ids\[1\] = 11, but no bead has had it: ids are 0 to 10", topology.rows_of_ids, [0, 11])
    with pytest.raises(mp.TopologyError, match="do not follow each other since the topology was edited"):
        beads.kind.first_bead  # noqa: B018
    with topology.edit():
        beads.remove(beads.beads)
    simulation.step(2)
    assert len(beads) == 0
    assert look(simulation).alive.tolist() == [False] * 6 + [True, False]
    with topology.edit():
        # Mass and friction are those that all had.
        beads.add([[1.0, 2, 3]])
    assert beads.mass.tolist() == [1.0]
    assert beads.ids.tolist() == [11]


def test_a_bead_that_takes_a_row_has_noise_of_its_own():
    """Its random numbers are those of its id; ids of more than 32 bits have others than their lower bits."""
    runs = {}
    for many in (0, 1, 2**32, 2**40):
        topology = mp.Topology()
        beads = topology.add_beads(np.zeros((3, 3)), 1.0, 0.5)
        simulation = mp.Simulation(mp.System(topology), mp.BAGOGABIntegrator(0.05, kT=1.0, seed=2), threads=1)
        with topology.edit():
            topology._next_id += many
            beads.remove(1)
            beads.add([[0.0, 0, 0]])
        assert beads.ids.tolist() == [0, 2, 3 + many]
        simulation.context.set_velocities(np.zeros((3, 3)))
        simulation.context.set_positions(np.zeros((3, 3)))
        simulation.step(3)
        runs[many] = look(simulation).positions
    for many in (1, 2**32, 2**40):
        assert np.array_equal(runs[many][[0, 2]], runs[0][[0, 2]])
        assert (runs[many][1] != runs[0][1]).all()
    assert (runs[2**32][1] != runs[2**40][1]).all()


def test_edits_of_an_unused_topology():
    topology = mp.Topology()
    balls = topology.add_balls(np.arange(9.0).reshape(3, 3), [1.0, 2.0, 3.0], mass=1.0)
    force = forces.HarmonicTrap(balls, 1.0, [0.0, 0.0, 0.0])
    balls.remove(0)
    assert balls.radius.tolist() == [2.0, 3.0]
    with pytest.raises(mp.ParameterError, match=r"balls\.add: give radius=, because the beads of 'balls' do not all"):
        balls.add([[0.0, 0, 0]])
    balls.add([[0.0, 0, 0]], radius=4.0)
    assert balls.radius.tolist() == [2.0, 3.0, 4.0]
    assert force.beads.tolist() == [1, 2, 0]


# Numbers -------------------------------------------------------------------------------------------------------------


def test_numbers_follow_what_they_are_numbers_of():
    """One for all is that of those that come; of numbers of each those that stay keep theirs, and new ones are asked
    for."""
    topology = mp.Topology()
    beads = topology.add_beads(np.arange(12.0).reshape(4, 3), 1.0, 0.5)
    nodes = np.arange(4)[:, None] * [1.0, 0.0, 0.0]
    chains = topology.add_filaments([nodes, nodes + 5.0, nodes + 9.0], 1.0, 0.5, constrained=False)
    system = mp.System(topology)
    trap = system.add_force(forces.HarmonicTrap(beads, 2.0, np.arange(12.0).reshape(4, 3)))
    charge = system.add_force(forces.Coulomb(beads, [1.0, 2.0, 3.0, 4.0]))
    stretch = system.add_force(forces.FilamentStretching(chains, np.arange(1.0, 10.0)))
    bend = system.add_force(forces.FilamentBending(chains, 3.0, rest_angle=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]))
    held = system.add_force(forces.LinkLengthPenalty(chains, 2.0))
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-3, kT=1.0, seed=1), threads=1)
    with topology.edit():
        beads.remove([0, 2])
        chains.remove(1)
    assert trap.center.tolist() == [[3.0, 4, 5], [9.0, 10, 11]]
    assert charge.charges.tolist() == [2.0, 4.0]
    assert stretch.stretching_modulus.tolist() == [1.0, 2, 3, 7, 8, 9]
    assert bend.rest_angle.tolist() == [0.1, 0.2, 0.5, 0.6]
    assert bend.bending_modulus == 3.0
    assert len(held.length) == 6
    simulation.step(1)
    before = look(simulation)
    with pytest.raises(mp.ParameterError, match=r"HarmonicTrap: center is not the same for all, .* 1 added.*set"):
        with topology.edit():
            beads.add([[0.0, 0, 0]])
    assert np.array_equal(look(simulation).positions, before.positions, equal_nan=True)
    assert len(beads) == 2
    with topology.edit():
        beads.add([[0.0, 0, 0]])
        trap.set(center=[[3.0, 4, 5], [9.0, 10, 11], [1.0, 1, 1]])
        charge.charges = [2.0, 4.0, 5.0]
        chains.add(2.0 * nodes - 50.0)
        stretch.set(stretching_modulus=np.arange(9.0))
        bend.set(rest_angle=0.0)
    assert trap.center.tolist() == [[3.0, 4, 5], [9.0, 10, 11], [1.0, 1, 1]]
    assert charge.charges.tolist() == [2.0, 4.0, 5.0]
    # Of new links what their filament says.
    assert held.length.tolist() == [1.0] * 6 + [2.0] * 3
    assert bend.bending_modulus == 3.0
    simulation.step(1)


def test_a_number_for_none_is_remembered():
    topology = mp.Topology()
    chains = topology.add_filaments([[[0.0, 0, 0], [1.0, 0, 0], [2.0, 0, 0]]], 1.0)
    bend = forces.FilamentBending(chains, 3.0)
    chains.remove(0)
    assert bend.bending_modulus == 3.0
    bend.set(rest_angle=0.25)
    chains.add([[[0.0, 0, 0], [1.0, 0, 0], [2.0, 0, 0]]])
    assert (bend.bending_modulus, bend.rest_angle) == (3.0, 0.25)
    assert mp.deserialize(mp.serialize(bend)).bending_modulus == 3.0


# Terms that name beads ----------------------------------------------------------------------------------------------


def named():
    """Forces and a jump that name beads 0 to 5 themselves; each with terms 0 and 1 on bead 2, and others."""
    topology = mp.Topology()
    beads = topology.add_beads(np.arange(18.0).reshape(6, 3) % 7, 1.0, 0.5)
    system = mp.System(topology)
    add = system.add_force
    add(forces.HarmonicBonds([[0, 2], [2, 3], [3, 4]], [1.0, 2.0, 3.0], 1.0))
    add(forces.LinkLengthPenalty([[0, 2], [2, 3], [3, 4]], [1.0, 2.0, 3.0], 1.0))
    add(forces.CustomBonds([[0, 2], [2, 3], [3, 4]], "k*cosh(r/9)", k=[1.0, 2.0, 3.0]))
    add(forces.RigidTrianglePenalty([[0, 1, 2], [2, 3, 4], [3, 4, 5]], [1.0, 2.0, 3.0], [1.0, 1.0, 1.0]))
    add(forces.Links([2, 0, 3], [3, 2, 4], [1.0, 2.0, 3.0], 1.0))
    add(forces.AngleLinks([2, 0, 3], [3, 2, 4], [4, 5, 5], [1.0, 2.0, 3.0], 1.0))
    add(forces.HarmonicTrap([2, 0, 3], 1.0, [[2.0, 2, 2], [0.0, 0, 0], [3.0, 3, 3]], name="trap"))
    add(forces.UniformField(mp.Sites.beads([2, 0, 3]), [[2.0, 2, 2], [0.0, 0, 0], [3.0, 3, 3]], name="field"))
    add(forces.SoftSphere([0, 2, 3], [1, 4], 1.0, 1.0, exclusions=[[2, 1], [0, 4]], name="named spheres"))
    add(forces.SoftSphere(beads, beads, 1.0, 1.0, exclusions=[[0, 2], [3, 4]], name="all spheres"))
    add(forces.Coulomb([0, 2, 3], [1.0, 2.0, 3.0], exclusions=[[2, 3], [0, 3]]))
    add(forces.EllipsoidRepulsion([0, 2, 3], [1, 4], 1.0, [[1.0] * 3, [2.0] * 3, [3.0] * 3], [1.0, 1.0, 1.0]))
    add(forces.SoftCollisions(beads, 1.0, 0.5, exclusions=[[0, 2], [3, 4]]))
    add(forces.WallRepulsion(boundaries.Plane(), [0, 2, 3], 1.0, 1.0, radius=[1.0, 2.0, 3.0], form="soft"))
    add(forces.PythonForce(lambda x: (0.0, 0.0 * x), beads=[0, 2, 3]))
    sites = mp.Sites.beads([2, 0, 3]) + mp.Sites.weighted([[2, 4], [4, 5]], [[0.5, 0.5], [0.5, 0.5]])
    links = add(forces.Links([], [], 1.0, 1.0, name="bound"))
    jump = mp.jumps.LinkBinding(links, sites, mp.Sites.beads([1, 2]), off_rate=1.0, on_rate=1.0, bound=[[2, 0], [1, 1]],
                                partners=2)  # fmt: skip
    system.add_jump(jump)
    return beads, system


NAMED = {
    "HarmonicBonds": ("bond 0", lambda f: (f.pairs.tolist(), np.atleast_1d(f.stiffness).tolist()), ([[3, 4]], [3.0])),
    "LinkLengthPenalty": ("pair 0", lambda f: (f.pairs.tolist(), np.atleast_1d(f.omega).tolist()), ([[3, 4]], [3.0])),
    "CustomBonds": ("bond 0", lambda f: (f.pairs.tolist(), np.atleast_1d(f.k).tolist()), ([[3, 4]], [3.0])),
    "RigidTrianglePenalty": ("triple 0", lambda f: (f.triples.tolist(), np.atleast_1d(f.omega).tolist()),
                             ([[3, 4, 5]], [3.0])),
    "Links": ("link 0", lambda f: (f.ids.tolist(), np.atleast_1d(f.stiffness).tolist()), ([2], [3.0])),
    "AngleLinks": ("angle 0", lambda f: (f.ids.tolist(), np.atleast_1d(f.stiffness).tolist()), ([2], [3.0])),
    "trap": ("bead 0", lambda f: (f.beads.tolist(), f.center.tolist()), ([0, 3], [[0.0, 0, 0], [3.0, 3, 3]])),
    "field": ("site 0", lambda f: (len(f.beads), f.force.tolist()), (2, [[0.0, 0, 0], [3.0, 3, 3]])),
    "named spheres": ("exclusion 0", lambda f: (f._beads_a.tolist(), f.exclusions.tolist()), ([0, 3], [[0, 4]])),
    "all spheres": ("exclusion 0", lambda f: (len(f._beads_a), f.exclusions.tolist()), (5, [[3, 4]])),
    "Coulomb": ("exclusion 0", lambda f: (np.atleast_1d(f.charges).tolist(), f.exclusions.tolist()),
                ([1.0, 3.0], [[0, 3]])),
    "EllipsoidRepulsion": ("member of group_a 1", lambda f: f.semi_axes.tolist(), [[1.0] * 3, [3.0] * 3]),
    "SoftCollisions": ("exclusion 0", lambda f: f.exclusions.tolist(), [[3, 4]]),
    "WallRepulsion": ("bead 1", lambda f: (f.beads.tolist(), f.radius.tolist()), ([0, 3], [1.0, 3.0])),
    "PythonForce": ("bead 1", lambda f: f._bead_numbers.tolist(), [0, 3]),
    "LinkBinding": ("site of a 0", lambda f: (len(f.a), len(f.b), f._bound.tolist()), (3, 1, [[1, 0]])),
}  # fmt: skip


def only(name):
    """The system with this force or jump alone, and what the jump needs."""
    beads, system = named()
    for jump in [j for j in system.jumps if system.name_of(j) != name]:
        system.remove_jump(jump)
    for force in system.forces:
        if system.name_of(force) not in (name, "bound"):
            system.remove_force(force)
    return beads, system


@pytest.mark.parametrize("name", NAMED)
def test_terms_that_name_a_bead_are_in_its_way_or_go_with_it(name):
    term, shown, left = NAMED[name]
    beads, system = only(name)
    one = system[name]
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-4, kT=1.0, seed=1), threads=1)
    simulation.step(1)
    before = shown(one)
    with pytest.raises(mp.TopologyError, match=rf"beads\.remove: {term} of .* names a bead that would go: give terms="):
        with simulation.topology.edit():
            beads.remove(2)
    assert shown(one) == before
    assert len(beads) == 6
    with simulation.topology.edit():
        beads.remove(2, terms="remove")
        beads.add([[50.0, 50.0, 50.0]])
    assert shown(one) == (left if name != "all spheres" else (6, [[3, 4]]))
    state = look(simulation)
    # The new bead has the row of the old one, but nothing that named that acts on it.
    if name not in ("all spheres", "SoftCollisions"):
        assert (state.forces[2] == 0.0).all()
    simulation.step(1)
    document = mp.serialize(system) if name != "PythonForce" else None
    if document:
        assert mp.serialize(mp.deserialize(document)) == document


def test_links_that_jumps_have_bound_go_with_their_sites():
    """The others stay, under their numbers, and the books close: what went is protocol work."""
    topology = mp.Topology()
    rng = np.random.default_rng(1)
    beads = topology.add_beads(rng.normal(0.0, 2.0, (40, 3)), 1.0, 0.5)
    system = system_with(topology, forces.HarmonicTrap(beads, 0.1, [0.0, 0.0, 0.0]))
    links = system.add_force(forces.Links([], [], stiffness=1.0, length=1.0))
    jump = system.add_jump(mp.jumps.LinkBinding(links, beads, off_rate=0.1, on_rate=20.0, partners=2))
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(0.02, kT=1.0, seed=3), threads=1)
    simulation.report_work = True
    start = look(simulation)
    simulation.step(100)
    before = look(simulation)
    rows = before.links(links).bound[0]
    ids = simulation.context._schedule.jumping.operations[0].links()[0]
    assert len(rows) > 10
    gone = rows[0]
    with topology.edit():
        beads.remove(beads.beads[gone], terms="remove")
    after = look(simulation)
    kept = ~np.isin(rows, gone).any(axis=1)
    number = np.cumsum(~np.isin(np.arange(40), gone)) - 1
    assert after.links(links).bound[0].tolist() == number[rows[kept]].tolist()
    assert simulation.context._schedule.jumping.operations[0].links()[0].tolist() == ids[kept].tolist()
    assert after.counts == before.counts
    simulation.step(100)
    end = look(simulation)
    balanced(end, start)
    assert jump.counts.accepted > before.counts["LinkBinding"].accepted


def test_events_of_sites_that_go_are_told_as_they_were():
    """Whoever listens hears of what happened before an edit by the rows of that time, and goes on by those of now."""

    def made():
        topology = mp.Topology()
        beads = topology.add_beads(np.random.default_rng(1).normal(0.0, 2.0, (40, 3)), 1.0, 0.5)
        system = mp.System(topology)
        links = system.add_force(forces.Links([], [], stiffness=1.0, length=1.0))
        system.add_jump(mp.jumps.LinkBinding(links, beads, off_rate=1.0, on_rate=20.0))
        simulation = mp.Simulation(system, mp.BAGOGABIntegrator(0.02, kT=1.0, seed=3), threads=1)
        heard = simulation.context.events()
        simulation.step(100)
        return simulation, heard, beads

    _, expected, _ = made()
    simulation, heard, beads = made()
    with simulation.topology.edit():
        beads.remove(beads.beads[8:], terms="remove")
    simulation.step(400)
    events, before = heard.heard(), expected.heard()
    assert events[: len(before)] == before
    assert max(event[5] for event in before) > 30
    later = events[len(before) :]
    assert len(later) > 3
    assert all(event[0] > 100 and max(event[4:6]) < 8 for event in later)


# Refused, with nothing changed --------------------------------------------------------------------------------------


def everything_of(simulation):
    state = look(simulation)
    found = {name: a for h in simulation.topology.handles for name, a in parts(state, simulation.topology, [h])}
    return found | {"ids": state.ids, "document": mp.serialize(simulation.system), "next": state.next_id}


@pytest.mark.parametrize(("wrong", "error", "text"), [
    (lambda t: t["beads"].remove([0, 1, 0], terms="remove"), mp.TopologyError, "bead 0 is named twice"),
    (lambda t: t["beads"].remove(99999), mp.TopologyError, r"beads\[0\] = 99999, but there is none: beads are"),
    (lambda t: t["beads"].remove(-1), mp.TopologyError, r"beads\[0\] = -1, but there is none"),
    (lambda t: t["beads"].remove(4), mp.TopologyError, r"beads\[0\] = 4, but that is a row of Balls\('balls'"),
    (lambda t: t["beads"].remove(ids=[2, 77777]), mp.TopologyError, r"ids\[1\] = 77777, but no bead has had it"),
    (lambda t: (t["beads"].remove(2), t["beads"].remove(2)), mp.TopologyError, "row of 'beads' is inactive"),
    (lambda t: (t["beads"].remove(2), t["beads"].remove(ids=2)), mp.TopologyError, "but its bead is gone"),
    (lambda t: t["beads"].remove(), mp.ParameterError, r"give beads= \(rows\) or ids=, one of the two"),
    (lambda t: t["beads"].remove(2, ids=2), mp.ParameterError, r"give beads= \(rows\) or ids=, one of the two"),
    (lambda t: t["beads"].remove(2, terms="no"), mp.ParameterError, "terms = 'no' but must be"),
    (lambda t: t["beads"].remove(2, terms=np.array([1, 2])), mp.ParameterError, "terms must be text, not array"),
    (lambda t: t["filaments"].remove(0, terms=1), mp.ParameterError, "terms must be text, not 1"),
    (lambda t: t["filaments"].remove(0, term="remove"), mp.ParameterError, "term.*did you mean 'terms'"),
    (lambda t: t["beads"].remove(0), mp.TopologyError, "bond 0 of HarmonicBonds"),
    (lambda t: t["beads"].remove(1.5), mp.TopologyError, "beads"),
    (lambda t: t["filaments"].remove(4), mp.TopologyError, r"filaments\[0\] = 4, but there are filaments 0 to 3"),
    (lambda t: t["filaments"].remove([0, 0]), mp.TopologyError, "filament 0 is named twice"),
    (lambda t: t["directors of twistable"].remove(0), mp.TopologyError, "directors go with their filaments"),
    (lambda t: t["directors of twistable"].add([[1.0, 0, 0]]), mp.TopologyError, "come with their filaments"),
    (lambda t: t["membrane"].remove(0), mp.TopologyError, "vertices of a membrane stay"),
    (lambda t: t["beads"].add([[0.0, 0, np.nan]]), mp.TopologyError, r"beads\.add: positions\[0, 2\] = nan"),
    (lambda t: t["beads"].add([[0.0, 0, 0]], mass=-1.0), mp.ParameterError, r"beads\.add: mass = -1"),
    (lambda t: t["beads"].add([[0.0, 0, 0]], colour=1), mp.ParameterError, "these beads have no colour"),
    (lambda t: t["balls"].add([[0.0, 0, 0]], colour=1), mp.ParameterError, "these beads have no colour"),
    (lambda t: t["walkers"].add([[0.0, 0, 500.0]], colour=1), mp.ParameterError, "these beads have no colour"),
    (lambda t: t["filaments"].add([[0.0, 0, 0]]), mp.TopologyError, "filament 0 has 1 nodes"),
    (lambda t: t["filaments"].add([[0.0, 0, 0], [1.0, 0, 0]], directors="parallel"), mp.TopologyError, "have none"),
    (lambda t: t["walkers"].add([[0.0, 0, 0]]), mp.TopologyError, r"walkers\.add: positions"),
    (lambda t: t["bodies"].add([[0.0, 0, 0]], [[1.0, 1, 0, 0]]), mp.TopologyError, r"bodies\.add: orientations"),
    (lambda t: t["points of membrane"].add(triangles=[9999], barycentric=[[1.0, 0, 0]]), mp.TopologyError, "9999"),
    (lambda t: t["rod"].reserve(2), mp.ParameterError, r"rod\.reserve: capacity = 2"),
    (lambda t: t["beads"].reserve(2**31), mp.ParameterError, r"beads\.reserve: capacity"),
])  # fmt: skip
def test_refusals_of_creation_and_removal(wrong, error, text):
    """In the middle of an edit that has done other things: all of it is taken back."""
    simulation, twin = simulation_of(ALL), simulation_of(ALL)
    for one in (simulation, twin):
        one.step(5)
        goes(one, "bodies")
        comes(one, "filaments")
    before = everything_of(simulation)
    edit = simulation.topology.edit()
    with pytest.raises(error, match=text), edit:  # noqa: PT012  what was done before it is to be taken back too
        COMES["balls"](simulation.topology["balls"], FAR)
        GOES["twistable"](simulation.topology["twistable"])
        wrong(simulation.topology)
    after = everything_of(simulation)
    assert before.keys() == after.keys()
    assert [k for k in before if not np.array_equal(before[k], after[k])] == []
    for one in (simulation, twin):
        one.step(3)
        comes(one, "beads")
        one.step(3)
    assert_same(simulation, twin, [h.name for h in twin.topology.handles])


@pytest.mark.parametrize("change", [
    lambda t: t["beads"].remove(2),
    lambda t: t["beads"].add([[0.0, 0, 0]]),
    lambda t: t["filaments"].remove(0),
    lambda t: t["points of membrane"].add(1),
    lambda t: t["beads"].reserve(10),
    lambda t: t["bodies"].add([[0.0, 0, 0]], [[1.0, 0, 0, 0]]),
])  # fmt: skip
def test_outside_of_an_edit_what_is_in_use_stays(change):
    simulation = simulation_of(ALL)
    refuses(mp.TopologyError, r"in use by a Context; .* inside `with topology\.edit\(\):`", change, simulation.topology)


def test_a_state_of_other_beads_is_refused():
    simulation = simulation_of(["beads", "filaments"])
    before = look(simulation)
    goes(simulation, "filaments")
    with pytest.raises(mp.TopologyError, match=r"set_state: row 3 \('filaments'\) is that of id 3 in the state"):
        simulation.context.set_state(before)
    comes(simulation, "filaments")
    comes(simulation, "filaments")
    with pytest.raises(mp.TopologyError, match=r"set_state: the state has 13 rows of beads, the topology 28"):
        simulation.context.set_state(before)


def test_hostile_numberings_of_documents_are_refused():
    simulation = simulation_of(["beads", "balls"])
    goes(simulation, "balls")
    text = mp.serialize(simulation.topology)
    for change, message in [
        (lambda n: n.update(n_beads=9), "each row from 0 to 8"),
        (lambda n: n.update(next_id=2), "ids must differ, and be from 0 to 1"),
        (lambda n: n["handles"]["beads"].update(beads=[0, 1, 1]), "each row"),
        (lambda n: n["handles"]["beads"].update(ids=[0, 1, 1]), "ids must differ"),
        (lambda n: n["handles"]["beads"].update(ids=[0, 1]), "shape"),
        (lambda n: n["handles"].pop("balls"), "handles must be those of the topology"),
        (lambda n: n.update(n_beads="x"), "n_beads"),
        (lambda n: n.pop("next_id"), "next_id"),
    ]:
        tree = json.loads(text)
        change(tree["content"]["numbering"])
        refuses(mp.MedyanError, message, mp.deserialize, json.dumps(tree))


# Kinds from elsewhere ------------------------------------------------------------------------------------------------


class ChargedKind(mp.beads.BeadsKind):
    name = "charged beads"
    per_bead = (*mp.beads.BeadsKind.per_bead, "charge")


class Charged(mp.beads.Beads, kind=ChargedKind):
    """Something of each bead, something of all, and something made of both."""

    def __init__(self, topology, name, first, positions, mass, friction, charge, scale):
        super().__init__(topology, name, first, positions, mass, friction)
        self.charge = np.broadcast_to(charge, (len(positions),)).astype(float)
        self.product = self.charge * scale


class SilentKind(ChargedKind):
    per_bead = mp.beads.BeadsKind.per_bead


class Silent(Charged, kind=SilentKind):
    pass


def test_kinds_from_elsewhere_come_and_go():
    topology = mp.Topology()
    own = topology.add(Charged, np.zeros((3, 3)), 1.0, charge=[1.0, 2.0, 3.0], scale=2.0)
    own.remove(1)
    own.add(np.ones((2, 3)), charge=[5.0, 6.0])
    assert own.charge.tolist() == [1.0, 3.0, 5.0, 6.0]
    assert own.product.tolist() == [2.0, 6.0, 10.0, 12.0]
    assert own.beads.tolist() == [0, 2, 1, 3]
    again = copy.deepcopy(topology)["charged beads"]
    assert again.product.tolist() == own.product.tolist()
    assert again.beads.tolist() == own.beads.tolist()
    refuses(mp.ParameterError, "give charge=", own.add, [[0.0, 0, 0]])
    assert not own.kind.comes_and_goes
    silent = topology.add(Silent, np.zeros((3, 3)), 1.0, charge=[1.0, 2.0, 3.0], scale=2.0)
    with pytest.raises(mp.TopologyError, match="per_bead does not say whether charge is something of each bead"):
        silent.add([[0.0, 0, 0]])
    with pytest.raises(mp.TopologyError, match="per_bead does not say whether charge is something of each bead"):
        silent.remove(silent.beads[0])
