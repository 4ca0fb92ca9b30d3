"""Transitions at rates that are written as text: of beads between species, and of links that let go.

Rates are programs of core/expressions.pxd. Attempts come at the bound that a user gives, `most`, for each bead of the
species, or each link, and each goes on with the share rate/most (thinning): waiting times are exact, and nothing is
done for beads and links at which nothing is tried. A rate above the bound ends the run.
"""
from libc.math cimport INFINITY
from libc.stdint cimport int32_t
from libc.stdlib cimport free, realloc

from medyanpy._kernels.beads.points cimport place as derive_places
from medyanpy._kernels.core.box cimport nearest_image
from medyanpy._kernels.core.elementary cimport log_
from medyanpy._kernels.core.expressions cimport Compiled, Function, WIDTH, evaluate
from medyanpy._kernels.core.parallel cimport record_fault
from medyanpy._kernels.core.program cimport RATE_ABOVE_BOUND, World
from medyanpy._kernels.jumps.grounds cimport Spot
from medyanpy._kernels.jumps.jump cimport MOST_DRAWS, Draws, JumpOperation, draw_two, wait
from medyanpy._kernels.jumps.link_binding cimport Binding, LinkBinding, distance_of, energy_of, slope_of
from medyanpy._kernels.jumps.point_reactions cimport PointReactions

# How far a rate may be above its bound by rounding.
cdef double ROUNDING = 1e-9


cdef struct Written:
    const Function* function
    double* registers


cdef void _compute(const Written* written, const double* given, int n) noexcept nogil:
    """Evaluate a program of n numbers."""
    cdef double* r = written.registers + WIDTH * written.function.n_constants
    cdef int c, k
    for c in range(n):
        for k in range(WIDTH):
            r[WIDTH * c + k] = given[c]
    evaluate(written.function, written.registers)


cdef double _result(const Written* written, int which) noexcept nogil:
    return written.registers[WIDTH * written.function.outputs[which]]


cdef int _checked(World* world, double rate, double most, long long bead) noexcept nogil:
    """0, or a fault where a rate is not from 0 to its bound."""
    if 0.0 <= rate <= most * (1.0 + ROUNDING):
        return 0
    world.fault.value = rate
    return record_fault(world, RATE_ABOVE_BOUND, bead, -1)


cdef class WrittenTurns(PointReactions):
    """Changes of species, each at a rate of x, y, z. See `PointReactions`."""
    cdef list kept
    cdef Written* laws        # by reaction: programs of the rates there and back
    cdef double highest       # 1/s

    def __dealloc__(self):
        free(self.laws)

    def set_rates(self, double most, list programs):
        """Take the bound (1/s) of all rates, and for each reaction a program of its rate and that of its way back, 0
        without."""
        cdef Compiled one
        cdef Py_ssize_t i
        cdef Written* grown = <Written*> realloc(self.laws, (len(programs) + 1) * sizeof(Written))
        if grown == NULL:
            raise MemoryError
        self.laws = grown
        self.kept = [Compiled(*program, 1) for program in programs]
        for i, one in enumerate(self.kept):
            grown[i] = Written(&one.function, &one.registers[0, 0])
        self.highest = most

    cdef int thin(self, World* world, Py_ssize_t which, int32_t place, const Spot* spot, Draws* draws,
                  double* affinity, bint* goes) noexcept nogil:
        cdef const Written* law = &self.laws[which]
        cdef double x[3]
        cdef double u[2]
        cdef double rate, back
        cdef int fault
        self.ground.where(world, spot, x)
        nearest_image(&world.box, x)
        _compute(law, x, 3)
        rate = _result(law, 0)
        fault = _checked(world, rate, self.highest, place)
        if fault != 0:
            return fault
        draw_two(draws, u)
        goes[0] = u[0] * self.highest < rate
        back = _result(law, 1)
        affinity[0] = log_(rate / back) if goes[0] and back > 0.0 else INFINITY
        return 0


cdef class LinkTransitions(JumpOperation):
    """Links of another jump that let go, each at a rate of its length, tension and energy.

    Parameters
    ----------
    name, kT, every
        See `JumpOperation`.
    """
    cdef readonly LinkBinding binding
    cdef public object partner   # the jump that it belongs to
    cdef Compiled kept
    cdef Written written
    cdef double highest          # 1/s

    def __init__(self, str name, double kT, int every):
        self.describe(name, kT, True, every)

    def set_rates(self, double kT, double most, tuple program):
        """Take the bound (1/s), and a program of the rate."""
        self.kT = kT
        self.highest = most
        self.kept = Compiled(*program, 1)
        self.written = Written(&self.kept.function, &self.kept.registers[0, 0])

    def act_on(self, LinkBinding binding not None):
        self.binding = binding

    cdef int act(self, World* world, double h, Draws* draws) noexcept nogil:
        cdef double u[2]
        cdef double t = 0.0
        cdef bint begun = False
        cdef int fault = 0
        while fault == 0 and wait(draws, self.highest * self.binding.numbers[0], h, &t, u):
            if not begun and self.binding.on_points:
                fault = derive_places(world)
                if fault != 0:
                    return fault
            if not begun:
                self.binding.sites.follow(world)
            begun = True
            self.counts[0] += 1
            fault = self.attempt(world, t, u[1], draws)
        return fault

    cdef int attempt(self, World* world, double t, double share, Draws* draws) noexcept nogil:
        """Try a link, of which the share is uniform."""
        cdef const Binding* task = &self.binding.task
        cdef Py_ssize_t p = task.partners, n = task.n * p, i, j
        cdef Py_ssize_t s = min(<Py_ssize_t> (share * n), n - 1)
        cdef double x[3]
        cdef double u[2]
        cdef double rate, tension
        cdef int fault
        # Each link is in two slots, of which that at its lower site counts.
        while not (s < task.end[s // p] and s // p < task.other[s]):
            if draws.next > MOST_DRAWS:
                return 0
            draw_two(draws, u)
            s = min(<Py_ssize_t> (u[0] * n), n - 1)
        i, j = s // p, task.other[s]
        x[0] = distance_of(task, world, i, j)
        x[1] = slope_of(&task.rule, x[0])
        x[2] = energy_of(&task.rule, x[0], &tension)
        _compute(&self.written, x, 3)
        rate = _result(&self.written, 0)
        fault = _checked(world, rate, self.highest, -1)
        if fault != 0:
            return fault
        draw_two(draws, u)
        if not u[0] * self.highest < rate:
            return 0
        self.binding.part(i, s)
        self.binding.changed_at(world, i, j)
        return self.happened(world, t, 0, i, j, -x[2], 0.0, INFINITY)
