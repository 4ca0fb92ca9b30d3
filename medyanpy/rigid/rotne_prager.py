r"""Mobilities of pairs of spheres of any size at any distance, overlapping or one within the other.

A bead acts on the fluid by forces spread over its surface: a force F evenly, a torque and a stresslet (together the
first moments D, traceless) as D·n. It moves with the flow of the others, averaged over its surface. D·n on the surface
is the divergence of D times an even *ball*. So every pair mobility is a derivative of one radial function: the mean
distance of two points, one of each bead, drawn from its surface or from its ball:

.. math::

    H(r) = \langle\,|x + s - t|\,\rangle, \qquad
    8\pi\eta\, G = (\nabla^2 - \nabla\nabla) H, \qquad
    \mu^{tt} = G, \quad \mu^{td} = -\nabla G, \quad \mu^{dt} = \nabla G, \quad \mu^{dd} = -\nabla\nabla G .

H is a polynomial divided by r, a different one in each of three regions: apart, overlapping, one within the other.
Apart the result is that of Rotne and Prager; the rest is that of Wajnryb, Mizerski, Zuk and Szymczak (J. Fluid Mech.
731, R3, 2013) and of Zuk and others for unequal spheres (J. Fluid Mech. 741, R5, 2014), in a form that has no large
terms to cancel. The matrix of all pairs is that of a scalar product of distributions of force: positive definite,
always.
"""

from typing import NamedTuple

import numpy as np

from medyanpy._kernels.selected import hydrodynamics

__all__ = ["FORCES", "FORCES_TORQUES", "FORCES_TORQUES_STRESSLETS", "mobility_block"]

#: Moments of force of a bead: 3 forces; and 3 torques; and 5 stresslets.
FORCES, FORCES_TORQUES, FORCES_TORQUES_STRESSLETS = 3, 6, 11


def _moments() -> np.ndarray:
    """Return matrices B (8, 3, 3) with D = Σ T_m B_m + Σ S_n B_n: three skew, of the torque, five orthonormal,
    symmetric."""
    b = np.zeros((8, 3, 3))
    for m in range(3):
        k, n = (m + 1) % 3, (m + 2) % 3
        b[m, n, k], b[m, k, n] = 0.5, -0.5
        b[3 + m, n, k] = b[3 + m, k, n] = np.sqrt(0.5)
    b[6] = np.diag([np.sqrt(0.5), -np.sqrt(0.5), 0.0])
    b[7] = np.diag([-1.0, -1.0, 2.0]) / np.sqrt(6.0)
    return b


_B = _moments()
#: B transposed is _SIGN B; B : B.
_SIGN = np.array([-1.0] * 3 + [1.0] * 5)
_NORM = np.array([0.5] * 3 + [1.0] * 5)


class _Radial(NamedTuple):
    """Derivatives of a radial function: h1 = H'/r, h2 = h1'/r and so on."""

    h1: np.ndarray
    h2: np.ndarray
    h3: np.ndarray
    h4: np.ndarray


def mobility_block(x: np.ndarray, a: np.ndarray, y: np.ndarray, b: np.ndarray, moments: int) -> np.ndarray:
    """Return mobilities between two groups of beads, in units of 1/8πη.

    Parameters
    ----------
    x, y : (n, 3), (m, 3) float
        Centres.
    a, b : (n,), (m,) float
        Radii.
    moments : int
        `FORCES`, `FORCES_TORQUES` or `FORCES_TORQUES_STRESSLETS`.

    Returns
    -------
    (n moments, m moments) float
        Velocities, angular velocities and rates of strain of the first, by forces, torques and stresslets of the
        second.
    """
    n, m = len(x), len(y)
    d = x[:, None] - y
    r2 = np.einsum("ijk,ijk->ij", d, d)
    r = np.sqrt(r2)
    a, b = np.broadcast_to(a[:, None], r.shape), np.broadcast_to(b, r.shape)
    out = np.empty((n, moments, m, moments))
    block = out.transpose(0, 2, 1, 3)
    h = _mean_distance(0, r, a, b)
    block[..., :3, :3] = -h.h2[..., None, None] * d[..., :, None] * d[..., None, :]
    block[..., range(3), range(3)] += (2.0 * h.h1 + r2 * h.h2)[..., None]
    if moments > FORCES:
        of = slice(0, moments - 3)
        sign, norm = _SIGN[of], _NORM[of]
        # B d, and d·B d.
        v = np.einsum("akl,ijl->ijak", _B[of], d)
        s = np.einsum("ijak,ijk->ija", v, d)
        h = _mean_distance(1, r, b, a)
        block[..., :3, 3:] = -_gradient(h, r2, d, v, s, sign).swapaxes(-1, -2)
        h = _mean_distance(1, r, a, b)
        block[..., 3:, :3] = _gradient(h, r2, d, v, s, sign)
        h = _mean_distance(2, r, a, b)
        a1, a2 = 4.0 * h.h2 + r2 * h.h3, 6.0 * h.h3 + r2 * h.h4
        pairs = sign[:, None] + sign + sign[:, None] * sign
        dd = h.h4[..., None, None] * s[..., :, None] * s[..., None, :]
        dd += (pairs * h.h3[..., None, None] - a2[..., None, None]) * (v @ v.swapaxes(-1, -2))
        dd[..., range(len(norm)), range(len(norm))] += norm * (sign * h.h2[..., None] - a1[..., None])
        block[..., 3:, 3:] = dd
    return out.reshape(n * moments, m * moments)


def _gradient(h: _Radial, r2: np.ndarray, d: np.ndarray, v: np.ndarray, s: np.ndarray, sign: np.ndarray) -> np.ndarray:
    """Return B : ∇G, (..., moment, k)."""
    along = (4.0 * h.h2 + r2 * h.h3)[..., None] - sign * h.h2[..., None]
    out: np.ndarray = along[..., None] * v - (h.h3[..., None] * s)[..., None] * d[..., None, :]
    return out


def _mean_distance(kind: int, r: np.ndarray, a: np.ndarray, b: np.ndarray) -> _Radial:
    """Return derivatives of H of two surfaces (0), of a ball and a surface (1: h1 for G alone), or of two balls (2).

    See _kernels/letters/mean_distances.pxi.
    """
    given = (np.ascontiguousarray(v, float).ravel() for v in (r, a, b))
    return _Radial(*hydrodynamics.mean_distances(kind, *given).reshape(4, *r.shape))
