"""Options of a fit: the parameters of an estimator, checked, and the thresholds in the units of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from givens.numerics import parallel
from givens.schedules import Schedule, as_schedule
from givens.support.arguments import finite, whole

if TYPE_CHECKING:  # the command reads options, and starts without what its work needs
    from givens.sparse_pca.centred_data import FeatureMoments

DEFAULT_ALPHA = 0.05
SPARSITY = ("gamma", "alpha", "n_nonzero", "n_nonzero_total")


@dataclass(frozen=True)
class FitOptions:
    """Checked options. Either `level`, the threshold of |y|, or `counts`, the numbers of non-zeros, decides the sparsity.

    With `divide` only the sum of the counts is given, and they divide it among the components.
    """

    m: int
    level: float
    l0: bool
    counts: np.ndarray | None
    refit: bool
    tol: float
    max_sweeps: int
    n_starts: int
    threads: int | None
    progress: bool
    schedule: Schedule | None = None
    divide: bool = False

    def all_columns(self, rows: int) -> bool:
        """Whether all columns of U are rotated, which needs the data as an array."""
        return self.counts is None and (self.m == rows or self.schedule is not None)


def fit_options(model: Any, found: FeatureMoments, n_obs: int) -> FitOptions:
    """The checked options of a `SparsePCA`, for n_obs samples of features with these norms."""
    d = len(found.norms)
    most = min(n_obs, d)
    m = most
    if model.n_components is not None:
        m = whole(model.n_components, "n_components", 1, most, "the number of samples or features")
    if not found.norms.any():
        raise ValueError("every feature of X is constant, so there is no variance to explain")
    check_sparsity(model, SPARSITY)
    l0 = model.penalty == "l0"
    counts = None
    level = 0.0
    top = float(found.norms.max())
    if model.n_nonzero is not None:
        counts = counts_of_components(model.n_nonzero, m, d)
    elif model.n_nonzero_total is not None:
        counts = equal_counts(model, m, d)
    elif model.gamma is not None:
        gamma = finite(model.gamma, "gamma")
        # A larger threshold leaves nothing either, and its square might overflow.
        level = min(float(np.sqrt(gamma) if l0 else gamma) / found.unit, 2.0 * top)
    else:
        alpha = checked_alpha(model.alpha)
        level = top * (np.sqrt(alpha) if l0 else alpha)
    parallel.count(model.threads)
    return FitOptions(
        m=m,
        level=level,
        l0=l0,
        counts=counts,
        refit=bool(model.refit),
        tol=finite(model.tol, "tol"),
        max_sweeps=whole(model.max_sweeps, "max_sweeps", 1),
        n_starts=whole(model.n_starts, "n_starts", 1),
        threads=model.threads,
        progress=bool(model.progress),
        schedule=_schedule(model),
        divide=model.n_nonzero_total is not None,
    )


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
    if model.schedule is None:
        return None
    if model.n_nonzero is not None or model.n_nonzero_total is not None:
        raise ValueError(
            "schedule is the order of rotations with a fixed threshold: give gamma or alpha, not n_nonzero"
        )
    return as_schedule(model.schedule)
