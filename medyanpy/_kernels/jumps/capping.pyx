"""Ends of filaments that proteins of a pool cap, so that they neither grow nor shrink.

A free end is capped at the rate k_on C, with C of the cell of the pool where it is, and a capped one is freed at k_off.
No energy changes. Positions are fixed within a letter, so that the cell is the same both ways: a state with m caps has
the weight (k_on C/k_off)^m, beside whatever weight growth gives it.

Attempts come at bounded rates; those at ends whose state they do not fit do nothing.
"""
from libc.math cimport INFINITY

from medyanpy._kernels.core.program cimport World
from medyanpy._kernels.jumps.filament_ends cimport End, FilamentEnds
from medyanpy._kernels.jumps.jump cimport Draws, JumpOperation, draw_two, wait
from medyanpy._kernels.jumps.pools cimport PoolCounts


cdef class Capping(JumpOperation):
    """Caps on ends of the filaments of one handle.

    Parameters
    ----------
    name, every
        See `JumpOperation`.
    ends : FilamentEnds
    pool : PoolCounts
    species : int
        Of the caps.
    """
    cdef FilamentEnds ends
    cdef PoolCounts pool
    cdef Py_ssize_t species
    cdef double on, off       # nm^3/s and 1/s
    # What the state of an end is that it has capped.
    cdef public int number

    def __init__(self, str name, int every, FilamentEnds ends not None, PoolCounts pool not None, Py_ssize_t species):
        self.describe(name, 0.0, False, every)
        # No force depends on caps.
        self.moves = False
        self.ends = ends
        self.pool = pool
        self.species = species
        self.number = 1

    def set(self, double kT, bint driven, double on, double off):
        self.kT = kT
        self.driven = driven
        self.on = on
        self.off = off

    cdef int act(self, World* world, double h, Draws* draws) noexcept nogil:
        cdef double u[2]
        cdef double on, each, which, t = 0.0
        cdef Py_ssize_t k
        cdef int fault = 0
        while fault == 0:
            on = self.on * self.pool.most(self.species, world.written) / self.pool.volume
            each = on + self.off
            if not wait(draws, each * self.ends.n, h, &t, u):
                break
            self.ends.find(world)
            self.counts[0] += 1
            which = u[1] * self.ends.n
            k = min(<Py_ssize_t> which, self.ends.n - 1)
            fault = self.attempt(world, t, self.ends.end(k), which - k < on / each, draws)
        return fault

    cdef int attempt(self, World* world, double t, const End* end, bint caps, Draws* draws) noexcept nogil:
        """Cap an end, or free it."""
        cdef double u[2]
        cdef Py_ssize_t cell
        if end.node < 0 or self.ends.caps[end.node] != (0 if caps else self.number):
            return 0
        cell = self.pool.cell_of(world.x + 3 * <Py_ssize_t> end.node)
        if caps:
            draw_two(draws, u)
            if not u[0] * self.pool.most(self.species, world.written) < self.pool.amount(cell, self.species):
                return 0
            self.pool.take(cell, self.species, 1)
        else:
            self.pool.put(cell, self.species, 1)
        self.ends.caps[end.node] = self.number if caps else 0
        return self.happened(world, t, 0 if caps else 1, world.bead[end.node], -1, 0.0, 0.0,
                             INFINITY if self.driven else 0.0)
