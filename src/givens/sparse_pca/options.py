"""What users may ask of sparse PCA, checked, and turned into what the solver takes."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from givens.numerics import parallel
from givens.numerics.scaling import binary_exponent
from givens.schedules import Schedule, as_schedule
from givens.sparse_pca.data import FeatureMoments
from givens.sparse_pca.penalised import FitOptions, Loadings
from givens.support.arguments import whole

DEFAULT_ALPHA = 0.05


def _number(value: Any, name: str) -> float:
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) < np.inf:
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
    return float(value)


def options(model: Any, found: FeatureMoments, n_obs: int) -> FitOptions:
    """The checked options of a model, for data with these norms."""
    d = len(found.norms)
    most = min(n_obs, d)
    m = most
    if model.n_components is not None:
        m = whole(model.n_components, "n_components", 1, most, "the number of samples or features")
    if not found.norms.any():
        raise ValueError("every feature of X is constant, so there is no variance to explain")
    if model.penalty not in ("l1", "l0"):
        raise ValueError(f"penalty must be 'l1' or 'l0', got {model.penalty!r}")
    given = [name for name in ("gamma", "alpha", "n_nonzero") if getattr(model, name) is not None]
    if len(given) > 1:
        raise ValueError(f"give only one of gamma, alpha and n_nonzero, got {' and '.join(given)}")
    l0 = model.penalty == "l0"
    counts = None
    level = 0.0
    top = float(found.norms.max())
    if model.n_nonzero is not None:
        counts = _counts(model.n_nonzero, m, d)
    elif model.gamma is not None:
        gamma = _number(model.gamma, "gamma")
        # Beyond the largest norm nothing is left in any case, and no square overflows.
        level = min(float(np.sqrt(gamma) if l0 else gamma) / found.unit, 2.0 * top)
    else:
        alpha = DEFAULT_ALPHA if model.alpha is None else _number(model.alpha, "alpha")
        if alpha > 1:
            raise ValueError(
                f"alpha is a share of the largest useful threshold, between 0 and 1, got {alpha!r}"
            )
        level = top * (np.sqrt(alpha) if l0 else alpha)
    parallel.count(model.threads)
    return FitOptions(
        m=m,
        level=level,
        l0=l0,
        counts=counts,
        refit=bool(model.refit),
        tol=_number(model.tol, "tol"),
        max_sweeps=whole(model.max_sweeps, "max_sweeps", 1),
        n_starts=whole(model.n_starts, "n_starts", 1),
        threads=model.threads,
        progress=bool(model.progress),
        schedule=_schedule(model),
    )


def _schedule(model: Any) -> Schedule | None:
    if model.schedule is None:
        return None
    if model.n_nonzero is not None:
        raise ValueError(
            "schedule is the order of rotations with a fixed threshold: give gamma or alpha, not n_nonzero"
        )
    return as_schedule(model.schedule)


def _counts(n_nonzero: Any, m: int, d: int) -> np.ndarray:
    if np.ndim(n_nonzero) == 0:
        return np.full(m, whole(n_nonzero, "n_nonzero", 1, d, "the number of features"))
    if len(n_nonzero) != m:
        raise ValueError(
            f"n_nonzero must be one number or one per component: got {len(n_nonzero)} for {m} components"
        )
    return np.array([whole(k, "n_nonzero", 1, d, "the number of features") for k in n_nonzero])


def screen(norms: np.ndarray, asked: FitOptions) -> np.ndarray:
    """The features that can enter a component: those with norms above the level, and never fewer than are needed."""
    kept = np.flatnonzero(norms > (asked.level if asked.counts is None else 0.0))
    need = asked.m if asked.counts is None else max(asked.m, int(asked.counts.max()))
    return kept if len(kept) >= need else np.sort(np.argsort(-norms, kind="stable")[:need])


def fill_empty(loadings: Loadings, features: np.ndarray, norms: np.ndarray) -> tuple[np.ndarray, int]:
    """Give each component of zeros its largest entry, no two of them the same; returns the loadings and how many."""
    Z = loadings.Z.copy()
    empty = np.flatnonzero(~Z.any(axis=1))
    taken = np.zeros(Z.shape[1], dtype=bool)
    for j in empty:
        sizes = np.where(taken, -1.0, np.abs(loadings.Y[j]))
        if sizes.max() <= 0:
            sizes = np.where(taken | Z.any(axis=0), -1.0, norms[features])
        if sizes.max() < 0:
            sizes = norms[features]
        where = int(np.argmax(sizes))
        Z[j, where] = -1.0 if loadings.Y[j, where] < 0 else 1.0
        taken[where] = True
    return Z, len(empty)


def factor_covariance(R: np.ndarray, n_obs: int, scale: bool) -> tuple[np.ndarray, FeatureMoments]:
    """A matrix whose sums of squares and products are (n_obs − 1)·R, as if it were centred data."""
    n_obs = whole(n_obs, "n_obs", 2)
    if R.shape[0] != R.shape[1]:
        raise ValueError(f"R must be square, a row and a column per feature, got shape {R.shape}")
    R = np.asarray(R, dtype=np.float64)
    size = float(np.max(np.abs(R)))
    if size == 0:
        raise ValueError("every entry of R is zero, so there is no variance to explain")
    if np.max(np.abs(R - R.T)) > 1e-6 * size:
        raise ValueError("R must be symmetric, as covariance and correlation matrices are")
    unit = float(2.0 ** (binary_exponent(size) // 2))
    C = (R / unit / unit + (R / unit / unit).T) / 2
    divisor = np.ones(len(R))
    if scale:
        deviation = np.sqrt(np.maximum(np.diagonal(C), 0.0))
        divisor = np.where(deviation > 0, deviation, 1.0)
        C = C / np.outer(divisor, divisor)
    values, vectors = np.linalg.eigh(C)
    if values[0] < -1e-6 * np.max(np.abs(values)):
        raise ValueError(
            "R must have no negative eigenvalue, but its smallest is "
            f"{values[0] / np.max(np.abs(values)):.3g} of the largest in size"
        )
    factor = np.sqrt(np.maximum(values, 0.0) * (n_obs - 1))[:, None] * vectors.T
    factor = np.ascontiguousarray(factor[::-1])
    norms = np.linalg.norm(factor, axis=0)
    return factor, FeatureMoments(np.zeros(len(R)), divisor, norms, unit, 1.0 if scale else unit)
