"""Options of a fit: the parameters of an estimator, checked, and the thresholds in the units of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from givens.numerics import parallel
from givens.schedules import Schedule, as_schedule
from givens.support.arguments import finite, whole

DEFAULT_ALPHA = 0.05
SPARSITY = ("gamma", "alpha", "n_nonzero", "n_nonzero_total")


@dataclass(frozen=True)
class FitOptions:
    """Checked options. Either `level`, the threshold of |y|, or `counts`, the numbers of non-zeros, decides the sparsity.

    With `divide` only the sum of the counts is given, and they divide it among the components; with `keep_order` the components
    stay in the order of their counts. With `regrow`, refitting the loadings of a threshold may also exchange their features.
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
    keep_order: bool = False
    regrow: bool = False

    @property
    def refits(self) -> bool:
        """Whether values are refitted; columns that are taken as they are keep theirs."""
        return self.refit and self.max_iter > 0

    def all_columns(self, rows: int) -> bool:
        """Whether all columns of U are rotated, which needs the data as an array."""
        return self.counts is None and (self.m == rows or self.schedule is not None)


def fit_options(
    model: Any, m: int, norms: np.ndarray, unit: float = 1.0, growth: float = 1.0, *, least_sweeps: int = 1
) -> FitOptions:
    """The checked options of an estimator of sparse components.

    Parameters
    ----------
    model : SparsePCA or StreamingSparsePCA
    m : int
        Number of components.
    norms : array, shape (features,)
        Of the features, in this `unit`.
    unit : float
    growth : float
        What the threshold of |y| is multiplied by.
    least_sweeps : int
        The least value of `max_iter`.
    """
    d, total = len(norms), getattr(model, "n_nonzero_total", None)
    check_sparsity(model, [name for name in SPARSITY if hasattr(model, name)])
    counts = None
    if model.n_nonzero is not None:
        counts = counts_of_components(model.n_nonzero, m, d)
    elif total is not None:
        counts = equal_counts(model, m, d)
    parallel.count(model.threads)
    return FitOptions(
        m=m,
        level=threshold(model, float(norms.max()), unit, growth) if counts is None else 0.0,
        l0=model.penalty == "l0",
        counts=counts,
        refit=bool(model.refit),
        tol=finite(model.tol, "tol"),
        max_iter=whole(model.max_iter, "max_iter", least_sweeps),
        n_starts=whole(model.n_starts, "n_starts", 1),
        threads=model.threads,
        schedule=_schedule(model),
        divide=total is not None,
        keep_order=total is not None or np.ndim(model.n_nonzero) > 0,
        regrow=hasattr(model, "drop"),
    )


def threshold(model: Any, top: float, unit: float = 1.0, growth: float = 1.0) -> float:
    """The threshold of |y|: γ times the growth, in this unit, or a share of the largest norm of a feature, `top`."""
    alpha = checked_alpha(model.alpha)
    gamma = alpha if model.gamma is None else finite(model.gamma, "gamma")
    level = float(np.sqrt(gamma) if model.penalty == "l0" else gamma)
    # A larger threshold than the largest norm leaves nothing either, and its square might overflow.
    return level * top if model.gamma is None else min(level * growth / unit, 2.0 * top)


def check_sparsity(model: Any, names: Sequence[str]) -> None:
    """Refuse an unknown penalty, and more than one of the parameters that decide the sparsity."""
    if model.penalty not in ("l1", "l0"):
        raise ValueError(f"penalty must be 'l1' or 'l0', got {model.penalty!r}")
    given = [name for name in names if getattr(model, name) is not None]
    if len(given) > 1:
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
        raise ValueError(f"give only one of {listed}, got {' and '.join(given)}")


def checked_alpha(alpha: Any) -> float:
    """The parameter `alpha`, or its default."""
    alpha = DEFAULT_ALPHA if alpha is None else finite(alpha, "alpha")
    if alpha > 1:
        raise ValueError(f"alpha is a share of the largest useful threshold, between 0 and 1, got {alpha!r}")
    return alpha


def counts_of_components(n_nonzero: Any, m: int, d: int) -> np.ndarray:
    """`n_nonzero` as a count for each of m components of d features."""
    if np.ndim(n_nonzero) == 0:
        return np.full(m, whole(n_nonzero, "n_nonzero", 1, d, "the number of features"))
    if len(n_nonzero) != m:
        raise ValueError(
            f"n_nonzero must be one number or one per component: got {len(n_nonzero)} for {m} components"
        )
    return np.array([whole(k, "n_nonzero", 1, d, "the number of features") for k in n_nonzero])


def equal_counts(model: Any, m: int, d: int) -> np.ndarray:
    """`n_nonzero_total` divided evenly among m components of d features."""
    total = whole(model.n_nonzero_total, "n_nonzero_total", 1, m * d, "the number of all entries")
    if total < m:
        raise ValueError(f"n_nonzero_total must be at least one for each of {m} components, got {total}")
    if not model.refit:
        raise ValueError(
            "n_nonzero_total shares out counts by the variance that refitting explains: say refit=True"
        )
    return total // m + (np.arange(m) < total % m)


def _schedule(model: Any) -> Schedule | None:
    schedule = getattr(model, "schedule", None)
    if schedule is None:
        return None
    if model.n_nonzero is not None or model.n_nonzero_total is not None:
        raise ValueError(
            "schedule is the order of rotations with a fixed threshold: give gamma or alpha, not n_nonzero"
        )
    return as_schedule(schedule)
