"""Variational Euler on the rotation group: kick and flight of bodies with three equal moments of inertia I.

With w the angular velocity in the frame of the body, T the torque there, and cay the Cayley transform,

    (1 + h^2 w'^2/4) w' = (1 + h^2 w^2/4) w + h T/I          the kick: an equation for w'
    R' = R cay(h w')                                         the flight: by 2 atan(h w'/2) about w'

(34) of Tao & Owhadi (2016), where the first is written for the matrix of w: its triple product is -w^2 times it.
Momenta of the state are I w. Between `BeforeKick` and `BeforeFlight` they are those with the factors.
Source: N. Bou-Rabee, J. E. Marsden, Found. Comput. Math. 9, 197 (2009), Hamilton-Pontryagin integrators.
"""
from libc.math cimport fabs, sqrt

from medyanpy._kernels.core.program cimport Operation, World
from medyanpy._kernels.core.quaternion cimport scale_to_unit


cdef inline double _half_angle(const World* world, Py_ssize_t i, double h, double* half) noexcept nogil:
    """half = h w/2 for the momenta as they stand; its square. Bodies that do not turn have an inverse inertia of 0."""
    cdef int c
    for c in range(3):
        half[c] = 0.5 * h * world.inverse_inertia[3 * i + c] * world.spin[3 * i + c]
    return half[0] * half[0] + half[1] * half[1] + half[2] * half[2]


cdef double _root(double size) noexcept nogil:
    """u with u + u^3 = size, by Newton's method from above, where it comes down to the root without passing it."""
    cdef double u = size if size < 1.0 else 1.0 + 0.5 * sqrt(size)
    cdef double step
    cdef int _
    for _ in range(200):
        step = (u + u * u * u - size) / (1.0 + 3.0 * u * u)
        u -= step
        if fabs(step) <= 1e-16 * u:
            break
    return u


cdef class BeforeKick(Operation):
    """Momenta I w of all oriented beads become (1 + h^2 w^2/4) I w."""
    cdef double h

    def __init__(self, double h):
        self.h = h

    cdef int run(self, World* world) noexcept nogil:
        cdef double half[3]
        cdef double factor
        cdef Py_ssize_t i
        cdef int c
        for i in range(world.n_oriented):
            factor = 1.0 + _half_angle(world, i, self.h, half)
            for c in range(3):
                world.spin[3 * i + c] *= factor
        return 0


cdef class BeforeFlight(Operation):
    """Solve for w; keep I w in spin (n_oriented, 3), and leave no momenta for the flight to turn bodies by."""
    cdef double h
    cdef double[:, ::1] spin

    def __init__(self, double h, double[:, ::1] spin):
        self.h = h
        self.spin = spin

    cdef int run(self, World* world) noexcept nogil:
        cdef double half[3]
        cdef double u, factor
        cdef Py_ssize_t i
        cdef int c
        for i in range(world.n_oriented):
            u = _root(sqrt(_half_angle(world, i, self.h, half)))
            factor = 1.0 / (1.0 + u * u)
            for c in range(3):
                self.spin[i, c] = factor * world.spin[3 * i + c]
                world.spin[3 * i + c] = 0.0
        return 0


cdef class AfterFlight(Operation):
    """Turn bodies by cay(h w) with the momenta that have been kept, which are those of the state again."""
    cdef double h
    cdef double[:, ::1] spin

    def __init__(self, double h, double[:, ::1] spin):
        self.h = h
        self.spin = spin

    cdef int run(self, World* world) noexcept nogil:
        cdef double u[3]
        cdef double t[4]
        cdef double w, x, y, z, scale
        cdef double* q
        cdef Py_ssize_t i
        cdef int c
        for i in range(world.n_oriented):
            for c in range(3):
                world.spin[3 * i + c] = self.spin[i, c]
            scale = 1.0 / sqrt(1.0 + _half_angle(world, i, self.h, u))
            q = world.orientation + 4 * i
            w, x, y, z = q[0], q[1], q[2], q[3]
            t[0] = w - (x * u[0] + y * u[1] + z * u[2])
            t[1] = x + (w * u[0] + y * u[2] - z * u[1])
            t[2] = y + (w * u[1] + z * u[0] - x * u[2])
            t[3] = z + (w * u[2] + x * u[1] - y * u[0])
            for c in range(4):
                t[c] *= scale
            scale = scale_to_unit(t[0], t[1], t[2], t[3])
            for c in range(4):
                q[c] = scale * t[c]
        return 0
