"""Sparse principal components of a stream: the paper's Algorithm 5, and Frequent Directions, which loses less variance."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from givens.data.missing import Completion
from givens.data.rows import Numbers, Rows, batches, in_memory, length, one_batch
from givens.numerics import flop_counts, parallel
from givens.sparse_pca.centred_data import CovarianceData, FeatureMoments
from givens.sparse_pca.estimator import Components, SparseScores, find_components, warn_of_idle
from givens.sparse_pca.options import Threshold
from givens.streaming import save as files
from givens.streaming.batches import (
    BatchWeights,
    checked_batch,
    estimated,
    samples_limit,
    until,
)
from givens.streaming.merging import SketchSummary, sketch_of
from givens.streaming.settings import (
    StreamSettings,
    rule_in_words,
    stream_options,
    stream_rule,
    stream_settings,
    strongest,
)
from givens.streaming.sketch import Rule, Sketch, StreamTrace, TooLarge
from givens.support.arguments import is_dask
from givens.support.fitting import atomic_fit
from givens.support.progress import counting


def _component(name: str, description: str) -> Any:
    """A property of the components, which are computed for the present parameters when it is read."""
    return property(lambda self: getattr(self._find(), name), doc=description)


class StreamingSparsePCA(SparseScores):
    """Sparse principal components of samples that arrive in batches, or that do not fit into memory.

    The model keeps the running mean and K columns, which stand for all samples so far. One pass over the samples is enough, and
    memory is O(K·features) for any number of samples. The result has the same bits however the samples are divided into batches.

    Parameters
    ----------
    n_components : int, optional
        By default 10, or as many as there are features.
    threshold : float or (penalty, float), optional
        The threshold as a share, between 0 and 1, of the largest norm of a feature over the kept columns ("l0": of its square).
        The penalty is "l1" unless ``("l0", 0.1)``, say, is given, as in `SparsePCA`. Give one of threshold, gamma and n_nonzero;
        if none is given, the threshold is 0.05.
    gamma : float or (penalty, float), optional
        The threshold after t samples is γ√t ("l0": γt, of squares), since the columns grow in proportion to √t; with
        `forgetting` t is the sum of the weights.
    gamma_grows : bool, default=True
        False: the threshold is γ throughout, as the paper prints it.
    n_nonzero : int or sequence of int, optional
        How many non-zeros each component gets, exactly.
    refit : bool, default=True
        Find the values that explain most on the pattern of non-zeros that a threshold leaves, as in `SparsePCA`, or give the
        loadings the values of the columns they come from (drop="weakest", or `max_iter` = 0). False: shrunk by the threshold.
    scale : bool, default=False
        Give every feature the variance 1: by its deviation so far when columns are dropped, and by its deviation at the end when
        components are computed.
    drop : {"frequent", "weakest"}, default="frequent"
        Which columns are dropped. "frequent": kept columns and new samples are rotated to their principal axes, and the weakest
        axes are dropped, as in Frequent Directions. Rotations for sparsity are made when components are computed, so
        threshold, gamma, n_nonzero, refit, tol, max_iter and n_starts may be changed at any time. "weakest": the paper's
        Algorithm 5, where each sample takes the place of the weakest column and `inner_rotations` random pairs are rotated (see
        Notes for the settings of Algorithm 5 as printed); then the threshold takes part in the stream, and the components are
        the kept columns.
    oversample : int, optional
        Columns kept beyond those asked for; with them there are at most as many as features. By default three for each component,
        and at least 20 ("weakest": none). More of them lose less of weak components; `method_` has a bound.
    inner_rotations : int, optional
        Rotations of random pairs after each sample with drop="weakest". By default twice as many as columns are kept.
    forgetting : float, default=1.0
        λ: every further sample multiplies the weights of all earlier ones by λ, in the mean and in the columns, so about
        1/(1 − λ) samples are remembered. With 1 nothing is forgotten.
    stop_after : int or float, optional
        Learn from so many samples, or from this share where the length is known, and from no others.
    tol : float, default=1e-3
        Of the rotations when components are computed, as in `SparsePCA`.
    max_iter : int, default=100
        Of these rotations, as in `SparsePCA`; 0: the principal axes, thresholded.
    n_starts : int, default=1
        Of these rotations ("frequent" only). The first start is the principal axes; further ones are random, the best is kept.
    missing : "em", optional
        Accept missing values (NaN), and estimate them as `SparsePCA` does: the first batch by itself, alternately as expectations
        given each sample's other values, under the model of its principal components, and as these; a later batch as expectations
        under the model of the samples before it, which the mean and the kept columns determine. Estimates are not revised, so
        the result depends on how the samples are divided into batches. Refused if None.
    warm_start : bool, default=False
        Let `fit` continue the stream instead of beginning a new one.
    threads : int, optional
        By default one per core, at most 8. The number changes the time, never the result.
    random_state : int or RandomState or None, default=0
        For the random pairs, and the starts after the first.

    Attributes
    ----------
    components_ : array, shape (n_components, n_features)
        Loadings: exact zeros, unit norm, the largest entry of each positive, ordered by the variance of their scores, or as
        a list of counts was given.
    explained_variance_, explained_variance_ratio_ : array, shape (n_components,)
        Adjusted for the scores' correlations, as far as the kept columns tell: never more than the samples' own.
    projected_variance_ratio_ : float
        The share of the variance within the span of the loadings, likewise.
    n_nonzero_ : array of int, shape (n_components,)
    gamma_ : array, shape (n_components,)
        The thresholds of |y| ("l0": of y²); with `n_nonzero`, the largest |y| that is not counted.
    mean_ : array, shape (n_features,)
        Of the samples so far; the result is the same as if all samples were centred by it.
    scale_ : array, shape (n_features,), or None
        Their deviations, 1 for a feature that does not vary; None unless `scale`.
    loading_overlap_, score_correlation_ : float
        The largest |z_iᵀz_j| and the largest |correlation| of two scores: both 0 in PCA.
    n_samples_seen_ : int
    n_missing_ : int
        With `missing`: how many values were missing.
    completion_ : Completion
        With `missing`: the model by which missing values are estimated, in `transform` too.
    trace_ : StreamTrace
        Samples, flops and the share of the variance kept, along the stream.
    method_ : str
        The algorithm in one sentence, as `result_.method` of other estimators: how columns were kept, and how components were
        computed from them.
    n_iter_ : int
        Sweeps of the rotations made for the components.
    flops_ : float
        Additions and multiplications, of the stream and of the components.

    Notes
    -----
    Algorithm 5 as the paper prints it, with m columns and L = m rotations after each sample, is
    ``StreamingSparsePCA(m, drop="weakest", oversample=0, inner_rotations=m, gamma=gamma, gamma_grows=False)``. Its samples are
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
    _settings: StreamSettings
    _found: tuple[str, Components] | None

    def __init__(
        self,
        n_components: int | None = None,
        *,
        threshold: Threshold | None = None,
        gamma: Threshold | None = None,
        gamma_grows: bool = True,
        n_nonzero: int | Sequence[int] | None = None,
        refit: bool = True,
        scale: bool = False,
        drop: str = "frequent",
        oversample: int | None = None,
        inner_rotations: int | None = None,
        forgetting: float = 1.0,
        stop_after: int | float | None = None,
        tol: float = 1e-3,
        max_iter: int = 100,
        n_starts: int = 1,
        missing: str | None = None,
        warm_start: bool = False,
        threads: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.n_components = n_components
        self.threshold = threshold
        self.gamma = gamma
        self.gamma_grows = gamma_grows
        self.n_nonzero = n_nonzero
        self.refit = refit
        self.scale = scale
        self.drop = drop
        self.oversample = oversample
        self.inner_rotations = inner_rotations
        self.forgetting = forgetting
        self.stop_after = stop_after
        self.tol = tol
        self.max_iter = max_iter
        self.n_starts = n_starts
        self.missing = missing
        self.warm_start = warm_start
        self.threads = threads
        self.random_state = random_state

    @atomic_fit
    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Fit to the rows of X in one pass; with `warm_start`, continue the stream. After an error the model is unchanged.

        Parameters
        ----------
        X : anything that yields rows
            An array, data frame, scipy.sparse matrix, memory map, HDF5 or zarr data set, AnnData (also backed), dask array or
            data frame, or an iterable of rows or batches. What is not in memory is read a few megabytes at a time. Every chunk of
            a dask array, cut along samples, is a stream of its own where the chunk is, and the streams are merged (`merge`); if
            the order of the samples counts (`drop` other than "frequent", `forgetting`, `stop_after`, `missing`), they have
            weights, or the lengths of the chunks are unknown, the chunks are read here one after the other.
        y : ignored, optional
        sample_weight : array, shape (samples,), optional
            How often each sample counts: one of weight 2 counts as two, one of weight 0 is left out. With `stop_after`, samples
            are counted, not weights.

        Returns
        -------
        self
        """
        if not self.warm_start:
            self.__dict__.pop("_sketch", None)
        going_on = self.__sklearn_is_fitted__()
        if going_on:
            self._sketch = self._sketch.successor()
        most = samples_limit(self.stop_after, length(X), self._sketch.count if going_on else 0)
        if most is None and sample_weight is None and self._mergeable(X):
            joined = X.rechunk({1: -1}) if hasattr(X, "numblocks") and X.numblocks[1] > 1 else X
            self._add_chunks(Rows(joined, self, Numbers(sparse=True), reset=not going_on))
        else:
            self._add_batches(X, most, BatchWeights(sample_weight, length(X)))
        if not self.__sklearn_is_fitted__():
            raise ValueError("X yields no rows, so there is nothing to learn from")
        self._find()
        return self

    @atomic_fit
    def partial_fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
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
        samples = length(X)
        if self.__sklearn_is_fitted__():
            self._sketch = self._sketch.successor(samples)
        self._add(X, "X", samples_limit(self.stop_after, None), BatchWeights(sample_weight, samples))
        return self

    @atomic_fit
    def merge(self, other: StreamingSparsePCA) -> Self:
        """Add the samples of another stream, as its mean and kept columns represent them.

        With A the scatter of all samples, kept columns Y have YᵀY ≼ A. The streams and the merge together lose no more than the
        trace of A − YᵀY; the last entry of `trace_.kept` is the share of the variance that is kept.

        Parameters
        ----------
        other : StreamingSparsePCA
            With the same parameters of the stream, drop="frequent" and nothing forgotten. It is left as it is.

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
        mine, theirs = self._stream(), other._stream()
        names = [getattr(model, "feature_names_in_", None) for model in (self, other)]
        named = names[0] is not None and names[1] is not None and list(names[0]) != list(names[1])
        if len(mine.mean) != len(theirs.mean) or named:
            raise ValueError("only streams of the same features can be merged, and these have others")
        began, others = self._settings.parameters(), other._settings.parameters()
        differing = [name for name in began if began[name] != others[name]]
        if differing:
            name = differing[0]
            raise ValueError(
                f"only streams with the same parameters can be merged: {name}={began[name]!r} here, {others[name]!r} there"
            )
        if began["drop"] != "frequent" or began["forgetting"] < 1:
            raise ValueError(
                "only streams with drop='frequent' and forgetting=1 can be merged: in others the order of the samples counts"
            )
        self._sketch, self._found = mine.merged(theirs, self._rule(mine)), None
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state of the stream to a file, without pickle; the file is written completely or not at all.

        Parameters
        ----------
        path : path
        """
        files.write(path, self, self._stream(), self._settings)

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
        parameters, state = files.read(path)
        model = cls(**parameters)
        model.__dict__.update(state, _found=None)
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

    @property
    def method_(self) -> str:
        """The algorithm in one sentence."""
        return self._find().result.method

    @property
    def n_iter_(self) -> int:
        """Sweeps of the rotations made for the components."""
        return max(self._find().result.steps, 1)

    @property
    def flops_(self) -> float:
        """Additions and multiplications, of the stream and of the components."""
        return self._find().result.flops

    @property
    def n_samples_seen_(self) -> int:
        """How many samples the stream has taken in."""
        return self._stream().count

    @property
    def n_missing_(self) -> int:
        """How many values were missing."""
        return self._stream().missing

    @property
    def completion_(self) -> Completion:
        """The model by which missing values are estimated."""
        if self.missing is None:
            raise AttributeError("completion_ exists with missing='em' only")
        sketch = self._stream()
        with parallel.pool(self.threads):
            return sketch.completion(self._rule(sketch), self._settings.components, self.threads)

    @property
    def mean_(self) -> np.ndarray:  # type: ignore[override]
        """The mean of the samples so far, weighted by what is not forgotten."""
        sketch = self._stream()
        return (sketch.mean * (sketch.unit or 1.0)).astype(sketch.W.dtype)

    @property
    def scale_(self) -> np.ndarray | None:  # type: ignore[override]
        """The deviations of the samples so far, 1 where there is none; None if features are not scaled."""
        sketch = self._stream()
        if not sketch.scaled:
            return None
        deviations = sketch.deviations()
        return np.where(deviations > 0, deviations * sketch.unit, 1.0).astype(sketch.W.dtype)

    @property
    def trace_(self) -> StreamTrace:
        """Samples, flops and the share of the variance kept."""
        return self._stream().trace

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing is not None
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_sketch")

    def _stream(self) -> Sketch:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"this {type(self).__name__} has seen no samples yet: call fit or partial_fit first"
            )
        return self._sketch

    def _find(self) -> Components:
        """The components for the present parameters; the last ones are cached."""
        sketch = self._stream()
        key = repr(sorted(self.get_params(deep=False).items(), key=lambda item: item[0]))
        if self._found is None or self._found[0] != key:
            with parallel.pool(self.threads), flop_counts.job(flop_counts.Flops()) as counter:
                found = self._components(sketch)
            flops = sketch.flops + counter.flops
            self._found = key, replace(found, result=replace(found.result, flops=flops))
        return self._found[1]

    def _components(self, sketch: Sketch) -> Components:
        if sketch.count < 2:
            raise ValueError(f"components need at least 2 samples, and n_samples = {sketch.count} has come")
        if not sketch.divisor() > 0:
            raise ValueError(
                f"sample_weight must sum to more than 1, since it counts samples; the sum is {sketch.weight:g}"
            )
        if not sketch.total() > 0:
            raise ValueError("every feature of X is constant, so there is no variance to explain")
        columns = sketch.columns_now(self._rule(sketch), self.threads).astype(np.float64)
        if sketch.scaled:
            columns *= sketch.inverses()
        norms, total = np.linalg.norm(columns, axis=0), sketch.total()
        unit = 1.0 if sketch.scaled else sketch.unit
        options = stream_options(self, self._settings, norms, unit, sketch.weight)
        d, m = len(norms), options.m
        which = np.arange(m)  # the leading principal axes
        if self._settings.drop != "frequent":
            which, options = strongest(columns, options), replace(options, max_iter=0)
        found = find_components(
            CovarianceData(columns, FeatureMoments(np.zeros(d), np.ones(d), norms, 1.0, unit)),
            options,
            np.random.default_rng(self._settings.seed),
            divisor=sketch.divisor(),
            dtype=sketch.W.dtype,
            total=total,
            names=getattr(self, "feature_names_in_", None),
            start=np.eye(len(columns))[:, which],
        )
        warn_of_idle(found.idle, m)
        kept = rule_in_words(self, self._settings, sketch.count, 1.0 - float(np.sum(norms**2)) / total)
        how = found.result.method if found.result.steps else "the columns as they are"
        return replace(found, result=replace(found.result, method=f"{kept}; loadings from {how}"))

    def _add_batches(self, X: Any, most: int | None, weights: BatchWeights) -> None:
        """Take in the rows of X, one batch after the other; a table in memory is one batch."""
        table = in_memory(X)
        wanted = until(self, most, iter([X]) if table else batches(X))
        shown = wanted if table else counting(wanted, length(X))
        with closing(shown):  # or an error would keep the bar
            for number, batch in enumerate(shown):
                self._add(batch, "X" if table else f"batch {number} of X", most, weights)
        if most is None:
            weights.end()

    def _mergeable(self, X: Any) -> bool:
        """Whether X lies in chunks of known lengths on Dask, and the order of the samples does not count."""
        if not is_dask(X) or self.drop != "frequent" or self.forgetting != 1 or self.missing is not None:
            return False
        return not hasattr(X, "numblocks") or (X.ndim == 2 and length(X) is not None)

    def _add_chunks(self, data: Rows) -> None:
        """Take in the chunks of a dask array: a stream for each, and all of them merged."""
        going_on = self.__sklearn_is_fitted__()
        settings = stream_settings(self, data.n_features, self._settings if going_on else None)
        dtype = self._sketch.W.dtype if going_on else data.dtype
        empty = SketchSummary(
            data.n_features, settings.columns, settings.columns - settings.components, dtype, settings.scale
        )
        self._settings, self._found = settings, None
        stream_options(self, settings, np.ones(data.n_features))  # refuses what it cannot give
        found = sketch_of(data, empty, "streaming-sketch")
        self._sketch = self._sketch.merged(found, empty.rule) if going_on else found

    def _add(self, batch: Any, name: str, most: int | None, weights: BatchWeights) -> None:
        """Check a batch and take it in; what the parameters forbid is refused first."""
        going_on = self.__sklearn_is_fitted__()
        X = checked_batch(self, batch, not going_on, name)
        own = weights.next(X.shape[0])
        settings = stream_settings(self, X.shape[1], self._settings if going_on else None)
        sketch = (
            self._sketch
            if going_on
            else Sketch(X.shape[1], settings.columns, X.dtype, settings.forgetting, settings.scale)
        )
        self._sketch, self._settings, self._found = sketch, settings, None
        stream_options(self, settings, np.ones(X.shape[1]))  # refuses what it cannot give
        rule = self._rule(sketch)
        if own is not None:
            X, own = X[own > 0], own[own > 0]
        if most is not None:
            X = X[: max(most - sketch.count, 0)]
            own = None if own is None else own[: X.shape[0]]
        if self.missing is not None:
            X = estimated(X, sketch, rule, self.missing, settings.components, self.threads, own)
        try:
            sketch.add(X, rule, self.threads, own)
        except TooLarge:
            checked_batch(self, batch, False, name, finite=True)  # says what is wrong
            raise

    def _rule(self, sketch: Sketch) -> Rule:
        return stream_rule(self, self._settings, sketch)
