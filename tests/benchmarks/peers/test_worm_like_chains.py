"""The chains of worm_like_chains.py have the same ends in OpenMM, here, and sampled directly.

Left out of the ordinary runs, like all benchmarks; skipped where OpenMM is not installed:

    pytest tests/benchmarks/peers
"""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).parent))
import worm_like_chains as peers

FALSE_ALARMS = 1e-6


@pytest.fixture(scope="module")
def squares():
    """R² of 300 chains of 12 beads that were straight at first, 100 and 130 ps later."""
    pytest.importorskip("openmm", reason="OpenMM is not installed")
    case = peers.Case(300, 12, 3.0, friction=0.2 / peers.PICOSECOND)
    out = {p.__name__: peers.end_to_end_squares(p, case, 500, 13)[[9, 12]] for p in (peers.Ours, peers.OpenMM)}
    return {**out, "exact": peers.exact_end_to_end_squares(case, 20_000)[None]}


@pytest.mark.parametrize(("a", "b"), [("Ours", "OpenMM"), ("Ours", "exact"), ("OpenMM", "exact")])
def test_same_end_to_end_distribution(a, b, squares):
    """Of independent chains: the distribution (Kolmogorov-Smirnov; a distance of 0.3 would be seen between programs,
    0.2 from the exact one) and the mean (Welch's t; 20 % would be seen); false alarms 1e-6 each."""
    x, y = squares[a][-1], squares[b][-1]
    assert stats.ks_2samp(x, y).pvalue > FALSE_ALARMS
    x, y = squares[a].mean(axis=0), squares[b].mean(axis=0)
    assert stats.ttest_ind(x, y, equal_var=False).pvalue > FALSE_ALARMS


def test_the_start_was_forgotten(squares):
    """Straight rods would not have passed."""
    straight = (11 * peers.LINK) ** 2
    assert all(np.median(r2) < 0.6 * straight for r2 in squares.values())
