"""In-triangle points by the face that they are in; see face_points.pyx."""
from libc.stdint cimport int32_t

from medyanpy._kernels.core.program cimport Change, World


cdef class FacePoints:
    # Points of a face are a list: `head` of each face, `next` of each point, -1 at the end. Points are rows of
    # `World.triangle`.
    cdef int32_t[::1] head            # (n_faces,)
    cdef int32_t[::1] next            # (n_points,)
    cdef const int32_t[::1] points    # (n,)
    cdef signed char[::1] is_one      # (n_points,)
    # The state that the lists are of.
    cdef long long world
    cdef long long positions

    cdef void follow(self, World* world) noexcept nogil
    # A change has been made.
    cdef void changed(self, World* world, const Change* change) noexcept nogil
    cdef void enter(self, int32_t point, int32_t face) noexcept nogil
    cdef bint leave(self, int32_t point, int32_t face) noexcept nogil
