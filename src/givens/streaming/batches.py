"""Samples that arrive in batches: their checks, their weights, their missing values, and how many of them are used."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np

from givens.data.missing import completed, holes_of, missing_explained
from givens.numerics import parallel
from givens.streaming.sketch import Rule, Sketch
from givens.support.arguments import sample_weights, whole
from givens.support.fitting import check_array, finite_or_missing, validate_data


class BatchWeights:
    """The weights of samples that come in batches.

    Parameters
    ----------
    sample_weight : array, shape (samples,), or None
        None: every sample counts once.
    total : int or None
        How many samples there are, if that is known.
    """

    def __init__(self, sample_weight: Any, total: int | None) -> None:
        self.weights = None if sample_weight is None else sample_weights(sample_weight, total)
        self.used = 0

    def next(self, samples: int) -> np.ndarray | None:
        """The weights of the next samples."""
        self.used += samples
        if self.weights is None:
            return None
        if self.used > len(self.weights):
            raise ValueError(f"sample_weight has {len(self.weights)} numbers, but X has more samples")
        return self.weights[self.used - samples : self.used]

    def end(self) -> None:
        """Refuse weights that no sample has used."""
        if self.weights is not None and self.used < len(self.weights):
            raise ValueError(f"sample_weight has {len(self.weights)} numbers, but X has {self.used} samples")


def samples_limit(stop_after: Any, total: int | None, before: int = 0) -> int | None:
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


def until(model: Any, most: int | None, batches: Iterator[Any]) -> Generator[Any]:
    """The batches until the stream has `most` samples; the next batch, which may not exist yet, is then not requested."""
    while most is None or not model.__sklearn_is_fitted__() or model.n_samples_seen_ < most:
        try:
            batch = next(batches)
        except StopIteration:
            return
        yield batch


def checked_batch(model: Any, batch: Any, reset: bool, name: str, finite: bool = False) -> Any:
    """A batch as float64 or float32, dense or csr; an error names the batch.

    That its numbers are finite is checked if `finite`, or if some may be missing; else the sums over them tell it in less time.
    """
    estimate = model.missing is not None
    try:
        try:
            checked = check_array(
                batch,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                order="C",
                input_name=name,
                estimator=model,
                ensure_all_finite=finite_or_missing(batch, estimate) if finite or estimate else False,
            )
        except ValueError as error:
            raise missing_explained(error, batch, name) from None
        validate_data(model, batch, reset=reset, skip_check_array=True)  # the features, and their names
    except (TypeError, ValueError) as error:
        text = " ".join(str(error).split())
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(text if name in text else f"{name}: {text}") from error
    return checked


def estimated(
    X: Any, sketch: Sketch, rule: Rule, missing: Any, rank: int, threads: int | None, own: np.ndarray | None
) -> Any:
    """X with its missing values estimated, and counted in the sketch: under the model of the samples so far, or of X itself.

    Parameters
    ----------
    X : array
    sketch : Sketch
    rule : Rule
    missing : str
        The parameter of the estimator.
    rank : int
        Of the model.
    threads : int or None
    own : array or None
        The weights of the samples.
    """
    holes = holes_of(X, missing, own)
    if not holes.any():
        return X
    sketch.missing += int(holes.sum())
    if sketch.count >= 2 and sketch.energy > 0:
        with parallel.pool(threads):
            model = sketch.completion(rule, rank, threads)
        return model.fill(X.astype(np.float64), holes).astype(X.dtype)
    return completed(X.astype(np.float64), rank)[0].astype(X.dtype)
