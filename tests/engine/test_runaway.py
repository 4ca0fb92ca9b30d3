"""A bead with more kinetic energy than it can have come by ends the run, and is named with what did it."""

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy import forces, kicks
from medyanpy.testing import thermal

# More energy than any bead of these systems can have come by.
FACTOR = 20.0


def chain(word="BAOAB", timestep=0.22, n=12, kT=1.0, threads=1, friction=0.1, kick=None, stiffness=100.0):
    """Beads in a row; the stable limit of its stiffest mode is 0.1."""
    topology = mp.Topology()
    x = np.column_stack([np.arange(n), np.zeros((n, 2))])
    beads = topology.add_beads(x, mass=1.0, friction=friction, name="chain")
    system = system_with(topology, forces.HarmonicTrap(beads, 1e-3, [0.0, 0, 0], name="weak"))
    pairs = np.column_stack([beads.beads[:-1], beads.beads[1:]])
    system.add_force(forces.HarmonicBonds(pairs, stiffness, 1.0, name="stiff"))
    context = mp.Context(system, mp.SplittingIntegrator(word, timestep, kT=thermal(word, kT), seed=4, kick=kick),
                         threads=threads)  # fmt: skip
    context.set_velocities_to_temperature(kT=kT, seed=5)
    return context


def fails(context, n=20_000):
    with pytest.raises(mp.SimulationError, match="has run away") as caught:
        context.step(n)
    return caught.value


def kinetic(context):
    v = context.get_state(velocities=True).velocities
    mass = np.concatenate([handle.mass for handle in context.system.topology.handles])
    return 0.5 * mass * (v**2).sum(axis=1)


@pytest.mark.unstable
@pytest.mark.parametrize("word", ["BAOAB", "BAB", "ABA", "OBABO"])
def test_the_first_bead_beyond_its_scale_is_named(word):
    """By a run that is looked at after every step, without the watch."""
    context, reference = chain(word), chain(word)
    reference.runaway = None
    assert reference.runaway is None
    start = kinetic(reference).max()
    potential = reference.get_state(energy=True).potential_energy
    own = 0.5 * FACTOR**2 * max(start, 1.0 if "O" in word else 0.0)
    error = fails(context)
    while reference.step_count <= error.step:
        before = reference.get_state(positions=True, velocities=True)
        reference.step(1)
        now = kinetic(reference)
        released = max(potential - reference.get_state(energy=True).potential_energy, 0.0)
        assert (now.max() > own + 4.0 * released) == (reference.step_count == error.step + 1)
    assert error.bead == np.argmax(now)
    assert (error.object, error.force, error.triangle) == ("chain", "stiff", None)
    assert f"{now.max():.3g} pN nm" in str(error)
    state = context.get_state(positions=True, velocities=True)
    assert (state.positions == before.positions).all()
    assert (state.velocities == before.velocities).all()
    assert context.step_count == error.step


def test_speeds_after_the_last_letter_count():
    """Where O ends the word, beads have other speeds than after the last kick: with a factor of 3 heat itself takes one
    of 20 beads beyond it at every other step."""
    topology = mp.Topology()
    beads = topology.add_beads(np.arange(60.0).reshape(20, 3), mass=1.0, friction=50.0)
    system = system_with(topology, mp.forces.HarmonicBonds(beads.beads.reshape(10, 2), stiffness=0.01, length=1.0))
    for seed in range(10):
        context, reference = (
            mp.Context(system, mp.SplittingIntegrator("OBABO", 0.1, kT=1.0, seed=seed), threads=1) for _ in range(2)
        )
        reference.runaway, context.runaway = None, 3.0
        potential = reference.get_state(energy=True).potential_energy
        error = fails(context)
        for step in range(error.step + 1):
            reference.step(1)
            released = max(potential - reference.get_state(energy=True).potential_energy, 0.0)
            assert (kinetic(reference).max() > 4.5 + 4.0 * released) == (step == error.step)


@pytest.mark.unstable
@pytest.mark.parametrize("word", ["BAOAB", "BAB"])
def test_results_do_not_depend_on_threads_copies_and_cuts(word, tmp_path):
    first = fails(chain(word))
    threads = fails(chain(word, threads=3))
    cut = chain(word)
    copied = chain(word)

    def by_one():
        while True:
            cut.step(1)

    def with_copies():
        while True:
            copied._store.program.keep()
            copied.step(2)

    with pytest.raises(mp.SimulationError) as in_parts:
        by_one()
    with pytest.raises(mp.SimulationError) as kept:
        with_copies()
    for error in (threads, in_parts.value, kept.value):
        assert (error.step, error.bead, str(error)) == (first.step, first.bead, str(first))
    # Through a checkpoint, which holds what the start had.
    integrator = mp.SplittingIntegrator(word, 0.22, kT=thermal(word, 1.0), seed=4)
    simulation = mp.Simulation(chain(word).system, integrator, threads=1)
    simulation.context.set_state(chain(word).get_state(positions=True, velocities=True))
    again = fails(simulation.context)
    simulation.context.set_state(chain(word).get_state(positions=True, velocities=True))
    simulation.step(first.step - 1)
    simulation.save_checkpoint(tmp_path / "c")
    resumed = fails(mp.Simulation.resume(tmp_path / "c").context)
    assert (resumed.step, resumed.bead) == (again.step, again.bead)


def test_a_healthy_run_has_the_same_bits_with_and_without():
    with_it, without = chain(timestep=0.05), chain(timestep=0.05)
    without.runaway = None
    for context in (with_it, without):
        context.step(3000)
    a, b = (c.get_state(positions=True, velocities=True) for c in (with_it, without))
    assert (a.positions == b.positions).all()
    assert (a.velocities == b.velocities).all()


@pytest.mark.frictionless
@pytest.mark.parametrize(("word", "kT"), [("BAOAB", 1e-30), ("BAB", 1.0)])
def test_energy_that_forces_give_ends_no_run(word, kT):
    """Beads released from rest, stretched bonds, a fall without end: all far beyond any thermal speed."""
    topology = mp.Topology()
    falling = topology.add_beads([[0.0, 0, 0]], mass=2.0)
    pair = topology.add_beads([[0.0, 9, 0], [40.0, 9, 0]], mass=[1e-3, 1.0], friction=1e-4)
    still = topology.add_beads([[0.0, 50, 0], [1.0 / 3.0, 50.1, 0.7]], mass=1.0)
    system = system_with(topology, forces.UniformField(falling, [0.0, 0, 30.0]),
                         forces.HarmonicBonds([pair.beads], 1.0, 1.0))  # fmt: skip
    length = np.linalg.norm(np.diff(still.positions, axis=0))
    system.add_force(forces.HarmonicBonds([still.beads], 1.0, length))
    context = mp.Context(system, mp.SplittingIntegrator(word, 0.01, kT=kT if "O" in word else None), threads=1)
    context.step(3000)
    assert kinetic(context)[0] > 1e5
    assert context.runaway == FACTOR


def test_fast_beads_of_the_user_continue_and_count_as_the_start():
    context = chain(timestep=0.01, friction=0.01)
    v = np.zeros((12, 3))
    v[:, 1] = 500.0
    context.set_velocities(v)
    context.step(200)
    assert kinetic(context).max() > 1e5
    # A quench: from there on, the thermostat's temperature is the scale again.
    context.set_velocities(np.zeros((12, 3)))
    context.step(200)


@pytest.mark.unstable
def test_it_can_be_loosened_and_turned_off():
    strict, loose, off = chain(), chain(), chain()
    loose.runaway = 1e6
    off.runaway = None
    assert (strict.runaway, loose.runaway, off.runaway) == (20.0, 1e6, None)
    first, later = fails(strict), fails(loose)
    assert later.step > first.step + 3
    assert kinetic(loose).max() > 1e6
    refuses(mp.SimulationError, "no longer a finite number", off.step, 20_000)
    refuses(mp.ParameterError, r"runaway = 0\.5 but must be >= 1", setattr, strict, "runaway", 0.5)
    assert strict.runaway == 20.0


@pytest.mark.filterwarnings("ignore:ZhangSkeel:medyanpy.errors.TimestepWarning")
@pytest.mark.parametrize("word", ["BAOAB", "BAB"])
def test_linearly_implicit_kicks_that_lose_a_bent_chain(word):
    """Five times the explicit limit, where Zhang and Skeel's barrier is climbed: K went to 1e7 kT unnoticed."""
    context = chain(word, 0.5, n=40, kT=0.1, kick=kicks.ZhangSkeel(0.3), friction=0.01)
    x = context.get_state(positions=True).positions.copy()
    angle = np.arange(40) / 6.0
    x[:, 0], x[:, 1] = np.cumsum(np.cos(angle)), np.cumsum(np.sin(angle))
    context.set_positions(x)
    context.set_velocities_to_temperature(kT=0.1, seed=1)
    error = fails(context)
    assert error.force == "stiff"
    assert kinetic(context).max() < 1e4


# Membranes --------------------------------------------------------------------------------------------------------


def test_a_collapsing_triangle_is_named_at_the_step_in_which_it_collapses():
    """Free triangles with a bound point (findings: up to 5.5e4 kT in one step of 0.1, unnoticed)."""
    n = 4000
    corners = np.array([[0.0, 0, 0], [2.0, 0, 0], [1.0, 1.8, 0]])
    x = np.concatenate([corners + [0.0, 0, 10.0 * i] for i in range(n)])
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh(x, np.arange(3 * n).reshape(n, 3)), vertex_mass=1.0,
                                     vertex_friction=1.0, name="triangles")  # fmt: skip
    topology.add_intriangle_points(membrane, triangles=np.arange(n), barycentric=np.full((n, 3), 1 / 3), mass=1.0,
                                   friction=1.0)  # fmt: skip
    context = mp.Context(mp.System(topology), mp.BAGOGABIntegrator(0.1, kT=1.0, seed=1), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    error = fails(context, 1000)
    assert error.object == "triangles"
    assert error.force is None
    assert error.triangle == error.bead // 3
    assert "No force gave it that but the flight of points" in str(error)
    # The state is the one before: with the temperature of the thermostat, and that triangle flat.
    state = context.get_state(positions=True, energy=True)
    assert context.step_count == error.step
    assert abs(state.temperature * mp.units.boltzmann - 1.0) < 0.1
    a, b, c = state.positions[3 * error.triangle : 3 * error.triangle + 3]
    edges = np.array([b - a, c - b, a - c])
    height = np.linalg.norm(np.cross(b - a, c - a)) / np.linalg.norm(edges, axis=1).max()
    assert height < 0.3
    context.runaway = None
    context.step(1)
    assert kinetic(context)[error.bead] > 0.5 * FACTOR**2


def thermal_vesicle(mass):
    """The newcomer's vesicle, on a quarter of the vertices: its timestep is too long for its mass."""
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(150.0, 3), vertex_mass=mass, vertex_friction=4e-7,
                                     name="membrane")  # fmt: skip
    system = system_with(topology, forces.MembraneBending(membrane, 83.0), forces.MembraneArea(membrane, 200.0),
                         forces.MembraneVolume(membrane, 0.8), forces.MembraneEdgeSprings(membrane, 0.1))  # fmt: skip
    return mp.Context(system, mp.BAGOGABIntegrator(3e-7, temperature=300.0), threads=1)


@pytest.mark.unstable
def test_a_membrane_that_runs_away_is_not_blamed_on_bead_0_and_its_volume():
    context = thermal_vesicle(4e-13)
    error = fails(context)
    reference = thermal_vesicle(4e-13)
    reference.runaway = None
    reference.step(error.step)
    assert (reference.get_state(positions=True).positions == context.get_state(positions=True).positions).all()
    reference.step(1)
    energies = kinetic(reference)
    assert error.bead == np.argmax(energies) != 0
    assert error.force != "MembraneVolume"
    assert error.bead in context.system.topology.membranes[0].mesh.faces[error.triangle]
    assert context.get_state(energy=True).temperature < 1500.0
    refuses(mp.SimulationError, r"bead 0 .*force MembraneVolume.*no longer a finite number", reference.step, 1000)


@pytest.mark.unstable
def test_a_trap_pulled_too_hard_is_named():
    """136 vertices to one place, as a newcomer wrote it; volume was blamed."""
    context = thermal_vesicle(4e-12)
    topology = context.system.topology
    membrane = topology.membranes[0]
    system = system_with(topology, forces.MembraneBending(membrane, 83.0), forces.MembraneVolume(membrane, 0.8),
                         forces.MembraneEdgeSprings(membrane, 0.1),
                         forces.HarmonicTrap(membrane.beads[:36], 500.0, [150.0, 0.0, 0.0], name="tip"))  # fmt: skip
    context = mp.Context(system, mp.BAGOGABIntegrator(3e-7, temperature=300.0), threads=1)
    error = fails(context)
    assert error.force == "tip"
    assert error.bead < 36


@pytest.mark.parametrize("axes", [[1.0, 0, 0], [0, 0, 1.0], [1.0, 1.0, 1.0]])
def test_a_body_that_spins_away_is_named(axes):
    """At 1.02 times the energy that the bound allows, however axes share it, and not at 0.98: the step itself changes
    it by 0.5 %."""
    topology = mp.Topology()
    upright = np.tile([1.0, 0, 0, 0], (5, 1))
    inertia = np.array([1.0, 2.0, 2.5])
    bodies = topology.add_rigid_bodies(np.arange(15.0).reshape(5, 3), upright, 1.0, tuple(inertia), (0.1, 0.1),
                                       name="bodies")  # fmt: skip
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAOAB", 0.01, kT=1.0), threads=1)
    context.step(10)
    bound = 0.5 * FACTOR**2
    share = np.array(axes) / np.sum(axes)

    def spin(energy):
        # Behind the account's back, as a wrong kernel would.
        context._store.spin[3] = np.sqrt(2.0 * inertia * energy * share)
        context._store.program.changed()

    spin(0.98 * bound)
    context.step(1)
    spin(1.02 * bound)
    error = fails(context)
    assert (error.bead, error.step) == (bodies.beads[3], 11)


@pytest.mark.unstable
def test_a_body_that_a_force_spins_up_is_named_with_it():
    """Heavy, so that its energy is of rotation alone; arms on stiff ropes, of which ω dt = 2.4. Their couple is blamed,
    not what pulls harder at its centre; and it is looked for at this body, not at the idle one before it."""
    topology = mp.Topology()
    bodies = topology.add_rigid_bodies([[90.0, 0, 0], [0.0, 0, 0]], [[1.0, 0, 0, 0]] * 2, 1e6, (1.0, 1.0, 1.0),
                                       (0.0, 0.0), name="bodies")  # fmt: skip
    body = bodies.beads[1]
    ends = topology.add_beads([[5.0, 0, 0], [-5.0, 0, 0]], mass=1e6)
    system = system_with(topology, forces.UniformField(bodies, [1.0, 0, 0], name="pull"))
    arms = mp.Sites.from_arrays([0, 1, 2], [body, body], [1.0, 1.0], np.empty((0, 3)), [[2.0, 0, 0], [-2.0, 0, 0]])
    system.add_force(forces.Links(arms, ends, 10.0, 0.0, name="stiff"))
    # Two ropes of 5 nm from the middle, on arms of 2: a couple of 2 k (5)(2) for each radian.
    context = mp.Context(system, mp.SplittingIntegrator("BAB", 2.4 / np.sqrt(200.0)), threads=1)
    context.set_velocities_to_temperature(kT=1e-4, seed=1)
    error = fails(context)
    assert error.bead == body
    assert error.force == "stiff"


# Needles ----------------------------------------------------------------------------------------------------------


def sheet(height, timestep, fixed=False, mass=1.0, word="BAGOGAB"):
    mesh = mp.TriangleMesh([[0.0, 0, 0], [10.0, 0, 0], [5.0, 8.0, 0], [5.0, -height, 0]], [[0, 1, 2], [1, 0, 3]])
    topology = mp.Topology()
    topology.add_membrane(mesh, vertex_mass=mass, vertex_friction=1.0, fixed=fixed, name="sheet")
    kT = 4.0 if "O" in word else None
    return lambda: mp.Context(mp.System(topology), mp.SplittingIntegrator(word, timestep, kT=kT), threads=1)


def test_needles_are_warned_of_with_the_timestep_that_would_do():
    # Vertices move by 2 nm in a unit of time.
    says = r"'sheet': triangle 1 has a height of 0\.5 nm, .* of 0\.0833 s would do"
    with pytest.warns(mp.TimestepWarning, match=says):
        sheet(0.5, 0.1)()
    # That timestep does, and so do a larger mass, a membrane that does not move, and no heat.
    sheet(0.5, 0.083)()
    for change in ({"mass": 2.0}, {"fixed": True}, {"word": "BAGAB"}):
        sheet(0.5, 0.1, **change)()
    with pytest.warns(mp.TimestepWarning, match=r"triangle 1 \(and 1 more\) has a height"):
        sheet(0.5, 2.0)()
