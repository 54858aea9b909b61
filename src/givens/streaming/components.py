"""From the kept columns of a stream to everything that is known about its components."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, cast

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from givens import rows
from givens.metrics import adjusted_from_scores, largest_correlation, loading_overlap, span
from givens.numerics import parallel
from givens.sparse_pca.loadings import order_and_sign
from givens.sparse_pca.options import fill_empty
from givens.sparse_pca.scores import SparseScores
from givens.streaming import settings as checks
from givens.streaming.extract import rotated, strongest
from givens.streaming.sketch import SMALL, Sketch, StreamTrace

FITTED = (
    "components_",
    "explained_variance_",
    "explained_variance_ratio_",
    "projected_variance_ratio_",
    "n_nonzero_",
    "gamma_",
    "loading_overlap_",
    "score_correlation_",
    "n_iter_",
    "flops_",
)


def components_of(model: Any, sketch: Sketch, started: checks.StreamSettings) -> dict[str, Any]:
    """The fitted attributes of a model, as its parameters are now, by name."""
    if sketch.count < 2:
        raise ValueError("components need at least 2 samples, and n_samples = 1 has come")
    total = sketch.total()
    if not total > 0:
        raise ValueError("every feature of X is constant, so there is no variance to explain")
    columns, spent = sketch.columns_now(checks.rule(model, started, sketch), model.threads)
    columns = columns.astype(np.float64)
    if sketch.scaled:
        columns *= sketch.inverses()
    norms = np.einsum("ij,ij->j", columns, columns)
    asked = checks.asked(model, started, sketch)
    if asked.counts is None:
        asked = replace(asked, level=checks.level(model, sketch, norms, sketch.weight))
    with parallel.pool(model.threads if columns.size > SMALL else 1):
        found = (rotated if started.drop == "frequent" else strongest)(columns, asked)
    Z, empty = fill_empty(cast(Any, found), np.arange(columns.shape[1]), np.sqrt(norms))
    if empty:
        reason, advice = (
            ("exceeds the threshold", "lower gamma or alpha, ask for fewer components, or use n_nonzero")
            if asked.counts is None
            else ("is left by the others", "ask for fewer components, or wait for more samples")
        )
        warnings.warn(
            f"nothing of {empty} of {len(Z)} components {reason}, so each of these has its largest entry alone; {advice}",
            UserWarning,
            stacklevel=4,
        )
        Z, _ = order_and_sign(Z, np.zeros(len(Z)), keep_order=True)
    used = np.flatnonzero(Z.any(axis=0))
    columns, few = columns[:, used], Z[:, used]
    scores = columns @ few.T
    adjusted = adjusted_from_scores(scores) * max(len(scores) - 1, 1)
    components = Z.astype(sketch.W.dtype)
    with np.errstate(over="ignore", under="ignore"):
        unit = np.float64(1.0 if sketch.scaled else sketch.unit)
        variance = adjusted / sketch.divisor() * unit * unit
        gamma = found.levels * unit
        gamma = gamma * gamma if asked.l0 else gamma
    return {
        "components_": components,
        "explained_variance_": variance,
        "explained_variance_ratio_": adjusted / total,
        "projected_variance_ratio_": float(np.sum((columns @ span(few)) ** 2) / total),
        "n_nonzero_": np.count_nonzero(components, axis=1),
        "gamma_": gamma,
        "loading_overlap_": loading_overlap(few),
        "score_correlation_": largest_correlation(scores.T @ scores),
        "n_iter_": max(found.sweeps, 1),
        "flops_": sketch.flops + spent + found.flops,
    }


class StreamScores(SparseScores):
    """A stream's attributes, worked out when they are first asked for, and the scores that follow from them."""

    _sketch: Sketch
    _settings: checks.StreamSettings
    _cache: dict[str, Any]

    def _find(self) -> dict[str, Any]:
        """Everything that is known about the stream so far, worked out when it is first asked for."""
        self._find_stream()
        key = repr(sorted(self.get_params(deep=False).items(), key=lambda item: item[0]))
        if self._cache.get("key") != key:
            with parallel.pool(self.threads):
                found = components_of(self, self._sketch, self._settings)
            self._cache.clear()
            self._cache.update(found, key=key)
        return self._cache

    def transform(self, X: Any) -> np.ndarray:
        """The scores (X − mean)Zᵀ, Z the loadings by rows, of anything that `fit` takes; what is not in memory is read in parts.

        Parameters
        ----------
        X : anything that yields rows

        Returns
        -------
        array, shape (samples, n_components)
        """
        check_is_fitted(self)
        if rows.in_memory(X):
            return super().transform(X)
        parts = [super(StreamScores, self).transform(batch) for batch in rows.batches(X)]
        if not parts:
            raise ValueError("X yields no rows; an iterator that has been gone through is to be made anew")
        return np.concatenate(parts)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_sketch")

    @property
    def n_samples_seen_(self) -> int:
        """Samples learnt from."""
        self._find_stream()
        return self._sketch.count

    @property
    def mean_(self) -> np.ndarray:  # type: ignore[override]
        """The mean of the samples so far, weighted by what is not forgotten."""
        self._find_stream()
        sketch = self._sketch
        return (sketch.mean * (sketch.unit or 1.0)).astype(sketch.W.dtype)

    @property
    def scale_(self) -> np.ndarray | None:  # type: ignore[override]
        """The deviations of the samples so far, 1 where there is none; None if features are not scaled."""
        self._find_stream()
        sketch = self._sketch
        if not sketch.scaled:
            return None
        deviations = sketch.deviations()
        return np.where(deviations > 0, deviations * sketch.unit, 1.0).astype(sketch.W.dtype)

    @property
    def trace_(self) -> StreamTrace:
        """Samples, flops and the share of the variance kept."""
        self._find_stream()
        return self._sketch.trace

    def _find_stream(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"this {type(self).__name__} has seen no samples yet: call fit or partial_fit first"
            )
        self._sketch.check_whole()


def _property(name: str) -> property:
    def get(self: StreamScores) -> Any:
        return self._find()[name]

    get.__doc__ = f"`{name}`, of the stream so far."
    return property(get)


for _name in FITTED:
    setattr(StreamScores, _name, _property(_name))
