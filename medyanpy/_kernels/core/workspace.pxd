"""Space for forces that nobody wants, while only energies are asked for."""
from medyanpy._kernels.core.program cimport World


cdef class WorkSpace:
    cdef double[::1] room
    cdef size_t[::1] before

    # World.f, torque and the forces of momenta point here until `leave`.
    cdef void enter(self, World* world) noexcept nogil
    cdef void leave(self, World* world) noexcept nogil
