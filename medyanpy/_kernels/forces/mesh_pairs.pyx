"""Radial energies of pairs of in-triangle points by their distance along the membrane.

The distance L of two points is the length of the shortest path between them over the triangles. Unfolded into a plane a
shortest path is straight in every strip of triangles; it bends only at vertices that have more than a full turn of
surface around them, and at corners of borders, where it leaves at least half a turn on either side.

From a point, or from a vertex at which paths bend, straight lines are followed outwards: those of one sector through
one edge enter one triangle (a `Node`), and part at its far corner. Nothing is trimmed: wherever a target lies in a
triangle, each sector that enters it proposes a length, and the shortest is kept. A sector ends at a border, and where
it is farther away than the range. At the far corner v, reached at the distance D, the directions on which neither of
the two parts goes on are searched from v with what is left of the range: a `Source`.

Places in a plane: the source at 0, corners of a triangle counter-clockwise, sectors from the direction `right`
counter-clockwise to `left`, less than half a turn. With E from the second corner of a triangle to the third, and u to
its first, the first is in the plane at s E' + h E'^ from the second, E'^ being E' turned by a quarter,

    s = u.E / E.E,    h = |E x u| / E.E

The gradient. L is least among the paths near by, so crossings may be kept where they are on their edges while vertices
move. With t the unit tangent (in space) of the path, from a at its start to b at its end,

    dL/da = -t_a,    dL/db = t_b,    dL/dq = t_before - t_after    for every place q where it crosses an edge or bends

and q is the mean of the ends of its edge with fixed weights. A string under the tension U'(L): it pulls its ends along,
and presses where it bends over an edge. What a and b pass on to the corners of their triangles is the chain rule, done
by whoever kicks.

Bits: the point of lower number is the source; forces are added up free of any order (accumulate.pxd).
Sources: J. S. B. Mitchell, D. M. Mount, C. H. Papadimitriou, SIAM J. Comput. 16, 647 (1987), shortest paths on a
polyhedron; J. Chen, Y. Han, Proc. 6th Symp. Comput. Geom., 360 (1990), unfolding without trimming.
"""
import numpy as np

from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy

from medyanpy._kernels.core.accumulate cimport Accumulator, Groups, Sum, note, to_grid
from medyanpy._kernels.core.arrays cimport vector, zeros
from medyanpy._kernels.core.box cimport Box, displacement, nearest_image
from medyanpy._kernels.core.local_terms cimport Few, NeighborForce
from medyanpy._kernels.core.neighbors cimport NeighborList, Neighbors, sort_by_id
from medyanpy._kernels.core.parallel cimport SUM_BLOCK, n_blocks, over_blocks, record_fault, sum_in_blocks
from medyanpy._kernels.core.prefetch cimport prefetch
from medyanpy._kernels.core.program cimport (
    DEGENERATE_TRIANGLE, LOST_COUNT, NOT_FINITE, OUT_OF_MEMORY, TOO_FAR, Change, Quad, World,
)
from medyanpy._kernels.forces.radial cimport END, SOFT_SPHERE, WCA, evaluate, lennard_jones_end
from medyanpy._kernels.core.sites cimport SiteTable
from medyanpy._kernels.core.triangles cimport Rings, Triangles
from medyanpy._kernels.core.vec3 cimport cross, dot

cdef enum:
    # Members of a block: a search costs from a microsecond to a millisecond.
    BLOCK = 8
    PUSHES = 4096
    # Triangles that straight lines from one point enter: a disc of a hundred edges' radius. 11 MB for each thread.
    MOST_NODES = 100_000
    # Edges beside a path that is found without a search.
    MOST_BESIDE = 16
    # Lines of triangles in which it is looked for.
    MOST_TURNS = 3
    # What `_turn` finds.
    BORDER = 0
    HALF_TURN = 1
    FULL_TURN = 2
    ENDLESS = 3               # neither within as many steps as there are faces

cdef extern from * nogil:
    """
    /* Sectors are closed, so that no target on an edge of one is lost: by this angle. A path that is wrong by an angle
       is too short by its square. */
    #define MEDYANPY_SLACK 1e-11
    /* Sectors that are narrower than this are rounding errors; those beside them have what is in them. */
    #define MEDYANPY_NARROW 1e-12
    /* A point that is nearer to a corner than this share of an edge is there. */
    #define MEDYANPY_AT_CORNER 1e-12
    /* The length of a path is known to this share of it: a search finds the path itself again. */
    #define MEDYANPY_KNOWN 1e-9
    """
    const double SLACK "MEDYANPY_SLACK"
    const double NARROW "MEDYANPY_NARROW"
    const double AT_CORNER "MEDYANPY_AT_CORNER"
    const double KNOWN "MEDYANPY_KNOWN"


# A triangle that straight lines from a source enter, through the edge between its second and third corner.
cdef struct Node:
    int32_t corner            # the first of its corners here, 3 face + corner
    int32_t parent            # where the lines come from; -1 where the source is in this triangle
    int32_t source
    double at[6]              # where its corners are in the plane
    double right[2]           # of length 1; 0, 0: lines go in all directions
    double left[2]


# The point itself, or a vertex where paths bend.
cdef struct Source:
    int32_t vertex            # -1: the point, inside a triangle
    int32_t node              # from which triangle the vertex was seen; -1: the point is there
    double place[2]           # where, in the plane of that
    double distance           # from the point


cdef struct Target:
    int32_t row               # its place among all beads
    int32_t node              # in which it was found; -1: not yet
    double weight[3]
    double place[2]
    double distance


cdef struct Push:
    int32_t slot              # a vertex, or behind all of these a point
    double f[3]


# Of the path between two points, by their rows.
cdef struct Length:
    int32_t one
    int32_t other
    double distance
    double axis[6]            # a direction at its start, and the same carried along to its end
    double hop[2]             # the path laid out flat: along that direction, and to the left of it


cdef struct Ball:
    double center[3]
    double radius


# A side of the square in which an edge flips: whatever way leads into it crosses one.
cdef struct Rim:
    double first[3]
    double unit[3]
    double length


# A point near a change.
cdef struct Close:
    int32_t point             # row of `World.triangle`
    int32_t member
    int changes               # whether its triangle changes
    double x[3]
    double away               # no more than how far it is from what changes
    # If a square is all that changes: where it is along each side of it, how far from its line, and how far from the
    # ends of all, one after another.
    double s[4]
    double h[4]
    double to[5]


# Two that may be joined by a path that changes, by their numbers among the points near it.
cdef struct Joined:
    int32_t one
    int32_t other
    double apart              # in space, now
    double least              # no way through what changes is shorter, in either state


# Triangles that follow each other, with their corners as they come: in space as seen from the start, in the plane, and
# on which side of the path they are, positive to the right.
cdef struct Strip:
    double at[MOST_BESIDE + 3][3]
    double flat[MOST_BESIDE + 3][2]
    double side[MOST_BESIDE + 3]
    int beside[MOST_BESIDE][2]    # ends of edges that it does not cross, counter-clockwise
    int portal[MOST_BESIDE][2]    # and of those that it crosses, the right one first


# Where straight paths from a point begin: its triangle.
cdef struct Start:
    double lay[6]             # as of `_lay`
    double n[3]               # along the normal
    double weight[3]          # of the point
    double at[3][3]           # corners as seen from the point
    double flat[3][2]         # the same in the plane


# What one thread works with. Memory grows where it must and is kept.
cdef struct Search:
    Node* nodes
    Py_ssize_t n_nodes, room_nodes
    Source* sources
    Py_ssize_t n_sources, room_sources
    Target* targets
    int32_t* faces            # of targets, in which they are: looked through for every node
    Py_ssize_t n_targets, room_targets, room_faces
    Push* pushes
    Py_ssize_t n_pushes, room_pushes
    Length* lengths           # of all pairs, where somebody asked for them
    Py_ssize_t n_lengths, room_lengths
    Py_ssize_t point          # whose search it is
    double weight[3]          # of the point, in its triangle
    double range              # beyond which nothing is looked for
    bint directed             # whether only sectors are followed that may lead to a target sooner than is known


cdef struct MeshTask:
    const Neighbors* near
    int kind
    const double* p
    double range
    double* energy            # by member
    bint keeps_lengths
    const int32_t* partners   # (n_points,) by row: the only other point that each is to look for; NULL: all are
    Search* searches          # (threads,)
    const Search* search      # whose pushes are added up
    Groups groups
    const int32_t* of_slot    # their membranes; not looked at where there is one
    Sum* sums
    Py_ssize_t n_sums


# In the plane -----------------------------------------------------------------------------------------------------

cdef inline double turn(const double* a, const double* b) noexcept nogil:
    """a x b: positive where b is counter-clockwise of a."""
    return a[0] * b[1] - a[1] * b[0]


cdef inline double along(const double* a, const double* b) noexcept nogil:
    return a[0] * b[0] + a[1] * b[1]


cdef inline void unit(const double* a, double* out) noexcept nogil:
    cdef double length = sqrt(along(a, a))
    out[0] = a[0] / length
    out[1] = a[1] / length


cdef inline bint is_inside(const double* right, const double* left, const double* place) noexcept nogil:
    """Whether a line of a sector leads to a place."""
    cdef double slack = -SLACK * sqrt(along(place, place))
    return turn(right, place) >= slack and turn(place, left) >= slack


cdef inline double nearest(const double* a, const double* b, const double* right, const double* left) noexcept nogil:
    """How far away the piece of the edge from a clockwise to b is that lies in a sector. Not more than that."""
    cdef double d[2]
    cdef double foot[2]
    cdef const double* side
    cdef double s, ff
    d[0] = a[0] - b[0]
    d[1] = a[1] - b[1]
    s = turn(b, a) / along(d, d)
    foot[0] = s * d[1]
    foot[1] = -s * d[0]
    ff = along(foot, foot)
    if turn(right, foot) < 0.0:
        side = right
    elif turn(foot, left) < 0.0:
        side = left
    else:
        return sqrt(ff)
    s = along(side, foot)
    return ff / s if s > 0.0 else 0.0


cdef inline double through(const Close* one, const Close* other, const Rim* rim) noexcept nogil:
    """No way between two points outside a square that leads through it is shorter."""
    cdef double d[4]
    cdef double place, away, first, last
    cdef int k
    for k in range(4):
        away = one.h[k] + other.h[k]
        # Where the shortest one by this line crosses it, times that: there, or by the end that is next to it.
        place = one.s[k] * other.h[k] + other.s[k] * one.h[k]
        first = one.to[k] + other.to[k]
        last = one.to[k + 1] + other.to[k + 1]
        d[k] = (one.s[k] - other.s[k]) * (one.s[k] - other.s[k]) + away * away
        d[k] = first * first if place < 0.0 else d[k]
        d[k] = last * last if place > away * rim[k].length else d[k]
    return sqrt(min(min(d[0], d[1]), min(d[2], d[3])))


cdef inline double by(double s, double h, double t, double k, double low, double high) noexcept nogil:
    """The shortest way between two places at s and t along a line, h and k away from it, by its piece low to high."""
    cdef double at = s + (t - s) * h / (h + k) if h + k > 0.0 else s
    at = min(max(at, low), high)
    return sqrt((s - at) * (s - at) + h * h) + sqrt((t - at) * (t - at) + k * k)


# Room ---------------------------------------------------------------------------------------------------------------

cdef void* _room(
    void* items, Py_ssize_t* room, Py_ssize_t n, size_t size, World* world, Py_ssize_t point,
) noexcept nogil:
    """Memory of at least n + 1 items; NULL where there is none, and then all is as it was."""
    cdef Py_ssize_t wanted = room[0]
    if n < wanted:
        return items
    while wanted <= n:
        wanted = 2 * wanted if wanted > 0 else 64
    items = realloc(items, wanted * size)
    if items == NULL:
        record_fault(world, OUT_OF_MEMORY, point, -1)
        return NULL
    room[0] = wanted
    return items


cdef inline Node* _new_node(Search* s, World* world) noexcept nogil:
    cdef Node* nodes
    if s.n_nodes >= MOST_NODES:
        record_fault(world, TOO_FAR, s.point, -1)
        return NULL
    nodes = <Node*> _room(s.nodes, &s.room_nodes, s.n_nodes, sizeof(Node), world, s.point)
    if nodes == NULL:
        return NULL
    s.nodes = nodes
    s.n_nodes += 1
    return nodes + s.n_nodes - 1


cdef inline int _new_source(
    Search* s, World* world, int32_t vertex, int32_t node, const double* place, double distance,
) noexcept nogil:
    """Its number; -1 where there is no memory."""
    cdef Source* sources = <Source*> _room(
        s.sources, &s.room_sources, s.n_sources, sizeof(Source), world, s.point)
    if sources == NULL:
        return -1
    s.sources = sources
    sources += s.n_sources
    sources.vertex = vertex
    sources.node = node
    sources.place[0] = place[0]
    sources.place[1] = place[1]
    sources.distance = distance
    s.n_sources += 1
    return <int> s.n_sources - 1


cdef inline int _push(Search* s, World* world, Py_ssize_t slot, double strength, const double* a) noexcept nogil:
    """`strength` times a on a slot."""
    cdef Push* pushes = <Push*> _room(s.pushes, &s.room_pushes, s.n_pushes, sizeof(Push), world, s.point)
    cdef int c
    if pushes == NULL:
        return world.fault.code
    s.pushes = pushes
    pushes += s.n_pushes
    pushes.slot = <int32_t> slot
    for c in range(3):
        pushes.f[c] = strength * a[c]
    s.n_pushes += 1
    return 0


# Triangles ----------------------------------------------------------------------------------------------------------

cdef inline int32_t corner_at(int32_t corner, int i) noexcept nogil:
    """The corner i places on in the same face."""
    return corner - corner % 3 + (corner % 3 + i) % 3


cdef int _no_area(World* world, Py_ssize_t point, int32_t corner) noexcept nogil:
    return record_fault(world, DEGENERATE_TRIANGLE, point, corner // 3)


cdef inline void edges_at(const World* world, int32_t corner, double* next, double* last) noexcept nogil:
    """The two edges of a face from one of its corners."""
    cdef const double* origin = world.x + 3 * <Py_ssize_t> world.faces[corner]
    displacement(&world.box, origin, world.x + 3 * <Py_ssize_t> world.faces[corner_at(corner, 1)], next)
    displacement(&world.box, origin, world.x + 3 * <Py_ssize_t> world.faces[corner_at(corner, 2)], last)


cdef inline int _lay(Search* s, World* world, int32_t corner, double* at) noexcept nogil:
    """A face in the plane: the given corner at 0, the next on the first axis."""
    cdef double e[3]
    cdef double d[3]
    cdef double n[3]
    edges_at(world, corner, e, d)
    cross(e, d, n)
    at[0] = at[1] = at[3] = 0.0
    at[2] = sqrt(dot(e, e))
    at[4] = dot(e, d) / at[2]
    at[5] = sqrt(dot(n, n)) / at[2]
    # What is not a number, too.
    return 0 if at[5] > 0.0 else _no_area(world, s.point, corner)


cdef bint _leads_on(
    const Search* s, const World* world, double come, int32_t corner, const double* a, const double* b,
    const double* right, const double* left,
) noexcept nogil:
    """Whether a path in a sector, across the edge from a clockwise to b, may lead to a target sooner than is known; the
    corner at a is given. Behind the edge no path is shorter than the straight line in space."""
    cdef const double* origin = world.x + 3 * <Py_ssize_t> world.faces[corner]
    cdef double E[3]
    cdef double e[3]
    cdef double d[2]
    cdef double length, low, high, own, height, t, square
    cdef Py_ssize_t k
    d[0] = b[0] - a[0]
    d[1] = b[1] - a[1]
    length = sqrt(along(d, d))
    # The piece of the edge in the sector.
    low, high = 0.0, length
    t = turn(left, a)
    if t > 0.0:
        low = length * t / (t - turn(left, b))
    t = turn(right, b)
    if t < 0.0:
        high = length * turn(right, a) / (turn(right, a) - t)
    low -= SLACK * length
    high += SLACK * length
    own = -along(a, d) / length
    height = turn(b, a) / length
    displacement(&world.box, origin, world.x + 3 * <Py_ssize_t> world.faces[corner_at(corner, 1)], E)
    for k in range(s.n_targets):
        displacement(&world.box, origin, world.x + 3 * <Py_ssize_t> s.targets[k].row, e)
        t = dot(e, E) / length
        square = dot(e, e) - t * t
        if come + by(own, height, t, sqrt(square) if square > 0.0 else 0.0, low, high) < s.targets[k].distance:
            return True
    return False


cdef int _enter(
    Search* s, World* world, int32_t parent, int32_t corner, int32_t source, const double* a, const double* b,
    const double* right, const double* left,
) noexcept nogil:
    """Lines of a sector cross the edge from a clockwise to b: into the triangle with this corner across it."""
    cdef Node* node
    cdef double E[3]
    cdef double u[3]
    cdef double n[3]
    cdef double d[2]
    cdef double EE, along_edge, height
    cdef int32_t second
    if corner < 0 or s.sources[source].distance + nearest(a, b, right, left) >= s.range:
        return 0
    second = corner_at(corner, 1)
    if s.directed and not _leads_on(s, world, s.sources[source].distance, second, a, b, right, left):
        return 0
    displacement(
        &world.box, world.x + 3 * <Py_ssize_t> world.faces[second],
        world.x + 3 * <Py_ssize_t> world.faces[corner_at(corner, 2)], E)
    displacement(
        &world.box, world.x + 3 * <Py_ssize_t> world.faces[second], world.x + 3 * <Py_ssize_t> world.faces[corner], u)
    cross(E, u, n)
    EE = dot(E, E)
    along_edge = dot(u, E) / EE
    height = sqrt(dot(n, n)) / EE
    # What is not a number, too.
    if not (height > 0.0):
        return _no_area(world, s.point, corner)
    node = _new_node(s, world)
    if node == NULL:
        return world.fault.code
    node.corner = corner
    node.parent = parent
    node.source = source
    d[0] = b[0] - a[0]
    d[1] = b[1] - a[1]
    node.at[0] = a[0] + (along_edge * d[0] - height * d[1])
    node.at[1] = a[1] + (along_edge * d[1] + height * d[0])
    node.at[2], node.at[3] = a[0], a[1]
    node.at[4], node.at[5] = b[0], b[1]
    node.right[0], node.right[1] = right[0], right[1]
    node.left[0], node.left[1] = left[0], left[1]
    return 0


# Bends --------------------------------------------------------------------------------------------------------------

cdef struct Turned:
    int32_t corner            # of the vertex, in the triangle where it ends
    int steps                 # how many triangles on from the first
    double c, s               # the direction there, as an angle from the edge that is come over


cdef int _turn(const World* world, int32_t first, bint left, double c, double s, Turned* out) noexcept nogil:
    """Around a vertex, counter-clockwise (`left`) or clockwise, up to half a turn from a direction in the triangle of
    its corner `first`; (c, s) is the angle to the edge of that triangle over which it goes on, less than half a turn.
    """
    cdef double e[3]
    cdef double d[3]
    cdef double n[3]
    cdef double cc, ss, length
    cdef int32_t corner = first, across
    cdef Py_ssize_t _k
    out.steps = 0
    for _k in range(world.n_faces + 1):
        out.corner = corner
        across = world.opposite[corner_at(corner, 1 if left else 2)]
        if across < 0:
            return BORDER
        # The neighbour runs along the shared edge the other way round.
        corner = corner_at(across, 1 if left else 2)
        if corner == first:
            return FULL_TURN
        out.steps += 1
        edges_at(world, corner, e, d)
        cross(e, d, n)
        cc = dot(e, d)
        ss = sqrt(dot(n, n))
        length = sqrt(cc * cc + ss * ss)
        cc /= length
        ss /= length
        # Less than half a turn more than less than half a turn.
        if s * cc + c * ss <= 0.0:
            out.corner = corner
            out.c = -c
            out.s = s
            return HALF_TURN
        length = c * cc - s * ss
        s = s * cc + c * ss
        c = length
    return ENDLESS


cdef int _around(
    Search* s, World* world, int32_t source, int32_t first, const Turned* start, const Turned* end,
) noexcept nogil:
    """The triangles around a vertex counter-clockwise from its corner `first`, as first nodes of a source: to the
    border or once round, or from a direction in the first, and to one in the last, where these are given."""
    cdef Node* node
    cdef double at[6]
    cdef double right[2]
    cdef double left[2]
    cdef int32_t corner = first
    cdef Py_ssize_t _k
    cdef int fault
    for _k in range(world.n_faces + 1):
        if corner < 0:
            return 0
        fault = _lay(s, world, corner, at)
        if fault != 0:
            return fault
        right[0] = 1.0
        right[1] = 0.0
        if start != NULL and corner == first:
            right[0] = start.c
            right[1] = start.s
        unit(at + 4, left)
        if end != NULL and corner == end.corner:
            # Clockwise from the left edge.
            left[0], left[1] = left[0] * end.c + left[1] * end.s, left[1] * end.c - left[0] * end.s
        if turn(right, left) > NARROW:
            node = _new_node(s, world)
            if node == NULL:
                return world.fault.code
            node.corner = corner
            node.parent = -1
            node.source = source
            memcpy(node.at, at, sizeof(at))
            node.right[0], node.right[1] = right[0], right[1]
            node.left[0], node.left[1] = left[0], left[1]
        if end != NULL and corner == end.corner:
            return 0
        corner = world.opposite[corner_at(corner, 1)]
        if corner >= 0:
            corner = corner_at(corner, 1)
        if corner == first:
            return 0
    return record_fault(world, LOST_COUNT, s.point, first // 3)


cdef int _bend(Search* s, World* world, int32_t number, int c) noexcept nogil:
    """A node's corner c is seen: if paths bend there, they are followed from there on."""
    cdef const Node* node = s.nodes + number
    cdef const double* place = node.at + 2 * c
    cdef int32_t corner = corner_at(node.corner, c)
    cdef int32_t vertex = world.faces[corner]
    cdef double distance = s.sources[node.source].distance + sqrt(along(place, place))
    cdef double r[3]
    cdef double back[2]
    cdef double e[2]
    cdef double d[2]
    cdef double length
    cdef Turned left
    cdef Turned right
    cdef int found_left, found_right, source, steps, fault
    cdef int32_t walk
    cdef Py_ssize_t k
    if not (distance < s.range):
        return 0
    if s.directed:
        k = 0
        while k < s.n_targets:
            displacement(&world.box, world.x + 3 * <Py_ssize_t> vertex, world.x + 3 * <Py_ssize_t> s.targets[k].row, r)
            if distance + sqrt(dot(r, r)) < s.targets[k].distance:
                break
            k += 1
        if k == s.n_targets:
            return 0
    for k in range(s.n_sources):
        # A shortest path leads to it by a shortest path.
        if s.sources[k].vertex == vertex and s.sources[k].distance <= distance * (1.0 + NARROW):
            return 0
    back[0] = -place[0]
    back[1] = -place[1]
    unit(back, back)
    for k in range(2):
        e[k] = node.at[2 * ((c + 1) % 3) + k] - place[k]
        d[k] = node.at[2 * ((c + 2) % 3) + k] - place[k]
    # Rounding may see the way back beside the triangle: it is along its edge.
    length = sqrt(along(d, d))
    found_left = _turn(world, corner, True, along(back, d) / length, max(turn(back, d), 0.0) / length, &left)
    length = sqrt(along(e, e))
    found_right = _turn(world, corner, False, along(e, back) / length, max(turn(e, back), 0.0) / length, &right)
    if found_left == FULL_TURN or found_right == FULL_TURN:
        return 0
    if found_left == ENDLESS or found_right == ENDLESS:
        return record_fault(world, LOST_COUNT, s.point, corner // 3)
    if found_left == HALF_TURN and found_right == HALF_TURN:
        # From the left, on to where it began; or to a border.
        walk = left.corner
        steps = 0
        while walk >= 0 and walk != corner and walk != right.corner and steps <= world.n_faces:
            walk = world.opposite[corner_at(walk, 1)]
            walk = corner_at(walk, 1) if walk >= 0 else walk
            steps += 1
        if walk == corner:
            return 0
        if walk >= 0:
            source = _new_source(s, world, vertex, number, place, distance)
            return _around(s, world, source, left.corner, &left, &right) if source >= 0 else world.fault.code
    if found_left == BORDER and found_right == BORDER:
        return 0
    source = _new_source(s, world, vertex, number, place, distance)
    if source < 0:
        return world.fault.code
    fault = 0
    if found_left == HALF_TURN:
        fault = _around(s, world, source, left.corner, &left, NULL)
    if found_right == HALF_TURN and fault == 0:
        fault = _around(s, world, source, _rightmost(world, right.corner), NULL, &right)
    return fault


cdef int32_t _rightmost(const World* world, int32_t corner) noexcept nogil:
    """The corner of the same vertex that is farthest clockwise: at a border, or this one after a full turn."""
    cdef int32_t walk = corner, across
    cdef Py_ssize_t _k
    for _k in range(world.n_faces + 1):
        across = world.opposite[corner_at(walk, 2)]
        if across < 0 or corner_at(across, 2) == corner:
            return walk
        walk = corner_at(across, 2)
    # Whoever goes round from there finds no end either, and says so.
    return walk


# The search ---------------------------------------------------------------------------------------------------------

cdef int _look(Search* s, World* world, int32_t number) noexcept nogil:
    """Targets in the triangle of a node, bends at its corners, and the triangles behind it."""
    # Nodes move in memory as they become more.
    cdef Node node = s.nodes[number]
    cdef Target* target
    cdef double place[2]
    cdef double right[2]
    cdef double left[2]
    cdef const double* a = node.at
    cdef const double* side
    cdef double distance
    cdef int32_t face = node.corner // 3
    cdef int first = node.corner % 3
    cdef bint everywhere = node.right[0] == 0.0 and node.right[1] == 0.0
    cdef bint nearer = False
    cdef Py_ssize_t k
    cdef int c, fault = 0
    for k in range(s.n_targets):
        if s.faces[k] != face:
            continue
        target = s.targets + k
        if everywhere:
            # Two points in one place have no distance, to the bit.
            for c in range(2):
                place[c] = (
                    (target.weight[1] - s.weight[1]) * (a[2 + c] - a[c])
                    + (target.weight[2] - s.weight[2]) * (a[4 + c] - a[c]))
        else:
            for c in range(2):
                place[c] = (
                    target.weight[first] * a[c] + target.weight[(first + 1) % 3] * a[2 + c]
                    + target.weight[(first + 2) % 3] * a[4 + c])
        distance = s.sources[node.source].distance + sqrt(along(place, place))
        if distance < target.distance and is_inside(node.right, node.left, place):
            target.distance = distance
            target.node = number
            target.place[0] = place[0]
            target.place[1] = place[1]
            nearer = True
    if nearer:
        # What is farther away than all that are looked for are known to be can lead to none of them.
        s.range = 0.0
        for k in range(s.n_targets):
            s.range = max(s.range, s.targets[k].distance)
    if node.parent < 0:
        # The first triangle of a source: the point's own, or one at a vertex, which is its first corner.
        for c in range(0 if everywhere else 1, 3):
            if fault == 0 and is_inside(node.right, node.left, a + 2 * c):
                fault = _bend(s, world, number, c)
        for c in range(3 if everywhere else 1):
            if fault != 0:
                break
            if everywhere:
                unit(a + 2 * ((c + 2) % 3), left)
                unit(a + 2 * ((c + 1) % 3), right)
            else:
                left[0], left[1] = node.left[0], node.left[1]
                right[0], right[1] = node.right[0], node.right[1]
            fault = _enter(
                s, world, number, world.opposite[corner_at(node.corner, c)], node.source, a + 2 * ((c + 2) % 3),
                a + 2 * ((c + 1) % 3), right, left)
        return fault
    distance = sqrt(along(a, a))
    if is_inside(node.right, node.left, a):
        fault = _bend(s, world, number, 0)
    place[0] = a[0] / distance
    place[1] = a[1] / distance
    # To the left of the first corner, and to its right.
    if fault == 0 and turn(place, node.left) > NARROW:
        side = place
        if turn(node.right, place) <= 0.0:
            side = node.right
        fault = _enter(
            s, world, number, world.opposite[corner_at(node.corner, 2)], node.source, a + 2, a, side, node.left)
    if fault == 0 and turn(node.right, place) > NARROW:
        side = place
        if turn(place, node.left) <= 0.0:
            side = node.left
        fault = _enter(
            s, world, number, world.opposite[corner_at(node.corner, 1)], node.source, a, a + 4, node.right, side)
    return fault


cdef int _begin(Search* s, World* world, Py_ssize_t p) noexcept nogil:
    """The first triangle of a search from in-triangle point p; all around it where it is at a corner."""
    cdef int32_t corner = 3 * world.triangle[p]
    cdef double* weight = s.weight
    cdef double nowhere[2]
    cdef double flat[6]
    cdef int i, c, source, fault
    cdef Node* node
    s.n_nodes = s.n_sources = 0
    fault = _lay(s, world, corner, flat)
    if fault != 0:
        return fault
    weight[1] = world.barycentric[2 * p]
    weight[2] = world.barycentric[2 * p + 1]
    weight[0] = (1.0 - weight[1]) - weight[2]
    nowhere[0] = nowhere[1] = 0.0
    for i in range(3):
        if max(weight[(i + 1) % 3], weight[(i + 2) % 3]) < AT_CORNER:
            corner = corner_at(corner, i)
            source = _new_source(s, world, world.faces[corner], -1, nowhere, 0.0)
            if source < 0:
                return world.fault.code
            return _around(s, world, source, _rightmost(world, corner), NULL, NULL)
    source = _new_source(s, world, -1, -1, nowhere, 0.0)
    node = _new_node(s, world)
    if source < 0 or node == NULL:
        return world.fault.code
    node.corner = corner
    node.parent = -1
    node.source = source
    for i in range(3):
        for c in range(2):
            # From the point: as accurate where it is close to a corner.
            node.at[2 * i + c] = (
                weight[(i + 1) % 3] * (flat[2 * i + c] - flat[2 * ((i + 1) % 3) + c])
                + weight[(i + 2) % 3] * (flat[2 * i + c] - flat[2 * ((i + 2) % 3) + c]))
    node.right[0] = node.right[1] = node.left[0] = node.left[1] = 0.0
    return 0


# Forces -------------------------------------------------------------------------------------------------------------

cdef void _tangent(const World* world, const Node* node, const double* place, double* out) noexcept nogil:
    """The unit vector in space of the line to a place in a node's plane, in the triangle of the node."""
    cdef const double* origin = world.x + 3 * <Py_ssize_t> world.faces[corner_at(node.corner, 1)]
    cdef double E[3]
    cdef double u[3]
    cdef double d[2]
    cdef double straight, across, length = sqrt(along(place, place))
    cdef int c
    displacement(&world.box, origin, world.x + 3 * <Py_ssize_t> world.faces[corner_at(node.corner, 2)], E)
    displacement(&world.box, origin, world.x + 3 * <Py_ssize_t> world.faces[node.corner], u)
    d[0] = node.at[4] - node.at[2]
    d[1] = node.at[5] - node.at[3]
    unit(d, d)
    straight = along(d, place) / length
    across = turn(d, place) / length
    length = sqrt(dot(E, E))
    for c in range(3):
        E[c] /= length
    length = dot(u, E)
    for c in range(3):
        u[c] -= length * E[c]
    length = sqrt(dot(u, u))
    for c in range(3):
        out[c] = straight * E[c] + across / length * u[c]


cdef void _before(
    const World* world, const Node* node, const double* place, double* tangent, double* bend,
) noexcept nogil:
    """From the tangent after a crossing or a bend to the one before it, and by what it changes there."""
    cdef double after[3]
    cdef int c
    memcpy(after, tangent, sizeof(after))
    _tangent(world, node, place, tangent)
    for c in range(3):
        bend[c] = after[c] - tangent[c]


cdef int _pull(Search* s, World* world, const Target* target, Py_ssize_t other, double tension) noexcept nogil:
    """A string under tension along the path from the point of a search to a target, whose place is `other`."""
    cdef const Node* node = s.nodes + target.node
    cdef const Source* source
    cdef double place[2]
    cdef double tangent[3]
    cdef double bend[3]
    cdef double right, left, share
    cdef Py_ssize_t points = world.n_vertices - world.n_cartesian
    cdef int32_t corner
    cdef Py_ssize_t _k
    cdef int fault
    place[0] = target.place[0]
    place[1] = target.place[1]
    _tangent(world, node, place, tangent)
    fault = _push(s, world, points + other, -tension, tangent)
    # Each step leads to a node that was made before.
    for _k in range(2 * MOST_NODES):
        if fault != 0:
            break
        if node.parent >= 0:
            # Over the edge between the second and the third corner.
            corner = node.corner
            left = turn(place, node.at + 2)
            right = -turn(place, node.at + 4)
            share = min(max(left / (left + right), 0.0), 1.0) if left + right > 0.0 else 0.5
            node = s.nodes + node.parent
            _before(world, node, place, tangent, bend)
            fault = _push(s, world, world.faces[corner_at(corner, 1)], tension * (1.0 - share), bend)
            if fault == 0:
                fault = _push(s, world, world.faces[corner_at(corner, 2)], tension * share, bend)
            continue
        source = s.sources + node.source
        if source.node < 0:
            break
        node = s.nodes + source.node
        place[0] = source.place[0]
        place[1] = source.place[1]
        _before(world, node, place, tangent, bend)
        fault = _push(s, world, source.vertex, tension, bend)
    return _push(s, world, points + s.point, tension, tangent) if fault == 0 else fault


cdef bint _turned(
    const World* world, const Node* before, const double* seen, const Node* after, const double* place, double* z,
) noexcept nogil:
    """By which angle, as a number of length 1, a path turns counter-clockwise at a corner of a border, where it comes
    from `before` and goes on in `after`; False where the corner is inside the surface."""
    cdef double back[2]
    cdef double e[2]
    cdef double p[2]
    cdef double come[2]
    cdef double go[2]
    cdef double next[3]
    cdef double last[3]
    cdef double n[3]
    cdef double cc, ss, length
    cdef int32_t vertex = world.faces[after.corner], own, corner
    cdef Py_ssize_t _k
    cdef int c = 0
    while c < 2 and world.faces[corner_at(before.corner, c)] != vertex:
        c += 1
    own = corner_at(before.corner, c)
    corner = _rightmost(world, own)
    if world.opposite[corner_at(corner, 2)] >= 0:
        return False
    # Directions are angles from the border on the right.
    back[0], back[1] = -seen[0], -seen[1]
    e[0] = before.at[2 * ((c + 1) % 3)] - seen[0]
    e[1] = before.at[2 * ((c + 1) % 3) + 1] - seen[1]
    p[0], p[1] = 1.0, 0.0
    come[0] = go[0] = 1.0
    come[1] = go[1] = 0.0
    for _k in range(world.n_faces + 1):
        if corner < 0:
            break
        if corner == own:
            come[0], come[1] = along(e, back), turn(e, back)
            unit(come, come)
            come[0], come[1] = p[0] * come[0] - p[1] * come[1], p[0] * come[1] + p[1] * come[0]
        if corner == after.corner:
            # It lies with its next edge along the first axis.
            unit(place, go)
            go[0], go[1] = p[0] * go[0] - p[1] * go[1], p[0] * go[1] + p[1] * go[0]
        edges_at(world, corner, next, last)
        cross(next, last, n)
        cc = dot(next, last)
        ss = sqrt(dot(n, n))
        length = sqrt(cc * cc + ss * ss)
        p[0], p[1] = (p[0] * cc - p[1] * ss) / length, (p[0] * ss + p[1] * cc) / length
        corner = world.opposite[corner_at(corner, 1)]
        if corner >= 0:
            corner = corner_at(corner, 1)
    # Straight on is half a turn from where it comes from.
    z[0] = -(come[0] * go[0] + come[1] * go[1])
    z[1] = -(come[0] * go[1] - come[1] * go[0])
    return True


cdef int _keep(Search* s, World* world, const Target* target) noexcept nogil:
    """Write down how far a target is, and the path rolled out on a plane.

    Inside a surface a path is straight where it bends: what smooth surfaces that are close to this one tell of their
    geodesics, whose tangents they carry along. Only corners of borders turn it.
    """
    cdef Length* lengths = <Length*> _room(
        s.lengths, &s.room_lengths, s.n_lengths, sizeof(Length), world, s.point
    )
    cdef const Node* node = s.nodes + target.node
    cdef const Node* after
    cdef const Source* source
    cdef double place[2]
    cdef double z[2]
    cdef double u[2]          # the direction of a piece, as seen from that of the last
    cdef double length
    cdef Py_ssize_t _k
    if lengths == NULL:
        return world.fault.code
    s.lengths = lengths
    lengths += s.n_lengths
    lengths.one, lengths.other, lengths.distance = <int32_t> s.point, target.row, target.distance
    place[0], place[1] = target.place[0], target.place[1]
    length = sqrt(along(place, place))
    if length == 0.0:
        # Any direction is carried along.
        place[0] = 1.0
    _tangent(world, node, place, lengths.axis + 3)
    lengths.hop[0], lengths.hop[1] = length, 0.0
    u[0], u[1] = 1.0, 0.0
    for _k in range(2 * MOST_NODES):
        if node.parent >= 0:
            node = s.nodes + node.parent
            continue
        source = s.sources + node.source
        if source.node < 0:
            break
        after = node
        node = s.nodes + source.node
        if _turned(world, node, source.place, after, place, z):
            u[0], u[1] = u[0] * z[0] + u[1] * z[1], u[1] * z[0] - u[0] * z[1]
        place[0], place[1] = source.place[0], source.place[1]
        length = sqrt(along(place, place))
        lengths.hop[0] += length * u[0]
        lengths.hop[1] += length * u[1]
    # From the direction of the first piece to that of the last.
    place[0], place[1] = place[0] * u[0] + place[1] * u[1], place[1] * u[0] - place[0] * u[1]
    _tangent(world, node, place, lengths.axis)
    s.n_lengths += 1
    return 0


cdef bint _aim(Search* s, World* world, Py_ssize_t p) noexcept nogil:
    """Look for in-triangle point p as well; False where there is no memory."""
    cdef Target* targets = <Target*> _room(s.targets, &s.room_targets, s.n_targets, sizeof(Target), world, s.point)
    cdef int32_t* faces
    if targets == NULL:
        return False
    s.targets = targets
    faces = <int32_t*> _room(s.faces, &s.room_faces, s.n_targets, sizeof(int32_t), world, s.point)
    if faces == NULL:
        return False
    s.faces = faces
    faces[s.n_targets] = world.triangle[p]
    targets += s.n_targets
    targets.row = <int32_t> (world.n_cartesian + p)
    targets.node = -1
    targets.weight[1] = world.barycentric[2 * p]
    targets.weight[2] = world.barycentric[2 * p + 1]
    targets.weight[0] = (1.0 - targets.weight[1]) - targets.weight[2]
    targets.distance = s.range
    s.n_targets += 1
    return True


cdef int _find(Search* s, World* world, Py_ssize_t p) noexcept nogil:
    """The ways from in-triangle point p to all targets."""
    cdef int fault = _begin(s, world, p)
    cdef Py_ssize_t k = 0
    while fault == 0 and k < s.n_nodes:
        fault = _look(s, world, <int32_t> k)
        k += 1
    return fault


cdef int _search(MeshTask* t, World* world, Py_ssize_t member, int thread) noexcept nogil:
    """All pairs of which a member has the lower number."""
    cdef Search* s = t.searches + thread
    cdef const Neighbors* near = t.near
    cdef Py_ssize_t own = near.slot_of[member], p, other, k
    cdef int32_t slot
    cdef double u[4]
    cdef double d[3]
    cdef double largest = 0.0
    cdef Py_ssize_t first_push = s.n_pushes
    cdef int fault
    t.energy[member] = 0.0
    if own < 0:
        return 0
    s.point = near.row[own]
    p = s.point - world.n_cartesian
    s.range = t.range
    s.directed = False
    s.n_targets = 0
    for k in range(near.count[own]):
        slot = near.row_of[member][k]
        other = near.row[slot]
        # Numbers that jumps have given out may have more bits.
        if near.id[slot] < near.id[own] or (near.id[slot] == near.id[own] and other < s.point):
            continue
        other -= world.n_cartesian
        if t.partners != NULL and t.partners[p] != other:
            continue
        # No way leads to another membrane.
        if t.groups.of_point != NULL and t.groups.of_point[other] != t.groups.of_point[p]:
            continue
        # Nor is one shorter than the straight line.
        displacement(&world.box, near.now + 4 * own, near.now + 4 * <Py_ssize_t> slot, d)
        if dot(d, d) > t.range * t.range * (1.0 + SLACK):
            continue
        if not _aim(s, world, other):
            return world.fault.code
    if s.n_targets == 0:
        return 0
    fault = _find(s, world, p)
    for k in range(s.n_targets if fault == 0 else 0):
        if s.targets[k].node < 0:
            continue
        if t.keeps_lengths:
            fault = _keep(s, world, s.targets + k)
            if fault != 0:
                return fault
        evaluate(t.kind, t.p, s.targets[k].distance, 1, u)
        t.energy[member] += u[0]
        if not (u[1] - u[1] == 0.0):
            return record_fault(world, NOT_FINITE, s.point, world.triangle[p])
        # Points in one place have no direction to pull in. Zero is the mean over all of them.
        if s.targets[k].place[0] != 0.0 or s.targets[k].place[1] != 0.0:
            fault = _pull(s, world, s.targets + k, s.targets[k].row, u[1])
        if fault != 0:
            return fault
    for k in range(first_push, s.n_pushes):
        largest = max(largest, dot(s.pushes[k].f, s.pushes[k].f))
    note(&t.groups, thread, p, largest)
    return fault


cdef int _members(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef Py_ssize_t m
    cdef int fault = 0
    for m in range(first, last):
        fault |= _search(<MeshTask*> task, world, m, thread)
    return fault


cdef int _add(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Pushes onto their slots."""
    cdef MeshTask* t = <MeshTask*> task
    cdef Sum* sums = t.sums + 3 * t.n_sums * thread
    cdef const Push* push
    cdef double scale
    cdef Py_ssize_t k
    cdef int c
    for k in range(first, last):
        push = t.search.pushes + k
        scale = t.groups.scale[0 if t.groups.of_point == NULL else t.of_slot[push.slot]]
        for c in range(3):
            sums[3 * <Py_ssize_t> push.slot + c] += to_grid(push.f[c], scale)
    return 0


cdef double _section(const World* world, Py_ssize_t p, Py_ssize_t q, double most) noexcept nogil:
    """The length of a path from one in-triangle point to another, where a plane through both cuts the triangles: no
    less than the shortest, by more than rounding. INFINITY where it is longer than `most`, or meets a border."""
    cdef const double* x = world.x + 3 * (world.n_cartesian + p)
    cdef Py_ssize_t face = world.triangle[p], goal = world.triangle[q]
    cdef double d[3]
    cdef double e[3]
    cdef double n[3]
    cdef double r[9]
    cdef double side[3]       # of the plane: positive to the right
    cdef double last[3]
    cdef double length = 0.0, u, step, square
    cdef int32_t across
    cdef Py_ssize_t _k
    cdef int i, j, c, right, left, new, out
    displacement(&world.box, x, world.x + 3 * (world.n_cartesian + q), d)
    if face == goal:
        return (1.0 + KNOWN) * sqrt(dot(d, d))
    for i in range(3):
        displacement(&world.box, x, world.x + 3 * <Py_ssize_t> world.faces[3 * face + i], r + 3 * i)
    for c in range(3):
        e[c] = r[3 + c] - r[c]
        last[c] = r[6 + c] - r[c]
    cross(e, last, n)
    cross(d, n, e)
    memcpy(n, e, sizeof(n))
    for i in range(3):
        side[i] = dot(n, r + 3 * i)
    # Out through the edge whose first end is to the right and whose second is to the left.
    out = -1
    for i in range(3):
        if side[(i + 1) % 3] >= 0.0 and side[(i + 2) % 3] < 0.0:
            out = i
    if out < 0:
        return INFINITY
    right, left = (out + 1) % 3, (out + 2) % 3
    last[0] = last[1] = last[2] = 0.0
    for _k in range(world.n_faces):
        across = world.opposite[3 * face + out]
        u = side[right] / (side[right] - side[left])
        square = 0.0
        for c in range(3):
            step = r[3 * right + c] + u * (r[3 * left + c] - r[3 * right + c]) - last[c]
            last[c] += step
            square += step * step
        length += sqrt(square)
        if across < 0 or not (length < most):
            return INFINITY
        face = across // 3
        if face == goal:
            square = 0.0
            for c in range(3):
                square += (d[c] - last[c]) * (d[c] - last[c])
            return (1.0 + KNOWN) * (length + sqrt(square))
        # The far corner takes the place of the end on its side.
        new = 3 - right - left
        displacement(&world.box, x, world.x + 3 * <Py_ssize_t> world.faces[across], r + 3 * new)
        side[new] = dot(n, r + 3 * new)
        j = across % 3
        if side[new] < 0.0:
            left = new
            out = (j + 1) % 3
        else:
            right = new
            out = (j + 2) % 3
    return INFINITY


cdef inline bint _may_leave(const Strip* strip, int a, int b, const double* goal, double length) noexcept nogil:
    """Whether a path from the start that leaves over an edge may come to the goal by less than a length. From there on
    it is at least as long as the straight line in space."""
    cdef double E[3]
    cdef double e[3]
    cdef double d[2]
    cdef double edge, own, away, far, t, place
    cdef int c, k
    d[0] = strip.flat[b][0] - strip.flat[a][0]
    d[1] = strip.flat[b][1] - strip.flat[a][1]
    for c in range(3):
        E[c] = strip.at[b][c] - strip.at[a][c]
        e[c] = goal[c] - strip.at[a][c]
    # All times the length of the edge.
    edge = along(d, d)
    own = -along(strip.flat[a], d)
    away = fabs(turn(strip.flat[a], strip.flat[b]))
    t = dot(e, E)
    far = sqrt(max(dot(e, e) * edge - t * t, 0.0))
    # By any place of its line.
    if (own - t) * (own - t) + (away + far) * (away + far) >= edge * length * length * (1.0 + SLACK):
        return False
    # By the one where it is shortest, or by the end that is next to that; as in `through`.
    place = own * far + t * away
    if place < 0.0:
        c = a
    elif place > edge * (away + far):
        c = b
    else:
        return True
    for k in range(3):
        e[k] = goal[k] - strip.at[c][k]
    # What is not a number, too.
    return not sqrt(along(strip.flat[c], strip.flat[c])) + sqrt(dot(e, e)) >= length


cdef void _set_out(const World* world, Py_ssize_t p, Start* start) noexcept nogil:
    """The triangle of in-triangle point p."""
    cdef const double* x = world.x + 3 * (world.n_cartesian + p)
    cdef const int32_t* beads = world.faces + 3 * <Py_ssize_t> world.triangle[p]
    cdef double e[3]
    cdef double u[3]
    cdef double* lay = start.lay
    cdef double* w = start.weight
    cdef int i, j, k, c
    displacement(&world.box, world.x + 3 * <Py_ssize_t> beads[0], world.x + 3 * <Py_ssize_t> beads[1], e)
    displacement(&world.box, world.x + 3 * <Py_ssize_t> beads[0], world.x + 3 * <Py_ssize_t> beads[2], u)
    cross(e, u, start.n)
    lay[0] = lay[1] = lay[3] = 0.0
    lay[2] = sqrt(dot(e, e))
    lay[4] = dot(e, u) / lay[2]
    lay[5] = sqrt(dot(start.n, start.n)) / lay[2]
    w[1], w[2] = world.barycentric[2 * p], world.barycentric[2 * p + 1]
    w[0] = (1.0 - w[1]) - w[2]
    for i in range(3):
        displacement(&world.box, x, world.x + 3 * <Py_ssize_t> beads[i], start.at[i])
        j, k = (i + 1) % 3, (i + 2) % 3
        for c in range(2):
            start.flat[i][c] = w[j] * (lay[2 * i + c] - lay[2 * j + c]) + w[k] * (lay[2 * i + c] - lay[2 * k + c])


cdef double _straight(
    const World* world, Start* start, Py_ssize_t p, Py_ssize_t q, double most, double least,
) noexcept nogil:
    """The length of the shortest path between two in-triangle points, where it leads straight through triangles near
    those that a plane through both cuts, and none that leaves these can be shorter. INFINITY where there is none below
    `most`; -1 where only a search can tell. Of what is shorter than `least`, that of any path that is."""
    cdef const double* x = world.x + 3 * (world.n_cartesian + p)
    cdef const double* theirs = world.barycentric + 2 * q
    cdef Py_ssize_t face = world.triangle[p], goal = world.triangle[q]
    cdef const int32_t* beads
    cdef double* lay = start.lay
    cdef Strip strip
    cdef double d[3]
    cdef double e[3]
    cdef double u[3]
    cdef double n[3]
    cdef double plane[3]
    cdef double last[3]
    cdef double place[2]
    cdef double aim[2]
    cdef double along_edge, height, inverse, length
    cdef int32_t across
    cdef int i, j, c, right, left, new, out, turns, crossed = 0, passed = 0
    displacement(&world.box, x, world.x + 3 * (world.n_cartesian + q), d)
    if dot(d, d) > most * most * (1.0 + SLACK):
        return INFINITY
    if not (lay[5] > 0.0):
        return -1.0
    if face == goal:
        # As in `_look`.
        for c in range(2):
            place[c] = (
                (theirs[0] - start.weight[1]) * (lay[2 + c] - lay[c])
                + (theirs[1] - start.weight[2]) * (lay[4 + c] - lay[c]))
        length = sqrt(along(place, place))
        return length if length < most else INFINITY
    cross(d, start.n, plane)
    memcpy(strip.at, start.at, sizeof(start.at))
    memcpy(strip.flat, start.flat, sizeof(start.flat))
    for turns in range(MOST_TURNS + 1):
        if turns == MOST_TURNS:
            return -1.0
        face = world.triangle[p]
        # First those that the plane cuts, then those that a line to where the goal was is in.
        for i in range(3):
            strip.side[i] = dot(plane, strip.at[i]) if turns == 0 else -turn(place, strip.flat[i])
        memcpy(aim, place, sizeof(aim))
        crossed, out = 0, -1
        # Out over the edge whose first end is to the right and whose second is to the left, as in `_section`.
        for i in range(3):
            if strip.side[(i + 1) % 3] >= 0.0 and strip.side[(i + 2) % 3] < 0.0:
                out = i
        if out < 0:
            return -1.0
        right, left = (out + 1) % 3, (out + 2) % 3
        strip.beside[0][0], strip.beside[0][1] = out, right
        strip.beside[1][0], strip.beside[1][1] = left, out
        passed, new = 2, 2
        while True:
            across = world.opposite[3 * face + out]
            if across < 0 or passed == MOST_BESIDE:
                return -1.0
            strip.portal[crossed][0], strip.portal[crossed][1] = right, left
            crossed += 1
            new += 1
            # The far corner, as in `_enter`.
            face = across // 3
            j = across % 3
            beads = world.faces + 3 * face
            displacement(&world.box, world.x + 3 * <Py_ssize_t> beads[(j + 1) % 3],
                         world.x + 3 * <Py_ssize_t> beads[j], u)
            for c in range(3):
                e[c] = strip.at[right][c] - strip.at[left][c]
                strip.at[new][c] = strip.at[left][c] + u[c]
            cross(e, u, n)
            inverse = 1.0 / dot(e, e)
            along_edge = dot(u, e) * inverse
            height = sqrt(dot(n, n)) * inverse
            if not (height > 0.0):
                return -1.0
            place[0] = strip.flat[right][0] - strip.flat[left][0]
            place[1] = strip.flat[right][1] - strip.flat[left][1]
            strip.flat[new][0] = strip.flat[left][0] + (along_edge * place[0] - height * place[1])
            strip.flat[new][1] = strip.flat[left][1] + (along_edge * place[1] + height * place[0])
            if face == goal:
                break
            strip.side[new] = dot(plane, strip.at[new]) if turns == 0 else -turn(aim, strip.flat[new])
            # It takes the place of the end on its side.
            if strip.side[new] < 0.0:
                strip.beside[passed][0], strip.beside[passed][1] = left, new
                left = new
                out = (j + 1) % 3
            else:
                strip.beside[passed][0], strip.beside[passed][1] = new, right
                right = new
                out = (j + 2) % 3
            passed += 1
        # Weights of the far corner and the two after it.
        last[1], last[2] = theirs[0], theirs[1]
        last[0] = (1.0 - last[1]) - last[2]
        for c in range(2):
            place[c] = (
                last[j] * strip.flat[new][c] + last[(j + 1) % 3] * strip.flat[left][c]
                + last[(j + 2) % 3] * strip.flat[right][c])
        i = 0
        while i < crossed and turn(strip.flat[strip.portal[i][0]], place) > 0.0 and (
                turn(place, strip.flat[strip.portal[i][1]]) > 0.0):
            i += 1
        if i == crossed:
            break
    length = sqrt(along(place, place))
    if length < least:
        return length
    # Whatever leaves these triangles first does so over one of the edges beside, those of the last left out: from where
    # it enters that, nothing is shorter than straight on.
    for i in range(passed):
        if _may_leave(&strip, strip.beside[i][0], strip.beside[i][1], d, min(length, most)):
            return -1.0
    return length if length < most else INFINITY


cdef inline bint _is_first(
    const Box* box, const Ball* balls, Py_ssize_t ball, double most, const double* x,
) noexcept nogil:
    """Whether a place is within range of a ball, and of none before that."""
    cdef double d[3]
    cdef Py_ssize_t b
    for b in range(ball + 1):
        displacement(box, balls[b].center, x, d)
        # What is not a number counts as near.
        if not dot(d, d) >= (most + balls[b].radius) * (most + balls[b].radius):
            return b == ball
    return False


cdef class MeshPairs(NeighborForce):
    """A radial energy of in-triangle points by their distance along the membrane.

    Parameters
    ----------
    name : str
    kind : Radial
        One that ends.
    parameters : sequence of float
    neighbors : NeighborList
        Of places of in-triangle points, for the range of the function: in space they are no farther apart.
    sites : SiteTable
        Of beads.
    slots : Accumulator
        Of all vertices, and behind them all in-triangle points.
    """
    cdef Accumulator slots
    cdef MeshTask task
    cdef list arrays
    cdef object _partners
    cdef int threads
    cdef double* partial
    cdef double* total        # (slots, 3)
    # Faces that a change concerns, None before any, and balls around them in both states; points near these.
    cdef Few changing
    cdef Ball* balls
    cdef Py_ssize_t n_balls, room_balls
    cdef Rim rim[4]
    cdef bint has_rim
    cdef Close* close
    cdef Py_ssize_t n_close, room_close
    cdef Joined* joined
    cdef Py_ssize_t n_joined, room_joined

    def __cinit__(self, str name, int kind, parameters, NeighborList neighbors, SiteTable sites, Accumulator slots):
        cdef MeshTask* t = &self.task
        self.name = name
        self.watch(neighbors, sites)
        self.slots = slots
        self.threads = slots.threads
        self.arrays = []
        t.near = &neighbors.list
        t.kind = kind
        t.p = vector[double](self.arrays, np.array(parameters, float))
        if kind == SOFT_SPHERE:
            t.range = t.p[1]
        elif kind == WCA:
            lennard_jones_end(kind, t.p, &t.range)
            t.range = sqrt(t.range)
        else:
            t.range = t.p[END]
        self.asked_last = True
        self.is_positive = (kind == SOFT_SPHERE or kind == WCA) and t.p[0] >= 0.0
        t.energy = zeros(self.arrays, t.near.n_members)
        t.groups = slots.groups
        t.of_slot = slots.of_slot
        t.sums = slots.sums
        t.n_sums = slots.n
        self.partial = zeros(self.arrays, n_blocks(t.near.n_members, SUM_BLOCK))
        self.total = zeros(self.arrays, 3 * slots.n)
        t.searches = <Search*> calloc(self.threads, sizeof(Search))
        if t.searches == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef int k
        for k in range(self.threads if self.task.searches != NULL else 0):
            free(self.task.searches[k].nodes)
            free(self.task.searches[k].sources)
            free(self.task.searches[k].targets)
            free(self.task.searches[k].faces)
            free(self.task.searches[k].pushes)
            free(self.task.searches[k].lengths)
        free(self.task.searches)
        free(self.balls)
        free(self.close)
        free(self.joined)

    cdef int run(self, World* world) noexcept nogil:
        cdef MeshTask* t = &self.task
        cdef Py_ssize_t n = t.near.n_members, k
        cdef double* f
        cdef int fault, thread
        self.energy = 0.0
        if n == 0:
            return 0
        fault = self.look(world)
        if fault == 0:
            fault = self.neighbors.index(world)
        if fault != 0:
            return fault
        self.slots.forget_bounds()
        for thread in range(self.threads):
            t.searches[thread].n_pushes = 0
            t.searches[thread].n_lengths = 0
        fault = over_blocks(_members, t, world, n, BLOCK)
        if fault != 0:
            return fault
        self.slots.set_bounds()
        for thread in range(self.threads):
            t.search = t.searches + thread
            over_blocks(_add, t, world, t.search.n_pushes, PUSHES)
        self.slots.collect(world, self.total, NULL, True)
        f = world.f
        for k in range(3 * world.n_vertices):
            f[k] += self.total[k]
        f = world.f + 3 * (world.n_cartesian - world.n_vertices)
        for k in range(3 * world.n_vertices, 3 * t.n_sums):
            f[k] += self.total[k]
        if world.want_energy:
            self.energy = sum_in_blocks(world, t.energy, n, self.partial)
        return 0

    @property
    def keeps_lengths(self):
        """Whether the lengths of all paths are kept, for `lengths`."""
        return bool(self.task.keeps_lengths)

    @keeps_lengths.setter
    def keeps_lengths(self, bint on):
        self.task.keeps_lengths = on

    @property
    def partners(self):
        """(n,) int32 row among all in-triangle points of the only one that each is to look for; None: all are."""
        return self._partners

    @partners.setter
    def partners(self, rows):
        self._partners = None if rows is None else np.array(rows, np.int32)
        cdef int32_t[::1] view = self._partners
        self.task.partners = NULL if rows is None or not len(view) else &view[0]

    def lengths(self):
        """Of all pairs within the range, as they were when forces were last computed: (k, 2) int32 places of their
        points among all beads, and (k,) lengths of the shortest paths, nm. In no order of their own."""
        pairs, distances, _, _ = self.paths()
        return pairs, distances

    def paths(self):
        """`lengths`, and of each path from its first point to its second: (k, 2, 3) a unit vector in the triangle of
        the first, and what it has become in that of the second, carried along the path by parallel transport; and
        (k, 2) where the path leads to once it is laid out on a plane, nm, along that vector and to the left of it."""
        cdef const Search* s
        cdef Py_ssize_t k, n = 0
        cdef int thread, c
        for thread in range(self.threads):
            n += self.task.searches[thread].n_lengths
        pairs, distances, axes, hops = np.empty((n, 2), np.int32), np.empty(n), np.empty((n, 2, 3)), np.empty((n, 2))
        cdef int32_t[:, ::1] ends = pairs
        cdef double[::1] length = distances
        cdef double[:, :, ::1] axis = axes
        cdef double[:, ::1] hop = hops
        n = 0
        for thread in range(self.threads):
            s = self.task.searches + thread
            for k in range(s.n_lengths):
                ends[n, 0], ends[n, 1] = s.lengths[k].one, s.lengths[k].other
                length[n] = s.lengths[k].distance
                for c in range(6):
                    axis[n, c // 3, c % 3] = s.lengths[k].axis[c]
                hop[n, 0], hop[n, 1] = s.lengths[k].hop[0], s.lengths[k].hop[1]
                n += 1
        return pairs, distances, axes, hops

    # Where a few beads and triangles change ---------------------------------------------------------------------
    # A path through a face that changes has both of its ends in reach: their ways to that face are no longer than the
    # path, and no shorter than their distances from it in space.

    cdef bint touch(self, World* world, const Change* change) noexcept nogil:
        cdef int fault = 0
        if self.task.near.n_members == 0:
            return True
        if self.task.partners != NULL:
            return False
        if not self.neighbors.is_current(world):
            fault = self.sites.gather(world)
        if fault == 0:
            fault = self.neighbors.locate(world, &self.sites.now)
        if fault == 0 and self.take_faces(world, change) and self.take_points(world) and self.join(world):
            return True
        self.release()
        return False

    cdef void release(self) noexcept nogil:
        if self.changing is not None:
            self.changing.clear()
        self.n_balls = self.n_close = self.n_joined = 0

    cdef bint tells_beads(self) noexcept nogil:
        return self.task.partners == NULL

    cdef int of_bead(self, World* world, Py_ssize_t place, double* out) noexcept nogil:
        """Shortest paths to all points within range."""
        cdef const Neighbors* near = &self.neighbors.list
        cdef int32_t member
        cdef Py_ssize_t i, n
        cdef int fault = 0
        out[0] = 0.0
        if near.n_members == 0:
            return 0
        if not self.neighbors.is_current(world):
            fault = self.sites.gather(world)
        if fault == 0:
            fault = self.neighbors.locate(world, &self.sites.now)
        member = self.neighbors.member_of(<int32_t> place) if fault == 0 else -1
        if member < 0:
            return fault
        n = self.neighbors.near_place(world, member, near.now + 4 * <Py_ssize_t> near.slot_of[member])
        for i in range(-1, n):
            # First the point itself.
            if self.next_close(world, near.slot_of[member] if i < 0 else self.neighbors.found[i]) == NULL:
                fault = OUT_OF_MEMORY
                break
            self.n_close += 1
            if i >= 0 and self.on_one_mesh(0, i + 1) and not self.add_joined(world, 0, i + 1, 0.0, 0.0):
                fault = OUT_OF_MEMORY
                break
        if n < 0 or fault != 0:
            self.release()
            return record_fault(world, OUT_OF_MEMORY, place, -1)
        fault = self.measure(world, out, False)
        self.release()
        return fault

    cdef Close* next_close(self, World* world, int32_t slot) noexcept nogil:
        """The point in a slot, behind those that are close; it counts once `n_close` is one more. NULL: there is no
        memory."""
        cdef const Neighbors* near = &self.neighbors.list
        cdef Close* close = <Close*> _room(self.close, &self.room_close, self.n_close, sizeof(Close), world, -1)
        if close == NULL:
            return NULL
        self.close = close
        close += self.n_close
        close.point, close.member = <int32_t> (near.row[slot] - world.n_cartesian), near.member[slot]
        close.changes = False
        close.away = 0.0
        memcpy(close.x, near.now + 4 * <Py_ssize_t> slot, sizeof(close.x))
        return close

    cdef bint on_one_mesh(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        """Whether any path joins two points that are close."""
        return self.task.groups.of_point == NULL or (
            self.task.groups.of_point[self.close[i].point] == self.task.groups.of_point[self.close[j].point])

    cdef bint add_joined(self, World* world, Py_ssize_t i, Py_ssize_t j, double apart, double least) noexcept nogil:
        """Add a pair of points that are close; False: there is no memory."""
        cdef Joined* joined = <Joined*> _room(
            self.joined, &self.room_joined, self.n_joined, sizeof(Joined), world, -1)
        if joined == NULL:
            return False
        self.joined = joined
        joined[self.n_joined] = Joined(<int32_t> i, <int32_t> j, apart, least)
        self.n_joined += 1
        return True

    cdef bint take_faces(self, World* world, const Change* change) noexcept nogil:
        """Faces that change, and a ball around each, or the two at an edge, that holds them in both states."""
        cdef const Quad* quads = change.back if change.there else change.quads
        cdef int32_t corners[4]
        cdef const Rings* rings
        cdef Py_ssize_t i, s, face
        if self.changing is None:
            with gil:
                self.changing = Few(world.n_faces)
        self.has_rim = change.n_flips == 1
        for i in range(change.n_beads):
            self.has_rim &= change.beads[i] >= world.n_vertices
        if self.has_rim:
            self.lay_rim(world, self.rim, quads.a, quads.c)
            self.lay_rim(world, self.rim + 1, quads.c, quads.b)
            self.lay_rim(world, self.rim + 2, quads.b, quads.d)
            self.lay_rim(world, self.rim + 3, quads.d, quads.a)
        for i in range(change.n_flips):
            self.changing.add(quads[i].first)
            self.changing.add(quads[i].second)
            corners[0], corners[1], corners[2], corners[3] = quads[i].a, quads[i].b, quads[i].c, quads[i].d
            if not self.surround(world, change, corners, 4):
                return False
        for i in range(change.n_beads):
            if change.beads[i] >= world.n_vertices:
                continue
            if change.triangles == NULL:
                return False
            rings = &(<Triangles> change.triangles).rings
            for s in range(rings.starts[change.beads[i]], rings.ends[change.beads[i]]):
                face = rings.corners[s] // 3
                self.changing.add(face)
                if not self.surround(world, change, world.faces + 3 * face, 3):
                    return False
        return True

    cdef bint surround(self, World* world, const Change* change, const int32_t* corners, int n) noexcept nogil:
        cdef double d[24]
        cdef const double* first = world.x + 3 * <Py_ssize_t> corners[0]
        cdef double farthest = 0.0, square
        cdef Ball* ball = <Ball*> _room(self.balls, &self.room_balls, self.n_balls, sizeof(Ball), world, -1)
        cdef double e[3]
        cdef Py_ssize_t i
        cdef int k, c, places = 0
        if ball == NULL:
            return False
        self.balls = ball
        ball += self.n_balls
        self.n_balls += 1
        for k in range(n):
            displacement(&world.box, first, world.x + 3 * <Py_ssize_t> corners[k], d + 3 * places)
            places += 1
            for i in range(change.n_beads):
                if change.beads[i] == corners[k]:
                    displacement(&world.box, first, change.x + 3 * i, d + 3 * places)
                    places += 1
        for c in range(3):
            ball.center[c] = 0.0
            for k in range(places):
                ball.center[c] += d[3 * k + c] / places
        for k in range(places):
            for c in range(3):
                e[c] = d[3 * k + c] - ball.center[c]
            square = dot(e, e)
            farthest = max(farthest, square)
        ball.radius = sqrt(farthest)
        for c in range(3):
            ball.center[c] += first[c]
        return True

    cdef void lay_rim(self, World* world, Rim* rim, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
        cdef double inverse
        cdef int c
        memcpy(rim.first, world.x + 3 * first, sizeof(rim.first))
        displacement(&world.box, rim.first, world.x + 3 * last, rim.unit)
        rim.length = sqrt(dot(rim.unit, rim.unit))
        inverse = 1.0 / rim.length if rim.length > 0.0 else 0.0
        for c in range(3):
            rim.unit[c] *= inverse

    cdef void see_rim(self, World* world, const double* x, Close* close) noexcept nogil:
        """Where a point is, as seen from each side of the square."""
        cdef double d[3]
        cdef double beyond, least = INFINITY
        cdef int k, c
        for k in range(4):
            displacement(&world.box, self.rim[k].first, x, d)
            close.to[k] = sqrt(dot(d, d))
            close.s[k] = dot(d, self.rim[k].unit)
            for c in range(3):
                d[c] -= close.s[k] * self.rim[k].unit[c]
            close.h[k] = dot(d, d)
            beyond = max(-close.s[k], close.s[k] - self.rim[k].length)
            beyond = max(beyond, 0.0)
            least = min(least, close.h[k] + beyond * beyond)
            close.h[k] = sqrt(close.h[k])
        close.to[4] = close.to[0]
        close.away = sqrt(least)

    cdef bint join(self, World* world) noexcept nogil:
        """Pairs whose path may change; False where there is no memory."""
        cdef double end = self.task.range * (1.0 + SLACK)
        cdef double least, square
        cdef const Close* one
        cdef const Close* other
        cdef double d[3]
        cdef Py_ssize_t i, j
        for i in range(self.n_close):
            one = self.close + i
            for j in range(i + 1, self.n_close):
                other = self.close + j
                if one.away + other.away > end:
                    continue
                least = 0.0
                displacement(&world.box, one.x, other.x, d)
                square = dot(d, d)
                if not one.changes and not other.changes:
                    if square > end * end:
                        continue
                    least = through(one, other, self.rim) if self.has_rim else one.away + other.away
                    # Longer than counts: they do not notice.
                    if least > end:
                        continue
                if not self.on_one_mesh(i, j) or not self.neighbors.interact(one.member, other.member):
                    continue
                if not self.add_joined(world, i, j, sqrt(square), least):
                    return False
        return True

    cdef double away(self, World* world, const double* x) noexcept nogil:
        """No more than how far a place is from what changes."""
        cdef double d[3]
        cdef double least = INFINITY
        cdef Py_ssize_t k
        for k in range(self.n_balls):
            displacement(&world.box, self.balls[k].center, x, d)
            least = min(least, sqrt(dot(d, d)) - self.balls[k].radius)
        return max(least, 0.0)

    cdef bint take_points(self, World* world) noexcept nogil:
        """Points near what changes; False where there is no memory."""
        cdef Neighbors* near = &self.neighbors.list
        cdef int32_t* found
        cdef double low[3]
        cdef double high[3]
        cdef double reach = self.task.range * (1.0 + SLACK)
        cdef Py_ssize_t b, i, n, p, kept
        cdef int c, rest
        for b in range(self.n_balls):
            for c in range(3):
                low[c] = self.balls[b].center[c] - self.balls[b].radius
            nearest_image(&world.box, low)
            for c in range(3):
                high[c] = low[c] + 2.0 * self.balls[b].radius
            n = self.neighbors.near_box(world, low, high, 3)
            if n < 0:
                return False
            found = self.neighbors.found
            kept = 0
            for i in range(n):
                found[kept] = found[i]
                kept += _is_first(&world.box, self.balls, b, reach, near.now + 4 * <Py_ssize_t> found[i])
            # Sums are in an order that does not depend on the age of the list.
            sort_by_id(near.row, found, kept)
            for i in range(kept):
                p = near.row[found[i]] - world.n_cartesian
                prefetch(world.triangle + p)
                prefetch(world.barycentric + 2 * p)
            # Those in what changes first: most pairs are theirs.
            for rest in range(2):
                for i in range(kept):
                    p = near.row[found[i]] - world.n_cartesian
                    if self.changing.has[world.triangle[p]] != rest and not self.take_point(world, found[i]):
                        return False
        return True

    cdef bint take_point(self, World* world, int32_t slot) noexcept nogil:
        cdef Close* close = self.next_close(world, slot)
        cdef Py_ssize_t corner
        cdef int k
        if close == NULL:
            return False
        corner = 3 * <Py_ssize_t> world.triangle[close.point]
        prefetch(world.faces + corner)
        prefetch(world.opposite + corner)
        close.changes = self.changing.has[world.triangle[close.point]]
        if self.has_rim and not close.changes:
            self.see_rim(world, close.x, close)
        elif not close.changes:
            close.away = self.away(world, close.x)
        for k in range(3):
            prefetch(world.x + 3 * <Py_ssize_t> world.faces[corner + k])
        self.n_close += not close.away >= self.task.range * (1.0 + SLACK)
        return True

    cdef int local_energy_now(self, World* world, double most, double* out) noexcept nogil:
        cdef double u[4]
        cdef double total = 0.0
        cdef Py_ssize_t i
        if self.is_positive and most < INFINITY:
            # No path is shorter than the straight line in space.
            for i in range(self.n_joined):
                if self.joined[i].apart < self.task.range:
                    evaluate(self.task.kind, self.task.p, self.joined[i].apart, 1, u)
                    total += u[0]
            total *= 1.0 + KNOWN
            if -total > most:
                out[0] = total
                return 0
        return self.measure(world, out, True)

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        return self.measure(world, out, False)

    cdef int measure(self, World* world, double* out, bint choose) noexcept nogil:
        """The energy of pairs that may be joined by a path that changes; choose: of those that are, and keep only these
        among `joined`."""
        cdef MeshTask* t = &self.task
        cdef Search* s = t.searches
        cdef double u[4]
        cdef double length
        cdef Joined* joined = self.joined
        cdef Start start
        cdef Py_ssize_t i = 0, k, p, other, kept = 0
        cdef int32_t one
        cdef int fault
        out[0] = 0.0
        while i < self.n_joined:
            one = joined[i].one
            p = self.close[one].point
            s.point = world.n_cartesian + p
            s.n_targets = 0
            _set_out(world, p, &start)
            while i < self.n_joined and joined[i].one == one:
                other = self.close[joined[i].other].point
                # By a way that is shorter than any through what changes: they do not notice.
                length = _straight(world, &start, p, other, t.range, joined[i].least / (1.0 + KNOWN) if choose else 0.0)
                self.examined += 1
                if length < 0.0:
                    # Only a search tells, from a way that there is.
                    s.range = min(t.range, _section(world, p, other, t.range))
                if not choose or joined[i].least < (s.range if length < 0.0 else length) * (1.0 + KNOWN):
                    joined[kept] = joined[i]
                    kept += 1
                    if length < 0.0:
                        if not _aim(s, world, other):
                            return world.fault.code
                    elif length < t.range:
                        evaluate(t.kind, t.p, length, 1, u)
                        out[0] += u[0]
                i += 1
            if s.n_targets == 0:
                continue
            s.directed = True
            s.range = 0.0
            for k in range(s.n_targets):
                s.range = max(s.range, s.targets[k].distance)
            fault = _find(s, world, p)
            if fault != 0:
                return fault
            for k in range(s.n_targets):
                if s.targets[k].node >= 0:
                    evaluate(t.kind, t.p, s.targets[k].distance, 1, u)
                    out[0] += u[0]
        self.n_joined = kept
        return 0
