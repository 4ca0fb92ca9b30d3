"""Runs of beads that are there, one place after another: loops over these cost nothing where there is only room."""
from libc.string cimport memchr

from medyanpy._kernels.core.program cimport World


cdef inline Py_ssize_t next_run(const World* world, Py_ssize_t* first, Py_ssize_t last) noexcept nogil:
    """Move `first` to the first of these places that has a bead, `last` if none has; where the run from there ends."""
    cdef const signed char* found
    if world.alive == NULL:
        return last
    found = <const signed char*> memchr(world.alive + first[0], 1, last - first[0])
    first[0] = last if found == NULL else found - world.alive
    found = <const signed char*> memchr(world.alive + first[0], 0, last - first[0])
    return last if found == NULL else found - world.alive
