"""Arrays that the task of an operation points to.

A task is a struct of its operation: written when the operation is made, and in a run only where something changes.
Every array that it points to is put into a list of the operation, and lives as long as that.
"""
import mmap

import numpy as np

# From so many bytes on memory is asked for in large pages, of at most this size.
cdef Py_ssize_t LARGE = 1 << 20
cdef Py_ssize_t PAGE = 1 << 21


cpdef large_zeros(shape, dtype=np.float64):
    """Zeros that loops go over in no order: where there are many, in large pages of memory if the system has any, so
    that addresses are found without reading tables of them."""
    n = int(np.prod(shape))
    size = n * np.dtype(dtype).itemsize
    if size < LARGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.zeros(shape, dtype)
    # What is before the first large page is never touched, so that it is no memory.
    memory = mmap.mmap(-1, size + PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        memory.madvise(mmap.MADV_HUGEPAGE)
    except OSError:
        # A kernel without them.
        pass
    start = -np.frombuffer(memory, np.int8).ctypes.data % PAGE
    return np.frombuffer(memory, dtype, n, start).reshape(shape)


cdef const Number* vector(list arrays, const Number[::1] array) except? NULL:
    arrays.append(array)
    return &array[0] if array.shape[0] > 0 else NULL


cdef const Number* table(list arrays, const Number[:, ::1] array) except? NULL:
    arrays.append(array)
    return &array[0, 0] if array.shape[0] > 0 and array.shape[1] > 0 else NULL


cdef double* zeros(list arrays, Py_ssize_t n) except? NULL:
    cdef double[::1] array = large_zeros(n)
    arrays.append(array)
    return &array[0] if n > 0 else NULL
