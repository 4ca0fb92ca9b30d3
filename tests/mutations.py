"""What can be changed in a file of Python or Cython: tokens, and places in them."""

import io
import keyword
import random
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MINUTE = 60


@dataclass(frozen=True)
class Mutant:
    """Characters `start` to `end` of a file become `new`."""

    name: str
    file: str
    start: int
    end: int
    new: str
    scope: tuple[str, ...] = ()

    def of(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.end :]


# Syntax: what Python and Cython have in common ----------------------------------------------------------------------

HEADERS = {"def", "class", "async"}
DECLARES = {"cdef", "cpdef", "ctypedef"}
LEFT_ALONE = {"import", "from", "cimport", "include", "global", "nonlocal", "pass", "return", "yield", "@"}
DROPPED = {"raise", "continue", "break", "assert", "del"}
SKIPPED = {tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
SWAPS = {"+": "-", "-": "+", "+=": "-=", "-=": "+="}
BOUNDS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}


@dataclass(frozen=True)
class Token:
    text: str
    start: int
    end: int
    column: int
    line: int
    kind: int

    @property
    def is_operand(self) -> bool:
        name = self.kind == tokenize.NAME and not keyword.iskeyword(self.text)
        return name or self.kind in (tokenize.NUMBER, tokenize.STRING) or self.text in (")", "]")


def tokens_of(text: str) -> list[Token]:
    """All but comments and layout; the ends of logical lines are kept."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    try:
        for t in tokenize.generate_tokens(io.StringIO(text).readline):
            (row, column), (last, end) = t.start, t.end
            if t.type not in SKIPPED:
                found.append(Token(t.string, starts[row - 1] + column, starts[last - 1] + end, column, row, t.type))
    except tokenize.TokenError:
        pass  # a part of a statement, with brackets that are not closed
    return found


@cache
def lines_of(text: str) -> list[tuple[tuple[str, ...], list[Token]]]:
    """Logical lines with the names of the functions and classes around them; headers are in what they begin."""
    found = []
    around: list[tuple[int, str]] = []
    line: list[Token] = []
    for token in tokens_of(text):
        if token.kind != tokenize.NEWLINE:
            line.append(token)
            continue
        if line:
            while around and around[-1][0] >= line[0].column:
                around.pop()
            if is_header(line):
                around.append((line[0].column, name_of(line)))
            found.append((tuple(name for _, name in around), line))
        line = []
    return found


def is_header(line: list[Token]) -> bool:
    return line[0].text in HEADERS or (line[0].text in DECLARES and line[-1].text == ":")


def name_of(header: list[Token]) -> str:
    texts = [token.text for token in header]
    return texts[(texts.index("(") if "(" in texts else len(texts) - 1) - 1]


def outside(texts: list[str]) -> str:
    """The operators of a line that are in no brackets."""
    found, depth = "", 0
    for text in texts:
        depth += (text in "([{") - (text in ")]}")
        found += text if depth == 0 and not text.isidentifier() else ""
    return found


def places(text: str) -> Iterator[tuple[str, int, int, str, tuple[str, ...], int]]:
    """Every (rule, start, end, new, scope, line) of a file."""
    for scope, line in lines_of(text):
        first, texts = line[0], [token.text for token in line]
        declares = first.text in DECLARES
        plain = first.kind == tokenize.NAME and not keyword.iskeyword(first.text) and not declares
        if is_header(line) or first.text in LEFT_ALONE or first.kind == tokenize.STRING:
            continue
        if plain and len(line) > 1 and line[1].kind == tokenize.NAME:
            continue  # a declaration of C
        annotated = plain and ":" in outside(texts).partition("=")[0]
        if declares or annotated:
            if "=" not in texts:
                continue
            begin = texts.index("=") + 1
        else:
            begin = 0
            if plain and not any("=" in t or t == "(" for t in texts):
                continue
            if scope and (first.text in DROPPED or (plain and texts[-1] != ":")):
                yield "drop", first.start, line[-1].end, "pass", scope, first.line
        cast = False
        for k in range(max(begin, 1), len(line)):
            token, before = line[k], line[k - 1]
            found = ""
            if token.text == "<" and not before.is_operand:
                cast = True
            elif cast:
                cast = token.text != ">"
            elif token.text in SWAPS and tokenize.STRING not in (before.kind, line[min(k + 1, len(line) - 1)].kind):
                found, new = "sign", SWAPS[token.text]
            elif token.text in BOUNDS:
                found, new = "bound", BOUNDS[token.text]
            elif texts[k + 1 : k + 2] in (["]"], [","]) and before.text in ("[", ",") and _is_index(line, k):
                found, new = "index", "1" if token.text == "0" else "0"
            if found:
                yield found, token.start, token.end, new, scope, token.line


def _is_index(line: list[Token], k: int) -> bool:
    """Whether a token stands by itself in the brackets behind something that has an index."""
    if not (line[k].text.isdigit() or (line[k].kind == tokenize.NAME and line[k].is_operand)):
        return False
    depth = 0
    for j in range(k - 1, 0, -1):
        if line[j].text in (")", "]", "}"):
            depth += 1
        elif line[j].text in ("(", "[", "{"):
            depth -= 1
            if depth < 0:
                return line[j].text == "[" and line[j - 1].is_operand
    return False


def sources(root: Path = ROOT) -> list[str]:
    found = (p for e in ("py", "pyx", "pxd", "pxi") for p in (root / "medyanpy").rglob(f"*.{e}"))
    return sorted(str(p.relative_to(root)) for p in found)


def generated(seed: int, root: Path = ROOT) -> Iterator[Mutant]:
    """Mutants without end, all different."""
    rng = random.Random(seed)
    files = sources(root)
    texts = [(root / file).read_text() for file in files]
    weights = [len(lines_of(text)) for text in texts]
    seen = set()
    while True:
        file, text = rng.choices(list(zip(files, texts, strict=True)), weights)[0]
        by_rule: dict[str, list] = {}
        for place in places(text):
            by_rule.setdefault(place[0], []).append(place)
        if not by_rule:
            continue
        rule, start, end, new, scope, line = rng.choice(by_rule[rng.choice(sorted(by_rule))])
        if (file, start, rule) not in seen:
            seen.add((file, start, rule))
            shown = " ".join(text.splitlines()[line - 1].split())
            yield Mutant(f"{file}:{line} {rule}: {shown}", file, start, end, new, scope)
