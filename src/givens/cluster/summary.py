"""What a pass over the data leaves of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np


class Summary(ABC):
    """Something that adds up over rows: an empty one, which knows the parameters of the pass, takes in rows and other summaries.

    `begin` returns a summary that shares nothing with the empty one that `add` changes; `merge` replaces what it changes and
    never writes into it. A summary is sent between processes: it should hold little beside its sums.

    Examples
    --------
    >>> from givens.cluster import Summary
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
        """This empty summary with parameters that are sent apart from it, since many passes need them."""
        raise NotImplementedError(f"{type(self).__name__} has no such parameters")

    def begin(self, first: int) -> Self:
        """An empty summary like this one, of the rows from number `first` on."""
        return copy(self)

    @abstractmethod
    def add(self, rows: Any) -> None:
        """Take in the next rows."""

    def end(self) -> None:  # noqa: B027
        """Finish: no more rows come. Most have nothing to do."""

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Take in the summary of the rows that follow, which has ended."""

    def __sizeof__(self) -> int:
        """With the numbers it holds: Dask weighs that before it moves or spills a summary."""
        return object.__sizeof__(self) + _bytes(vars(self))


def _bytes(value: Any) -> int:
    """What arrays take, wherever in an object they are."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, dict):
        return sum(map(_bytes, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_bytes, value))
    return _bytes(vars(value)) if hasattr(value, "__dict__") and not isinstance(value, type) else 0


class Together(Summary):
    """Several summaries made in one pass."""

    def __init__(self, *parts: Summary) -> None:
        self.parts: tuple[Any, ...] = parts

    def begin(self, first: int) -> Self:
        """Begin all of them."""
        return type(self)(*(part.begin(first) for part in self.parts))

    def add(self, rows: Any) -> None:
        """Show the rows to all of them."""
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
