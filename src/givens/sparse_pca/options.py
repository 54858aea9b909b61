"""Options of a fit: the parameters of an estimator, checked, and the thresholds in the units of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from givens.numerics import parallel
from givens.schedules import Schedule, as_schedule
from givens.support.arguments import finite, one_of, whole

Threshold = float | tuple[str, float]
"""A number, or a penalty and a number."""
Counts = int | Sequence[int] | tuple[str, int]
"""A number, one for each component, or "total" and a number."""


@dataclass(frozen=True)
class FitOptions:
    """Checked options. Either `level`, the threshold of |y|, or `counts`, the numbers of non-zeros, decides the sparsity.

    With `divide` only the sum of the counts is given, and they divide it among the components. `tol` is a share of the value.
    """

    m: int
    level: float
    l0: bool
    counts: np.ndarray | None
    refit: bool
    tol: float
    max_iter: int
    n_starts: int
    threads: int | None
    schedule: Schedule | None = None
    divide: bool = False

    def all_columns(self, rows: int) -> bool:
        """Whether all columns of U are rotated, which needs the data as an array."""
        return self.counts is None and (self.m == rows or self.schedule is not None)


def fit_options(model: Any, m: int, norms: np.ndarray, *, stream: bool = False) -> FitOptions:
    """The checked options of an estimator of sparse components.

    Parameters
    ----------
    model : SparsePCA or StreamingSparsePCA
    m : int
        Number of components.
    norms : array, shape (features,)
        Of the features.
    stream : bool, default=False
        Whether the data are columns that a stream kept, which may be taken as they are, by max_iter=0.
    """
    check_sparsity(model)
    counts = None if model.n_nonzero is None else counts_of(model, m, len(norms))
    l0, level = (False, 0.0) if counts is not None else threshold(model, float(norms.max()))
    schedule = getattr(model, "schedule", None)
    if schedule is not None and counts is not None:
        raise ValueError(
            "schedule is the order of rotations with a fixed threshold: give threshold, not n_nonzero"
        )
    parallel.count(model.threads)
    divide = _is_total(model.n_nonzero)
    if divide and stream:
        raise ValueError("a stream has no total of n_nonzero: give one number, or one per component")
    return FitOptions(
        m=m,
        level=level,
        l0=l0,
        counts=counts,
        refit=bool(model.refit),
        tol=finite(model.tol, "tol") ** 2,
        max_iter=whole(model.max_iter, "max_iter", 0 if stream else 1),
        n_starts=whole(model.n_starts, "n_starts", 1),
        threads=model.threads,
        schedule=None if schedule is None else as_schedule(schedule),
        divide=divide,
    )


def check_sparsity(model: Any) -> None:
    """Refuse thresholds that are none, and more than one of the parameters that decide the sparsity."""
    if model.threshold is not None and model.n_nonzero is not None:
        raise ValueError("give threshold or n_nonzero, not both")
    penalty_and_number(model)


def threshold(model: Any, top: float) -> tuple[bool, float]:
    """Whether the penalty is l0, and the threshold of |y| for features whose largest norm is `top`."""
    penalty, number = penalty_and_number(model)
    return penalty == "l0", float(np.sqrt(number) if penalty == "l0" else number) * top


def penalty_and_number(model: Any) -> tuple[str, float]:
    """The penalty, and the threshold as a share of the largest norm of a feature."""
    value = 0.05 if model.threshold is None else model.threshold
    pair = ("l1", value) if isinstance(value, Real) else value
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise ValueError(
            f"threshold must be a number, or a penalty and a number as in ('l0', 0.1), got {value!r}"
        )
    one_of(pair[0], "the penalty of threshold", ("l1", "l0"))
    number = finite(pair[1], "threshold")
    if number > 1:
        raise ValueError(f"threshold is a share of the largest useful one, between 0 and 1, got {number!r}")
    return pair[0], number


def _is_total(n_nonzero: Any) -> bool:
    return isinstance(n_nonzero, (tuple, list)) and len(n_nonzero) == 2 and n_nonzero[0] == "total"


def counts_of(model: Any, m: int, d: int) -> np.ndarray:
    """`n_nonzero` as a count for each of m components of d features; a total is divided evenly."""
    n_nonzero = model.n_nonzero
    if not model.refit:
        raise ValueError(
            "with n_nonzero, loadings explain as much as they can: refit=False goes with a threshold"
        )
    if _is_total(n_nonzero):
        total = whole(n_nonzero[1], "the total of n_nonzero", m, m * d, "one to all features per component")
        return total // m + (np.arange(m) < total % m)
    if np.ndim(n_nonzero) == 0:
        return np.full(m, whole(n_nonzero, "n_nonzero", 1, d, "the number of features"))
    if len(n_nonzero) != m:
        raise ValueError(
            f"n_nonzero must be one number or one per component: got {len(n_nonzero)} for {m} components"
        )
    return np.array([whole(k, "n_nonzero", 1, d, "the number of features") for k in n_nonzero])
