"""What breaks the program on purpose: mutants are made as they should be, and found. (tests/mutants.py runs them.)"""

import ast
import re
from itertools import islice

import mutants
import mutations
import pytest

# No kernel is run here.
pytestmark = pytest.mark.slow

TOY = '''\
"""1 - 1 here is text."""
from math import pi

AXES = 3


def second(values: list[float], shift: float = -1.0) -> float:
    """Not touched: a - b."""
    first: dict[str, int] = {}
    if len(values) < 2 or pi > 4:
        raise ValueError("two" + "of them")
    out = values[1] + (
        shift
    )
    values[AXES - 1 :] = []
    return out
'''


def rules(text):
    """(rule, what was there, what comes)"""
    return [(rule, text[start:end], new) for rule, start, end, new, _, _ in mutations.places(text)]


def test_mutants_of_python_files():
    assert rules(TOY) == [
        ("bound", "<", "<="),
        ("bound", ">", ">="),
        ("drop", 'raise ValueError("two" + "of them")', "pass"),
        ("drop", "out = values[1] + (\n        shift\n    )", "pass"),
        ("index", "1", "0"),
        ("sign", "+", "-"),
        ("drop", "values[AXES - 1 :] = []", "pass"),
        ("sign", "-", "+"),
    ]


def test_mutants_of_cython_files():
    """Neither casts nor declarations are compared or subtracted."""
    text = (
        "cdef struct Task:\n"
        "    double x[3]\n"
        "    const double* y\n"
        "cdef double[::1] numbers\n"
        "cdef inline int _f(Task* t, int n=-1) noexcept nogil:\n"
        "    cdef double a[2]\n"
        "    cdef int k = <int> t.x[n] - 1\n"
        "    for k in range(3):\n"
        "        if a[0] < <double> k:\n"
        "            g(&a[k], 2)\n"
        "    return -k\n"
    )
    assert rules(text) == [
        ("index", "n", "0"),
        ("sign", "-", "+"),
        ("index", "0", "1"),
        ("bound", "<", "<="),
        ("drop", "g(&a[k], 2)", "pass"),
        ("index", "k", "0"),
    ]


def test_they_know_where_they_are():
    text = "class A:\n    def f(self):\n        x = 1\n    y = 2\ndef g():\n    x = 3\nz = 4\n"
    assert [scope for scope, line in mutations.lines_of(text) if "=" in [token.text for token in line]] == [
        ("A", "f"), ("A",), ("g",), ()
    ]  # fmt: skip


def test_equal_seeds_give_equal_mutants():
    one, two, other = (list(islice(mutants.generated(seed), 8)) for seed in (1, 1, 2))
    assert one == two
    assert one != other
    assert len({(m.file, m.start, m.new) for m in one}) == 8


def test_generated_mutants_are_python_and_cython():
    """Of either language one change, which parses. (Whether names are known the compiler says later.)"""
    from Cython.Compiler.TreeFragment import parse_from_strings

    for mutant in islice(mutants.generated(3), 30):
        text = (mutants.ROOT / mutant.file).read_text()
        assert mutant.of(text) != text
        if mutant.file.endswith(".py"):
            ast.parse(mutant.of(text))
        elif mutant.file.endswith(".pyx"):
            # Of a string, Cython does not look for the files that it includes.
            parse_from_strings("kernel", re.sub(r"(?m)^include .*$", "", mutant.of(text)))


def test_each_has_tests():
    for mutant in islice(mutants.generated(4), 20):
        for test in mutants.pick_tests(mutant):
            assert test.startswith("--doctest-modules") or (mutants.ROOT / test).is_file()


def test_laws_are_those_of_the_documentation():
    """Each with its tests; whether every edit still finds its place, the command says that runs them."""
    rows = mutants.law_rows()
    assert len(rows) > 70
    law = "A keeps $\\lambda$ and $p_\\lambda$, and velocities stay in their planes"
    assert rows[law] == ["tests/physics/test_words.py"]
    assert all((mutants.ROOT / test).exists() for tests in rows.values() for test in tests)


def test_an_edit_is_found_whatever_the_layout():
    text = "def f():\n    x = [1,\n         2]\ndef g():\n    x = [1, 2]\n"
    for function in "fg":
        ((start, end),) = mutants.matches(text, function, "x=[1 , 2]")
        assert text[start:end].split() == "x = [1, 2]".split()
    assert mutants.matches(text, "g", "y = [1, 2]") == []
    assert mutants.matches(text, "", "x = [1, 2]") == []


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A package of one function, and a test of half of what it does; plugins of pytest take longer than it."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    package = tmp_path / "installed"
    package.mkdir()
    (package / "toy.py").write_text("def f(x):\n    y = x + 1\n    if x < 0:\n        y = 7\n    return y\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    long: not of this package\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_toy.py").write_text(
        "import toy\ndef test_f():\n    assert toy.f(2) == 3\n    assert toy.f(-2) == 7\n"
    )
    return package / "toy.py"


def test_mutants_of_a_toy_are_caught(toy):
    """But for the bound: nobody tests f(0)."""
    text = toy.read_text()
    found = {}
    for rule, start, end, new, _, line in mutations.places(text):
        toy.write_text(text[:start] + new + text[end:])
        found[rule, line], by = mutants.judge(["tests/test_toy.py"], toy.parent, toy.parents[1], 60)
        assert by == ("tests/test_toy.py::test_f" if found[rule, line] == "caught" else "")
    assert found == {("drop", 2): "caught", ("sign", 2): "caught", ("bound", 3): "survived", ("drop", 4): "caught"}


def test_endless_mutants_are_not_caught(toy):
    """Whether it is a fault or work, its time does not tell: it is listed."""
    toy.write_text("def f(x):\n    while True:\n        pass\n")
    assert mutants.judge(["tests/test_toy.py"], toy.parent, toy.parents[1], 3) == ("survived", "in this time")


def test_modules_that_cannot_be_imported_are_caught(toy):
    toy.write_text("1 / 0\n")
    assert mutants.judge(["tests/test_toy.py"], toy.parent, toy.parents[1], 60)[0] == "caught"


def test_names_of_failed_tests_are_read_whole():
    """One cut short looks like a test that is not there, and its mutant like a survivor."""
    summary = (
        "FAILED tests/a.py::test_one[log(a + x*x) - 1] - AssertionError: [x] - y\n"
        "FAILED tests/a.py::test_two - ValueError: [3] is not [4]\n"
        "ERROR tests/b.py::test_three[angles with anchors]\n"
        "ERROR tests/c.py\n"
    )
    assert mutants.failed_tests(summary) == ["tests/a.py::test_one[log(a + x*x) - 1]", "tests/a.py::test_two",
                                             "tests/b.py::test_three[angles with anchors]", "tests/c.py"]  # fmt: skip


def test_every_law_has_a_mutant_and_each_mutant_has_its_place():
    """Code that moves takes its mutants with it: those whose text is not there any more break nothing."""
    assert mutants.law_mutants()[1] == []
