"""A Dask cluster on this machine, and what its workers hold, and receive from each other, in a fit."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from time import perf_counter

import dask
import distributed
import numpy as np

from benchmarks._measure import high_water_mark

FOLDER = os.environ.get("GIVENS_CLUSTER_FOLDER") or tempfile.gettempdir()
SPARE = shutil.disk_usage(FOLDER).free / 1e9
GIGABYTES = float(os.environ.get("GIVENS_CLUSTER_GB") or (20 if SPARE >= 40 else 5))
"""Of samples: 20 where the disk has twice that to spare, else 5."""

WORKERS = (1, 2, 4)
SETTINGS = {
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.worker.profile.enabled": False,
}


@contextmanager
def cluster(workers, memory_limit=None):
    """A client of so many workers of one thread each, which have loaded what fits need.

    Workers keep what they have fetched, and count the bytes of all transfers in place of logging the last 1,000. Dask's own
    profiler is off, whose records would count as memory of a fit: they grow by some MB a minute.
    """
    with (
        dask.config.set(SETTINGS),
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, memory_limit=memory_limit, dashboard_address=":0"
        ) as local,
        distributed.Client(local) as client,
    ):
        client.run(_count_transfers)
        client.run(exec, "import givens.data.passes, givens.data.moments, givens.data.sketch")
        yield client


def received(client):
    """Bytes that workers have received from each other so far, as Dask counts them."""
    return sum(client.run(_received).values())


def fitted(client, make, X):
    """A model of X, fitted for the second time on every worker, and what that took."""
    make().fit(X[: sum(X.chunks[0][:4])])  # loads and compiles on every worker
    client.run(_forget_peak)
    before, sent = client.run(_resident), received(client)
    began = perf_counter()
    found = make().fit(X)
    seconds = perf_counter() - began
    peaks = client.run(high_water_mark)
    chunk = X.dtype.itemsize * max(X.chunks[0]) * X.shape[1]
    row = {
        "seconds": seconds,
        "worker_peak_chunks": max(peaks[worker] - before[worker] for worker in peaks) / chunk,
        "mb_between_workers": (received(client) - sent) / 1e6,
    }
    return found, row


def claim_peak(report, name, workers, chunks, limit):
    """That no worker held more than three chunks and a summary."""
    report.claim(
        f"{name}, {workers} workers: peak of a worker, in chunks",
        f"≤ {limit:.3g}, 3 and a summary",
        chunks,
        chunks <= limit,
    )


def claim_workers(report, name, found):
    """That two workers are faster than one, and that any number of them finds the same bits."""
    faster = found[1][name]["seconds"] / found[2][name]["seconds"]
    report.claim(f"{name}: two workers beside one", "≥ 1.6 times", faster, faster >= 1.6)
    same = all(found[workers][name]["numbers"] == found[1][name]["numbers"] for workers in WORKERS)
    report.claim(f"{name}: the same bits with 1, 2 and 4 workers", True, same, same)


def bits(*arrays):
    """Arrays as text that tells every bit."""
    return [value.hex() for array in arrays for value in np.asarray(array, dtype=float).ravel().tolist()]


class _Transfers:
    """In place of a worker's log of transfers: their bytes only, since a long log takes memory."""

    def __init__(self):
        self.bytes = 0

    def append(self, entry):
        self.bytes += entry["total"]


def _count_transfers(dask_worker):
    dask_worker.transfer_incoming_log = _Transfers()


def _received(dask_worker):
    return dask_worker.transfer_incoming_log.bytes


def _resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _forget_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
