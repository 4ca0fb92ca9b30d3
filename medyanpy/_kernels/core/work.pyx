"""Heat and shadow work: what the letters of a word do to the kinetic energy.

After every letter the kinetic energy is measured. What O has changed is heat; what the other letters have, together
with the change of the potential energy, which whoever reads the tallies adds, is the work of the integrator
(Sivak, Chodera & Crooks, Phys. Rev. X 3, 011007 (2013)). Each sum carries what its rounding has lost (Neumaier), so
that a tally of 10^9 steps is as exact as one of 10.
"""
from medyanpy._kernels.core.program cimport Operation, World


def add_to(double[::1] tally, double term):
    """The same for Python: `tally` (2,) is a sum and its rest."""
    add(&tally[0], term)


cdef class KineticChange(Operation):
    """Adds to a tally by how much the kinetic energy has changed since it was last measured.

    Parameters
    ----------
    measure : Operation
        Writes kinetic energies to `energies`.
    energies : (m,) float array, pN nm
    last : (1,) float array, pN nm
        Their sum as last measured, by any operation that shares the array.
    tally : (2,) float array, pN nm
        The sum of the changes, and its rest.
    """
    cdef Operation measure
    cdef double[::1] energies
    cdef double[::1] last
    cdef double[::1] tally

    def __init__(self, Operation measure, double[::1] energies, double[::1] last, double[::1] tally):
        self.measure = measure
        self.energies = energies
        self.last = last
        self.tally = tally

    cdef int run(self, World* world) noexcept nogil:
        cdef double total = 0.0
        cdef Py_ssize_t k
        self.measure.run(world)
        for k in range(self.energies.shape[0]):
            total += self.energies[k]
        add(&self.tally[0], total - self.last[0])
        self.last[0] = total
        return 0
