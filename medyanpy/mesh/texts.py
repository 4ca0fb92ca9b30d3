"""OBJ, OFF and STL files: each row is read or refused by its line, and counts are compared with the data."""

import re
from array import array
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from medyanpy.errors import shortened
from medyanpy.mesh.geometry import area_vectors
from medyanpy.mesh.ply import PADDING

_Number = TypeVar("_Number", int, float)

#: Positions (V, 3), the corners of all polygons one after another, and how many each has.
Surface = tuple[np.ndarray, np.ndarray, np.ndarray]

# Statements of OBJ files that do not describe a surface. Names may end in a backslash, which is not a continuation.
_OBJ_NAMES = frozenset(
    "g o s mg usemtl mtllib maplib usemap shadow_obj trace_obj bevel c_interp d_interp lod scmp csh call".split()
)
_OBJ_PASSED_OVER = _OBJ_NAMES | frozenset("vt vn vp p l".split())
_OBJ_CORNER = re.compile(r"([-+]?\d+)(?:/(?:[-+]?\d+)?){0,2}")
_FACET = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")])  # Of binary STL files.
_OFF_HEADER = re.compile(r"((?:ST|C|N|4)*)(n?)OFF")


def text_of(data: bytes) -> str:
    """Decode a text file; numbers and keywords are ASCII in every format, and names and comments are not used."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace")
    return data.removeprefix(b"\xef\xbb\xbf").rstrip(PADDING).decode("ascii", errors="replace")


def lines_of(text: str) -> list[str]:
    """Split a text of any system into lines; other characters that Python takes for ends of lines do not count."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def numbers_of(words: list[str], line: int, kind: Callable[[str], _Number]) -> list[_Number]:
    """Return the numbers of a row."""
    try:
        if "_" in "".join(words):  # Python reads 1_0 as 10.
            raise ValueError
        return [kind(word) for word in words]
    except ValueError:
        said = f"{'whole ' if kind is int else ''}numbers: {shortened(' '.join(words))!r}"
        raise ValueError(f"its line {line} holds something else than {said}") from None


def _surface(vertices: "array[float]", corners: "array[int]", lengths: "array[int]") -> Surface:
    return np.frombuffer(vertices).reshape(-1, 3), np.frombuffer(corners, np.int64), np.frombuffer(lengths, np.intc)


def _statements(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the words of each statement of an OBJ file, and the line on which it begins. A backslash continues rows of
    numbers alone: comments and names may end in one."""
    words: list[str] = []
    begun = goes_on = 0
    for number, line in enumerate(lines_of(text), 1):
        body = line.split("#", 1)[0].rstrip()
        begun = goes_on or number
        keyword = words[0] if goes_on else next(iter(body.split()), "")
        goes_on = begun if body.endswith("\\") and keyword not in _OBJ_NAMES and "#" not in line else 0
        words += (body[:-1] if goes_on else body).split()
        if words and not goes_on:
            yield begun, words
            words = []
        goes_on = goes_on if words else 0
    if words:
        raise ValueError(f"its line {begun} continues in a next one, which is missing: it may be cut short")


def read_obj(data: bytes) -> Surface:
    """Read positions and vertices of faces, negative where counted from the end; textures, normals, groups, points and
    lines are skipped."""
    vertices, corners, lengths = array("d"), array("q"), array("i")
    lines: list[int] = []
    unknown = ""
    for line, words in _statements(text_of(data)):
        n_vertices = len(vertices) // 3
        if words[0] == "v":
            # Three coordinates, a weight, and a colour.
            if len(words) < 4:
                raise ValueError(f"its vertex {n_vertices + 1} has {len(words) - 1} coordinates, on line {line}")
            if len(words) - 1 not in (3, 4, 6, 7):
                raise ValueError(f"its line {line} has {len(words) - 1} numbers of one vertex")
            vertices.extend(numbers_of(words[1:], line, float)[:3])
        elif words[0] == "f":
            lengths.append(len(words) - 1)
            lines.append(line)
            if len(words) < 4:
                raise ValueError(f"its face {len(lengths)} has {len(words) - 1} vertices, on line {line}")
            for word in words[1:]:
                corner = _OBJ_CORNER.fullmatch(word)
                if corner is None:
                    raise ValueError(f"its line {line} holds something else than numbers: {shortened(word)!r}")
                number = int(corner[1])
                place = number - 1 if number > 0 else number + n_vertices if number else -1
                if place < 0 or place > 2**62:
                    said = f"names vertex {number}, which does not exist, on line {line}"
                    raise ValueError(f"its face {len(lengths)} {said}")
                corners.append(place)
        elif words[0] not in _OBJ_PASSED_OVER:
            unknown = unknown or f"its line {line} begins with {shortened(words[0])!r}, which is not read"
    n_vertices = len(vertices) // 3
    if corners and max(corners) >= n_vertices:
        beyond = np.argmax(np.frombuffer(corners, np.int64) >= n_vertices)
        face = int(np.searchsorted(np.cumsum(lengths), beyond, side="right"))
        raise ValueError(
            f"its face {face + 1} names vertex {corners[beyond] + 1}, which does not exist, on line {lines[face]}"
        )
    # Refuse a file without a surface.
    if unknown and n_vertices and lengths:
        raise ValueError(unknown)
    return _surface(vertices, corners, lengths)


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(lines_of(text), 1):
        words = line.split("#", 1)[0].split()
        if words:
            yield number, words


def read_off(data: bytes) -> Surface:
    """Read positions, (x, y, z)/w of four coordinates, and polygons, one vertex or face on a line (Geomview,
    geomview.org/docs/html/OFF.html). Colours, normals and textures are skipped."""
    if data[:64].split(b"\n", 1)[0].strip().endswith(b"BINARY"):
        raise ValueError("it is a binary OFF file, which is not read: save it as text")
    rows = _rows(text_of(data))
    first, words = next(rows, (1, [""]))
    header = _OFF_HEADER.fullmatch("OFF" if words[0] == "off" else words[0])
    kinds = ""
    if header is not None:
        if header[2]:
            raise ValueError(f"its line {first} announces vertices of any number of coordinates, which are not read")
        kinds, words = header[1], words[1:]
        if not words:
            first, words = next(rows, (first, []))
    elif not words[0].isdigit():
        raise ValueError(f"its line {first} is not a header of an OFF file: {shortened(' '.join(words))!r}")
    # The number of edges is left out by some writers, and wrong by others.
    if len(words) not in (2, 3):
        raise ValueError(f"its line {first} does not hold how many vertices, faces and edges there are")
    n_vertices, n_faces = numbers_of(words, first, int)[:2]
    if n_vertices < 0 or n_faces < 0:
        raise ValueError(f"its line {first} announces {n_vertices} vertices and {n_faces} faces")
    announced = f"that line {first} announces"
    own = 4 if "4" in kinds else 3
    more = 3 * kinds.count("N") + 2 * kinds.count("ST")
    # Many writers add colours without a word in the header.
    widths = {own + more + colour for colour in ((3, 4) if "C" in kinds else (0, 3, 4))}
    vertices, corners, lengths = array("d"), array("q"), array("i")
    last = first

    def next_row(k: int, count: int, what: str) -> tuple[int, list[str]]:
        """Return the next row and its line; `k` of `count` have been read."""
        nonlocal last
        line, words = next(rows, (0, []))
        if not line:
            raise ValueError(f"it ends after line {last}, with {k} of the {count} {what} {announced}")
        last = line
        return line, words

    for k in range(n_vertices):
        line, words = next_row(k, n_vertices, "vertices")
        if len(words) not in widths:
            raise ValueError(
                f"its line {line} has {len(words)} numbers, but vertex {k} of {n_vertices} has "
                f"{' or '.join(map(str, sorted(widths)))}: is it one of the vertices {announced}?"
            )
        row = numbers_of(words, line, float)
        if own == 4:
            if row[3] == 0.0:
                raise ValueError(f"its line {line} has a vertex with the fourth coordinate 0, infinitely far away")
            row = [x / row[3] for x in row[:3]]
        vertices.extend(row[:3])
    for k in range(n_faces):
        line, words = next_row(k, n_faces, "faces")
        (n,) = numbers_of(words[:1], line, int)
        if n < 3:
            raise ValueError(f"it has a face with {n} vertices, on line {line}")
        if len(words) - 1 - n not in (0, 1, 3, 4):
            raise ValueError(f"its line {line} has {len(words) - 1} numbers for a face of {n} vertices and its colour")
        face = numbers_of(words[1 : n + 1], line, int)
        wrong = [v for v in face if not 0 <= v < n_vertices]
        if wrong:
            there = f"there are 0 to {n_vertices - 1}"
            raise ValueError(f"its line {line} uses a vertex that does not exist: {wrong[0]}; {there}")
        corners.extend(face)
        lengths.append(n)
    line, words = next(rows, (0, []))
    if line:
        raise ValueError(
            f"its line {line} follows the {n_vertices} vertices and {n_faces} faces {announced}: "
            f"{shortened(' '.join(words))!r}"
        )
    return _sorted_by_size(*_surface(vertices, corners, lengths))


def _sorted_by_size(vertices: np.ndarray, corners: np.ndarray, lengths: np.ndarray) -> Surface:
    """Sort triangles first, then both halves of quadrilaterals, then larger polygons: the order in which faces of OFF
    files are numbered."""
    if (lengths == 3).all():
        return vertices, corners, lengths
    start = np.cumsum(lengths) - lengths
    triangles = corners[start[lengths == 3][:, None] + np.arange(3)]
    quads = corners[start[lengths == 4][:, None] + np.arange(4)]
    larger = np.repeat(lengths > 4, lengths)
    parts = [triangles.ravel(), quads[:, [0, 1, 2]].ravel(), quads[:, [2, 3, 0]].ravel(), corners[larger]]
    sizes = np.concatenate([np.full(len(triangles) + 2 * len(quads), 3, lengths.dtype), lengths[lengths > 4]])
    return vertices, np.concatenate(parts), sizes


def read_stl(data: bytes) -> Surface:
    """Read facets as loose triangles; corners with exactly equal coordinates become one vertex, in the order of the
    file."""
    size = len(data)
    count = int.from_bytes(data[80:84], "little") if size >= 84 else 0
    body = data.rstrip(PADDING)
    is_text = data.removeprefix(b"\xef\xbb\xbf").lstrip()[:5].lower() == b"solid" and b"\0" not in body
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        is_text = True
    # A binary file has the length that it announces, whatever its title.
    if size >= 84 and size == 84 + 50 * count:
        is_text = False
    corners = _text_facets(text_of(data)) if is_text else _binary_facets(data, count)
    # Values are compared, so that 0.0 and -0.0 are the same place.
    unique, first, inverse = np.unique(corners, axis=0, return_index=True, return_inverse=True)
    rank = np.empty(len(unique), dtype=np.int64)
    order = np.argsort(first)
    rank[order] = np.arange(len(unique))
    return unique[order], rank[inverse.ravel()], np.full(len(corners) // 3, 3, np.intc)


def _binary_facets(data: bytes, count: int) -> np.ndarray:
    """Return corners (3F, 3) of a binary STL file, which announces how many triangles there are."""
    size = len(data)
    if size < 84:
        raise ValueError(f"it has {size} bytes, and is neither text that begins with 'solid' nor a binary STL file")
    end = 84 + 50 * count
    beyond = data[end:]
    if size < end or len(beyond) >= 50 or beyond.strip(PADDING):
        raise ValueError(
            f"its header announces {count} triangles, which are {end} bytes, but it has {size}: "
            f"{'it is cut short' if size < end else f'{size - end} bytes follow the last triangle'}"
        )
    return np.frombuffer(data, _FACET, count, 84)["corners"].astype(np.float64).reshape(-1, 3)


def _text_facets(text: str) -> np.ndarray:
    """Return corners (3F, 3) of a text STL file."""
    corners = array("d")
    solid = facet = last = 0  # The lines on which each began; 0 outside.
    loop, n = False, 0
    for line, row in enumerate(lines_of(text), 1):
        words = row.split()
        if not words:
            continue
        last = line
        keyword = "".join(words[:2]).lower() if words[0].lower() in ("outer", "end") else words[0].lower()
        if keyword == "vertex" and loop and n < 3:
            if len(words) != 4:
                raise ValueError(f"its line {line} has {len(words) - 1} coordinates of one vertex")
            corners.extend(numbers_of(words[1:], line, float))
            n += 1
        elif keyword == "facet" and solid and not facet:
            facet, n = line, 0
        elif keyword == "outerloop" and facet and not loop and not n:
            loop = True
        elif keyword == "endloop" and loop and n == 3:
            loop = False
        elif keyword == "endfacet" and facet and not loop and n == 3:
            facet = 0
        elif keyword == "solid" and not solid:
            solid = line
        elif keyword == "endsolid" and solid and not facet:
            solid = 0
        else:
            inside = f"the facet of line {facet}" if facet else f"the solid of line {solid}" if solid else "no solid"
            raise ValueError(
                f"its line {line} has {shortened(row.strip())!r} inside {inside}, "
                f"which holds {n} vertices" if facet else f"its line {line} has {shortened(row.strip())!r} in {inside}"
            )
    if facet:
        raise ValueError(f"it ends after line {last}, within the facet of line {facet}: it is cut short")
    if solid:
        raise ValueError(
            f"it ends after line {last}, within the solid of line {solid}: 'endsolid' is missing, so that it may be "
            "cut short; add that line if it is whole"
        )
    return np.frombuffer(corners).reshape(-1, 3)


def write_stl(vertices: np.ndarray, faces: np.ndarray) -> bytes:
    """Return a binary STL file of triangles, with their normals."""
    rows = np.zeros(len(faces), _FACET)
    normals = area_vectors(vertices, faces)
    length = np.sqrt(np.einsum("ij,ij->i", normals, normals))
    rows["normal"] = normals / np.where(length > 0.0, length, 1.0)[:, None]
    rows["corners"] = vertices[faces]
    return b"written by medyanpy, lengths in nm".ljust(80) + len(faces).to_bytes(4, "little") + rows.tobytes()
