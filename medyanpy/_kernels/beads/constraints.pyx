"""Filaments whose links keep their lengths; see constraints.pxi."""

cdef enum:
    WAYS = 1

include "constraints.pxi"
