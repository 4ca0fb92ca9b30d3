"""Links that bind and let go. See link_binding.pyx."""
from libc.stdint cimport int32_t, int64_t

from medyanpy._kernels.core.neighbors cimport NeighborList, Neighbors
from medyanpy._kernels.core.program cimport World
from medyanpy._kernels.core.sites cimport LinkedSites, SiteRows, SiteTable
from medyanpy._kernels.jumps.jump cimport Draws, JumpOperation


cdef enum:
    BIND = 0
    UNBIND = 1
    # Bounds of pairs by the square of the distance.
    BINS = 512
    # Pairs by bound: those of class c are tried at k_on 2^-c, and have a bound of at most 2^-c; those of the last any.
    CLASSES = 24


cdef struct Rule:
    int kind                  # of the radial function
    double[2] p               # its parameters
    double low                # nm
    double high
    double k_on               # 1/s
    double k_off
    double on_share           # c over kT
    double off_share          # s over kT
    double catch_share        # w
    double slip               # 1 over F_s; 0 where the tension does nothing
    double catch              # 1 over F_c
    double average            # s: over which the tension is averaged; 0: that of the moment
    int driven


cdef struct Pair:
    int32_t i                 # its sites, i < j
    int32_t j
    int32_t bin               # by the square of the distance that they had when pairs were listed


cdef struct Site:
    # Who else holds links at the sites of this jump: another jump, and its row of each site, -1 where it has none.
    const int32_t* row
    const int32_t* end
    const int32_t* held
    Py_ssize_t partners


# How what is at one end of a link goes to the next site.
cdef struct Walk:
    const int32_t* beside     # (n, 2) the site ahead and the one behind, -1: none; -2, twice: what is there stays
    # 1/s, forth and back, at which ends of links would go where that changes no energy, at most.
    double forth
    double back
    double ahead_share        # over kT: of the gain in energy, in the rates of going forth and back
    double behind_share
    bint leaves               # whether it lets go where there is no site ahead


cdef struct Binding:
    Rule rule
    const Neighbors* near
    const SiteRows* rows
    # Beads that are compared with where they were: sites go no further than those between which they lie. Otherwise
    # the sites themselves.
    Py_ssize_t n_watched
    const int32_t* watched    # (n_watched,) places of beads; NULL: the sites
    const int32_t* number     # (m,) of the beads of sites, which of those watched
    double* built             # (n_watched, 3) where they were when pairs were listed
    double* measured          # (n_watched, 3) where they were when links were measured
    # For `_watch`: places of now, NULL for those of the world, and of before.
    const double* now
    const double* since
    double* far               # by block of those watched: the square of how far any has gone
    bint beyond               # for `_copy`: also those just beyond an end that grows, else they are nowhere
    unsigned char* listed     # (n,) whether those on filaments that grow were anywhere then; NULL: there are none
    double* then              # (n, 3) where sites were when pairs were listed
    double slack              # nm: how far the length of a link may differ from the measured one
    long long* start          # (n + 1,) where the pairs of each site start, those with sites of higher number
    Pair* pair                # of each
    double per_bin            # 1 over the width of a bin
    int* class_of             # (BINS,) of pairs; -1 of those that do not come into reach
    const int32_t* label      # (n,) sites of one label are not bound to each other; -1: of none
    Py_ssize_t n
    Py_ssize_t partners
    int32_t* other            # (n p,)
    int32_t* end              # (n,) behind the last filled slot
    # By block of slots, those of links at their lower sites, less the first slot of the block; whether they are known.
    int32_t* live             # (n p,)
    int32_t* n_live
    bint found
    double* rate              # (n p,) 1/s, bounds, of the lower site of each link; of all other slots 0
    double* rates             # by block of slots
    double passed             # of a mean, what is left of it in a letter: exp(-h/average)
    double* mean              # (n p,) pN, at both ends of each link: the mean of U'; NULL where none is taken
    int32_t* state            # (n p,) at both ends of each link: its state; NULL where links have one
    const double* spring      # (states, 2) parameters of links in each
    const int32_t* held       # (n,) how many heads of a bundle hold a site, also without a link; or NULL
    const int32_t* head       # (n,) where there are heads: which one is at a site, 1 or 2, or 0
    double[2] off_part        # of the sum k_off, of each
    Walk walk
    bint walks


# The energy of a link of length r, pN nm, and its tension; and the rate at which it lets go, 1/s.
cdef double energy_of(const Rule* rule, double r, double* tension) noexcept nogil
cdef double off_rate_of(const Rule* rule, double r) noexcept nogil
# That of the link in a slot, of length r: of averaged tensions by their mean.
cdef double off_rate_at(const Binding* t, Py_ssize_t slot, double r) noexcept nogil
# U' (pN): negative where a link pushes.
cdef double slope_of(const Rule* rule, double r) noexcept nogil
# The state of the link in a slot; the energy of a link of length r in a state, and its U'.
cdef int state_of(const Binding* t, Py_ssize_t slot) noexcept nogil
cdef double energy_in(const Binding* t, int state, double r, double* slope) noexcept nogil
cdef double distance_of(const Binding* t, const World* world, Py_ssize_t i, Py_ssize_t j) noexcept nogil


cdef class LinkBinding(JumpOperation):
    cdef readonly SiteTable sites
    cdef readonly bint on_points
    # Of its sites, what tells them apart: an operation that takes over from this one finds its own among them.
    cdef public object table
    # Whose box its reach has to fit into.
    cdef public object layout
    # Jumps before this one with sites of this one, in a context: (jump, its row of each, -1 where it has none).
    cdef public list sharers
    cdef NeighborList neighbors
    cdef Binding task
    cdef list held
    cdef long long pool
    cdef const int32_t* apart_from
    cdef const int32_t* apart
    # Arrays of the state.
    cdef int32_t[::1] other
    cdef int32_t[::1] end
    cdef int64_t[::1] id
    cdef double[::1] mean         # of averaged tensions; of no length where none are
    cdef readonly int32_t[::1] state  # of links with several; of no length where they have one
    cdef readonly Py_ssize_t n_states
    cdef double[:, ::1] spring
    cdef int64_t[::1] numbers     # links bound now, and ever
    cdef double[:, ::1] built     # (n_watched, 3) where those watched were when pairs were listed
    cdef double[:, ::1] measured  # (n_watched, 3) and when links were measured
    cdef int64_t[::1] listed      # (2,) whether they have been; whether links are measured without slack
    cdef readonly LinkedSites linked
    cdef int64_t* n_changes       # another number whenever links have changed
    cdef long long looked_at      # positions of the world for which `moved` is known
    cdef bint moved               # whether one has gone further than since links were measured is allowed
    cdef long long world          # of which world, and as of which state of it, all that is cached here is
    cdef long long written
    cdef bint made                # pairs are those of `built`
    cdef bint rated               # bounds of links are those of `measured`
    cdef bint within              # `measured` is known to be near enough to `built`
    cdef double[3] made_in        # nm; both in a box of these lengths
    cdef double slack             # nm: how far the length of a link may change until links are measured again
    cdef double step              # squares, nm²: how far each may have gone until then,
    cdef double reach             # and until pairs are listed again, less that
    cdef double off_rate          # 1/s: the sum of the bounds of all links
    cdef double most_off          # that a link can ever have
    cdef double most_pairs
    cdef readonly bint needs_pairs  # whether this letter takes pairs from a list
    # By class, one after another, in the order of their sites; how many, and that times 2^-c, added up.
    cdef Pair* pair
    cdef long long[CLASSES] n_pairs
    cdef double weight
    cdef double[BINS] bound       # of exp(-c U / kT), while distances differ by up to `bounded` from those listed
    cdef double bounded           # nm
    cdef double way               # nm: how far they differ until links are measured again
    cdef long long found_at       # of `n_changes`, for which slots of links are known
    cdef Site* sharing
    cdef Py_ssize_t n_sharing

    cdef watch(self)
    cdef void bound_pairs(self) noexcept nogil
    cdef void compute_anew(self) noexcept nogil
    cdef take_places(self, LinkBinding before, theirs, here)
    cdef slots(self)
    cdef Py_ssize_t slot_with(self, int64_t id)
    # What is in a slot is in another one; and nothing is.
    cdef void move(self, Py_ssize_t slot, Py_ssize_t to) noexcept nogil
    cdef void clear(self, Py_ssize_t slot) noexcept nogil
    cdef bint is_full(self, Py_ssize_t i) noexcept nogil
    # Links at a site, of all jumps that share it.
    cdef Py_ssize_t held_at(self, Py_ssize_t i) noexcept nogil
    # Whether, and why, two sites cannot be bound as things are; 0 if they can.
    cdef int refused(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil
    cdef bint is_bound(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil
    cdef bint is_crowded(self, Py_ssize_t i, Py_ssize_t j, Py_ssize_t but) noexcept nogil
    cdef void put(self, Py_ssize_t i, Py_ssize_t j, int64_t id) noexcept nogil
    cdef void take(self, Py_ssize_t i, int64_t id) noexcept nogil
    cdef void join(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil
    # The link in a slot of site i is in a state.
    cdef void turn(self, Py_ssize_t i, Py_ssize_t slot, int state) noexcept nogil
    cdef void part(self, Py_ssize_t i, Py_ssize_t slot) noexcept nogil
    # The first of a letter; then whether, and what, is to be measured again.
    cdef void begin(self, World* world) noexcept nogil
    cdef void look(self, World* world) noexcept nogil
    cdef double gone(self, World* world, const double* now, const double* since) noexcept nogil
    cdef void rate_links(self, World* world) noexcept nogil
    cdef void add_rates(self) noexcept nogil
    cdef void copy(self, World* world, bint beyond) noexcept nogil
    cdef int follow(self, World* world, double h) noexcept nogil
    cdef int list_pairs(self, World* world) noexcept nogil
    cdef void sort_pairs(self) noexcept nogil
    cdef int attempt(self, World* world, double x, double t, Draws* draws) noexcept nogil
    # Bounds do not hold: a walk over them does not end, or a rate is larger.
    cdef int lost(self, World* world) noexcept nogil
    cdef int let_go(self, World* world, double x, double t, Draws* draws) noexcept nogil
    # The slot of one of all links, by the number of its lower site; how many pairs are in the list, of `follow`.
    cdef Py_ssize_t slot_of(self, int64_t k) noexcept nogil
    cdef int64_t pairs_listed(self) noexcept nogil
    # Whether the end i of a link from i to j may be at another site; and bring it there.
    cdef bint may_step(self, Py_ssize_t i, Py_ssize_t j, Py_ssize_t next) noexcept nogil
    cdef void step_end(self, World* world, Py_ssize_t i, Py_ssize_t j, Py_ssize_t next) noexcept nogil
    # Bounds of the links of two sites, and the sums of these; and links there have changed.
    cdef void rate_at(self, World* world, Py_ssize_t i, Py_ssize_t j) noexcept nogil
    cdef void changed_at(self, World* world, Py_ssize_t i, Py_ssize_t j) noexcept nogil

    # For classes with more than links:
    # What is held at a site is let go by what is no part of this process, which books the energy.
    cdef void loosen(self, World* world, double t, Py_ssize_t i, double* energy) noexcept nogil
    # What is held at a site is held at another one, where nothing is.
    cdef void shift(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil
    # Whether two sites cannot be bound since another head is there, or none that could bind.
    cdef bint has_no_room(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil
    # The rate of binding of two sites over k_on, but for energies, at most 1.
    cdef double share_of(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil
    # Bind two sites, lower first, if x is below the factor times the rate over k_on, to which energies leave `most`.
    cdef int try_pair(self, World* world, double t, Py_ssize_t i, Py_ssize_t j, double x, double factor,
                      double most) noexcept nogil
    # Bind two sites, which adds this energy; `there` and `back` are the rates, the former over k_on.
    cdef int bind_pair(self, World* world, double t, Py_ssize_t i, Py_ssize_t j, double energy, double there,
                       double back) noexcept nogil
    # Something happens to the link in a slot, below whose bound x is uniform; or not.
    cdef int leave(self, World* world, double x, double t, Py_ssize_t slot) noexcept nogil
    # Attempts to bind pairs of a list, 1/s, at most; `needs_pairs` is known then, for a letter of this length.
    cdef double most_on(self, double h) noexcept nogil
    # Attempts of other kinds, 1/s; and one of them, of which the sum of the rates passes x.
    cdef double other_rate(self, World* world) noexcept nogil
    cdef int attempt_other(self, World* world, double x, double t, Draws* draws) noexcept nogil
