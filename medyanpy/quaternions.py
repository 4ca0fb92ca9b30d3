"""Unit quaternions, scalar first, as rotations of vectors: arrays of them, a row each."""

import numpy as np

__all__ = ["matrices", "product", "smallest_turn", "turned"]


def product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """(n, 4) the rotation q followed by p."""
    scalar = p[:, 0] * q[:, 0] - np.einsum("ij,ij->i", p[:, 1:], q[:, 1:])
    return np.column_stack([scalar, p[:, :1] * q[:, 1:] + q[:, :1] * p[:, 1:] + np.cross(p[:, 1:], q[:, 1:])])


def turned(q: np.ndarray, a: np.ndarray) -> np.ndarray:
    """(n, 3) vectors a after the rotations q."""
    s = 2.0 * np.cross(q[:, 1:], a)
    return a + q[:, :1] * s + np.cross(q[:, 1:], s)


def matrices(q: np.ndarray) -> np.ndarray:
    """(n, 3, 3) rotation matrices; their columns are the axes of the body in space."""
    return np.stack([turned(q, np.broadcast_to(e, (len(q), 3))) for e in np.eye(3)], axis=2)


def smallest_turn(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n, 4) quaternions of the smallest rotations from unit vectors a to b; of opposite ones, any."""
    q = np.column_stack([1.0 + np.einsum("ij,ij->i", a, b), np.cross(a, b)])
    opposite = np.linalg.norm(q, axis=1) < 1e-8
    if opposite.any():
        axis = np.cross(a[opposite], np.eye(3)[np.argmin(np.abs(a[opposite]), axis=1)])
        q[opposite] = np.column_stack([np.zeros(len(axis)), axis])
    return q / np.linalg.norm(q, axis=1)[:, None]
