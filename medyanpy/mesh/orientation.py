"""Orientation of faces: the same on each component, and closed components outward."""

import numpy as np

from medyanpy._tools.images import displacement, images_between
from medyanpy.mesh.connectivity import Connectivity
from medyanpy.mesh.geometry import area_vectors, signed_volumes, winding_number


def oriented(x: np.ndarray, faces: np.ndarray, done: dict[str, int]) -> np.ndarray:
    """Return faces oriented consistently; counts go to ``done``. An inconsistent component is turned outward where it
    is closed, and to the side that most of its area had where it is open. A consistent closed one turned inward is
    turned outward, unless it lies inside another. There are no branching edges, bow-ties and one-sided components."""
    c = Connectivity(faces, len(x))
    component = c.component_of_face
    # Faces on the other side than the lowest face of their component.
    _, lowest = np.unique(component, return_index=True)
    other = c.side_of_face[:, 0] != c.side_of_face[lowest, 0][component]
    mixed = np.bincount(component, other) > 0
    areas = np.linalg.norm(area_vectors(x, faces), axis=1)
    majority = np.bincount(component, np.where(other, areas, -areas)) > 0
    reverse = other ^ majority[component]
    closed = _closed(c)
    volumes = np.bincount(component, signed_volumes(x, reversed_faces(faces, reverse)))
    for k in np.flatnonzero(closed & (volumes < 0)).tolist():
        if mixed[k] or not _lies_inside_another(x, faces, c, k, closed, None):
            reverse ^= component == k
            done["components_turned_outward"] = done.get("components_turned_outward", 0) + int(not mixed[k])
    done["faces_reversed"] = int(reverse.sum())
    return reversed_faces(faces, reverse)


def inside_out(x: np.ndarray, c: Connectivity, box: np.ndarray | None) -> list[int]:
    """Return closed components with normals inward that lie inside no other one, where that may be meant for the space
    between the two; without those that close through the sides of the box."""
    encloses = _closed(c)
    encloses[c.component_of_face[c.edge_faces[edges_across(x, c, box), 0]]] = False
    volumes = np.bincount(c.component_of_face, signed_volumes(x, c.faces))
    found = np.flatnonzero(encloses & (volumes < 0.0)).tolist()
    return [k for k in found if not _lies_inside_another(x, c.faces, c, k, encloses, box)]


def nested(x: np.ndarray, c: Connectivity, box: np.ndarray | None) -> list[int]:
    """Return closed components with normals outward inside another one, whose volume a sum over all counts twice."""
    closed = _closed(c)
    volumes = np.bincount(c.component_of_face, signed_volumes(x, c.faces))
    found = np.flatnonzero(closed & (volumes > 0.0)).tolist() if closed.sum() > 1 else []
    return [k for k in found if _lies_inside_another(x, c.faces, c, k, closed, box)]


def edges_across(x: np.ndarray, c: Connectivity, box: np.ndarray | None) -> np.ndarray:
    """Mark edges across sides of a box, (E,) bool."""
    if box is None:
        return np.zeros(len(c.edges), dtype=bool)
    a, b = c.edges.T
    return np.asarray((np.abs(images_between(x[b] - x[a], box)) > 0.25 * box)[:, box > 0.0].any(axis=1))


def _closed(c: Connectivity) -> np.ndarray:
    """Mark components without a border."""
    of = c.component_of_face
    return np.asarray(np.bincount(of[c.border_half_edges // 3], minlength=int(of.max()) + 1) == 0)


def reversed_faces(faces: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Return faces (F, 3), of which some (F,) bool are listed the other way round."""
    faces = faces.copy()
    faces[which] = faces[which][:, [0, 2, 1]]
    return faces


def _lies_inside_another(
    x: np.ndarray, faces: np.ndarray, c: Connectivity, k: int, closed: np.ndarray, box: np.ndarray | None
) -> bool:
    own = x[faces[c.components[k]]].reshape(-1, 3)
    for other in np.flatnonzero(closed):
        if other == k:
            continue
        part = c.components[other]
        corners = x[faces[part]].reshape(-1, 3)
        first, last = corners.min(axis=0), corners.max(axis=0)
        middle = 0.5 * (own.min(axis=0) + own.max(axis=0))
        center = 0.5 * (first + last)
        shift = displacement(center, middle, box) + center - middle
        if (first > own.min(axis=0) + shift).any() or (last < own.max(axis=0) + shift).any():
            continue
        # A component with mixed faces has no winding number: count its faces in the orientation of its first.
        wrong = c.side_of_face[part, 0] != c.side_of_face[part[0], 0]
        if abs(winding_number(own[0] + shift, x, reversed_faces(faces[part], wrong))) > 0.5:
            return True
    return False
