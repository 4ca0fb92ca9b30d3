"""Sphinx: python -P -m sphinx -W docs docs/_build. Needs the installed package with the docs extra, and no network."""

import re
import shutil
import sys
from importlib.metadata import files
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent
# `python -m sphinx` in the checkout would find the source folder, which has no kernels.
sys.path = [p for p in sys.path if Path(p).resolve() != DOCS.parent]

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
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
# The outputs are stored in the notebooks, and a test runs those.
nb_execution_mode = "off"
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
# Docstrings name things in single backticks; where a name alone does not say which, it stays plain.
suppress_warnings = ["ref.python"]


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


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", copy_tutorials, priority=100)
    app.connect("build-finished", copy_mathjax)
