"""The step program: what an operation is, and what it may see.

An operation is one piece of a step: a letter of the word, or a force that a kick asks for. Third parties
write their own by subclassing `Operation` in a module of theirs, compiled against this file.
"""
from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint64_t

from medyanpy._kernels.core.box cimport Box


# What an operation returns. 0 goes on; anything else ends the run.
cdef enum FaultCode:
    NO_FAULT = 0
    NOT_FINITE = 1            # a force or velocity that is not a number
    TOO_MANY_CROSSINGS = 2    # an in-triangle point that crosses edges without end
    DEGENERATE_TRIANGLE = 3   # a triangle under a point has lost its area
    PYTHON_EXCEPTION = 4      # Python code called from the step raised
    OUT_OF_MEMORY = 5
    NOT_CONVERGED = 6         # constraints that cannot be held
    LOST_SURFACE = 7          # a bead that does not come back to its surface
    NOT_SOLVED = 8            # an implicit kick whose equations have no solution, or none that Newton's method finds
    RUNAWAY = 9               # a bead with more kinetic energy than it can have come by
    TOO_MANY_JUMPS = 10       # a jump whose rates ask for attempts without end
    NO_ROOM = 11              # a bead that shall be born where no row is asleep
    IN_WALL = 12              # a sphere that overlaps a wall of the fluid
    NO_ROOT = 13              # a mobility of which Lanczos' method finds no root
    CONSTRAINTS_LOST = 14     # constraints between beads that cannot be held; `triangle` of the fault is the row
    TOO_FAR = 15              # a search along a surface that does not end
    NO_GEODESIC = 16          # two beads whose distance is not known; `triangle` of the fault is the other's place
    TOO_CURVED = 17           # a bead where its surface is too curved for the cutoff of a force along it
    OUT_OF_TETHER = 18        # an edge longer or shorter than its tether; `triangle` of the fault is the other place
    LOST_COUNT = 19           # a walk over what is listed that has not ended where its sums say
    TOO_WIDE = 20             # an edge of a mesh about as long as half of the box; as OUT_OF_TETHER
    NO_DENSITY = 21           # a control of adaptive steps, or their density, that is not positive
    TOO_CROWDED = 22          # a point with more partners in reach than a reaction allows for
    RATE_ABOVE_BOUND = 23     # a rate that a user has written, above the bound that goes with it, or below 0


cdef struct Fault:
    int code
    long long bead            # internal index, -1 where none is concerned
    long long triangle        # face, -1 where none is concerned
    double value              # what was measured, where the message tells it
    PyObject* operation       # the innermost operation that failed (borrowed)


# Beads per block where velocities are compared with bounds: of kicks and of the watch, which share what they find.
cdef enum:
    WATCHED = 2048


# Momenta of beads beside m v: so many numbers of each of n beads, from place `first` on.
cdef struct Momenta:
    Py_ssize_t first
    Py_ssize_t n
    Py_ssize_t width
    double* p                 # (n, width)
    double* inverse_mass      # (n, width); 0 where nothing moves: the kinetic energy is sum p^2/2m
    double* force             # (n, width) what drives them is added here; set by whoever asks forces to be added up


cdef enum:
    # Filaments that a World remembers to have changed, and changes of `living`.
    GROWN = 64
    ROW_CHANGES = 64


# A bead that has come or gone, has become another, or has been put elsewhere.
cdef struct RowChange:
    Py_ssize_t place          # -1: any of them
    long long before          # `positions` before and after it
    long long after


cdef struct World:
    long long step            # steps taken so far
    long long number          # of all worlds that this process has made, this one has it alone
    # Another one whenever beads have moved or triangles have changed, never one that was in use before, except that a
    # change that is taken back brings the old one back: what was computed at another value is stale.
    long long positions
    long long newest          # the highest there has been
    # What `positions` was when it last changed for another reason than that links have been bound or have let go.
    long long places
    # Another one whenever arrays of the state have been written to from outside, or gone back to what they were.
    long long written
    int last                  # the step is the last one of this run: what is measured is measured now
    double pace               # what letters multiply their times by: 1, and another number within adaptive steps
    int threads
    uint64_t seed
    Box box
    double* box_length        # (3,) the same lengths, which are state; NULL in open space
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
    int32_t* bead             # (n,) row in all that users see: topology order
    int32_t* id               # (n,) permanent ids, by which random numbers are keyed: bits 0 to 31
    int32_t* id_high          # (n,) bits 32 to 47; NULL: all are 0. See noise.pxd
    # (n,) which beads are there; NULL: all are. Rows asleep have no mass, do not move, and take no part in forces.
    signed char* alive
    # One more whenever `alive` or `species` changes, or a jump that creates and removes beads puts others elsewhere;
    # NULL likewise.
    long long* living
    const RowChange* row_changes  # (ROW_CHANGES,) the last of these changes: the k-th at k mod ROW_CHANGES
    # (n,) what a bead of a handle with species is, -1 of other beads; NULL: there are no such handles.
    int32_t* species
    # (n,) of the link that leads on from a node of a filament that grows, 0 at the last one and -1 of other beads;
    # NULL: there are none.
    int32_t* subunits
    # (n,) how many subunits each of these nodes is from where its filament began, by which places on them are counted;
    # not used of other beads.
    int32_t* material
    # How often links have come to have other subunits or other nodes, and a node of each of the last filaments.
    long long grown
    int32_t[GROWN] grown_at

    # Oriented beads: a block of Cartesian beads that also turn.
    Py_ssize_t first_oriented
    Py_ssize_t n_oriented
    double* orientation       # (n_oriented, 4) unit quaternions, scalar first: body to space
    double* spin              # (n_oriented, 3) angular momenta in the frame of each body
    double* inverse_inertia   # (n_oriented, 3) of the principal axes, which are those of the body frame; 0 for fixed

    # All momenta beside m v: those of rotation first, if there are oriented beads; then what other kinds declare.
    Py_ssize_t n_momenta
    Momenta* momenta

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
    double* torque            # (n_oriented, 3) and torques here, in the frame of each body: momenta[0].force
    int want_energy           # whether each force shall also compute its energy
    # A letter J that comes next asks for energies: sums of forces on the way to it keep those of each force.
    int soon


cdef inline void mark_moved(World* world) noexcept nogil:
    """Beads are elsewhere than before."""
    world.newest += 1
    world.positions = world.places = world.newest


cdef inline void mark_relinked(World* world) noexcept nogil:
    """Other links are bound than before."""
    world.newest += 1
    world.positions = world.newest


cdef inline void mark_back(World* world, long long positions) noexcept nogil:
    """All is as it was when `positions` had this value."""
    world.positions = world.places = positions


cdef inline void mark_grown(World* world, Py_ssize_t node) noexcept nogil:
    """Links of the filament of a node have other subunits than before, or other nodes."""
    world.grown_at[world.grown % GROWN] = <int32_t> node
    world.grown += 1


cdef inline long long changes_since(const World* world, long long living, long long positions) noexcept nogil:
    """How many changes of single beads lead to the state of now from that of these values; -1 where others do."""
    cdef const RowChange* change
    cdef long long k, last = living if world.living == NULL else world.living[0]
    if not 0 <= last - living <= ROW_CHANGES:
        return -1
    for k in range(living + 1, last + 1):
        change = &world.row_changes[k % ROW_CHANGES]
        if change.place < 0 or change.before != positions:
            return -1
        positions = change.after
    return last - living if positions == world.positions else -1


cdef inline bint is_there(const World* world, Py_ssize_t place) noexcept nogil:
    """Whether a place has a bead, or is a row asleep."""
    return world.alive == NULL or world.alive[place] != 0


cdef inline bint is_one_of(const World* world, Py_ssize_t place, int64_t wanted) noexcept nogil:
    """Whether a place has a bead, and of a species whose bit is set; beads without species, if all bits are."""
    if not is_there(world, place):
        return False
    return wanted == -1 or (world.species[place] >= 0 and (wanted >> world.species[place]) & 1 != 0)


# Two triangles at an edge cd, with the corners a and b across it: (a, c, d) and (b, d, c), each in this order from
# corner at_a or at_b on. `first` has the lower number.
cdef struct Quad:
    Py_ssize_t first, second  # faces
    int at_a, at_b            # 0 to 2
    int32_t a, b, c, d        # places
    int rule                  # which of the new faces is first: see triangles.pyx


# A state that differs from the World's by where a few beads are, by how long a few links are, and by a few edges that
# are flipped. `swap` exchanges the two, and once more brings all back to the bit; it leaves x of points as it should
# be.
cdef struct Change:
    int (*swap)(World* world, Change* change) noexcept nogil
    Py_ssize_t n_beads
    const int32_t* beads      # Cartesian, by place
    double* x                 # (n_beads, 3) where they are in the other state
    # Links with another number of subunits there, each by the place of its first node; the first of `beads`, one for
    # each, are the end nodes that move along them. Their joints have moved beads.
    Py_ssize_t n_links
    const int32_t* links
    int32_t* subunits
    Py_ssize_t n_flips
    const Quad* quads         # as the edges are flipped one after the other
    const Quad* back          # and back, from the last to the first
    Py_ssize_t n_points       # in the faces of these,
    const int32_t* points     # or with a corner among `beads`
    int32_t* triangle         # in the other state
    double* barycentric
    double* v
    PyObject* triangles       # Triangles (borrowed)
    # Places of x that are elsewhere in the other state: those of `beads`, then of `points`.
    Py_ssize_t n_moved
    const int32_t* moved
    int there                 # whether the World has the edges flipped
    long long positions       # of the other state, 0 before it has been there
    # A force that gains more than this, pN nm, may say INFINITY: whoever asks would not have the change then.
    double most
    # Another one for each flip that a letter tries, in which beads stay: what has been measured of a membrane is then
    # mended. 0 of all others.
    long long number


# Takes the (3, 3) block d2U/dx_i dx_j of a Hessian, by place. Blocks of one pair add up; of i != j, the mirror block
# (j, i) is the transpose and is not given apart.
ctypedef int (*AddBlock)(void* sink, Py_ssize_t i, Py_ssize_t j, const double* block) noexcept nogil


cdef class Operation:
    cdef readonly str name
    # The energy of a force at its last evaluation that wanted one (pN nm).
    cdef readonly double energy
    # Whether a force can act on in-triangle points. Forces that cannot, spare the points' pass of a kick.
    cdef public bint acts_on_points
    # How many derivatives of its energy a force offers: 2 with `hessian`, 3 with `contract` as well.
    cdef readonly int derivatives
    # How many beads its Hessian couples all with each other, by a part strength w w^T; 0: there is no such part.
    cdef readonly Py_ssize_t dense
    # Whether running again from the same state gives the same bits. Only Python code can be otherwise.
    cdef readonly bint repeatable
    # Whether links that jumps bind are among its terms.
    cdef readonly bint has_links
    # The exception that Python code called by this operation raised.
    cdef readonly object error
    # Whether it tells soon that a change is impossible, at little cost: jumps ask such forces first.
    cdef readonly bint asked_first
    # Whether it takes long: it is asked last, and looks at the state of now first, by `local_energy_now`; and whether
    # no term of its energy is below 0, so that this tells where it gains more than `Change.most`.
    cdef readonly bint asked_last
    cdef readonly bint is_positive
    # Terms (pairs, faces, vertices, ...) that `local_energy` has looked at, of all changes so far.
    cdef readonly long long examined

    cdef int run(self, World* world) noexcept nogil
    # Optional, for forces; all in terms of 3D positions, as f is.
    # Give every block of the Hessian to add(sink, ...).
    cdef int hessian(self, World* world, AddBlock add, void* sink) noexcept nogil
    # The same of what comes near it without negative eigenvalues; where none is offered, the Hessian.
    cdef int stiffness(self, World* world, AddBlock add, void* sink) noexcept nogil
    # The Hessian, or the stiffness, in two parts: blocks, and w (n, 3), which is added to, with its strength.
    cdef int apart(
        self, World* world, bint positive, AddBlock add, void* sink, double* w, double* strength) noexcept nogil
    # out += sum_ij d3U/dx_i dx_j dx_k a_i a_j, with a and out (n, 3).
    cdef int contract(self, World* world, const double* a, double* out) noexcept nogil
    # The same with derivatives of the stiffness in place of the Hessian's.
    cdef int contract_stiffness(self, World* world, const double* a, double* out) noexcept nogil
    # out += H a with the Hessian H, or K a with the stiffness K of `stiffness`, where positive; a and out (n, 3).
    # Without a method of its own, block by block.
    cdef int multiply(self, World* world, bint positive, const double* a, double* out) noexcept nogil
    # out (n, 3, 3) += the blocks of beads with themselves of the stiffness: what solvers by iteration are helped with.
    cdef int diagonal(self, World* world, double* out) noexcept nogil
    # What its energy gains if a change is made; the World is as before afterwards. The caller has set f, torque and the
    # forces of momenta to work space, and x of points. Forces override the four below it, or all of it.
    cdef int difference(self, World* world, Change* change, double* out) noexcept nogil
    # Keep which terms of the energy a change concerns, the same in both states; `release` forgets them. False: there is
    # no local form, and the whole energy is evaluated twice.
    cdef bint touch(self, World* world, const Change* change) noexcept nogil
    cdef void release(self) noexcept nogil
    # Their energy in the state of the World.
    cdef int local_energy(self, World* world, double* out) noexcept nogil
    # The same in the state of now, where nobody has asked for the other one yet: more where even that, taken away, is
    # above `most`; it may let go of terms that it finds to be the same in both.
    cdef int local_energy_now(self, World* world, double most, double* out) noexcept nogil
    # The gain of the energy from that of the part before and after.
    cdef int gain(self, World* world, double before, double after, double* out) noexcept nogil
    cdef int whole(self, World* world, double* out) noexcept nogil
    # Whether `of_bead` has the energy of all terms with one bead that is there, so that creating and removing beads one
    # after another changes the energy by the sum of these; by `touch`, where a force has no shorter way. The caller has
    # set f to work space, and x of points.
    cdef bint tells_beads(self) noexcept nogil
    cdef int of_bead(self, World* world, Py_ssize_t place, double* out) noexcept nogil
    # Optional: these two triangles will be asked about soon. Ask for the memory that `difference` will read.
    cdef void fetch(self, World* world, const Quad* quad) noexcept nogil
    # Whether `touch` has a local form, asked before any change.
    cdef bint is_local(self) noexcept nogil
    # A change has been made to triangles of a membrane that the force names: whether the operation is right again, by
    # what it mends here if need be. Those that are not are bound anew, as all are without a method of their own.
    cdef bint changed(self, World* world, const Change* change) noexcept nogil


# The energy of the terms that depend on n places, of a force with a local form: 0 or a fault, or NOT_LOCAL.
cdef enum:
    NOT_LOCAL = -1
cdef int energy_around(Operation force, World* world, const int32_t* places, Py_ssize_t n, double* out) noexcept nogil


cdef class Sequence(Operation):
    cdef readonly list operations
    cdef PyObject** items
    cdef Py_ssize_t count

    # Only those from number `first` on, before number `last`.
    cdef int run_some(self, World* world, Py_ssize_t first, Py_ssize_t last) noexcept nogil


# One array of the state, and the copy of it.
cdef struct Kept:
    char* live
    char* copy
    size_t bytes
    int doubles               # whether it holds doubles, which must be finite


cdef class Program:
    cdef World world
    cdef Sequence word
    cdef object arrays
    cdef object state         # the arrays that `kept` points to
    cdef Kept* kept
    cdef Py_ssize_t n_kept
    cdef long long kept_step  # the step of the copy; -1: there is none
    cdef double kept_at       # s, when it was made
    cdef double copying       # s, how long that took
    # Called with a bead and its kinetic energy after a fault RUNAWAY: whether the run goes on. None: it does not.
    cdef public object admit
    # Called every now and then between two steps.
    cdef public object between
    # What makes all that depends on which beads there are anew, where they come and go: see capacity.pyx.
    cdef Operation room

    cdef int take_over(self) except -1
    cdef int clear_fault(self) except -1
    cdef int check(self, int fault) except -1
    cdef int advance(self, long long n) except? -1
    cdef int go_on(self, long long n) except? -1
    cdef double kinetic_energy(self, Py_ssize_t bead) noexcept
    cdef bint is_finite(self) noexcept nogil
    cdef void free_copy(self) noexcept


# A sink that adds the blocks of beads with themselves to an array (n, 3, 3).
cdef int keep_diagonal(void* sink, Py_ssize_t i, Py_ssize_t j, const double* block) noexcept nogil
