"""What happens around the time loop: signals, forks, threads, large numbers of steps."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy._tools import threads as thread_choice


def chain(n=200):
    topology = mp.Topology()
    beads = topology.add_beads(np.column_stack([np.arange(n), np.zeros((n, 2))]), mass=1.0, friction=0.1)
    system = mp.System(topology)
    system.add_force(mp.forces.HarmonicBonds(np.column_stack([beads.beads[:-1], beads.beads[1:]]), 1.0, 1.0))
    return mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 0.05, kT=1.0, seed=2), threads=1)


def test_control_c_comes_between_two_steps_and_leaves_a_usable_simulation():
    simulation, reference = chain(), chain()
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    previous = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    started = time.perf_counter()
    try:
        with pytest.raises(KeyboardInterrupt):
            simulation.step(10**9)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)
    # 50 ms is the promise; the rest is for a machine that is busy with other things.
    assert time.perf_counter() - started < 5.0
    done = simulation.current_step
    assert done > 0
    simulation.step(10)
    reference.step(done + 10)
    a, b = (s.context.get_state(positions=True, velocities=True) for s in (simulation, reference))
    assert (a.positions == b.positions).all()
    assert (a.velocities == b.velocities).all()


FORK = """
    import os, sys, warnings
    import numpy as np
    import medyanpy as mp
    topology = mp.Topology()
    topology.add_beads(np.zeros((20000, 3)), mass=1.0, friction=1.0)
    simulation = mp.Simulation(mp.System(topology), mp.SplittingIntegrator("BAOAB", 0.1, kT=1.0), threads=2)
    simulation.step(2)
    child = os.fork()
    if child == 0:
        simulation.step(2)
        os._exit(0 if simulation.current_step == 4 else 3)
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_runs_on_one_thread_with_a_warning_instead_of_hanging():
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(FORK)], capture_output=True, text=True, timeout=60,
                          check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "runs on one thread in this process: it was forked" in done.stderr


SHARE = """
    import os, resource, sys
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    import numpy as np
    import medyanpy as mp
    topology = mp.Topology()
    topology.add_beads(np.zeros((300_000, 3)), mass=1.0, friction=1.0)
    integrator = mp.SplittingIntegrator("BAOAB", 0.1, kT=1.0)
    context = mp.Context(mp.System(topology), integrator, threads=int(sys.argv[1]))
    context.step(2)
    print("ready", flush=True)
    sys.stdin.readline()
    before = resource.getrusage(resource.RUSAGE_SELF)
    context.step(25)
    after = resource.getrusage(resource.RUSAGE_SELF)
    print(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
"""


def seconds_of_processor(threads, **environment):
    """Processor time of two processes at once, each on so many threads, for the same piece of work."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", textwrap.dedent(SHARE), str(threads)],
                    env={**clean, **environment},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(2)
        ]
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        return sum(float(process.communicate(timeout=300)[0]) for process in processes)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
                    reason="needs two processors")  # fmt: skip
def test_two_processes_on_two_cores_do_not_burn_each_others_time():
    """Four threads on two processors: whoever waits for a thread that has none must sleep, not spin.

    Processor time, unlike that of the clock, does not depend on what else the machine does. On one thread each
    nobody waits, so that is the work. With threads that sleep after some 0.1 ms it is 1.2 times as much at most; with
    threads that spin for their whole time slice it is 7 times as much, and the two runs take that much longer.
    """
    work = seconds_of_processor(1)
    assert seconds_of_processor(2) < 2.0 * work
    # The measure does see it, unless the scheduler happens to run the two threads of a process at the same times.
    spinning = {"OMP_WAIT_POLICY": "active", "GOMP_SPINCOUNT": "infinite"}
    assert any(seconds_of_processor(2, **spinning) > 2.0 * work for _ in range(10))


def test_threads_are_chosen_in_one_place(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    monkeypatch.setattr(thread_choice, "_cgroup_quota", lambda: 4.5)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert thread_choice.available_threads() == 4
    monkeypatch.setenv("OMP_NUM_THREADS", "3,2")
    assert thread_choice.available_threads() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert thread_choice.available_threads() == 4
    assert thread_choice.choose_threads(7) == 7
    for bad in (0, -1, 1.5, "two"):
        refuses(mp.ParameterError, "threads = ", thread_choice.choose_threads, bad)


def test_a_long_run_takes_the_steps_it_was_asked_for():
    simulation = chain(2)
    simulation.step(123_457)
    assert simulation.current_step == 123_457
    assert simulation.context.time == pytest.approx(123_457 * 0.05)
