"""Workers of a Dask cluster killed by SIGKILL in the middle of fits: every fit must end, with the bits of one thread.

    python -m tests.fuzz.workers [--times 20] [--seed 0] [--processes] [--only mixture]

The fits are those of tests/data: a few thousand samples in about a dozen chunks, on three worker processes. Of the chunks
that a fit reads in all its passes, one in each twentieth is drawn, so that every pass has its turn; the worker that reads it is
killed up to 0.1 seconds later: while it reads, sums, merges or sends. The worker's nanny starts another in its place, and the
next fit begins when it is there. With --processes every fit is run by Dask's processes too.
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
PRELOADED = ["distributed", "tests.data.accidents", "tests.data.fits"]
"""What every worker has imported when it starts: all are forks of one process, and so begin in an instant."""
LATEST = 0.1
"""Seconds from the reading of a chunk to the death of its worker, at most."""


def readings(name: str) -> int:
    """How many chunks a fit reads in all its passes."""
    with tempfile.TemporaryDirectory() as folder, dask.config.set(scheduler="synchronous"):
        FITS[name](counting_reads(DATA[name](), Path(folder)))
        return len(list(Path(folder).iterdir()))


def trial(name: str, reading: int, seconds: float) -> tuple[np.ndarray, bool]:
    """What a fit finds while a worker dies, and whether one did."""
    with tempfile.TemporaryDirectory() as folder:
        found = FITS[name](deadly_once(DATA[name](), Path(folder), reading, seconds))
        return found, (Path(folder) / "killed").exists()


def addresses(client: distributed.Client) -> set[str]:
    """Of the workers that there are; a new one has another."""
    return set(client.scheduler_info(n_workers=-1)["workers"])


def run(times: int, seed: int, processes: bool, only: list[str]) -> int:
    """Run all trials; returns how many went wrong."""
    rng = np.random.default_rng(seed)
    with dask.config.set(scheduler="synchronous"):
        expected = {name: FITS[name]() for name in only or FITS}
    wrong = 0
    with dask.config.set(scheduler="processes", num_workers=2):
        for name in expected if processes else ():
            same = np.array_equal(FITS[name](), expected[name])
            wrong += not same
            print(f"{name}: processes, {'the same bits' if same else 'OTHER BITS'}", flush=True)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # in the process that workers are forks of
    with dask.config.set(SETTINGS):
        get_mp_context().set_forkserver_preload(PRELOADED)
    with (
        dask.config.set(SETTINGS),
        distributed.LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        for name in expected:
            wrong += trials(name, expected[name], times, rng, client)
    return wrong


def trials(
    name: str, expected: np.ndarray, times: int, rng: np.random.Generator, client: distributed.Client
) -> int:
    """Run the trials of one fit; returns how many went wrong."""
    good, killed, began = 0, 0, time.perf_counter()
    number = readings(name)
    for share in (np.arange(times) + rng.random(times)) / times:
        client.wait_for_workers(WORKERS)
        before = addresses(client)
        try:
            found, death = trial(name, int(share * number), float(rng.uniform(0, LATEST)))
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
            continue
        same = np.array_equal(found, expected)
        if not same:
            print(f"{name}: OTHER BITS at {share:.3f}", flush=True)
        good += same
        # The fit may have ended just before the worker.
        while death and addresses(client) >= before:
            time.sleep(0.02)
        killed += death
    seconds = time.perf_counter() - began
    print(
        f"{name}: {good} of {times} the same bits, {killed} workers killed, {number} chunks read by a fit, {seconds:.0f} s",
        flush=True,
    )
    return times - good + (times - killed)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", action="store_true")
    parser.add_argument("--only", action="append", choices=list(FITS), default=[])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    sys.exit(min(run(given.times, given.seed, given.processes, given.only), 1))


if __name__ == "__main__":
    main()
