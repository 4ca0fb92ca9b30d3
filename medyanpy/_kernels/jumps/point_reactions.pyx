"""Reactions of points in triangles, with species, along straight lines of the surface.

Two points A and B react at the rate lambda m, where m is the number of straight lines shorter than R between them; one
point comes apart at the rate mu, along a line of uniform direction and of length R sqrt(xi). Flights keep areas, and
what arrives at a place from another one has the density m/(pi R^2), so that both are in balance with
z_A z_B / z_C = mu/(lambda pi R^2) on any mesh: cones, saddles and borders, where lines reflect, need no rules. See
docs/theory/reactions.md.

All straight lines from a point are found by windows: a cone of directions goes through an edge into the next triangle,
which is laid out beside those before; its corner divides the cone in two. Points are looked up by triangle.

Attempts come at bounded rates, each with draws of its own: of MEET and PASS at lambda M for each point A, of which the
share m/M goes on. One that changes the energy is accepted with min(1, exp(-dU/kT)).

Random places: velocities of created points are drawn from Maxwell's distribution in their triangle.
"""
import numpy as np

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc

from medyanpy._kernels.beads.points cimport Frame, frame_of, place_one
from medyanpy._kernels.core.capacity cimport Room
from medyanpy._kernels.core.elementary cimport exp_, log_core, sincos2pi
from medyanpy._kernels.core.parallel cimport record_fault
from medyanpy._kernels.core.program cimport (
    NO_ROOM, OUT_OF_MEMORY, TOO_CROWDED, TOO_FAR, Operation, Program, Sequence, World,
)
from medyanpy._kernels.core.unfold cimport Flat, axes_of, fly_straight, go_across, lay_out
from medyanpy._kernels.core.vec3 cimport dot
from medyanpy._kernels.core.workspace cimport WorkSpace
from medyanpy._kernels.jumps.jump cimport MOST_DRAWS, Draws, JumpOperation, draw_exponential, draw_two
from medyanpy._kernels.jumps.pools cimport PoolCounts

cdef enum:
    MOST_WINDOWS = 4096       # of one point: more, and lines wind around the mesh
    DEEPEST = 512             # windows that wait
    MOST_CROSSINGS = 4096


cdef struct Window:
    Flat flat
    int apex                  # the edge opposite is that which it came through
    double left[2]            # its cone: from left to right, counter-clockwise
    double right[2]


# What a point was before an attempt.
cdef struct Kept:
    int32_t place
    signed char alive
    int64_t id
    int32_t species
    int32_t face
    double weights[2]
    double x[3]
    double v[3]


cdef class PointReactions(JumpOperation):
    """Reactions of the points of one handle.

    Parameters
    ----------
    name : str
    kT : float
    driven : bool
    every : int
    room : Room
    places : (n,) int32
        Of the points and of inactive rows, in the order of rows.
    masses : (S,) float
        Of species.
    faces : (2,) int
        The faces of the membrane: the first, and behind the last.
    n_faces, n_places : int
        Of all membranes, and of all beads.
    reach : float, nm
    most : int
        Straight lines to partners that a point may have.
    space : WorkSpace
    pool : PoolCounts, optional
        Whose molecules take part, each in the cell of the point or of the place.
    """
    cdef Room room
    cdef const int32_t[::1] places
    cdef const double[::1] masses
    cdef Py_ssize_t first_face, last_face, first_point
    cdef double reach
    cdef int most
    cdef WorkSpace space
    cdef PoolCounts pool
    cdef Sequence forces
    cdef Reaction* reactions
    cdef Py_ssize_t n_reactions
    cdef readonly long long[::1] done     # events of each reaction since the start
    # Points by triangle, and by species: of the letter that has begun; counts of the state `seen`.
    cdef int32_t[::1] head, following
    cdef int32_t[:, ::1] members
    cdef int32_t[::1] rank
    cdef int32_t[::1] numbers
    cdef long long seen, world, written
    cdef double area
    cdef long long measured
    cdef Line* found
    cdef Py_ssize_t found_room
    cdef Window* windows
    cdef readonly long long looked        # windows looked at so far
    cdef double potential                 # of the forces on the points, as they are now; nan: not known

    def __init__(self, str name, double kT, bint driven, int every, Room room not None, const int32_t[::1] places,
                 const double[::1] masses, faces, Py_ssize_t n_faces, Py_ssize_t first_point, Py_ssize_t n_places,
                 WorkSpace space not None, PoolCounts pool=None):
        self.describe(name, kT, driven, every)
        self.room = room
        self.places = places
        self.masses = masses
        self.first_face, self.last_face = faces
        self.first_point = first_point
        self.space = space
        self.pool = pool
        self.forces = Sequence([])
        self.head = np.full(max(1, n_faces), -1, np.int32)
        self.following = np.full(max(1, n_places), -1, np.int32)
        self.rank = np.full(max(1, n_places), -1, np.int32)
        self.members = np.zeros((masses.shape[0], max(1, places.shape[0])), np.int32)
        self.numbers = np.zeros(masses.shape[0], np.int32)
        self.done = np.zeros(1, np.int64)
        self.seen = self.measured = -1
        self.windows = <Window*> realloc(NULL, DEEPEST * sizeof(Window))
        if self.windows == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.reactions)
        free(self.found)
        free(self.windows)

    def set(self, double kT, bint driven, double reach, int most, list reactions):
        """Take the numbers: of each reaction (kind, from a, from b, to a, to b, taken, given, rate, fraction,
        affinity)."""
        cdef Py_ssize_t i
        cdef Reaction* grown = <Reaction*> realloc(self.reactions, (len(reactions) + 1) * sizeof(Reaction))
        if grown == NULL:
            raise MemoryError
        self.reactions = grown
        self.n_reactions = len(reactions)
        for i, (kind, from_a, from_b, to_a, to_b, taken, given, rate, fraction, affinity) in enumerate(reactions):
            grown[i] = Reaction(kind, from_a, from_b, to_a, to_b, taken, given, rate, fraction, affinity)
        if self.done.shape[0] != len(reactions):
            self.done = np.zeros(len(reactions), np.int64)
        self.kT = kT
        self.driven = driven
        self.reach = reach
        self.most = most

    def feel(self, list forces):
        """Take the forces whose energy events change."""
        self.forces = Sequence(forces)

    def arrays(self):
        return {**super().arrays(), "done": np.asarray(self.done)}

    def done_so_far(self):
        """Events of each reaction since the start, (n,), read-only."""
        out = np.array(self.done)
        out.flags.writeable = False
        return out

    # What there is ---------------------------------------------------------------------------------------------------

    cdef void count(self, World* world) noexcept nogil:
        """How many there are of each species."""
        cdef Py_ssize_t k, s
        cdef int32_t place
        if self.seen == world.living[0] and self.world == world.number and self.written == world.written:
            return
        self.seen = world.living[0]
        self.world = world.number
        self.written = world.written
        for s in range(self.numbers.shape[0]):
            self.numbers[s] = 0
        for k in range(self.places.shape[0]):
            place = self.places[k]
            if world.alive[place]:
                self.numbers[world.species[place]] += 1

    cdef void sort(self, World* world) noexcept nogil:
        """Points by species, in the order of rows, and by triangle."""
        cdef Py_ssize_t k
        for k in range(self.first_face, self.last_face):
            self.head[k] = -1
        for k in range(self.numbers.shape[0]):
            self.numbers[k] = 0
        for k in range(self.places.shape[0]):
            if world.alive[self.places[k]]:
                self.enter(world, self.places[k])

    cdef void enter(self, World* world, int32_t place) noexcept nogil:
        cdef int32_t species = world.species[place]
        cdef int32_t face = world.triangle[place - self.first_point]
        self.rank[place] = self.numbers[species]
        self.members[species, self.numbers[species]] = place
        self.numbers[species] += 1
        self.following[place] = self.head[face]
        self.head[face] = place

    cdef void leave(self, World* world, int32_t place) noexcept nogil:
        cdef int32_t species = world.species[place]
        cdef int32_t face = world.triangle[place - self.first_point]
        cdef int32_t last, at
        self.numbers[species] -= 1
        last = self.members[species, self.numbers[species]]
        self.members[species, self.rank[place]] = last
        self.rank[last] = self.rank[place]
        if self.head[face] == place:
            self.head[face] = self.following[place]
            return
        at = self.head[face]
        while at >= 0 and self.following[at] != place:
            at = self.following[at]
        if at >= 0:
            self.following[at] = self.following[place]

    cdef double surface(self, World* world) noexcept nogil:
        """The area of the membrane, nm^2."""
        cdef Frame frame
        cdef Py_ssize_t face
        if self.measured != world.positions:
            self.measured = world.positions
            self.area = 0.0
            for face in range(self.first_face, self.last_face):
                frame_of(&world.box, world.x, world.faces + 3 * face, &frame)
                self.area += 0.5 * sqrt(frame.nn)
        return self.area

    cdef double rate_of(self, World* world, const Reaction* r) noexcept nogil:
        """The rate of attempts of a reaction."""
        cdef double n, rate = r.rate
        if r.taken >= 0:
            rate *= self.pool.most(r.taken, world.written) / self.pool.volume
        if r.kind == COME:
            return rate * self.surface(world) if rate > 0.0 else 0.0
        n = self.numbers[r.from_a]
        if r.kind == MEET or r.kind == PASS:
            if r.from_a == r.from_b:
                # Each pair is met from both of its ends.
                return 0.5 * r.rate * self.most * n if n > 1 else 0.0
            return r.rate * self.most * n if self.numbers[r.from_b] > 0 else 0.0
        return rate * n

    # Straight lines --------------------------------------------------------------------------------------------------

    cdef Py_ssize_t lines_from(self, World* world, int32_t place, int32_t species) noexcept nogil:
        """All straight lines shorter than the reach from a point to points of a species: how many; -1: no memory,
        -2: lines wind around the mesh."""
        cdef const double* weights = world.barycentric + 2 * (place - self.first_point)
        cdef Window* w = self.windows
        cdef Flat flat
        cdef Window window
        cdef Py_ssize_t n = 0, waiting = 0, windows = 0
        cdef int i, j, k
        lay_out(world, world.triangle[place - self.first_point], weights[0], weights[1], &flat)
        if not self.look(world, &flat, NULL, NULL, place, species, &n):
            return -1
        for i in range(3):
            j = (i + 1) % 3
            k = (i + 2) % 3
            waiting += self.beyond(world, &flat, i, &flat.x[j], &flat.y[j], &flat.x[k], &flat.y[k], w + waiting)
        while waiting > 0:
            windows += 1
            if windows > MOST_WINDOWS or waiting > DEEPEST - 3:
                return -2
            waiting -= 1
            window = w[waiting]
            if not self.look(world, &window.flat, window.left, window.right, place, species, &n):
                return -1
            waiting += self.divide(world, &window, w + waiting)
        self.looked += windows
        return n

    cdef int beyond(self, World* world, const Flat* flat, int i, const double* lx, const double* ly, const double* rx,
                    const double* ry, Window* out) noexcept nogil:
        """The window through the edge opposite corner i within the cone of (lx, ly) and (rx, ry): 1, or 0 where it is
        out of reach."""
        cdef int j = (i + 1) % 3, k = (i + 2) % 3
        cdef double ex = flat.x[k] - flat.x[j], ey = flat.y[k] - flat.y[j]
        cdef double t = -(flat.x[j] * ex + flat.y[j] * ey) / (ex * ex + ey * ey)
        cdef double x, y
        t = min(max(t, 0.0), 1.0)
        x = flat.x[j] + t * ex
        y = flat.y[j] + t * ey
        if not x * x + y * y < self.reach * self.reach:
            return 0
        out.apex = go_across(world, flat, i, &out.flat)
        if lx[0] * ry[0] - ly[0] * rx[0] >= 0.0:
            out.left[0] = lx[0]
            out.left[1] = ly[0]
            out.right[0] = rx[0]
            out.right[1] = ry[0]
        else:
            out.left[0] = rx[0]
            out.left[1] = ry[0]
            out.right[0] = lx[0]
            out.right[1] = ly[0]
        return 1

    cdef int divide(self, World* world, const Window* w, Window* out) noexcept nogil:
        """The windows beyond a triangle: those of its two other edges that the cone meets."""
        cdef const Flat* flat = &w.flat
        cdef double x = flat.x[w.apex], y = flat.y[w.apex]
        cdef int n = 0, i, other, q
        cdef bint after = w.left[0] * y - w.left[1] * x > 0.0       # the corner is on the inner side of the left ray
        cdef bint before = x * w.right[1] - y * w.right[0] > 0.0
        for q in range(1, 3):
            # The edge from the apex to `other`, opposite i, which is the other end of the edge that it came through.
            other = (w.apex + q) % 3
            i = (w.apex + 3 - q) % 3
            if flat.x[other] * flat.y[i] - flat.y[other] * flat.x[i] > 0.0:
                # That on the left: it takes the cone from its left side to the apex.
                if after:
                    if before:
                        n += self.beyond(world, flat, i, &w.left[0], &w.left[1], &x, &y, out + n)
                    else:
                        n += self.beyond(world, flat, i, &w.left[0], &w.left[1], &w.right[0], &w.right[1], out + n)
            elif before:
                if after:
                    n += self.beyond(world, flat, i, &x, &y, &w.right[0], &w.right[1], out + n)
                else:
                    n += self.beyond(world, flat, i, &w.left[0], &w.left[1], &w.right[0], &w.right[1], out + n)
        return n

    cdef bint look(self, World* world, const Flat* flat, const double* left, const double* right, int32_t own,
                   int32_t species, Py_ssize_t* n) noexcept nogil:
        """Add the points of a species in a triangle that the cone and the reach hold; False: no memory."""
        cdef int32_t at = self.head[flat.face]
        cdef const double* weights
        cdef double x, y, first
        cdef Line* grown
        while at >= 0:
            if world.species[at] == species and at != own:
                weights = world.barycentric + 2 * (at - self.first_point)
                first = (1.0 - weights[0]) - weights[1]
                x = first * flat.x[0] + weights[0] * flat.x[1] + weights[1] * flat.x[2]
                y = first * flat.y[0] + weights[0] * flat.y[1] + weights[1] * flat.y[2]
                if x * x + y * y < self.reach * self.reach and (
                        left == NULL or (left[0] * y - left[1] * x >= 0.0 and x * right[1] - y * right[0] > 0.0)):
                    if n[0] == self.found_room:
                        grown = <Line*> realloc(self.found, (2 * self.found_room + 64) * sizeof(Line))
                        if grown == NULL:
                            return False
                        self.found = grown
                        self.found_room = 2 * self.found_room + 64
                    self.found[n[0]] = Line(at, x, y)
                    n[0] += 1
            at = self.following[at]
        return True

    def lines(self, Program program not None, int32_t place, int32_t species):
        """Places of the ends (n,), and lines (n, 2) in the plane of the point's triangle; for tests."""
        cdef Py_ssize_t k, n
        self.sort(&program.world)
        n = self.lines_from(&program.world, place, species)
        if n < 0:
            raise ValueError(f"no lines: {n}")
        ends, lines = np.empty(n, np.int32), np.empty((n, 2))
        for k in range(n):
            ends[k], lines[k] = self.found[k].place, (self.found[k].x, self.found[k].y)
        return ends, lines

    def flown(self, Program program not None, int32_t place, double x, double y):
        """Face, and weights of its second and third corner, where a straight line from a point ends; for tests."""
        cdef int32_t face = program.world.triangle[place - self.first_point]
        cdef double weights[2]
        weights[0] = program.world.barycentric[2 * (place - self.first_point)]
        weights[1] = program.world.barycentric[2 * (place - self.first_point) + 1]
        if not fly_straight(&program.world, &face, weights, x, y, MOST_CROSSINGS):
            raise ValueError("the line does not end")
        return face, weights[0], weights[1]

    # Events ----------------------------------------------------------------------------------------------------------

    cdef int act(self, World* world, double h, Draws* draws) noexcept nogil:
        cdef double u[2]
        cdef double total, left, t = 0.0
        cdef Py_ssize_t r, last
        cdef int fault = 0
        cdef bint begun = False
        while draws.next <= MOST_DRAWS:
            if not begun:
                self.count(world)
            total = 0.0
            for r in range(self.n_reactions):
                total += self.rate_of(world, &self.reactions[r])
            if not total > 0.0:
                break
            draw_two(draws, u)
            t += draw_exponential(u[0]) / total
            if t >= h:
                break
            if not begun:
                begun = True
                self.sort(world)
                self.potential = INFINITY
                self.space.enter(world)
            self.counts[0] += 1
            left = u[1] * total
            last = -1
            for r in range(self.n_reactions):
                total = self.rate_of(world, &self.reactions[r])
                if total > 0.0:
                    last = r
                    if left < total:
                        break
                    left -= total
            fault = self.attempt(world, t, last, draws)
            if fault != 0:
                break
        if begun:
            self.space.leave(world)
            self.seen = world.living[0]
        return fault

    cdef int32_t choose(self, Draws* draws, int32_t species, double* second) noexcept nogil:
        """One of the points of a species, which there are; and another random number."""
        cdef double u[2]
        cdef Py_ssize_t k
        draw_two(draws, u)
        k = min(<Py_ssize_t> (u[0] * self.numbers[species]), <Py_ssize_t> self.numbers[species] - 1)
        second[0] = u[1]
        return self.members[species, k]

    cdef int attempt(self, World* world, double t, Py_ssize_t which, Draws* draws) noexcept nogil:
        cdef const Reaction* r = &self.reactions[which]
        cdef Kept before[3]
        cdef double u[2]
        cdef double weights[2]
        cdef double far[2]
        cdef double second, length, x, y, K = 0.0, gained = 0.0, old = 0.0
        cdef int32_t a = -1, b = -1, face, other
        cdef int64_t id_a, id_b = -1, next_id = self.room.next_id[0]
        cdef Py_ssize_t n, k, cell = 0, changed = 0
        cdef Line line
        cdef bint ends = True
        cdef int fault = 0
        if r.kind == COME:
            draw_two(draws, u)
            self.anywhere(world, u[0], u[1], draws, &face, weights)
        else:
            a = self.choose(draws, r.from_a, &second)
            id_a = self.room.ids[a]
            face = other = world.triangle[a - self.first_point]
            weights[0] = far[0] = world.barycentric[2 * (a - self.first_point)]
            weights[1] = far[1] = world.barycentric[2 * (a - self.first_point) + 1]
            if r.kind == MEET or r.kind == PASS:
                n = self.lines_from(world, a, r.from_b)
                if n == -1:
                    return record_fault(world, OUT_OF_MEMORY, a, -1)
                if n > self.most:
                    world.fault.value = <double> n
                    return record_fault(world, TOO_CROWDED, a, -1)
                k = <Py_ssize_t> (second * self.most)
                ends = n >= 0
                if ends:
                    if k >= n:
                        return 0
                    line = self.found[k]
                    b = line.place
                    id_b = self.room.ids[b]
                    if r.kind == MEET:
                        ends = fly_straight(
                            world, &face, weights, r.fraction * line.x, r.fraction * line.y, MOST_CROSSINGS)
            elif r.kind == PART:
                # Apart along one straight line, from where it is.
                draw_two(draws, u)
                length = self.reach * sqrt(u[0])
                sincos2pi(u[1], &y, &x)
                x *= length
                y *= length
                ends = fly_straight(world, &face, weights, -r.fraction * x, -r.fraction * y, MOST_CROSSINGS) and (
                    fly_straight(world, &other, far, (1.0 - r.fraction) * x, (1.0 - r.fraction) * y, MOST_CROSSINGS))
            if not ends:
                return record_fault(world, TOO_FAR, a, -1)
        if (r.taken >= 0 or r.given >= 0) and self.pool.n_cells > 1:
            cell = self.cell_at(world, face, weights)
            if r.taken >= 0:
                # The attempt was as if all molecules were there.
                draw_two(draws, u)
                if not u[0] * self.pool.most(r.taken, world.written) < self.pool.amount(cell, r.taken):
                    return 0
        # Not before it is known that something would happen.
        if self.forces.count > 0:
            fault = self.energy_now(world, &old)
            if fault != 0:
                return fault
        if r.kind == TURN or r.kind == PASS:
            self.turn(world, a, r.to_a, before, &changed)
            if r.kind == PASS:
                self.turn(world, b, r.to_b, before, &changed)
        else:
            if r.kind != COME:
                self.remove(world, a, before, &changed, &K)
            if r.kind == MEET:
                self.remove(world, b, before, &changed, &K)
            if r.kind != GO:
                fault = self.create(world, r.to_a, face, weights, draws, before, &changed, &K)
            if fault == 0 and r.kind == PART:
                fault = self.create(world, r.to_b, other, far, draws, before, &changed, &K)
        if fault != 0:
            return fault
        if self.forces.count > 0:
            self.potential = INFINITY
            fault = self.energy_now(world, &gained)
            if fault != 0:
                return fault
            gained -= old
            draw_two(draws, u)
            if gained > 0.0 and not u[0] < exp_(-gained / self.kT):
                for k in range(changed - 1, -1, -1):
                    self.restore(world, &before[k])
                self.room.next_id[0] = next_id
                self.potential = old
                return 0
        self.done[which] += 1
        if r.taken >= 0:
            self.pool.take(cell, r.taken, 1)
        if r.given >= 0:
            self.pool.put(cell, r.given, 1)
        if r.kind == COME:
            id_a = self.room.ids[before[0].place]
        self.drive(r.affinity)
        return self.happened(world, t, <int> which, id_a, id_b, gained + K, K, self.kT * r.affinity)

    cdef Py_ssize_t cell_at(self, World* world, int32_t face, const double* weights) noexcept nogil:
        """The cell of the pool at a place on the membrane."""
        cdef const double* origin = world.x + 3 * <Py_ssize_t> world.faces[3 * <Py_ssize_t> face]
        cdef Frame frame
        cdef double x[3]
        cdef int c
        frame_of(&world.box, world.x, world.faces + 3 * <Py_ssize_t> face, &frame)
        for c in range(3):
            x[c] = origin[c] + (weights[0] * frame.e1[c] + weights[1] * frame.e2[c])
        return self.pool.cell_of(x)

    cdef int energy_now(self, World* world, double* out) noexcept nogil:
        """The energy of the forces on the points."""
        cdef double one
        cdef Py_ssize_t k
        cdef int wanted = world.want_energy, fault = 0
        if self.potential == INFINITY:
            self.potential = 0.0
            world.want_energy = 1
            for k in range(self.forces.count):
                fault = (<Operation> self.forces.items[k]).whole(world, &one)
                if fault != 0:
                    if world.fault.operation == NULL:
                        world.fault.operation = self.forces.items[k]
                    break
                self.potential += one
            world.want_energy = wanted
        out[0] = self.potential
        return fault

    cdef void keep(self, World* world, int32_t place, Kept* out) noexcept nogil:
        cdef Py_ssize_t p = place - self.first_point
        cdef int c
        out.place = place
        out.alive = self.room.alive[place]
        out.id = self.room.ids[place]
        out.species = world.species[place]
        out.face = world.triangle[p]
        out.weights[0] = world.barycentric[2 * p]
        out.weights[1] = world.barycentric[2 * p + 1]
        for c in range(3):
            out.x[c] = world.x[3 * <Py_ssize_t> place + c]
            out.v[c] = world.v[3 * <Py_ssize_t> place + c]

    cdef void restore(self, World* world, const Kept* was) noexcept nogil:
        """Bring back what a point was, in place of what it is now."""
        cdef Py_ssize_t p = was.place - self.first_point
        cdef int c
        if world.alive[was.place]:
            self.leave(world, was.place)
        self.room.alive[was.place] = was.alive
        self.room.ids[was.place] = was.id
        world.triangle[p] = was.face
        world.barycentric[2 * p] = was.weights[0]
        world.barycentric[2 * p + 1] = was.weights[1]
        for c in range(3):
            world.x[3 * <Py_ssize_t> was.place + c] = was.x[c]
            world.v[3 * <Py_ssize_t> was.place + c] = was.v[c]
        self.room.become(world, was.place, was.species)
        if was.alive:
            self.enter(world, was.place)

    cdef void turn(self, World* world, int32_t place, int32_t species, Kept* before, Py_ssize_t* n) noexcept nogil:
        """A point becomes another, where it is; its velocity is scaled, which keeps kinetic energy and Maxwell's
        distribution."""
        cdef double scale = sqrt(self.masses[world.species[place]] / self.masses[species])
        cdef int c
        self.keep(world, place, &before[n[0]])
        n[0] += 1
        if world.species[place] == species:
            return
        self.leave(world, place)
        for c in range(3):
            world.v[3 * <Py_ssize_t> place + c] *= scale
        self.room.become(world, place, species)
        self.enter(world, place)

    cdef void remove(self, World* world, int32_t place, Kept* before, Py_ssize_t* n, double* K) noexcept nogil:
        cdef const double* v = world.v + 3 * <Py_ssize_t> place
        self.keep(world, place, &before[n[0]])
        n[0] += 1
        K[0] -= 0.5 * world.mass[place] * dot(v, v)
        self.leave(world, place)
        self.room.put_to_sleep(world, place)

    cdef int create(self, World* world, int32_t species, int32_t face, const double* weights, Draws* draws,
                    Kept* before, Py_ssize_t* n, double* K) noexcept nogil:
        """A point at a place, with a velocity from Maxwell's distribution in its plane."""
        cdef Py_ssize_t place = self.room.free_place(&self.places[0], self.places.shape[0])
        cdef Py_ssize_t p = place - self.first_point
        cdef Frame frame
        cdef double u[2]
        cdef double ex[3]
        cdef double ey[3]
        cdef double v[3]
        cdef double size, along, beside
        cdef int c, fault
        if place < 0:
            world.fault.bead = self.places[0]
            return NO_ROOM
        self.keep(world, <int32_t> place, &before[n[0]])
        n[0] += 1
        frame_of(&world.box, world.x, world.faces + 3 * <Py_ssize_t> face, &frame)
        axes_of(&frame, ex, ey)
        draw_two(draws, u)
        size = sqrt(-2.0 * log_core(u[0]) * self.kT / self.masses[species])
        sincos2pi(u[1], &beside, &along)
        for c in range(3):
            v[c] = size * (along * ex[c] + beside * ey[c])
        world.triangle[p] = face
        world.barycentric[2 * p] = weights[0]
        world.barycentric[2 * p + 1] = weights[1]
        self.room.species[place] = species
        fault = self.room.wake(world, place, NULL, v)
        if fault != 0:
            return fault
        if world.box.periodic:
            # Of all images, that next to the first corner.
            for c in range(3):
                world.x[3 * place + c] = world.x[3 * <Py_ssize_t> world.faces[3 * <Py_ssize_t> face] + c]
        place_one(world, p)
        self.enter(world, <int32_t> place)
        K[0] += 0.5 * self.masses[species] * dot(v, v)
        return 0

    cdef void anywhere(self, World* world, double u, double second, Draws* draws, int32_t* face,
                       double* weights) noexcept nogil:
        """A place that is uniform by area."""
        cdef Frame frame
        cdef double w[2]
        cdef double left = u * self.surface(world), area
        cdef Py_ssize_t f
        face[0] = <int32_t> self.first_face
        for f in range(self.first_face, self.last_face):
            frame_of(&world.box, world.x, world.faces + 3 * f, &frame)
            area = 0.5 * sqrt(frame.nn)
            face[0] = <int32_t> f
            if left < area:
                break
            left -= area
        draw_two(draws, w)
        # Folded into the triangle.
        if w[0] + w[1] > 1.0:
            w[0] = 1.0 - w[0]
            w[1] = 1.0 - w[1]
        weights[0] = w[0]
        weights[1] = w[1]
        if (1.0 - w[0]) - w[1] < 0.0:
            weights[1] = 1.0 - w[0]
