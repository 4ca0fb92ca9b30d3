"""One context, one user at a time: from inside a step, from reporters, from other threads, from signal handlers."""

import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp

N = 50


def beads_with(function=None, word="BAB", **options):
    """A context whose steps call `function(context, positions)`."""
    topology = mp.Topology()
    beads = topology.add_beads(np.random.default_rng(0).normal(size=(N, 3)), mass=1.0, friction=0.3)
    system = mp.System(topology)
    traps = [system.add_force(mp.forces.HarmonicTrap(beads, 1.0, [0.0, 0, 0], name=f"before{i}")) for i in range(5)]
    box = {}

    def call(x):
        if function is not None and "context" in box:
            function(box["context"], traps)
        return 0.0, np.zeros_like(x)

    system.add_force(mp.forces.PythonForce(call, **options))
    for i in range(5):
        system.add_force(mp.forces.HarmonicTrap(beads, 1.0, [0.0, 0, 0], name=f"after{i}"))
    kT = 1.0 if "O" in word else None
    simulation = mp.Simulation(system, mp.SplittingIntegrator(word, 0.01, kT=kT, seed=3), threads=1)
    box["context"] = simulation.context
    return simulation


def state_of(context):
    state = context.get_state(positions=True, velocities=True)
    return np.concatenate([state.positions, state.velocities])


# From inside a step ------------------------------------------------------------------------------------------------

ENTERED = {
    "step": lambda context: context.step(1),
    "get_state": lambda context: context.get_state(energy=True),
    "set_positions": lambda context: context.set_positions(np.zeros((N, 3))),
    "set_velocities": lambda context: context.set_velocities(np.zeros((N, 3))),
    "set_velocities_to_temperature": lambda context: context.set_velocities_to_temperature(kT=1.0),
    "set_state": lambda context: context.set_state(None),
    "hessian": lambda context: context.hessian(),
    "snapshot": lambda context: context.snapshot(positions=True),
    "runaway": lambda context: setattr(context, "runaway", None),
    "report_work": lambda context: setattr(context, "report_work", True),
}


@pytest.mark.parametrize("name", ENTERED)
def test_a_python_force_that_uses_its_own_context_is_refused(name):
    refused = []

    def use(context, _):
        try:
            ENTERED[name](context)
        except mp.ContextInUseError as error:
            refused.append(str(error))

    simulation, reference = beads_with(use), beads_with()
    simulation.step(20)
    reference.step(20)
    assert simulation.current_step == 20
    assert (state_of(simulation.context) == state_of(reference.context)).all()
    assert len(refused) >= 20
    assert all(text.startswith(f"{name} was called from inside step") for text in refused[-20:])


def test_where_the_refusal_is_not_caught_the_run_ends_with_it():
    simulation = beads_with(lambda context, _: context.step(1) if context.step_count == 7 else None)
    with pytest.raises(mp.SimulationError, match="ContextInUseError: step was called from inside step") as caught:
        simulation.step(20)
    assert isinstance(caught.value.__cause__, mp.ContextInUseError)
    assert simulation.current_step == 7


def test_a_look_that_calls_the_force_refuses_looks_from_inside_it():
    """Named is the one that is under way, whatever was called before."""
    simulation = beads_with(lambda context, _: context.get_state(forces=True))
    simulation.context.set_velocities(np.ones((N, 3)))
    refuses(mp.SimulationError, "get_state was called from inside get_state", simulation.context.get_state, energy=True)


def test_numbers_set_inside_a_step_hold_from_the_next_call_of_step_on():
    """They used to free a list of forces while it was walked through."""

    def stiffen(context, traps):
        traps[0].set(stiffness=2.0)

    simulation, reference = beads_with(stiffen), beads_with()
    simulation.step(20)
    reference.step(20)
    assert (state_of(simulation.context) == state_of(reference.context)).all()
    simulation.step(20)
    reference.system["before0"].set(stiffness=2.0)
    reference.step(20)
    assert (state_of(simulation.context) == state_of(reference.context)).all()


class Calls(mp.reporters.Reporter):
    include = ()

    def __init__(self, what):
        super().__init__(10)
        self.what, self.refused = what, []

    def report(self, simulation, state):
        try:
            self.what(simulation)
        except mp.ContextInUseError as error:
            self.refused.append(str(error))


@pytest.mark.parametrize("name", ["step", "load_checkpoint", "minimize_energy", "set_state"])
def test_a_reporter_may_not_run_its_simulation(name, tmp_path):
    simulation, reference = beads_with(), beads_with()
    simulation.save_checkpoint(tmp_path / "start")
    start = simulation.context.get_state(positions=True, velocities=True)
    what = {
        "step": lambda s: s.step(3),
        "load_checkpoint": lambda s: s.load_checkpoint(tmp_path / "start"),
        "minimize_energy": lambda s: s.minimize_energy(),
        "set_state": lambda s: s.context.set_state(start),
    }[name]
    calls = Calls(what)
    simulation.reporters.append(calls)
    simulation.step(30)
    reference.step(30)
    assert simulation.current_step == 30
    assert [text.split()[0] for text in calls.refused] == [name] * 3
    assert (state_of(simulation.context) == state_of(reference.context)).all()
    # Between two calls all of it is allowed.
    what(simulation)


def test_a_reporter_may_look_and_change_numbers():
    def look_and_set(simulation):
        assert simulation.context.get_state(energy=True).step == simulation.current_step
        simulation.context.snapshot(positions=True)
        simulation.system["before0"].set(stiffness=1.0 + simulation.current_step)

    simulation, calls, reference = beads_with(), Calls(look_and_set), beads_with()
    simulation.reporters.append(calls)
    simulation.step(20)
    reference.step(10)
    reference.system["before0"].set(stiffness=11.0)
    reference.step(10)
    assert calls.refused == []
    assert (state_of(simulation.context) == state_of(reference.context)).all()


# From other threads --------------------------------------------------------------------------------------------------


def large(threads=2):
    topology = mp.Topology()
    beads = topology.add_beads(np.random.default_rng(1).normal(0, 9, (1000, 3)), mass=1.0, friction=0.5)
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(20.0, 2), 1.0, 0.5)
    points = topology.add_intriangle_points(membrane, 200, mass=1.0, friction=0.3, seed=3)
    system = system_with(topology, mp.forces.MembraneEdgeSprings(membrane, 30.0),
                         mp.forces.SoftSphere(beads, beads, 5.0, 1.0),
                         mp.forces.SoftCollisions([membrane, points], 10.0, [0.5, 0.5]))  # fmt: skip
    return mp.Context(system, mp.BAGOGABIntegrator(0.005, kT=1.0, seed=7), threads=threads)


@pytest.mark.parametrize("what", ["get_state", "step", "set_velocities_to_temperature"])
def test_a_second_thread_is_refused_and_changes_nothing(what):
    context, reference = large(), large()
    call = {
        "get_state": lambda: context.get_state(positions=True, energy=True, forces=True),
        "step": lambda: context.step(100),
        "set_velocities_to_temperature": lambda: context.set_velocities_to_temperature(kT=1.0),
    }[what]
    refused, done = [], threading.Event()

    def other():
        while not done.is_set():
            if context.turn._running:  # else it may well be its turn
                try:
                    call()
                except mp.ContextInUseError as error:
                    refused.append(str(error))
            time.sleep(1e-3)

    thread = threading.Thread(target=other)
    thread.start()
    try:
        context.step(400)
    finally:
        done.set()
        thread.join()
    reference.step(context.step_count)
    assert refused
    assert all(f"{what}: another thread is inside step" in text for text in refused)
    assert context.step_count == 400
    assert (state_of(context) == state_of(reference)).all()


def test_snapshots_from_another_thread_are_states_between_two_steps():
    context, reference = large(), large()
    seen, done = [], threading.Event()

    def other():
        while not done.is_set():
            seen.append(context.snapshot(positions=True, velocities=True, energy=True))

    thread = threading.Thread(target=other)
    thread.start()
    try:
        for n in (150, 1, 149, 300):
            context.step(n)
    finally:
        done.set()
        thread.join()
    assert len({state.step for state in seen}) > 5
    for state in seen[:: max(1, len(seen) // 20)]:
        if state.step < reference.step_count:
            continue
        reference.step(state.step - reference.step_count)
        same = reference.get_state(positions=True, velocities=True, energy=True)
        assert (state.positions == same.positions).all()
        assert (state.velocities == same.velocities).all()
        assert state.potential_energy == same.potential_energy
    reference.step(600 - reference.step_count)
    assert (state_of(context) == state_of(reference)).all()


def test_a_snapshot_of_an_idle_context_is_a_state_and_errors_reach_who_asked():
    context = large(1)
    assert (context.snapshot(positions=True).positions == context.get_state(positions=True).positions).all()
    refuses(TypeError, "colour", context.snapshot, colour=True)


def test_a_context_goes_from_thread_to_thread():
    context, reference = large(1), large(1)
    for _ in range(3):
        thread = threading.Thread(target=context.step, args=(20,))
        thread.start()
        thread.join()
    reference.step(60)
    assert (state_of(context) == state_of(reference)).all()


# Interrupts inside functions ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("replay", [True, False])
def test_an_interrupt_in_a_python_force_leaves_the_state_of_a_step(replay):
    calls = [0]

    def interrupt(context, _):
        calls[0] += 1
        if calls[0] == 1000:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):
                pass

    simulation, reference = beads_with(interrupt, "BAOAB", replay=replay), beads_with(word="BAOAB")
    with pytest.raises(KeyboardInterrupt):
        simulation.step(2000)
    at = simulation.current_step
    assert at < 2000
    reference.step(at)
    assert (state_of(simulation.context) == state_of(reference.context)).all()
    simulation.step(2000 - at)
    reference.step(2000 - at)
    assert (state_of(simulation.context) == state_of(reference.context)).all()


# Recovery -----------------------------------------------------------------------------------------------------------


@pytest.mark.unstable
@pytest.mark.parametrize("epsilon", [5e-3, 1e-4])
def test_a_run_that_blew_up_is_back_at_the_step_that_failed_also_where_work_is_measured(epsilon):
    """Work is nan as soon as an energy has overflowed, which is long before numbers of the state do."""
    ends = []
    for work in (False, True):
        topology = mp.Topology()
        bead = topology.add_beads([[1.0, 0, 0]], mass=1.0)
        simulation = mp.Simulation(system_with(topology, mp.forces.HarmonicTrap(bead, 1.0, [0.0, 0, 0])),
                                   mp.VerletIntegrator(2.0 * (1.0 + epsilon)), threads=1)  # fmt: skip
        simulation.context.runaway = None
        simulation.report_work = work
        started = time.process_time()
        with pytest.raises(mp.SimulationError) as caught, np.errstate(all="ignore"):
            simulation.step(10**7)
        assert time.process_time() - started < 30.0
        ends.append((caught.value.step, simulation.current_step))
    assert ends[0] == ends[1]
    assert ends[0][0] - ends[0][1] <= 1


# Threads that there are not -------------------------------------------------------------------------------------------


def test_threads_that_the_machine_refuses_are_an_error_and_not_the_end():
    script = """
        import resource, numpy as np, medyanpy as mp
        topology = mp.Topology()
        topology.add_beads(np.zeros((2, 3)), mass=1.0)
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 300 * 2**20,) * 2)
        try:
            mp.Context(mp.System(topology), mp.VerletIntegrator(0.1), threads=1000)
        except mp.ParameterError as error:
            print(error)
        mp.Context(mp.System(topology), mp.VerletIntegrator(0.1), threads=2).step(3)
        print("on")
    """
    assert resource.getpagesize() > 0
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    said = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert said[0].startswith("threads = 1000, but the machine lets this process have ")
    assert said[1] == "on"
