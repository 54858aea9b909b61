"""Threads that do not change the result.

Work is cut into pieces that depend on shapes only, each piece is done by single-threaded code, and whatever is summed is
summed in a fixed order. The number of threads then changes the time and nothing else.

A run opens one pool; whatever it calls may use it through `each`, which runs in order, in this thread, where no pool
is open (and so inside the pool's own workers).

Limits of a BLAS hold for the whole process, so the pools of all threads share one: the first sets it, the last restores what was
there before. A forked process has none of its parent's threads; its pools start others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import count as count_from_zero
from itertools import pairwise
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from givens.numerics import flop_counts
from givens.support.arguments import whole
from givens.support.signals import uninterrupted

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class Workers:
    """The threads of a pool beside the one that opens it. They are started with the first job.

    Jobs go through plain queues: with futures each took 0.05 to 0.1 ms longer, and a stream has one for every few samples.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.forget_threads()
        _open_workers.add(self)

    def forget_threads(self) -> None:
        """Drop threads and queue: in a forked process the threads do not exist, and one may have held the queue's lock."""
        self._jobs: SimpleQueue[tuple[Callable[[], None], SimpleQueue] | None] = SimpleQueue()
        self._threads: list[Thread] = []

    def submit(self, job: Callable[[], None], helpers: int) -> SimpleQueue[BaseException | None]:
        """Run the job on so many threads; each puts what it raised, or None, into the queue that is returned."""
        while len(self._threads) < self.size:
            thread = Thread(target=self._serve, name=f"givens-{len(self._threads)}", daemon=True)
            with uninterrupted():
                thread.start()
                self._threads.append(thread)
        done: SimpleQueue[BaseException | None] = SimpleQueue()
        for _ in range(helpers):
            self._jobs.put((job, done))
        return done

    def close(self) -> None:
        """Let all threads end after the jobs that were submitted."""
        self._jobs.put(None)
        _open_workers.discard(self)

    def join(self) -> None:
        """Wait until all threads have ended."""
        for k in range(len(self._threads)):
            self._threads[k].join()
        # Python ignores an interrupt that comes while a weak reference is cleared, and `threading` has some to its threads.
        with uninterrupted():
            self._threads.clear()

    def _serve(self) -> None:
        while (submitted := self._jobs.get()) is not None:
            job, done = submitted
            raised = None
            try:
                job()
            except BaseException as error:  # raised again by the thread that submitted the job
                raised = error
            # A thread that waits keeps nothing of its last job alive.
            del job, submitted
            done.put(raised)
        self._jobs.put(
            None
        )  # for the next thread, also for one whose start was interrupted before it was listed


_open_workers: set[Workers] = set()
_current: ContextVar[Workers | None] = ContextVar("givens_pool", default=None)
_open: ContextVar[bool] = ContextVar("givens_pool_open", default=False)


def count(threads: int | None) -> int:
    """How many threads `threads=` means: None is every core this process may use, and at most 8."""
    if threads is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return min(cores, 8)
    return whole(threads, "threads", 1, 1024)  # more would not all be started by every system


@cache
def _libraries() -> list[Any]:
    # Looking for the loaded libraries takes milliseconds, and NumPy's is among them by now. SciPy's, which compiled code
    # loads in any case, has to be.
    import scipy.linalg  # noqa: F401

    return [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]


class BlasLimit:
    """Limits every BLAS to one thread while a pool is open; the last pool that closes restores the numbers from before the first.

    With OpenMP the limit belongs to a thread: each pool sets and restores it.
    """

    def __init__(self) -> None:
        self.pools = 0
        self._lock = Lock()
        self._before: list[int] = []

    def begin(self) -> list[int]:
        """Count one pool more; returns the numbers of threads that `end` restores where they are this thread's own."""
        with self._lock:
            own = [library.get_num_threads() for library in _libraries()]
            if self.pools == 0:
                self._before = own
            self.pools += 1
            for library, threads in zip(_libraries(), own):
                if threads != 1:
                    _limit(library, 1)
        return own

    def end(self, own: list[int]) -> None:
        """Count one pool less."""
        with self._lock:
            self.pools -= 1
            for library, mine, before in zip(_libraries(), own, self._before):
                if getattr(library, "threading_layer", None) == "openmp":
                    _limit(library, mine)
                elif self.pools == 0:
                    _limit(library, before)

    def keep_own(self, pools: int) -> None:
        """In a forked process, count only the pools of the thread that is left."""
        self._lock = Lock()
        if self.pools > pools == 0:
            for library, before in zip(_libraries(), self._before):
                _limit(library, before)
        self.pools = pools


def _limit(library: Any, threads: int) -> None:
    # Recent versions of threadpoolctl accept calls from one thread only until it releases control; here one thread may
    # open the first pool and another close the last.
    release = getattr(library, "clear_controlling_thread", lambda force: None)
    release(force=True)
    library.set_num_threads(threads)
    release(force=True)


_limited_blas = BlasLimit()


def _after_fork() -> None:
    for others in list(_open_workers):
        others.forget_threads()
    _limited_blas.keep_own(int(_open.get()))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Pool:
    """Threads for a `with` block, each with a single-threaded BLAS. Inside a pool of the same size that pool is used.

    Ctrl-C is delayed while a pool is opened or closed. This is no generator, since an interrupt between its `yield` and the body
    of the `with` would leave the pool open.
    """

    def __init__(self, threads: int | None) -> None:
        self.workers = count(threads)
        self._entered = False
        self._others: Workers | None = None

    def __enter__(self) -> int:
        if _open.get() and self.workers == width():
            return self.workers
        try:
            with uninterrupted():
                self._begin()
        except BaseException:
            self._end()
            raise
        return self.workers

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self._end()
        finally:
            self._end()  # an interrupt may have come before it was done
            if self._others is not None:
                self._others.join()
        if error is not None and _is_interrupt(error):
            raise KeyboardInterrupt from None

    def _begin(self) -> None:
        self._outside = _open.get(), _current.get()
        self._own = None if _open.get() else _limited_blas.begin()
        self._entered = True
        # The thread that opens the pool works too.
        if self.workers > 1:
            self._others = Workers(self.workers - 1)
        _open.set(True)
        _current.set(self._others)

    def _end(self) -> None:
        if self._entered:
            with uninterrupted():
                self._entered = False
                _open.set(self._outside[0])
                _current.set(self._outside[1])
                if self._others is not None:
                    self._others.close()
                if self._own is not None:
                    _limited_blas.end(self._own)


def pool(threads: int | None) -> Pool:
    """Open a pool of so many threads for a `with` block, which gets their number."""
    return Pool(threads)


@contextmanager
def interrupts() -> Iterator[None]:
    """Let Ctrl-C be a KeyboardInterrupt, also while compiled code runs.

    A signal that arrives then waits until Python code runs. To return an array, numba calls a Python function of its own, ignores
    that this was interrupted, and returns a result beside the exception, for which Python raises a SystemError.
    """
    try:
        yield
    except SystemError as error:
        if _is_interrupt(error):
            raise KeyboardInterrupt from None
        raise


def _is_interrupt(error: BaseException) -> bool:
    """Whether there is an interrupt behind a SystemError, or behind several: each array that is returned adds a link."""
    cause: BaseException | None = error
    while isinstance(cause, SystemError):
        cause = cause.__cause__
    return cause is not error and isinstance(cause, KeyboardInterrupt)


def width() -> int:
    """How many threads `each` would use here."""
    others = _current.get()
    return 1 if others is None else others.size + 1


def each(work: Callable[[Item], Outcome], items: Iterable[Item]) -> list[Outcome]:
    """Do the work on every item, on the pool's threads if one is open; the outcomes come in the items' order."""
    items = list(items)
    others = _current.get()
    if others is None or len(items) < 2:
        return [work(item) for item in items]
    outcomes: dict[int, Outcome] = {}
    numbers = count_from_zero()

    def take() -> None:
        # `next` is one step of the interpreter, so no two threads get the same number.
        while (number := next(numbers)) < len(items):
            outcomes[number] = work(items[number])

    counters: list[flop_counts.Flops] = []

    def help_out() -> None:
        with flop_counts.job(flop_counts.Flops()) as counter:
            counters.append(counter)
            take()

    # Each thread, this one included, takes the next item when it has done its last: one job per thread.
    helpers = min(others.size, len(items) - 1)
    done = others.submit(help_out, helpers)
    try:
        take()
    finally:
        # After an exception no worker may still write into arrays of the caller.
        raised = [done.get() for _ in range(helpers)]
        flop_counts.count(sum(counter.flops for counter in counters))
    for error in raised:
        if error is not None:
            raise error
    return [outcomes[number] for number in range(len(items))]


def side_by_side(work: Callable[[Item], Outcome], items: Iterable[Item]) -> list[Outcome]:
    """As `each`, for long pieces of work that call `each` themselves: inside them it runs on one thread."""

    def alone(item: Item) -> Outcome:
        token = _current.set(None)
        try:
            return work(item)
        finally:
            _current.reset(token)

    return each(alone, items)


def slices(total: int, step: int) -> list[slice]:
    """Cut range(total) into slices of length `step`, the last one shorter.

    >>> slices(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + step, total)) for start in range(0, total, step)]


def parts(total: int, number: int) -> list[slice]:
    """Cut range(total) into at most `number` slices of nearly equal length."""
    number = max(1, min(number, total))
    edges = [total * k // number for k in range(number + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges)]
