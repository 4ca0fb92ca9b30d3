"""The scripts that remake the sources' figures run, quickly: what they print and draw is there."""

import importlib.util
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def run(script, arguments, folder, monkeypatch):
    """The script's main(), as from the command line; how many pictures it left in the folder."""
    path = HERE / f"{script}.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "path", [str(path.parent), *sys.path])
    monkeypatch.setattr(sys, "argv", [str(path), "--quick", "--out", str(folder), *arguments])
    spec.loader.exec_module(module)
    module.main()
    return len(list(folder.glob("*.png")))


@pytest.mark.slow
@pytest.mark.parametrize(("script", "part"), [("coarse/chain_of_pendula", "figure"), ("rods/elastic_rods", "rods_2")])
def test_a_figure(script, part, tmp_path, monkeypatch):
    assert run(script, ["--only", part], tmp_path, monkeypatch) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("script", "pictures"),
    [("coarse/double_pendulum", 2), ("coarse/chain_of_pendula", 2), ("coarse/water", 2), ("coarse/dna", 2),
     ("coarse/magnetised_body", 2), ("rods/elastic_rods", 5)],
)  # fmt: skip
def test_all_of_it(script, pictures, tmp_path, monkeypatch, capsys):
    """Some ten seconds each."""
    assert run(script, [], tmp_path, monkeypatch) >= pictures
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) > 5
