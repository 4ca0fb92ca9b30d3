# Equations S a = b with S = M + beta h^2 H, by conjugate gradients: where no band is narrow enough. Included by
# implicit_kicks.pyx.
#
# S is held by rows of (3, 3) blocks, both halves: a row times a vector is one thread's. Forces give their blocks
# in the same order as long as they couple the same beads: each is then added where the one before was, without a
# search; when the order is another one, it is sorted anew. Either way a block is the sum of what was given for it, in
# that order: nothing depends on what was held before.
#
# Preconditioned by the diagonal blocks D, from a = 0, until the residual r = b - S a has
#
#     |r| <= tolerance |a|,   r.M^-1.r <= tolerance^2 a.M.a,
#
# so that the kick M a is right to its tolerance: its error M S^-1 r is no longer than r in this norm, that of kinetic
# energies, as S >= M. Sums are of blocks of rows in order. Where a direction p has p.S.p <= 0 there is no minimum to go
# down to: S is not positive definite, and that is a fault. So is a residual that, computed from a, is not what it was
# thought to be, after a few starts from there.
#
# Where forces couple all beads by strength w w^T (areas, volumes), products have strength (w.a) w more, and the blocks
# stay as few. Each such part is one more direction to go down along.
#
# Source: Hestenes and Stiefel, J. Res. NBS 49, 409 (1952).

cdef enum:
    # Rows per parallel block.
    ROWS = 512
    # Products with S of one solution, and starts from where the one before has ended.
    MOST_PRODUCTS = 50000
    MOST_STARTS = 4

# A residual is not smaller than this, relative to D a: tolerances are not taken below.
cdef double ROUNDING = 1e-15


cdef struct Entry:
    int32_t p                 # a block of two rows, as a force gives it
    int32_t q
    int64_t slot[2]           # where it is added up, and where its mirror is


cdef struct BlockRows:
    Py_ssize_t n              # rows; all arrays but `place` are NULL before they are needed
    const int32_t* place      # (n,) of the bead of a row
    double tolerance
    double* mass              # (n,)
    double* diagonal          # (n, 9)
    double* inverse           # (n, 6) of that: xx, xy, xz, yy, yz, zz
    int64_t* start            # (n + 1,) where the other blocks of a row start
    int32_t* column           # (slots,)
    double* value             # (slots, 9)
    Py_ssize_t slots
    Py_ssize_t room           # for slots
    Entry* entries
    Py_ssize_t count          # entries that have their slots
    Py_ssize_t capacity
    int64_t* sorting          # (4 capacity,)
    Py_ssize_t given          # entries, so far
    int other                 # whether one of them was not that of before
    double* r                 # (n, 3)
    double* z
    double* p
    double* s                 # S p
    double* partial           # (n, 3)
    int32_t* products         # (n,) of the last solution that starts at a row
    int dense                 # parts strength w w^T of S that are not in the blocks; then all rows are one molecule
    double* w                 # (dense, n, 3)
    double* strength          # (dense,)
    double* share             # (dense,) strength w.x of the vector x that S is to be taken times


cdef bint _make_room(void** array, Py_ssize_t bytes) noexcept nogil:
    """Whether there is no memory for that; the array is then as it was."""
    cdef void* grown = realloc(array[0], bytes)
    if grown != NULL:
        array[0] = grown
    return grown == NULL


cdef int _make_rows(BlockRows* t) noexcept nogil:
    """Arrays by row, when they are needed first."""
    cdef bint failed = False
    if t.products != NULL:
        return 0
    failed |= _make_room(<void**> &t.mass, t.n * sizeof(double))
    failed |= _make_room(<void**> &t.diagonal, 9 * t.n * sizeof(double))
    failed |= _make_room(<void**> &t.inverse, 6 * t.n * sizeof(double))
    failed |= _make_room(<void**> &t.start, (t.n + 1) * sizeof(int64_t))
    failed |= _make_room(<void**> &t.r, 3 * t.n * sizeof(double))
    failed |= _make_room(<void**> &t.z, 3 * t.n * sizeof(double))
    failed |= _make_room(<void**> &t.p, 3 * t.n * sizeof(double))
    failed |= _make_room(<void**> &t.s, 3 * t.n * sizeof(double))
    failed |= _make_room(<void**> &t.partial, 3 * t.n * sizeof(double))
    # Last: it tells that all are there.
    if failed or _make_room(<void**> &t.products, t.n * sizeof(int32_t)):
        return OUT_OF_MEMORY
    memset(t.start, 0, (t.n + 1) * sizeof(int64_t))
    memset(t.products, 0, t.n * sizeof(int32_t))
    return 0


cdef void _free_rows(BlockRows* t) noexcept nogil:
    free(t.mass)
    free(t.diagonal)
    free(t.inverse)
    free(t.start)
    free(t.column)
    free(t.value)
    free(t.entries)
    free(t.sorting)
    free(t.r)
    free(t.z)
    free(t.p)
    free(t.s)
    free(t.partial)
    free(t.products)


# The matrix --------------------------------------------------------------------------------------------------------


cdef inline Py_ssize_t _row_of(const BlockRows* t, int64_t item) noexcept nogil:
    """Items are entries and their mirrors in turn."""
    return t.entries[item >> 1].q if item & 1 else t.entries[item >> 1].p


cdef void _sort(const BlockRows* t, const int64_t* items, int64_t* out, int64_t mirror) noexcept nogil:
    """Items by their rows, or where mirror is 1 by their columns, those of one row as they were; t.start is used."""
    cdef Py_ssize_t k, row, total = 0, n
    memset(t.start, 0, (t.n + 1) * sizeof(int64_t))
    for k in range(2 * t.count):
        t.start[_row_of(t, items[k] ^ mirror) + 1] += 1
    for row in range(t.n):
        t.start[row + 1] += t.start[row]
    for k in range(2 * t.count):
        row = _row_of(t, items[k] ^ mirror)
        out[t.start[row]] = items[k]
        t.start[row] += 1


cdef int _arrange(BlockRows* t) noexcept nogil:
    """Slots for the entries: rows in order, in a row columns in order, each once."""
    cdef int64_t* one = t.sorting
    cdef int64_t* two
    cdef Py_ssize_t k, row, column, last_row = -1, last_column = -1
    cdef int64_t slot = -1
    t.count = t.given
    two = one + 2 * t.count
    for k in range(2 * t.count):
        two[k] = k
    _sort(t, two, one, 1)
    _sort(t, one, two, 0)
    for k in range(2 * t.count):
        row = _row_of(t, two[k])
        column = _row_of(t, two[k] ^ 1)
        slot += row != last_row or column != last_column
        last_row, last_column = row, column
        t.entries[two[k] >> 1].slot[two[k] & 1] = slot
    t.slots = slot + 1
    if t.slots > t.room:
        t.room = t.slots + t.slots // 8
        if _make_room(<void**> &t.column, t.room * sizeof(int32_t)) or \
                _make_room(<void**> &t.value, 9 * t.room * sizeof(double)):
            # Those that there were may have gone; the next kick begins anew.
            t.room = t.slots = t.count = 0
            return OUT_OF_MEMORY
    memset(t.start, 0, (t.n + 1) * sizeof(int64_t))
    slot = -1
    for k in range(2 * t.count):
        if t.entries[two[k] >> 1].slot[two[k] & 1] != slot:
            slot += 1
            t.column[slot] = _row_of(t, two[k] ^ 1)
            t.start[_row_of(t, two[k]) + 1] += 1
    for row in range(t.n):
        t.start[row + 1] += t.start[row]
    return 0


cdef int _begin_rows(BlockRows* t, const World* world) noexcept nogil:
    """No blocks yet, and masses in the diagonal."""
    cdef Py_ssize_t p
    cdef int c, fault = _make_rows(t)
    if fault != 0:
        return fault
    memset(t.diagonal, 0, 9 * t.n * sizeof(double))
    if t.slots > 0:
        memset(t.value, 0, 9 * t.slots * sizeof(double))
    for p in range(t.n):
        t.mass[p] = world.mass[t.place[p]]
        for c in range(3):
            t.diagonal[9 * p + 4 * c] = t.mass[p]
    t.given = 0
    t.other = False
    return 0


cdef inline int _into_rows(BlockRows* t, double scale, Py_ssize_t p, Py_ssize_t q, const double* block) noexcept nogil:
    cdef Entry* e
    cdef double* v
    cdef double* w
    cdef int a, b
    if p == q:
        v = t.diagonal + 9 * p
        for a in range(9):
            v[a] += scale * block[a]
        return 0
    if t.given == t.capacity:
        t.capacity = 2 * t.capacity + 256
        if _make_room(<void**> &t.entries, t.capacity * sizeof(Entry)) or \
                _make_room(<void**> &t.sorting, 4 * t.capacity * sizeof(int64_t)):
            t.capacity = t.count = t.given = 0
            return OUT_OF_MEMORY
    e = t.entries + t.given
    t.other |= t.given >= t.count or e.p != p or e.q != q
    t.given += 1
    if t.other:
        e.p = p
        e.q = q
        return 0
    v = t.value + 9 * e.slot[0]
    w = t.value + 9 * e.slot[1]
    for a in range(3):
        for b in range(3):
            v[3 * a + b] += scale * block[3 * a + b]
            w[3 * b + a] += scale * block[3 * a + b]
    return 0


cdef inline bint _in_place(const BlockRows* t) noexcept nogil:
    """Whether the blocks given are those that there are slots for."""
    return not t.other and t.given == t.count


# The solution ------------------------------------------------------------------------------------------------------


cdef struct Descent:
    BlockRows* rows
    Py_ssize_t first          # of a molecule
    const double* b           # (n, 3)
    double* a
    double alpha
    double beta
    double* partial           # (blocks, 3)


cdef int _invert_diagonal(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """D^-1; a partial maximum of trace(D) over masses. A bead whose D is not positive definite is a fault: S is not."""
    cdef Descent* t = <Descent*> task
    cdef const double* d
    cdef double* o
    cdef double a, b, c, e, f, i, xx, xy, xz, minor, determinant, largest = 0.0
    cdef Py_ssize_t p
    for p in range(t.first + first, t.first + last):
        d = t.rows.diagonal + 9 * p
        a, b, c, e, f, i = d[0], d[1], d[2], d[4], d[5], d[8]
        xx, xy, xz = e * i - f * f, c * f - b * i, b * f - c * e
        minor, determinant = a * e - b * b, a * xx + b * xy + c * xz
        # Of numbers that are none, too.
        if not (a > 0.0 and minor > TINY * a * e and determinant > TINY * minor * i):
            return record_fault(world, NOT_SOLVED, t.rows.place[p], -1)
        o = t.rows.inverse + 6 * p
        o[0], o[1], o[2] = xx / determinant, xy / determinant, xz / determinant
        o[3], o[4], o[5] = (a * i - c * c) / determinant, (b * c - a * f) / determinant, minor / determinant
        largest = max(largest, (a + e + i) / t.rows.mass[p])
    t.partial[3 * (first // ROWS)] = largest
    return 0


cdef inline void _row_times(const BlockRows* t, Py_ssize_t p, const double* x, double* out) noexcept nogil:
    """out (3,) = row p of S, times x (n, 3)"""
    cdef const double* v = t.diagonal + 9 * p
    cdef const double* y = x + 3 * p
    cdef double s0 = v[0] * y[0] + v[1] * y[1] + v[2] * y[2]
    cdef double s1 = v[3] * y[0] + v[4] * y[1] + v[5] * y[2]
    cdef double s2 = v[6] * y[0] + v[7] * y[1] + v[8] * y[2]
    cdef Py_ssize_t k
    for k in range(t.start[p], t.start[p + 1]):
        v = t.value + 9 * k
        y = x + 3 * <Py_ssize_t> t.column[k]
        s0 += v[0] * y[0] + v[1] * y[1] + v[2] * y[2]
        s1 += v[3] * y[0] + v[4] * y[1] + v[5] * y[2]
        s2 += v[6] * y[0] + v[7] * y[1] + v[8] * y[2]
    for k in range(t.dense):
        v = t.w + 3 * (t.n * k + p)
        s0 += t.share[k] * v[0]
        s1 += t.share[k] * v[1]
        s2 += t.share[k] * v[2]
    out[0], out[1], out[2] = s0, s1, s2


cdef void _take_shares(BlockRows* t, const double* x) noexcept nogil:
    """Of x (n, 3), before rows are taken times it."""
    cdef Py_ssize_t i
    cdef const double* w
    cdef double total
    cdef int k
    for k in range(t.dense):
        w = t.w + 3 * t.n * k
        total = 0.0
        for i in range(3 * t.n):
            total += w[i] * x[i]
        t.share[k] = t.strength[k] * total


cdef inline void _row_sums(const Descent* t, Py_ssize_t p, double* sums) noexcept nogil:
    """z = D^-1 r of a row; r.z, r.M^-1.r and a.M.a are added to sums."""
    cdef const double* i = t.rows.inverse + 6 * p
    cdef const double* r = t.rows.r + 3 * p
    cdef const double* a = t.a + 3 * p
    cdef double* z = t.rows.z + 3 * p
    cdef double m = t.rows.mass[p]
    z[0] = i[0] * r[0] + i[1] * r[1] + i[2] * r[2]
    z[1] = i[1] * r[0] + i[3] * r[1] + i[4] * r[2]
    z[2] = i[2] * r[0] + i[4] * r[1] + i[5] * r[2]
    sums[0] += r[0] * z[0] + r[1] * z[1] + r[2] * z[2]
    sums[1] += (r[0] * r[0] + r[1] * r[1] + r[2] * r[2]) / m
    sums[2] += (a[0] * a[0] + a[1] * a[1] + a[2] * a[2]) * m


cdef int _residual(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """r = b - S a, and the first direction: p = z."""
    cdef Descent* t = <Descent*> task
    cdef double* sums = t.partial + 3 * (first // ROWS)
    cdef double s[3]
    cdef Py_ssize_t p
    cdef int c
    sums[0] = sums[1] = sums[2] = 0.0
    for p in range(t.first + first, t.first + last):
        _row_times(t.rows, p, t.a, s)
        for c in range(3):
            t.rows.r[3 * p + c] = t.b[3 * p + c] - s[c]
        _row_sums(t, p, sums)
        for c in range(3):
            t.rows.p[3 * p + c] = t.rows.z[3 * p + c]
    return 0


cdef int _times(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """s = S p; p.s"""
    cdef Descent* t = <Descent*> task
    cdef double total = 0.0
    cdef double* s
    cdef const double* d
    cdef Py_ssize_t p
    for p in range(t.first + first, t.first + last):
        s, d = t.rows.s + 3 * p, t.rows.p + 3 * p
        _row_times(t.rows, p, t.rows.p, s)
        total += d[0] * s[0] + d[1] * s[1] + d[2] * s[2]
    t.partial[3 * (first // ROWS)] = total
    return 0


cdef int _descend(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """a and r after a step along p."""
    cdef Descent* t = <Descent*> task
    cdef double* sums = t.partial + 3 * (first // ROWS)
    cdef Py_ssize_t p
    cdef int c
    sums[0] = sums[1] = sums[2] = 0.0
    for p in range(t.first + first, t.first + last):
        for c in range(3 * p, 3 * p + 3):
            t.a[c] += t.alpha * t.rows.p[c]
            t.rows.r[c] -= t.alpha * t.rows.s[c]
        _row_sums(t, p, sums)
    return 0


cdef int _next_direction(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """p = z + beta p"""
    cdef Descent* t = <Descent*> task
    cdef Py_ssize_t k
    for k in range(3 * (t.first + first), 3 * (t.first + last)):
        t.rows.p[k] = t.rows.z[k] + t.beta * t.rows.p[k]
    return 0


cdef int _in_blocks(
    Descent* t, World* world, BlockFunction function, Py_ssize_t n, int terms, double* total,
) noexcept nogil:
    """One pass over the rows of a molecule; total (terms,) are the sums of what its blocks have left."""
    cdef Py_ssize_t block
    cdef int c, fault = over_blocks(function, t, world, n, ROWS)
    for c in range(terms):
        total[c] = 0.0
        for block in range(n_blocks(n, ROWS)):
            total[c] += t.partial[3 * block + c]
    return fault


cdef int _not_solved(
    const Descent* t, World* world, double sign, const double* u, const double* v, Py_ssize_t n,
) noexcept nogil:
    """The fault, of the row where sign u.v is least, or where it is no number."""
    cdef Py_ssize_t p, worst = t.first
    cdef double product, least = 0.0
    for p in range(t.first, t.first + n):
        product = sign * (u[3 * p] * v[3 * p] + u[3 * p + 1] * v[3 * p + 1] + u[3 * p + 2] * v[3 * p + 2])
        if not product >= least:
            least = product
            worst = p
    return record_fault(world, NOT_SOLVED, t.rows.place[worst], -1)


cdef int _go_down(
    BlockRows* t, World* world, Py_ssize_t first, Py_ssize_t n, double* b, double* a,
) noexcept nogil:
    """b <- S^-1 b of n rows from `first` on, which no other is coupled to; a is work space. All are (t.n, 3)."""
    cdef Descent s
    cdef double sums[3]
    cdef double rz, curvature, tolerance, largest = 0.0
    cdef Py_ssize_t block
    cdef int products = 0, start, fault
    s.rows, s.first, s.b, s.a, s.partial = t, first, b, a, t.partial + 3 * first
    fault = over_blocks(_invert_diagonal, &s, world, n, ROWS)
    if fault != 0:
        return fault
    for block in range(n_blocks(n, ROWS)):
        largest = max(largest, s.partial[3 * block])
    tolerance = max(t.tolerance, ROUNDING * largest)
    memset(a + 3 * first, 0, 3 * n * sizeof(double))
    for start in range(MOST_STARTS + 1):
        _take_shares(t, a)
        _in_blocks(&s, world, _residual, n, 3, sums)
        if sums[1] <= 4.0 * tolerance * tolerance * sums[2]:
            t.products[first] = products
            memcpy(b + 3 * first, a + 3 * first, 3 * n * sizeof(double))
            return 0
        if start == MOST_STARTS:
            break
        while products < MOST_PRODUCTS:
            products += 1
            _take_shares(t, t.p)
            _in_blocks(&s, world, _times, n, 1, &curvature)
            # Of a number that is none, too.
            if not curvature > 0.0:
                return _not_solved(&s, world, 1.0, t.p, t.s, n)
            rz = sums[0]
            s.alpha = rz / curvature
            _in_blocks(&s, world, _descend, n, 3, sums)
            if sums[1] <= tolerance * tolerance * sums[2]:
                break
            s.beta = sums[0] / rz
            _in_blocks(&s, world, _next_direction, n, 0, NULL)
    return _not_solved(&s, world, -1.0, t.r, t.z, n)
