"""Edges of a membrane that flip, as a jump.

Edges are tried uniformly, each at one rate, and there are always as many of them: attempts come at the sum of rates,
one after another, and each is accepted with

    min(1, exp(-(dU + dK) / kT))

dU what all forces gain, dK what points in the two triangles do at the momenta that belong to their places in the square
(changes.pyx). An edge on a border, one whose other corners are joined already, and one with a triangle before or after
that has an angle below the limit stay: sets that are the same for a flip and its reverse. In a box an edge of about
half its length or longer does not flip either, nor does one come to be: nearest images would not tell it from another.

A corner is picked, whose edge is the one opposite: of inner edges there are two, and those on a border are counted a
second time behind all corners.
"""
import numpy as np

from cpython.ref cimport PyObject
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memset

from medyanpy._kernels.core.box cimport LONGEST_FLIPPED, displacement
from medyanpy._kernels.core.changes cimport carry, keep_point, swap
from medyanpy._kernels.core.elementary cimport exp_, sincos_
from medyanpy._kernels.jumps.jump cimport MOST_DRAWS, Draws, JumpOperation, draw_exponential, draw_two
from medyanpy._kernels.beads.membrane cimport faces_of_flip
from medyanpy._kernels.core.parallel cimport record_fault
from medyanpy._kernels.core.prefetch cimport prefetch, prefetch_doubles
from medyanpy._kernels.core.program cimport Change, LOST_COUNT, Quad, World, is_there
from medyanpy._kernels.core.triangles cimport CAN_FLIP, Triangles
from medyanpy._kernels.core.vec3 cimport dot
from medyanpy._kernels.jumps.trial cimport Weights

# How many of these there have been.
cdef long long made = 0


# How many attempts before its own turn each is drawn and what it needs is asked for: see `Triangles.fetch_corner` and
# the four below it. The ring of those that come has room for all.
cdef enum:
    TO_CORNER = 20
    TO_ACROSS = 15
    TO_QUAD = 10
    TO_RING = 6
    TO_FACES = 2
    # Of the points in a face, so many.
    MOST_FETCHED = 16
    ROOM = 32


cdef struct Coming:
    double t                  # s from the beginning of the letter
    Py_ssize_t corner         # -1 where there is no edge
    Quad quad                 # from TO_QUAD attempts before


cdef class EdgeFlips(JumpOperation):
    """The flips of one membrane in one Context.

    Parameters
    ----------
    triangles : Triangles
    first_face, n_faces : int
        Of the membrane.
    n_edges : int
    first_bead : int
        Its vertex 0.
    held : (n_points,) uint8
        Which of all in-triangle points constraints hold: edges of triangles with these do not flip.
    n, momenta
        See `WorkSpace`.
    """
    cdef Triangles triangles
    cdef Py_ssize_t first_face
    cdef Py_ssize_t n_faces
    cdef Py_ssize_t n_edges
    cdef Py_ssize_t first_bead
    cdef double rate          # 1/s, of one edge
    cdef double cosine        # of the least angle; > 1 where there is none
    cdef long long number     # of the last attempt
    cdef readonly Weights weights
    cdef Coming coming[ROOM]
    cdef Py_ssize_t drawn     # in this letter
    # The attempt.
    cdef Quad quad
    cdef Quad back
    cdef Change change
    # Points in each face, in ascending order: the first of each face and the next of each point, -1 where there is
    # none.
    cdef int32_t[::1] head
    cdef const unsigned char[::1] held
    cdef bint holds_any
    cdef int32_t[::1] next
    cdef int32_t[::1] points
    cdef int32_t[::1] moved
    cdef int32_t[::1] triangle
    cdef double[:, ::1] barycentric
    cdef double[:, ::1] v

    def __init__(self, str name, double kT, int every, Triangles triangles not None, Py_ssize_t first_face,
                 Py_ssize_t n_faces, Py_ssize_t n_edges, Py_ssize_t first_bead, const unsigned char[::1] held,
                 Py_ssize_t n, momenta):
        cdef Py_ssize_t n_points = held.shape[0]
        global made
        self.describe(name, kT, False, every)
        self.triangles = triangles
        self.first_face = first_face
        self.n_faces = n_faces
        self.n_edges = n_edges
        self.first_bead = first_bead
        # Numbers of attempts are those of no other jump.
        made += 1
        self.number = made << 44
        self.weights = Weights(self, n, momenta)
        self.held = held
        self.holds_any = bool(np.any(held))
        self.head = np.full(n_faces, -1, np.int32)
        self.next = np.full(n_points + 1, -1, np.int32)
        self.points = np.zeros(n_points + 1, np.int32)
        self.moved = np.zeros(n_points + 1, np.int32)
        self.triangle = np.zeros(n_points + 1, np.int32)
        self.barycentric = np.zeros((n_points + 1, 2))
        self.v = np.zeros((n_points + 1, 3))
        memset(&self.change, 0, sizeof(Change))
        self.change.swap = swap
        self.change.n_flips = 1
        self.change.quads = &self.quad
        self.change.back = &self.back
        self.change.points = &self.points[0]
        self.change.moved = &self.moved[0]
        self.change.triangle = &self.triangle[0]
        self.change.barycentric = &self.barycentric[0, 0]
        self.change.v = &self.v[0, 0]
        self.change.triangles = <PyObject*> triangles

    def set(self, double kT, double rate, double min_angle):
        """pN nm, 1/s, radians; no limit of angles where that is 0."""
        cdef double sine
        self.kT = kT
        self.rate = rate
        self.cosine = 2.0
        if min_angle > 0.0:
            # Not NumPy's, whose last bit may be another elsewhere.
            sincos_(min_angle, &sine, &self.cosine)

    cdef int act(self, World* world, double h, Draws* draws) noexcept nogil:
        cdef double total = self.rate * self.n_edges
        cdef Coming* now
        cdef Py_ssize_t k = 0
        cdef bint ready = False
        cdef int failed, fault = 0
        if not total > 0.0:
            return 0
        self.drawn = 0
        while draws.next <= MOST_DRAWS:
            self.look_ahead(world, h, total, draws, k)
            now = &self.coming[k % ROOM]
            if now.t >= h:
                break
            # Two draws belong to each attempt, the second of which not all need.
            draws.next = <uint32_t> (2 * k + 1)
            k += 1
            self.counts[0] += 1
            if now.corner < 0 or self.triangles.quad_at(now.corner, &self.quad) != CAN_FLIP:
                continue
            if world.box.periodic and not self.fits(world):
                continue
            if self.cosine <= 1.0 and not self.is_in_shape(world):
                continue
            if not ready:
                fault = self.prepare(world)
                ready = True
                if fault != 0:
                    break
            # A flip moves points where the two triangles are not in one plane. It is the same the other way round.
            if self.holds_any and (self.holds(self.quad.first) or self.holds(self.quad.second)):
                continue
            fault = self.attempt(world, now.t, draws)
            if fault != 0:
                break
        if ready:
            failed = self.weights.leave(world)
            fault = failed if fault == 0 else fault
        return fault

    cdef void look_ahead(self, World* world, double h, double total, const Draws* draws, Py_ssize_t k) noexcept nogil:
        """Draw the attempts that come after attempt k, and ask in turns for the memory that they will read: it lies in
        no order, and most of it in no near cache. Flips in between may make some of that useless, nothing wrong."""
        cdef Draws early = draws[0]
        cdef Coming* one
        cdef double u[2]
        while self.drawn <= k + TO_CORNER and (self.drawn == 0 or self.coming[(self.drawn - 1) % ROOM].t < h):
            one = &self.coming[self.drawn % ROOM]
            early.next = <uint32_t> (2 * self.drawn)
            draw_two(&early, u)
            one.t = draw_exponential(u[0]) / total
            if self.drawn > 0:
                one.t += self.coming[(self.drawn - 1) % ROOM].t
            one.corner = <Py_ssize_t> (u[1] * (2.0 * self.n_edges))
            one.quad.first = -1
            # Borders are counted behind all corners; see above.
            one.corner = 3 * self.first_face + one.corner if one.corner < 3 * self.n_faces else -1
            if one.corner >= 0 and one.t < h:
                self.triangles.fetch_corner(one.corner)
            self.drawn += 1
        one = self.soon(k + TO_ACROSS, h)
        if one != NULL:
            self.triangles.fetch_across(one.corner)
        one = self.soon(k + TO_QUAD, h)
        if one != NULL:
            if self.triangles.quad_of(one.corner, &one.quad):
                self.triangles.fetch_ends(&one.quad)
                self.weights.fetch(world, &one.quad)
            else:
                one.corner = -1
        one = self.soon(k + TO_RING, h)
        if one != NULL and one.quad.first >= 0:
            self.triangles.fetch_ring(&one.quad)
        one = self.soon(k + TO_FACES, h)
        if one != NULL and one.quad.first >= 0:
            self.triangles.fetch_around(&one.quad)
            if world.n_points > 0:
                self.fetch_points(world, one.quad.first)
                self.fetch_points(world, one.quad.second)

    cdef void fetch_points(self, World* world, Py_ssize_t face) noexcept nogil:
        """What `take_points` reads of the points in a face, where lists of these are made."""
        cdef Py_ssize_t p = self.head[face - self.first_face], _k
        for _k in range(MOST_FETCHED):
            if p < 0:
                break
            prefetch(world.triangle + p)
            prefetch(world.barycentric + 2 * p)
            prefetch_doubles(world.v + 3 * (world.n_cartesian + p), 3)
            prefetch_doubles(world.x + 3 * (world.n_cartesian + p), 3)
            prefetch(world.mass + world.n_cartesian + p)
            p = self.next[p]

    cdef Coming* soon(self, Py_ssize_t k, double h) noexcept nogil:
        """Attempt k, where it has been drawn and has an edge."""
        cdef Coming* one = &self.coming[k % ROOM]
        return one if k < self.drawn and one.t < h and one.corner >= 0 else NULL

    # Before and after ----------------------------------------------------------------------------------------------

    cdef int prepare(self, World* world) noexcept nogil:
        """Work space for forces, and which points are in each face."""
        cdef Py_ssize_t k, p, f
        if world.n_points > 0:
            for f in range(self.n_faces):
                self.head[f] = -1
            for k in range(world.n_points):
                p = world.n_points - 1 - k
                f = world.triangle[p] - self.first_face
                if 0 <= f < self.n_faces and is_there(world, world.n_cartesian + p):
                    self.next[p] = self.head[f]
                    self.head[f] = <int32_t> p
        return self.weights.enter(world)

    cdef bint holds(self, Py_ssize_t face) noexcept nogil:
        """Whether constraints hold a point in a face; also where its list has no end, which an attempt finds."""
        cdef Py_ssize_t p = self.head[face - self.first_face], _k
        for _k in range(self.held.shape[0]):
            if p < 0 or self.held[p]:
                break
            p = self.next[p]
        return p >= 0 and self.held[p] != 0

    # One attempt ---------------------------------------------------------------------------------------------------

    cdef bint fits(self, World* world) noexcept nogil:
        """Whether the new edge, as it lies in the two triangles, is the one between nearest images, which is all that a
        box knows; and whether it and the old one are so much shorter than half of the box that motion leaves it so."""
        cdef const Quad* quad = &self.quad
        cdef const double* a = world.x + 3 * <Py_ssize_t> quad.a
        cdef const double* b = world.x + 3 * <Py_ssize_t> quad.b
        cdef const double* c = world.x + 3 * <Py_ssize_t> quad.c
        cdef const double* d = world.x + 3 * <Py_ssize_t> quad.d
        cdef double ab[3]
        cdef double ac[3]
        cdef double cb[3]
        cdef double cd[3]
        cdef double limit
        cdef int i
        displacement(&world.box, a, b, ab)
        displacement(&world.box, a, c, ac)
        displacement(&world.box, c, b, cb)
        displacement(&world.box, c, d, cd)
        for i in range(3):
            limit = LONGEST_FLIPPED * world.box.length[i]
            # Images are whole lengths of the box apart.
            if limit > 0.0 and (fabs(ab[i]) > limit or fabs(cd[i]) > limit or fabs(ac[i] + cb[i] - ab[i]) > limit):
                return False
        return True

    cdef bint is_in_shape(self, World* world) noexcept nogil:
        """Whether no angle is below the limit, of the two triangles and of those that would take their places."""
        cdef int32_t beads[12]
        cdef Py_ssize_t i
        cdef const Quad* quad = &self.quad
        faces_of_flip(quad, beads)
        beads[6], beads[7], beads[8] = quad.a, quad.c, quad.d
        beads[9], beads[10], beads[11] = quad.b, quad.d, quad.c
        for i in range(4):
            if not self.is_wide(world, beads + 3 * i):
                return False
        return True

    cdef bint is_wide(self, World* world, const int32_t* beads) noexcept nogil:
        """By cosines, with no square root: cos A cos A |b|^2 |c|^2 = (b.c)^2."""
        cdef double e[3][3]
        cdef double square[3]
        cdef double inner, limit = self.cosine * self.cosine
        cdef int i
        for i in range(3):
            displacement(&world.box, world.x + 3 * <Py_ssize_t> beads[(i + 1) % 3],
                         world.x + 3 * <Py_ssize_t> beads[(i + 2) % 3], e[i])
            square[i] = dot(e[i], e[i])
        for i in range(3):
            # The angle between the edges that meet at corner i.
            inner = -dot(e[(i + 1) % 3], e[(i + 2) % 3])
            if inner > 0.0 and inner * inner >= limit * square[(i + 1) % 3] * square[(i + 2) % 3]:
                return False
        return True

    cdef int attempt(self, World* world, double t, Draws* draws) noexcept nogil:
        cdef Quad* quad = &self.quad
        cdef Quad* back = &self.back
        cdef Change* change = &self.change
        cdef double u[2]
        cdef double gained, most = INFINITY, kinetic = 0.0, energy = 0.0
        cdef int fault
        u[0] = 0.0
        back.first, back.second, back.at_a, back.at_b = quad.first, quad.second, quad.at_a, quad.at_b
        back.rule = not quad.rule
        if quad.rule:
            back.a, back.c, back.d, back.b = quad.d, quad.a, quad.b, quad.c
        else:
            back.a, back.c, back.d, back.b = quad.c, quad.b, quad.a, quad.d
        self.triangles.make_room(quad)
        self.number += 1
        change.number = self.number
        change.there = 0
        change.positions = 0
        change.n_points = change.n_moved = 0
        if world.n_points > 0:
            kinetic = self.take_points(world)
            if change.n_points < 0:
                return record_fault(world, LOST_COUNT, quad.c, quad.first)
        if self.weights.may_stop:
            # What is refused in any case, beyond rounding, is of no interest.
            draw_two(draws, u)
            most = (draw_exponential(u[0]) * (1.0 + 1e-9) + 1e-9) * self.kT - kinetic
        fault = self.weights.gain_below(world, change, most, &energy)
        if fault != 0 or energy == INFINITY:
            return fault
        gained = (energy + kinetic) / self.kT
        if gained > 0.0:
            if not self.weights.may_stop:
                draw_two(draws, u)
            if not u[0] < exp_(-gained):
                return 0
        fault = self.weights.make(world, change)
        if fault != 0:
            return fault
        if world.n_points > 0:
            self.sort_points(world)
        # The ends of the new edge.
        return self.happened(world, t, 0, min(quad.a, quad.b) - self.first_bead, max(quad.a, quad.b) - self.first_bead,
                             energy + kinetic, kinetic, 0.0)

    cdef double take_points(self, World* world) noexcept nogil:
        """Carry the points of the two triangles along, and what that does to their kinetic energy. There are -1 points
        where the lists of points have no end."""
        cdef Change* change = &self.change
        cdef int32_t* points = &self.points[0]
        cdef double* v
        cdef const double* old
        cdef double kinetic = 0.0, more
        cdef Py_ssize_t n = 0, i, p, k
        cdef int c
        for k in range(2):
            p = self.head[(self.quad.second if k else self.quad.first) - self.first_face]
            while p >= 0:
                if n == world.n_points:
                    change.n_points = -1
                    return 0.0
                # In ascending order, whatever face they are in.
                i = n
                while i > 0 and points[i - 1] > p:
                    points[i] = points[i - 1]
                    i -= 1
                points[i] = <int32_t> p
                n += 1
                p = self.next[p]
        change.n_points = change.n_moved = n
        for i in range(n):
            p = points[i]
            self.moved[i] = <int32_t> (world.n_cartesian + p)
            v = change.v + 3 * i
            keep_point(world, p, change.triangle + i, change.barycentric + 2 * i, v)
            carry(world, &self.quad, change.triangle + i, change.barycentric + 2 * i, v)
            old = world.v + 3 * (world.n_cartesian + p)
            more = 0.0
            for c in range(3):
                more += (v[c] - old[c]) * (v[c] + old[c])
            kinetic += 0.5 * world.mass[world.n_cartesian + p] * more
        return kinetic

    cdef void sort_points(self, World* world) noexcept nogil:
        """Points of the two triangles are where they have been carried."""
        cdef Py_ssize_t i, k, p, f
        self.head[self.quad.first - self.first_face] = -1
        self.head[self.quad.second - self.first_face] = -1
        for i in range(self.change.n_points):
            k = self.change.n_points - 1 - i
            p = self.points[k]
            f = world.triangle[p] - self.first_face
            self.next[p] = self.head[f]
            self.head[f] = <int32_t> p
