"""Sphinx: python -P -m sphinx -W docs docs/_build. Needs the installed package with the docs extra, and no network."""

import html
import os
import re
import shutil
import sys
from importlib.metadata import files
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.ext.autosummary import autosummary_toc

DOCS = Path(__file__).resolve().parent
# `python -m sphinx` in the checkout would find the source folder, which has no kernels.
sys.path = [p for p in sys.path if Path(p).resolve() != DOCS.parent] + [str(DOCS / "_extensions")]

import medyanpy  # noqa: E402

project = "medyanpy"
author = "The medyanpy developers"
copyright = "2026, The medyanpy developers"
release = version = medyanpy.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "link_names",
]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
# The outputs are stored in the notebooks, and a test runs those.
nb_execution_mode = "off"
exclude_patterns = ["_build", "_templates", "_extensions"]
templates_path = ["_templates"]
# Types of other packages link to their pages where the network may be used, as in the job that publishes these pages.
intersphinx_mapping = {
    "python": ("https://docs.python.org/3", None),
    "numpy": ("https://numpy.org/doc/stable", None),
    "scipy": ("https://docs.scipy.org/doc/scipy", None),
}
if not os.environ.get("DOCS_ONLINE"):
    intersphinx_mapping = {}

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "undoc-members": False, "show-inheritance": True, "no-value": True}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"medyanpy {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
# Prompts and outputs are not copied.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# MathJax is part of the pages: nothing is fetched when they are read. As SVG it brings its letters along too, so that
# formulas look the same whatever fonts a reader has. One file of the package is all that this needs.
mathjax_path = "tex-svg-full.js"
mathjax3_config = {"svg": {"fontCache": "global"}, "options": {"enableMenu": False}}


def copy_mathjax(app: Sphinx, failure: Exception | None) -> None:
    if failure is None and app.builder.format == "html":
        (script,) = (f for f in files("sphinx-mathjax-offline") or () if f.name == mathjax_path)
        shutil.copy(str(script.locate()), app.outdir / "_static" / mathjax_path)


def copy_tutorials(app: Sphinx) -> None:
    """Their links into docs/ are relative to where they lie in the source."""
    folder = DOCS / "tutorials"
    for old in folder.glob("*.ipynb"):
        old.unlink()
    for notebook in (DOCS.parent / "tutorials").glob("*.ipynb"):
        text = notebook.read_text(encoding="utf-8")
        (folder / notebook.name).write_text(re.sub(r"\]\(\.\./docs/", "](../", text), encoding="utf-8")


def describe(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """The first paragraph of a page is what search engines show of it."""
    paragraph = next(iter(doctree.findall(nodes.paragraph)), None) if doctree is not None else None
    if paragraph is not None:
        text = html.escape(" ".join(paragraph.astext().split())[:300], quote=True)
        context["metatags"] = context.get("metatags", "") + f'<meta name="description" content="{text}">\n'


def shorten_sidebar(app: Sphinx, doctree: nodes.document) -> None:
    """The page of each class is reached from the tables of the reference: the sidebar would list 300 on every page."""
    for node in list(doctree.findall(autosummary_toc)):
        node.parent.remove(node)


def setup(app: Sphinx) -> None:
    # Before Sphinx collects the entries of the sidebar.
    app.connect("doctree-read", shorten_sidebar, priority=100)
    app.connect("html-page-context", describe)
    app.connect("builder-inited", copy_tutorials, priority=100)
    app.connect("build-finished", copy_mathjax)
