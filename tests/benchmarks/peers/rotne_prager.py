"""The same Brownian step of balls here and with PyGRPY and NumPy: matrix, Cholesky factor, displacement.

    python tests/benchmarks/peers/rotne_prager.py [--quick]

PyGRPY (``pip install pygrpy``) is not needed by anything else; it makes the matrix, and NumPy the rest, as its authors'
Brownian dynamics do. One thread each: OPENBLAS_NUM_THREADS=1 is set here. Before times are taken both matrices are
compared.
"""

import argparse
import os
import sys
import time
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import pygrpy.grpy_tensors

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench_hydrodynamics import ETA, context_of, places, time_of
from common import machine

import medyanpy as mp


def theirs(x):
    """Their matrix has units in which a sphere of radius 1 has the mobility 1/6π."""
    return pygrpy.grpy_tensors.muTT(x, np.ones(len(x))).transpose(0, 2, 1, 3).reshape(3 * len(x), -1) / ETA


def step_of_theirs(x, rng):
    h = 1e-4
    m = theirs(x)
    force = -1e-6 * (x - x.mean(axis=0))
    return x + (h * m @ force.ravel() + np.sqrt(2 * h) * np.linalg.cholesky(m) @ rng.normal(size=x.size)).reshape(-1, 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="fewer spheres, to see that it runs")
    numbers = (1, 10, 100) if parser.parse_args().quick else (1, 10, 100, 300, 1000)
    print(machine())
    x = places(20)
    ours = mp.hydrodynamics.mobility_matrix(x, 1.0, ETA)
    print(f"largest difference of the matrices of 20 balls: {abs(ours - theirs(x)).max() / abs(ours).max():.1e}")
    rng = np.random.default_rng(1)
    for n in numbers:
        took, _ = time_of(context_of(n, "D", turning=False), 0.1)
        x, repeats = places(n), []
        for _ in range(3 if n >= 300 else 7):
            started = time.perf_counter()
            step_of_theirs(x, rng)
            repeats.append(time.perf_counter() - started)
        other = float(np.median(repeats))
        times = f"{1e6 * took:12.1f} us here, {1e6 * other:14.1f} us there, {other / took:8.0f} times"
        print(f"{n:6d} balls: {times}", flush=True)


if __name__ == "__main__":
    main()
