# cython: language_level=3
"""Uniform triangles for a surface: edges are split, collapsed and flipped, and vertices moved along it.

After M. Botsch, L. Kobbelt, "A remeshing approach to multiresolution modeling", Symposium on Geometry Processing
(2004). What is added here: the given surface is kept as sample points, each with the triangle on which it is now. A
change is made only if all samples of the triangles that it replaces are within the tolerance of those that replace
them, and their centroids within the tolerance of the triangles from which these samples come; if no triangle turns over
(by 78 degrees or more); and, for a collapse, if the link condition holds (H. Edelsbrunner, Geometry and Topology for
Mesh Generation, 2001), which keeps the topology. So thin sheets never join: distances are measured within patches.

Corner 3 f + i is vertex i of triangle f, and its edge is the one opposite to it, as everywhere in the package. One
thread, in the order of numbers: the same result anywhere.
"""
import numpy as np

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

from medyanpy._kernels.core.closest_points cimport Closest, point_to_triangle
from medyanpy._kernels.core.vec3 cimport cross, dot

cdef enum:
    # Triangles of one change: a vertex with more neighbours stays as it is.
    MOST = 256

cdef struct Patch:
    int n_old
    int old[MOST]              # triangles that go
    int n_new
    int corners[MOST][3]       # of those that come
    double at[MOST][3][3]      # and where these are
    int like[MOST]             # the old one that each is compared with, -1: all
    int n_samples
    int n_sources


cdef inline int following(int c) noexcept nogil:
    return c - 2 if c % 3 == 2 else c + 1


cdef inline int preceding(int c) noexcept nogil:
    return c + 2 if c % 3 == 0 else c - 1


cdef inline double squared(const double* a, const double* b) noexcept nogil:
    cdef double d[3]
    cdef int k
    for k in range(3):
        d[k] = a[k] - b[k]
    return dot(d, d)


cdef inline void area_vector(const double* a, const double* b, const double* c, double* n) noexcept nogil:
    cdef double p[3]
    cdef double q[3]
    cdef int k
    for k in range(3):
        p[k] = b[k] - a[k]
        q[k] = c[k] - a[k]
    cross(p, q, n)


cdef inline double shape_of(const double* a, const double* b, const double* c) noexcept nogil:
    """4 sqrt(3) area over the sum of the squares of the sides: 1 if equilateral, 0 without area."""
    cdef double n[3]
    cdef double sides = squared(a, b) + squared(b, c) + squared(c, a)
    area_vector(a, b, c, n)
    return 2.0 * 1.7320508075688772 * sqrt(dot(n, n)) / sides if sides > 0.0 else 0.0


cdef inline void closest_on(
    const double* point, const double* a, const double* b, const double* c, Closest* found,
) noexcept nogil:
    cdef double r[3]
    cdef double p[3]
    cdef double q[3]
    cdef int k
    for k in range(3):
        r[k] = a[k] - point[k]
        p[k] = b[k] - a[k]
        q[k] = c[k] - a[k]
    point_to_triangle(r, p, q, found)


def nearest(
    const double[:, ::1] points not None, const double[:, ::1] vertices not None, const int32_t[:, ::1] faces not None,
    const int32_t[:, ::1] candidates not None, double[::1] out not None,
):
    """Distance of each of n points from the nearest of its candidates (n, k), which are faces, into ``out``."""
    cdef Py_ssize_t i, j
    cdef int f
    cdef double best
    cdef Closest found
    with nogil:
        for i in range(points.shape[0]):
            best = INFINITY
            for j in range(candidates.shape[1]):
                f = candidates[i, j]
                closest_on(
                    &points[i, 0], &vertices[faces[f, 0], 0], &vertices[faces[f, 1], 0], &vertices[faces[f, 2], 0],
                    &found,
                )
                if found.rr < best:
                    best = found.rr
            out[i] = sqrt(best)


cdef class Remesher:
    """A surface while it is changed.

    Parameters
    ----------
    vertices : (V, 3) float64
    faces : (F, 3) int32
    opposite : (F, 3) int32
        Corner beyond the edge opposite to each corner, -1 at borders.
    samples : (n, 3) float64
        Points of the surface.
    sample_faces : (n,) int32
        The face of each.
    tolerance : float
        Largest distance between the two surfaces.
    """

    cdef double* x
    cdef int* corner_of            # of each vertex one corner, -1 of none
    cdef int* v                    # vertex of each corner, -1 where the face is gone
    cdef int* op
    cdef int* head                 # first sample of each face, -1 without
    cdef int* next_sample
    cdef int* stamp                # when each face of the given surface was last seen
    cdef int* gathered             # samples of a patch, faces they come from, and the new face of each
    cdef int* sources
    cdef int* goes_to
    cdef int n_v, n_f, room_v, room_f, now
    cdef double tolerance          # its square
    cdef const double[:, ::1] given
    cdef const int32_t[:, ::1] given_faces
    cdef const double[:, ::1] sample
    cdef const int32_t[::1] sample_face
    cdef Patch patch
    cdef public int splits, collapses, flips, moves

    def __cinit__(self, const double[:, ::1] vertices not None, const int32_t[:, ::1] faces not None,
                  const int32_t[:, ::1] opposite not None, const double[:, ::1] samples not None,
                  const int32_t[::1] sample_faces not None, double tolerance):
        cdef int i, f, n = samples.shape[0]
        self.n_v, self.n_f = vertices.shape[0], faces.shape[0]
        self.room_v, self.room_f = 2 * self.n_v + 64, 2 * self.n_f + 64
        self.given, self.given_faces, self.sample, self.sample_face = vertices, faces, samples, sample_faces
        self.tolerance, self.now = tolerance * tolerance, 0
        self.x = <double*>malloc(3 * self.room_v * sizeof(double))
        self.corner_of = <int*>malloc(self.room_v * sizeof(int))
        self.v = <int*>malloc(3 * self.room_f * sizeof(int))
        self.op = <int*>malloc(3 * self.room_f * sizeof(int))
        self.head = <int*>malloc(self.room_f * sizeof(int))
        self.next_sample = <int*>malloc((n + 1) * sizeof(int))
        self.stamp = <int*>malloc((self.n_f + 1) * sizeof(int))
        self.gathered = <int*>malloc((n + 1) * sizeof(int))
        self.sources = <int*>malloc((n + 1) * sizeof(int))
        self.goes_to = <int*>malloc((n + 1) * sizeof(int))
        if (self.x == NULL or self.corner_of == NULL or self.v == NULL or self.op == NULL or self.head == NULL
                or self.next_sample == NULL or self.stamp == NULL or self.gathered == NULL or self.sources == NULL
                or self.goes_to == NULL):
            raise MemoryError
        memcpy(self.x, &vertices[0, 0], 3 * self.n_v * sizeof(double))
        for i in range(self.n_v):
            self.corner_of[i] = -1
        for i in range(3 * self.n_f):
            self.v[i], self.op[i] = faces[i // 3, i % 3], opposite[i // 3, i % 3]
            self.corner_of[self.v[i]] = i
        for f in range(self.n_f):
            self.head[f] = self.stamp[f] = -1
        for i in range(n):
            self.next_sample[i] = self.head[sample_faces[i]]
            self.head[sample_faces[i]] = i

    def __dealloc__(self):
        free(self.x)
        free(self.corner_of)
        free(self.v)
        free(self.op)
        free(self.head)
        free(self.next_sample)
        free(self.stamp)
        free(self.gathered)
        free(self.sources)
        free(self.goes_to)

    def run(self, double length, int rounds):
        """Bring edges to about this length; stops when nothing changes."""
        cdef int _k, before
        for _k in range(rounds):
            before = self.splits + self.collapses + self.flips
            self._split_all(16.0 / 9.0 * length * length)
            with nogil:
                self._collapse_all(0.64 * length * length, 16.0 / 9.0 * length * length)
                self._flip_all()
                self._move_all()
            if before == self.splits + self.collapses + self.flips:
                break

    def result(self):
        """Vertices (V, 3) and faces (F, 3) int32, in the order in which they came."""
        cdef int i
        number = np.full(self.n_v, -1, np.int32)
        cdef int32_t[::1] place = number
        faces = np.empty((self.n_f, 3), np.int32)
        cdef int32_t[:, ::1] f = faces
        cdef int n = 0, m = 0
        x = np.empty((self.n_v, 3))
        cdef double[:, ::1] out = x
        for i in range(self.n_v):
            if self.corner_of[i] >= 0:
                place[i] = n
                out[n, 0], out[n, 1], out[n, 2] = self.x[3 * i], self.x[3 * i + 1], self.x[3 * i + 2]
                n += 1
        for i in range(self.n_f):
            if self.v[3 * i] >= 0:
                f[m, 0], f[m, 1], f[m, 2] = place[self.v[3 * i]], place[self.v[3 * i + 1]], place[self.v[3 * i + 2]]
                m += 1
        return x[:n].copy(), faces[:m].copy()

    # Patches -----------------------------------------------------------------------------------------------------

    cdef int ring(self, int vertex, int* corners, bint* on_border) noexcept nogil:
        """Corners of a vertex, anticlockwise, at a border from its first; how many there are, -1 of too many."""
        cdef int first = self.corner_of[vertex], c = first, across, n = 0
        on_border[0] = False
        # Clockwise to the border, if there is one.
        while True:
            across = self.op[preceding(c)]
            if across < 0:
                on_border[0] = True
                break
            c = preceding(across)
            n += 1
            if c == first:
                break
            if n > MOST:
                return -1
        first, n = c, 0
        while True:
            if n == MOST:
                return -1
            corners[n] = c
            n += 1
            across = self.op[following(c)]
            if across < 0:
                break
            c = following(across)
            if c == first:
                break
        return n

    cdef inline void _old(self, int face) noexcept nogil:
        self.patch.old[self.patch.n_old] = face
        self.patch.n_old += 1

    cdef inline void _new(self, int a, int b, int c, int like, int moved, const double* to) noexcept nogil:
        """A triangle that comes; the vertex `moved` will be at `to`."""
        cdef int k, i, n = self.patch.n_new
        cdef const double* at
        self.patch.corners[n][0], self.patch.corners[n][1], self.patch.corners[n][2] = a, b, c
        for k in range(3):
            at = to if self.patch.corners[n][k] == moved else self.x + 3 * self.patch.corners[n][k]
            for i in range(3):
                self.patch.at[n][k][i] = at[i]
        self.patch.like[n] = like
        self.patch.n_new += 1

    cdef void _gather(self) noexcept nogil:
        """Samples of the old triangles, and the given triangles from which they come."""
        cdef int k, s, source, n = 0, m = 0
        self.now += 1
        for k in range(self.patch.n_old):
            s = self.head[self.patch.old[k]]
            while s >= 0:
                self.gathered[n] = s
                n += 1
                source = self.sample_face[s]
                if self.stamp[source] != self.now:
                    self.stamp[source] = self.now
                    self.sources[m] = source
                    m += 1
                s = self.next_sample[s]
        self.patch.n_samples, self.patch.n_sources = n, m

    cdef double _to_given(self, const double* point, double enough, double* where) noexcept nogil:
        """Square of the distance of a point from the given triangles of the patch; where the nearest place is."""
        cdef int k, i, f
        cdef double best = INFINITY
        cdef Closest found
        cdef const double* corner[3]
        for k in range(self.patch.n_sources):
            f = self.sources[k]
            for i in range(3):
                corner[i] = &self.given[self.given_faces[f, i], 0]
            closest_on(point, corner[0], corner[1], corner[2], &found)
            if found.rr < best:
                best = found.rr
                for i in range(3):
                    where[i] = found.b[0] * corner[0][i] + found.b[1] * corner[1][i] + found.b[2] * corner[2][i]
                if best <= enough:
                    break
        return best

    cdef bint _is_allowed(self) noexcept nogil:
        """Whether the new triangles turn over nowhere and stay within the tolerance. `_gather` was called; where they
        are allowed, `goes_to` holds the new triangle of each sample."""
        cdef Patch* p = &self.patch
        cdef double mean[3]
        cdef double old[3]
        cdef double new[3]
        cdef double centre[3]
        cdef double where[3]
        cdef double nn, oo, best, on
        cdef int k, i, j, f
        cdef Closest found
        for i in range(3):
            mean[i] = 0.0
        for k in range(p.n_old):
            f = 3 * p.old[k]
            area_vector(self.x + 3 * self.v[f], self.x + 3 * self.v[f + 1], self.x + 3 * self.v[f + 2], old)
            for i in range(3):
                mean[i] += old[i]
        for k in range(p.n_new):
            area_vector(p.at[k][0], p.at[k][1], p.at[k][2], new)
            nn = dot(new, new)
            if not nn > 0.0:
                return False
            on = 0.2
            for i in range(3):
                old[i] = mean[i]
            if p.like[k] >= 0:
                f = 3 * p.like[k]
                # Normals of needles are noise: theirs is that of what is around.
                if shape_of(self.x + 3 * self.v[f], self.x + 3 * self.v[f + 1], self.x + 3 * self.v[f + 2]) > 0.05:
                    area_vector(self.x + 3 * self.v[f], self.x + 3 * self.v[f + 1], self.x + 3 * self.v[f + 2], old)
                else:
                    on = 0.0
            oo = dot(old, old)
            if dot(old, new) < on * sqrt(oo * nn):
                return False
        if p.n_sources == 0:
            return False
        for k in range(p.n_new):
            for i in range(3):
                centre[i] = (p.at[k][0][i] + p.at[k][1][i] + p.at[k][2][i]) / 3.0
            if self._to_given(centre, self.tolerance, where) > self.tolerance:
                return False
        for j in range(p.n_samples):
            best = INFINITY
            for k in range(p.n_new):
                closest_on(&self.sample[self.gathered[j], 0], p.at[k][0], p.at[k][1], p.at[k][2], &found)
                if found.rr < best:
                    best = found.rr
                    self.goes_to[j] = k
            if best > self.tolerance:
                return False
        return True

    cdef void _hand_over(self, const int* face_of_new) noexcept nogil:
        """Samples to the new triangles, which are these faces now."""
        cdef int k, f, s
        for k in range(self.patch.n_old):
            self.head[self.patch.old[k]] = -1
        for k in range(self.patch.n_new):
            self.head[face_of_new[k]] = -1
        for k in range(self.patch.n_samples):
            f, s = face_of_new[self.goes_to[k]], self.gathered[k]
            self.next_sample[s] = self.head[f]
            self.head[f] = s

    cdef double _worst_old(self) noexcept nogil:
        cdef int k, f
        cdef double worst = INFINITY, shape
        for k in range(self.patch.n_old):
            f = 3 * self.patch.old[k]
            shape = shape_of(self.x + 3 * self.v[f], self.x + 3 * self.v[f + 1], self.x + 3 * self.v[f + 2])
            worst = min(worst, shape)
        return worst

    cdef double _worst_new(self) noexcept nogil:
        cdef int k
        cdef double worst = INFINITY
        for k in range(self.patch.n_new):
            worst = min(worst, shape_of(self.patch.at[k][0], self.patch.at[k][1], self.patch.at[k][2]))
        return worst

    # Splits ------------------------------------------------------------------------------------------------------

    cdef int _make_room(self) except -1:
        cdef int n
        if self.n_v + 1 > self.room_v:
            n = 2 * self.room_v
            self.x = <double*>realloc(self.x, 3 * n * sizeof(double))
            self.corner_of = <int*>realloc(self.corner_of, n * sizeof(int))
            self.room_v = n
        if self.n_f + 2 > self.room_f:
            n = 2 * self.room_f
            self.v = <int*>realloc(self.v, 3 * n * sizeof(int))
            self.op = <int*>realloc(self.op, 3 * n * sizeof(int))
            self.head = <int*>realloc(self.head, n * sizeof(int))
            self.room_f = n
        if self.x == NULL or self.corner_of == NULL or self.v == NULL or self.op == NULL or self.head == NULL:
            raise MemoryError
        return 0

    cdef int _split_all(self, double most) except -1:
        cdef int c, again = True
        while again:
            again = False
            c = 0
            while c < 3 * self.n_f:
                # Each edge once.
                if self.v[c] >= 0 and self.op[c] < c and self._length(c) > most and self._is_longest(c):
                    self._make_room()
                    self._split(c)
                    again = True
                c += 1
        return 0

    cdef inline double _length(self, int c) noexcept nogil:
        return squared(self.x + 3 * self.v[following(c)], self.x + 3 * self.v[preceding(c)])

    cdef inline bint _is_longest(self, int c) noexcept nogil:
        """Of both of its triangles: where any edge is too long, there is one that is so too (M.-C. Rivara 1997)."""
        cdef double own = self._length(c)
        cdef int d = self.op[c]
        if self._length(following(c)) > own or self._length(preceding(c)) > own:
            return False
        return d < 0 or (self._length(following(d)) <= own and self._length(preceding(d)) <= own)

    cdef void _link(self, int c, int d) noexcept nogil:
        self.op[c] = d
        if d >= 0:
            self.op[d] = c

    cdef void _split(self, int c) noexcept nogil:
        """A vertex in the middle of the edge of a corner."""
        cdef int middle = self.n_v, k, half, other
        cdef int d = self.op[c]
        cdef int a = self.v[following(c)], b = self.v[preceding(c)]
        for k in range(3):
            self.x[3 * middle + k] = 0.5 * (self.x[3 * a + k] + self.x[3 * b + k])
        self.n_v += 1
        half = self._halve(c, middle)
        other = self._halve(d, middle) if d >= 0 else -1
        # The edges on either side of the middle: c keeps that from a to it, d that from b to it.
        if d >= 0:
            self._link(c, other)
            self._link(half, d)
        else:
            self.op[c] = self.op[half] = -1
        self.corner_of[middle] = preceding(c)
        self.corner_of[b] = preceding(half)
        self.splits += 1

    cdef int _halve(self, int c, int middle) noexcept nogil:
        """The triangle (p, a, b) of corner p becomes (p, a, middle), and (p, middle, b) a new one; its corner p."""
        cdef int f = self.n_f, old = c // 3, p = self.v[c], b = self.v[preceding(c)], s, k, beyond
        cdef int of_new[2]
        cdef double shape[2]
        cdef Closest found
        self.n_f += 1
        self.v[3 * f], self.v[3 * f + 1], self.v[3 * f + 2] = p, middle, b
        beyond = self.op[following(c)]             # across the edge from b to p
        self.v[preceding(c)] = middle
        self._link(3 * f + 1, beyond)
        self._link(following(c), 3 * f + 2)
        self.corner_of[b] = 3 * f + 2
        if self.corner_of[p] // 3 != old:
            self.corner_of[p] = c
        s = self.head[old]
        self.head[old] = self.head[f] = -1
        of_new[0], of_new[1] = old, f
        while s >= 0:
            beyond = self.next_sample[s]
            for k in range(2):
                closest_on(
                    &self.sample[s, 0], self.x + 3 * self.v[3 * of_new[k]], self.x + 3 * self.v[3 * of_new[k] + 1],
                    self.x + 3 * self.v[3 * of_new[k] + 2], &found,
                )
                shape[k] = found.rr
            k = of_new[1] if shape[1] < shape[0] else of_new[0]
            self.next_sample[s] = self.head[k]
            self.head[k] = s
            s = beyond
        return 3 * f

    # Collapses ---------------------------------------------------------------------------------------------------

    cdef void _collapse_all(self, double least, double most) noexcept nogil:
        cdef int c, turn
        for c in range(3 * self.n_f):
            if self.v[c] < 0 or self.op[c] > c or self._length(c) >= least:
                continue
            for turn in range(2):
                if self._collapse(c, turn, most):
                    self.collapses += 1
                    break

    cdef bint _collapse(self, int c, int turn, double most) noexcept nogil:
        """Whether one end of the edge of a corner went to the other one."""
        cdef int gone = self.v[preceding(c) if turn else following(c)]
        cdef int kept = self.v[following(c) if turn else preceding(c)]
        cdef int d = self.op[c]
        cdef int a = self.v[c], b = self.v[d] if d >= 0 else -1
        cdef int corners[MOST]
        cdef int others[MOST]
        cdef int faces[MOST]
        cdef bint rim = False, other_rim = False
        cdef int n, m, i, j, k, f, one, two
        cdef double longest = most
        n = self.ring(gone, corners, &rim)
        m = self.ring(kept, others, &other_rim)
        if n < 0 or m < 0 or (rim and (not other_rim or d >= 0)):
            return False
        # The link condition: the two have no neighbours in common but those across the edge.
        for i in range(n):
            one = self.v[following(corners[i])]
            two = self.v[preceding(corners[i])]
            for j in range(m):
                for k in range(2):
                    f = self.v[following(others[j]) if k == 0 else preceding(others[j])]
                    if (f == one and one != kept and one != a and one != b) or (
                            f == two and two != kept and two != a and two != b):
                        return False
        if not self._may_lose_one(a) or (b >= 0 and not self._may_lose_one(b)):
            return False
        if rim and n < 2:
            return False
        self.patch.n_old = self.patch.n_new = 0
        for i in range(n):
            f = corners[i] // 3
            self._old(f)
            one, two = self.v[following(corners[i])], self.v[preceding(corners[i])]
            longest = max(longest, squared(self.x + 3 * gone, self.x + 3 * one))
            longest = max(longest, squared(self.x + 3 * gone, self.x + 3 * two))
            if one != kept and two != kept:
                faces[self.patch.n_new] = f
                self._new(kept, one, two, f, -1, NULL)
        if self.patch.n_new == 0:
            return False
        for i in range(self.patch.n_new):
            for k in range(1, 3):
                if squared(self.patch.at[i][0], self.patch.at[i][k]) > longest:
                    return False
        if self._worst_new() < min(0.25, self._worst_old()):
            return False
        self._gather()
        if not self._is_allowed():
            return False
        self._hand_over(faces)
        for i in range(n):
            one, two = self.v[following(corners[i])], self.v[preceding(corners[i])]
            if one != kept and two != kept:
                self.v[corners[i]] = kept
        self._take_out(c, gone, kept)
        if d >= 0:
            self._take_out(d, gone, kept)
        self.corner_of[gone] = -1
        return True

    cdef void _take_out(self, int c, int gone, int kept) noexcept nogil:
        """A triangle at a collapsed edge, opposite to its corner c: its two other edges are one now."""
        cdef int of_gone = following(c) if self.v[following(c)] == gone else preceding(c)
        cdef int of_kept = preceding(c) if of_gone == following(c) else following(c)
        cdef int one = self.op[of_gone], two = self.op[of_kept], apex = self.v[c], k
        if one >= 0:
            self.op[one] = two
        if two >= 0:
            self.op[two] = one
        for k in range(3):
            self.v[3 * (c // 3) + k] = -1
        one = one if one >= 0 else two
        self.corner_of[apex] = following(one) if self.v[following(one)] == apex else preceding(one)
        self.corner_of[kept] = following(one) if self.v[following(one)] == kept else preceding(one)

    cdef bint _may_lose_one(self, int vertex) noexcept nogil:
        """Whether a vertex has a triangle to spare."""
        cdef int corners[MOST]
        cdef bint rim
        cdef int n = self.ring(vertex, corners, &rim)
        return n < 0 or n > (1 if rim else 3)

    # Flips -------------------------------------------------------------------------------------------------------

    cdef void _flip_all(self) noexcept nogil:
        cdef int c
        for c in range(3 * self.n_f):
            if self.v[c] >= 0 and self.op[c] >= 0 and self.op[c] < c and self._flip(c):
                self.flips += 1

    cdef int _lacks(self, int vertex) noexcept nogil:
        """How many neighbours a vertex has less than six, or than four at a border."""
        cdef int corners[MOST]
        cdef bint rim
        cdef int n = self.ring(vertex, corners, &rim)
        return 3 - n if rim else 6 - n

    cdef bint _flip(self, int c) noexcept nogil:
        """Whether the edge of a corner became the other diagonal."""
        cdef int d = self.op[c], f = c // 3, g = d // 3
        cdef int p = self.v[c], q = self.v[d], a = self.v[following(c)], b = self.v[preceding(c)]
        cdef int corners[MOST]
        cdef int faces[2]
        cdef int i, n, before, after, k, beyond_b
        cdef int lack[4]
        cdef bint rim
        cdef double old, new
        if p == q:
            return False
        self.patch.n_old = self.patch.n_new = 0
        self._old(f)
        self._old(g)
        self._new(p, a, q, -1, -1, NULL)
        self._new(q, b, p, -1, -1, NULL)
        old, new = self._worst_old(), self._worst_new()
        if new <= old:
            if new < 0.6:
                return False
            # Shapes are good either way: as many neighbours as there should be.
            lack[0], lack[1], lack[2], lack[3] = self._lacks(p), self._lacks(q), self._lacks(a), self._lacks(b)
            before = lack[0] ** 2 + lack[1] ** 2 + lack[2] ** 2 + lack[3] ** 2
            after = (lack[0] - 1) ** 2 + (lack[1] - 1) ** 2 + (lack[2] + 1) ** 2 + (lack[3] + 1) ** 2
            if after >= before:
                return False
        n = self.ring(p, corners, &rim)
        if n < 0:
            return False
        for i in range(n):
            if self.v[following(corners[i])] == q or self.v[preceding(corners[i])] == q:
                return False
        if not self._may_lose_one(a) or not self._may_lose_one(b):
            return False
        self._gather()
        if not self._is_allowed():
            return False
        faces[0], faces[1] = f, g
        self._hand_over(faces)
        # f = (p, a, q), g = (q, b, p), by their corners c and d.
        k = self.op[following(c)]        # across the edge from b to p
        beyond_b = self.op[following(d)]  # across the edge from a to q
        self.v[preceding(c)] = q
        self.v[preceding(d)] = p
        self._link(c, beyond_b)
        self._link(d, k)
        self._link(following(c), following(d))
        self.corner_of[a] = following(c)
        self.corner_of[b] = following(d)
        self.corner_of[p] = c
        self.corner_of[q] = d
        return True

    # Moves -------------------------------------------------------------------------------------------------------

    cdef void _move_all(self) noexcept nogil:
        cdef int v
        for v in range(self.n_v):
            if self.corner_of[v] >= 0 and self._move(v):
                self.moves += 1

    cdef bint _move(self, int vertex) noexcept nogil:
        """Whether a vertex that is on no border went towards the middle of its triangles, along the surface."""
        cdef int corners[MOST]
        cdef int faces[MOST]
        cdef bint rim
        cdef int n = self.ring(vertex, corners, &rim), i, k, f, _tried
        cdef double n_sum[3]
        cdef double middle[3]
        cdef double own[3]
        cdef double to[3]
        cdef double where[3]
        cdef double area, whole = 0.0, off, step = 1.0, old
        if n < 0 or rim:
            return False
        for i in range(3):
            n_sum[i] = middle[i] = 0.0
        self.patch.n_old = 0
        for k in range(n):
            f = corners[k] // 3
            faces[k] = f
            self._old(f)
            area_vector(self.x + 3 * self.v[3 * f], self.x + 3 * self.v[3 * f + 1], self.x + 3 * self.v[3 * f + 2], own)
            area = sqrt(dot(own, own))
            whole += area
            for i in range(3):
                n_sum[i] += own[i]
                middle[i] += area * (
                    self.x[3 * self.v[3 * f] + i]
                    + self.x[3 * self.v[3 * f + 1] + i]
                    + self.x[3 * self.v[3 * f + 2] + i]
                ) / 3.0
        if not whole > 0.0 or not dot(n_sum, n_sum) > 0.0:
            return False
        for i in range(3):
            middle[i] = middle[i] / whole - self.x[3 * vertex + i]
        off = dot(middle, n_sum) / dot(n_sum, n_sum)
        self._gather()
        if self.patch.n_sources == 0:
            return False
        old = self._worst_old()
        for _tried in range(3):
            for i in range(3):
                to[i] = self.x[3 * vertex + i] + step * (middle[i] - off * n_sum[i])
            self._to_given(to, -1.0, where)
            self.patch.n_new = 0
            for k in range(n):
                f = faces[k]
                self._new(self.v[3 * f], self.v[3 * f + 1], self.v[3 * f + 2], f, vertex, where)
            if self._worst_new() >= min(0.5, old) and self._is_allowed():
                self._hand_over(faces)
                for i in range(3):
                    self.x[3 * vertex + i] = where[i]
                return True
            step *= 0.4
        return False
