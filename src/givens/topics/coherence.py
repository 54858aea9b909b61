"""Coherence of topics: normalised pointwise mutual information of words (Bouma 2009; Lau, Newman and Baldwin 2014).

With p_v the share of documents in which a word occurs, and p_uv that in which two do, NPMI = log(p_uv / (p_u p_v)) / −log p_uv:
−1 for words that never meet, 0 for independent ones, 1 for words that occur in the same documents only.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from scipy import sparse

from givens.cluster import RepeatedData, Summary
from givens.topics.documents import Counts


class _Meetings(Summary):
    """In how many documents two words occur; `column` has the number of each word that is counted, −1 for the others."""

    def __init__(self, column: np.ndarray, size: int) -> None:
        self.column = column
        self.together = np.zeros((size, size))
        self.documents = 0

    def add(self, counts: Counts) -> None:
        """Count more documents."""
        rows = np.repeat(np.arange(counts.size), np.diff(counts.indptr))
        found = (self.column[counts.indices] >= 0) & (counts.data > 0)
        present = sparse.csr_matrix(
            (np.ones(int(found.sum())), (rows[found], self.column[counts.indices[found]])),
            shape=(counts.size, len(self.together)),
        )
        present.data[:] = 1.0
        self.together = self.together + (present.T @ present).toarray()
        self.documents += counts.size

    def merge(self, other: Self) -> None:
        """Take in the documents of another."""
        self.together = self.together + other.together
        self.documents += other.documents


def npmi(documents: RepeatedData, top: np.ndarray, words: int) -> np.ndarray:
    """Mean NPMI of the pairs among the words `top` (k x n, as columns of the counts) of each topic.

    Words that occur in no document say nothing: their pairs are left out, and a topic without pairs has NaN.
    """
    used, place = np.unique(top, return_inverse=True)
    place = place.reshape(top.shape)
    column = np.full(words, -1, dtype=np.int64)
    column[used] = np.arange(len(used))
    found = documents.total(_Meetings(column, len(used)), "topics-coherence")
    share = found.together / found.documents
    alone = np.diag(share)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.log(share / np.outer(alone, alone)) / -np.log(share)
    scores[share == 0] = -1.0
    scores[share == 1] = 1.0
    scores[alone == 0] = np.nan
    scores[:, alone == 0] = np.nan
    pairs = np.triu_indices(top.shape[1], 1)
    values = np.array([scores[np.ix_(row, row)][pairs] for row in place])
    counted = np.isfinite(values)
    sums = np.where(counted, values, 0.0).sum(axis=1)
    return np.where(counted.any(axis=1), sums / np.maximum(counted.sum(axis=1), 1), np.nan)
