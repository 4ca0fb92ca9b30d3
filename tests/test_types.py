"""Checkers of types find the mistakes of users, and nothing in what is right."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TYPES = "{} is not installed: pip install 'medyanpy[types]'"

# .ci/run runs them, beside linters: checkers take minutes, and are not among the packages of the tests.
pytestmark = pytest.mark.long


RIGHT, WRONG = "types_right.py", "types_wrong.py"
# What mypy finds only if it is strict. Users need not be.
STRICT = {"comparison-overlap", "misc", "no-any-return", "no-untyped-call", "no-untyped-def", "type-arg",
          "unused-ignore"}  # fmt: skip


def run(checker, *arguments, folder):
    pytest.importorskip(checker, reason=TYPES.format(checker))
    # Pyright looks for the Python of the path.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run([sys.executable, "-P", "-m", checker, *arguments], capture_output=True, text=True, cwd=folder,
                          env={**os.environ, "PATH": path, "MYPYPATH": str(folder)})  # fmt: skip


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """A folder with the scripts beside this file, where nothing but the installed package is."""
    folder = tmp_path_factory.mktemp("scripts")
    for name in (RIGHT, WRONG):
        (folder / name).write_text((HERE / name).read_text())
    return folder


@pytest.fixture(scope="module")
def mypy(scripts):
    """(file, line, message) of all that it finds in the scripts and the whole package, as pyproject.toml has it.

    In one run: most of its time is for the package, which scripts need too.
    """
    what = ["-p", "medyanpy", *(option for name in (RIGHT, WRONG) for option in ("-m", Path(name).stem))]
    options = [f"--config-file={HERE.parent / 'pyproject.toml'}", f"--cache-dir={scripts / 'mypy'}"]
    done = run("mypy", *options, "--hide-error-context", *what, folder=scripts)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = (re.match(r"(.*?):(\d+): error: (.*)", line) for line in done.stdout.splitlines())
    return [(one[1], int(one[2]), one[3]) for one in found if one]


@pytest.fixture(scope="module")
def pyright(scripts):
    """The same, of the scripts alone."""
    done = run("pyright", "--pythonpath", sys.executable, "--outputjson", RIGHT, WRONG, folder=scripts)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [
        (one["file"], one["range"]["start"]["line"] + 1, one["message"])
        for one in json.loads(done.stdout)["generalDiagnostics"]
        if one["severity"] == "error"
    ]


@pytest.fixture(params=["mypy", "pyright"])
def found(request):
    """{line: message} of a script."""
    of_all = request.getfixturevalue(request.param)
    return lambda name: {line: message for file, line, message in of_all if Path(file).name == name}


def test_nothing_is_found_in_what_is_right(found):
    assert found(RIGHT) == {}


def test_each_mistake_is_found(found):
    lines = (HERE / WRONG).read_text().splitlines()
    wrong = {i for i, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert len(wrong) >= 8
    said = found(WRONG)
    assert {i: lines[i - 1] for i in wrong - set(said)} == {}, "not found"
    assert {i: said[i] for i in set(said) - wrong} == {}, "found where all is right"


def test_no_mistake_is_found_by_strict_checks_alone(mypy):
    codes = {re.search(r"\[([\w-]+)\]$", message)[1] for file, _, message in mypy if Path(file).name == WRONG}
    assert codes & STRICT == set()
    assert "arg-type" in codes


def test_mypy_is_strict_with_the_whole_package(mypy):
    assert [one for one in mypy if Path(one[0]).name not in (RIGHT, WRONG)] == []


def test_nearly_all_public_types_are_known(tmp_path):
    done = run("pyright", "--verifytypes", "medyanpy", "--ignoreexternal", folder=tmp_path)
    score = re.search(r"Type completeness score: ([\d.]+)%", done.stdout)
    assert score, done.stdout + done.stderr
    assert float(score[1]) >= 99.0
