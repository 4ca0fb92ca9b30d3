"""ExternalField: expressions, their derivatives, and what is refused. Forces: test_contract.py too."""


import mpmath
import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.forces import ExternalField, HarmonicTrap


def context_of(x, *forces, threads=1):
    topology = mp.Topology()
    topology.add_beads(x, mass=1.0)
    return mp.Context(system_with(topology, *forces), mp.VerletIntegrator(1e-3), threads=threads)


def look(x, *forces, threads=1, energy=True):
    return context_of(x, *forces, threads=threads).get_state(forces=True, energy=energy)


# Expressions with everything in them, and what mpmath makes of them: it differentiates by differences with 60 digits.
EXPRESSIONS = {
    "(exp(-a*(1-cos(x)-b))-1)^2": lambda x, y, z, a, b: (mpmath.exp(-a * (1 - mpmath.cos(x) - b)) - 1) ** 2,
    "a*exp(-x*y**2)*sin(b*z + x)/(2 + cos(y*z))": lambda x, y, z, a, b: (
        a * mpmath.exp(-x * y**2) * mpmath.sin(b * z + x) / (2 + mpmath.cos(y * z))
    ),
    "log(a + x*x + b*y*z)*sqrt(1 + x**2*y**2 + z^4)": lambda x, y, z, a, b: (
        mpmath.log(a + x * x + b * y * z) * mpmath.sqrt(1 + x**2 * y**2 + z**4)
    ),
    "x**-3*y + b*(y*z)^-2 - a/(x*y*z)": lambda x, y, z, a, b: x**-3 * y + b * (y * z) ** -2 - a / (x * y * z),
    "-x^3*y^2*z + a*x*y*z - b*y^5": lambda x, y, z, a, b: -(x**3) * y**2 * z + a * x * y * z - b * y**5,
    "exp(log(x*y)*a/3)+b*exp(exp(-z))": lambda x, y, z, a, b: (
        mpmath.exp(mpmath.log(x * y) * a / 3) + b * mpmath.exp(mpmath.exp(-z))
    ),
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_three_derivatives_are_exact(text):
    rng = np.random.default_rng(6)
    n, function = 5, EXPRESSIONS[text]
    x, direction = rng.uniform(0.5, 1.6, (n, 3)), rng.normal(size=(n, 3))
    a, b = 3.0, np.linspace(0.2, 0.9, n)
    # Numbers of the beads in another order than their own.
    order = rng.permutation(n)
    context = context_of(x, ExternalField(order, text, a=a, b=b[np.argsort(np.argsort(order))][order]))
    b = b[np.argsort(np.argsort(order))]
    state = context.get_state(forces=True, energy=True)
    hessian = context.hessian().toarray().reshape(n, 3, n, 3)
    third = context.third_derivative(direction)
    energy = 0.0
    with mpmath.workdps(60):
        for i in range(n):
            at = [mpmath.mpf(float(c)) for c in x[i]]
            numbers = mpmath.mpf(a), mpmath.mpf(float(b[i]))

            def along(*coordinates, at=at, numbers=numbers):
                powers = [coordinates.count(c) for c in range(3)]
                return float(mpmath.diff(lambda *x: function(*x, *numbers), at, powers))

            energy += float(function(*at, *numbers))
            first = np.array([along(c) for c in range(3)])
            second = np.array([[along(c, d) for d in range(3)] for c in range(3)])
            contracted = np.array(
                [
                    sum(along(c, d, e) * direction[i, d] * direction[i, e] for d in range(3) for e in range(3))
                    for c in range(3)
                ]
            )
            for mine, right in ((-state.forces[i], first), (hessian[i, :, i], second), (third[i], contracted)):
                np.testing.assert_allclose(mine, right, rtol=2e-13, atol=2e-13 * np.abs(right).max())
    assert state.potential_energy == pytest.approx(energy, rel=1e-14)
    for i in range(n):
        hessian[i, :, i] = 0.0
    assert (hessian == 0.0).all()


def test_it_is_the_force_that_it_writes():
    x = np.random.default_rng(1).normal(size=(70, 3))
    k, o = [1.5, 0.0, 3.0], np.random.default_rng(2).normal(size=(70, 3))
    trap = look(x, HarmonicTrap(np.arange(70), k, o))
    u = "kx/2*(x - a)^2 + kz/2*(z - c)^2"
    mine = look(x, ExternalField(np.arange(70), u, kx=1.5, kz=3.0, a=o[:, 0], c=o[:, 2]))
    np.testing.assert_allclose(mine.forces, trap.forces, rtol=0.0, atol=2e-15 * np.abs(trap.forces).max())
    assert mine.potential_energy == pytest.approx(trap.potential_energy, rel=1e-14)


@pytest.mark.parametrize("n", [1, 15, 16, 17, 2047, 2048, 2049, 6150])
def test_force_on_a_bead_depends_on_it_alone(n):
    """Not on how many there are, how many share its vector, or threads; and energies are sums."""
    x = np.random.default_rng(n).uniform(0.1, 2.0, (n, 3))
    depth = np.linspace(1.0, 2.0, n)

    def make(of):
        return ExternalField(of, "depth*exp(-x)*cos(y)/z", depth=depth[of])

    all_beads = np.arange(n)
    whole = look(x, make(all_beads))
    expected = depth * np.exp(-x[:, 0]) * np.cos(x[:, 1]) / x[:, 2]
    assert whole.potential_energy == pytest.approx(expected.sum(), rel=1e-12)
    for threads in (2, 3):
        other = look(x, make(all_beads), threads=threads)
        assert other.forces.tobytes() == whole.forces.tobytes()
        assert other.potential_energy == whole.potential_energy
    assert look(x, make(all_beads), energy=False).forces.tobytes() == whole.forces.tobytes()
    some = np.random.default_rng(3).permutation(n)[: max(1, n // 3)]
    part = look(x, make(some)).forces
    assert part[some].tobytes() == whole.forces[some].tobytes()
    assert (np.delete(part, some, axis=0) == 0.0).all()
    assert (look(x, make(all_beads), ExternalField(all_beads, "depth*exp(-x)*cos(y)/z", depth=depth)).forces
            == 2.0 * whole.forces).all()  # fmt: skip


def test_words():
    force = ExternalField([0, 2], "k*(x^2 + y^2) - m*z", k=[1.0, 1.0 / 3.0], m=0.7)
    assert repr(force) == "ExternalField('k*(x^2 + y^2) - m*z', k=[1, 0.333333], m=0.7)"
    assert repr(ExternalField([0], "x")) == "ExternalField('x')"


def test_run_stops_where_the_energy_is_not_a_number():
    context = context_of(np.array([[5.0, 0, 0], [1.0, 0, 0]]), ExternalField([0, 1], "-log(x)", name="pole"))
    context.set_velocities([[0.0, 0, 0], [-400.0, 0, 0]])
    with pytest.raises(mp.SimulationError) as caught:
        context.step(10)
    assert (caught.value.bead, caught.value.force) == (1, "pole")


def test_a_pendulum_has_the_period_of_its_elliptic_integral():
    from scipy.special import ellipk

    topology = mp.Topology()
    topology.add_beads([[2.0, 0, 0]], mass=1.0)
    context = mp.Context(system_with(topology, ExternalField([0], "g*(1 - cos(x))", g=1.0)), mp.VerletIntegrator(1e-3))
    period = 4.0 * ellipk(np.sin(1.0) ** 2)
    context.step(round(period / 1e-3))
    state = context.get_state(positions=True, velocities=True)
    # At the turning point again, and past it by a part of a step.
    assert state.positions[0, 0] == pytest.approx(2.0, abs=2e-6)
    assert abs(state.velocities[0, 0]) < 1e-3


@pytest.mark.parametrize(("text", "numbers", "message"), [
    ("k*w", {"k": 1.0}, r"'w' at column 3 of 'k\*w' is unknown: there are x, y, z and k"),
    ("x", {"k": 1.0}, "ExternalField: the parameter k is not in 'x'"),
    ("exp*x", {"exp": 1.0}, "exp is a function and cannot be a parameter"),
    ("x*y", {"y": 1.0}, "y is a coordinate and cannot be a parameter"),
    ("x*lambda", {"lambda": 1.0}, "lambda is a word of Python and cannot be a parameter"),
    ("k + 2", {"k": 1.0}, "does not depend on x, y or z"),
    ("x**w", {}, "'w' at column 4 of 'x[*][*]w' is unknown"),
    ("tanx(x)", {}, r"'tanx\(x\)' at column 1 .* is not part of an expression: .*did you mean 'tan'"),
    ("sin(x, y)", {}, "is not part of an expression"),
    ("sin", {}, "'sin' at column 1 of 'sin' is unknown"),
    ("x.real", {}, "is not part of an expression"),
    ("x < 1", {}, "is not part of an expression"),
    ("x +", {}, "cannot read 'x \\+'"),
    ("x/(1 - 1)", {}, "is zero and divides"),
    (3.0, {}, "ExternalField: energy must be text or a SymPy expression, not 3.0"),
])  # fmt: skip
def test_refusals(text, numbers, message):
    refuses(mp.ParameterError, message, ExternalField, [0, 1], text, **numbers)


def test_beads_that_are_refused():
    for beads, message in (([0, 31], "bead 31 does not exist"), ([1, 1], "bead 1 is named twice")):
        refuses(mp.TopologyError, message, look, np.zeros((2, 3)), ExternalField(beads, "x^2"))


@pytest.mark.parametrize("text", [
    "k*max(0, r - R)^2; r = sqrt(x^2 + y^2 + z^2)", "k*step(r - R)*(r - R)^2; r = sqrt(x^2 + y^2 + z^2)",
    "k*r^2 + 0*R; r = sqrt(x^2 + y^2 + z^2)", "k*(r - R)^2; r = sqrt(x^2 + y^2)",
])  # fmt: skip
def test_a_bead_at_the_centre_of_a_container_runs(text):
    """Also where the numbers are those of each bead."""
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], mass=1e-9, friction=1e-5)
    for k in (2.0, [2.0, 0.0]):
        context = mp.Context(system_with(topology, mp.forces.ExternalField(beads, text, k=k, R=5.0)),
                             mp.SplittingIntegrator("BAOAB", 1e-6, temperature=300.0, seed=1), threads=1)  # fmt: skip
        np.testing.assert_array_equal(context.get_state(forces=True).forces, np.zeros((2, 3)))
        assert np.isfinite(context.hessian().toarray()).all()
        assert np.isfinite(context.third_derivative(np.ones((2, 3)))).all()
        context.step(3)
