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


class ChunkedData:
    """Samples on Dask, as sparse PCA sees them: centred, scaled, in units of `found.unit`.

    Parameters
    ----------
    data : Rows
    found : FeatureMoments

    Attributes
    ----------
    origin : str
        What the last factor comes from, in words.
    """

    origin: str

    def __init__(self, data: Rows, found: FeatureMoments) -> None:
        assert data.chunks is not None
        self.data = data
        self.found = found
        self.shape = data.chunks.shape
        self.chunks = data.chunks.X.numblocks[0]

    def factor(
        self, features: np.ndarray, rows: int, keep_layout: bool = False, implicit: bool = False
    ) -> np.ndarray:
        """R with RᵀR = AᵀA of these features, or with RᵀR ≼ AᵀA from a sketch if they are many.

        R has at least so many rows, which is how many components are asked for.
        """
        if len(features) <= MOST_PRODUCT_FEATURES:
            sums = self.data.total(
                Moments(features, 1.0 / max(self.found.power, LEAST_INVERTIBLE)), "sparse-pca-products"
            )
            C = scaled_products(sums, features, self.found)
            self.origin = (
                f"the products of features, summed over {counted(self.chunks, 'chunk', 'chunks')} of samples"
            )
            return gram.root(C, self.found.norms[features], rows)
        empty = CentredSketch(features, self.found, *sketch_columns(rows, len(features)))
        kept = kept_columns(self.data, empty, "sparse-pca-sketch")
        self.origin = kept.in_words(self.chunks)
        return kept.Y * kept.sketch.unit
