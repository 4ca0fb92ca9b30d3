"""Integrals over the directions of all links of a chain with constraints, for filaments without a Fixman potential."""

import numpy as np

__all__ = ["log_chains"]

# Nodes of functions of a pivot, and of an integral over a cosine; energies beyond which nothing is left, in kT.
_PIVOTS, _COSINES, _MOST_ENERGY = 20, 96, 45.0


def log_chains(stiffness: float, full: int, most: int, links: int) -> np.ndarray:
    r"""Return logarithms of integrals over all directions but the first, (most + 1, links + 1, most + 1).

    They are by the subunits of the first link, the number of links, and the subunits of the last; inner links are full.

    Of cosines c between links, a chain has the weight :math:`\prod e^{-\kappa (1 - c)} \sqrt{1 - c^2/2d}`. Here κ is
    the stiffness over the mean number of subunits of two links. The first pivot d is 2, and the next one is always
    :math:`2 - c^2/d`; roots are that of the determinant of the metric, of equal masses. Integrals from a pivot on are
    functions of it, from 1 to 2, taken through Chebyshev's points. So each full link is one product with the same
    matrix.
    """
    at = np.cos(np.pi * (np.arange(_PIVOTS) + 0.5) / _PIVOTS)
    pivots = 1.5 + 0.5 * at
    degrees = np.arange(_PIVOTS)
    to_powers = 2.0 / _PIVOTS * np.cos(np.outer(degrees, np.arccos(at)))
    to_powers[0] *= 0.5
    y, w = np.polynomial.legendre.leggauss(_COSINES)

    def joint(subunits: float, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights of cosines behind pivots d (n,), and the pivots to which they lead, (n, cosines)."""
        kappa = 2.0 * stiffness / subunits
        depth = 2.0 if 2.0 * kappa < _MOST_ENERGY else _MOST_ENERGY / kappa
        c = 1.0 - 0.5 * depth * (1.0 + y)
        weight = 0.5 * depth * w * np.exp(-kappa * (1.0 - c)) * np.sqrt(1.0 - 0.5 * c**2 / d[:, None])
        return weight, 2.0 - c**2 / d[:, None]

    def onwards(subunits: float, d: np.ndarray) -> np.ndarray:
        """Matrix (n, pivots) that takes values at all pivots to integrals over one joint more."""
        weight, then = joint(subunits, d)
        bases = np.cos(degrees * np.arccos(np.clip(2.0 * then - 3.0, -1.0, 1.0))[..., None])
        out: np.ndarray = np.einsum("nc,nck->nk", weight, bases) @ to_powers
        return out

    numbers, start = np.arange(most + 1), np.full(1, 2.0)
    # One link has no joint; two have one.
    out = np.zeros((most + 1, links + 1, most + 1))
    if links > 1:
        both = np.array([joint(max(n, 1), start)[0].sum() for n in range(2 * most + 1)])
        out[:, 2] = np.log(both[numbers[:, None] + numbers])
    if links > 2:
        first = np.concatenate([onwards(full + n, start) for n in numbers.tolist()])
        inner = onwards(2 * full, pivots)
        rest = np.column_stack([joint(full + n, pivots)[0].sum(axis=1) for n in numbers.tolist()])
        scale = 0.0
        for k in range(3, links + 1):
            out[:, k] = np.log(first @ rest) + scale
            rest = inner @ rest
            largest = rest.max()
            rest, scale = rest / largest, scale + np.log(largest)
    return out
