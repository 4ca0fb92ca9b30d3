"""Linearly implicit kicks of nets: conjugate gradients, beside explicit steps and beside a sparse library.

Run it from an installed package on a quiet machine:

    python tests/benchmarks/bench_nets.py [--quick]

Nets of springs of stiffness 1e4 between beads of mass 1, with bonds 1 % off their lengths: triangular sheets that are
not flat, and blocks of tetrahedra. Explicit kicks are stable up to the timestep that the largest eigenvalue tells; a
kick with h at 10 and 100 times that is timed, least of some repeats, with the products with the matrix that it takes,
by tolerance and threads. SciPy's sparse LU factorisation of the same equations, with the order and pivots that suit
them best, is timed beside it up to 10 000 beads. Targets are those of the project, beside what was measured: a kick
costs no more than the library's, and no more explicit steps than the timestep gains.
"""

import argparse
import warnings

import numpy as np
from common import machine, row, seconds
from scipy import sparse
from scipy.sparse import linalg

import medyanpy as mp

STIFFNESS, BETA = 1e4, 0.35


def sheet(n):
    """Places and pairs of about n beads."""
    side = round(np.sqrt(n))
    i, j = (a.ravel() for a in np.meshgrid(np.arange(side), np.arange(side), indexing="ij"))
    x, y = i + 0.5 * j, 0.5 * np.sqrt(3.0) * j
    return np.column_stack([x, y, 0.4 * np.sin(0.3 * x) * np.cos(0.2 * y)]), pairs(
        np.column_stack([i, j]), side, [(1, 0), (0, 1), (-1, 1)]
    )


def block(n):
    side = round(n ** (1.0 / 3.0))
    places = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    ways = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (0, 1, 1), (1, 0, 1), (1, 1, 1)]
    return places.astype(float), pairs(places, side, ways)


def pairs(places, side, ways):
    """Of cells that differ by one of the ways."""
    power = side ** np.arange(places.shape[1])[::-1]
    found = []
    for way in ways:
        other = places + way
        inside = np.all((other >= 0) & (other < side), axis=1)
        found.append(np.column_stack([places[inside] @ power, other[inside] @ power]))
    return np.concatenate(found)


def context_of(x, links, kick, timestep, threads):
    topology = mp.Topology()
    topology.add_beads(x, mass=1.0, friction=1.0)
    system = mp.System(topology)
    length = np.linalg.norm(x[links[:, 0]] - x[links[:, 1]], axis=1)
    system.add_force(mp.forces.HarmonicBonds(links, STIFFNESS, length))
    context = mp.Context(system, mp.SplittingIntegrator("BAB", timestep, kick=kick), threads=threads)
    context.set_positions(x + np.random.default_rng(1).normal(0.0, 0.005, x.shape))
    return context


def per_step(context, repeats, steps):
    """ms, the least of some repeats; the first step has the solution of the start in it."""
    context.step(1)
    return 1e3 * min(seconds(lambda: context.step(steps))[0] for _ in range(repeats)) / steps


def library(context, h):
    """ms of one factorisation and solution by SciPy."""
    stiffness = context.hessian(positive=True).tocsc()
    matrix = (sparse.eye_array(stiffness.shape[0]) + BETA * h * h * stiffness).tocsc()
    force = context.get_state(forces=True).forces.ravel()
    options = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    return 1e3 * seconds(lambda: linalg.splu(matrix, **options).solve(force))[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="small nets, to see that it runs")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore", mp.TimestepWarning)
    repeats = 1 if quick else 3
    print(machine())
    for kind, make in (("sheet", sheet), ("block", block)):
        for size in (1000,) if quick else (1000, 10_000, 100_000):
            x, links = make(size)
            n = len(x)
            plain = context_of(x, links, None, 1e-5, 1)
            top = linalg.eigsh(plain.hessian(positive=True).tocsc(), 1, tol=1e-3, return_eigenvectors=False)[0]
            limit = 2.0 / np.sqrt(top)
            explicit = {t: per_step(context_of(x, links, None, 0.1 * limit, t), repeats, 20) for t in (1, 2)}
            print(f"{kind} of {n}: an explicit step {explicit[1]:.3g} ms on one thread, {explicit[2]:.3g} ms on two")
            for gain in (10, 100):
                beside = library(plain, gain * limit) if n < 20_000 and not (kind == "block" and n > 2000) else None
                for tolerance in (1e-6, 1e-10):
                    for threads in (1, 2):
                        kick = mp.kicks.ZhangSkeelSimplified(BETA, True, tolerance=tolerance)
                        context = context_of(x, links, kick, gain * limit, threads)
                        time = per_step(context, repeats, max(1, 3000 // n))
                        what = f"{kind} of {n}, {gain} times, tolerance {tolerance:g}, threads {threads}"
                        print(f"{what}: {context._schedule.kicks()[1].products} products")
                        row("  explicit steps that it costs", time / explicit[threads], gain, "steps")
                        if beside is not None:
                            row("  a step", time, beside, "ms")


if __name__ == "__main__":
    main()
