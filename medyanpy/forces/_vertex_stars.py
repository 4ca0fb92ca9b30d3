"""Stiffness of the bending energy of single vertices at which the surface is folded: vertex form.

A star is a vertex with its ring. Its energy depends only on the vectors d_i from the vertex to each of its m
neighbours. Second derivatives are those in d_i; those of the centre follow from invariance under shifts.
"""

from typing import Any

import numpy as np

__all__ = ["Stars"]

# The step of derivatives along the imaginary axis: arbitrarily small, since no difference is taken.
_STEP = 1e-30


class Stars:
    """Stars, n of them, of m triangles each: centres (n,), and the corners (n, m) after it of each triangle,
    anticlockwise.

    In a full ring each neighbour is second in one triangle and third in another.
    """

    def __init__(self, centre: np.ndarray, second: np.ndarray, third: np.ndarray) -> None:
        self.beads = np.column_stack([centre, second])
        #: The triangle after each, and the one before.
        self._next = np.argmax(third[:, :, None] == second[:, None, :], axis=2)
        self._last = np.argsort(self._next, axis=1)

    def squared_frequencies(
        self, vertices: np.ndarray, kappa: np.ndarray, curvature: np.ndarray, lightness: np.ndarray, projected: bool
    ) -> np.ndarray:
        """Return bounds (n, m+1) of the squared frequencies of the stars, by `beads`, 1/s².

        They are sums of the norms of the blocks in each row of the matrix of second derivatives, which dominate it.
        `kappa` and `curvature` (n,) are those of centres, `lightness` (n, m+1) is 1/√m of `beads`; `projected`: of the
        projected form.
        """
        ways = vertices[self.beads[:, 1:]] - vertices[self.beads[:, :1]]
        n, m, _ = ways.shape
        centre, rows = np.zeros((n, m + 1, 3, 3)), np.zeros((n, m + 1))
        column = np.empty((n, m + 1, 3, 3))
        for j in range(m):
            for axis in range(3):
                # f(x + ih) = f(x) + ih f'(x): no difference of two numbers, hence as exact in needles as elsewhere.
                moved = ways.astype(complex)
                moved[:, j, axis] += 1j * _STEP
                column[:, 1:, :, axis] = self._gradient(moved, kappa, curvature, projected).imag / _STEP
            column[:, 0] = -column[:, 1:].sum(axis=1)
            centre -= column
            rows += np.linalg.norm(column, ord=2, axis=(2, 3)) * lightness[:, j + 1, None]
        out: np.ndarray = lightness * (rows + np.linalg.norm(centre, ord=2, axis=(2, 3)) * lightness[:, :1])
        return out

    def _gradient(self, d: np.ndarray, kappa: np.ndarray, curvature: np.ndarray, projected: bool) -> np.ndarray:
        """Return the gradient (n, m, 3) of the energy in d; notation and derivation as in docs/forces/membrane.md."""
        after = np.take_along_axis(d, self._next[:, :, None], axis=1)
        e = after - d
        N = np.cross(d, after)
        length = np.sqrt(np.einsum("nmi,nmi->nm", N, N))
        unit = N / length[..., None]
        a, G = 0.5 * np.cross(unit, e).sum(axis=1), N.sum(axis=1)
        S = length.sum(axis=1) / 6.0
        p, q, s = (_by_curvature if projected else _by_vectors)(a, G, S, kappa, curvature)
        T = 0.5 * np.cross(e, p[:, None])
        C = (T - np.einsum("nmi,nmi->nm", unit, T)[..., None] * unit) / length[..., None]
        C += q[:, None] + (s / 6.0)[:, None, None] * unit
        turn = 0.5 * np.cross(p[:, None], unit)
        own, others = np.cross(after, C) - turn, np.cross(C, d) + turn
        return own + np.take_along_axis(others, self._last[:, :, None], axis=1)


def _by_vectors(a: Any, G: np.ndarray, S: np.ndarray, kappa: Any, curvature: Any) -> tuple[np.ndarray, ...]:
    """Return derivatives of the vertex form by its three sums."""
    GG = _dot(G, G)
    b = a - (curvature / 3.0)[:, None] * G
    u = (6.0 * kappa / np.sqrt(GG))[:, None] * b
    return u, -(curvature / 3.0)[:, None] * u - (0.5 * _dot(u, b) / GG)[:, None] * G, np.zeros_like(S)


def _by_curvature(a: Any, G: np.ndarray, S: np.ndarray, kappa: Any, curvature: Any) -> tuple[np.ndarray, ...]:
    """Return derivatives of the projected form by its three sums."""
    GG = _dot(G, G)
    H = 3.0 * _dot(a, G) / GG
    excess = 4.0 * kappa * (H - curvature)
    c = (excess * S / GG)[:, None]
    return 3.0 * c * G, c * (3.0 * a - 2.0 * H[:, None] * G), 0.5 * excess * (H - curvature)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return scalar products (n,), of complex numbers too, without conjugates."""
    out: np.ndarray = np.einsum("ni,ni->n", a, b)
    return out
