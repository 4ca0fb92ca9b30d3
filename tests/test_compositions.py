"""Steps of order 4, 6 and 8, composed of symmetric steps of order 2: their weights, and what they do.

A symmetric step of order 2 is exp(h Y1 + h³ Y3 + h⁵ Y5 + ...) with operators Y that do not commute. A composition with
weights w is the product of exp(w h Y1 + w³ h³ Y3 + ...); it is of order p where that is exp(h Y1) up to h^p. Here both
are written out as series in words of the letters Y, which assumes no list of order conditions.
"""

import functools

import mpmath
import numpy as np
import pytest
from builders import refuses, system_with
from kicks.scenes import network, run

import medyanpy as mp
from medyanpy.core.words import COMPOSITIONS, weights_of
from medyanpy.kicks import Explicit, PushForwardNewmark

ALL = [(order, parts) for order, known in COMPOSITIONS.items() for parts in known]
# Weights that are free: of Kahan and Li's, whose choice makes errors small, the outermost.
FREE = {(6, 9): 1, (8, 17): 1}


@functools.cache
def words(degree):
    """Words of the letters 1, 3, 5, ... whose sum is up to a degree."""
    made, last = [()], [()]
    while last:
        last = [(*word, letter) for word in last for letter in range(1, degree + 1 - sum(word), 2)]
        made += last
    return made


def wrong(weights, degree, exactly):
    """By word of this degree: coefficient of the composition minus that of the exact flow."""
    total = {word: exactly(not word) for word in words(degree)}
    for weight in weights:
        powers = [exactly(1)]
        for _ in range(degree):
            powers.append(powers[-1] * weight)
        part = {word: powers[sum(word)] / mpmath.factorial(len(word)) for word in total}
        total = {word: sum(total[word[:k]] * part[word[k:]] for k in range(len(word) + 1)) for word in total}
    return {
        word: value - (1 / mpmath.factorial(degree) if set(word) == {1} else 0)
        for word, value in total.items() if sum(word) == degree
    }  # fmt: skip


def largest(weights, degree):
    return max(abs(value) for value in wrong(weights, degree, mpmath.mpf).values())


@pytest.mark.parametrize(("order", "parts"), ALL)
def test_order_conditions(order, parts):
    """Up to the order all words of the product have the coefficients of the exact flow, to the rounding of the weights;
    at the next odd degree they do not."""
    weights = weights_of(order, parts)
    assert len(weights) == parts
    assert weights == weights[::-1]
    with mpmath.workdps(40):
        exact = [mpmath.mpf(w) for w in weights]
        size = sum(abs(w) for w in exact)
        for degree in range(1, order + 1):
            assert largest(exact, degree) < 1e-16 * parts * size**degree
        assert largest(exact, order + 1) > 1e-4


@pytest.mark.parametrize(("order", "parts"), ALL)
def test_weights_are_those_of_the_conditions_to_the_last_bit(order, parts):
    """Newton's method in 40 digits, from the weights, for the conditions of all words: their doubles do not change."""
    half = weights_of(order, parts)[: parts // 2]
    free = FREE.get((order, parts), 0)
    with mpmath.workdps(40):
        start = [mpmath.mpf(w) for w in half]
        fixed = start[:free]

        def conditions(found):
            own = [*fixed, *found]
            whole = [*own, 1 - 2 * sum(own), *own[::-1]]
            return mpmath.matrix([v for d in range(3, order, 2) for v in wrong(whole, d, mpmath.mpf).values()])

        found = mpmath.matrix(start[free:])
        if (order, parts) == (4, 5):
            # All four alike, which is Suzuki's choice.
            found = mpmath.matrix([1 / (4 - mpmath.cbrt(4))] * 2)
        for _ in range(3 if (order, parts) != (4, 5) else 0):
            residual, step = conditions(found), mpmath.mpf(10) ** -20
            columns = []
            for k in range(len(found)):
                moved = found.copy()
                moved[k] += step
                columns.append((conditions(moved) - residual) / step)
            J = mpmath.matrix(len(residual), len(found))
            for k, column in enumerate(columns):
                for i in range(len(residual)):
                    J[i, k] = column[i]
            found -= mpmath.lu_solve(J, residual)
        assert max(abs(v) for v in conditions(found)) < mpmath.mpf(10) ** -30
        assert [float(w) for w in found] == pytest.approx(list(half[free:]), rel=2.3e-16, abs=0.0)


def orbit(n, integrator, kepler=0.3):
    """One turn of a planet of this eccentricity in n steps: the distance from where it began."""
    topology = mp.Topology()
    beads = topology.add_beads([[1.0 - kepler, 0.0, 0.0]], 1.0)
    system = system_with(topology, mp.forces.ExternalField(beads, "-1/sqrt(x^2 + y^2 + z^2)"))
    context = mp.Context(system, integrator(2.0 * np.pi / n), threads=1)
    context.runaway = None
    context.set_velocities([[0.0, np.sqrt((1.0 + kepler) / (1.0 - kepler)), 0.0]])
    context.step(n)
    return np.abs(context.get_state(positions=True).positions[0] - [1.0 - kepler, 0.0, 0.0]).max()


@pytest.mark.parametrize(("order", "parts", "steps"), [
    (4, 3, 320), (4, 5, 160), (6, 7, 160), (6, 9, 80), (8, 15, 44), (8, 17, 36),
])  # fmt: skip
@pytest.mark.parametrize("word", ["BAB", "ABA"])
def test_slopes(word, order, parts, steps):
    """Errors of an orbit fall as timestep^order between steps, 1.25 and 1.5625 times as many, above rounding."""
    def make(h):
        return mp.SplittingIntegrator(word, h, order=order, parts=parts)

    count = [steps, steps * 5 // 4, steps * 25 // 16]
    errors = np.array([orbit(n, make) for n in count])
    slope = -np.log(errors[2] / errors[0]) / np.log(count[2] / count[0])
    assert slope == pytest.approx(order, abs=0.45)
    assert errors[2] > 1e-12


@pytest.mark.parametrize(("order", "parts"), ALL)
def test_implicit_kicks_are_composed(order, parts):
    """Each copy has its own βh²: push-forward Newmark is of the same order, and runs backwards."""
    _, system = network()
    v = np.random.default_rng(5).normal(0.0, 0.3, (6, 3))
    integrators = [mp.SplittingIntegrator("BAB", 0.5 / n, kick=PushForwardNewmark(0.3), order=order, parts=parts)
                   for n in (2, 4)]  # fmt: skip
    exact, _ = run(system, Explicit(), 0.5 / 2000, 2000, v, order=4)
    ends = []
    for integrator, n in zip(integrators, (2, 4), strict=True):
        context = mp.Context(system, integrator, threads=1)
        context.set_velocities(v)
        context.step(n)
        ends.append(np.abs(context.get_state(positions=True).positions - exact).max())
    assert np.log2(ends[0] / ends[1]) > order - 1.2
    context.set_velocities(-context.get_state(velocities=True).velocities)
    context.step(4)
    start = system.topology.handles[0].positions
    assert np.abs(context.get_state(positions=True).positions - start).max() < 1e-11


def test_noise_stays_outside():
    letters = mp.SplittingIntegrator("OBABO", 1.0, kT=1.0, order=6).letters
    assert "".join(letter.kind for letter in letters) == "O" + 9 * "BAB" + "O"
    assert sum(letter.fraction for letter in letters if letter.kind == "A") == pytest.approx(1.0)


@pytest.mark.unstable
def test_up_to_which_frequency_each_is_stable():
    """`longest_flight` is 2 over the ωh up to which a harmonic mode stays bounded: at 0.99 of it, and not at 1.01."""
    for order, parts in ALL:
        limit = 2.0 / mp.SplittingIntegrator("BAB", 1.0, order=order, parts=parts).longest_flight()
        for share, bounded in ((0.99, True), (1.01, False)):
            topology = mp.Topology()
            beads = topology.add_beads([[1.0, 0.0, 0.0]], 1.0)
            system = system_with(topology, mp.forces.HarmonicTrap(beads, (share * limit) ** 2, [0.0, 0.0, 0.0]))
            context = mp.Context(system, mp.SplittingIntegrator("BAB", 1.0, order=order, parts=parts), threads=1)
            context.runaway = None
            farthest = 1.0
            for _ in range(300):
                context.step(10)
                farthest = max(farthest, np.abs(context.get_state(positions=True).positions).max())
                if farthest > 1e6:
                    break
            assert (farthest < 100.0, farthest > 1e6) == (bounded, not bounded)


def test_refusals_and_documents():
    make = mp.SplittingIntegrator
    for order in (3, 5, 7):
        refuses(mp.ParameterError, f"order = {order} but must be 2, 4, 6 or 8", make, "BAB", 0.1, order=order)
    refuses(mp.ParameterError, r"order = 10 but must be .*8", make, "BAB", 0.1, order=10)
    refuses(mp.ParameterError, "parts = 7 but must be 3 or 5 where order = 4", make, "BAB", 0.1, order=4, parts=7)
    refuses(mp.ParameterError, "parts = 3 but must be 1 where order = 2", make, "BAB", 0.1, parts=3)
    refuses(mp.ParameterError, "order=8 has a part that goes back in time", make, "BAOAB", 0.1, kT=1.0, order=8)
    for order, parts in ALL:
        one = mp.VerletIntegrator(0.1, order=order, parts=parts)
        assert mp.deserialize(mp.serialize(one)).letters == one.letters
        assert one.parts == parts
        assert (f"parts={parts}" in repr(one)) == (parts in (5, 7, 15))
