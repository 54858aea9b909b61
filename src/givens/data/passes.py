"""A pass over samples: what it adds up, a `Summary`, and how summaries of the chunks on Dask become one.

A pass begins with an empty summary. In memory and on disk rows are added to one copy of it, some at a time. On Dask there is a
task for each chunk, and a tree of tasks that merge their results. Every task is a pure function. The summary of a chunk is a
task with its own key, which the tree uses once: if a worker dies, Dask runs the task again on another one, and the tree uses
that result. The tree depends on the number of chunks only, so the result has the same bits whichever worker computes which
chunk, and in whatever order.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from typing import Any, Self, TypeVar
from uuid import uuid4

import numpy as np

import givens
from givens.numerics import parallel
from givens.numerics.tiles import add_in_order
from givens.support.arguments import Samples
from givens.support.imports import require
from givens.support.progress import counter, showing

Kind = TypeVar("Kind", bound="Summary")

FAN = 4
"""How many summaries one task merges."""

TILE_ROWS = 4096
"""Number of rows in a tile: fixed, so that threads do not change the order of any sum."""


class Summary(ABC):
    """A quantity that is added up over rows: sums, or anything else of which two can be merged into one.

    A pass begins with an empty summary that has the parameters of the pass. `begin` returns a copy of it for the rows of a chunk;
    the copy must not share anything that `add` changes in place. `merge` assigns new values and never writes into old arrays.
    Summaries are sent between processes: they should hold little besides their sums.

    Examples
    --------
    >>> from givens.data.passes import Summary
    >>> class Largest(Summary):
    ...     value = 0.0
    ...     def add(self, rows):
    ...         self.value = max(self.value, *rows)
    ...     def merge(self, other):
    ...         self.value = max(self.value, other.value)
    >>> empty = Largest()
    >>> one, two = empty.begin(0), empty.begin(2)
    >>> one.add([3, 5])
    >>> two.add([4, 7])
    >>> one.merge(two)
    >>> one.value, empty.value
    (7, 0.0)
    """

    def given(self, kept: Sequence[Any]) -> Self:
        """A copy of this empty summary with parameters that are sent separately, since many passes use them."""
        raise NotImplementedError(f"{type(self).__name__} has no such parameters")

    def begin(self, first: int) -> Self:
        """A copy of this empty summary for the rows from number `first` on."""
        return copy(self)

    @abstractmethod
    def add(self, rows: Any) -> None:
        """Add the next rows."""

    def end(self) -> None:  # noqa: B027
        """Called after the last rows; most summaries have nothing to do."""

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Add the summary of the rows that follow, whose `end` has been called."""

    def __sizeof__(self) -> int:
        """Size including arrays, by which Dask decides whether to move or spill a summary."""
        return object.__sizeof__(self) + _bytes(vars(self))


def _bytes(value: Any) -> int:
    """Total size of the arrays in an object and its attributes."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, dict):
        return sum(map(_bytes, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_bytes, value))
    return _bytes(vars(value)) if hasattr(value, "__dict__") and not isinstance(value, type) else 0


class Together(Summary):
    """Several summaries that are computed in one pass."""

    def __init__(self, *parts: Summary) -> None:
        self.parts: tuple[Any, ...] = parts

    def begin(self, first: int) -> Self:
        """Begin all of them."""
        return type(self)(*(part.begin(first) for part in self.parts))

    def add(self, rows: Any) -> None:
        """Add the rows to all of them."""
        for part in self.parts:
            part.add(rows)

    def end(self) -> None:
        """End all of them."""
        for part in self.parts:
            part.end()

    def merge(self, other: Together) -> None:
        """Merge each with its counterpart."""
        self.parts = tuple(copy(part) for part in self.parts)
        for mine, others in zip(self.parts, other.parts):
            mine.merge(others)


class Weighted(Summary):
    """A summary of rows that have weights; rows of weight 0 are left out.

    Parameters
    ----------
    summary : Summary
        Its `add` takes rows and their weights.
    weights : array, shape (samples,)
    """

    def __init__(self, summary: Any, weights: np.ndarray) -> None:
        self.summary, self.weights, self.next = summary, weights, 0

    def begin(self, first: int) -> Self:
        """An empty summary of the rows from number `first` on."""
        other = type(self)(self.summary.begin(first), self.weights[first:])
        other.next = first
        return other

    def add(self, rows: Any) -> None:
        """Add rows with the weights that are next."""
        weights, self.weights = np.split(self.weights, [rows.shape[0]])
        self.next += rows.shape[0]
        if len(weights) < rows.shape[0]:
            raise ValueError("X has more samples than sample_weight has numbers")
        if not weights.all():
            rows, weights = rows[weights > 0], weights[weights > 0]
        self.summary.add(rows, weights)

    def end(self) -> None:
        """End the summary, and drop the weights of the rows of other chunks."""
        self.summary.end()
        self.weights = self.weights[:0]

    def merge(self, other: Self) -> None:
        """Add the rows that follow."""
        self.summary = copy(self.summary)
        self.summary.merge(other.summary)
        self.next = other.next


class EveryNth(Summary):
    """The rows whose numbers are multiples of `step`."""

    def __init__(self, step: int) -> None:
        self.step = step
        self.next = 0
        self.found: list[np.ndarray] = []

    def begin(self, first: int) -> Self:
        """An empty summary of the rows from number `first` on."""
        other = type(self)(self.step)
        other.next = first
        return other

    def add(self, rows: np.ndarray) -> None:
        """Keep every step-th of these rows."""
        kept = rows[-self.next % self.step :: self.step]
        if len(kept):
            self.found = [*self.found, np.array(kept)]
        self.next += len(rows)

    def merge(self, other: Self) -> None:
        """Add the kept rows of those that follow."""
        self.found, self.next = self.found + other.found, other.next

    def rows(self) -> np.ndarray:
        """All rows that were kept."""
        return np.concatenate(self.found)


class Sums(Summary):
    """Sums over rows, each an array that is an attribute; `begin` sets them to 0.

    Parameters
    ----------
    **shapes : tuple of int
        The shape of each sum, by the name of its attribute.
    """

    def __init__(self, **shapes: tuple[int, ...]) -> None:
        self.count = 0
        self.shapes = shapes

    def begin(self, first: int) -> Self:
        """A copy whose sums are 0."""
        other = copy(self)
        for name, shape in self.shapes.items():
            setattr(other, name, np.zeros(shape))
        return other

    def add(self, rows: Any) -> None:
        """Add rows, tile by tile in their order."""
        sums = [getattr(self, name) for name in self.shapes]
        add_in_order(sums, self._tile, [rows[part] for part in parallel.slices(len(rows), TILE_ROWS)])
        self.count += len(rows)

    def _tile(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        """The sums over the rows of one tile, in the order of the shapes."""
        raise NotImplementedError

    def merge(self, other: Self) -> None:
        """Add the sums of other rows."""
        for name in ("count", *self.shapes):
            setattr(self, name, getattr(self, name) + getattr(other, name))


class DaskRows:
    """The rows of a dask array or data frame, chunked along samples.

    Parameters
    ----------
    X : dask array of shape (samples, features), or dask data frame
    """

    def __init__(self, X: Samples) -> None:
        self.passes = 0
        if not hasattr(X, "numblocks"):
            X = X.to_dask_array(lengths=True)
        self.X = checked(X)
        refuse_foreign_workers()
        self.shape: tuple[int, int] = tuple(int(length) for length in X.shape)  # type: ignore[assignment]
        if 0 in self.shape:
            raise ValueError(
                f"X has {self.shape[0]} rows and {self.shape[1]} columns: there is nothing to fit"
            )

    def head(self, size: int) -> Any:
        """The first rows, at most `size` of them, in memory."""
        return computed(self.X[:size])

    def keep(self, value: Any, name: str) -> Any:
        """A value for many passes: each worker fetches it once, and keeps it as long as the caller keeps the returned object."""
        dask = require("dask", extra="dask")
        return dask.persist(dask.delayed(value, name=f"{name}-{uuid4().hex}", traverse=False))[0]

    def total(self, empty: Kind, door: Any, name: str, kept: Sequence[Any] = ()) -> Kind:
        """The summary of all rows; `door` checks the rows of a chunk and divides them into pieces for `Summary.add`.

        `kept` are values that `keep` returned; `Summary.given` gets them on the worker that has the chunk.
        """
        self.passes += 1
        key = f"{name}-{uuid4().hex}"
        text = f"pass {self.passes}, {name.replace('-', ' ')}:"
        with watched(text, key, self.X.numblocks[0]) if showing() else nullcontext():
            return computed(self._tree(empty, door, name, key, kept))

    def _tree(self, empty: Summary, door: Any, name: str, key: str, kept: Sequence[Any]) -> Any:
        """The tasks of a pass: a summary of each chunk, and the tree that merges them."""
        dask = require("dask", extra="dask")
        token = key.removeprefix(f"{name}-")
        told = key if showing() else None
        state = dask.delayed((empty, door, told), name=f"{name}-parameters-{token}", traverse=False)
        # An array of one summary per chunk: Dask then reads and sums a chunk in one task, and no chunk waits in memory.
        leaves = self.X.map_blocks(
            _summarised,
            state=state,
            # Each by itself: of a list of them Dask would make a task, whose result is sent anew in every pass.
            **{f"kept{number}": one for number, one in enumerate(kept)},
            dtype=object,
            chunks=((1,) * self.X.numblocks[0], (1,)),
            meta=np.empty((0, 0), dtype=object),
            name=key,
        )
        merge = dask.delayed(_merged, pure=False)
        nodes, level = list(leaves.to_delayed().ravel()), 0
        while len(nodes) > 1 or level == 0:
            nodes = [
                merge(
                    nodes[start : start + FAN], dask_key_name=(f"{name}-merge-{token}", level, start // FAN)
                )
                for start in range(0, len(nodes), FAN)
            ]
            level += 1
        return nodes[0]


def checked(X: Samples) -> Any:
    """Return X, which must have two dimensions and be chunked along samples only, in chunks of known lengths."""
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, samples and features, got {X.ndim}")
    if any(length != length for length in X.shape):
        raise ValueError(
            "the lengths of X's chunks are unknown, as after a selection of rows: call X.compute_chunk_sizes() first"
        )
    if X.numblocks[1] > 1:
        raise ValueError(
            f"X is cut into {X.numblocks[1]} chunks along its features, and every sample must lie in one chunk: "
            "pass X.rechunk({1: -1})"
        )
    return X


def refuse_foreign_workers() -> None:
    """Refuse a cluster whose workers lack this library, or have another version of it.

    Such workers cannot unpickle their tasks, and Dask would send these to them again and again.
    """
    client = active_client()
    if client is None:
        return
    # Other errors are ignored: a worker that is shutting down does not answer.
    answers = client.run(eval, "__import__('givens.data.passes').__version__", on_error="return")
    for answer in answers.values():
        if isinstance(answer, ImportError):
            raise ModuleNotFoundError(
                f"a worker of the Dask cluster cannot import givens ({answer}): install givens, in this version, on all workers",
                name="givens",
            ) from answer
        if isinstance(answer, str) and answer != givens.__version__:
            raise ImportError(
                f"a worker of the Dask cluster has givens {answer}, and this process has {givens.__version__}: install the "
                "same version on all workers",
                name="givens",
            )


class ClusterError(RuntimeError):
    """An error of a Dask cluster, described in one sentence."""


def computed(collection: Any) -> Any:
    """Compute a dask collection on the active scheduler; turn errors of a cluster into a `ClusterError`."""
    sentences = {
        "KilledWorker": "workers of the Dask cluster died again and again on one chunk, most often for lack of memory: "
        "use smaller chunks, or give workers more memory",
        "NoWorkerError": "the Dask cluster has had no workers for as long as its setting no-workers-timeout allows: start some, "
        "and fit again",
        "FutureCancelledError": "the Dask cluster was closed, or lost its scheduler, while it computed: fit again",
        "CancelledError": "the Dask cluster was closed, or lost its scheduler, while it computed: fit again",
        "CommClosedError": "the connection to the Dask scheduler was lost: fit again",
        "TimeoutError": "the Dask scheduler does not answer: fit again",
    }
    dask = require("dask", extra="dask")
    try:
        return dask.compute(collection)[0]
    except Exception as error:
        sentence = sentences.get(type(error).__name__)
        if sentence is None:
            raise
        raise ClusterError(f"{sentence} (Dask says: {' '.join(str(error).split())[:200]})") from error


def _summarised(
    block: Any, state: tuple[Summary, Any, str | None], block_info: Any = None, **kept: Any
) -> Summary:
    """The summary of one chunk. It is not put into an array of objects: Dask would take its size for that of a pointer."""
    empty, door, told = state
    number = int(block_info[0]["chunk-location"][0])
    first, last = (int(edge) for edge in block_info[0]["array-location"][0])
    # One thread per task: Dask runs as many tasks as a worker has threads.
    with parallel.pool(1):
        summary = (empty.given(list(kept.values())) if kept else empty).begin(first)
        try:
            for rows in door.pieces(door.checked(block, number, first)):
                summary.add(rows)
        except (TypeError, ValueError) as error:
            text = " ".join(str(error).split())
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"rows {first} to {last - 1} of X (chunk {number}): {text}") from error
        summary.end()
    if told is not None:
        tell(told, number)
    return summary


def _merged(parts: list[Any]) -> Any:
    """Merge the summaries of neighbouring chunks, or of groups of chunks, into one."""
    total = copy(parts[0])
    with parallel.pool(1):
        for part in parts[1:]:
            total.merge(part)
    return total


# A bar of the chunks that are done. Dask's local schedulers call a function after every task; on a cluster the task of a chunk
# logs an event with its number, which Dask sends to the client. A chunk computed again because its worker died counts once.


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
