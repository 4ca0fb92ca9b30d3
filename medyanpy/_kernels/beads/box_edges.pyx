"""Whether the edges of membranes in a periodic box stay shorter than half of it.

An edge is the vector between nearest images of its ends. Stretched beyond half of the box along an axis it would be
taken for another one, and the sheet would be torn without a word: a fault, TOO_WIDE, of the letter that moves vertices
so far. It has passed the middle where the vector of now is not the one before plus what its ends have moved since: that
holds however far they have moved.

All edges are looked at only where a vertex has moved further, since the last look, than leaves all of them below half
of the box. What makes that look stale, so that edges are looked at anew before vertices move: another World, arrays
that are written to, a box of other lengths. Edges that flip do not: EdgeFlips makes none above LONGEST_FLIPPED of the
box, and vertices may not move further than leaves these, too, below half of it. There only a triangle is a fault whose
edges do not add up to nothing.
"""
import numpy as np

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int32_t
from libc.string cimport memcpy

from medyanpy._kernels.core.box cimport LONGEST_FLIPPED, displacement, has_lengths, nearest_whole
from medyanpy._kernels.core.parallel cimport n_blocks, over_blocks, record_fault
from medyanpy._kernels.core.program cimport TOO_WIDE, Operation, World

cdef Py_ssize_t FACES = 1024
# Relative; makes up for the rounding of what ends have moved.
cdef double MARGIN = 1e-9


cdef struct Look:
    double* then              # (n_vertices, 3) where vertices were at the last look; not read where `anew`
    bint anew
    double[3] half            # nm; infinite in open directions
    double[3] allowed         # how far a vertex may have moved since, nm
    double* longest           # (blocks, 3) of edges, along each axis


cdef bint _stay(const Look* t, const double* x, Py_ssize_t n) noexcept nogil:
    """Whether all vertices are near enough to where they were; what is not a number is not."""
    cdef const double* y = t.then
    cdef double a = t.allowed[0], b = t.allowed[1], c = t.allowed[2]
    cdef Py_ssize_t i, near = 0
    for i in range(n):
        near += ((fabs(x[3 * i] - y[3 * i]) <= a) & (fabs(x[3 * i + 1] - y[3 * i + 1]) <= b)
                 & (fabs(x[3 * i + 2] - y[3 * i + 2]) <= c))
    return near == n


cdef inline double _before(
    const Look* t, const World* world, Py_ssize_t i, Py_ssize_t j, int c, double d
) noexcept nogil:
    """Along c, the vector from i to j less what both have moved."""
    return d - ((world.x[3 * j + c] - t.then[3 * j + c]) - (world.x[3 * i + c] - t.then[3 * i + c]))


cdef int _look(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef Look* t = <Look*> task
    cdef double* longest = t.longest + 3 * (first // FACES)
    cdef const int32_t* corners
    cdef double d[3]
    cdef double sum[3]
    cdef Py_ssize_t f, i, j
    cdef bint is_torn
    cdef int c, k
    longest[0] = longest[1] = longest[2] = 0.0
    for f in range(first, last):
        corners = world.faces + 3 * f
        sum[0] = sum[1] = sum[2] = 0.0
        is_torn = False
        for k in range(3):
            i = corners[k]
            j = corners[(k + 1) % 3]
            displacement(&world.box, world.x + 3 * i, world.x + 3 * j, d)
            for c in range(3):
                sum[c] += d[c]
                longest[c] = max(longest[c], fabs(d[c]))
                # This way round, so that what is not a number is left to others.
                if not t.anew and fabs(_before(t, world, i, j, c, d[c])) > t.half[c] * (1.0 + MARGIN):
                    is_torn = True
        for c in range(3):
            is_torn |= fabs(sum[c]) > t.half[c]
        if is_torn:
            return record_fault(world, TOO_WIDE, corners[0], corners[1])
    return 0


cdef class BoxEdges:
    """The edges of all membranes of one Context, and what is known of them."""
    cdef Look look
    cdef object arrays
    cdef Py_ssize_t n_vertices
    cdef Py_ssize_t n_faces
    cdef long long world
    cdef long long written
    cdef double[3] length
    # Of the edge that was too wide: along which axis, half of the box there, nm, and how often all have been looked at.
    cdef readonly int axis
    cdef readonly double half
    cdef readonly long long looks

    def __init__(self, Py_ssize_t n_vertices, Py_ssize_t n_faces):
        cdef double[:, ::1] then = np.zeros((n_vertices + 1, 3))
        cdef double[:, ::1] longest = np.zeros((n_blocks(n_faces, FACES) + 1, 3))
        self.arrays = then, longest
        self.look.then = &then[0, 0]
        self.look.longest = &longest[0, 0]
        self.n_vertices = n_vertices
        self.n_faces = n_faces
        self.world = self.written = -1

    def around(self, list operations):
        """Operations that move vertices, with looks before and after them."""
        return [LookAtEdges(self, False), *operations, LookAtEdges(self, True)]

    cdef int before(self, World* world) noexcept nogil:
        cdef int c
        if self.world == world.number and self.written == world.written and has_lengths(&world.box, self.length):
            return 0
        for c in range(3):
            self.look.half[c] = 0.5 * world.box.length[c] if world.box.length[c] > 0.0 else INFINITY
        return self.look_at_all(world, True)

    cdef int after(self, World* world) noexcept nogil:
        if _stay(&self.look, world.x, self.n_vertices):
            return 0
        return self.look_at_all(world, False)

    cdef int look_at_all(self, World* world, bint anew) noexcept nogil:
        cdef Py_ssize_t b
        cdef double longest
        cdef int c
        self.look.anew = anew
        self.looks += 1
        if over_blocks(_look, &self.look, world, self.n_faces, FACES) != 0:
            self.blame(world)
            return world.fault.code
        for c in range(3):
            longest = 0.0
            for b in range(n_blocks(self.n_faces, FACES)):
                longest = max(longest, self.look.longest[3 * b + c])
            self.look.allowed[c] = INFINITY
            if world.box.length[c] > 0.0:
                # Both ends of an edge move; those of one that has flipped since have moved before, too.
                self.look.allowed[c] = max(0.0, min(0.5 * (self.look.half[c] - longest),
                                                    0.25 * (0.5 - LONGEST_FLIPPED) * world.box.length[c]))
        memcpy(self.look.then, world.x, 3 * self.n_vertices * sizeof(double))
        memcpy(self.length, world.box.length, sizeof(self.length))
        self.world = world.number
        self.written = world.written
        return 0

    cdef void blame(self, World* world) noexcept nogil:
        """Name the longest of all edges, as parts of half of the box: not the first that was found."""
        cdef const int32_t* corners
        cdef double d[3]
        cdef double length, most = -1.0
        cdef Py_ssize_t f, i, j
        cdef int c, k
        for f in range(self.n_faces):
            corners = world.faces + 3 * f
            for k in range(3):
                i = corners[k]
                j = corners[(k + 1) % 3]
                displacement(&world.box, world.x + 3 * i, world.x + 3 * j, d)
                for c in range(3):
                    if not world.box.length[c] > 0.0:
                        continue
                    length = d[c]
                    if not self.look.anew:
                        # The image that motion has led to.
                        length -= world.box.length[c] * nearest_whole(
                            _before(&self.look, world, i, j, c, d[c]) * world.box.inverse[c])
                    if fabs(length) > most * self.look.half[c]:
                        most = fabs(length) / self.look.half[c]
                        world.fault.bead = min(i, j)
                        world.fault.triangle = max(i, j)
                        world.fault.value = fabs(length)
                        self.axis = c
                        self.half = self.look.half[c]


cdef class LookAtEdges(Operation):
    """One look, before or after vertices move."""
    cdef readonly BoxEdges edges
    cdef bint late

    def __init__(self, BoxEdges edges, bint late):
        self.edges = edges
        self.late = late

    cdef int run(self, World* world) noexcept nogil:
        return self.edges.after(world) if self.late else self.edges.before(world)
