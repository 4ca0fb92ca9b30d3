"""After a fault the simulation is back at the step that failed, to the bit, and can be used."""

import numpy as np
import pytest
from builders import look, refuses, system_with

import medyanpy as mp


def chain(timestep=0.01, n=40, threads=1, extra=(), seed=1):
    """A chain with friction and noise; its springs are stiff enough for a timestep of 0.01."""
    topology = mp.Topology()
    x = np.column_stack([np.arange(n), np.zeros((n, 2))]) + np.random.default_rng(3).normal(0.0, 0.05, (n, 3))
    beads = topology.add_beads(x, mass=1.0, friction=0.1)
    system = mp.System(topology)
    trap = system.add_force(mp.forces.HarmonicTrap(beads, 0.01, [0.0, 0, 0]))
    bonds = system.add_force(mp.forces.HarmonicBonds(np.column_stack([beads.beads[:-1], beads.beads[1:]]), 100.0, 1.0))
    for force in extra:
        system.add_force(force)
    simulation = mp.Simulation(system, mp.SplittingIntegrator("BAOAB", timestep, kT=1.0, seed=seed), threads=threads)
    # The watch would stop a run that blows up long before it overflows, which is what these tests are about.
    simulation.context.runaway = None
    return simulation, bonds, trap


def assert_same(a, b):
    assert a.step == b.step
    for name in ("positions", "velocities", "forces"):
        assert (getattr(a, name) == getattr(b, name)).all(), name
    assert (a.intriangle.triangles == b.intriangle.triangles).all()
    assert (a.intriangle.barycentric == b.intriangle.barycentric).all()
    assert a.energies == b.energies
    assert a.temperature == b.temperature


def blow_up(simulation, n=100_000):
    with pytest.raises(mp.SimulationError) as caught:
        simulation.step(n)
    return caught.value


@pytest.mark.unstable
@pytest.mark.parametrize("threads", [1, 3])
def test_a_blow_up_leaves_the_state_before_the_step_that_failed(threads):
    simulation, bonds, _ = chain(timestep=0.25, threads=threads)
    error = blow_up(simulation)
    assert error.step == simulation.current_step > 10
    assert error.force == "HarmonicBonds"
    assert error.object == "beads"
    assert f"step {error.step}, bead {error.bead} ('beads', beads), force HarmonicBonds: " in str(error)
    assert f"The simulation is back at step {error.step}, the last good state" in str(error)
    reference, _, _ = chain(timestep=0.25)
    reference.step(error.step)
    assert np.isfinite(look(simulation.context).positions).all()
    assert_same(look(simulation.context), look(reference.context))
    # The same again: nothing has been repaired.
    again = blow_up(simulation)
    assert (again.step, again.bead, str(again)) == (error.step, error.bead, str(error))
    # With the cause mended it runs on.
    bonds.set(stiffness=1.0)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=1)
    simulation.step(100)
    assert simulation.current_step == error.step + 100


@pytest.mark.unstable
def test_smaller_timestep_resumes_from_the_last_good_state():
    def refuses_long_bonds(x):
        if (np.linalg.norm(np.diff(x, axis=0), axis=1) > 3.0).any():
            raise ValueError("a bond is three times its length")
        return 0.0, np.zeros_like(x)

    broken, _, _ = chain(timestep=0.25, extra=[mp.forces.PythonForce(refuses_long_bonds)])
    error = blow_up(broken)
    assert isinstance(error.__cause__, ValueError)
    simulation, _, _ = chain(timestep=0.01)
    simulation.context.set_state(broken.context.get_state(positions=True, velocities=True))
    assert simulation.current_step == error.step >= 1
    hot = look(simulation.context)
    simulation.step(5000)
    assert look(simulation.context).total_energy < 0.5 * hot.total_energy


@pytest.mark.unstable
@pytest.mark.parametrize("kept_at", [[], [7], [3, 11, 20], list(range(25))])
def test_it_does_not_matter_when_copies_were_made(kept_at):
    simulation, _, _ = chain(timestep=0.25)
    for step in kept_at:
        simulation.step(step - simulation.current_step)
        simulation.context._store.program.keep()
    error = blow_up(simulation)
    assert error.step > 25
    reference, _, _ = chain(timestep=0.25)
    reference.step(error.step)
    assert_same(look(simulation.context), look(reference.context))


def test_a_long_run_makes_copies_on_its_way():
    """The run is much longer than the time between two copies, and what failed was far from its start."""
    calls = []

    def fails_late(x):
        calls.append(1)
        if len(calls) == 30_000:
            raise ZeroDivisionError
        return 0.0, np.zeros_like(x)

    simulation, _, _ = chain(n=3, extra=[mp.forces.PythonForce(fails_late)])
    error = blow_up(simulation)
    replayed = len(calls) - 30_000
    assert simulation.current_step == error.step == 29_998
    assert 0 <= replayed < 20_000, "the copy was made on the way, not at the start"
    reference, _, _ = chain(n=3)
    reference.step(error.step)
    a, b = (s.context.get_state(positions=True, velocities=True) for s in (simulation, reference))
    assert (a.positions == b.positions).all()
    assert (a.velocities == b.velocities).all()


@pytest.mark.unstable
def test_a_change_between_runs_is_not_undone():
    """Copies from before a change of numbers or velocities are of no use after it."""

    def prepare():
        simulation, _, trap = chain(timestep=0.25)
        simulation.step(5)
        trap.set(stiffness=0.02)
        simulation.step(3)
        simulation.context.set_velocities_to_temperature(kT=0.5, seed=8)
        simulation.step(2)
        state = simulation.context.get_state(positions=True)
        simulation.context.set_positions(state.positions + 0.01)
        return simulation

    simulation, reference = prepare(), prepare()
    error = blow_up(simulation)
    assert error.step > 11
    reference.step(error.step - 10)
    assert_same(look(simulation.context), look(reference.context))


def vesicle(kT=1.0):
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(10.0, 2), vertex_mass=5.0, vertex_friction=0.5)
    points = topology.add_intriangle_points(membrane, 200, mass=1.0, friction=0.3, seed=3)
    system = mp.System(topology)
    springs = system.add_force(mp.forces.MembraneEdgeSprings(membrane, 30.0))
    push = system.add_force(mp.forces.UniformField(points, [0.0, 0.0, 0.0]))
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(0.05, kT=kT, seed=9), threads=2)
    simulation.context.set_velocities_to_temperature(kT=kT, seed=4)
    return simulation, springs, push


def test_points_are_back_in_their_triangles():
    def prepare():
        simulation, springs, push = vesicle()
        simulation.step(50)
        push.set(force=[0.0, 0.0, 1e9])
        return simulation, springs, push

    simulation, _, push = prepare()
    error = blow_up(simulation, 1000)
    assert error.step == simulation.current_step >= 50
    assert error.object in ("points", "membrane")
    reference, _, _ = prepare()
    reference.step(error.step - 50)
    assert_same(look(simulation.context), look(reference.context))
    push.set(force=[0.0, 0.0, 0.0])
    start = simulation.context.get_state(positions=True)
    simulation.context.set_positions(vesicle()[0].context.get_state(positions=True).positions)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=1)
    simulation.step(20)
    assert (simulation.context.get_state(positions=True).positions != start.positions).any()


def test_a_force_that_cannot_be_repeated_is_not_called_again():
    calls = []

    def counts(x):
        calls.append(x)
        if len(calls) == 50:
            raise ZeroDivisionError("the fiftieth")
        return 0.0, np.zeros_like(x)

    simulation, _, _ = chain(extra=[mp.forces.PythonForce(counts, replay=False)])
    kept = simulation.context.get_state(positions=True)
    del calls[:]
    error = blow_up(simulation)
    assert len(calls) == 50
    # One evaluation at the start, then one at the end of every step.
    assert (error.step, error.force) == (48, "PythonForce")
    assert simulation.current_step == 0, "the only copy was made at the start"
    assert "is back at step 0, the last state that was kept" in str(error)
    assert (simulation.context.get_state(positions=True).positions == kept.positions).all()
    simulation.step(60)
    assert simulation.current_step == 60


def test_a_state_that_is_not_finite_is_not_good():
    """With A as the last letter, a step can end with infinite positions; the next step finds out."""

    def make():
        topology = mp.Topology()
        bead = topology.add_beads([[1.0, 0, 0]], mass=1.0)
        system = system_with(topology, mp.forces.UniformField(bead, [1.0, 0.0, 0.0]),
                             mp.forces.HarmonicTrap(bead, 1e-9, [0.0, 0.0, 0.0]))  # fmt: skip
        context = mp.Context(system, mp.SplittingIntegrator("ABA", 1.0), threads=1)
        context.set_velocities([[6e307, 0.0, 0.0]])
        return context

    context = make()
    with pytest.raises(mp.SimulationError, match=r"step 3, .*is back at step 2, the last good state") as caught:
        context.step(10)
    assert (caught.value.step, context.step_count) == (3, 2)
    reference = make()
    reference.step(2)
    assert (context.get_state(positions=True).positions == reference.get_state(positions=True).positions).all()


def test_a_run_that_does_not_repeat_itself_ends_in_a_good_state_all_the_same():
    calls = []

    def fails_now_and_then(x):
        calls.append(x)
        if len(calls) % 7 == 0:
            raise ZeroDivisionError
        return 0.0, np.zeros_like(x)

    simulation, _, _ = chain(extra=[mp.forces.PythonForce(fails_now_and_then)])
    simulation.step(4)
    error = blow_up(simulation)
    assert error.step == 5
    assert simulation.current_step in range(6)
    reference, _, _ = chain()
    reference.step(simulation.current_step)
    a, b = (s.context.get_state(positions=True, velocities=True) for s in (simulation, reference))
    assert (a.positions == b.positions).all()
    assert (a.velocities == b.velocities).all()


@pytest.mark.unstable
def test_the_strongest_force_is_named_where_all_overflow_at_once():
    """Everything on the bead is infinite in the step that fails; one step before, only one force was large."""
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0], [1.5, 0, 0]], mass=1.0)
    system = system_with(topology, mp.forces.HarmonicTrap([0, 1], 1e-3, [0.0, 0, 0], name="weak"),
                         mp.forces.HarmonicBonds([[0, 1]], 1e5, 1.0, name="stiff"),
                         mp.forces.HarmonicBonds([[0, 1]], 1e-3, 1.0, name="weak too"))  # fmt: skip
    simulation = mp.Simulation(system, mp.VerletIntegrator(1.0), threads=1)
    simulation.context.runaway = None
    assert blow_up(simulation).force == "stiff"


def test_a_failing_minimisation_goes_back_to_where_forces_could_be_computed():
    calls = []

    def fails(x):
        calls.append(x)
        if len(calls) == 12:
            raise ZeroDivisionError
        return 0.5 * np.sum(x**2), -x

    simulation, _, _ = chain(extra=[mp.forces.PythonForce(fails)])
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=2)
    before = look(simulation.context)
    refuses(mp.SimulationError, "force PythonForce", simulation.minimize_energy)
    *tried, failed = calls
    after = look(simulation.context)
    assert (after.positions != before.positions).any(), "it had begun"
    assert any((after.positions == x).all() for x in tried)
    assert (after.positions != failed).any()
    assert (after.velocities == before.velocities).all()
    assert after.step == before.step == 0
    simulation.step(10)


def test_forces_of_the_positions_that_failed_are_not_used_again():
    """The trap is computed at the new positions before the other force fails there, and the step is taken again."""
    broken = [True]

    def fails_once(x):
        if broken[0] and x[0, 0] != 1.0:
            raise ZeroDivisionError
        return 0.0, np.zeros_like(x)

    def make():
        topology = mp.Topology()
        bead = topology.add_beads([[1.0, 0, 0]], mass=1.0)
        system = system_with(topology, mp.forces.HarmonicTrap(bead, 1.0, [0.0, 0, 0], group=1),
                             mp.forces.PythonForce(fails_once, group=0))  # fmt: skip
        return mp.Context(system, mp.SplittingIntegrator("B0 B1 A B1 B0", 0.1), threads=1)

    context = make()
    refuses(mp.SimulationError, "step 0, force PythonForce", context.step, 1)
    broken[0] = False
    reference = make()
    for c in (context, reference):
        c.step(5)
    assert_same(look(context), look(reference))


def test_a_number_that_cannot_be_bound_leaves_all_as_it_was():
    class Picky(mp.forces.HarmonicTrap):
        def bind(self, layout):
            if self.parameters["stiffness"][0] == 13.0:
                raise mp.ParameterError("not thirteen")
            return super().bind(layout)

    topology = mp.Topology()
    beads = topology.add_beads([[1.0, 0, 0]], mass=1.0)
    system = mp.System(topology)
    force = system.add_force(Picky(beads, 2.0, [0.0, 0, 0]))
    context = mp.Context(system, mp.VerletIntegrator(0.01))
    context.step(3)
    before = look(context)
    force.set(stiffness=13.0)
    refuses(mp.ParameterError, "not thirteen", context.step, 1)
    force.set(stiffness=2.0)
    assert_same(look(context), before)
