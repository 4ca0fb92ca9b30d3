"""Ellipsoids that repel points, segments and triangles with a thickness.

    U = sum over ellipsoids i and objects o of V_io,    V_io = (sum over the shapes k of o of V(mu_ik)^8)^(1/8)

mu_ik is the factor by which ellipsoid i and shape k have to grow until they touch (ellipsoid_contact.pxd), V the law of
a contact (contact.pxd). An object is a bead, a filament or a membrane: where it is near with two triangles at an edge,
or six around a vertex, these are not as many contacts, and V_io is hardly more than the largest of them. With s the mu
at a shape,

    f on the shape at p = -(V/V_io)^7 V' dmu/dp,    torque on the ellipsoid = -p x f

The lists are those of shapes.pxi, in which ellipsoids are spheres around them. The ellipsoid owns its pairs, computes
each once, and then its sums over objects, in ascending order of shapes. Each shape has the numbers of its pairs, in
ascending order of ellipsoids, and adds up what its corners get. No result depends on threads or the age of lists.

Units: nm, pN nm. The caller has checked them.
"""
from libc.stdlib cimport free, realloc

from medyanpy._kernels.forces.contact cimport contact_energy, end_squared
from medyanpy._kernels.core.quaternion cimport into_body, into_space, matrix_of
from medyanpy._kernels.forces.ellipsoid_contact cimport Ellipsoid, Touch, half_width, touch_segment, touch_triangle

include "shapes.pxi"

cdef Py_ssize_t BODIES = 32


cdef struct Pair:
    double energy             # 0: they are too far apart
    double f[3]               # on the shape, in space
    double torque[3]          # on the ellipsoid, in its frame
    double w[3]               # weights of the corners of the shape


cdef struct Side:
    Shapes* shapes            # ellipsoids first, each of one corner
    const double* thickness   # (n,) R of shapes
    Py_ssize_t* start         # (n + 1,) where the pairs of each begin
    int32_t* other            # of an ellipsoid the numbers of shapes; of a shape those of its pairs
    Pair* pair                # of all ellipsoids, one after another
    Py_ssize_t room           # of `other`, which is that of twice as many pairs


cdef struct EllipsoidTask:
    Side side[2]
    const Side* now           # whose shapes get their forces
    Py_ssize_t n              # ellipsoids
    int form
    double epsilon
    double end                # mu where V ends
    const double* axes        # (n, 3)
    const int32_t* oriented   # (n,)
    double* torque            # (n, 3)
    double* energy            # (n,)


cdef int _list(Side* side, Py_ssize_t bodies, NeighborList neighbors, World* world) noexcept nogil:
    """The pairs of all rows as they are now."""
    cdef Shapes* t = side.shapes
    cdef Neighbors* near = t.near
    cdef const int32_t* row
    cdef Py_ssize_t m, b, total, low, high, middle
    cdef int k, count, fault
    cdef void* made
    if t.n == 0:
        return 0
    fault = neighbors.index(world)
    if fault != 0:
        return fault
    total = 0
    for m in range(t.n):
        side.start[m] = total
        if near.slot_of[m] >= 0:
            total += near.count[near.slot_of[m]]
    side.start[t.n] = total
    if total > side.room:
        # Half of the numbers are those of pairs.
        made = realloc(side.other, total * sizeof(int32_t))
        if made != NULL:
            side.other = <int32_t*> made
            made = realloc(side.pair, side.start[bodies] * sizeof(Pair))
        if made == NULL:
            return record_fault(world, OUT_OF_MEMORY, -1, -1)
        side.pair = <Pair*> made
        side.room = total
    for m in range(t.n):
        count = <int> (side.start[m + 1] - side.start[m])
        row = near.row_of[m]
        for k in range(count):
            if m < bodies:
                side.other[side.start[m] + k] = row[k]
                continue
            # Rows are sorted: which of the pairs of the ellipsoid this is.
            b = row[k]
            low = side.start[b]
            high = side.start[b + 1] - 1
            while low < high:
                middle = (low + high) // 2
                if side.other[middle] < m:
                    low = middle + 1
                else:
                    high = middle
            side.other[side.start[m] + k] = <int32_t> low
    return 0


cdef inline void _touch(
    const EllipsoidTask* t, const Side* side, World* world, const Ellipsoid* a, const double* R, const double* center,
    Py_ssize_t shape, Pair* pair,
) noexcept nogil:
    """One pair, as if it were alone."""
    cdef const int32_t* node = side.shapes.node + _corner(side.shapes, shape)
    cdef const double* first = world.x + 3 * <Py_ssize_t> node[0]
    cdef double thickness = side.thickness[shape]
    cdef double d[3]
    cdef double v[3]
    cdef double p[3]
    cdef double q[3]
    cdef double guess, slope
    cdef Closest c
    cdef Touch found
    cdef int k, corners = _corners(side.shapes, shape)
    pair.energy = 0.0
    displacement(&world.box, center, first, d)
    into_body(R, d, v)
    if corners == 1:
        p[0] = p[1] = p[2] = 0.0
        point_to_segment(v, p, &c)
    else:
        displacement(&world.box, first, world.x + 3 * <Py_ssize_t> node[1], d)
        into_body(R, d, p)
        if corners == 2:
            point_to_segment(v, p, &c)
        else:
            displacement(&world.box, first, world.x + 3 * <Py_ssize_t> node[2], d)
            into_body(R, d, q)
            point_to_triangle(v, p, q, &c)
    # A plane across the shortest way to the shape is between them until they have grown by this.
    guess = half_width(a, c.d) / sqrt(c.dd)
    if sqrt(c.rr) > t.end * (guess + thickness):
        return
    if corners < 3:
        touch_segment(a, thickness, guess, v, p, &found)
    else:
        touch_triangle(a, thickness, guess, v, p, q, &found)
    if found.mu >= t.end:
        return
    pair.energy = contact_energy(t.form, t.epsilon, found.mu, &slope)
    slope /= found.reach
    into_space(R, found.n, d)
    for k in range(3):
        pair.f[k] = -slope * d[k]
        pair.w[k] = found.w[k]
    slope *= found.size
    pair.torque[0] = slope * (a.square[1] - a.square[2]) * found.n[1] * found.n[2]
    pair.torque[1] = slope * (a.square[2] - a.square[0]) * found.n[2] * found.n[0]
    pair.torque[2] = slope * (a.square[0] - a.square[1]) * found.n[0] * found.n[1]


cdef inline void _shape_of(const EllipsoidTask* t, World* world, Py_ssize_t m, Ellipsoid* a, double* R) noexcept nogil:
    """An ellipsoid, and what turns its frame into space."""
    cdef const double* axes = t.axes + 3 * m
    cdef int c
    matrix_of(world.orientation + 4 * <Py_ssize_t> t.oriented[m], R)
    for c in range(3):
        a.square[c] = axes[c] * axes[c]
    a.least = min(axes[0], min(axes[1], axes[2]))
    a.most = max(axes[0], max(axes[1], axes[2]))


cdef inline double _power8(double x) noexcept nogil:
    x *= x
    x *= x
    return x * x


cdef double _share(Pair* pair, Py_ssize_t n, double* f, double* torque) noexcept nogil:
    """V of an ellipsoid and the n shapes of one object; what each of these has as its share."""
    cdef double largest = 0.0, sum = 0.0, total, q
    cdef Py_ssize_t i
    cdef int c
    for i in range(n):
        sum += pair[i].energy
        largest = max(largest, pair[i].energy)
    if sum == 0.0:
        return 0.0
    # What is not a number, or infinite, is seen by all.
    largest = largest if sum - sum == 0.0 else sum - sum
    sum = 0.0
    for i in range(n):
        sum += _power8(pair[i].energy / largest)
    total = largest * sqrt(sqrt(sqrt(sum)))
    for i in range(n):
        if pair[i].energy == 0.0:
            continue
        q = pair[i].energy / total
        q = q * q * q * (q * q) * (q * q)
        for c in range(3):
            pair[i].f[c] *= q
            f[c] -= pair[i].f[c]
            torque[c] += q * pair[i].torque[c]
    return total


cdef inline bint _has_pairs(const Side* side, Py_ssize_t m) noexcept nogil:
    """Whether anything is near; f of those with nobody near was zeroed when lists were made."""
    return side.shapes.n > 0 and side.start[m] < side.start[m + 1]


cdef int _ellipsoids(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef EllipsoidTask* t = <EllipsoidTask*> task
    cdef Side* side
    cdef const int32_t* chain
    cdef double R[9]
    cdef const double* center
    cdef double* f
    cdef double* torque
    cdef Ellipsoid a
    cdef Py_ssize_t m, i, end, after
    cdef int k
    for m in range(first, last):
        torque = t.torque + 3 * m
        torque[0] = torque[1] = torque[2] = 0.0
        t.energy[m] = 0.0
        if not (_has_pairs(t.side, m) or _has_pairs(t.side + 1, m)):
            continue
        _shape_of(t, world, m, &a, R)
        for k in range(2):
            side = t.side + k
            if not _has_pairs(side, m):
                continue
            center = world.x + 3 * <Py_ssize_t> side.shapes.node[m]
            f = side.shapes.f + 3 * m
            f[0] = f[1] = f[2] = 0.0
            i = side.start[m]
            end = side.start[m + 1]
            chain = side.shapes.chain
            while i < end:
                after = i
                while after < end and chain[3 * side.other[after]] == chain[3 * side.other[i]]:
                    _touch(t, side, world, &a, R, center, side.other[after], side.pair + after)
                    after += 1
                t.energy[m] += _share(side.pair + i, after - i, f, torque)
                i = after
    return 0


cdef int _shapes(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """What the corners of shapes get; numbers are from behind the ellipsoids on."""
    cdef EllipsoidTask* t = <EllipsoidTask*> task
    cdef const Side* side = t.now
    cdef const Pair* pair
    cdef double* f
    cdef Py_ssize_t m, i
    cdef int c, k, corners
    for m in range(t.n + first, t.n + last):
        if not _has_pairs(side, m):
            continue
        corners = _corners(side.shapes, m)
        f = side.shapes.f + 3 * _corner(side.shapes, m)
        memset(f, 0, 3 * corners * sizeof(double))
        for i in range(side.start[m], side.start[m + 1]):
            pair = side.pair + side.other[i]
            if pair.energy == 0.0:
                continue
            for k in range(corners):
                for c in range(3):
                    f[3 * k + c] += pair.w[k] * pair.f[c]
    return 0


cdef class EllipsoidCollisions(OfShapes):
    """Repulsion of ellipsoids and shapes in two searches.

    Parameters
    ----------
    form : int
        WCA or SOFT, of contact.pxd.
    epsilon : float
    axes : (n, 3) float, nm, > 0
        Semi-axes of the ellipsoids, which are the first shapes of both searches.
    oriented : (n,) int32
        Row of the oriented bead that each is.
    thickness : two (shapes,) float, nm, >= 0
        Of all shapes of each search, with anything for the ellipsoids.
    name, searches, sites, place, skin, stiffness, excluded_from, excluded, triangles, sheets
        As in `OfShapes`; in column 0 of the chains of searches is the number of the object of a shape, ascending.
    """
    cdef EllipsoidTask task
    cdef double* partial
    cdef long long listed     # `builds` and `mended` of the lists that the pairs are of
    # Ellipsoids of a change: those that move, and those near shapes of it in one of its states.
    cdef Few bodies
    # Near one of them: shapes and their pairs; energies of all that are the same in both states, if they are known.
    cdef int32_t* partner
    cdef Pair* pair
    cdef double* kept
    cdef Py_ssize_t room, room_kept, n_kept
    cdef bint are_kept

    def __init__(self, str name, int form, double epsilon, const double[:, ::1] axes, const int32_t[::1] oriented,
                 thickness, searches, SiteTable sites, const int32_t[::1] place, double skin,
                 const double[:, ::1] stiffness, const int32_t[::1] excluded_from, const int32_t[::1] excluded,
                 Triangles triangles, const long long[:, ::1] sheets):
        cdef EllipsoidTask* t = &self.task
        cdef Py_ssize_t[::1] start
        cdef Search search
        cdef int k = 0
        OfShapes.__init__(
            self, name, searches, sites, place, skin, stiffness, 0.0, 0, excluded_from, excluded, triangles, sheets)
        self.derivatives = 1
        t.n = axes.shape[0]
        self.bodies = Few(t.n)
        t.form = form
        t.epsilon = epsilon
        t.end = sqrt(end_squared(form))
        t.axes = table(self.arrays, axes)
        t.oriented = vector(self.arrays, oriented)
        t.torque = zeros(self.arrays, 3 * t.n)
        t.energy = zeros(self.arrays, t.n)
        self.partial = zeros(self.arrays, n_blocks(t.n, SUM_BLOCK))
        for search in searches:
            start = np.zeros(search.shapes.n + 1, np.intp)
            self.arrays.append(start)
            t.side[k].shapes = &search.shapes
            t.side[k].thickness = vector[double](self.arrays, thickness[k])
            t.side[k].start = &start[0]
            k += 1

    def __dealloc__(self):
        cdef int k
        for k in range(2):
            free(self.task.side[k].other)
            free(self.task.side[k].pair)
        free(self.partner)
        free(self.pair)
        free(self.kept)

    # V of an ellipsoid and an object is not a sum over shapes: of each ellipsoid near a change all counts that this
    # object has near it.

    cdef bint touch(self, World* world, const Change* change) noexcept nogil:
        if self.nodes.n == 0 or self.task.n == 0:
            return True
        if change.n_beads == 0 and change.n_flips == 0:
            # Rows come or go: ellipsoids near them are others in each state.
            return False
        if not OfShapes.touch(self, world, change):
            return False
        self.are_kept = False
        if not (self.find_bodies(world, self.first) and self.find_bodies(world, self.second)):
            self.release()
            return False
        return True

    cdef bint tells_beads(self) noexcept nogil:
        return False

    cdef void release(self) noexcept nogil:
        self.bodies.clear()
        OfShapes.release(self)

    cdef bint find_bodies(self, World* world, Search search) noexcept nogil:
        """Ellipsoids near the shapes of a change, where these are now; False: there is no memory."""
        cdef Py_ssize_t k, i, n
        for k in range(search.n_touched):
            if search.shapes.near.slot_of[search.touched[k]] < 0:
                continue
            if search.touched[k] < self.task.n:
                self.bodies.add(search.touched[k])
                continue
            n = search.seek(world, search.touched[k])
            for i in range(n):
                self.bodies.add(search.met[i])
            if n < 0:
                return False
        return True

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        cdef bint failed = False
        cdef Py_ssize_t i
        out[0] = 0.0
        if self.nodes.n == 0 or self.task.n == 0:
            return 0
        self.enter(self.change.there != self.there)
        # After this, in the other state, all are known.
        failed = not (self.find_bodies(world, self.first) and self.find_bodies(world, self.second))
        self.n_kept = 0
        for i in range(self.bodies.n):
            if not failed:
                failed = not (self.of_body(world, self.bodies.items[i], self.first, self.task.side, out)
                              and self.of_body(world, self.bodies.items[i], self.second, self.task.side + 1, out))
        self.are_kept = True
        return record_fault(world, OUT_OF_MEMORY, -1, -1) if failed else 0

    cdef bint of_body(self, World* world, Py_ssize_t m, Search search, const Side* side, double* out) noexcept nogil:
        """Add V of an ellipsoid and the objects of one search of which the change moves either."""
        cdef Shapes* t = &search.shapes
        cdef Ellipsoid a
        cdef double R[9]
        cdef double junk[3]
        cdef Py_ssize_t n, i, first, after
        cdef int32_t shape
        cdef bint moves, own
        if t.n == 0 or search.n_touched == 0:
            return True
        own = search.marks[m] != 0
        n = search.seek(world, m)
        if n < 0 or not self.make_room(n + search.n_touched):
            return False
        memcpy(self.partner, &search.met[0], n * sizeof(int32_t))
        for i in range(search.n_touched):
            shape = search.touched[i]
            if shape >= self.task.n and t.near.slot_of[shape] >= 0:
                self.partner[n] = shape
                n += 1
        for i in range(1, n):
            shape = self.partner[i]
            first = i
            while first > 0 and self.partner[first - 1] > shape:
                self.partner[first] = self.partner[first - 1]
                first -= 1
            self.partner[first] = shape
        _shape_of(&self.task, world, m, &a, R)
        first = 0
        while first < n:
            after = first
            moves = own
            while after < n and t.chain[3 * self.partner[after]] == t.chain[3 * self.partner[first]]:
                moves |= search.marks[self.partner[after]] != 0
                after += 1
            if moves:
                for i in range(first, after):
                    self.of_pair(world, &a, R, m, self.partner[i], own, search, side, self.pair + i)
                out[0] += _share(self.pair + first, after - first, junk, junk)
            first = after
        return True

    cdef bint make_room(self, Py_ssize_t n) noexcept nogil:
        cdef void* grown
        if n > self.room:
            self.room = 0
            grown = realloc(self.partner, 2 * n * sizeof(int32_t))
            if grown == NULL:
                return False
            self.partner = <int32_t*> grown
            grown = realloc(self.pair, 2 * n * sizeof(Pair))
            if grown == NULL:
                return False
            self.pair = <Pair*> grown
            self.room = 2 * n
        if self.n_kept + n > self.room_kept:
            grown = realloc(self.kept, 2 * (self.n_kept + n) * sizeof(double))
            if grown == NULL:
                return False
            self.kept = <double*> grown
            self.room_kept = 2 * (self.n_kept + n)
        return True

    cdef void of_pair(
        self, World* world, const Ellipsoid* a, const double* R, Py_ssize_t m, Py_ssize_t shape, bint own,
        Search search, const Side* side, Pair* pair,
    ) noexcept nogil:
        """A pair as if it were alone; if neither moves, what is known of it."""
        cdef bint stays = not own and search.marks[shape] == 0
        if stays and self.are_kept:
            pair.energy = self.kept[self.n_kept]
            self.n_kept += 1
            return
        self.examined += 1
        pair.energy = 0.0
        if _meet(&search.shapes, world, m, shape):
            _touch(&self.task, side, world, a, R, world.x + 3 * <Py_ssize_t> search.shapes.node[m], shape, pair)
        if stays:
            self.kept[self.n_kept] = pair.energy
            self.n_kept += 1

    cdef int act(self, World* world) noexcept nogil:
        cdef EllipsoidTask* t = &self.task
        cdef double* torque
        cdef Py_ssize_t m
        cdef int c, k, fault
        if self.listed != self.builds + self.mended:
            fault = _list(t.side, t.n, self.first.neighbors, world)
            if fault == 0:
                fault = _list(t.side + 1, t.n, self.second.neighbors, world)
            if fault != 0:
                return fault
            self.listed = self.builds + self.mended
        over_blocks(_ellipsoids, t, world, t.n, BODIES)
        for k in range(2):
            if t.side[k].shapes.n > 0:
                t.now = t.side + k
                over_blocks(_shapes, t, world, t.side[k].shapes.n - t.n, BLOCK)
        for m in range(t.n):
            # Summed apart and added once: two equal forces give exactly twice one.
            torque = world.torque + 3 * <Py_ssize_t> t.oriented[m]
            for c in range(3):
                torque[c] += t.torque[3 * m + c]
        if world.want_energy:
            self.energy = sum_in_blocks(world, t.energy, t.n, self.partial)
        return 0

    def n_pairs(self):
        """How many pairs of an ellipsoid and a shape are listed, and of these touched at the last evaluation."""
        cdef const Side* side
        cdef Py_ssize_t i
        cdef int k
        listed = touching = 0
        for k in range(2):
            side = self.task.side + k
            if not self.valid or side.shapes.n == 0:
                continue
            listed += side.start[self.task.n]
            for i in range(side.start[self.task.n]):
                touching += side.pair[i].energy != 0.0
        return listed, touching
