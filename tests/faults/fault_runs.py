"""A run that is easily compared with one that nothing happened to, and such a run in another process."""

import os
import signal
import subprocess
import sys
import textwrap

import numpy as np

import medyanpy as mp
from medyanpy.files.trajectory import Trajectory


def make(path=None, n=2, **options):
    """Beads in a trap, and a frame of them at every step."""
    topology = mp.Topology()
    beads = topology.add_beads(np.random.default_rng(n).normal(0.0, 9.0, (n, 3)), mass=1.0)
    system = mp.System(topology)
    system.add_force(mp.forces.HarmonicTrap(beads, 1.0, [0.0, 0, 0]))
    simulation = mp.Simulation(system, mp.VerletIntegrator(0.1), threads=1)
    if path is not None:
        simulation.reporters.append(mp.reporters.TrajectoryReporter(path, 1, **options))
    return simulation


def frames(path):
    """Steps of a trajectory; all frames are compared with those of a run that nothing happened to."""
    with Trajectory(path) as trajectory:
        simulation = make(n=trajectory.n_beads)
        for frame in trajectory:
            simulation.step(frame.step - simulation.current_step)
            assert (frame.positions == simulation.context.get_state(positions=True).positions).all()
        return trajectory.steps.tolist()


FOLDERS = [os.path.dirname(__file__), os.path.dirname(os.path.dirname(__file__))]
PROGRAM = """
    import sys
    sys.path[:0] = {folders!r}
    import os, pathlib, signal
    from fault_runs import make
    import medyanpy as mp
    path = pathlib.Path({path!r})
"""


def run(program, path):
    """Run a program in another process; returns its exit code and what it printed."""
    head = textwrap.dedent(PROGRAM).format(folders=FOLDERS, path=str(path))
    done = subprocess.run([sys.executable, "-c", head + textwrap.dedent(program)], capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode, done.stdout


def rows(path):
    """Steps of a table."""
    return [int(line.split(",")[0]) for line in path.read_text().splitlines()[1:]]
