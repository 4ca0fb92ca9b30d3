"""Images of objects in a periodic box for display: one image of each, and whole.

Positions of states and files follow one image of a bead, which may be far from the box. Meshes that close through its
sides have triangles between vertices on both sides. Code that draws, or writes for programs that draw, takes images
from here.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from medyanpy._tools.images import box_lengths, displacement, images_between, wrapped
from medyanpy.mesh.connectivity import connected, sides_of

__all__ = ["Part", "crossing", "shown_positions", "with_images"]


class Part(NamedTuple):
    """Beads (rows) that are shown together; by these, faces (F, 3) of a membrane, and links (k, 2) of filaments and
    rods. In-triangle points are `on` the membrane of a name, with the triangle of each. `stays`: shown where they
    are."""

    beads: np.ndarray
    faces: np.ndarray | None = None
    links: np.ndarray | None = None
    on: tuple[str, np.ndarray] | None = None
    stays: bool = False


def shown_positions(x: np.ndarray, parts: Mapping[str, Part], box: np.ndarray) -> np.ndarray:
    """Return the image of each bead that is shown, (n, 3) nm: single beads in the box, filaments, rods and pieces of
    membranes whole, with their centre in it. Vertices of membranes that close through its sides are between these."""
    out: np.ndarray = np.array(x, np.float64)
    first_corners = {}
    for name, part in parts.items():
        if part.faces is not None:
            out[part.beads] = _sheet(x[part.beads], part.faces, box)
            vertices, faces, _ = with_images(out[part.beads], part.faces, box)
            first_corners[name] = vertices[faces[:, 0]] if len(faces) else np.empty((0, 3))
    for part in parts.values():
        own = x[part.beads]
        if part.faces is not None or part.stays:
            continue
        if part.on is not None:
            corner = first_corners[part.on[0]][part.on[1]]
            out[part.beads] = corner + displacement(corner, own, box)
        elif part.links is not None and len(own):
            group = connected(len(own), part.links[:, 0], part.links[:, 1])
            out[part.beads] = own + _into_the_box(own, group, box)[group]
        else:
            out[part.beads] = wrapped(own, box)
    return out


def with_images(
    vertices: np.ndarray, faces: np.ndarray, box: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return vertices (V + k, 3) and triangles (F, 3) of which none lies across a side of the box, and the vertex that
    each is or is an image of, (V + k,). Images are behind all others."""
    whole = np.arange(len(vertices))
    if box is None or not len(faces):
        return vertices, faces, whole
    lengths = box_lengths(box)
    inverse = np.divide(1.0, lengths, out=np.zeros(3), where=lengths > 0.0)
    corners = vertices[faces]
    # By whole lengths of the box, from where vertices are.
    by = -np.rint((corners - corners[:, :1]) * inverse).astype(np.int64)
    by -= by.min(axis=1, keepdims=True)
    moved = by.any(axis=2)
    if not moved.any():
        return vertices, faces, whole
    images, number = np.unique(np.column_stack([faces[moved], by[moved]]), axis=0, return_inverse=True)
    out = faces.astype(np.int64)
    out[moved] = len(vertices) + number.reshape(-1)
    more = vertices[images[:, 0]] + lengths * images[:, 1:]
    return np.concatenate([vertices, more]), out, np.concatenate([whole, images[:, 0]])


def crossing(vertices: np.ndarray, faces: np.ndarray, box: np.ndarray | None) -> np.ndarray:
    """Mark the axes along which each triangle lies across sides of the box, (F, 3) bool."""
    if box is None or not len(faces):
        return np.zeros((len(faces), 3), bool)
    corners = vertices[faces]
    return np.asarray((images_between(corners - np.roll(corners, 1, axis=1), box) != 0.0).any(axis=1))


def _sheet(x: np.ndarray, faces: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Return places where the vertices of a membrane are shown, (V, 3)."""
    if not len(faces):
        return wrapped(x, box)
    piece = connected(len(x), *sides_of(faces).T)
    closes = np.zeros((int(piece.max()) + 1, 3), bool)
    np.logical_or.at(closes, piece[faces[:, 0]], crossing(x, faces, box))
    whole = x + _into_the_box(x, piece, box)[piece]
    return np.where(closes[piece], wrapped(x, box), whole)


def _into_the_box(x: np.ndarray, group: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Return the lengths of the box, (k, 3), that bring the centre of each group (n,) into it."""
    lengths = box_lengths(box)
    inverse = np.divide(1.0, lengths, out=np.zeros(3), where=lengths > 0.0)
    count = np.bincount(group)
    centre = np.stack([np.bincount(group, x[:, c]) for c in range(3)], axis=1) / count[:, None]
    return np.asarray(-lengths * np.floor(centre * inverse))
