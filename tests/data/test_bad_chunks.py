"""What is wrong with chunks, or with a cluster, gets one sentence."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import contextmanager

import dask
import dask.array as da
import numpy as np
import pytest

from givens import ICA, RotatedPCA, SparsePCA, SphericalMixture, StreamingSparsePCA, TopicModel
from tests.data.accidents import killing

pytestmark = pytest.mark.filterwarnings("ignore:not converged")  # mixtures take few steps here

ROWS = np.random.default_rng(0).standard_normal((60, 3))


def fit(X):
    return SphericalMixture(2, max_iter=1, n_starts=1).fit(X)


def test_another_number_of_dimensions():
    with pytest.raises(ValueError, match="two dimensions"):
        fit(da.from_array(ROWS[0]))


MODELS = [
    SphericalMixture(2, max_iter=1, n_starts=1),
    SparsePCA(2, threshold=0.1),
    StreamingSparsePCA(2),
    RotatedPCA(2),
    TopicModel(2),
    ICA(2),
]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_numbers_that_are_not_finite_are_located(model, bad):
    X = abs(ROWS).round() if isinstance(model, TopicModel) else ROWS.copy()
    X[45, 1] = bad
    with pytest.raises(ValueError, match=r"rows 40 to 59 of X \(chunk 2\): .*(NaN|infinity|nan|inf)"):
        model.fit(da.from_array(X, chunks=(20, 3)))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_chunks_that_no_fit_takes(model):
    X = da.from_array(abs(ROWS).round(), chunks=(20, 3))
    if not isinstance(model, StreamingSparsePCA):  # which reads them one after the other, or joins them
        with pytest.raises(ValueError, match="lengths of X's chunks are unknown"):
            model.fit(X[X[:, 0] > 0])
        with pytest.raises(ValueError, match="3 chunks along its features"):
            model.fit(X.rechunk((20, 1)))
    with pytest.raises(ValueError, match=r"0 rows and 3 columns|yields no rows"):
        model.fit(X[:0])


def test_bad_counts_are_located():
    X = np.ones((60, 3))
    X[45, 1] = -2
    with pytest.raises(ValueError, match=r"rows 40 to 59 of X .* word 1 of document 45 has -2"):
        TopicModel(2).fit(da.from_array(X, chunks=(20, 3)))


def test_a_refused_fit_leaves_the_model_as_it_was():
    model = fit(ROWS)
    before = model.means_.copy()
    with pytest.raises(ValueError, match="chunks along its features"):
        model.fit(da.from_array(ROWS, chunks=(20, 1)))
    np.testing.assert_array_equal(model.means_, before)


def test_workers_without_the_library():
    distributed = pytest.importorskip("distributed")
    preload = "import sys\nsys.modules['givens'] = None\n"
    with (
        dask.config.set({"distributed.worker.preload": [preload]}),
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster),
        pytest.raises(ModuleNotFoundError, match="worker of the Dask cluster cannot import givens"),
    ):
        fit(da.from_array(ROWS, chunks=(20, 3)))


@contextmanager
def cluster_of_processes(folder):
    """A scheduler and a worker in processes of their own; yields the process of the scheduler."""
    distributed = pytest.importorskip("distributed")
    place = ["--scheduler-file", str(folder / "address.json"), "--no-dashboard"]
    command = [sys.executable, "-m"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = subprocess.Popen(
        [*command, "distributed.cli.dask_scheduler", *place, "--host", "127.0.0.1", "--port", "0"], **quiet
    )
    worker = subprocess.Popen(
        [*command, "distributed.cli.dask_worker", *place, "--no-nanny", "--local-directory", str(folder)],
        **quiet,
    )
    try:
        with (
            dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
            distributed.Client(scheduler_file=str(folder / "address.json")) as client,
        ):
            client.wait_for_workers(1, timeout=60)
            yield scheduler
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()


def test_a_scheduler_that_goes_away(tmp_path):
    reads = tmp_path / "readings"
    reads.mkdir()
    with cluster_of_processes(tmp_path) as scheduler:
        X = killing(da.from_array(ROWS, chunks=(20, 3)), scheduler.pid, reads)
        with pytest.raises(
            RuntimeError, match=r"Dask cluster was closed, or lost its scheduler.*: fit again"
        ):
            fit(X)
    assert len(list(reads.iterdir())) >= 2


def hungry(block, block_info=None):
    """A chunk that takes more memory than its worker has, and keeps it until Dask looks and kills the worker."""
    if block_info[0]["chunk-location"][0] == 1:
        taken = np.ones(100_000_000)
        threading.Event().wait(timeout=300)
        return taken[: block.size].reshape(block.shape)
    return block


def test_a_worker_out_of_memory():
    distributed = pytest.importorskip("distributed")
    # The fixtures of other tests may have changed the share of memory at which a worker is killed.
    limits = {
        "distributed.scheduler.allowed-failures": 1,
        "distributed.worker.memory.pause": False,
        "distributed.worker.memory.terminate": 0.95,
    }
    with (
        dask.config.set(limits),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, memory_limit="600MB", dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
        pytest.raises(RuntimeError, match=r"died again and again on one chunk.*smaller chunks"),
    ):
        fit(da.from_array(ROWS, chunks=(20, 3)).map_blocks(hungry, dtype=float, meta=np.empty((0, 0))))


def test_a_cluster_that_has_no_workers_left():
    """The fit ends with an error and does not wait for ever."""
    distributed = pytest.importorskip("distributed")
    settings = {"distributed.scheduler.no-workers-timeout": "1s"}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        distributed.Client(cluster),
        pytest.raises(RuntimeError, match=r"has had no workers for as long as .*no-workers-timeout"),
    ):
        fit(da.from_array(ROWS, chunks=(20, 3)))
