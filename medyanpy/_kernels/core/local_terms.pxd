"""Which terms of an energy a change concerns; see local_terms.pyx."""
from libc.stdint cimport int32_t

from medyanpy._kernels.core.derivatives cimport SmoothForce
from medyanpy._kernels.core.program cimport Change, World
from medyanpy._kernels.core.sites cimport SiteTable


# The terms that name each place.
cdef class TermIndex:
    cdef const int32_t[::1] start     # (places + 1,)
    cdef const int32_t[::1] entry
    cdef signed char[::1] marked      # (terms,)
    cdef int32_t[::1] terms           # of the change at hand
    cdef Py_ssize_t n

    cdef void take(self, const Change* change) noexcept nogil
    cdef void release(self) noexcept nogil


# A force whose energy is a sum of terms that do not come and go, each of a few places.
cdef class TermForce(SmoothForce):
    cdef TermIndex index_of_terms

    # The energy of one term as the World is now; what loops over terms do besides goes to work space.
    cdef int of_term(self, World* world, Py_ssize_t term, double* out) noexcept nogil


# One whose derivatives are those of `hessian` and `contract`, and not of a loop `higher`.
cdef class ExactTermForce(TermForce):
    pass


# Sites that a change moves.
cdef class MovedSites:
    cdef int32_t* rank                # (size,) by site: its number among these, -1 of others
    cdef Py_ssize_t size
    cdef int32_t* site                # (n,)
    cdef double* x                    # (n, 3) where they are in the state of the World
    cdef Py_ssize_t n, room

    # False: there is no memory.
    cdef bint take(self, World* world, SiteTable sites, const Change* change) noexcept nogil
    cdef bint add(self, int32_t site) noexcept nogil
    cdef void follow(self, World* world, SiteTable sites) noexcept nogil
    cdef void release(self) noexcept nogil
