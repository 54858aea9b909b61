"""`--cluster`: a store that Dask reads in chunks, fitted and scored where the chunks are.

Results are those of the command without it. Scores are written some chunks at a time; the page shows evenly chosen samples.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from givens.app.commands.options import Source, named
from givens.app.commands.results import Described, described, write_score_blocks
from givens.app.commands.session import Session
from givens.app.report.views import chosen_rows
from givens.app.tables import DataError, Table
from givens.app.tables.chunks import Chunk
from givens.app.tables.stores import Store
from givens.app.tables.table import count, numbered
from givens.app.tables.write import Staged
from givens.data.passes import ClusterError, computed
from givens.support.imports import require

PATIENCE = "10s"  # until a scheduler answers
NO_WORKERS = "120s"  # that a local cluster may be without workers, while new ones start
SCORES = 1 << 22  # scores that are held at a time


@contextmanager
def store_on_cluster(
    session: Session,
    source: Source,
    address: str,
    workers: int | None,
    *,
    dense: bool = False,
    nouns: tuple[str, str] = ("sample", "variable"),
) -> Iterator[Store]:
    """Connect to a cluster, or start one, and open the store; what goes wrong with the cluster is a DataError.

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
    with ExitStack() as stack:
        client = stack.enter_context(_connected(address, workers, session))
        session.say(f"the dashboard of the cluster is at {client.dashboard_link}")
        _refuse_blind_workers(client, source.file)
        chunks = count(store.X.numblocks[0], "chunk")
        number = len(client.scheduler_info(n_workers=-1)["workers"])
        store.notes.append(f"read in {chunks} by {count(number, 'worker')} of a Dask cluster")
        session.say(f"opened {source.file.name}: {' x '.join(map(count, store.X.shape, nouns))}, in {chunks}")
        try:
            yield store
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
                "distributed.scheduler.no-workers-timeout": NO_WORKERS,
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
            client = stack.enter_context(distributed.Client(place, timeout=PATIENCE))
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


@dataclass
class Scored:
    """The samples that the page shows, evenly chosen, with their numbers, names, labels and scores; and how many there are."""

    rows: np.ndarray
    table: Table
    scores: np.ndarray
    data: Described


def score(
    session: Session,
    source: Source,
    store: Store,
    scores: Any,
    noun: str,
    files: Staged,
    *,
    extra: Callable[[np.ndarray], dict[str, list[str]]] = lambda block: {},
    seen: Callable[[np.ndarray], None] = lambda block: None,
) -> Scored:
    """Compute the scores, a dask array, some chunks at a time, and write them.

    Parameters
    ----------
    noun : str
        What a column of scores is called, together with its number.
    extra : callable
        What else is written of samples with these scores, by name.
    seen : callable
        Shown all scores, some at a time.
    """
    shown = chosen_rows(len(store.X))
    kept: list[np.ndarray] = []
    names: list[str] = []
    labels: list[list[str]] = [[] for _ in store.label_names]
    tally: Counter[str] = Counter()

    def blocks() -> Iterator[tuple[list[list[str]], np.ndarray]]:
        for first, part in _parts(scores, advance):
            seen(part)
            chunk = named(session, Chunk(part, *store.words(first, first + len(part))))
            here = shown[(shown >= first) & (shown < first + len(part))] - first
            kept.append(part[here])
            names.extend(chunk.names[k] for k in here)
            for collected, words in zip(labels, chunk.labels):
                collected.extend(words[k] for k in here)
            if chunk.labels:
                tally.update(chunk.labels[0])
            yield [chunk.names, *chunk.labels, *extra(part).values()], part

    words = list(extra(np.empty((0, scores.shape[1]))))
    with (
        session.step("writing the scores", total=scores.numblocks[0]) as advance,
        files.open("scores.csv") as stream,
    ):
        header = numbered(noun, scores.shape[1])
        write_score_blocks(stream, store.label_names, words, header, blocks())
    table = Table(None, names, store.variables, notes=store.notes)
    if labels:
        table.labels, table.label_name = labels[0], store.label_names[0]
        table.other_labels = dict(zip(store.label_names[1:], labels[1:]))
    said = described(tally if labels else None)
    data = Described(source.file, len(store.X), store.variables, store.notes, said)
    return Scored(shown, table, np.concatenate(kept), data)


def _parts(scores: Any, advance: Callable[[float], None]) -> Iterator[tuple[int, np.ndarray]]:
    """Scores of as many chunks as may be held at a time, and the number of the first sample of each."""
    lengths = scores.chunks[0]
    most = max(1, SCORES // max(1, scores.shape[1]))
    start = first = 0
    while start < len(lengths):
        end, held = start + 1, lengths[start]
        while end < len(lengths) and held + lengths[end] <= most:
            held += lengths[end]
            end += 1
        yield first, np.asarray(computed(scores.blocks[start:end]), np.float64)
        advance(end - start)
        start, first = end, first + held
