"""Distances along triangles and their derivatives, found another way: for the tests of forces along surfaces.

Of every strip of triangles that leads from one point to the other, no triangle twice, the shortest path inside it; the
least of these. A strip is laid into the plane by the lengths of its edges alone, and its shortest path is made of
straight pieces from end to end, by way of ends of the edges between its triangles: of all such paths that cross every
edge, the shortest.
"""

import itertools

import numpy as np


def neighbors(faces):
    """{face: faces with which it shares an edge}"""
    at = {}
    for f, corners in enumerate(faces):
        for i, j in itertools.combinations(sorted(corners), 2):
            at.setdefault((i, j), []).append(f)
    out = {f: [] for f in range(len(faces))}
    for pair in at.values():
        for f, g in itertools.permutations(pair, 2):
            out[f].append(g)
    return out


def strips(faces, start, end, most):
    """Of up to `most` triangles, each a neighbor of the one before, from start to end."""
    beside = neighbors(faces)

    def further(way):
        if way[-1] == end:
            yield tuple(way)
        if len(way) < most and way[-1] != end:
            for f in beside[way[-1]]:
                if f not in way:
                    yield from further([*way, f])

    return list(further([start]))


def _third(p, q, dp, dq, side):
    """The place at the distances dp from p and dq from q, on the other side of their line than `side`."""
    d = np.linalg.norm(q - p)
    along = (dp**2 - dq**2 + d**2) / (2.0 * d)
    e = (q - p) / d
    n = np.array([-e[1], e[0]])
    if np.dot(side - p, n) > 0.0:
        n = -n
    return p + along * e + np.sqrt(max(dp**2 - along**2, 0.0)) * n


def laid_flat(x, faces, strip):
    """Of every triangle {vertex: place in the plane}."""
    a, b, c = faces[strip[0]]

    def length(i, j):
        return np.linalg.norm(x[i] - x[j])

    at = {a: np.zeros(2), b: np.array([length(a, b), 0.0])}
    at[c] = _third(at[a], at[b], length(a, c), length(b, c), np.array([0.0, -1.0]))
    out = [at]
    for before, f in itertools.pairwise(strip):
        p, q = sorted(set(faces[before]) & set(faces[f]))
        (old,) = set(faces[before]) - {p, q}
        (new,) = set(faces[f]) - {p, q}
        last = out[-1]
        out.append({p: last[p], q: last[q], new: _third(last[p], last[q], length(p, new), length(q, new), last[old])})
    return out


def _cross(a, b):
    return a[0] * b[1] - a[1] * b[0]


def way_in_strip(x, faces, strip, a, b):
    """The shortest path inside a strip from the place with weights a (3,) in its first triangle to b in its last: its
    length, and [(vertex, vertex, share of the second)] where it crosses the edges between them."""
    flat = laid_flat(x, faces, strip)
    start = sum(w * flat[0][v] for w, v in zip(a, faces[strip[0]], strict=True))
    end = sum(w * flat[-1][v] for w, v in zip(b, faces[strip[-1]], strict=True))
    doors = [sorted(set(faces[f]) & set(faces[g])) for f, g in itertools.pairwise(strip)]
    # Stations: start, both ends of every door, end; (how many doors are behind it, place).
    stations = [(0, start)] + [(k + 1, flat[k][v]) for k, door in enumerate(doors) for v in door]
    stations.append((len(doors) + 1, end))
    best = [0.0] + [np.inf] * (len(stations) - 1)
    came = [0] * len(stations)
    for j in range(1, len(stations)):
        k_j, y = stations[j]
        for i in range(j):
            k_i, z = stations[i]
            if k_i >= k_j or not best[i] < np.inf:
                continue
            d = y - z
            size = np.linalg.norm(d)
            for k in range(k_i, k_j - 1):
                s = [_cross(d, flat[k][v] - z) for v in doors[k]]
                if min(s) > 1e-13 * size or max(s) < -1e-13 * size:
                    break
            else:
                if best[i] + size < best[j]:
                    best[j], came[j] = best[i] + size, i
    crossings, j = [], len(stations) - 1
    while j > 0:
        i = came[j]
        (k_i, z), (k_j, y) = stations[i], stations[j]
        for k in reversed(range(k_i, k_j - 1)):
            p, q = doors[k]
            s = _cross(y - z, flat[k][p] - z), _cross(y - z, flat[k][q] - z)
            crossings.append((p, q, s[0] / (s[0] - s[1]) if s[0] != s[1] else 0.0))
        if k_i > 0:
            p, q = doors[k_i - 1]
            crossings.append((p, q, float(np.array_equal(z, flat[k_i - 1][q]))))
        j = i
    return best[-1], crossings[::-1]


def shortest(x, faces, start, a, end, b, most=9):
    """The length of the shortest path over at most `most` triangles, and the strip it takes."""
    found = [(way_in_strip(x, faces, s, a, b)[0], s) for s in strips(faces, start, end, most)]
    return min(found, default=(np.inf, ()))


def weights_of(x, faces, face, place):
    """Of a place in the plane of a triangle, by least squares."""
    p, q, r = x[list(faces[face])]
    second, third = np.linalg.lstsq(np.column_stack([q - p, r - p]), place - p, rcond=None)[0]
    return np.array([1.0 - second - third, second, third])


def great_circle(u, v):
    """The angle between directions."""
    return np.arctan2(np.linalg.norm(np.cross(u, v), axis=-1), np.sum(u * v, axis=-1))
