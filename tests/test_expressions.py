"""Functions in expressions: values and three derivatives against mpmath, choices, what is refused, and SymPy."""

import importlib

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy._kernels import selected
from medyanpy.surfaces.expressions import FUNCTIONS, Graph, parse
from medyanpy.surfaces.texts import as_text

mpmath = pytest.importorskip("mpmath")

# How many points of each function.
POINTS = 24


def powers(rng, lowest, highest, signs=True):
    return (rng.choice([-1.0, 1.0], POINTS) if signs else 1.0) * 2.0 ** rng.uniform(lowest, highest, POINTS)


def to_one(rng):
    """Of both signs: small ones, and such that are nearly 1."""
    return np.concatenate([powers(rng, -40, 0), (1.0 - powers(rng, -30, -2, False)) * rng.choice([-1.0, 1.0], POINTS)])


def power_of(exponent):
    return lambda x: mpmath.power(x, mpmath.mpf(exponent))


# Text, what mpmath makes of it, and arguments: small, large, and near to where digits could be lost.
ONE = {
    "sqrt(x)": (mpmath.sqrt, lambda rng: powers(rng, -60, 60, False)),
    "exp(x)": (mpmath.exp, lambda rng: powers(rng, -40, 9)),
    "log(x)": (mpmath.log, lambda rng: np.concatenate([powers(rng, -99, 99, False), 1.0 + powers(rng, -30, -2)])),
    "sin(x)": (mpmath.sin, lambda rng: powers(rng, -40, 20)),
    "cos(x)": (mpmath.cos, lambda rng: powers(rng, -40, 20)),
    "tan(x)": (mpmath.tan, lambda rng: powers(rng, -40, 20)),
    "sec(x)": (mpmath.sec, lambda rng: powers(rng, -40, 20)),
    "csc(x)": (mpmath.csc, lambda rng: powers(rng, -40, 20)),
    "cot(x)": (mpmath.cot, lambda rng: powers(rng, -40, 20)),
    "asin(x)": (mpmath.asin, to_one),
    "acos(x)": (mpmath.acos, to_one),
    "atan(x)": (mpmath.atan, lambda rng: powers(rng, -40, 40)),
    "sinh(x)": (mpmath.sinh, lambda rng: powers(rng, -40, 9.4)),
    "cosh(x)": (mpmath.cosh, lambda rng: powers(rng, -40, 9.4)),
    "tanh(x)": (mpmath.tanh, lambda rng: powers(rng, -40, 8)),
    "asinh(x)": (mpmath.asinh, lambda rng: powers(rng, -40, 60)),
    "acosh(x)": (mpmath.acosh, lambda rng: 1.0 + powers(rng, -30, 60, False)),
    "atanh(x)": (mpmath.atanh, to_one),
    "erf(x)": (mpmath.erf, lambda rng: powers(rng, -40, 4.6)),
    "erfc(x)": (mpmath.erfc, lambda rng: powers(rng, -40, 4.6)),
    "square(x)": (lambda x: x * x, lambda rng: powers(rng, -40, 40)),
    "cube(x)": (lambda x: x**3, lambda rng: powers(rng, -40, 40)),
    "recip(x)": (lambda x: 1 / x, lambda rng: powers(rng, -40, 40)),
    "x^1.5": (power_of(1.5), lambda rng: powers(rng, -60, 60, False)),
    "x**(-5/2)": (power_of(-2.5), lambda rng: powers(rng, -60, 60, False)),
    "x^0.3": (power_of(0.3), lambda rng: powers(rng, -200, 200, False)),
    "x^-7.7": (power_of(-7.7), lambda rng: powers(rng, -80, 80, False)),
    "x^x": (lambda x: x**x, lambda rng: powers(rng, -40, 7, False)),
    "2.5^x": (lambda x: mpmath.power(2.5, x), lambda rng: powers(rng, -40, 9)),
    "2^-x^2": (lambda x: mpmath.power(2, -x * x), lambda rng: powers(rng, -40, 3)),
}


def graph_of(text, *others):
    graph = Graph(len(others))
    return graph, parse("test", text, graph, dict(zip(others, graph.others, strict=True)), polynomial=False)


def evaluate(text, *columns):
    graph, u = graph_of(text)
    columns = np.broadcast_arrays(*columns, *[np.zeros(1)] * (3 - len(columns)))
    return graph.evaluate([u], [np.array(c, float) for c in columns])[0]


def derivative(exact, at, k):
    """By differences with many digits; 0 outside of the domain."""
    value = mpmath.diff(exact, at, k, h=abs(at) * mpmath.mpf(10) ** -26) if k else exact(at)
    return value if mpmath.im(value) == 0 and mpmath.isfinite(value) else mpmath.mpf(0)


@pytest.mark.parametrize("text", ONE)
def test_functions_and_their_three_derivatives_are_those_of_mpmath(text):
    """To 1e-14 of the value; near a zero, of the values on both sides of it."""
    exact, points = ONE[text]
    x = points(np.random.default_rng(5))
    graph, u = graph_of(text)
    derivatives = [u]
    for _ in range(3):
        derivatives.append(graph.derivative(derivatives[-1], 0))
    zero = np.zeros(len(x))
    found = graph.evaluate(derivatives, [x, zero, zero])
    checked = 0
    with mpmath.workdps(130):
        for i, at in enumerate(x):
            at = mpmath.mpf(float(at))
            for k in range(4):
                right, before, after = (derivative(exact, at * mpmath.mpf(f), k) for f in ("1", "0.9", "1.1"))
                # Not where the result is subnormal or overflows.
                if 1e-290 < abs(right) < 1e300:
                    error = abs(mpmath.mpf(float(found[k][i])) - right)
                    assert error <= 1e-14 * max(abs(right), min(abs(before), abs(after))), (k, float(at))
                    checked += 1
    assert checked > 2 * len(x)


def test_every_function_is_looked_at():
    """Here those of one argument; the others below."""
    others = {"atan2", "abs", "floor", "ceil", "step", "min", "max", "select"}
    assert {text[:-3] for text in ONE if text.endswith("(x)")} == set(FUNCTIONS) - others


@pytest.mark.parametrize(("text", "exact"), [
    ("atan2(y, x)", mpmath.atan2),
    ("atan2(y*y - 3*x, x + 2*y)", lambda y, x: mpmath.atan2(y * y - 3 * x, x + 2 * y)),
    ("abs(x)^y", lambda y, x: mpmath.power(abs(x), y)),
    ("abs(y)^(x - y)", lambda y, x: mpmath.power(abs(y), x - y)),
])  # fmt: skip
def test_functions_of_two_numbers_have_exact_derivatives(text, exact):
    rng = np.random.default_rng(7)
    x, y = rng.normal(0.0, 2.0, (2, 30))
    graph, u = graph_of(text)
    nodes = {(0, 0): u}
    for i in range(4):
        for j in range(4 - i):
            if i + j:
                nodes[i, j] = graph.derivative(nodes[i - 1, j], 0) if i else graph.derivative(nodes[i, j - 1], 1)
    found = dict(zip(nodes, graph.evaluate(list(nodes.values()), [x, y, np.zeros(30)]), strict=True))
    with mpmath.workdps(60):
        for (i, j), values in found.items():
            right = [
                float(mpmath.diff(exact, (mpmath.mpf(b), mpmath.mpf(a)), (j, i)))
                for a, b in zip(x.tolist(), y.tolist(), strict=True)
            ]
            np.testing.assert_allclose(values, right, rtol=1e-13, atol=1e-14 * np.abs(right).max(), err_msg=f"{i} {j}")


def test_choices_are_what_openmm_makes_of_them():
    x = np.array([-2.5, -1.0, -0.0, 0.0, 0.5, 1.0, 3.0])
    same = np.testing.assert_array_equal
    same(evaluate("step(x)", x), [0, 0, 1, 1, 1, 1, 1])
    same(evaluate("abs(x)", x), np.abs(x))
    same(evaluate("floor(x)", x), np.floor(x))
    same(evaluate("ceil(x)", x), np.ceil(x))
    same(evaluate("min(x, 1)", x), np.minimum(x, 1))
    same(evaluate("max(x, y, 1/4)", x, x[::-1]), np.maximum(np.maximum(x, x[::-1]), 0.25))
    same(evaluate("select(x, 10, 20)", x), [10, 10, 20, 20, 10, 10, 10])
    same(evaluate("select(step(x - 1), x^2, -x)", x), np.where(x >= 1, x**2, -x))
    same(evaluate("cos(pi)", x), -np.ones(7))


def test_kinks_have_the_derivative_of_the_branch_taken():
    x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    columns = [x, np.ones(5), np.zeros(5)]

    def slope(text, times=1):
        graph, u = graph_of(text)
        for _ in range(times):
            u = graph.derivative(u, 0)
        return np.array(graph.evaluate([u], columns)[0])

    np.testing.assert_array_equal(slope("abs(x)"), [-1, -1, 1, 1, 1])
    np.testing.assert_array_equal(slope("max(x^2, y)"), [-4, -2, 0, 2, 4])
    np.testing.assert_array_equal(slope("min(x^2, y)"), [0, -2, 0, 2, 0])
    np.testing.assert_array_equal(slope("min(x^2, y)", 2), [0, 2, 2, 2, 0])
    np.testing.assert_array_equal(slope("select(x, x^3, y)"), [12, 3, 0, 3, 12])
    for text in ("step(x)", "floor(x)", "ceil(x)"):
        graph, u = graph_of(text)
        assert graph.value_of(graph.derivative(u, 0)) == 0.0


def test_unselected_branches_may_be_nan():
    """Nor infinite: a Hertzian contact has finite derivatives where nothing touches, and where it begins to."""
    x = np.array([-1.0, 0.0, 4.0])
    for text in ("max(x, 0)^2.5", "select(step(x), x^2.5, 0)", "select(step(x), x^(10/4), x - x)"):
        graph, u = graph_of(text)
        nodes = [u]
        for _ in range(3):
            nodes.append(graph.derivative(nodes[-1], 0))
        found = graph.evaluate(nodes, [x, x, x])
        np.testing.assert_allclose(found[:3], [[0, 0, 32], [0, 0, 20], [0, 0, 7.5]], rtol=1e-15)
        # What lies beyond is infinite at contact alone.
        assert found[3][[0, 2]].tolist() == [0.0, 0.9375]
    np.testing.assert_array_equal(evaluate("select(step(x), log(x + 1), 7)", x - 1), [7, 7, np.log(4)])


@pytest.mark.parametrize("text", ["log(x)", "sqrt(x)", "x^0.3", "x^1.5", "acosh(x)", "asin(x - 2)", "acos(x - 2)",
                                  "atanh(x - 2)", "min(sqrt(x), 3)", "max(3, sqrt(x))", "step(sqrt(x))", "abs(log(x))",
                                  "select(sqrt(x), 1, 2)", "select(1 - sqrt(x), 1, x)", "floor(sqrt(x))",
                                  "atan2(sqrt(x), 1)", "tanh(sqrt(x))", "erf(sqrt(x))"])  # fmt: skip
def test_nan_stays_nan_and_ends_a_run(text):
    topology = mp.Topology()
    beads = topology.add_beads([[2.0, 0.0, 0.0], [-0.5, 0.0, 0.0]], mass=1.0)
    system = system_with(topology, mp.forces.ExternalField(beads, f"{text} + x", name="pole"))
    assert np.isnan(evaluate(text, [2.0, -0.5])).tolist() == [False, True]
    with pytest.raises(mp.SimulationError) as caught:
        mp.Context(system, mp.VerletIntegrator(1e-3)).step(1)
    assert (caught.value.bead, caught.value.force) == (1, "pole")


def test_powers_by_parameters_take_negative_numbers_where_they_are_whole():
    graph, u = graph_of("x^n", "n")
    x, n = np.array([-2.0, -2.0, -2.0, 2.0, 0.0]), np.array([3.0, -2.0, 0.5, 0.5, 2.0])
    zero = np.zeros(5)
    value, slope = graph.evaluate([u, graph.derivative(u, 0)], [x, zero, zero, n])
    np.testing.assert_allclose(value, [-8.0, 0.25, np.nan, np.sqrt(2.0), 0.0], rtol=1e-15)
    np.testing.assert_allclose(slope, [12.0, 0.25, np.nan, 0.5 / np.sqrt(2.0), 0.0], rtol=1e-15)


def test_bits_are_those_of_every_instruction_set():
    """Every instruction of the machine, in each variant that is built, for chunks that are full and not."""
    texts = [text for text in ONE if text != "2^-x^2"]
    texts += ["atan2(y, x)", "min(x, y)", "max(x, y)", "abs(x)", "floor(y)", "step(x)", "select(step(x), y, 2)", "x^y"]
    x = np.random.default_rng(8).normal(0.0, 2.0, (53, 3))
    graph = Graph()
    nodes = []
    for text in texts:
        u = parse("test", text, graph, {}, polynomial=False)
        nodes += [u, *graph.gradient(u), *graph.hessian(u), *graph.third(u)]
    program = graph.program(nodes)
    results = {}
    for name in selected.built:
        kernel = importlib.import_module(f"medyanpy._kernels.{name}.surface_constraints")
        results[name] = kernel.Evaluator(*program)(x)
        one_by_one = np.concatenate([kernel.Evaluator(*program)(x[i : i + 1]) for i in range(len(x))])
        np.testing.assert_array_equal(one_by_one, results[name])
    first = results[selected.built[0]]
    assert np.isfinite(first).mean() > 0.5
    for other in results.values():
        assert np.isnan(other).tobytes() == np.isnan(first).tobytes()
        assert np.nan_to_num(other, nan=0.0).tobytes() == np.nan_to_num(first, nan=0.0).tobytes()


def test_names_behind_semicolons_are_what_they_are_given():
    x, y = np.random.default_rng(9).normal(size=(2, 5))
    found = evaluate("k*(r - 1)^2 ; r = sqrt(q);q=x*x + y^2; k = 3/2;", x, y)
    np.testing.assert_array_equal(found, evaluate("3/2*(sqrt(x*x + y^2) - 1)^2", x, y))


@pytest.mark.parametrize(("text", "message"), [
    ("tanx(x)", r"'tanx\(x\)' at column 1 of 'tanx\(x\)' .*no function tanx: did you mean 'tan'\?"),
    ("x + Sinh(x)", r"'Sinh\(x\)' at column 5 .*no function Sinh: did you mean 'sinh'\?"),
    ("qqq(x)", r"no function qqq: there are sqrt, exp, log, .*select"),
    ("delta(x)", r"no function delta: it is 0 but in single points, where no bead ever is"),
    ("pow(x, 2)", r"no function pow: write x\^y"),
    ("atan2(x)", r"'atan2\(x\)' at column 1 .* atan2 takes 2 arguments, not 1"),
    ("x*select(x, y)", r"'select\(x, y\)' at column 3 .* select takes 3 arguments, not 2"),
    ("min(x)", "min takes 2 arguments or more, not 1"),
    ("exp(x, y)", "exp takes 1 argument, not 2"),
    ("(x, y)", "',' at column 3 .* is not part of"),
    ("sin((x, y))", "',' at column 7 .* is not part of"),
    ("x, y", "',' at column 2 .* is not part of"),
    ("min(x,)", r"'\)' at column 7 .* is not part of"),
    ("min(, x)", "',' at column 5 .* is not part of"),
    ("depht*x", "'depht' at column 1 .* is unknown: there are x, y, z and depth; did you mean 'depth'"),
    ("(-2)^x", r"'\(-2\)' at column 1 .* is negative, and only whole numbers may be its powers"),
    ("x + recip(1 - 1)", r"'recip\(1 - 1\)' at column 5 .* divides by zero"),
    ("0^-0.5*x", "'0' at column 1 .* is zero and divides"),
    ("x; y", "'y' at column 4 .* is not a definition, such as 'r = x - a'"),
    ("x; = y", "is not a definition"),
    ("x*r; 2r = y", "'2r = y' at column 6 .* is not a definition"),
    ("x; y = 2", "'y' at column 4 of .* cannot be defined: it is a coordinate"),
    ("x; depth = 2", "'depth' at column 4 .* cannot be defined: it is given"),
    ("x*r; r = 1; r = 2", "'r' at column 6 .* cannot be defined: it is given"),
    ("x; sin = 2", "'sin' at column 4 .* cannot be defined: it is a function"),
    ("x*r; r = s; s = r", "'r' at column 17 .* is unknown"),
    ("x*r; r = (y", "the parenthesis at column 10 is not closed"),
    ("x*r; r = y +", "ends where a number or a name should follow"),
])  # fmt: skip
def test_refusals_say_what_and_where(text, message):
    graph = Graph()
    refuses(mp.ParameterError, message, parse, "test", text, graph, {"depth": graph.number(2.0)}, polynomial=False)


def test_a_parameter_may_be_named_pi_but_not_as_a_function():
    topology = mp.Topology()
    beads = topology.add_beads([[1.0, 0, 0]], mass=1.0)
    system = system_with(topology, mp.forces.ExternalField(beads, "pi*x", pi=2.0, name="mine"),
                         mp.forces.ExternalField(beads, "pi*x", name="pi"))  # fmt: skip
    state = mp.Context(system, mp.VerletIntegrator(1e-3)).get_state(energy=True)
    assert state.energies == {"mine": 2.0, "pi": np.pi}
    with pytest.raises(mp.ParameterError, match="tanh is a function and cannot be a parameter"):
        mp.forces.ExternalField(beads, "tanh*x", tanh=1.0)


# SymPy ---------------------------------------------------------------------------------------------------------------


def sympy_cases():
    sympy = pytest.importorskip("sympy")
    x, y = sympy.symbols("x y")
    one = [f"{name}(x)" for name in
           "exp log sin cos tan sec csc cot atan acot sinh cosh tanh sech csch coth asinh acsch erf erfc "
           "floor ceiling frac sign Abs Heaviside sinc".split()]  # fmt: skip
    cases = [sympy.sympify(text) for text in one]
    cases += [f((x - 1) / 4) for f in (sympy.asin, sympy.acos, sympy.atanh)]
    cases += [f(4 + x**2) for f in (sympy.acosh, sympy.asec, sympy.acsc, sympy.acoth, sympy.sqrt)]
    cases += [
        sympy.asech(1 / (1 + x**2)), sympy.atan2(y, x), sympy.Min(x, y, 1), sympy.Max(x, sympy.pi / 4),
        sympy.Mod(x, y**2 + 1), sympy.cbrt(x**2), (x**2 + 1) ** y, sympy.E**x, sympy.log(x**2 + 1, 3),
        sympy.Rational(1, 3) * x - 0.1,
        sympy.Heaviside(x, 0), sympy.GoldenRatio * x, sympy.diff(sympy.tanh(x) * sympy.exp(-y**2), x, y),
        sympy.Piecewise(
            (x**2, x < -1), (sympy.log(2 + x), (x <= 0) & (y >= 0)), (y, (x > 1) | sympy.Eq(y, 0)), (7, True)
        ),
        sympy.Piecewise((1, sympy.Ne(y, 0)), (sympy.log(y), True)),
        sympy.Piecewise((x, ~((x > 0) & (y > 0))), (y, True)),
    ]  # fmt: skip
    return sympy, (x, y), cases


def test_sympy_expressions_have_the_values_that_sympy_gives_them():
    sympy, symbols, cases = sympy_cases()
    points = np.array([[-1.7, 0.3], [-0.4, 1.2], [0.6, -0.8], [2.3, 0.0], [0.0, 0.7], [1.1, 2.0]])
    for expression in cases:
        found = evaluate(as_text("test", expression), *points.T)
        for value, point in zip(found, points.tolist(), strict=True):
            right = expression.subs(dict(zip(symbols, map(sympy.Rational, point), strict=True))).evalf(25)
            if right.is_real and right.is_finite:
                assert value == pytest.approx(float(right), rel=2e-14, abs=1e-15), (expression, point)
            else:
                assert not np.isfinite(value), (expression, point)


def test_sympy_expressions_are_taken_wherever_text_is():
    sympy = pytest.importorskip("sympy")
    x, y, z, k = sympy.symbols("x y z k")
    topology = mp.Topology()
    beads = topology.add_beads([[1.0, 0.5, 0.0], [0.2, 0.0, 3.0]], mass=1.0)
    field = mp.forces.ExternalField(beads, k * sympy.tanh(x) ** 2 + sympy.Max(z, 0) ** sympy.Rational(5, 2), k=2.0)
    system = system_with(topology, field)
    energy = mp.Context(system, mp.VerletIntegrator(1e-3)).get_state(energy=True).potential_energy
    assert energy == pytest.approx(2.0 * np.sum(np.tanh([1.0, 0.2]) ** 2) + 3.0**2.5, rel=1e-14)
    again = mp.deserialize(mp.serialize(system))
    assert again.forces[0].energy == field.energy
    assert mp.serialize(again) == mp.serialize(system)
    surface = mp.surfaces.Polynomial(x**2 + y**2 / 4 - sympy.pi, bounding_box=[[-3, -5, -1], [3, 5, 1]])
    assert surface.value([[1.0, 2.0, 0.0]])[0] == pytest.approx(2.0 - np.pi, rel=1e-15)
    topology = mp.Topology()
    beads = topology.add_beads([[1.0, 0.5, 0.0]], mass=1.0)
    held = topology.constrain(sympy.cosh(sympy.Symbol("x1")) - sympy.cosh(sympy.Symbol("c")), beads, c=1.0)
    assert held.degrees_of_freedom == -1


def test_sympy_expressions_that_cannot_be_written_are_refused():
    sympy = pytest.importorskip("sympy")
    x = sympy.Symbol("x")
    f = sympy.Function("f")
    for expression, message in [
        (sympy.gamma(x), r"gamma\(x\) is not part of an expression of sqrt, exp"),
        (f(x) + x, r"f\(x\) is not part of an expression"),
        (x + sympy.I, "I is not part of"),
        (x * sympy.oo, "is not part of"),
        (sympy.DiracDelta(x), r"DiracDelta\(x\) is not part of .*: it is 0 but in single points"),
        (sympy.Piecewise((x, x > 0)), r"it has no value where no condition holds, end it with \(..., True\)"),
        (sympy.Integral(f(x), x), "is not part of"),
        (sympy.Symbol("x + y") * 2, r"x \+ y is not part of .*: names of symbols are letters, digits and _"),
        (sympy.Symbol("w") * x, "'w' at column .* is unknown"),
    ]:
        refuses(mp.ParameterError, message, mp.forces.ExternalField, [0], expression)
    for given in (3.0, None, [x]):
        with pytest.raises(mp.ParameterError, match="energy must be text or a SymPy expression, not"):
            mp.forces.ExternalField([0], given)
    refuses(mp.ParameterError, r"tanh\(x\) is not part of a polynomial", mp.surfaces.Polynomial, sympy.tanh(x))


R = "r = sqrt(x^2 + y^2 + z^2)"
INF, O3, O6, O10 = np.inf, [0.0] * 3, [0.0] * 6, [0.0] * 10
ISOTROPIC = np.array([1.0, 0.0, 0.0, 1.0, 0.0, 1.0])
# Where something is 0 beside what is infinite: three derivatives at the origin, by hand.
AT_ZERO = {
    f"max(0, r - 5)^2; {R}": (O3, O6, O10),
    f"min(0, 5 - r)^2; {R}": (O3, O6, O10),
    f"step(r - 5)*(r - 5)^2; {R}": (O3, O6, O10),
    f"(r - 5)*step(r - 5)*(r - 5); {R}": (O3, O6, O10),
    f"select(step(r - 5), (r - 5)^2, 0); {R}": (O3, O6, O10),
    f"floor(r/5)*r; {R}": (O3, O6, O10),
    f"r^2; {R}": (O3, 2 * ISOTROPIC, O10),
    f"3*r*r; {R}": (O3, 6 * ISOTROPIC, O10),
    f"r^2 + x + x^3; {R}": ([1.0, 0.0, 0.0], 2 * ISOTROPIC, [6.0, *[0.0] * 9]),
    f"x*r^2; {R}": (O3, O6, [6.0, 0.0, 0.0, 2.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0]),
    f"r^3; {R}": (O3, O6, O10),
    f"r^4; {R}": (O3, O6, O10),
    f"r^2.5; {R}": (O3, O6, None),
    f"(r^2)^1.25; {R}": (O3, O6, None),
    "(x^2 + y^2 + z^2)^1.5": (O3, O6, O10),
    "(x^2 + y^2 + z^2)^1.2": (O3, O6, None),
    # Of what is odd in r the mean over all directions.
    f"r; {R}": (O3, O6, O10),
    f"(r - 5)^2; {R}": (O3, 2 * ISOTROPIC, O10),
    f"1/(1 + r); {R}": (O3, 2 * ISOTROPIC, O10),
    f"exp(-r^2/2); {R}": (O3, -ISOTROPIC, O10),
    f"cos(r); {R}": (O3, -ISOTROPIC, O10),
    f"tanh(r)^2; {R}": (O3, 2 * ISOTROPIC, O10),
    f"sin(r)*r; {R}": (O3, 2 * ISOTROPIC, O10),
    f"sqrt(1 + r^2); {R}": (O3, ISOTROPIC, O10),
    f"log(2 + r^2); {R}": (O3, ISOTROPIC, O10),
    "(sqrt(x^2 + y^2) - 3)^2 + z^2": (O3, 2 * ISOTROPIC, O10),
    "sqrt(x^2 + 4*y^2)^2": (O3, [2.0, 0.0, 0.0, 8.0, 0.0, 0.0], O10),
    f"(p - r)^2; p = sqrt(x^2 + y^2); {R}": (O3, None, None),
    # Without a distance.
    "abs(x)^1.5": (O3, [INF, *[0.0] * 5], None),
    "abs(x)*sqrt(1 + x)*0": (O3, O6, O10),
    "step(x - 1)*sqrt(x)": (O3, O6, O10),
    "(1 - x)*step(x - 1)*sqrt(x)": (O3, O6, O10),
    "step(x - 1)/(1 + sqrt(x))": (O3, O6, O10),
    "sqrt(step(x - 1)*x)": (O3, O6, O10),
    "floor(x)*x^0.3": (O3, O6, O10),
    "(ceil(x) + floor(x))*x^0.3": (O3, O6, O10),
    # Infinite in truth.
    "sqrt(x)": ([INF, 0.0, 0.0], None, None),
    "sqrt(abs(x))": ([INF, 0.0, 0.0], None, None),
    "x^0.3 + y": ([INF, 1.0, 0.0], None, None),
}


@pytest.mark.parametrize("text", AT_ZERO)
def test_a_factor_of_0_beside_an_infinite_derivative_is_0(text):
    graph, u = graph_of(text)
    parts = [graph.gradient(u), graph.hessian(u), graph.third(u)]
    for nodes, right in zip(parts, AT_ZERO[text], strict=True):
        if right is not None:
            np.testing.assert_allclose(np.ravel(graph.evaluate(nodes, [np.zeros(1)] * 3)), right, atol=1e-15)


@pytest.mark.parametrize("text", AT_ZERO)
def test_elsewhere_derivatives_are_those_by_rules_to_the_bit(text):
    """Also on planes and axes through the origin, where single slopes of a distance are 0."""
    graph, u = graph_of(text)
    x = np.random.default_rng(4).uniform(0.1, 9.0, (40, 3))
    x[:20] *= np.random.default_rng(5).integers(0, 2, (20, 3))
    x = x[(x[:, :2] > 0.0).any(axis=1) & (x.any(axis=1))]
    plain, nodes = [u], [[u]]
    for order in range(3):
        plain = [graph.derivative(node, i) for node in plain for i in range(3)]
        nodes += [[graph.along(u, *by) for by in np.ndindex(*[3] * (order + 1))], plain]
    one, same = (graph.evaluate([n for part in nodes[k::2] for n in part], list(x.T)) for k in (1, 2))
    told = np.isfinite(same)
    assert told.mean() > 0.9
    np.testing.assert_array_equal(np.array(one)[told], np.array(same)[told])


@pytest.mark.parametrize("k", [0.0, 1.0])
def test_a_number_of_a_bead_that_is_0_beside_an_infinite_derivative_is_0(k):
    graph, u = graph_of("k*x^0.5", "k")
    zero = np.zeros(1)
    slope = np.ravel(graph.evaluate(graph.gradient(u), [zero, zero, zero, zero + k]))
    assert slope.tolist() == [np.inf if k else 0.0, 0.0, 0.0]


JUMPS = ["step(r)", "floor(r)", "ceil(2*r)", "3*step(r)*floor(r) + 1", "select(step(r), 1, 2)", "max(step(r), 0.5)",
         "step(r)^2", "sqrt(step(r))", "abs(floor(r))", "floor(r + 0.5)"]  # fmt: skip


@pytest.mark.parametrize("text", JUMPS)
def test_energies_constant_but_for_jumps_are_refused(text):
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0, 0], [1, 0, 0]], mass=1.0)
    cell = topology.add_membrane(mp.TriangleMesh.icosphere(3.0, 0), vertex_mass=1.0)
    points = topology.add_intriangle_points(cell, 2, mass=1.0, seed=1)
    for make in (
        lambda t: mp.forces.ExternalField(beads, f"{t}; r = x + y"),
        lambda t: mp.forces.CustomBonds([[0, 1]], t),
        lambda t: mp.forces.CustomPair(beads, beads, t, cutoff=3.0),
        lambda t: mp.forces.CustomMembraneField(points, t, r=np.arange(12.0)),
    ):
        refuses(mp.ParameterError, r"is constant but for jumps.*: it has no force", make, text)
        make(f"r + {text}")
    for make in (
        lambda t: mp.forces.ExternalField(beads, t),
        lambda t: mp.forces.CustomBonds([[0, 1]], t),
        lambda t: mp.forces.CustomPair(beads, beads, t, cutoff=3.0),
    ):
        refuses(mp.ParameterError, "does not depend on", make, "3*step(2)")
