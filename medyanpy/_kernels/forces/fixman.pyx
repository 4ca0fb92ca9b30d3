"""The Fixman potential of filaments whose links keep their lengths; see fixman.pxi."""

cdef enum:
    WAYS = 1

include "fixman.pxi"
