"""Triangle meshes, the surfaces of membranes."""

import os
from collections.abc import Sequence
from typing import Any, Literal, cast, overload

import numpy as np

from medyanpy._tools.images import Box, box_lengths, checked_box, next_to_each_other
from medyanpy._tools.names import plainly_called
from medyanpy._tools.types import Numbers, PathLike
from medyanpy._tools.validation import vector
from medyanpy.errors import MeshError, ParameterError, shown
from medyanpy.mesh import arguments, checks, files, orientation, shapes
from medyanpy.mesh.attributes import MeshAttributes
from medyanpy.mesh.connectivity import Connectivity, read_only
from medyanpy.mesh.remeshing import RemeshReport, remeshed
from medyanpy.mesh.repair import RepairReport, mend

# 20 * 4**10 = 21 million faces; one more level would need tens of gigabytes.
MAX_SUBDIVISIONS = 10
MAX_FREQUENCY = 1024


class TriangleMesh(MeshAttributes):
    """A triangulated surface, closed or with borders, of one or several connected components. Immutable.

    Parameters
    ----------
    vertices : (V, 3) float, nm, finite, below 1e70
        Positions of the vertices; copied.
    faces : (F, 3) int, 0 <= index < V
        Vertices of each triangle, anticlockwise seen from the side the normals point to; copied.
    box : (3,) of float, nm, > 0, or None, optional
        Lengths of a periodic box, None in directions that are open: triangles join the nearest images of their
        vertices, so that a sheet or a tube may close through its sides. Vertices are taken to be next to each other
        as far as that goes (`unwrapped`). Systems of such a mesh have a box of these lengths.

    Raises
    ------
    ParameterError
        If the box is outside its domain; methods raise it for arguments outside of theirs.
    MeshError
        If the triangles cannot carry a surface. All kinds of defects are reported at once, in the message and in its
        ``defects`` (a tuple of `MeshDefect`). Of numbers: indices out of range, non-finite coordinates. Of faces: a
        repeated vertex, no area, duplicates, mixed orientation. Of the surface: vertices that belong to no face, edges
        with more than two faces, bow-tie vertices (faces that touch in a single point), one-sidedness. In a box: faces
        wider than half of it, and vertices of borders that are images of each other, where the mesh was meant to close.
        Meshes are never mended silently: see `repair`.

    Notes
    -----
    Corner i of face f has the number ``3 * f + i``; the edge "of" a corner is the one opposite to it. A face has no
    area if twice it is below ``8 eps L (L + X)``, L its longest side, X its largest coordinate, eps the spacing of
    double precision: its normal is rounding noise then. All others are computed when first asked for.

    Examples
    --------
    >>> mesh = TriangleMesh.icosphere(radius=500.0, subdivisions=4)
    >>> mesh
    TriangleMesh(2562 vertices, 5120 faces, closed, genus 0)
    >>> mesh.neighbors.shape
    (5120, 3)
    """

    def __init__(self, vertices: Numbers, faces: Numbers, box: Sequence[float | None] | None = None) -> None:
        x, f = checks.as_arrays(vertices, faces)
        box = checked_box("TriangleMesh", box)
        connectivity = checks.check_surface(x, f, None if box is None else box_lengths(box))
        if box is not None:
            x = next_to_each_other(x, connectivity.edges, box_lengths(box))
        self._fill(x, connectivity, box)

    def _fill(self, vertices: np.ndarray, connectivity: Connectivity, box: Box | None) -> None:
        self.__dict__["box"] = box
        self.__dict__["vertices"] = read_only(vertices)
        self.__dict__["faces"] = read_only(connectivity.faces)
        self.__dict__["_connectivity"] = connectivity

    @classmethod
    def _from_checked(cls, vertices: np.ndarray, connectivity: Connectivity, box: Box | None = None) -> "TriangleMesh":
        mesh = cls.__new__(cls)
        mesh._fill(vertices, connectivity, box)
        return mesh

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"TriangleMesh is immutable: {name} cannot be set; see with_vertices, scaled, translated")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"TriangleMesh is immutable: {name} cannot be deleted")

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self.vertices, self.faces, self.box)

    @overload
    @classmethod
    def from_file(
        cls, path: PathLike, scale: float = 1.0, repair: Literal[False] = False, *,
        box: Sequence[float | None] | None = None,
    ) -> "TriangleMesh": ...  # fmt: skip

    @overload
    @classmethod
    def from_file(
        cls, path: PathLike, scale: float = 1.0, *, repair: Literal[True]
    ) -> "tuple[TriangleMesh, RepairReport]": ...

    @overload
    @classmethod
    def from_file(
        cls, path: PathLike, scale: float = 1.0, repair: bool = False, *, box: Sequence[float | None] | None = None
    ) -> "TriangleMesh | tuple[TriangleMesh, RepairReport]": ...

    @classmethod
    @plainly_called
    def from_file(
        cls, path: PathLike, scale: float = 1.0, repair: bool = False, *, box: Sequence[float | None] | None = None
    ) -> "TriangleMesh | tuple[TriangleMesh, RepairReport]":
        """Read a PLY, OBJ, OFF or STL file.

        Parameters
        ----------
        path : path
            The ending names the format.
        scale : float, > 0
            Factor from the units of the file to nm: 1000.0 for a file in micrometres.
        repair : bool
            Mend the mesh (see `repair`) and return the mesh and a `RepairReport`.
        box : (3,) of float, nm, > 0, or None, optional
            Of a mesh that closes through the sides of a periodic box: faces join vertices on both sides, none of
            which is there twice. Its lengths are not scaled. Such a mesh is not repaired.

        Returns
        -------
        TriangleMesh, or (TriangleMesh, RepairReport) with ``repair=True``

        Raises
        ------
        MeshError
            If the file cannot be read or its triangles cannot carry a surface.

        Notes
        -----
        Vertices keep the order of the file, and so do triangles (in OFF files triangles come first, then
        quadrilaterals, then larger polygons). Polygons are cut into fans from their first vertex. A file that is cut
        short, or holds more than it announces, is refused with the line. STL files hold loose triangles: corners with
        exactly equal coordinates become one vertex. Colours, normals, textures and groups are ignored.
        """
        scale = arguments.positive_number("TriangleMesh.from_file", "scale", scale)
        vertices, faces = files.read(path)
        try:
            if repair and box is not None:
                raise ParameterError("TriangleMesh.from_file: repair=True cannot mend a mesh in a box")
            return cls.repair(scale * vertices, faces) if repair else cls(scale * vertices, faces, box)
        except MeshError as err:
            raise MeshError(f"{os.fspath(path)}: {err}", err.defects) from err

    @plainly_called
    def save(self, path: PathLike, overwrite: bool = False) -> None:
        """Write a PLY, OBJ, OFF or STL file, the ending naming the format; lengths in nm.

        PLY (binary), OBJ and OFF give back the same doubles; STL keeps single precision and no connectivity. No format
        holds a periodic box: give it to `from_file` again.

        Raises
        ------
        ParameterError, MeshError, OutputError
            The file exists and ``overwrite`` is False. Another ending, or vertices that would fuse in an STL file. The
            file cannot be written, and an earlier one is unchanged.
        """
        files.write(path, self.vertices, self.faces, overwrite)

    @classmethod
    def repair(cls, vertices: Numbers, faces: Numbers) -> "tuple[TriangleMesh, RepairReport]":
        """Mend triangles that cannot carry a surface.

        Parameters
        ----------
        vertices : (V, 3) float, nm
        faces : (F, 3) int

        Returns
        -------
        mesh : TriangleMesh
        report : RepairReport
            The changes, with counts; ``print(report)``.

        Raises
        ------
        MeshError
            For defects that no rule can mend: wrong shapes, indices out of range, non-finite coordinates, one-sided
            surfaces, or when no face remains.

        Notes
        -----
        In this order. Faces that repeat a vertex are dropped. Zero-area faces are collapsed where two corners coincide,
        turned over the longest side where the corners lie on a line, and dropped otherwise. Of duplicate faces one is
        kept, or none of an inner wall whose three edges all have two other faces. At edges with more than two faces,
        these are joined in pairs and the others cut loose: like orientation first, flattest first, never to a one-sided
        surface. Vertices are copied so that each has one fan of faces. Edges that still join the same two vertices get
        a vertex in the middle. Unused vertices are dropped. Faces are turned consistently, closed components outward
        (one inside another keeps its side). Existing vertices never move.
        """
        x, f, report = mend(vertices, faces)
        return cls(x, f), report

    def repaired(self) -> "tuple[TriangleMesh, RepairReport]":
        """Apply `repair`: since a mesh is sound, this only turns inside-out closed components outward."""
        return type(self).repair(self.vertices, self.faces)

    def remesh(
        self, edge_length: float, *, distance: float | None = None, smoothing: int = 0
    ) -> "tuple[TriangleMesh, RemeshReport]":
        """Cover the same surface with uniform triangles, for meshes with needles or of another resolution.

        Parameters
        ----------
        edge_length : float, nm, > 0
            Edges come out between a half and 1.4 of it, most of them near it.
        distance : float, nm, > 0, optional
            Largest distance between the old surface and the new one; 0.3 of the edge length if not given. Edges and
            corners of the surface are rounded by as much, and details that are finer keep smaller triangles.
        smoothing : int, >= 0
            Passes of a filter against noise, over the uniform triangles, before they are made uniform once more: some 5
            to 20. They keep the volume within about a percent; `distance` then holds for the smoothed surface.

        Returns
        -------
        mesh : TriangleMesh
            Of as many components and borders and the same genus.
        report : RemeshReport
            Before and after: qualities, area, volume, distances, longest timestep.

        Raises
        ------
        ParameterError, MeshError
            More than five million faces, or a mesh in a box; the surface would move by more than `distance`.

        Warns
        -----
        MeshQualityWarning
            Where a detail of the surface keeps a flat triangle.

        Notes
        -----
        Edges are split, collapsed and flipped, and vertices moved along the surface; all get new numbers. Distances are
        measured at samples a quarter of the edge length apart. The result is the same on any machine; a hundred
        thousand faces take a minute or two. Source: M. Botsch, L. Kobbelt, "A remeshing approach to multiresolution
        modeling", Symp. Geometry Processing (2004).

        Examples
        --------
        >>> cylinder = TriangleMesh.cylinder(50.0, 400.0, n_around=24, n_along=4)   # long and narrow triangles
        >>> mesh, report = cylinder.remesh(edge_length=15.0)
        >>> bool(mesh.quality.min() > 0.4 > cylinder.quality.max()), report.hausdorff < 4.5
        (True, True)
        """
        owner = "TriangleMesh.remesh"
        edge_length = arguments.positive_number(owner, "edge_length", edge_length)
        distance = 0.3 * edge_length if distance is None else arguments.positive_number(owner, "distance", distance)
        return remeshed(self, edge_length, distance, arguments.whole_number(owner, "smoothing", smoothing, 0, 1000))

    def flipped(self, parts: "Sequence[int] | None" = None) -> "TriangleMesh":
        """Return the mesh with the normals of its components on the other side.

        Parameters
        ----------
        parts : sequence of int, optional
            Numbers of `components`; all by default.
        """
        n = len(self.components)
        turned = range(n) if parts is None else parts
        which = [arguments.whole_number("TriangleMesh.flipped", "parts", k, 0, n - 1) for k in turned]
        faces = orientation.reversed_faces(self.faces, np.isin(self.component_of_face, which))
        return type(self)(self.vertices, faces, self.box)

    def with_vertices(self, vertices: Numbers) -> "TriangleMesh":
        """Return the same faces on other positions; everything that does not depend on positions is shared.

        Parameters
        ----------
        vertices : (V, 3) float, nm, finite
            As many as before; copied.

        Raises
        ------
        MeshError
            If a face has no area, or a coordinate is 1e70 or larger.
        """
        x = arguments.finite_vectors("TriangleMesh.with_vertices", "vertices", vertices, len(self.vertices))
        x = np.array(x, order="C")
        checks.refuse(checks.position_defects(x, self.faces, self._lengths), x, self.faces)
        return type(self)._from_checked(x, self._connectivity, self.box)

    def scaled(self, factor: float) -> "TriangleMesh":
        """Return the mesh, and its box, enlarged about the origin by ``factor`` (float, > 0); else ParameterError."""
        factor = arguments.positive_number("TriangleMesh.scaled", "factor", factor)
        if self.box is None:
            return self.with_vertices(factor * self.vertices)
        larger = [None if side is None else factor * side for side in self.box]
        return type(self)(factor * self.vertices, self.faces, box=larger)

    def translated(self, shift: Numbers) -> "TriangleMesh":
        """Return the mesh moved by ``shift`` ((3,) float, nm); ParameterError unless it is finite."""
        return self.with_vertices(self.vertices + vector("TriangleMesh.translated: shift", shift))

    @classmethod
    def icosphere(
        cls, radius: float, subdivisions: int | None = None, *, frequency: int | None = None
    ) -> "TriangleMesh":
        """Return a sphere from the icosahedron, vertices on the sphere, poles on the z axis.

        Parameters
        ----------
        radius : float, nm, > 0
        subdivisions : int, 0 to 10
            Triangles are cut in four this often: 20 * 4**subdivisions faces; 0 is the icosahedron.
        frequency : int, 1 to 1024
            Instead of subdivisions: parts into which each edge of the icosahedron is cut: 20 * frequency**2 faces.
        """
        owner = "TriangleMesh.icosphere"
        radius = arguments.positive_number(owner, "radius", radius)
        x, faces = _unit_sphere(owner, subdivisions, frequency)
        return cls(radius * x, faces)

    @classmethod
    def red_blood_cell(
        cls, radius: float = shapes.RED_CELL_RADIUS, subdivisions: int | None = None, *, frequency: int | None = None,
    ) -> "TriangleMesh":
        r"""Return a biconcave discocyte, the average human red blood cell at 300 mosm/kg, axis along z.

        .. math:: z = \pm \tfrac12 \sqrt{1 - \rho^2}\,(C_0 + C_2 \rho^2 + C_4 \rho^4),\quad \rho = r / R_0

        with C0 = 0.81, C2 = 7.83, C4 = -4.39 um at R0 = 3.91 um, all scaled by ``radius`` / 3.91 um; r is the distance
        from the axis. Area 134 um^2 and volume 94 um^3 at the default radius. Source: E. Evans, Y.-C. Fung, "Improved
        measurements of the erythrocyte geometry", Microvasc. Res. 4, 335 (1972).

        Parameters
        ----------
        radius : float, nm, > 0
            R0, half the diameter.
        subdivisions : int, 0 to 10
            20 * 4**subdivisions faces; 5 (20 480 faces) if neither this nor frequency is given.
        frequency : int, 1 to 1024
            Instead of subdivisions: 20 * frequency**2 faces; 22 gives 9 680.
        """
        owner = "TriangleMesh.red_blood_cell"
        radius = arguments.positive_number(owner, "radius", radius)
        if subdivisions is None and frequency is None:
            subdivisions = 5
        x, faces = _unit_sphere(owner, subdivisions, frequency)
        return cls(shapes.red_blood_cell(radius, x), faces)

    @classmethod
    def torus(cls, major_radius: float, minor_radius: float, n_major: int = 64, n_minor: int = 32) -> "TriangleMesh":
        """Return a torus round the z axis.

        Parameters
        ----------
        major_radius : float, nm, > minor_radius
            From the axis to the middle of the tube.
        minor_radius : float, nm, > 0
            Of the tube.
        n_major, n_minor : int, 4 to 32768
            Vertices the long way and the short way round; 2 * n_major * n_minor faces.
        """
        owner = "TriangleMesh.torus"
        major = arguments.positive_number(owner, "major_radius", major_radius)
        minor = arguments.positive_number(owner, "minor_radius", minor_radius)
        if minor >= major:
            raise ParameterError(f"{owner}: minor_radius = {minor!r} but must be < major_radius = {major!r}")
        n_major = arguments.whole_number(owner, "n_major", n_major, 4, 32768)
        n_minor = arguments.whole_number(owner, "n_minor", n_minor, 4, 32768)
        return cls(*shapes.torus(major, minor, n_major, n_minor))

    @classmethod
    @plainly_called
    def cylinder(
        cls, radius: float, length: float, n_around: int = 32, n_along: int | None = None, *, periodic: bool = False
    ) -> "TriangleMesh":
        """Return an open tube round the z axis from -length/2 to length/2, normals outward, two borders.

        Parameters
        ----------
        radius : float, nm, > 0
        length : float, nm, > 0
        n_around : int, 3 to 32768
            Vertices of each ring.
        n_along : int, 1 to 32768
            Bands of triangles between the borders; by default such that the triangles are nearly equilateral.
            2 * n_around * n_along faces.
        periodic : bool
            Close the tube through the sides of a box of its length, ``box=(None, None, length)``, without borders;
            `n_along` is then even, and 4 or more.
        """
        owner = "TriangleMesh.cylinder"
        radius = arguments.positive_number(owner, "radius", radius)
        length = arguments.positive_number(owner, "length", length)
        n_around = arguments.whole_number(owner, "n_around", n_around, 3, 32768)
        if n_along is None:
            bands = length / (2 * radius * np.sin(np.pi / n_around) * np.sqrt(0.75))
            n_along = max(4, 2 * round(bands / 2)) if periodic else max(1, round(bands))
        n_along = arguments.whole_number(owner, "n_along", n_along, 4 if periodic else 1, 32768)
        if periodic and n_along % 2:
            raise ParameterError(f"{owner}: n_along = {n_along} but must be even: every other ring is turned")
        box = (None, None, length) if periodic else None
        return cls(*shapes.cylinder(radius, length, n_around, n_along, periodic), box=box)

    @classmethod
    def flat_sheet(
        cls, nx: int, ny: int, spacing: float, *, periodic: Literal["", "x", "y", "xy"] | bool = False
    ) -> "TriangleMesh":
        """Return a flat sheet of equilateral triangles at z = 0 about the origin, normals along +z, one border.

        Parameters
        ----------
        nx, ny : int, 2 to 32768
            Vertices in a row along x, and rows along y: nx * ny vertices, 2 (nx - 1) (ny - 1) faces.
        spacing : float, nm, > 0
            Length of every edge; rows are spacing * sqrt(3) / 2 apart, every other one shifted by spacing / 2.
        periodic : "x", "y", "xy", or bool
            Axes along which the sheet closes through the sides of a box, which the mesh then has: nx * spacing along x,
            ny * spacing * sqrt(3) / 2 along y. True is both: 2 nx ny faces and no border. Along x `nx` is 3 or more,
            along y `ny` is even, and 4 or more.

        Examples
        --------
        >>> import medyanpy as mp
        >>> patch = mp.TriangleMesh.flat_sheet(20, 20, 10.0, periodic=True)
        >>> patch, patch.box[0]
        (TriangleMesh(400 vertices, 800 faces, closed, genus 1, in a box), 200.0)
        """
        owner = "TriangleMesh.flat_sheet"
        switch = isinstance(periodic, bool | int | np.bool_) and periodic in (0, 1)
        axes = ("xy" if periodic else "") if switch else periodic
        if not isinstance(axes, str) or axes not in ("", "x", "y", "xy"):
            raise ParameterError(f"{owner}: periodic = {shown(periodic)} but must be 'x', 'y', 'xy', True or False")
        along_x, along_y = (axis in axes for axis in "xy")
        nx = arguments.whole_number(owner, "nx", nx, 3 if along_x else 2, 32768)
        ny = arguments.whole_number(owner, "ny", ny, 4 if along_y else 2, 32768)
        if along_y and ny % 2:
            raise ParameterError(f"{owner}: ny = {ny} but must be even along y: every other row is shifted")
        spacing = arguments.positive_number(owner, "spacing", spacing)
        box = (nx * spacing if along_x else None, ny * spacing * np.sqrt(0.75) if along_y else None, None)
        return cls(*shapes.flat_sheet(nx, ny, spacing, along_x, along_y), box=box)


def _unit_sphere(owner: str, subdivisions: int | None, frequency: int | None) -> tuple[np.ndarray, np.ndarray]:
    if (subdivisions is None) == (frequency is None):
        given = "neither" if subdivisions is None else "both"
        raise ParameterError(f"{owner}: {given} of subdivisions and frequency given but exactly one must be")
    if frequency is None:
        times = arguments.whole_number(owner, "subdivisions", cast(int, subdivisions), 0, MAX_SUBDIVISIONS)
        return shapes.unit_icosphere(times)
    return shapes.unit_geosphere(arguments.whole_number(owner, "frequency", frequency, 1, MAX_FREQUENCY))


def _unpickle(vertices: np.ndarray, faces: np.ndarray, box: Box | None = None) -> TriangleMesh:
    """Rebuild a pickled mesh unchecked; NumPy unpickles arrays writable, `_fill` locks them."""
    return TriangleMesh._from_checked(vertices, Connectivity(faces, len(vertices)), box)
