"""Stanford PLY files, text and binary, either byte order.

Format: G. Turk, "The PLY polygon file format" (Stanford, 1994).
"""

import io
import struct
from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np

#: Of a property its name, what type the length of a list has, where it is one, and the type of its numbers; of an
#: element its name, how many there are, and its properties.
_Property: TypeAlias = tuple[str, str | None, str]
_Element: TypeAlias = tuple[str, int, list[_Property]]

_TYPES = {
    "char": "i1", "int8": "i1", "uchar": "u1", "uint8": "u1", "short": "i2", "int16": "i2", "ushort": "u2",
    "uint16": "u2", "int": "i4", "int32": "i4", "uint": "u4", "uint32": "u4", "float": "f4", "float32": "f4",
    "double": "f8", "float64": "f8", "int64": "i8", "uint64": "u8",
}  # fmt: skip
# Types of lengths of lists, and their codes in `struct`.
_COUNTS = {"i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q"}
_FORMATS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
_FACE_LISTS = ("vertex_indices", "vertex_index")
PADDING = b"\0\x1a \t\r\n"  # What may stand behind the end of a file: padding of blocks, and the end of texts in CP/M.
_LONGEST_HEADER = 2**16  # The longest header that is read, in bytes.
_LONGEST_ROW = 2**16  # Bytes of text that are converted to numbers at once.


def read_ply(data: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return vertices (V, 3), the corners of all polygons one after another, and how many each has (F,); ValueError
    where data do not match the header. Other elements and properties are skipped."""
    order, elements, body = _read_header(data)
    if order:
        return _read_elements(elements, _Bytes(body, order))
    line = data.count(b"\n", 0, len(data) - len(body))
    try:
        return _read_elements(elements, _Words(body, line, by_rows=True))
    except ValueError:
        # A file with other breaks of lines must have exactly the announced numbers; else the rows show the error.
        with suppress(ValueError):
            return _read_elements(elements, _Words(body, line, by_rows=False))
        raise


def _read_elements(elements: list[_Element], source: "_Words | _Bytes") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    vertices, corners, lengths = None, np.empty(0, np.int64), np.empty(0, np.int64)
    for name, count, properties in elements:
        scalars = [key for key, length, _ in properties if not length]
        lists = [key for key, length, _ in properties if length]
        if name == "vertex":
            missing = [axis for axis in "xyz" if axis not in scalars]
            if missing:
                raise ValueError(f"its vertices have no {', '.join(missing)}")
            table = source.take(name, count, properties, "xyz")
            vertices = np.column_stack([table[axis] for axis in "xyz"]).astype(np.float64)
        elif name == "face":
            key = next((key for key in _FACE_LISTS if key in lists), None)
            if key is None:
                raise ValueError("its faces have no list named vertex_indices or vertex_index")
            corners, lengths = source.take(name, count, properties, [key])[key]
        else:
            source.take(name, count, properties, ())
    if vertices is None:
        raise ValueError("it has no element named vertex")
    source.expect_end()
    return vertices, corners, lengths


def write_ply(vertices: np.ndarray, faces: np.ndarray, comments: Sequence[str] = ()) -> bytes:
    """Return a little-endian binary PLY file in double precision; with lines of comments."""
    header = (
        "ply\nformat binary_little_endian 1.0\ncomment written by medyanpy, lengths in nm\n"
        f"{''.join(f'comment {line}{chr(10)}' for line in comments)}"
        f"element vertex {len(vertices)}\nproperty double x\nproperty double y\nproperty double z\n"
        f"element face {len(faces)}\nproperty list uchar int vertex_indices\nend_header\n"
    )
    rows = np.empty(len(faces), dtype=[("n", "u1"), ("v", "<i4", 3)])
    rows["n"] = 3
    rows["v"] = faces
    return header.encode() + np.ascontiguousarray(vertices, dtype="<f8").tobytes() + rows.tobytes()


def _read_header(data: bytes) -> tuple[str, list[_Element], bytes]:
    end = data.find(b"end_header")
    line_end = data.find(b"\n", end)
    if not data.startswith(b"ply") or end < 0 or line_end < 0:
        raise ValueError("it has no PLY header")
    if end > _LONGEST_HEADER:
        raise ValueError(f"its header has {end} characters, but at most {_LONGEST_HEADER} are read")
    order: str | None = None
    elements: list[_Element] = []
    for line in data[:end].decode("latin-1").splitlines()[1:]:
        words = line.split()
        if not words or words[0] in ("comment", "obj_info"):
            continue
        if words[0] == "format" and len(words) > 1 and words[1] in _FORMATS:
            order = _FORMATS[words[1]]
        elif words[0] == "element" and len(words) == 3 and words[2].isdigit():
            if any(words[1] == name for name, _, _ in elements):
                raise ValueError(f"its header announces the element {words[1]!r} twice")
            if words[1] == "tristrips" and int(words[2]):
                raise ValueError("its faces are strips of triangles ('tristrips'), which are not read")
            elements.append((words[1], int(words[2]), []))
        elif words[0] == "property" and elements and len(words) == 3 and words[1] in _TYPES:
            elements[-1][2].append((words[2], None, _TYPES[words[1]]))
        elif words[0] == "property" and elements and len(words) == 5 and {words[2], words[3]} <= set(_TYPES):
            if _TYPES[words[2]] not in _COUNTS:
                raise ValueError(f"its header has lists of {words[2]} entries: {line!r}")
            elements[-1][2].append((words[4], _TYPES[words[2]], _TYPES[words[3]]))
        else:
            raise ValueError(f"its header has the line {line!r}")
    if order is None:
        raise ValueError("its header names no known format")
    return order, elements, data[line_end + 1 :]


def _columns(values: dict[str, Any], lengths: dict[str, Any], properties: list[_Property]) -> dict[str, Any]:
    """Return the columns of `_Bytes.take`, from the arrays found for each."""
    lists = {key for key, length, _ in properties if length}
    return {
        key: (found, np.frombuffer(lengths[key], np.intc)) if key in lists else found for key, found in values.items()
    }


def _nothing(properties: list[_Property], wanted: Iterable[str]) -> dict[str, Any]:
    """Return the columns of an element without rows, or without properties."""
    return _columns(dict.fromkeys(wanted, np.empty(0)), dict.fromkeys(wanted, array("i")), properties)


class _Bytes:
    """Binary body, read element by element."""

    def __init__(self, body: bytes, order: str) -> None:
        self.body, self.order, self.at = body, order, 0

    def take(self, name: str, count: int, properties: list[_Property], wanted: Iterable[str]) -> dict[str, Any]:
        """Return the wanted columns of an element: of a list, all entries one after another, and how many each list
        has."""
        if count == 0 or not properties:
            return _nothing(properties, wanted)
        # First try: every list as long as in the first row, true of scalars and pure triangle meshes.
        lengths = {}
        at = self.at
        for key, length, kind in properties:
            n = 1
            if length:
                n = lengths[key] = self._number(length, at, name)
                at += np.dtype(length).itemsize
            at += n * np.dtype(kind).itemsize
        # Before a type is made for rows that no file holds.
        if at > len(self.body):
            raise ValueError(f"it ends within its element {name!r}")
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
                    key: (rows[f"p{i}"].ravel(), np.broadcast_to(lengths[key], count)) if length else rows[f"p{i}"]
                    for i, (key, length, _) in enumerate(properties)
                    if key in wanted
                }
        elif not any(length for _, length, _ in properties):
            raise ValueError(f"it ends within its element {name!r}")
        return self._take_slowly(name, count, properties, wanted)

    def _take_slowly(self, name: str, count: int, properties: list[_Property], wanted: Iterable[str]) -> dict[str, Any]:
        # Bytes are copied as they lie there: an object for each of millions of short lists would take a hundred times
        # the file, and their making seconds.
        found = {key: bytearray() for key in wanted}
        lengths = {key: array("i") for key in wanted}
        heads = [struct.Struct(self.order + _COUNTS[length]) if length else None for _, length, _ in properties]
        plan = [
            (found.get(key), lengths.get(key), head, np.dtype(kind).itemsize)
            for (key, _, kind), head in zip(properties, heads, strict=True)
        ]
        body, at, end = self.body, self.at, len(self.body)
        try:
            for _ in range(count):
                for values, counts, number, size in plan:
                    start = at
                    if number is None:
                        at += size
                    else:
                        (n,) = number.unpack_from(body, at)
                        if n < 0:
                            raise ValueError(f"its element {name!r} has a list of {n} entries")
                        start += number.size
                        at = start + n * size
                    if values is not None:
                        values += body[start:at]
                        if counts is not None and number is not None:
                            counts.append(n)
                if at > end:
                    break
        except struct.error:
            at = end + 1
        if at > end:
            raise ValueError(f"it ends within its element {name!r}")
        self.at = at
        columns = {key: np.frombuffer(found[key], self.order + kind) for key, _, kind in properties if key in wanted}
        return _columns(columns, lengths, properties)

    def expect_end(self) -> None:
        """Raise ValueError where something follows the last element."""
        beyond = len(self.body) - self.at
        if self.body[self.at :].strip(PADDING):
            raise ValueError(f"{beyond} bytes follow all that its header announces")

    def _number(self, kind: str, at: int, name: str) -> int:
        if at + np.dtype(kind).itemsize > len(self.body):
            raise ValueError(f"it ends within its element {name!r}")
        number = int(np.frombuffer(self.body, self.order + kind, 1, at)[0])
        if number < 0:
            raise ValueError(f"its element {name!r} has a list of {number} entries")
        return number


class _Words:
    """Text body, read element by element: a row on each line, which may continue on the next; in files that break lines
    elsewhere, all numbers are one stream."""

    def __init__(self, body: bytes, line: int, by_rows: bool) -> None:
        self.lines, self.line, self.by_rows = io.BytesIO(body), line, by_rows
        self.row: list[bytes] = []
        self.at = 0

    def take(self, name: str, count: int, properties: list[_Property], wanted: Iterable[str]) -> dict[str, Any]:
        """Return the wanted columns of an element, as `_Bytes.take`."""
        if count == 0 or not properties:
            return _nothing(properties, wanted)
        found = {key: array("d") for key in wanted}
        lengths = {key: array("i") for key in wanted}
        plan = [(found.get(key), lengths.get(key), bool(length)) for key, length, _ in properties]
        for k in range(count):
            if self.by_rows or self.at == len(self.row):
                self._read_on(name, k, count)
            for values, counts, is_list in plan:
                n = 1
                if is_list:
                    n = int(self._numbers(1, name, k, count)[0])
                    if n < 0:
                        raise ValueError(f"its element {name!r} has a list of {n} entries, on line {self.line}")
                    if counts is not None:
                        counts.append(n)
                if values is None:
                    self._skip(n, name, k, count)
                else:
                    values.extend(self._numbers(n, name, k, count))
            # Values beyond the announced ones have no property; but a list has its own length.
            if self.by_rows and self.at < len(self.row) and properties[-1][1]:
                of = f"{properties[-1][0]!r} of its element {name!r}"
                raise ValueError(f"its line {self.line} holds more values than {of} announces")
        columns = {
            # The type of a property that is not a list does not matter.
            key: _as_kind(np.frombuffer(found[key]), kind if length else "f8", f"{name!r}, {key!r}")
            for key, length, kind in properties
            if key in wanted
        }
        return _columns(columns, lengths, properties)

    def expect_end(self) -> None:
        """Raise ValueError where something follows the last element."""
        if not self.by_rows and self.at < len(self.row):
            raise ValueError(f"its line {self.line} holds more than its header announces")
        for line in self.lines:
            self.line += 1
            if line.strip(PADDING):
                raise ValueError(f"its line {self.line} follows all that its header announces")

    def _numbers(self, n: int, name: str, k: int, count: int) -> list[float]:
        """Read the next n numbers of row k."""
        words: list[bytes] = []
        while True:
            part = self.row[self.at : self.at + n - len(words)]
            self.at += len(part)
            words += part
            if len(words) == n:
                break
            self._read_on(name, k, count)
        try:
            if b"_" in b"".join(words):  # Python reads 1_0 as 10.
                raise ValueError
            return list(map(float, words))
        except ValueError:
            raise ValueError(f"its line {self.line} holds something else than numbers: {words[:9]!r}") from None

    def _skip(self, n: int, name: str, k: int, count: int) -> None:
        while n:
            if self.at == len(self.row):
                self._read_on(name, k, count)
            passed = min(n, len(self.row) - self.at)
            self.at += passed
            n -= passed

    def _read_on(self, name: str, k: int, count: int) -> None:
        """Go to the next line that is not empty."""
        # An object for each word of one long line would take ten times its memory.
        while line := self.lines.readline(_LONGEST_ROW):
            whole = line.endswith(b"\n")
            if len(line) == _LONGEST_ROW and not whole:
                if self.by_rows:
                    raise ValueError(f"its line {self.line + 1} has more than {_LONGEST_ROW} bytes")
                while not line[-1:].isspace() and (rest := self.lines.read(1)):
                    line += rest
            self.line += whole
            self.row, self.at = line.split(), 0
            if self.row:
                return
        read = f"after line {self.line}, with {k} of the {count} that its header announces"
        raise ValueError(f"it ends within its element {name!r}: {read}")


def _as_kind(values: np.ndarray, kind: str, of: str) -> np.ndarray:
    """Convert numbers read from text to the announced type; ValueError for numbers that it cannot hold."""
    if kind[0] == "f":
        return values
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    bad = ~((values == np.rint(values)) & (values >= low) & (values <= high))
    if bad.any():
        wrong = values[np.argmax(bad)]
        raise ValueError(f"its element {of} has the value {wrong:.17g}, which is not a number of its type")
    return values.astype(kind)
