"""A force computed by a Python function.

The function is called inside the step, with the interpreter lock, on a copy of the positions in topology
order; its forces are added in the order of places. The caller has wrapped it so that what it returns has been
checked.
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
    """
    cdef object function

    def __init__(self, str name, function):
        self.name = name
        self.function = function
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
                # Half a step is no state to stop in. The evaluation is made again, the step ends whole, and
                # the interrupt, raised once more, is found by whoever looks for signals between two steps.
                self.add(world)
                PyErr_SetInterrupt()
            return NO_FAULT
        except KeyboardInterrupt as error:
            # Twice in one evaluation: somebody wants to get out at once. It must come out as what it is.
            PyErr_SetInterrupt()
            self.error = error
        except BaseException as error:
            self.error = error
        return PYTHON_EXCEPTION

    cdef int add(self, World* world) except -1:
        cdef double[:, ::1] x
        cdef const double[:, ::1] f
        cdef double energy
        cdef Py_ssize_t i
        cdef int c
        # A new array each time: the function may keep it, or hand it to somebody who does.
        positions = np.empty((world.n, 3))
        x = positions
        for i in range(world.n):
            memcpy(&x[world.id[i], 0], world.x + 3 * i, 3 * sizeof(double))
        positions.flags.writeable = False
        value, forces = self.function(positions)
        energy = value
        f = forces
        for i in range(world.n):
            for c in range(3):
                world.f[3 * i + c] += f[world.id[i], c]
        self.energy = energy
        return 0
