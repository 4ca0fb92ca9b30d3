"""A script as users write it, of random systems, which may be killed and is started again; and what it leaves."""

import os
import random
import re
import signal
import time
from pathlib import Path

import numpy as np
from builders import content, forked, system_with

import medyanpy as mp
from medyanpy.cli import main

WORDS = ("B A G O G A B", "O B A G A B O", "B G A O A G B", "B A G A B")


class Extent(mp.reporters.Reporter):
    """A reporter of somebody else, by the page on adding one: a line of the extent of some beads."""

    include = ("positions",)
    files = ("path",)
    goes_on = {"append": True, "overwrite": False}  # noqa: RUF012

    def __init__(self, path, interval, handle, *, overwrite=False, append=False):
        super().__init__(interval)
        self._handle, self._file, self._started = handle, open(path, "a+" if append else "w+"), False

    def describe_next_report(self, simulation):
        if not self._started:
            self._file.seek(0)
            end = 0
            for line in self._file.readlines():
                if not line.endswith("\n") or int(line.split()[0]) > simulation.current_step:
                    break
                end += len(line.encode())
            self._file.truncate(end)
            self._file.seek(end)
            self._started = True
        return super().describe_next_report(simulation)

    def report(self, simulation, state):
        self._file.write(f"{state.step} {float(np.ptp(state.positions[self._handle.beads]))!r}\n")

    def flush(self):
        if not self._file.closed:
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self):
        self.flush()
        self._file.close()


def build(seed):
    """A small system of several kinds of beads; with another seed another."""
    rng = random.Random(seed)
    topology, numbers = mp.Topology(), np.random.default_rng(seed)
    # With a vesicle there are points, and most of the time everything else.
    vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(10.0, rng.choice((0, 1))), 1.0, 0.5)
    topology.add_intriangle_points(vesicle, rng.randint(1, 12), mass=1.0, friction=0.2, seed=seed)
    if rng.random() < 0.7:
        n = rng.randint(3, 8)
        topology.add_filament(np.column_stack([30.0 + np.arange(n), np.zeros((n, 2))]), node_mass=1.0,
                              node_friction=0.5)  # fmt: skip
    if rng.random() < 0.7:
        n = rng.randint(1, 4)
        axes = [[1.0, 0, 0, 0]] * n
        topology.add_rigid_bodies(40.0 + numbers.normal(size=(n, 3)), axes, 1.0, (1.0, 2.0, 2.5), friction=0.4)
    beads = topology.add_beads(60.0 + 5.0 * numbers.normal(size=(rng.randint(2, 9), 3)), mass=1.0, friction=0.3)
    system = system_with(topology, mp.forces.MembraneEdgeSprings(vesicle, 1.0),
                         mp.forces.HarmonicTrap(beads, 1.0, [60.0, 60.0, 60.0]))  # fmt: skip
    word = rng.choice(WORDS)
    integrator = mp.SplittingIntegrator(word, 2e-3, kT=1.0 if "O" in word else None, seed=seed)
    out = mp.Simulation(system, integrator, threads=1)
    out.context.set_velocities_to_temperature(kT=1.0, seed=seed + 1)
    return out


def start(folder, seed, save):
    """As in the page on restarts: no flags, so that nothing is ever lost."""
    rng = random.Random(-seed - 1)
    simulation = build(seed)
    table, trajectory = mp.reporters.StateDataReporter, mp.reporters.TrajectoryReporter
    wall = {"speed": True, "elapsed_time": True, "remaining_time": True, "progress": True, "total_steps": 1000}
    simulation.reporters += [
        trajectory(folder / "run.h5", rng.randint(1, 9), velocities=rng.random() < 0.7),
        table(folder / "all.csv", rng.randint(1, 9), step=True, time=True, total_energy=True, temperatures=True,
              work=True, area=True, volume=True, **wall),
        table(folder / "no-step.csv", rng.randint(1, 9), potential_energy=True, temperature=True, separator="\t"),
        Extent(folder / "extent.txt", rng.randint(1, 9), simulation.topology.handles[-1]),
        mp.reporters.CheckpointReporter(folder / "run.checkpoint", save),
    ]  # fmt: skip
    rng.shuffle(simulation.reporters)
    return simulation


def script(folder, seed, total, save=20):
    """The whole of it."""
    with mp.Simulation.resume(folder / "run.checkpoint", start=lambda: start(folder, seed, save), threads=1) as run:
        run.step(total - run.current_step, progress=False)
        run.save_checkpoint(folder / "end.checkpoint")


def command(folder, seed, total, save=20, *options):
    """The same by the command: `medyanpy run` of a script; anything but 0 ends the process as it would a shell's."""
    file = Path(folder).parent / f"run{seed}.py"
    here = os.path.dirname(os.path.abspath(__file__))
    file.write_text(
        f"import sys\nsys.path.append({here!r})\nfrom restart_runs import start\n\n\n"
        f"def make(directory):\n    return start(directory, {seed}, {save})\n"
    )
    words = ["run", str(file), "--dir", str(folder), "--until", str(total), "--threads", "1", *options]
    code = main(words)
    if code:
        os._exit(code)


def left(folder):
    """All that a run has left, but for what clocks on the wall have said and for locks of processes that are gone."""
    out = {}
    for path in sorted(Path(folder).iterdir()):
        if path.suffix == ".h5":
            out[path.name] = content(path)
        elif path.name == "all.csv":
            title, *lines = path.read_text().splitlines()
            titles = title.split(",")
            keep = [k for k, name in enumerate(titles) if not re.search("Speed|Elapsed|Remaining", name)]
            rows = [line.split(",") for line in lines]
            assert all(len(row) == len(titles) for row in rows)
            out[path.name] = title, [[row[k] for k in keep] for row in rows]
        elif not path.name.endswith(".lock"):
            out[path.name] = path.read_bytes()
    return out


def disturbed(rng, seconds, most, function, *arguments):
    """Run it, and kill it at random moments, up to some number of times, until it comes to its end; how often."""
    kills = 0
    while True:
        child = forked(function, *arguments)
        if kills < most:
            # Often at the very beginning, where files are made.
            time.sleep(rng.choice((0.1, 1.0)) * seconds * rng.random())
            number = rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
            os.kill(child, number)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code == 0:
            return kills
        assert code != 1, "the run ended with an exception"
        kills += 1


def compared(a, b):
    """Where two folders differ, in words."""
    a, b = left(a), left(b)
    out = [f"{name}: {'only there' if name in a else 'too much'}" for name in {*a} ^ {*b}]
    for name in sorted({*a} & {*b}):
        if a[name] != b[name]:
            detail = ""
            if isinstance(a[name], dict):
                detail = str([key for key in {*a[name]} | {*b[name]} if a[name].get(key) != b[name].get(key)])
            out.append(f"{name} differs {re.sub(r'[^ -~]', '', detail)[:300]}")
    return out
