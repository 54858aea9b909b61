"""One pass over a stream: the first rows determine the axes on which the moments of all rows are kept."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from givens.data.moments import Moments, moments_of
from givens.data.rows import unit_of
from givens.data.sums import Basis, ThirdMoments
from givens.numerics import parallel
from givens.support.fitting import atomic_fit


def principal_basis(seconds: Moments, rank: int) -> tuple[np.ndarray, Basis]:
    """Eigenvalues of the covariance, descending, and the basis of the first `rank` eigenvectors about the mean."""
    values, vectors = np.linalg.eigh(seconds.covariance())
    return values[::-1], Basis(seconds.mean, np.ascontiguousarray(vectors[:, ::-1][:, :rank]), seconds.unit)


class Stream:
    """Third moments on the `rank` principal axes of the first `samples` rows of a stream.

    Parameters
    ----------
    samples : int
        Number of rows that determine the basis.
    rank : int
        Number of axes of the basis, at most the number of variables.
    basis : Basis, optional
        A basis that has been determined already.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.data import Stream
    >>> X = np.random.default_rng(0).standard_normal((500, 4))
    >>> stream = Stream(samples=100, rank=2)
    >>> for start in range(0, 500, 70):
    ...     stream.add(X[start : start + 70])
    >>> stream.count, stream.thirds().cumulants().third.shape
    (500, (2, 2, 2))
    """

    def __init__(self, samples: int, rank: int, basis: Basis | None = None) -> None:
        self.samples = samples
        self.rank = rank
        self._head: list[np.ndarray] = []
        self._thirds = None if basis is None else ThirdMoments(basis)

    @property
    def count(self) -> int:
        """Number of rows so far."""
        return sum(map(len, self._head)) if self._thirds is None else self._thirds.count

    @property
    def basis(self) -> Basis | None:
        """The basis, or None until it is determined."""
        return None if self._thirds is None else self._thirds.basis

    def add(self, rows: np.ndarray) -> None:
        """Add rows; shallow copies of this stream are not changed."""
        thirds = copy(self._thirds)
        if thirds is None:
            room = self.samples - self.count
            # A copy, since the caller may fill the same array with new rows.
            self._head = [*self._head, np.array(rows[:room])]
            if self.count < self.samples:
                return
            rows = rows[room:]
            thirds = self._from_head()
        thirds.add(rows)
        self._thirds, self._head = thirds, []

    def thirds(self) -> ThirdMoments:
        """The moments; before the basis is determined, in the basis of the rows so far."""
        return self._from_head() if self._thirds is None else self._thirds

    def emptied(self) -> Stream:
        """A stream with the same basis and no rows."""
        return Stream(self.samples, self.rank, self.basis)

    def merged(self, other: Stream) -> Stream:
        """A stream of the rows of both, which must have the same basis."""
        if self._thirds is None or other._thirds is None:
            raise ValueError(
                "a stream whose basis is not fixed yet cannot be merged: "
                f"{self.samples} rows fix it, and {min(self.count, other.count)} have come"
            )
        both = copy(self)
        both._thirds = copy(self._thirds)
        both._thirds.merge(other._thirds)
        return both

    def _from_head(self) -> ThirdMoments:
        head = np.concatenate(self._head)
        seconds = moments_of(head, unit_of(head))
        thirds = ThirdMoments(principal_basis(seconds, self.rank)[1])
        thirds.add(head)
        return thirds


class StreamedMoments:
    """Base class of estimators that keep the moments of a stream: models of parts of it can be merged.

    Parameters are computed from the moments when they are first used. `_stream` has the attributes `samples`, `count`, `basis`,
    `emptied` and `merged` of `Stream`; it is None after `fit`.
    """

    _stream: Any
    _solved: Any
    threads: int | None
    n_features_in_: int

    def _solve_stream(self, stream: Any) -> Any:
        """Compute the parameters from the moments so far."""
        raise NotImplementedError

    def sibling(self) -> Self:
        """A new model that keeps moments on the same axes and has seen no samples: for another part of the stream.

        Returns
        -------
        the same class
        """
        stream = getattr(self, "_stream", None)
        if stream is None or stream.basis is None:
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
                self._solved = self._solve_stream(stream)
        return self._solved

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_solved")
