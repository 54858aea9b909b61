"""Principal components of samples, wherever they lie: from the products of features, from a sketch, or from the samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.linalg import ArpackError
from sklearn.decomposition import PCA

from givens.data.moments import MOST_PRODUCT_FEATURES, Moments, moments_of, too_large
from givens.data.rows import Rows
from givens.data.sketch import Sketch, sendable_rule
from givens.numerics import gram, parallel
from givens.numerics.scaling import EPS, refuse_too_large
from givens.support.arguments import counted, dense, number_or_share, weighted_rows

SumMoments = Callable[[bool], Moments]
"""Sums the moments of all rows; the argument says whether products of different features are wanted."""


class ComponentOptions(Protocol):
    """What is asked of the components: parameters of the estimator."""

    n_components: Any
    scale: bool
    svd_solver: str
    random_state: Any
    threads: int | None


@dataclass(frozen=True)
class Spectrum:
    """The strongest axes of the scatter about the mean, their energies, and the sum of all, in units of `unit` squared.

    `weight` is the sum of the weights of the samples, or their number.
    """

    count: int
    weight: float
    mean: np.ndarray
    deviation: np.ndarray | None
    axes: np.ndarray
    energies: np.ndarray
    total: float
    unit: float
    origin: str


def principal_components(
    rows: Rows, options: ComponentOptions, sample_weight: ArrayLike | None
) -> tuple[PCA, Spectrum]:
    """The components of all samples, as PCA has them, float32 if the samples are; and what they come from."""
    features, table, weights = rows.n_features, rows.table, None
    if sample_weight is not None:
        table, weights = weighted_rows(rows.matrix("sample_weight"), sample_weight, counted=True)

    def moments(products: bool) -> Moments:
        if weights is not None:
            return moments_of(table, rows.unit(), weights, products=products)
        name = "rotated-pca-products" if products else "rotated-pca-moments"
        return rows.total(Moments(features, rows.unit(), products=products), name)

    way = _way(table, features, weights, options)
    samples = rows.samples if table is None else table.shape[0]
    if samples is not None:
        _check(options.n_components, samples, features, way)
    if way == "samples":
        spectrum = _from_samples(dense(table), weights, moments, options)
    else:
        with parallel.pool(options.threads):
            spectrum = (
                _from_sketch(rows, options) if way == "sketch" else _from_products(rows, moments, options)
            )
    if samples is None:
        _check(options.n_components, spectrum.count, features, way)
    return _as_pca(spectrum, options.n_components, rows), spectrum


def _way(table: Any, features: int, weights: np.ndarray | None, options: ComponentOptions) -> str:
    """Where the components come from: the "samples", the "products" of features, or a "sketch"."""
    in_memory = table is not None and (
        not sparse.issparse(table) or max(table.shape) <= MOST_PRODUCT_FEATURES
    )
    if in_memory and not _through_products(table.shape, options):
        return "samples"
    if options.svd_solver not in ("auto", "covariance_eigh"):
        raise ValueError(
            f"svd_solver={options.svd_solver!r} is for dense samples in memory: leave it out with a dask array or a large "
            "sparse matrix"
        )
    if features <= MOST_PRODUCT_FEATURES:
        return "products"
    if weights is not None:
        raise ValueError(
            f"sample_weight needs the products of all features, and more than {MOST_PRODUCT_FEATURES} sparse features have too "
            "many: leave it out, or make X dense"
        )
    return "sketch"


def _check(n_components: Any, samples: int, features: int, way: str) -> None:
    """Refuse too few samples, and a number of components that PCA would refuse, or that a sketch cannot tell."""
    if samples < 2:
        raise ValueError("X has 1 sample, and components need at least 2")
    if way == "samples" and isinstance(n_components, str):
        return  # "mle" is for PCA to check
    number, _ = number_or_share(
        n_components,
        "n_components",
        min(samples, features),
        "as many as X has samples or features, or a share of the variance",
    )
    if way == "sketch" and number is None:
        raise ValueError(
            f"n_components={n_components!r} needs the products of all features, and more than {MOST_PRODUCT_FEATURES} "
            "features have too many: give the number of components"
        )


def _through_products(shape: tuple[int, int], options: ComponentOptions) -> bool:
    """Whether the components of a table in memory come from the products of its features.

    That is quicker for tall tables, as for PCA's svd_solver="auto"; in others products would lose the digits of small components.
    """
    samples, features = shape
    if isinstance(options.n_components, str):
        return False
    if options.svd_solver == "auto":
        return features <= 1000 and samples >= 10 * features
    return options.svd_solver == "covariance_eigh" and features <= MOST_PRODUCT_FEATURES


def _norms(sums: Moments, options: ComponentOptions, products: bool) -> tuple[np.ndarray, Any]:
    """The norms of features about their means, and their deviations, if these are wanted."""
    if not np.isfinite(sums.scatter).all():
        raise too_large(sums.unit, "samples")
    norms = np.sqrt(np.diag(sums.products()) if products else sums.scatter)
    _refuse_constant(norms)
    return norms, np.where(norms > 0, norms / np.sqrt(sums.weight - 1), 1.0) if options.scale else None


def _from_products(rows: Rows, moments: SumMoments, options: ComponentOptions) -> Spectrum:
    """All axes, from the products of features about their means."""
    sums = moments(True)
    norms, deviation = _norms(sums, options, products=True)
    C, unit = gram.completed(sums.products(), norms), sums.unit
    if deviation is not None:
        C = C / deviation / deviation[:, None]
    energies, axes = np.linalg.eigh(C)
    energies, axes = np.maximum(energies[::-1], 0.0), axes.T[::-1]
    axes[:, norms == 0] = 0.0
    where = (
        "" if rows.chunks is None else f", summed over {counted(rows.parts, 'chunk', 'chunks')} of samples"
    )
    return Spectrum(
        sums.count,
        sums.weight,
        sums.mean / unit,
        None if deviation is None else deviation / unit,
        axes,
        energies,
        float(energies.sum()),
        1 / unit if deviation is None else 1.0,
        f"the products of features{where}",
    )


def _from_sketch(rows: Rows, options: ComponentOptions) -> Spectrum:
    """The axes that a sketch of the samples keeps."""
    rule = sendable_rule(int(options.n_components), rows.n_features)
    sketch = rows.total(Sketch(rows.n_features, rule, rows.dtype, scaled=options.scale), "rotated-pca-sketch")
    _refuse_constant(sketch.total())
    deviation = None
    if options.scale:
        deviations = sketch.deviations()
        deviation = np.where(deviations > 0, deviations * sketch.unit, 1.0)
    _, roots, axes = np.linalg.svd(sketch.columns(), full_matrices=False)
    return Spectrum(
        sketch.count,
        sketch.count,
        sketch.mean * sketch.unit,
        deviation,
        axes,
        roots**2,
        sketch.total(),
        1.0 if options.scale else sketch.unit,
        sketch.in_words(rows.parts),
    )


def _from_samples(
    X: np.ndarray, weights: np.ndarray | None, moments: SumMoments, options: ComponentOptions
) -> Spectrum:
    """The axes that PCA finds of the centred samples, which keep the digits that a large mean takes."""
    with parallel.pool(options.threads):
        sums = moments(False)
    norms, deviation = _norms(sums, options, products=False)
    unit, mean = sums.unit, sums.mean / sums.unit
    values = X - mean.astype(X.dtype)
    if unit != 1.0:
        values *= values.dtype.type(unit)
    if deviation is not None:
        values /= deviation.astype(values.dtype)
    values[:, norms == 0] = 0.0
    if weights is not None:
        # PCA subtracts a mean, which weighted samples would have: with their mirror images it is zero.
        values *= np.sqrt(weights / 2).astype(values.dtype)[:, None]
        values = np.concatenate((values, -values))
    solver = options.svd_solver
    try:
        pca = PCA(options.n_components, svd_solver=solver, random_state=options.random_state, copy=False).fit(
            values
        )
    except (ArpackError, np.linalg.LinAlgError) as error:
        raise ValueError(f"svd_solver={solver!r} found no components of X; try 'full' ({error})") from error
    pca.components_[:, norms == 0] = 0.0
    total = sums.scatter.sum() if deviation is None else np.sum((norms / deviation) ** 2)
    return Spectrum(
        sums.count,
        sums.weight,
        mean,
        None if deviation is None else deviation / unit,
        pca.components_.astype(np.float64),
        pca.singular_values_.astype(np.float64) ** 2,
        float(total),
        1 / unit if deviation is None else 1.0,
        "the centred samples",
    )


def _refuse_constant(energies: Any) -> None:
    if not np.any(energies):
        raise ValueError("every feature of X is constant, so there is no variance to explain")


def _as_pca(spectrum: Spectrum, n_components: Any, rows: Rows) -> PCA:
    """A fitted PCA with these components, as many as were asked for."""
    features, dtype = rows.n_features, rows.dtype
    most = min(spectrum.count, features)
    variances = spectrum.energies[:most] / (spectrum.weight - 1)
    total = spectrum.total / (spectrum.weight - 1)
    number, share = (
        (None, None) if isinstance(n_components, str) else number_or_share(n_components, "n_components")
    )
    # By default the components with variance: what is left of the others is rounding.
    rank = int(np.sum(variances > max(spectrum.count, features) * EPS * variances[0]))
    m = rank if number is None else number
    if share is not None:
        m = min(int(np.searchsorted(np.cumsum(variances / total), share, side="right")) + 1, m)
    axes = spectrum.axes[:m]
    _refuse_without_variance(axes)
    # The sign that scikit-learn gives: the largest entry of each is positive.
    largest = axes[np.arange(m), np.abs(axes).argmax(axis=1)]
    axes = axes * np.where(largest < 0, -1.0, 1.0)[:, None]
    pca = PCA(n_components)
    with np.errstate(over="ignore", under="ignore"):
        squared = np.float64(spectrum.unit) ** 2
        pca.explained_variance_ = (variances[:m] * squared).astype(dtype)
        pca.noise_variance_ = (
            max(total - float(variances[:m].sum()), 0.0) / (most - m) * squared if m < most else 0.0
        )
        pca.singular_values_ = (np.sqrt(spectrum.energies[:m]) * spectrum.unit).astype(dtype)
        _refuse_size(pca.explained_variance_)
        if spectrum.deviation is not None:
            _refuse_size(spectrum.deviation**2)
    pca.explained_variance_ratio_ = (variances[:m] / total).astype(dtype)
    pca.components_ = np.ascontiguousarray(axes, dtype=dtype)
    pca.mean_ = (spectrum.mean if spectrum.deviation is None else np.zeros(features)).astype(dtype)
    pca.n_components_, pca.n_samples_, pca.n_features_in_ = m, spectrum.count, features
    return pca


def _refuse_without_variance(axes: np.ndarray) -> None:
    """Refuse axes of constant features alone, whose loadings a normalisation would make as large as any."""
    left = int(np.count_nonzero(np.linalg.norm(axes, axis=1) > 0.999))
    if left < len(axes):
        raise ValueError(
            f"the features of X that are not constant have {left} components with variance, which are fewer than the "
            f"{len(axes)} to rotate: set n_components to {left} or less"
        )


def _refuse_size(variances: np.ndarray) -> None:
    """Refuse variances that are infinite, or vanish, as numbers of their type."""
    refuse_too_large(variances, "X", "variances", "divide them by a constant of their size")
    if not variances[0] > 0:
        raise ValueError("X is too small for its variances to be numbers; multiply it by a constant")
