"""Coherence of topics: normalised pointwise mutual information of words (Bouma 2009; Lau, Newman and Baldwin 2014).

With p_v the share of documents in which word v occurs, and p_uv the share in which both u and v occur,
NPMI = log(p_uv / (p_u p_v)) / −log p_uv: −1 for words that never occur together, 0 for independent words, 1 for words that only
occur together.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from givens.data.passes import Sums
from givens.data.rows import Rows
from givens.topics.documents import Counts


class _Meetings(Sums):
    """In how many documents two words occur together; `column` has the number of each counted word, −1 for other words."""

    together: np.ndarray

    def __init__(self, column: np.ndarray, size: int) -> None:
        super().__init__(together=(size, size))
        self.column = column

    def add(self, counts: Counts) -> None:
        """Add documents."""
        rows = np.repeat(np.arange(counts.size), np.diff(counts.indptr))
        found = (self.column[counts.indices] >= 0) & (counts.data > 0)
        present = sparse.csr_matrix(
            (np.ones(int(found.sum())), (rows[found], self.column[counts.indices[found]])),
            shape=(counts.size, len(self.together)),
        )
        present.data[:] = 1.0
        self.together += (present.T @ present).toarray()
        self.count += counts.size


def npmi(documents: Rows, top: np.ndarray, words: int) -> np.ndarray:
    """Mean NPMI over the pairs of the n most probable words of each topic; `top` (k x n) has their columns in the counts.

    Pairs with a word that occurs in no document are left out; a topic without other pairs has NaN.
    """
    used, place = np.unique(top, return_inverse=True)
    place = place.reshape(top.shape)
    column = np.full(words, -1, dtype=np.int64)
    column[used] = np.arange(len(used))
    found = documents.total(_Meetings(column, len(used)), "topics-coherence")
    share = found.together / found.count
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
