"""Data that are read more than once, in this process or on Dask, and one method that sums over either."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from givens.cluster.graph import DaskRows
from givens.cluster.summary import Summary

Kind = TypeVar("Kind", bound=Summary)


class _Nothing(Summary):
    """The empty summary of a pass that only checks the rows."""

    def add(self, rows: Any) -> None:
        """Ignore the rows, which have been checked."""

    def merge(self, other: _Nothing) -> None:
        """Nothing to merge."""


class RepeatedData(ABC):
    """Rows that are checked, and can be read repeatedly.

    Attributes
    ----------
    chunks : DaskRows or None
        The rows, if they are those of a dask array.
    """

    chunks: DaskRows | None = None

    @abstractmethod
    def __iter__(self) -> Iterator[Any]:
        """Yield the rows of data that are not on Dask, in order, some at a time."""

    @abstractmethod
    def pieces(self, block: Any, number: int, first: int) -> Iterator[Any]:
        """Yield the rows of a chunk, which begins at row `first`, some at a time. Workers call this on a `mold` of the data."""

    @abstractmethod
    def mold(self) -> RepeatedData:
        """A small copy of this object without its data, which is sent to the workers and has what `pieces` needs."""

    def first_block(self, size: int) -> Any:
        """The first rows on Dask, at most `size`, unchanged; if they are invalid, a pass raises an error that names the place."""
        assert self.chunks is not None
        block = self.chunks.head(size)
        try:
            for _ in self.mold().pieces(block, 0, 0):
                pass
        except (TypeError, ValueError):
            self.total(_Nothing(), "check")
            raise
        return block

    def keep(self, value: Any, name: str) -> Any:
        """A value for the `kept` of many passes, which every worker fetches once; `name` as for `total`."""
        return value if self.chunks is None else self.chunks.keep(value, name)

    def total(self, empty: Kind, name: str, kept: Sequence[Any] = ()) -> Kind:
        """The summary of all rows.

        Parameters
        ----------
        empty : Summary
            An empty summary, which is not changed.
        name : str
            Name of the pass, words joined by hyphens; Dask's dashboard shows it.
        kept : sequence, default=()
            Values that `keep` returned; they are passed to `Summary.given`.
        """
        if self.chunks is not None:
            return self.chunks.total(empty, self.mold(), name, kept)
        summary = (empty.given(kept) if kept else empty).begin(0)
        for rows in self:
            summary.add(rows)
        summary.end()
        return summary
