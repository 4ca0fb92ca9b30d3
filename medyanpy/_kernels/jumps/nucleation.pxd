"""Seeds of filaments that are created and dissolve. See nucleation.pyx."""
from libc.stdint cimport int32_t

from medyanpy._kernels.core.capacity cimport Room
from medyanpy._kernels.core.program cimport World
from medyanpy._kernels.jumps.ageing cimport Ageing
from medyanpy._kernels.jumps.filament_ends cimport FilamentEnds
from medyanpy._kernels.jumps.jump cimport Draws, JumpOperation
from medyanpy._kernels.jumps.pools cimport PoolCounts
from medyanpy._kernels.jumps.trial cimport Weights


# A unit vector (3,) anywhere on the sphere, of two uniform numbers; and, at a uniform turn about the unit vector d, one
# across it, and one at an angle of this cosine to it.
cdef void on_sphere(double u, double turn, double* out) noexcept nogil
cdef void beside(const double* d, double turn, double* out) noexcept nogil
cdef void aslant(const double* d, double cosine, double turn, double* out) noexcept nogil


cdef class Seeds(JumpOperation):
    cdef readonly FilamentEnds ends
    cdef Room room
    cdef double rise
    cdef int32_t size
    cdef PoolCounts pool
    cdef Py_ssize_t species
    cdef double on, off
    cdef public Ageing ageing
    cdef readonly Weights weights
    cdef const int32_t[::1] near
    cdef int kind
    cdef double reach

    # How many beads there may be near which seeds begin, 1 without; whether one is there; and near a place.
    cdef double points(self) noexcept nogil
    cdef bint acts(self, World* world, Py_ssize_t point) noexcept nogil
    cdef bint acts_at(self, World* world, Py_ssize_t point, const double* x) noexcept nogil

    # C^n where the pool has this amount, with each molecule taken once.
    cdef double ways(self, double amount) noexcept nogil
    # A seed from x to out may be created, with the probability u < most of what is not energy: 0, or a fault.
    cdef int create(self, World* world, double t, double u, double most, Py_ssize_t cell, const double* x,
                    const double* out, Draws* draws) noexcept nogil
    # Whether a filament is a seed, with a minus end of this cap; and it may dissolve.
    cdef bint is_seed(self, World* world, Py_ssize_t filament, int32_t cap) noexcept nogil
    cdef int dissolve(self, World* world, double t, Py_ssize_t filament, Draws* draws) noexcept nogil

    # For classes with their own rates: a letter of length h begins; the rate of attempts now, 1/s; and one of them, of
    # which the sum of rates passes x.
    cdef int look(self, World* world, double h) noexcept nogil
    cdef double rate(self, World* world) noexcept nogil
    cdef int attempt(self, World* world, double x, double t, Draws* draws) noexcept nogil
    # The nodes of a seed are there, and whatever holds it is to be; or what holds it is to go, before they do.
    cdef void hold(self, World* world, Py_ssize_t filament, bint holds) noexcept nogil
    # So many seeds were created, or dissolved, in a cell of the pool.
    cdef void book(self, Py_ssize_t cell, int n) noexcept nogil
