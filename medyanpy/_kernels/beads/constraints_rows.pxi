# Rows of the equations of filaments, and how ends of lanes are joined: what Newton's method in constraints.pxi, which
# includes this and tells the notation, goes through forwards and backwards.


cdef inline Py_ssize_t _entries_of(Py_ssize_t step, Py_ssize_t links) noexcept nogil:
    return (step * (links + 1) + LANES - 1) // LANES * LANES


cdef inline Py_ssize_t _room_of(Py_ssize_t step, Py_ssize_t links) noexcept nogil:
    # A row before the first, and one after the last node.
    return NUMBERS * (PLANE_ALONE if step == 1 else LANES * (links + 3))


# What these are of `alone`, the compiler knows wherever they are used.
cdef inline Py_ssize_t _step(bint alone) noexcept nogil:
    return 1 if alone else LANES * NUMBERS


cdef inline Py_ssize_t _hop(bint alone) noexcept nogil:
    return LANES if alone else LANES * NUMBERS


cdef inline Py_ssize_t _plane(bint alone) noexcept nogil:
    return PLANE_ALONE if alone else LANES


cdef inline double* _last(const Part* b, double* numbers, int lane) noexcept nogil:
    """Of a lane, the number of its last link."""
    return numbers + _step(False) * max(b.count[lane] - 1, 0) + lane


cdef void _join(Batch* b) noexcept nogil:
    """t and u of all lanes: what is at their ends solves 2 WAYS equations for each of them."""
    cdef double a[2 * WAYS * SEGMENTS][2 * WAYS * SEGMENTS + 1]
    cdef double factor
    cdef Part* p
    cdef int lanes = b.lanes, ends = 2 * WAYS * b.lanes
    cdef int k, j, i, q, row, lane
    # Unknowns: the first links of all lanes, then the last ones.
    memset(a, 0, ends * sizeof(a[0]))
    for k in range(lanes):
        j = b.next[k]
        p = &b.part[k // LANES]
        lane = k % LANES
        for i in range(WAYS):
            row = WAYS * k + i
            a[row][row] += 1.0
            a[row][ends] = each_of(p.first + i)[lane]
            a[WAYS * lanes + row][WAYS * lanes + row] += 1.0
            a[WAYS * lanes + row][ends] = _last(p, p.delta + i * LANES, lane)[0]
            for q in range(WAYS if j >= 0 else 0):
                a[row][WAYS * j + q] += each_of(p.first_right + WAYS * i + q)[lane]
                a[WAYS * lanes + row][WAYS * j + q] += _last(p, p.upper + (WAYS * i + q) * LANES, lane)[0]
        if j >= 0:
            # Of the lane after, in terms of this one.
            p = &b.part[j // LANES]
            lane = j % LANES
            for i in range(WAYS):
                row = WAYS * j + i
                for q in range(WAYS):
                    a[row][WAYS * (lanes + k) + q] += each_of(p.first_left + WAYS * i + q)[lane]
                    a[WAYS * lanes + row][WAYS * (lanes + k) + q] += _last(
                        p, p.left + (WAYS * i + q) * LANES, lane)[0]
    for j in range(ends):
        for i in range(ends):
            if i != j and a[i][j] != 0.0:
                factor = a[i][j] / a[j][j]
                for k in range(j, ends + 1):
                    a[i][k] -= factor * a[j][k]
    for i in range(WAYS):
        for k in range(lanes):
            j = b.next[k]
            if j >= 0:
                row = WAYS * j + i
                each_of(&b.part[k // LANES].u[i])[k % LANES] = a[row][ends] / a[row][row]
                row = WAYS * (lanes + k) + i
                each_of(&b.part[j // LANES].t[i])[j % LANES] = a[row][ends] / a[row][row]


cdef inline void _share_ends(Batch* b, bint alone) noexcept nogil:
    """Put the directions at the ends of neighbouring lanes beside the first and last of each."""
    cdef Part* p
    cdef Part* after
    cdef double* last
    cdef Py_ssize_t plane = _plane(alone), hop = _hop(alone)
    cdef int i, k, c, lane
    for i in range(b.parts):
        p = &b.part[i]
        for c in range(3 * WAYS):
            lanes_at(p.d + c * plane - hop)[0] = lanes_of(0.0)
            lanes_at(p.d + c * plane + p.end)[0] = lanes_of(0.0)
    if b.coupled:
        for k in range(b.lanes):
            if b.next[k] >= 0:
                p = &b.part[k // LANES]
                after = &b.part[b.next[k] // LANES]
                lane = b.next[k] % LANES
                for c in range(3 * WAYS):
                    last = _last(p, p.d + c * plane, k % LANES)
                    (last + hop)[0] = (after.d + c * plane)[lane]
                    (after.d + c * plane - hop)[lane] = last[0]


cdef inline void _follow_first(
    Part* b, Py_ssize_t at, const Lanes* delta, const Lanes* upper, const Lanes* left,
) noexcept nogil:
    """The first links in terms of the link after `at`, of which the rest is given, instead of it."""
    cdef Lanes right[WAYS]
    cdef Lanes value, real
    cdef int i, j, q
    for i in range(WAYS):
        if at == 0:
            b.first[i] = delta[i]
            for j in range(WAYS):
                b.first_left[WAYS * i + j] = left[WAYS * i + j]
                b.first_right[WAYS * i + j] = upper[WAYS * i + j]
        else:
            real = lanes_at(b.real + at)[0]
            for q in range(WAYS):
                right[q] = b.first_right[WAYS * i + q]
                b.first[i] = b.first[i] - right[q] * delta[q]
            for j in range(WAYS):
                value = lanes_of(0.0)
                for q in range(WAYS):
                    b.first_left[WAYS * i + j] = b.first_left[WAYS * i + j] - right[q] * left[WAYS * q + j]
                    value = value - right[q] * upper[WAYS * q + j]
                # Padding is the first link of the lane after.
                b.first_right[WAYS * i + j] = real * value + (1.0 - real) * right[j]


# Rows of the matrix before elimination, and their right-hand side.
cdef struct Rows:
    Lanes lower[WAYS * WAYS]
    Lanes middle[WAYS * WAYS]
    Lanes upper[WAYS * WAYS]
    Lanes rest[WAYS]


cdef inline void _set_up(const Part* b, bint alone, Py_ssize_t at, Rows* out) noexcept nogil:
    """The rows of a vector of links, with the right-hand side r."""
    cdef const double* D = b.D + at
    cdef const double* d = b.d + at
    cdef Py_ssize_t plane = _plane(alone), step = _step(alone)
    cdef Lanes w = lanes_at(b.w + at)[0]
    cdef Lanes w_after = lanes_at(b.w + at + step)[0]
    cdef Lanes none = 1.0 - lanes_at(b.real + at)[0]
    cdef Lanes ratio
    cdef int i, j
    for i in range(WAYS):
        out.rest[i] = lanes_at(b.r + i * plane + at)[0]
        for j in range(WAYS):
            out.lower[WAYS * i + j] = -w * dot(D + 3 * i * plane, d + 3 * j * plane - step, plane)
            out.upper[WAYS * i + j] = -w_after * dot(D + 3 * i * plane, d + 3 * j * plane + step, plane)
            out.middle[WAYS * i + j] = (w + w_after) * dot(D + 3 * i * plane, d + 3 * j * plane, plane)
            if i == j:
                # Of padding, where all else is zero, the middle is 1.
                out.middle[WAYS * i + j] = out.middle[WAYS * i + j] + none
    if WAYS == 2:
        ratio = dot(D, d + 3 * plane, plane) * inverse_of(dot(D + 3 * plane, d + 3 * plane, plane) + none)
        out.rest[WAYS - 1] = out.rest[WAYS - 1] - ratio * lanes_at(b.excess + at)[0]
        out.middle[WAYS * WAYS - 1] = out.middle[WAYS * WAYS - 1] + lanes_at(b.a + at)[0] * (
            dot(D, d, plane) - ratio * dot(D + 3 * plane, d, plane))


cdef inline void _eliminate(
    Part* b, Py_ssize_t at, const Rows* rows, int lane, bint coupled, Number* delta, Number* upper, Number* left,
) noexcept nogil:
    """What is left of a row when those before are done with; of the last of them delta, upper and left, then of it."""
    cdef Py_ssize_t plane = _plane(Number is double)
    cdef Number lower[WAYS * WAYS]
    cdef Number middle[WAYS * WAYS]
    cdef Number after[WAYS * WAYS]
    cdef Number inverse[WAYS * WAYS]
    cdef Number rest[WAYS]
    cdef Number value
    cdef int i, j, q
    for i in range(WAYS):
        rest[i] = (<const Number*> (each_of(rows.rest + i) + lane))[0]
        for j in range(WAYS):
            q = WAYS * i + j
            lower[q] = (<const Number*> (each_of(rows.lower + q) + lane))[0]
            middle[q] = (<const Number*> (each_of(rows.middle + q) + lane))[0]
            after[q] = (<const Number*> (each_of(rows.upper + q) + lane))[0]
    if at > 0:
        for i in range(WAYS):
            for q in range(WAYS):
                rest[i] = rest[i] - lower[WAYS * i + q] * delta[q]
                for j in range(WAYS):
                    middle[WAYS * i + j] = middle[WAYS * i + j] - lower[WAYS * i + q] * upper[WAYS * q + j]
    if WAYS == 1:
        inverse[0] = inverse_of(middle[0])
    else:
        value = inverse_of(middle[0] * middle[3] - middle[1] * middle[2])
        inverse[0] = middle[3] * value
        inverse[1] = -middle[1] * value
        inverse[2] = -middle[2] * value
        inverse[3] = middle[0] * value
    if coupled and at > 0:
        # What leads out of the lane, handed on from row to row.
        for i in range(WAYS):
            for j in range(WAYS):
                middle[WAYS * i + j] = -lower[WAYS * i] * left[j]
                for q in range(1, WAYS):
                    middle[WAYS * i + j] = middle[WAYS * i + j] - lower[WAYS * i + q] * left[WAYS * q + j]
        for q in range(WAYS * WAYS):
            lower[q] = middle[q]
    for i in range(WAYS):
        value = inverse[WAYS * i] * rest[0]
        for q in range(1, WAYS):
            value = value + inverse[WAYS * i + q] * rest[q]
        delta[i] = value
        (<Number*> (b.delta + i * plane + at))[0] = value
        for j in range(WAYS):
            value = inverse[WAYS * i] * after[j]
            for q in range(1, WAYS):
                value = value + inverse[WAYS * i + q] * after[WAYS * q + j]
            upper[WAYS * i + j] = value
            (<Number*> (b.upper + (WAYS * i + j) * plane + at))[0] = value
            if coupled:
                value = inverse[WAYS * i] * lower[j]
                for q in range(1, WAYS):
                    value = value + inverse[WAYS * i + q] * lower[WAYS * q + j]
                left[WAYS * i + j] = value
                (<Number*> (b.left + (WAYS * i + j) * plane + at))[0] = value
    if Number is Lanes:
        if coupled:
            _follow_first(b, at, delta, upper, left)


cdef inline void _pull(const Part* b, bint alone, const double* multiplier, Py_ssize_t at, Lanes* out) noexcept nogil:
    """The impulse of a link on its nodes."""
    cdef Py_ssize_t plane = _plane(alone)
    cdef int c, j
    for c in range(3):
        out[c] = lanes_at(multiplier + at)[0] * lanes_at(b.d + c * plane + at)[0]
        for j in range(1, WAYS):
            out[c] = out[c] + lanes_at(multiplier + j * plane + at)[0] * lanes_at(
                b.d + (3 * j + c) * plane + at)[0]


cdef inline void _impulse(
    const Part* b, bint alone, Py_ssize_t at, const Lanes* before, const Lanes* after, Lanes* out,
) noexcept nogil:
    """w J^T multiplier at a node, from what the links before and after it pull."""
    cdef int c
    for c in range(3):
        out[c] = lanes_at(b.w + at)[0] * (before[c] - after[c])


cdef inline void _shrink(
    const Part* b, bint alone, const double* multiplier, Py_ssize_t at, Lanes* out,
) noexcept nogil:
    """a nu of a director, which its own constraint then leaves no other value."""
    cdef Py_ssize_t plane = _plane(alone)
    cdef const double* p = b.D + 3 * plane + at
    cdef const double* d = b.d + at
    out[0] = (lanes_at(b.excess + at)[0] - lanes_at(b.a + at)[0] * lanes_at(multiplier + plane + at)[0] * dot(
        p, d, plane)) * inverse_of(dot(p, d + 3 * plane, plane) + (1.0 - lanes_at(b.real + at)[0]))


cdef inline void _turn(
    const Part* b, bint alone, const double* multiplier, Py_ssize_t at, int c, const Lanes* shrink, Lanes* out,
) noexcept nogil:
    """Component c of a J^T multiplier at a director."""
    cdef Py_ssize_t plane = _plane(alone)
    out[0] = shrink[0] * lanes_at(b.d + (3 + c) * plane + at)[0] + lanes_at(b.a + at)[0] * lanes_at(
        multiplier + plane + at)[0] * lanes_at(b.d + c * plane + at)[0]


cdef inline void _left_over(Part* b, bint alone, Py_ssize_t at, Lanes* terms) noexcept nogil:
    """What is left of the constraints of a link, and the squares of it relative to what they shall be."""
    cdef const double* D = b.D + at
    cdef Py_ssize_t plane = _plane(alone)
    cdef Lanes scale = lanes_at(b.scale + at)[0]
    cdef Lanes value = 0.5 * (dot(D, D, plane) - lanes_at(b.square + at)[0])
    lanes_at(b.r + at)[0] = value
    value = value * scale
    terms[0] = value * value
    if WAYS == 2:
        value = dot(D, D + 3 * plane, plane)
        lanes_at(b.r + plane + at)[0] = value
        terms[TERMS - 2] = (value * value) * scale
        value = 0.5 * (dot(D + 3 * plane, D + 3 * plane, plane) - lanes_at(b.real + at)[0])
        lanes_at(b.excess + at)[0] = value
        terms[TERMS - 1] = value * value


cdef inline void _add_up(Part* b, const Lanes* terms, bint alone, bint upwards) noexcept nogil:
    """Add the squares to those of the rows before."""
    cdef int i, k
    if alone:
        for k in range(LANES):
            for i in range(TERMS):
                each_of(&b.sum)[0] += each_of(terms + i)[LANES - 1 - k if upwards else k]
    else:
        for i in range(TERMS):
            b.sum = b.sum + terms[i]


cdef inline void _move(Part* b, bint alone, Py_ssize_t at, const Lanes* before, const Lanes* after) noexcept nogil:
    """Let the impulses change a link, by those at its nodes, and its director."""
    cdef Py_ssize_t plane = _plane(alone)
    cdef Lanes change, shrink
    cdef double* D = b.D + at
    cdef int c
    if WAYS == 2:
        _shrink(b, alone, b.delta, at, &shrink)
        shrink = b.active * shrink
        lanes_at(b.shrink + at)[0] = lanes_at(b.shrink + at)[0] + shrink
        for c in range(3):
            _turn(b, alone, b.delta, at, c, &shrink, &change)
            lanes_at(D + (3 + c) * plane)[0] = lanes_at(D + (3 + c) * plane)[0] - change
    for c in range(3):
        lanes_at(D + c * plane)[0] = lanes_at(D + c * plane)[0] - lanes_at(b.real + at)[0] * (after[c] - before[c])


cdef inline void _substitute(
    Part* b, Py_ssize_t at, bint coupled, bint moves, Number* after, Number* sum,
) noexcept nogil:
    """The solution of a row in delta, from that of the row after, and then it; the sum is 0 where all are finite."""
    cdef Py_ssize_t plane = _plane(Number is double)
    cdef Number now[WAYS]
    cdef int i, q
    for i in range(WAYS):
        now[i] = (<const Number*> (b.delta + i * plane + at))[0]
        for q in range(WAYS):
            now[i] = now[i] - (<const Number*> (b.upper + (WAYS * i + q) * plane + at))[0] * after[q]
        if Number is Lanes:
            if coupled:
                for q in range(WAYS):
                    now[i] = now[i] - lanes_at(b.left + (WAYS * i + q) * plane + at)[0] * b.t[q]
                # Padding is the first link of the lane after.
                now[i] = now[i] + (1.0 - lanes_at(b.real + at)[0]) * b.u[i]
    for i in range(WAYS):
        after[i] = now[i]
        if Number is Lanes:
            if moves:
                now[i] = b.active * now[i]
        (<Number*> (b.delta + i * plane + at))[0] = now[i]
        if not moves:
            # Of a number that is not finite, even 0 times it is not 0.
            sum[0] = sum[0] + 0.0 * now[i]
