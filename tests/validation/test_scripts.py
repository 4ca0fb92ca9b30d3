"""The scripts that measure what the sources say run, quickly: what they print and draw is there."""

import importlib.util
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def run(script, arguments, folder, monkeypatch, pictures):
    """The script's main(), as from the command line; how many pictures it left in the folder, if it draws any."""
    path = HERE / f"{script}.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    out = ["--out", str(folder)] if pictures else []
    monkeypatch.setattr(sys, "path", [str(path.parent), *sys.path])
    monkeypatch.setattr(sys, "argv", [str(path), "--quick", *out, *arguments])
    spec.loader.exec_module(module)
    module.main()
    return len(list(folder.glob("*.png")))


@pytest.mark.slow
def test_a_figure(tmp_path, monkeypatch):
    assert run("coarse/chain_of_pendula", ["--only", "costs"], tmp_path, monkeypatch, 1) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("script", "pictures"),
    [("coarse/double_pendulum", 0), ("coarse/chain_of_pendula", 1), ("coarse/water", 0), ("coarse/dna", 1),
     ("coarse/magnetised_body", 0), ("rods/elastic_rods", 0), ("membranes/record", 0)],
)  # fmt: skip
def test_all_of_it(script, pictures, tmp_path, monkeypatch, capsys):
    """Some ten seconds each."""
    assert run(script, [], tmp_path, monkeypatch, pictures) == pictures
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) > 5
