"""Neighbour search: a cell list that makes Verlet lists.

The members (all sites of two groups A and B) are sorted by the cell they are in, and only occupied cells
exist: time and memory are linear in the number of beads however sparse, clustered or far away they are. Each
member has a row with every partner closer than the range of the pair plus a skin. A row stays complete until
some member has moved by half the skin, and only then is the list built again. Members that come, go, or
become others have their rows written and erased one by one, as long as they are few.

Bits: a row is sorted by the number of the site (of a bead, its permanent one). Whoever adds up the pairs in
range, in the order of the row, gets one and the same sum from every list that is complete, whatever its age;
pairs beyond the range are skipped.

Every pair is in the rows of both its ends, so that a thread writes to the sites it owns and to no other.

The caller has gathered the sites, and checked numbers, radii > 0 and skin >= 0.
"""
import numpy as np

from libc.math cimport NAN, fabs, floor, fmax, fmin
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memmove, memset
from libc.stdint cimport int64_t, uintptr_t

from medyanpy._kernels.core.box cimport Box, displacement, nearest_image, set_lengths
from medyanpy._kernels.core.parallel cimport n_blocks, over_blocks, record_fault
from medyanpy._kernels.core.program cimport NOT_FINITE, OUT_OF_MEMORY, ROW_CHANGES, World, changes_since
from medyanpy._kernels.core.sites cimport SiteArrays, is_asleep
from medyanpy._kernels.core.simd_gather cimport TOGETHER
from medyanpy._kernels.core.vec3 cimport dot

# Seen from the corner of the bounding box, places are rounded to a few 2^-53 of its extent: cells are wider by more
# than that, so that rounding carries nobody past a cell.
cdef double EXTENT_MARGIN = 7.105427357601002e-15   # 2^-47
# Cells per axis that a key has room for. Beyond, cells repeat periodically: beads far apart may then share
# one, which costs a few useless distances and nothing else.
cdef uint64_t LARGEST_GRID = 1 << 20
# Rows are mended while no more than one member in so many is a stray.
cdef Py_ssize_t MOST_STRAYS = 8
# Changes of single beads that are looked up apart before rows are written for them: what a jump only tries comes and
# goes without a row.
cdef long long MOST_LOOKED_UP = 8
# Columns of cells are found by an index where there are no more of them than so many.
cdef Py_ssize_t COLUMNS_PER_MEMBER = 4
# Bits per pass of the sort by key.
cdef enum:
    DIGIT = 11
    DIGITS = 2048


cdef inline Py_ssize_t _bead(const Neighbors* near, Py_ssize_t row) noexcept nogil:
    """The bead to name in a report on a site; -1 of anchors."""
    return row if near.sites.bead == NULL else near.sites.bead[row]


cdef inline Py_ssize_t _member(const Neighbors* near, Py_ssize_t k) noexcept nogil:
    """The k-th member that is there."""
    return k if near.all_there else near.there[k]


cdef void _find_species(Neighbors* near, World* world) noexcept nogil:
    """In which groups members are as the species that they are now. Sites are beads here."""
    cdef Py_ssize_t m
    cdef int32_t group
    near.present[0] = near.present[1] = near.present[2] = 0
    for m in range(near.n_members):
        group = group_now(near, world, m)
        near.groups[m] = group
        if group > 0:
            near.present[group - 1] = 1


cdef void _find_living(Neighbors* near, World* world) noexcept nogil:
    """Of members whose beads may be asleep, those that are there."""
    cdef Py_ssize_t m
    near.n = near.n_members
    near.all_there = world.alive == NULL and near.sites.there == NULL
    if near.all_there:
        return
    near.n = 0
    if near.wanted != NULL:
        _find_species(near, world)
    for m in range(near.n_members):
        if near.groups[m] > 0 and not is_asleep(world, &near.sites, near.site[m]):
            near.there[near.n] = <int32_t> m
            near.n += 1


cdef int _bounds(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Box around the members of a block."""
    cdef Neighbors* near = <Neighbors*> task
    cdef const double* x
    cdef double* low = near.box + 6 * (first // ROWS_PER_BLOCK)
    cdef double* high = low + 3
    cdef Py_ssize_t k, m
    cdef int c, fault = 0
    x = near.sites.x + 3 * <Py_ssize_t> near.site[_member(near, first)]
    for c in range(3):
        low[c] = high[c] = x[c]
    for k in range(first, last):
        m = _member(near, k)
        x = near.sites.x + 3 * <Py_ssize_t> near.site[m]
        if not (0.0 * (x[0] + x[1] + x[2]) == 0.0):
            # A sum may overflow though its terms are finite; such beads have a place.
            for c in range(3):
                if not (0.0 * x[c] == 0.0):
                    fault = record_fault(world, NOT_FINITE, _bead(near, near.site[m]), -1)
        for c in range(3):
            low[c] = min(low[c], x[c])
            high[c] = max(high[c], x[c])
    return fault


cdef inline uint64_t _periodic_cell(const Neighbors* near, int c, double x) noexcept nogil:
    """Cells that go round the box, none of them empty on purpose, of the image x next to the origin: whoever is in
    cells next to each other is near that image alone which the cells tell."""
    cdef double cells = <double> near.around[c]
    if near.around[c] == 0:
        return 1
    # Rounding may leave x a little outside the box.
    return <uint64_t> fmin(fmax((x * near.frame.inverse[c] + 0.5) * cells, 0.0), cells - 1.0)


cdef inline void _frame(const Neighbors* near, const double* x, double* out) noexcept nogil:
    """A place, or what leads from one to another, in the box of the time when the list was built: of its images the
    one next to the origin."""
    cdef int c
    for c in range(3):
        out[c] = x[c] * near.to_frame[c]
    nearest_image(&near.frame, out)


cdef inline double _cell_number(const Neighbors* near, int c, double x) noexcept nogil:
    """Where a place in the frame is along c, in cells from the first one on, of which it may be outside; periodic
    directions have some cells."""
    if near.frame.length[c] > 0.0:
        return (x / near.frame.length[c] + 0.5) * <double> near.around[c]
    return (x - near.origin[c]) * near.per_cell + 1.0


cdef inline int64_t _whole(double number) noexcept nogil:
    """Of the number of a cell. Beyond 2^50 only where extents overflow; nothing there is near anything."""
    # This way round, so that what is not a number is as far as it gets.
    number = number if number > -1e15 else -1e15
    number = number if number < 1e15 else 1e15
    return <int64_t> floor(number)


cdef inline uint64_t _around_grid(int64_t cell, uint64_t cells) noexcept nogil:
    cdef int64_t n = <int64_t> cells
    # Divisions would take longer than all else that is done for a cell.
    return <uint64_t> (cell if 0 <= cell < n else ((cell % n) + n) % n)


cdef int _keys(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """The cell of every member."""
    cdef Neighbors* near = <Neighbors*> task
    cdef double x[3]
    cdef double f
    cdef uint64_t cell[3]
    cdef Py_ssize_t k, m
    cdef int c
    for k in range(first, last):
        m = _member(near, k)
        for c in range(3):
            x[c] = near.sites.x[3 * <Py_ssize_t> near.site[m] + c]
        nearest_image(&world.box, x)
        for c in range(3):
            if world.box.length[c] > 0.0:
                cell[c] = _periodic_cell(near, c, x[c])
                continue
            f = (x[c] - near.origin[c]) * near.per_cell
            # Beyond 2^50 only where extents overflow; nothing there is near anything.
            cell[c] = (<uint64_t> f) + 1 if f >= 0.0 and f < 1125899906842624.0 else 1
            if cell[c] >= near.grid[c]:
                cell[c] %= near.grid[c]
        near.key[k] = (cell[2] * near.grid[1] + cell[1]) * near.grid[0] + cell[0]
        near.key[k] += (near.groups[m] - 1) * near.cells_per_group
        near.member[k] = <int32_t> m
    return 0


cdef void _sort(Neighbors* near, uint64_t largest) noexcept nogil:
    """Sort members by key: stable counting sorts by digits, the least significant first."""
    cdef Py_ssize_t start[DIGITS]
    cdef Py_ssize_t m, at, sum, count
    cdef int shift = 0, d
    while shift == 0 or (shift < 64 and largest >> shift > 0):
        memset(start, 0, sizeof(start))
        for m in range(near.n):
            start[(near.key[m] >> shift) & (DIGITS - 1)] += 1
        sum = 0
        for d in range(DIGITS):
            count = start[d]
            start[d] = sum
            sum += count
        for m in range(near.n):
            d = (near.key[m] >> shift) & (DIGITS - 1)
            at = start[d]
            start[d] = at + 1
            near.other_key[at] = near.key[m]
            near.other_member[at] = near.member[m]
        near.key, near.other_key = near.other_key, near.key
        near.member, near.other_member = near.other_member, near.member
        shift += DIGIT


cdef inline bint _stays(const Neighbors* near, Py_ssize_t s) noexcept nogil:
    """Whether the place of now of a slot is as near to that of the list as its row allows."""
    cdef const double* now = near.now + 4 * s
    cdef double d[3]
    cdef int c
    for c in range(3):
        d[c] = now[c] * near.to_frame[c] - near.built[near.apart * c + s]
    # This way round, so that a position that is not a number counts as far. Few have gone through a side.
    if dot(d, d) <= near.allowed:
        return True
    nearest_image(&near.frame, d)
    return dot(d, d) <= near.allowed


cdef bint _fit(Neighbors* near, const Box* box) noexcept nogil:
    """Take what leads to the frame from a box of now; whether rows may still be complete in it.

    Places x of now are S y, with y in the frame and S the lengths of now over those of then. A pair within its range r
    is at most r / s apart in the frame, with s the least of S, and in the row if both places have gone there by at most
    half of r + skin - r / s. Where S stretches, that is more than half the skin; it is not used.
    """
    cdef double most = 1.0, skin
    cdef int c
    for c in range(3):
        near.to_frame[c] = 1.0
        if box.length[c] != near.frame.length[c]:
            if not (box.length[c] > 0.0 and near.frame.length[c] > 0.0):
                return False
            near.to_frame[c] = near.frame.length[c] / box.length[c]
            most = fmax(most, near.to_frame[c])
    skin = near.skin - (near.reach - near.skin) * (most - 1.0)
    near.allowed = 0.25 * skin * skin
    return skin >= 0.0


cdef inline signed char _sides(const Neighbors* near, const double* image) noexcept nogil:
    """`across` of a member that is here in the frame: what is in its row is within reach, and goes no further than half
    the skin."""
    cdef double edge
    cdef signed char across = 0
    cdef int c
    for c in range(3):
        edge = 0.5 * near.frame.length[c]
        if edge > 0.0 and (not near.images or fabs(image[c]) > edge - near.reach - 0.5 * near.skin):
            across |= 1 << c
    return across


cdef inline void _know(Neighbors* near, const World* world, Py_ssize_t s) noexcept nogil:
    """Copy what is known of the member in a slot."""
    cdef const double* x
    cdef double* now = near.now + 4 * s
    cdef double image[3]
    cdef int c
    near.row[s] = near.site[near.member[s]]
    near.id[s] = near.sites.id[near.row[s]]
    x = near.sites.x + 3 * <Py_ssize_t> near.row[s]
    for c in range(3):
        now[c] = x[c]
    if near.images:
        nearest_image(&world.box, now)
    _frame(near, x, image)
    near.across[s] = _sides(near, image)
    for c in range(3):
        near.built[near.apart * c + s] = image[c]
    near.built[3 * near.apart + s] = now[3] = near.radius[near.member[s]]


cdef int _settle(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef Neighbors* near = <Neighbors*> task
    cdef Py_ssize_t s
    for s in range(first, last):
        prefetch(near.sites.x + 3 * <Py_ssize_t> near.site[near.member[min(s + AHEAD, last - 1)]])
        _know(near, world, s)
        # Of cells there are no more than slots.
        near.of_cell[s] = -1
        near.chain[s] = NOT_STRAY
        near.chain_stale[s] = 0
    return 0


cdef inline Py_ssize_t _seek(
    const uint64_t* keys, Py_ssize_t n, uint64_t key, Py_ssize_t hint,
) noexcept nogil:
    """First index with keys[index] >= key; fast if that is near `hint`."""
    cdef Py_ssize_t low, high, step = 1, middle
    if hint < n and keys[hint] < key:
        low = hint              # keys[low] < key
        high = hint + 1
        while high < n and keys[high] < key:
            low = high
            high += step
            step *= 2
        high = min(high, n)
    else:
        high = hint             # keys[high] >= key, or high == n
        low = hint - 1
        while low >= 0 and keys[low] >= key:
            high = low
            low -= step
            step *= 2
        low = max(low, -1)
    while high - low > 1:
        middle = (low + high) // 2
        if keys[middle] < key:
            low = middle
        else:
            high = middle
    return high


cdef inline double _shift(const Neighbors* near, int c, uint64_t cell, int step) noexcept nogil:
    """What leads from a cell along c to its image before (step 0), between (1), or behind (2) others."""
    if near.around[c] > 0 and step == 0 and cell == 0:
        return near.frame.length[c]
    if near.around[c] > 0 and step == 2 and cell == near.grid[c] - 1:
        return -near.frame.length[c]
    return 0.0


cdef inline void _add_range(
    Neighbors* near, uint64_t low, uint64_t high, double x, double y, double z, Py_ssize_t* cursor, Ranges* out,
) noexcept nogil:
    """Slots in the cells with keys from low to high, and the shift (x, y, z)."""
    cdef Py_ssize_t b = _seek(near.cell_key, near.n_cells, low, cursor[0])
    cdef Py_ssize_t e = b
    cursor[0] = b
    while e < near.n_cells and near.cell_key[e] <= high:
        e += 1
    if e > b:
        out.begin[out.n] = near.cell_start[b]
        out.end[out.n] = near.cell_start[e]
        out.shift[3 * out.n] = x
        out.shift[3 * out.n + 1] = y
        out.shift[3 * out.n + 2] = z
        out.candidates += near.cell_start[e] - near.cell_start[b]
        out.n += 1


cdef void _around(Neighbors* near, uint64_t key, Ranges* out) noexcept nogil:
    """Slots in the cells around the cell `key`, of members that its own members interact with."""
    cdef uint64_t nx = near.grid[0], ny = near.grid[1], nz = near.grid[2]
    cdef uint64_t own = key // near.cells_per_group
    cdef uint64_t cell = key - own * near.cells_per_group
    cdef uint64_t cx = cell % nx
    cdef uint64_t cy = cell // nx % ny
    cdef uint64_t cz = cell // (nx * ny)
    cdef uint64_t base
    cdef double y, z, before = _shift(near, 0, cx, 0), behind = _shift(near, 0, cx, 2)
    cdef int group, dy, dz, column
    out.n = 0
    out.candidates = 0
    for group in range(3):
        # Sets are A only, B only, both; members of A only do not interact with each other, nor those of B
        # only.
        if not near.present[group] or (group == <int> own and group < 2):
            continue
        for dz in range(3):
            z = _shift(near, 2, cz, dz)
            for dy in range(3):
                y = _shift(near, 1, cy, dy)
                base = ((cz + nz - 1 + dz) % nz * ny + (cy + ny - 1 + dy) % ny) * nx
                base += group * near.cells_per_group
                column = 9 * group + 3 * dz + dy
                if 0 < cx < nx - 1:
                    _add_range(near, base + cx - 1, base + cx + 1, 0.0, y, z, &out.cursor[column], out)
                elif cx == 0:
                    _add_range(near, base, base + 1, 0.0, y, z, &out.cursor[column], out)
                    _add_range(near, base + nx - 1, base + nx - 1, before, y, z, &out.cursor[column], out)
                else:
                    _add_range(near, base, base, behind, y, z, &out.cursor[column], out)
                    _add_range(near, base + nx - 2, base + nx - 1, 0.0, y, z, &out.cursor[column], out)


cdef inline int _without_excluded(Neighbors* near, Py_ssize_t own, int32_t* row, int n) noexcept nogil:
    """Take excluded beads from a sorted row: both lists are walked once."""
    cdef const int32_t* excluded = near.excluded + near.excluded_from[near.member[own]]
    cdef int left = near.excluded_from[near.member[own] + 1] - near.excluded_from[near.member[own]]
    cdef int i, kept = 0, e = 0
    if left == 0:
        return n
    for i in range(n):
        while e < left and excluded[e] < near.id[row[i]]:
            e += 1
        if e == left or excluded[e] != near.id[row[i]]:
            row[kept] = row[i]
            kept += 1
    return kept


cdef int _rows(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """The rows of one block of slots."""
    cdef Neighbors* near = <Neighbors*> task
    cdef Py_ssize_t block = first // ROWS_PER_BLOCK
    cdef Py_ssize_t cell, low, high, s, wanted, used = 0
    cdef long long examined = 0
    cdef int32_t* row
    cdef int n, k
    cdef double few[3]
    cdef Box box
    cdef Ranges ranges
    for k in range(3):
        few[k] = near.frame.length[k] if near.around[k] == 0 else 0.0
    set_lengths(&box, few)
    # The cell that holds the first slot: the last one that starts at or before it.
    low = 0
    high = near.n_cells
    while high - low > 1:
        cell = (low + high) // 2
        if near.cell_start[cell] <= first:
            low = cell
        else:
            high = cell
    cell = low
    for k in range(27):
        ranges.cursor[k] = cell
    _around(near, near.cell_key[cell], &ranges)
    for s in range(first, last):
        if s == near.cell_start[cell + 1]:
            cell += 1
            _around(near, near.cell_key[cell], &ranges)
        wanted = used + ranges.candidates
        if wanted > near.capacity[block]:
            wanted += wanted // 4
            row = <int32_t*> realloc(near.rows[block], wanted * sizeof(int32_t))
            if row == NULL:
                return record_fault(world, OUT_OF_MEMORY, _bead(near, near.row[s]), -1)
            near.rows[block] = row
            near.capacity[block] = wanted
        row = near.rows[block] + used
        n = near.find(near, &box, s, &ranges, row)
        examined += ranges.candidates
        n = _without_excluded(near, s, row, n)
        near.count[s] = n
        used += n
    near.examined[block] += examined
    return 0


cdef void _index_columns(Neighbors* near) noexcept nogil:
    """Where columns of cells start. Without memory for that they are searched for."""
    cdef uint64_t columns = 3 * near.grid[1] * near.grid[2], column = 0
    cdef int32_t* grown
    cdef Py_ssize_t k
    near.n_columns = 0
    if columns > <uint64_t> (COLUMNS_PER_MEMBER * near.n + DIGITS):
        return
    if near.room_columns <= <Py_ssize_t> columns:
        grown = <int32_t*> realloc(near.column, (columns + 1) * sizeof(int32_t))
        if grown == NULL:
            return
        near.column = grown
        near.room_columns = <Py_ssize_t> columns + 1
    for k in range(near.n_cells + 1):
        while column <= columns and (k == near.n_cells or near.cell_key[k] >= column * near.grid[0]):
            near.column[column] = <int32_t> k
            column += 1
    near.n_columns = <Py_ssize_t> columns


cdef inline Py_ssize_t _seek_cell(
    const Neighbors* near, uint64_t column, uint64_t key, Py_ssize_t hint,
) noexcept nogil:
    """First cell with this key or a higher one, of a column; fast if that is near `hint`, or there is an index."""
    cdef Py_ssize_t k
    if near.n_columns == 0:
        return _seek(near.cell_key, near.n_cells, key, min(hint, near.n_cells - 1))
    k = near.column[column]
    if k == near.column[column + 1] or near.cell_key[k] >= key:
        return k
    return _seek(near.cell_key, near.column[column + 1], key, k)


cdef int _build(Neighbors* near, World* world) noexcept nogil:
    cdef Py_ssize_t blocks
    cdef double low[3]
    cdef double high[3]
    cdef double edge, cells, extent = 0.0
    cdef Py_ssize_t b, s
    cdef int c, fault
    near.valid = 0
    near.indexed = -1
    _find_living(near, world)
    fault = over_blocks(_bounds, near, world, near.n, ROWS_PER_BLOCK)
    if fault != 0:
        return fault
    near.living = 0 if world.living == NULL else world.living[0]
    near.frame = world.box
    _fit(near, &world.box)
    if near.n == 0:
        near.valid = 1
        return 0
    blocks = n_blocks(near.n, ROWS_PER_BLOCK)
    for c in range(3):
        low[c] = near.box[c]
        high[c] = near.box[3 + c]
        for b in range(blocks):
            low[c] = min(low[c], near.box[6 * b + c])
            high[c] = max(high[c], near.box[6 * b + 3 + c])
        extent = max(extent, high[c] - low[c])
        if world.box.length[c] > 0.0:
            # Places are seen from zero there.
            extent = max(extent, fmax(fabs(low[c]), fabs(high[c])))
        near.origin[c] = low[c]
    edge = near.reach * (1.0 + MARGIN) + extent * EXTENT_MARGIN
    near.per_cell = 1.0 / edge
    near.cells_per_group = 1
    for c in range(3):
        near.around[c] = 0
        if near.frame.length[c] > 0.0:
            cells = floor(near.frame.length[c] * near.per_cell)
            # Of one or two each would be its own neighbour's neighbour: then all are in one, between two empty ones.
            if cells >= 3.0:
                near.around[c] = <uint64_t> cells if cells < LARGEST_GRID else LARGEST_GRID
            near.grid[c] = near.around[c] if near.around[c] > 0 else 3
        else:
            # One row of cells remains empty on each side, so that no cell is its own neighbour's neighbour.
            cells = floor((high[c] - low[c]) * near.per_cell) + 3.0
            near.grid[c] = <uint64_t> cells if cells < LARGEST_GRID else LARGEST_GRID
        near.cells_per_group *= near.grid[c]
    over_blocks(_keys, near, world, near.n, ROWS_PER_BLOCK)
    _sort(near, 3 * near.cells_per_group - 1)
    near.n_cells = 0
    for s in range(near.n):
        if s == 0 or near.key[s] != near.key[s - 1]:
            near.cell_key[near.n_cells] = near.key[s]
            near.cell_start[near.n_cells] = <int32_t> s
            near.n_cells += 1
    near.cell_start[near.n_cells] = <int32_t> near.n
    _index_columns(near)
    over_blocks(_settle, near, world, near.n, ROWS_PER_BLOCK)
    for c in range(3):
        near.loose[c] = -1
    near.n_strays = 0
    fault = over_blocks(_rows, near, world, near.n, ROWS_PER_BLOCK)
    if fault != 0:
        return fault
    near.valid = 1
    near.builds += 1
    return 0


cdef int _copy(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Positions of now, and whether a member has gone further than its row allows."""
    cdef Neighbors* near = <Neighbors*> task
    cdef const double* x
    cdef double* now
    cdef int stale = 0
    cdef Py_ssize_t s
    for s in range(first, last):
        prefetch(near.sites.x + 3 * <Py_ssize_t> near.row[min(s + AHEAD, last - 1)])
        x = near.sites.x + 3 * <Py_ssize_t> near.row[s]
        now = near.now + 4 * s
        now[0] = x[0]
        now[1] = x[1]
        now[2] = x[2]
        if near.images:
            nearest_image(&world.box, now)
        stale |= not _stays(near, s)
    near.stale[first // ROWS_PER_BLOCK] = stale
    return 0


cdef void sort_by_id(const int32_t* id, int32_t* slots, Py_ssize_t n) noexcept nogil:
    # Shell's sort: those in range are few.
    cdef Py_ssize_t gap, i, j
    cdef int32_t slot
    gap = 1
    while 3 * gap + 1 < n:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            slot = slots[i]
            j = i
            while j >= gap and id[slots[j - gap]] > id[slot]:
                slots[j] = slots[j - gap]
                j -= gap
            slots[j] = slot
        gap //= 3


cdef class NeighborList:
    """Neighbours of the sites of two groups; for other kernels, and for tests.

    Parameters
    ----------
    site : (n,) int32, ascending
        Row of every site that is in a group; where sites are beads, their place.
    groups : (n,) int32
        1: in A only, 2: in B only, 3: in both.
    radius : (n,) float, > 0
        Two sites are within range if closer than the sum of their radii.
    reach : float
        The largest range of a pair, without skin.
    skin : float, >= 0
    excluded_from : (n + 1,) int32
    excluded : (e,) int32
        Numbers of the sites that each member ignores, ascending; both ways round.
    wanted : (n, 2) int64, optional
        Bits of the species that count in A and in B, of beads of handles with species; all where none is given.
    """

    def __cinit__(self, const int32_t[::1] site, const int32_t[::1] groups, const double[::1] radius,
                  double reach, double skin, const int32_t[::1] excluded_from, const int32_t[::1] excluded,
                  const int64_t[:, ::1] wanted=None):
        cdef Neighbors* near = &self.list
        cdef Py_ssize_t n = site.shape[0]
        cdef Py_ssize_t blocks = n_blocks(n, ROWS_PER_BLOCK)
        memset(near, 0, sizeof(Neighbors))
        near.n = near.n_members = n
        near.skin = skin
        near.reach = (reach + skin) * (1.0 + MARGIN)
        member_at = np.full(int(np.max(site, initial=-1)) + 1, -1, np.int32)
        member_at[np.asarray(site)] = np.arange(n, dtype=np.int32)
        self.member_at = member_at
        self.hint = 0
        if n == 0:
            return
        own = [np.empty(n, np.int32) for _ in range(9)]
        near.apart = n + TOGETHER
        positions = [np.empty((n, 4)), np.zeros((4, near.apart))]
        keys = [np.empty(n, np.uint64) for _ in range(3)]
        starts = np.empty(n + 1, np.int32)
        # What belongs to a group follows species.
        own.append(np.array(groups, np.int32))
        self.arrays = (site, groups, radius, excluded_from, excluded, own, positions, keys, starts, wanted)
        # Imported here: what it has, it has of this module.
        from medyanpy._kernels.selected import rows
        near.find = <FindRow> <uintptr_t> rows.find_row()
        near.equal = np.ptp(radius) == 0.0
        for c in range(3):
            near.present[c] = bool((np.asarray(groups) == c + 1).any())
        near.site = &site[0]
        near.groups = _integers(own[9])
        near.given = &groups[0]
        if wanted is not None:
            near.wanted = &wanted[0, 0]
        near.radius = &radius[0]
        near.excluded_from = &excluded_from[0]
        near.excluded = &excluded[0] if excluded.shape[0] else NULL
        near.member = _integers(own[0])
        near.row = _integers(own[1])
        near.id = _integers(own[2])
        near.count = _integers(own[3])
        near.other_member = _integers(own[4])
        near.there = _integers(own[5])
        near.of_cell = _integers(own[6])
        near.next_stray = _integers(own[7])
        near.chain = _integers(own[8])
        near.world = near.indexed = -1
        near.cell_start = _integers(starts)
        near.now = _doubles(positions[0])
        near.built = _doubles(positions[1])
        near.key = _words(keys[0])
        near.other_key = _words(keys[1])
        near.cell_key = _words(keys[2])
        near.rows = <int32_t**> calloc(blocks, sizeof(int32_t*))
        near.capacity = <Py_ssize_t*> calloc(blocks, sizeof(Py_ssize_t))
        near.box = <double*> calloc(6 * blocks, sizeof(double))
        near.stale = <int*> calloc(blocks, sizeof(int))
        near.across = <signed char*> calloc(n, sizeof(signed char))
        near.chain_stale = <signed char*> calloc(n, sizeof(signed char))
        near.examined = <long long*> calloc(blocks, sizeof(long long))
        if near.rows == NULL or near.capacity == NULL or near.box == NULL:
            raise MemoryError
        if near.stale == NULL or near.examined == NULL or near.across == NULL or near.chain_stale == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef Py_ssize_t b
        if self.list.rows != NULL:
            for b in range(n_blocks(self.list.n_members, ROWS_PER_BLOCK)):
                free(self.list.rows[b])
        free(self.list.rows)
        free(self.list.capacity)
        free(self.list.box)
        free(self.list.stale)
        free(self.list.across)
        free(self.list.chain_stale)
        free(self.list.examined)
        free(self.list.slot_of)
        free(self.list.row_of)
        free(self.list.column)
        free(self.found)

    cdef int follow(self, World* world, const SiteArrays* sites) noexcept nogil:
        # Positions are always compared, never the counter of the world: minimisation moves the same beads in
        # a world of its own, with a counter of its own.
        cdef Neighbors* near = &self.list
        cdef Py_ssize_t b
        cdef int stale
        if near.n_members == 0:
            return 0
        near.sites = sites[0]
        near.follows += 1
        stale = not near.valid or not _fit(near, &world.box)
        if not stale and world.living != NULL and world.living[0] != near.living:
            stale = not self.renew(world)
        near.world = world.number
        near.positions = world.positions
        if not stale:
            over_blocks(_copy, near, world, near.n, ROWS_PER_BLOCK)
            for b in range(n_blocks(near.n, ROWS_PER_BLOCK)):
                stale |= near.stale[b]
            if stale and near.n_strays > 0:
                stale = not self.mend(world)
        if stale:
            return _build(near, world)
        return 0

    cdef int32_t member_of(self, int32_t site) noexcept nogil:
        cdef int32_t member = self.member_at[site] if site < self.member_at.shape[0] else -1
        cdef int32_t slot = self.list.slot_of[member] if member >= 0 else -1
        return member if slot >= 0 and self.list.chain[slot] != GONE else -1

    cdef bint is_current(self, World* world) noexcept nogil:
        cdef const Neighbors* near = &self.list
        return near.valid and near.world == world.number and near.positions == world.positions and (
            world.living == NULL or world.living[0] == near.living)

    cdef int locate(self, World* world, const SiteArrays* sites) noexcept nogil:
        cdef int fault = 0
        if not self.is_current(world):
            if self.behind(world) < 0 or not self.catch_up(world):
                fault = self.follow(world, sites)
        return self.index(world) if fault == 0 else fault

    cdef bint make_room(self) noexcept nogil:
        cdef int32_t* grown
        if self.room < self.list.n_members:
            grown = <int32_t*> realloc(self.found, self.list.n_members * sizeof(int32_t))
            if grown == NULL:
                return False
            self.found = grown
            self.room = self.list.n_members
        return True

    cdef Py_ssize_t near_place(self, World* world, Py_ssize_t member, const double* x) noexcept nogil:
        cdef Neighbors* near = &self.list
        cdef double image[3]
        cdef double d[3]
        cdef double reach = near.reach
        cdef Py_ssize_t i, s, n, kept = 0
        cdef int c
        for c in range(3):
            image[c] = x[c]
        nearest_image(&world.box, image)
        n = self.near_box(world, image, image, near.groups[member])
        _frame(near, x, image)
        for i in range(n):
            s = self.found[i]
            if near.equal == 0:
                reach = (near.radius[member] + near.built[3 * near.apart + s] + near.skin) * (1.0 + MARGIN)
            for c in range(3):
                d[c] = near.built[near.apart * c + s] - image[c]
            nearest_image(&near.frame, d)
            # Strays that are not yet in rows again have no place in `built`: they are near in any case.
            if not dot(d, d) > reach * reach and near.member[s] != member and self.interact(member, near.member[s]):
                self.found[kept] = <int32_t> s
                kept += 1
        sort_by_id(near.id, self.found, kept)
        return n if n < 0 else kept

    cdef Py_ssize_t near_box(
        self, World* world, const double* low, const double* high, int32_t groups,
    ) noexcept nogil:
        cdef Neighbors* near = &self.list
        cdef int64_t first[3]
        cdef int64_t last[3]
        cdef int64_t cells, y, z
        cdef uint64_t base, column
        cdef Py_ssize_t n = 0, s
        cdef int c, group
        if near.n == 0:
            return 0
        if not self.make_room():
            return -1
        for c in range(3):
            cells = <int64_t> near.grid[c]
            if near.frame.length[c] > 0.0 and near.around[c] == 0:
                first[c], last[c] = 0, cells - 1
                continue
            first[c] = _whole(_cell_number(near, c, low[c] * near.to_frame[c])) - 1
            last[c] = _whole(_cell_number(near, c, high[c] * near.to_frame[c])) + 1
            if near.frame.length[c] == 0.0 and near.grid[c] < LARGEST_GRID:
                first[c] = max(first[c], <int64_t> 0)
                last[c] = min(last[c], cells - 1)
            elif last[c] - first[c] >= cells - 1:
                first[c], last[c] = 0, cells - 1
        for group in range(3):
            # Members of A only do not interact with each other, nor those of B only.
            if not near.present[group] or (group == groups - 1 and group < 2):
                continue
            for z in range(first[2], last[2] + 1):
                for y in range(first[1], last[1] + 1):
                    column = _around_grid(z, near.grid[2]) * near.grid[1] + _around_grid(y, near.grid[1])
                    column += group * near.grid[1] * near.grid[2]
                    base = column * near.grid[0]
                    cells = <int64_t> near.grid[0]
                    if first[0] >= 0 and last[0] < cells:
                        n = self.collect(column, base + <uint64_t> first[0], base + <uint64_t> last[0], n)
                    elif first[0] < 0 and last[0] >= 0:
                        n = self.collect(column, base, base + <uint64_t> last[0], n)
                        n = self.collect(column, base + <uint64_t> (first[0] + cells), base + <uint64_t> (cells - 1), n)
                    elif first[0] < cells and last[0] >= cells:
                        n = self.collect(column, base + <uint64_t> first[0], base + <uint64_t> (cells - 1), n)
                        n = self.collect(column, base, base + <uint64_t> (last[0] - cells), n)
                    else:
                        n = self.collect(column, base + _around_grid(first[0], near.grid[0]),
                                         base + _around_grid(last[0], near.grid[0]), n)
            s = near.loose[group]
            while s >= 0 and n < near.n:
                self.found[n] = <int32_t> s
                n += 1
                s = near.next_stray[s]
        return n

    cdef Py_ssize_t collect(self, uint64_t column, uint64_t low, uint64_t high, Py_ssize_t n) noexcept nogil:
        """Add what is in cells with keys from low to high to the n that are found; how many there are then."""
        cdef const Neighbors* near = &self.list
        cdef Py_ssize_t cell = _seek_cell(near, column, low, self.hint), s
        self.hint = cell
        while cell < near.n_cells and near.cell_key[cell] <= high:
            for s in range(near.cell_start[cell], near.cell_start[cell + 1]):
                if near.chain[s] == NOT_STRAY:
                    self.found[n] = <int32_t> s
                    n += 1
            s = near.of_cell[cell]
            while s >= 0 and n < near.n:
                self.found[n] = <int32_t> s
                n += 1
                s = near.next_stray[s]
            cell += 1
        return n

    cdef bint interact(self, Py_ssize_t member, Py_ssize_t other) noexcept nogil:
        cdef const Neighbors* near = &self.list
        return do_meet(near.groups[member], near.groups[other]) and (
            not self.ignores(member, near.sites.id[near.site[other]]))

    cdef bint ignores(self, Py_ssize_t member, int32_t id) noexcept nogil:
        """Whether pairs of a member with the site of this number are left out."""
        cdef const Neighbors* near = &self.list
        cdef int32_t e
        for e in range(near.excluded_from[member], near.excluded_from[member + 1]):
            if near.excluded[e] == id:
                return True
        return False

    cdef void put(self, World* world, Py_ssize_t member, const double* x) noexcept nogil:
        cdef Neighbors* near = &self.list
        cdef double image[3]
        cdef Py_ssize_t s
        cdef int c
        if member < 0:
            return
        s = near.slot_of[member]
        for c in range(3):
            image[c] = x[c]
        nearest_image(&world.box, image)
        for c in range(3):
            near.now[4 * s + c] = image[c] if near.images else x[c]
        # `built` is not a number where it has been put elsewhere before.
        if _stays(near, s):
            return
        for c in range(3):
            # Near nothing, until its row is mended or the list built again, before rows are used.
            near.built[near.apart * c + s] = NAN
        self.join(world, s)

    cdef void join(self, World* world, Py_ssize_t slot) noexcept nogil:
        """Let a slot be a stray of the cell that it is in now."""
        cdef Neighbors* near = &self.list
        cdef double image[3]
        cdef uint64_t cell[3]
        cdef uint64_t key, column
        cdef double f
        cdef int32_t* at
        cdef Py_ssize_t k
        cdef bint known = True
        cdef int c, group = near.groups[near.member[slot]] - 1
        self.unchain(slot)
        _frame(near, near.now + 4 * slot, image)
        for c in range(3):
            if near.frame.length[c] > 0.0:
                cell[c] = _periodic_cell(near, c, image[c])
                continue
            f = _cell_number(near, c, image[c])
            known &= 0.0 <= f < <double> near.grid[c]
            cell[c] = <uint64_t> f if known else 0
        near.chain[slot] = LOOSE
        if known:
            column = (group * near.grid[2] + cell[2]) * near.grid[1] + cell[1]
            key = column * near.grid[0] + cell[0]
            k = _seek_cell(near, column, key, near.n_cells // 2)
            if k < near.n_cells and near.cell_key[k] == key:
                near.chain[slot] = <int32_t> k
        at = &near.loose[group] if near.chain[slot] == LOOSE else near.of_cell + near.chain[slot]
        near.next_stray[slot] = at[0]
        at[0] = <int32_t> slot

    cdef void unchain(self, Py_ssize_t slot) noexcept nogil:
        """Take a slot from the chain that it is in, if any; from now on it counts as a stray."""
        cdef Neighbors* near = &self.list
        cdef int32_t* at
        if near.chain[slot] == NOT_STRAY:
            near.n_strays += 1
        elif near.chain[slot] != GONE:
            at = near.of_cell + near.chain[slot]
            if near.chain[slot] == LOOSE:
                at = &near.loose[near.groups[near.member[slot]] - 1]
            while at[0] != slot:
                at = near.next_stray + at[0]
            at[0] = near.next_stray[slot]

    cdef void loosen(self, Py_ssize_t member) noexcept nogil:
        cdef Neighbors* near = &self.list
        cdef int32_t s = near.slot_of[member]
        # It is the first of its chain.
        if near.chain[s] >= 0:
            near.of_cell[near.chain[s]] = near.next_stray[s]
            near.next_stray[s] = near.loose[near.groups[member] - 1]
            near.chain[s] = LOOSE
            near.loose[near.groups[member] - 1] = s

    # Rows of a few members that a change has put elsewhere, or that come and go: a row is complete again, and its
    # member is in the rows of those that it has, and in no other ones.

    cdef bint mend(self, World* world) noexcept nogil:
        """Whether no other member has gone further than its row allows, and rows of those are complete again."""
        cdef Neighbors* near = &self.list
        cdef double d[3]
        cdef Py_ssize_t b, s, round
        cdef int c
        if not near.mends or self.has_many_strays() or self.index(world) != 0:
            return False
        for round in range(2):
            for b in range(n_blocks(near.n, ROWS_PER_BLOCK)):
                if not near.stale[b]:
                    continue
                for s in range(ROWS_PER_BLOCK * b, min(ROWS_PER_BLOCK * (b + 1), near.n)):
                    if round == 0:
                        if near.chain[s] == GONE or _stays(near, s):
                            continue
                        if near.chain[s] == NOT_STRAY:
                            return False
                        # Places first: strays may be in each other's rows.
                        _frame(near, near.now + 4 * s, d)
                        for c in range(3):
                            near.built[near.apart * c + s] = d[c]
                        near.across[s] = _sides(near, d)
                        self.join(world, s)
                        near.chain_stale[s] = 1
                    elif near.chain_stale[s]:
                        near.chain_stale[s] = 0
                        if not self.write_row(world, s):
                            return False
        near.mended += 1
        return True

    cdef bint write_row(self, World* world, Py_ssize_t slot) noexcept nogil:
        """Let a row be that of the place of now. False: out of memory."""
        cdef Neighbors* near = &self.list
        cdef Py_ssize_t i, n
        self.erase(slot)
        n = self.near_place(world, near.member[slot], near.now + 4 * slot)
        if n < 0 or not self.resize(slot, <int32_t> n):
            return False
        for i in range(n):
            near.row_of[near.member[slot]][i] = self.found[i]
        for i in range(n):
            if not self.enter(self.found[i], <int32_t> slot, near.id):
                return False
        return True

    cdef bint strike(self, Py_ssize_t slot, int32_t entry) noexcept nogil:
        cdef Neighbors* near = &self.list
        cdef int32_t* row = near.row_of[near.member[slot]]
        cdef int32_t n = near.count[slot], k = 0
        while k < n and row[k] != entry:
            k += 1
        if k == n:
            return True
        memmove(row + k, row + k + 1, (n - k - 1) * sizeof(int32_t))
        return self.resize(slot, n - 1)

    cdef void erase(self, Py_ssize_t slot) noexcept nogil:
        """Take a slot from the rows of all that it has in its own."""
        cdef Neighbors* near = &self.list
        cdef int32_t i
        for i in range(near.count[slot]):
            # Rows of a block move together.
            self.strike(near.row_of[near.member[slot]][i], <int32_t> slot)

    cdef bint renew(self, World* world) noexcept nogil:
        """Whether rows hold for the members that there are now, those of a few having been written and erased."""
        cdef Neighbors* near = &self.list
        cdef Py_ssize_t place
        cdef long long k
        cdef int32_t m, s
        cdef bint was, comes
        if not near.renews or near.world != world.number or near.n == 0 or self.index(world) != 0:
            return False
        if not 0 <= world.living[0] - near.living <= ROW_CHANGES:
            return False
        for k in range(near.living + 1, world.living[0] + 1):
            place = world.row_changes[k % ROW_CHANGES].place
            if place < 0:
                return False
            m = self.member_at[place] if place < self.member_at.shape[0] else -1
            if m < 0:
                continue
            s = near.slot_of[m]
            was = s >= 0 and near.chain[s] != GONE
            comes = group_there(near, world, m) > 0
            if was and comes and self.is_same(world, s):
                continue
            if was:
                self.remove_member(s)
            if comes and not self.add_member(world, m):
                return False
            if self.has_many_strays():
                return False
        near.living = world.living[0]
        return True

    cdef bint is_same(self, World* world, Py_ssize_t slot) noexcept nogil:
        """Whether the bead in a slot is the one that it was, where it was. What is refused gives its id back, so that
        the next bead may have it elsewhere."""
        cdef const Neighbors* near = &self.list
        cdef double x[3]
        cdef int c
        for c in range(3):
            x[c] = near.sites.x[3 * <Py_ssize_t> near.row[slot] + c]
        if near.images:
            nearest_image(&world.box, x)
        for c in range(3):
            if x[c] != near.now[4 * slot + c]:
                return False
        return near.id[slot] == near.sites.id[near.row[slot]] and (
            near.groups[near.member[slot]] == group_there(near, world, near.member[slot]))

    cdef void remove_member(self, Py_ssize_t slot) noexcept nogil:
        """The member of a slot has gone: it is near nothing."""
        self.erase(slot)
        self.resize(slot, 0)
        self.hide(slot)

    cdef void hide(self, Py_ssize_t slot) noexcept nogil:
        self.unchain(slot)
        self.list.chain[slot] = GONE
        self.list.chain_stale[slot] = 0

    cdef bint add_member(self, World* world, int32_t member) noexcept nogil:
        """A member has come, which has had no row until now, or one that is empty. False: out of memory."""
        cdef Neighbors* near = &self.list
        cdef Py_ssize_t slot
        near.groups[member] = group_there(near, world, member)
        slot = self.show(member)
        _know(near, world, slot)
        self.join(world, slot)
        return self.write_row(world, slot)

    cdef Py_ssize_t show(self, int32_t member) noexcept nogil:
        cdef Neighbors* near = &self.list
        cdef int32_t slot = near.slot_of[member]
        cdef Py_ssize_t last
        if slot < 0:
            slot = near.slot_of[member] = <int32_t> near.n
            near.n += 1
            near.n_strays += 1
            near.member[slot] = member
            near.count[slot] = 0
            near.chain[slot] = GONE
            near.chain_stale[slot] = 0
            near.row_of[member] = near.rows[slot // ROWS_PER_BLOCK]
            if slot % ROWS_PER_BLOCK > 0:
                last = slot - 1
                near.row_of[member] = near.row_of[near.member[last]] + near.count[last]
        near.row[slot] = near.site[member]
        near.id[slot] = near.sites.id[near.row[slot]]
        near.present[near.groups[member] - 1] = 1
        return slot

    cdef bint has_many_strays(self) noexcept nogil:
        return MOST_STRAYS * self.list.n_strays > self.list.n

    # Members that come and go within a letter. -----------------------------------------------------------------------

    cdef long long behind(self, World* world) noexcept nogil:
        cdef const Neighbors* near = &self.list
        if not near.valid or near.world != world.number:
            return -1
        return changes_since(world, near.living, near.positions)

    cdef bint catch_up(self, World* world) noexcept nogil:
        if not self.renew(world):
            return False
        self.list.positions = world.positions
        return True

    cdef bint is_behind(self, World* world, Py_ssize_t place, long long last) noexcept nogil:
        """Whether the bead at a place is among those of which the list does not know, up to the last change."""
        cdef long long k
        for k in range(self.list.living + 1, last + 1):
            if world.row_changes[k % ROW_CHANGES].place == place:
                return True
        return False

    cdef bint reaches(self, World* world, Py_ssize_t member, int32_t group, Py_ssize_t place) noexcept nogil:
        """Whether a bead is there, near the one of a member, and interacts with it."""
        cdef const Neighbors* near = &self.list
        cdef int32_t other = self.member_at[place] if place < self.member_at.shape[0] else -1
        cdef double d[3]
        if other < 0 or other == member or not do_meet(group, group_there(near, world, other)):
            return False
        displacement(&world.box, world.x + 3 * <Py_ssize_t> near.site[member], world.x + 3 * place, d)
        return not dot(d, d) > near.reach * near.reach and not self.ignores(member, world.id[place])

    cdef Py_ssize_t partners(self, World* world, Py_ssize_t place) noexcept nogil:
        cdef Neighbors* near = &self.list
        cdef Py_ssize_t i, n, kept = 0, other
        cdef int32_t m = self.member_at[place] if place < self.member_at.shape[0] else -1
        cdef int32_t group = group_there(near, world, m) if m >= 0 else 0
        cdef double image[3]
        cdef long long k, last
        if group == 0:
            return 0
        if self.behind(world) > MOST_LOOKED_UP:
            self.catch_up(world)
        for i in range(3):
            image[i] = world.x[3 * place + i]
        nearest_image(&world.box, image)
        n = self.near_box(world, image, image, group)
        if n < 0 or not self.make_room():
            return -1
        last = near.living if world.living == NULL else world.living[0]
        for i in range(n):
            other = near.row[self.found[i]]
            if self.reaches(world, m, group, other) and not self.is_behind(world, other, last):
                self.found[kept] = <int32_t> other
                kept += 1
        for k in range(near.living + 1, last + 1):
            other = world.row_changes[k % ROW_CHANGES].place
            if self.reaches(world, m, group, other) and not self.is_behind(world, other, k - 1):
                self.found[kept] = <int32_t> other
                kept += 1
        sort_by_id(world.id, self.found, kept)
        return kept

    cdef bint resize(self, Py_ssize_t slot, int32_t count) noexcept nogil:
        """Let the row of a slot have another length; its entries are written by the caller. False: out of memory."""
        cdef Neighbors* near = &self.list
        cdef Py_ssize_t block = slot // ROWS_PER_BLOCK, first = ROWS_PER_BLOCK * block
        cdef Py_ssize_t last = min(first + ROWS_PER_BLOCK, near.n), s, used, wanted
        cdef Py_ssize_t more = count - near.count[slot]
        cdef int32_t* row
        cdef int32_t* old = near.rows[block]
        if more == 0:
            return True
        s = near.member[last - 1]
        used = near.row_of[s] - old + near.count[last - 1]
        if used + more > near.capacity[block]:
            wanted = (used + more) + (used + more) // 4
            row = <int32_t*> malloc(wanted * sizeof(int32_t))
            if row == NULL:
                return False
            if used > 0:
                # A block without a pair has had no memory so far.
                memcpy(row, old, used * sizeof(int32_t))
            near.rows[block] = row
            near.capacity[block] = wanted
            for s in range(first, last):
                near.row_of[near.member[s]] = row + (near.row_of[near.member[s]] - old)
            free(old)
        row = near.row_of[near.member[slot]]
        memmove(row + count, row + near.count[slot],
                (used - (row - near.rows[block]) - near.count[slot]) * sizeof(int32_t))
        for s in range(slot + 1, last):
            near.row_of[near.member[s]] += more
        near.count[slot] = count
        return True

    cdef bint enter(self, Py_ssize_t slot, int32_t partner, const int32_t* id) noexcept nogil:
        """Let a partner be in the row of a slot, in the order of id. False: out of memory."""
        cdef Neighbors* near = &self.list
        cdef int32_t* row = near.row_of[near.member[slot]]
        cdef int32_t n = near.count[slot], k = n
        while k > 0 and id[row[k - 1]] >= id[partner]:
            k -= 1
            if row[k] == partner:
                return True
        if not self.resize(slot, n + 1):
            return False
        row = near.row_of[near.member[slot]]
        memmove(row + k + 1, row + k, (n - k) * sizeof(int32_t))
        row[k] = partner
        return True

    cdef int index(self, World* world) noexcept nogil:
        cdef Neighbors* near = &self.list
        cdef int32_t* row = NULL
        cdef Py_ssize_t s
        if near.n_members == 0 or near.indexed == near.builds and near.row_of != NULL:
            return 0
        if near.row_of == NULL:
            near.slot_of = <int32_t*> calloc(near.n_members, sizeof(int32_t))
            near.row_of = <int32_t**> calloc(near.n_members, sizeof(int32_t*))
        if near.slot_of == NULL or near.row_of == NULL:
            return record_fault(world, OUT_OF_MEMORY, -1, -1)
        for s in range(near.n_members):
            near.slot_of[s] = -1
        for s in range(near.n):
            if s % ROWS_PER_BLOCK == 0:
                row = near.rows[s // ROWS_PER_BLOCK]
            near.slot_of[near.member[s]] = <int32_t> s
            near.row_of[near.member[s]] = row
            row += near.count[s]
        near.indexed = near.builds
        return 0

    @property
    def builds(self):
        """How often the list has been built."""
        return self.list.builds

    @property
    def mended(self):
        """How often rows of strays have been mended instead."""
        return self.list.mended

    @property
    def follows(self):
        """How often the list has been asked for."""
        return self.list.follows

    @property
    def examined(self):
        """Candidates whose distance has been computed in all builds."""
        cdef Py_ssize_t b
        total = 0
        for b in range(n_blocks(self.list.n_members, ROWS_PER_BLOCK)):
            total += self.list.examined[b]
        return total

    @property
    def entries(self):
        """Length of all rows together."""
        cdef Py_ssize_t s
        total = 0
        for s in range(self.list.n):
            total += self.list.count[s]
        return total

    @property
    def bytes(self):
        """Memory of the rows."""
        cdef Py_ssize_t b
        total = 0
        for b in range(n_blocks(self.list.n_members, ROWS_PER_BLOCK)):
            total += 4 * self.list.capacity[b]
        return total

    def rows(self):
        """{number of a site: numbers in its row, in the order of the row}; of beads, the permanent ones."""
        cdef Neighbors* near = &self.list
        cdef int32_t* row
        cdef Py_ssize_t s
        cdef int k
        out = {}
        if not near.valid:
            return out
        for s in range(near.n):
            if s % ROWS_PER_BLOCK == 0:
                row = near.rows[s // ROWS_PER_BLOCK]
            out[near.id[s]] = [near.id[row[k]] for k in range(near.count[s])]
            row += near.count[s]
        return out


def near_pairs(const double[:, ::1] x, double reach, const double[::1] box=None):
    """(P, 2) int32: rows of x (n, 3) that are nearer to each other than `reach` (to 1e-8 of it), each pair once,
    the lower row first; in a box of these lengths, 0 in open directions, by nearest images.

    MemoryError: there is no room for so many. ValueError: an x that is not finite.
    """
    cdef Py_ssize_t n = x.shape[0], s, used = 0
    cdef int32_t[::1] number = np.arange(n, dtype=np.int32)
    cdef const int32_t[::1] none = np.zeros(n + 1, np.int32)
    cdef NeighborList made = NeighborList(
        number, np.full(n, 3, np.int32), np.full(n, 0.5 * reach), reach, 0.0, none, none[:0])
    cdef Neighbors* near = &made.list
    cdef SiteArrays sites
    cdef World world
    cdef int fault, k
    cdef int32_t* row = NULL
    cdef int32_t[:, ::1] out
    if n == 0:
        return np.empty((0, 2), np.int32)
    memset(&world, 0, sizeof(World))
    world.threads = 1
    world.fault.bead = -1
    if box is not None:
        set_lengths(&world.box, &box[0])
    memset(&sites, 0, sizeof(SiteArrays))
    sites.x = &x[0, 0]
    sites.id = &number[0]
    fault = made.follow(&world, &sites)
    if fault == OUT_OF_MEMORY:
        raise MemoryError
    if fault != 0:
        raise ValueError(f"row {world.fault.bead} is not finite")
    pairs = np.empty((made.entries // 2, 2), np.int32)
    out = pairs
    for s in range(n):
        if s % ROWS_PER_BLOCK == 0:
            row = near.rows[s // ROWS_PER_BLOCK]
        for k in range(near.count[s]):
            if s < row[k]:
                out[used, 0] = min(near.row[s], near.row[row[k]])
                out[used, 1] = max(near.row[s], near.row[row[k]])
                used += 1
        row += near.count[s]
    return pairs


cdef int32_t* _integers(int32_t[::1] a) noexcept:
    return &a[0]


cdef double* _doubles(double[:, ::1] a) noexcept:
    return &a[0, 0]


cdef uint64_t* _words(uint64_t[::1] a) noexcept:
    return &a[0]
