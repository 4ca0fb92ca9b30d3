"""Functions that tests send to worker processes, and what is compared afterwards."""

import os
import random
import signal
import threading
import time

import numpy as np
from restart_runs import compared

import medyanpy as mp

STIFFNESSES = [{"stiffness": 1.0}, {"stiffness": 2.0}]
STEPS = 6000


def make(seed, stiffness, directory=None):
    """A small vesicle with points, and files of it."""
    topology = mp.Topology()
    vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(10.0, 1), vertex_mass=1.0, vertex_friction=0.5)
    topology.add_intriangle_points(vesicle, 10, mass=1.0, friction=0.2, seed=1)
    system = mp.System(topology)
    system.add_force(mp.forces.MembraneEdgeSprings(vesicle, stiffness, name="springs"))
    # Without it triangles become needles after some 10⁴ steps.
    system.add_force(mp.forces.MembraneBending(vesicle, 20.0))
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(2e-3, kT=1.0, seed=seed))
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=seed)
    if directory is not None:
        simulation.reporters += [
            mp.reporters.TrajectoryReporter(directory / "run.h5", 500),
            mp.reporters.StateDataReporter(directory / "run.csv", 500, step=True, total_energy=True),
            mp.reporters.CheckpointReporter(directory / "run.checkpoint", 500),
        ]
    return simulation


def document():
    """Of the vesicle, with another seed."""
    simulation = make(99, 1.0)
    return mp.serialize((simulation.system, simulation.integrator))


def analyse(simulation):
    state = simulation.context.get_state(energy=True, positions=True)
    return {"energy": state.total_energy, "first": state.positions[0], "threads": simulation.context.threads}


def others_go_on(seed, kind):
    """Some replicas raise, each in its own way."""
    if kind == "while it is made":
        raise KeyError("no such mesh")
    simulation = make(seed, 1.0)
    if kind == "runs away":
        simulation.context.set_velocities(np.full((52, 3), 1e9))
    if kind == "leaves":
        raise SystemExit(3)
    return simulation if kind != "no simulation" else 7


def says_no(simulation):
    raise ValueError(f"not at step {simulation.current_step}")


def unfit(simulation):
    return {"simulation": simulation}


def kills_its_worker(seed, deadly):
    """As a worker that runs out of memory, each time."""
    if deadly:
        os.kill(os.getpid(), signal.SIGKILL)
    return make(seed, 1.0)


def bead(seed, n=1):
    """The least that runs."""
    topology = mp.Topology()
    topology.add_beads(np.zeros((n, 3)), mass=1.0, friction=1.0)
    return mp.Simulation(mp.System(topology), mp.SplittingIntegrator("BAOAB", 0.01, kT=1.0, seed=seed))


def lone_vesicle(seed):
    """No checkpoints but those that others save."""
    return make(seed, 1.0)


def same(one, other):
    """Tables are the same, to the bit."""
    assert one.columns == other.columns
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        for name in one.columns:
            assert np.array_equal(a[name], b[name]), (name, a, b)


def same_folders(one, other):
    """What replicas have left is the same, to the bit."""
    for a, b in zip(one.directories, other.directories, strict=True):
        assert a.name == b.name
        names = {path.name for path in a.iterdir()}
        assert {"run.h5", "run.csv", "run.checkpoint", "done.json", "params.json"} <= names
        found = compared(a, b)
        assert not found, found


class Killer:
    """Kills processes of a list at random moments, until the block ends or it has killed as many as it may."""

    def __init__(self, processes, most, seed, pause=0.3):
        self._processes, self._most, self._pause = processes, most, pause
        self._rng, self._ended = random.Random(seed), threading.Event()
        self.killed = 0
        self._thread = threading.Thread(target=self._kill)

    def _kill(self):
        while self.killed < self._most and not self._ended.wait(self._pause * (0.5 + self._rng.random())):
            found = self._processes()
            if found:
                os.kill(self._rng.choice(found), signal.SIGKILL)
                self.killed += 1

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._ended.set()
        self._thread.join()


def gone(process, seconds=30.0):
    """Whether a process ends, or has ended."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        try:
            with open(f"/proc/{process}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


# Replica exchange -----------------------------------------------------------------------------------------------------


def trapped(seed, n=5, word="BAOAB", directory=None):
    """Beads in a harmonic trap, 3 n degrees of freedom, which forget where they were within some tens of steps."""
    topology = mp.Topology()
    beads = topology.add_beads(np.zeros((n, 3)), mass=1.0, friction=2.0)
    system = mp.System(topology)
    system.add_force(mp.forces.HarmonicTrap(beads, 1.0, [0.0, 0, 0], name="trap"))
    simulation = mp.Simulation(system, mp.SplittingIntegrator(word, 0.5, kT=1.0, seed=seed))
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=seed)
    if directory is not None:
        simulation.reporters += [
            mp.reporters.StateDataReporter(directory / "run.csv", 50, step=True, total_energy=True),
            mp.reporters.CheckpointReporter(directory / "run.checkpoint", 70),
        ]
    return simulation


def linked(seed, directory=None):
    """Springs that are exchanged beside a trap that is not, with the account of work."""
    simulation = trapped(seed, directory=directory)
    beads = simulation.topology.handles[0].beads
    system = mp.System(simulation.topology)
    system.add_force(mp.forces.HarmonicBonds(np.column_stack([beads[:-1], beads[1:]]), 1.0, 1.0, name="springs"))
    system.add_force(mp.forces.HarmonicTrap(simulation.topology.handles[0], 1.0, [0.0, 0, 0], name="trap"))
    out = mp.Simulation(system, mp.BAGOGABIntegrator(0.2, kT=1.0, seed=seed))
    out.context.set_velocities_to_temperature(kT=1.0, seed=seed)
    out.report_work = True
    out.reporters, simulation.reporters = simulation.reporters, []
    return out


def kinetic(simulation):
    state = simulation.context.get_state(energy=True)
    return [state.kinetic_energy, state.protocol_work if simulation.report_work else 0.0]


def fails_later(seed):
    """A walker that cannot go on."""
    simulation = trapped(seed)
    if seed == mp.ensemble.seed_of(0, 0, 1):
        simulation.context.set_positions(np.full((5, 3), 1e200))
    return simulation


def always_killed(seed):
    return kills_its_worker(seed, True)
