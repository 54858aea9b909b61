"""Documents in batches: the first documents determine the axes on which the moments of all documents are kept.

Documents are held until they fill a chunk of a fixed size, so the sums do not depend on the division into batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from givens.data.rows import Rows
from givens.support.arguments import generator
from givens.topics.documents import CHUNK_DOCUMENTS, Counts, WordCounts, rechunked
from givens.topics.word_moments import WordMoments, principal_axes


class AxesOptions(NamedTuple):
    """How the axes are chosen: the number of first documents, the number of axes, and the random state."""

    documents: int
    rank: int
    random_state: Any

    def moments(self, matrices: list[sparse.csr_matrix]) -> WordMoments:
        """Empty moments on the principal axes of the first documents."""
        head = Rows(
            sparse.vstack(list(_first(matrices, self.documents)), format="csr"), check=WordCounts(False)
        )
        axes = principal_axes(head, matrices[0].shape[1], self.rank, generator(self.random_state))
        return WordMoments(axes)


@dataclass(frozen=True)
class WordStream:
    """The moments of all full chunks (None until the axes are fixed), and the documents that wait for their chunk to be full."""

    moments: WordMoments | None
    waiting: list[sparse.csr_matrix]
    options: AxesOptions

    @property
    def samples(self) -> int:
        """Number of documents that determine the axes."""
        return self.options.documents

    @property
    def count(self) -> int:
        """Number of documents so far."""
        taken = 0 if self.moments is None else self.moments.documents
        return taken + sum(part.shape[0] for part in self.waiting)

    @property
    def basis(self) -> np.ndarray | None:
        """The axes, once they are fixed."""
        return None if self.moments is None else self.moments.axes

    def emptied(self) -> WordStream:
        """A stream with the same axes and no documents."""
        assert self.moments is not None
        return WordStream(WordMoments(self.moments.axes), [], self.options)

    def merged(self, other: WordStream) -> WordStream:
        """A stream of the documents of both, which share their axes."""
        if self.moments is None or other.moments is None:
            raise ValueError(
                "a stream whose axes are not fixed yet cannot be merged: "
                f"{self.samples} documents fix them, and {min(self.count, other.count)} have come"
            )
        moments = self.moments.copy()
        moments.merge(other.complete())
        return replace(self, moments=moments)

    def with_documents(self, rows: sparse.csr_matrix) -> WordStream:
        """A copy of this stream to which documents are added."""
        waiting, moments = [*self.waiting, rows], self.moments
        if moments is None and self.count + rows.shape[0] >= self.samples:
            moments = self.options.moments(waiting)
        if moments is None:
            return replace(self, waiting=waiting)
        moments, left = moments.copy(), []
        for part in rechunked(waiting, CHUNK_DOCUMENTS):
            if part.shape[0] < CHUNK_DOCUMENTS:
                left.append(part)
            else:
                moments.add(Counts.of(part))
        return replace(self, moments=moments, waiting=left)

    def complete(self) -> WordMoments:
        """The moments of all documents so far; before the axes are fixed, on the axes of these documents."""
        moments = self.options.moments(self.waiting) if self.moments is None else self.moments
        if self.waiting:
            moments = moments.copy()
            for rows in rechunked(self.waiting, CHUNK_DOCUMENTS):
                moments.add(Counts.of(rows))
        return moments


def _first(matrices: list[sparse.csr_matrix], size: int) -> Iterator[sparse.csr_matrix]:
    """Yield the first `size` rows of the matrices."""
    for rows in matrices:
        if size <= 0:
            return
        yield rows[:size]
        size -= rows.shape[0]
