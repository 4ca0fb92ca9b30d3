"""Bonds: radial energies of fixed pairs of sites.

    F_i = U'(r) d / r,   d = x_j - x_i,   F_j = -F_i

One thread owns a site and adds up its bonds in the order they were given; each bond is visited from both
ends, which costs arithmetic and saves the ordering of sums.
"""
import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.core.arrays cimport table
from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.derivatives cimport Derivative
from medyanpy._kernels.core.expressions cimport Compiled, Function, WIDTH
from medyanpy._kernels.core.expressions cimport evaluate as run_program
from medyanpy._kernels.core.local_terms cimport MovedSites, TermForce
from medyanpy._kernels.core.local_terms import at_sites
from medyanpy._kernels.core.parallel cimport n_blocks, ordered_sum, over_blocks, record_fault
from medyanpy._kernels.beads.membrane cimport Geometry, holds_face, is_one_flip
from medyanpy._kernels.core.program cimport Change, LOST_COUNT, NOT_FINITE, Quad, World
from medyanpy._kernels.forces.radial cimport PENALTY, derive, evaluate
from medyanpy._kernels.core.sites cimport LinkedSites, SiteArrays, SiteTable
from medyanpy._kernels.core.triangles cimport Rings, corner_after, corner_before
from medyanpy._kernels.core.vec3 cimport add_scaled, dot

cdef Py_ssize_t BLOCK = 1024


cdef enum:
    # Beside the kinds of radial.pxd: parameters are the energy and its three derivatives, found before.
    FOUND = -1


cdef inline void _radial(int kind, const double* p, double r, int order, double* u) noexcept nogil:
    cdef int k
    if kind == FOUND:
        for k in range(order + 1):
            u[k] = p[k]
    else:
        evaluate(kind, p, r, order, u)


cdef struct BondTask:
    int kind
    const SiteArrays* sites
    const int32_t* owner      # (rows,) site
    const int32_t* offset     # (rows + 1,) where the bonds of each row start
    const int32_t* other      # (2 bonds,) site at the other end
    const int32_t* term       # (2 bonds,) row of parameters
    const double* parameters  # (bonds, width)
    Py_ssize_t width
    double* partial


cdef int _bonds(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef BondTask* t = <BondTask*> task
    cdef const double* xi
    cdef double* f
    cdef double d[3]
    cdef double row[3]
    cdef double u[4]
    cdef double r, energy = 0.0
    cdef Py_ssize_t k, s
    for k in range(first, last):
        xi = t.sites.x + 3 * <Py_ssize_t> t.owner[k]
        row[0] = row[1] = row[2] = 0.0
        for s in range(t.offset[k], t.offset[k + 1]):
            displacement(&world.box, xi, t.sites.x + 3 * <Py_ssize_t> t.other[s], d)
            r = sqrt(dot(d, d))
            _radial(t.kind, t.parameters + t.width * <Py_ssize_t> t.term[s], r, 1, u)
            # Half from each end: both see the same r, so the two halves make one whole exactly.
            energy += 0.5 * u[0]
            # Beads in one place have no direction to push in. Zero is the mean over all of them.
            add_scaled(u[1] / r if r > 0.0 else 0.0, d, row)
        # Summed apart and added once: two equal forces give exactly twice one.
        f = t.sites.f + 3 * <Py_ssize_t> t.owner[k]
        f[0] += row[0]
        f[1] += row[1]
        f[2] += row[2]
    t.partial[first // BLOCK] = energy
    return 0


cdef class Bonds(TermForce):
    """Radial energies of pairs of sites; the caller has checked numbers and sorted terms by owner."""
    cdef SiteTable sites
    cdef int kind
    cdef Py_ssize_t rows
    cdef const int32_t[::1] owner
    cdef const int32_t[::1] offset
    cdef const int32_t[::1] other
    cdef const int32_t[::1] term
    cdef const double[:, ::1] parameters
    cdef double[::1] partial
    cdef const int32_t[:, ::1] ends   # of each term, once it has been asked for

    def __init__(self, str name, int kind, const int32_t[::1] owner, const int32_t[::1] offset,
                 const int32_t[::1] other, const int32_t[::1] term, const double[:, ::1] parameters, SiteTable sites):
        self.name = name
        self.sites = sites
        # How a body turns is not among the positions that derivatives are taken in.
        self.derivatives = 1 if sites.has_arms else 3
        self.kind = kind
        self.rows = owner.shape[0]
        self.owner = owner
        self.offset = offset
        self.other = other
        self.term = term
        self.parameters = parameters
        self.partial = np.zeros(n_blocks(self.rows, BLOCK))

    cdef int run(self, World* world) noexcept nogil:
        cdef BondTask task
        cdef int fault
        self.energy = 0.0
        if self.rows == 0:
            return 0
        fault = self.sites.gather(world)
        if fault == 0:
            fault = self.find(world, 1)
        if fault != 0:
            return fault
        task.sites = &self.sites.now
        task.kind = self.kind
        task.owner = &self.owner[0]
        task.offset = &self.offset[0]
        task.other = &self.other[0]
        task.term = &self.term[0]
        task.parameters = &self.parameters[0, 0]
        task.width = self.parameters.shape[1]
        task.partial = &self.partial[0]
        over_blocks(_bonds, &task, world, self.rows, BLOCK)
        if world.want_energy:
            self.energy = ordered_sum(task.partial, n_blocks(self.rows, BLOCK))
        return self.sites.scatter(world)

    def named(self):
        n = self.parameters.shape[0]
        offset, term = np.asarray(self.offset)[:self.rows + 1], np.asarray(self.term)[:self.offset[self.rows]]
        owner = np.repeat(np.asarray(self.owner)[:self.rows], np.diff(offset))
        ends = np.zeros((n, 2), np.int32)
        ends[term, 0] = owner
        ends[term, 1] = np.asarray(self.other)[:len(term)]
        self.ends = ends
        return *at_sites(self.sites, owner, term), n

    cdef int of_term(self, World* world, Py_ssize_t term, double* out) noexcept nogil:
        cdef double u[4]
        cdef double d[3]
        cdef const double* x
        cdef int fault
        self.sites.refresh(world, self.ends[term, 0])
        self.sites.refresh(world, self.ends[term, 1])
        fault = self.find_one(world, term)
        x = self.sites.now.x
        displacement(&world.box, x + 3 * <Py_ssize_t> self.ends[term, 0], x + 3 * <Py_ssize_t> self.ends[term, 1], d)
        _radial(self.kind, &self.parameters[term, 0], sqrt(dot(d, d)), 1, u)
        out[0] = u[0]
        return fault

    cdef int find_one(self, World* world, Py_ssize_t term) noexcept nogil:
        """What `find` does for the energy of one term."""
        return 0

    cdef int find(self, World* world, int order) noexcept nogil:
        """Whatever is to be known before the loops: energies that are no formula of `radial`."""
        return 0

    cdef double radial(self, World* world, Py_ssize_t k, Py_ssize_t s, double* d, double* u) noexcept nogil:
        """d, r = |d|, and U with its derivatives in r: of the bond in row k with entry s."""
        cdef const double* x = self.sites.now.x
        cdef double r
        displacement(&world.box, x + 3 * <Py_ssize_t> self.owner[k], x + 3 * <Py_ssize_t> self.other[s], d)
        r = sqrt(dot(d, d))
        _radial(self.kind, &self.parameters[self.term[s], 0], r, 3, u)
        return r

    cdef int higher(self, World* world, const Derivative* wanted) noexcept nogil:
        cdef double d[3]
        cdef double u[4]
        cdef double r
        cdef Py_ssize_t k, s
        cdef int fault = self.sites.gather(world)
        if fault == 0:
            fault = self.find(world, 3)
        for k in range(self.rows):
            for s in range(self.offset[k], self.offset[k + 1]):
                # Each bond once: it is in the rows of both its ends.
                if fault == 0 and self.owner[k] < self.other[s]:
                    r = self.radial(world, k, s, d, u)
                    fault = derive(wanted, self.sites, self.owner[k], self.other[s], u, d, r, self.kind == PENALTY)
        return fault


cdef class PassingBonds(Bonds):
    """Bonds of one kind that come and go. The loops are those of bonds that stay, over what has some now.

    Parameters
    ----------
    parameters : (states, 2) float
    linked : LinkedSites
    """
    cdef LinkedSites linked
    cdef MovedSites moved

    def __init__(self, str name, int kind, parameters, LinkedSites linked):
        n = len(linked.start_of) - 1
        Bonds.__init__(
            self, name, kind, np.arange(n, dtype=np.int32), linked.start_of, linked.partner_of, linked.state_of,
            parameters, linked.sites)
        self.linked = linked
        self.moved = MovedSites()

    cdef void follow(self, World* world) noexcept nogil:
        self.linked.follow(world)
        self.rows = self.linked.n

    # Rows of now tell the partners of a site that moves.

    cdef bint touch(self, World* world, const Change* change) noexcept nogil:
        self.follow(world)
        return self.moved.take(world, self.sites, change)

    cdef void release(self) noexcept nogil:
        self.moved.release()

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        cdef double d[3]
        cdef double u[4]
        cdef Py_ssize_t k, s
        cdef int32_t other
        out[0] = 0.0
        self.moved.follow(world, self.sites)
        for k in range(self.moved.n):
            for s in range(self.offset[self.moved.site[k]], self.offset[self.moved.site[k] + 1]):
                other = self.other[s]
                # A pair that moves as a whole is in the rows of both.
                if 0 <= self.moved.rank[other] < k:
                    continue
                self.examined += 1
                self.sites.place(world, other, d)
                displacement(&world.box, self.moved.x + 3 * k, d, d)
                _radial(self.kind, &self.parameters[self.term[s], 0], sqrt(dot(d, d)), 1, u)
                out[0] += u[0]
        return 0

    cdef int run(self, World* world) noexcept nogil:
        self.follow(world)
        return Bonds.run(self, world)

    cdef int higher(self, World* world, const Derivative* wanted) noexcept nogil:
        self.follow(world)
        return Bonds.higher(self, world, wanted)


cdef class EdgeSprings(Bonds):
    """Bonds of one kind along the edges of a membrane, which may flip: rows follow its rings.

    Parameters
    ----------
    parameters : (1, 2) float
    geometry : Geometry
    n_edges : int
    """
    cdef Geometry geometry
    cdef long long flips
    cdef int32_t[::1] starts, neighbor

    def __init__(self, str name, int kind, parameters, Geometry geometry not None, Py_ssize_t n_edges):
        cdef Py_ssize_t first = geometry.membrane.first_bead, n = geometry.membrane.n_vertices
        self.starts = np.zeros(n + 1, np.int32)
        self.neighbor = np.zeros(2 * n_edges + 1, np.int32)
        Bonds.__init__(
            self, name, kind, np.arange(first, first + n, dtype=np.int32), self.starts, self.neighbor,
            np.zeros(2 * n_edges + 1, np.int32), parameters, SiteTable())
        self.acts_on_points = False
        self.geometry = geometry
        self.flips = -1

    cdef int follow(self, World* world) noexcept nogil:
        """Lay rows out again if edges have been flipped: neighbours in ascending order."""
        cdef const Rings* rings = self.geometry.membrane.rings
        cdef Py_ssize_t k, s, i, v, begin, at = 0
        cdef int32_t corner, other
        cdef int side
        if self.flips == self.geometry.triangles.flips:
            return 0
        for k in range(self.rows):
            v = self.owner[k]
            begin = at
            for s in range(rings.starts[v], rings.ends[v]):
                corner = rings.corners[s]
                for side in range(2):
                    # The edge to the corner before is the next one of another face, unless it is on a border.
                    if side and world.opposite[corner_after(corner)] >= 0:
                        continue
                    if at + 1 >= self.neighbor.shape[0]:
                        return record_fault(world, LOST_COUNT, v, -1)
                    other = world.faces[corner_before(corner) if side else corner_after(corner)]
                    i = at
                    while i > begin and self.neighbor[i - 1] > other:
                        self.neighbor[i] = self.neighbor[i - 1]
                        i -= 1
                    self.neighbor[i] = other
                    at += 1
            self.starts[k + 1] = <int32_t> at
        self.flips = self.geometry.triangles.flips
        return 0

    cdef int run(self, World* world) noexcept nogil:
        cdef int fault = self.follow(world)
        return fault if fault != 0 else Bonds.run(self, world)

    cdef int higher(self, World* world, const Derivative* wanted) noexcept nogil:
        cdef int fault = self.follow(world)
        return fault if fault != 0 else Bonds.higher(self, world, wanted)

    cdef bint touch(self, World* world, const Change* change) noexcept nogil:
        self.geometry.touch(world, change)
        return True

    cdef void release(self) noexcept nogil:
        self.geometry.let_go()

    cdef int difference(self, World* world, Change* change, double* out) noexcept nogil:
        cdef const Quad* quad = change.quads
        cdef double before
        if is_one_flip(change):
            self.examined += 2
            out[0] = 0.0
            if holds_face(&self.geometry.membrane, quad.first):
                before = self.between(world, quad.c, quad.d)
                out[0] = self.between(world, quad.a, quad.b) - before
            return 0
        return Bonds.difference(self, world, change, out)

    cdef double between(self, World* world, int32_t i, int32_t j) noexcept nogil:
        """The energy of an edge between two vertices."""
        cdef double d[3]
        cdef double u[4]
        displacement(&world.box, world.x + 3 * <Py_ssize_t> i, world.x + 3 * <Py_ssize_t> j, d)
        _radial(self.kind, &self.parameters[0, 0], sqrt(dot(d, d)), 1, u)
        return u[0]

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        cdef Py_ssize_t i, first
        cdef int32_t corner
        out[0] = 0.0
        for i in range(self.geometry.n_faces_touched):
            first = 3 * (self.geometry.membrane.first_face + self.geometry.faces[i])
            for corner in range(<int32_t> first, <int32_t> first + 3):
                if self.geometry.is_first(world, corner):
                    self.examined += 1
                    out[0] += self.between(
                        world, world.faces[corner_after(corner)], world.faces[corner_before(corner)])
        return 0


cdef struct FindTask:
    const SiteArrays* sites
    const int32_t* ends       # (bonds, 2)
    const double* others      # (bonds, q)
    Py_ssize_t q
    int order
    const Function* function
    double* registers         # (blocks, WIDTH * n_registers)
    double* values            # (bonds, 4)


cdef int _find(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef FindTask* t = <FindTask*> task
    cdef double* registers = t.registers + (first // BLOCK) * WIDTH * t.function.n_registers
    cdef double* r = registers + WIDTH * t.function.n_constants
    cdef const int32_t* end
    cdef double* value
    cdef double d[3]
    cdef Py_ssize_t chunk, i, j, k, p
    cdef int c, fault = 0
    for chunk in range(n_blocks(last - first, WIDTH)):
        i = first + WIDTH * chunk
        for k in range(WIDTH):
            # Where there are no more, the last once again.
            j = min(i + k, last - 1)
            end = t.ends + 2 * j
            displacement(&world.box, t.sites.x + 3 * <Py_ssize_t> end[0], t.sites.x + 3 * <Py_ssize_t> end[1], d)
            r[k] = sqrt(dot(d, d))
            for p in range(t.q):
                r[WIDTH * (1 + p) + k] = t.others[t.q * j + p]
        run_program(t.function, registers)
        for k in range(min(last - i, <Py_ssize_t> WIDTH)):
            value = t.values + 4 * (i + k)
            for c in range(t.order + 1):
                value[c] = registers[WIDTH * t.function.outputs[c] + k]
            # As of fields: derivatives may look like numbers where the energy is none.
            if not (0.0 * value[0] == 0.0):
                j = t.ends[2 * (i + k)]
                fault |= record_fault(world, NOT_FINITE, j if t.sites.bead == NULL else t.sites.bead[j], -1)
    return fault


cdef class WrittenBonds(Bonds):
    """Bonds whose energy is a function of r and of numbers of their own, given as programs of expressions.pxd.

    Parameters
    ----------
    values : (bonds, 4) float
        Room for the energy of each bond and its three derivatives: the loops of bonds read them.
    ends : (bonds, 2) int
        Its sites.
    others : (bonds, q) float
        Its numbers, which follow r in the registers.
    programs : two
        The energy and its derivative; and up to the third. Each of instructions, constants, outputs, and number of
        registers.
    """
    cdef FindTask written
    cdef list arrays
    cdef double[:, ::1] values
    cdef Compiled first, third

    def __init__(self, str name, const int32_t[::1] owner, const int32_t[::1] offset, const int32_t[::1] other,
                 const int32_t[::1] term, double[:, ::1] values, SiteTable sites, const int32_t[:, ::1] ends,
                 const double[:, ::1] others, programs):
        Bonds.__init__(self, name, FOUND, owner, offset, other, term, values, sites)
        self.values = values
        self.first = Compiled(*programs[0], n_blocks(len(values), BLOCK))
        self.third = Compiled(*programs[1], n_blocks(len(values), BLOCK))
        self.arrays = []
        self.written.ends = table(self.arrays, ends)
        self.written.others = table(self.arrays, others)
        self.written.q = others.shape[1]

    cdef int find_one(self, World* world, Py_ssize_t term) noexcept nogil:
        cdef FindTask* t = &self.written
        self.prepare(1)
        return _find(t, world, term, term + 1, 0)

    cdef int find(self, World* world, int order) noexcept nogil:
        cdef FindTask* t = &self.written
        if self.values.shape[0] == 0:
            return 0
        self.prepare(order)
        return over_blocks(_find, t, world, self.values.shape[0], BLOCK)

    cdef void prepare(self, int order) noexcept nogil:
        cdef FindTask* t = &self.written
        t.sites = &self.sites.now
        t.order = order
        if order == 1:
            t.function = &self.first.function
            t.registers = &self.first.registers[0, 0]
        else:
            t.function = &self.third.function
            t.registers = &self.third.registers[0, 0]
        t.values = &self.values[0, 0]
