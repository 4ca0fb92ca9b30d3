"""The command: what it prints, what it writes, and how it ends."""

import csv
import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace

import numpy as np
import pytest

import medyanpy as mp
from medyanpy.cli import main
from medyanpy.demo import (
    DEMOS,
    report,
)
from medyanpy.demo import points as demo
from medyanpy.demo.report import OUTPUTS
from medyanpy.files.trajectory import Trajectory

# Demos and pictures: kernels that other tests look at more closely.
pytestmark = pytest.mark.slow


BRANCHED = """v 0 0 0
v 0 0 1
v 1 0 0
v 0 1 0
v -1 0 0
f 1 2 3
f 1 2 4
f 1 2 5
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """What a small demo printed and wrote."""
    out = tmp_path_factory.mktemp("demo") / "out"
    with redirect_stdout(io.StringIO()) as said, redirect_stderr(io.StringIO()) as wrong:
        code = main(["demo", *"--points 50 --steps 20 --threads 1 --out".split(), str(out)])
    assert code == 0, wrong.getvalue()
    return out, said.getvalue(), wrong.getvalue()


def test_a_small_demo_writes_everything(small):
    out, _, wrong = small
    # Quiet in a pipe: no progress bar, no warnings.
    assert wrong == ""
    assert sorted(p.name for p in out.iterdir()) == sorted(OUTPUTS)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["version"] == mp.__version__
    assert summary["mesh"]["faces"] == 9680
    assert summary["mesh"]["closed"]
    assert (summary["points"], summary["steps"], summary["threads"], summary["seed"]) == (50, 20, 1, 1)
    assert summary["speed"]["steps_per_second"] > 0.0
    assert [r["quantity"] for r in summary["results"]] == ["temperature of vertices", "temperature of proteins",
                                                           "uniformity, chi-square p"]  # fmt: skip
    # Twenty steps are too few for a temperature, and the demo says so.
    assert [r["verdict"] for r in summary["results"]] == ["--", "--", "OK"]
    assert summary["ok"]
    with Trajectory(out / "trajectory.h5") as trajectory:
        assert trajectory.steps.tolist() == list(range(1, 21))
        assert len(trajectory.handles["proteins"]) == 50
    with open(out / "state.csv", newline="") as file:
        assert len(list(csv.reader(file))) == 21
    assert (out / "picture.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert (out / "picture.png").stat().st_size > 20_000


def test_the_table_is_aligned_and_says_by_which_criterion(small):
    lines = small[1].splitlines()
    start = next(i for i, line in enumerate(lines) if "measured" in line)
    head, table = lines[start], lines[start + 1 : start + 4]
    assert len({line.index("p > ") if "p > " in line else None for line in table} - {None}) == 1
    for name in ("measured", "expected"):
        end = head.index(name) + len(name)
        assert all(line[end] == " " for line in table)
    assert re.search(r"uniformity, chi-square p +[\d.e-]+ +- +OK +p > ", "\n".join(table))
    assert any(line.startswith("speed") and "steps/s" in line for line in lines)


def test_checkpoint_of_the_demo_resumes(small):
    out, *_ = small
    mesh, _ = demo._load(None)
    system, _ = demo._build(mesh, 50, 1)
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(demo.TIMESTEP, temperature=demo.TEMPERATURE, seed=1),
                               threads=1)  # fmt: skip
    simulation.load_checkpoint(out / "run.checkpoint")
    assert simulation.current_step == 20
    with Trajectory(out / "trajectory.h5") as trajectory:
        x = simulation.context.get_state(positions=True).positions
        np.testing.assert_allclose(trajectory[-1].positions, x, rtol=1e-6, atol=1e-3)


def test_files_of_an_earlier_demo_are_refused_at_once(small, capsys):
    out, *_ = small
    before = (out / "summary.json").read_bytes()
    assert main(["demo", "--out", str(out)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(r"medyanpy: .* holds trajectory\.h5, .* give --overwrite\n", said.err)
    assert (out / "summary.json").read_bytes() == before


def test_a_mesh_that_carries_no_membrane_is_refused_in_plain_words(tmp_path, capsys):
    path = tmp_path / "branched.obj"
    path.write_text(BRANCHED)
    assert main(["demo", "--mesh", str(path), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr()
    assert "more than two faces" in said.err
    assert "branched.obj" in said.err
    assert "Traceback" not in said.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("arguments", "message"), [
    (["--points", "0"], "points = 0 but must be a whole number >= 1"),
    (["--steps", "-1"], "steps = -1 but must be a whole number >= 1"),
    (["--threads", "0"], "threads = 0"),
    (["--seed", "-1"], "seed = -1"),
    (["--mesh", "nowhere.ply"], "nowhere.ply"),
    (["--mesh", "mesh.xyz"], "mesh.xyz"),
])  # fmt: skip
def test_numbers_and_files_outside_their_domain(arguments, message, tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "out"), *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith("medyanpy: ")
    assert message in said
    assert not (tmp_path / "out").exists()


def test_an_open_mesh_of_the_users_own(tmp_path, capsys):
    """In other units, with a border; scaled to a cell."""
    path = tmp_path / "sheet.ply"
    mp.TriangleMesh.flat_sheet(24, 20, 1.0).save(path)
    out = tmp_path / "out"
    assert main(["demo", "--mesh", str(path), *"--points 40 --steps 10 --threads 1 --out".split(), str(out)]) == 0
    said = capsys.readouterr().out
    assert "sheet.ply, scaled to 8 µm: 480 vertices, 874 faces" in said
    assert "no volume to keep" in said
    summary = json.loads((out / "summary.json").read_text())
    assert summary["mesh"]["volume"] is None
    assert summary["results"][2]["verdict"] == "OK"


def test_thin_triangles_are_held_and_said_so(tmp_path, capsys):
    """A sphere with one needle: a vertex pushed to within a hundredth of the opposite edge."""
    mesh = mp.TriangleMesh.icosphere(1.0, 3)
    x = mesh.vertices.copy()
    a, b, c = mesh.faces[0]
    x[a] = 0.49 * (x[b] + x[c]) + 0.02 * x[a]
    path = tmp_path / "needle.ply"
    mp.TriangleMesh(x, mesh.faces).save(path)
    out = tmp_path / "out"
    assert main(["demo", "--mesh", str(path), *"--points 40 --steps 60 --threads 1 --out".split(), str(out)]) == 0
    assert "too thin to have a curvature" in capsys.readouterr().out


def test_the_number_of_threads_changes_speed_only(tmp_path, capsys):
    """And where none is given, the faster is taken."""
    path = tmp_path / "sphere.ply"
    mp.TriangleMesh.icosphere(1.0, 3).save(path)
    ends = []
    for k, arguments in enumerate((["--threads", "1"], ["--threads", "2"], [])):
        out = tmp_path / str(k)
        assert main(["demo", "--mesh", str(path), *"--points 40 --steps 10 --out".split(), str(out), *arguments]) == 0
        assert re.search(r", [12] threads?( \(2 would be slower now\))?$", capsys.readouterr().out, re.M)
        with Trajectory(out / "trajectory.h5") as trajectory:
            ends.append(trajectory[-1].positions)
    assert (ends[0] == ends[1]).all()
    assert (ends[0] == ends[2]).all()


# So that it fails, timestep and masses are far off: all that may be said of them is said.
@pytest.mark.unstable
@pytest.mark.filterwarnings(
    "ignore:.* heat moves its vertices by .* it will be turned over:medyanpy.errors.TimestepWarning",
    "ignore:.* heat moves a bead by .* farther than from one neighbour:medyanpy.errors.UnitsWarning",
)
def test_a_failed_run_ends_with_1(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "TIMESTEP", 5e-6)
    monkeypatch.setattr(demo, "vertex_masses", lambda mesh, *_: np.full(len(mesh.vertices), 1e-20))
    out = tmp_path / "out"
    assert main(["demo", "--points", "20", "--steps", "50", "--threads", "1", "--out", str(out)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("medyanpy: the run failed: step ")
    assert "Traceback" not in said


def test_a_demo_that_measured_something_else_ends_with_1(tmp_path, capsys, monkeypatch):
    """Forced by a bound that no measurement meets."""
    monkeypatch.setattr(report, "SMALLEST_P", 1.0)
    arguments = ["demo", "--points", "20", "--steps", "5", "--threads", "1", "--out", str(tmp_path / "wrong")]
    assert main(arguments) == 1
    said = capsys.readouterr()
    assert said.out.count("CHECK") == 1
    assert said.err == "medyanpy: not as expected (CHECK in the table): uniformity, chi-square p\n"
    # What was written is there all the same.
    assert not json.loads((tmp_path / "wrong" / "summary.json").read_text())["ok"]


@pytest.mark.parametrize("which", DEMOS)
def test_no_demo_ends_with_0_where_its_table_says_check(which, capsys, monkeypatch):
    lines = [report.bound_line("good", 1.0, 2.0), report.bound_line("bad", 3.0, 2.0)]
    done = report.Demo(None, mp.Topology(), lines, {})
    monkeypatch.setitem(DEMOS, which, replace(DEMOS[which], run=lambda **options: done))
    assert main(["demo", which]) == 1
    assert capsys.readouterr().err.endswith(": bad\n")
    lines.pop()
    assert main(["demo", which]) == 0


def test_few_samples_give_no_estimate():
    """Their own spread says too little: of five, seven in a thousand would be five standard errors away by chance."""
    samples = np.random.default_rng(1).normal(size=20)
    assert report.mean_line("mean", samples, 0.0).verdict == "OK"
    line = report.mean_line("mean", samples[:5], 1e9)
    assert (line.verdict, line.measured) == ("--", None)
    assert line.criterion == "5 samples, fewer than 20"


def test_info_prints_versions_threads_and_parts(capsys):
    assert main(["info"]) == 0
    said = capsys.readouterr().out
    assert re.search(rf"^medyanpy +{re.escape(mp.__version__)}$", said, re.M)
    assert re.search(r"^instruction set +(baseline|avx2|avx512)\b", said, re.M)
    assert re.search(r"^threads +\d+$", said, re.M)
    assert re.search(r"^h5py +\d+\.", said, re.M)
    assert re.search(r"^MDAnalysis +(\d+\.|not installed)", said, re.M)


def test_version_and_help(capsys):
    for arguments, text in (
        (["--version"], f"medyanpy {mp.__version__}\n"),
        (["--help"], "demo"),
        (["demo", "--help"], "--overwrite"),
    ):
        with pytest.raises(SystemExit) as end:
            main(arguments)
        assert end.value.code == 0
        assert text in capsys.readouterr().out
    assert main([]) == 0
    assert "demo" in capsys.readouterr().out
    with pytest.raises(SystemExit) as end:
        main(["dance"])
    assert end.value.code == 2
