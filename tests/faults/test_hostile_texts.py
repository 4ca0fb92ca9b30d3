"""Expressions as text: thousands of terms work, whatever their shape; what does not is refused in linear time, with a
short message."""

import time
import tracemalloc

import numpy as np
import pytest
from builders import system_with

import medyanpy as mp
from medyanpy.surfaces.expressions import MAX_LENGTH

pytestmark = pytest.mark.slow

# Beyond what Python's own recursion takes, several times.
MANY = 4000


def field(text, **numbers):
    topology = mp.Topology()
    beads = topology.add_beads([[0.5, 0.25, -0.75], [0.0, 1.0, 0.5]], mass=1.0)
    return topology, mp.forces.ExternalField(beads, text, **numbers)


def look(text):
    topology, force = field(text)
    context = mp.Context(system_with(topology, force), mp.VerletIntegrator(1e-9))
    return context, context.get_state(energy=True, forces=True)


@pytest.mark.parametrize(
    ("text", "energy", "slope"),
    [
        ("+".join(f"{i}*x" for i in range(1, MANY + 1)), lambda x: x * MANY * (MANY + 1) / 2, MANY * (MANY + 1) / 2),
        ("x" + "-x" * MANY, lambda x: (1 - MANY) * x, 1 - MANY),
        ("x" + "*1.0001" * MANY, lambda x: x * 1.0001**MANY, 1.0001**MANY),
        ("-" * MANY + "x", lambda x: x, 1.0),
        ("(" * MANY + "x" + "+1)" * MANY, lambda x: x + MANY, 1.0),
        ("x+(" * MANY + "x" + ")" * MANY, lambda x: (MANY + 1) * x, MANY + 1),
        ("x" + "".join(f"+sin({i})*y-y*sin({i})" for i in range(MANY // 4)), lambda x: x, 1.0),
        ("max(" * MANY + "x" + ",-9)*1" * MANY, lambda x: x, 1.0),
        ("select(x+9," * MANY + "x" + ",y^0.3)" * MANY, lambda x: x, 1.0),
        ("x*r1" + "".join(f";r{i}=r{i + 1}" for i in range(1, MANY)) + f";r{MANY}=1", lambda x: x, 1.0),
    ],
    ids=["sum", "differences", "product", "signs", "parentheses", "nested sums", "functions", "choices", "selections",
         "definitions"],
)
def test_thousands_of_terms_work(text, energy, slope):
    context, state = look(text)
    x = np.array([0.5, 0.0])
    assert state.potential_energy == pytest.approx(energy(x).sum(), rel=1e-12)
    np.testing.assert_allclose(-state.forces[:, 0], slope, rtol=1e-12)
    assert not state.forces[:, 1:].any()
    np.testing.assert_allclose(context.hessian().toarray(), 0.0, atol=1e-9)


def test_surfaces_of_many_terms_need_no_special_form():
    powers = [(i % 20, i // 20, i % 3) for i in range(1000)]
    text = " + ".join(f"{n + 1}*x**{i}*y**{j}*z**{k}" for n, (i, j, k) in enumerate(powers))
    points = np.random.default_rng(3).uniform(-1.0, 1.0, (7, 3))
    flat, nested = mp.surfaces.Polynomial(text), mp.surfaces.Polynomial({p: n + 1.0 for n, p in enumerate(powers)})
    np.testing.assert_allclose(flat.value(points), nested.value(points), rtol=1e-9)
    np.testing.assert_allclose(flat.gradient(points), nested.gradient(points), rtol=1e-9)
    np.testing.assert_allclose(flat.hessian(points), nested.hessian(points), rtol=1e-9, atol=1e-6)


def test_operators_bind_as_in_python():
    """Against Python itself, on what both read."""
    x, y, z = 0.5, 0.25, -0.75
    texts = ["-x**2", "2**-1*x", "x**2**3", "x - y - z", "x/2/4*y", "-x*-y", "x - -y", "+-+x*3 - +y", "2*x**-2*y",
             "(x)*(y)", "x**2*3 + y/4 - -z**3", "((x))", "-(x + y)**2", "x*2**3**2", "1e-3*x + .5e+2*y + 2.*z",
             "x**(1 + 2)", "1_000*x", "x**-(1 + 1)", "x - (y - (z - 1))", "x**2\n + y", "- x ** - 2"]  # fmt: skip
    for text in texts:
        expected = eval(text.replace("\n", " "), {"x": x, "y": y, "z": z})
        topology, _ = field("x")
        found = mp.Context(system_with(topology, mp.forces.ExternalField([0], text)),
                           mp.VerletIntegrator(1e-6)).get_state(energy=True).potential_energy  # fmt: skip
        assert found == pytest.approx(expected, rel=1e-14), text


@pytest.mark.parametrize(("text", "message"), [
    ("x + 0**-1", "'0' at column 5 of 'x [+] 0[*][*]-1' is zero and divides"),
    ("x + (1 - 1)**-3", "is zero and divides"),
    ("x + 1e-320**-1", "is inf, but must be finite"),
    ("x + 1e999", "'1e999' at column 5 .* is too large a number"),
    ("x + " + "9" * 5000, "is too large a number"),
    ("x + 1__0", "'1__0' at column 5 .* is not a number"),
    ("x y", "'y' at column 3 of 'x y' is not part of an expression"),
    ("x // 2", "'/' at column 4 .* is not part of"),
    ("x*()", r"'\)' at column 4 .* is not part of"),
    ("sin()", r"'\)' at column 5 .* is not part of"),
    ("x)", r"'\)' at column 2 .* is not part of"),
    ("(x", r"cannot read '\(x': the parenthesis at column 1 is not closed"),
    ("sin(x", "the parenthesis at column 4 is not closed"),
    ("x(2)", r"'x\(2\)' at column 1 .* is not part of"),
    ("__import__('os').system('true')", r"\"__import__\('os'\)\" at column 1 .* is not part of"),
    ("x + lambda", "'lambda' at column 5 .* is not part of"),
    ("x\0", r"'\\x00' at column 2 .* is not part of"),
    ("x + \ud800", r"'\\ud800' at column 5"),
    ("(" * MANY + "x", f"the parenthesis at column {MANY} is not closed"),
    ("x" + ")" * MANY, r"'\)' at column 2"),
    ("+".join(["x"] * MANY) + "*w", "'w' at column 8001 .* is unknown"),
    ("x*nan", "'nan' at column 3 .* is unknown"),
    ("ˣ - 𝑥", "'ˣ - 𝑥' does not depend on x, y or z"),
])  # fmt: skip
def test_errors_are_short_and_name_the_place(text, message):
    with pytest.raises(mp.ParameterError, match=message) as caught:
        field(text)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("form", ["{0}+x", "x+{0}", "({0})", "sin({0})", "{0}*2", "-{0}", "'{0}'", "[{0}]", "{0}w"])
def test_ten_megabytes_are_refused_at_once(form):
    part = {"x+{0}": "x+", "({0})": "("}.get(form, "x*")
    text = form.format(part * 5_000_000)
    messages = []
    topology = mp.Topology()
    beads = topology.add_beads([[0.5, 0.25, -0.75]], mass=1.0)
    begin = time.process_time()
    tracemalloc.start()
    for make in (
        lambda: mp.forces.ExternalField(beads, text), lambda: mp.surfaces.Polynomial(text),
        lambda: mp.surfaces.Inflated(text, 0.1),
    ):  # fmt: skip
        try:
            make()
        except mp.ParameterError as error:
            messages.append(str(error))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert time.process_time() - begin < 1.0
    assert peak < 1e6
    assert len(messages) == 3
    for message in messages:
        assert f"of {len(text)} characters, but at most {MAX_LENGTH} are read" in message
        assert len(message) < 200


@pytest.mark.parametrize("end", ["w", "**999"])
def test_the_longest_text_that_is_read_takes_time_in_proportion(end):
    def seconds(n):
        text = ("x+" * n)[: n - len(end) - 1] + "+" + end
        begin = time.process_time()
        with pytest.raises(mp.ParameterError) as caught:
            field(text)
        assert len(str(caught.value)) < 500
        return time.process_time() - begin

    # Twenty times the text, at most forty times the time (and what a busy machine adds).
    assert seconds(MAX_LENGTH) < 40 * seconds(MAX_LENGTH // 20) + 1.0
