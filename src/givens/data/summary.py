"""Summaries: what a pass computes from the rows of the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np


class Summary(ABC):
    """A quantity that is added up over rows: sums, or anything else of which two can be merged into one.

    A pass begins with an empty summary that has the parameters of the pass. `begin` returns a copy of it for the rows of a chunk;
    the copy must not share anything that `add` changes in place. `merge` assigns new values and never writes into old arrays.
    Summaries are sent between processes: they should hold little besides their sums.

    Examples
    --------
    >>> from givens.data.summary import Summary
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
