"""Filaments with room for more nodes than they have: which of these are there, and tables of those alone.

A filament has a row of places, `slots`, for as many nodes as there is room for. Those that are there follow on one
another somewhere in it. Loops over what there is room for would cost as much as if all were there; so loops over nodes
and links go through tables that hold no others. They are made again when nodes have come, gone or moved, and of
filaments that are as they were nothing is looked at. Tables depend on the state alone.
"""
import numpy as np

from libc.stdint cimport int32_t

from medyanpy._kernels.core.program cimport ROW_CHANGES, World


cdef class PresentChains:
    """slots (filaments, width): places of nodes."""

    def __init__(self, const int32_t[:, ::1] slots not None):
        cdef Py_ssize_t n = slots.shape[0]
        places = np.asarray(slots)
        self.slots = slots
        self.first = np.zeros(n, np.int32)
        self.count = np.zeros(n, np.int32)
        self.low = places.min(initial=0) if n == 0 else places.min()
        of = np.full(places.max(initial=self.low) - self.low + 1, -1, np.int32)
        of[places - self.low] = np.arange(n)[:, None]
        self.filament_of = of
        self.living = self.written = -1

    cdef bint find(self, World* world) noexcept nogil:
        cdef long long k, last = world.living[0]
        cdef Py_ssize_t i, place
        cdef bint known = self.written == world.written and 0 <= last - self.living <= ROW_CHANGES
        cdef bint changed = False
        if known and self.living == last:
            return False
        for k in range(self.living + 1, last + 1 if known else 0):
            place = world.row_changes[k % ROW_CHANGES].place
            if place < 0:
                known = False
                break
            if 0 <= place - self.low < self.filament_of.shape[0] and self.filament_of[place - self.low] >= 0:
                self.look(world, self.filament_of[place - self.low])
                changed = True
        for i in range(0 if known else self.slots.shape[0]):
            self.look(world, i)
        self.living = last
        self.written = world.written
        return changed or not known

    cdef void look(self, World* world, Py_ssize_t filament) noexcept nogil:
        cdef const int32_t* slot = &self.slots[filament, 0]
        cdef Py_ssize_t k = 0, width = self.slots.shape[1]
        while k < width and not world.alive[slot[k]]:
            k += 1
        self.first[filament] = <int32_t> k
        while k < width and world.alive[slot[k]]:
            k += 1
        self.count[filament] = <int32_t> (k - self.first[filament])


cdef class PresentRows(PresentChains):

    def __init__(self, const int32_t[:, ::1] slots not None):
        super().__init__(slots)
        self.node = np.full(slots.shape[0] * slots.shape[1] + 4, self.low, np.int32)
        self.start = np.zeros(slots.shape[0], np.int32)
        self.nodes = np.zeros(slots.shape[0], np.int32)

    cdef void list_rows(self, World* world) noexcept nogil:
        cdef Py_ssize_t i, k, n = 2
        if not self.find(world):
            return
        self.filaments = 0
        for i in range(self.slots.shape[0]):
            if self.count[i] > 0:
                self.start[self.filaments] = <int32_t> (n - 2)
                self.nodes[self.filaments] = self.count[i]
                self.filaments += 1
            for k in range(self.count[i]):
                self.node[n] = self.slots[i, self.first[i] + k]
                n += 1
        self.rows = n - 2
        # A last node has no link that leads on, so that there is no joint in the rows beside the table.
        for k in range(2 if n > 2 else 0):
            self.node[k] = self.node[n + k] = self.node[n - 1]


cdef class PresentLanes(PresentChains):
    """lanes of a vector, and segments of a long filament, of which there is none here: there is room for no more links
    than one piece has, see constraints.pxi."""

    def __init__(self, const int32_t[:, ::1] slots not None, int lanes, int segments):
        cdef Py_ssize_t n = slots.shape[0], width = slots.shape[1]
        cdef Py_ssize_t batches = n // lanes + lanes, entries = (n + lanes) * (width + 2 * lanes)
        super().__init__(slots)
        self.lanes = lanes
        self.step, self.links, self.start = (np.zeros(batches, np.int32) for _ in range(3))
        self.node, self.owned = (np.zeros(entries, np.int32) for _ in range(2))
        self.square = np.zeros(entries)
        self.order = np.zeros(n, np.int32)
        self.starts = np.zeros(width + 2, np.int32)
        # As struct Filaments has them; no lane has a next one, and nodes have no directors.
        self.tables = (
            np.ones(batches, np.int32), self.step, self.links, self.start, self.node, self.node, self.square,
            self.square, self.owned, np.full((batches, segments), -1, np.int32), np.zeros(batches, np.int32),
        )

    cdef void spread(self, World* world) noexcept nogil:
        cdef Py_ssize_t i, n, few, together, width = self.slots.shape[1], entries = 0
        cdef int step
        if not self.find(world):
            return
        # Filaments of similar length run together: in the order of how many nodes they have, the longest first.
        for i in range(width + 2):
            self.starts[i] = 0
        for i in range(self.slots.shape[0]):
            self.starts[width - self.count[i] + 1] += 1
        for i in range(1, width + 2):
            self.starts[i] += self.starts[i - 1]
        # Without those that are not there.
        n = self.starts[width]
        for i in range(self.slots.shape[0]):
            self.order[self.starts[width - self.count[i]]] = <int32_t> i
            self.starts[width - self.count[i]] += 1
        # Each of the remaining filaments alone takes about twice its share of a full vector.
        few = n % self.lanes
        if 2 * few > self.lanes:
            few = 0
        together = n - few
        i = 0
        self.batches = 0
        while i < n:
            step = self.lanes if i < together else 1
            self.step[self.batches] = step
            self.links[self.batches] = self.count[self.order[i]] - 1
            if step == 1:
                # In whole vectors.
                self.links[self.batches] = (self.links[self.batches] + self.lanes - 1) // self.lanes * self.lanes
            self.start[self.batches] = <int32_t> entries
            self.fill(self.batches, i, <int> min(step, n - i), entries)
            entries += (step * (self.links[self.batches] + 1) + self.lanes - 1) // self.lanes * self.lanes
            self.batches += 1
            i += step

    cdef void fill(self, Py_ssize_t batch, Py_ssize_t leader, int lanes, Py_ssize_t entries) noexcept nogil:
        cdef Py_ssize_t k, row, at, filament, step = self.step[batch]
        cdef Py_ssize_t rows = self.links[batch] + 1 if step > 1 else self.links[batch] + self.lanes
        cdef const int32_t* slot
        cdef bint there
        for k in range(step):
            # An empty lane reads a place nevertheless.
            filament = self.order[leader + (k if k < lanes else 0)]
            slot = &self.slots[filament, self.first[filament]]
            for row in range(rows):
                at = entries + step * row + k
                there = k < lanes and row < self.count[filament]
                self.node[at] = slot[row if there else 0]
                self.owned[at] = there
                # Of links that are there, lengths are taken from their subunits.
                self.square[at] = 1.0 if there and row < self.count[filament] - 1 else 0.0
