"""Molecules that are counted, not placed: how many of each species are in each cell of a pool. See pools.pyx."""
from libc.stdint cimport int64_t

from medyanpy._kernels.beads.membrane cimport Geometry
from medyanpy._kernels.core.program cimport World


cdef class PoolCounts:
    cdef readonly object array          # (n_cells, n_species) int64: the state
    cdef int64_t* counts                # the same; one number that nothing reads where there are none
    cdef int64_t spare
    cdef readonly Py_ssize_t n_cells
    cdef readonly Py_ssize_t n_species  # those that are counted; reservoirs have the numbers after these
    cdef readonly double volume         # nm^3, of a cell, as `measure` has found it last
    cdef double[::1] fixed              # (reservoirs,) molecules in a cell at their fixed concentrations
    # Another one whenever counts have changed within steps: what was computed from other counts is stale. Counts that
    # are written from outside change `World.written`.
    cdef long long version
    cdef Py_ssize_t cells[3]            # 0 where the pool has no places
    cdef double size[3]                 # nm, of a cell
    cdef double origin[3]
    cdef bint periodic
    # By species: most molecules in one cell, and the version of the counts that this is of.
    cdef int64_t[::1] top
    cdef long long[::1] top_of
    cdef long long top_written
    # Of a pool that is the inside of a membrane, else None: what is measured of that; the volume at which molecules
    # have no free energy, kT, concentrations of reservoirs, and how many molecules there were when it was measured.
    cdef Geometry inside
    cdef readonly double start
    cdef public double kT
    cdef const double[::1] concentrations
    cdef int64_t before

    # The cell at a place x (3,), nm: the nearest one outside of a closed grid, 0 where the pool has no places.
    cdef Py_ssize_t cell_of(self, const double* x) noexcept nogil
    # Molecules of a species in a cell; of a reservoir its concentration times the volume.
    cdef double amount(self, Py_ssize_t cell, Py_ssize_t species) noexcept nogil
    # Molecules of a species in the cell that has most; `written` is that of the World.
    cdef double most(self, Py_ssize_t species, long long written) noexcept nogil
    # Remove and add molecules; those of reservoirs never change. Who takes sees to it that they are there.
    cdef void take(self, Py_ssize_t cell, Py_ssize_t species, int64_t n) noexcept nogil
    cdef void put(self, Py_ssize_t cell, Py_ssize_t species, int64_t n) noexcept nogil
    # Counts have been written to in another way.
    cdef void changed(self) noexcept nogil
    # Of the inside of a membrane: the volume of now, 0 or a fault; and the molecules and the free energy (pN nm) that
    # it has gained since.
    cdef int measure(self, World* world) noexcept nogil
    cdef int64_t gained(self, double* energy) noexcept nogil
    cdef int64_t total(self) noexcept nogil
