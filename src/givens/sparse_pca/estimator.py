"""Sparse principal components by rotations, with scikit-learn's contract."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from givens.data.by_rows import by_rows
from givens.data.missing import completed, holes_of, missing_explained
from givens.data.moments import Moments, moments_of
from givens.data.rows import Numbers, Rows, in_memory
from givens.metrics import (
    adjusted_from_scores,
    largest_correlation,
    loading_overlap,
    projected_from_scores,
    span,
)
from givens.numerics import parallel
from givens.numerics.polar import polar
from givens.numerics.scaling import largest_size, refuse_too_large, unit_of
from givens.result import Result
from givens.schedules import Schedule
from givens.sparse_pca import cardinality
from givens.sparse_pca.centred_data import (
    CentredData,
    CovarianceData,
    FeatureMoments,
    chunked_root,
    factor_covariance,
    feature_moments,
)
from givens.sparse_pca.loadings import Loadings, solve
from givens.sparse_pca.options import Counts, FitOptions, Threshold, fit_options
from givens.sparse_pca.stability import resampled
from givens.sparse_pca.truncated_power import ProductForm, SampleForm, SparseRows, reported_order
from givens.support.arguments import (
    Samples,
    are,
    dense,
    warn_caller,
    warn_of_dominant_feature,
    weighted_rows,
    whole,
)
from givens.support.fitting import Transformer, atomic_fit, finite_or_missing, validate_data


class SparseScores(Transformer):
    """Scores and their inverse, from `components_`, `mean_` and `scale_` (None: not scaled)."""

    mean_: Any
    scale_: Any

    def _standard(self, X: Samples) -> tuple[Any, np.ndarray, np.ndarray]:
        """X as validated, and the loadings and means for unscaled data."""
        X, Z, mean = self._validated(X), self.components_, self.mean_
        if self.scale_ is not None:
            scale, limits = self.scale_, np.finfo(X.dtype)
            # Their reciprocals may be infinite; times a power of two they are not.
            if (scale < 4 * limits.tiny).any():
                lift = np.where(scale < 4 * limits.tiny, np.ldexp(1.0, limits.nmant + 8), 1.0).astype(X.dtype)
                scale, mean = scale * lift, mean * lift
                X = X @ sparse.diags(lift) if sparse.issparse(X) else X * lift
            Z = Z / scale
        return X, Z.astype(X.dtype, copy=False), mean.astype(X.dtype, copy=False)

    def _validated(self, X: Samples) -> Any:
        """X as validated; its missing values are estimated if the model was fitted with `missing`."""
        check_is_fitted(self)
        completion = getattr(self, "completion_", None)
        X = self._checked(X, completion is not None, reset=False)
        if completion is None or sparse.issparse(X) or not (holes := np.isnan(X)).any():
            return X
        return completion.fill(X.astype(np.float64), holes).astype(X.dtype)

    def _checked(self, X: Samples, missing: bool, **options: Any) -> Any:
        """X as scikit-learn's checks return it; with missing values, where they are estimated."""
        dtype, finite = [np.float64, np.float32], finite_or_missing(X, missing)
        forms = ("csr", "csc")
        try:
            return validate_data(
                self, X, accept_sparse=forms, dtype=dtype, ensure_all_finite=finite, **options
            )
        except ValueError as error:
            raise missing_explained(error, X) from None

    def transform(self, X: Samples) -> np.ndarray:
        """The scores (X − mean)Zᵀ, Z the loadings by rows, of any source of rows.

        Of a dask array or data frame they are a dask array, not computed yet.
        """
        check_is_fitted(self)
        return by_rows(self, "_scores", X, len(self.components_))

    def _scores(self, X: Samples) -> np.ndarray:
        X, Z, mean = self._standard(X)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.asarray(X @ Z.T) - mean @ Z.T if sparse.issparse(X) else (X - mean) @ Z.T
        refuse_too_large(scores, "X", "scores", "divide it by the largest first")
        return scores

    def inverse_transform(self, X: Samples) -> np.ndarray:
        """The data that the scores stand for, by least squares: scores (ZZᵀ)⁻¹Z + mean."""
        scores, Z = self._checked_scores(X), self.components_
        recovered = scores @ np.linalg.pinv(Z.astype(np.float64)).T.astype(Z.dtype)
        if self.scale_ is not None:
            recovered = recovered * self.scale_
        return recovered + self.mean_

    def score(self, X: Samples, y: None = None) -> float:
        """The share of the variance of X, about the fitted mean, within the span of the loadings."""
        X = self._validated(X)
        basis = span(self.components_.astype(np.float64))
        unit = max(largest_size(X), float(np.max(np.abs(self.mean_)))) or 1.0
        mean, scale = self.mean_ / unit, 1.0 if self.scale_ is None else self.scale_ / unit
        squares = inside = 0.0
        for rows in parallel.slices(X.shape[0], 1024):
            part = (dense(X[rows]).astype(np.float64) / unit - mean) / scale
            squares += float(np.sum(part**2))
            inside += float(np.sum((part @ basis) ** 2))
        return inside / squares if squares > 0 else 1.0

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@dataclass(frozen=True)
class Components:
    """Sparse components; the names are those of the fitted attributes, without the underscore.

    `idle` says how many of them explain nothing beyond the others.
    """

    components: np.ndarray
    explained_variance: np.ndarray
    explained_variance_ratio: np.ndarray
    projected_variance_ratio: float
    n_nonzero: np.ndarray
    gamma: np.ndarray
    loading_overlap: float
    score_correlation: float
    result: Result
    idle: int


def find_components(
    data: CentredData | CovarianceData,
    options: FitOptions,
    rng: np.random.Generator,
    *,
    divisor: float,
    dtype: Any,
    total: float | None = None,
    names: Any = None,
    previous: np.ndarray | None = None,
    start: np.ndarray | None = None,
) -> Components:
    """The components of data.

    Parameters
    ----------
    data : CentredData or CovarianceData
    options : FitOptions
    rng : Generator
    divisor : float
        What sums of squares are divided by for variances.
    dtype : numpy dtype
        Of the components.
    total : float, optional
        The total sum of squares, by default that of these data.
    names : array, optional
        Of the features, for warnings.
    previous : array, shape (m, features), optional
        Loadings to start from.
    start : array, shape (rows, m), optional
        Orthonormal columns to start the rotations from.
    """
    moments = data.moments
    total = float(np.sum(moments.norms**2)) if total is None else total
    warn_of_dominant_feature(moments.norms**2, total, names)
    features, table, loadings = _loadings(data, options, rng, previous, start)
    Z, empty = fill_empty(loadings, moments.norms[features])
    if empty:
        loadings = replace(loadings, Z=Z, scores=table.scores(SparseRows.of(Z)).T)
        _warn_of_empty(empty, options)
    # What explains nothing beyond the others comes last, however large it is by itself.
    idle = np.zeros(options.m, dtype=bool) if options.counts is None else cardinality.idle(loadings.scores)
    squares, counts = np.einsum("ij,ij->j", loadings.scores, loadings.scores), np.count_nonzero(Z, axis=1)
    asked = np.sort(counts)[::-1] if options.divide else options.counts
    order = reported_order(np.where(idle, 0.0, squares), counts, asked)
    # Variances and sizes of correlations do not depend on signs.
    Z, scores = with_signs(Z[order]), loadings.scores[:, order]
    adjusted = adjusted_from_scores(scores) * max(len(scores) - 1, 1)
    components = np.zeros((len(Z), len(moments.norms)), dtype)
    components[:, features] = Z
    with np.errstate(over="ignore", under="ignore"):
        gamma = loadings.levels[order] * moments.unit
        return Components(
            components=components,
            explained_variance=adjusted / divisor * moments.unit * moments.unit,
            explained_variance_ratio=adjusted / total,
            projected_variance_ratio=projected_from_scores(loadings.scores, loadings.Z) / total,
            n_nonzero=np.count_nonzero(components, axis=1),
            gamma=gamma * gamma if options.l0 else gamma,
            loading_overlap=loading_overlap(Z),
            score_correlation=largest_correlation(scores.T @ scores),
            result=in_units(loadings.result, moments.unit),
            idle=0 if empty else int(np.count_nonzero(idle)),
        )


def _loadings(
    data: CentredData | CovarianceData,
    options: FitOptions,
    rng: np.random.Generator,
    previous: np.ndarray | None,
    start: np.ndarray | None,
) -> tuple[np.ndarray, SampleForm | ProductForm, Loadings]:
    """Features, the data of these, and the loadings of a threshold or of counts."""
    if options.counts is not None and options.max_iter:
        return cardinality.solve(data, options, previous, rng)
    features = screen(data.moments.norms, options)
    At = data.factor(features, options.m, implicit=not options.all_columns(data.shape[0]))
    if previous is not None:
        start = polar(At @ previous[:, features].T)
    return features, SampleForm(At), solve(At, options, start, rng)


def with_signs(Z: np.ndarray) -> np.ndarray:
    """The rows with signs that make the largest entry of each positive."""
    # The first of those that differ by rounding, so that the sign is the same on every processor.
    where = np.argmax(np.abs(Z).round(12), axis=1)
    # Adding 0.0 makes −0.0 positive.
    return Z * np.where(Z[np.arange(len(Z)), where] < 0, -1.0, 1.0)[:, None] + 0.0


def _warn_of_empty(empty: int, options: FitOptions) -> None:
    reason, advice = (
        ("exceeds the threshold", "lower the threshold, ask for fewer components, or use n_nonzero")
        if options.counts is None
        else ("is left by the others", "ask for fewer components, or give more samples")
    )
    warn_caller(
        f"nothing of {empty} of {options.m} components {reason}, so each of these has its largest entry alone; {advice}",
        UserWarning,
    )


def warn_of_idle(idle: int, m: int) -> None:
    """Say that some of m components explain nothing beyond the others."""
    if idle:
        warn_caller(
            f"{are(idle, 'component', 'components')} beyond the rank of X, where there is no variance left: ask for "
            f"{m - idle} or fewer, or give more samples",
            UserWarning,
        )


def screen(norms: np.ndarray, asked: FitOptions) -> np.ndarray:
    """The features that can enter a component: those with norms above the level, and never fewer than are needed."""
    kept = np.flatnonzero(norms > (asked.level if asked.counts is None else 0.0))
    need = asked.m if asked.counts is None else max(asked.m, int(asked.counts.max()))
    return kept if len(kept) >= need else np.sort(np.argsort(-norms, kind="stable")[:need])


def fill_empty(loadings: Loadings, norms: np.ndarray) -> tuple[np.ndarray, int]:
    """Give each component of zeros its largest entry, no two of them the same; returns the loadings and how many."""
    Z = loadings.Z.copy()
    empty = np.flatnonzero(~Z.any(axis=1))
    taken = np.zeros(Z.shape[1], dtype=bool)
    for j in empty:
        sizes = np.where(taken, -1.0, np.abs(loadings.Y[j]))
        if sizes.max() <= 0:
            sizes = np.where(taken, -1.0, norms)
        where = int(np.argmax(sizes))
        Z[j, where] = -1.0 if loadings.Y[j, where] < 0 else 1.0
        taken[where] = True
    return Z, len(empty)


def in_units(result: Result, unit: float) -> Result:
    """The result of data that had been divided by `unit`, as if they had not."""
    with np.errstate(over="ignore"):
        square = float(np.float64(unit) * np.float64(unit))
        trace = replace(
            result.trace,
            value=[value * square for value in result.trace.value],
            gradient_norm=[norm * square for norm in result.trace.gradient_norm],
        )
        return replace(
            result,
            value=result.value * square,
            gradient_norm=result.gradient_norm * square,
            trace=trace,
            phases=tuple(replace(phase, gain=phase.gain * square) for phase in result.phases),
            starts=None if result.starts is None else result.starts * square,
        )


class SparsePCA(SparseScores):
    """Principal components made of few variables.

    Maximises Σ_j Σ_k [|(AU)_kj| − γ]₊² ("l1") or Σ_j Σ_k [(AU)_kj² − γ]₊ ("l0") over matrices U with orthonormal columns, A
    the centred data, features x samples, by rotations of two columns at a time; the loadings are the entries that exceed γ. By
    default pairs are rotated in blocks, which leaves a part of their gain to the next sweep; with a `schedule` of single pairs,
    such as "random", each pair is solved exactly.

    Parameters
    ----------
    n_components : int, optional
        By default as many as there are samples or features, whichever is fewer: the paper's full case.
    threshold : float or (penalty, float), optional
        γ as a share, between 0 and 1, of the smallest threshold that leaves no non-zero: the largest norm of a centred feature
        for "l1", its square for "l0". 0 is PCA. The penalty is "l1" unless ``("l0", 0.1)``, say, is given. Give one of threshold
        and n_nonzero; if neither is given, the threshold is 0.05.
    n_nonzero : int, sequence of int or ("total", int), optional
        How many non-zeros each component gets, exactly. The loadings are then those of the largest adjusted variance that
        truncated power steps find, from several starts: rotations whose thresholds track the counts, and loadings one by one.
        Single entries are exchanged as long as that gains, and loadings are renewed where that gains much. With a list, the
        components come in its order, and the adjusted variance, which depends on the order, is that of this one.
        ``("total", 60)`` is the number of non-zeros of all components together. The search begins with equal counts. Then
        truncated power steps count the largest entries of all components, each of which keeps one at least, as long as the
        adjusted variance grows; it is at least that of equal counts.
    refit : bool, default=True
        Find the values of the largest adjusted variance on the pattern of non-zeros that a threshold leaves, without the
        shrinkage by it.
    scale : bool, default=False
        Give every feature the variance 1 first.
    tol : float, default=1e-3
        Converged when an iteration gains at most tol² times the value (with as many components as samples, times the sum of
        squares of the data); with `n_nonzero`, at most 0.03 % of the explained variance, or this share if it is more.
    max_iter : int, default=500
        Maximum number of sweeps; with `n_nonzero`, of steps after each start.
    n_starts : int, default=1
        The first start is PCA; further ones are random, and the best is kept. With `n_nonzero` the first is the best of several
        (loadings one by one, and rotations), and further ones are random combinations of the leading principal components; more
        starts never report less variance.
    schedule : str or Schedule, optional
        With a threshold, the order of the rotations: "random" is the paper's Algorithm 2 as it is printed, pairs drawn at random
        and solved exactly, one at a time; "cyclic", "shuffled", "tournament" and the others of `givens.schedules` likewise. By
        default pairs are solved in blocks, which is faster.
    missing : "em", optional
        Accept missing values (NaN), and estimate them by the values that are there: alternately as their expectations under
        probabilistic PCA with `n_components` components (at most half of the samples or features), and by the components of the
        table so completed, until they stay (`givens.data.missing` has the formulas). The sparse components are those of
        the completed table. The uncertainty of the estimates is not added, so variables with many holes seem to vary less than
        they do. Without missing values the result is the same as without this. Refused if None.
    stability : int, optional
        Also fit so many random halves of the samples, each from the components of all samples, and report how much of these is
        found again (`selection_frequency_`, `stability_`).
    threads : int, optional
        By default one per core, at most 8. The number changes the time, never the result.
    random_state : int or RandomState or None, default=0
        For the starts after the first, and for schedules that draw.

    Attributes
    ----------
    components_ : array, shape (n_components, n_features)
        Loadings: exact zeros, unit norm, the largest entry of each positive, ordered by the variance of their scores, or as
        a list of counts was given, or by their counts if their total was given.
    explained_variance_, explained_variance_ratio_ : array, shape (n_components,)
        Adjusted for the scores' correlations (Zou et al. 2006); the ratio is of the total variance.
    projected_variance_ratio_ : float
        The share of the variance within the span of the loadings (Shen and Huang 2008).
    n_nonzero_ : array of int, shape (n_components,)
    gamma_ : array, shape (n_components,)
        The thresholds used.
    mean_ : array, shape (n_features,)
    scale_ : array, shape (n_features,), or None
    loading_overlap_, score_correlation_ : float
        The largest |z_iᵀz_j| and the largest |correlation| of two scores: both 0 in PCA.
    selection_frequency_ : array, shape (n_components, n_features)
        With `stability`: the share of halves in which the component that belongs to this one gives the feature a weight.
    stability_ : array, shape (n_components,)
        With `stability`: the mean |cosine| between a component and those that belong to it in the halves.
    completion_ : Completion
        With `missing`: the model by which missing values are estimated, in `transform` too.
    n_missing_ : int
        With `missing`: how many values were missing.
    result_ : Result
        The run: the algorithm (`method`), value, trace, flops and rotations of all starts, and why it stopped. With `n_nonzero`
        the trace is that of the truncated power steps after the best start, the best so far after each,
        and the value is the adjusted variance as a sum of squares.
    converged_ : bool
    n_components_ : int
    n_iter_ : int
        Steps of the run: `result_.steps`, at least 1.

    Notes
    -----
    There is no `alpha`: in scikit-learn's `SparsePCA` that is the weight of a penalty, and its default of 1 has no counterpart
    here. Give `n_nonzero`, the number of variables in each component, or `threshold`, a share between 0 and 1.

    Examples
    --------
    >>> from givens import SparsePCA
    >>> from givens.datasets import sparse_modules
    >>> data = sparse_modules(60, 500, n_modules=3, module_size=20, random_state=0)
    >>> model = SparsePCA(n_components=3, n_nonzero=20, random_state=0).fit(data.X)
    >>> model.n_nonzero_
    array([20, 20, 20])
    >>> abs(model.components_ @ data.components.T).max(axis=1).round(1)
    array([1., 1., 1.])
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        threshold: Threshold | None = None,
        n_nonzero: Counts | None = None,
        refit: bool = True,
        scale: bool = False,
        tol: float = 1e-3,
        max_iter: int = 500,
        n_starts: int = 1,
        schedule: str | Schedule | None = None,
        missing: str | None = None,
        stability: int | None = None,
        threads: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.n_components = n_components
        self.threshold = threshold
        self.n_nonzero = n_nonzero
        self.refit = refit
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.n_starts = n_starts
        self.schedule = schedule
        self.missing = missing
        self.stability = stability
        self.threads = threads
        self.random_state = random_state

    @atomic_fit
    def fit(self, X: Samples, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the components.

        Parameters
        ----------
        X : array, data frame or sparse matrix, shape (samples, features), or any other source of rows
            Centred here. Features that cannot count are left out first: with a threshold, those whose norm is not above it; with
            `n_nonzero`, the weak ones, as long as none of them should have been counted. Where the samples are more than the
            features that are left, only the products of these are kept, summed over blocks of samples: a tall matrix, sparse or
            dense, is never copied, unless entries of a sparse one are unsorted or share places. Principal components below
            1e-7 of the largest are then lost in rounding. Of data in chunks (a list of tables, zarr, HDF5, a dask array or
            data frame chunked along samples) only sums are kept: the features' means and norms, and then these products, or, if
            more than 8,192 features can count, a sketch; `result_.method` says which, and how much the sketch may lack.
        y : ignored, optional
        sample_weight : array, shape (samples,), optional
            How often each sample counts: one of weight 2 counts as two, one of weight 0 as none. The weights' sum takes the
            place of the number of samples.

        Returns
        -------
        self
        """
        return self._fit_from(X, sample_weight)

    def _fit_from(
        self, X: Samples, sample_weight: ArrayLike | None = None, previous: np.ndarray | None = None
    ) -> Self:
        """Fit, from the loadings `previous` if they are given."""
        self._forget()
        if type(X).__name__ == "AnnData":
            raise TypeError(
                "X is an AnnData: pass its matrix, X.X, or call givens.anndata.sparse_pca, which stores the result"
            )
        if not (in_memory(X) or isinstance(X, np.memmap)):
            given = {"sample_weight": sample_weight, "stability": self.stability, "missing": self.missing}
            if refused := [name for name, value in given.items() if value is not None]:
                raise ValueError(f"{refused[0]} is for samples in memory: leave it out with data in chunks")
            return self._fit_chunks(Rows(X, self, Numbers(sparse=True)))
        X = self._checked(X, self.missing is not None, ensure_min_samples=2)
        X, weights = weighted_rows(X, sample_weight, counted=True)
        resamples = self._resamples(X.shape[0])
        X = self._completed(X, weights)
        with parallel.pool(self.threads):
            sums = moments_of(X, unit_of(X), weights, products=False)
            data = CentredData(X, feature_moments(sums, self.scale), weights)
            self._fit(data, data.amount, X.shape[0], X.dtype, previous)
        if resamples:
            found = resampled(self, X, resamples, self._generator(), weights)
            self.selection_frequency_, self.stability_ = found
        return self

    def _forget(self) -> None:
        """Remove the attributes of an earlier fit that only some parameters give."""
        for name in ("selection_frequency_", "stability_", "completion_", "n_missing_"):
            self.__dict__.pop(name, None)

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31, size=4))

    def _resamples(self, n: int) -> int:
        """How many halves of n samples are to be fitted."""
        if self.stability is None:
            return 0
        number = whole(self.stability, "stability", 1)
        m = 0 if self.n_components is None else whole(self.n_components, "n_components", 1)
        if n // 2 < max(2, m):
            raise ValueError(
                f"stability fits halves of the samples, and half of {n} is too few for "
                f"{'two samples' if n < 4 else f'{self.n_components} components'}"
            )
        return number

    def _completed(self, X: Samples, weights: np.ndarray | None) -> Any:
        """X with its missing values estimated, where that is asked for."""
        if self.missing is None:
            return X
        holes = holes_of(X, self.missing, weights)
        self.n_missing_ = int(holes.sum())
        m = min(X.shape) if self.n_components is None else whole(self.n_components, "n_components", 1)
        filled, self.completion_, steps, stayed = completed(X.astype(np.float64), m)
        if not stayed:
            warn_caller(
                f"the estimates of missing values still change after {steps} steps; ask for fewer components",
                ConvergenceWarning,
            )
        return filled.astype(X.dtype) if self.n_missing_ else X

    def _fit_chunks(self, rows: Rows) -> Self:
        """Fit to samples in chunks, on disk or on Dask, of which products of features or a sketch are kept."""
        with parallel.pool(self.threads):
            sums = rows.total(Moments(rows.n_features, rows.unit(), products=False), "sparse-pca-moments")
            n = sums.count
            if n < 2:
                raise ValueError("X has 1 sample, and components need at least 2")
            found = feature_moments(sums, self.scale)
            options = self._options(found, n)
            # With counts it is not known yet which features count, so the products of all of them are summed.
            features = None if options.counts is not None else screen(found.norms, options)
            every = np.arange(rows.n_features) if features is None else features
            root, origin = chunked_root(rows, found, every, options.m)
            self._fit(CovarianceData(root, found, features), n, n, rows.dtype)
        self.result_: Result = replace(self.result_, method=f"{self.result_.method}; on {origin}")
        return self

    @atomic_fit
    def fit_covariance(self, R: Any, n_obs: int) -> Self:
        """Find the components from a covariance or correlation matrix alone.

        Parameters
        ----------
        R : array, shape (features, features)
        n_obs : int
            How many observations it was computed from, with the divisor n_obs − 1.

        Returns
        -------
        self
            The mean is taken to be zero; scores have the variances that R says.

        Examples
        --------
        >>> from givens import SparsePCA
        >>> from givens.datasets import pitprops
        >>> table = pitprops()
        >>> model = SparsePCA(6, n_nonzero=[7, 4, 4, 1, 1, 1]).fit_covariance(table.R, table.n_obs)
        >>> model.n_nonzero_
        array([7, 4, 4, 1, 1, 1])
        """
        if self.stability is not None or self.missing is not None:
            raise ValueError("stability and missing are for samples, which a covariance matrix no longer has")
        self._forget()
        R = validate_data(self, R, dtype=[np.float64, np.float32], ensure_min_samples=1)
        with parallel.pool(self.threads):
            factor, found = factor_covariance(R, n_obs, self.scale)
            return self._fit(CovarianceData(factor, found), n_obs, n_obs, R.dtype)

    def _options(self, found: FeatureMoments, rows: int) -> FitOptions:
        """The options for so many samples of these features."""
        m = most = min(rows, len(found.norms))
        if self.n_components is not None:
            m = whole(self.n_components, "n_components", 1, most, "the number of samples or features")
        if not found.norms.any():
            raise ValueError("every feature of X is constant, so there is no variance to explain")
        return fit_options(self, m, found.norms)

    def _fit(
        self,
        data: CentredData | CovarianceData,
        n_obs: float,
        rows: int,
        dtype: Any,
        previous: np.ndarray | None = None,
    ) -> Self:
        """Find the components of `rows` samples, whose weights have the sum `n_obs`, from loadings if they are given."""
        options = self._options(data.moments, rows)
        found = find_components(
            data,
            options,
            self._generator(),
            divisor=n_obs - 1,
            dtype=dtype,
            names=getattr(self, "feature_names_in_", None),
            previous=previous,
        )
        if not found.result.converged:
            warn_caller(
                f"SparsePCA did not converge in max_iter = {options.max_iter} iterations; raise max_iter or tol",
                ConvergenceWarning,
            )
        if self.n_nonzero is not None and self.n_components is not None:
            warn_of_idle(found.idle, options.m)
        moments = data.moments
        self.mean_ = (moments.mean * moments.power).astype(dtype)
        self.scale_ = (moments.divisor * moments.power).astype(dtype) if self.scale else None
        self.components_ = found.components
        self.explained_variance_ = found.explained_variance
        self.explained_variance_ratio_ = found.explained_variance_ratio
        self.projected_variance_ratio_ = found.projected_variance_ratio
        self.n_nonzero_ = found.n_nonzero
        self.gamma_ = found.gamma
        self.loading_overlap_ = found.loading_overlap
        self.score_correlation_ = found.score_correlation
        self.result_ = found.result
        self.converged_ = bool(found.result.converged)
        self.n_components_ = options.m
        self.n_iter_ = max(found.result.steps, 1)
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing is not None
        return tags
