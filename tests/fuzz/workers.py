"""Workers of a Dask cluster killed by SIGKILL in the middle of fits: every fit must end, with the bits of one thread.

    python -m tests.fuzz.workers [--times 20] [--seed 0] [--processes] [--only mixture]

In each trial a chunk kills the worker that reads it, in a pass chosen at random. The fits are those of tests/cluster: a few
thousand samples, on two worker processes. With --processes every fit is run by Dask's processes too.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from pathlib import Path

import dask
import distributed
import numpy as np

from tests.cluster.accidents import deadly
from tests.cluster.fits import DATA, FITS

SETTINGS = {"distributed.comm.timeouts.connect": "5s", "distributed.scheduler.no-workers-timeout": "120s"}
"""Without the second, a fit waits for ever where no nanny can start a worker again (on a crowded machine) and none is left."""

PASSES = {"mixture": 6, "topics": 8, "sparse PCA": 3, "rotated PCA": 2, "stream": 1, "ICA": 8}
"""How often a fit without accidents reads its first chunk, at least: passes after these are left alone."""


def trial(name: str, rng: np.random.Generator, folder: Path) -> tuple[np.ndarray, int]:
    """What a fit finds while workers die, and how many died."""
    X = DATA[name]()
    moment = int(rng.integers(PASSES[name]))
    # The first rows alone are read for the head of the data, and so only the first chunk is read in every pass.
    chunk = 0 if name != "stream" else int(rng.integers(X.numblocks[0]))
    found = FITS[name](deadly(X, folder, (moment,), chunk))
    return found, int(len(list(folder.iterdir())) > moment)


def run(times: int, seed: int, processes: bool, only: list[str]) -> int:
    """Run all trials; returns how many went wrong."""
    rng = np.random.default_rng(seed)
    with dask.config.set(scheduler="synchronous"):
        expected = {name: fit() for name, fit in FITS.items()}
    wrong = 0
    with dask.config.set(scheduler="processes", num_workers=2):
        for name, fit in FITS.items() if processes else ():
            same = np.array_equal(fit(), expected[name])
            wrong += not same
            print(f"{name}: processes, {'the same bits' if same else 'OTHER BITS'}", flush=True)
    for name in only or FITS:
        good, killed, began = 0, 0, time.perf_counter()
        for _ in range(times):
            # A cluster of its own for each trial: Dask does not always start a new worker in the place of one that was killed.
            with (
                tempfile.TemporaryDirectory() as folder,
                dask.config.set(SETTINGS),
                distributed.LocalCluster(
                    n_workers=2, threads_per_worker=1, dashboard_address=None
                ) as cluster,
                distributed.Client(cluster),
            ):
                try:
                    found, deaths = trial(name, rng, Path(folder))
                except Exception as error:
                    print(f"{name}: {type(error).__name__}: {error}", flush=True)
                    continue
            good += np.array_equal(found, expected[name])
            killed += deaths
        wrong += times - good
        seconds = time.perf_counter() - began
        print(
            f"{name}: {good} of {times} the same bits, {killed} workers killed, {seconds:.0f} s", flush=True
        )
    return wrong


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
