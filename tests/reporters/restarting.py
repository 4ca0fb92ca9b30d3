"""Runs with every reporter, and what they leave."""

import numpy as np
from builders import system_with

import medyanpy as mp
from medyanpy.files.trajectory import Trajectory


def bare(seed=1):
    topology = mp.Topology()
    beads = topology.add_beads(np.random.default_rng(0).normal(size=(6, 3)), mass=1.0, friction=0.3, name="beads")
    system = system_with(topology, mp.forces.HarmonicTrap(beads, 1.0, [0.0, 0, 0]))
    return mp.Simulation(system, mp.BAGOGABIntegrator(0.01, kT=1.0, seed=seed), threads=1)


class Extent(mp.reporters.Reporter):
    """What others write by docs/add_a_reporter.md, with a handle among its arguments."""

    include = ("positions",)
    files = ("path",)
    goes_on = {"append": True}  # noqa: RUF012

    def __init__(self, path, interval, handle, *, append=False):
        super().__init__(interval)
        self.handle = handle
        self.file = open(path, "a+" if append else "x+")
        self.started = False

    def describe_next_report(self, simulation):
        if not self.started:
            self.file.seek(0)
            kept = [line for line in self.file.readlines() if int(line.split()[0]) <= simulation.current_step]
            self.file.truncate(0)
            self.file.writelines(kept)
            self.started = True
        return super().describe_next_report(simulation)

    def report(self, simulation, state):
        self.file.write(f"{state.step} {float(np.ptp(state.positions[self.handle.beads]))!r}\n")

    def flush(self):
        if not self.file.closed:
            self.file.flush()

    def close(self):
        self.file.close()


class Forgetful(mp.reporters.Reporter):
    """One that does not say how it goes on."""

    def report(self, simulation, state):
        pass


class Child(Extent):
    """A constructor of its own, and files of which `files` knows nothing."""

    def __init__(self, path, another, *, append=False):
        super().__init__(path, 1, None, append=append)


def make(folder, save="run.checkpoint", **options):
    folder.mkdir(exist_ok=True)
    simulation = bare()
    simulation.reporters += [
        mp.reporters.CheckpointReporter(folder / save, 10, **options),
        mp.reporters.StateDataReporter(folder / "steps.csv", 2, step=True, total_energy=True, work=True, **options),
        mp.reporters.StateDataReporter(folder / "plain.csv", 3, potential_energy=True, separator=" ; ", **options),
        mp.reporters.TrajectoryReporter(folder / "run.h5", 3, velocities=True, precision="single", **options),
        Extent(folder / "extent.txt", 4, simulation.topology["beads"]),
    ]
    return simulation


def left(folder):
    """All files, and frames."""
    out = {p.name: p.read_bytes() for p in folder.iterdir() if p.suffix != ".h5" and not p.name.endswith(".lock")}
    with Trajectory(folder / "run.h5") as trajectory:
        out["run.h5"] = [
            (f.step, f.time, f.positions.tobytes(), f.velocities.tobytes(), f.potential_energy, f.temperature)
            for f in trajectory
        ]
    return out


# Scripts that are started again ------------------------------------------------------------------------------------


def script(folder, total, save="run.checkpoint"):
    folder.mkdir(exist_ok=True)
    with mp.Simulation.resume(folder / save, start=lambda: make(folder, save), threads=1) as simulation:
        assert simulation.context.threads == 1
        first = simulation.current_step
        simulation.step(total - first)
    return first
