"""Principal components of samples on Dask or of a large sparse matrix: from the products of features, or from a sketch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from givens.data.moments import MOST_PRODUCT_FEATURES, Moments, too_large
from givens.data.rows import Rows
from givens.numerics import gram
from givens.streaming.merging import SketchSummary, kept_columns, sketch_columns
from givens.support.arguments import counted, number_or_share


@dataclass(frozen=True)
class ChunkedComponents:
    """Principal components, and what they come from.

    Attributes
    ----------
    pca : PCA
        Of the samples, scaled if that was asked for.
    mean : array, shape (features,)
    deviation : array, shape (features,), or None
    method : str
        In one sentence.
    """

    pca: PCA
    mean: np.ndarray
    deviation: np.ndarray | None
    method: str


@dataclass(frozen=True)
class _Spectrum:
    """The strongest axes of the scatter about the mean, their energies, and the sum of all, in units of `unit` squared."""

    mean: np.ndarray
    deviation: np.ndarray | None
    axes: np.ndarray
    energies: np.ndarray
    total: float
    unit: float


def principal_components(rows: Rows, n_components: Any, scale: bool) -> ChunkedComponents:
    """The components of all samples, as PCA has them; float32 if the samples are.

    Parameters
    ----------
    rows : Rows
        A table, in memory or on Dask.
    n_components : int, float or None
        As in PCA.
    scale : bool
        Divide features by their deviations.
    """
    samples, features = rows.shape
    if samples < 2:
        raise ValueError("X has 1 sample, and components need at least 2")
    _check_number(n_components, min(samples, features), features > MOST_PRODUCT_FEATURES)
    if features <= MOST_PRODUCT_FEATURES:
        found = _from_products(rows, scale)
        origin = f"the products of features, summed over {counted(rows.parts, 'chunk', 'chunks')} of samples"
    else:
        found, origin = _from_sketch(rows, int(n_components), scale)
    if not found.total > 0:
        raise ValueError("every feature of X is constant, so there is no variance to explain")
    pca = _as_pca(found, n_components, (samples, features), rows.dtype)
    deviation = None if found.deviation is None else found.deviation.astype(rows.dtype)
    return ChunkedComponents(
        pca, found.mean.astype(rows.dtype), deviation, f"principal components from {origin}"
    )


def _check_number(n_components: Any, most: int, sketched: bool) -> None:
    """Refuse a number of components that PCA would refuse, or that a sketch cannot tell."""
    number, _ = number_or_share(
        n_components,
        "n_components",
        most,
        "as many as X has samples or features, or a share of the variance",
    )
    if sketched and number is None:
        raise ValueError(
            f"n_components={n_components!r} needs the products of all features, and more than {MOST_PRODUCT_FEATURES} "
            "features have too many: give the number of components"
        )


def _from_products(rows: Rows, scale: bool) -> _Spectrum:
    """All axes, from the products of features about their means."""
    unit = rows.unit()
    with np.errstate(over="ignore", invalid="ignore"):
        found = rows.total(Moments(rows.n_features, unit), "rotated-pca-products")
    if not np.isfinite(found.scatter).all():
        raise too_large(unit, "samples")
    C = found.products()
    norms = np.sqrt(np.diag(C))
    C = gram.completed(C, norms)
    deviation = None
    if scale:
        deviation = norms / np.sqrt(found.count - 1)
        deviation[deviation == 0] = 1.0
        C = C / deviation / deviation[:, None]
        deviation = deviation / unit
    energies, axes = np.linalg.eigh(C)
    energies, axes = np.maximum(energies[::-1], 0.0), axes.T[::-1]
    size = 1.0 if scale else 1 / unit
    return _Spectrum(found.mean / unit, deviation, axes, energies, float(energies.sum()), size)


def _from_sketch(rows: Rows, n_components: int, scale: bool) -> tuple[_Spectrum, str]:
    """The axes that a sketch of the samples keeps, and the sketch in words."""
    columns, reserve = sketch_columns(n_components, rows.n_features)
    kept = kept_columns(
        rows, SketchSummary(rows.n_features, columns, reserve, rows.dtype, scale), "rotated-pca-sketch"
    )
    sketch = kept.sketch
    deviation = None
    if scale:
        deviations = sketch.deviations()
        deviation = np.where(deviations > 0, deviations * sketch.unit, 1.0)
    _, roots, axes = np.linalg.svd(kept.Y, full_matrices=False)
    found = _Spectrum(
        sketch.mean * sketch.unit,
        deviation,
        axes,
        roots**2,
        sketch.total(),
        1.0 if scale else sketch.unit,
    )
    return found, kept.in_words(rows.parts)


def _as_pca(found: _Spectrum, n_components: Any, shape: tuple[int, int], dtype: Any) -> PCA:
    """A fitted PCA with these components, as many as were asked for."""
    samples, features = shape
    most = min(samples, features)
    variances = found.energies[:most] / (samples - 1)
    total = found.total / (samples - 1)
    if n_components is None:
        m = most
    elif 0 < n_components < 1:
        shares = np.cumsum(variances / total)
        m = min(int(np.searchsorted(shares, n_components, side="right")) + 1, most)
    else:
        m = int(n_components)
    axes = found.axes[:m]
    # The sign that scikit-learn gives: the largest entry of each is positive.
    largest = axes[np.arange(m), np.abs(axes).argmax(axis=1)]
    axes = axes * np.where(largest < 0, -1.0, 1.0)[:, None]
    pca = PCA(n_components)
    with np.errstate(over="ignore", under="ignore"):  # `atomic_fit` refuses what is not finite
        squared = found.unit**2
        pca.explained_variance_ = (variances[:m] * squared).astype(dtype)
        pca.noise_variance_ = (
            max(total - float(variances[:m].sum()), 0.0) / (most - m) * squared if m < most else 0.0
        )
        pca.singular_values_ = (np.sqrt(found.energies[:m]) * found.unit).astype(dtype)
    pca.explained_variance_ratio_ = (variances[:m] / total).astype(dtype)
    pca.components_ = np.ascontiguousarray(axes, dtype=dtype)
    pca.mean_ = (found.mean if found.deviation is None else np.zeros(features)).astype(dtype)
    pca.n_components_, pca.n_samples_, pca.n_features_in_ = m, samples, features
    return pca
