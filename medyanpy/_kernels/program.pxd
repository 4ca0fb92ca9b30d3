"""The step program: what an operation is, and what it may see.

An operation is one piece of a step: a letter of the word, or a force that a kick asks for. Third parties
write their own by subclassing `Operation` in a module of theirs, compiled against this file.
"""
from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, uint64_t

from medyanpy._kernels.box cimport Box


# What an operation returns. 0 goes on; anything else ends the run.
cdef enum FaultCode:
    NO_FAULT = 0
    NOT_FINITE = 1            # a force or velocity that is no number
    TOO_MANY_CROSSINGS = 2    # an in-triangle point that crosses edges without end
    DEGENERATE_TRIANGLE = 3   # a triangle under a point has lost its area
    PYTHON_EXCEPTION = 4      # Python code called from the step raised
    OUT_OF_MEMORY = 5
    TOO_MANY_NEIGHBORS = 6


cdef struct Fault:
    int code
    long long bead            # internal index, -1 where none is concerned
    long long triangle        # face, -1 where none is concerned
    PyObject* operation       # the innermost operation that failed (borrowed)


cdef struct World:
    long long step            # steps taken so far
    long long positions       # raised whenever beads have moved: forces computed at another value are stale
    int last                  # the step is the last one of this run: what is measured is measured now
    int threads
    uint64_t seed
    Box box
    Fault fault

    # Beads. Internal order: membrane vertices, other Cartesian beads, in-triangle points.
    Py_ssize_t n_vertices
    Py_ssize_t n_cartesian
    Py_ssize_t n_points
    Py_ssize_t n
    double* x                 # (n, 3); rows of in-triangle points are derived, see `points.place`
    double* v                 # (n, 3); of in-triangle points: in their plane
    double* mass              # (n,)
    double* inverse_mass      # (n,); 0 for fixed beads
    int32_t* id               # (n,) permanent bead numbers: topology order

    # Triangles of all membranes, and the points in them.
    Py_ssize_t n_faces
    int32_t* faces            # (n_faces, 3) internal beads
    int32_t* opposite         # (n_faces, 3) corner across the edge opposite a corner: 3 face + corner, -1 at a border
    int32_t* triangle         # (n_points,) face
    double* barycentric       # (n_points, 2) weights of the face's second and third corner
    long long placed          # the value of `positions` for which the rows of points in x were derived
    int membranes_move        # whether any vertex that carries points is free to move

    # Set by whoever asks forces to be added up.
    double* f                 # (n, 3) forces are added here
    int want_energy           # whether each force shall also compute its energy


cdef class Operation:
    cdef readonly str name
    # The energy of a force at its last evaluation that wanted one (pN nm).
    cdef readonly double energy
    # Whether a force can act on in-triangle points. Forces that cannot, spare the points' pass of a kick.
    cdef public bint acts_on_points
    # The exception that Python code called by this operation raised.
    cdef readonly object error

    cdef int run(self, World* world) noexcept nogil


cdef class Sequence(Operation):
    cdef readonly list operations
    cdef PyObject** items
    cdef Py_ssize_t count


cdef class Program:
    cdef World world
    cdef Sequence word
    cdef object arrays

    cdef int clear_fault(self) except -1
    cdef int check(self, int fault) except -1
