"""What the forms of the bending energy of a membrane share: second and third derivatives. Notation: membrane.pxd.

Each form is a sum of squares,

    E = sum_v r_v^2/2,   r_v = 2 sqrt(kappa_v S_v) (H_v - c_v)

(of four r_v in the vertex form: membrane_bending.pyx), so that of g(y) = sum_v y_v dr_v/dx, a sum over vertices with
weights y, the gradient of E is g(r). A form finds g from

    u_v = y_v sqrt(kappa_v/S_v),   dr_v sqrt(kappa_v/S_v) = 2 kappa_v [dH_v + (H_v - c_v) dS_v/(2 S_v)]

where no root is left: of y = r it is 2 kappa (H - c). Everything is then found along the line x + t a, in series in t
(series.pxd), by the formulas of the force: with D for d/dt at t = 0,

    H a = D g(r)                                          the Hessian
    K a = g(Dr)                                           K = sum_v dr_v dr_v^T, without negative eigenvalues
    sum_ij d3E/dx_i dx_j dx_k a_i a_j = D^2 g(r)
    sum_ij dK_ij/dx_k a_i a_j = d(sum_v (Dr_v)^2)/dx_k = 2 D g(y) with y = Dr held fixed:  Du = -u DS/(2 S)

K is H where r = 0, at a flat membrane without spontaneous curvature above all; nothing is lost there, as no difference
of large numbers is taken and nothing is divided by r.
"""
from libc.math cimport sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.beads.membrane cimport corners_of, Facet, facet_of, KINDS, Membrane, MembraneForce
from medyanpy._kernels.core.parallel cimport BlockFunction
from medyanpy._kernels.core.program cimport AddBlock, World
from medyanpy._kernels.core.series cimport cross_at

cdef enum:
    # The weights y of vertices: r, Dr, 1.
    RESIDUALS = 0
    CHANGES = 1
    ONES = 2
    # Numbers of a face that `follow` writes for each power of t: |N| and a vector; and those of its corners.
    SHORT = 4
    LONG = 13


cdef struct BendingTask:
    const Membrane* membrane
    const double* kappa       # (V,)
    const double* c0          # (V,)
    double* turn              # (F, 3) of the dihedral form
    bint projected            # the vertex form by H, not by the vector of curvature
    int component             # of the residuals of each vertex: which one weighs 1, of ONES
    double* response          # (V, order + 1, width) what the energy of each vertex hands to its faces
    double* rows              # (F, 3, 3) dE/dx of each corner, or its highest coefficient along a line
    double* partial           # energy of each block of vertices
    # Along a line:
    const double* a           # (V, 3)
    double* lines             # (F, order, SHORT or LONG) from the coefficient of t on
    double* turns             # (F, order, 3) likewise


# The loops for one kind: over faces, over edges by faces if any, over vertices, over faces.
cdef struct Loops:
    double factor             # of the rows: derivatives are not coefficients
    BlockFunction lines
    BlockFunction edges
    BlockFunction vertices
    BlockFunction faces


cdef inline void follow(
    const int order, const bint corners, const BendingTask* t, World* world, Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    """Of faces along a line: |N|; and n, or N and dA/dx_i of each corner."""
    cdef const Membrane* m = t.membrane
    cdef int width = LONG if corners else SHORT
    cdef Facet facet
    cdef double* line
    cdef Py_ssize_t f
    cdef int c, i, k
    for f in range(first, last):
        line = t.lines + width * order * f
        if m.area_vectors[4 * f + 3] == 0.0:
            # It has no normal, and pulls at nothing.
            for c in range(width * order):
                line[c] = 0.0
            continue
        facet_of(order, m, world, t.a, corners_of(m, world, f), f, &facet)
        for k in range(1, order + 1):
            line[3] = facet.length[k]
            for c in range(3):
                line[c] = facet.big_n[3 * k + c] if corners else facet.n[3 * k + c]
            if corners:
                for i in range(3):
                    cross_at(k, facet.n, facet.e[i], line + 4 + 3 * i)
                for c in range(9):
                    line[4 + c] *= 0.5
            line += width


cdef inline void weights(
    const int order, const int what, double kappa, double c0, const double* h, const double* area, double* u,
) noexcept nogil:
    """u of a vertex, of a form by H; of CHANGES, h and area reach to the coefficient of t at least."""
    cdef int k
    if what == ONES:
        u[0] = sqrt(kappa / area[0])
    elif what == CHANGES:
        u[0] = 2.0 * kappa * (h[1] + (h[0] - c0) * (0.5 * area[1] / area[0]))
        if order > 0:
            u[1] = -u[0] * (0.5 * area[1] / area[0])
    else:
        u[0] = 2.0 * kappa * (h[0] - c0)
        for k in range(1, order + 1):
            u[k] = 2.0 * kappa * h[k]


cdef class Bending(MembraneForce):
    cdef const double[::1] kappa
    cdef const double[::1] c0
    cdef double[:, ::1] response
    cdef double[:, :, ::1] rows
    cdef double[::1] partial
    cdef int width            # numbers of a response
    cdef int line             # SHORT or LONG
    cdef int components       # residuals of a vertex
    cdef Loops loops[KINDS]
    cdef BlockFunction ones   # the responses of the form with y = 1
    cdef BlockFunction vertices    # those of the force
    cdef BlockFunction faces  # its rows, of responses without lines
    # Made when they are first asked for.
    cdef double* lines        # (F, 2, line)
    cdef double* turns        # (F, 2, 3)
    cdef double* responses    # (V, 3, width)
    cdef double* seed         # (V, 3)
    cdef double* columns      # (V, 3, 3) of the Hessian, (V, 4, 3) of residuals

    cdef void forget(self) noexcept nogil
    cdef void task_of(self, BendingTask* task) noexcept nogil
    # What the loops read of where beads are.
    cdef void measured(self, World* world, const BendingTask* task) noexcept nogil
    cdef int prepare(self, World* world, BendingTask* task) noexcept nogil
    cdef int along(self, World* world, int kind, const double* a, double* out) noexcept nogil
    cdef void around(self, World* world, BendingTask* task, Py_ssize_t v, Py_ssize_t n) noexcept nogil
    cdef int columns_of(self, World* world, BendingTask* task, Py_ssize_t v) noexcept nogil
    cdef int squares(self, World* world, AddBlock add, void* sink, double* diagonal) noexcept nogil
