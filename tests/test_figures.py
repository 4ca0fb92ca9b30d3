"""The command that remakes the figures of the source texts: each is made, quickly, with numbers like the published
ones; what differs is known by name; and what cannot be made is left out and counted."""

import csv
import io
import json
import re
import sys
from dataclasses import replace
from math import isfinite
from pathlib import Path

import numpy as np
import pytest
from builders import refuses

from medyanpy.demo.report import Line, bound_line, near_line
from medyanpy.errors import ParameterError

sys.path.insert(0, str(Path(__file__).parent / "validation"))
import figures
from figures import plates
from figures.__main__ import main

DOCS = Path(__file__).resolve().parents[1] / "docs"
# What is not as the texts have it. Times depend on the machine: they may differ, and need not.
DIFFER = {
    "001_2: power of ω in the largest ‖g(x)‖",
    "001_6: change of the angular momentum: partly solved Newmark over Z&Ss",
    "001_regions: Z&S, ω = 20: the same",
    "001_8: limit of velocity Verlet, h",
    "003_energy: rms deviation: δt over δt/2",
    "003_interacting: the same to t = 20",
    "003_lemniscate: largest r with two holes",
    "004_3d: single precision, |E/E0 - 1| to 1000 t0",
    "004_4: fluctuations of OSDH over (Δt/t0)², Δt = 0.2 t0",
    "004_4: force evaluations of MPDH per step to 1e-12, Δt = 0.2 t0",
}


# Figures with rows of several statements, of which some are as the texts have them.
MIXED = {"001_2", "001_6", "001_8", "003_energy", "003_interacting", "003_lemniscate", "004_4"}


def plate(make, name="003_made_up.png"):
    return plates.Plate(name, "nowhere", "made up", make, (1.0, 1.0))


def drawn(*lines):
    """A figure with a line, and rows."""

    def make(work):
        figure, (axis,) = plates.panels(1, 1, (2.0, 2.0))
        axis.plot([0, 1])
        return plates.Made(figure, [plates.Row(line, "in these words") for line in lines], f"{work.of(1, 2)} of them")

    return make


def test_the_audit_names_what_there_is():
    """142 rows of the five texts: each works, or differs and says so, by tests, figures and pages that exist."""
    with (DOCS / "data" / "tables" / "audit.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 142
    assert {row["verdict"] for row in rows} == {"works", "differs, said"}
    pictures = {path.stem for path in (DOCS / "images" / "figures").iterdir()}
    for row in rows:
        where = row["where"]
        assert where
        named = re.findall(r"\b00\d_\w+", where)
        assert set(named) <= pictures, row
        paths = re.findall(r"`(tests/[\w/]+(?:\.py)?)", where)
        assert all((DOCS.parent / path).exists() for path in paths), row
        linked = re.findall(r"\]\(([\w./]+\.md)", where)
        assert all((DOCS / "figures" / page).exists() for page in linked), row
        # What a figure knows to differ is no row that works.
        assert row["verdict"] != "works" or not any(name in {of.partition(":")[0] for of in DIFFER} - MIXED
                                                    for name in named), row  # fmt: skip


def test_legends_cover_nothing():
    figure, (line, dots, free) = plates.panels(1, 3, (7.5, 2.5))
    line.plot([0.0, 1.0], [1.0, 1.0], label="at the top")
    line.set_ylim(0.0, 1.05)
    line.legend(loc="upper right")
    dots.plot([0.9], [0.1], "o", label="low")
    dots.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    dots.legend(loc="lower right")
    free.plot([0.0, 1.0], [0.0, 0.0], label="below")
    free.set_ylim(-1.0, 1.0)
    free.legend(loc="upper right")
    assert plates.clear_legends(figure) == [line, dots]
    assert line.get_ylim()[1] > 1.05
    assert line.get_ylim()[0] == 0.0
    assert dots.get_ylim()[0] < 0.0
    assert free.get_ylim() == (-1.0, 1.0)


@pytest.fixture
def made_up(monkeypatch):
    """Replaces the figures that there are."""

    def these(*what):
        monkeypatch.setattr(figures, "PLATES", what)

    return these


# Each figure --------------------------------------------------------------------------------------------------------


# Half of the time of all is that of these: every text has others.
LONG = ("000_density", "001_6", "002_channel", "004_3abc", "004_3d", "004_4", "004_6", "chemistry_tube",
        "chemistry_contraction")


@pytest.mark.slow
@pytest.mark.parametrize(
    "one", [pytest.param(p, id=p.stem, marks=[pytest.mark.long] * (p.stem in LONG)) for p in figures.PLATES]
)
def test_a_figure_agrees_with_its_text(one, tmp_path, request):
    structure = None
    if one.stem == "002_channel":
        pytest.importorskip("gemmi")
        structure = request.getfixturevalue("shared_data") / "proteins" / "glyr_7tu9.pdb"
    said = io.StringIO()
    report = figures.make_figures([one], tmp_path, quick=True, threads=1, structure=structure, stream=said)
    # The other methods of Ladd and Misra are run in full where numba compiles them.
    cut = not figures.seed_004.rod_reference.COMPILED and one.stem in ("004_3abc", "004_4")
    left_out = {one.stem: "numba"} if cut else {"chemistry_contraction": "doi"} if "contraction" in one.stem else {}
    assert {name: reason for name, reason in left_out.items() if reason in report.left_out[name]} == left_out
    assert report.left_out.keys() == left_out.keys()
    file = (tmp_path / one.name).read_bytes()
    assert file.startswith(b"\x89PNG\r\n\x1a\n" if one.name.endswith("png") else b"GIF89a")
    assert len(file) > 5000
    rows = report.rows[one.stem]
    assert rows or one.name.endswith(".gif")
    # Only runs to full length measure when methods become unstable, and how they drift.
    measured = [row for row in rows if not re.search("unstable from|drift of", row.line.quantity)]
    assert all(isfinite(row.line.measured) for row in measured)
    # Every number says what it is measured against.
    assert all(row.says for row in rows)
    assert report.with_verdict("CHECK") == []
    differ = {name for name in report.with_verdict("DIFFERS") if ": time: " not in name}
    assert differ == {name for name in DIFFER if name.startswith(f"{one.stem}:")}


def test_they_are_listed_by_text_and_name():
    stems = [p.stem for p in figures.PLATES]
    assert set(LONG) < set(stems)
    assert {p.seed for p in figures.PLATES if p.stem not in LONG} == set(figures.SEEDS)
    assert len(set(stems)) == len(stems)
    assert [p.seed for p in figures.PLATES] == sorted(p.seed for p in figures.PLATES)
    assert {p.seed for p in figures.PLATES} == set(figures.SEEDS)
    assert all(0.0 < quick <= full for quick, full in (p.seconds for p in figures.PLATES))
    # --quick is what runs at each change: three minutes on two cores.
    assert sum(p.seconds[0] for p in figures.PLATES) < 180.0


@pytest.mark.parametrize("seed", figures.SEEDS)
def test_a_page_shows_them(seed):
    page = (DOCS / "figures" / f"{seed}.md").read_text(encoding="utf-8")
    for p in figures.PLATES:
        if p.seed == seed:
            assert f"images/figures/{p.stem}." in page, p.name
            (image,) = (DOCS / "images" / "figures").glob(f"{p.stem}.*")
            assert image.stat().st_size < 150_000


# The command --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["--seed", "002", "chemistry"], ["--only", "002", "chemistry"]])
def test_the_list(arguments, capsys):
    assert main(["--list", *arguments]) == 0
    said = capsys.readouterr().out
    assert all((p.name in said) == (p.seed in ("002", "chemistry")) for p in figures.PLATES)


@pytest.mark.parametrize(("arguments", "message"), [
    (["--seed", "005"], "no text '005', only 000, 001, 002, 003, 004"),
    (["--only", "002_elipse"], r"no figure '002_elipse' \(--list\); did you mean 002_ellipse"),
    (["--only", "002_top", "--seed", "003"], "no figure '002_top' of 003"),
    (["--only", "chemistry", "--seed", "003"], "no figure 'chemistry' of 003"),
    (["--only", "002_top", "--structure", "nowhere.pdb"], "no file nowhere.pdb"),
    (["--only", "002_top", "--threads", "0"], "threads"),
])  # fmt: skip
def test_refusals_come_before_anything_is_written(arguments, message, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["--quick", "--out", str(out), *arguments]) == 2
    said = capsys.readouterr()
    assert re.search(message, said.err)
    assert "Traceback" not in said.err
    assert not out.exists()


def test_files_of_an_earlier_call_are_kept(tmp_path, made_up, capsys):
    made_up(plate(drawn(bound_line("a number", 1.0, 2.0))))
    arguments = ["--out", str(tmp_path)]
    assert main(arguments) == 0
    before = (tmp_path / "numbers.csv").read_bytes()
    assert main(arguments) == 2
    assert "003_made_up.png, numbers.csv, summary.json already" in capsys.readouterr().err
    assert (tmp_path / "numbers.csv").read_bytes() == before
    assert main([*arguments, "--overwrite"]) == 0
    (tmp_path / "file").write_text("")
    refuses(ParameterError, "is not a folder", figures.make_figures, figures.PLATES, tmp_path / "file")
    refuses(ParameterError, "none of them", figures.make_figures, [], tmp_path / "other")


def test_numbers_are_written_and_printed(tmp_path, capsys):
    line = Line("a quantity", 1.5, 0.25, 2.0, "nm", "z = -2.0, |z| < 5", "OK")
    report = figures.make_figures([plate(drawn(line))], tmp_path, quick=True, threads=1)
    with open(tmp_path / "numbers.csv", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row == {"figure": "003_made_up", "quantity": "a quantity", "measured": "1.5", "error": "0.25",
                   "source": "2.0", "unit": "nm", "verdict": "OK", "criterion": "z = -2.0, |z| < 5",
                   "what the source says": "in these words"}  # fmt: skip
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary == report.summary
    assert summary["ok"]
    assert summary["quick"]
    (figure,) = summary["figures"]
    assert (figure["name"], figure["number"]) == ("003_made_up.png", "nowhere")
    assert figure["source"] == "Shapero: billiards on surfaces"
    assert figure["numbers"][0]["says"] == "in these words"
    said = capsys.readouterr().out
    assert "a quantity  1.50 ± 0.25    2.00  nm  OK" in said
    assert "1 of them; " in said
    assert "made      1 figures, 0 left out, 0 numbers that differ" in said


def test_a_number_that_is_wrong_fails_the_command(tmp_path, made_up, capsys):
    made_up(plate(drawn(near_line("a law", 1.0, 2.0, 0.1))))
    assert main(["--out", str(tmp_path)]) == 1
    assert "not as expected (CHECK in the tables): 003_made_up: a law" in capsys.readouterr().err
    assert not json.loads((tmp_path / "summary.json").read_text())["ok"]


def test_a_number_that_differs_for_a_known_reason_says_so(tmp_path, made_up, capsys):
    def make(work):
        made = drawn(near_line("wrong", 1.0, 2.0, 0.1), near_line("right", 2.0, 2.0, 0.1))(work)
        return replace(made, rows=[row.but("a misprint") for row in made.rows])

    made_up(plate(make))
    assert main(["--out", str(tmp_path)]) == 0
    assert "differs   003_made_up: wrong\n" in capsys.readouterr().out
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["differs"] == ["003_made_up: wrong"]
    assert [n["verdict"] for n in summary["figures"][0]["numbers"]] == ["DIFFERS", "OK"]
    assert [n["says"] for n in summary["figures"][0]["numbers"]] == ["in these words; a misprint", "in these words"]


def test_figures_that_cannot_be_made_are_counted(tmp_path, made_up, capsys):
    def without(work):
        raise plates.LeftOut("needs a file")

    def missing(work):
        raise ImportError("pip install 'medyanpy[surfaces]'")

    made_up(plate(without, "002_a.png"), plate(missing, "003_b.png"), plate(drawn(), "003_c.png"))
    assert main(["--out", str(tmp_path)]) == 1
    both = capsys.readouterr()
    said = both.out
    assert "left out, in whole or in part: 002_a, 003_b" in both.err
    assert "left out  needs a file" in said
    assert "left out  pip install 'medyanpy[surfaces]'" in said
    assert "made      1 figures, 2 left out" in said
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["left_out"] == {"002_a": "needs a file", "003_b": "pip install 'medyanpy[surfaces]'"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["003_c.png", "numbers.csv", "summary.json"]


def test_a_figure_with_a_part_missing_is_made_and_counted(tmp_path, made_up, capsys):
    made_up(plate(lambda work: replace(drawn()(work), missing="a method needs numba"), "004_a.png"))
    assert main(["--out", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert "left out  a method needs numba" in said.out
    assert "made      1 figures, 1 left out" in said.out
    assert "left out, in whole or in part: 004_a" in said.err
    assert (tmp_path / "004_a.png").exists()
    assert not json.loads((tmp_path / "summary.json").read_text())["ok"]


def test_without_a_structure_another_protein_is_drawn(tmp_path, capsys):
    assert main(["--only", "002_channel", "--out", str(tmp_path)]) == 0
    assert "adenylate kinase, for want of --structure" in capsys.readouterr().out


@pytest.mark.parametrize(("kind", "start"), [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_pictures_are_of_any_kind(kind, start, tmp_path, made_up):
    made_up(plate(drawn()))
    for folder in ("one", "two"):
        assert main(["--out", str(tmp_path / folder), "--format", kind]) == 0
        names = sorted(p.name for p in (tmp_path / folder).iterdir())
        assert names == [f"003_made_up.{kind}", "numbers.csv", "summary.json"]
    one, two = ((tmp_path / folder / f"003_made_up.{kind}").read_bytes() for folder in ("one", "two"))
    assert one.startswith(start)
    assert one == two
    assert main(["--out", str(tmp_path / "one"), "--format", kind]) == 2


def test_pictures_have_so_many_dots_per_inch(tmp_path, made_up):
    from PIL import Image

    made_up(plate(drawn()))
    for name, options in (("a", []), ("b", ["--dpi", "300"])):
        assert main(["--out", str(tmp_path / name), *options]) == 0
    for name, size in (("a", (220, 220)), ("b", (600, 600))):
        with Image.open(tmp_path / name / "003_made_up.png") as image:
            assert image.size == size
    refuses(ParameterError, "dpi = 5", figures.make_figures, figures.PLATES[:1], tmp_path / "c", dpi=5)
    refuses(ParameterError, "kind 'gif'", figures.make_figures, figures.PLATES[:1], tmp_path / "c", kind="gif")


# Independent of the figures: what they rest on ----------------------------------------------------------------------


def test_energies_of_a_rod_are_those_of_the_package():
    """Of a helix on its way, by parts against the whole."""
    run = figures.seed_004.Run("helix", 20, 0.1)
    run.step(200)
    state = run.context.get_state(energy=True)
    kinetic, potential = run.energies().sum(axis=1)
    assert kinetic == pytest.approx(state.kinetic_energy, rel=1e-12)
    assert potential == pytest.approx(state.potential_energy, rel=1e-12)
    assert (run.energies() > 0.0).all()


def test_a_body_of_three_beads_and_one_that_turns_have_one_energy():
    from coarse import magnetised_body as body

    r, rate = body.rigid_body(0.01, 100)
    assert body.off_orthogonal(r).max() < 1e-13
    energy = body.energy(r, rate)
    assert energy[0] == pytest.approx(0.5 * (body.OMEGA_0 @ body.OMEGA_0) + body.FIELD, rel=1e-13)
    assert np.abs(energy - energy[0]).max() < 1e-4
