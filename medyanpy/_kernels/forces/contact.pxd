"""The law of a contact, whatever touches: an energy of how far two shapes have to grow until they touch.

    WCA:   V = 4 epsilon (mu^-12 - mu^-6) + epsilon   for mu < 2^(1/6)
    SOFT:  V = epsilon (1 - mu)^2                      for mu < 1

mu is 1 where two shapes touch, and less where they overlap. Who calls knows mu and its gradient; here are V and V'.
"""
from libc.math cimport INFINITY

from medyanpy._kernels.forces.radial cimport WCA_END_SQUARED


cdef enum Form:
    WCA = 0
    SOFT = 1


cdef inline double end_squared(int form) noexcept nogil:
    """The square of the mu where V ends."""
    return WCA_END_SQUARED if form == WCA else 1.0


cdef inline double contact_energy(int form, double epsilon, double mu, double* slope) noexcept nogil:
    """V and dV/dmu of a mu before the end."""
    cdef double v
    if form == SOFT:
        slope[0] = -2.0 * epsilon * (1.0 - mu)
        return epsilon * (1.0 - mu) * (1.0 - mu)
    if mu <= 0.0:
        # Past what no finite energy lets by: the run ends, and names the bead.
        slope[0] = -INFINITY
        return INFINITY
    v = 1.0 / (mu * mu)
    v = v * v * v
    slope[0] = -24.0 * epsilon * (v * (v + v) - v) / mu
    return 4.0 * epsilon * (v * v - v) + epsilon
