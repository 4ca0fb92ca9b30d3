"""The crawl of built pages sees links that are dead or false."""

import importlib.util
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("medyanpy_crawl_docs", Path(__file__).with_name("crawl_docs.py"))
crawl_docs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(crawl_docs)
crawl, is_false = crawl_docs.crawl, crawl_docs.is_false

PAGE = '<html><body><h1 id="top">x</h1>{}</body></html>'


@pytest.mark.parametrize(("link", "wrong"), [
    ('<a href="#top">x</a>', ""),
    ('<a href="other.html#there">x</a>', ""),
    ('<a href="#bottom">x</a>', "no such anchor: #bottom"),
    ('<a href="none.html">x</a>', "dead: none.html"),
    ('<img src="none.png">', "dead: none.png"),
    ('<a class="reference" href="other.html#medyanpy.rigid.Domains.n"><code>Domains.n</code></a>', ""),
    ('<a class="reference" href="other.html#medyanpy.rigid.Domains.n"><em>n</em></a>', "false: 'n'"),
    ('<a class="reference" href="other.html#medyanpy.forces.Links"><code>Links(a, b)</code></a>', ""),
    ('<a class="reference" href="other.html#medyanpy.forces.Links"><code>HarmonicLinks</code></a>', "false"),
])  # fmt: skip
def test_a_link(link, wrong, tmp_path):
    ids = '<p id="there"><p id="medyanpy.rigid.Domains.n"><p id="medyanpy.forces.Links">'
    (tmp_path / "other.html").write_text(PAGE.format(ids), encoding="utf-8")
    (tmp_path / "index.html").write_text(PAGE.format(link), encoding="utf-8")
    count, found = crawl(tmp_path)
    assert count == 1
    assert len(found) == bool(wrong)
    assert wrong in "".join(found)


def test_names_of_other_packages_are_not_judged():
    assert not is_false("ndarray", "https://example.org/numpy.ndarray.html#numpy.ndarray")
