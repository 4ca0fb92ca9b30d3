"""In-triangle points by the face that they are in: lists of a state, mended where a change carries points along."""
import numpy as np

from libc.stdint cimport int32_t


cdef class FacePoints:
    """Lists of some in-triangle points.

    Parameters
    ----------
    points : (n,) int32
        Rows of `World.triangle`, each once.
    n_points, n_faces : int
        All that there are, of all membranes.
    """

    def __init__(self, points, Py_ssize_t n_points, Py_ssize_t n_faces):
        self.points = np.array(points, np.int32)
        self.head = np.zeros(n_faces, np.int32)
        self.next = np.zeros(n_points, np.int32)
        self.is_one = np.zeros(n_points, np.int8)
        np.asarray(self.is_one)[points] = 1
        self.world = self.positions = -1

    cdef void follow(self, World* world) noexcept nogil:
        cdef Py_ssize_t i
        if self.world == world.number and self.positions == world.positions:
            return
        for i in range(self.head.shape[0]):
            self.head[i] = -1
        for i in range(self.points.shape[0]):
            self.enter(self.points[i], world.triangle[self.points[i]])
        self.world = world.number
        self.positions = world.positions

    cdef void enter(self, int32_t point, int32_t face) noexcept nogil:
        self.next[point] = self.head[face]
        self.head[face] = point

    cdef bint leave(self, int32_t point, int32_t face) noexcept nogil:
        """Whether it was there."""
        cdef int32_t* at = &self.head[face]
        cdef Py_ssize_t _i
        for _i in range(self.points.shape[0]):
            if at[0] == point:
                at[0] = self.next[point]
                return True
            if at[0] < 0:
                break
            at = &self.next[at[0]]
        return False

    cdef void changed(self, World* world, const Change* change) noexcept nogil:
        cdef Py_ssize_t i
        # A force that only wants to know whether it can be mended has no World.
        if world == NULL or self.world != world.number or self.positions != change.positions:
            self.positions = -1
            return
        for i in range(change.n_points):
            if self.is_one[change.points[i]]:
                # The change holds the face in which the point was.
                if not self.leave(change.points[i], change.triangle[i]):
                    self.positions = -1
                    return
                self.enter(change.points[i], world.triangle[change.points[i]])
        self.positions = world.positions
