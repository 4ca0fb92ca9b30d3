"""The tests themselves: no function of theirs is there and never used."""

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

# Of the source: reaches no kernel.
pytestmark = pytest.mark.slow

TESTS = Path(__file__).parent


def unused(root: Path) -> set[str]:
    """Functions, fixtures and classes of the tests' modules that no test names. What pytest calls by itself is in use,
    and what is decorated by something else than a fixture, which may keep it in a table."""
    defined, used = {}, Counter()
    for path in root.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
                if all("fixture" in decorator and "autouse" not in decorator for decorator in decorators):
                    defined[node.name] = f"{path.relative_to(root)}: {node.name}"
        documentation = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr):
                # Met before its text.
                documentation.add(id(node.value))
            elif isinstance(node, ast.FunctionDef):
                # A fixture is asked for by an argument of its name.
                used.update(argument.arg for argument in (*node.args.args, *node.args.kwonlyargs))
            elif isinstance(node, ast.Name):
                used[node.id] += 1
            elif isinstance(node, ast.Attribute):
                used[node.attr] += 1
            elif isinstance(node, ast.alias):
                used[node.name] += 1
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
                # Programs that tests give to other processes.
                used.update(re.findall(r"\w+", node.value))
    found = (name for name in defined if not used[name] and not name.lower().startswith(("test", "pytest_")))
    return {defined[name] for name in found}


def test_no_helper_is_unused():
    assert unused(TESTS) == set()


def test_an_unused_helper_is_seen(tmp_path):
    (tmp_path / "test_a.py").write_text(
        "import pytest\n"
        "def used(): pass\n"
        "def unused(): pass\n"
        "@pytest.fixture\n"
        "def asked_for(): pass\n"
        "@pytest.fixture\n"
        "def not_asked_for(): pass\n"
        "def test_a(asked_for): used()\n"
    )
    assert unused(tmp_path) == {"test_a.py: unused", "test_a.py: not_asked_for"}


def test_a_file_that_cannot_be_imported_fails(tmp_path):
    """Its tests are not left out without a word, as `--doctest-ignore-import-errors` has it without our conftest."""
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "test_broken.py").write_text("import nothing_of_this_name\n\ndef test_it():\n    pass\n")
    options = ["-q", "-p", "no:cacheprovider", "--import-mode=importlib", "--doctest-modules"]
    command = [sys.executable, "-P", "-m", "pytest", *options, "--doctest-ignore-import-errors", "test_broken.py"]
    without_plugins = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=without_plugins)
    assert (done.returncode, "No module named 'nothing_of_this_name'" in done.stdout) == (2, True), done.stdout
