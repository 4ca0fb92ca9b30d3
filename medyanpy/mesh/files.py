"""Mesh files: PLY, OBJ, OFF, STL in and out.

OFF and STL are parsed by trimesh, and STL is written by it. Only its parsers are used: its mesh class merges and
reorders vertices, and those are the beads of a simulation.
"""

import io
import os
import re
import warnings
from array import array
from pathlib import Path

import numpy as np

from medyanpy._tools.outputs import write_atomically
from medyanpy._tools.types import PathLike
from medyanpy._tools.validation import file_path
from medyanpy.errors import MeshError, ParameterError, shortened
from medyanpy.mesh import ply

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
        raise MeshError(
            f"{path}: cannot be opened ({err.strerror or err}); read are {_FORMAT_WORDS}"
        ) from err
    if not data.strip():
        raise MeshError(f"{path}: the file is empty; read are {_FORMAT_WORDS}")
    try:
        with warnings.catch_warnings():
            # Older NumPy only warns where text is not a number, and returns what came before.
            warnings.simplefilter("error", DeprecationWarning)
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
        raise MeshError(
            f"{path}: mesh files with the ending {suffix!r} are not written, only {_FORMAT_WORDS}"
        )
    # Not path.exists(), which raises for names that no file can have: writing says so.
    if os.path.exists(path) and not overwrite:
        raise ParameterError(f"TriangleMesh.save: {path} exists; pass overwrite=True to replace it")
    if suffix == ".stl":
        _refuse_what_stl_would_spoil(path, vertices, faces)
    data = _WRITERS[suffix](vertices, faces)
    write_atomically("TriangleMesh.save", path, lambda file: file.write(data))


def _triangles(corners: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Fan triangles (F, 3) of polygons, in order: their corners one after another, and how many each has."""
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


def _equal(polygons: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners and lengths of (F, k) polygons."""
    polygons = np.asarray(polygons)
    if polygons.size == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return polygons.ravel(), np.broadcast_to(polygons.shape[1], len(polygons))


def _text(data: bytes) -> str:
    """What a text file says. Numbers and keywords are ASCII in every format; names and comments are in whatever
    encoding their writer liked, and mean nothing here."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace")
    return data.decode("ascii", errors="replace")


def _read_off(data: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from trimesh.exchange.off import load_off

    mesh = load_off(io.BytesIO(_text(data).encode()))
    return mesh["vertices"], *_equal(mesh["faces"])


def _read_obj(data: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, and the vertices of faces: of texture and normal numbers, objects and groups, trimesh would split and
    reorder vertices. Numbers counted from the end are negative."""
    vertices, corners, lengths = array("d"), array("q"), array("i")
    for line in io.StringIO(re.sub(r"\\\r?\n", " ", _text(data)), newline=None):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        n_vertices = len(vertices) // 3
        if words[0] in ("v", "f") and "_" in line:  # Python reads 1_0 as 10.
            raise ValueError(f"its line {shortened(line.strip())!r} holds something else than numbers")
        if words[0] == "v":
            if len(words) < 4:
                raise ValueError(f"its vertex {n_vertices + 1} has {len(words) - 1} coordinates")
            vertices.extend(map(float, words[1:4]))
        elif words[0] == "f":
            numbers = [int(word.split("/", 1)[0]) for word in words[1:]]
            lengths.append(len(numbers))
            if len(numbers) < 3:
                raise ValueError(f"its face {len(lengths)} has {len(numbers)} vertices")
            for number in numbers:
                place = number - 1 if number >= 0 else number + n_vertices
                if place < 0:
                    raise ValueError(f"its face {len(lengths)} names vertex {number}, which does not exist")
                corners.append(place)
    if corners and max(corners) >= len(vertices) // 3:
        beyond = np.argmax(np.frombuffer(corners, np.int64) >= len(vertices) // 3)
        face = np.searchsorted(np.cumsum(lengths), beyond, side="right") + 1
        raise ValueError(f"its face {face} names vertex {corners[beyond] + 1}, which does not exist")
    return np.frombuffer(vertices).reshape(-1, 3), np.frombuffer(corners, np.int64), np.frombuffer(lengths, np.intc)


def _read_stl(data: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from trimesh.exchange.stl import load_stl

    # A binary file is as long as it says; as trimesh tells them apart.
    is_binary = len(data) >= 84 and len(data) == 84 + 50 * int.from_bytes(data[80:84], "little")
    loaded = load_stl(io.BytesIO(data if is_binary else _text(data).encode()))
    solids = list(loaded["geometry"].values()) if "geometry" in loaded else [loaded]
    parts = [np.asarray(solid["vertices"], dtype=np.float64)[solid["faces"].ravel()] for solid in solids]
    if not parts:
        return np.empty((0, 3)), *_equal(np.empty((0, 3), np.int64))
    corners = np.concatenate(parts)
    # Values are compared, so that 0.0 and -0.0 are the same place.
    unique, first, inverse = np.unique(corners, axis=0, return_index=True, return_inverse=True)
    rank = np.empty(len(unique), dtype=np.int64)
    order = np.argsort(first)
    rank[order] = np.arange(len(unique))
    return unique[order], *_equal(rank[inverse.ravel()].reshape(-1, 3))


def _parser_mesh(vertices: np.ndarray, faces: np.ndarray) -> object:
    from trimesh import Trimesh

    return Trimesh(vertices, faces, process=False, validate=False)


def _write_off(vertices: np.ndarray, faces: np.ndarray) -> bytes:
    # 17 significant digits give back the same double, but trimesh counts decimals: written by NumPy instead.
    rows = [" ".join(map(repr, row)) for row in vertices.tolist()]
    rows += ["3 " + " ".join(map(str, face)) for face in faces.tolist()]
    return "\n".join(["OFF", f"{len(vertices)} {len(faces)} 0", *rows, ""]).encode()


def _write_obj(vertices: np.ndarray, faces: np.ndarray) -> bytes:
    rows = ["v " + " ".join(map(repr, row)) for row in vertices.tolist()]
    rows += ["f " + " ".join(map(str, face)) for face in (faces.astype(np.int64) + 1).tolist()]
    return "\n".join(["# written by medyanpy, lengths in nm", *rows, ""]).encode()


def _write_stl(vertices: np.ndarray, faces: np.ndarray) -> bytes:
    from trimesh.exchange.stl import export_stl

    return export_stl(_parser_mesh(vertices, faces))


def _refuse_what_stl_would_spoil(path: Path, vertices: np.ndarray, faces: np.ndarray) -> None:
    """STL keeps coordinates in single precision and no connectivity: equal corners fuse when it is read."""
    lost = len(vertices) - len(np.unique(vertices.astype(np.float32), axis=0))
    if lost:
        raise MeshError(
            f"{path}: {lost} vertices lie on the spot of others to the precision of STL "
            "and would fuse when the file is read, since STL keeps no connectivity; "
            "save the mesh as .ply, .obj or .off"
        )


_READERS = {".ply": ply.read_ply, ".obj": _read_obj, ".off": _read_off, ".stl": _read_stl}
_WRITERS = {".ply": ply.write_ply, ".obj": _write_obj, ".off": _write_off, ".stl": _write_stl}
