"""Which chunks of a pass are done, while Dask computes: a bar for every pass.

Dask's local schedulers call back after every task. On a cluster the task of a chunk logs an event with its number, and Dask hands
it to the client. A chunk that is computed again, since its worker died, counts once.
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
    """Show how many chunks are done, of tasks whose keys are (key, chunk, ...)."""
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
    """In the task of a chunk: it is done."""
    try:
        worker = sys.modules["distributed"].get_worker()
    except (KeyError, ValueError):
        return  # a local scheduler calls back by itself
    worker.log_event(key, number)


def active_client() -> Any:
    """The client of the cluster that computes, if there is one."""
    try:
        return sys.modules["distributed"].default_client()
    except (KeyError, ValueError):
        return None
