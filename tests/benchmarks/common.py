"""What the benchmarks share: how they time, and how they print figures beside targets."""

import platform
import time

import numpy as np

import medyanpy as mp
from medyanpy._kernels import selected
from medyanpy._tools.threads import available_threads
from medyanpy.testing import thermal


def machine():
    """One line on where this runs."""
    processor = platform.processor() or platform.machine()
    return f"{platform.platform()}, {processor}, {available_threads()} threads offered, {selected.isa} kernels"


def seconds(work):
    """How long one call takes, and what it returns."""
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def median_ns(work, repeats, per):
    """Median of the time of a call, per item."""
    return 1e9 * float(np.median([seconds(work)[0] for _ in range(repeats)])) / per


def row(what, measured, target, unit, at_least=False):
    """Print a figure beside its target, and say whether it is met; without a target, None, the figure alone."""
    if target is None:
        print(f"{what:58s} {measured:10.2f} {unit:8s} no target", flush=True)
        return True
    met = measured >= target if at_least else measured <= target
    sign = ">=" if at_least else "<="
    print(f"{what:58s} {measured:10.2f} {unit:8s} target {sign} {target:g}   {'met' if met else 'NOT MET'}", flush=True)
    return met


def status(met, quick):
    """Exit status of a benchmark: 1 where a bound is missed. Figures of quick mode are no measurements: 0 there."""
    return int(not met and not quick)


def memory(field):
    """Bytes: VmRSS is what the process holds now, VmHWM the most it has held."""
    with open("/proc/self/status") as file:
        return 1024 * int(next(line for line in file if line.startswith(field)).split()[1])


def two_beads(word):
    """Two beads and a bond on one thread: the cost of a step where there is nothing to compute."""
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0], [1.1, 0, 0]], mass=1.0, friction=1.0)
    system = mp.System(topology)
    system.add_force(mp.forces.HarmonicBonds([[0, 1]], 1.0, 1.0))
    return mp.Context(system, mp.SplittingIntegrator(word, 0.01, kT=thermal(word, 1.0)), threads=1)
