"""The Fixman potential of filaments whose links keep their lengths and carry directors; see fixman.pxi."""

cdef enum:
    WAYS = 2

include "fixman.pxi"
