"""Structure factors against sums by hand, crystals, and ideal gases."""

import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy import analysis


@pytest.mark.parametrize("axes", ["xyz", "xy", "zx", "y"])
def test_sums_by_hand_in_a_box(axes, rng):
    box = np.array([20.0, 26.0, 31.0])
    x = rng.uniform(-50.0, 50.0, (3, 40, 3))
    x[1, 7] = np.nan
    chosen = ["xyz".index(axis) for axis in axes]
    q_max = 1.5
    found = analysis.structure_factor(x, range(30), q_max=q_max, bins=6, box=box, axes=axes)
    n = np.stack(np.meshgrid(*[np.arange(-8, 9)] * len(axes), indexing="ij"), axis=-1).reshape(-1, len(axes))
    q = 2.0 * np.pi * n / box[chosen]
    size = np.linalg.norm(q, axis=1)
    use = (size > 0.0) & (size <= q_max)
    q, size = q[use], size[use]
    expected = np.zeros((3, len(q)))
    for k in range(3):
        own = x[k, :30][~np.isnan(x[k, :30, 0])][:, chosen]
        expected[k] = np.abs(np.exp(1j * own @ q.T).sum(axis=0)) ** 2 / len(own)
    label = np.unique(np.minimum((size * 6 / q_max).astype(int), 5), return_inverse=True)[1]
    counts = np.bincount(label)
    np.testing.assert_array_equal(found.modes, counts // 2)
    np.testing.assert_allclose(found.wave_number, np.bincount(label, size) / counts, rtol=1e-12)
    np.testing.assert_allclose(found.value, np.bincount(label, expected.mean(axis=0)) / counts, rtol=1e-9)


@pytest.mark.parametrize("axes", ["xyz", "xy", "x"])
def test_open_space_is_the_mean_over_all_directions(axes, rng):
    x = rng.normal(0.0, 3.0, (12, 3))
    found = analysis.structure_factor(x, q_max=2.0, bins=3, axes=axes)
    np.testing.assert_allclose(found.wave_number, [2 / 3, 4 / 3, 2.0])
    if axes == "xyz":
        z, weight = np.polynomial.legendre.leggauss(60)
        phi = 2.0 * np.pi * np.arange(120) / 120
        s = np.sqrt(1.0 - z**2)
        u = np.stack([np.outer(s, np.cos(phi)), np.outer(s, np.sin(phi)), np.outer(z, np.ones(120))], axis=-1)
        weight = np.repeat(weight / 2.0, 120) / 120
        u = u.reshape(-1, 3)
    elif axes == "xy":
        phi = 2.0 * np.pi * np.arange(400) / 400
        u, weight = np.stack([np.cos(phi), np.sin(phi), 0.0 * phi], axis=1), np.full(400, 1 / 400)
    else:
        u, weight = np.array([[1.0, 0.0, 0.0]]), np.ones(1)
    for q, value in zip(found.wave_number, found.value, strict=True):
        scattered = np.abs(np.exp(1j * q * x @ u.T).sum(axis=0)) ** 2 / 12
        assert value == pytest.approx(weight @ scattered, rel=1e-9)
    assert (found.modes == 0).all()


def test_an_ideal_gas_scatters_alike_at_all_waves(rng):
    gas = rng.uniform(0.0, 1.0, (60, 100, 3)) * [30.0, 30.0, 1.0]
    found = analysis.structure_factor(gas, q_max=2.0, bins=5, box=(30.0, 30.0, None), axes="xy")
    assert (abs(found.value - 1.0) < 6.0 * found.error).all()
    assert (found.error < 0.1).all()


def test_refused():
    x = np.zeros((3, 3))
    for match, options in (
        ("along xyz the box is closed in some directions", {"box": (10.0, 10.0, None)}),
        ("q_max = 0.1 but the longest wave in the box has 0.628", {"box": (10.0, 10.0, 10.0), "q_max": 0.1}),
        ("axes = 'xx'", {"axes": "xx"}),
        ("bins = 0", {"bins": 0}),
    ):
        refuses(mp.ParameterError, match, analysis.structure_factor, x, **{"q_max": 1.0, **options})
    with pytest.raises(mp.ParameterError, match="a frame has none of these beads"):
        analysis.structure_factor(np.full((2, 3), np.nan), q_max=1.0)
