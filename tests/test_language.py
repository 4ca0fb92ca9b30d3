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
TESTS = Path(__file__).resolve().parent
DOCS = TESTS.parent / "docs"
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


# Sentences ------------------------------------------------------------------------------------------------------------

#: Words and semicolons of a sentence, and items of a list in it, at most.
WORDS, SEMICOLONS, ITEMS = 40, 1, 6
# Code, formulas and targets of links count as one word or none.
FORMULA = re.compile(r"``.+?``|`[^`]*`|\$\$.*?\$\$|\$[^$\n]*\$|:[a-z:]+:X", re.S)
LINK = re.compile(r"\]\([^)\n]*\)")
END = re.compile(r"(?<=[.!?])[\"')*]*\s+(?=[\"'(*\[]*[A-Z0-9])")
LIST = re.compile(rf"(?:[^,;:.()]{{1,40}}, ){{{ITEMS},}}(?:and|or) ")
# What is not a sentence: code, formulas, tables, headings, rules, names of parameters with their types.
APART = re.compile(
    r"^(?P<fence>```|:::).*?^(?P=fence)\s*$|<!--.*?-->|^(?P<depth> *)\.\. math::.*?(?=^(?P=depth)\S|\Z)"
    r"|^ *(?:>>>|={4,}).*?(?:\n\s*\n|\Z)|^ *\|.*?$|^#.*?$|^ *-{3,} *$|^ *[*\w]+(?:, [*\w]+)* : .*?$",
    re.S | re.M,
)
BREAK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )")


def outlined(text: str) -> str:
    """Text with an empty line wherever the indentation changes: names of parameters stand apart from sentences."""
    lines = text.splitlines()
    depth = [len(line) - len(line.lstrip()) for line in lines]
    return "".join(line + "\n" * (1 + (a != b)) for line, a, b in zip(lines, depth, [*depth, 0][1:], strict=True))


def overlong(text: str) -> list[str]:
    """Sentences with too many words, semicolons or items."""
    found = []
    for block in BREAK.split(LINK.sub("]", FORMULA.sub("X", outlined(APART.sub("\n\n", text))))):
        for sentence in END.split(" ".join(block.split())):
            words = sum(any(c.isalnum() for c in word) for word in sentence.split())
            if words > WORDS or sentence.count(";") > SEMICOLONS or LIST.search(sentence):
                found.append(sentence)
    return found


def docstrings(source: str) -> list[str]:
    return [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(source)) if isinstance(node, DOCUMENTED)]


def test_sentences_are_short():
    found = {}
    for path in DOCS.rglob("*.md"):
        if "reference" not in path.parts:
            found[str(path.relative_to(DOCS))] = overlong(path.read_text(encoding="utf-8"))
    for path in PACKAGE.rglob("*.py"):
        texts = docstrings(path.read_text(encoding="utf-8"))
        found[str(path.relative_to(PACKAGE))] = [sentence for text in texts for sentence in overlong(text)]
    assert {name: sentences for name, sentences in found.items() if sentences} == {}


def test_overlong_sentences_are_found():
    short = "one, two, three, four, five and six; " + "word " * 32
    assert overlong(short + "end. Another `;;;` one, $a; b; c$.") == []
    assert len(overlong(short + "and more of it. Short.")) == 1
    assert len(overlong("a; b; c")) == 1
    assert len(overlong("It takes one, two, three, four, five, six, or seven.")) == 1
    assert overlong("n : int\n    " + "word " * 30 + "\nm : int\n    " + "word " * 30) == []


# Names of tests -------------------------------------------------------------------------------------------------------


def test_names_of_tests_speak_plainly():
    found, n = [], 0
    for path in TESTS.rglob("*.py"):
        for name in re.findall(r"^def test_(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            words, n = name.replace("_", " ").capitalize(), n + 1
            if FRAGMENT.match(words) or DIALECT.search(words):
                found.append(f"{path.relative_to(TESTS)}: test_{name}")
    assert found == []
    assert n > 2000
