"""Workers of a Dask cluster killed by SIGKILL in the middle of fits: every fit must end, with the bits of one thread.

    python -m tests.fuzz.workers [--times 20] [--seed 0] [--only mixture]

The fits are those of tests/data: a few thousand samples in about a dozen chunks, on three worker processes. Of the chunks
that a fit reads in all its passes, one in each twentieth is drawn, so that every pass has its turn; the worker that reads it is
killed up to 0.1 seconds later: while it reads, sums, merges or sends. The worker's nanny starts another in its place, and the
next fit begins when it is there.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

import dask
import distributed
import numpy as np
from distributed.utils import get_mp_context

from tests.data.accidents import counting_reads, deadly_once
from tests.data.fits import DATA, FITS

SETTINGS = {
    "distributed.worker.multiprocessing-method": "forkserver",
    "distributed.comm.timeouts.connect": "5s",
    "distributed.scheduler.no-workers-timeout": "120s",
    # So long after the death of a worker a LocalCluster looks for one of its name, and if there is none, since the next one died
    # just then or a busy machine takes longer to start it (15 s by default), gives it up for good. Once all are given up, a fit
    # waits for ever.
    "distributed.deploy.lost-worker-timeout": "10 days",
}
WORKERS = 3
LATEST_DEATH = 0.1  # seconds after the reading of a chunk


def readings(name: str) -> int:
    """How many chunks a fit reads in all its passes."""
    with tempfile.TemporaryDirectory() as folder, dask.config.set(scheduler="synchronous"):
        FITS[name](counting_reads(DATA[name](), Path(folder)))
        return len(list(Path(folder).iterdir()))


def addresses(client: distributed.Client) -> set[str]:
    """Of the workers that there are; a new one has another."""
    return set(client.scheduler_info(n_workers=-1)["workers"])


def trials(name: str, times: int, rng: np.random.Generator, client: distributed.Client) -> int:
    """Run the trials of one fit; returns how many found other bits, or killed no worker."""
    with dask.config.set(scheduler="synchronous"):
        expected = FITS[name]()
    number, good, killed = readings(name), 0, 0
    for share in (np.arange(times) + rng.random(times)) / times:
        client.wait_for_workers(WORKERS)
        before = addresses(client)
        with tempfile.TemporaryDirectory() as folder:
            seconds = float(rng.uniform(0, LATEST_DEATH))
            deadly = deadly_once(DATA[name](), Path(folder), int(share * number), seconds)
            good += np.array_equal(FITS[name](deadly), expected)
            death = (Path(folder) / "killed").exists()
        # The fit may have ended just before the worker.
        while death and addresses(client) >= before:
            time.sleep(0.02)
        killed += death
    print(
        f"{name}: {good} of {times} the same bits, {killed} workers killed, {number} chunks read by a fit",
        flush=True,
    )
    return 2 * times - good - killed


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", choices=list(FITS), default=[])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(given.seed)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # in the process that workers are forks of
    with dask.config.set(SETTINGS):
        # What every worker has imported when it starts: all are forks of one process, and so begin in an instant.
        get_mp_context().set_forkserver_preload(["distributed", "tests.data.accidents", "tests.data.fits"])
    with (
        dask.config.set(SETTINGS),
        distributed.LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        sys.exit(min(sum(trials(name, given.times, rng, client) for name in given.only or FITS), 1))


if __name__ == "__main__":
    main()
