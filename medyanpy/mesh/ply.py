"""Stanford PLY files, text and binary, either byte order.

The one format read and written here rather than by trimesh, whose reader (5.2) stops at binary files with
polygons of different sizes and at elements without properties, both of which occur in real data, and whose
writer keeps only single precision. Format: G. Turk, "The PLY polygon file format" (Stanford, 1994).
"""

from itertools import pairwise

import numpy as np

_TYPES = {
    "char": "i1", "int8": "i1", "uchar": "u1", "uint8": "u1", "short": "i2", "int16": "i2", "ushort": "u2",
    "uint16": "u2", "int": "i4", "int32": "i4", "uint": "u4", "uint32": "u4", "float": "f4", "float32": "f4",
    "double": "f8", "float64": "f8", "int64": "i8", "uint64": "u8",
}  # fmt: skip
_FORMATS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
_FACE_LISTS = ("vertex_indices", "vertex_index")


def read_ply(data: bytes) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return vertices (V, 3) and polygons, one (n, k) array per run of polygons of equal size, in file order.

    Raises
    ------
    ValueError
        Where the data are not what the header announces.
    """
    order, elements, body = _read_header(data)
    vertices, polygons = None, []
    if order:
        source: _Words | _Bytes = _Bytes(body, order)
    else:
        source = _Words(body)
    for name, count, properties in elements:
        table = source.take(name, count, properties)
        if name == "vertex":
            missing = [axis for axis in "xyz" if axis not in table]
            if missing:
                raise ValueError(f"its vertices have no {', '.join(missing)}")
            vertices = np.column_stack([table[axis] for axis in "xyz"]).astype(np.float64)
        elif name == "face":
            key = next((key for key in _FACE_LISTS if key in table), None)
            if key is None:
                raise ValueError("its faces have no list named vertex_indices or vertex_index")
            polygons = table[key]
    if vertices is None:
        raise ValueError("it has no element named vertex")
    return vertices, polygons


def write_ply(vertices: np.ndarray, faces: np.ndarray) -> bytes:
    """Return a little-endian binary PLY file in double precision."""
    header = (
        "ply\nformat binary_little_endian 1.0\ncomment written by medyanpy, lengths in nm\n"
        f"element vertex {len(vertices)}\nproperty double x\nproperty double y\nproperty double z\n"
        f"element face {len(faces)}\nproperty list uchar int vertex_indices\nend_header\n"
    )
    rows = np.empty(len(faces), dtype=[("n", "u1"), ("v", "<i4", 3)])
    rows["n"] = 3
    rows["v"] = faces
    return header.encode() + np.ascontiguousarray(vertices, dtype="<f8").tobytes() + rows.tobytes()


def _read_header(data: bytes) -> tuple[str, list, bytes]:
    end = data.find(b"end_header")
    line_end = data.find(b"\n", end)
    if not data.startswith(b"ply") or end < 0 or line_end < 0:
        raise ValueError("it has no PLY header")
    order, elements = None, []
    for line in data[:end].decode("latin-1").splitlines()[1:]:
        words = line.split()
        if not words or words[0] in ("comment", "obj_info"):
            continue
        if words[0] == "format" and len(words) > 1 and words[1] in _FORMATS:
            order = _FORMATS[words[1]]
        elif words[0] == "element" and len(words) == 3 and words[2].isdigit():
            elements.append((words[1], int(words[2]), []))
        elif words[0] == "property" and elements and len(words) == 3 and words[1] in _TYPES:
            elements[-1][2].append((words[2], None, _TYPES[words[1]]))
        elif words[0] == "property" and elements and len(words) == 5 and {words[2], words[3]} <= set(_TYPES):
            elements[-1][2].append((words[4], _TYPES[words[2]], _TYPES[words[3]]))
        else:
            raise ValueError(f"its header has the line {line!r}")
    if order is None:
        raise ValueError("its header names no known format")
    return order, elements, data[line_end + 1 :]


def _runs(lists: list[np.ndarray]) -> list[np.ndarray]:
    """Stack neighbouring lists of equal length."""
    lengths = np.array([len(one) for one in lists])
    cuts = np.flatnonzero(np.diff(lengths)) + 1
    bounds = [0, *cuts.tolist(), len(lists)]
    return [np.array(lists[i:j]) for i, j in pairwise(bounds)]


class _Bytes:
    """Binary body, read element by element."""

    def __init__(self, body: bytes, order: str) -> None:
        self.body, self.order, self.at = body, order, 0

    def take(self, name: str, count: int, properties: list) -> dict:
        """Columns of an element; a list property gives a list of (n, k) arrays."""
        if count == 0 or not properties:
            return {key: [] if length else np.empty(0) for key, length, _ in properties}
        # First try: every list as long as in the first row, true of scalars and pure triangle meshes.
        lengths = {}
        at = self.at
        for key, length, kind in properties:
            if length:
                lengths[key] = self._number(length, at, name)
                at += np.dtype(length).itemsize + lengths[key] * np.dtype(kind).itemsize
            else:
                at += np.dtype(kind).itemsize
        columns = []
        for i, (key, length, kind) in enumerate(properties):
            if length:
                columns += [(f"n{i}", self.order + length), (f"p{i}", self.order + kind, (lengths[key],))]
            else:
                columns.append((f"p{i}", self.order + kind))
        row = np.dtype(columns)
        if self.at + count * row.itemsize <= len(self.body):
            rows = np.frombuffer(self.body, row, count, self.at)
            lists = [i for i, (_, length, _) in enumerate(properties) if length]
            if all((rows[f"n{i}"] == lengths[properties[i][0]]).all() for i in lists):
                self.at += count * row.itemsize
                return {
                    key: [rows[f"p{i}"]] if length else rows[f"p{i}"]
                    for i, (key, length, _) in enumerate(properties)
                }
        elif not any(length for _, length, _ in properties):
            raise ValueError(f"it ends within its element {name!r}")
        return self._take_slowly(name, count, properties)

    def _take_slowly(self, name: str, count: int, properties: list) -> dict:
        values: dict[str, list] = {key: [] for key, _, _ in properties}
        for _ in range(count):
            for key, length, kind in properties:
                n = 1
                if length:
                    n = self._number(length, self.at, name)
                    self.at += np.dtype(length).itemsize
                size = n * np.dtype(kind).itemsize
                if self.at + size > len(self.body):
                    raise ValueError(f"it ends within its element {name!r}")
                numbers = np.frombuffer(self.body, self.order + kind, n, self.at)
                values[key].append(numbers if length else numbers[0])
                self.at += size
        return {key: _runs(values[key]) if length else np.array(values[key]) for key, length, _ in properties}

    def _number(self, kind: str, at: int, name: str) -> int:
        if at + np.dtype(kind).itemsize > len(self.body):
            raise ValueError(f"it ends within its element {name!r}")
        number = int(np.frombuffer(self.body, self.order + kind, 1, at)[0])
        if number < 0:
            raise ValueError(f"its element {name!r} has a list of {number} entries")
        return number


class _Words:
    """Text body, read element by element; line breaks mean nothing to PLY."""

    def __init__(self, body: bytes) -> None:
        self.words, self.at = body.split(), 0

    def take(self, name: str, count: int, properties: list) -> dict:
        """Columns of an element; a list property gives a list of (n, k) arrays."""
        if not any(length for _, length, _ in properties):
            n = count * len(properties)
            table = self._numbers(n, name).reshape(count, len(properties))
            return {key: table[:, i] for i, (key, _, _) in enumerate(properties)}
        values: dict[str, list] = {key: [] for key, _, _ in properties}
        for _ in range(count):
            for key, length, kind in properties:
                n = int(self._numbers(1, name)[0]) if length else 1
                numbers = self._numbers(n, name)
                values[key].append(numbers.astype(kind) if length else numbers[0])
        return {
            key: (_runs(values[key]) if count else []) if length else np.array(values[key])
            for key, length, _ in properties
        }

    def _numbers(self, n: int, name: str) -> np.ndarray:
        words = self.words[self.at : self.at + n]
        if n < 0 or len(words) < n:
            raise ValueError(f"it ends within its element {name!r}")
        self.at += n
        return np.array(words, dtype=np.float64)
