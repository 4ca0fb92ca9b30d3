"""Many runs at once: the same bits on any executor, whoever is killed; and what is refused."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import ensemble_runs as runs
import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy.ensemble import replicas, shipping
from medyanpy.errors import ExecutorError, ParameterError

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
# Where scripts find what they share with tests.
FOLDERS = [str(HERE), str(HERE.parent), str(HERE.parent / "faults")]


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """Four replicas, by threads of this process."""
    with ThreadPoolExecutor(2) as executor:
        return mp.ensemble.run(runs.make, parameters=runs.STIFFNESSES, n_replicas=2, until=runs.STEPS, seed=3,
                               executor=executor, directory=tmp_path_factory.mktemp("reference") / "sweep",
                               analyse=runs.analyse)  # fmt: skip


def again(folder, **options):
    """The same ensemble, in another folder and elsewhere."""
    return mp.ensemble.run(runs.make, parameters=runs.STIFFNESSES, n_replicas=2, until=runs.STEPS, seed=3,
                           directory=folder, analyse=runs.analyse, **options)  # fmt: skip


def by_hand(i, j):
    """A replica of the reference, without any of this."""
    simulation = runs.make(mp.ensemble.seed_of(3, i, j), runs.STIFFNESSES[i]["stiffness"])
    simulation.step(runs.STEPS)
    return simulation.context.get_state(energy=True).total_energy


# What a table holds ---------------------------------------------------------------------------------------------------


def test_rows_are_runs_by_hand(reference):
    always = ("replica", "seed", "steps", "status", "error")
    assert reference.columns == ("stiffness", *always, "energy", "first", "threads")
    assert reference["energy"].tolist() == [by_hand(i, j) for i in range(2) for j in range(2)]
    assert reference["seed"].tolist() == [mp.ensemble.seed_of(3, i, j) for i in range(2) for j in range(2)]
    assert reference["stiffness"].tolist() == [1.0, 1.0, 2.0, 2.0]
    assert reference["replica"].tolist() == [0, 1, 0, 1]
    assert reference["steps"].tolist() == 4 * [runs.STEPS]
    assert reference["threads"].tolist() == 4 * [1]
    assert reference.done
    assert len(reference.failed) == 0


def test_seeds_are_those_of_numpy():
    """By the words of a published algorithm, which depends on nothing but the numbers."""
    expected = np.random.SeedSequence(3, spawn_key=(0, 1, 2)).generate_state(1, np.uint64)[0]
    assert mp.ensemble.seed_of(3, 1, 2) == expected
    assert len({mp.ensemble.seed_of(s, i, j) for s in range(3) for i in range(30) for j in range(30)}) == 2700
    refuses(ParameterError, "seed_of: replica = -1", mp.ensemble.seed_of, 3, 1, -1)


def test_tables(reference, tmp_path):
    row = reference[1]
    assert row["replica"] == 1
    assert row["first"].shape == (3,)
    assert reference[-1]["stiffness"] == 2.0
    assert [r["replica"] for r in reference] == [0, 1, 0, 1]
    text = reference[["stiffness", "energy"]].csv(tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text() == text
    assert text.splitlines()[0] == "stiffness,energy"
    assert [float(line.split(",")[1]) for line in text.splitlines()[1:]] == reference["energy"].tolist()
    refuses(ParameterError, "exists", reference.csv, tmp_path / "table.csv")
    reference.csv(tmp_path / "table.csv", overwrite=True)
    assert repr(reference).splitlines()[1].split()[:2] == ["1", "0"]
    assert str(reference).startswith("Table: 4 rows\n")
    assert reference._repr_html_().count("<tr>") == 5
    with pytest.raises(ParameterError, match=r"'energie'.*energy"):
        reference["energie"]
    with pytest.raises(IndexError):
        reference[4]


def test_tables_escape_what_they_show():
    row = {"name": "<b>&", "status": "done", "error": None}
    table = mp.ensemble.Table(["name", "status", "error"], [row], None, [None])
    assert "&lt;b&gt;&amp;" in table._repr_html_()
    assert table["error"].tolist() == [None]


def test_pandas(reference):
    pandas = pytest.importorskip("pandas")
    frame = reference.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == list(reference.columns)
    assert frame["energy"].tolist() == reference["energy"].tolist()
    assert frame["seed"].tolist() == reference["seed"].tolist()


# The same bits everywhere ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_folders", [False, True])
def test_spawned_processes_have_the_same_bits(reference, tmp_path, in_folders):
    table = again(tmp_path / "sweep" if in_folders else None, executor=2)
    runs.same(table, reference)
    if in_folders:
        runs.same_folders(table, reference)
    else:
        assert table.directories is None


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.long] if seed else []) for seed in range(10)])
def test_kill_9_of_workers(reference, tmp_path, seed):
    """Whoever is at work is killed at random moments; a new pool goes on."""
    with runs.Killer(lambda: [child.pid for child in multiprocessing.active_children()], 3, seed) as killer:
        table = again(tmp_path / "sweep", executor=2)
    assert killer.killed >= 1
    runs.same(table, reference)
    runs.same_folders(table, reference)


def test_kill_9_of_workers_without_files(reference):
    with runs.Killer(lambda: [child.pid for child in multiprocessing.active_children()], 1, 5) as killer:
        table = again(None, executor=2)
    assert killer.killed == 1
    runs.same(table, reference)


SCRIPT = """
    import sys
    sys.path[:0] = {path!r}
    import ensemble_runs as runs
    import medyanpy as mp

    if __name__ == "__main__":
        table = mp.ensemble.run(
            runs.make, parameters=runs.STIFFNESSES, n_replicas=2, until=runs.STEPS, seed=3, executor=2,
            directory={folder!r}, analyse=runs.analyse, progress=False,
        )
        assert table.done, table.tracebacks
"""


def script(tmp_path):
    file = tmp_path / "script.py"
    file.write_text(textwrap.dedent(SCRIPT).format(path=FOLDERS, folder=str(tmp_path / "sweep")))
    return [sys.executable, "-W", "error", str(file)]


def children(process):
    found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(child) for child in found]


def test_partial_files_of_killed_workers_are_removed(reference, tmp_path):
    """By who writes the same after them."""
    again(tmp_path / "sweep", executor=1)
    folder = next((tmp_path / "sweep").iterdir())
    for name in ("params.json", "done.json"):
        (folder / name).unlink()
        (folder / f".{name}.{2**31 - 1}.tmp").write_text("{")
    table = again(tmp_path / "sweep", executor=1)
    runs.same(table, reference)
    runs.same_folders(table, reference)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux tells who is whose child")
def test_the_parent_is_killed(reference, tmp_path):
    """Its workers end too, and the next call goes on where they were."""
    workers = []
    for pause in (0.4, 0.9):
        parent = subprocess.Popen(script(tmp_path))
        until = time.perf_counter() + 60.0
        while not list((tmp_path / "sweep").glob("*/run.checkpoint")) and time.perf_counter() < until:
            time.sleep(0.02)
        time.sleep(pause)
        workers += children(parent.pid)
        parent.kill()
        parent.wait()
    assert workers
    subprocess.run(script(tmp_path), check=True)
    assert all(runs.gone(worker) for worker in workers)
    table = again(tmp_path / "sweep", executor=1)
    runs.same(table, reference)
    runs.same_folders(table, reference)


def test_repeated_call_runs_nothing_again(reference, tmp_path):
    """More steps, replicas and parameters are added to what is there."""
    folder = tmp_path / "sweep"
    with ThreadPoolExecutor(2) as executor:
        short = mp.ensemble.run(runs.make, parameters=runs.STIFFNESSES[:1], until=1500, seed=3, directory=folder,
                                executor=executor)  # fmt: skip
        assert short["steps"].tolist() == [1500]
        assert short.columns == ("stiffness", "replica", "seed", "steps", "status", "error")
        table = again(folder, executor=executor)
    runs.same(table, reference)
    runs.same_folders(table, reference)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}

    class Never(Executor):
        def submit(self, *given, **named):
            raise AssertionError

    runs.same(again(folder, executor=Never()), reference)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()} == before


def test_another_analysis_is_done_again(tmp_path):
    options = {"until": 100, "directory": tmp_path / "x", "executor": ThreadPoolExecutor(1), "seed": 1}
    first = mp.ensemble.run(runs.bead, analyse=lambda s: s.current_step, **options)
    assert first["result"].tolist() == [100]
    other = mp.ensemble.run(runs.bead, analyse=lambda s, directory: directory.name, **options)
    assert other["result"].tolist() == ["0000-0000"]
    assert mp.ensemble.run(runs.bead, **options).columns[-1] == "error"


@pytest.mark.parametrize("in_folders", [False, True])
def test_a_document_instead_of_a_function(tmp_path, in_folders):
    text = runs.document()
    (tmp_path / "vesicle.json").write_text(text)
    options = {
        "parameters": [{"springs.stiffness": 1.0}, {"springs.stiffness": 2.0, "timestep": 1e-3, "kT": 2.0}],
        "until": 300, "seed": 3, "analyse": runs.analyse, "directory": tmp_path / "sweep" if in_folders else None,
    }  # fmt: skip
    with ThreadPoolExecutor(1) as executor:
        table = mp.ensemble.run(text, executor=executor, **options)
    by_hand = runs.make(mp.ensemble.seed_of(3, 0, 0), 1.0)
    by_hand.step(300)
    assert table["energy"][0] == by_hand.context.get_state(energy=True).total_energy
    system, _ = mp.deserialize(text)
    system["springs"].set(stiffness=2.0)
    seed = mp.ensemble.seed_of(3, 1, 0)
    other = mp.Simulation(system, mp.BAGOGABIntegrator(1e-3, kT=2.0, seed=seed))
    other.context.set_velocities_to_temperature(kT=2.0, seed=seed)
    other.step(300)
    assert table["energy"][1] == other.context.get_state(energy=True).total_energy
    # From the file, by a process.
    options["directory"] = tmp_path / "other" if in_folders else None
    runs.same(mp.ensemble.run(tmp_path / "vesicle.json", executor=1, **options), table)


def test_time_is_up(tmp_path):
    options = {"seed": 3, "directory": tmp_path / "x", "executor": ThreadPoolExecutor(1), "analyse": runs.analyse}
    table = mp.ensemble.run(runs.make, parameters=runs.STIFFNESSES, until=10**7, walltime=1.0, **options)
    assert table["status"].tolist() == ["unfinished"] * 2
    assert not table.done
    steps = table["steps"][0]
    assert 0 < steps < 10**7
    table = mp.ensemble.run(runs.make, parameters=runs.STIFFNESSES, until=int(steps) + 10, **options)
    assert table["steps"].tolist() == [steps + 10] * 2
    expected = runs.make(mp.ensemble.seed_of(3, 0, 0), 1.0)
    expected.step(int(steps) + 10)
    assert table["energy"][0] == expected.context.get_state(energy=True).total_energy


# Replicas that raise, and workers that die ----------------------------------------------------------------------------


@pytest.mark.parametrize("in_folders", [False, True])
def test_failed_runs_are_rows_and_the_others_continue(tmp_path, in_folders):
    kinds = ["while it is made", "healthy", "runs away", "no simulation", "leaves"]
    table = mp.ensemble.run(runs.others_go_on, parameters=[{"kind": kind} for kind in kinds], until=50, executor=1,
                            directory=tmp_path / "x" if in_folders else None, analyse=runs.analyse)  # fmt: skip
    assert table["status"].tolist() == ["failed", "done", "failed", "failed", "failed"]
    errors = table["error"]
    assert errors[1] is None
    assert "no such mesh" in errors[0]
    assert errors[2].startswith("SimulationError: ")
    assert errors[3].startswith("ParameterError: ")
    assert "return a Simulation, not 7" in errors[3]
    assert errors[4] == "SystemExit: 3"
    assert np.isnan(table["energy"]).tolist() == [True, False, True, True, True]
    assert len(table.failed) == 4
    assert table.failed["kind"].tolist() == [kinds[i] for i in (0, 2, 3, 4)]
    assert 'raise KeyError("no such mesh")' in table.failed.tracebacks[0]
    if in_folders:
        assert (table.directories[0] / "error.txt").read_text() == table.tracebacks[0]
        assert not (table.directories[1] / "error.txt").exists()


def test_analyses_that_raise_or_return_what_no_table_holds(tmp_path):
    options = {"until": 10, "executor": ThreadPoolExecutor(1), "directory": tmp_path / "x"}
    table = mp.ensemble.run(runs.bead, analyse=runs.says_no, **options)
    assert table["error"].tolist() == ["ValueError: not at step 10"]
    table = mp.ensemble.run(runs.bead, analyse=runs.unfit, **options)
    assert "analyse returned" in table["error"][0]
    assert "not a number, text or array" in table["error"][0]
    table = mp.ensemble.run(runs.bead, analyse=lambda s: {"seed": 1}, **options)
    assert "analyse returned 'seed', which is a column" in table["error"][0]
    table = mp.ensemble.run(runs.bead, analyse=lambda s: (np.float64("nan"), [np.arange(2, dtype=np.int8)]), **options)
    assert table["status"].tolist() == ["done"]
    assert np.isnan(table["result"][0][0])
    assert table["result"][0][1][0].dtype == np.int8
    assert not (table.directories[0] / "error.txt").exists()


def test_a_replica_that_kills_its_worker_is_told_and_the_others_are_done():
    table = mp.ensemble.run(runs.kills_its_worker, parameters=[{"deadly": True}, {"deadly": False}], n_replicas=2,
                            until=20, executor=2)  # fmt: skip
    # Either of the deadly ones alone, in the end.
    assert table["status"].tolist() == ["failed", "failed", "done", "done"]
    assert all("its worker ended" in error for error in table["error"][:2])


def test_executor_whose_workers_end():
    executor = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
    with pytest.raises(ExecutorError, match=r"the executor has ended or was shut down.*call again"):
        mp.ensemble.run(runs.kills_its_worker, parameters=[{"deadly": True}], until=20, executor=executor)
    executor.shutdown()
    with pytest.raises(ExecutorError, match="the executor has ended or was shut down"):
        mp.ensemble.run(runs.bead, until=20, executor=executor)


def test_an_executor_that_cannot_do_it():
    """As of Dask, when workers died again and again."""

    class Unwell(Executor):
        def __init__(self):
            self.asked = 0

        def submit(self, function, *given):
            self.asked += 1
            future = Future()
            future.set_exception(MemoryError("killed"))
            return future

    executor = Unwell()
    table = mp.ensemble.run(runs.bead, until=20, executor=executor)
    assert executor.asked == 1
    assert "MemoryError: killed" in table["error"][0]


def test_a_script_without_the_guard(tmp_path):
    file = tmp_path / "script.py"
    file.write_text(f"import sys\nsys.path[:0] = {FOLDERS!r}\nimport ensemble_runs, medyanpy as mp\n"
                    "mp.ensemble.run(ensemble_runs.bead, until=10, executor=1)\n")  # fmt: skip
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("medyanpy.errors.ExecutorError: ")
    assert 'if __name__ == "__main__":' in done.stderr.splitlines()[-1]


# Functions that have to get there -------------------------------------------------------------------------------------


def test_functions_without_a_name(monkeypatch):
    scale = 3

    def inner(simulation):
        return scale * simulation.current_step

    pytest.importorskip("cloudpickle")
    table = mp.ensemble.run(lambda seed: runs.bead(seed), until=10, executor=1, analyse=inner)
    assert table["result"].tolist() == [30], table.tracebacks
    lock = multiprocessing.Lock()
    with pytest.raises(ParameterError, match=r"analyse \(.*lambda>\) cannot be sent to other processes: it uses"):
        mp.ensemble.run(runs.bead, until=10, executor=1, analyse=lambda s: lock)
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(ParameterError, match=r"make \(.*lambda>\) cannot be sent.*pip install 'medyanpy\[dask\]'"):
        mp.ensemble.run(lambda seed: runs.bead(seed), until=10, executor=1)
    # Threads need none of it.
    table = mp.ensemble.run(lambda seed: runs.bead(seed), until=10, executor=ThreadPoolExecutor(1))
    assert table.done


def test_functions_that_workers_cannot_import(tmp_path, monkeypatch):
    (tmp_path / "elsewhere.py").write_text("import ensemble_runs\ndef make(seed): return ensemble_runs.bead(seed)\n")
    monkeypatch.syspath_prepend(tmp_path)
    import elsewhere

    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder != str(tmp_path)])
    table = mp.ensemble.run(elsewhere.make, until=10, executor=1)
    said = "ParameterError: ensemble.run: make (elsewhere:make) cannot be made in the worker"
    assert table["error"][0].startswith(said)


# What is refused ------------------------------------------------------------------------------------------------------

REFUSED = [
    ({"parameters": {"n": 1}}, "parameters must be a list of dicts, not {'n': 1}"),
    ({"parameters": [3]}, r"parameters\[0\] must be a dict with names as keys, not 3"),
    ({"parameters": [{"n": 1}, {2: 1}]}, r"parameters\[1\] must be a dict with names as keys"),
    ({"parameters": [{"n": np.arange(3)}]}, r"parameters\[0\] .* is not of numbers.*\.tolist\(\)"),
    ({"parameters": [{"n": float("nan")}]}, r"parameters\[0\] .* is not of numbers"),
    ({"parameters": [{"n": 1}, {"n": 2}, {"n": 1}]}, r"parameters\[2\] is the same as parameters\[0\]: n_replicas="),
    ({"parameters": [{"m": 1}]}, r"make\(seed, n=1\) cannot be called with seed= and parameters\[0\]"),
    ({"parameters": [{"seed": 1}]}, r"parameters\[0\] has the name 'seed', which is not for parameters"),
    ({"parameters": []}, "parameters has no entry"),
    ({"make": lambda n: None}, "cannot be called with seed="),
    ({"make": 3}, "make must be a function of seed and parameters that returns a Simulation, or a document, not 3"),
    ({"make": "nowhere.json"}, "the document .*nowhere.json does not exist"),
    ({"make": '{"format": "x"}'}, "medyanpy document"),
    ({"n_replicas": 0}, "n_replicas = 0"),
    ({"until": -1}, "until = -1"),
    ({"seed": -1}, "seed = -1"),
    ({"threads": 0}, "threads = 0"),
    ({"walltime": 0.0}, "walltime"),
    ({"executor": 0}, "executor = 0"),
    ({"executor": True}, "executor must be a concurrent.futures.Executor"),
    ({"executor": object()}, "executor must be a concurrent.futures.Executor"),
    ({"analyse": 3}, "analyse must be a function, not 3"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused_before_anything_is_run(tmp_path, given, message):
    options = {"until": 10, "directory": tmp_path / "x", "executor": ThreadPoolExecutor(1), **given}
    refuses(ParameterError, message, mp.ensemble.run, options.pop("make", runs.bead), **options)
    assert not list((tmp_path / "x").glob("0*"))


def test_refused_numbers_of_documents():
    for numbers, message in [
        ({"spring.stiffness": 1.0}, "spring"),
        ({"springs.stiffnes": 1.0}, "stiffnes"),
        ({"springs.stiffness": -1.0}, "stiffness = -1"),
        ({"temperatur": 1.0}, "'temperatur' is not a number that can be set: timestep, temperature, kT"),
    ]:
        with pytest.raises(ParameterError, match=rf"parameters\[0\] .*{message}"):
            mp.ensemble.run(runs.document(), until=10, parameters=[numbers], executor=1)
    with pytest.raises(ParameterError, match="the document is of a VerletIntegrator, not of a Simulation"):
        mp.ensemble.run(mp.serialize(mp.VerletIntegrator(0.01)), until=10, executor=1)


def test_folders_of_others(tmp_path):
    options = {"until": 10, "executor": ThreadPoolExecutor(1)}
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "precious.txt").write_text("x")
    with pytest.raises(ParameterError, match="exists and is not an ensemble's"):
        mp.ensemble.run(runs.bead, directory=tmp_path / "data", **options)
    with pytest.raises(ParameterError, match="is a file, not a folder"):
        mp.ensemble.run(runs.bead, directory=tmp_path / "data" / "precious.txt", **options)
    folder = tmp_path / "sweep"
    mp.ensemble.run(runs.bead, directory=folder, parameters=[{"n": 1}, {"n": 2}], **options)
    with pytest.raises(ParameterError, match="is of another ensemble, whose seed is 0, not 1"):
        mp.ensemble.run(runs.bead, directory=folder, seed=1, **options)
    with pytest.raises(ParameterError, match="is of another ensemble, whose make is 'ensemble_runs:bead', not"):
        mp.ensemble.run(runs.kills_its_worker, parameters=[{"deadly": False}], directory=folder, **options)
    with pytest.raises(ParameterError, match=r"0000-0000 is of another replica, whose parameters is \{'n': 1\}, not"):
        mp.ensemble.run(runs.bead, directory=folder, parameters=[{"n": 2}, {"n": 1}], **options)
    (folder / "0000-0000" / "params.json").write_text("{")
    table = mp.ensemble.run(runs.bead, directory=folder, parameters=[{"n": 1}, {"n": 2}], **options)
    assert table["status"].tolist() == ["failed", "done"]
    assert "params.json cannot be read" in table["error"][0]
    (folder / "ensemble.json").write_text("[]")
    refuses(ParameterError, r"ensemble\.json cannot be read", mp.ensemble.run, runs.bead, directory=folder, **options)


def test_one_process_at_a_time(tmp_path):
    from medyanpy._tools.outputs import Lock

    lock = Lock("test", tmp_path / "ensemble.json")
    with pytest.raises(ParameterError, match="is being written by another process"):
        mp.ensemble.run(runs.bead, until=10, directory=tmp_path, executor=ThreadPoolExecutor(1))
    lock.release()
    mp.ensemble.run(runs.bead, until=10, directory=tmp_path, executor=ThreadPoolExecutor(1))


def test_a_folder_that_a_dying_worker_still_holds(tmp_path, monkeypatch):
    from medyanpy._tools.outputs import Lock

    options = {"directory": tmp_path / "x", "executor": ThreadPoolExecutor(1)}
    mp.ensemble.run(runs.bead, until=10, **options)
    lock = Lock("test", tmp_path / "x" / "0000-0000" / "run.checkpoint")
    monkeypatch.setattr(replicas.time, "sleep", lambda seconds: lock.release())
    assert mp.ensemble.run(runs.bead, until=20, **options).done
    lock = Lock("test", tmp_path / "x" / "0000-0000" / "run.checkpoint")
    monkeypatch.setattr(replicas, "_PATIENCE", 0.0)
    monkeypatch.setattr(replicas.time, "sleep", lambda seconds: None)
    assert "another process" in mp.ensemble.run(runs.bead, until=30, **options)["error"][0]
    lock.release()


def test_sigterm_ends_the_worker_after_its_checkpoint(tmp_path):
    """As when a scheduler ends a job: what has been done is saved, and the pool that dies is named. Within a walltime
    it is not taken for the end of that."""
    folder = tmp_path / "x"

    def end(worker):
        while not (folder / "0000-0000" / "run.checkpoint").exists():
            time.sleep(0.01)
        time.sleep(0.3)
        os.kill(worker, signal.SIGTERM)

    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        ending = threading.Thread(target=end, args=(executor.submit(os.getpid).result(),))
        ending.start()
        with pytest.raises(ExecutorError, match="has ended"):
            mp.ensemble.run(runs.lone_vesicle, until=10**8, directory=folder, walltime="1h", executor=executor)
        ending.join()
    with mp.Simulation.resume(folder / "0000-0000" / "run.checkpoint", reporters=False) as simulation:
        assert simulation.current_step > 0


def test_a_progress_bar(capsys):
    options = {"until": 10, "n_replicas": 3, "executor": ThreadPoolExecutor(1)}
    # After a second.
    mp.ensemble.run(runs.bead, **options, analyse=lambda s: time.sleep(0.7), progress=True)
    assert "/3 [" in capsys.readouterr().err
    mp.ensemble.run(runs.bead, **options)
    assert capsys.readouterr().err == ""


def test_values_come_back_to_the_bit():
    given = {"x": 0.1 + 0.2, "n": 2**70, "text": "é", "none": None, "a": np.array([[1.5, -0.0]]), "list": [True]}
    back = shipping.values_of_text(shipping.text_of_values("x", given))
    assert back.pop("a").tobytes() == given.pop("a").tobytes()
    assert back == given
    json.loads(shipping.text_of_values("x", given))


def test_an_address_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'medyanpy\[dask\]'"):
        mp.ensemble.run(runs.bead, until=10, executor="tcp://127.0.0.1:1")


def test_signals_are_passed_on():
    came = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: came.append("outside"))
    try:
        with replicas._passing_on_sigterm():
            inner = signal.signal(signal.SIGTERM, lambda number, frame: came.append("inside"))
            signal.raise_signal(signal.SIGTERM)
            signal.signal(signal.SIGTERM, inner)
        assert came == ["inside", "outside"]
        with replicas._passing_on_sigterm():
            pass
        assert came == ["inside", "outside"]
    finally:
        signal.signal(signal.SIGTERM, before)
