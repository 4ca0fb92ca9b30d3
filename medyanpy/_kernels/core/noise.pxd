"""Normal random numbers of the beads of a World: keyed by seed, step, letter, purpose and the bead's permanent id."""
from libc.stdint cimport int32_t, uint32_t

from medyanpy._kernels.core.philox cimport NORMALS_BLOCK, ROTATION, THERMOSTAT, normals_block
from medyanpy._kernels.core.program cimport World


cdef inline void _normals(World* world, const int* id, const int32_t* high, int n, uint32_t letter, uint32_t purpose,
                          uint32_t draw, double* gx, double* gy, double* gz) noexcept nogil:
    cdef int k = 0, together = n if high == NULL else 1
    while k < n:
        # Bits 32 to 47 of an id are the upper 16 of the 24 bits of a draw.
        normals_block(id + k, together, world.seed, world.step, letter, 0, purpose,
                      draw if high == NULL else <uint32_t> high[k] << 8 | draw, gx + k, gy + k, gz + k)
        k += together


cdef inline void normals_of(World* world, Py_ssize_t first, int n, uint32_t letter, uint32_t purpose, uint32_t draw,
                            double* gx, double* gy, double* gz) noexcept nogil:
    """Three standard normals for each of n <= NORMALS_BLOCK beads from place `first` on; 0 <= draw < 256."""
    cdef const int32_t* high = NULL if world.id_high == NULL else world.id_high + first
    _normals(world, <const int*> (world.id + first), high, n, letter, purpose, draw, gx, gy, gz)


cdef inline void normals_at(World* world, const int32_t* place, int n, uint32_t letter, uint32_t purpose,
                            uint32_t draw, double* gx, double* gy, double* gz) noexcept nogil:
    """The same of n <= NORMALS_BLOCK beads at these places."""
    cdef int id[NORMALS_BLOCK]
    cdef int32_t high[NORMALS_BLOCK]
    cdef int k
    for k in range(n):
        id[k] = world.id[place[k]]
        if world.id_high != NULL:
            high[k] = world.id_high[place[k]]
    _normals(world, id, NULL if world.id_high == NULL else high, n, letter, purpose, draw, gx, gy, gz)


cdef inline void six_normals_of(World* world, Py_ssize_t first, int n, uint32_t letter,
                                double g[6][NORMALS_BLOCK]) noexcept nogil:
    """Six for each of n <= NORMALS_BLOCK oriented beads from place `first` on, for translation and rotation."""
    normals_of(world, first, n, letter, THERMOSTAT, 0, g[0], g[1], g[2])
    normals_of(world, first, n, letter, ROTATION, 0, g[3], g[4], g[5])
