"""Who neighbours whom in the triangles of all membranes of one Context; see triangles.pxd.

Flipping an edge cd between the faces (a, c, d) and (b, d, c) puts (d, a, b) and (c, b, a) in their place. Which of the
two takes the place of which is chosen so that flipping the new edge ab brings back the old faces, number by number and
corner by corner: the first of them holds d where the lowest of the four vertices is an end of the old edge, else c.
"""
from cpython.ref cimport PyObject
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove

from medyanpy._kernels.core.prefetch cimport prefetch
from medyanpy._kernels.core.program cimport PYTHON_EXCEPTION, Operation, Quad, World

# What a ring can take in before all are laid out anew.
cdef Py_ssize_t SPARE = 4


cdef class Triangles:
    """The faces of the membranes of one Context, and what follows from them.

    Parameters
    ----------
    faces, opposite : (F, 3) int32 arrays
        Corners by place, and the corner across the edge opposite each, -1 at a border; they are used in place.
    starts, corners : (V + 1,), (3F,) int32
        The corners of each vertex, ascending: those of vertex v are corners[starts[v]:starts[v + 1]].
    """

    def __cinit__(self, int32_t[:, ::1] faces not None, int32_t[:, ::1] opposite not None,
                  const int32_t[::1] starts not None, const int32_t[::1] corners not None):
        cdef Py_ssize_t n = starts.shape[0] - 1
        self.faces = faces
        self.opposite = opposite
        self.n_faces = faces.shape[0]
        self.n_vertices = n
        self.rings.starts = <int32_t*> malloc((n + 1) * sizeof(int32_t))
        self.rings.ends = <int32_t*> malloc((n + 1) * sizeof(int32_t))
        self.limits = <int32_t*> malloc((n + 1) * sizeof(int32_t))
        # Room for `lay_out` as well: a flip asks for no memory.
        self.rings.corners = <int32_t*> malloc((corners.shape[0] + SPARE * n + 1) * sizeof(int32_t))
        if self.rings.starts == NULL or self.rings.ends == NULL or self.limits == NULL or self.rings.corners == NULL:
            raise MemoryError
        self.take_rings(starts, corners)

    def __dealloc__(self):
        free(self.rings.starts)
        free(self.rings.ends)
        free(self.rings.corners)
        free(self.limits)

    def take_rings(self, const int32_t[::1] starts not None, const int32_t[::1] corners not None):
        """The corners of each vertex are these, of as many vertices and faces as before."""
        cdef Py_ssize_t v
        if starts.shape[0] != self.n_vertices + 1 or corners.shape[0] != 3 * self.n_faces:
            raise ValueError(f"rings of {starts.shape[0] - 1} vertices and {corners.shape[0]} corners")
        for v in range(self.n_vertices):
            self.rings.starts[v] = starts[v]
            self.rings.ends[v] = self.limits[v] = starts[v + 1]
        if corners.shape[0] > 0:
            memcpy(self.rings.corners, &corners[0], corners.shape[0] * sizeof(int32_t))
        self.flips += 1

    def ring(self, Py_ssize_t vertex):
        """The corners of a vertex."""
        return [self.rings.corners[s] for s in range(self.rings.starts[vertex], self.rings.ends[vertex])]

    cdef Py_ssize_t corner_of(self, int32_t c, int32_t d) noexcept nogil:
        """One of the corners whose edge joins c and d; -1 where there is no such edge."""
        cdef const int32_t* faces = &self.faces[0, 0]
        cdef Py_ssize_t s, corner
        for s in range(self.rings.starts[c], self.rings.ends[c]):
            corner = self.rings.corners[s]
            if faces[corner_after(corner)] == d:
                return corner_before(corner)
            if faces[corner_before(corner)] == d:
                return corner_after(corner)
        return -1

    cdef bint quad_of(self, Py_ssize_t corner, Quad* quad) noexcept nogil:
        """The two faces at the edge of a corner; False on a border."""
        cdef const int32_t* faces = &self.faces[0, 0]
        cdef Py_ssize_t across = (&self.opposite[0, 0])[corner]
        cdef int32_t low, lowest
        if across < 0:
            return False
        if across < corner:
            corner, across = across, corner
        quad.first = corner // 3
        quad.second = across // 3
        quad.at_a = corner - 3 * quad.first
        quad.at_b = across - 3 * quad.second
        quad.a = faces[corner]
        quad.c = faces[corner_after(corner)]
        quad.d = faces[corner_before(corner)]
        quad.b = faces[across]
        low = min(quad.c, quad.d)
        lowest = min(quad.a, quad.b)
        quad.rule = low < lowest
        return True

    cdef int quad_at(self, Py_ssize_t corner, Quad* quad) noexcept nogil:
        """The same, and what keeps the edge from being flipped."""
        if not self.quad_of(corner, quad):
            return BORDER
        return JOINED if self.corner_of(quad.a, quad.b) >= 0 else CAN_FLIP

    # Asking for memory that `quad_at` will read, in five turns: each reads what the one before has asked for.

    cdef void fetch_corner(self, Py_ssize_t corner) noexcept nogil:
        prefetch(&self.opposite[0, 0] + corner)
        prefetch(&self.faces[0, 0] + corner)

    cdef void fetch_across(self, Py_ssize_t corner) noexcept nogil:
        cdef Py_ssize_t across = (&self.opposite[0, 0])[corner]
        if across >= 0:
            self.fetch_corner(across)

    cdef void fetch_ends(self, const Quad* quad) noexcept nogil:
        """Where the rings of the corners are."""
        cdef int32_t corners[4]
        cdef int k
        corners[0], corners[1], corners[2], corners[3] = quad.a, quad.b, quad.c, quad.d
        for k in range(4):
            prefetch(self.rings.starts + corners[k])
            prefetch(self.rings.ends + corners[k])
            prefetch(self.limits + corners[k])

    cdef void fetch_ring(self, const Quad* quad) noexcept nogil:
        prefetch(self.rings.corners + self.rings.starts[quad.a])
        prefetch(self.rings.corners + self.rings.ends[quad.a] - 1)

    cdef void fetch_around(self, const Quad* quad) noexcept nogil:
        """The faces at a, which tell whether it is joined to b."""
        cdef Py_ssize_t s
        for s in range(self.rings.starts[quad.a], self.rings.ends[quad.a]):
            prefetch(&self.faces[0, 0] + self.rings.corners[s])

    cdef void make_room(self, const Quad* quad) noexcept nogil:
        """For a flip."""
        if not (self.rings.ends[quad.a] < self.limits[quad.a] and self.rings.ends[quad.b] < self.limits[quad.b]):
            self.lay_out()

    cdef void flip(self, const Quad* quad) noexcept nogil:
        """Put the other diagonal into two faces, for which there is room."""
        cdef int32_t* faces = &self.faces[0, 0]
        cdef int32_t* opposite = &self.opposite[0, 0]
        cdef Py_ssize_t at[6]
        cdef int32_t old[6]
        cdef int32_t new[6]
        cdef int32_t around[4]
        cdef int32_t beyond[6]
        cdef Py_ssize_t i
        at[0] = 3 * quad.first + quad.at_a
        at[3] = 3 * quad.second + quad.at_b
        for i in range(0, 6, 3):
            at[i + 1] = corner_after(at[i])
            at[i + 2] = corner_before(at[i])
        for i in range(6):
            old[i] = faces[at[i]]
        # Across da, ac, cb and bd.
        around[0] = opposite[at[1]]
        around[1] = opposite[at[2]]
        around[2] = opposite[at[4]]
        around[3] = opposite[at[5]]
        if quad.rule:
            new[0], new[1], new[2], beyond[1], beyond[2] = quad.d, quad.a, quad.b, around[3], around[0]
            new[3], new[4], new[5], beyond[4], beyond[5] = quad.c, quad.b, quad.a, around[1], around[2]
        else:
            new[0], new[1], new[2], beyond[1], beyond[2] = quad.c, quad.b, quad.a, around[1], around[2]
            new[3], new[4], new[5], beyond[4], beyond[5] = quad.d, quad.a, quad.b, around[3], around[0]
        for i in range(6):
            self.lost |= not self.leave(old[i], <int32_t> at[i])
        for i in range(6):
            faces[at[i]] = new[i]
            self.enter(new[i], <int32_t> at[i])
            if i % 3 > 0:
                opposite[at[i]] = beyond[i]
                if beyond[i] >= 0:
                    opposite[beyond[i]] = <int32_t> at[i]
        self.flips += 1

    cdef bint leave(self, int32_t vertex, int32_t corner) noexcept nogil:
        """Whether it was there."""
        cdef int32_t* corners = self.rings.corners
        cdef Py_ssize_t s
        for s in range(self.rings.starts[vertex], self.rings.ends[vertex]):
            if corners[s] == corner:
                self.rings.ends[vertex] -= 1
                memmove(corners + s, corners + s + 1, (self.rings.ends[vertex] - s) * sizeof(int32_t))
                return True
        return False

    cdef void enter(self, int32_t vertex, int32_t corner) noexcept nogil:
        cdef int32_t* corners = self.rings.corners
        cdef Py_ssize_t s = self.rings.ends[vertex]
        while s > self.rings.starts[vertex] and corners[s - 1] > corner:
            corners[s] = corners[s - 1]
            s -= 1
        corners[s] = corner
        self.rings.ends[vertex] += 1

    cdef void lay_out(self) noexcept nogil:
        """Give every ring as much room as all others, in place: close together first, then apart from the last on."""
        cdef int32_t* corners = self.rings.corners
        cdef Py_ssize_t v, n, i, start = 0
        for v in range(self.n_vertices):
            n = self.rings.ends[v] - self.rings.starts[v]
            memmove(corners + start, corners + self.rings.starts[v], n * sizeof(int32_t))
            self.rings.starts[v] = <int32_t> start
            self.rings.ends[v] = <int32_t> (start + n)
            start += n
        for i in range(self.n_vertices):
            v = self.n_vertices - 1 - i
            n = self.rings.ends[v] - self.rings.starts[v]
            start = self.rings.starts[v] + SPARE * v
            memmove(corners + start, corners + self.rings.starts[v], n * sizeof(int32_t))
            self.rings.starts[v] = <int32_t> start
            self.rings.ends[v] = <int32_t> (start + n)
            self.limits[v] = <int32_t> (start + n + SPARE)

    cdef bint follow(self) noexcept nogil:
        """See that rings and opposite corners are those of the faces. Whether these were others before."""
        cdef int32_t* faces = &self.faces[0, 0]
        cdef int32_t* opposite = &self.opposite[0, 0]
        cdef int32_t* starts = self.rings.starts
        cdef int32_t* ends = self.rings.ends
        cdef int32_t* corners = self.rings.corners
        cdef Py_ssize_t n = 3 * self.n_faces
        cdef Py_ssize_t corner, other, s, v, room
        cdef int32_t b, c
        cdef bint same = True
        for v in range(self.n_vertices):
            for s in range(starts[v], ends[v]):
                same &= faces[corners[s]] == v
        if same:
            return False
        # There is room for all: as many as there are corners, and what is left of what rings had to spare.
        room = self.limits[self.n_vertices - 1] - n
        room = max(room, <Py_ssize_t> 0) // self.n_vertices
        for v in range(self.n_vertices):
            ends[v] = 0
        for corner in range(n):
            ends[faces[corner]] += 1
        s = 0
        for v in range(self.n_vertices):
            starts[v] = <int32_t> s
            s += ends[v]
            ends[v] = starts[v]
            s += room
            self.limits[v] = <int32_t> s
        for corner in range(n):
            v = faces[corner]
            corners[ends[v]] = <int32_t> corner
            ends[v] += 1
        for corner in range(n):
            b = faces[corner_after(corner)]
            c = faces[corner_before(corner)]
            opposite[corner] = -1
            # The face on the other side has c before b.
            for s in range(starts[b], ends[b]):
                other = corners[s]
                if faces[corner_before(other)] == c:
                    opposite[corner] = <int32_t> corner_after(other)
                    break
        self.flips += 1
        return True


cdef class Rejoined(Operation):
    """What is run where the state has become another one: triangles follow its faces, and who is there what it says.

    Parameters
    ----------
    triangles : Triangles
    room : Operation, optional
        What else is run then.

    Attributes
    ----------
    told : callable or None
        Called where faces were others before.
    """

    def __init__(self, Triangles triangles not None, Operation room=None):
        self.triangles = triangles
        self.room = room
        self.told = None

    cdef int run(self, World* world) noexcept nogil:
        cdef int fault = 0 if self.room is None else self.room.run(world)
        if fault == 0 and self.triangles.n_faces > 0 and self.triangles.follow():
            with gil:
                fault = self.tell(world)
        return fault

    cdef int tell(self, World* world) noexcept:
        self.error = None
        try:
            if self.told is not None:
                self.told()
            return 0
        except BaseException as error:
            self.error = error
        world.fault.operation = <PyObject*> self
        return PYTHON_EXCEPTION
