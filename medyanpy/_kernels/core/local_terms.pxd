"""Which terms of an energy a change concerns; see local_terms.pyx."""
from libc.stdint cimport int32_t

from medyanpy._kernels.core.derivatives cimport SmoothForce
from medyanpy._kernels.core.neighbors cimport NeighborList
from medyanpy._kernels.core.parallel cimport BlockFunction
from medyanpy._kernels.core.program cimport Change, World
from medyanpy._kernels.core.sites cimport SiteTable


# A few of many things, in the order in which they have been added, each once.
cdef class Few:
    cdef signed char[::1] has         # (size,)
    cdef int32_t[::1] items           # the first n
    cdef Py_ssize_t n

    cdef void add(self, Py_ssize_t item) noexcept nogil
    cdef void clear(self) noexcept nogil


# The terms that name each place.
cdef class TermIndex:
    cdef const int32_t[::1] start     # (places + 1,)
    cdef const int32_t[::1] entry

    cdef void add_terms(self, Py_ssize_t place, Few terms) noexcept nogil


# A force whose energy is a sum of terms that do not come and go, each of a few places.
cdef class TermForce(SmoothForce):
    cdef TermIndex index_of_terms
    cdef Few near                     # the terms of a change
    # The loop over terms that `run` uses, its task, and where it leaves the energy of each block.
    cdef BlockFunction loop
    cdef void* task_of_loop
    cdef const double* energies
    cdef Py_ssize_t block

    cdef void know_terms(self) noexcept nogil
    cdef void loops(self, BlockFunction loop, void* task, const double* energies, Py_ssize_t block) noexcept
    # Let the task see the places that a term depends on as they are now.
    cdef int look(self, World* world, Py_ssize_t term) noexcept nogil
    # The energy of one term as the World is now; what the loop does besides goes to work space.
    cdef int of_term(self, World* world, Py_ssize_t term, double* out) noexcept nogil


# One whose derivatives are those of `hessian` and `contract`, and not of a loop `higher`.
cdef class ExactTermForce(TermForce):
    pass


# One of single sites: a term for each of some rows of a table.
cdef class SiteForce(ExactTermForce):
    cdef SiteTable sites
    cdef const int32_t[::1] row


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


# A force of pairs of sites in a neighbour list. Derived forces have `local_energy`.
cdef class NeighborForce(SmoothForce):
    cdef SiteTable sites
    cdef readonly NeighborList neighbors
    cdef MovedSites moved             # of a change,
    cdef int32_t[::1] member          # and which members of the list they are, -1: none, or inactive

    # It is one of these; called once.
    cdef void watch(self, NeighborList neighbors, SiteTable sites) noexcept
    # Sites and their neighbours as they are now.
    cdef int look(self, World* world) noexcept nogil
