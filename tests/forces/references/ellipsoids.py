"""Ellipsoids against points, links and triangles: their energy written again."""

import numpy as np
from scipy.spatial.transform import Rotation

import medyanpy as mp

FORMS = ("WCA", "soft")
END = {"WCA": 2.0 ** (1 / 6), "soft": 1.0}


def matrices(q):
    return Rotation.from_quat(np.roll(np.atleast_2d(q), -1, axis=-1)).as_matrix()


def look(system, threads=1, energy=True, word="BAB"):
    context = mp.Context(system, mp.SplittingIntegrator(word, 1e-3), threads=threads)
    return context.get_state(positions=True, forces=True, energy=energy)


# The energy once more ------------------------------------------------------------------------------------------------


def nearest(M, corners):
    """(n,) least p.M p over the places p of shapes with the corners (n, c, 3): the inside, if it has a place where
    nothing is pulled along the shape, or the least of its sides."""
    c = corners.shape[1]
    if c == 1:
        return np.einsum("ni,nij,nj->n", corners[:, 0], M, corners[:, 0])
    sides = [nearest(M, np.delete(corners, k, axis=1)) for k in range(c)]
    edges = corners[:, 1:] - corners[:, :1]
    flat = edges @ M
    weights = np.linalg.solve(flat @ edges.transpose(0, 2, 1), -(flat @ corners[:, 0, :, None]))[..., 0]
    inside = (weights > 0.0).all(axis=1) & (weights.sum(axis=1) < 1.0)
    p = corners[:, 0] + np.einsum("nk,nki->ni", weights, edges)
    return np.where(inside, np.einsum("ni,nij,nj->n", p, M, p), np.min(sides, axis=0))


def growth(axes, R, thickness, corners, sections=40):
    """(n,) μ of ellipsoids with their centres at 0: the largest over λ of the least over the shape, golden sections."""
    A = np.einsum("nij,nj,nkj->nik", R, axes**2, R)
    B = np.eye(3) * np.square(thickness)[:, None, None]

    def value(share):
        M = np.linalg.inv((1.0 - share)[:, None, None] * A + share[:, None, None] * B)
        return share * (1.0 - share) * nearest(M, corners)

    golden = 0.5 * (np.sqrt(5.0) - 1.0)
    low, high = np.zeros(len(axes)), np.ones(len(axes))
    first, second = high - golden, low + golden
    at_first, at_second = value(first), value(second)
    for _ in range(sections):
        left = at_first > at_second
        low, high = np.where(left, low, first), np.where(left, second, high)
        new = np.where(left, high - golden * (high - low), low + golden * (high - low))
        at_new = value(new)
        first, second = np.where(left, new, second), np.where(left, first, new)
        at_first, at_second = np.where(left, at_new, at_second), np.where(left, at_first, at_new)
    return np.sqrt(value(0.5 * (low + high)))


def law(mu, epsilon, form):
    if form == "soft":
        return epsilon * np.maximum(0.0, 1.0 - mu) ** 2
    return np.where(mu < END[form], 4.0 * epsilon * (mu**-12 - mu**-6) + epsilon, 0.0)
