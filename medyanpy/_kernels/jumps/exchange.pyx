"""Exchange between beads in space and a membrane: landing and leaving, absorption and a reservoir.

A bead over a triangle, at a height between 0 and d on the given side, has a foot there. It lands at the rate lambda for
each of its feet; a point leaves at the rate mu, straight up to a height that is uniform in (0, d). Foot and height map
to space with the Jacobian 1, so that both are in balance with z_bead lambda d = z_point mu, wherever prisms over
triangles leave gaps or overlap: a bead with several feet is met as often as it lands. Likewise a reservoir of
concentration c creates beads at the rate lambda d c per area, and each is removed at lambda for each foot.

Feet are found by a table of the cells that the prisms over triangles are in, made in letters in which a bead is tried.

Attempts come at bounded rates, lambda times the most feet that a bead may have; one that changes the energy is accepted
with min(1, exp(-dU/kT)).

Momenta. Velocities of created beads and points are drawn from Maxwell's distribution. Corners of the triangle keep
theirs, or with `conserved` take the momentum p of the bead as it lands, each by its weight, and give that of the bead
that leaves. Both are maps of Jacobian 1, and p has Maxwell's distribution either way. So what is left is the gain of
kinetic energy of the corners, which the acceptance takes beside dU.
"""
import numpy as np

from libc.math cimport fabs, floor, sqrt
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, realloc

from medyanpy._kernels.beads.points cimport Frame, frame_of
from medyanpy._kernels.beads.points cimport place as derive_places
from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.parallel cimport record_fault
from medyanpy._kernels.core.program cimport OUT_OF_MEMORY, TOO_CROWDED, World
from medyanpy._kernels.core.vec3 cimport cross, dot
from medyanpy._kernels.core.workspace cimport WorkSpace
from medyanpy._kernels.jumps.grounds cimport Ground, Spot
from medyanpy._kernels.jumps.jump cimport Draws, JumpOperation, draw_two, wait
from medyanpy._kernels.jumps.point_reactions cimport Kept, PointReactions


# A triangle in a cell.
cdef struct Entry:
    uint64_t cell
    int32_t face
    int32_t next


cdef struct Foot:
    int32_t face
    double weights[2]
    double height             # along the normal of the triangle


cdef class Feet:
    """Triangles under a place.

    Parameters
    ----------
    faces : (2,) int
        The faces of the membrane: the first, and behind the last.
    most : int
        Feet that a bead may have.
    """
    cdef Py_ssize_t first_face, last_face
    cdef double low, high                 # of heights
    cdef Entry* entries
    cdef Py_ssize_t n_entries, room
    cdef int32_t[::1] head
    cdef double per_cell[3]
    cdef double around[3]                 # cells around a periodic direction, 0 in open ones
    cdef Foot* found
    cdef int most

    def __init__(self, faces, int most):
        cdef Py_ssize_t size = 64
        self.first_face, self.last_face = faces
        while size < 4 * (self.last_face - self.first_face):
            size *= 2
        self.head = np.full(size, -1, np.int32)
        self.most = most
        self.found = <Foot*> realloc(NULL, (most + 1) * sizeof(Foot))
        if self.found == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.entries)
        free(self.found)

    cdef inline uint64_t key(self, const int64_t* cell) noexcept nogil:
        return (<uint64_t> (cell[0] & 0x1FFFFF) << 42) | (<uint64_t> (cell[1] & 0x1FFFFF) << 21) | (
            <uint64_t> (cell[2] & 0x1FFFFF))

    cdef inline Py_ssize_t slot(self, uint64_t key) noexcept nogil:
        return <Py_ssize_t> ((key * <uint64_t> 0x9E3779B97F4A7C15) >> 40) & (self.head.shape[0] - 1)

    cdef inline int64_t wrapped(self, int c, double cell) noexcept nogil:
        if self.around[c] > 0.0:
            cell -= self.around[c] * floor(cell / self.around[c])
        return <int64_t> cell

    cdef bint begin(self, World* world) noexcept nogil:
        """All triangles of now; False: no memory."""
        cdef double low[3]
        cdef double high[3]
        cdef double width = 0.0, area = 0.0
        cdef Frame frame
        cdef Py_ssize_t f
        cdef int c
        for f in range(self.head.shape[0]):
            self.head[f] = -1
        self.n_entries = 0
        for f in range(self.first_face, self.last_face):
            frame_of(&world.box, world.x, world.faces + 3 * f, &frame)
            area += 0.5 * sqrt(frame.nn)
        # As wide as a triangle and the layer are, so that most prisms are in few cells.
        width = 1.5 * sqrt(area / max(1, self.last_face - self.first_face)) + self.high - self.low
        for c in range(3):
            self.per_cell[c] = 1.0 / width
            self.around[c] = 0.0
            if world.box.length[c] > 0.0:
                self.around[c] = max(1.0, floor(world.box.length[c] / width))
                self.per_cell[c] = self.around[c] * world.box.inverse[c]
        for f in range(self.first_face, self.last_face):
            self.bounds(world, f, low, high)
            if not self.add(f, low, high):
                return False
        return True

    cdef void bounds(self, World* world, Py_ssize_t f, double* low, double* high) noexcept nogil:
        """The box around a prism."""
        cdef const double* origin = world.x + 3 * <Py_ssize_t> world.faces[3 * f]
        cdef Frame frame
        cdef double along, a, b
        cdef int c
        frame_of(&world.box, world.x, world.faces + 3 * f, &frame)
        for c in range(3):
            along = frame.n[c] / sqrt(frame.nn) if frame.nn > 0.0 else 0.0
            a, b = min(self.low * along, self.high * along), max(self.low * along, self.high * along)
            low[c] = origin[c] + min(0.0, min(frame.e1[c], frame.e2[c])) + a
            high[c] = origin[c] + max(0.0, max(frame.e1[c], frame.e2[c])) + b
            # Rounding loses no foot.
            along = 1e-9 * (1.0 / self.per_cell[c] + fabs(low[c]) + fabs(high[c]))
            low[c] -= along
            high[c] += along

    cdef bint add(self, Py_ssize_t f, const double* low, const double* high) noexcept nogil:
        """A triangle to all cells that a box is in, each once; False: no memory."""
        cdef int64_t cell[3]
        cdef double first[3]
        cdef double count[3]
        cdef double i, j, k
        cdef Entry* grown
        cdef uint64_t key
        cdef Py_ssize_t slot
        cdef int c
        for c in range(3):
            first[c] = floor(low[c] * self.per_cell[c])
            count[c] = floor(high[c] * self.per_cell[c]) - first[c] + 1.0
            if self.around[c] > 0.0:
                count[c] = min(count[c], self.around[c])
        i = 0.0
        while i < count[0]:
            cell[0] = self.wrapped(0, first[0] + i)
            j = 0.0
            while j < count[1]:
                cell[1] = self.wrapped(1, first[1] + j)
                k = 0.0
                while k < count[2]:
                    cell[2] = self.wrapped(2, first[2] + k)
                    if self.n_entries == self.room:
                        grown = <Entry*> realloc(self.entries, (2 * self.room + 1024) * sizeof(Entry))
                        if grown == NULL:
                            return False
                        self.entries = grown
                        self.room = 2 * self.room + 1024
                    key = self.key(cell)
                    slot = self.slot(key)
                    self.entries[self.n_entries] = Entry(key, <int32_t> f, self.head[slot])
                    self.head[slot] = <int32_t> self.n_entries
                    self.n_entries += 1
                    k += 1.0
                j += 1.0
            i += 1.0
        return True

    cdef int below(self, World* world, const double* x) noexcept nogil:
        """`found`: how many; one more than may be, where there are more."""
        cdef int64_t cell[3]
        cdef uint64_t key
        cdef int32_t at
        cdef int n = 0, c
        for c in range(3):
            cell[c] = self.wrapped(c, floor(x[c] * self.per_cell[c]))
        key = self.key(cell)
        at = self.head[self.slot(key)]
        while at >= 0 and n <= self.most:
            if self.entries[at].cell == key and self.is_foot(world, self.entries[at].face, x, &self.found[n]):
                n += 1
            at = self.entries[at].next
        return n

    cdef bint is_foot(self, World* world, int32_t face, const double* x, Foot* out) noexcept nogil:
        cdef Frame frame
        cdef double d[3]
        cdef double u[3]
        frame_of(&world.box, world.x, world.faces + 3 * <Py_ssize_t> face, &frame)
        if not frame.nn > 0.0:
            return False
        displacement(&world.box, world.x + 3 * <Py_ssize_t> world.faces[3 * <Py_ssize_t> face], x, d)
        out.face = face
        out.height = dot(d, frame.n) / sqrt(frame.nn)
        if not self.low < out.height < self.high:
            return False
        cross(d, frame.e2, u)
        out.weights[0] = dot(u, frame.n) / frame.nn
        cross(frame.e1, d, u)
        out.weights[1] = dot(u, frame.n) / frame.nn
        return out.weights[0] >= 0.0 and out.weights[1] >= 0.0 and (1.0 - out.weights[0]) - out.weights[1] >= 0.0


# What happens, twice that and one more where it is on the inner side.
cdef enum:
    DOWN = 0                  # a bead lands, or is absorbed
    UP = 1                    # a point leaves, or a reservoir creates a bead


cdef class Exchange(JumpOperation):
    """Beads of one species that land on a membrane, or are absorbed by it, and the way back.

    Parameters
    ----------
    name : str
    kT : float
    every : int
    beads : PointReactions
        The beads in space, without reactions.
    points : PointReactions, optional
        What they are in the membrane; none where it absorbs them.
    membrane : Ground
        Of the membrane.
    feet : Feet
    space : WorkSpace
    conserved : bool
        Whether corners take the momentum of what lands, and give it back.
    """
    cdef PointReactions beads, points
    cdef Ground membrane
    cdef Feet feet
    cdef WorkSpace space
    cdef public object layout             # of the context, for what sets the layer
    cdef int32_t bead, point              # species
    cdef bint conserved                   # momentum, between a bead and the corners
    cdef double down                      # 1/s, for each foot
    cdef double affinity_down, affinity_up   # kT: what drives events
    cdef double up                        # 1/s for each point, or 1/(nm^2 s) of a reservoir
    cdef readonly long long[::1] done     # events so far: down outside, down inside, up outside, up inside

    def __init__(self, str name, double kT, int every, PointReactions beads not None, PointReactions points,
                 Ground membrane not None, Feet feet not None, WorkSpace space not None, bint conserved):
        self.describe(name, kT, False, every)
        self.conserved = beads.decides = conserved
        self.beads = beads
        self.points = points
        self.membrane = membrane
        self.feet = feet
        self.space = space
        self.done = np.zeros(4, np.int64)

    def set(self, double kT, bint driven, int32_t bead, int32_t point, double down, double up, affinities, heights):
        """Take the numbers: species, rates and what drives them, kT, and the lowest and the highest height of the
        layer."""
        self.kT = self.beads.kT = kT
        if self.points is not None:
            self.points.kT = kT
        self.driven = driven
        self.bead = bead
        self.point = point
        self.down = down
        self.up = up
        self.affinity_down, self.affinity_up = affinities
        self.feet.low, self.feet.high = heights

    def feel(self, list forces):
        """Take the forces whose energy events change."""
        self.beads.feel(forces)
        if self.points is not None:
            self.points.feel(forces)

    def arrays(self):
        return {**super().arrays(), "done": np.asarray(self.done)}

    def done_so_far(self):
        """Events so far: down outside, down inside, up outside, up inside, read-only."""
        out = np.array(self.done)
        out.flags.writeable = False
        return out

    cdef double rate_down(self) noexcept nogil:
        return self.down * self.feet.most * self.beads.numbers[self.bead]

    cdef double rate_up(self, World* world) noexcept nogil:
        if self.up == 0.0:
            return 0.0
        if self.points is None:
            return self.up * self.membrane.measure(world)
        return self.up * self.points.numbers[self.point]

    cdef int act(self, World* world, double h, Draws* draws) noexcept nogil:
        cdef double u[2]
        cdef double total, down, t = 0.0
        cdef int fault = 0
        cdef bint begun = False
        while fault == 0:
            if not begun:
                self.beads.count(world)
                if self.points is not None:
                    self.points.count(world)
            down = self.rate_down()
            total = down + self.rate_up(world)
            if not wait(draws, total, h, &t, u):
                break
            if not begun:
                begun = True
                fault = derive_places(world)
                if fault == 0 and not self.feet.begin(world):
                    fault = record_fault(world, OUT_OF_MEMORY, -1, -1)
                if fault != 0:
                    return fault
                self.beads.sort(world)
                if self.points is not None:
                    self.points.sort(world)
                self.space.enter(world)
            self.counts[0] += 1
            fault = self.attempt(world, t, UP if u[1] * total >= down else DOWN, draws)
        if begun:
            self.space.leave(world)
            self.beads.seen = world.living[0]
            if self.points is not None:
                self.points.seen = world.living[0]
        return fault

    cdef double give(self, World* world, const Spot* spot, const double* p, double sign) noexcept nogil:
        """Give a momentum to the corners of a triangle, or take it: how much kinetic energy they gain."""
        cdef const int32_t* corners = world.faces + 3 * <Py_ssize_t> spot.face
        cdef double weights[3]
        cdef double* v
        cdef double gained = 0.0, m, change
        cdef int i, c
        weights[0] = (1.0 - spot.weights[0]) - spot.weights[1]
        weights[1], weights[2] = spot.weights[0], spot.weights[1]
        for i in range(3):
            v = world.v + 3 * <Py_ssize_t> corners[i]
            m = world.mass[corners[i]]
            for c in range(3):
                change = sign * weights[i] * p[c] / m
                gained += m * change * (v[c] + 0.5 * change)
                v[c] += change
        return gained

    cdef int attempt(self, World* world, double t, int way, Draws* draws) noexcept nogil:
        cdef Kept before[2]
        cdef double p[3]
        cdef double corners[9]
        cdef double taken = 0.0
        cdef Spot spot
        cdef Foot foot
        cdef Frame frame
        cdef double u[2]
        cdef double second, K = 0.0, old = 0.0, height
        cdef int32_t a = -1
        cdef int64_t id_a = -1, id_b = -1, next_id = self.beads.room.next_id[0]
        cdef Py_ssize_t gone = 0, come = 0
        cdef int n, k, c, fault = 0
        cdef bint accepted
        if way == DOWN:
            a = self.beads.choose(draws, self.bead, &second)
            n = self.feet.below(world, world.x + 3 * <Py_ssize_t> a)
            if n > self.feet.most:
                world.fault.value = <double> n
                return record_fault(world, TOO_CROWDED, a, -1)
            k = <int> (second * self.feet.most)
            if k >= n:
                return 0
            foot = self.feet.found[k]
            height = foot.height
            spot.face = foot.face
            spot.weights[0] = foot.weights[0]
            spot.weights[1] = foot.weights[1]
            id_a = self.beads.room.ids[a]
        else:
            if self.points is None:
                self.membrane.draw_spot(world, draws, &spot)
            else:
                a = self.points.choose(draws, self.point, &second)
                self.membrane.read(world, a, &spot)
                id_b = self.points.room.ids[a]
            draw_two(draws, u)
            height = self.feet.low + u[0] * (self.feet.high - self.feet.low)
            self.membrane.where(world, &spot, spot.x)
            frame_of(&world.box, world.x, world.faces + 3 * <Py_ssize_t> spot.face, &frame)
            for c in range(3):
                spot.x[c] += height * frame.n[c] / sqrt(frame.nn)
        if self.beads.forces.count > 0:
            fault = self.beads.energy_now(world, &old)
            if fault != 0:
                return fault
        self.beads.gained = 0.0
        if self.points is not None:
            self.points.gained = 0.0
        if way == DOWN:
            fault = self.beads.remove(world, a, before, &gone, &K)
            if fault == 0 and self.points is not None:
                fault = self.points.create(world, self.point, &spot, NULL, draws, before + 1, &come, &K)
        else:
            if self.points is not None:
                fault = self.points.remove(world, a, before + 1, &come, &K)
            if fault == 0:
                fault = self.beads.create(world, self.bead, &spot, NULL, draws, before, &gone, &K)
        if fault != 0:
            return fault
        if self.points is not None:
            self.beads.gained += self.points.gained
        if self.conserved:
            for c in range(3):
                p[c] = self.beads.masses[self.bead] * (
                    before[0].v[c] if way == DOWN else world.v[3 * <Py_ssize_t> before[0].place + c])
                for n in range(3):
                    corners[3 * n + c] = world.v[3 * <Py_ssize_t> world.faces[3 * <Py_ssize_t> spot.face + n] + c]
            taken = self.give(world, &spot, p, 1.0 if way == DOWN else -1.0)
            self.beads.gained += taken
        fault = self.beads.decide(world, before[0].place, old, draws, &accepted)
        if fault != 0:
            return fault
        if not accepted:
            if self.conserved:
                for n in range(3):
                    for c in range(3):
                        world.v[3 * <Py_ssize_t> world.faces[3 * <Py_ssize_t> spot.face + n] + c] = corners[3 * n + c]
            if self.points is not None:
                self.points.restore(world, &before[1])
            self.beads.restore(world, &before[0])
            self.beads.room.next_id[0] = next_id
            return 0
        if way == UP:
            id_a = self.beads.room.ids[before[0].place]
        elif self.points is not None:
            id_b = self.points.room.ids[before[1].place]
        self.beads.gained -= taken
        K += taken
        k = 2 * way + (height < 0.0)
        self.done[k] += 1
        return self.happened(
            world, t, k, id_a, id_b, self.beads.gained + K, K,
            self.kT * (self.affinity_down if way == DOWN else self.affinity_up))
