"""The commands that run, look at and write files: exit codes, what is said, what is left alone."""

import json
import os
import re
import runpy
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy import forces
from medyanpy._kernels import selected
from medyanpy.cli import bench, main
from medyanpy.cli.codes import EXIT_CODES, PIPE_CLOSED, TOO_LITTLE_TIME
from medyanpy.cli.export import frames_of
from medyanpy.errors import ParameterError
from medyanpy.runs import CHECKPOINT
from medyanpy.testing import installation

# Commands and processes: no kernel that other tests do not reach.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]

SCRIPT = """
import numpy as np
import medyanpy as mp

{above}

def make(directory):
    topology = mp.Topology()
    beads = topology.add_beads(np.eye(3), mass=1.0, friction=0.5, name="beads")
    system = mp.System(topology)
    system.add_force({force})
    simulation = mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 0.05, kT=1.0, seed=1))
    simulation.reporters += [
        mp.reporters.TrajectoryReporter(directory / "run.h5", 10),
        mp.reporters.CheckpointReporter(directory / "run.checkpoint", {checkpoint}),
    ]
    return simulation


if __name__ == "__main__":
    raise SystemExit("run as a program")
"""
TRAP = "mp.forces.HarmonicTrap(beads, 1.0, [0.0, 0, 0])"


def write(path, force=TRAP, above="", checkpoint=50):
    path.write_text(SCRIPT.format(force=force, above=above, checkpoint=checkpoint))
    return path


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Scripts put their folder on it.
    monkeypatch.setattr(sys, "path", list(sys.path))
    write(tmp_path / "cell.py")
    (tmp_path / "scratch").mkdir()
    with runpy.run_path(tmp_path / "cell.py")["make"](tmp_path / "scratch") as simulation:
        mp.serialize(simulation, tmp_path / "vesicle.json")
    return tmp_path


def said(capsys, code, *words):
    """What a command prints, once it has ended as it should; on standard error where that is not 0 or 3."""
    found = main([str(word) for word in words])
    out, err = capsys.readouterr()
    assert found == code, out + err
    if code in (0, 3):
        assert err == ""
        return out
    assert out == ""
    assert err.startswith("medyanpy: ")
    assert err.count("\n") == 1 + err.count("\n  ")
    return err


# run, resume -------------------------------------------------------------------------------------------------


def test_a_script_is_started_resumed_and_done(here, capsys):
    assert said(capsys, 0, "run", "cell.py", "--until", 100) == "cell: step 100 of 100: done\n"
    assert said(capsys, 0, "run", "cell.py", "--until", 100) == "cell: step 100 of 100: was done before\n"
    assert said(capsys, 0, "run", "cell", "--until", 150) == "cell: step 150 of 150: done\n"
    assert said(capsys, 0, "resume", "cell/run.checkpoint", "--until", 200).endswith("step 200 of 200: done\n")
    assert said(capsys, 0, "resume", "cell/run.checkpoint", "--until", 200).endswith("was done before\n")
    assert mp.Trajectory("cell/run.h5").steps.tolist() == list(range(10, 201, 10))
    assert {p.name for p in Path("cell").iterdir()} == {"run.h5", CHECKPOINT}


def test_a_document_is_run_with_the_reporters_that_are_asked_for(here, capsys):
    assert said(capsys, 0, "run", "vesicle.json", "--until", 1000) == "vesicle: step 1000 of 1000: done\n"
    assert len(np.loadtxt("vesicle/run.csv", delimiter=",")) == 10
    words = ["run", "vesicle.json", "--until", 60, "--dir", "b", "--trajectory", 20, "--table", 15, "--checkpoint", 5]
    said(capsys, 0, *words)
    assert mp.Trajectory("b/run.h5").steps.tolist() == [20, 40, 60]
    assert np.loadtxt("b/run.csv", delimiter=",")[:, 0].tolist() == [15, 30, 45, 60]


def test_time_that_is_up_has_a_code_of_its_own(here, capsys):
    def in_time(*words):
        """With as much time as a step needs on this machine: where it is busy, that is not said beforehand."""
        for seconds in (0.5, 4, 30, 200):
            if main([*words, "--until", str(10**9), "--walltime", f"{seconds}s"]) == 3:
                out, err = capsys.readouterr()
                assert err == ""
                return out
            assert "the step is saved" in capsys.readouterr().err
        raise AssertionError("no step in 200 s")

    out = in_time("run", "cell.py")
    step = int(re.fullmatch(r"cell: step (\d+) of 10{9}: time is up, call again for the (\d+) steps .*\n", out)[1])
    assert step > 0
    with mp.Simulation.resume("cell/run.checkpoint") as simulation:
        assert simulation.current_step == step
    in_time("resume", "cell/run.checkpoint")


def test_a_walltime_shorter_than_a_step_has_a_code_of_its_own(here, capsys, monkeypatch):
    """The step is saved, so that not nothing was changed: 4, of `run` and of `resume`."""
    write(here / "slow.py", above="import time", force=TRAP)
    text = (here / "slow.py").read_text().replace("    topology = mp", "    time.sleep(0.3)\n    topology = mp", 1)
    (here / "slow.py").write_text(text)
    assert main(["run", "slow.py", "--until", "100", "--walltime", "0.1s"]) == TOO_LITTLE_TIME == 4
    assert "the step is saved" in capsys.readouterr().err
    with mp.Simulation.resume(here / "slow" / CHECKPOINT, reporters=False) as simulation:
        assert simulation.current_step == 1
    with pytest.raises(mp.WalltimeError):
        mp.run(here / "again", runpy.run_path("slow.py")["make"], until=100, walltime=0.1)
    # Walltimes that are none are input that cannot be used.
    for none in ("-1s", "soon", "0"):
        assert main(["run", "slow.py", "--until", "100", f"--walltime={none}"]) == 2


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["info", "--json"], ["info"]])
def test_a_reader_that_ends_early_is_not_an_error(here, words, unbuffered):
    """As `medyanpy info --json | head -c 1`: nothing on standard error, and the code of an end by SIGPIPE."""
    process = subprocess.Popen(
        [sys.executable, "-c", f"import sys; from medyanpy.cli import main; sys.exit(main({words!r}))"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
    )  # fmt: skip
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == PIPE_CLOSED == 141


def test_advice_is_of_the_shell(here, capsys):
    """Options stand for arguments of Python, where a command has them."""
    said(capsys, 0, "run", "cell.py", "--until", 20)
    Path("out.xyz").write_text("mine")
    assert main(["export", "cell/run.h5", "out.xyz"]) == 2
    err = capsys.readouterr().err
    assert "out.xyz exists; give --overwrite to replace it" in err
    assert "=True" not in err
    said(capsys, 0, "export", "cell/run.h5", "out.xyz", "--overwrite")


def test_warnings_name_the_command_and_not_a_line_of_it(here, capfd):
    program = (
        "import sys, warnings\nfrom medyanpy import cli\nimport medyanpy as mp\n"
        "def act(options):\n"
        "    warnings.warn('triangle 7 is a needle', mp.MeshQualityWarning, stacklevel=3)\n    return 0\n"
        "cli.info.run = act\nsys.exit(cli.main(['info']))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "medyanpy: MeshQualityWarning: triangle 7 is a needle\n"


def test_sigterm_to_a_whole_process_is_time_that_is_up(here):
    words = [sys.executable, "-m", "medyanpy", "run", "cell.py", "--until", str(10**9)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not Path("cell/run.checkpoint").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate()
    assert (process.returncode, err) == (3, "")
    assert "time is up" in out


def test_ctrl_c(here, capsys, monkeypatch, interruptible):
    monkeypatch.setattr(mp.Context, "step", lambda *_: os.kill(os.getpid(), signal.SIGINT))
    assert "interrupted" in said(capsys, 130, "run", "cell.py", "--until", 100)


def test_names_beside_make_in_a_script(here, capsys):
    """Functions of Python forces, what lies beside it; and it is not run as a program."""
    (here / "beside.py").write_text("def pull(x):\n    return 0.5 * float((x**2).sum()), -x\n")
    above = "from beside import pull\n\nfunctions = {'pull': pull}"
    write(here / "own.py", "mp.forces.PythonForce(pull, name='pull')", above)
    for until in (50, 100):
        assert said(capsys, 0, "run", "own.py", "--until", until).endswith("done\n")
    # The folder alone does not know them.
    assert "pull" in said(capsys, 2, "run", "own", "--until", 150)


def test_a_run_that_fails(here, capsys):
    above = "def bad(x):\n    return float('nan'), x * float('nan')\n\n\nfunctions = {'bad': bad}"
    write(here / "bad.py", "mp.forces.PythonForce(bad, name='bad')", above)
    assert "the run failed" in said(capsys, 1, "run", "bad.py", "--until", 100)


@pytest.mark.parametrize(("words", "message"), [
    (["run", "nowhere.py", "--until", 5], "nowhere.py does not exist"),
    (["run", "scratch", "--until", 5], r"scratch holds no run\.checkpoint"),
    (["run", "cell.py", "--until", -5], "until = -5"),
    (["run", "cell.py", "--until", 5, "--walltime", "soon"], "walltime = 'soon'"),
    (["run", "cell.py", "--until", 5, "--threads", 0], "threads = 0"),
    (["run", "cell.py", "--until", 5, "--table", 3], r"--table is for documents; .* those of cell\.py"),
    (["run", "vesicle.json", "--until", 5, "--table", 0], "interval = 0"),
    (["run", "vesicle.json", "--until", 5, "--dir", "cell.py"], "is a file, not the folder"),
    (["run", "none.py", "--until", 5], r"none\.py defines no make: write `def make\(directory\):`"),
    (["run", "broken.py", "--until", 5], r"broken\.py is not a Python script: line 1"),
    (["run", "needs.py", "--until", 5], "No module named 'no_such_module'"),
    (["run", "newer.json", "--until", 5], "has version 99 of the format"),
    (["run", "notes.txt", "--until", 5], r"notes\.txt is not a document"),
    (["run", "done/run.checkpoint", "--until", 5], "is a checkpoint: medyanpy resume done/run.checkpoint"),
    (["run", "done", "--until", 5], "until = 5 but .* is at step 10 already"),
    (["run", "done", "--until", 15, "--dir", "other"], "--dir is for scripts and documents"),
    (["resume", "done/run.checkpoint", "--until", 5], "until = 5 but .* is at step 10 already"),
    (["resume", "nowhere.checkpoint", "--until", 5], "nowhere.checkpoint does not exist"),
    (["resume", "notes.txt", "--until", 5], "is not a checkpoint"),
    (["run", "full.py", "--until", 5], r"run\.h5 exists"),
    (["info", "nowhere"], "nowhere does not exist"),
    (["info", "notes.txt"], "is neither a trajectory, nor a checkpoint, nor a document"),
    (["info", "scratch"], "holds no run.checkpoint"),
    (["info", "newer.json"], "has version 99 of the format"),
])  # fmt: skip
def test_refusals_of_unusable_input(here, capsys, words, message):
    (here / "none.py").write_text("x = 1\n")
    (here / "broken.py").write_text("def make(:\n")
    (here / "needs.py").write_text("import no_such_module\n")
    (here / "notes.txt").write_text("milk\n")
    text = (here / "vesicle.json").read_text()
    (here / "newer.json").write_text(text.replace('"version": 2', '"version": 99'))
    said(capsys, 0, "run", "cell.py", "--until", 10, "--dir", "done")
    write(here / "full.py")
    (here / "full").mkdir()
    (here / "full" / "run.h5").write_bytes((here / "done" / "run.h5").read_bytes())
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file() and path.name[0] != "."}
    assert re.search(message, said(capsys, 2, *words))
    after = {path: path.read_bytes() for path in here.rglob("*") if path.is_file() and path.name[0] != "."}
    assert {path: after[path] for path in before} == before
    assert {path.suffix for path in set(after) - set(before)} <= {".pyc"}


# info --------------------------------------------------------------------------------------------------------


def test_info_for_programs(capsys):
    found = json.loads(said(capsys, 0, "info", "--json"))
    assert found["medyanpy"] == mp.__version__
    assert found["instruction set"] in found["instruction sets built"]
    assert float(found["OpenMP"]) >= 4.5
    assert found["OpenMP library"] is None or re.match(r"lib(g|i)?omp", found["OpenMP library"])
    assert found["threads"] >= 1
    assert {"gsd", "ovito", "pyvista", "MDAnalysis", "argcomplete", "distributed"} <= found.keys()
    out = said(capsys, 0, "info")
    assert re.search(r"^OpenMP +on, \d", out, re.M)
    assert re.search(r"^ovito +(\d+\.|not installed) ?.*viewers", out, re.M)


def test_content_of_files(here, capsys):
    said(capsys, 0, "run", "vesicle.json", "--until", 60, "--dir", "b", "--trajectory", 20, "--checkpoint", 30)
    h5 = json.loads(said(capsys, 0, "info", "b/run.h5", "--json"))
    assert (h5["kind"], h5["frames"], h5["steps"], h5["beads"]) == ("trajectory", 3, [20, 60], 3)
    assert h5["times"] == [1.0, 3.0]
    assert list(h5["objects"]) == ["beads"]
    assert "positions" in h5["in each frame"]
    checkpoint = json.loads(said(capsys, 0, "info", "b/run.checkpoint", "--json"))
    assert (checkpoint["kind"], checkpoint["step"]) == ("checkpoint", 60)
    assert checkpoint["reporters"]["run.h5"] == "TrajectoryReporter, every 20 steps"
    assert checkpoint["integrator"]["timestep"] == 0.05
    folder = json.loads(said(capsys, 0, "info", "b", "--json"))
    assert folder["files"] == ["run.checkpoint", "run.csv", "run.h5"]
    document = json.loads(said(capsys, 0, "info", "vesicle.json", "--json"))
    assert document["forces"] == {"HarmonicTrap": "HarmonicTrap"}
    assert document["objects"] == {"beads": "Beads"}
    for name in ("b/run.h5", "b/run.checkpoint", "b", "vesicle.json"):
        assert re.search(r"^kind +(trajectory|checkpoint|document)$", said(capsys, 0, "info", name), re.M)


# export ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "frames"),
    [("3", [3]), ("-1", [9]), ("::5", [0, 5]), ("2:4", [2, 3]), (":", list(range(10))), ("-2:", [8, 9])],
)
def test_frames_as_python_slices_them(text, frames):
    assert list(range(10))[frames_of(text)] == frames


@pytest.mark.parametrize("text", ["", "a", "1:2:3:4", "1:2:0", "1.5"])
def test_frames_that_are_none(text):
    refuses(ParameterError, "--frames", frames_of, text)


def test_export_says_what_it_wrote_and_left_out(here, capsys, monkeypatch):
    """The formats have tests of their own; here, what is handed over."""
    calls = []

    def export(source, out, *, frames, overwrite):
        calls.append((source, out, frames, overwrite))
        return f"5 frames in {out}\nfaces are not written"

    monkeypatch.setitem(sys.modules, "medyanpy.files.exports", types.SimpleNamespace(export=export))
    out = said(capsys, 0, "export", "run.h5", "out.gsd", "--frames", "::2", "--overwrite")
    assert out == "5 frames in out.gsd\nfaces are not written\n"
    said(capsys, 0, "export", "run.h5", "out.gsd")
    assert calls == [("run.h5", "out.gsd", slice(None, None, 2), True), ("run.h5", "out.gsd", None, False)]


def test_exporting_for_other_programs(here, capsys):
    pytest.importorskip("medyanpy.files.exports")
    said(capsys, 0, "run", "cell.py", "--until", 50)
    assert "3 frames in out.xyz" in said(capsys, 0, "export", "cell/run.h5", "out.xyz", "--frames", "::2")
    assert Path("out.xyz").read_text().startswith("3\n")
    before = Path("out.xyz").read_bytes()
    for words, message in (
        (["cell/run.h5", "out.xyz"], "exists"),
        (["cell/run.h5", "out.doc"], "the ending '.doc'"),
        (["nowhere.h5", "other.xyz"], "nowhere.h5"),
        (["cell/run.h5", "other.xyz", "--frames", "a"], "--frames 'a'"),
    ):
        assert message in said(capsys, 2, "export", *words)
    assert Path("out.xyz").read_bytes() == before
    assert not Path("other.xyz").exists()


# bench -------------------------------------------------------------------------------------------------------


def test_bench_measures_standard_systems(capsys, monkeypatch):
    monkeypatch.setattr(bench, "_QUICK", 0.01)
    found = json.loads(said(capsys, 0, "bench", "--quick", "--json", "--threads", "1"))
    assert [row["system"] for row in found["results"]] == list(bench.SYSTEMS)
    for row in found["results"]:
        assert row["steps_per_second"] * row["ns_per_step_and_bead"] * row["beads"] == pytest.approx(1e9)
    assert found["machine"]["medyanpy"] == mp.__version__
    out = said(capsys, 0, "bench", "--quick", "--only", "bodies", "--threads", "2")
    assert re.fullmatch(r".*steps/s.*\nbodies +4000 +1 +\S+ +\S+\nbodies +4000 +2 +\S+ +\S+\n", out)


# test --------------------------------------------------------------------------------------------------------


def test_this_installation_is_verified(capsys):
    out = said(capsys, 0, "test", "--threads", "2")
    lines = out.splitlines()
    assert all(re.match(r".{39} OK ", line) for line in lines[:-1]), out
    assert lines[-1] == f"all {len(lines) - 1} passed"
    names = [line[:40].strip() for line in lines[:-1]]
    assert set(forces.__all__) - {"Force"} == set(names[: len(installation.FORCES)]), (
        "a force is a row of FORCES in medyanpy/testing/installation.py"
    )
    assert [name.split()[0] for name in names[len(installation.FORCES) :]] == [
        "1", *["instruction"] * (len(selected.built) - 1), "a"
    ]  # fmt: skip


def test_an_installation_that_computes_wrongly_is_found(capsys, monkeypatch):
    """A force that is a ten thousandth off, one that cannot be made, and other bits on two threads."""

    def off(x):
        return float(np.sum(np.cos(0.3 * x))), 0.3 * np.sin(0.3 * x) * (1.0 + 1e-4 * (x > 0.0))

    rows = {
        "PythonForce": lambda s: forces.PythonForce(off),
        "HarmonicBonds": lambda s: forces.HarmonicBonds(s.pairs, 3.0, 2.0),
        "MembraneTension": lambda s: forces.MembraneTension(s.membrane, "x"),
    }
    monkeypatch.setattr(installation, "FORCES", rows)
    monkeypatch.setattr(installation, "digest", lambda threads, through=None: str(threads))
    monkeypatch.setattr(installation, "_elsewhere", lambda isa: "ImportError: no such library")
    assert main(["test", "--json"]) == 1
    out, err = capsys.readouterr()
    found = {finding["name"]: finding["passed"] for finding in json.loads(out)["findings"]}
    assert not json.loads(out)["passed"]
    wrong = {name for name, passed in found.items() if not passed}
    assert wrong == set(found) - {"HarmonicBonds", "a run through and one resumed"}
    assert err.startswith("medyanpy: this installation does not compute as it should: PythonForce, MembraneTension, 1 ")
    assert main(["test"]) == 1
    assert re.search(r"^PythonForce +FAILED +\d", capsys.readouterr().out, re.M)


# Help and completion ------------------------------------------------------------------------------------------


def test_exit_codes_are_told(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    for code, meaning in EXIT_CODES.items():
        assert re.search(rf"^  {code} +{re.escape(meaning)}$", out, re.M)
    page = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", page, re.M)] == list(EXIT_CODES)


def test_the_page_tells_every_command_and_option(capsys):
    page = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["--help"])
    names = re.findall(r"^    (\w+)  ", capsys.readouterr().out, re.M)
    assert {"demo", "info", "run", "resume", "export", "bench", "test"} == set(names)
    for name in names:
        assert f"`medyanpy {name}" in page
        with pytest.raises(SystemExit):
            main([name, "--help"])
        options = set(re.findall(r"--[a-z]+", capsys.readouterr().out)) - {"--help"}
        if name != "demo":
            section = page.partition(f"## `medyanpy {name}")[2].partition("\n## ")[0]
            assert {option for option in options if option not in section} == set()


def completions(line, monkeypatch, capfd=None):
    environment = os.environ | {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)),
                                "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
                                "COMP_TYPE": "9"}  # fmt: skip
    code = "import os, sys; os.dup2(1, 8); from medyanpy.cli import main; sys.argv = ['medyanpy']; main()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    return done.stdout.split("\n")


def test_completion(monkeypatch):
    pytest.importorskip("argcomplete")
    assert {"run", "resume"} == set(completions("medyanpy r", monkeypatch))
    assert {"--until", "--walltime"} <= set(completions("medyanpy run --", monkeypatch))


def test_without_the_extra_there_is_no_completion_and_no_error(monkeypatch):
    """A shell asks, and gets no answer of another kind."""
    monkeypatch.setitem(sys.modules, "argcomplete", None)
    monkeypatch.setenv("_ARGCOMPLETE", "1")
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0


def test_the_mark_for_completion_of_scripts():
    """Where shells look for it: in the first kilobyte."""
    for name in ("cli/__init__.py", "__main__.py"):
        assert "PYTHON_ARGCOMPLETE_OK" in (Path(mp.__file__).parent / name).read_text()[:1024]
