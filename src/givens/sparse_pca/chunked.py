"""The data of sparse PCA in chunks on Dask: means and norms in one pass, the products of the features that count in a second.

The objective depends on the data A through AᵀA only. Every chunk's own means and sums of squares are merged by the formula of
Chan, Golub and LeVeque (1983), in which nothing cancels; its products are then summed about the means of all samples. Of more
features than `MOST_PRODUCT_FEATURES` a sketch of the centred and scaled samples takes the place of their products: few columns Y
with 0 ≼ AᵀA − YᵀY ≼ δ·I, where δ is known when the pass is done.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from givens.data.moments import MOST_PRODUCT_FEATURES, Moments
from givens.data.rows import Rows
from givens.numerics import gram
from givens.sparse_pca.centred_data import LEAST_INVERTIBLE, Centring, FeatureMoments, scaled_products
from givens.streaming.merging import SketchSummary, kept_columns, sketch_columns
from givens.support.arguments import counted


class CentredSketch(SketchSummary):
    """A sketch of some features of samples, centred and scaled by known means and deviations."""

    def __init__(self, features: np.ndarray, found: FeatureMoments, columns: int, reserve: int) -> None:
        super().__init__(len(features), columns, reserve, np.float64)
        self.centring = Centring(features, found)

    def add(self, rows: Any) -> None:
        """Take in samples, dense or csr."""
        for block in self.centring.blocks(rows):
            super().add(block)


def chunked_root(
    rows: Rows, found: FeatureMoments, features: np.ndarray, least: int
) -> tuple[np.ndarray, str]:
    """R with RᵀR = AᵀA of these features, or with RᵀR ≼ AᵀA from a sketch if they are many; and what it comes from, in words.

    R has at least so many rows, which is how many components are asked for.
    """
    if len(features) <= MOST_PRODUCT_FEATURES:
        empty = Moments(features, 1.0 / max(found.power, LEAST_INVERTIBLE))
        C = scaled_products(rows.total(empty, "sparse-pca-products"), features, found)
        chunks = counted(rows.parts, "chunk", "chunks")
        return gram.root(C, found.norms[features], least), (
            f"the products of features, summed over {chunks} of samples"
        )
    sketch = CentredSketch(features, found, *sketch_columns(least, len(features)))
    kept = kept_columns(rows, sketch, "sparse-pca-sketch")
    return kept.Y * kept.sketch.unit, kept.in_words(rows.parts)
