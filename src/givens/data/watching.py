"""A progress bar of the chunks that are done, for every pass on Dask.

Dask's local schedulers call a function after every task. On a cluster the task of a chunk logs an event with the chunk's number,
which Dask sends to the client. A chunk that is computed again because its worker died counts once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from givens.support.extras import require
from givens.support.progress import counter


@contextmanager
def watched(text: str, key: str, chunks: int) -> Iterator[None]:
    """Show how many chunks are done; the tasks of chunks have the keys (key, number of the chunk, ...)."""
    callbacks = require("dask.callbacks", extra="dask")
    done: set[int] = set()
    with counter(text, "chunks", chunks) as advance:

        def count(number: int) -> None:
            if number not in done:
                done.add(number)
                advance(1)

        def after_task(task: Any, result: Any, graph: Any, state: Any, thread: Any) -> None:
            if isinstance(task, tuple) and task[0] == key:
                count(task[1])

        client = active_client()
        if client is not None:
            client.subscribe_topic(key, lambda event: count(event[1]))
        with callbacks.Callback(posttask=after_task):
            yield
        if client is not None:
            client.unsubscribe_topic(key)


def tell(key: str, number: int) -> None:
    """Report that a chunk is done; called in the task of the chunk."""
    try:
        worker = sys.modules["distributed"].get_worker()
    except (KeyError, ValueError):
        return  # no cluster: a local scheduler calls `after_task`
    worker.log_event(key, number)


def active_client() -> Any:
    """The client of the active cluster, or None."""
    try:
        return sys.modules["distributed"].default_client()
    except (KeyError, ValueError):
        return None
