"""Mesh files: PLY, OBJ, OFF, STL in and out.

The parsers are our own: those of libraries drop parts that they do not understand, or reorder vertices, and those are
the beads of a simulation.
"""

import os
from pathlib import Path

import numpy as np

from medyanpy._tools.outputs import write_atomically
from medyanpy._tools.types import PathLike
from medyanpy._tools.validation import file_path
from medyanpy.errors import MeshError, ParameterError, shortened
from medyanpy.mesh import ply, texts

FORMATS = (".ply", ".obj", ".off", ".stl")
_FORMAT_WORDS = "PLY (.ply), OBJ (.obj), OFF (.off), STL (.stl)"


def read(path: PathLike) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices (V, 3) float64 and triangles (F, 3) int64 of a mesh file, unchecked as a surface.

    Polygons are cut into fans of triangles from their first vertex. STL holds no connectivity: corners with
    exactly equal coordinates are made one vertex, numbered in the order of the file.
    """
    path = file_path("TriangleMesh.from_file: path", path)
    suffix = path.suffix.lower()
    if suffix in (".tsi", ".q"):
        raise MeshError(
            f"{path}: FreeDTS files ({suffix}) are not read, "
            "because their triangles may cross a periodic box. "
            f"Convert the file to one of {_FORMAT_WORDS}, leaving out the triangles that cross the box"
        )
    if suffix not in FORMATS:
        raise MeshError(f"{path}: mesh files with the ending {suffix!r} are not read, only {_FORMAT_WORDS}")
    try:
        data = path.read_bytes()
    except OSError as err:
        raise MeshError(f"{path}: cannot be opened ({err.strerror or err}); read are {_FORMAT_WORDS}") from err
    if not data.strip():
        raise MeshError(f"{path}: the file is empty; read are {_FORMAT_WORDS}")
    try:
        vertices, *polygons = _READERS[suffix](data)
        faces = _triangles(*polygons)
    # Any exception of a parser on a spoiled file (they raise many kinds) means the same to the reader.
    except Exception as err:
        raise MeshError(
            f"{path}: cannot be read as {suffix[1:].upper()} file ({shortened(str(err))}); read are {_FORMAT_WORDS}"
        ) from err
    if len(vertices) == 0 or len(faces) == 0:
        raise MeshError(
            f"{path}: the file holds no surface ({len(vertices)} vertices, {len(faces)} faces); "
            f"read are {_FORMAT_WORDS}"
        )
    return np.asarray(vertices, dtype=np.float64), faces


def write(path: PathLike, vertices: np.ndarray, faces: np.ndarray, overwrite: bool) -> None:
    """Write triangles to a mesh file, which is there whole or not at all."""
    path = file_path("TriangleMesh.save: path", path)
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise MeshError(f"{path}: mesh files with the ending {suffix!r} are not written, only {_FORMAT_WORDS}")
    # Not path.exists(), which raises for names that no file can have: writing reports these.
    if os.path.exists(path) and not overwrite:
        raise ParameterError(f"TriangleMesh.save: {path} exists; pass overwrite=True to replace it")
    if suffix == ".stl":
        _refuse_what_stl_would_spoil(path, vertices, faces)
    data = _WRITERS[suffix](vertices, faces)
    write_atomically("TriangleMesh.save", path, lambda file: file.write(data))


def _triangles(corners: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return fan triangles (F, 3) of polygons, in order, from their corners one after another and their numbers."""
    if corners.dtype.kind == "f" and (corners != np.rint(corners)).any():
        raise ValueError(f"it has a face with the vertex {corners[np.argmax(corners != np.rint(corners))]:g}")
    if (lengths == 3).all():
        triangles: np.ndarray = corners.reshape(-1, 3).astype(np.int64)
        return triangles
    if (lengths < 3).any():
        raise ValueError(f"it has a face with {lengths[np.argmax(lengths < 3)]} vertices")
    n = lengths - 2
    # Of each triangle, the place of its polygon's first corner, and its own place in the fan.
    first = np.repeat(np.cumsum(lengths) - lengths, n)
    place = first + np.arange(1, len(first) + 1) - np.repeat(np.cumsum(n) - n, n)
    fans: np.ndarray = corners[np.stack([first, place, place + 1], axis=1)]
    return fans.astype(np.int64)


def _write_off(vertices: np.ndarray, faces: np.ndarray) -> bytes:
    # As many digits as give back the same double.
    rows = [" ".join(map(repr, row)) for row in vertices.tolist()]
    rows += ["3 " + " ".join(map(str, face)) for face in faces.tolist()]
    return "\n".join(["OFF", f"{len(vertices)} {len(faces)} 0", *rows, ""]).encode()


def _write_obj(vertices: np.ndarray, faces: np.ndarray) -> bytes:
    rows = ["v " + " ".join(map(repr, row)) for row in vertices.tolist()]
    rows += ["f " + " ".join(map(str, face)) for face in (faces.astype(np.int64) + 1).tolist()]
    return "\n".join(["# written by medyanpy, lengths in nm", *rows, ""]).encode()


def _write_stl(vertices: np.ndarray, faces: np.ndarray) -> bytes:
    return texts.write_stl(vertices[faces])


def _refuse_what_stl_would_spoil(path: Path, vertices: np.ndarray, faces: np.ndarray) -> None:
    """Refuse vertices that differ but would fuse in an STL file.

    STL keeps coordinates in single precision and no connectivity: equal corners fuse when it is read.
    """
    lost = len(vertices) - len(np.unique(vertices.astype(np.float32), axis=0))
    if lost:
        raise MeshError(
            f"{path}: {lost} vertices lie on the spot of others to the precision of STL "
            "and would fuse when the file is read, since STL keeps no connectivity; "
            "save the mesh as .ply, .obj or .off"
        )


_READERS = {".ply": ply.read_ply, ".obj": texts.read_obj, ".off": texts.read_off, ".stl": texts.read_stl}
_WRITERS = {".ply": ply.write_ply, ".obj": _write_obj, ".off": _write_off, ".stl": _write_stl}
