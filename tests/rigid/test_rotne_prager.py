"""Mobilities of two beads: by quadrature over their surfaces, by the published formulas, and across regions."""

from itertools import pairwise

import mpmath
import numpy as np
import pytest

from medyanpy.rigid import rotne_prager
from medyanpy.rigid.rotne_prager import FORCES, FORCES_TORQUES, FORCES_TORQUES_STRESSLETS, mobility_block

# Matrices of the moments, written out: D = T_m B_m + S_n B_n.
EPSILON = np.zeros((3, 3, 3))
for i in range(3):
    j, k = (i + 1) % 3, (i + 2) % 3
    EPSILON[i, j, k], EPSILON[i, k, j] = 1.0, -1.0
H = np.sqrt(0.5)
STRAINS = np.array([
    [[0, 0, 0], [0, 0, H], [0, H, 0]],
    [[0, 0, H], [0, 0, 0], [H, 0, 0]],
    [[0, H, 0], [H, 0, 0], [0, 0, 0]],
    [[H, 0, 0], [0, -H, 0], [0, 0, 0]],
    np.diag([-1, -1, 2]) / np.sqrt(6.0),
])  # fmt: skip


def pair(d, a, b, moments=FORCES_TORQUES_STRESSLETS):
    d = np.asarray(d, float)
    return mobility_block(d[None], np.array([a]), np.zeros((1, 3)), np.array([b]), moments)


def flows(x, b):
    """(..., 11, 3): 8πη times the flow at x around one sphere of radius b at 0, by each unit moment; within it, too."""
    r = np.linalg.norm(x, axis=-1)[..., None, None]
    out = np.empty((*x.shape[:-1], 11, 3))
    xx = x[..., :, None] * x[..., None, :]
    stokes = (1 / r + b * b / (3 * r**3)) * np.eye(3) + (1 / r**3 - b * b / r**5) * xx
    out[..., :3, :] = np.where(r > b, stokes, 4 / (3 * b) * np.eye(3))
    spin = np.einsum("mlk,...l->...mk", EPSILON, x)
    out[..., 3:6, :] = spin / np.where(r > b, r, b) ** 3
    # Einstein's sphere in a straining flow; the stresslet of a rigid one is 20/3 πηb³ E.
    strain = STRAINS @ x[..., None, :, None]
    strain = strain[..., 0]
    work = np.einsum("...ak,...k->...a", strain, x)[..., None]
    outside = 2.5 * b**3 / r**5 * (1 - b * b / r**2) * work * x[..., None, :] + b**5 / r**5 * strain
    out[..., 6:, :] = np.where(r > b, outside, strain) * 8 / (20 / 3 * b**3)
    return out


def by_quadrature(d, a, b):
    """The same as `pair`: the flow of the second bead averaged over the surface of the first."""
    r = np.linalg.norm(d)
    z = d / r
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x /= np.linalg.norm(x)
    frame = np.array([x, np.cross(z, x), z])
    # The flow has a kink where the surfaces meet.
    cuts = [-1.0, 1.0]
    meet = (b * b - r * r - a * a) / (2 * a * r)
    if abs(meet) < 1:
        cuts.insert(1, meet)
    node, weight = np.polynomial.legendre.leggauss(60)
    c = np.concatenate([0.5 * (p + q) + 0.5 * (q - p) * node for p, q in pairwise(cuts)])
    w = np.concatenate([0.25 * (q - p) * weight for p, q in pairwise(cuts)])
    phi = np.arange(8) * np.pi / 4
    s = np.sqrt(1 - c * c)[:, None]
    n = np.stack([s * np.cos(phi), s * np.sin(phi), np.broadcast_to(c[:, None], (len(c), 8))], axis=-1) @ frame
    w = np.broadcast_to(w[:, None] / 8, n.shape[:-1])
    u = flows(d + a * n, b)
    mean = np.einsum("pq,pqmk->km", w, u)
    gradient = 3 / a * np.einsum("pq,pqmk,pql->lkm", w, u, n)
    turn = 0.5 * np.einsum("alk,lkm->am", EPSILON, gradient)
    strain = np.einsum("akl,lkm->am", STRAINS, gradient)
    return np.concatenate([mean, turn, strain])


CASES = [
    # Apart, touching, overlapping far and near, one within the other, and sizes that differ much.
    (3.7, 1.0, 1.0),
    (6.0, 1.0, 4.0),
    (2.0, 1.0, 1.0),
    (1.3, 1.0, 1.0),
    (0.3, 1.0, 1.0),
    (0.01, 1.0, 1.0),
    (0.4, 1.0, 1.2),
    (0.25, 1.0, 1.2),
    (0.25, 1.2, 1.0),
    (1.1, 1.0, 0.5),
    (1.1, 0.5, 1.0),
    (0.3, 1.0, 0.5),
    (0.3, 0.5, 1.0),
    (1.0, 1e-3, 1.0),
    (1.0005, 1.0, 1e-3),
    (0.9, 1.0, 1e-3),
]


@pytest.mark.parametrize(("r", "a", "b"), CASES)
def test_against_quadrature(r, a, b, rng):
    d = rng.normal(size=3)
    d *= r / np.linalg.norm(d)
    got = pair(d, a, b)
    # Over the surface of the small one, where it is small: there the flow of the other is smooth.
    expected = by_quadrature(d, a, b) if a < 100 * b else by_quadrature(-d, b, a).T
    # Each block beside the largest mobility that such moments can have.
    scale = np.repeat([1.0, 1.0 / max(a, b)], [3, 8])
    np.testing.assert_allclose(got / np.outer(scale, scale), expected / np.outer(scale, scale), atol=1e-12 / max(a, b))
    # Reciprocity; and fewer moments are the same numbers.
    np.testing.assert_allclose(pair(-d, b, a).T, got, rtol=0.0, atol=1e-14 * np.abs(got).max())
    for moments in (FORCES, FORCES_TORQUES):
        np.testing.assert_array_equal(pair(d, a, b, moments), got[:moments, :moments])


@pytest.mark.parametrize(("r", "a", "b"), [c for c in CASES if abs(c[1] - c[2]) < c[0] < c[1] + c[2]])
def test_against_the_published_formulas(r, a, b):
    """Zuk and others 2014, for spheres that overlap, with 60 digits."""
    with mpmath.workdps(60):
        r, a, b = (mpmath.mpf(x) for x in (r, a, b))
        one = (16 * r**3 * (a + b) - ((a - b) ** 2 + 3 * r**2) ** 2) / (32 * r**3) / (6 * a * b) * 8
        two = 3 * ((a - b) ** 2 - r**2) ** 2 / (32 * r**3) / (6 * a * b) * 8
        p = (
            5 * r**6
            - 27 * r**4 * (a**2 + b**2)
            + 32 * r**3 * (a**3 + b**3)
            - 9 * r**2 * (a**2 - b**2) ** 2
            - (a - b) ** 4 * (a**2 + 4 * a * b + b**2)
        ) / (64 * r**3 * a**3 * b**3)
        q = 3 * ((a - b) ** 2 - r**2) ** 2 * (a**2 + 4 * a * b + b**2 - r**2) / (64 * r**3 * a**3 * b**3)
        # Angular velocity of the first by a force on the second.
        t = (a - b + r) ** 2 * (b**2 + 2 * b * (a + r) - 3 * (a - r) ** 2) / (8 * r**2) / (2 * a**3 * b)
        one, two, p, q, t = (float(x) for x in (one, two, p, q, t))
    got = pair((0.0, 0.0, float(r)), float(a), float(b), FORCES_TORQUES)
    np.testing.assert_allclose(np.diag(got), [one, one, one + two, p, p, p + q], rtol=2e-12)
    np.testing.assert_allclose([got[3, 1], -got[4, 0]], [t, t], rtol=2e-12)


def test_digits_for_all_sizes_and_distances(rng):
    """Derivatives of the mean distances against 80 digits, each beside the mobilities that are made of it."""
    kinds = {0: (0, 0, 1, 2), 1: (1, 0, 2, 3), 2: (1, 1, 2, 4)}
    worst = 0.0
    for kind, (ball_a, ball_b, first, last) in kinds.items():
        for _ in range(150):
            ratio = 10.0 ** rng.uniform(-4, 0) if rng.uniform() < 0.7 else 1.0 - 10.0 ** rng.uniform(-6, -1)
            a, b = (1.0, ratio) if rng.uniform() < 0.5 else (ratio, 1.0)
            r = abs(a - b) + rng.choice([rng.uniform(), rng.uniform() ** 8]) * (a + b - abs(a - b))
            got = rotne_prager._mean_distance(kind, *(np.array([x]) for x in (r, a, b)))
            expected = derivatives_of_mean_distance(r, a, b, ball_a, ball_b)
            for k in range(first, last + 1):
                # Mobilities hold r^(2k-2), r^(2k-3) and r^(2k-4) times them; the larger radius is 1.
                error = abs(got[k - 1][0] - expected[k - 1]) * r ** (2 * k - 2 - ball_a - ball_b)
                # They change within the smaller radius: a rounding of r alone does so much.
                worst = max(worst, error * min(a, b))
    assert worst < 1e-12


def derivatives_of_mean_distance(r, a, b, ball_a, ball_b):
    """Of H in the region of overlap: H'/r and so on."""
    with mpmath.workdps(80):
        ma, mb = mpmath.mpf(a), mpmath.mpf(b)

        def mean(x):
            s = ma + mb - x
            if not ball_a:
                c, more = (ma**2 + mb**2) / 3, -(s**4) / (24 * ma * mb)
            elif not ball_b:
                c, more = ma**2 / 5 + mb**2 / 3, -(s**5) * (6 * ma - s) / (240 * ma**3 * mb)
            else:
                c = (ma**2 + mb**2) / 5
                more = -(s**6) * (56 * ma * mb - 8 * (ma + mb) * s + s * s) / (4480 * (ma * mb) ** 3)
            return x + (c + more) / x

        taylor = mpmath.taylor(mean, mpmath.mpf(r), 4)
        d1, d2, d3, d4 = (taylor[k] * mpmath.factorial(k) for k in range(1, 5))
        x = mpmath.mpf(r)
        return [
            float(v)
            for v in (
                d1 / x,
                (d2 - d1 / x) / x**2,
                (d3 - 3 * d2 / x + 3 * d1 / x**2) / x**3,
                (d4 - 6 * d3 / x + 15 * d2 / x**2 - 15 * d1 / x**3) / x**4,
            )
        ]


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (2.0, 0.7), (1.0, 1e-2)])
def test_smooth_from_region_to_region(a, b):
    """At contact, at half a radius, and where one slips into the other."""
    for r in (a + b, abs(a - b), 0.5 * a):
        if r > 0.0:
            below, above = (pair((0.0, 0.6 * s * r, 0.8 * s * r), a, b) for s in (1.0 - 1e-9, 1.0 + 1e-9))
            np.testing.assert_allclose(below, above, rtol=0.0, atol=1e-8 / b**2)


def test_one_bead():
    m = pair((0.0, 0.0, 0.0), 2.0, 2.0)
    expected = np.repeat([8 / 12.0, 1 / 8.0, 8 * 3 / 20.0 / 8.0], [3, 3, 5])
    np.testing.assert_allclose(m, np.diag(expected), atol=1e-16)
