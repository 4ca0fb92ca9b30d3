"""Where beads react: on membranes and in space.

On a membrane all straight lines from a point are found by windows: a cone of directions goes through an edge into the
next triangle, which is laid out beside those before; its corner divides the cone in two. Points are looked up by
triangle.

In space there is one line to each bead: that to its nearest image. Beads are looked up by cell. Cells are as wide as
the reach, and a bit more for rounding; their numbers are hashed, so that an open box has no end.

Bodies react by their centres.

Random places and velocities: lines are uniform within the reach, of points in the unfolded plane.
"""
import numpy as np

from libc.math cimport floor, sqrt
from libc.stdint cimport int32_t, uint64_t
from libc.stdlib cimport free, realloc

from medyanpy._kernels.beads.points cimport Frame, frame_of, place_one
from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.elementary cimport bits_of, log_core, sincos2pi
from medyanpy._kernels.core.program cimport Program, World
from medyanpy._kernels.core.unfold cimport Flat, axes_of, fly_straight, go_across, lay_out
from medyanpy._kernels.core.vec3 cimport dot
from medyanpy._kernels.jumps.jump cimport Draws, draw_maxwell, draw_two

cdef enum:
    MOST_WINDOWS = 4096       # of one point: more, and lines wind around the mesh
    DEEPEST = 512             # windows that wait
    MOST_CROSSINGS = 4096
    MOST_CELLS = 1048576      # of a periodic box, along one axis

# Cells are wider than the reach by this share, so that rounding carries no bead past its neighbour.
cdef double MARGIN = 1e-3


cdef struct Window:
    Flat flat
    int apex                  # the edge opposite is that which it came through
    double left[2]            # its cone: from left to right, counter-clockwise
    double right[2]


# A point in its triangle.
cdef struct Resident:
    int32_t place             # -1: it has left
    int32_t species
    double weights[2]


cdef class Ground:
    """What reactions ask of the place where they happen."""

    def __cinit__(self, *args, **kwargs):
        self.reach = 1.0
        self.looked = 0
        self.found = NULL
        self.found_room = 0

    def __dealloc__(self):
        free(self.found)

    cdef void begin(self, World* world, const int32_t* places, Py_ssize_t n) noexcept nogil:
        pass

    cdef void enter(self, World* world, int32_t place) noexcept nogil:
        pass

    cdef void leave(self, World* world, int32_t place) noexcept nogil:
        pass

    cdef double measure(self, World* world) noexcept nogil:
        return 0.0

    cdef Py_ssize_t lines_from(self, World* world, int32_t place, int32_t species) noexcept nogil:
        return 0

    cdef void draw_line(self, Draws* draws, double* d) noexcept nogil:
        pass

    cdef bint go(self, World* world, double share, const double* d, Spot* spot) noexcept nogil:
        return False

    cdef void draw_spot(self, World* world, Draws* draws, Spot* out) noexcept nogil:
        pass

    cdef void where(self, World* world, const Spot* spot, double* x) noexcept nogil:
        cdef int c
        for c in range(3):
            x[c] = spot.x[c]

    cdef void draw_velocity(self, World* world, Draws* draws, const Spot* spot, double variance,
                            double* v) noexcept nogil:
        pass

    cdef void draw_turn(self, World* world, Draws* draws, int32_t place, double kT, Spot* out) noexcept nogil:
        pass

    cdef double turning(self, World* world, int32_t place, double* roots) noexcept nogil:
        return 0.0

    cdef void turn_by(self, World* world, int32_t place, const double* roots) noexcept nogil:
        pass

    cdef void read(self, World* world, int32_t place, Spot* out) noexcept nogil:
        cdef int c
        for c in range(3):
            out.x[c] = world.x[3 * <Py_ssize_t> place + c]

    cdef void write(self, World* world, int32_t place, const Spot* spot) noexcept nogil:
        cdef int c
        for c in range(3):
            world.x[3 * <Py_ssize_t> place + c] = spot.x[c]

    cdef void put(self, World* world, int32_t place, const Spot* spot) noexcept nogil:
        self.write(world, place, spot)

    cdef bint note(self, Py_ssize_t n, int32_t place, double x, double y, double z) noexcept nogil:
        """Write down the n-th line; False: no memory."""
        cdef Line* grown
        if n == self.found_room:
            grown = <Line*> realloc(self.found, (2 * self.found_room + 64) * sizeof(Line))
            if grown == NULL:
                return False
            self.found = grown
            self.found_room = 2 * self.found_room + 64
        self.found[n].place = place
        self.found[n].d[0] = x
        self.found[n].d[1] = y
        self.found[n].d[2] = z
        return True


cdef class OnMembrane(Ground):
    """Points in the triangles of a membrane.

    Parameters
    ----------
    faces : (2,) int
        The faces of the membrane: the first, and behind the last.
    n_faces : int
        Of all membranes.
    first_point, n_points : int
        Of all points: the first, and how many.
    """
    cdef Py_ssize_t first_face, last_face, first_point
    # Points by triangle: of face f, those from start[f] on, sorted as the letter begins, of which some have left; and
    # chains of those that have come since. `following` is where a point stands in either.
    cdef int32_t[::1] start
    cdef Resident* residents
    cdef int32_t[::1] head
    cdef int32_t[::1] following
    cdef double area
    cdef long long measured, world
    cdef Window* windows

    def __init__(self, faces, Py_ssize_t n_faces, Py_ssize_t first_point, Py_ssize_t n_points):
        self.dimensions = 2
        self.first_face, self.last_face = faces
        self.first_point = first_point
        self.start = np.zeros(n_faces + 2, np.int32)
        self.head = np.full(max(1, n_faces), -1, np.int32)
        self.following = np.full(max(1, n_points), -1, np.int32)
        self.residents = <Resident*> realloc(NULL, (n_points + 1) * sizeof(Resident))
        self.measured = self.world = -1
        self.windows = <Window*> realloc(NULL, DEEPEST * sizeof(Window))
        if self.windows == NULL or self.residents == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.windows)
        free(self.residents)

    cdef void begin(self, World* world, const int32_t* places, Py_ssize_t n) noexcept nogil:
        """Sorted by triangle, so that those of one are read together."""
        cdef int32_t* start = &self.start[0]
        cdef Py_ssize_t k, face
        cdef int32_t place
        cdef Resident* one
        for face in range(self.first_face, self.last_face):
            self.head[face] = -1
        for face in range(self.first_face, self.last_face + 2):
            start[face] = 0
        for k in range(n):
            if world.alive[places[k]]:
                start[world.triangle[places[k] - self.first_point] + 2] += 1
        for face in range(self.first_face, self.last_face):
            start[face + 2] += start[face + 1]
        for k in range(n):
            place = places[k]
            if world.alive[place]:
                face = world.triangle[place - self.first_point]
                self.following[place - self.first_point] = start[face + 1]
                one = &self.residents[start[face + 1]]
                start[face + 1] += 1
                one.place = place
                one.species = world.species[place]
                one.weights[0] = world.barycentric[2 * (place - self.first_point)]
                one.weights[1] = world.barycentric[2 * (place - self.first_point) + 1]

    cdef void enter(self, World* world, int32_t place) noexcept nogil:
        """Into the chain of those that have come since."""
        cdef Py_ssize_t p = place - self.first_point
        cdef int32_t face = world.triangle[p]
        self.following[p] = self.head[face]
        self.head[face] = place

    cdef void leave(self, World* world, int32_t place) noexcept nogil:
        cdef int32_t next = self.following[place - self.first_point]
        cdef Py_ssize_t face = world.triangle[place - self.first_point]
        cdef int32_t* at = &self.head[face]
        if self.start[face] <= next < self.start[face + 1] and self.residents[next].place == place:
            self.residents[next].place = -1
            return
        while at[0] >= 0 and at[0] != place:
            at = &self.following[at[0] - self.first_point]
        at[0] = next

    cdef double measure(self, World* world) noexcept nogil:
        cdef Frame frame
        cdef Py_ssize_t face
        if self.measured != world.positions or self.world != world.number:
            self.measured = world.positions
            self.world = world.number
            self.area = 0.0
            for face in range(self.first_face, self.last_face):
                frame_of(&world.box, world.x, world.faces + 3 * face, &frame)
                self.area += 0.5 * sqrt(frame.nn)
        return self.area

    # Straight lines --------------------------------------------------------------------------------------------------

    cdef Py_ssize_t lines_from(self, World* world, int32_t place, int32_t species) noexcept nogil:
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
        cdef Py_ssize_t k
        cdef bint room = True
        for k in range(self.start[flat.face], self.start[flat.face + 1]):
            if self.residents[k].species == species and self.residents[k].place >= 0 and self.residents[k].place != own:
                room &= self.see(flat, left, right, self.residents[k].place, self.residents[k].weights, n)
        while at >= 0:
            if world.species[at] == species and at != own:
                room &= self.see(flat, left, right, at, world.barycentric + 2 * (at - self.first_point), n)
            at = self.following[at - self.first_point]
        return room

    cdef inline bint see(self, const Flat* flat, const double* left, const double* right, int32_t place,
                         const double* weights, Py_ssize_t* n) noexcept nogil:
        """Add a point, if the cone and the reach hold it; False: no memory."""
        cdef double first = (1.0 - weights[0]) - weights[1]
        cdef double x = first * flat.x[0] + weights[0] * flat.x[1] + weights[1] * flat.x[2]
        cdef double y = first * flat.y[0] + weights[0] * flat.y[1] + weights[1] * flat.y[2]
        if not x * x + y * y < self.reach * self.reach:
            return True
        if left != NULL and not (left[0] * y - left[1] * x >= 0.0 and x * right[1] - y * right[0] > 0.0):
            return True
        n[0] += 1
        return self.note(n[0] - 1, place, x, y, 0.0)

    cdef void draw_line(self, Draws* draws, double* d) noexcept nogil:
        cdef double u[2]
        cdef double length
        draw_two(draws, u)
        length = self.reach * sqrt(u[0])
        sincos2pi(u[1], &d[1], &d[0])
        d[0] *= length
        d[1] *= length
        d[2] = 0.0

    cdef bint go(self, World* world, double share, const double* d, Spot* spot) noexcept nogil:
        return fly_straight(world, &spot.face, spot.weights, share * d[0], share * d[1], MOST_CROSSINGS)

    def flown(self, Program program not None, int32_t place, double x, double y):
        """Face, and weights of its second and third corner, where a straight line from a point ends; for tests."""
        cdef Spot spot
        cdef double d[2]
        d[0] = x
        d[1] = y
        self.read(&program.world, place, &spot)
        if not self.go(&program.world, 1.0, d, &spot):
            raise ValueError("the line does not end")
        return spot.face, spot.weights[0], spot.weights[1]

    # Spots -----------------------------------------------------------------------------------------------------------

    cdef void draw_spot(self, World* world, Draws* draws, Spot* out) noexcept nogil:
        cdef Frame frame
        cdef double u[2]
        cdef double left, area
        cdef Py_ssize_t f
        draw_two(draws, u)
        left = u[0] * self.measure(world)
        out.face = <int32_t> self.first_face
        for f in range(self.first_face, self.last_face):
            frame_of(&world.box, world.x, world.faces + 3 * f, &frame)
            area = 0.5 * sqrt(frame.nn)
            out.face = <int32_t> f
            if left < area:
                break
            left -= area
        draw_two(draws, u)
        # Folded into the triangle.
        if u[0] + u[1] > 1.0:
            u[0] = 1.0 - u[0]
            u[1] = 1.0 - u[1]
        out.weights[0] = u[0]
        out.weights[1] = u[1]
        if (1.0 - u[0]) - u[1] < 0.0:
            out.weights[1] = 1.0 - u[0]

    cdef void where(self, World* world, const Spot* spot, double* x) noexcept nogil:
        cdef const double* origin = world.x + 3 * <Py_ssize_t> world.faces[3 * <Py_ssize_t> spot.face]
        cdef Frame frame
        cdef int c
        frame_of(&world.box, world.x, world.faces + 3 * <Py_ssize_t> spot.face, &frame)
        for c in range(3):
            x[c] = origin[c] + (spot.weights[0] * frame.e1[c] + spot.weights[1] * frame.e2[c])

    cdef void draw_velocity(self, World* world, Draws* draws, const Spot* spot, double variance,
                            double* v) noexcept nogil:
        """In the plane of the triangle."""
        cdef Frame frame
        cdef double u[2]
        cdef double ex[3]
        cdef double ey[3]
        cdef double size, along, beside
        cdef int c
        frame_of(&world.box, world.x, world.faces + 3 * <Py_ssize_t> spot.face, &frame)
        axes_of(&frame, ex, ey)
        draw_two(draws, u)
        size = sqrt(-2.0 * log_core(u[0]) * variance)
        sincos2pi(u[1], &beside, &along)
        for c in range(3):
            v[c] = size * (along * ex[c] + beside * ey[c])

    cdef void read(self, World* world, int32_t place, Spot* out) noexcept nogil:
        cdef Py_ssize_t p = place - self.first_point
        Ground.read(self, world, place, out)
        out.face = world.triangle[p]
        out.weights[0] = world.barycentric[2 * p]
        out.weights[1] = world.barycentric[2 * p + 1]

    cdef void write(self, World* world, int32_t place, const Spot* spot) noexcept nogil:
        cdef Py_ssize_t p = place - self.first_point
        Ground.write(self, world, place, spot)
        world.triangle[p] = spot.face
        world.barycentric[2 * p] = spot.weights[0]
        world.barycentric[2 * p + 1] = spot.weights[1]

    cdef void put(self, World* world, int32_t place, const Spot* spot) noexcept nogil:
        cdef Spot here = spot[0]
        cdef int c
        for c in range(3):
            # Of all images, that next to the first corner.
            here.x[c] = world.x[3 * <Py_ssize_t> world.faces[3 * <Py_ssize_t> spot.face] + c]
        self.write(world, place, &here)
        place_one(world, place - self.first_point)


cdef class InSpace(Ground):
    """Beads in space.

    Parameters
    ----------
    first, n : int
        Their places: the first, and how many with those of inactive rows.
    most : int, optional
        How many may enter at once, where these are fewer.
    """
    def __init__(self, Py_ssize_t first, Py_ssize_t n, most=None):
        size = 1 << max(4, int(2 * (n if most is None else most) - 1).bit_length())
        self.dimensions = 3
        self.first = first
        self.head = np.full(size, -1, np.int32)
        self.following = np.full(max(1, n), -1, np.int32)
        self.cell = np.zeros((max(1, n), 3))
        self.mask = size - 1

    cdef void begin(self, World* world, const int32_t* places, Py_ssize_t n) noexcept nogil:
        cdef double width = self.reach * (1.0 + MARGIN)
        cdef Py_ssize_t k
        cdef int c
        for k in range(self.head.shape[0]):
            self.head[k] = -1
        self.per_cell = 1.0 / width
        for c in range(3):
            self.around[c] = 0.0
            if world.box.length[c] > 0.0:
                self.around[c] = min(max(floor(world.box.length[c] / width), 1.0), <double> MOST_CELLS)
        for k in range(n):
            if world.alive[places[k]]:
                self.enter(world, places[k])

    cdef void find_cell(self, World* world, const double* x, double* out) noexcept nogil:
        cdef double share
        cdef int c
        for c in range(3):
            if self.around[c] > 0.0:
                share = x[c] * world.box.inverse[c]
                out[c] = min(floor((share - floor(share)) * self.around[c]), self.around[c] - 1.0)
            else:
                out[c] = floor(x[c] * self.per_cell)

    cdef int32_t* chain(self, const double* cell) noexcept nogil:
        """The first of the chain in which the beads of a cell are, and perhaps some of other cells."""
        cdef uint64_t hashed = 0
        cdef int c
        for c in range(3):
            # + 0 leaves no negative zero.
            hashed = (hashed ^ bits_of(cell[c] + 0.0)) * <uint64_t> 0x9E3779B97F4A7C15
            hashed ^= hashed >> 29
        return &self.head[<Py_ssize_t> (hashed & self.mask)]

    cdef void enter(self, World* world, int32_t place) noexcept nogil:
        cdef Py_ssize_t k = place - self.first
        cdef int32_t* head
        self.find_cell(world, world.x + 3 * <Py_ssize_t> place, &self.cell[k, 0])
        head = self.chain(&self.cell[k, 0])
        self.following[k] = head[0]
        head[0] = place

    cdef void leave(self, World* world, int32_t place) noexcept nogil:
        cdef int32_t* at = self.chain(&self.cell[place - self.first, 0])
        while at[0] >= 0 and at[0] != place:
            at = &self.following[at[0] - self.first]
        at[0] = self.following[place - self.first]

    cdef double measure(self, World* world) noexcept nogil:
        return world.box.length[0] * world.box.length[1] * world.box.length[2]

    cdef Py_ssize_t lines_from(self, World* world, int32_t place, int32_t species) noexcept nogil:
        return self.lines_to(
            world, world.x + 3 * <Py_ssize_t> place, &self.cell[place - self.first, 0], place, species)

    cdef Py_ssize_t lines_to(
        self, World* world, const double* x, const double* own, int32_t place, int32_t species,
    ) noexcept nogil:
        cdef double cell[3]
        cdef int low[3]
        cdef int high[3]
        cdef Py_ssize_t n = 0
        cdef int c, i, j, k
        for c in range(3):
            # Of fewer than three cells round the box, each is looked at once.
            low[c] = 0 if 0.0 < self.around[c] < 3.0 else -1
            high[c] = <int> self.around[c] - 1 if 0.0 < self.around[c] < 3.0 else 1
        for i in range(low[0], high[0] + 1):
            cell[0] = self.beside(0, own[0] + i)
            for j in range(low[1], high[1] + 1):
                cell[1] = self.beside(1, own[1] + j)
                for k in range(low[2], high[2] + 1):
                    cell[2] = self.beside(2, own[2] + k)
                    if not self.look(world, x, cell, place, species, &n):
                        return -1
        self.looked += (high[0] - low[0] + 1) * (high[1] - low[1] + 1) * (high[2] - low[2] + 1)
        return n

    cdef double beside(self, int c, double number) noexcept nogil:
        """The number of a cell, round the box."""
        if self.around[c] > 0.0:
            if number < 0.0:
                return number + self.around[c]
            if number >= self.around[c]:
                return number - self.around[c]
        return number

    cdef bint look(self, World* world, const double* x, const double* cell, int32_t own, int32_t species,
                   Py_ssize_t* n) noexcept nogil:
        """Add the beads of a species in a cell that are within reach of x; False: no memory."""
        cdef int32_t at = self.chain(cell)[0]
        cdef const double* other
        cdef double d[3]
        while at >= 0:
            other = &self.cell[at - self.first, 0]
            if (species < 0 or world.species[at] == species) and at != own and (
                    other[0] == cell[0] and other[1] == cell[1] and other[2] == cell[2]):
                displacement(&world.box, x, world.x + 3 * <Py_ssize_t> at, d)
                if dot(d, d) < self.reach * self.reach:
                    if not self.note(n[0], at, d[0], d[1], d[2]):
                        return False
                    n[0] += 1
            at = self.following[at - self.first]
        return True

    cdef void draw_line(self, Draws* draws, double* d) noexcept nogil:
        """The largest of three uniform numbers is distributed as the cube root of one: the length in a ball."""
        cdef double u[2]
        cdef double v[2]
        cdef double w[2]
        cdef double length, across, z
        draw_two(draws, u)
        draw_two(draws, v)
        draw_two(draws, w)
        length = self.reach * max(u[0], max(u[1], v[0]))
        z = 2.0 * v[1] - 1.0
        across = length * sqrt(max(0.0, 1.0 - z * z))
        sincos2pi(w[0], &d[1], &d[0])
        d[0] *= across
        d[1] *= across
        d[2] = length * z

    cdef bint go(self, World* world, double share, const double* d, Spot* spot) noexcept nogil:
        cdef int c
        for c in range(3):
            spot.x[c] += share * d[c]
        return True

    cdef void draw_spot(self, World* world, Draws* draws, Spot* out) noexcept nogil:
        """In the box around the origin."""
        cdef double u[4]
        cdef int c
        draw_two(draws, u)
        draw_two(draws, u + 2)
        for c in range(3):
            out.x[c] = (u[c] - 0.5) * world.box.length[c]

    cdef void draw_velocity(self, World* world, Draws* draws, const Spot* spot, double variance,
                            double* v) noexcept nogil:
        draw_maxwell(draws, variance, v)


cdef class BodiesInSpace(InSpace):
    """Bodies, by their centres.

    Rotations are uniform by the invariant measure, of which all of them together have 1: one of a product does not
    depend on those of what it comes from, and no constant is left in balances.
    """

    cdef void draw_turn(self, World* world, Draws* draws, int32_t place, double kT, Spot* out) noexcept nogil:
        """The two circles of a quaternion have squared radii that are uniform, and add up to 1."""
        cdef const double* rate = world.inverse_inertia + 3 * (place - world.first_oriented)
        cdef double u[4]
        cdef double first, second
        cdef int c
        draw_two(draws, u)
        draw_two(draws, u + 2)
        first = sqrt(1.0 - u[0])
        second = sqrt(u[0])
        sincos2pi(u[1], &out.q[1], &out.q[0])
        sincos2pi(u[2], &out.q[3], &out.q[2])
        for c in range(2):
            out.q[c] *= first
            out.q[2 + c] *= second
        draw_maxwell(draws, kT, out.spin)
        for c in range(3):
            out.spin[c] /= sqrt(rate[c])

    cdef double turning(self, World* world, int32_t place, double* roots) noexcept nogil:
        cdef Py_ssize_t first = 3 * (place - world.first_oriented)
        cdef int c
        for c in range(3):
            roots[c] = world.spin[first + c] * sqrt(world.inverse_inertia[first + c])
        return 0.5 * dot(roots, roots)

    cdef void turn_by(self, World* world, int32_t place, const double* roots) noexcept nogil:
        cdef Py_ssize_t first = 3 * (place - world.first_oriented)
        cdef int c
        for c in range(3):
            world.spin[first + c] = roots[c] / sqrt(world.inverse_inertia[first + c])

    cdef void read(self, World* world, int32_t place, Spot* out) noexcept nogil:
        cdef Py_ssize_t row = place - world.first_oriented
        cdef int c
        Ground.read(self, world, place, out)
        for c in range(4):
            out.q[c] = world.orientation[4 * row + c]
        for c in range(3):
            out.spin[c] = world.spin[3 * row + c]

    cdef void write(self, World* world, int32_t place, const Spot* spot) noexcept nogil:
        cdef Py_ssize_t row = place - world.first_oriented
        cdef int c
        Ground.write(self, world, place, spot)
        for c in range(4):
            world.orientation[4 * row + c] = spot.q[c]
        for c in range(3):
            world.spin[3 * row + c] = spot.spin[c]
