"""A sketch of samples in chunks: one stream per chunk, whose kept columns are merged."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from givens.data.moments import MOST_PRODUCT_FEATURES
from givens.data.passes import Summary
from givens.data.rows import Rows
from givens.streaming.rules import Frequent, default_reserve
from givens.streaming.sketch import Sketch
from givens.support.arguments import counted


class SketchSummary(Summary):
    """The kept columns, mean and energy of the rows of one chunk or several, by the rule of Frequent Directions.

    Parameters
    ----------
    features, columns, reserve : int
        How many columns are kept, and how many of them are beyond those asked for.
    dtype : numpy dtype
    scaled : bool, default=False
        Whether features count by their deviations.
    """

    def __init__(self, features: int, columns: int, reserve: int, dtype: Any, scaled: bool = False) -> None:
        self.shape = features, columns
        self.dtype, self.scaled = np.dtype(dtype), scaled
        self.rule = Frequent(reserve)
        self.sketch = Sketch(0, columns, dtype, scaled=scaled)  # of no features: it is sent to all workers

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


def sketch_of(data: Rows, empty: SketchSummary, name: str) -> Sketch:
    """The sketch of all rows, in one pass; more may be added to it."""
    return data.total(empty, name).sketch.opened()


def sketch_columns(components: int, features: int) -> tuple[int, int]:
    """How many columns a sketch keeps of many features for so many components, and how many of them are a reserve."""
    columns = min(components + default_reserve(components), features)
    if columns * features > MOST_PRODUCT_FEATURES**2:
        raise ValueError(
            f"{components} components of {features} features need a sketch of {columns} x {features} numbers, more than is sent "
            f"around ({MOST_PRODUCT_FEATURES} x {MOST_PRODUCT_FEATURES}): ask for fewer components"
        )
    return columns, columns - components


@dataclass(frozen=True)
class KeptColumns:
    """The columns Y that a sketch keeps of samples A, in their `unit`, and how well they stand for all of AAᵀ.

    Attributes
    ----------
    Y : array of float64, shape (columns, features)
        Of scaled features, if they count by their deviations.
    sketch : Sketch
    kept : float
        The share of the variance that Y holds.
    loss : float
        The share of the variance that Y lacks in any direction, at most. (Where the sketch scales features, by deviations that it
        learns from the samples, that holds as far as these were known when columns were dropped.)
    """

    Y: np.ndarray
    sketch: Sketch
    kept: float
    loss: float

    def in_words(self, chunks: int) -> str:
        """What the columns are, for the method of a result."""
        parts = counted(chunks, "chunk", "chunks")
        return (
            f"a sketch of {len(self.Y)} columns, merged over {parts} of samples, that keeps {self.kept:.2%} of the variance and "
            f"lacks at most {self.loss:.2%} of it in any direction"
        )


def kept_columns(data: Rows, empty: SketchSummary, name: str) -> KeptColumns:
    """What a sketch keeps of all rows, in one pass."""
    sketch = data.total(empty, name).sketch
    Y = sketch.columns_now(empty.rule, 1).astype(np.float64)
    if sketch.scaled:
        Y *= sketch.inverses()
    total = sketch.total() or 1.0
    held = float(np.sum(Y**2))
    return KeptColumns(Y, sketch, held / total, empty.rule.largest_loss(max(1.0 - held / total, 0.0)))
