"""In-triangle points: the rows of x that follow from triangles and barycentric coordinates."""
from medyanpy._kernels.core.parallel cimport over_blocks
from medyanpy._kernels.core.program cimport Operation, World, is_there

cdef Py_ssize_t BLOCK = 2048


cdef int _place(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef Py_ssize_t p
    for p in range(first, last):
        place_one(world, p)
    return 0


cdef int place(World* world) noexcept nogil:
    """Derive x of every in-triangle point, unless that has been done since anything moved."""
    if world.placed != world.positions:
        over_blocks(_place, NULL, world, world.n_points, BLOCK)
        world.placed = world.positions
    return 0


cdef int _flatten(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef Py_ssize_t p
    cdef Frame frame
    for p in range(first, last):
        if not is_there(world, world.n_cartesian + p):
            continue
        frame_of(&world.box, world.x, world.faces + 3 * <Py_ssize_t> world.triangle[p], &frame)
        project(&frame, world.v + 3 * (world.n_cartesian + p))
    return 0


cdef class Place(Operation):
    """Derive x of every in-triangle point."""

    cdef int run(self, World* world) noexcept nogil:
        return place(world)


cdef class Flatten(Operation):
    """Project the velocity of every in-triangle point into its plane: for velocities that come from outside."""

    cdef int run(self, World* world) noexcept nogil:
        return over_blocks(_flatten, NULL, world, world.n_points, BLOCK)
