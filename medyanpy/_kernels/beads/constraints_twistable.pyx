"""Filaments whose links keep their lengths and carry directors; see constraints.pxi."""

cdef enum:
    WAYS = 2

include "constraints.pxi"
