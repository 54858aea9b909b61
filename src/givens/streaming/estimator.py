"""Sparse principal components of a stream: of a sketch that loses little, or by the paper's Algorithm 5."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import Tags, check_random_state

from givens.data.missing import Completion
from givens.data.passes import Weighted
from givens.data.rows import Numbers, Rows, length, one_batch
from givens.data.sketch import Frequent, Rule, Sketch, default_columns
from givens.numerics import flop_counts, parallel
from givens.result import Stop
from givens.sparse_pca.centred_data import CovarianceData, FeatureMoments
from givens.sparse_pca.estimator import Components, SparseScores, find_components, warn_of_idle
from givens.sparse_pca.options import FitOptions, Threshold, fit_options
from givens.streaming import save as files
from givens.streaming.algorithm_5 import Algorithm5
from givens.support.arguments import Samples, counted, finite, sample_weights, warn_caller, whole
from givens.support.fitting import atomic_fit

OF_THE_STREAM = ("n_components", "scale", "sketch", "forgetting", "missing")
"""Parameters that hold for a whole stream."""


def _component(name: str, description: str) -> Any:
    """A property of the components, which are computed for the present parameters when it is read."""
    return property(lambda self: getattr(self._find(), name), doc=description)


class StreamingSparsePCA(SparseScores):
    """Sparse principal components of samples that arrive in batches, or that do not fit into memory.

    The model keeps the running mean and a sketch: K columns that stand for all samples so far. One pass over the samples is
    enough, and memory is O(K·features) for any number of samples. Components are computed from the sketch when they are first
    asked for.

    Parameters
    ----------
    n_components : int, optional
        By default 10, or as many as there are features.
    threshold : float or (penalty, float), optional
        The threshold as a share, between 0 and 1, of the largest norm of a feature over the kept columns ("l0": of its square).
        The penalty is "l1" unless ``("l0", 0.1)``, say, is given, as in `SparsePCA`. Give threshold or n_nonzero; if neither is
        given, the threshold is 0.05.
    n_nonzero : int or sequence of int, optional
        How many non-zeros each component gets, exactly.
    refit : bool, default=True
        Find the values that explain most on the pattern of non-zeros that a threshold leaves, as in `SparsePCA`, or give the
        loadings the values of the columns they come from (Algorithm 5, or `max_iter` = 0). False: shrunk by the threshold.
    scale : bool, default=False
        Give every feature the variance 1: by its deviation so far when columns are dropped, and by its deviation at the end when
        components are computed.
    sketch : int or ("algorithm 5", float), optional
        K, the number of columns kept, at most as many as there are features: by default four for each component, and at least 20
        more than components. More of them lose less of weak components; `result_.method` has a bound. Kept columns and new
        samples are rotated to their principal axes, and the weakest axes are dropped, as in Frequent Directions. Or the paper's
        Algorithm 5 with this threshold γ (see Notes).
    forgetting : float, default=1.0
        λ: every further sample multiplies the weights of all earlier ones by λ, in the mean and in the columns, so about
        1/(1 − λ) samples are remembered. With 1 nothing is forgotten.
    tol : float, default=1e-3
        As in `SparsePCA`, of the rotations that are made when components are computed.
    max_iter : int, default=100
        Of these rotations, as in `SparsePCA`; 0: the principal axes, thresholded.
    n_starts : int, default=1
        Of these rotations. The first start is the principal axes; further ones are random, the best is kept.
    missing : "em", optional
        Accept missing values (NaN), and estimate them as `SparsePCA` does: the first batch by itself, alternately as expectations
        given each sample's other values, under the model of its principal components, and as these; a later batch as expectations
        under the model of the samples before it, which the mean and the kept columns determine. Estimates are not revised, so
        the result depends on how the samples are divided into batches. Refused if None.
    threads : int, optional
        By default one per core, at most 8. The number changes the time, never the result.
    random_state : int or RandomState or None, default=0
        For the starts after the first, and the random pairs of Algorithm 5.

    Attributes
    ----------
    components_ : array, shape (n_components, n_features)
        Loadings: exact zeros, unit norm, the largest entry of each positive, ordered by the variance of their scores, or as
        a list of counts was given.
    explained_variance_, explained_variance_ratio_ : array, shape (n_components,)
        Adjusted for the scores' correlations, as far as the kept columns tell: never more than the samples' own.
    projected_variance_ratio_ : float
        The share of the variance within the span of the loadings, likewise.
    kept_variance_ratio_ : float
        The share of the variance that the kept columns have.
    n_nonzero_ : array of int, shape (n_components,)
    gamma_ : array, shape (n_components,)
        The thresholds of |y| ("l0": of y²); with `n_nonzero`, the largest |y| that is not counted.
    mean_ : array, shape (n_features,)
        Of the samples so far; the result is the same as if all samples were centred by it.
    scale_ : array, shape (n_features,), or None
        Their deviations, 1 for a feature that does not vary; None unless `scale`.
    loading_overlap_, score_correlation_ : float
        The largest |z_iᵀz_j| and the largest |correlation| of two scores: both 0 in PCA.
    n_components_ : int
    n_samples_seen_ : int
    n_missing_ : int
        With `missing`: how many values were missing.
    completion_ : Completion
        With `missing`: the model by which missing values are estimated, in `transform` too.
    result_ : Result
        Of the rotations made for the components. `method` also says how columns were kept; `flops` counts the stream's too.
    n_iter_ : int
        Sweeps of these rotations.
    converged_ : bool
        Whether they met `tol`.

    Notes
    -----
    ``sketch=("algorithm 5", γ)`` is Algorithm 5 as the paper prints it, with m = `n_components` columns: each sample takes the
    place of the weakest column, and L = m random pairs of columns are rotated, each to the best angle for γ. Its samples are
    a_t = (x_t − mean of the samples before)·√((t − 1)/t), whose Σ a aᵀ is the scatter about the mean. Its U_0 is the product of
    the rotations made while the first m samples fill the columns; each rotation gains at least 99.9 % of what the best angle
    would gain. Loadings are the columns, cut at γ (`refit=False`: and shrunk by it, the plain form of solveForZ).

    Examples
    --------
    >>> from givens import StreamingSparsePCA
    >>> from givens.datasets import sparse_modules
    >>> data = sparse_modules(600, 300, n_modules=3, module_size=20, random_state=0)
    >>> model = StreamingSparsePCA(n_components=3, n_nonzero=20)
    >>> for start in range(0, 600, 50):
    ...     _ = model.partial_fit(data.X[start : start + 50])
    >>> model.n_samples_seen_, model.n_nonzero_
    (600, array([20, 20, 20]))
    >>> abs(model.components_ @ data.components.T).max(axis=1).round(1)
    array([1., 1., 1.])
    """

    _sketch: Sketch
    _began: dict[str, Any]
    _complete: Sketch | None
    _solved: tuple[str, Components] | None

    def __init__(
        self,
        n_components: int | None = None,
        *,
        threshold: Threshold | None = None,
        n_nonzero: int | Sequence[int] | None = None,
        refit: bool = True,
        scale: bool = False,
        sketch: int | tuple[str, float] | None = None,
        forgetting: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = 100,
        n_starts: int = 1,
        missing: str | None = None,
        threads: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.n_components = n_components
        self.threshold = threshold
        self.n_nonzero = n_nonzero
        self.refit = refit
        self.scale = scale
        self.sketch = sketch
        self.forgetting = forgetting
        self.tol = tol
        self.max_iter = max_iter
        self.n_starts = n_starts
        self.missing = missing
        self.threads = threads
        self.random_state = random_state

    @atomic_fit
    def fit(self, X: Samples, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to the rows of X in one pass. After an error the model is unchanged.

        Parameters
        ----------
        X : anything that yields rows
            An array, data frame, scipy.sparse matrix, memory map, HDF5 or zarr data set, AnnData (also backed), dask array or
            data frame, or an iterable of rows or batches. What is not in memory is read a few megabytes at a time. Every chunk of
            a dask array is a stream of its own where the chunk is, and the streams are merged (`merge`).
        y : ignored, optional
        sample_weight : array, shape (samples,), optional
            How often each sample counts: one of weight 2 counts as two, one of weight 0 is left out.

        Returns
        -------
        self
        """
        data = Rows(X, self, self._check, once=True)
        empty = self._begun(data)
        with parallel.pool(self.threads):
            if sample_weight is None:
                sketch = data.total(empty, "streaming-sketch")
            else:
                weights = sample_weights(sample_weight, length(X))
                total = data.total(Weighted(empty, weights), "streaming-sketch")
                if total.next < len(weights):
                    raise ValueError(
                        f"sample_weight has {len(weights)} numbers, but X has {total.next} samples"
                    )
                sketch = total.summary
        self._continue(sketch)
        self._find()
        return self

    @atomic_fit
    def partial_fit(self, X: Samples, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Continue the stream with a batch of rows. After an error the model is unchanged.

        Parameters
        ----------
        X : array, data frame or sparse matrix, shape (samples, features)
            Any number of samples, one included.
        y : ignored, optional
        sample_weight : array, shape (samples,), optional
            How often each sample counts.

        Returns
        -------
        self
        """
        one_batch(X)
        data = Rows(X, self, self._check, reset=not self.__sklearn_is_fitted__())
        if self.__sklearn_is_fitted__():
            self._refuse_changes()
            sketch = copy(self._sketch)
        else:
            sketch = self._begun(data).begin(0)
        self._options(np.ones(data.n_features), 1.0, sketch)  # refuses what it cannot give
        rows, weights = data.matrix("partial_fit"), None
        if sample_weight is not None:
            weights = sample_weights(sample_weight, rows.shape[0])
            rows, weights = rows[weights > 0], weights[weights > 0]
        with parallel.pool(self.threads):
            sketch.add(rows, weights)
        self._continue(sketch)
        return self

    @atomic_fit
    def merge(self, other: StreamingSparsePCA) -> Self:
        """Add the samples of another stream, as its mean and kept columns represent them.

        With A the scatter of all samples, kept columns Y have YᵀY ≼ A. The streams and the merge together lose no more than the
        trace of A − YᵀY; `kept_variance_ratio_` is the share of the variance that is kept.

        Parameters
        ----------
        other : StreamingSparsePCA
            With the same parameters of the stream, and of samples that came after these. It is left as it is.

        Returns
        -------
        self

        Examples
        --------
        >>> from givens import StreamingSparsePCA
        >>> from givens.datasets import sparse_modules
        >>> X = sparse_modules(600, 300, n_modules=3, module_size=20, random_state=0).X
        >>> one, two = (StreamingSparsePCA(3, n_nonzero=20).fit(part) for part in (X[:300], X[300:]))
        >>> one.merge(two).n_samples_seen_
        600
        """
        if not isinstance(other, StreamingSparsePCA):
            raise TypeError(f"other must be a StreamingSparsePCA, got {type(other).__name__}")
        sketch, theirs = copy(self._stream()), other._stream()
        names = [getattr(model, "feature_names_in_", None) for model in (self, other)]
        named = names[0] is not None and names[1] is not None and list(names[0]) != list(names[1])
        if sketch.features != theirs.features or named:
            raise ValueError("only streams of the same features can be merged, and these have others")
        for name in OF_THE_STREAM:
            if self._began[name] != other._began[name]:
                raise ValueError(
                    f"only streams with the same parameters can be merged: {name}={self._began[name]!r} here, "
                    f"{other._began[name]!r} there"
                )
        with parallel.pool(self.threads):
            sketch.merge(theirs)
        self._continue(sketch)
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state of the stream to a file, without pickle; the file is written completely or not at all.

        Parameters
        ----------
        path : path
        """
        files.write(path, self, self._stream())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a saved stream, which continues with the same bits.

        Parameters
        ----------
        path : path

        Returns
        -------
        StreamingSparsePCA
        """
        header, arrays = files.read(path)
        model = cls(**header["parameters"])
        model._began = header["began"]
        model.n_features_in_ = len(arrays["mean"])
        if header["names"] is not None:
            model.feature_names_in_ = np.array(header["names"], dtype=object)
        model._continue(files.restored(model._empty(arrays["Y"].dtype), header, arrays))
        return model

    # Components are computed when one of their attributes is first read, for the parameters of that moment.

    components_ = _component("components", "Loadings, one row per component.")
    explained_variance_ = _component("explained_variance", "Adjusted variance of each component.")
    explained_variance_ratio_ = _component("explained_variance_ratio", "Its share of the total variance.")
    projected_variance_ratio_ = _component(
        "projected_variance_ratio", "The share of the variance within the span of the loadings."
    )
    n_nonzero_ = _component("n_nonzero", "How many non-zeros each component has.")
    gamma_ = _component("gamma", "The threshold of each component.")
    loading_overlap_ = _component("loading_overlap", "The largest |z_iᵀz_j|.")
    score_correlation_ = _component("score_correlation", "The largest |correlation| of two scores.")
    result_ = _component("result", "The result of the rotations made for the components.")

    @property
    def n_iter_(self) -> int:
        """Sweeps of the rotations made for the components."""
        return max(self.result_.steps, 1)

    @property
    def converged_(self) -> bool:
        """Whether these rotations met `tol`."""
        return bool(self.result_.converged)

    @property
    def n_components_(self) -> int:
        """The number of components."""
        return len(self.components_)

    @property
    def n_samples_seen_(self) -> int:
        """How many samples the stream has taken in."""
        return self._stream().count

    @property
    def n_missing_(self) -> int:
        """How many values were missing."""
        return self._stream().n_missing

    @property
    def kept_variance_ratio_(self) -> float:
        """The share of the variance that the kept columns have."""
        return self._finished().kept()

    @property
    def completion_(self) -> Completion:
        """The model by which missing values are estimated."""
        if self.missing is None:
            raise AttributeError("completion_ exists with missing='em' only")
        return self._finished().completion()

    @property
    def mean_(self) -> np.ndarray:  # type: ignore[override]
        """The mean of the samples so far, weighted by what is not forgotten."""
        sketch = self._finished()
        return (sketch.mean * (sketch.unit or 1.0)).astype(sketch.dtype)

    @property
    def scale_(self) -> np.ndarray | None:  # type: ignore[override]
        """The deviations of the samples so far, 1 where there is none; None if features are not scaled."""
        sketch = self._finished()
        if not sketch.scaled:
            return None
        deviations = sketch.deviations()
        return np.where(deviations > 0, deviations * sketch.unit, 1.0).astype(sketch.dtype)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing is not None
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_sketch")

    @property
    def _check(self) -> Numbers:
        return Numbers(sparse=True, missing=self.missing)

    def _stream(self) -> Sketch:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"this {type(self).__name__} has seen no samples yet: call fit or partial_fit first"
            )
        return self._sketch

    def _finished(self) -> Sketch:
        """The sketch in which no samples wait until a block is full."""
        sketch = self._stream()
        if self._complete is None:
            with parallel.pool(self.threads):
                self._complete = sketch.finished()
        return self._complete

    def _continue(self, sketch: Sketch) -> None:
        """Go on from this sketch; what was computed from the last one is dropped."""
        self._sketch, self._complete, self._solved = sketch, None, None

    def _begun(self, data: Rows) -> Sketch:
        """The empty sketch for rows, whose parameters hold for the stream from now on."""
        seed = self.random_state
        if not isinstance(seed, Integral) or isinstance(seed, bool) or int(seed) < 0:
            seed = check_random_state(seed).randint(2**31)
        self._began = {name: getattr(self, name) for name in OF_THE_STREAM} | {"seed": int(seed)}
        empty = self._empty(data.dtype)
        self._options(np.ones(data.n_features), 1.0, empty)  # refuses what it cannot give
        return empty

    def _empty(self, dtype: Any) -> Sketch:
        """An empty sketch with the parameters that the stream began with."""
        began, features = self._began, self.n_features_in_
        m = min(10, features)
        if began["n_components"] is not None:
            which = f"the number of features (n_features={features})"
            m = whole(began["n_components"], "n_components", 1, features, which)
        gamma = _algorithm_5(began["sketch"])
        rule: Rule
        if gamma is not None:
            rule = Algorithm5(m, gamma, began["seed"])
        else:
            columns = default_columns(m) if began["sketch"] is None else whole(began["sketch"], "sketch", m)
            rule = Frequent(m, min(columns, features))  # as many as features lose nothing
        forgetting = finite(began["forgetting"], "forgetting")
        if not 0 < forgetting <= 1:
            raise ValueError(f"forgetting must be a number above 0 and at most 1, got {forgetting!r}")
        return Sketch(features, rule, dtype, forgetting, bool(began["scale"]), began["missing"], rank=m)

    def _refuse_changes(self) -> None:
        """Refuse other values of the parameters that hold for the whole stream."""
        for name in OF_THE_STREAM:
            if getattr(self, name) != self._began[name]:
                raise ValueError(
                    f"the stream began with {name}={self._began[name]!r}, not {getattr(self, name)!r}, and that holds for all "
                    "of it: set it back, or begin anew by fit"
                )

    def _options(self, norms: np.ndarray, unit: float, sketch: Sketch) -> FitOptions:
        """The options for components of columns, of features with these norms in this unit."""
        options = fit_options(self, sketch.rank, norms, stream=True)
        if not isinstance(sketch.rule, Algorithm5):
            return options
        if self.threshold is not None or self.n_nonzero is not None:
            raise ValueError("Algorithm 5 has the threshold of sketch: leave out threshold and n_nonzero")
        return replace(options, level=min(sketch.rule.gamma / unit, 2.0 * float(norms.max())), max_iter=0)

    def _find(self) -> Components:
        """The components for the present parameters; the last ones are cached."""
        sketch = self._stream()
        key = repr(sorted(self.get_params(deep=False).items(), key=lambda item: item[0]))
        if self._solved is None or self._solved[0] != key:
            with parallel.pool(self.threads), flop_counts.job(flop_counts.Flops()) as counter:
                components = self._components(sketch)
            result = replace(components.result, flops=sketch.flops + counter.flops)
            self._solved = key, replace(components, result=result)
        return self._solved[1]

    def _components(self, sketch: Sketch) -> Components:
        if sketch.count < 2:
            raise ValueError(f"components need at least 2 samples, and n_samples = {sketch.count} has come")
        sketch = self._finished()
        if not sketch.divisor() > 0:
            raise ValueError(
                f"sample_weight must sum to more than 1, since it counts samples; the sum is {sketch.weight:g}"
            )
        if not sketch.total() > 0:
            raise ValueError("every feature of X is constant, so there is no variance to explain")
        Y = sketch.columns()
        norms, unit = np.linalg.norm(Y, axis=0), 1.0 if sketch.scaled else sketch.unit
        options, m = self._options(norms, unit, sketch), sketch.rank
        ones = np.ones(len(norms))
        components = find_components(
            CovarianceData(Y, FeatureMoments(np.zeros(len(norms)), ones, norms, 1.0, unit)),
            options,
            np.random.default_rng(self._began["seed"]),
            divisor=sketch.divisor(),
            dtype=sketch.dtype,
            total=sketch.total(),
            names=getattr(self, "feature_names_in_", None),
            start=np.eye(len(Y), m),  # the leading principal axes
        )
        warn_of_idle(components.idle, m)
        result = components.result
        if options.max_iter == 0:  # there was nothing to iterate
            result = replace(result, stop=Stop.NOTHING_TO_ROTATE)
        elif not result.converged:
            warn_caller(
                f"StreamingSparsePCA did not converge in {counted(options.max_iter, 'sweep', 'sweeps')}; raise max_iter or tol",
                ConvergenceWarning,
            )
        how = result.method if result.steps else "the columns as they are"
        method = f"{sketch.count} samples, {self._rule_in_words(sketch)}; loadings from {how}"
        return replace(components, result=replace(result, method=method))

    def _rule_in_words(self, sketch: Sketch) -> str:
        K = sketch.rule.columns
        if isinstance(sketch.rule, Algorithm5):
            return f"{K} columns kept, the weakest replaced by each sample, then {K} rotations of random pairs (Algorithm 5)"
        return (
            f"{K} columns kept as principal axes (Frequent Directions), which lack at most {sketch.largest_loss():.2%} of the "
            "variance in any direction"
        )


def _algorithm_5(sketch: Any) -> float | None:
    """The threshold of Algorithm 5, if the parameter `sketch` asks for it."""
    if sketch is None or isinstance(sketch, Integral):
        return None
    match sketch:
        case ("algorithm 5", gamma):
            return finite(gamma, "the threshold of sketch")
    raise ValueError(f"sketch must be a number of columns or ('algorithm 5', gamma), got {sketch!r}")
