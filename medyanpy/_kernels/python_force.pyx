"""A force computed by a Python function.

The function is called inside the step, with the interpreter lock, on a copy of the positions in topology
order (and of the orientations, if it asks for them); its forces and torques are added in the order of places. The
caller has wrapped it so that what it returns has been checked.
"""
import numpy as np

from cpython.exc cimport PyErr_SetInterrupt
from libc.string cimport memcpy

from medyanpy._kernels.program cimport NO_FAULT, PYTHON_EXCEPTION, Operation, World


cdef class PythonTerm(Operation):
    """Forces of a checked Python function.

    Parameters
    ----------
    name : str
    function : callable (positions) -> (float, (n, 3) C-contiguous float64 array)
        With `orientations`: (positions, orientations) -> (float, (n, 3) array, (m, 3) array) for m oriented beads.
    repeatable : bool
        Whether the function returns the same when it is called again.
    orientations : bool
    """
    cdef object function
    cdef bint orientations

    def __init__(self, str name, function, bint repeatable=True, bint orientations=False):
        self.name = name
        self.function = function
        self.repeatable = repeatable
        self.orientations = orientations
        self.acts_on_points = True

    cdef int run(self, World* world) noexcept nogil:
        with gil:
            return self.call(world)

    cdef int call(self, World* world) noexcept:
        self.error = None
        try:
            try:
                self.add(world)
            except KeyboardInterrupt:
                if not self.repeatable:
                    raise
                # Half a step is no state to stop in. The evaluation is made again, the step ends whole, and
                # the interrupt, raised once more, is found by whoever looks for signals between two steps.
                self.add(world)
                PyErr_SetInterrupt()
            return NO_FAULT
        except BaseException as error:
            # An interrupt too, twice in one evaluation or in one not to be made again: it comes out as what it is when
            # the state is in order.
            self.error = error
        return PYTHON_EXCEPTION

    cdef int add(self, World* world) except -1:
        cdef double[:, ::1] x
        cdef double[:, ::1] q
        cdef const double[:, ::1] f
        cdef const double[:, ::1] torque
        cdef double energy
        cdef Py_ssize_t i
        cdef int c
        # A new array each time: the function may keep it, or hand it to somebody who does.
        positions = np.empty((world.n, 3))
        x = positions
        for i in range(world.n):
            memcpy(&x[world.id[i], 0], world.x + 3 * i, 3 * sizeof(double))
        positions.flags.writeable = False
        if self.orientations:
            # Oriented beads are one block in topology order.
            orientations = np.empty((world.n_oriented, 4))
            q = orientations
            if world.n_oriented > 0:
                memcpy(&q[0, 0], world.orientation, 4 * world.n_oriented * sizeof(double))
            orientations.flags.writeable = False
            value, forces, torques = self.function(positions, orientations)
            torque = torques
            for i in range(world.n_oriented):
                for c in range(3):
                    world.torque[3 * i + c] += torque[i, c]
        else:
            value, forces = self.function(positions)
        energy = value
        f = forces
        for i in range(world.n):
            for c in range(3):
                world.f[3 * i + c] += f[world.id[i], c]
        self.energy = energy
        return 0
