"""The list of deliberate breaks fits the sources: what no longer matches would go unnoticed until the list is run."""

import importlib.util
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).with_name("mutants.py")
spec = importlib.util.spec_from_file_location("medyanpy_mutants", FILE)
mutants = importlib.util.module_from_spec(spec)
# Its dataclasses look for their module.
sys.modules[spec.name] = mutants
spec.loader.exec_module(mutants)


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda m: m.what)
def test_a_mutant_is_one_edit(mutant):
    assert (mutants.ROOT / mutant.file).read_text().count(mutant.old) == 1
    assert mutant.old != mutant.new
    for test in mutant.tests.split():
        assert test.startswith("-") or (mutants.ROOT / test.partition("::")[0]).exists() or "/" not in test
