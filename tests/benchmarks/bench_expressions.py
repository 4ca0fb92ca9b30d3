"""Energies written as text: time of energy and forces of many beads, by field and by function, and of bonds.

Run it from an installed package on a quiet machine:

    python tests/benchmarks/bench_expressions.py [--quick]

Shortest of repeated evaluations (others on the machine only add), on one thread, states copied and all. The bound of
the field as a whole is the project's, 25 ms for 200 000 beads; SymPy with NumPy took 20 ms, numexpr 45 ms, and numba
10 ms after 0.8 s of compiling. Functions are set beside the time of a field without any.
"""

import argparse
import re

import numpy as np
from common import machine, row, seconds

import medyanpy as mp

BEADS, BOUND = 200_000, 25.0
FIELDS = {
    "cosine, exponential, root and logarithm": "depth*cos(k*x)*exp(-y^2/9)/sqrt(1 + log(2 + z^2))",
    "Morse potential of an angle": "depth*(exp(-k*(1 - cos(x) - 0.3)) - 1)^2",
    "harmonic": "depth*k/2*(x^2 + y^2 + z^2)",
}
FUNCTIONS = ("exp(x)", "sin(x)", "tan(x)", "asin(x/9)", "atan(x)", "atan2(y, x)", "tanh(x)", "sinh(x)", "asinh(x)",
             "erf(x)", "erfc(x)", "x^1.5", "x^0.3", "x^y", "abs(x)", "min(x, y)", "step(x)*x",
             "select(step(x - 1), x, y)", "floor(x)*x")  # fmt: skip
BONDS = {"harmonic": "k*(r - 1)^2", "Morse": "depth*(1 - exp(-k*(r - 1)))^2", "power": "k*r^2.7"}


def of_state(x, make, repeats):
    """Milliseconds of a state with energy and forces."""
    topology = mp.Topology()
    beads = topology.add_beads(x, mass=1.0)
    system = mp.System(topology)
    system.add_force(make(beads))
    context = mp.Context(system, mp.VerletIntegrator(1e-9), threads=1)

    def look():
        return context.get_state(energy=True, forces=True)

    times = []
    for _ in range(repeats):
        context.set_positions(x)
        times.append(seconds(look)[0])
    return 1e3 * min(times)


def main(quick):
    n, repeats = (2000, 2) if quick else (BEADS, 25)
    x = np.random.default_rng(0).uniform(0.1, 2.0, (n, 3))

    def those_of(text):
        return {p: v for p, v in {"depth": 1.5, "k": 2.0}.items() if re.search(rf"\b{p}\b", text)}

    def field(text):
        return lambda beads: mp.forces.ExternalField(beads, text, **those_of(text))

    met = True
    print(machine())
    for name, text in FIELDS.items():
        met &= row(f"{name}, {n} beads", of_state(x, field(text), repeats), BOUND, "ms")
    plain = of_state(x, field("x"), repeats)
    for text in FUNCTIONS:
        spent = 1e6 * (of_state(x, field(text), max(2, repeats // 3)) - plain) / n
        print(f"{text:58s} {spent:10.2f} ns per bead with its gradient, beside {1e6 * plain / n:.1f}", flush=True)
    pairs = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    harmonic = of_state(x, lambda _: mp.forces.HarmonicBonds(pairs, 2.0, 1.0), repeats)
    for name, text in BONDS.items():
        named = those_of(text)
        spent = of_state(x, lambda _, t=text, p=named: mp.forces.CustomBonds(pairs, t, **p), repeats)
        print(f"bonds, {name:51s} {spent:10.2f} ms, beside {harmonic:.2f} of HarmonicBonds", flush=True)
    return met


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    if not main(arguments.quick) and not arguments.quick:
        raise SystemExit(1)
