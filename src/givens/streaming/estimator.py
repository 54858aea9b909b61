"""Sparse principal components of a stream: the paper's Algorithm 5, and a rule that measures better."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from copy import deepcopy
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import validate_data

from givens import rows
from givens.streaming import save as files
from givens.streaming import settings as checks
from givens.streaming.intake import TYPES, StreamIntake
from givens.support.fitting import atomic_fit
from givens.support.progress import counting


class StreamingSparsePCA(StreamIntake):
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
    alpha : float, optional
        The threshold as a share, between 0 and 1, of the largest norm of a feature over the kept columns ("l0": of its
        square). The default, where none of the three is given, is 0.05.
    n_nonzero : int or sequence of int, optional
        How many non-zeros each component gets, exactly.
    penalty : {"l1", "l0"}
        Which objective the rotations maximise, as in `SparsePCA`.
    refit : bool
        Give the loadings the values of the columns they come from, not shrunk by the threshold.
    scale : bool
        Give every feature the variance 1: by its deviation so far where the stream chooses what to drop, by its present one where
        components are asked for.
    drop : {"frequent", "leftover", "weakest"}
        What is dropped. "frequent": kept and new columns are turned to their principal axes and the weakest axes dropped,
        as in Frequent Directions; rotations for sparsity are made when components are asked for, so that gamma, alpha,
        n_nonzero, penalty, refit, tol, max_sweeps and n_starts may be changed at any time. "weakest": the paper's Algorithm 5,
        where each sample takes the place of the weakest column and `inner_rotations` random pairs are turned. "leftover": each
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
    trace_ : StreamTrace
        Samples, flops and the share of the variance kept, along the stream.
    n_iter_ : int
        Sweeps of the rotations made for the components.
    flops_ : float
        Additions and multiplications, of the stream and of the components.

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

    def __init__(
        self,
        n_components: int | None = None,
        *,
        gamma: float | None = None,
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
        warm_start: bool = False,
        threads: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        progress: bool = False,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
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
        self.warm_start = warm_start
        self.threads = threads
        self.random_state = random_state
        self.progress = progress

    @atomic_fit
    def fit(self, X: Any, y: None = None) -> Self:
        """Go once through the rows of X, afresh (unless `warm_start`). If some are refused, the model is as it was.

        Parameters
        ----------
        X : anything that yields rows
            An array, data frame, scipy.sparse matrix, memory map, HDF5 or zarr data set, AnnData (also backed), dask array or
            data frame, or an iterable of rows or batches. What is not in memory is read a few megabytes at a time.
        y : ignored

        Returns
        -------
        self
        """
        if not self.warm_start:
            self.__dict__.pop("_sketch", None)
        going_on = self.__sklearn_is_fitted__()
        if going_on:
            self._sketch = deepcopy(self._sketch)
        most = checks.limit(self.stop_after, rows.length(X), self._sketch.count if going_on else 0)
        if rows.in_memory(X):
            self._add_table(X, most, going_on)
        else:
            batches = counting(self._until(most, rows.batches(X)), rows.length(X), self.progress)
            with closing(batches):  # or an error would keep the bar
                for number, batch in enumerate(batches):
                    first = not self.__sklearn_is_fitted__()
                    self._add(self._checked(batch, first, f"batch {number} of X"), most)
        if not self.__sklearn_is_fitted__():
            raise ValueError("X yields no rows, so there is nothing to learn from")
        self._find()
        return self

    def partial_fit(self, X: Any, y: None = None) -> Self:
        """Go on with a batch of rows. If it is refused, the model is as it was.

        Parameters
        ----------
        X : array, data frame or sparse matrix, shape (samples, features)
            Any number of samples, one included.
        y : ignored

        Returns
        -------
        self
        """
        rows.one_batch(X)
        with self._as_it_was_if_refused():
            most = checks.limit(self.stop_after, None)
            first = not self.__sklearn_is_fitted__()
            X = validate_data(self, X, accept_sparse="csr", dtype=TYPES, order="C", reset=first)
            if not first:
                self._sketch.refuse(X)
            self._add(X, most)
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole state of the stream to a file, without pickle; it appears whole or not at all.

        Parameters
        ----------
        path : path
        """
        self._find_stream()
        files.write(path, self, self._sketch, self._settings)

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
        model.__dict__.update(state, _cache={})
        return model
