"""Walls that repel what comes near them: beads with a radius, and ellipsoids.

    U = sum_i V(mu_i),   mu = 1 + g / sigma,   g = n.(x - o) - r - h

g is the distance of the surface of bead i from a plane: r is the radius of a sphere, and h = sqrt(n.S n) with
S = R diag(a^2) R^T how far an ellipsoid reaches along the normal n of the wall (one of the two is 0). V and its two
forms: contact.pxd. With s the place where the ellipsoid reaches farthest,

    F = -V'/sigma n,    torque = V'/sigma (S n x n) / h = (-S n / h) x F

A round wall is all that is at a distance R from a segment, or from a point: g = +-(|d| - R) - r and n = +-d / |d|, with
the way d from the nearest place of the segment to the bead; the sign says on which side of it things are to be.

Shapes: m rows of a table of sites with radii (m,); of ellipsoids, semi-axes (m, 3) and the rows of oriented beads.
Units: nm, pN nm. The caller has checked rows, that none occurs twice, and shapes.
"""
from libc.math cimport sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.core.arrays cimport table, vector, zeros
from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.forces.contact cimport contact_energy, end_squared
from medyanpy._kernels.core.local_terms cimport SiteForce
from medyanpy._kernels.core.parallel cimport n_blocks, ordered_sum, over_blocks
from medyanpy._kernels.core.program cimport World
from medyanpy._kernels.core.quaternion cimport into_body, matrix_of
from medyanpy._kernels.core.sites cimport SiteArrays, SiteTable, is_asleep
from medyanpy._kernels.core.vec3 cimport add_scaled, dot

cdef Py_ssize_t BLOCK = 2048

cdef enum Kind:
    FLAT = 0
    ROUND = 1


cdef struct WallTask:
    SiteArrays sites
    const int32_t* row
    int kind
    const double* point       # (3,) of a plane; where a segment starts
    const double* along       # (3,) the normal of a plane, of length 1; the way to the other end of a segment, or 0
    double square             # of that way
    double wall_radius
    double side               # -1: things are to be inside, 1: outside
    int form
    double end                # mu where V ends
    double epsilon
    double sigma
    const double* radius      # (m,) of spheres
    const double* axes        # (m, 3) of ellipsoids; NULL: there are none
    const int32_t* oriented   # (m,) likewise
    double* partial


cdef inline double _distance(const WallTask* t, double* d, double* normal) noexcept nogil:
    """How far a place is from the wall, given the way d to it from the point of the wall; and the gradient of that."""
    cdef double s
    cdef int c
    if t.kind == FLAT:
        for c in range(3):
            normal[c] = t.along[c]
        return dot(t.along, d)
    if t.square > 0.0:
        s = dot(t.along, d) / t.square
        add_scaled(-min(max(s, 0.0), 1.0), t.along, d)
    s = sqrt(dot(d, d))
    for c in range(3):
        # All ways lead from the middle to the wall. Zero is the mean over them.
        normal[c] = t.side * d[c] / s if s > 0.0 else 0.0
    return t.side * (s - t.wall_radius)


cdef inline double _repel(const WallTask* t, World* world, Py_ssize_t i) noexcept nogil:
    """Energy of one bead; its force and torque are added."""
    cdef double* torque
    cdef double d[3]
    cdef double R[9]
    cdef double n[3]
    cdef double normal[3]
    cdef double distance, mu, slope, energy, reach = 0.0
    cdef const double* a
    cdef int c
    displacement(&world.box, t.point, t.sites.x + 3 * <Py_ssize_t> t.row[i], d)
    distance = _distance(t, d, normal)
    if t.axes != NULL:
        a = t.axes + 3 * i
        matrix_of(world.orientation + 4 * <Py_ssize_t> t.oriented[i], R)
        into_body(R, normal, n)
        for c in range(3):
            reach += a[c] * n[c] * a[c] * n[c]
        reach = sqrt(reach)
    mu = 1.0 + (distance - t.radius[i] - reach) / t.sigma
    if mu >= t.end:
        return 0.0
    energy = contact_energy(t.form, t.epsilon, mu, &slope)
    slope /= t.sigma
    add_scaled(-slope, normal, t.sites.f + 3 * <Py_ssize_t> t.row[i])
    if t.axes != NULL:
        slope /= reach
        torque = world.torque + 3 * <Py_ssize_t> t.oriented[i]
        torque[0] += slope * (a[1] * a[1] - a[2] * a[2]) * n[1] * n[2]
        torque[1] += slope * (a[2] * a[2] - a[0] * a[0]) * n[2] * n[0]
        torque[2] += slope * (a[0] * a[0] - a[1] * a[1]) * n[0] * n[1]
    return energy


cdef int _wall(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef WallTask* t = <WallTask*> task
    cdef double energy = 0.0
    cdef Py_ssize_t i
    for i in range(first, last):
        if not is_asleep(world, &t.sites, t.row[i]):
            energy += _repel(t, world, i)
    t.partial[first // BLOCK] = energy
    return 0


cdef class Wall(SiteForce):
    """A wall that repels spheres, or if it is a plane ellipsoids, on single sites; its kind and the four numbers that
    follow are those of `boundaries.Boundary._shape`."""
    cdef WallTask task
    cdef list arrays
    cdef Py_ssize_t n

    def __init__(self, str name, SiteTable sites, const int32_t[::1] row, int kind, const double[::1] point,
                 const double[::1] along, double wall_radius, double side, int form, double epsilon, double sigma,
                 const double[::1] radius, const double[:, ::1] axes, const int32_t[::1] oriented):
        self.name = name
        self.derivatives = 1
        self.sites = sites
        self.row = row
        self.n = row.shape[0]
        self.arrays = []
        self.task.row = vector(self.arrays, row)
        self.task.point = vector(self.arrays, point)
        self.task.kind = kind
        self.task.along = vector(self.arrays, along)
        self.task.square = dot(self.task.along, self.task.along)
        self.task.wall_radius = wall_radius
        self.task.side = side
        self.task.form = form
        self.task.end = sqrt(end_squared(form))
        self.task.epsilon = epsilon
        self.task.sigma = sigma
        self.task.radius = vector(self.arrays, radius)
        self.task.axes = table(self.arrays, axes)
        self.task.oriented = vector(self.arrays, oriented)
        self.task.partial = zeros(self.arrays, n_blocks(self.n, BLOCK))
        self.loops(_wall, &self.task, self.task.partial, BLOCK)

    cdef int run(self, World* world) noexcept nogil:
        cdef int fault
        self.energy = 0.0
        if self.n == 0:
            return 0
        fault = self.sites.gather(world)
        if fault != 0:
            return fault
        self.task.sites = self.sites.now
        over_blocks(_wall, &self.task, world, self.n, BLOCK)
        if world.want_energy:
            self.energy = ordered_sum(self.task.partial, n_blocks(self.n, BLOCK))
        return self.sites.scatter(world)

    cdef int look(self, World* world, Py_ssize_t term) noexcept nogil:
        self.sites.refresh(world, self.row[term])
        self.task.sites = self.sites.now
        return 0
