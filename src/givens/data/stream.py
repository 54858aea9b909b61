"""One pass over a stream: the first rows determine the axes on which sums over all rows are kept."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from givens.data.passes import Summary
from givens.data.rows import Door, stacked
from givens.numerics import parallel
from givens.result import Result
from givens.support.fitting import atomic_fit


class Stream:
    """Sums over a stream, whose axes its first rows determine.

    Parameters
    ----------
    samples : int
        Number of rows that determine the axes.
    start : callable
        Returns an empty `Summary` on the axes of the rows it is given. It is pickled with the model.
    check : Numbers, or an object with the same methods
        Divides rows that it has checked into pieces for `Summary.add`.

    Attributes
    ----------
    count : int
        Number of rows so far.
    empty : Summary or None
        The summary of no rows; None until the axes are fixed.

    Examples
    --------
    >>> from functools import partial
    >>> import numpy as np
    >>> from givens.data.rows import Numbers
    >>> from givens.data.stream import Stream
    >>> from givens.data.third_moments import principal_moments
    >>> X = np.random.default_rng(0).standard_normal((500, 4))
    >>> stream = Stream(100, partial(principal_moments, rank=2), Numbers())
    >>> for start in range(0, 500, 70):
    ...     stream.add(X[start : start + 70])
    >>> stream.count, stream.total().cumulants().third.shape
    (500, (2, 2, 2))
    """

    def __init__(self, samples: int, start: Callable[[Any], Summary], check: Any) -> None:
        self.samples, self.start, self.check = samples, start, check
        self.count = 0
        self.empty: Any = None
        self._total: Any = None
        self._head: list[Any] = []

    def add(self, rows: Any) -> None:
        """Add checked rows; shallow copies of this stream are not changed."""
        count = self.count + rows.shape[0]
        empty, total, head = self.empty, self._total, self._head
        if empty is None:
            room = self.samples - self.count
            # A copy, since the caller may fill the same array with new rows.
            head = [*head, rows[:room].copy()]
            if count >= self.samples:
                empty = self.start(stacked(head))
                total, head, rows = self._sums(empty, head), [], rows[room:]
        if empty is not None:
            total = copy(total)
            total.merge(self._sums(empty, [rows]))
        self.count, self.empty, self._total, self._head = count, empty, total, head

    def total(self) -> Any:
        """The summary of all rows; before the axes are fixed, on the axes of the rows so far."""
        return self._sums(self.start(stacked(self._head)), self._head) if self.empty is None else self._total

    def emptied(self) -> Stream:
        """A stream with the same axes and no rows."""
        other = copy(self)
        other.count, other._total, other._head = 0, self._sums(self.empty, []), []
        return other

    def merged(self, other: Stream) -> Stream:
        """A stream of the rows of both, which must have the same axes."""
        if self.empty is None or other.empty is None:
            raise ValueError(
                "a stream whose axes are not fixed yet cannot be merged: "
                f"{self.samples} samples fix them, and {min(self.count, other.count)} have come"
            )
        both = copy(self)
        both.count, both._total = self.count + other.count, copy(self._total)
        both._total.merge(other._total)
        return both

    def _sums(self, empty: Any, batches: list[Any]) -> Any:
        """The summary of some checked batches."""
        summary, door = empty.begin(0), Door(self.check)
        for rows in batches:
            for piece in door.pieces(rows):
                summary.add(piece)
        summary.end()
        return summary


class StreamedMoments:
    """Base class of estimators that keep the moments of a stream: models of parts of it can be merged.

    Parameters are computed from the moments when they are first used. `_stream` is None after `fit`.
    """

    _stream: Stream | None
    _solved: Any
    threads: int | None
    n_features_in_: int

    def _solve_moments(self, moments: Any) -> Any:
        """Compute the parameters from the moments of a stream so far."""
        raise NotImplementedError

    def _add(self, rows: Any) -> None:
        """Add checked rows to the stream, which has been opened; the parameters are computed anew when they are next used."""
        stream = copy(self._stream)
        assert stream is not None
        with parallel.pool(self.threads):
            stream.add(rows)
        self._stream, self._solved = stream, None

    def sibling(self) -> Self:
        """A new model that keeps moments on the same axes and has seen no samples: for another part of the stream.

        Returns
        -------
        the same class
        """
        stream = getattr(self, "_stream", None)
        if stream is None or stream.empty is None:
            first = "" if stream is None else f": give partial_fit {stream.samples} samples first"
            raise NotFittedError(f"only a model of a stream whose axes are fixed has siblings{first}")
        other = clone(self)
        other._stream, other._solved = stream.emptied(), None
        other.n_features_in_ = self.n_features_in_
        return other

    @atomic_fit
    def merge(self, other: Self) -> Self:
        """Add the samples that another model has seen; both must keep their moments on the same axes (see `sibling`).

        Parameters
        ----------
        other : the same class
            A model that was fitted by `partial_fit`. It is not changed.

        Returns
        -------
        self
        """
        mine, others = (getattr(model, "_stream", None) for model in (self, other))
        if mine is None or others is None:
            raise ValueError("only models that were fed by partial_fit can be merged")
        with parallel.pool(self.threads):
            self._stream = mine.merged(others)
        self._solved = None
        return self

    def _fitted(self) -> Any:
        """The fitted parameters, computed from the moments if that has not been done."""
        if getattr(self, "_solved", None) is None:
            stream = getattr(self, "_stream", None)
            if stream is None or not stream.count:
                # An AttributeError too, so that hasattr says no.
                raise NotFittedError(
                    f"this {type(self).__name__} has seen no data yet: call fit or partial_fit first"
                )
            with parallel.pool(self.threads):
                self._solved = self._solve_moments(stream.total())
        return self._solved

    @property
    def result_(self) -> Result:
        """The run that led to the parameters."""
        return self._fitted().result

    @property
    def converged_(self) -> bool:
        """Whether the run converged."""
        return self.result_.converged

    @property
    def n_iter_(self) -> int:
        """Number of iterations after the solution from moments."""
        return self._fitted().n_iter

    @property
    def n_components_(self) -> int:
        """Number of components."""
        return len(self._fitted().weights)

    @property
    def eigenvalues_(self) -> np.ndarray:
        """Eigenvalues of the second moment, descending."""
        return self._fitted().eigenvalues

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_solved")
