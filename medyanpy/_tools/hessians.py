"""Hessians from their blocks."""

import numpy as np

__all__ = ["entries"]


def entries(i: np.ndarray, j: np.ndarray, blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return values, rows and columns, for a sparse matrix that adds up repeated entries. They are of blocks (k, 3, 3)
    of the beads i and j (k,), and of the mirrors of those with i != j, which are not given."""
    apart, c = i != j, np.arange(3)
    rows, columns = np.concatenate([i, j[apart]]), np.concatenate([j, i[apart]])
    h = np.concatenate([blocks, blocks[apart].transpose(0, 2, 1)])
    return (
        h.ravel(),
        np.broadcast_to((3 * rows)[:, None, None] + c[:, None], h.shape).ravel(),
        np.broadcast_to((3 * columns)[:, None, None] + c, h.shape).ravel(),
    )
