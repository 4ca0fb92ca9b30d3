"""Asking for memory before it is needed, where it lies in no order: loops over meshes whose vertices and faces are
numbered as they come would wait for each row. It changes no result; compilers that do not know it leave it out."""

cdef extern from * nogil:
    """
    #if defined(__GNUC__)
    #define medyanpy_prefetch(address) __builtin_prefetch(address)
    #else
    #define medyanpy_prefetch(address) ((void) (address))
    #endif
    """
    void prefetch "medyanpy_prefetch"(const void* address)

# How many rows ahead: far enough for the memory behind the second cache, not so far that lines are gone again.
cdef enum:
    VERTICES_AHEAD = 10
    FACES_AHEAD = 24


cdef inline void prefetch_doubles(const double* row, int n) noexcept nogil:
    """A row of up to eight numbers, which may lie in two lines."""
    prefetch(row)
    prefetch(row + n - 1)
