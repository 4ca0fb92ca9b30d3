"""What is said in several places about versions and dependencies is the same in all of them."""

import re
import tomllib
from pathlib import Path

import pytest

import medyanpy as mp

CHECKOUT = Path(__file__).resolve().parents[1]
# What is called otherwise outside of PyPI.
CONDA = {"matplotlib": "matplotlib-base"}


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]


def bounds(requirements):
    """{name: lowest version} of lines such as 'numpy>=2.0'."""
    found = [re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)", line) for line in requirements]
    assert all(found), "a requirement is a name and a lowest version"
    return {one[1]: one[2] for one in found}


def test_the_conda_recipe_needs_what_the_wheel_needs(project):
    text = (CHECKOUT / ".ci/conda/recipe.yaml").read_text()
    run = text[text.index("  run:\n") : text.index("tests:\n")]
    needed = dict(re.findall(r"^    - ([\w-]+) >=([\d.]+)$", run, re.MULTILINE))
    wanted = {CONDA.get(name, name): lowest for name, lowest in bounds(project["dependencies"]).items()}
    assert needed == wanted | {"python": project["requires-python"].removeprefix(">=")}
    assert f'version: "{mp.__version__}"' in text


def test_the_lowest_versions_are_those_that_ci_tries(project):
    lines = (CHECKOUT / ".ci/lowest.txt").read_text().splitlines()
    tried = dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    lowest = bounds(project["dependencies"]) | bounds(project["optional-dependencies"]["test"])
    # Cython is of the build: whatever is newest there.
    for name, version in lowest.items():
        if name != "cython":
            assert tried[name].startswith(version), f"{name}: {tried[name]} is tried, {version} is promised"


def test_every_python_that_wheels_are_built_for_is_classified(project):
    built = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]["build"]
    pythons = {re.fullmatch(r"cp3(\d+)-\*", one)[1] for one in built}
    classified = {re.fullmatch(r".* :: Python :: 3\.(\d+)", c)[1] for c in project["classifiers"] if " 3." in c}
    assert pythons == classified
    assert project["requires-python"] == f">=3.{min(pythons, key=int)}"


def test_citation_file_names_this_version():
    text = (CHECKOUT / "CITATION.cff").read_text()
    assert re.search(rf"^version: {re.escape(mp.__version__)}$", text, re.MULTILINE)


def test_public_ci_calls_what_decides():
    """What must hold stands in one place."""
    text = (CHECKOUT / ".github/workflows/ci.yml").read_text()
    for script in re.findall(r"bash (\S+)", text):
        assert (CHECKOUT / script).is_file(), script
    assert "bash .ci/run" in text
