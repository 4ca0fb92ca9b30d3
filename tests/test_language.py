"""Plain English: docstrings of the package begin as those of the field do."""

import ast
import re
from pathlib import Path

import pytest

import medyanpy as mp

# Of the source: reaches no kernel.
pytestmark = pytest.mark.slow

PACKAGE = Path(mp.__file__).parent
# A summary begins with a verb (functions) or a noun (classes, properties, modules).
FRAGMENT = re.compile(r"(What|Of|Those|Who|Whose|Which|Whether|The same|From|By|How)\b")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def fragments(source: str) -> list[str]:
    """Summaries that begin with a pronoun, a preposition or a question."""
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, DOCUMENTED))
    return [text.partition("\n")[0] for node in nodes if FRAGMENT.match(text := ast.get_docstring(node) or "")]


def test_summaries_begin_with_a_verb_or_a_noun():
    found = {path.relative_to(PACKAGE): fragments(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}
    assert {str(path): lines for path, lines in found.items() if lines} == {}
    assert len(found) > 150


def test_a_fragment_is_found():
    source = (
        'def f():\n    """What is left of it."""\n\n\nclass A:\n    """Ways."""\n\n'
        '    def g(self):\n        """Of all."""\n'
    )
    assert fragments(source) == ["What is left of it.", "Of all."]
