"""What the estimators share: checks of samples, fits that take effect all at once or not at all, and scores.

`validate_data` and `check_array` are scikit-learn's, but refuse masks, and sum the entries of a sparse matrix that share a place:
products with such a matrix are right, sums of squares of its entries are not.

An estimator that assigns its fitted attributes one after the other is left with some of the old and some of the new ones when
its data are refused or the user interrupts it, and then predicts nonsense silently. `atomic_fit` runs a fit on a copy of
the estimator and gives the estimator the copy's attributes in one step at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, validation
from sklearn.utils.validation import check_is_fitted

from givens.support.arguments import Samples, one_entry_each, refuse_mask, warn_caller

Arguments = ParamSpec("Arguments")
Model = TypeVar("Model")
Returned = TypeVar("Returned")


def warn_unless_converged(converged: bool, message: str) -> None:
    """Warn, with the reason, of a run that did not converge."""
    if not converged:
        warn_caller(message, ConvergenceWarning)


def validate_data(estimator: BaseEstimator, X: Samples, **options: Any) -> Any:
    """As scikit-learn's `validate_data`; a sparse X has one entry at each place."""
    refuse_mask(X, "X")
    return validation.validate_data(estimator, one_entry_each(X), **options)


def check_array(X: Samples, *, input_name: str = "X", **options: Any) -> Any:
    """As scikit-learn's `check_array`; a sparse X has one entry at each place."""
    refuse_mask(X, input_name)
    return validation.check_array(one_entry_each(X), input_name=input_name, **options)


def finite_or_missing(X: Samples, allowed: bool) -> bool | str:
    """The argument `ensure_all_finite` of scikit-learn's checks: NaN is allowed where missing values are estimated.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.support.fitting import finite_or_missing
    >>> finite_or_missing(np.ones((2, 2)), True), finite_or_missing(np.ones((2, 2)), False)
    ('allow-nan', True)
    """
    return "allow-nan" if allowed and not sparse.issparse(X) else True


def atomic_fit(
    method: Callable[Concatenate[Model, Arguments], Returned],
) -> Callable[Concatenate[Model, Arguments], Returned]:
    """Decorate `fit`, `partial_fit` and the like: whatever they raise, the estimator is as it was before the call.

    Inside the method `self` is a shallow copy of the estimator: assign attributes to it in any order, delete those of an earlier
    fit, return `self`. When the method returns, the estimator takes over all attributes of the copy, and drops those that the
    copy no longer has, by one assignment of ``__dict__``, which no signal can interrupt. Other threads see the old model or the
    new one.

    A model whose fitted numbers are not all finite is refused.

    Two things to know:

    - What the estimator holds already (arrays, lists, objects of an earlier fit) is shared with the copy: replace it, never
      change it in place.
    - Whatever the method changes outside the estimator stays changed.

    Examples
    --------
    >>> from givens.support.fitting import atomic_fit
    >>> class Mean:
    ...     @atomic_fit
    ...     def fit(self, X):
    ...         self.count_ = len(X)
    ...         self.mean_ = sum(X) / len(X)
    ...         return self
    >>> model = Mean().fit([1, 2, 3])
    >>> try:
    ...     model.fit([])
    ... except ZeroDivisionError:
    ...     print(model.count_, model.mean_)
    3 2.0
    """

    @wraps(method)
    def fit(self: Model, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
        copy = _shallow_copy(self)
        returned: Any = method(copy, *args, **kwargs)
        _refuse_overflow(copy)
        self.__dict__ = copy.__dict__
        return cast(Returned, self) if returned is copy else returned

    return fit


def _refuse_overflow(model: Any) -> None:
    """Refuse a model whose fitted numbers are not all finite: squares of the data have left the range of numbers.

    `_may_be_infinite` of the class names the attributes that are infinite by definition.
    """
    infinite = getattr(model, "_may_be_infinite", ())
    for name, value in vars(model).items():
        fitted = name.endswith("_") and not name.startswith("_")
        if not fitted or not isinstance(value, float | np.floating | np.ndarray):
            continue
        if np.asarray(value).dtype.kind == "f" and not _fine(value, name in infinite):
            raise ValueError(
                f"{name} of {type(model).__name__} would not be finite: the data are too large or too small for their "
                "variances to be numbers; divide them by a constant of their size"
            )


def _fine(value: Any, infinite: bool) -> bool:
    return not np.isnan(value).any() if infinite else bool(np.isfinite(value).all())


def _shallow_copy(model: Model) -> Model:
    """A shallow copy that does not call `__getstate__`, as `copy.copy` would."""
    copy = model.__class__.__new__(model.__class__)
    copy.__dict__.update(model.__dict__)
    return copy


class Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """An estimator whose scores have a column for each row of `components_`, in the precision of the data."""

    components_: Any

    def _checked_scores(self, X: Samples) -> np.ndarray:
        """Scores that are to be transformed back, which must have a column for each component."""
        check_is_fitted(self)
        scores = check_array(
            X,
            dtype=[np.float64, np.float32],
            ensure_2d=False,
            allow_nd=True,
            ensure_min_samples=0,
            input_name="X",
        )
        if scores.ndim != 2 or scores.shape[1] != self._n_features_out:
            raise ValueError(
                f"X must have a column for each of {self._n_features_out} components, got shape {scores.shape}"
            )
        return scores

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
