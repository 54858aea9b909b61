"""The additions and multiplications that a job executes.

Flops are counted as executed, everywhere and for the rivals too: an addition or a multiplication is one; divisions, comparisons,
sorts and functions such as cos are none. Operations inside LAPACK cannot be counted, so figures of Golub and Van Loan's textbook
stand for them.

Whatever computes says so by `count`, and hands nothing on: the numbers go to the counter of the present job. A job in another one
counts for both. `parallel.each` gives every thread a counter, and adds them up. All counts are whole numbers, whose sums are
exact, so totals depend neither on the number of threads nor on which thread did what. Compiled code returns its count to the
function that calls it; workers of a cluster have no counter, so whoever sends them work counts it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar


class Counter(Protocol):
    """Anything with a number of flops, such as the progress of a run."""

    flops: float


class Flops:
    """A counter that does nothing else."""

    flops: float = 0.0


Counting = TypeVar("Counting", bound=Counter)
_present: ContextVar[Counter | None] = ContextVar("givens_flops", default=None)


def count(flops: float) -> None:
    """Add to the counter of the present job; a fraction is rounded, so that sums are exact in any order."""
    counter = _present.get()
    if counter is not None:
        counter.flops += round(flops)


def so_far() -> float:
    """What the counter of the present job says; 0 if there is none."""
    counter = _present.get()
    return 0.0 if counter is None else counter.flops


@contextmanager
def job(counter: Counting) -> Iterator[Counting]:
    """Count with this counter; the job outside of this one, if there is one, counts the same flops too.

    Examples
    --------
    >>> with job(Flops()) as whole:
    ...     count(6.0)
    ...     with job(Flops()) as part:
    ...         count(2.0)
    >>> whole.flops, part.flops
    (8.0, 2.0)
    """
    before = counter.flops
    token = _present.set(counter)
    try:
        yield counter
    finally:
        _present.reset(token)
        flops = counter.flops - before
        count(flops)


@contextmanager
def uncounted() -> Iterator[None]:
    """Count nothing: for what only observes a job."""
    token = _present.set(None)
    try:
        yield
    finally:
        _present.reset(token)


def svd(rows: int, columns: int) -> float:
    """The thin singular value decomposition."""
    m, n = max(rows, columns), min(rows, columns)
    return 6.0 * m * n * n + 20.0 * n**3


def qr(rows: int, columns: int) -> float:
    """Both thin factors."""
    m, n = max(rows, columns), min(rows, columns)
    return 4.0 * n * n * m - 4.0 * n**3 / 3.0


def eigh(n: int) -> float:
    """Eigenvalues and eigenvectors of a symmetric matrix."""
    return 9.0 * n**3


def determinant(n: int) -> float:
    """By LU factors."""
    return 2.0 * n**3 / 3.0


def cholesky(n: int) -> float:
    """The triangular factor of a positive definite matrix."""
    return n**3 / 3.0
