"""Charges in a periodic box, by Ewald's sum: what there is besides pairs within range, which another operation has.

    U = 2 pi c/V sum_k w(k)/k^2 |S(k)|^2 - c a/sqrt(pi) sum_i q_i^2 - pi c/(2 V a^2) (sum_i q_i)^2
        - sum_excluded c q_i q_j erf(a r)/r,     S(k) = sum_i q_i exp(-i k.x_i),   w(k) = exp(-k^2/4a^2)

over all waves that fit into the box, without k = 0: the medium far away conducts, and a charge of the whole box is
balanced by an even background. Waves end smoothly, w fades over the last tenth of k, so that energies are continuous in
the lengths of the box. c is Coulomb's constant, a the splitting. Derived in docs/theory/lattice_sums.md.

Sums over charges and over waves are made in an order that depends on neither threads nor width of vectors.
"""
from libc.math cimport M_PI, sqrt
from libc.stdint cimport int32_t
from libc.stdlib cimport free

from medyanpy._kernels.core.arrays cimport vector, zeros
from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.elementary cimport exp_
from medyanpy._kernels.core.parallel cimport ordered_sum, over_blocks, record_fault
from medyanpy._kernels.core.program cimport OUT_OF_MEMORY, Operation, World
from medyanpy._kernels.core.sites cimport SiteArrays, SiteTable, is_asleep
from medyanpy._kernels.core.special cimport erf_, gauss_
from medyanpy._kernels.core.vec3 cimport dot
from medyanpy._kernels.core.waves cimport (
    LANES, WaveRow, Waves, free_waves, grown, list_waves, row_phase, set_phases, start_waves, wave_phase, wave_vector,
)

cdef enum:
    # Charges whose phases of a row are kept while its waves are summed.
    CHUNK = 256
    # Terms of erf in powers of what is below a half.
    TERMS = 12


cdef struct Task:
    Waves waves
    SiteArrays sites
    Py_ssize_t n
    double constant
    double splitting
    const int32_t* row        # (n,) of the table of sites
    const double* given       # (n,) charges
    double* q                 # (stride,) the same, 0 of inactive rows
    double* x                 # (3, stride)
    const int32_t* ignored_from  # (n + 1,)
    const int32_t* ignored    # members whose pairs are excluded
    double* of_row            # energies of rows of waves; as many as there were rows
    double* of_charge         # (n,) energies of excluded pairs


cdef int _copy(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Charges and positions of now, and phases; first and last are whole LANES."""
    cdef Task* t = <Task*> task
    cdef Py_ssize_t m, i
    cdef int c
    for m in range(first, last):
        # Those that fill the last lanes are where the last one is.
        i = min(m, t.n - 1)
        t.q[m] = 0.0 if m >= t.n or is_asleep(world, &t.sites, t.row[i]) else t.given[i]
        for c in range(3):
            t.x[c * t.waves.stride + m] = t.sites.x[3 * <Py_ssize_t> t.row[i] + c] if t.q[m] != 0.0 else 0.0
    set_phases(&t.waves, t.x, first, last)
    return 0


cdef inline double _volume(const Task* t) noexcept nogil:
    return t.waves.length[0] * t.waves.length[1] * t.waves.length[2]


cdef inline double _weight(const Task* t, double kk) noexcept nogil:
    """8 pi c/V w(k)/k^2, of a wave and its opposite together."""
    cdef double end = t.waves.cutoff * t.waves.cutoff
    # From 1 at nine tenths of the last k to 0 there, with two continuous derivatives.
    cdef double y = (end - kk) / (0.19 * end)
    y = y if y < 1.0 else 1.0
    y = y * y * y * (10.0 + y * (6.0 * y - 15.0))
    return (8.0 * M_PI * t.constant * y * exp_(-kk / (4.0 * t.splitting * t.splitting))
            / (kk * _volume(t)))


cdef int _rows(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """S of the waves of rows first to last, times their weights; and energies of rows."""
    cdef Task* t = <Task*> task
    cdef Waves* w = &t.waves
    cdef double exy[2 * CHUNK]
    cdef double re[LANES]
    cdef double im[LANES]
    cdef double cosine[LANES]
    cdef double sine[LANES]
    cdef double k[3]
    cdef double* s
    cdef double weight
    cdef const WaveRow* row
    cdef Py_ssize_t r, start, i, end
    cdef int z, lane
    for r in range(first, last):
        row = w.rows + r
        for i in range(2 * (row.last - row.first)):
            w.sum[2 * row.wave + i] = 0.0
        start = 0
        while start < w.stride:
            end = min(<Py_ssize_t> CHUNK, w.stride - start)
            i = 0
            while i < end:
                row_phase(w, row, start + i, exy + i, exy + CHUNK + i)
                i += LANES
            for z in range(row.first, row.last):
                for lane in range(LANES):
                    re[lane] = im[lane] = 0.0
                i = 0
                while i < end:
                    wave_phase(w, z, start + i, exy + i, exy + CHUNK + i, cosine, sine)
                    for lane in range(LANES):
                        re[lane] += t.q[start + i + lane] * cosine[lane]
                        im[lane] -= t.q[start + i + lane] * sine[lane]
                    i += LANES
                s = w.sum + 2 * (row.wave + z - row.first)
                for lane in range(LANES):
                    s[0] += re[lane]
                    s[1] += im[lane]
            start += CHUNK
        t.of_row[r] = 0.0
        for z in range(row.first, row.last):
            wave_vector(w, row, z, k)
            weight = _weight(t, dot(k, k))
            s = w.sum + 2 * (row.wave + z - row.first)
            t.of_row[r] += 0.5 * weight * (s[0] * s[0] + s[1] * s[1])
            s[0] *= weight
            s[1] *= weight
    return 0


cdef inline double _excluded(double a, double rr, double* u) noexcept nogil:
    """u = erf(a r)/r, and its slope in r over r."""
    cdef double t = a * a * rr, term, slope, r
    cdef int n
    if t >= 0.25:
        r = sqrt(rr)
        u[0] = erf_(a * r) / r
        return (2.0 * a / sqrt(M_PI) * gauss_(a * r) - u[0]) / rr
    # 2 a/sqrt(pi) times the sum over n of (-t)^n / (n! (2n + 1)).
    term = 2.0 * a / sqrt(M_PI)
    u[0] = slope = 0.0
    for n in range(TERMS):
        u[0] += term / (2 * n + 1)
        # d/dr of t^(n + 1) over r.
        slope -= 2.0 * a * a * term / (2 * n + 3)
        term *= -t / (n + 1)
    return slope


cdef int _charges(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Forces on charges first to last, whole LANES."""
    cdef Task* t = <Task*> task
    cdef const Waves* w = &t.waves
    cdef const WaveRow* row
    cdef const double* s
    cdef double cx[LANES]
    cdef double sx[LANES]
    cdef double cosine[LANES]
    cdef double sine[LANES]
    cdef double total[LANES]
    cdef double along[LANES]
    cdef double f[3][LANES]
    cdef double k[3]
    cdef double d[3]
    cdef double own[3]
    cdef double u, pulled, other
    cdef Py_ssize_t start = first, r, m, e
    cdef int z, lane, c
    while start < last:
        for c in range(3):
            for lane in range(LANES):
                f[c][lane] = 0.0
        for r in range(w.n_rows):
            row = w.rows + r
            row_phase(w, row, start, cx, sx)
            for lane in range(LANES):
                total[lane] = along[lane] = 0.0
            for z in range(row.first, row.last):
                wave_vector(w, row, z, k)
                wave_phase(w, z, start, cx, sx, cosine, sine)
                s = w.sum + 2 * (row.wave + z - row.first)
                for lane in range(LANES):
                    other = s[0] * sine[lane] + s[1] * cosine[lane]
                    total[lane] += other
                    along[lane] += k[2] * other
            for lane in range(LANES):
                f[0][lane] += k[0] * total[lane]
                f[1][lane] += k[1] * total[lane]
                f[2][lane] += along[lane]
        for lane in range(<int> min(<Py_ssize_t> LANES, t.n - start)):
            m = start + lane
            t.of_charge[m] = 0.0
            for c in range(3):
                own[c] = t.q[m] * f[c][lane]
            for e in range(t.ignored_from[m], t.ignored_from[m + 1]):
                r = t.ignored[e]
                other = t.constant * t.q[m] * t.q[r]
                if other == 0.0:
                    continue
                displacement(
                    &world.box, t.sites.x + 3 * <Py_ssize_t> t.row[m], t.sites.x + 3 * <Py_ssize_t> t.row[r], d)
                pulled = _excluded(t.splitting, dot(d, d), &u)
                # Half from each end.
                t.of_charge[m] -= 0.5 * other * u
                for c in range(3):
                    own[c] -= other * pulled * d[c]
            for c in range(3):
                t.sites.f[3 * <Py_ssize_t> t.row[m] + c] += own[c]
        start += LANES
    return 0


cdef class Ewald(Operation):
    """Coulomb's energy of charges and all of their images.

    Parameters
    ----------
    name : str
    pairs : Operation
        Pairs within range, with erfc(a r)/r; of the same sites.
    row : (n,) int32
        Of each member, in the table of sites.
    charge : (n,) float
    ignored_from, ignored : (n + 1,), (...) int32
        Members whose pairs with each member are excluded; both ways round.
    sites : SiteTable
    constant, splitting, cutoff : float
        c; a, 1/nm; the last k, 1/nm.
    """
    cdef readonly Operation pairs
    cdef SiteTable sites
    cdef Task task
    cdef list arrays
    cdef double last          # k
    cdef Py_ssize_t room      # of energies of rows

    def __init__(self, str name, Operation pairs, const int32_t[::1] row, const double[::1] charge,
                 const int32_t[::1] ignored_from, const int32_t[::1] ignored, SiteTable sites, double constant,
                 double splitting, double cutoff):
        cdef Task* t = &self.task
        cdef Py_ssize_t n = row.shape[0], stride = (n + LANES - 1) // LANES * LANES
        self.name = name
        self.pairs = pairs
        self.sites = sites
        # Second derivatives of waves join all charges: they are not offered.
        self.derivatives = 1
        self.arrays = []
        start_waves(&t.waves, n, stride, 2)
        t.n = n
        t.constant = constant
        t.splitting = splitting
        self.last = cutoff
        t.row = vector(self.arrays, row)
        t.given = vector(self.arrays, charge)
        t.ignored_from = vector(self.arrays, ignored_from)
        t.ignored = vector(self.arrays, ignored)
        t.q = zeros(self.arrays, stride)
        t.x = zeros(self.arrays, 3 * stride)
        t.of_charge = zeros(self.arrays, n)

    def __dealloc__(self):
        free_waves(&self.task.waves)
        free(self.task.of_row)

    @property
    def waves(self):
        """How many waves there are: of each two opposite ones, one."""
        return self.task.waves.n_waves

    cdef int run(self, World* world) noexcept nogil:
        cdef Task* t = &self.task
        cdef Py_ssize_t n_rows
        cdef int fault
        self.energy = 0.0
        if t.n == 0:
            return 0
        fault = self.pairs.run(world)
        if fault == 0:
            fault = self.sites.gather(world)
        if fault != 0:
            return fault
        t.sites = self.sites.now
        if not (list_waves(&t.waves, world.box.length, self.last)
                and grown(<void**> &t.of_row, &self.room, t.waves.n_rows, sizeof(double))):
            return record_fault(world, OUT_OF_MEMORY, -1, -1)
        n_rows = t.waves.n_rows
        over_blocks(_copy, t, world, t.waves.stride, 16 * LANES)
        over_blocks(_rows, t, world, n_rows, 1 + 1024 // t.n)
        over_blocks(_charges, t, world, t.waves.stride, LANES * (1 + 64 // (1 + t.waves.n_waves)))
        if world.want_energy:
            self.energy = self.pairs.energy + (
                ordered_sum(t.of_row, n_rows) + ordered_sum(t.of_charge, t.n) + self.of_each())
        return self.sites.scatter(world)

    cdef double of_each(self) noexcept nogil:
        """The energy of each charge with the wave part of its own, and of the background."""
        cdef const Task* t = &self.task
        cdef double squares = 0.0, total = 0.0
        cdef Py_ssize_t m
        for m in range(t.n):
            squares += t.q[m] * t.q[m]
            total += t.q[m]
        return -t.constant * (
            t.splitting / sqrt(M_PI) * squares
            + M_PI * total * total / (2.0 * t.splitting * t.splitting * _volume(t)))
