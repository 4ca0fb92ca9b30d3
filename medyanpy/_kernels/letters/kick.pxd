"""The letter B, and the sum of forces that it kicks by."""
from medyanpy._kernels.core.accumulate cimport Accumulator
from medyanpy._kernels.core.program cimport Operation, Sequence, World


cdef class ForceSum(Operation):
    """The forces of one or more groups, added up when beads have moved since the last time."""
    cdef readonly Sequence forces
    cdef double[:, ::1] f             # (n, 3) -dPE/d(3D position of each bead)
    cdef list drives                  # (n, width) arrays of what drives each of world.momenta: torques first
    cdef double** drive               # where they are
    cdef double[:, ::1] chain         # (n_vertices, 3) what points pass on to the corners of their triangles
    cdef Accumulator corners
    cdef long long evaluated          # the value of world.positions for which f and chain hold
    cdef long long measured           # and that for which these do:
    cdef double[::1] energies         # of each force
    # The first forces, among whose terms no links come and go; what they add up to where beads were last, and their
    # energies, if these are known; and in how many evaluations to come this is kept.
    cdef Py_ssize_t n_lasting
    cdef long long places             # the value of world.places for which forces were evaluated last,
    cdef long long kept_at            # and that for which this is kept
    cdef bint has_kept_energies
    cdef double[::1] kept_energies
    cdef int keeps
    cdef double[:, ::1] kept_f
    cdef list kept_drives
    cdef double** kept_drive

    cdef void point(self, World* world) noexcept nogil
    cdef void clear(self, World* world) noexcept nogil
    cdef void exchange(self, World* world, bint back) noexcept nogil
    cdef int evaluate(self, World* world) noexcept nogil
    cdef int pass_on(self, World* world) noexcept nogil


cdef class KickRule:
    """Another force to kick by: a function of where beads are, made of the sum of forces."""
    # The exception that Python code called by this rule raised.
    cdef readonly object error

    # Point f to (n, 3) forces. 0, or a fault.
    cdef int replace(self, World* world, ForceSum forces, const double** f) noexcept nogil


cdef class KickForce(Operation):
    cdef ForceSum forces
    cdef KickRule rule

    # The force (n, 3) to kick by; `error` has what Python code has raised.
    cdef int find(self, World* world, const double** f) noexcept nogil


cdef class Kick(Operation):
    cdef ForceSum forces
    cdef KickRule rule        # None: the sum of forces as it is
    cdef double h
    cdef const double[::1] rates      # None: inverse masses
    # Of the watch that comes next: per bead a bound of its squared speed, and where to note that all of a block are
    # within theirs. Empty where another operation comes next.
    cdef const double[::1] limit
    cdef signed char[::1] calm
