"""Analyses: mean-square displacements, pair correlations, clusters and contacts of many beads.

Run it from an installed package on a quiet machine:

    python tests/benchmarks/bench_analysis.py [--quick]

Medians over repeats. Targets are those of the project, beside what was measured.
"""

import argparse

import numpy as np
from common import machine, median_ns, memory, row

from medyanpy import analysis


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers: does it run?")
    quick = parser.parse_args().quick
    n, m, repeats = (300, 100, 1) if quick else (10_000, 1000, 3)
    print(machine(), "\n")
    rng = np.random.default_rng(1)
    x = rng.normal(size=(m, n, 3))
    # In place: memory is told beside it.
    np.cumsum(x, axis=0, out=x)
    before = memory("VmHWM")
    each = median_ns(lambda: analysis.mean_square_displacement(x, interval=1.0, lags=range(m)), repeats, 1)
    row(f"all {m} lags of {n} beads", 1e-9 * each, 5.0, "s")
    row("    memory beside the positions", (memory("VmHWM") - before) / 2**20, 1024.0, "MiB")
    gone = x.copy()
    gone[rng.random((m, n)) < 0.1] = np.nan
    each = median_ns(lambda: analysis.mean_square_displacement(gone, interval=1.0, lags=range(m)), repeats, 1)
    row("    that are not always there", 1e-9 * each, 15.0, "s")
    each = median_ns(lambda: analysis.mean_square_displacement(x[:, :1], interval=1.0), repeats, 1)
    row("    of one bead", 1e-6 * each, 100.0, "ms")
    places = rng.uniform(0.0, 100.0, (n, 3))
    side, cutoff = 100.0, 3.0
    each = median_ns(lambda: analysis.radial_distribution(places, r_max=15.0, bins=100, volume=side**3), repeats, 1)
    row(f"g of {n} beads, 140 in reach of each", 1e-9 * each, 2.0, "s")
    each = median_ns(lambda: analysis.clusters(places, cutoff=cutoff), repeats, 1)
    row("their clusters", 1e-6 * each, 100.0, "ms")
    each = median_ns(lambda: analysis.contact_counts(places, cutoff=cutoff), repeats, 1)
    row("their contacts", 1e-6 * each, 100.0, "ms")


if __name__ == "__main__":
    main()
