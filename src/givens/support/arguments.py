"""Checks of arguments. Each error is one sentence that says what is wrong, and a warning points to the line of the caller."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np

Samples: TypeAlias = Any
"""Any source of rows, such as an array, a data frame, a sparse matrix, a file or a dask array; `data.rows` lists them all."""

EPS = float(np.finfo(np.float64).eps)  # a relative rounding error of float64 is at most half of this
LARGEST_COUNT = 2**31 - 1  # larger counts are mistakes, and compiled code may not hold them
# Of the real data of the benchmarks no feature has more than 0.12 of the variance, unscaled. The sum of all features, as one more
# of them, has 0.985 to 0.997 of it in three of four (in the fourth, whose samples were scaled to a common sum, 0.01).
DOMINANT_SHARE = 0.9


def whole(value: Any, name: str, least: int, most: int | None = None, what: str = "") -> int:
    """Return a whole number of at least `least` and at most `most` (`what` that is), which may come as a float (1e3, say).

    >>> whole(1e3, "max_iter", 1)
    1000
    """
    # The first type is Python's own: for the abstract one alone, the check would take longer.
    good = isinstance(value, (int, Integral)) or (isinstance(value, Real) and float(value).is_integer())
    good = good and not isinstance(value, bool)
    largest = LARGEST_COUNT if most is None else most
    if not good or not least <= value <= largest:
        limit = f"from {least} to {largest}" + (f", {what}" if what else "")
        if most is None and not (good and value > largest):
            limit = f"of at least {least}"
        raise ValueError(f"{name} must be a whole number {limit}, got {value!r}")
    return int(value)


def refuse_no_counts(**numbers: Any) -> None:
    """Refuse arguments that are no whole numbers of at least 1.

    >>> refuse_no_counts(n_samples=10, n_features=0)
    Traceback (most recent call last):
    ValueError: n_features must be a whole number of at least 1, got 0
    """
    for name, number in numbers.items():
        whole(number, name, 1)


def number_or_share(
    value: Any, name: str, most: int | None = None, what: str = ""
) -> tuple[int | None, float | None]:
    """Return what was asked for as a number, from 1 to `most`, or as a share of the variance, between 0 and 1; None: neither.

    A float of 1.0 is refused: as a number it would be one, as a share all.

    >>> number_or_share(3, "n_components"), number_or_share(0.9, "n_components"), number_or_share(None, "n_components")
    ((3, None), (None, 0.9), (None, None))
    """
    if value is None:
        return None, None
    if isinstance(value, Real) and not isinstance(value, Integral):
        if 0 < float(value) < 1:
            return None, float(value)
        if float(value) == 1:
            raise ValueError(f"{name}={value!r} may mean one or all: write {name}=1 for one, None for all")
    return whole(value, name, 1, most, what), None


def finite(value: Any, name: str) -> float:
    """Return a finite number of at least 0."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) < np.inf:
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
    return float(value)


def tolerance(value: Any, name: str) -> float:
    """Return a number of at least 0, which may be infinite."""
    if not isinstance(value, (float, Real)) or isinstance(value, bool) or not float(value) >= 0:
        raise ValueError(f"{name} must be a number of at least 0, got {value!r}")
    return float(value)


def one_of(value: Any, name: str, options: Iterable[str], others: str = "") -> None:
    """Refuse what is none of some names; `others` says what else it may be.

    >>> one_of("full", "variance", ("common", "distinct"))
    Traceback (most recent call last):
    ValueError: variance must be one of 'common', 'distinct', got 'full'
    """
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}{others}, got {value!r}")


def generator(random_state: Any) -> np.random.Generator:
    """Return the random generator that a seed, a generator of either kind, or None stands for."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state must be a whole number of at least 0, a Generator, a RandomState or None, got {random_state!r}"
        ) from None


def are(number: int, one: str, several: str) -> str:
    """Return how many there are, as the subject of a sentence.

    >>> are(1, "entry", "entries"), are(2000, "entry", "entries")
    ('1 entry is', '2,000 entries are')
    """
    return f"1 {one} is" if number == 1 else f"{number:,} {several} are"


def counted(number: int, one: str, several: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "sweep", "sweeps"), counted(3, "sweep", "sweeps")
    ('1 sweep', '3 sweeps')
    """
    return f"{number} {one if number == 1 else several}"


def dense(rows: Any) -> Any:
    """Return the rows of a sparse matrix as an array, and those of anything else as they are."""
    return rows.toarray() if hasattr(rows, "toarray") else rows


def one_entry_each(X: Any) -> Any:
    """Return X; of a sparse X whose entries are not in order, or share places, a copy with one entry at each place, their sum.

    >>> from scipy import sparse
    >>> X = sparse.csr_array((np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 3))
    >>> one_entry_each(X).nnz, X.nnz
    (1, 2)
    """
    if getattr(X, "format", "") == "bsr":
        X = X.tocsr()
    if not hasattr(X, "sum_duplicates") or X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def is_dask(X: Any) -> bool:
    """Whether X is a dask array (which has blocks and partitions) or data frame (partitions alone)."""
    return hasattr(X, "dask") and hasattr(X, "partitions")


def sample_weights(sample_weight: Any, samples: int | None) -> np.ndarray:
    """Return weights as float64: one number for each sample, finite, none negative, and not all zero.

    `samples` is their number, or None where it is not known yet; where it is, one number stands for all of them.

    >>> sample_weights([1, 2], 2)
    array([1., 2.])
    """
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0 and samples is not None:
        weights = np.full(samples, weights)
    if weights.ndim != 1 or (samples is not None and len(weights) != samples):
        wanted = "each sample" if samples is None else f"each of {samples} samples"
        raise ValueError(f"sample_weight must be one number for {wanted}, got shape {weights.shape}")
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise ValueError(
            f"sample_weight must be finite and not negative, but that of sample {wrong[0]} is {weights[wrong[0]]}"
        )
    if len(weights) and not weights.any():
        raise ValueError("every number of sample_weight is zero, so there is no sample to learn from")
    return weights


def weighted_rows(X: Any, sample_weight: Any, *, counted: bool) -> tuple[Any, np.ndarray | None]:
    """Return the samples of positive weight, and their weights; None without weights. If `counted`, they must sum to more than 1.

    >>> weighted_rows(np.eye(3), [2, 0, 1], counted=True)[1]
    array([2., 1.])
    """
    if sample_weight is None:
        return X, None
    weights = sample_weights(sample_weight, X.shape[0])
    positive = weights > 0
    if positive.sum() < 2 or (counted and weights.sum() <= 1):
        more = " and sum to more than 1, since it counts samples" if counted else ""
        raise ValueError(
            f"sample_weight must be positive for at least two samples{more}; {int(positive.sum())} are positive, and the sum is "
            f"{weights.sum():g}"
        )
    return (X, weights) if positive.all() else (X[positive], weights[positive])


def as_array(A: Any, name: str) -> np.ndarray:
    """Return the argument as an array, or raise an error that says why it is none."""
    if hasattr(A, "toarray"):
        raise TypeError(f"{name} must be dense, got a sparse {type(A).__name__}; pass {name}.toarray()")
    try:
        return np.asarray(A)
    except ValueError:
        raise ValueError(f"{name} must be an array, got a sequence of unequal parts") from None


def refuse_mask(X: Any, name: str) -> None:
    """Refuse a masked array in which something is masked: NumPy's functions, and so ours, would use what is below the mask.

    >>> import numpy as np
    >>> refuse_mask(np.ma.masked_equal([1.0, -9.0], -9.0), "X")
    Traceback (most recent call last):
    ValueError: X is a masked array in which 1 entry is masked, and would be used as if nothing were: ...
    """
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        number = int(np.ma.count_masked(X))
        raise ValueError(
            f"{name} is a masked array in which {are(number, 'entry', 'entries')} masked, and would be used as "
            f"if nothing were: pass {name}.filled(value), or np.ma.compress_rows({name}) to leave out the rows that have any"
        )


def warn_caller(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn as if the line that called this package, or scikit-learn with one of its estimators, had done so."""
    packages = "givens", "sklearn"  # scikit-learn wraps methods such as `fit_transform`
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).split(".")[0] in packages:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


class DominantFeatureWarning(UserWarning):
    """One feature has nearly all of the variance: `feature` is its number, from 0, and `share` its share of it."""

    def __init__(self, feature: int, share: float, name: str | None = None) -> None:
        super().__init__(feature, share, name)
        self.feature, self.share, self.name = feature, share, name

    def __str__(self) -> str:
        called = f"feature {self.feature}" if self.name is None else f"feature '{self.name}'"
        return (
            f"{called} has {100 * self.share:.1f} % of the variance, so the components describe little else: "
            "give all features the same variance (scale=True), or leave it out if it is a total or a number of rows"
        )


def warn_of_dominant_feature(variances: np.ndarray, total: float, names: Any = None) -> None:
    """Warn if one of several features has nearly all of the variance; `variances` are in any unit, that of `total`.

    It may be a total, a number of rows, or in much smaller units than the others; the components are then this feature, and
    nothing else in the results shows it.
    """
    # Of two or three features, one often has nearly all of the variance.
    if np.count_nonzero(variances) < 5:
        return
    feature = int(np.argmax(variances))
    share = float(variances[feature]) / total
    if DOMINANT_SHARE < share < np.inf:
        warn_caller(DominantFeatureWarning(feature, share, None if names is None else str(names[feature])))
