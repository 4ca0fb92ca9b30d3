"""The recipes of docs/viewers.md, as one script."""

import sys
from pathlib import Path

import pytest

import medyanpy as mp

sys.path.insert(0, str(Path(__file__).parents[1]))
from test_documents import ROOT, fences, run_script

pytestmark = pytest.mark.slow


def test_the_recipes_run_one_after_the_other(tmp_path, run):
    for module in ("ovito", "MDAnalysis", "pyvista", "gsd"):
        pytest.importorskip(module, reason=f"{module} is not installed: pip install 'medyanpy[viewers]'")
    (tmp_path / "run.h5").symlink_to(run.path)
    blocks = [text for _, text, _ in fences(ROOT / "docs" / "viewers.md", "python")]
    blocks[0] = blocks[0].replace('import_file("run.h5")', 'import_file("run.h5", input_format=READER)')
    script = "\n".join(["from medyanpy.ovito import TrajectoryReader as READER", *blocks])
    done = run_script(script, tmp_path / "recipes.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "written without triangles (vesicle, patch)" in done.stdout
    for name in ("run.vtkhdf", "run.actin.vtkhdf", "run.gsd", "run.xyz", "run.pdb", "run.dcd", "run.simularium"):
        assert (tmp_path / name).stat().st_size > 0
    assert {path.name for path in tmp_path.glob("*.ply")} == {"vesicle.vesicle.ply", "vesicle.patch.ply"}


def test_the_page_names_every_format():
    from medyanpy.files.exports.exporting import FORMATS

    page = (ROOT / "docs" / "viewers.md").read_text(encoding="utf-8")
    assert [ending for ending in FORMATS if f"`{ending}`" not in page and f"run{ending}`" not in page] == []
    assert [ending for ending in FORMATS if f"``{ending}``" not in mp.export.__doc__] == []
