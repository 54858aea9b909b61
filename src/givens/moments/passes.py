"""Data that is gone through more than once: a table, or anything that yields tables of rows each time it is iterated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from givens.support.arguments import refuse_mask
from givens.support.rows import batches, in_memory

_TYPES = [np.float64, np.float32]


class RepeatedRows:
    """The rows of X, checked, as often as they are asked for: contiguous by rows, so that no bit depends on how X lies in memory.

    Parameters
    ----------
    estimator : BaseEstimator
        Learns the number (and names) of features.
    X : array-like of shape (n, d), or anything that `givens.rows` reads
        A memory map or a data set on disk, a list of arrays, or an object of your own whose `__iter__` starts anew. An
        iterator, which yields its rows once, is refused.
    """

    def __init__(self, estimator: BaseEstimator, X: Any) -> None:
        if hasattr(X, "__next__"):
            raise TypeError(
                "X yields its rows only once, and fit goes through them more than once: pass a list of arrays, "
                "an object whose __iter__ starts anew, or give the batches to partial_fit"
            )
        self.source: Iterable[Any]
        if in_memory(X):
            refuse_mask(X, "X")
            table = validate_data(estimator, X, dtype=_TYPES, order="C")
            self.source, self.checked = [table], True
            self.features = table.shape[1]
        else:
            self.source, self.checked = X, False
            first = next(iter(self), None)
            if first is None:
                raise ValueError("X yields no rows")
            self.features = first.shape[1]
            estimator.n_features_in_ = self.features

    def __iter__(self) -> Iterator[np.ndarray]:
        if self.checked:
            yield from self.source
            return
        features = getattr(self, "features", None)
        for number, chunk in enumerate(batches(self.source)):
            name = f"chunk {number} of X"
            refuse_mask(chunk, name)
            chunk = check_array(chunk, dtype=_TYPES, order="C", ensure_min_samples=0, input_name=name)
            features = features or chunk.shape[1]
            if chunk.shape[1] != features:
                raise ValueError(
                    f"chunk {number} of X has {chunk.shape[1]} columns, but the first has {features}"
                )
            if len(chunk):
                yield chunk

    def head(self, size: int) -> np.ndarray:
        """The first rows, at most so many."""
        found: list[np.ndarray] = []
        for chunk in self:
            found.append(chunk[: size - sum(map(len, found))])
            if sum(map(len, found)) >= size:
                break
        return np.concatenate(found)
