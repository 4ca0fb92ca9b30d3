"""Energies of charges and all their images, written in NumPy."""

import numpy as np
from scipy.special import erfc


def ewald(x, q, box, splitting=None):
    """Energy and forces (n, 3) of charges and all their images, surrounded by a conductor, to about 1e-11; a charge
    that is left is balanced by an even background."""
    box = np.broadcast_to(np.asarray(box, float), (3,))
    side, volume = box.min(), box.prod()
    a = 7.0 / side if splitting is None else splitting
    n = np.array(np.meshgrid(*[range(-2, 3)] * 3, indexing="ij")).reshape(3, -1).T * box
    energy = -a / np.sqrt(np.pi) * np.sum(q**2) - np.pi * np.sum(q) ** 2 / (2.0 * volume * a * a)
    force = np.zeros_like(x)
    for i in range(len(x)):
        d = x[i] - x
        d = (d - box * np.rint(d / box))[:, None, :] - n
        r = np.sqrt((d**2).sum(axis=2))
        r[i, ~n.any(axis=1)] = np.inf
        u = erfc(a * r) / r
        energy += 0.5 * q[i] * (q @ u).sum()
        slope = (u + 2.0 * a / np.sqrt(np.pi) * np.exp(-((a * r) ** 2))) / r**2
        force[i] += q[i] * np.einsum("j,jn,jnc->c", q, slope, np.where(np.isfinite(r)[:, :, None], d, 0.0))
    last = 2.0 * np.pi * np.ceil(a * side * 1.9) / side
    top = np.floor(last * box / (2.0 * np.pi)).astype(int)
    m = np.array(np.meshgrid(*[range(-t, t + 1) for t in top], indexing="ij")).reshape(3, -1).T
    g = 2.0 * np.pi / box * m[m.any(axis=1)]
    g = g[(g**2).sum(axis=1) <= last**2]
    size = (g**2).sum(axis=1)
    weight = 4.0 * np.pi / volume * np.exp(-size / (4.0 * a * a)) / size
    phase = np.exp(1j * x @ g.T)
    total = q @ phase
    energy += 0.5 * np.sum(weight * np.abs(total) ** 2)
    force += q[:, None] * ((np.conj(phase) * total).imag * -weight) @ g
    return energy, force
