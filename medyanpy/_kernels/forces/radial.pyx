"""The numbers of radial energies, for Python: `Radial`, `ending`, `radial_values`; everything else is in radial.pxd."""
import numpy as np

from libc.math cimport INFINITY


def ending(int kind, numbers, double end, switch=None, bint shift=True, third=0.0, table=()):
    """(n,) float: the parameters of an energy that ends, or with `end` infinite does not.

    Parameters
    ----------
    kind : Radial
        RICKER, LENNARD_JONES, MORSE, YUKAWA or TABULATED.
    numbers : two float
        Its first two parameters.
    end : float
        The distance where it ends.
    switch : float or None
        That from which it is switched off; None: it is not.
    shift : bool
        Whether it is less what it would be at its end, so that it is continuous there; one that is switched off is so
        anyway.
    third : float
    table : sequence of float
    """
    cdef double[::1] p = np.array([*numbers, end, INFINITY if switch is None else switch, 0.0, third, *table], float)
    cdef double u[4]
    cdef double s
    if switch is not None or not shift or end == INFINITY:
        pass
    elif kind == RICKER:
        # As the loops over pairs have it.
        p[OFF] = ricker(p[0], end * end / (p[1] * p[1]), &s)
    elif kind == LENNARD_JONES:
        s = p[1] * p[1] / (end * end)
        s = s * s * s
        p[OFF] = 4.0 * p[0] * (s * s - s)
    else:
        endless_at(kind, &p[0], end, 1, u)
        p[OFF] = u[0]
    return np.asarray(p)


def radial_values(int kind, parameters, const double[::1] r):
    """(n, 4) float: an energy and its first three derivatives at n distances >= 0."""
    cdef double[::1] p = np.array(parameters, float)
    cdef Py_ssize_t i
    out = np.empty((r.shape[0], 4))
    cdef double[:, ::1] u = out
    for i in range(r.shape[0]):
        evaluate(kind, &p[0], r[i], 3, &u[i, 0])
    return out
