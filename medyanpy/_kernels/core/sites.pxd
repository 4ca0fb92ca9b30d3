"""Sites: the places that forces act on, as one table over beads. See sites.pyx."""
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t

from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.program cimport AddBlock, World, is_one_of, is_there
from medyanpy._kernels.core.vec3 cimport add_scaled, cross


cdef enum:
    # Sites on filaments that grow, as these are now: there are some; just beyond an end, straight on; further away, or
    # of filaments that are not there, nowhere. All others stay what they are.
    STAYS = 0
    HERE = 1
    BEYOND = 2
    PARKED = 3


# What a loop over sites sees after `gather`. Where sites are beads, these are the world's own arrays.
cdef struct SiteArrays:
    const double* x           # (n, 3)
    double* f                 # (n, 3) forces are added here; `scatter` passes them on
    const int32_t* id         # (n,) what sums are ordered by
    const int32_t* bead       # (n,) place of a site's first bead, for reports, -1 of anchors; NULL: sites are beads
    const int64_t* wanted     # (n,) of beads: bits of the species that count, -1: any; NULL: all count
    const unsigned char* there  # (n,) as of SiteRows


cdef inline bint is_asleep(const World* world, const SiteArrays* sites, Py_ssize_t row) noexcept nogil:
    """Whether no bead that counts is at a site, or at the first place of one."""
    cdef Py_ssize_t place
    if sites.there != NULL and sites.there[row] != STAYS:
        return sites.there[row] == PARKED
    if world.alive == NULL:
        return False
    if sites.wanted != NULL:
        return not is_one_of(world, row, sites.wanted[row])
    place = row if sites.bead == NULL else sites.bead[row]
    return place >= 0 and not is_there(world, place)


cdef struct SiteRows:
    Py_ssize_t n
    const int32_t* start      # (n + 1,)
    const int32_t* bead
    const double* weight
    const int32_t* oriented   # (n,) row of the oriented bead that carries the arm, -1 of sites without; or NULL
    const double* arm         # (n, 3) in the frame of that body; or NULL
    # Where sites are on filaments that grow: how far from where these began, in subunits, between the two beads; NULL
    # where none are.
    const unsigned char* there  # (n,)
    const double* along       # (n,)
    double* x
    double* f
    # The transpose: for every bead that occurs, and every body with arms, its sites in ascending order.
    Py_ssize_t n_owners
    const int32_t* owner
    const int32_t* owner_start
    const int32_t* owner_site
    const double* owner_weight
    Py_ssize_t n_bodies
    const int32_t* body
    const int32_t* body_start
    const int32_t* body_site


cdef inline bint is_on_growing(const SiteRows* t, Py_ssize_t i) noexcept nogil:
    return t.there != NULL and t.there[i] != STAYS


cdef inline void rotate(double w, const double* u, const double* v, double* out) noexcept nogil:
    """out = R v for the unit quaternion (w, u); with -u, R^T v."""
    cdef double a[3]
    cdef double b[3]
    cdef int c
    cross(u, v, a)
    cross(u, a, b)
    for c in range(3):
        out[c] = v[c] + 2.0 * (w * a[c] + b[c])


cdef inline void where(const SiteRows* t, const World* world, Py_ssize_t i, double* out) noexcept nogil:
    """Where a site is now."""
    cdef const double* origin
    cdef const double* q
    cdef double d[3]
    cdef double sum[3]
    cdef double low
    cdef Py_ssize_t k
    cdef int c
    if is_on_growing(t, i):
        if t.there[i] == PARKED:
            out[0] = out[1] = out[2] = INFINITY
            return
        # By the length of the link as it is now, also within a change that is tried.
        k = t.start[i]
        origin = world.x + 3 * <Py_ssize_t> t.bead[k]
        low = world.material[t.bead[k]]
        displacement(&world.box, origin, world.x + 3 * <Py_ssize_t> t.bead[k + 1], d)
        low = (t.along[i] - low) / (world.material[t.bead[k + 1]] - low)
        for c in range(3):
            out[c] = origin[c] + low * d[c]
        return
    if t.start[i] == t.start[i + 1]:
        # An anchor: its row was written when the table was made.
        for c in range(3):
            out[c] = t.x[3 * i + c]
        return
    origin = world.x + 3 * <Py_ssize_t> t.bead[t.start[i]]
    sum[0] = sum[1] = sum[2] = 0.0
    for k in range(t.start[i] + 1, t.start[i + 1]):
        displacement(&world.box, origin, world.x + 3 * <Py_ssize_t> t.bead[k], d)
        add_scaled(t.weight[k], d, sum)
    if t.oriented != NULL and t.oriented[i] >= 0:
        q = world.orientation + 4 * <Py_ssize_t> t.oriented[i]
        rotate(q[0], q + 1, t.arm + 3 * i, d)
        add_scaled(1.0, d, sum)
    for c in range(3):
        out[c] = origin[c] + sum[c]


# The places of a lattice on the filaments of a handle that grow: place m of filament i, `spacing` m subunits from where
# it began, is site[i, m mod width].
cdef class Places:
    cdef const int32_t[:, ::1] nodes
    cdef readonly object nodes_of, site_of
    cdef const int32_t[:, ::1] site
    cdef const int32_t[::1] filament  # by place: of nodes, else -1
    cdef readonly int64_t spacing
    # The first place from so many subunits on.
    cdef int64_t first(self, int64_t low) noexcept nogil
    # The first of `width` places in the middle of which a filament is.
    cdef int64_t window(self, int64_t low, int64_t high) noexcept nogil
    cdef Py_ssize_t row(self, Py_ssize_t filament, int64_t m) noexcept nogil


cdef class SiteTable:
    cdef readonly bint are_beads
    cdef readonly bint has_arms
    cdef SiteArrays now
    cdef SiteRows rows
    cdef list arrays
    cdef int32_t[::1] rank    # by place, of owners; empty where nothing has been regrouped
    # Where sites are on filaments that grow: their places, and what of which World they are those of.
    cdef readonly list places
    cdef long long world, written, grown
    cdef long long version    # another one whenever they are others

    # Sites on filaments that grow are where these have them now.
    cdef void follow(self, World* world) noexcept nogil
    cdef void catch_up(self, World* world) noexcept
    cdef void settle(self, World* world, Places places, Py_ssize_t filament) noexcept nogil
    cdef bint is_here(self, Py_ssize_t site) noexcept nogil

    # Become a table of some sites of another, which it has room for: site (n,) which; slot where each of all is here,
    # or -1; rank by place of their beads, which owner it is; count, of owners, zeros before and afterwards.
    cdef void take(
        self, const SiteRows* whole, const int32_t* site, Py_ssize_t n, const int32_t* slot, const int32_t* rank,
        int32_t* count,
    ) noexcept nogil
    # Every site is one bead, `rows.bead`, and some have become others of those that there are.
    cdef void regroup(self) noexcept nogil
    # Positions of now into now.x, and zero forces into now.f.
    cdef int gather(self, World* world) noexcept nogil
    # The same of one site, and where it is; of that place alone.
    cdef void refresh(self, World* world, Py_ssize_t site) noexcept nogil
    cdef void place(self, World* world, Py_ssize_t site, double* out) noexcept nogil
    # Which owner the bead at a place is, -1 where it is in no site; of a table of its own.
    cdef Py_ssize_t owner_of(self, int32_t place) noexcept nogil
    # The forces in now.f onto beads and bodies.
    cdef int scatter(self, World* world) noexcept nogil

    # Terms c_i x_i of the vector from site a to site b, and one of them.
    cdef Py_ssize_t n_terms(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil
    cdef double term(self, Py_ssize_t a, Py_ssize_t b, Py_ssize_t p, Py_ssize_t* bead) noexcept nogil
    # For higher derivatives of an energy of d = x_b - x_a of two sites without arms: d = sum_i c_i x_i over beads.
    # Give the blocks c_i c_j K, K = d2U/dd2 (3, 3).
    cdef int add_pair(self, Py_ssize_t a, Py_ssize_t b, const double* k, AddBlock add, void* sink) noexcept nogil
    # The same of one site: the blocks w_i w_j K of x = sum_i w_i x_i.
    cdef int add_single(self, Py_ssize_t site, const double* k, AddBlock add, void* sink) noexcept nogil
    # out (3,) = sum_i c_i v_i, of v by place.
    cdef void difference(self, Py_ssize_t a, Py_ssize_t b, const double* v, double* out) noexcept nogil
    # out_i += c_i t, of out by place.
    cdef void share(self, Py_ssize_t a, Py_ssize_t b, const double* t, double* out) noexcept nogil
    # Of an energy of two vectors, d from site ends[0] to ends[1] and e from ends[2] to ends[3]: the blocks of
    # K = d2U/dd de (3, 3), and of its transpose. Those of d and of e alone come from `add_pair`.
    cdef int add_mixed(self, const Py_ssize_t* ends, const double* k, AddBlock add, void* sink) noexcept nogil
    # `difference` and `share` of one site: out (3,) = sum_i w_i v_i, and out_i += w_i t.
    cdef void mean(self, Py_ssize_t site, const double* v, double* out) noexcept nogil
    cdef void share_single(self, Py_ssize_t site, const double* t, double* out) noexcept nogil


# Of many sites some, which are others every now and then: a table of their own.
cdef class SomeSites:
    cdef readonly SiteTable sites
    cdef SiteTable whole
    cdef Py_ssize_t n
    cdef int32_t* site            # (n,) which of all each is, none of them twice
    cdef int32_t* slot            # of each of all sites, its row in this table; -1 of those that are not in it
    cdef const int32_t* rank      # by place of a bead of sites, which owner it is
    cdef int32_t* count           # (owners,) work space
    cdef list held

    # Be the table of those that are wanted now.
    cdef void follow(self, World* world) noexcept nogil
    # For `follow`: none is in the table; and all of `site` are.
    cdef void empty(self) noexcept nogil
    cdef void fill(self) noexcept nogil


cdef class LinkedSites(SomeSites):
    cdef readonly object start_of, partner_of, state_of
    cdef int32_t* start           # (n + 1,) where its partners start
    cdef int32_t* partner         # by row of this table
    cdef int32_t* state           # likewise, of the link
    cdef const int32_t[::1] states
    cdef const int32_t[::1] others
    cdef const int32_t[::1] ends
    cdef const int64_t[::1] changes
    cdef Py_ssize_t slots
    # Of which world, and as of which state of it, the table is.
    cdef int64_t seen
    cdef long long version        # of the sites
    cdef long long world
    cdef long long written
