"""Subunits of filaments that age: each goes from state to state, one after the other, at rates of its own.

Subunits do not see each other, and no force sees their states. The jumps that let ends grow and shrink tell which
subunits come and go. A filament keeps the states of its subunits in a ring, so that ends move and nothing else; nodes
that come and go change nothing.

Attempts come at the rate at which all places of all rings would change if all had the fastest rate. Those at places
without a subunit, or by the share of its own rate, do nothing.
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t

from medyanpy._kernels.core.program cimport World
from medyanpy._kernels.jumps.jump cimport Draws, JumpOperation, draw_two, wait


cdef class SubunitStates:
    """States of all subunits of one handle.

    Parameters
    ----------
    nodes : (filaments, width) int32
        Places that the nodes of each filament may have; -1 beyond.
    subunits : (beads,) int32
        By place: of the link that leads on from a node.
    room : int
        Most subunits of a filament.
    start, n_states : int
        State of the subunits at the start, of so many.
    """

    def __init__(self, const int32_t[:, ::1] nodes not None, const int32_t[::1] subunits not None, Py_ssize_t room,
                 int start, int n_states):
        n = nodes.shape[0]
        self.nodes = nodes
        self.subunits = subunits
        self.states = np.full((n, room), start, np.int8)
        self.first = np.zeros(n, np.int64)
        self.count = np.zeros(n, np.int64)
        self.room = room
        self.n_states = n_states
        self.seen = -1

    def arrays(self):
        return {"states": np.asarray(self.states), "first": np.asarray(self.first)}

    def in_order(self):
        """(filaments, longest) int8, from the minus end on; -1 beyond."""
        self.recount()
        count = np.asarray(self.count)
        i = np.arange(max(1, count.max(initial=0)))
        out = np.take_along_axis(np.asarray(self.states), (np.asarray(self.first)[:, None] + i) % self.room, axis=1)
        return np.where(i < count[:, None], out, np.int8(-1))

    cdef void recount(self) noexcept nogil:
        cdef Py_ssize_t i, k
        cdef int32_t node
        for i in range(self.nodes.shape[0]):
            self.count[i] = 0
            for k in range(self.nodes.shape[1]):
                node = self.nodes[i, k]
                if node >= 0:
                    # Whatever has been written there, there is no more room.
                    self.count[i] = min(self.room, self.count[i] + max(0, self.subunits[node]))

    cdef void follow(self, World* world) noexcept nogil:
        if self.seen != world.written:
            self.seen = world.written
            self.recount()

    cdef int at_end(self, Py_ssize_t filament, bint plus) noexcept nogil:
        cdef int64_t at = self.first[filament]
        if plus:
            at += max(0, self.count[filament] - 1)
        return self.states[filament, at % self.room]

    cdef int of(self, Py_ssize_t filament, int64_t i) noexcept nogil:
        return self.states[filament, (self.first[filament] + i) % self.room]

    cdef void cut(self, Py_ssize_t filament, int64_t left, Py_ssize_t other) noexcept nogil:
        cdef int64_t i
        self.first[other] = 0
        self.count[other] = self.count[filament] - left
        for i in range(self.count[other]):
            self.states[other, i % self.room] = <signed char> self.of(filament, left + i)
        self.count[filament] = left

    cdef void join(self, Py_ssize_t filament, Py_ssize_t other) noexcept nogil:
        cdef int64_t i, end = self.first[filament] + self.count[filament]
        for i in range(self.count[other]):
            self.states[filament, (end + i) % self.room] = <signed char> self.of(other, i)
        self.count[filament] += self.count[other]
        self.count[other] = 0

    cdef void come(self, Py_ssize_t filament, bint plus) noexcept nogil:
        cdef int64_t at
        if plus:
            at = (self.first[filament] + self.count[filament]) % self.room
        else:
            at = self.first[filament] = (self.first[filament] + self.room - 1) % self.room
        self.states[filament, at] = 0
        self.count[filament] += 1

    cdef void go(self, Py_ssize_t filament, bint plus) noexcept nogil:
        self.count[filament] = max(0, self.count[filament] - 1)
        if not plus:
            self.first[filament] = (self.first[filament] + 1) % self.room


cdef class Ageing(JumpOperation):
    """Changes of the states of the subunits of one handle.

    Parameters
    ----------
    name, every
        See `JumpOperation`.
    rates : (n_states - 1,) float, 1/s
        From each state to the next.
    energies : (n_states - 1,) float, pN nm
        What drives these; inf without a way back.
    nodes, subunits
        See `SubunitStates`.
    """

    def __init__(self, str name, int every, const double[::1] rates not None, const double[::1] energies not None,
                 nodes, subunits):
        self.describe(name, 0.0, True, every)
        # No force depends on these states.
        self.moves = False
        self.rates = rates
        self.energies = energies
        self.fastest = max(rates)
        self.nodes = nodes
        self.subunits = subunits

    def make(self, Py_ssize_t room, int start):
        """Make room for so many subunits of each filament, all in one state."""
        self.of = SubunitStates(self.nodes, self.subunits, room, start, len(self.rates) + 1)

    def set(self, double kT):
        self.kT = kT

    def arrays(self):
        return {**super().arrays(), **self.of.arrays()}

    cdef int act(self, World* world, double h, Draws* draws) noexcept nogil:
        cdef double u[2]
        cdef double t = 0.0, n = <double> self.of.nodes.shape[0] * self.of.room
        cdef Py_ssize_t which
        cdef int fault = 0
        while fault == 0 and wait(draws, self.fastest * n, h, &t, u):
            self.of.follow(world)
            self.counts[0] += 1
            which = min(<Py_ssize_t> (u[1] * n), <Py_ssize_t> n - 1)
            fault = self.attempt(world, t, which // self.of.room, which % self.of.room, draws)
        return fault

    cdef int attempt(self, World* world, double t, Py_ssize_t filament, Py_ssize_t i, Draws* draws) noexcept nogil:
        """Try the i-th subunit of a filament."""
        cdef double u[2]
        cdef signed char* state
        if i >= self.of.count[filament]:
            return 0
        state = &self.of.states[filament, (self.of.first[filament] + i) % self.of.room]
        if state[0] >= self.of.n_states - 1:
            return 0
        draw_two(draws, u)
        if not u[0] * self.fastest < self.rates[state[0]]:
            return 0
        state[0] += 1
        return self.happened(world, t, state[0] - 1, filament, i, 0.0, 0.0, self.energies[state[0] - 1])
