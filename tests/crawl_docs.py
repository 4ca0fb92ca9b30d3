"""Crawl the built pages: python tests/crawl_docs.py FOLDER. Exit status 1 where a link is dead or false.

A link is dead whose file or anchor does not exist. It is false where its text is code that does not end with the name
of what it leads to, or is a single letter.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote


class Page(HTMLParser):
    """Anchors of a page, what it links to, and the links of its text whose text is code."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.names = set(), [], []
        self._reference, self._code, self._text = None, False, ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if given.get("id"):
            self.ids.add(given["id"])
        self.links += [given[key] for key in ("href", "src") if given.get(key)]
        if tag == "a" and "reference" in (given.get("class") or "").split():
            self._reference, self._code, self._text = given.get("href", ""), False, ""
        # Types of parameters are emphasised, names in prose are code.
        if self._reference is not None and tag in ("code", "em", "cite"):
            self._code = True

    def handle_data(self, data):
        self._text += data

    def handle_endtag(self, tag):
        if tag == "a" and self._reference is not None:
            if self._code:
                self.names.append((self._text.strip(), self._reference))
            self._reference = None


def is_false(text, target):
    """Whether a link whose text is code leads to an object of another name."""
    anchor = unquote(target.partition("#")[2])
    match = re.fullmatch(r"(?:[\w.]*\.)?(\w+)(?:\(.*\))?", text, re.DOTALL)
    if not anchor.startswith("medyanpy") or match is None:
        return False
    return len(text) < 2 or anchor.rpartition(".")[2] != match[1]


def crawl(folder):
    """(links looked at, what is wrong: a line each)"""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    count, wrong = 0, []
    for path, page in pages.items():
        for link in page.links:
            name, _, anchor = unquote(link).partition("#")
            name = name.partition("?")[0]
            if re.match(r"[a-z]+:|//", link):
                continue
            count += 1
            target = (path.parent / name).resolve() if name else path.resolve()
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                wrong.append(f"{path.relative_to(folder)}: dead: {link}")
            elif anchor and target in pages and anchor not in pages[target].ids:
                wrong.append(f"{path.relative_to(folder)}: no such anchor: {link}")
        wrong += [f"{path.relative_to(folder)}: false: {t!r} -> {to}" for t, to in page.names if is_false(t, to)]
    return count, wrong


if __name__ == "__main__":
    looked_at, found = crawl(Path(sys.argv[1]).resolve())
    print(*found, f"{looked_at} links, {len(found)} dead or false", sep="\n")
    sys.exit(bool(found))
