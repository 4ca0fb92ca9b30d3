"""The frame: the import, a step of little work, contexts and checkpoints of 10^6 beads, processes side by side.

Run it from an installed package on a quiet machine:

    python tests/benchmarks/bench_frame.py [--quick] [--matrix] [--variants]
    python tests/benchmarks/bench_frame.py --build

Targets are those of the project, beside what was measured. ``--matrix`` times tests/test_bits.py, ``--variants`` runs
bench_points.py in every instruction-set variant that this processor has. ``--build`` measures nothing else than
``pip install .`` of the checkout in a fresh environment, downloads included: how long it takes, and how large what is
installed is. It needs Python and a C compiler, and neither medyanpy nor NumPy.
"""

import argparse
import contextlib
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

# What --build needs none of.
with contextlib.suppress(ModuleNotFoundError):
    import numpy as np
    from common import machine, median_ns, row, seconds, two_beads

    import medyanpy as mp
    from medyanpy._kernels import selected
    from medyanpy._tools.threads import available_threads

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


IMPORT = """
import time
start = time.process_time()
import numpy
between = time.process_time()
import medyanpy
print(between - start, time.process_time() - start)
"""


def importing():
    """In new processes. Processor time, since wall clock would measure the machine's other work."""
    command = [sys.executable, "-P", "-c", IMPORT]
    times = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(5)]
    of_numpy, whole = np.median(np.array(times, float), axis=0)
    row("import medyanpy, processor time", float(whole), 0.3, "s")
    print(f"{'':4s}(NumPy's part: {of_numpy:.2f} s)")


def chain(n):
    """A bond chain of n beads in random places."""
    topology = mp.Topology()
    x = np.random.default_rng(1).normal(0.0, 100.0, (n, 3))
    beads = topology.add_beads(x, mass=1.0, friction=0.1).beads
    system = mp.System(topology)
    system.add_force(mp.forces.HarmonicBonds(np.column_stack([beads[:-1], beads[1:]]), 1.0, 1.0))
    return system


def vesicle(n):
    """About n beads: two in three are vertices of a membrane, the others points in its triangles."""
    subdivisions = round(np.log2(n / 15.0) / 2.0)
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(500.0, subdivisions)
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=0.1)
    topology.add_intriangle_points(membrane, max(1, n - len(mesh.vertices)), mass=1.0, friction=0.1, seed=1)
    system = mp.System(topology)
    system.add_force(mp.forces.MembraneEdgeSprings(membrane, 1.0))
    return system


def fluid(n):
    """A dense fluid with neighbour lists."""
    side = int(np.ceil(n ** (1 / 3)))
    x = np.stack(np.unravel_index(np.random.default_rng(1).permutation(side**3)[:n], (side,) * 3), 1) * 1.06
    topology = mp.Topology()
    beads = topology.add_beads(x, mass=1.0, friction=0.1)
    system = mp.System(topology)
    system.add_force(mp.forces.WCA(beads, beads, 1.0, 1.0))
    return system


def large_systems(n):
    """Contexts and checkpoints."""
    for make in (chain, fluid, vesicle):
        described, system = seconds(lambda make=make: make(n))
        size = system.topology.n_beads

        def build(system=system):
            return mp.Simulation(system, mp.BAGOGABIntegrator(1e-6, kT=1.0), threads=1)

        took, simulation = seconds(build)
        row(f"context of {size} beads, {make.__name__}", took, 5.0, "s")
        again, other = seconds(build)
        first_step, _ = seconds(lambda s=simulation: s.step(1))
        rest = f"described in {described:.2f} s, a second context in {again:.2f} s, first step {first_step:.2f} s"
        print(f"{'':4s}({rest})")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "checkpoint"
            saved, _ = seconds(lambda s=simulation, p=path: s.save_checkpoint(p))
            row(f"checkpoint of {size} beads, {make.__name__}", saved, 1.0, "s")
            loaded, _ = seconds(lambda o=other, p=path: o.load_checkpoint(p))
            rest = f"{path.stat().st_size / size:.0f} B/bead, loaded in {loaded:.2f} s"
            if hasattr(mp.Simulation, "resume"):
                resumed, _ = seconds(lambda p=path: mp.Simulation.resume(p))
                rest += f", resumed from the file alone in {resumed:.2f} s"
            print(f"{'':4s}({rest})", flush=True)


SIDE_BY_SIDE = """
import sys, time
import numpy as np
import medyanpy as mp
topology = mp.Topology()
topology.add_beads(np.zeros((int(sys.argv[1]), 3)), mass=1.0, friction=1.0)
context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAOAB", 0.1, kT=1.0), threads=2)
context.step(2)
print("ready", flush=True)
sys.stdin.readline()
started = time.perf_counter()
context.step(int(sys.argv[2]))
print(time.perf_counter() - started)
"""


def side_by_side(processes, beads, steps):
    """Seconds of the slowest of some processes that run at once, each on two threads."""
    started = [
        subprocess.Popen(
            [sys.executable, "-P", "-c", SIDE_BY_SIDE, str(beads), str(steps)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(processes)
    ]
    for process in started:
        process.stdout.readline()
    for process in started:
        process.stdin.write("go\n")
        process.stdin.flush()
    return max(float(process.communicate()[0]) for process in started)


def processes_at_once(quick):
    """Twice the work on the same processors takes twice the time; spinning threads would take more."""
    if available_threads() < 2:
        return
    for beads, steps in ((20_000, 4000), (200_000, 400)):
        steps //= 10 if quick else 1
        # In turn, so that drifting clocks of a shared machine hit both alike.
        times = [[side_by_side(k, beads, steps) for k in (1, 2)] for _ in range(2 if quick else 5)]
        ratio = float(np.median([two / one for one, two in times]))
        row(f"two processes at once against one, {beads} beads", ratio, 2.5, "x")


def run(*command, **environment):
    """A command on this terminal; what it answers."""
    return subprocess.run(command, env={**os.environ, **environment}, cwd=ROOT, check=False).returncode


def matrix():
    """The test of equal bits."""
    tests = str(ROOT / "tests" / "test_bits.py")
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", tests]
    took, failed = seconds(lambda: run(*command))
    row("tests/test_bits.py" + " (FAILED)" * bool(failed), np.inf if failed else took, 180.0, "s")


def build():
    """From the checkout to the installed package. Returns the exit code of pip."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        # From nothing: neither pip nor the compiler may remember an earlier time.
        command = [f"{folder}/bin/python", "-m", "pip", "install", "--quiet", "--no-cache-dir", str(ROOT)]
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        failed = run(*command, CCACHE_DISABLE="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
        took, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
        if failed:
            return failed
        work = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        (package,) = Path(folder).glob("lib/python*/site-packages/medyanpy")
        size = sum(path.stat().st_size for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc") / 1e6
        variants = sorted(path.name for path in (package / "_kernels").iterdir() if any(path.glob("geodesic.*")))
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        print(f"{platform.platform()}, {cores} cores, Python {platform.python_version()}")
        for what, value, target, unit in (("pip install . in a fresh environment", took, 120.0, "s"),
                                          ("installed, without .pyc", size, 13.0, "MB")):  # fmt: skip
            met = "met" if value <= target else "NOT MET"
            print(f"{what:58s} {value:10.1f} {unit:8s} target <= {target:g}   {met}")
        print(f"{'':4s}({work:.0f} s of processor time; kernels for {', '.join(variants)})")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small numbers: does it run?")
    parser.add_argument("--matrix", action="store_true", help="time tests/test_bits.py as well")
    parser.add_argument("--variants", action="store_true", help="bench_points.py in every variant as well")
    parser.add_argument("--build", action="store_true", help="time pip install . in a fresh environment, and no more")
    chosen = parser.parse_args()
    if chosen.build:
        return build()
    if "mp" not in globals():
        parser.error("medyanpy is not installed here: 'pip install .' first, or measure that with --build")
    print(machine())
    importing()
    steps = 20_000 if chosen.quick else 1_000_000
    # Seven letters; G compiles to nothing here. Every O costs the random numbers of a bead, about 0.1 us however few
    # beads there are, so the word with two of them stands apart.
    for word in ("BAGOGAB", "B1 B0 A O A B0 B1", "BABOBAB", "BAOAOAB"):
        context = two_beads(word)
        step = median_ns(lambda c=context: c.step(steps), 7, steps) / 1e3
        row(f"seven letters on two beads, {word}", step, 0.3, "us/step")
    large_systems(20_000 if chosen.quick else 1_000_000)
    processes_at_once(chosen.quick)
    if chosen.matrix:
        matrix()
    if chosen.variants:
        for isa in selected.built:
            print(f"\n{isa}", flush=True)
            run(sys.executable, str(HERE / "bench_points.py"), *["--quick"] * chosen.quick, MEDYANPY_ISA=isa)
    return 0


if __name__ == "__main__":
    sys.exit(main())
