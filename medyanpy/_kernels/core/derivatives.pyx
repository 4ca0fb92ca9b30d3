"""Second and third derivatives of forces that offer them.

A force that goes through its terms in the same way for all of them is a `SmoothForce`: one loop, told what is wanted.
For Python there are blocks of the Hessian, and contractions; kernels that need them inside a step call `hessian` and
`contract` of an operation themselves, with a sink of theirs.
"""
import numpy as np

from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from medyanpy._kernels.core.program cimport AddBlock, OUT_OF_MEMORY, Operation, World


cdef class SmoothForce(Operation):
    """A force whose second and third derivatives come from one loop over its terms: `higher`."""

    cdef int higher(self, World* world, const Derivative* wanted) noexcept nogil:
        return 0

    cdef int hessian(self, World* world, AddBlock add, void* sink) noexcept nogil:
        cdef Derivative wanted = Derivative(add, sink, NULL, NULL, False)
        return self.higher(world, &wanted)

    cdef int stiffness(self, World* world, AddBlock add, void* sink) noexcept nogil:
        cdef Derivative wanted = Derivative(add, sink, NULL, NULL, True)
        return self.higher(world, &wanted)

    cdef int contract(self, World* world, const double* a, double* out) noexcept nogil:
        cdef Derivative wanted = Derivative(<AddBlock> NULL, NULL, a, out, False)
        return self.higher(world, &wanted)

    cdef int contract_stiffness(self, World* world, const double* a, double* out) noexcept nogil:
        cdef Derivative wanted = Derivative(<AddBlock> NULL, NULL, a, out, True)
        return self.higher(world, &wanted)


cdef struct Block:
    long long i
    long long j
    double h[9]


cdef struct List:
    Block* blocks
    Py_ssize_t n
    Py_ssize_t capacity


cdef int _append(void* sink, Py_ssize_t i, Py_ssize_t j, const double* block) noexcept nogil:
    cdef List* t = <List*> sink
    cdef Py_ssize_t capacity
    cdef Block* grown
    if t.n == t.capacity:
        capacity = 2 * t.capacity + 64
        grown = <Block*> realloc(t.blocks, capacity * sizeof(Block))
        if grown == NULL:
            return OUT_OF_MEMORY
        t.blocks = grown
        t.capacity = capacity
    t.blocks[t.n].i = i
    t.blocks[t.n].j = j
    memcpy(t.blocks[t.n].h, block, 9 * sizeof(double))
    t.n += 1
    return 0


cdef class HessianBlocks(Operation):
    """Collects the blocks d2U/dx_i dx_j of a force, or of its stiffness, in which nothing is negative; those of one
    pair may be several entries that add up. With `sparse` without the part by which all beads feel each other."""
    cdef readonly Operation force
    cdef bint positive
    cdef double[:, ::1] w     # None: all blocks
    cdef List list

    def __init__(self, Operation force, bint positive=False, *, Py_ssize_t sparse=0):
        if force.derivatives < 2:
            raise TypeError(f"{force.name} offers no second derivatives")
        self.force = force
        self.positive = positive
        self.w = np.zeros((sparse, 3)) if sparse else None

    def __dealloc__(self):
        free(self.list.blocks)

    cdef int run(self, World* world) noexcept nogil:
        cdef double strength
        self.list.n = 0
        if self.w is not None:
            return self.force.apart(world, self.positive, _append, &self.list, &self.w[0, 0], &strength)
        if self.positive:
            return self.force.stiffness(world, _append, &self.list)
        return self.force.hessian(world, _append, &self.list)

    def blocks(self):
        """(i (m,), j (m,), h (m, 3, 3)) by place; the mirror of a block with i != j is not in it."""
        cdef Py_ssize_t k, m = self.list.n
        cdef long long[:, ::1] place
        cdef double[:, :, ::1] h
        places, values = np.empty((m, 2), np.int64), np.empty((m, 3, 3))
        place, h = places, values
        for k in range(m):
            place[k, 0] = self.list.blocks[k].i
            place[k, 1] = self.list.blocks[k].j
            memcpy(&h[k, 0, 0], self.list.blocks[k].h, 9 * sizeof(double))
        return places[:, 0], places[:, 1], values


cdef class Contraction(Operation):
    """out (n, 3) += sum_ij d3U/dx_i dx_j dx_k a_i a_j of one force, or of its stiffness, by place; a is (n, 3)."""
    cdef readonly Operation force
    cdef const double[:, ::1] a
    cdef double[:, ::1] out
    cdef bint positive

    def __init__(self, Operation force, const double[:, ::1] a, double[:, ::1] out, bint positive=False):
        if force.derivatives < 3:
            raise TypeError(f"{force.name} offers no third derivatives")
        self.force = force
        self.a = a
        self.out = out
        self.positive = positive

    cdef int run(self, World* world) noexcept nogil:
        if self.positive:
            return self.force.contract_stiffness(world, &self.a[0, 0], &self.out[0, 0])
        return self.force.contract(world, &self.a[0, 0], &self.out[0, 0])


cdef class Multiplication(Operation):
    """out (n, 3) += H a of one force, or K a with its stiffness, by place; a is (n, 3)."""
    cdef readonly Operation force
    cdef const double[:, ::1] a
    cdef double[:, ::1] out
    cdef bint positive

    def __init__(self, Operation force, const double[:, ::1] a, double[:, ::1] out, bint positive=False):
        if force.derivatives < 2:
            raise TypeError(f"{force.name} offers no second derivatives")
        self.force = force
        self.a = a
        self.out = out
        self.positive = positive

    cdef int run(self, World* world) noexcept nogil:
        return self.force.multiply(world, self.positive, &self.a[0, 0], &self.out[0, 0])


cdef class DiagonalBlocks(Operation):
    """out (n, 3, 3) += the blocks of beads with themselves of the stiffness of one force, by place."""
    cdef readonly Operation force
    cdef double[:, :, ::1] out

    def __init__(self, Operation force, double[:, :, ::1] out):
        if force.derivatives < 2:
            raise TypeError(f"{force.name} offers no second derivatives")
        self.force = force
        self.out = out

    cdef int run(self, World* world) noexcept nogil:
        return self.force.diagonal(world, &self.out[0, 0, 0])
