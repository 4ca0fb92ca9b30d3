"""Sphinx: sphinx-build -W docs docs/_build. Needs the installed package, and no network."""

import sys
from html import escape
from pathlib import Path

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

# `python -m sphinx` in the checkout would find the source folder, which has no kernels.
sys.path = [p for p in sys.path if Path(p).resolve() != Path(__file__).resolve().parents[1]]

import medyanpy  # noqa: E402

project = "medyanpy"
author = "The medyanpy developers"
copyright = "2026, The medyanpy developers"
release = version = medyanpy.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
# Docstrings name things in single backticks; where a name alone does not say which, it stays plain.
suppress_warnings = ["ref.python"]

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "undoc-members": False, "show-inheritance": True}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"medyanpy {release}"


# Formulas become MathML while the pages are built, which browsers show by themselves: MathJax would be fetched from
# elsewhere each time a page is read.


def _mathml(formula: nodes.Node, as_block: bool) -> str:
    # Docutils knows no \mathrel, which changes spacing only.
    tex = formula.astext().replace(r"\mathrel", "")
    try:
        return tex2mathml(tex, as_block=as_block)
    except MathError as cause:
        logging.getLogger(__name__).warning("%s: %s", cause, tex, location=formula)
        return f"<code>{escape(tex)}</code>"


def _inline_math(self, node: nodes.math) -> None:
    self.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def _block_math(self, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math">{_mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (_inline_math, None), (_block_math, None))
    app.config.html_math_renderer = "mathml"
