"""The data of sparse PCA in chunks on Dask: means and norms in one pass, the products of the features that count in a second.

The objective depends on the data A through AᵀA only. Every chunk's own means and sums of squares are merged by the formula of
Chan, Golub and LeVeque (1983), in which nothing cancels; its products are then summed about the means of all samples. Of more
features than `MOST_PRODUCT_FEATURES` a sketch of the centred and scaled samples takes the place of their products: few columns Y
with 0 ≼ AᵀA − YᵀY ≼ δ·I, where δ is known when the pass is done.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from givens.data.moments import MOST_PRODUCT_FEATURES, feature_means, pooled_mean
from givens.data.rows import Rows
from givens.data.summary import Summary
from givens.data.sums import too_large
from givens.numerics import gram
from givens.numerics.scaling import power_of_two
from givens.sparse_pca.centred_data import Centring, FeatureMoments, GramSum, scaled_moments
from givens.streaming.merging import SketchSummary, kept_columns, sketch_columns
from givens.support.arguments import counted, dense


class FeatureSums(Summary):
    """Count, mean, and sum of squares about it, of every feature of samples multiplied by a power of two."""

    def __init__(self, features: int, unit: float) -> None:
        self.unit = unit
        self.count = 0
        self.mean = np.zeros(features)
        self.squares = np.zeros(features)

    def add(self, rows: Any) -> None:
        """Take in samples, dense or csr."""
        step = max(1, gram.BLOCK_ENTRIES // rows.shape[1])
        for start in range(0, rows.shape[0], step):
            part = np.asarray(dense(rows[start : start + step]), dtype=np.float64) * self.unit
            other = FeatureSums(part.shape[1], self.unit)
            other.count = len(part)
            other.mean = feature_means(part)
            part -= other.mean
            with np.errstate(over="ignore"):  # `moments_of` says so
                other.squares = np.einsum("ij,ij->j", part, part)
            self.merge(other)

    def merge(self, other: FeatureSums) -> None:
        """Take in the samples of another."""
        with np.errstate(over="ignore", invalid="ignore"):
            self.mean, gap, weight = pooled_mean(self.count, self.mean, other.count, other.mean)
            self.squares = self.squares + other.squares + gap**2 * weight
        self.count += other.count


def moments_of(data: Rows, scale: bool) -> FeatureMoments:
    """Means and norms of the features, in one pass."""
    found = data.total(FeatureSums(data.n_features, data.unit()), "sparse-pca-moments")
    total = found.squares + found.count * found.mean**2
    if not np.isfinite(total).all():
        raise too_large(found.unit, "samples")
    further = power_of_two(np.sqrt(total.max()))
    exponent = further / found.unit
    return scaled_moments(found.mean / further, found.squares / further**2, exponent, found.count, scale)


class CentredSketch(SketchSummary):
    """A sketch of some features of samples, centred and scaled by known means and deviations."""

    def __init__(self, features: np.ndarray, found: FeatureMoments, columns: int, reserve: int) -> None:
        super().__init__(len(features), columns, reserve, np.float64)
        self.centring = Centring(features, found)

    def add(self, rows: Any) -> None:
        """Take in samples, dense or csr."""
        for block in self.centring.blocks(rows, 1):
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
            found = self.data.total(GramSum(features, self.found), "sparse-pca-products")
            C = gram.unpacked(found.upper, len(features))
            self.origin = (
                f"the products of features, summed over {counted(self.chunks, 'chunk', 'chunks')} of samples"
            )
            return gram.root(C, self.found.norms[features], rows)
        empty = CentredSketch(features, self.found, *sketch_columns(rows, len(features)))
        kept = kept_columns(self.data, empty, "sparse-pca-sketch")
        self.origin = kept.in_words(self.chunks)
        return kept.Y * kept.sketch.unit
