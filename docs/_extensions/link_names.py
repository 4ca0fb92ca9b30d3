"""Names of the package in prose link to the pages of what they name.

A name in backticks is looked up among the documented objects: `MembraneBending`, `forces.MembraneBending`,
`mp.forces.MembraneBending(...)`, `Simulation.resume`, `simulation.check()`, `set_box`. It links where exactly one
object has that name; a word of one letter and a name that several objects have stay as they are. Types of parameters,
whose words Sphinx would look up among all attributes, link to classes only.
"""

import builtins
import functools
import re
from abc import ABC
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

NAME = re.compile(r"(?:mp\.|medyanpy\.)?([A-Za-z_]\w*(?:\.\w+)*)(?:\(.*\))?", re.DOTALL)
#: The objects that pages call by these names.
VARIABLES = {
    "context": "Context", "mesh": "TriangleMesh", "simulation": "Simulation", "state": "State", "system": "System",
    "topology": "Topology", "trajectory": "Trajectory",
}  # fmt: skip
CLASSES = ("class", "exception")
CALLED = ("function", "method", "classmethod", "staticmethod")
# Within these a name is a link already, or a heading, or code to be typed.
OUTSIDE = (nodes.reference, nodes.title, nodes.literal_block, addnodes.pending_xref, addnodes.desc_signature)


def keys_of(name: str, kind: str) -> Iterator[str]:
    """The ways in which a documented object may be written, without `mp.`"""
    parts = name.split(".")[1:]
    yield ".".join(parts)
    if kind in CLASSES:
        yield parts[-1]
    elif kind == "function":
        if "_" in parts[-1]:
            yield parts[-1]
    elif len(parts) > 1 and parts[-2][:1].isupper():
        yield ".".join(parts[-2:])
        if kind in CALLED and "_" in parts[-1]:
            yield parts[-1]


def index_of(env: Any) -> dict[str, Any]:
    """Documented objects by each way of writing them that only one of them has."""
    found: dict[str, dict[tuple[str, str], Any]] = {}
    for name, entry in env.get_domain("py").objects.items():
        if name.startswith("medyanpy.") and not entry.aliased:
            for key in dict.fromkeys(keys_of(name, entry.objtype)):
                found.setdefault(key, {})[entry.docname, entry.node_id] = entry
    index = {key: next(iter(entries.values())) for key, entries in found.items() if len(entries) == 1}
    for variable, owner in VARIABLES.items():
        for key in [key for key in index if key.startswith(f"{owner}.")]:
            index.setdefault(variable + key[len(owner) :], index[key])
    return index


class LinkNames(SphinxPostTransform):
    # Before Sphinx resolves references, at 10.
    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        index = self.env.__dict__.get("_documented_names")
        if index is None:
            index = self.env._documented_names = index_of(self.env)
        for node in list(self.document.findall(addnodes.pending_xref)):
            if node.get("refdomain") == "py" and node.get("refspecific"):
                self.link_type(node, index)
        for paragraph in list(self.document.findall(nodes.paragraph)):
            if paragraph.astext() == "Bases: object":
                paragraph.parent.remove(paragraph)
        for node in list(self.document.findall(lambda n: isinstance(n, nodes.literal | nodes.title_reference))):
            if not any(isinstance(parent, OUTSIDE) for parent in parents(node)):
                self.link(node, node.astext(), index, CLASSES + CALLED + ("property", "attribute"))

    def link(self, node: Any, text: str, index: dict[str, Any], kinds: tuple[str, ...]) -> bool:
        match = NAME.fullmatch(text.strip())
        entry = index.get(match[1]) if match and len(match[1]) > 1 else None
        if entry is None or entry.objtype not in kinds:
            return False
        shown = node.deepcopy()
        node.replace_self(make_refnode(self.app.builder, self.env.docname, entry.docname, entry.node_id, shown))
        return True

    def link_type(self, node: Any, index: dict[str, Any]) -> None:
        target = node["reftarget"]
        shown = node[0]
        if not self.link(node, target, index, CLASSES) and "." not in target and not hasattr(builtins, target):
            node.replace_self(shown)


def parents(node: Any) -> Iterator[Any]:
    while node.parent is not None:
        node = node.parent
        yield node


def public_bases(app: Sphinx, name: str, obj: Any, options: Any, bases: list[Any]) -> None:
    """Show the nearest ancestors that have a page, in place of private ones."""
    shown: list[Any] = []
    for base in bases:
        for ancestor in getattr(base, "__mro__", (base,)):
            module, _, _ = ancestor.__module__.partition(".")
            private = any(part.startswith("_") for part in (ancestor.__name__, *ancestor.__module__.split(".")))
            if (module != "medyanpy" and ancestor is not ABC) or (not private and ancestor.__name__ in PUBLIC):
                shown.append(ancestor)
                break
    bases[:] = list(dict.fromkeys(b for b in shown if b is not object)) or [object]


def collect_public(app: Sphinx) -> None:
    text = (app.srcdir / "api.md").read_text(encoding="utf-8")
    PUBLIC.update(re.findall(r"^   (?:\w+\.)*(\w+)$", text, re.MULTILINE))


BACK = re.compile(r'<a class="viewcode-back" href="([^"]*)">.*?</a>')
ENTRY = re.compile(r'<li><a href="([^"]*)">[^<]*</a></li>')
#: Names of what has a page.
PUBLIC: set[str] = {"MedyanError"}


def mend_source_pages(app: Sphinx, failure: Exception | None) -> None:
    """Remove links of source pages that lead nowhere: viewcode looks for objects where they are defined."""
    folder = Path(app.outdir, "_modules")
    if failure is not None or not folder.exists():
        return

    def kept(page: Path, link: re.Match[str]) -> str:
        name, _, anchor = link[1].partition("#")
        target = (page.parent / name).resolve()
        there = target.exists() and (not anchor or f'id="{anchor}"' in text_of(target))
        return link[0] if there else ""

    text_of = functools.cache(lambda path: path.read_text(encoding="utf-8"))
    for page in folder.rglob("*.html"):
        old = page.read_text(encoding="utf-8")
        new = BACK.sub(functools.partial(kept, page), old)
        if page == folder / "index.html":
            new = ENTRY.sub(functools.partial(kept, page), new)
        if new != old:
            page.write_text(new, encoding="utf-8")


def forget(app: Sphinx, env: Any) -> None:
    env.__dict__.pop("_documented_names", None)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_post_transform(LinkNames)
    app.connect("builder-inited", collect_public)
    app.connect("autodoc-process-bases", public_bases)
    app.connect("env-check-consistency", forget)
    app.connect("build-finished", mend_source_pages)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
