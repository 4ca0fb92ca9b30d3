"""Ends of the filaments of one handle, for the jumps that act on them.

Where nodes come and go, ends are looked for once beads have been created or removed, or arrays written to from outside:
those of the filaments that this concerns, where that is known.
"""
import numpy as np

from cpython.ref cimport PyObject
from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc

from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.capacity cimport Room
from medyanpy._kernels.core.elementary cimport acos_, atan2_, exp_, log_, sincos_
from medyanpy._kernels.core.program cimport ROW_CHANGES, World, mark_grown
from medyanpy._kernels.core.vec3 cimport dot
from medyanpy._kernels.jumps.jump cimport Draws, draw_maxwell


cdef enum:
    # Of the integral of a joint, by Gauss' formula of five points in each.
    PANELS = 12

# Beyond so many kT joints are not integrated.
cdef double MOST_ENERGY = 30.0
cdef double PI = 3.141592653589793
cdef double[5] NODES = [-0.9061798459386640, -0.5384693101056831, 0.0, 0.5384693101056831, 0.9061798459386640]
cdef double[5] SHARES = [0.2369268850561891, 0.4786286704993665, 0.5688888888888889, 0.4786286704993665,
                         0.2369268850561891]


cdef double joint_energy(const Joint* joint, double length, const double* before, const double* after) noexcept nogil:
    cdef double cosine = dot(before, after) / sqrt(dot(before, before) * dot(after, after))
    cosine = max(-1.0, min(1.0, cosine))
    return (joint.modulus - joint.straight * cosine - joint.bent * sqrt(1.0 - cosine * cosine)) / length


cdef double log_integral(const Joint* joint, double length, double kT, double q) noexcept nogil:
    """The logarithm of z."""
    cdef double stiffness = sqrt(joint.straight * joint.straight + joint.bent * joint.bent)
    cdef double a = stiffness / (length * kT)
    cdef double rest, width, low, high, half, theta, total = 0.0
    cdef double sine, cosine, sine_off, cosine_off
    cdef int panel, i
    if not a > 0.0 and not q > 0.0:
        return -joint.modulus / (length * kT)
    rest = atan2_(joint.bent, joint.straight)
    width = acos_(1.0 - MOST_ENERGY / a) if MOST_ENERGY < 2.0 * a else PI
    low = max(0.0, rest - width)
    high = min(PI, rest + width)
    half = (high - low) / (2 * PANELS)
    for panel in range(PANELS):
        for i in range(5):
            theta = low + half * (2 * panel + 1 + NODES[i])
            sincos_(theta, &sine, &cosine)
            sincos_(0.5 * (theta - rest), &sine_off, &cosine_off)
            total += SHARES[i] * exp_(-2.0 * a * sine_off * sine_off) * sqrt(1.0 - q * cosine * cosine) * sine
    return log_(half * total) - (joint.modulus - stiffness) / (length * kT)


cdef class PlaceKeeper:
    """Base of those who know what is held at places on filaments."""

    cdef bint is_taken(self, Py_ssize_t row) noexcept nogil:
        return False

    cdef void shift(self, Py_ssize_t row, Py_ssize_t to) noexcept nogil:
        pass

    cdef bint holds(self, Py_ssize_t filament, int64_t low, int64_t high) noexcept nogil:
        cdef Py_ssize_t row
        cdef int64_t m
        for m in range(self.places.first(low), self.places.first(high + 1)):
            row = self.places.row(filament, m)
            if row >= 0 and self.is_taken(row):
                return True
        return False

    cdef int let_go(self, World* world, double start, double after, Py_ssize_t filament, int64_t at,
                    double* energy) noexcept nogil:
        return 0

    cdef bint links(self, Py_ssize_t filament, Py_ssize_t other) noexcept nogil:
        return False

    cdef void move(self, World* world, Py_ssize_t filament, int64_t low, int64_t high,
                   Py_ssize_t other, int64_t by) noexcept nogil:
        cdef Py_ssize_t row, to
        cdef int64_t m
        for m in range(self.places.first(low), self.places.first(high + 1)):
            row, to = self.places.row(filament, m), self.places.row(other, m + by // self.places.spacing)
            if row >= 0 and to >= 0:
                self.shift(row, to)


cdef class FilamentEnds:
    """Ends of filaments, in any order.

    Parameters
    ----------
    rows : (n, 4) int32
        See `End`; where nodes come and go they are found.
    caps : (beads,) int32
        By place, the state: which ends are capped.
    at : (n, 3) int32
        `Place` of each end; the second is found where nodes come and go, and not used elsewhere. There, ends are those
        of all filaments in order, as many of each.
    room : Room, optional
        Where nodes come and go,
    slots : (filaments, width) int32
        with the places that those of each filament may have, in order.
    """

    def __init__(self, int32_t[:, ::1] rows not None, int32_t[::1] caps not None,
                 int32_t[:, ::1] at not None, Room room=None, const int32_t[:, ::1] slots=None):
        self.rows = rows
        self.n = rows.shape[0]
        self.caps = caps
        self.room = room
        self.slots = slots
        self.at = at
        if slots is not None:
            self.room_for = np.zeros((slots.shape[1], 8))
            of = np.full(caps.shape[0], -1, np.int32)
            of[np.asarray(slots)] = np.arange(slots.shape[0])[:, None]
            self.filament_of = of
        self.living = self.seen = -1
        self.keep([])

    def __dealloc__(self):
        free(self.kept)

    def keep(self, list keepers):
        """Ask these, `PlaceKeeper`s, about places that filaments have or leave."""
        cdef Py_ssize_t k
        cdef PyObject** kept = <PyObject**> realloc(self.kept, (len(keepers) + 1) * sizeof(PyObject*))
        if kept == NULL:
            raise MemoryError
        self.kept = kept
        self.keepers = list(keepers)
        self.n_keepers = len(keepers)
        for k in range(self.n_keepers):
            kept[k] = <PyObject*> (<PlaceKeeper?> self.keepers[k])

    def __len__(self):
        return self.n

    cdef const End* end(self, Py_ssize_t k) noexcept nogil:
        return <const End*> &self.rows[k, 0]

    cdef const Place* place(self, Py_ssize_t k) noexcept nogil:
        return <const Place*> &self.at[k, 0]

    cdef void find(self, World* world) noexcept nogil:
        cdef Py_ssize_t i, each, place
        cdef int32_t filament
        cdef long long k, last
        cdef bint known
        if self.slots is None or (self.living == self.room.living[0] and self.seen == world.written):
            return
        last = self.room.living[0]
        known = self.seen == world.written and 0 <= last - self.living <= ROW_CHANGES
        each = self.n // self.slots.shape[0]
        for k in range(self.living + 1, last + 1 if known else 0):
            place = self.room.row_changes[k % ROW_CHANGES].place
            if place < 0:
                known = False
                break
            # Points in triangles, which come behind all others, have no row there.
            filament = self.filament_of[place] if place < self.filament_of.shape[0] else -1
            for i in range(each if filament >= 0 else 0):
                self.find_end(each * filament + i)
        for i in range(0 if known else self.n):
            self.find_end(i)
        self.living = last
        self.seen = world.written

    cdef void find_end(self, Py_ssize_t k) noexcept nogil:
        cdef Place* one = <Place*> &self.at[k, 0]
        cdef End* end = <End*> &self.rows[k, 0]
        cdef const int32_t* slot = &self.slots[one.filament, 0]
        cdef Py_ssize_t j = one.at, width = self.slots.shape[1]
        cdef int outwards = one.step
        if not self.room.alive[slot[j]] or (0 <= j + outwards < width and self.room.alive[slot[j + outwards]]):
            # It is not where it was.
            j = 0 if outwards < 0 else width - 1
            while 0 <= j < width and not self.room.alive[slot[j]]:
                j -= outwards
        end[0] = End(-1, -1, -1, -1)
        if not 0 <= j < width:
            return
        one.at = <int32_t> j
        end.node = slot[j]
        end.before = slot[j - outwards]
        end.link = end.before if outwards > 0 else end.node
        j -= 2 * outwards
        if 0 <= j < width and self.room.alive[slot[j]]:
            end.inner = slot[j] if outwards > 0 else slot[j - 1]

    cdef bint is_held(self, Py_ssize_t filament, int64_t low, int64_t high) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.n_keepers):
            if (<PlaceKeeper> self.kept[k]).holds(filament, low, high):
                return True
        return False

    cdef bint is_blocked(self, Py_ssize_t filament, int64_t at) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.n_keepers):
            if not (<PlaceKeeper> self.kept[k]).unbinds and (<PlaceKeeper> self.kept[k]).holds(filament, at, at):
                return True
        return False

    cdef int let_go(self, World* world, double start, double after, Py_ssize_t filament, int64_t at,
                    double* energy) noexcept nogil:
        cdef Py_ssize_t k
        cdef int n = 0
        for k in range(self.n_keepers):
            if (<PlaceKeeper> self.kept[k]).unbinds:
                n += (<PlaceKeeper> self.kept[k]).let_go(world, start, after, filament, at, energy)
        return n

    cdef void hand_over(self, World* world, Py_ssize_t filament, int64_t low, int64_t high,
                        Py_ssize_t other, int64_t by) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.n_keepers):
            (<PlaceKeeper> self.kept[k]).move(world, filament, low, high, other, by)

    cdef bint is_in_step(self, int64_t by) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.n_keepers):
            if by % (<PlaceKeeper> self.kept[k]).places.spacing != 0:
                return False
        return True

    cdef bint are_linked(self, Py_ssize_t filament, Py_ssize_t other) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.n_keepers):
            if (<PlaceKeeper> self.kept[k]).links(filament, other):
                return True
        return False

    cdef void find_chain(self, Py_ssize_t filament, Py_ssize_t* first, Py_ssize_t* last) noexcept nogil:
        cdef const int32_t* slot = &self.slots[filament, 0]
        first[0] = 0
        last[0] = self.slots.shape[1] - 1
        while first[0] < last[0] and not self.room.alive[slot[first[0]]]:
            first[0] += 1
        while last[0] > first[0] and not self.room.alive[slot[last[0]]]:
            last[0] -= 1

    cdef Py_ssize_t free_filament(self) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.n):
            if self.rows[i, 0] < 0:
                return self.at[i, 0]
        return -1

    cdef bint shift(self, World* world, Py_ssize_t filament, int step) noexcept nogil:
        cdef Py_ssize_t first, last, by
        self.find_chain(filament, &first, &last)
        # Half of what is free, so that it is seldom.
        by = (first + 1) // 2 if step > 0 else (self.slots.shape[1] - last) // 2
        if by > 0:
            self.shift_by(world, filament, by, step)
        return by > 0

    cdef void shift_by(self, World* world, Py_ssize_t filament, Py_ssize_t by, int step) noexcept nogil:
        cdef const int32_t* slot = &self.slots[filament, 0]
        cdef Py_ssize_t first, last, i, k
        self.find_chain(filament, &first, &last)
        for i in range(last + 1 - first):
            # The foremost goes first.
            k = first + i if step > 0 else last - i
            self.move(world, slot[k], slot[k - step * by])
        mark_grown(world, slot[first])

    cdef void move(self, World* world, int32_t source, int32_t target) noexcept nogil:
        self.room.move(world, source, target)
        world.subunits[target] = world.subunits[source]
        world.material[target] = world.material[source]
        self.caps[target] = self.caps[source]
        world.subunits[source] = world.material[source] = self.caps[source] = 0

    cdef int64_t subunits_of(self, World* world, Py_ssize_t filament) noexcept nogil:
        cdef Py_ssize_t k
        cdef int64_t n = 0
        for k in range(self.slots.shape[1]):
            n += max(0, world.subunits[self.slots[filament, k]])
        return n

    cdef double kinetic(self, World* world, Py_ssize_t filament) noexcept nogil:
        """The kinetic energy of a filament."""
        cdef const int32_t* slot = &self.slots[filament, 0]
        cdef double total = 0.0
        cdef Py_ssize_t i
        for i in range(self.slots.shape[1]):
            if self.room.alive[slot[i]]:
                total += 0.5 * world.mass[slot[i]] * dot(world.v + 3 * slot[i], world.v + 3 * slot[i])
        return total

    cdef void draw_velocities(self, World* world, Py_ssize_t filament, double kT, Draws* draws) noexcept nogil:
        """Maxwell's distribution, on what is tangent to the links of a filament."""
        cdef const int32_t* slot = &self.slots[filament, 0]
        cdef double root, off
        cdef double* row
        cdef Py_ssize_t i, first, last
        cdef int c
        self.find_chain(filament, &first, &last)
        for i in range(first, last + 1):
            draw_maxwell(draws, kT * world.inverse_mass[slot[i]], world.v + 3 * slot[i])
        # J M^-1 J^T is tridiagonal: rows have the direction of a link, the pivot, what is left, and what is beside.
        for i in range(first, last):
            row = &self.room_for[i, 0]
            displacement(&world.box, world.x + 3 * slot[i], world.x + 3 * slot[i + 1], row)
            root = 1.0 / sqrt(dot(row, row))
            row[4] = 0.0
            for c in range(3):
                row[c] *= root
                row[4] += row[c] * (world.v[3 * slot[i + 1] + c] - world.v[3 * slot[i] + c])
            row[3] = world.inverse_mass[slot[i]] + world.inverse_mass[slot[i + 1]]
            row[5] = 0.0
            if i > first:
                row[5] = -world.inverse_mass[slot[i]] * dot(row, &self.room_for[i - 1, 0])
                off = row[5] / self.room_for[i - 1, 3]
                row[3] -= off * row[5]
                row[4] -= off * self.room_for[i - 1, 4]
        for i in range(last - 1, first - 1, -1):
            row = &self.room_for[i, 0]
            if i < last - 1:
                row[4] -= self.room_for[i + 1, 5] * self.room_for[i + 1, 4]
            row[4] /= row[3]
            for c in range(3):
                world.v[3 * slot[i + 1] + c] -= world.inverse_mass[slot[i + 1]] * row[4] * row[c]
                world.v[3 * slot[i] + c] += world.inverse_mass[slot[i]] * row[4] * row[c]
