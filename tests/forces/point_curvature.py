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
