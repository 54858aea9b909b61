"""Sparse principal components of a stream: the paper's Algorithm 5, and a rule that measures better."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from givens import rows
from givens.cluster.graph import is_dask
from givens.moments.repeated_rows import RepeatedRows
from givens.numerics import parallel
from givens.sparse_pca.estimator import DEFAULT_ALPHA, SparseScores, checked_counts
from givens.sparse_pca.missing import Completion, completed, holes_of
from givens.streaming import save as files
from givens.streaming.components import Asked, StreamComponents, describe
from givens.streaming.merging import SketchSummary, sketch_of
from givens.streaming.rules import DROPS, ROTATING, Frequent, quantile
from givens.streaming.sketch import Rule, Sketch, StreamSettings, StreamTrace, TooLarge
from givens.support.arguments import finite, refuse_mask, whole
from givens.support.fitting import atomic_fit
from givens.support.progress import counting

TYPES = [np.float64, np.float32]
MAX_OVERSAMPLE = 1_000_000  # more columns than that are a slip
MIN_OVERSAMPLE = 5  # columns kept beyond those asked for, at least, by default
COMPONENTS = 10


class StreamingSparsePCA(SparseScores):
    """Sparse principal components of samples that keep coming, or that do not fit into memory.

    Only a few columns are kept, K of them, beside the running mean; one pass is enough, and memory is O(K·features) however
    many samples come. The same bits come out however the stream is cut into batches.

    Parameters
    ----------
    n_components : int, optional
        By default 10, or as many as there are features.
    gamma : float, optional
        The threshold after t samples is γ√t ("l0": γt, of squares), since the columns grow like that; with `forgetting` t
        is the sum of their weights. Give one of gamma, alpha and n_nonzero, or none.
    gamma_grows : bool
        False: the threshold is γ throughout, as the paper prints it.
    alpha : float, optional
        The threshold as a share, between 0 and 1, of the largest norm of a feature over the kept columns ("l0": of its
        square). The default, where none of the three is given, is 0.05.
    n_nonzero : int or sequence of int, optional
        How many non-zeros each component gets, exactly.
    penalty : {"l1", "l0"}
        Which objective the rotations maximise, as in `SparsePCA`.
    refit : bool
        Give the loadings the values of the columns they come from, not shrunk by the threshold, and with drop="frequent" (unless
        `max_sweeps` is 0) raise what they explain by truncated power steps on the kept columns, with as many non-zeros each.
    scale : bool
        Give every feature the variance 1: by its deviation so far where the stream chooses what to drop, by its present one where
        components are asked for.
    drop : {"frequent", "leftover", "weakest"}
        What is dropped. "frequent": kept and new columns are turned to their principal axes and the weakest axes dropped,
        as in Frequent Directions; rotations for sparsity are made when components are asked for, so that gamma, alpha,
        n_nonzero, penalty, refit, tol, max_sweeps and n_starts may be changed at any time. "weakest": the paper's Algorithm 5,
        where each sample takes the place of the weakest column and `inner_rotations` random pairs are turned (see Notes for
        the settings that are Algorithm 5 as printed). "leftover": each
        sample is turned against every column, to the angle best for that column, and what is left of it is dropped; then
        random pairs, if asked for. With these two the threshold has its part in the stream, and the components are the columns.
    oversample : int, optional
        Columns kept beyond those asked for. By default as many again, and at least 5 ("leftover", "weakest": none).
    inner_rotations : int, optional
        Rotations of random pairs after each sample. By default none for "leftover", and twice as many as columns are kept for
        "weakest".
    forgetting : float
        λ: a sample weighs λ times less after each later one, in the mean as in the columns; about 1/(1 − λ) samples are
        remembered. By default 1: nothing is forgotten, and a late change needs as many samples again to be seen.
    stop_after : int or float, optional
        Learn from so many samples, or from this share where the length is known, and from no others.
    tol, max_sweeps
        Of the rotations that are made when components are asked for, as in `SparsePCA`; 0 sweeps: principal axes,
        thresholded.
    n_starts : int
        Of these rotations ("frequent" only). The first start is the principal axes; further ones are random, the best is kept.
    missing : {"em"}, optional
        Accept missing values (NaN), and estimate them as `SparsePCA` does: the first batch by itself, alternately as expectations
        given each sample's other values, under the model of its principal components, and as these; a later batch as expectations
        under the model of the samples before it, which the mean and the kept columns make up. What has been taken in is not
        estimated again, and where the batches begin matters then. Refused if None.
    warm_start : bool
        Let `fit` go on with the stream, instead of beginning afresh.
    threads : int, optional
        By default all cores. The number changes the time, never the result.
    random_state : int, RandomState or None
        For the random pairs, and the starts after the first.
    progress : bool
        Show how many samples `fit` has read from what is not in memory.

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
        The thresholds of |y| ("l0": of y²) that were used; where principal axes explain more than rotated columns, those
        that leave as many non-zeros.
    mean_ : array, shape (n_features,)
        Of the samples so far: every sample is centred by it as if it had been known from the first.
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
        What ran, in one sentence, as `result_.method` of other estimators: how the stream kept its columns, and how the
        components were made of them.
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
    _found: tuple[str, StreamComponents] | None

    def __init__(
        self,
        n_components: int | None = None,
        *,
        gamma: float | None = None,
        gamma_grows: bool = True,
        alpha: float | None = None,
        n_nonzero: int | Sequence[int] | None = None,
        penalty: str = "l1",
        refit: bool = True,
        scale: bool = False,
        drop: str = "frequent",
        oversample: int | None = None,
        inner_rotations: int | None = None,
        forgetting: float = 1.0,
        stop_after: int | float | None = None,
        tol: float = 1e-6,
        max_sweeps: int = 100,
        n_starts: int = 1,
        missing: str | None = None,
        warm_start: bool = False,
        threads: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        progress: bool = False,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.gamma_grows = gamma_grows
        self.alpha = alpha
        self.n_nonzero = n_nonzero
        self.penalty = penalty
        self.refit = refit
        self.scale = scale
        self.drop = drop
        self.oversample = oversample
        self.inner_rotations = inner_rotations
        self.forgetting = forgetting
        self.stop_after = stop_after
        self.tol = tol
        self.max_sweeps = max_sweeps
        self.n_starts = n_starts
        self.missing = missing
        self.warm_start = warm_start
        self.threads = threads
        self.random_state = random_state
        self.progress = progress

    @atomic_fit
    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Go once through the rows of X, afresh (unless `warm_start`). If some are refused, the model is as it was.

        Parameters
        ----------
        X : anything that yields rows
            An array, data frame, scipy.sparse matrix, memory map, HDF5 or zarr data set, AnnData (also backed), dask array or
            data frame, or an iterable of rows or batches. What is not in memory is read a few megabytes at a time. Every chunk of
            a dask array, cut along samples, is a stream of its own where the chunk is, and the streams are merged (`merge`); if
            the order of the samples counts (`drop` other than "frequent", `forgetting`, `stop_after`, `missing`), they have
            weights, or the lengths of the chunks are unknown, the chunks are read here one after the other.
        y : ignored
        sample_weight : array, shape (samples,), optional
            How often each sample counts: one of weight 2 counts as two, one of weight 0 is left out. With `stop_after`, samples
            are counted, not weights.

        Returns
        -------
        self
        """
        refuse_mask(X, "X")
        if not self.warm_start:
            self.__dict__.pop("_sketch", None)
        going_on = self.__sklearn_is_fitted__()
        if going_on:
            self._sketch = self._sketch.successor()
        most = _limit(self.stop_after, rows.length(X), self._sketch.count if going_on else 0)
        weights = None if sample_weight is None else StreamWeights(sample_weight, rows.length(X))
        if rows.in_memory(X):
            self._add_table(X, most, going_on, weights)
        elif most is None and weights is None and self._mergeable(X):
            joined = X.rechunk({1: -1}) if hasattr(X, "numblocks") and X.numblocks[1] > 1 else X
            self._add_chunks(RepeatedRows(self, joined, accept_sparse=True, reset=not going_on))
        else:
            batches = counting(self._until(most, rows.batches(X)), rows.length(X), self.progress)
            with closing(batches):  # or an error would keep the bar
                for number, batch in enumerate(batches):
                    first = not self.__sklearn_is_fitted__()
                    checked = self._checked(batch, first, f"batch {number} of X")
                    self._add(checked, most, None if weights is None else weights.next(checked.shape[0]))
            if weights is not None and most is None:
                weights.end()
        if not self.__sklearn_is_fitted__():
            raise ValueError("X yields no rows, so there is nothing to learn from")
        self._find()
        return self

    @atomic_fit
    def partial_fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Go on with a batch of rows. If it is refused, the model is as it was.

        Parameters
        ----------
        X : array, data frame or sparse matrix, shape (samples, features)
            Any number of samples, one included.
        y : ignored
        sample_weight : array, shape (samples,), optional
            How often each sample counts.

        Returns
        -------
        self
        """
        rows.one_batch(X)
        refuse_mask(X, "X")
        most = _limit(self.stop_after, None)
        first = not self.__sklearn_is_fitted__()
        finite_only = self._finite_only(X)
        X = validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=TYPES,
            order="C",
            reset=first,
            ensure_all_finite=finite_only,
        )
        weights = None if sample_weight is None else StreamWeights(sample_weight, X.shape[0])
        if not first:
            self._sketch = self._sketch.successor(X.shape[0])
        self._add(X, most, None if weights is None else weights.next(X.shape[0]))
        return self

    @atomic_fit
    def merge(self, other: StreamingSparsePCA) -> Self:
        """Take in the samples that another stream has seen, as far as its kept columns tell.

        Of the scatter A of all samples, columns Y keep YᵀY ≼ A. What is lost, in the streams and by merging them, is no more than
        the trace of A − YᵀY: the share of the variance that `trace_.kept` says, in its last entry, is not kept.

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
        mine, theirs = self._stream(), other._stream()
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
        names = [getattr(model, "feature_names_in_", None) for model in (self, other)]
        named = names[0] is not None and names[1] is not None and list(names[0]) != list(names[1])
        if len(mine.mean) != len(theirs.mean) or named:
            raise ValueError("only streams of the same features can be merged, and these have others")
        self._sketch, self._found = mine.merged(theirs, self._rule(mine)), None
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The scores (X − mean)Zᵀ, Z the loadings by rows, of anything that `fit` takes; what is not in memory is read in parts.

        Parameters
        ----------
        X : anything that yields rows

        Returns
        -------
        array, shape (samples, n_components)
            Of a dask array or data frame a dask array, not computed yet.
        """
        check_is_fitted(self)
        refuse_mask(X, "X")
        if rows.in_memory(X) or is_dask(X):
            return super().transform(X)
        parts = [super(StreamingSparsePCA, self).transform(batch) for batch in rows.batches(X)]
        if not parts:
            raise ValueError("X yields no rows; an iterator that has been gone through is to be made anew")
        return np.concatenate(parts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole state of the stream to a file, without pickle; it appears whole or not at all.

        Parameters
        ----------
        path : path
        """
        files.write(path, self, self._stream(), self._settings)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a saved stream; it goes on as if it had never stopped.

        Parameters
        ----------
        path : path

        Returns
        -------
        StreamingSparsePCA
        """
        parameters, state = files.read(path, cls)
        model = cls(**parameters)
        model.__dict__.update(state, _found=None)
        return model

    # What is known about the stream so far. Components are found when one of their attributes is first asked for, for the
    # parameters of that moment.

    @property
    def components_(self) -> np.ndarray:  # type: ignore[override]
        """Loadings, one row per component."""
        return self._find().components

    @property
    def explained_variance_(self) -> np.ndarray:
        """Adjusted variance of each component."""
        return self._find().explained_variance

    @property
    def explained_variance_ratio_(self) -> np.ndarray:
        """Its share of the total variance."""
        return self._find().explained_variance_ratio

    @property
    def projected_variance_ratio_(self) -> float:
        """The share of the variance within the span of the loadings."""
        return self._find().projected_variance_ratio

    @property
    def n_nonzero_(self) -> np.ndarray:
        """How many non-zeros each component has."""
        return self._find().n_nonzero

    @property
    def gamma_(self) -> np.ndarray:
        """The threshold of each component."""
        return self._find().gamma

    @property
    def loading_overlap_(self) -> float:
        """The largest |z_iᵀz_j|."""
        return self._find().loading_overlap

    @property
    def score_correlation_(self) -> float:
        """The largest |correlation| of two scores."""
        return self._find().score_correlation

    @property
    def method_(self) -> str:
        """What ran, in one sentence."""
        return self._find().method

    @property
    def n_iter_(self) -> int:
        """Sweeps of the rotations made for the components."""
        return self._find().n_iter

    @property
    def flops_(self) -> float:
        """Additions and multiplications, of the stream and of the components."""
        return self._find().flops

    @property
    def n_samples_seen_(self) -> int:
        """Samples learnt from."""
        return self._stream().count

    @property
    def n_missing_(self) -> int:
        """How many values were missing."""
        return self._stream().missing

    @property
    def completion_(self) -> Completion:
        """The model by which missing values are estimated."""
        if self.missing is None:
            raise AttributeError("completion_ is there with missing='em' only")
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

    def _find(self) -> StreamComponents:
        """The components for the parameters as they are now; those found last are kept."""
        sketch = self._stream()
        key = repr(sorted(self.get_params(deep=False).items(), key=lambda item: item[0]))
        if self._found is None or self._found[0] != key:
            with parallel.pool(self.threads):
                self._found = key, self._components(sketch)
        return self._found[1]

    def _components(self, sketch: Sketch) -> StreamComponents:
        if sketch.count < 2:
            raise ValueError(f"components need at least 2 samples, and n_samples = {sketch.count} has come")
        if not sketch.divisor() > 0:
            raise ValueError(
                f"sample_weight must sum to more than 1, since it counts samples; the sum is {sketch.weight:g}"
            )
        if not sketch.total() > 0:
            raise ValueError("every feature of X is constant, so there is no variance to explain")
        columns, spent = sketch.columns_now(self._rule(sketch), self.threads)
        columns = columns.astype(np.float64)
        if sketch.scaled:
            columns *= sketch.inverses()
        asked = self._asked(sketch)
        if asked.counts is None:
            norms = np.einsum("ij,ij->j", columns, columns)
            asked = replace(asked, level=self._level(sketch, norms, sketch.weight))
        return describe(
            sketch,
            columns,
            asked,
            rotate=self._settings.drop == "frequent",
            rule=self._described(sketch),
            spent=spent,
            threads=self.threads,
        )

    def _described(self, sketch: Sketch) -> str:
        """What the stream did with its samples, for `method_`."""
        settings, pairs = self._settings, self._inner_rotations()
        kept = f"{sketch.count} samples, {settings.columns} columns kept"
        then = f", then {pairs} rotations of random pairs" if pairs else ""
        return {
            "frequent": f"{kept} as principal axes (Frequent Directions)",
            "leftover": f"{kept}, each turned against every sample{then}",
            "weakest": f"{kept}, the weakest replaced by each sample{then} (Algorithm 5)",
        }[settings.drop]

    # How samples come in: checked, counted, and refused before anything that lasts is changed.

    def _until(self, most: int | None, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches until there are enough; the one after, which may not be there yet, is not waited for."""
        while most is None or not self.__sklearn_is_fitted__() or self._sketch.count < most:
            try:
                batch = next(batches)
            except StopIteration:
                return
            yield batch

    def _finite_only(self, X: Any) -> bool | str:
        """What scikit-learn's checks are told: whether NaN is refused."""
        return True if self.missing is None or sparse.issparse(X) else "allow-nan"

    def _add_table(self, X: Any, most: int | None, going_on: bool, weights: StreamWeights | None) -> None:
        """Take in a table. Whether its numbers are finite is found out on the way: looking first takes as long as centring."""
        least = 1 if going_on else 2
        table = validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=TYPES,
            order="C",
            reset=not going_on,
            ensure_min_samples=least,
            ensure_all_finite=False,
        )
        if self.missing is not None:
            check_array(
                table,
                accept_sparse="csr",
                dtype=None,
                ensure_all_finite=self._finite_only(table),
                input_name="X",
            )
        try:
            self._add(table, most, None if weights is None else weights.next(table.shape[0]))
        except TooLarge:
            validate_data(self, X, accept_sparse="csr", dtype=TYPES, reset=False)  # says what is wrong
            raise

    def _mergeable(self, X: Any) -> bool:
        """Whether X lies in chunks of known lengths on Dask, and the order of the samples does not count."""
        if not is_dask(X) or self.drop != "frequent" or self.forgetting != 1 or self.missing is not None:
            return False
        return not hasattr(X, "numblocks") or (X.ndim == 2 and rows.length(X) is not None)

    def _add_chunks(self, data: RepeatedRows) -> None:
        """Take in the chunks of a dask array: a stream for each, and all of them merged."""
        assert data.chunks is not None
        going_on = self.__sklearn_is_fitted__()
        settings = self._settings_for(data.features, self._settings if going_on else None)
        dtype = np.float32 if data.chunks.X.dtype == np.float32 else np.float64
        if going_on:
            dtype = self._sketch.W.dtype.type
        empty = SketchSummary(
            data.features, settings.columns, settings.columns - settings.components, dtype, settings.scale
        )
        self._settings, self._found = settings, None
        self._asked(self._sketch if going_on else empty.begin(0).sketch)
        found = sketch_of(data, empty, "streaming-sketch")
        self._sketch = self._sketch.merged(found, empty.rule) if going_on else found

    def _checked(self, batch: Any, first: bool, name: str) -> Any:
        """A batch of a stream in a type that can be taken in; whatever is wrong with it, its number is said."""
        try:
            refuse_mask(batch, name)
            checked = check_array(
                batch,
                accept_sparse="csr",
                dtype=TYPES,
                order="C",
                input_name=name,
                ensure_all_finite=self._finite_only(batch),
            )
            if not first and checked.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"{name} has {checked.shape[1]} features, but those before it have {self.n_features_in_}"
                )
            validate_data(self, batch, reset=first, skip_check_array=True)  # the names, of data frames
        except (TypeError, ValueError) as error:
            text = " ".join(str(error).split())
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(text if name in text else f"{name}: {text}") from error
        return checked

    def _add(self, X: Any, most: int | None, own: np.ndarray | None = None) -> None:
        """Take in checked rows, with weights of their own; what the parameters forbid is refused first."""
        going_on = self.__sklearn_is_fitted__()
        settings = self._settings_for(X.shape[1], self._settings if going_on else None)
        sketch = (
            self._sketch
            if going_on
            else Sketch(X.shape[1], settings.columns, X.dtype, settings.forgetting, settings.scale)
        )
        self._sketch, self._settings, self._found = sketch, settings, None
        self._asked(sketch)
        if own is not None:
            X, own = X[own > 0], own[own > 0]
        if most is not None:
            X = X[: max(most - sketch.count, 0)]
            own = None if own is None else own[: X.shape[0]]
        if self.missing is not None:
            X = self._filled(X, sketch, own)
        sketch.add(X, self._rule(sketch), self.threads, own)

    def _filled(self, X: Any, sketch: Sketch, own: np.ndarray | None) -> Any:
        """X with its missing values estimated."""
        holes = holes_of(X, self.missing, own)
        if not holes.any():
            return X
        sketch.missing += int(holes.sum())
        if sketch.count >= 2 and sketch.energy > 0:
            with parallel.pool(self.threads):
                model = sketch.completion(self._rule(sketch), self._settings.components, self.threads)
            return model.fill(X.astype(np.float64), holes).astype(X.dtype)
        empty = np.flatnonzero(holes.all(axis=0))
        if len(empty):
            raise ValueError(
                f"feature {empty[0]} has no value at all in the first batch: begin with more samples, or leave it out "
                f"({len(empty)} in all)"
            )
        rank = min(self._settings.components, max(1, min(X.shape) // 2))
        return completed(X.astype(np.float64), rank)[0].astype(X.dtype)

    # What users may ask for, checked, and turned into what the sketch and the extraction take.

    def _settings_for(self, features: int, began: StreamSettings | None) -> StreamSettings:
        """The settings for data of this width; those that the stream `began` with, if they agree."""
        m = min(COMPONENTS, features)
        if self.n_components is not None:
            what = f" (n_features={features}: there are no more)"
            m = whole(self.n_components, "n_components", 1, features, what)
        if self.drop not in DROPS:
            raise ValueError(f"drop must be 'frequent', 'leftover' or 'weakest', got {self.drop!r}")
        if self.oversample is None:
            # Algorithm 5 keeps m columns and no others.
            reserve = max(m, MIN_OVERSAMPLE) if self.drop == "frequent" else 0
        else:
            reserve = whole(self.oversample, "oversample", 0, MAX_OVERSAMPLE)
        forgetting = self.forgetting
        if not isinstance(forgetting, Real) or isinstance(forgetting, bool) or not 0 < float(forgetting) <= 1:
            raise ValueError(f"forgetting must be a number above 0 and at most 1, got {forgetting!r}")
        if self.inner_rotations is not None:
            whole(self.inner_rotations, "inner_rotations", 0)
        parallel.count(self.threads)
        seed = _seed(self.random_state) if began is None else began.seed
        settings = StreamSettings(m, m + reserve, self.drop, float(forgetting), bool(self.scale), seed)
        if began is not None:
            _refuse_changes(began.parameters(), settings.parameters())
        return settings

    def _asked(self, sketch: Sketch) -> Asked:
        """What loadings are asked for; the level is 0 until the kept columns are known, where it depends on them."""
        settings = self._settings
        if self.penalty not in ("l1", "l0"):
            raise ValueError(f"penalty must be 'l1' or 'l0', got {self.penalty!r}")
        given = [name for name in ("gamma", "alpha", "n_nonzero") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"give only one of gamma, alpha and n_nonzero, got {' and '.join(given)}")
        counts = None
        if self.n_nonzero is not None:
            counts = checked_counts(self.n_nonzero, settings.components, len(sketch.mean))
        self._gamma()
        self._alpha()
        n_starts = whole(self.n_starts, "n_starts", 1)
        if n_starts > 1 and settings.drop != "frequent":
            raise ValueError(
                f"n_starts = {n_starts} goes with drop='frequent': with drop={settings.drop!r} the components are columns of "
                "the stream as they are, and nothing is begun anew"
            )
        return Asked(
            m=settings.components,
            level=0.0,
            l0=self.penalty == "l0",
            counts=counts,
            keep_order=self.n_nonzero is not None and np.ndim(self.n_nonzero) > 0,
            refit=bool(self.refit),
            tol=finite(self.tol, "tol"),
            max_sweeps=whole(self.max_sweeps, "max_sweeps", 0),
            n_starts=n_starts,
            seed=settings.seed,
        )

    def _gamma(self) -> float | None:
        return None if self.gamma is None else finite(self.gamma, "gamma")

    def _alpha(self) -> float:
        alpha = DEFAULT_ALPHA if self.alpha is None else finite(self.alpha, "alpha")
        if alpha > 1:
            raise ValueError(
                f"alpha is a share of the largest norm of a feature, between 0 and 1, got {alpha!r}"
            )
        return alpha

    def _level(self, sketch: Sketch, norms: np.ndarray, weight: float) -> float:
        """The threshold of |y| in the sketch's unit: γ√t or γ, or a share of the largest norm of a feature over the columns."""
        gamma, l0 = self._gamma(), self.penalty == "l0"
        if gamma is not None:
            unit = 1.0 if sketch.scaled else sketch.unit or 1.0
            growth = np.sqrt(weight) if self.gamma_grows else 1.0
            return float((np.sqrt(gamma) if l0 else gamma) * growth / unit)
        alpha = self._alpha()
        return float((np.sqrt(alpha) if l0 else alpha) * np.sqrt(norms.max()))

    def _rule(self, sketch: Sketch) -> Rule:
        """The rule by which the stream keeps columns."""
        settings = self._settings
        if settings.drop == "frequent":
            return Frequent(settings.columns - settings.components)
        if self.n_nonzero is None:
            threshold = lambda norms, weight, Y: self._level(sketch, norms, weight)  # noqa: E731
        else:
            counts = checked_counts(self.n_nonzero, settings.components, len(sketch.mean))
            share = float(counts.mean()) / len(sketch.mean)
            threshold = lambda norms, weight, Y: quantile(Y, share)  # noqa: E731
        rotations = self._inner_rotations()
        return ROTATING[settings.drop](threshold, rotations, self.penalty == "l0", settings.seed)

    def _inner_rotations(self) -> int:
        if self.inner_rotations is None:
            return 2 * self._settings.columns if self._settings.drop == "weakest" else 0
        return whole(self.inner_rotations, "inner_rotations", 0)


class StreamWeights:
    """The weights of samples that come in batches.

    Parameters
    ----------
    sample_weight : array, shape (samples,)
    total : int or None
        How many samples there are, if that is known.
    """

    def __init__(self, sample_weight: Any, total: int | None) -> None:
        weights = np.asarray(sample_weight, dtype=np.float64)
        if weights.ndim != 1 or (total is not None and len(weights) != total):
            wanted = (
                "one number for each sample" if total is None else f"one number for each of {total} samples"
            )
            raise ValueError(f"sample_weight must be {wanted}, got shape {weights.shape}")
        wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
        if len(wrong):
            raise ValueError(
                f"sample_weight must be finite and not negative, but that of sample {wrong[0]} is {weights[wrong[0]]}"
            )
        if len(weights) and not weights.any():
            raise ValueError("every number of sample_weight is zero, so there is no sample to learn from")
        self.weights = weights
        self.given = 0

    def next(self, samples: int) -> np.ndarray:
        """Of the samples that come next."""
        self.given += samples
        if self.given > len(self.weights):
            raise ValueError(f"sample_weight has {len(self.weights)} numbers, but X has more samples")
        return self.weights[self.given - samples : self.given]

    def end(self) -> None:
        """Say whether too many were given."""
        if self.given < len(self.weights):
            raise ValueError(f"sample_weight has {len(self.weights)} numbers, but X has {self.given} samples")


def _refuse_changes(began: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to go on with other values of the parameters that hold for the whole stream."""
    changed = [name for name in began if began[name] != now[name]]
    if len(changed) > 1:
        changed = [name for name in changed if name != "oversample"]  # its default follows from the others
    if changed:
        raise ValueError(
            "the stream began with "
            + " and ".join(f"{name}={began[name]!r}, not {now[name]!r}" for name in changed)
            + ", and that holds for all of it: set it back, or begin anew by fit with warm_start=False"
        )


def _seed(random_state: Any) -> int:
    if isinstance(random_state, Integral) and not isinstance(random_state, bool) and int(random_state) >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))


def _limit(stop_after: Any, total: int | None, before: int = 0) -> int | None:
    """How many samples to learn from at most; None: all. A share is of `total`, those that come after the ones `before`."""
    if stop_after is None:
        return None
    if isinstance(stop_after, Integral) and not isinstance(stop_after, bool):
        return whole(stop_after, "stop_after", 2)
    if not isinstance(stop_after, Real) or isinstance(stop_after, bool) or not 0 < float(stop_after) <= 1:
        raise ValueError(
            f"stop_after must be a whole number of samples, or a share between 0 and 1, got {stop_after!r}"
        )
    if total is None:
        raise ValueError(
            f"stop_after = {stop_after!r} is a share of a stream whose length is not known: give a number of samples"
        )
    return before + max(2, round(float(stop_after) * total))
