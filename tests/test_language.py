"""Plain English in docstrings, messages and pages."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

import medyanpy as mp

# Of the source: reaches no kernel.
pytestmark = pytest.mark.slow

PACKAGE = Path(mp.__file__).parent
# A summary begins with a verb (functions) or a noun (classes, properties, modules).
FRAGMENT = re.compile(r"(What|Of|Those|Who|Whose|Which|Whether|The same|From|By|How)\b")
# Things are not persons, and "is not a" is plainer than "is no"; "there is no" is plain.
DIALECT = re.compile(
    r"(?<!\w)((?<!there )is no (?!longer\b|more\b|less\b|nearer\b)|nobody\b|somebody\b|whoever\b"
    r"|borne?\b|dies\b|asleep\b|anew\b|(?:go|goes|going|went) on\b)",
    re.I,
)
DOCS = Path(__file__).resolve().parents[1] / "docs"
#: Occurrences that are left, by folder or module of the package and page of the documentation: numbers may only shrink.
LEFT = {"docs/births.md": 1, "docs/documents.md": 1, "topology.py": 1}  # a key of documents
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


def dialect(source: str) -> list[str]:
    """Words of `DIALECT` in the texts of a module: docstrings and messages, not names."""
    texts = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    prose = (text for text in texts if isinstance(text, str) and not text.isidentifier())
    return [found for text in prose for found in DIALECT.findall(text)]


def test_texts_speak_plainly():
    """Texts of the package, and prose of its pages."""
    counts: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        counts[path.relative_to(PACKAGE).parts[0]] += len(dialect(path.read_text(encoding="utf-8")))
    for path in DOCS.rglob("*.md"):
        counts[f"docs/{path.relative_to(DOCS)}"] += len(DIALECT.findall(path.read_text(encoding="utf-8")))
    assert {name: n for name, n in counts.items() if n > LEFT.get(name, 0)} == {}
    assert set(LEFT) <= set(counts), "folders and pages that are no longer there"


def test_dialect_is_found():
    source = 'def f(x):\n    """Whoever goes on anew."""\n    raise ValueError(f"{x} is no number; there is no x")\n'
    assert dialect(source) == ["Whoever", "goes on", "anew", "is no "]
    assert dialect('kind = "born"\ny = "It is no longer there: in the drawing on top."') == []
