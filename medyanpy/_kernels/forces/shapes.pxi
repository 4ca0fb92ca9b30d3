"""Shapes that may touch: points, segments and triangles, and which of them are near each other; for forces on them.

Shapes whose distance is below the sum of their radii plus a skin, when the lists are made, are in each other's rows; no
node has then to be watched but for how far it has moved since: distances of shapes change by no more than twice that.
Lists come from spheres around the shapes (neighbors.pyx) and are thinned by true distances and by who collides with
whom.

Triangles and edges of membranes follow flips, and links the nodes that come and go. Shapes that such a change concerns
are found by cells: each has the sphere that it would have had when the lists were made, so that the same distances hold
for all; of a node that comes, or that a change puts far away, that is where it is put. At the next evaluation they are
put into the rows in which they would then have been, and edges get the numbers, by which sums are ordered, of their
ends.
"""
import numpy as np

from libc.math cimport NAN, sqrt
from libc.stdint cimport int32_t
from libc.string cimport memcmp, memcpy, memmove, memset

from medyanpy._kernels.core.arrays cimport table, vector, zeros
from medyanpy._kernels.core.box cimport displacement, has_lengths, nearest_image
from medyanpy._kernels.core.closest_points cimport Closest, point_to_segment, point_to_triangle, segment_to_segment
from medyanpy._kernels.beads.membrane cimport faces_of_flip
from medyanpy._kernels.core.local_terms cimport Few
from medyanpy._kernels.core.neighbors cimport GONE, NOT_STRAY, ROWS_PER_BLOCK, NeighborList, Neighbors
from medyanpy._kernels.core.parallel cimport (
    SUM_BLOCK, n_blocks, ordered_max, over_blocks, record_fault, sum_in_blocks,
)
from medyanpy._kernels.core.program cimport (
    Change, LOST_COUNT, NOT_FINITE, OUT_OF_MEMORY, Operation, Quad, ROW_CHANGES, World, changes_since, is_there,
)
from medyanpy._kernels.core.sites cimport HERE, PARKED, SiteArrays, SiteRows, SiteTable
from medyanpy._kernels.core.triangles cimport Triangles, corner_after, corner_before
from medyanpy._kernels.core.vec3 cimport add_scaled, cross, dot

cdef Py_ssize_t BLOCK = 1024
# Relative; makes up for the rounding of distances where lists are made.
cdef double MARGIN = 1e-9
# Shapes larger than cells allow are near everything: beyond so many lists are made anew, with larger cells.
cdef Py_ssize_t MOST_LARGE = 32
# By how much the ball around two triangles with equal sides grows where their edge is flipped.
cdef double SPARE = 1.5


cdef struct Law:
    const double* stiffness   # (classes, classes) k of a pair; 0: they do not meet
    Py_ssize_t classes
    double switchover         # κ
    int neighbors             # links of a filament with up to this many steps between them do not meet
    const int32_t* excluded_from  # (n + 1,) by place, or NULL
    const int32_t* excluded   # permanent numbers of beads, ascending


cdef struct Shapes:
    Py_ssize_t n
    Py_ssize_t n_points       # the first ones have one corner, the others `width`
    int width
    const int32_t* node       # corners by place, one shape after another
    double* f                 # by corner
    const double* radius      # (n,)
    const int32_t* kind       # (n,) class
    const int32_t* chain      # (n, 3) of links: filament, number along it, number of links if a ring or 0; else -1
    double* center            # (n, 3) and how far shapes reach around it, when the lists were made
    double* around
    double* longest           # (3, blocks) of `around`, by group
    unsigned char* there      # (n,) HERE, or PARKED where a corner is not there
    double* energy            # (n,)
    double* partial           # for the sum of energies
    Py_ssize_t blocks
    const Law* law
    Neighbors* near           # once the lists are thinned, rows hold numbers of shapes


cdef inline Py_ssize_t _corner(const Shapes* t, Py_ssize_t m) noexcept nogil:
    """Where the corners of a shape start."""
    return m if m < t.n_points else t.n_points + t.width * (m - t.n_points)


cdef inline int _corners(const Shapes* t, Py_ssize_t m) noexcept nogil:
    return 1 if m < t.n_points else t.width


cdef inline void _rest(const Shapes* t, Py_ssize_t m) noexcept nogil:
    """Nothing acts on a shape: what has an empty row stays like this until its row is another."""
    memset(t.f + 3 * _corner(t, m), 0, 3 * _corners(t, m) * sizeof(double))
    t.energy[m] = 0.0


cdef inline Py_ssize_t _shape(const Shapes* t, Py_ssize_t corner) noexcept nogil:
    """The shape of a corner."""
    return corner if corner < t.n_points else t.n_points + (corner - t.n_points) // t.width


cdef inline double _ball(const double* d, int corners, double* center) noexcept nogil:
    """A ball around corners d (corners, 3): the square of its radius."""
    cdef double e[3]
    cdef double farthest = 0.0, square, best
    cdef int c, k, i, j
    for c in range(3):
        center[c] = 0.0
        for k in range(corners):
            center[c] += d[3 * k + c] / corners
    for k in range(corners):
        for c in range(3):
            e[c] = d[3 * k + c] - center[c]
        farthest = max(farthest, dot(e, e))
    if corners < 3:
        return farthest
    best = farthest
    for k in range(3):
        # Around the middle of a side: of obtuse triangles the least there is.
        i, j = (k + 1) % 3, (k + 2) % 3
        for c in range(3):
            e[c] = 0.5 * (d[3 * i + c] - d[3 * j + c])
        square = dot(e, e)
        for c in range(3):
            e[c] = d[3 * k + c] - 0.5 * (d[3 * i + c] + d[3 * j + c])
        if max(square, dot(e, e)) < best:
            best = max(square, dot(e, e))
            for c in range(3):
                center[c] = d[3 * k + c] - e[c]
    # What rounding of the way to a corner may have left out.
    return best * (1.0 + MARGIN)


cdef int _surround(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Spheres around shapes."""
    cdef Shapes* t = <Shapes*> task
    cdef const int32_t* node
    cdef const double* x
    cdef double d[9]
    cdef double mean[3]
    cdef double farthest
    cdef double* longest = t.longest + first // BLOCK
    cdef Py_ssize_t m
    cdef int c, k, corners, fault = 0
    for k in range(3):
        longest[k * t.blocks] = 0.0
    for m in range(first, last):
        node = t.node + _corner(t, m)
        corners = _corners(t, m)
        mean[0] = mean[1] = mean[2] = 0.0
        t.there[m] = HERE
        for k in range(corners):
            if not is_there(world, node[k]):
                t.there[m] = PARKED
        if t.there[m] == PARKED:
            continue
        for k in range(corners):
            x = world.x + 3 * <Py_ssize_t> node[k]
            displacement(&world.box, world.x + 3 * <Py_ssize_t> node[0], x, d + 3 * k)
            for c in range(3):
                mean[c] += d[3 * k + c] / corners
                if not (0.0 * x[c] == 0.0):
                    fault = record_fault(world, NOT_FINITE, node[k], -1)
        farthest = 0.0
        for k in range(corners):
            for c in range(3):
                d[3 * k + c] -= mean[c]
            farthest = max(farthest, dot(d + 3 * k, d + 3 * k))
        for c in range(3):
            t.center[3 * m + c] = world.x[3 * <Py_ssize_t> node[0] + c] + mean[c]
        t.around[m] = t.radius[m] + sqrt(farthest)
        k = t.near.groups[m] - 1
        longest[k * t.blocks] = max(longest[k * t.blocks], t.around[m])
    return fault


cdef inline int _approach(
    const Shapes* t, World* world, Py_ssize_t a, Py_ssize_t b, double* r, double* p, double* q, double* n,
    Closest* found,
) noexcept nogil:
    """The closest points of shapes a < b: how many there are in `found`, the last of them the closest of all.

    r leads from the first corner of a to that of b, p and q along segments, or along the sides of the triangle b;
    n = p x q.
    """
    cdef const int32_t* i = t.node + _corner(t, a)
    cdef const int32_t* j = t.node + _corner(t, b)
    displacement(&world.box, world.x + 3 * <Py_ssize_t> i[0], world.x + 3 * <Py_ssize_t> j[0], r)
    if b < t.n_points:
        found.d[0], found.d[1], found.d[2] = r[0], r[1], r[2]
        found.rr = found.dd = dot(r, r)
        found.a[0] = found.b[0] = 1.0
        return 1
    displacement(&world.box, world.x + 3 * <Py_ssize_t> j[0], world.x + 3 * <Py_ssize_t> j[1], q)
    if a >= t.n_points:
        displacement(&world.box, world.x + 3 * <Py_ssize_t> i[0], world.x + 3 * <Py_ssize_t> i[1], p)
        cross(p, q, n)
        segment_to_segment(r, p, q, n, found)
        return 5
    if t.width == 2:
        point_to_segment(r, q, found)
    else:
        displacement(&world.box, world.x + 3 * <Py_ssize_t> j[0], world.x + 3 * <Py_ssize_t> j[2], p)
        point_to_triangle(r, q, p, found)
    return 1


cdef inline bint _meet(const Shapes* t, World* world, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    """Whether two shapes repel each other at all."""
    cdef const Law* law = t.law
    cdef const int32_t* i = t.node + _corner(t, a)
    cdef const int32_t* j = t.node + _corner(t, b)
    cdef const int32_t* own = t.chain + 3 * a
    cdef const int32_t* other = t.chain + 3 * b
    cdef int32_t steps, bead
    cdef int k, m, e
    if not law.stiffness[t.kind[a] * law.classes + t.kind[b]] > 0.0:
        return False
    if own[0] >= 0 and own[0] == other[0]:
        steps = own[1] - other[1] if own[1] > other[1] else other[1] - own[1]
        if steps <= law.neighbors or own[2] - steps <= law.neighbors and own[2] > 0:
            return False
    for k in range(_corners(t, a)):
        for m in range(_corners(t, b)):
            if i[k] == j[m]:
                return False
            if law.excluded_from != NULL:
                bead = world.bead[j[m]]
                for e in range(law.excluded_from[i[k]], law.excluded_from[i[k] + 1]):
                    if law.excluded[e] == bead:
                        return False
    return True


cdef bint _is_near(const Shapes* t, World* world, Py_ssize_t m, Py_ssize_t other) noexcept nogil:
    """Whether two shapes belong in each other's rows, if lists are made now."""
    cdef double r[3]
    cdef double p[3]
    cdef double q[3]
    cdef double n[3]
    cdef Closest found[5]
    cdef Py_ssize_t a = min(m, other), b = max(m, other)
    cdef double reach = (t.radius[a] + t.radius[b] + t.near.skin) * (1.0 + MARGIN)
    return _meet(t, world, a, b) and found[_approach(t, world, a, b, r, p, q, n, found) - 1].rr <= reach * reach


cdef int _thin(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Rows of a block: what is really near and may be met, by number instead of slot."""
    cdef Shapes* t = <Shapes*> task
    cdef Neighbors* near = t.near
    cdef int32_t* row = near.rows[first // ROWS_PER_BLOCK]
    cdef int32_t* kept = row
    cdef Py_ssize_t s, m, other
    cdef int k, met
    for s in range(first, last):
        m = near.member[s]
        met = 0
        _rest(t, m)
        for k in range(near.count[s]):
            other = near.member[row[k]]
            if _is_near(t, world, m, other):
                kept[met] = <int32_t> other
                met += 1
        row += near.count[s]
        kept += met
        near.count[s] = met
    return 0


cdef class Search:
    """Shapes of at most two kinds, among which neighbours are looked for.

    Parameters
    ----------
    node : (corners,) int32
        Places of the corners of all shapes: first those with one corner, then those with `width`.
    n_points, width : int
    groups : (n,) int32
        As in `NeighborList`.
    radius : (n,) float, nm, > 0
    kind : (n,) int32
        Class of each shape: row of the table of stiffnesses.
    chain : (n, 3) int32
        Of links: filament, number along it, number of links if it is a ring or 0; else -1.
    skin : float, nm, >= 0
    """
    cdef Shapes shapes
    cdef SiteArrays centers
    cdef readonly NeighborList neighbors
    cdef list arrays
    cdef readonly Py_ssize_t n_corners
    # Shapes of a change, with their corners now and in the other state.
    cdef signed char[::1] marks       # (n,) 1 of these, 2 of those that `seek` has found; None before any change
    cdef int32_t[::1] touched
    cdef int32_t[:, ::1] own
    cdef int32_t[:, ::1] their
    cdef Py_ssize_t n_touched
    cdef int32_t[::1] met             # (n,) what `seek` finds
    cdef unsigned char[::1] there
    cdef Few changed                  # those whose rows are to be mended
    cdef int32_t groups_changed       # in which groups any of these are
    # How large the spheres of A, of B and of both may be for cells to find what they may touch.
    cdef double[3] limit
    cdef double spare         # times the largest that there are
    cdef Py_ssize_t n_large   # how often a shape has become larger

    def __init__(self, const int32_t[::1] node, Py_ssize_t n_points, int width, const int32_t[::1] groups,
                 const double[::1] radius, const int32_t[::1] kind, const int32_t[:, ::1] chain, double skin):
        cdef Shapes* t = &self.shapes
        cdef Py_ssize_t n = groups.shape[0]
        cdef double[::1] around = np.array(radius)
        memset(t, 0, sizeof(Shapes))
        memset(&self.centers, 0, sizeof(SiteArrays))
        t.n = n
        self.marks = None
        self.spare = 1.0
        self.n_corners = node.shape[0]
        self.changed = Few(n)
        number = np.arange(n, dtype=np.int32)
        self.neighbors = NeighborList(
            number, groups, around, 0.0, skin, np.zeros(n + 1, np.int32), np.zeros(0, np.int32))
        if n == 0:
            return
        starts = np.concatenate([np.arange(n_points), np.arange(n_points, self.n_corners, width)])
        self.arrays = []
        # Spheres change while the simulation runs.
        self.neighbors.list.equal = 0
        t.n_points = n_points
        t.width = width
        t.node = vector(self.arrays, node)
        t.radius = vector(self.arrays, radius)
        t.kind = vector(self.arrays, kind)
        t.chain = table(self.arrays, chain)
        t.center = zeros(self.arrays, 3 * n)
        t.around = &around[0]
        self.arrays.append(around)
        t.blocks = n_blocks(n, BLOCK)
        t.longest = zeros(self.arrays, 3 * t.blocks)
        t.energy = zeros(self.arrays, n)
        t.partial = zeros(self.arrays, n_blocks(n, SUM_BLOCK))
        t.near = &self.neighbors.list
        self.there = np.full(n, HERE, np.uint8)
        t.there = &self.there[0]
        self.centers.there = t.there
        self.centers.x = t.center
        self.centers.id = vector[int32_t](self.arrays, number)
        self.centers.bead = vector[int32_t](self.arrays, np.asarray(node)[starts.astype(np.int64)])

    cdef int build(self, World* world) noexcept nogil:
        """Lists for the positions of now."""
        cdef Shapes* t = &self.shapes
        cdef double only_a, only_b, both
        cdef int fault
        if t.n == 0:
            return 0
        fault = over_blocks(_surround, t, world, t.n, BLOCK)
        if fault != 0:
            return fault
        only_a = ordered_max(t.longest, t.blocks)
        only_b = ordered_max(t.longest + t.blocks, t.blocks)
        both = ordered_max(t.longest + 2 * t.blocks, t.blocks)
        self.limit[0] = self.spare * max(only_a, both)
        self.limit[1] = self.spare * max(only_b, both)
        self.limit[2] = min(self.limit[0], self.limit[1])
        t.near.reach = (self.limit[0] + self.limit[1] + t.near.skin) * (1.0 + MARGIN)
        t.near.valid = 0
        self.changed.clear()
        self.groups_changed = 0
        self.n_large = 0
        fault = self.neighbors.follow(world, &self.centers)
        if fault != 0:
            return fault
        if t.near.n < t.n:
            # On those that are asleep nothing acts.
            memset(t.f, 0, 3 * self.n_corners * sizeof(double))
            memset(t.energy, 0, t.n * sizeof(double))
        return over_blocks(_thin, t, world, t.near.n, ROWS_PER_BLOCK)

    # Where a few shapes change --------------------------------------------------------------------------------------

    cdef int make_ready(self, World* world) noexcept nogil:
        """Tables for changes."""
        if self.shapes.n == 0:
            return 0
        if self.marks is None:
            with gil:
                self.marks = np.zeros(self.shapes.n, np.int8)
                self.touched, self.met = (np.zeros(self.shapes.n, np.int32) for _ in range(2))
                self.own, self.their = (np.zeros((self.shapes.n, 3), np.int32) for _ in range(2))
        return self.neighbors.index(world)

    cdef Py_ssize_t touch(self, Py_ssize_t m) noexcept nogil:
        """The number of a shape among those of the change; -1 where it is not there."""
        cdef const int32_t* node = self.shapes.node + _corner(&self.shapes, m)
        cdef Py_ssize_t k = 0
        cdef int c
        if self.there[m] == PARKED:
            return -1
        if self.marks[m]:
            while self.touched[k] != m:
                k += 1
            return k
        k = self.n_touched
        self.marks[m] = 1
        self.touched[k] = <int32_t> m
        for c in range(_corners(&self.shapes, m)):
            self.own[k, c] = self.their[k, c] = node[c]
        self.n_touched += 1
        return k

    cdef void take_corner(self, Py_ssize_t corner, bint renews) noexcept nogil:
        cdef Py_ssize_t m = _shape(&self.shapes, corner)
        if renews:
            self.changed.add(m)
        else:
            self.touch(m)

    cdef void touch_changed(self, const Change* change) noexcept nogil:
        """Of shapes that may have got other corners, those with one that moves."""
        cdef const int32_t* node
        cdef Py_ssize_t i, k, m
        cdef int c
        for k in range(self.changed.n):
            m = self.changed.items[k]
            node = self.shapes.node + _corner(&self.shapes, m)
            for c in range(_corners(&self.shapes, m)):
                for i in range(change.n_moved):
                    if node[c] == change.moved[i]:
                        self.touch(m)

    cdef void enter(self, bint other) noexcept nogil:
        """Give shapes of the change the corners of a state."""
        cdef int32_t* node
        cdef Py_ssize_t k
        cdef int c
        for k in range(self.n_touched):
            node = <int32_t*> self.shapes.node + _corner(&self.shapes, self.touched[k])
            for c in range(_corners(&self.shapes, self.touched[k])):
                node[c] = self.their[k, c] if other else self.own[k, c]

    cdef void release(self) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.n_touched):
            self.marks[self.touched[k]] = 0
        self.n_touched = 0

    cdef int around(self, const World* world, const double* x, Py_ssize_t m, double* d) noexcept nogil:
        """Corners d (corners, 3) of a shape as seen from the first; how many."""
        cdef const int32_t* node = self.shapes.node + _corner(&self.shapes, m)
        cdef int k, corners = _corners(&self.shapes, m)
        for k in range(corners):
            displacement(&world.box, x + 3 * <Py_ssize_t> node[0], x + 3 * <Py_ssize_t> node[k], d + 3 * k)
        return corners

    cdef void settle(self, World* world, Py_ssize_t m, const double* x) noexcept nogil:
        """Let others find a shape whose corners have places x."""
        cdef Shapes* t = &self.shapes
        cdef double d[9]
        cdef double center[3]
        cdef int32_t slot = t.near.slot_of[m]
        cdef int c
        if slot < 0:
            return
        t.around[m] = t.radius[m] + sqrt(_ball(d, self.around(world, x, m, d), center))
        add_scaled(1.0, x + 3 * <Py_ssize_t> t.node[_corner(t, m)], center)
        # In any case to a chain, which has those of now.
        t.near.built[slot] = NAN
        self.neighbors.put(world, m, center)
        if not t.around[m] <= self.limit[t.near.groups[m] - 1]:
            self.neighbors.loosen(m)
            self.n_large += 1
        nearest_image(&world.box, center)
        for c in range(3):
            t.near.built[t.near.apart * c + slot] = center[c]
        t.near.built[3 * t.near.apart + slot] = t.around[m]

    # Rows hold shapes that have changed as if the lists had been made with them, once these have been taken out, got
    # their numbers, and been put in.

    cdef bint take_out(self) noexcept nogil:
        """Take shapes that have changed out of all rows; False: there is no memory."""
        cdef Shapes* t = &self.shapes
        cdef Neighbors* near = t.near
        cdef Py_ssize_t i, m
        cdef int32_t slot, other
        cdef int k
        for i in range(self.changed.n):
            m = self.changed.items[i]
            slot = near.slot_of[m]
            if slot < 0:
                continue
            for k in range(near.count[slot]):
                # Rows move as others get shorter.
                other = near.row_of[m][k]
                if not self.neighbors.strike(near.slot_of[other], <int32_t> m):
                    return False
                if near.count[near.slot_of[other]] == 0:
                    _rest(t, other)
            _rest(t, m)
            if not self.neighbors.resize(slot, 0):
                return False
        return True

    cdef bint renew(self, World* world, const double* x) noexcept nogil:
        """Let others find shapes that have changed where their corners have places x, and those that are not there
        nowhere; False: all lists are better made again."""
        cdef Neighbors* near = self.shapes.near
        cdef const int32_t* node
        cdef Py_ssize_t i
        cdef int32_t m
        cdef int k
        if self.changed.n > 0 and near.n == 0:
            return False
        for i in range(self.changed.n):
            m = self.changed.items[i]
            node = self.shapes.node + _corner(&self.shapes, m)
            self.there[m] = HERE
            for k in range(_corners(&self.shapes, m)):
                if not is_there(world, node[k]):
                    self.there[m] = PARKED
            if self.there[m] == HERE:
                self.groups_changed |= near.groups[m]
                self.neighbors.show(m)
                self.settle(world, m, x)
            elif near.slot_of[m] >= 0:
                self.neighbors.hide(near.slot_of[m])
        return not self.neighbors.has_many_strays() and self.n_large <= MOST_LARGE

    cdef int number(self, World* world, const int32_t* to) noexcept nogil:
        """Give all shapes other numbers, in which those that have not changed follow each other as before."""
        cdef Neighbors* near = self.shapes.near
        cdef int32_t* row = NULL
        cdef Py_ssize_t s
        cdef int k
        for s in range(near.n):
            # The shape that gets its number may have an empty row.
            _rest(&self.shapes, near.member[s])
        for s in range(near.n):
            if s % ROWS_PER_BLOCK == 0:
                row = near.rows[s // ROWS_PER_BLOCK]
            near.member[s] = near.row[s] = near.id[s] = to[near.member[s]]
            for k in range(near.count[s]):
                row[k] = to[row[k]]
            row += near.count[s]
        for k in range(self.changed.n):
            self.changed.has[self.changed.items[k]] = 0
            self.changed.items[k] = to[self.changed.items[k]]
        for k in range(self.changed.n):
            self.changed.has[self.changed.items[k]] = 1
        near.indexed = -1
        return self.neighbors.index(world)

    cdef bint put_in(self, World* then) noexcept nogil:
        """Put shapes that have changed into rows, by places in the World when the lists were made; False: there is no
        memory."""
        cdef Shapes* t = &self.shapes
        cdef Neighbors* near = t.near
        cdef Py_ssize_t i, k, n
        cdef int32_t m, other
        for i in range(self.changed.n):
            m = self.changed.items[i]
            n = self.seek(then, m) if self.there[m] == HERE else 0
            if n < 0:
                return False
            for k in range(n):
                other = self.met[k]
                # Two that have changed find each other twice.
                if _is_near(t, then, m, other) and not (
                        self.neighbors.enter(near.slot_of[m], other, self.centers.id)
                        and self.neighbors.enter(near.slot_of[other], m, self.centers.id)):
                    return False
        self.changed.clear()
        self.groups_changed = 0
        return True

    cdef bint has_row(self, Py_ssize_t m) noexcept nogil:
        """Whether the row of a shape has all that it may touch: neither it nor any of these has changed since."""
        cdef int32_t own = self.shapes.near.groups[m], other = self.groups_changed
        return not self.changed.has[m] and not (own & 1 and other & 2) and not (own & 2 and other & 1)

    cdef Py_ssize_t seek(self, World* world, Py_ssize_t m) noexcept nogil:
        """List in `met` who may touch a shape, without those of the change; -1: there is no memory."""
        cdef double d[9]
        cdef int corners = self.around(world, world.x, m, d)
        cdef Py_ssize_t n = self.seek_part(
            world, m, world.x + 3 * <Py_ssize_t> self.shapes.node[_corner(&self.shapes, m)], d, corners, 0)
        cdef Py_ssize_t k
        for k in range(n):
            self.marks[self.met[k]] = 0
        return n

    cdef Py_ssize_t seek_part(
        self, World* world, Py_ssize_t m, const double* first, const double* d, int corners, Py_ssize_t known,
    ) noexcept nogil:
        """The same of a part with the corners first + d, of a shape of which so many are known."""
        cdef Shapes* t = &self.shapes
        cdef Neighbors* near = t.near
        cdef double center[3]
        cdef double half[9]
        cdef double side[3]
        cdef double square, longest = -1.0
        cdef Py_ssize_t n, i
        cdef int32_t other
        cdef int c, k, begin = 0, end = 0
        t.around[m] = t.radius[m] + sqrt(_ball(d, corners, center))
        if t.around[m] > self.limit[near.groups[m] - 1]:
            for k in range(corners):
                for c in range(3):
                    side[c] = d[3 * ((k + 1) % corners) + c] - d[3 * k + c]
                square = dot(side, side)
                if square > longest:
                    longest, begin, end = square, k, (k + 1) % corners
            if longest > MARGIN * t.radius[m] * t.radius[m]:
                # Larger than cells allow: two halves, cut where it is longest.
                for k in range(2):
                    memcpy(half, d, 3 * corners * sizeof(double))
                    for c in range(3):
                        half[3 * (begin if k else end) + c] = 0.5 * (d[3 * begin + c] + d[3 * end + c])
                    known = self.seek_part(world, m, first, half, corners, known)
                    if known < 0:
                        return known
                return known
        add_scaled(1.0, first, center)
        n = self.neighbors.near_place(world, m, center)
        for i in range(n):
            other = near.member[self.neighbors.found[i]]
            if self.marks[other] == 0:
                self.marks[other] = 2
                self.met[known] = other
                known += 1
        return known if n >= 0 else n


# Triangles or edges of a membrane that are shapes.
cdef struct Sheet:
    Py_ssize_t first_face
    Py_ssize_t n_faces
    Py_ssize_t first_vertex   # by place
    Py_ssize_t n_vertices
    Py_ssize_t n_edges
    Py_ssize_t triangle       # the first of all, in the second search; -1: they meet no others
    Py_ssize_t edge           # the same in the third
    int32_t* drawn            # (n_faces, 3) triangles of which the shapes are


cdef struct Nodes:
    Py_ssize_t n
    const int32_t* place      # every node that is a corner, once
    double* built             # (places, 3) where they were when the lists were made, or a change put them since
    double allowed            # square of how far they may go from there
    int* stale                # by block


cdef int _compare(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Whether a node has gone further than the rows allow."""
    cdef Nodes* t = <Nodes*> task
    cdef double d[3]
    cdef double allowed = t.allowed
    cdef int stale = 0
    cdef Py_ssize_t i
    for i in range(first, last):
        displacement(&world.box, t.built + 3 * <Py_ssize_t> t.place[i], world.x + 3 * <Py_ssize_t> t.place[i], d)
        # This way round, so that a position that is not a number counts as far.
        stale |= not (dot(d, d) <= allowed)
    t.stale[first // BLOCK] = stale
    return 0


cdef int _remember(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef Nodes* t = <Nodes*> task
    cdef Py_ssize_t i
    cdef int c
    for i in range(first, last):
        for c in range(3):
            t.built[3 * <Py_ssize_t> t.place[i] + c] = world.x[3 * <Py_ssize_t> t.place[i] + c]
    return 0


cdef class OfShapes(Operation):
    """A force on shapes that are near each other in two or three searches; the caller has checked numbers and left out
    who never meets.

    Parameters
    ----------
    name : str
    searches : two or three Search
    sites : SiteTable
        A site for every corner, search after search, made of its node alone.
    place : (nodes,) int32
        Every node that is a corner, once.
    skin : float, nm, >= 0
        That of the searches.
    stiffness : (classes, classes) float, pN/nm, >= 0
    switchover : float, >= 0
    neighbors : int, >= 0
    excluded_from : (n beads + 1,) int32, or None
        By place.
    excluded : (e,) int32
        Permanent numbers of the beads that each bead ignores.
    triangles : Triangles
        Of all membranes.
    sheets : (s, 7) int
        Of each membrane with triangles or edges among the shapes, what a Sheet has.
    """
    cdef readonly Search first
    cdef readonly Search second
    cdef readonly Search third
    cdef SiteTable sites
    cdef Law law
    cdef Nodes nodes
    cdef list arrays
    cdef bint valid
    cdef long long living     # `World.living` when the lists were made
    cdef double[3] length     # nm, of the box then
    cdef readonly long long builds
    cdef readonly long long mended    # how often shapes have been put into other rows instead
    cdef readonly long long runs
    cdef Triangles triangles
    cdef unsigned char[::1] of_sheets
    cdef Sheet* sheets
    cdef Py_ssize_t n_sheets
    cdef long long flips      # of `triangles` when theirs were compared
    cdef bint is_fluid        # whether any flip has been asked for
    cdef bint was_mended      # whether rows of shapes are to be mended
    cdef bint has_edges
    # The edge opposite each corner; None before any change. Room for that of before, and the number that each gets.
    cdef int32_t[::1] edge_of
    cdef int32_t[::1] edge_before
    cdef int32_t[::1] number_of
    # The state for which lists are right.
    cdef long long world
    cdef long long positions
    cdef Few away                  # nodes that a change has just put further away than rows allow
    # The change that is touched, and whether it had been made then.
    cdef const Change* change
    cdef int there

    def __init__(self, str name, searches, SiteTable sites, const int32_t[::1] place, double skin,
                 const double[:, ::1] stiffness, double switchover, int neighbors,
                 const int32_t[::1] excluded_from, const int32_t[::1] excluded, Triangles triangles,
                 const long long[:, ::1] sheets):
        cdef int[::1] stale = np.zeros(n_blocks(place.shape[0], BLOCK), np.intc)
        cdef Py_ssize_t corner = 0, k
        cdef Search search
        self.name = name
        self.first, self.second = searches[:2]
        self.third = searches[2] if len(searches) > 2 else None
        self.sites = sites
        self.edge_of = None
        self.arrays = [stale]
        self.nodes.n = place.shape[0]
        if self.nodes.n == 0:
            return
        self.away = Few(np.max(place) + 1)
        self.nodes.place = vector(self.arrays, place)
        self.nodes.built = zeros(self.arrays, 3 * (np.max(place) + 1))
        self.nodes.stale = &stale[0]
        self.nodes.allowed = 0.25 * skin * skin
        self.law.stiffness = table(self.arrays, stiffness)
        self.law.classes = stiffness.shape[0]
        self.law.switchover = switchover
        self.law.neighbors = neighbors
        self.law.excluded_from = NULL
        if excluded is not None and excluded.shape[0] > 0:
            self.law.excluded_from = vector(self.arrays, excluded_from)
            self.law.excluded = vector(self.arrays, excluded)
        for search in searches:
            search.shapes.law = &self.law
            search.shapes.f = sites.rows.f + 3 * corner
            corner += search.n_corners
        self.triangles = triangles
        self.flips = -1
        self.world = -1
        self.n_sheets = sheets.shape[0]
        self.of_sheets = np.zeros((self.n_sheets + 1) * sizeof(Sheet), np.uint8)
        self.sheets = <Sheet*> &self.of_sheets[0]
        for k in range(self.n_sheets):
            self.take_sheet(self.sheets + k, sheets[k])

    cdef int take_sheet(self, Sheet* sheet, const long long[::1] numbers) except -1:
        cdef int32_t[::1] drawn
        sheet.first_face, sheet.n_faces, sheet.first_vertex = numbers[0], numbers[1], numbers[2]
        sheet.n_vertices, sheet.n_edges, sheet.triangle, sheet.edge = numbers[3], numbers[4], numbers[5], numbers[6]
        self.has_edges |= sheet.edge >= 0
        faces = np.asarray(self.triangles.faces)[sheet.first_face:sheet.first_face + sheet.n_faces]
        drawn = np.array(faces).ravel()
        self.arrays.append(drawn)
        sheet.drawn = &drawn[0]
        return 0

    cdef bint has_other_faces(self, World* world) noexcept nogil:
        """Whether triangles are others than those of which the shapes are."""
        cdef Sheet* sheet
        cdef Py_ssize_t k
        if self.n_sheets == 0 or self.flips == self.triangles.flips:
            return False
        for k in range(self.n_sheets):
            sheet = self.sheets + k
            if memcmp(sheet.drawn, world.faces + 3 * sheet.first_face, 3 * sheet.n_faces * sizeof(int32_t)) != 0:
                return True
        if not self.was_mended:
            self.flips = self.triangles.flips
        return False

    cdef int draw(self, World* world) noexcept nogil:
        """Take the corners of triangles and edges from the faces of now."""
        cdef Sheet* sheet
        cdef Py_ssize_t k
        cdef Shapes* t
        for k in range(self.n_sheets):
            sheet = self.sheets + k
            memcpy(sheet.drawn, world.faces + 3 * sheet.first_face, 3 * sheet.n_faces * sizeof(int32_t))
            if sheet.triangle >= 0:
                t = &self.second.shapes
                memcpy(<int32_t*> t.node + _corner(t, sheet.triangle), sheet.drawn,
                       3 * sheet.n_faces * sizeof(int32_t))
            if sheet.edge >= 0 and not self.draw_edges(world, sheet):
                return record_fault(world, LOST_COUNT, sheet.first_vertex, sheet.first_face)
        self.draw_sites(self.first, 0)
        self.draw_sites(self.second, self.first.n_corners)
        self.draw_sites(self.third, self.first.n_corners + self.second.n_corners)
        self.sites.regroup()
        self.flips = self.triangles.flips
        return 0

    cdef void draw_sites(self, Search search, Py_ssize_t first) noexcept nogil:
        if search is not None and search.shapes.n > 0:
            memcpy(<int32_t*> self.sites.rows.bead + first, search.shapes.node, search.n_corners * sizeof(int32_t))

    cdef bint draw_edges(self, World* world, const Sheet* sheet) noexcept nogil:
        """Edges of a membrane by their ends, the lower first; False where there are others than ever."""
        cdef const int32_t* corners = self.triangles.rings.corners
        cdef int32_t* node = <int32_t*> self.third.shapes.node + _corner(&self.third.shapes, sheet.edge)
        cdef Py_ssize_t n = 0, first, v, s, i, corner
        cdef int32_t end
        cdef int side
        if self.edge_of is None:
            with gil:
                self.edge_of, self.edge_before = (np.zeros(3 * self.triangles.n_faces, np.int32) for _ in range(2))
                self.number_of = np.arange(self.third.shapes.n, dtype=np.int32)
        for v in range(sheet.first_vertex, sheet.first_vertex + sheet.n_vertices):
            first = n
            for side in range(4):
                # First all ends, then their numbers, on both sides of each corner.
                for s in range(self.triangles.rings.starts[v], self.triangles.rings.ends[v]):
                    corner = corner_after(corners[s]) if side % 2 else corner_before(corners[s])
                    end = world.faces[corner]
                    if end < v:
                        continue
                    i = n
                    while i > first and node[2 * i - 1] >= end:
                        i -= 1
                    if side > 1:
                        corner = corner_before(corners[s]) if side % 2 else corner_after(corners[s])
                        self.edge_of[corner] = <int32_t> (sheet.edge + i)
                        continue
                    if i < n and node[2 * i + 1] == end:
                        continue
                    if n == sheet.n_edges:
                        return False
                    memmove(node + 2 * i + 2, node + 2 * i, 2 * (n - i) * sizeof(int32_t))
                    node[2 * i] = <int32_t> v
                    node[2 * i + 1] = end
                    n += 1
        return n == sheet.n_edges

    cdef int follow(self, World* world) noexcept nogil:
        """Lists that are complete for the positions of now."""
        cdef Nodes* t = &self.nodes
        cdef bint other = self.has_other_faces(world)
        cdef bint stale = not self.valid or other or not has_lengths(&world.box, self.length)
        cdef bint known = False
        cdef Py_ssize_t b
        cdef int fault
        if not stale and world.living != NULL and world.living[0] != self.living:
            fault = self.make_ready(world)
            if fault != 0:
                return fault
            # Then no other node has moved.
            known = changes_since(world, self.living, self.positions) > 0
            stale = not self.renew(world)
        self.world = world.number
        self.positions = world.positions
        if not stale and not known:
            over_blocks(_compare, t, world, t.n, BLOCK)
            for b in range(n_blocks(t.n, BLOCK)):
                stale |= t.stale[b]
        if self.was_mended:
            stale |= max(self.first.n_large, self.second.n_large) > MOST_LARGE
            stale |= self.third is not None and self.third.n_large > MOST_LARGE
        if not stale:
            return self.mend(world) if self.was_mended else 0
        self.valid = False
        if other or self.was_mended:
            fault = self.draw(world)
            if fault != 0:
                return fault
        self.was_mended = False
        self.living = 0 if world.living == NULL else world.living[0]
        memcpy(self.length, world.box.length, sizeof(self.length))
        over_blocks(_remember, t, world, t.n, BLOCK)
        fault = self.first.build(world)
        if fault == 0:
            fault = self.second.build(world)
        if fault == 0 and self.third is not None:
            fault = self.third.build(world)
        self.valid = fault == 0
        self.builds += 1
        return fault

    cdef bint renew(self, World* world) noexcept nogil:
        """Whether it is known which nodes have come, gone or been put elsewhere: their shapes are then to be mended."""
        cdef Py_ssize_t place
        cdef long long k
        if self.world != world.number or not 0 <= world.living[0] - self.living <= ROW_CHANGES:
            return False
        for k in range(self.living + 1, world.living[0] + 1):
            place = world.row_changes[k % ROW_CHANGES].place
            if place < 0:
                return False
            if self.take_node(<int32_t> place, True):
                memcpy(self.nodes.built + 3 * place, world.x + 3 * place, 3 * sizeof(double))
                self.was_mended = True
        self.living = world.living[0]
        return self.first.renew(world, self.nodes.built) and self.second.renew(world, self.nodes.built) and (
            self.third is None or self.third.renew(world, self.nodes.built))

    cdef int mend(self, World* world) noexcept nogil:
        """Put shapes that have changed into the rows in which they would be if the lists had been made with them."""
        cdef World then = world[0]
        cdef bint done
        cdef int fault = 0
        then.x = self.nodes.built
        self.valid = self.was_mended = False
        done = self.first.take_out() and self.second.take_out() and (self.third is None or self.third.take_out())
        if self.n_sheets > 0 and self.flips != self.triangles.flips:
            if self.edge_of is not None:
                memcpy(&self.edge_before[0], &self.edge_of[0], 3 * self.triangles.n_faces * sizeof(int32_t))
            fault = self.draw(world)
            if fault == 0 and self.edge_of is not None:
                fault = self.number_edges(world)
        if fault != 0:
            return fault
        if not (done and self.first.put_in(&then) and self.second.put_in(&then) and (
                self.third is None or self.third.put_in(&then))):
            return record_fault(world, OUT_OF_MEMORY, -1, -1)
        self.valid = True
        self.mended += 1
        return 0

    cdef int number_edges(self, World* world) noexcept nogil:
        """Give edges the numbers with which they have been drawn."""
        cdef Sheet* sheet
        cdef Py_ssize_t i, k
        for k in range(self.n_sheets):
            sheet = self.sheets + k
            if sheet.edge >= 0:
                for i in range(3 * sheet.first_face, 3 * (sheet.first_face + sheet.n_faces)):
                    self.number_of[self.edge_before[i]] = self.edge_of[i]
        return self.third.number(world, &self.number_of[0])

    cdef int run(self, World* world) noexcept nogil:
        cdef int fault
        self.energy = 0.0
        if self.nodes.n == 0:
            return 0
        self.runs += 1
        # Positions are always compared, never the counter of the world: minimisation moves the same beads in a world
        # of its own.
        fault = self.follow(world)
        if fault != 0:
            return fault
        fault = self.act(world)
        return self.sites.scatter(world) if fault == 0 else fault

    cdef int act(self, World* world) noexcept nogil:
        """Forces on the corners of all shapes; the energy, where it is wanted."""
        return 0

    # Where a few beads and triangles change -------------------------------------------------------------------------

    cdef bint is_local(self) noexcept nogil:
        return True

    cdef bint tells_beads(self) noexcept nogil:
        return True

    cdef bint is_current(self, World* world, long long positions) noexcept nogil:
        """Whether lists are right for a state, and so are the tables of changes."""
        return self.valid and self.world == world.number and self.positions == positions and (
            world.living == NULL or world.living[0] == self.living)

    cdef int prepare(self, World* world, bint flips) noexcept nogil:
        cdef Py_ssize_t k
        cdef int fault = 0
        if flips and not self.is_fluid and self.n_sheets > 0:
            # From now on with cells for what flips make of triangles that are alike.
            self.is_fluid = True
            self.valid = False
            self.world = -1
            self.second.spare = SPARE
            if self.third is not None:
                self.third.spare = SPARE
        if not self.is_current(world, world.positions):
            fault = self.follow(world)
        if fault == 0:
            fault = self.make_ready(world)
        if fault == 0 and self.has_edges and self.edge_of is None:
            for k in range(self.n_sheets):
                if self.sheets[k].edge >= 0 and not self.draw_edges(world, self.sheets + k):
                    fault = record_fault(world, LOST_COUNT, self.sheets[k].first_vertex, self.sheets[k].first_face)
        return fault

    cdef int make_ready(self, World* world) noexcept nogil:
        cdef int fault = self.first.make_ready(world)
        if fault == 0:
            fault = self.second.make_ready(world)
        return self.third.make_ready(world) if fault == 0 and self.third is not None else fault

    cdef bint touch(self, World* world, const Change* change) noexcept nogil:
        cdef const Quad* quads = change.back if change.there else change.quads
        cdef const Quad* back = change.quads if change.there else change.back
        cdef Py_ssize_t i
        if self.nodes.n == 0:
            return True
        if self.prepare(world, change.n_flips > 0) != 0:
            return False
        self.change = change
        self.there = change.there
        self.take_moved(change)
        for i in range(change.n_flips):
            self.take_flip(quads + i)
        if self.edge_of is not None:
            for i in range(change.n_flips):
                self.turn(back + i)
        return True

    cdef void release(self) noexcept nogil:
        self.first.release()
        self.second.release()
        if self.third is not None:
            self.third.release()

    cdef void enter(self, bint other) noexcept nogil:
        self.first.enter(other)
        self.second.enter(other)
        if self.third is not None:
            self.third.enter(other)

    cdef void take_moved(self, const Change* change) noexcept nogil:
        """Shapes with a corner that moves."""
        cdef Py_ssize_t i
        for i in range(change.n_moved):
            self.take_node(change.moved[i], False)
        if change.n_beads > 0 and self.was_mended:
            # Sites have the corners that there were before.
            self.second.touch_changed(change)
            if self.third is not None:
                self.third.touch_changed(change)

    cdef bint take_node(self, int32_t place, bint renews) noexcept nogil:
        """Touch the shapes with a node as a corner, or let them be mended; whether there are any."""
        cdef const SiteRows* t = &self.sites.rows
        cdef Py_ssize_t owner = self.sites.owner_of(place), s, corner
        if owner < 0:
            return False
        for s in range(t.owner_start[owner], t.owner_start[owner + 1]):
            corner = t.owner_site[s]
            if corner < self.first.n_corners:
                self.first.take_corner(corner, renews)
                continue
            corner -= self.first.n_corners
            if corner < self.second.n_corners:
                self.second.take_corner(corner, renews)
            else:
                self.third.take_corner(corner - self.second.n_corners, renews)
        return True

    cdef Sheet* sheet_of(self, Py_ssize_t face) noexcept nogil:
        """The membrane of a face; NULL: it has no shapes here."""
        cdef Sheet* sheet
        cdef Py_ssize_t i
        for i in range(self.n_sheets):
            sheet = self.sheets + i
            if sheet.first_face <= face < sheet.first_face + sheet.n_faces:
                return sheet
        return NULL

    cdef void take_flip(self, const Quad* quad) noexcept nogil:
        """Triangles and the edge of a flip, with the corners that they get."""
        cdef const Sheet* sheet = self.sheet_of(quad.first)
        cdef int32_t beads[6]
        cdef Py_ssize_t k, m
        cdef int c
        if sheet != NULL and sheet.triangle >= 0:
            faces_of_flip(quad, beads)
            m = sheet.triangle - sheet.first_face
            k = self.second.touch(m + quad.first)
            for c in range(3):
                self.second.their[k, c] = beads[c]
            k = self.second.touch(m + quad.second)
            for c in range(3):
                self.second.their[k, c] = beads[3 + c]
        if sheet != NULL and sheet.edge >= 0:
            k = self.third.touch(self.edge_of[3 * quad.first + quad.at_a])
            self.third.their[k, 0] = min(quad.a, quad.b)
            self.third.their[k, 1] = max(quad.a, quad.b)
        if self.edge_of is not None:
            self.turn(quad)

    cdef void turn(self, const Quad* quad) noexcept nogil:
        """Edges around two faces go to other corners, as in `Triangles.flip`."""
        cdef int32_t* edge = &self.edge_of[0]
        cdef Py_ssize_t a = 3 * quad.first + quad.at_a, b = 3 * quad.second + quad.at_b
        cdef Py_ssize_t da = corner_after(a), ac = corner_before(a), cb = corner_after(b), bd = corner_before(b)
        if quad.rule:
            edge[da], edge[ac], edge[cb], edge[bd] = edge[bd], edge[da], edge[ac], edge[cb]
        else:
            edge[da], edge[ac], edge[cb], edge[bd] = edge[ac], edge[cb], edge[bd], edge[da]

    cdef bint changed(self, World* world, const Change* change) noexcept nogil:
        cdef const Quad* quads
        cdef Sheet* sheet
        cdef Py_ssize_t face, i
        cdef int k
        if world == NULL or self.nodes.n == 0 or change.n_flips + change.n_moved == 0:
            return True
        # Where nothing has been asked of any change, the next evaluation sees that triangles are others.
        if not (self.is_current(world, change.positions) and self.is_ready(self.first) and self.is_ready(self.second)
                and self.is_ready(self.third) and (self.edge_of is not None or not self.has_edges)):
            self.world = -1
            return True
        quads = change.quads if change.there else change.back
        self.take_moved(change)
        for i in range(change.n_flips):
            self.take_flip(quads + i)
            sheet = self.sheet_of(quads[i].first)
            if sheet != NULL:
                for k in range(2):
                    face = quads[i].second if k else quads[i].first
                    memcpy(sheet.drawn + 3 * (face - sheet.first_face), world.faces + 3 * face, 3 * sizeof(int32_t))
        self.enter(True)
        self.positions = world.positions
        for i in range(change.n_moved):
            self.let_go(world, change.moved[i])
        self.settle(world, self.first)
        self.settle(world, self.second)
        if self.third is not None:
            self.settle(world, self.third)
        self.release()
        self.away.clear()
        return True

    cdef void let_go(self, World* world, int32_t place) noexcept nogil:
        """Take a node that a change has put further away than rows allow as if it had been there ever since."""
        cdef double* built = self.nodes.built + 3 * <Py_ssize_t> place
        cdef const double* x = world.x + 3 * <Py_ssize_t> place
        cdef double d[3]
        if self.sites.owner_of(place) < 0:
            return
        displacement(&world.box, built, x, d)
        if not (dot(d, d) <= self.nodes.allowed):
            memcpy(built, x, 3 * sizeof(double))
            self.away.add(place)

    cdef bint is_ready(self, Search search) noexcept nogil:
        return search is None or search.shapes.n == 0 or search.marks is not None and search.shapes.near.indexed == (
            search.shapes.near.builds)

    cdef void settle(self, World* world, Search search) noexcept nogil:
        """Shapes of a change that has been made are where they would have been when the lists were made, in cells."""
        cdef Py_ssize_t k, m
        cdef int c
        cdef bint other
        for k in range(search.n_touched):
            m = search.touched[k]
            other = False
            for c in range(_corners(&search.shapes, m)):
                other |= search.own[k, c] != search.their[k, c] or self.away.has[search.their[k, c]] != 0
            if other:
                self.was_mended = True
                search.changed.add(m)
                search.groups_changed |= search.shapes.near.groups[m]
                search.settle(world, m, self.nodes.built)

    def pairs(self):
        """(number of search, shape, shape) of all entries of rows, sorted; shapes as tuples of their nodes' places."""
        cdef Search search
        cdef const int32_t* row
        cdef Py_ssize_t s
        cdef int k
        out = []
        for number, search in enumerate((self.first, self.second, self.third)):
            if search is None:
                continue
            node = None if search.shapes.n == 0 else np.asarray(search.arrays[0])

            def corners(m):
                first = _corner(&search.shapes, m)
                return tuple(node[first:first + _corners(&search.shapes, m)].tolist())

            for s in range(search.neighbors.list.n if self.valid else 0):
                if s % ROWS_PER_BLOCK == 0:
                    row = search.shapes.near.rows[s // ROWS_PER_BLOCK]
                for k in range(search.shapes.near.count[s]):
                    out.append((number, corners(search.shapes.near.member[s]), corners(row[k])))
                row += search.shapes.near.count[s]
        return sorted(out)
