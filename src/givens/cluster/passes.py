"""Data that are gone through more than once, in this process or on Dask: one way to sum over them for both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from givens.cluster.graph import DaskRows
from givens.cluster.summary import Summary

Kind = TypeVar("Kind", bound=Summary)


class _Nothing(Summary):
    """The summary of a pass that only checks."""

    def add(self, rows: Any) -> None:
        """Rows that come here are good."""

    def merge(self, other: _Nothing) -> None:
        """Good as well."""


class RepeatedData(ABC):
    """Rows, checked, as often as they are asked for.

    Attributes
    ----------
    chunks : DaskRows or None
        Where the rows lie, if that is a dask array.
    """

    chunks: DaskRows | None = None

    @abstractmethod
    def __iter__(self) -> Iterator[Any]:
        """The rows of data that are not on Dask, in order, some at a time."""

    @abstractmethod
    def pieces(self, block: Any, number: int, first: int) -> Iterator[Any]:
        """The rows of one chunk, likewise, the first of them number `first`. Called where the chunk is, on a `mold` of this."""

    @abstractmethod
    def mold(self) -> RepeatedData:
        """This object without its data: what `pieces` needs, and small."""

    def first_block(self, size: int) -> Any:
        """The first rows on Dask, at most so many, as they lie there; if they are bad, a pass over the chunks says where."""
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
        """A value for many passes, which every worker fetches once; `name` as for `total`."""
        return value if self.chunks is None else self.chunks.keep(value, name)

    def total(self, empty: Kind, name: str, kept: Sequence[Any] = ()) -> Kind:
        """The summary of all rows.

        Parameters
        ----------
        empty : Summary
            Left as it is.
        name : str
            Of the pass, in words with hyphens: Dask's dashboard shows it.
        kept : sequence
            What `keep` returned, for `Summary.given`.
        """
        if self.chunks is not None:
            return self.chunks.total(empty, self.mold(), name, kept)
        summary = (empty.given(kept) if kept else empty).begin(0)
        for rows in self:
            summary.add(rows)
        summary.end()
        return summary
