"""Reactions of beads with species: of points in triangles, and of beads in space.

Two beads A and B react at the rate lambda m, where m is the number of straight lines shorter than R between them; one
bead comes apart at the rate mu, along a line of which the end is uniform within R. In triangles these are lines of the
surface: flights keep areas, and what arrives at a place from another one has the density m/(pi R^2), so that both are
in balance with z_A z_B / z_C = mu/(lambda pi R^2) on any mesh: cones, saddles and borders, where lines reflect, need no
rules. In space m is 1 within R, and 4 pi R^3/3 comes in place of pi R^2. See docs/theory/reactions.md, and grounds.pyx
for what differs between the two.

Attempts come at bounded rates, each with draws of its own: of MEET and PASS at lambda M for each bead A, of which the
share m/M goes on. One that changes the energy by w kT is accepted with min(1, exp(-w)). Or rates have exp(-s w), with
the share s there and 1 - s back, as long as |w| < E, and the higher of the two stays as it is beyond.

Random places: velocities of created beads are drawn from Maxwell's distribution, and so are the angular momenta of
created bodies, whose rotations are uniform. Bodies that become others keep theirs.
"""
import numpy as np

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc

from medyanpy._kernels.beads.points cimport place as derive_places
from medyanpy._kernels.core.capacity cimport Room
from medyanpy._kernels.core.elementary cimport exp_
from medyanpy._kernels.core.parallel cimport record_fault
from medyanpy._kernels.core.program cimport (
    NO_ROOM, NOT_FINITE, OUT_OF_MEMORY, TOO_CROWDED, TOO_FAR, Operation, Program, Sequence, World,
)
from medyanpy._kernels.core.vec3 cimport dot
from medyanpy._kernels.core.workspace cimport WorkSpace
from medyanpy._kernels.jumps.grounds cimport Ground, Line, Spot
from medyanpy._kernels.jumps.jump cimport Draws, JumpOperation, draw_two, wait
from medyanpy._kernels.jumps.pools cimport PoolCounts


cdef class PointReactions(JumpOperation):
    """Reactions of the beads of one handle.

    Parameters
    ----------
    name : str
    kT : float
    driven : bool
    every : int
    room : Room
    places : (n,) int32
        Of the beads and of inactive rows, in the order of rows.
    masses : (S,) float
        Of species.
    n_places : int
        Of all beads.
    ground : Ground
        Where they are.
    space : WorkSpace
    pool : PoolCounts, optional
        Whose molecules take part, each in the cell of the point or of the place.
    """

    def __init__(self, str name, double kT, bint driven, int every, Room room not None, const int32_t[::1] places,
                 const double[::1] masses, Py_ssize_t n_places, Ground ground not None, WorkSpace space not None,
                 PoolCounts pool=None):
        self.describe(name, kT, driven, every)
        self.room = room
        self.places = places
        self.masses = masses
        self.ground = ground
        self.space = space
        self.pool = pool
        self.telling = Sequence([])
        self.forces = Sequence([])
        self.rank = np.full(max(1, n_places), -1, np.int32)
        row = np.full(max(1, n_places), -1, np.int32)
        row[np.asarray(places)] = np.arange(places.shape[0], dtype=np.int32)
        self.row = row
        self.vacant = np.zeros(places.shape[0] // ROWS + 1, np.int32)
        self.members = np.zeros((masses.shape[0], max(1, places.shape[0])), np.int32)
        self.numbers = np.zeros(masses.shape[0], np.int32)
        self.done = np.zeros(1, np.int64)
        self.seen = -1
        self.share = -1.0

    def __dealloc__(self):
        free(self.reactions)

    def set(self, double kT, bint driven, double reach, int most, bint together, list reactions):
        """Take the numbers: of each reaction (kind, from a, from b, to a, to b, taken, given, rate, fraction, affinity,
        share, limit)."""
        cdef Py_ssize_t i
        cdef Reaction* grown = <Reaction*> realloc(self.reactions, (len(reactions) + 1) * sizeof(Reaction))
        if grown == NULL:
            raise MemoryError
        self.reactions = grown
        self.n_reactions = len(reactions)
        for i, (kind, from_a, from_b, to_a, to_b, taken, given, *numbers) in enumerate(reactions):
            rate, fraction, affinity, share, limit = numbers
            grown[i] = Reaction(kind, from_a, from_b, to_a, to_b, taken, given, rate, fraction, affinity, share, limit)
        if self.done.shape[0] != len(reactions):
            self.done = np.zeros(len(reactions), np.int64)
        self.kT = kT
        self.driven = driven
        self.ground.reach = reach
        self.most = most
        self.together = together

    def feel(self, list forces):
        """Take the forces whose energy events change."""
        self.telling = Sequence([one for one in forces if (<Operation?> one).tells_beads()])
        self.forces = Sequence([one for one in forces if not (<Operation?> one).tells_beads()])

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
        """Beads by species, in the order of rows, and by where they are."""
        cdef Py_ssize_t k
        self.potential = INFINITY
        self.ground.begin(world, &self.places[0], self.places.shape[0])
        for k in range(self.numbers.shape[0]):
            self.numbers[k] = 0
        for k in range(self.vacant.shape[0]):
            self.vacant[k] = <int32_t> (min(ROWS * (k + 1), self.places.shape[0]) - ROWS * k)
        for k in range(self.places.shape[0]):
            if world.alive[self.places[k]]:
                self.admit(world, self.places[k])

    cdef void enter(self, World* world, int32_t place) noexcept nogil:
        self.admit(world, place)
        self.ground.enter(world, place)

    cdef void admit(self, World* world, int32_t place) noexcept nogil:
        cdef int32_t species = world.species[place]
        self.rank[place] = self.numbers[species]
        self.members[species, self.numbers[species]] = place
        self.numbers[species] += 1
        self.vacant[self.row[place] // ROWS] -= 1

    cdef void leave(self, World* world, int32_t place) noexcept nogil:
        cdef int32_t species = world.species[place]
        cdef int32_t last
        self.numbers[species] -= 1
        last = self.members[species, self.numbers[species]]
        self.members[species, self.rank[place]] = last
        self.rank[last] = self.rank[place]
        self.vacant[self.row[place] // ROWS] += 1
        self.ground.leave(world, place)

    cdef Py_ssize_t free_place(self, World* world) noexcept nogil:
        """That of the first free row; -1: there is none."""
        cdef Py_ssize_t k, b
        for b in range(self.vacant.shape[0]):
            if self.vacant[b] > 0:
                for k in range(ROWS * b, min(ROWS * (b + 1), self.places.shape[0])):
                    if not world.alive[self.places[k]]:
                        return self.places[k]
        return -1

    cdef double rate_of(self, World* world, const Reaction* r) noexcept nogil:
        """The rate of attempts of a reaction."""
        cdef double n, rate = r.rate
        if r.taken >= 0:
            rate *= self.pool.most(r.taken, world.written) / self.pool.volume
        if r.kind == COME:
            return rate * self.ground.measure(world) if rate > 0.0 else 0.0
        n = self.numbers[r.from_a]
        if r.kind == MEET or r.kind == PASS:
            if r.from_a == r.from_b:
                # Each pair is met from both of its ends.
                return 0.5 * r.rate * self.most * n if n > 1 else 0.0
            return r.rate * self.most * n if self.numbers[r.from_b] > 0 else 0.0
        return rate * n

    def lines(self, Program program not None, int32_t place, int32_t species):
        """Places of the ends (n,), and lines (n, 2 or 3) from a bead, of points in the plane of the triangle; for
        tests."""
        cdef Py_ssize_t k, n
        cdef int c
        self.sort(&program.world)
        n = self.ground.lines_from(&program.world, place, species)
        if n < 0:
            raise ValueError(f"no lines: {n}")
        ends, lines = np.empty(n, np.int32), np.empty((n, self.ground.dimensions))
        for k in range(n):
            ends[k] = self.ground.found[k].place
            for c in range(self.ground.dimensions):
                lines[k, c] = self.ground.found[k].d[c]
        return ends, lines

    # Events ----------------------------------------------------------------------------------------------------------

    cdef int act(self, World* world, double h, Draws* draws) noexcept nogil:
        cdef double u[2]
        cdef double total, left, t = 0.0
        cdef Py_ssize_t r, last
        cdef int fault = 0
        cdef bint begun = False
        while fault == 0:
            if not begun:
                self.count(world)
            total = 0.0
            for r in range(self.n_reactions):
                total += self.rate_of(world, &self.reactions[r])
            if not wait(draws, total, h, &t, u):
                break
            if not begun:
                begun = True
                fault = derive_places(world)
                if fault != 0:
                    return fault
                self.sort(world)
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
        if begun:
            self.space.leave(world)
            self.seen = world.living[0]
        return fault

    cdef int32_t choose(self, Draws* draws, int32_t species, double* second) noexcept nogil:
        """One of the beads of a species, which there are; and another random number."""
        cdef double u[2]
        cdef Py_ssize_t k
        draw_two(draws, u)
        k = min(<Py_ssize_t> (u[0] * self.numbers[species]), <Py_ssize_t> self.numbers[species] - 1)
        second[0] = u[1]
        return self.members[species, k]

    cdef int attempt(self, World* world, double t, Py_ssize_t which, Draws* draws) noexcept nogil:
        cdef const Reaction* r = &self.reactions[which]
        cdef Kept before[3]
        cdef Spot spot, other
        cdef Line line
        cdef double u[2]
        cdef double v[6]
        cdef double* given = NULL
        cdef double second, K = 0.0, old = 0.0, chemical = 0.0, affinity = r.affinity
        cdef int32_t a = -1, b = -1
        cdef int64_t id_a, id_b = -1, id_c = -1, next_id = self.room.next_id[0]
        cdef Py_ssize_t n, k, cell = 0, changed = 0
        cdef bint ends = True
        cdef int fault = 0
        if r.kind == COME:
            self.ground.draw_spot(world, draws, &spot)
        else:
            a = self.choose(draws, r.from_a, &second)
            id_a = self.room.ids[a]
            self.ground.read(world, a, &spot)
            if r.kind == MEET or r.kind == PASS:
                n = self.ground.lines_from(world, a, r.from_b)
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
                    line = self.ground.found[k]
                    b = line.place
                    id_b = self.room.ids[b]
                    if r.kind == MEET:
                        ends = self.ground.go(world, r.fraction, line.d, &spot)
            elif r.kind == PART:
                # Apart along one straight line, from where it is.
                other = spot
                self.ground.draw_line(draws, line.d)
                ends = self.ground.go(world, -r.fraction, line.d, &spot) and (
                    self.ground.go(world, 1.0 - r.fraction, line.d, &other))
            if not ends:
                return record_fault(world, TOO_FAR, a, -1)
        if r.kind == TURN or r.kind == COME or r.kind == GO:
            fault = self.thin(world, which, a, &spot, draws, &chemical, &ends)
            if fault != 0 or not ends:
                return fault
        if (r.taken >= 0 or r.given >= 0) and self.pool.n_cells > 1:
            self.ground.where(world, &spot, v)
            cell = self.pool.cell_of(v)
            if r.taken >= 0:
                # The attempt was as if this were the cell with most.
                draw_two(draws, u)
                if not u[0] * self.pool.most(r.taken, world.written) < self.pool.amount(cell, r.taken):
                    return 0
        # Not before it is known that something would happen.
        if self.forces.count > 0:
            fault = self.energy_now(world, &old)
            if fault != 0:
                return fault
        self.gained = 0.0
        if r.kind == TURN or r.kind == PASS:
            fault = self.turn(world, a, r.to_a, before, &changed)
            if r.kind == PASS and fault == 0:
                fault = self.turn(world, b, r.to_b, before, &changed)
        else:
            if self.together and (r.kind == MEET or r.kind == PART):
                given = v
                self.hand_on(world, r, a, b, &spot, draws, v)
            if r.kind != COME:
                fault = self.remove(world, a, before, &changed, &K)
            if r.kind == MEET and fault == 0:
                fault = self.remove(world, b, before, &changed, &K)
            if r.kind != GO and fault == 0:
                fault = self.create(world, r.to_a, &spot, given, draws, before, &changed, &K)
            if fault == 0 and r.kind == PART:
                given = NULL if given == NULL else given + 3
                fault = self.create(world, r.to_b, &other, given, draws, before, &changed, &K)
        if fault != 0:
            return fault
        self.share, self.limit = r.share, r.limit
        fault = self.decide(world, before[0].place, old, draws, &ends)
        if fault != 0:
            return fault
        if not ends:
            for k in range(changed - 1, -1, -1):
                self.restore(world, &before[k])
            self.room.next_id[0] = next_id
            return 0
        self.done[which] += 1
        if r.taken >= 0:
            self.pool.take(cell, r.taken, 1)
        if r.given >= 0:
            self.pool.put(cell, r.given, 1)
        # In the order in which the reaction names them.
        if r.kind == COME:
            id_a = self.room.ids[before[0].place]
        elif r.kind == PART:
            id_b, id_c = self.room.ids[before[1].place], self.room.ids[before[2].place]
        elif r.kind == MEET:
            id_c = self.room.ids[before[2].place]
        self.third = id_c
        affinity += chemical
        return self.happened_by(world, t, <int> which, id_a, id_b, self.gained + K, K,
                                self.kT * (chemical if self.thins else affinity), affinity)

    cdef int thin(self, World* world, Py_ssize_t which, int32_t place, const Spot* spot, Draws* draws,
                  double* chemical, bint* goes) noexcept nogil:
        return 0

    cdef int decide(self, World* world, int32_t place, double old, Draws* draws, bint* accepted) noexcept nogil:
        """By what has been gained, and how the whole energy of the other forces has changed."""
        cdef double u[2]
        cdef double whole
        cdef int fault
        accepted[0] = True
        if self.forces.count > 0:
            self.potential = INFINITY
            fault = self.energy_now(world, &whole)
            if fault != 0:
                return fault
            self.gained += whole - old
        if self.forces.count + self.telling.count > 0 or self.decides or self.share >= 0.0:
            if not (0.0 * self.gained == 0.0) and not self.gained == INFINITY:
                return record_fault(world, NOT_FINITE, place, -1)
            draw_two(draws, u)
            if self.share < 0.0:
                accepted[0] = not self.gained > 0.0 or u[0] < exp_(-self.gained / self.kT)
            else:
                accepted[0] = u[0] < exp_(self.log_accepted(self.gained / self.kT))
            if not accepted[0]:
                self.potential = old
        return 0

    cdef double log_accepted(self, double w) noexcept nogil:
        """Of attempts that come exp(s E) times as often as without energies: with w < -E all of them. f(w) of this and
        g(-w) of the way back, with 1 - s in place of s, are in the ratio exp(-w) everywhere."""
        if w < -self.limit:
            return 0.0
        if w > self.limit:
            return (1.0 - 2.0 * self.share) * self.limit - w
        return -self.share * (w + self.limit)

    cdef int weigh_bead(self, World* world, int32_t place, double sign) noexcept nogil:
        """Add the energy of a bead that is there, as things are, to what is gained."""
        cdef double one
        cdef Py_ssize_t k
        cdef int wanted = world.want_energy, fault = 0
        world.want_energy = 1
        for k in range(self.telling.count):
            fault = (<Operation> self.telling.items[k]).of_bead(world, place, &one)
            if fault != 0:
                if world.fault.operation == NULL:
                    world.fault.operation = self.telling.items[k]
                break
            self.gained += sign * one
        world.want_energy = wanted
        return fault

    cdef int energy_now(self, World* world, double* out) noexcept nogil:
        """The energy of the forces on the beads."""
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
        cdef int c
        out.place = place
        out.alive = self.room.alive[place]
        out.id = self.room.ids[place]
        out.species = world.species[place]
        self.ground.read(world, place, &out.spot)
        for c in range(3):
            out.v[c] = world.v[3 * <Py_ssize_t> place + c]

    cdef void restore(self, World* world, const Kept* was) noexcept nogil:
        """Bring back what a bead was, in place of what it is now."""
        cdef int c
        if world.alive[was.place]:
            self.leave(world, was.place)
        self.room.alive[was.place] = was.alive
        self.room.ids[was.place] = was.id
        self.ground.write(world, was.place, &was.spot)
        for c in range(3):
            world.v[3 * <Py_ssize_t> was.place + c] = was.v[c]
        self.room.become(world, was.place, was.species)
        if was.alive:
            self.enter(world, was.place)

    cdef int turn(self, World* world, int32_t place, int32_t species, Kept* before, Py_ssize_t* n) noexcept nogil:
        """A bead becomes another, where it is; its velocity is scaled, which keeps kinetic energy and Maxwell's
        distribution."""
        cdef double scale = sqrt(self.masses[world.species[place]] / self.masses[species])
        cdef double roots[3]
        cdef int c, fault
        self.keep(world, place, &before[n[0]])
        n[0] += 1
        if world.species[place] == species:
            return 0
        fault = self.weigh_bead(world, place, -1.0)
        if fault != 0:
            return fault
        self.leave(world, place)
        for c in range(3):
            world.v[3 * <Py_ssize_t> place + c] *= scale
        self.ground.turning(world, place, roots)
        self.room.become(world, place, species)
        self.ground.turn_by(world, place, roots)
        self.enter(world, place)
        return self.weigh_bead(world, place, 1.0)

    cdef int remove(self, World* world, int32_t place, Kept* before, Py_ssize_t* n, double* K) noexcept nogil:
        cdef const double* v = world.v + 3 * <Py_ssize_t> place
        cdef double roots[3]
        cdef int fault = self.weigh_bead(world, place, -1.0)
        self.keep(world, place, &before[n[0]])
        n[0] += 1
        K[0] -= 0.5 * world.mass[place] * dot(v, v) + self.ground.turning(world, place, roots)
        self.leave(world, place)
        self.room.put_to_sleep(world, place)
        return fault

    cdef void hand_on(self, World* world, const Reaction* r, int32_t a, int32_t b, const Spot* spot, Draws* draws,
                      double* v) noexcept nogil:
        """Velocities (2, 3) of what comes of A + B -> C or C -> A + B: momentum stays, and the relative velocity of two
        is drawn from Maxwell's distribution."""
        cdef double share
        cdef int c
        if r.kind == MEET:
            share = self.masses[r.from_a] / (self.masses[r.from_a] + self.masses[r.from_b])
            for c in range(3):
                v[c] = share * world.v[3 * <Py_ssize_t> a + c] + (1.0 - share) * world.v[3 * <Py_ssize_t> b + c]
            return
        share = self.masses[r.to_a] / (self.masses[r.to_a] + self.masses[r.to_b])
        self.ground.draw_velocity(
            world, draws, spot, self.kT * (1.0 / self.masses[r.to_a] + 1.0 / self.masses[r.to_b]), v + 3)
        for c in range(3):
            v[c] = world.v[3 * <Py_ssize_t> a + c] + (1.0 - share) * v[3 + c]
            v[3 + c] = v[c] - v[3 + c]

    cdef int create(self, World* world, int32_t species, const Spot* spot, const double* given, Draws* draws,
                    Kept* before, Py_ssize_t* n, double* K) noexcept nogil:
        """A bead at a spot, with a velocity that is given, or from Maxwell's distribution."""
        cdef Py_ssize_t place = self.free_place(world)
        cdef Spot there = spot[0]
        cdef double v[3]
        cdef double roots[3]
        cdef int c, fault
        if place < 0:
            world.fault.bead = self.places[0]
            world.fault.value = species + 1.0
            return NO_ROOM
        self.keep(world, <int32_t> place, &before[n[0]])
        n[0] += 1
        if given == NULL:
            self.ground.draw_velocity(world, draws, spot, self.kT / self.masses[species], v)
        else:
            for c in range(3):
                v[c] = given[c]
        self.room.species[place] = species
        fault = self.room.wake(world, place, spot.x, v)
        if fault != 0:
            return fault
        self.ground.draw_turn(world, draws, <int32_t> place, self.kT, &there)
        self.ground.put(world, <int32_t> place, &there)
        self.enter(world, <int32_t> place)
        K[0] += 0.5 * self.masses[species] * dot(v, v) + self.ground.turning(world, <int32_t> place, roots)
        return self.weigh_bead(world, <int32_t> place, 1.0)
