"""Do the words of a topic occur together? Normalised pointwise mutual information (Bouma 2009; Lau, Newman and Baldwin 2014).

With p_v the share of documents in which a word occurs, and p_uv that in which two do, NPMI = log(p_uv / (p_u p_v)) / −log p_uv:
−1 for words that never meet, 0 for independent ones, 1 for words that occur in the same documents only.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy import sparse

from givens.topics.documents import Counts


def npmi(documents: Iterable[Counts], top: np.ndarray, words: int) -> np.ndarray:
    """Mean NPMI of the pairs among the words `top` (k x n, as columns of the counts) of each topic.

    Words that occur in no document say nothing: their pairs are left out, and a topic without pairs has NaN.
    """
    used, place = np.unique(top, return_inverse=True)
    place = place.reshape(top.shape)
    column = np.full(words, -1, dtype=np.int64)
    column[used] = np.arange(len(used))
    together = np.zeros((len(used), len(used)))
    number = 0
    for counts in documents:
        rows = np.repeat(np.arange(counts.size), np.diff(counts.indptr))
        found = (column[counts.indices] >= 0) & (counts.data > 0)
        present = sparse.csr_matrix(
            (np.ones(int(found.sum())), (rows[found], column[counts.indices[found]])),
            shape=(counts.size, len(used)),
        )
        present.data[:] = 1.0
        together += (present.T @ present).toarray()
        number += counts.size
    share = together / number
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
