"""Counts of molecules of one pool of one context, which all its jumps share.

A pool that is well mixed has one cell, a grid has several, the last axis first: cell (i, j, k) of (a, b, c) has the
number (i b + j) c + k. Shapes: counts (n_cells, n_species) int64.

A pool that is the inside of a membrane has the volume V of that, measured before each jump that it takes part in. Its N
molecules have the free energy -N kT ln(V/V1), of which MembranePoolPressure is the force: what jumps change of it by
changing N is booked with them.
"""
import numpy as np

from libc.math cimport NAN, floor
from libc.stdint cimport int64_t

from medyanpy._kernels.beads.membrane cimport VOLUME, Geometry
from medyanpy._kernels.core.elementary cimport log_
from medyanpy._kernels.core.parallel cimport record_fault
from medyanpy._kernels.core.program cimport NOT_FINITE, World


cdef class PoolCounts:
    """Counts of one pool.

    Parameters
    ----------
    array : (n_cells, n_species) int64 array
        The state; written to by jumps.
    volume : float, nm^3
        Of a cell.
    fixed : (reservoirs,) float array, 1/nm^3
        Concentrations that never change.
    cells : (3,) of int
        Zeros where the pool has no places.
    size, origin : (3,) of float, nm
    periodic : bool
    """

    def __init__(self, array, double volume, fixed, cells=(0, 0, 0), size=(1.0, 1.0, 1.0), origin=(0.0, 0.0, 0.0),
                 bint periodic=False):
        cdef int64_t[:, ::1] counts = array
        cdef int c
        self.array = array
        self.n_cells, self.n_species = array.shape
        self.counts = &counts[0, 0] if array.size else &self.spare
        self.volume = self.start = volume
        self.kT = NAN
        self.fixed = np.asarray(fixed, float) * volume
        self.version = 0
        self.top = np.zeros(self.n_species + 1, np.int64)
        self.top_of = np.full(self.n_species + 1, -1, np.int64)
        self.top_written = -1
        self.periodic = periodic
        for c in range(3):
            self.cells[c], self.size[c], self.origin[c] = cells[c], size[c], origin[c]

    def enclose(self, Geometry inside not None, concentrations):
        """Let the volume be that inside of a membrane from now on, with reservoirs of these concentrations, 1/nm^3."""
        inside.ask(VOLUME)
        self.inside = inside
        self.concentrations = np.asarray(concentrations, float)

    def cell_at(self, const double[::1] x):
        """The cell at a place (3,), nm."""
        return self.cell_of(&x[0])

    cdef Py_ssize_t cell_of(self, const double* x) noexcept nogil:
        cdef Py_ssize_t cell = 0, n
        cdef double q
        cdef int c
        for c in range(3):
            n = self.cells[c]
            if n == 0:
                return 0
            q = floor((x[c] - self.origin[c]) / self.size[c])
            if self.periodic:
                q -= n * floor(q / n)
            # Written so that what is not a number has a cell too.
            if not q > 0.0:
                q = 0.0
            elif q > n - 1:
                q = n - 1
            cell = cell * n + <Py_ssize_t> q
        return cell

    cdef double amount(self, Py_ssize_t cell, Py_ssize_t species) noexcept nogil:
        if species >= self.n_species:
            return self.fixed[species - self.n_species]
        return <double> self.counts[cell * self.n_species + species]

    cdef double most(self, Py_ssize_t species, long long written) noexcept nogil:
        cdef Py_ssize_t cell, s
        if species >= self.n_species or self.n_cells == 1:
            return self.amount(0, species)
        if self.top_written != written:
            self.top_written = written
            for s in range(self.n_species):
                self.top_of[s] = -1
        if self.top_of[species] != self.version:
            self.top_of[species] = self.version
            self.top[species] = 0
            for cell in range(self.n_cells):
                self.top[species] = max(self.top[species], self.counts[cell * self.n_species + species])
        return <double> self.top[species]

    cdef void take(self, Py_ssize_t cell, Py_ssize_t species, int64_t n) noexcept nogil:
        self.put(cell, species, -n)

    cdef void put(self, Py_ssize_t cell, Py_ssize_t species, int64_t n) noexcept nogil:
        if species < self.n_species:
            self.counts[cell * self.n_species + species] += n
            self.version += 1

    cdef void changed(self) noexcept nogil:
        self.version += 1

    cdef int measure(self, World* world) noexcept nogil:
        cdef Py_ssize_t s
        self.inside.measure(world, VOLUME)
        self.volume = self.inside.total_volume()
        # Turned inside out, as MembranePoolPressure has it.
        if not self.volume > 0.0:
            return record_fault(world, NOT_FINITE, self.inside.membrane.first_bead, -1)
        for s in range(self.fixed.shape[0]):
            self.fixed[s] = self.concentrations[s] * self.volume
        self.before = self.total()
        return 0

    cdef int64_t total(self) noexcept nogil:
        cdef int64_t n = 0
        cdef Py_ssize_t s
        for s in range(self.n_species):
            n += self.counts[s]
        return n

    cdef int64_t gained(self, double* energy) noexcept nogil:
        cdef int64_t more = self.total() - self.before
        self.before += more
        energy[0] = -(more * self.kT) * log_(self.volume / self.start) if more != 0 else 0.0
        return more
