"""Neighbour lists: who is near whom, for as long as nobody has moved far."""
from libc.stdint cimport int32_t, int64_t, uint64_t

from medyanpy._kernels.core.box cimport Box
from medyanpy._kernels.core.program cimport World, is_there
from medyanpy._kernels.core.sites cimport SiteArrays


# Members per block of rows; loops over rows use the same blocks, because rows are stored by block.
cdef enum:
    ROWS_PER_BLOCK = 256
    # How many slots ahead memory by place is fetched: slots follow each other in space, places do not. In a
    # fluid of 10^6 beads in random order this takes a third off the time of a step.
    AHEAD = 6


cdef extern from *:
    """
    /* Relative; makes up for the rounding of distances in what is near and what has moved far. */
    #define MEDYANPY_MARGIN 1e-9
    #if defined(__GNUC__)
    #define MEDYANPY_PREFETCH(address) __builtin_prefetch(address)
    #else
    #define MEDYANPY_PREFETCH(address)
    #endif
    """
    const double MARGIN "MEDYANPY_MARGIN"
    void prefetch "MEDYANPY_PREFETCH"(const void* address) noexcept nogil


# Instead of the cell in whose chain a slot is, see `chain`.
cdef enum Chain:
    LOOSE = -1
    NOT_STRAY = -2
    GONE = -3


# Candidates for the rows of a cell: slots that follow each other.
cdef struct Ranges:
    int n
    Py_ssize_t candidates
    int32_t begin[81]         # 3 sets of groups, 9 columns, and one more for each column where cells repeat
    int32_t end[81]
    double shift[243]         # what leads from a member to its image next to these, (81, 3)
    Py_ssize_t cursor[27]


# Writes the row of a slot, sorted, to where there is room for all candidates, and returns its length; see rows.pyx.
# The box is periodic in those directions alone of which the ranges do not know the image.
ctypedef int (*FindRow)(
    Neighbors* near, const Box* box, Py_ssize_t own, const Ranges* ranges, int32_t* out,
) noexcept nogil


cdef struct Neighbors:
    Py_ssize_t n_members      # all sites that may have neighbours
    # Slots: one for each member that was there when the list was built, or has come since then.
    Py_ssize_t n
    long long living          # `World.living` of the members that have rows
    int all_there             # whether that is all of them
    int32_t* there            # (n,) if not: which
    SiteArrays sites          # of the world that asked last
    double skin
    double reach              # the largest range of any pair, plus skin
    int equal                 # every pair has the same range
    FindRow find

    # By member, in ascending row.
    const int32_t* site       # row of the table of sites; where sites are beads, their place
    int32_t* groups           # 1: in A only, 2: in B only, 3: in both
    # The same whatever species a member is of, and bits of the species that count in A and in B; or NULL.
    const int32_t* given
    const int64_t* wanted     # (n, 2)
    const double* radius      # a pair is in range below the sum of these
    const int32_t* excluded_from  # (n + 1,)
    const int32_t* excluded   # numbers of sites that a member ignores, sorted

    # By slot: members in the order of their cells, so that neighbours are near each other in memory.
    int32_t* member
    int32_t* row
    int32_t* id
    double* now               # (n, 4) x, y, z, radius at the last `follow`
    # The same when the list was built, (4, apart), in a periodic box of the image next to the origin; behind the last
    # is room for some more, so that they can be read TOGETHER.
    double* built
    Py_ssize_t apart
    int32_t* count            # length of each row
    # Whether, in a periodic box, `now` is the image next to the origin: a function of where a member is alone. Then
    # rows in which no pair lies across the sides of the box along c have bit c of `across` at 0, for as long as they
    # hold; of other lists all do that may.
    int images
    signed char* across       # (n,)

    # Occupied cells, in ascending order of their keys.
    Py_ssize_t n_cells
    uint64_t* cell_key
    int32_t* cell_start       # (n_cells + 1,) first slot
    # Where those of each column of the grid start, (n_columns + 1,): their keys follow each other. n_columns is 0 where
    # it has more than are worth it.
    Py_ssize_t n_columns
    Py_ssize_t room_columns
    int32_t* column
    uint64_t grid[3]
    uint64_t cells_per_group
    double origin[3]
    double per_cell           # 1 / edge of a cell, in directions that are open
    # In those that are periodic: cells per period, 0 where they are too few to tell them apart.
    uint64_t around[3]
    # The box when the list was built: cells and `built` are of it, and so are ranges. In a box of other lengths, places
    # go there by these factors, and may be further from `built` by the square root of `allowed` until rows lack a pair.
    Box frame
    double to_frame[3]
    double allowed
    int present[3]            # whether there are members in A only, in B only, in both

    # Work space of the sort.
    uint64_t* key
    uint64_t* other_key
    int32_t* other_member

    # By block of slots: the rows of its slots, one after another.
    int32_t** rows
    Py_ssize_t* capacity
    # By member, after `index`; -1 of those that are inactive.
    int32_t* slot_of
    int32_t** row_of
    double* box               # (blocks, 6)
    int* stale                # whether a member has moved too far
    long long* examined       # candidates whose distance was computed

    # Slots whose members have come since the list was built, or which a change has put further away than their rows
    # allowed: `loose`, by group, and `of_cell` start chains of them, -1 where there are none. `n_strays` also counts
    # those whose members have gone.
    Py_ssize_t n_strays
    int32_t loose[3]
    int32_t* of_cell          # (n_members,) by cell
    int32_t* next_stray       # (n_members,) by slot
    int32_t* chain            # (n_members,) by slot: its cell, LOOSE, NOT_STRAY, or GONE
    signed char* chain_stale  # (n_members,) by slot: whether its row is about to be mended

    int mends                 # whether rows of strays are mended, not built again with all others
    int renews                # and those of members that come and go; sites are beads then
    int valid
    long long builds
    long long mended
    long long indexed         # the build that `slot_of` is of
    long long follows
    # The state whose places `now` holds.
    long long world
    long long positions


# In which groups a member is as the species that it is now.
cdef inline int32_t group_now(const Neighbors* near, const World* world, Py_ssize_t member) noexcept nogil:
    cdef int32_t group = near.given[member], species
    cdef int64_t bit
    if near.wanted != NULL:
        # Sites are beads here.
        species = world.species[near.site[member]]
        if species >= 0:
            bit = (<int64_t> 1) << species
            group = (1 if group & 1 and near.wanted[2 * member] & bit else 0) | (
                2 if group & 2 and near.wanted[2 * member + 1] & bit else 0)
    return group


# The same, and 0 of a member whose bead is not there. Sites are beads.
cdef inline int32_t group_there(const Neighbors* near, const World* world, Py_ssize_t member) noexcept nogil:
    return group_now(near, world, member) if is_there(world, near.site[member]) else 0


# Whether members in these groups interact.
cdef inline bint do_meet(int32_t group, int32_t other) noexcept nogil:
    return (group & 1 and other & 2) or (group & 2 and other & 1)


# Sort slots by the numbers of their sites.
cdef void sort_by_id(const int32_t* id, int32_t* slots, Py_ssize_t n) noexcept nogil


cdef class NeighborList:
    cdef Neighbors list
    cdef object arrays

    # The list for the positions of now: `list.now` holds them. 0, or a fault.
    cdef int follow(self, World* world, const SiteArrays* sites) noexcept nogil
    # `slot_of` and `row_of` for the list as it is: members in ascending row, whatever the age of the list.
    cdef int index(self, World* world) noexcept nogil

    # For single members, in a state in which few beads move: `is_current` tells whether `now` holds the places of this
    # state; `locate` sees to it, once sites have been gathered.
    cdef int32_t* found
    cdef Py_ssize_t room
    cdef Py_ssize_t hint          # of the next search for a cell
    cdef int32_t[::1] member_at   # by site, -1 where there is none
    # The member at a site, -1 where there is none or it is inactive.
    cdef int32_t member_of(self, int32_t site) noexcept nogil
    cdef bint is_current(self, World* world) noexcept nogil
    cdef int locate(self, World* world, const SiteArrays* sites) noexcept nogil
    # How many changes of single beads separate this state from that of the list; -1 where there are others.
    cdef long long behind(self, World* world) noexcept nogil
    # Let the list be that of this state, where no other changes separate them: whether it is.
    cdef bint catch_up(self, World* world) noexcept nogil
    cdef bint is_behind(self, World* world, Py_ssize_t place, long long last) noexcept nogil
    # Where sites are beads, also those that have come and gone since the list was last followed: `found` has the places
    # of all within range of the bead at a place that it interacts with, and others near it, in the order of ids. How
    # many, -1 where memory is not enough.
    cdef Py_ssize_t partners(self, World* world, Py_ssize_t place) noexcept nogil
    cdef bint reaches(self, World* world, Py_ssize_t member, int32_t group, Py_ssize_t place) noexcept nogil
    cdef bint make_room(self) noexcept nogil
    # `found` has the slots of all members within range of any place in a box from low to high (3,), and others near it,
    # in any order: how many, -1 where memory is not enough. The box is small, and around the image of its first place.
    # Only those that members of `groups` interact with.
    cdef Py_ssize_t near_box(
        self, World* world, const double* low, const double* high, int32_t groups) noexcept nogil
    cdef Py_ssize_t collect(self, uint64_t column, uint64_t low, uint64_t high, Py_ssize_t n) noexcept nogil
    # The same of a member if that were at x (3,): those that it interacts with, in the order of numbers of sites.
    cdef Py_ssize_t near_place(self, World* world, Py_ssize_t member, const double* x) noexcept nogil
    cdef bint ignores(self, Py_ssize_t member, int32_t id) noexcept nogil
    # Whether two members interact, however far apart.
    cdef bint interact(self, Py_ssize_t member, Py_ssize_t other) noexcept nogil
    # Rows of strays, and of members that have come and gone; their parts. False: they cannot be mended.
    cdef bint mend(self, World* world) noexcept nogil
    cdef bint renew(self, World* world) noexcept nogil
    cdef bint write_row(self, World* world, Py_ssize_t slot) noexcept nogil
    cdef bint is_same(self, World* world, Py_ssize_t slot) noexcept nogil
    # Take an entry from the row of a slot, if it is there. False: out of memory.
    cdef bint strike(self, Py_ssize_t slot, int32_t entry) noexcept nogil
    cdef void erase(self, Py_ssize_t slot) noexcept nogil
    cdef void remove_member(self, Py_ssize_t slot) noexcept nogil
    cdef bint add_member(self, World* world, int32_t member) noexcept nogil
    # The same without rows: no search finds a slot from now on; a slot for a member, where searches find it once it has
    # been `put`.
    cdef void hide(self, Py_ssize_t slot) noexcept nogil
    cdef Py_ssize_t show(self, int32_t member) noexcept nogil
    # Whether a new list is better than one that is mended.
    cdef bint has_many_strays(self) noexcept nogil
    cdef void unchain(self, Py_ssize_t slot) noexcept nogil
    cdef bint resize(self, Py_ssize_t slot, int32_t count) noexcept nogil
    cdef bint enter(self, Py_ssize_t slot, int32_t partner, const int32_t* id) noexcept nogil
    cdef void join(self, World* world, Py_ssize_t slot) noexcept nogil
    # A change has put a member at x (3,), if it is one; `positions` is to be set when all have been.
    cdef void put(self, World* world, Py_ssize_t member, const double* x) noexcept nogil
    # A member that was `put` has become larger than cells allow: it is near everything from now on.
    cdef void loosen(self, Py_ssize_t member) noexcept nogil
