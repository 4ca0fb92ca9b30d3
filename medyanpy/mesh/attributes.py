"""Quantities derived from the vertices and faces of a mesh: connectivity, measures, points on it."""

from functools import cached_property
from typing import Any, cast

import numpy as np

from medyanpy._tools.images import Box, box_lengths, displacement, images_within
from medyanpy._tools.sums import total
from medyanpy._tools.types import Numbers
from medyanpy.errors import MeshError, MeshQualityWarning, ParameterError, foreign_errors, warn_outside
from medyanpy.mesh import arguments, geometry, orientation
from medyanpy.mesh.connectivity import Connectivity, read_only

# Barycentric coordinates may be this far from their triangle: rounding of a few operations on numbers up to 1.
BARYCENTRIC_TOLERANCE = 1e-12


class MeshAttributes:
    """Derived quantities of a checked surface, computed when first asked for; arrays are read-only."""

    vertices: np.ndarray
    """(V, 3) float64, nm: positions."""
    faces: np.ndarray
    """(F, 3) int32: vertices of each face."""
    box: Box | None
    """Lengths of the periodic box through whose sides the mesh may close, nm, None in open directions; None without."""
    _connectivity: Connectivity

    def __repr__(self) -> str:
        n, k = len(self.borders), len(self.components)
        parts = [f"{len(self.vertices)} vertices", f"{len(self.faces)} faces"]
        parts += ["closed" if n == 0 else f"{n} border" + "s" * (n > 1), *[f"{k} components"] * (k > 1)]
        parts += [f"genus {self.genus}", *["in a box"] * (self.box is not None)]
        return f"{type(self).__name__}({', '.join(parts)})"

    @cached_property
    def _lengths(self) -> np.ndarray | None:
        return None if self.box is None else box_lengths(self.box)

    @cached_property
    def closes_through_the_box(self) -> bool:
        """True if triangles lie across the sides of the box, wherever images of vertices are taken: of a periodic sheet
        or tube."""
        return bool(orientation.edges_across(self.vertices, self._connectivity, self._lengths).any())

    @property
    def neighbors(self) -> np.ndarray:
        """Face across the edge opposite vertex i of each face, (F, 3) int32, -1 at a border."""
        return self._connectivity.neighbors

    @property
    def opposite_corners(self) -> np.ndarray:
        """Number ``3 * face + i`` of the corner beyond the edge opposite each corner, (F, 3) int32, -1 at a border."""
        return self._connectivity.opposite_corners

    @property
    def edges(self) -> np.ndarray:
        """Vertices of each edge, (E, 2) int32, lower number first, sorted."""
        return self._connectivity.edges

    @property
    def edge_faces(self) -> np.ndarray:
        """Faces of each edge, (E, 2) int32, lower number first; -1 in the second place at a border."""
        return self._connectivity.edge_faces

    @property
    def vertex_faces(self) -> tuple[np.ndarray, np.ndarray]:
        """Offsets (V+1,) int32 and corners (3F,) int32, ``3 * face + i``, ascending for each vertex v:
        ``corners[offsets[v]:offsets[v + 1]]``."""
        return self._connectivity.vertex_faces

    @property
    def borders(self) -> list[np.ndarray]:
        """Borders as vertex loops, (n,) int32 each, from their lowest vertex, with the surface on the left seen along
        the normals."""
        return list(self._connectivity.borders)

    @property
    def border_vertices(self) -> np.ndarray:
        """Mask (V,) of vertices on a border, bool: ``add_membrane(..., fixed=mesh.border_vertices)`` holds them."""
        out = np.zeros(len(self.vertices), bool)
        for loop in self._connectivity.borders:
            out[loop] = True
        return out

    @property
    def components(self) -> list[np.ndarray]:
        """Faces of each connected component, (n,) int32 ascending; components by their lowest face."""
        return list(self._connectivity.components)

    @property
    def component_of_face(self) -> np.ndarray:
        """Component of each face, (F,) int32."""
        return self._connectivity.component_of_face

    @property
    def is_closed(self) -> bool:
        """True if there is no border."""
        return len(self._connectivity.border_half_edges) == 0

    @property
    def euler_characteristic(self) -> int:
        """V - E + F."""
        return len(self.vertices) - len(self.edges) + len(self.faces)

    @property
    def genus(self) -> int:
        """Number of handles, summed over the components, every border closed by a cap."""
        return (2 * len(self.components) - self.euler_characteristic - len(self.borders)) // 2

    @cached_property
    def _area_vectors(self) -> np.ndarray:
        return geometry.area_vectors(self.vertices, self.faces, self._lengths)

    @cached_property
    def face_areas(self) -> np.ndarray:
        """Areas of faces, (F,) float64, nm^2."""
        return read_only(0.5 * np.sqrt(geometry.squared_lengths(self._area_vectors)))

    @cached_property
    def face_normals(self) -> np.ndarray:
        """Unit normals of faces, (F, 3) float64."""
        return read_only(self._area_vectors / (2.0 * self.face_areas)[:, None])

    @cached_property
    def area(self) -> float:
        """Total area, nm^2."""
        return total(self.face_areas)

    @cached_property
    def inside_out(self) -> list[int]:
        """Closed components with normals inward, which `repaired` or `flipped` turns, without those inside another
        closed component, where that may be meant, and those that close through a box."""
        return orientation.inside_out(self.vertices, self._connectivity, self._lengths)

    @cached_property
    def _nested(self) -> list[int]:
        return orientation.nested(self.vertices, self._connectivity, self._lengths)

    def _described_part(self, k: int) -> str:
        """Describe a component for a message."""
        part = self.components[k]
        x, y, z = self.vertices[self.faces[part]].reshape(-1, 3).mean(axis=0).tolist()
        return f"part {k} of {len(self.components)} ({len(part)} faces around ({x:.4g}, {y:.4g}, {z:.4g}))"

    @cached_property
    def volume(self) -> float:
        """Enclosed volume, nm^3: sum of the components, negative where normals look inward. MeshError for a mesh that
        encloses nothing; `MeshQualityWarning` where some components are turned inside out and others are not."""
        self._expect_closed("volume")
        wrong = self.inside_out
        if wrong and len(wrong) < len(self.components) - len(self._nested):
            what = f"TriangleMesh: the volume counts {self._described_part(wrong[0])} as negative"
            warn_outside(f"{what}: it is turned inside out; {self._remedy(wrong)}", MeshQualityWarning)
        return total(geometry.signed_volumes(self.vertices, self.faces))

    @cached_property
    def edge_lengths(self) -> np.ndarray:
        """Length of each of `edges`, (E,) float64, nm."""
        a, b = self.edges.T
        d = displacement(self.vertices[b], self.vertices[a], self._lengths)
        return read_only(np.sqrt(geometry.squared_lengths(d)))

    @cached_property
    def quality(self) -> np.ndarray:
        r"""Radius ratio of each face, (F,) float64 in [0, 1]: 1 for equilateral, towards 0 for needles.

        .. math:: q = \frac{2 r_{in}}{r_{circ}} = \frac{16 A^2}{(a + b + c)\, a b c}

        with the sides a, b, c and the area A.
        """
        return read_only(geometry.radius_ratios(self.vertices, self.faces, self._lengths))

    @cached_property
    def mean_curvatures(self) -> np.ndarray:
        r"""Mean curvature at vertices, (V,) float64, 1/nm; nan on borders.

        It is positive where the surface bulges along its normals.

        .. math:: H_v = \frac12 \frac{\nabla_v A \cdot \nabla_v V}{|\nabla_v V|^2}

        with the gradients of area and volume: +1/R on a sphere with outward normals.
        """
        return read_only(geometry.mean_curvatures(self.vertices, self.faces, self._lengths))

    @cached_property
    def gaussian_curvatures(self) -> np.ndarray:
        r"""Gaussian curvature at vertices, (V,) float64, 1/nm^2; nan on borders.

        It is the product of the principal curvatures.

        .. math:: K_v = \frac{2\pi - \sum_{f \ni v} \theta_f}{A_v}

        with the angles of the faces at the vertex, and a third of their area. Times the areas it adds up to
        :math:`2\pi\chi` over a closed mesh.
        """
        return read_only(geometry.gaussian_curvatures(self.vertices, self.faces, self._lengths))

    @property
    def bounding_box(self) -> np.ndarray:
        """Lowest and highest coordinates, (2, 3) float64, nm."""
        return np.stack([self.vertices.min(axis=0), self.vertices.max(axis=0)])

    def sample(self, n: int, rng: "np.random.Generator | int") -> tuple[np.ndarray, np.ndarray]:
        """Draw points that are uniform per area.

        Parameters
        ----------
        n : int, >= 0
        rng : numpy.random.Generator, or int seed >= 0

        Returns
        -------
        triangles : (n,) int32
            Face of each point.
        barycentric : (n, 3) float64
            Weights of the face's vertices, each >= 0, their sum 1 to rounding.

        Notes
        -----
        The same generator state gives the same points on the same version of NumPy.
        """
        n = arguments.whole_number("TriangleMesh.sample", "n", n, 0, 2**31 - 1)
        if not isinstance(rng, np.random.Generator):
            rng = np.random.default_rng(arguments.whole_number("TriangleMesh.sample", "rng", rng, 0, 2**128 - 1))
        cumulative = np.cumsum(self.face_areas)
        drawn = np.searchsorted(cumulative, rng.random(n) * cumulative[-1], side="right")
        # random() * total can round up to the total itself.
        triangles = np.minimum(drawn, len(self.faces) - 1).astype(np.int32)
        u = rng.random((n, 2))
        outside = u.sum(axis=1) > 1.0
        u[outside] = 1.0 - u[outside]
        # Reflection leaves a sum of 1 + rounding at worst; the first weight must not become negative.
        first = np.maximum(1.0 - u[:, 0] - u[:, 1], 0.0)
        return triangles, np.column_stack([first, u])

    def positions(self, triangles: Numbers, barycentric: Numbers) -> np.ndarray:
        """Return positions of points given by triangle and weights.

        Parameters
        ----------
        triangles : (n,) int, 0 <= index < F
        barycentric : (n, 3) float, >= 0, sum 1
            Up to 1e-12.

        Returns
        -------
        (n, 3) float64, nm
        """
        owner = "TriangleMesh.positions"
        with foreign_errors(f"{owner}: triangles must be (n,) integers"):
            f = np.asarray(triangles)
        if f.ndim != 1 or (f.dtype.kind not in "iu" and f.size):
            what = f"{owner}: triangles have shape {f.shape} and type {f.dtype}"
            raise ParameterError(f"{what} but must be (n,) integers")
        f = f.astype(np.int64)
        if f.size == 0 and not np.size(cast(Any, barycentric)):
            barycentric = np.zeros((0, 3))  # An empty list has lost its shape.
        weights = arguments.finite_vectors(owner, "barycentric", barycentric, len(f))
        bad = np.flatnonzero((f < 0) | (f >= len(self.faces)))
        if len(bad):
            last = len(self.faces) - 1
            raise ParameterError(f"{owner}: triangles[{bad[0]}] = {f[bad[0]]} but must be from 0 to {last}")
        outside = (weights < -BARYCENTRIC_TOLERANCE).any(axis=1)
        outside |= np.abs(weights.sum(axis=1) - 1.0) > BARYCENTRIC_TOLERANCE
        if outside.any():
            i = int(np.argmax(outside))
            wanted = "but must be >= 0 with sum 1 (inside its triangle)"
            raise ParameterError(f"{owner}: barycentric[{i}] = {weights[i].tolist()} {wanted}")
        corners = geometry.corners_of(self.vertices, self.faces[f], self._lengths)
        return np.asarray(np.einsum("ij,ijk->ik", weights, corners))

    def contains(self, points: Numbers) -> np.ndarray:
        """Tell which points are inside a closed mesh.

        Parameters
        ----------
        points : (n, 3) float, nm, finite

        Returns
        -------
        (n,) bool
            True where the surface goes round the point, either way; of points within rounding of the surface either.
            In a periodic box the surface and the points are in all of their images at once.

        Raises
        ------
        MeshError
            For a mesh with borders, or one that closes through its box, which encloses nothing.

        Notes
        -----
        From the winding number, the sum of the signed solid angles of all faces: O(n F).
        """
        self._expect_closed("contains")
        x = arguments.finite_vectors("TriangleMesh.contains", "points", points)
        turns = np.zeros(len(x))
        # In a box each component is whole, but not at the image at which another is.
        for own in [slice(None)] if self.box is None else self.components:
            faces = self.faces[own]
            corners = self.vertices[np.unique(faces)]
            low, high = corners.min(axis=0), corners.max(axis=0)
            for i, point in enumerate(x):
                for image in images_within(point, low, high, self.box):
                    turns[i] += geometry.winding_number(image, self.vertices, faces)
        return np.abs(turns) > 0.5

    @staticmethod
    def _remedy(wrong: list[int]) -> str:
        return f"mesh.flipped({wrong}) turns {'it' if len(wrong) == 1 else 'them'}, mesh.repaired() too"

    def _expect_closed(self, what: str) -> None:
        n = len(self.borders)
        why = "" if self.is_closed else f"has {n} border{'s' * (n > 1)}"
        why = why or ("closes through the sides of its box" if self.closes_through_the_box else "")
        if why:
            raise MeshError(f"TriangleMesh: {what} is not defined: the mesh {why}, so it encloses nothing")
