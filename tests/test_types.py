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

pytestmark = pytest.mark.slow


def found_by_mypy(script, folder):
    """(line, message) of all errors."""
    pytest.importorskip("mypy", reason=TYPES.format("mypy"))
    # Users need not be strict; the script alone is looked at, not what libraries have inside.
    command = ["mypy", "--config-file=", f"--cache-dir={folder / 'mypy'}", "--no-error-summary", "--hide-error-context"]
    run = subprocess.run(
        [sys.executable, "-P", "-m", *command, "--follow-imports=silent", script],
        capture_output=True, text=True, cwd=folder,
    )  # fmt: skip
    assert run.returncode in (0, 1), run.stdout + run.stderr
    found = (re.match(r".*?:(\d+): error: (.*)", line) for line in run.stdout.splitlines())
    return [(int(one[1]), one[2]) for one in found if one]


def found_by_pyright(script, folder):
    pytest.importorskip("pyright", reason=TYPES.format("pyright"))
    run = subprocess.run(
        [sys.executable, "-P", "-m", "pyright", "--pythonpath", sys.executable, "--outputjson", script],
        capture_output=True, text=True, cwd=folder,
    )  # fmt: skip
    assert run.returncode in (0, 1), run.stdout + run.stderr
    found = json.loads(run.stdout)["generalDiagnostics"]
    return [(one["range"]["start"]["line"] + 1, one["message"]) for one in found if one["severity"] == "error"]


@pytest.fixture(params=[found_by_mypy, found_by_pyright], ids=["mypy", "pyright"])
def check(request, tmp_path):
    """What a checker finds in one of the scripts beside this file, put where nothing but the installed package is."""

    def found(name):
        script = tmp_path / name
        script.write_text((HERE / name).read_text())
        return request.param(str(script), tmp_path)

    return found


def test_nothing_is_found_in_what_is_right(check):
    assert check("types_right.py") == []


def test_each_mistake_is_found(check):
    lines = (HERE / "types_wrong.py").read_text().splitlines()
    wrong = {i for i, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert len(wrong) >= 8
    found = dict(check("types_wrong.py"))
    assert {i: lines[i - 1] for i in wrong - set(found)} == {}, "not found"
    assert {i: found[i] for i in set(found) - wrong} == {}, "found where all is right"


def test_mypy_is_strict_with_the_whole_package(tmp_path):
    """As pyproject.toml has it."""
    pytest.importorskip("mypy", reason=TYPES.format("mypy"))
    command = ["mypy", f"--config-file={HERE.parent / 'pyproject.toml'}", f"--cache-dir={tmp_path / 'mypy'}"]
    run = subprocess.run([sys.executable, "-P", "-m", *command], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr


def test_nearly_all_public_types_are_known(tmp_path):
    pytest.importorskip("pyright", reason=TYPES.format("pyright"))
    command = ["pyright", "--verifytypes", "medyanpy", "--ignoreexternal"]
    # Here it looks for the Python of the path.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    run = subprocess.run(
        [sys.executable, "-P", "-m", *command], capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "PATH": path},
    )  # fmt: skip
    score = re.search(r"Type completeness score: ([\d.]+)%", run.stdout)
    assert score, run.stdout + run.stderr
    assert float(score[1]) >= 99.0
