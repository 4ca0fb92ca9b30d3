"""Programs of expressions.pxd with what they need to run."""
import numpy as np

from medyanpy._kernels.core.arrays cimport table, vector


cdef class Compiled:
    """A program, and registers for each of some blocks. Instructions leave constants alone: they are written once."""

    def __init__(self, const int32_t[:, ::1] instructions, const double[::1] constants, const int32_t[::1] outputs,
                 Py_ssize_t n_registers, Py_ssize_t blocks):
        cdef Function* f = &self.function
        cdef Py_ssize_t i
        self.arrays = []
        f.instructions = table(self.arrays, instructions)
        f.n = instructions.shape[0]
        f.constants = vector(self.arrays, constants)
        f.n_constants = constants.shape[0]
        f.outputs = vector(self.arrays, outputs)
        f.n_registers = n_registers
        self.registers = np.zeros((blocks, WIDTH * n_registers))
        for i in range(blocks):
            prepare(f, &self.registers[i, 0])
