"""The curvature of a membrane between its vertices, written a second time: by triangles laid flat in a plane."""

import functools

import numpy as np


def flap(x, b, c, apex, sign):
    """Where the apex lies in a plane in which the edge from b to c lies along the first axis from 0."""
    edge = np.linalg.norm(x[c] - x[b])
    far, near = np.linalg.norm(x[apex] - x[b]), np.linalg.norm(x[apex] - x[c])
    along = (far**2 - near**2 + edge**2) / (2.0 * edge)
    return np.array([along, sign * np.sqrt(far**2 - along**2)])


def linear_over_the_edge(x, h, b, c, near, far):
    """(value at b, slope along the edge, slope across it towards `near`) of the linear function of two triangles in a
    plane that has the values of both ends of their edge, and of the diagonal where this crosses it."""
    edge = np.linalg.norm(x[c] - x[b])
    p, q = flap(x, b, c, near, 1.0), flap(x, b, c, far, -1.0)
    along = (h[c] - h[b]) / edge
    # Its slope along the diagonal is that of the values at the ends of the diagonal.
    diagonal = p - q
    across = (h[near] - h[far] - along * diagonal[0]) / diagonal[1]
    return h[b], along, across


@functools.lru_cache(8)
def _third(faces):
    """The third corner of the face at the left of each directed edge."""
    faces = np.frombuffer(faces, np.int64).reshape(-1, 3).tolist()
    return {(f[k], f[(k + 1) % 3]): f[(k + 2) % 3] for f in faces for k in range(3)}


def curvature_between(x, faces, h, face, weights):
    """At barycentric weights in a face: three linear functions, one of each edge; the nearer counts more."""
    third = _third(faces.astype(np.int64).tobytes())
    corners = faces[face].tolist()
    values, shares = [], []
    for k in range(3):
        b, c, near = (corners[(k + i) % 3] for i in (1, 2, 0))
        if (c, b) in third:
            start, along, across = linear_over_the_edge(x, h, b, c, near, third[c, b])
            corner = flap(x, b, c, near, 1.0)
            edge = np.linalg.norm(x[c] - x[b])
            place = weights[k] * corner + weights[(k + 2) % 3] * np.array([edge, 0.0])
            values.append(start + along * place[0] + across * place[1])
        else:
            values.append(weights @ h[corners])
        shares.append(weights[k] ** -2.0)
    return np.dot(shares, values) / np.sum(shares)


def with_borders(h, mesh):
    """Vertices on borders have the mean of their neighbours inside."""
    h, inside = h.copy(), np.ones(len(h), bool)
    for loop in mesh.borders:
        inside[loop] = False
    for v in np.flatnonzero(~inside):
        near = {b if a == v else a for a, b in mesh.edges.tolist() if v in (a, b)}
        inner = [u for u in near if inside[u]]
        h[v] = np.mean(h[inner]) if inner else 0.0
    return h


def missing_angles(x, faces):
    """(V,) Gaussian curvature: what angles lack of a turn, over a third of the ring's area; by the law of cosines."""
    missing, area = np.full(len(x), 2.0 * np.pi), np.zeros(len(x))
    for k in range(3):
        v, i, j = (faces[:, (k + c) % 3] for c in range(3))
        a, b, c = (np.linalg.norm(x[p] - x[q], axis=1) for p, q in ((i, j), (v, i), (v, j)))
        np.subtract.at(missing, v, np.arccos((b**2 + c**2 - a**2) / (2.0 * b * c)))
        # Heron.
        half = (a + b + c) / 2.0
        np.add.at(area, v, np.sqrt(half * (half - a) * (half - b) * (half - c)) / 3.0)
    return missing / area


def free_energy_of_directions(h, k, stiffness, c, kT):
    """Of a curvature along a direction that is taken by chance: by Bessel functions, exp(-A cos - B cos²) term by term.

    With B = stiffness s²/kT and A = 2 stiffness (H - c) s/kT the mean of exp(-A cos phi - B cos² phi) over phi is
    exp(-B/2) [I0(A) I0(B/2) + 2 sum_n (-1)^n I_2n(A) I_n(B/2)].
    """
    from scipy.special import iv

    square = h * h - k
    at_zero = stiffness * (h - c) ** 2
    if square <= 0.0:
        return at_zero + square * stiffness * (0.5 - at_zero / kT)
    a, b = 2.0 * stiffness * (h - c) * np.sqrt(square) / kT, stiffness * square / kT
    n = np.arange(1, 40)
    series = iv(0, a) * iv(0, b / 2.0) + 2.0 * np.sum((-1.0) ** n * iv(2 * n, a) * iv(n, b / 2.0))
    return at_zero - kT * np.log(np.exp(-b / 2.0) * series)
