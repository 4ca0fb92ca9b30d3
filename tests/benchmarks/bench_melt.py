"""LAMMPS' melt: 20 000 Lennard-Jones beads at the reduced density 0.8442, cutoff 2.5, beside LAMMPS itself.

Run by hand: ``python tests/benchmarks/bench_melt.py [--lammps PYTHON] [--open] [--quick]``. PYTHON is one that has
LAMMPS (see peers/lammps_melt.py); without it the melt is timed alone. Both programs start from one lattice with the
temperature 1.44, melt it, and take the same steps of 0.005 on one core, one after the other, a few times: the least of
each is compared, in time of the processor, as others may want it too. LAMMPS builds its lists every 20 steps,
as in its benchmark; lists here are built when a bead has moved by half the skin. ``--open`` is a drop in empty space,
for versions without periodic boxes. Then both at once, by turns: what a listed pair costs in a box and without one.

Bounds: no slower than plain lj/cut in the same run; a listed pair in a box at most 5 % dearer than in open space.
"""

import argparse
import inspect
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from common import machine, row, status

import medyanpy as mp

DENSITY, CUTOFF, SKIN = 0.8442, 2.5, 0.4
TIMES = 3
# By turns, of half the steps each: as many lists are built in all.
TURNS = 8
DEARER = 1.05


def melt(side: int, steps: int, periodic: bool) -> mp.Context:
    """The lattice of 4 side³ beads, after as many steps."""
    edge = (4.0 / DENSITY) ** (1.0 / 3.0)
    cells = np.stack(np.unravel_index(np.arange(side**3), (side,) * 3), axis=1)
    basis = np.array([[0.0, 0, 0], [0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]])
    topology = mp.Topology()
    beads = topology.add_beads(edge * (cells[:, None] + basis).reshape(-1, 3), mass=1.0)
    system = mp.System(topology, **({"box": (side * edge,) * 3} if periodic else {}))
    system.add_force(mp.forces.LennardJones(beads, beads, 1.0, 1.0, cutoff=CUTOFF, skin=SKIN))
    context = mp.Context(system, mp.VerletIntegrator(0.005), threads=1)
    context.set_velocities_to_temperature(kT=1.44, seed=1)
    context.step(steps)
    return context


def in_a_box_and_without(side: int, steps: int) -> float:
    """How much dearer a listed pair is in a box than in a drop: the ratio of the least of many turns."""
    both = [melt(side, steps, periodic) for periodic in (True, False)]
    least = [np.inf, np.inf]
    for _ in range(TURNS):
        for i, context in enumerate(both):
            neighbors = context._schedule.bound_forces["LennardJones"].neighbors
            started = time.process_time()
            context.step(steps)
            least[i] = min(least[i], (time.process_time() - started) / neighbors.entries)
    return least[0] / least[1]


def main() -> int:
    """Print all figures; status 1 if one misses its bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lammps", help="a Python that has LAMMPS")
    parser.add_argument("--open", action="store_true", help="a drop in empty space")
    parser.add_argument("--quick", action="store_true", help="few beads: does it run?")
    chosen = parser.parse_args()
    periodic = not chosen.open and "box" in inspect.signature(mp.System).parameters
    side, steps = (6, 20) if chosen.quick else (17, 200)
    n = 4 * side**3
    print(machine())
    print(f"{n} beads, {'a periodic box' if periodic else 'a drop in empty space'}")
    context = melt(side, steps, periodic)
    neighbors = context._schedule.bound_forces["LennardJones"].neighbors
    builds, follows = neighbors.builds, neighbors.follows
    ours, theirs = [], []
    for _ in range(TIMES):
        started = time.process_time()
        context.step(steps)
        ours.append(1e9 * (time.process_time() - started) / steps / n)
        if chosen.lammps:
            there = [str(Path(__file__).parent / "peers" / "lammps_melt.py"), str(side), str(steps)]
            where = "periodic" if periodic else "open"
            found = subprocess.run([chosen.lammps, *there, where], check=True, capture_output=True, text=True)
            theirs.append(float(found.stdout.split()[-1]))
    every = (neighbors.follows - follows) / max(1, neighbors.builds - builds)
    print(f"lists of {neighbors.entries / n:.1f} neighbours, built every {every:.1f} steps")
    target = min(theirs, default=None)
    met = row("a step of the melt, beside LAMMPS' lj/cut", min(ours), target, "ns")
    if periodic:
        met &= row("a listed pair in a box, beside open space", in_a_box_and_without(side, steps // 2), DEARER, "times")
    return status(met, chosen.quick)


if __name__ == "__main__":
    sys.exit(main())
