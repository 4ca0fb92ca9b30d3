"""Angles between two directions, each from one site to another.

    E = sum over terms of k (1 - cos(theta - theta0)) = k - p c - s sin theta
    p = k cos theta0,   s = k sin theta0,   c = u.v,   u = a/|a|,   v = b/|b|
    dE/dc = -p + s c / sin theta
    dc/da = (v - c u)/|a|,   dc/db = (u - c v)/|b|,   sin theta = |v - c u|

with g = 1 where c >= 0, else -1, and w = v - g u, e = |w|^2 / 2 = 1 - g c:

    v - c u = w + g e u,   u - c v = g (e v - w),   E = (k - g p) + g p e - s sin theta

Differences, or sums, of unit vectors keep their digits where directions are almost parallel, or opposite. At theta = 0
and pi the term in s has no direction; it is left out there, the mean over all directions. A direction between two
sites in one place does not exist: such a term has the energy k and no force.

Every row of the table of sites belongs to one term: a term writes the forces on its sites, and the table hands them on
by owner, in the order of terms. Second and third derivatives: cosine.pxd.
"""
import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.core.arrays cimport table, zeros
from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.cosine cimport derive
from medyanpy._kernels.core.derivatives cimport Derivative
from medyanpy._kernels.core.local_terms cimport Few, MovedSites, TermForce
from medyanpy._kernels.core.local_terms import at_sites
from medyanpy._kernels.core.parallel cimport n_blocks, ordered_sum, over_blocks
from medyanpy._kernels.core.program cimport Change, World
from medyanpy._kernels.core.sites cimport SiteArrays, SiteTable, SomeSites
from medyanpy._kernels.core.vec3 cimport add_scaled, dot

cdef Py_ssize_t BLOCK = 512


cdef struct AngleTask:
    const SiteArrays* sites
    Py_ssize_t ends           # sites of a term
    Py_ssize_t tail[2]        # from which of them either direction leads
    Py_ssize_t head[2]        # and to which
    const double* numbers     # (terms, 3) k, p, s
    double* partial


cdef int _angles(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef AngleTask* t = <AngleTask*> task
    cdef const double* x
    cdef const double* number
    cdef double* f
    cdef double unit[2][3]
    cdef double inverse[2]
    cdef double along[2][3]
    cdef double w[3]
    cdef double square, g, e, sine, slope, energy = 0.0
    cdef Py_ssize_t k
    cdef int c, i
    for k in range(first, last):
        x = t.sites.x + 3 * t.ends * k
        f = t.sites.f + 3 * t.ends * k
        number = t.numbers + 3 * k
        for i in range(2):
            displacement(&world.box, x + 3 * t.tail[i], x + 3 * t.head[i], unit[i])
            square = dot(unit[i], unit[i])
            inverse[i] = 1.0 / sqrt(square) if square > 0.0 else 0.0
            for c in range(3):
                unit[i][c] *= inverse[i]
        if inverse[0] == 0.0 or inverse[1] == 0.0:
            energy += number[0]
            continue
        g = 1.0 if dot(unit[0], unit[1]) >= 0.0 else -1.0
        for c in range(3):
            w[c] = unit[1][c] - g * unit[0][c]
        e = 0.5 * dot(w, w)
        for c in range(3):
            along[0][c] = w[c] + g * e * unit[0][c]
            along[1][c] = g * (e * unit[1][c] - w[c])
        sine = sqrt(dot(along[0], along[0]))
        slope = -number[1]
        if sine > 0.0:
            slope += number[2] * (g * (1.0 - e)) / sine
        energy += ((number[0] - g * number[1]) + g * number[1] * e) - number[2] * sine
        for i in range(2):
            add_scaled(slope * inverse[i], along[i], f + 3 * t.tail[i])
            add_scaled(-slope * inverse[i], along[i], f + 3 * t.head[i])
    t.partial[first // BLOCK] = energy
    return 0


cdef class Angles(TermForce):
    """Energies of angles between directions.

    sites : table with `ends` rows for each term, in the order of terms.
    ends : 3 for the angle at the second of three sites, between the first and the third; 4 for that between the
        directions from the first to the second and from the third to the fourth.
    numbers : (terms, 3), pN nm: k, p, s.
    """
    cdef SiteTable sites
    cdef AngleTask task
    cdef list arrays
    cdef const double[:, ::1] numbers
    cdef Py_ssize_t terms             # that there are

    def __init__(self, str name, SiteTable sites, Py_ssize_t ends, const double[:, ::1] numbers):
        self.name = name
        # How a body turns is not among the positions that derivatives are taken in.
        self.derivatives = 1 if sites.has_arms else 3
        self.sites = sites
        self.numbers = numbers
        self.terms = numbers.shape[0]
        self.arrays = []
        self.task.sites = &sites.now
        self.task.ends = ends
        self.task.tail[0] = 1 if ends == 3 else 0
        self.task.head[0] = 0 if ends == 3 else 1
        self.task.tail[1] = 1 if ends == 3 else 2
        self.task.head[1] = 2 if ends == 3 else 3
        self.task.numbers = table(self.arrays, numbers)
        self.task.partial = zeros(self.arrays, n_blocks(numbers.shape[0], BLOCK))
        self.loops(_angles, &self.task, self.task.partial, BLOCK)

    cdef int run(self, World* world) noexcept nogil:
        cdef Py_ssize_t terms = self.terms
        cdef int fault
        self.energy = 0.0
        if terms == 0:
            return 0
        fault = self.sites.gather(world)
        if fault != 0:
            return fault
        over_blocks(_angles, &self.task, world, terms, BLOCK)
        if world.want_energy:
            self.energy = ordered_sum(self.task.partial, n_blocks(terms, BLOCK))
        return self.sites.scatter(world)

    def named(self):
        rows = np.arange(self.task.ends * self.terms)
        return *at_sites(self.sites, rows, rows // self.task.ends), self.terms

    cdef int look(self, World* world, Py_ssize_t term) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.task.ends):
            self.sites.refresh(world, self.task.ends * term + i)
        return 0

    cdef int higher(self, World* world, const Derivative* wanted) noexcept nogil:
        cdef const AngleTask* t = &self.task
        cdef Py_ssize_t ends[4]
        cdef double d[2][3]
        cdef const double* x = self.sites.now.x
        cdef Py_ssize_t k
        cdef int i, fault = self.sites.gather(world)
        for k in range(self.terms):
            for i in range(2):
                ends[2 * i] = t.ends * k + t.tail[i]
                ends[2 * i + 1] = t.ends * k + t.head[i]
                displacement(&world.box, x + 3 * ends[2 * i], x + 3 * ends[2 * i + 1], d[i])
            if fault == 0:
                fault = derive(wanted, self.sites, ends, self.numbers[k, 1], self.numbers[k, 2], d[0], d[1])
        return fault


cdef class PassingAngles(Angles):
    """Angles of one kind that come and go. The loops are those of angles that stay, over those that there are now.

    Parameters
    ----------
    ends : int
        See `Angles`.
    numbers : (3,) float, pN nm
        k, p, s of all.
    some : SomeSites
        Rows of one term after another, `ends` each.
    room : int
        Most terms that there may be.
    """
    cdef SomeSites some
    cdef MovedSites moved

    def __init__(self, str name, Py_ssize_t ends, numbers, SomeSites some not None, Py_ssize_t room):
        Angles.__init__(self, name, some.sites, ends, np.tile(numbers, (room, 1)))
        self.some = some
        self.moved = MovedSites()
        self.near = Few(room)
        self.terms = 0

    cdef void follow(self, World* world) noexcept nogil:
        self.some.follow(world)
        self.terms = self.some.n // self.task.ends

    cdef int run(self, World* world) noexcept nogil:
        self.follow(world)
        return Angles.run(self, world)

    cdef int higher(self, World* world, const Derivative* wanted) noexcept nogil:
        self.follow(world)
        return Angles.higher(self, world, wanted)

    # Rows of now tell the terms of a bead that moves.

    cdef bint touch(self, World* world, const Change* change) noexcept nogil:
        cdef Py_ssize_t k
        self.follow(world)
        if not self.moved.take(world, self.sites, change):
            return False
        for k in range(self.moved.n):
            self.near.add(<int32_t> (self.moved.site[k] // self.task.ends))
        self.moved.release()
        return True
