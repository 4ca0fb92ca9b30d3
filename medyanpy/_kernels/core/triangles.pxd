"""Who neighbours whom in the triangles of all membranes of one Context. Edges may be flipped.

Corner i of face f has the number 3 f + i, faces of all membranes counted together; vertices go by their places. The
edge "of" a corner is the opposite one. Faces are the state; opposite corners and rings follow from them.
"""
from libc.stdint cimport int32_t

from medyanpy._kernels.core.program cimport Operation, Quad, World


# Vertex v has corners[starts[v]:ends[v]], ascending, so that sums over them do not depend on how they came there.
# All three stay where they are as long as the Triangles live.
cdef struct Rings:
    int32_t* starts           # (n_vertices,)
    int32_t* ends             # (n_vertices,)
    int32_t* corners


# What `quad_at` finds.
cdef enum:
    CAN_FLIP = 0
    NO_EDGE = 1
    BORDER = 2
    JOINED = 3                # the other two corners have an edge already


cdef class Triangles:
    cdef Rings rings
    cdef readonly Py_ssize_t n_vertices
    cdef readonly Py_ssize_t n_faces
    cdef int32_t[:, ::1] faces
    cdef int32_t[:, ::1] opposite
    cdef int32_t* limits      # (n_vertices,) where the room of each ring ends
    cdef readonly long long flips   # raised whenever faces change
    cdef readonly bint lost         # whether a ring has been found to be another than faces say

    cdef Py_ssize_t corner_of(self, int32_t c, int32_t d) noexcept nogil
    cdef bint quad_of(self, Py_ssize_t corner, Quad* quad) noexcept nogil
    cdef int quad_at(self, Py_ssize_t corner, Quad* quad) noexcept nogil
    cdef void fetch_corner(self, Py_ssize_t corner) noexcept nogil
    cdef void fetch_across(self, Py_ssize_t corner) noexcept nogil
    cdef void fetch_ends(self, const Quad* quad) noexcept nogil
    cdef void fetch_ring(self, const Quad* quad) noexcept nogil
    cdef void fetch_around(self, const Quad* quad) noexcept nogil
    cdef void make_room(self, const Quad* quad) noexcept nogil
    cdef void flip(self, const Quad* quad) noexcept nogil
    cdef bint leave(self, int32_t vertex, int32_t corner) noexcept nogil
    cdef void enter(self, int32_t vertex, int32_t corner) noexcept nogil
    cdef void lay_out(self) noexcept nogil
    cdef bint follow(self) noexcept nogil


cdef class Rejoined(Operation):
    cdef Triangles triangles
    cdef Operation room
    cdef public object told

    cdef int tell(self, World* world) noexcept


cdef inline Py_ssize_t corner_after(Py_ssize_t corner) noexcept nogil:
    """The next one of the same face."""
    return corner + 1 if corner % 3 < 2 else corner - 2


cdef inline Py_ssize_t corner_before(Py_ssize_t corner) noexcept nogil:
    return corner - 1 if corner % 3 > 0 else corner + 2
