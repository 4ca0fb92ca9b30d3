"""What corrections at a crossing keep, and what they do not: docs/theory/geodesic.md, "Cancelling kinks"."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import kinks

KINKS = [(0.4, -0.4), (-0.4, 0.4), (1.0, 0.3)]


def errors(name, h, a):
    """Of the shadow energy, of steps that cross, and which of 20 000 starts do."""
    s, p = kinks.starts(20_000)
    t, q = kinks.STEPS[name](s, p, h, a)
    crossed = (s < 0.0) != (t < 0.0)
    return (kinks.shadow(t, q, h, a) - kinks.shadow(s, p, h, a))[crossed], crossed


@pytest.mark.parametrize("a", KINKS)
def test_both_corrections_raise_the_order_of_the_error(a):
    """From 1 to 2 at least; to 3 with parabolas where the forces on both sides are opposite."""
    opposite = a[0] == -a[1]
    for name, lowest, highest in (("plain", 0.8, 1.2), ("impulse", 1.8, 9.0), ("ramp", 1.8 + opposite, 2.2 + opposite)):
        sizes = [np.sqrt(np.mean(errors(name, h, a)[0] ** 2)) for h in (0.2, 0.1, 0.05)]
        slopes = np.log2(np.divide(sizes[:-1], sizes[1:]))
        assert lowest < slopes.min() <= slopes.max() < highest, (name, slopes)


@pytest.mark.parametrize("a", KINKS)
def test_plain_steps_err_by_their_law(a):
    """ΔE = h v g (1/2 - θ), to the next order."""
    h = 0.02
    wrong, crossed = errors("plain", h, a)
    s, p = (values[crossed] for values in kinks.starts(20_000))
    v = p + 0.5 * h * kinks.force(s, a)
    theta = -s / v / h
    g = np.where(s < 0.0, 1.0, -1.0) * kinks.OMEGA**2 * (a[0] - a[1])
    expected = h * v * g * (0.5 - theta)
    assert np.abs(wrong - expected).max() < 2.0 * h * np.abs(expected).max()


@pytest.mark.parametrize("a", KINKS)
@pytest.mark.parametrize("h", [0.1, 0.4])
def test_only_parabolas_keep_areas_and_run_back(a, h):
    """An impulse multiplies areas by the ratio of the speeds after and before; near the edge, slow points of either
    sense cross without it one way and with it the other."""
    s, p = kinks.starts(20_000)
    for name, step in kinks.STEPS.items():
        t, q = step(s, p, h, a)
        back = step(t, -q, h, a)
        lost = np.maximum(np.abs(back[0] - s), np.abs(back[1] + p)) > 1e-9
        assert name == "impulse" or not lost.any()
        assert lost.any() or name != "impulse" or h < 0.4
        crossed = (s < 0.0) != (t < 0.0)
        # Differences do not see points that cross just at an end of the step, or that turn back.
        area = np.median(np.abs(kinks.determinant(step, s, p, h, a)[crossed] - 1.0))
        assert (area < 1e-9) == (name != "impulse"), (name, area)
    v = p + 0.5 * h * kinks.force(s, a)
    t, q = kinks.impulse(s, p, h, a)
    after = q - 0.5 * h * kinks.force(t, a)
    ratio = np.abs(kinks.determinant(kinks.impulse, s, p, h, a) - after / v)[(s < 0.0) != (t < 0.0)]
    assert np.quantile(ratio, 0.98) < 1e-5


def test_energies_spread_a_hundred_times_less():
    """ωt = 400 at ωh = 0.05: about 130 crossings each."""
    a, h, spread = KINKS[0], 0.05, {}
    for name, step in kinks.STEPS.items():
        s, p = kinks.starts(500)
        before = kinks.energy(s, p, a)
        for _ in range(round(400.0 / h)):
            s, p = step(s, p, h, a)
        spread[name] = np.std(kinks.energy(s, p, a) - before)
    print(spread)
    assert spread["plain"] > 60.0 * spread["ramp"]
    assert spread["plain"] > 60.0 * spread["impulse"]
