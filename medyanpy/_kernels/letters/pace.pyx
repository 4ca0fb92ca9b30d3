"""Adaptive steps: how long this one is, from a density of steps that is state.

With the control c(x), a sum of energies, and S = 1 + c, the density rho follows S^p. Half a step before the letters,
and half a step after them,

    rho <- rho + h/2 d/dt ln S^p,    d/dt ln S = -f.v / S,    f = -dc/dx,

and the letters act for h / rho of the density between the two halves, which is the same in both directions of time:
reversed momenta lead back (Hairer & Soderlind, SIAM J. Sci. Comput. 26, 1838 (2005)).
"""
from libc.math cimport isfinite

from medyanpy._kernels.core.elementary cimport exp_, log_
from medyanpy._kernels.core.parallel cimport record_fault
from medyanpy._kernels.core.program cimport NO_DENSITY, Operation, World
from medyanpy._kernels.core.work cimport add
from medyanpy._kernels.letters.kick cimport ForceSum


cdef class Pace(Operation):
    """Half a step of the density.

    Parameters
    ----------
    control : ForceSum
        c, whose unit is 1.
    state : (3,) float array
        The density, 0 where it is that of the place; the time, s; and what rounding of the time has lost.
    h : float, s
        The step of density 1.
    power : float
        p
    begins : bool
        Whether letters follow: they get the pace. Otherwise the step has been taken, and time has passed.
    """
    cdef ForceSum control
    cdef double[::1] state
    cdef double h
    cdef double power
    cdef bint begins

    def __init__(self, ForceSum control, double[::1] state, double h, double power, bint begins):
        self.control = control
        self.state = state
        self.h = h
        self.power = power
        self.begins = begins

    cdef int run(self, World* world) noexcept nogil:
        cdef double amount = 1.0
        cdef double change = 0.0
        cdef int fault = self.look(world, &amount, &change)
        if fault != 0:
            return fault
        if not (amount > 0.0 and isfinite(amount)):
            return self.fail(world, amount)
        if self.begins and self.state[0] == 0.0:
            self.state[0] = exp_(self.power * log_(amount))
        self.state[0] += 0.5 * self.h * self.power * (change / amount)
        if not (self.state[0] > 0.0 and isfinite(self.state[0])):
            return self.fail(world, amount)
        if self.begins:
            world.pace = 1.0 / self.state[0]
        else:
            add(&self.state[1], self.h * world.pace)
            world.pace = 1.0
        return 0

    cdef int fail(self, World* world, double amount) noexcept nogil:
        cdef int fault = record_fault(world, NO_DENSITY, -1, -1)
        world.fault.value = amount
        return fault

    cdef int look(self, World* world, double* amount, double* change) noexcept nogil:
        """Add the control, and its change with time."""
        cdef int fault = 0
        cdef int wanted = world.want_energy
        cdef Py_ssize_t k
        cdef bint rides = self.control.acts_on_points and world.membranes_move
        if self.control.evaluated != world.positions or self.control.measured != world.positions:
            world.want_energy = 1
            fault = self.control.evaluate(world)
            world.want_energy = wanted
        if fault != 0:
            return fault
        for k in range(self.control.forces.count):
            amount[0] += self.control.energies[k]
        # In order: few beads are worth a step of their own.
        for k in range(3 * world.n):
            change[0] -= (&self.control.f[0, 0])[k] * world.v[k]
        if rides:
            for k in range(3 * world.n_vertices):
                change[0] -= (&self.control.chain[0, 0])[k] * world.v[k]
        return 0
