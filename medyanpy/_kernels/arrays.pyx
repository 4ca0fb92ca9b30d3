"""Arrays that the task of an operation points to.

A task is a struct of its operation: written when the operation is made, and in a run only where something changes.
Every array that it points to is put into a list of the operation, and lives as long as that.
"""
import numpy as np


cdef const Number* vector(list arrays, const Number[::1] array) except? NULL:
    arrays.append(array)
    return &array[0] if array.shape[0] > 0 else NULL


cdef const Number* table(list arrays, const Number[:, ::1] array) except? NULL:
    arrays.append(array)
    return &array[0, 0] if array.shape[0] > 0 and array.shape[1] > 0 else NULL


cdef double* zeros(list arrays, Py_ssize_t n) except? NULL:
    cdef double[::1] array = np.zeros(n)
    arrays.append(array)
    return &array[0] if n > 0 else NULL
