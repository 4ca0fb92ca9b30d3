"""Second and third derivatives of forces: what a loop over terms is asked for. See derivatives.pyx."""
from medyanpy._kernels.core.program cimport AddBlock, Operation, World


# What is wanted of the higher derivatives: blocks of the Hessian, or of the stiffness, for a sink; or, where `add` is
# NULL, the derivative of either, twice along a, added to out.
cdef struct Derivative:
    AddBlock add
    void* sink
    const double* a
    double* out
    bint positive             # of the stiffness


cdef class SmoothForce(Operation):
    # The contributions of all terms. 0, or the fault of the sink.
    cdef int higher(self, World* world, const Derivative* wanted) noexcept nogil
