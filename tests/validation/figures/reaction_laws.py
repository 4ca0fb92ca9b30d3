"""Laws of reactions in membranes: times until a pair reacts, and equilibria of whole numbers of molecules.

Units: nm, s. Nothing here is read from the package.
"""

from typing import Any

import numpy as np

from medyanpy.units import micromolar

#: Of the test case: 665 A, 665 B and 3755 lipids M, 0.47 × 0.47 × 5 µm, σ.
PROTEINS, LIPIDS, SIDE, DEEP, SIGMA = 665, 3755, 470.0, 5000.0, 1.0
LIPID, PAIR = 0.5 * micromolar, 20.0 * micromolar

#: Times (s) and mean A of 48 runs of NERDSS, each with its standard error, of the case with k_a = 10 µm²/s at contact.
NERDSS = np.array([[1e-4, 760.77, 1.77], [2e-4, 633.31, 1.73], [3e-4, 548.92, 1.87], [4e-4, 488.02, 1.67],
                   [6e-4, 402.63, 1.49], [8e-4, 344.83, 1.61], [1e-3, 303.88, 1.53]])  # fmt: skip


def time_on_a_sphere(radius: float, rate: float, reach: float, diffusion: float, cells: int = 4000) -> float:
    """Mean time from a uniform start until a pair reacts that moves with `diffusion` and reacts at `rate` within
    `reach`: (D/a² sin θ) (sin θ τ')' - λτ[aθ < R] = -1, by finite volumes."""
    from scipy.linalg import solve_banded

    near = cells // 4
    face = np.r_[np.linspace(0.0, reach / radius, near + 1), np.linspace(reach / radius, np.pi, cells - near + 1)[1:]]
    room, middle = -np.diff(np.cos(face)), 0.5 * (face[1:] + face[:-1])
    across = diffusion / radius**2 * np.sin(face[1:-1]) / np.diff(middle)
    band = np.zeros((3, cells))
    band[0, 1:] = band[2, :-1] = -across
    band[1] = np.r_[across, 0.0] + np.r_[0.0, across] + rate * room * (middle < reach / radius)
    return float(room @ solve_banded((1, 1), band, room) / 2.0)


def contact_rate(rate: float, contact: float, diffusion: float, radius: float) -> float:
    """k_on in a reflecting disc of `radius` of a pair that reacts with `rate` (nm²/s) where it touches (Yogurtcu and
    Johnson 2015): the area over the mean time from a uniform start."""
    from scipy.integrate import quad

    b, s = radius, contact
    area = np.pi * (b**2 - s**2)

    def time(r: float) -> float:
        return area / rate + 0.5 * b**2 / diffusion * np.log(r / s) - (r**2 - s**2) / (4.0 * diffusion)

    return float(area**2 / quad(lambda r: 2.0 * np.pi * r * time(r), s, b, epsrel=1e-12)[0])


def law_of_free(pairs: int, constant: float) -> np.ndarray:
    """(pairs + 1,) probabilities of the number of free A of as many A as B; K_D times the area is `constant`."""
    from scipy.special import gammaln

    free = np.arange(pairs + 1)
    weight = -(pairs - free) * np.log(constant) - gammaln(pairs - free + 1) - 2.0 * gammaln(free + 1)
    weight = np.exp(weight - weight.max())
    return np.asarray(weight / weight.sum())


def mean_of_free(pairs: int, constant: float) -> tuple[float, float]:
    """Mean and standard deviation of the number of free A."""
    p, free = law_of_free(pairs, constant), np.arange(pairs + 1)
    return float(p @ free), float(np.sqrt(p @ free**2 - (p @ free) ** 2))


def gathered(proteins: int, lipids: int, area: float, volume: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means of M, MA and MABM over whole numbers of molecules, numbers of MABM, and their probabilities.

    Each species has the weight (room times activity)^n/n!, with the activity 1 of A, B and M. MAB and MBA are counted
    together.
    """
    from scipy.special import gammaln

    most = round(0.085 * proteins + 9.0 * np.sqrt(0.085 * proteins) + 5.0)
    y, ma, mb = np.ogrid[max(0, round(0.9 * proteins - 8.0 * np.sqrt(0.1 * proteins))) : proteins + 1, 0:most, 0:most]
    weights = []
    for ab, x in [(ab, x) for ab in range(2) for x in range(4)]:
        a, b, m = proteins - y - ab - x - ma, proteins - y - ab - x - mb, lipids - ma - mb - x - 2 * y
        shares = [(a, volume), (b, volume), (ab, volume / PAIR), (m, area), (ma, area / LIPID), (mb, area / LIPID),
                  (x, 2.0 * area / (PAIR * LIPID)), (y, area / (2.0 * SIGMA * LIPID**2 * PAIR))]  # fmt: skip
        logs = sum(np.maximum(n, 0) * np.log(z) - gammaln(np.maximum(n, 0) + 1) for n, z in shares)
        weights.append((np.where((a >= 0) & (b >= 0) & (m >= 0), logs, -np.inf), m))
    top = max(logs.max() for logs, _ in weights)
    sums, chances = np.zeros(4), np.zeros(y.size)
    for logs, m in weights:
        p = np.exp(logs - top)
        sums += [p.sum(), (p * m).sum(), (p * ma).sum(), (p * y).sum()]
        chances += p.sum(axis=(1, 2))
    return sums[1:] / sums[0], y.ravel(), chances / sums[0]


def mass_action(proteins: int, lipids: int, area: float, volume: float, sigma: float) -> np.ndarray:
    """M, MA and MABM by mass action, where K_2D = K_3D 2σ."""
    from scipy.optimize import fsolve

    def species(logs: np.ndarray) -> tuple[float, float, float, float, float]:
        a, m = np.exp(logs)
        ma, mab = m * a / (LIPID * volume), 2.0 * m * a**2 / (LIPID * PAIR * volume**2)
        return a, m, ma, mab, 0.5 * mab * m / (2.0 * sigma * LIPID * area)

    def missing(logs: np.ndarray) -> list[float]:
        a, m, ma, mab, y = species(logs)
        return [a + a**2 / (PAIR * volume) + ma + mab + y - proteins, m + 2.0 * ma + mab + 2.0 * y - lipids]

    start = np.log([0.012 * proteins, 0.65 * lipids])
    _, m, ma, _, y = species(fsolve(missing, start, xtol=1e-13))
    return np.array([m, ma, y])


def rate_read(share: Any, time: Any) -> Any:
    """k (µm²/s) with which 1/(1 + 1000 k t) is what is left of A after a time (s)."""
    return (1.0 / np.asarray(share) - 1.0) / (1e3 * np.asarray(time))
