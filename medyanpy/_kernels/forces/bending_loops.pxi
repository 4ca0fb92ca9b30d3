# The loops of a bending energy, each compiled for the orders of its series. Included where there are `_respond` and
# `_rows`, and CORNERS: whether lines of faces are those with gradients of the areas.


cdef int _lines_1(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    follow(1, CORNERS, <BendingTask*> task, world, first, last)
    return 0


cdef int _lines_2(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    follow(2, CORNERS, <BendingTask*> task, world, first, last)
    return 0


cdef int _vertices(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _respond(0, 0, RESIDUALS, <BendingTask*> task, first, last)
    return 0


cdef int _vertices_1(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _respond(1, 1, RESIDUALS, <BendingTask*> task, first, last)
    return 0


cdef int _vertices_2(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _respond(2, 2, RESIDUALS, <BendingTask*> task, first, last)
    return 0


cdef int _vertices_of_changes(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _respond(1, 0, CHANGES, <BendingTask*> task, first, last)
    return 0


cdef int _vertices_of_changes_1(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _respond(1, 1, CHANGES, <BendingTask*> task, first, last)
    return 0


cdef int _vertices_of_ones(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _respond(0, 0, ONES, <BendingTask*> task, first, last)
    return 0


cdef int _faces(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    return _rows(0, <BendingTask*> task, world, first, last)


cdef int _faces_1(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    return _rows(1, <BendingTask*> task, world, first, last)


cdef int _faces_2(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    return _rows(2, <BendingTask*> task, world, first, last)


cdef void _set_loops(Bending self, BlockFunction edges_1, BlockFunction edges_2) noexcept:
    """edges_1, edges_2: the loops over edges along lines, NULL if none."""
    self.ones = _vertices_of_ones
    self.vertices = _vertices
    self.faces = _faces
    self.loops[HESSIAN] = Loops(1.0, _lines_1, edges_1, _vertices_1, _faces_1)
    self.loops[STIFFNESS] = Loops(1.0, _lines_1, edges_1, _vertices_of_changes, _faces)
    self.loops[THIRD] = Loops(2.0, _lines_2, edges_2, _vertices_2, _faces_2)
    self.loops[THIRD_OF_STIFFNESS] = Loops(2.0, _lines_1, edges_1, _vertices_of_changes_1, _faces_1)
