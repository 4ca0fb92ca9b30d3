"""Unit quaternions, scalar first, as rotations of vectors: arrays of them, a row each."""

import numpy as np

__all__ = ["from_matrices", "matrices", "product", "smallest_turn", "turned"]


def product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the rotation q followed by p, (n, 4)."""
    scalar = p[:, 0] * q[:, 0] - np.einsum("ij,ij->i", p[:, 1:], q[:, 1:])
    return np.column_stack([scalar, p[:, :1] * q[:, 1:] + q[:, :1] * p[:, 1:] + np.cross(p[:, 1:], q[:, 1:])])


def turned(q: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return vectors a after the rotations q, (n, 3)."""
    s = 2.0 * np.cross(q[:, 1:], a)
    return a + q[:, :1] * s + np.cross(q[:, 1:], s)


def matrices(q: np.ndarray) -> np.ndarray:
    """Return rotation matrices (n, 3, 3); their columns are the axes of the body in space."""
    return np.stack([turned(q, np.broadcast_to(e, (len(q), 3))) for e in np.eye(3)], axis=2)


def from_matrices(R: np.ndarray) -> np.ndarray:
    """Return unit quaternions (n, 4) of rotation matrices (n, 3, 3), each next to the one before."""
    # The largest of the four products of two components keep all digits.
    diagonal = np.einsum("nii->ni", R)
    square = np.column_stack([1.0 + diagonal.sum(axis=1), 1.0 + 2.0 * diagonal - diagonal.sum(axis=1)[:, None]])
    off = np.column_stack([R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]])
    pair = np.column_stack([R[:, 1, 0] + R[:, 0, 1], R[:, 0, 2] + R[:, 2, 0], R[:, 2, 1] + R[:, 1, 2]])
    x, y, z = off.T
    a, b, c = pair.T
    # Row k: four times component k, times all components.
    table = np.stack(
        [
            np.column_stack([square[:, 0], x, y, z]),
            np.column_stack([x, square[:, 1], a, b]),
            np.column_stack([y, a, square[:, 2], c]),
            np.column_stack([z, b, c, square[:, 3]]),
        ],
        axis=1,
    )
    q = table[np.arange(len(R)), np.argmax(square, axis=1)]
    q /= np.linalg.norm(q, axis=1)[:, None]
    flips = np.where(np.einsum("ij,ij->i", q[1:], q[:-1]) < 0.0, -1.0, 1.0)
    out: np.ndarray = q * np.cumprod(np.concatenate([[1.0], flips]))[:, None]
    return out


def smallest_turn(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return quaternions (n, 4) of the smallest rotations from unit vectors a to b; of opposite ones, any."""
    q = np.column_stack([1.0 + np.einsum("ij,ij->i", a, b), np.cross(a, b)])
    opposite = np.linalg.norm(q, axis=1) < 1e-8
    if opposite.any():
        axis = np.cross(a[opposite], np.eye(3)[np.argmin(np.abs(a[opposite]), axis=1)])
        q[opposite] = np.column_stack([np.zeros(len(axis)), axis])
    out: np.ndarray = q / np.linalg.norm(q, axis=1)[:, None]
    return out
