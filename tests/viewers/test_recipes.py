"""The recipes of docs/viewers.md, as one script."""


import pytest
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


@pytest.mark.filterwarnings("ignore")  # of readers
def test_the_lines_for_the_shell_run(tmp_path, run, monkeypatch, capsys):
    """All but those that start other programs; then MDAnalysis reads what VMD would."""
    mda = pytest.importorskip("MDAnalysis", reason="MDAnalysis is not installed: pip install 'medyanpy[viewers]'")
    from medyanpy.cli import main

    (tmp_path / "run.h5").symlink_to(run.path)
    monkeypatch.chdir(tmp_path)
    blocks = [text for _, text, _ in fences(ROOT / "docs" / "viewers.md", "sh")]
    lines = [line.split() for text in blocks for line in text.splitlines()]
    assert {words[0] for words in lines} == {"pip", "medyanpy", "vmd"}
    for words in lines:
        if words[0] == "medyanpy":
            assert main(words[1:]) == 0
    shown = [words for words in lines if words[0] == "vmd"]
    assert shown == [["vmd", "run.pdb", "run.dcd"]]
    universe = mda.Universe("run.pdb", "run.dcd")
    assert (len(universe.atoms), len(universe.trajectory)) == (len(run.states[0].positions), len(run.states))
    universe.trajectory[-1]
    assert universe.atoms.positions == pytest.approx(10.0 * run.states[-1].positions, rel=1e-6, abs=1e-3)
