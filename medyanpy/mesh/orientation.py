"""Turning faces the same way round on each component, and closed components outward."""

import numpy as np

from medyanpy.mesh.connectivity import Connectivity
from medyanpy.mesh.geometry import area_vectors, signed_volumes, winding_number


def oriented(x: np.ndarray, faces: np.ndarray, done: dict[str, int]) -> np.ndarray:
    """Return faces oriented consistently; counts go to ``done``.

    An inconsistent component is turned outward (positive volume) where it is closed, and to the side that
    most of its area had where it is open. A consistent closed component with negative volume is turned
    outward too, unless it lies inside another closed component: an inner membrane may face its cavity on
    purpose. The caller guarantees a surface without branching edges, bow-ties and one-sided components.
    """
    c = Connectivity(faces, len(x))
    component = c.component_of_face
    n = int(component.max()) + 1
    # Faces on the other side than the lowest face of their component.
    _, lowest = np.unique(component, return_index=True)
    other = c.side_of_face[:, 0] != c.side_of_face[lowest, 0][component]
    mixed = np.zeros(n, dtype=bool)
    mixed[component[other]] = True
    areas = np.linalg.norm(area_vectors(x, faces), axis=1)
    majority = np.bincount(component, np.where(other, areas, -areas), n) > 0
    reverse = other ^ majority[component]

    closed = np.ones(n, dtype=bool)
    closed[component[c.border_half_edges // 3]] = False
    volumes = np.bincount(component, signed_volumes(x, _reversed(faces, reverse)), n)
    for k in np.flatnonzero(closed & (volumes < 0)).tolist():
        if mixed[k] or not _lies_inside_another(x, faces, c, k, closed):
            reverse ^= component == k
            done["components_turned_outward"] = done.get("components_turned_outward", 0) + int(not mixed[k])
    done["faces_reversed"] = int(reverse.sum())
    return _reversed(faces, reverse)


def _reversed(faces: np.ndarray, which: np.ndarray) -> np.ndarray:
    faces = faces.copy()
    faces[which] = faces[which][:, [0, 2, 1]]
    return faces


def _lies_inside_another(
    x: np.ndarray, faces: np.ndarray, c: Connectivity, k: int, closed: np.ndarray
) -> bool:
    own = x[faces[c.components[k]]].reshape(-1, 3)
    low, high = own.min(axis=0), own.max(axis=0)
    for other in np.flatnonzero(closed):
        if other == k:
            continue
        part = c.components[other]
        corners = x[faces[part]].reshape(-1, 3)
        if (corners.min(axis=0) > low).any() or (corners.max(axis=0) < high).any():
            continue
        # A component with mixed faces has no winding number: count its faces in the orientation of its first.
        wrong = c.side_of_face[part, 0] != c.side_of_face[part[0], 0]
        if abs(winding_number(own[0], x, _reversed(faces[part], wrong))) > 0.5:
            return True
    return False
