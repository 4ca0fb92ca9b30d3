"""Shapes that may touch: points, segments and triangles, and which of them are near each other; for forces on them.

Shapes whose distance is below the sum of their radii plus a skin, when the lists are made, are in each other's rows; no
node has then to be watched but for how far it has moved since: distances of shapes change by no more than twice that.
Lists come from spheres around the shapes (neighbors.pyx) and are thinned by true distances and by who collides with
whom.
"""
import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset

from medyanpy._kernels.core.arrays cimport table, vector, zeros
from medyanpy._kernels.core.box cimport displacement, has_lengths
from medyanpy._kernels.core.closest_points cimport Closest, point_to_segment, point_to_triangle, segment_to_segment
from medyanpy._kernels.core.neighbors cimport ROWS_PER_BLOCK, NeighborList, Neighbors
from medyanpy._kernels.core.parallel cimport (
    SUM_BLOCK, n_blocks, ordered_max, over_blocks, record_fault, sum_in_blocks,
)
from medyanpy._kernels.core.program cimport NOT_FINITE, Operation, World
from medyanpy._kernels.core.sites cimport SiteArrays, SiteTable
from medyanpy._kernels.core.vec3 cimport cross, dot

cdef Py_ssize_t BLOCK = 1024
# Relative; makes up for the rounding of distances where lists are made.
cdef double MARGIN = 1e-9


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


cdef int _thin(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Rows of a block: what is really near and may be met, by number instead of slot."""
    cdef Shapes* t = <Shapes*> task
    cdef Neighbors* near = t.near
    cdef int32_t* row = near.rows[first // ROWS_PER_BLOCK]
    cdef int32_t* kept = row
    cdef double r[3]
    cdef double p[3]
    cdef double q[3]
    cdef double n[3]
    cdef Closest found[5]
    cdef double reach
    cdef Py_ssize_t s, m, other
    cdef int k, met
    for s in range(first, last):
        m = near.member[s]
        met = 0
        # What has nobody near it stays like this until the lists are made anew.
        memset(t.f + 3 * _corner(t, m), 0, 3 * _corners(t, m) * sizeof(double))
        t.energy[m] = 0.0
        for k in range(near.count[s]):
            other = near.member[row[k]]
            if not _meet(t, world, min(m, other), max(m, other)):
                continue
            reach = (t.radius[m] + t.radius[other] + near.skin) * (1.0 + MARGIN)
            if found[_approach(t, world, min(m, other), max(m, other), r, p, q, n, found) - 1].rr <= reach * reach:
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

    def __init__(self, const int32_t[::1] node, Py_ssize_t n_points, int width, const int32_t[::1] groups,
                 const double[::1] radius, const int32_t[::1] kind, const int32_t[:, ::1] chain, double skin):
        cdef Shapes* t = &self.shapes
        cdef Py_ssize_t n = groups.shape[0]
        cdef double[::1] around = np.array(radius)
        memset(t, 0, sizeof(Shapes))
        memset(&self.centers, 0, sizeof(SiteArrays))
        t.n = n
        self.n_corners = node.shape[0]
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
        t.near.reach = (max(only_a, both) + max(only_b, both) + t.near.skin) * (1.0 + MARGIN)
        t.near.valid = 0
        fault = self.neighbors.follow(world, &self.centers)
        if fault != 0:
            return fault
        if t.near.n < t.n:
            # On those that are asleep nothing acts.
            memset(t.f, 0, 3 * self.n_corners * sizeof(double))
            memset(t.energy, 0, t.n * sizeof(double))
        return over_blocks(_thin, t, world, t.near.n, ROWS_PER_BLOCK)


cdef struct Nodes:
    Py_ssize_t n
    const int32_t* place      # every node that is a corner, once
    double* built             # (n, 3) where they were when the lists were made
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
        displacement(&world.box, t.built + 3 * i, world.x + 3 * <Py_ssize_t> t.place[i], d)
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
            t.built[3 * i + c] = world.x[3 * <Py_ssize_t> t.place[i] + c]
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
    cdef readonly long long runs

    def __init__(self, str name, searches, SiteTable sites, const int32_t[::1] place, double skin,
                 const double[:, ::1] stiffness, double switchover, int neighbors,
                 const int32_t[::1] excluded_from, const int32_t[::1] excluded):
        cdef int[::1] stale = np.zeros(n_blocks(place.shape[0], BLOCK), np.intc)
        cdef Py_ssize_t corner = 0
        cdef Search search
        self.name = name
        self.first, self.second = searches[:2]
        self.third = searches[2] if len(searches) > 2 else None
        self.sites = sites
        self.arrays = [stale]
        self.nodes.n = place.shape[0]
        if self.nodes.n == 0:
            return
        self.nodes.place = vector(self.arrays, place)
        self.nodes.built = zeros(self.arrays, 3 * self.nodes.n)
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

    cdef int follow(self, World* world) noexcept nogil:
        """Lists that are complete for the positions of now."""
        cdef Nodes* t = &self.nodes
        cdef bint stale = not self.valid or (world.living != NULL and world.living[0] != self.living)
        cdef Py_ssize_t b
        cdef int fault
        stale |= not has_lengths(&world.box, self.length)
        if not stale:
            over_blocks(_compare, t, world, t.n, BLOCK)
            for b in range(n_blocks(t.n, BLOCK)):
                stale |= t.stale[b]
        if not stale:
            return 0
        self.valid = False
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
