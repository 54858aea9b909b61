"""`--cluster`: a store that Dask reads in chunks, fitted and scored where the chunks are.

Results are those of the command without it. Scores are written some chunks at a time; the page shows evenly chosen samples.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from givens.app.commands.options import Running, Source
from givens.app.commands.samples import SAMPLE_NOUNS, CommandSamples, InMemory
from givens.app.commands.session import Session
from givens.app.tables import DataError, Table
from givens.app.tables.stores import Store
from givens.app.tables.table import Block, count
from givens.data.passes import ClusterError, computed
from givens.support.imports import require

SCHEDULER_TIMEOUT = "10s"  # until a scheduler answers
SCORES_AT_ONCE = 1 << 22  # scores that are held at a time


@contextmanager
def on_cluster(
    session: Session,
    source: Source,
    address: str,
    workers: int | None,
    *,
    dense: bool,
    nouns: tuple[str, str],
) -> Iterator[OnCluster]:
    """Connect to a cluster, or start one, and open a store; what goes wrong with the cluster is a DataError.

    Parameters
    ----------
    session : Session
    source : Source
    address : str
        Of the scheduler; "local" starts a cluster on this machine, and closes it at the end.
    workers : int, optional
        Of a local cluster; by default one per core.
    dense : bool
        Make sparse chunks dense.
    nouns : tuple of str
        What rows and columns are.
    """
    require("dask.array", extra="dask")
    store = source.store(session, dense)
    with _connected(address, workers, session) as client:
        session.say(f"the dashboard of the cluster is at {client.dashboard_link}")
        _refuse_blind_workers(client, source.file)
        chunks = count(store.X.numblocks[0], "chunk")
        number = len(client.scheduler_info(n_workers=-1)["workers"])
        store.notes.append(f"read in {chunks} by {count(number, 'worker')} of a Dask cluster")
        session.say(f"opened {source.file.name}: {' x '.join(map(count, store.X.shape, nouns))}, in {chunks}")
        try:
            yield OnCluster(session, source, store)
        except ClusterError as error:
            raise DataError(str(error)) from error


@contextmanager
def _connected(address: str, workers: int | None, session: Session) -> Iterator[Any]:
    dask, distributed = require("dask", extra="dask"), require("distributed", extra="dask")
    with ExitStack() as stack, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # A client that finds no scheduler leaves itself as the one that Dask should use.
        stack.enter_context(dask.config.set(scheduler=dask.config.get("scheduler", None)))
        place: Any = address
        if address == "local":
            # Or a fit would wait for ever if no worker can be started again after all have died; and Dask would give up workers
            # that take 15 s to start again, for good.
            settings = {
                # That a local cluster may be without workers, while new ones start
                "distributed.scheduler.no-workers-timeout": "120s",
                "distributed.deploy.lost-worker-timeout": "10 days",
            }
            stack.enter_context(dask.config.set(settings))
            place = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=workers or os.cpu_count(),
                    threads_per_worker=1,
                    dashboard_address=":0",
                    silence_logs=logging.CRITICAL,
                )
            )
        try:
            client = stack.enter_context(distributed.Client(place, timeout=SCHEDULER_TIMEOUT))
        except (OSError, ValueError, TypeError) as error:
            raise DataError(
                f"no Dask scheduler answers at {address} ({' '.join(str(error).split())[:120]}): give the address that "
                "`dask scheduler` prints, as in tcp://host:8786, or --cluster local"
            ) from None
        if not client.scheduler_info(n_workers=-1)["workers"]:
            raise DataError(
                f"the Dask cluster at {address} has no workers: start some with `dask worker {address}`"
            )
        others = [str(item.message) for item in caught if "ersion" in item.category.__name__]
        for text in others:
            session.warn(
                "the cluster has other versions of packages than this process, and may fail or give other results: "
                + " ".join(text.split())
            )
        with warnings.catch_warnings():
            yield client


def _refuse_blind_workers(client: Any, path: Path) -> None:
    """Refuse workers that do not see the store: zarr would read zeros there, without an error."""
    answers = client.run(os.path.exists, str(path.absolute()), on_error="return")
    blind = [worker for worker, sees in answers.items() if sees is False]
    if blind:
        raise DataError(
            f"{count(len(blind), 'worker')} of the cluster cannot see {path.absolute()}, the first is {blind[0]}: put the store "
            "where every worker has it under the same path"
        )


class OnCluster(CommandSamples):
    """The samples of a store, which are read in chunks where workers are."""

    def __init__(self, session: Session, source: Source, store: Store) -> None:
        super().__init__(
            session, source, store.X, store.variables, store.label_names, store.notes, len(store.X)
        )
        self.words = store.words

    def blocks(self, transform: Callable[[Any], Any]) -> Iterator[Block]:
        """Yield the scores of as many chunks as may be held at a time."""
        scores = transform(self.X)
        lengths, first = scores.chunks[0], 0
        most = max(1, SCORES_AT_ONCE // max(1, scores.shape[1]))
        while lengths:
            number = max(1, int(np.searchsorted(np.cumsum(lengths), most, side="right")))
            start = len(scores.chunks[0]) - len(lengths)
            part = np.asarray(computed(scores.blocks[start : start + number]), np.float64)
            yield Block(part, *self.words(first, first + len(part)))
            lengths, first = lengths[number:], first + len(part)

    def computed(self, value: Any) -> np.ndarray:
        """Return what was computed of X as an array."""
        return computed(value)


def opened(
    session: Session,
    source: Source,
    run: Running,
    *,
    dense: bool = False,
    nouns: tuple[str, str] = SAMPLE_NOUNS,
    table: Table | None = None,
) -> AbstractContextManager[CommandSamples]:
    """Open the samples of a file, in memory or on a cluster; of a table that has been read if `table` is one."""
    if run.cluster is not None:
        return on_cluster(session, source, run.cluster, run.threads, dense=dense, nouns=nouns)
    table = source.table(session, nouns) if table is None else table
    samples = InMemory(session, source, table)
    if dense and hasattr(samples.X, "toarray"):
        samples.X = samples.X.toarray()
    return nullcontext(samples)
