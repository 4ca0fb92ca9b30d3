"""Space for forces that nobody wants, while only energies are asked for: inside a step, where the forces of the last
kick are still to be used."""
import numpy as np

from medyanpy._kernels.core.program cimport World


cdef class WorkSpace:
    """Of one context.

    Parameters
    ----------
    n : int
        Beads.
    momenta : sequence of int
        How many numbers there are of each of the momenta beside m v.
    """

    def __init__(self, Py_ssize_t n, momenta):
        self.room = np.zeros(3 * n + sum(momenta) + 1)
        self.before = np.zeros(len(momenta) + 2, np.uintp)

    cdef void enter(self, World* world) noexcept nogil:
        cdef double* room = &self.room[0]
        cdef Py_ssize_t k
        self.before[0] = <size_t> world.f
        self.before[1] = <size_t> world.torque
        world.f = room
        room += 3 * world.n
        for k in range(world.n_momenta):
            self.before[k + 2] = <size_t> world.momenta[k].force
            world.momenta[k].force = room
            room += world.momenta[k].n * world.momenta[k].width
        if world.n_oriented > 0:
            world.torque = world.momenta[0].force

    cdef void leave(self, World* world) noexcept nogil:
        cdef Py_ssize_t k
        world.f = <double*> self.before[0]
        world.torque = <double*> self.before[1]
        for k in range(world.n_momenta):
            world.momenta[k].force = <double*> self.before[k + 2]
