"""Ensembles on a real cluster of Dask: a scheduler and worker processes with nannies, on this machine."""

import ensemble_runs as runs
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy.errors import ExecutorError, ParameterError

distributed = pytest.importorskip("distributed", reason="pip install 'medyanpy[dask]'")

pytestmark = [
    pytest.mark.slow,
    # Of its own sockets and processes, when workers are killed.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def cluster():
    # Others may have the usual port of the dashboard.
    return distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0")


@pytest.fixture(scope="module")
def client():
    with cluster() as workers, distributed.Client(workers) as client:
        yield client


@pytest.fixture
def mortal():
    """Of a cluster of its own: nannies do not always start another worker, so that others would be short of some."""
    with cluster() as workers, distributed.Client(workers) as client:
        yield client


def ensemble(executor, folder=None):
    return mp.ensemble.run(runs.make, parameters=runs.STIFFNESSES, n_replicas=2, until=runs.STEPS, seed=3,
                           executor=executor, directory=folder, analyse=runs.analyse)  # fmt: skip


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return ensemble(1, tmp_path_factory.mktemp("reference") / "sweep")


def workers(client):
    """When all have started: a nanny whose worker is killed while it starts may start no other."""
    there, nannies = set(client.cluster.scheduler.workers), list(client.cluster.workers.values())
    started = [n.pid for n in nannies if n.pid and n.status.name == "running" and n.worker_address in there]
    return started if len(started) == len(nannies) == 2 else []


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.long] if seed else []) for seed in range(10)])
def test_kill_9_of_workers(mortal, reference, tmp_path, seed):
    """Each worker has a nanny, who starts another."""
    with runs.Killer(lambda: workers(mortal), 1, seed, pause=0.25) as killer:
        table = ensemble(mortal, tmp_path / "sweep")
    assert killer.killed >= 1
    runs.same(table, reference)
    runs.same_folders(table, reference)


def test_an_executor_of_a_client(client, reference):
    runs.same(ensemble(client.get_executor()), reference)


def test_the_address_of_a_scheduler(client, reference):
    runs.same(ensemble(client.scheduler.address), reference)
    refuses(ExecutorError, r"no scheduler of Dask answers at 'nowhere'", ensemble, "nowhere")


def test_functions_of_a_notebook(client):
    """Whatever has no module goes with its code."""
    steps = 10
    table = mp.ensemble.run(lambda seed: runs.bead(seed), until=steps, executor=client,
                            analyse=lambda s: s.current_step)  # fmt: skip
    assert table["result"].tolist() == [steps]


def test_a_replica_that_kills_its_worker(client):
    """Dask gives up after so many workers; the others go on."""
    table = mp.ensemble.run(runs.kills_its_worker, parameters=[{"deadly": True}, {"deadly": False}], until=20,
                            executor=client)  # fmt: skip
    assert table["status"].tolist() == ["failed", "done"]
    assert "KilledWorker" in table["error"][0]


def test_a_client_that_is_closed():
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        executor = client.get_executor()
        with pytest.raises(ParameterError, match="asynchronous Client"):
            ensemble(type("Client", (), {"get_executor": None, "asynchronous": True})())
    refuses(ExecutorError, "the executor has ended or was shut down", ensemble, executor)
