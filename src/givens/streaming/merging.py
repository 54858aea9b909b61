"""A sketch of samples in chunks: one stream per chunk, whose kept columns are merged."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np

from givens.cluster import RepeatedData, Summary
from givens.streaming.rules import Frequent
from givens.streaming.sketch import Sketch


class SketchSummary(Summary):
    """The kept columns, mean and energy of the rows of one chunk or several, by the rule of Frequent Directions.

    Parameters
    ----------
    features, columns, reserve : int
        How many columns are kept, and how many of them are beyond those asked for.
    dtype : numpy dtype
    scaled : bool
        Whether features count by their deviations.
    """

    sketch: Sketch

    def __init__(self, features: int, columns: int, reserve: int, dtype: Any, scaled: bool = False) -> None:
        self.shape = features, columns
        self.dtype, self.scaled = np.dtype(dtype), scaled
        self.rule = Frequent(reserve)

    def begin(self, first: int) -> Self:
        """With an empty sketch."""
        other = copy(self)
        other.sketch = Sketch(*self.shape, self.dtype, scaled=self.scaled)
        return other

    def add(self, rows: Any) -> None:
        """Take in samples, dense or csr."""
        self.sketch.add(rows.astype(self.dtype, copy=False), self.rule, threads=1)

    def end(self) -> None:
        """Take in the samples that wait, and release the memory for further ones."""
        self.sketch = self.sketch.closed(self.rule)

    def merge(self, other: Self) -> None:
        """Take in the samples of another, as far as its columns tell."""
        if not self.sketch.count:
            self.sketch = other.sketch
        elif other.sketch.count:
            self.sketch = self.sketch.merged(other.sketch, self.rule)


def sketch_of(data: RepeatedData, empty: SketchSummary, name: str) -> Sketch:
    """The sketch of all rows, in one pass; more may be added to it."""
    return data.total(empty, name).sketch.opened()
