"""What both forms of the bending energy of a membrane share: second and third derivatives. Notation: membrane.pxd.

Either form is a sum of squares,

    E = sum_v r_v^2/2,   r_v = 2 sqrt(kappa_v S_v) (H_v - c_v)

so that of g(y) = sum_v y_v dr_v/dx, a sum over vertices with weights y, the gradient of E is g(r). A form finds g from

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

from medyanpy._kernels.membrane cimport corners_of, edges_of, Membrane, MembraneForce, normal_of
from medyanpy._kernels.parallel cimport BlockFunction
from medyanpy._kernels.program cimport AddBlock, World
from medyanpy._kernels.series cimport cross_at
from medyanpy._kernels.vec3 cimport dot

# What is asked for. Of each there are loops of its own, compiled for the orders of their series.
cdef enum:
    HESSIAN = 0
    STIFFNESS = 1
    THIRD = 2
    THIRD_OF_STIFFNESS = 3
    KINDS = 4
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


# A face that has an area, along a line.
cdef struct Facet:
    double e[3][9]            # edges
    double big_n[9]
    double n[9]
    double length[3]          # |N|
    double inverse[3]


cdef inline void facet_of(
    const int order, const Membrane* m, const World* world, const double* a, const int32_t* beads, Py_ssize_t face,
    Facet* out,
) noexcept nogil:
    cdef const double* big_n = m.area_vectors + 4 * face
    cdef const double* a0
    cdef const double* a1
    cdef const double* a2
    cdef double e[9]
    cdef int c, i, k
    edges_of(world, beads, e)
    for i in range(3):
        for c in range(3):
            out.e[i][c] = e[3 * i + c]
    out.length[0] = big_n[3]
    out.inverse[0] = normal_of(big_n, out.n)
    if order == 0:
        return
    a0 = a + 3 * (beads[0] - m.first_bead)
    a1 = a + 3 * (beads[1] - m.first_bead)
    a2 = a + 3 * (beads[2] - m.first_bead)
    for c in range(3):
        out.big_n[c] = big_n[c]
        out.e[0][3 + c] = a2[c] - a1[c]
        out.e[1][3 + c] = a0[c] - a2[c]
        out.e[2][3 + c] = a1[c] - a0[c]
        if order > 1:
            out.e[0][6 + c] = out.e[1][6 + c] = out.e[2][6 + c] = 0.0
    for k in range(1, order + 1):
        cross_at(k, out.e[0], out.e[1], out.big_n + 3 * k)
        # Of N = |N| n, with n.n = 1; of t^2, n.n_2 = -n_1.n_1/2.
        out.length[k] = dot(out.n, out.big_n + 3 * k)
        if k == 2:
            out.length[2] += 0.5 * out.length[0] * dot(out.n + 3, out.n + 3)
        for c in range(3):
            out.n[3 * k + c] = out.big_n[3 * k + c]
            for i in range(1, k + 1):
                out.n[3 * k + c] -= out.length[i] * out.n[3 * (k - i) + c]
            out.n[3 * k + c] *= out.inverse[0]
        out.inverse[k] = 0.0
        for i in range(1, k + 1):
            out.inverse[k] -= out.length[i] * out.inverse[k - i]
        out.inverse[k] *= out.inverse[0]


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
    """u of a vertex; of CHANGES, h and area reach to the coefficient of t at least."""
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
    cdef Loops loops[KINDS]
    cdef BlockFunction ones   # the responses of the form with y = 1
    cdef BlockFunction faces  # its rows, of responses without lines
    # Made when they are first asked for.
    cdef double* lines        # (F, 2, line)
    cdef double* turns        # (F, 2, 3)
    cdef double* responses    # (V, 3, width)
    cdef double* seed         # (V, 3)
    cdef double* columns      # (V, 3, 3)

    cdef void forget(self) noexcept nogil
    cdef void task_of(self, BendingTask* task) noexcept nogil
    # What the loops read of where beads are.
    cdef void measured(self, World* world, const BendingTask* task) noexcept nogil
    cdef int prepare(self, World* world, BendingTask* task) noexcept nogil
    cdef int along(self, World* world, int kind, const double* a, double* out) noexcept nogil
    cdef void around(self, World* world, BendingTask* task, Py_ssize_t v, Py_ssize_t n) noexcept nogil
    cdef int columns_of(self, World* world, BendingTask* task, Py_ssize_t v) noexcept nogil
    cdef int squares(self, World* world, AddBlock add, void* sink, double* diagonal) noexcept nogil
