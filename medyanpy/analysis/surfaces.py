"""Membranes frame by frame: curvatures, reduced volume, and the order of the mesh."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from medyanpy._tools.images import next_to_each_other
from medyanpy._tools.sums import total
from medyanpy.analysis.frames import Source
from medyanpy.beads import Membrane
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.mesh import TriangleMesh, geometry, orientation
from medyanpy.mesh.connectivity import Connectivity, sides_of
from medyanpy.mesh.images import crossing

__all__ = [
    "Curvatures", "MeshOrder", "Patch", "Surfaces", "curvatures", "mesh_order", "reduced_volume", "vertex_spacing",
]  # fmt: skip


@dataclass(frozen=True)
class Curvatures:
    """Curvatures at the vertices of a membrane; with one frame there is no axis of frames.

    Attributes
    ----------
    mean : (m, V) or (V,) float array, 1/nm
        Half the sum of the principal curvatures, positive where the surface bulges along its normals; nan on borders.
    gaussian : (m, V) or (V,) float array, 1/nm²
        Their product; nan on borders.
    area : (m, V) or (V,) float array, nm²
        Of the vertices: a third of the triangles around each.
    """

    mean: np.ndarray
    gaussian: np.ndarray
    area: np.ndarray


@dataclass(frozen=True)
class MeshOrder:
    """Regularity of a mesh; with one frame there is no axis of frames.

    Attributes
    ----------
    hexatic : (m, V) or (V,) float array, 0 to 1
        Absolute ψ6 of each vertex: 1 where its neighbours are six at equal angles; nan on borders.
    neighbors : (m, V) or (V,) int array
        Number of edges at each vertex.
    """

    hexatic: np.ndarray
    neighbors: np.ndarray


def curvatures(source: Any, membrane: Any = None, *, faces: Any = None, box: Any = None) -> Curvatures:
    r"""Return mean and Gaussian curvature at the vertices of a membrane, with its triangles as they are in each frame.

    As `TriangleMesh.mean_curvatures` and `TriangleMesh.gaussian_curvatures`; :math:`\sum_v K_v A_v = 2\pi\chi` over a
    closed mesh.

    Parameters
    ----------
    source : frames; see `radial_distribution`. A TriangleMesh is a frame, too.
    membrane : handle, its name or a TriangleMesh, optional
        Gives vertices and triangles; not needed where `faces` are given, whose vertices are then all rows. Triangles
        are those of each frame, where edges flip; for arrays of positions, those of its mesh.
    faces : (F, 3) int, or one array for each frame, optional
    box : (3,) float or None, nm, or one for each frame, optional
        As of `radial_distribution`: edges go to the nearest images. For arrays of positions that of the mesh, where
        none is given.

    Raises
    ------
    ParameterError, TopologyError
        As `mean_square_displacement`. Not a membrane. Triangles of vertices that do not exist.

    Examples
    --------
    >>> import medyanpy as mp
    >>> found = mp.analysis.curvatures(mp.TriangleMesh.icosphere(10.0, 3))
    >>> float(found.mean.mean().round(3)), float(((found.gaussian * found.area).sum() / np.pi).round(6))
    (0.1, 4.0)
    """
    surfaces = Surfaces("curvatures", source, membrane, faces, box)
    found = [patch.curvatures() for patch in surfaces]
    return Curvatures(*(surfaces.stacked([one[i] for one in found]) for i in range(3)))


def reduced_volume(source: Any, membrane: Any = None, *, faces: Any = None, box: Any = None) -> np.ndarray:
    r"""Return the volume of a closed membrane over that of a sphere of its area.

    .. math:: v = \frac{3 V}{4\pi\,(A/4\pi)^{3/2}}

    Source: U. Seifert, K. Berndl, R. Lipowsky, Phys. Rev. A 44, 1182 (1991).

    Parameters
    ----------
    source, membrane, faces, box
        As of `curvatures`.

    Returns
    -------
    (m,) or () float, <= 1

    ParameterError, TopologyError
        As of `curvatures`; a membrane that encloses nothing: one with borders, or that closes through the box.

    Examples
    --------
    >>> import medyanpy as mp
    >>> float(mp.analysis.reduced_volume(mp.TriangleMesh.red_blood_cell()).round(2))
    0.64
    """
    surfaces = Surfaces("reduced_volume", source, membrane, faces, box)
    found = []
    for k, patch in enumerate(surfaces):
        patch.expect_closed()
        if k == 0:
            patch.expect_one_side()
        found.append(abs(patch.volume) * 3.0 / (4.0 * np.pi * (patch.face_areas.sum() / (4.0 * np.pi)) ** 1.5))
    return surfaces.stacked([np.asarray(one) for one in found])


def mesh_order(source: Any, membrane: Any = None, *, faces: Any = None, box: Any = None) -> MeshOrder:
    r"""Return bond-orientational order and numbers of neighbours of the vertices of a membrane.

    .. math:: |\psi_6(v)| = \Bigl|\frac1{n_v} \sum_j e^{6 i \theta_{vj}}\Bigr|

    over the n neighbours j of a vertex, with the directions θ of the edges in the plane across its normal. It is 1 in a
    regular lattice of triangles, and less in a membrane whose edges flip. Source: D. R. Nelson, B. I. Halperin, Phys.
    Rev. B 19, 2457 (1979).

    Parameters
    ----------
    source, membrane, faces, box
        As of `curvatures`, and so are errors.

    Examples
    --------
    >>> import medyanpy as mp
    >>> order = mp.analysis.mesh_order(mp.TriangleMesh.flat_sheet(6, 6, 1.0))
    >>> float(np.nanmin(order.hexatic).round(12)), np.unique(order.neighbors).tolist()
    (1.0, [2, 3, 4, 5, 6])
    """
    surfaces = Surfaces("mesh_order", source, membrane, faces, box)
    found = [(patch.hexatic(), patch.neighbors()) for patch in surfaces]
    return MeshOrder(*(surfaces.stacked([one[i] for one in found]) for i in range(2)))


def vertex_spacing(area: float, vertices: int) -> float:
    """Return the edge of the regular lattice of triangles with so many vertices on an area, nm."""
    return float(np.sqrt(2.0 * area / (np.sqrt(3.0) * vertices)))


class Patch:
    """A membrane in one frame: vertices, faces, box, and the places of the corners (F, 3, 3) of each face, as seen from
    its first."""

    def __init__(self, what: str, x: np.ndarray, faces: np.ndarray, box: np.ndarray | None) -> None:
        self.what: str = what
        self.x: np.ndarray = x
        self.faces: np.ndarray = faces
        self.box: np.ndarray | None = box
        self.corners: np.ndarray = geometry.corners_of(x, faces, box)
        self.area_vectors: np.ndarray = 0.5 * geometry.area_vectors(x, faces, box)
        self.face_areas: np.ndarray = np.sqrt(geometry.squared_lengths(self.area_vectors))

    @cached_property
    def whole(self) -> np.ndarray:
        """Positions (V, 3) of vertices, each by the image that is next to its neighbours."""
        return self.x if self.box is None else next_to_each_other(self.x, sides_of(self.faces), self.box)

    @cached_property
    def closes_through(self) -> np.ndarray:
        """Axes (3,) along which the membrane closes through the sides of the box, bool."""
        return np.asarray(crossing(self.whole, self.faces, self.box).any(axis=0))

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sum values (F, 3, ...) at corners over the corners at each vertex, (V, ...)."""
        return geometry.corner_sums(self.x, self.faces, values)

    def vertex_vectors(self) -> np.ndarray:
        """Return a third of the sum of the area vectors around each vertex, (V, 3)."""
        return self.sums(np.repeat(self.area_vectors[:, None] / 3.0, 3, axis=1))

    @property
    def volume(self) -> float:
        return total(geometry.signed_volumes(self.whole, self.faces))

    @property
    def centroid(self) -> np.ndarray:
        """Centroid (3,) of the enclosed volume."""
        middle = self.whole.mean(axis=0)
        corners = self.whole[self.faces] - middle
        volumes = np.einsum("fi,fi->f", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0
        return np.asarray(middle + volumes @ corners.sum(axis=1) / (4.0 * volumes.sum()))

    def expect_closed(self) -> None:
        if geometry.unpaired(self.faces).any():
            raise ParameterError(f"{self.what}: the membrane has borders, so that it encloses nothing")
        if self.closes_through.any():
            why = "closes through the sides of the box, so that it encloses nothing"
            raise ParameterError(f"{self.what}: the membrane {why}")

    def expect_one_side(self) -> None:
        """Refuse a part turned inside out beside others that are not: volumes of the two do not add up."""
        c = Connectivity(np.ascontiguousarray(self.faces, np.int32), len(self.x))
        wrong = orientation.inside_out(self.whole, c, self.box)
        n = len(c.components)
        if wrong and len(wrong) < n:
            raise ParameterError(
                f"{self.what}: part {wrong[0]} of {n} of the membrane ({len(c.components[wrong[0]])} faces) is turned "
                f"inside out, and its volume counts as negative: mesh.flipped([{wrong[0]}]) turns it"
            )

    def curvatures(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return mean and Gaussian curvatures (V,), and areas of vertices."""
        area = self.sums(np.repeat(self.face_areas[:, None] / 3.0, 3, axis=1))
        both = geometry.mean_curvatures, geometry.gaussian_curvatures
        mean, gaussian = (of(self.x, self.faces, self.box) for of in both)
        return mean, gaussian, area

    def inside(self) -> np.ndarray:
        """Mark vertices with a full ring of faces, (V,) bool."""
        out = np.bincount(self.faces.ravel(), minlength=len(self.x)) > 0
        out[self.faces[geometry.unpaired(self.faces)]] = False
        return np.asarray(out)

    def neighbors(self) -> np.ndarray:
        """Count the edges at each vertex, (V,)."""
        # Each side inside is seen from both of its faces, each at a border from one.
        edges = np.unique(np.sort(sides_of(self.faces), axis=1), axis=0)
        return np.bincount(edges.ravel(), minlength=len(self.x))

    def hexatic(self) -> np.ndarray:
        """Return absolute ψ6 of vertices (V,), nan on borders."""
        g = self.vertex_vectors()
        with np.errstate(invalid="ignore", divide="ignore"):
            normal = g / np.linalg.norm(g, axis=1)[:, None]
        # Any direction across the normal is one to count angles from.
        axis = np.eye(3)[np.argmin(np.abs(normal), axis=1)]
        first = np.cross(normal, axis)
        first /= np.linalg.norm(first, axis=1)[:, None]
        second = np.cross(normal, first)
        # Around a full ring each neighbour follows the vertex in one face.
        side = np.roll(self.corners, -1, axis=1) - self.corners
        at = self.faces
        z = np.einsum("fki,fki->fk", side, first[at]) + 1j * np.einsum("fki,fki->fk", side, second[at])
        with np.errstate(invalid="ignore", divide="ignore"):
            turned = (z / np.abs(z)) ** 6
            psi = self.sums(np.stack([turned.real, turned.imag], axis=-1))
            out = np.hypot(psi[:, 0], psi[:, 1]) / np.bincount(at.ravel(), minlength=len(self.x))
        return np.where(self.inside(), out, np.nan)


class Surfaces:
    """A membrane in all frames, for the function `what`; iterate over it. `one` is True of a single frame."""

    def __init__(self, what: str, source: Any, membrane: Any, faces: Any, box: Any) -> None:
        self.what = what
        if isinstance(source, TriangleMesh):
            membrane = membrane if membrane is not None else source
            source = source.vertices
        self.frames: Source = Source(what, source)
        self.one: bool = self.frames.one
        given = membrane if isinstance(membrane, TriangleMesh) else None
        alone = self.frames.times is None
        mesh = membrane.mesh if alone and isinstance(membrane, Membrane) else given
        # Positions alone do not give a box, or faces.
        box = mesh.box if box is None and alone and mesh is not None else box
        whole = given is not None or membrane is None
        self.rows: np.ndarray = np.arange(self.frames.n_rows) if whole else self.frames.rows("membrane", membrane)
        self.boxes: list[np.ndarray | None] = self.frames.boxes(box)
        self._name = getattr(membrane, "name", membrane)
        self._faces = self.frames.arrays("faces", faces, 3) if faces is not None else None
        if self._faces is None and mesh is not None:
            self._faces = [mesh.faces]
        if self._faces is None and (membrane is None or alone):
            raise ParameterError(f"{what}: give membrane=, its handle or mesh, or faces=, (F, 3) rows of its corners")

    def __len__(self) -> int:
        return len(self.frames)

    def __iter__(self) -> Iterator[Patch]:
        for k, x in enumerate(self.frames.each(self.rows)):
            if np.isnan(x).any():
                raise ParameterError(f"{self.what}: positions of frame {k} are not finite")
            faces = self._faces[k % len(self._faces)] if self._faces is not None else self._faces_of(k)
            wrong = (faces < 0) | (faces >= len(x))
            if wrong.any() or not len(faces):
                i = int(np.argmax(wrong.any(axis=1))) if len(faces) else 0
                said = f"faces[{i}] = {faces[i].tolist() if len(faces) else []}"
                raise TopologyError(f"{self.what}: {said}, but there are {len(x)} vertices, counted from 0")
            yield Patch(self.what, x, faces, self.boxes[k])

    def _faces_of(self, k: int) -> np.ndarray:
        known = self.frames.objects[k].faces
        if self._name not in known:
            there = ", ".join(map(repr, known)) or "none"
            raise TopologyError(f"{self.what}: {self._name!r} is not a membrane; there are: {there}")
        return np.asarray(known[self._name], dtype=np.int64)

    def stacked(self, found: list[np.ndarray]) -> np.ndarray:
        return np.asarray(found[0] if self.one else np.stack(found))
