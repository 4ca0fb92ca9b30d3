r"""Linkers between rigid domains, with stiffness from the relative motion of the domains in an elastic network.

Linkers lie where the network has contacts between two domains, and all those of one pair have the same stiffness. Rigid
domains held by the springs of the network would be too stiff, since in the network they bend. The motion of a domain in
the network is the best fit to its displacements, q = F u, with covariance F C Fᵀ. The stiffnesses s are such that the
mean square distance by which the two ends of contacts move against each other,

.. math:: r = \Big\langle \sum_{ij} |B_j q_B - B_i q_A|^2 \Big\rangle, \qquad B_i q = t + \theta\times(x_i - c),

is the same in the model of rigid domains, with covariance kT K(s)⁻¹, and in the network, for every pair of domains.
"""

from dataclasses import dataclass

import numpy as np

from medyanpy.errors import ParameterError
from medyanpy.rigid.networks import ElasticNetwork

__all__ = ["Linkers", "fitted_linkers"]

_FREE = 1e-9
_SWEEPS, _PRECISION = 2000, 1e-8


@dataclass(frozen=True, eq=False)
class Linkers:
    """Springs at rest between rigid bodies.

    Attributes
    ----------
    bodies : (l, 2) int array
        The bodies that each joins.
    ends : (l, 2, 3) float array, nm
        Their ends, in the structure.
    lengths : (l,) float array, nm
    stiffness : (l,) float array, pN/nm
    """

    bodies: np.ndarray
    ends: np.ndarray
    lengths: np.ndarray
    stiffness: np.ndarray


def fitted_linkers(what: str, network: ElasticNetwork, labels: np.ndarray) -> Linkers:
    """Fit linkers of domains (m,) of the atoms of a network.

    Raises
    ------
    ParameterError
        Domains that contacts do not hold together, or a fit that does not converge.
    """
    x, n = network.positions, int(labels.max()) + 1
    own = labels[network.contacts]
    across = network.contacts[own[:, 0] != own[:, 1]]
    if not len(across):
        raise _loose(what, 6 * (n - 1))
    middles = np.array([x[labels == k].mean(axis=0) for k in range(n)])
    relative = _relative_motions(x, labels, across, middles)
    pairs = np.sort(labels[across], axis=1)
    kinds, which = np.unique(pairs, axis=0, return_inverse=True)
    which = which.ravel()
    d = x[across[:, 1]] - x[across[:, 0]]
    lengths = np.linalg.norm(d, axis=1)
    stretch = np.einsum("pk,pkq->pq", d / lengths[:, None], relative)
    # (kinds, 6n, 6n) in units of the stiffness of the network.
    stiff = np.array([stretch[which == k].T @ stretch[which == k] for k in range(len(kinds))])
    square = np.array([np.einsum("pkq,pkr->qr", *[relative[which == k]] * 2) for k in range(len(kinds))])
    fit = np.zeros((len(network.modes), 6 * n))
    for k in range(n):
        rigid = _motions(x[labels == k] - middles[k]).reshape(-1, 6)
        fit[:, 6 * k : 6 * k + 6] = network.modes[:, labels == k].reshape(len(fit), -1) @ np.linalg.pinv(rigid).T
    covariance = fit.T @ (fit / network.eigenvalues[:, None])
    wanted = np.einsum("kqr,rq->k", square, covariance)
    s = np.ones(len(kinds))
    for _ in range(_SWEEPS):
        values, vectors = np.linalg.eigh(np.einsum("k,kqr->qr", s, stiff))
        free = int((values < _FREE * values[-1]).sum())
        if free > 6:
            raise _loose(what, free - 6)
        inverse = (vectors[:, 6:] / values[6:]) @ vectors[:, 6:].T
        ratio = np.einsum("kqr,rq->k", square, inverse) / wanted
        s *= ratio
        if np.abs(np.log(ratio)).max() < _PRECISION:
            break
    else:
        raise ParameterError(f"{what}: stiffnesses of linkers of these domains cannot be found")
    return Linkers(labels[across], x[across], lengths, network.stiffness * s[which])


def _loose(what: str, motions: int) -> ParameterError:
    return ParameterError(
        f"{what}: {motions} relative motions of the domains are resisted by no contact between them: give the network "
        "a wider cutoff, or divide into fewer domains"
    )


def _motions(arms: np.ndarray) -> np.ndarray:
    """Return displacements (m, 3, 6) of points at these arms by unit translations and rotations."""
    out = np.zeros((len(arms), 3, 6))
    out[:, :, :3] = np.eye(3)
    out[:, :, 3:] = np.cross(np.eye(3), arms[:, None]).transpose(0, 2, 1)
    return out


def _relative_motions(x: np.ndarray, labels: np.ndarray, contacts: np.ndarray, middles: np.ndarray) -> np.ndarray:
    """Return motions (p, 3, 6 n) of second atoms of contacts relative to the first, by those of domains about
    middles."""
    out = np.zeros((len(contacts), 3, len(middles), 6))
    for end, sign in ((0, -1.0), (1, 1.0)):
        atom = contacts[:, end]
        out[np.arange(len(atom)), :, labels[atom]] += sign * _motions(x[atom] - middles[labels[atom]])
    return out.reshape(len(contacts), 3, -1)
