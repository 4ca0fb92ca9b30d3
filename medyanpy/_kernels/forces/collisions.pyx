"""Soft repulsion between shapes: points, segments and triangles with a thickness.

    E = k/2 (L - r)²   for r < L,    r the distance of the closest points, L the sum of the two radii

Forces go to the corners by the weights of the closest points. Between two segments P and Q the closest points jump
where they become parallel, so there

    E = s E(closest) + (1 - s) 1/2 sum of E(end, segment) over the four ends,
    s = tanh(u),   u = κ |P x Q|² / (|P| |Q| L²)

(the MEDYAN law; its forces hold the gradient of s).

Who is near whom: shapes.pxi.

Bits: a pair is in the rows of both, computed twice in the same way (the shape of lower number first), each shape adds
up its row in ascending order, and each node the shapes that it is a corner of: the sums depend neither on threads nor
on the age of the lists.
"""
from medyanpy._kernels.core.elementary cimport exp_

include "shapes.pxi"


cdef inline double _push(
    const Closest* c, double k, double reach, double share, int na, int nb, double* fa, double* fb,
) noexcept nogil:
    """Energy of one pair of closest points; `share` of its force is added to the corners of both shapes."""
    cdef double overlap, strength
    cdef int i, e
    if c.rr >= reach * reach:
        return 0.0
    overlap = reach - sqrt(c.rr)
    # In one place, without a direction to push in: zero is the mean over all.
    strength = share * k * overlap / sqrt(c.dd) if c.dd > 0.0 else 0.0
    for e in range(3):
        for i in range(na):
            fa[3 * i + e] -= c.a[i] * strength * c.d[e]
        for i in range(nb):
            fb[3 * i + e] += c.b[i] * strength * c.d[e]
    return 0.5 * k * overlap * overlap


cdef inline double _collide(
    const Shapes* t, World* world, Py_ssize_t a, Py_ssize_t b, double* fa, double* fb,
) noexcept nogil:
    """Energy of shapes a < b; their forces are added to fa and fb (corners, 3)."""
    cdef double r[3]
    cdef double p[3]
    cdef double q[3]
    cdef double n[3]
    cdef double m[3]
    cdef Closest found[5]
    cdef double reach = t.radius[a] + t.radius[b]
    cdef double k, pp, qq, nn, u, e, s, ends, energy, slope
    cdef int i, count
    count = _approach(t, world, a, b, r, p, q, n, found)
    if found[count - 1].rr >= reach * reach:
        return 0.0
    k = t.law.stiffness[t.kind[a] * t.law.classes + t.kind[b]]
    if count == 1:
        return _push(found, k, reach, 1.0, 1, _corners(t, b), fa, fb)
    pp = dot(p, p)
    qq = dot(q, q)
    nn = dot(n, n)
    # Of segments without length: as if parallel.
    slope = t.law.switchover / (sqrt(pp) * sqrt(qq) * reach * reach) if pp > 0.0 and qq > 0.0 else 0.0
    u = slope * nn
    e = exp_(-2.0 * u)
    s = (1.0 - e) / (1.0 + e)
    ends = 0.0
    for i in range(4):
        ends += 0.5 * _push(found + i, k, reach, 0.5 * (1.0 - s), 2, 2, fa, fb)
    energy = _push(found + 4, k, reach, s, 2, 2, fa, fb)
    if slope > 0.0:
        # (E(closest) - ends) times the gradient of s, with ds/du = 1 - s² = 4 e / (1 + e)² and
        # |P x Q|² = pp qq - (p · q)²: half its gradient in p is q x n, in q it is n x p.
        slope *= (energy - ends) * 4.0 * e / ((1.0 + e) * (1.0 + e))
        cross(q, n, m)
        for i in range(3):
            u = slope * (2.0 * m[i] - nn / pp * p[i])
            fa[i] += u
            fa[3 + i] -= u
        cross(n, p, m)
        for i in range(3):
            u = slope * (2.0 * m[i] - nn / qq * q[i])
            fb[i] += u
            fb[3 + i] -= u
    return s * energy + (1.0 - s) * ends


cdef int _forces(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef Shapes* t = <Shapes*> task
    cdef const Neighbors* near = t.near
    cdef const int32_t* row = near.rows[first // ROWS_PER_BLOCK]
    cdef double* f
    cdef double theirs[9]
    cdef double energy
    cdef Py_ssize_t s, m, other
    cdef int k
    memset(theirs, 0, sizeof(theirs))
    for s in range(first, last):
        if near.count[s] == 0:
            continue
        m = near.member[s]
        f = t.f + 3 * _corner(t, m)
        memset(f, 0, 3 * _corners(t, m) * sizeof(double))
        energy = 0.0
        for k in range(near.count[s]):
            other = row[k]
            # Half from each side: both compute the same, so the two halves make one whole exactly.
            if m < other:
                energy += 0.5 * _collide(t, world, m, other, f, theirs)
            else:
                energy += 0.5 * _collide(t, world, other, m, theirs, f)
        row += near.count[s]
        t.energy[m] = energy
    return 0


cdef double _add(Search search, World* world) noexcept nogil:
    """Forces on the corners of one search; its energy, where it is wanted."""
    cdef Shapes* t = &search.shapes
    if t.n == 0:
        return 0.0
    over_blocks(_forces, t, world, t.near.n, ROWS_PER_BLOCK)
    if not world.want_energy:
        return 0.0
    # In the order of numbers: that of slots depends on when the list was made.
    return sum_in_blocks(world, t.energy, t.n, t.partial)


cdef int _touched(
    Search search, World* world, bint other, bint listed, double* out, long long* examined,
) noexcept nogil:
    """Add the energy of the shapes of a change, with each other and with all else, in one of its states; listed: that
    of now, where rows tell."""
    cdef Shapes* t = &search.shapes
    cdef double fa[9]
    cdef double fb[9]
    cdef const int32_t* row
    cdef Py_ssize_t i, k, m, b, n
    cdef bint by_row
    memset(fa, 0, sizeof(fa))
    memset(fb, 0, sizeof(fb))
    search.enter(other)
    for k in range(search.n_touched):
        m = search.touched[k]
        if t.near.slot_of[m] < 0:
            continue
        by_row = listed and search.has_row(m)
        if by_row:
            n = t.near.count[t.near.slot_of[m]]
            row = t.near.row_of[m]
        else:
            n = search.seek(world, m)
            row = &search.met[0]
        if n < 0:
            return record_fault(world, OUT_OF_MEMORY, -1, -1)
        for i in range(n + k):
            b = row[i] if i < n else search.touched[i - n]
            # Those of the change have their turn after all others.
            if t.near.slot_of[b] < 0 or (search.marks[b] != 0 if i < n else not search.neighbors.interact(m, b)):
                continue
            examined[0] += 1
            if by_row and i < n or _meet(t, world, min(m, b), max(m, b)):
                out[0] += _collide(t, world, min(m, b), max(m, b), fa, fb)
    return 0


cdef class Collisions(OfShapes):
    """Repulsion of all shapes of three searches."""

    def __init__(self, *args):
        OfShapes.__init__(self, *args)
        self.asked_last = self.is_positive = True

    cdef int local_energy_now(self, World* world, double most, double* out) noexcept nogil:
        return self.touched_energy(world, False, True, out)

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        # Rows are those of the state that was touched.
        cdef bint other = self.change.there != self.there
        cdef int fault = self.touched_energy(world, other, not other, out)
        # Shapes stay what they are until the change is made.
        self.enter(False)
        return fault

    cdef int touched_energy(self, World* world, bint other, bint listed, double* out) noexcept nogil:
        cdef int fault
        out[0] = 0.0
        if self.nodes.n == 0:
            return 0
        fault = _touched(self.first, world, other, listed, out, &self.examined)
        if fault == 0:
            fault = _touched(self.second, world, other, listed, out, &self.examined)
        return _touched(self.third, world, other, listed, out, &self.examined) if fault == 0 else fault

    cdef int act(self, World* world) noexcept nogil:
        self.energy = _add(self.first, world) + _add(self.second, world) + _add(self.third, world)
        return 0
