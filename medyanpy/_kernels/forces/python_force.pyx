"""A force computed by a Python function.

The function is called inside the step, with the interpreter lock, on a copy of the positions in topology
order (and of the orientations, if it asks for them); its forces and torques are added in the order of places. The
caller has wrapped it so that what it returns has been checked.
"""
import numpy as np

from cpython.exc cimport PyErr_SetInterrupt
from libc.stdint cimport int32_t
from libc.string cimport memcpy

from medyanpy._kernels.core.program cimport NO_FAULT, PYTHON_EXCEPTION, Operation, World


cdef class PythonTerm(Operation):
    """Forces of a checked Python function.

    Parameters
    ----------
    name : str
    function : callable (positions) -> (float, (n, 3) C-contiguous float64 array)
        With `orientations`: (positions, orientations) -> (float, (n, 3) array, (m, 3) array) for m oriented beads.
    place : (n,) int32
        Of the beads it is given, in this order; rows asleep are left out.
    body : (m,) int32
        Rows of oriented beads, likewise.
    repeatable : bool
        Whether the function returns the same when it is called again.
    orientations : bool
    """
    cdef object function
    cdef bint orientations
    # All that it may be given, and what of it is there now.
    cdef object places
    cdef object bodies
    cdef const int32_t[::1] place
    cdef const int32_t[::1] body
    cdef long long living     # `World.living` when that was looked up

    def __init__(self, str name, function, place, body, bint repeatable=True, bint orientations=False):
        self.name = name
        self.places = self.place = place
        self.bodies = self.body = body
        self.living = 0
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

    cdef int look(self, World* world) except -1:
        """Which beads are there."""
        if world.living == NULL or world.living[0] == self.living:
            return 0
        self.living = world.living[0]
        self.place = np.array([i for i in self.places if world.alive[<Py_ssize_t> i]], np.int32)
        self.body = np.array(
            [i for i in self.bodies if world.alive[world.first_oriented + <Py_ssize_t> i]], np.int32)
        return 0

    cdef int add(self, World* world) except -1:
        cdef double[:, ::1] x
        cdef double[:, ::1] q
        cdef const double[:, ::1] f
        cdef const double[:, ::1] torque
        cdef double energy
        cdef Py_ssize_t i
        cdef int c
        self.look(world)
        # A new array each time: the function may keep it, or hand it to somebody who does.
        positions = np.empty((self.place.shape[0], 3))
        x = positions
        for i in range(self.place.shape[0]):
            memcpy(&x[i, 0], world.x + 3 * <Py_ssize_t> self.place[i], 3 * sizeof(double))
        positions.flags.writeable = False
        if self.orientations:
            orientations = np.empty((self.body.shape[0], 4))
            q = orientations
            for i in range(self.body.shape[0]):
                memcpy(&q[i, 0], world.orientation + 4 * <Py_ssize_t> self.body[i], 4 * sizeof(double))
            orientations.flags.writeable = False
            value, forces, torques = self.function(positions, orientations)
            torque = torques
            for i in range(self.body.shape[0]):
                for c in range(3):
                    world.torque[3 * <Py_ssize_t> self.body[i] + c] += torque[i, c]
        else:
            value, forces = self.function(positions)
        energy = value
        f = forces
        for i in range(self.place.shape[0]):
            for c in range(3):
                world.f[3 * <Py_ssize_t> self.place[i] + c] += f[i, c]
        self.energy = energy
        return 0
