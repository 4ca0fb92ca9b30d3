"""Which beads are there, and room for more: what becomes of rows that are born and die.

A row asleep has no mass, no inverse mass, no friction, no noise and no velocity. So letters leave it where it is, like
a bead that is fixed, and sums over all beads do not see it; forces pass it over by `World.alive`. All numbers by place
that depend on whether a bead is there (its mass, the coefficients of its thermostat) follow from `alive`: they are
made anew for one place when it is born or dies, and for all when a state has been taken over.

The same holds for what a bead is: numbers of a handle with species are those of the species, and follow it.

State: `alive`, `ids`, `next_id`, and `species`. Ids count up, and none is given twice.
"""
import numpy as np

from libc.stdlib cimport free, realloc

from medyanpy._kernels.core.program cimport ROW_CHANGES, RowChange, Momenta, NO_ROOM, mark_moved

# Random numbers are keyed by 48 bits of an id.
cdef int64_t END_OF_IDS = 1LL << 48


cdef class Room(Operation):
    """Which of n places have a bead, and what its permanent id is.

    Parameters
    ----------
    alive : (n,) int8
    ids : (n,) int64
        -1 of rows asleep.
    next_id : (1,) int64
        The id of the next that is born.
    species : (n,) int32, optional
        Where beads of handles with species are: which, counted from 0.
    table : (n,) int32
        Where the numbers of their first species stand in what `follow` is given; -1 of other beads.
    """

    def __init__(self, signed char[::1] alive, int64_t[::1] ids, int64_t[::1] next_id, int32_t[::1] species=None,
                 const int32_t[::1] table=None):
        n = alive.shape[0]
        self.alive = alive
        self.ids = ids
        self.next_id = next_id
        self.low = np.zeros(n, np.int32)
        self.high = np.zeros(n, np.int32)
        self.living = np.ones(1, np.int64)
        self.kept = []
        self.species = species
        self.table = table

    def __dealloc__(self):
        free(self.waking)

    def follow(self, double[::1] now, const double[::1] awake, double asleep, Py_ssize_t first=0, Py_ssize_t width=1):
        """Let numbers by place, `width` for each from place `first` on, be those of beads that are there, or of rows
        asleep, from now on."""
        cdef Waking* grown = <Waking*> realloc(self.waking, (self.n_waking + 1) * sizeof(Waking))
        if grown == NULL:
            raise MemoryError
        self.waking = grown
        self.waking[self.n_waking] = Waking(&now[0], &awake[0], asleep, first, now.shape[0] // width, width)
        self.n_waking += 1
        self.kept.append((now, awake))

    def forget(self, Py_ssize_t n):
        """Follow the first n of these only."""
        del self.kept[n:]
        self.n_waking = min(n, self.n_waking)

    @property
    def version(self):
        """Another number whenever a bead has been born or has died."""
        return self.living[0]

    cdef int run(self, World* world) noexcept nogil:
        """The state is another one: all that follows from it is made anew."""
        cdef Py_ssize_t i
        world.alive = &self.alive[0]
        world.living = &self.living[0]
        world.row_changes = self.row_changes
        world.id = &self.low[0]
        world.id_high = NULL
        world.species = NULL if self.species is None else &self.species[0]
        for i in range(world.n):
            self.settle(world, i)
        self.living[0] += 1
        self.row_changes[self.living[0] % ROW_CHANGES].place = -1
        return 0

    cdef void note(self, World* world, Py_ssize_t place) noexcept nogil:
        cdef RowChange* entry
        self.living[0] += 1
        entry = &self.row_changes[self.living[0] % ROW_CHANGES]
        entry.place = place
        entry.before = world.positions
        mark_moved(world)
        entry.after = world.positions

    cdef void settle(self, World* world, Py_ssize_t place) noexcept nogil:
        cdef Waking* w
        cdef Py_ssize_t k, row, entry, c
        cdef bint of_species = self.species is not None and self.table[place] >= 0
        for k in range(self.n_waking):
            w = &self.waking[k]
            row = place - w.first
            if not 0 <= row < w.m:
                continue
            # Entries of species are counted behind those of all places.
            entry = w.m + self.table[place] - world.n + self.species[place] if of_species else row
            for c in range(w.width):
                w.now[w.width * row + c] = w.awake[w.width * entry + c] if self.alive[place] else w.asleep
        self.low[place] = <int32_t> self.ids[place]  # its lower bits
        self.high[place] = <int32_t> (self.ids[place] >> 32) if self.alive[place] else 0
        if self.high[place] != 0:
            world.id_high = &self.high[0]

    cdef Py_ssize_t free_place(self, const int32_t* places, Py_ssize_t n) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(n):
            if not self.alive[places[k]]:
                return places[k]
        return -1

    cdef int wake(self, World* world, Py_ssize_t place, const double* x, const double* v) noexcept nogil:
        cdef int c
        if self.alive[place] or self.next_id[0] >= END_OF_IDS:
            world.fault.bead = place
            return NO_ROOM
        self.alive[place] = 1
        self.ids[place] = self.next_id[0]
        self.next_id[0] += 1
        for c in range(3):
            if place < world.n_cartesian:
                world.x[3 * place + c] = x[c]
            world.v[3 * place + c] = v[c]
        self.settle(world, place)
        self.note(world, place)
        return 0

    cdef void become(self, World* world, Py_ssize_t place, int32_t species) noexcept nogil:
        self.species[place] = species
        self.settle(world, place)
        self.note(world, place)

    cdef void put_to_sleep(self, World* world, Py_ssize_t place) noexcept nogil:
        cdef Momenta* m
        cdef Py_ssize_t k
        cdef int c
        self.alive[place] = 0
        self.ids[place] = -1
        for c in range(3):
            world.v[3 * place + c] = 0.0
        for k in range(world.n_momenta):
            m = &world.momenta[k]
            if m.first <= place < m.first + m.n:
                for c in range(m.width):
                    m.p[m.width * (place - m.first) + c] = 0.0
        self.settle(world, place)
        self.note(world, place)

    cdef void move(self, World* world, Py_ssize_t source, Py_ssize_t target) noexcept nogil:
        cdef int c
        self.alive[target] = 1
        self.ids[target] = self.ids[source]
        for c in range(3):
            world.x[3 * target + c] = world.x[3 * source + c]
            world.v[3 * target + c] = world.v[3 * source + c]
        self.settle(world, target)
        self.note(world, target)
        self.put_to_sleep(world, source)
