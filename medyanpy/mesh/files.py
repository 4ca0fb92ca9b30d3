"""Mesh files: PLY, OBJ, OFF, STL in and out.

The parsers are our own: those of libraries drop parts that they do not understand, or reorder vertices, and those are
the beads of a simulation.
"""

import os

import numpy as np

from medyanpy._tools.outputs import write_atomically
from medyanpy._tools.types import PathLike
from medyanpy._tools.validation import file_path
from medyanpy.errors import MeshError, ParameterError, shortened
from medyanpy.mesh import ply, texts

_FORMAT_WORDS = "PLY (.ply), OBJ (.obj), OFF (.off), STL (.stl)"


def read(path: PathLike) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices (V, 3) float64 and triangles (F, 3) int64 of a mesh file, unchecked as a surface; polygons are
    cut into fans from their first vertex."""
    path = file_path("TriangleMesh.from_file: path", path)
    suffix = path.suffix.lower()
    if suffix in (".tsi", ".q"):
        raise MeshError(
            f"{path}: FreeDTS files ({suffix}) are not read, because their triangles may cross a periodic box. Convert "
            f"the file to one of {_FORMAT_WORDS}, leaving out the triangles that cross the box"
        )
    if suffix not in _READERS:
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
        held = f"{len(vertices)} vertices, {len(faces)} faces"
        raise MeshError(f"{path}: the file holds no surface ({held}); read are {_FORMAT_WORDS}")
    return np.asarray(vertices, dtype=np.float64), faces


def write(path: PathLike, vertices: np.ndarray, faces: np.ndarray, overwrite: bool) -> None:
    """Write triangles to a mesh file, which is there whole or not at all."""
    path = file_path("TriangleMesh.save: path", path)
    suffix = path.suffix.lower()
    if suffix not in _WRITERS:
        raise MeshError(f"{path}: mesh files with the ending {suffix!r} are not written, only {_FORMAT_WORDS}")
    # Not path.exists(), which raises for names that no file can have: writing reports these.
    if os.path.exists(path) and not overwrite:
        raise ParameterError(f"TriangleMesh.save: {path} exists; pass overwrite=True to replace it")
    if suffix == ".stl":
        # It keeps coordinates in single precision and no connectivity.
        lost = len(vertices) - len(np.unique(vertices.astype(np.float32), axis=0))
        if lost:
            raise MeshError(
                f"{path}: {lost} vertices lie on the spot of others to the precision of STL and would fuse when the "
                "file is read, since STL keeps no connectivity; save the mesh as .ply, .obj or .off"
            )
    data = _WRITERS[suffix](vertices, faces)
    write_atomically("TriangleMesh.save", path, lambda file: file.write(data))


def _triangles(corners: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return fan triangles (F, 3) of polygons, in order, from their corners one after another and their numbers."""
    if corners.dtype.kind == "f" and (corners != np.rint(corners)).any():
        raise ValueError(f"it has a face with the vertex {corners[np.argmax(corners != np.rint(corners))]:g}")
    if (lengths == 3).all():
        return np.asarray(corners.reshape(-1, 3).astype(np.int64))
    if (lengths < 3).any():
        raise ValueError(f"it has a face with {lengths[np.argmax(lengths < 3)]} vertices")
    n = lengths - 2
    # Of each triangle, the place of its polygon's first corner, and its own place in the fan.
    first = np.repeat(np.cumsum(lengths) - lengths, n)
    place = first + np.arange(1, len(first) + 1) - np.repeat(np.cumsum(n) - n, n)
    return np.asarray(corners[np.stack([first, place, place + 1], axis=1)].astype(np.int64))


def _write_off(vertices: np.ndarray, faces: np.ndarray) -> bytes:
    rows = [" ".join(map(repr, row)) for row in vertices.tolist()]  # As many digits as give back the same double.
    rows += ["3 " + " ".join(map(str, face)) for face in faces.tolist()]
    return "\n".join(["OFF", f"{len(vertices)} {len(faces)} 0", *rows, ""]).encode()


def _write_obj(vertices: np.ndarray, faces: np.ndarray) -> bytes:
    rows = ["v " + " ".join(map(repr, row)) for row in vertices.tolist()]
    rows += ["f " + " ".join(map(str, face)) for face in (faces.astype(np.int64) + 1).tolist()]
    return "\n".join(["# written by medyanpy, lengths in nm", *rows, ""]).encode()


_READERS = {".ply": ply.read_ply, ".obj": texts.read_obj, ".off": texts.read_off, ".stl": texts.read_stl}
_WRITERS = {".ply": ply.write_ply, ".obj": _write_obj, ".off": _write_off, ".stl": texts.write_stl}
