"""Sites: the places that forces act on, as one table over beads. See sites.pyx."""
from libc.stdint cimport int32_t

from medyanpy._kernels.program cimport AddBlock, World


# What a loop over sites sees after `gather`. Where sites are beads, these are the world's own arrays.
cdef struct SiteArrays:
    const double* x           # (n, 3)
    double* f                 # (n, 3) forces are added here; `scatter` passes them on
    const int32_t* id         # (n,) what sums are ordered by
    const int32_t* bead       # (n,) place of a site's first bead, for reports, -1 of anchors; NULL: sites are beads


cdef struct SiteRows:
    Py_ssize_t n
    const int32_t* start      # (n + 1,)
    const int32_t* bead
    const double* weight
    const int32_t* oriented   # (n,) row of the oriented bead that carries the arm, -1 of sites without; or NULL
    const double* arm         # (n, 3) in the frame of that body; or NULL
    double* x
    double* f
    # The transpose: for every bead that occurs, and every body with arms, its sites in ascending order.
    Py_ssize_t n_owners
    const int32_t* owner
    const int32_t* owner_start
    const int32_t* owner_site
    const double* owner_weight
    Py_ssize_t n_bodies
    const int32_t* body
    const int32_t* body_start
    const int32_t* body_site


cdef class SiteTable:
    cdef readonly bint are_beads
    cdef readonly bint has_arms
    cdef SiteArrays now
    cdef SiteRows rows
    cdef list arrays

    # Positions of now into now.x, and zero forces into now.f.
    cdef int gather(self, World* world) noexcept nogil
    # The forces in now.f onto beads and bodies.
    cdef int scatter(self, World* world) noexcept nogil

    # Terms c_i x_i of the vector from site a to site b, and one of them.
    cdef Py_ssize_t n_terms(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil
    cdef double term(self, Py_ssize_t a, Py_ssize_t b, Py_ssize_t p, Py_ssize_t* bead) noexcept nogil
    # For higher derivatives of an energy of d = x_b - x_a of two sites without arms: d = sum_i c_i x_i over beads.
    # Give the blocks c_i c_j K, K = d2U/dd2 (3, 3).
    cdef int add_pair(self, Py_ssize_t a, Py_ssize_t b, const double* k, AddBlock add, void* sink) noexcept nogil
    # The same of one site: the blocks w_i w_j K of x = sum_i w_i x_i.
    cdef int add_single(self, Py_ssize_t site, const double* k, AddBlock add, void* sink) noexcept nogil
    # out (3,) = sum_i c_i v_i, of v by place.
    cdef void difference(self, Py_ssize_t a, Py_ssize_t b, const double* v, double* out) noexcept nogil
    # out_i += c_i t, of out by place.
    cdef void share(self, Py_ssize_t a, Py_ssize_t b, const double* t, double* out) noexcept nogil
    # Of an energy of two vectors, d from site ends[0] to ends[1] and e from ends[2] to ends[3]: the blocks of
    # K = d2U/dd de (3, 3), and of its transpose. Those of d and of e alone come from `add_pair`.
    cdef int add_mixed(self, const Py_ssize_t* ends, const double* k, AddBlock add, void* sink) noexcept nogil
    # `difference` and `share` of one site: out (3,) = sum_i w_i v_i, and out_i += w_i t.
    cdef void mean(self, Py_ssize_t site, const double* v, double* out) noexcept nogil
    cdef void share_single(self, Py_ssize_t site, const double* t, double* out) noexcept nogil
