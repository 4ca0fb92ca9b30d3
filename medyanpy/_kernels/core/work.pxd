"""Sums that carry what their rounding has lost."""
from libc.math cimport fabs


cdef inline void add(double* tally, double term) noexcept nogil:
    """tally[0] + tally[1] += term, without loss."""
    cdef double sum = tally[0] + term
    if fabs(tally[0]) >= fabs(term):
        tally[1] += (tally[0] - sum) + term
    else:
        tally[1] += (term - sum) + tally[0]
    tally[0] = sum
