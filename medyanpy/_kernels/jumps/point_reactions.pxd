"""Reactions of beads with species. See point_reactions.pyx."""
from libc.stdint cimport int32_t


# Reactions by what they do; each is one way.
cdef enum:
    TURN = 0                  # A -> B: the place stays
    PART = 1                  # C -> A + B: both fly apart along one straight line
    MEET = 2                  # A + B -> C: by straight lines between the two
    PASS = 3                  # A + B -> C + D: by straight lines; both places stay
    COME = 4                  # 0 -> A: uniform by area or volume
    GO = 5                    # A -> 0


cdef struct Reaction:
    int kind
    int32_t from_a, from_b    # species; -1: none
    int32_t to_a, to_b
    # Of the pool: which species an event takes a molecule of, and which it gives one of; -1: none.
    int32_t taken, given
    # 1/s; of MEET and PASS by straight line, of COME by area or volume; by concentration of `taken`
    double rate
    double fraction           # of MEET and PART: where on the line from A to B the one stands
    double affinity           # kT: what drives it round cycles; 0 in balance, infinite where there is no way back
