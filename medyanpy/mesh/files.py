"""Mesh files: PLY, OBJ, OFF, STL in and out.

OBJ, OFF and STL text is parsed and written by trimesh, of which only the parsers are used: its mesh class
merges and reorders vertices, and those are the beads of a simulation.
"""

import io
import os
import re
import warnings
from pathlib import Path

import numpy as np

from medyanpy.errors import MeshError, ParameterError, shortened
from medyanpy.mesh import ply
from medyanpy.outputs import write_atomically
from medyanpy.validation import file_path

FORMATS = (".ply", ".obj", ".off", ".stl")
_FORMAT_WORDS = "PLY (.ply), OBJ (.obj), OFF (.off), STL (.stl)"


def read(path: str | os.PathLike) -> tuple[np.ndarray, np.ndarray]:
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
            vertices, polygons = _READERS[suffix](data)
        faces = _triangles(polygons)
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


def write(path: str | os.PathLike, vertices: np.ndarray, faces: np.ndarray, overwrite: bool) -> None:
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


def _triangles(polygons: list[np.ndarray]) -> np.ndarray:
    """Fan triangles (F, 3) of arrays of polygons (n, k), in order."""
    parts = [np.empty((0, 3), dtype=np.int64)]
    for block in polygons:
        block = np.asarray(block)
        if block.size == 0:
            continue
        k = block.shape[1]
        if k < 3:
            raise ValueError(f"it has a face with {k} vertices")
        block = block.astype(np.int64)
        first = np.repeat(block[:, :1], k - 2, axis=1)
        parts.append(np.stack([first, block[:, 1:-1], block[:, 2:]], axis=2).reshape(-1, 3))
    return np.concatenate(parts)


def _text(data: bytes) -> str:
    """What a text file says. Numbers and keywords are ASCII in every format; names and comments are in whatever
    encoding their writer liked, and mean nothing here."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace")
    return data.decode("ascii", errors="replace")


def _read_off(data: bytes) -> tuple[np.ndarray, list[np.ndarray]]:
    from trimesh.exchange.off import load_off

    mesh = load_off(io.BytesIO(_text(data).encode()))
    return mesh["vertices"], [mesh["faces"]]


def _read_obj(data: bytes) -> tuple[np.ndarray, list[np.ndarray]]:
    from trimesh.exchange.obj import load_obj

    text = _obj_without_extras(_text(data))
    geometry = load_obj(io.StringIO(text), skip_materials=True, maintain_order=True).get("geometry", {})
    if not geometry:
        return np.empty((0, 3)), []
    (mesh,) = geometry.values()
    return mesh["vertices"], [mesh["faces"]]


def _obj_without_extras(text: str) -> str:
    """Keep vertex and face lines and in them only positions.

    Texture and normal numbers, objects and groups make trimesh split and reorder vertices. Numbers counted
    from the end (negative) are replaced by those counted from the start.
    """
    text = re.sub(r"\\\r?\n", " ", text)
    lines, n_vertices, n_faces = [], 0, 0
    for line in text.splitlines():
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        if words[0] == "v":
            n_vertices += 1
            if len(words) < 4:
                raise ValueError(f"its vertex {n_vertices} has {len(words) - 1} coordinates")
            lines.append("v " + " ".join(words[1:4]))
        elif words[0] == "f":
            n_faces += 1
            numbers = [int(word.split("/", 1)[0]) for word in words[1:]]
            if len(numbers) < 3:
                raise ValueError(f"its face {n_faces} has {len(numbers)} vertices")
            for i, number in enumerate(numbers):
                if number < 0:
                    numbers[i] = number + n_vertices + 1
                if numbers[i] < 1:
                    raise ValueError(f"its face {n_faces} names vertex {number}, which does not exist")
            lines.append("f " + " ".join(map(str, numbers)))
    return "\n".join(lines)


def _read_stl(data: bytes) -> tuple[np.ndarray, list[np.ndarray]]:
    from trimesh.exchange.stl import load_stl

    # A binary file is as long as it says; as trimesh tells them apart.
    is_binary = len(data) >= 84 and len(data) == 84 + 50 * int.from_bytes(data[80:84], "little")
    loaded = load_stl(io.BytesIO(data if is_binary else _text(data).encode()))
    solids = list(loaded["geometry"].values()) if "geometry" in loaded else [loaded]
    corners = [np.asarray(solid["vertices"], dtype=np.float64)[solid["faces"].ravel()] for solid in solids]
    if not corners:
        return np.empty((0, 3)), []
    corners = np.concatenate(corners)
    # Values are compared, so that 0.0 and -0.0 are the same place.
    unique, first, inverse = np.unique(corners, axis=0, return_index=True, return_inverse=True)
    rank = np.empty(len(unique), dtype=np.int64)
    order = np.argsort(first)
    rank[order] = np.arange(len(unique))
    return unique[order], [rank[inverse.ravel()].reshape(-1, 3)]


def _read_ply(data: bytes) -> tuple[np.ndarray, list[np.ndarray]]:
    return ply.read_ply(data)


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


_READERS = {".ply": _read_ply, ".obj": _read_obj, ".off": _read_off, ".stl": _read_stl}
_WRITERS = {".ply": ply.write_ply, ".obj": _write_obj, ".off": _write_off, ".stl": _write_stl}
