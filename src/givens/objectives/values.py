"""Values and derivatives of a user's function, checked when they come and divided by one power of two."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from threading import Lock
from typing import Any

import numpy as np

from givens.objectives.base import NotFinite

Jacobian = Callable[[np.ndarray], np.ndarray] | bool | None
HessianProduct = Callable[[np.ndarray, np.ndarray], np.ndarray] | None

_counting = Lock()  # several threads may call a function


class Values:
    """The value of f, its gradient ∂f/∂U, and products of its second derivatives.

    Parameters
    ----------
    f, jac, hess : callable
        As in `Function`.
    shape : tuple of int
        The shape of U.

    Attributes
    ----------
    factor : float
        A power of two by which everything is divided, so that squares neither overflow nor vanish.
    evaluations : int
        Number of calls of f so far.
    """

    def __init__(
        self, f: Callable[[np.ndarray], Any], jac: Jacobian, hess: HessianProduct, shape: tuple[int, int]
    ) -> None:
        if not callable(f):
            raise TypeError(f"f must be a function of U, got {type(f).__name__}")
        if not (jac is None or isinstance(jac, bool) or callable(jac)):
            raise TypeError(f"jac must be a function of U, or True, got {type(jac).__name__}")
        if not (hess is None or callable(hess)):
            raise TypeError(f"hess must be a function of U and a direction, got {type(hess).__name__}")
        self.f, self.jac, self.hess, self.shape = f, jac or None, hess, shape
        if hess is not None and self.jac is None:
            raise ValueError("hess needs the gradient too: give jac")
        self.factor = 1.0
        self.evaluations = 0

    def __call__(self, U: np.ndarray) -> float:
        """The value, which may be infinite. f may overwrite U."""
        returned = self._evaluate(U)
        return real_number(_both(returned)[0] if self.jac is True else returned) / self.factor

    def finite(self, U: np.ndarray) -> float:
        """The value, where it has to be finite. f may overwrite U."""
        value = self(U)
        if value == math.inf:
            raise NotFinite(
                "f returned inf where two columns are rotated; searches of their angle need a function that is finite "
                "everywhere, descent along a gradient does not (jac=, method='descent', certify=False)"
            )
        return value

    def with_gradient(self, U: np.ndarray) -> tuple[float, np.ndarray | None]:
        """The value and the gradient; no gradient where the value is infinite."""
        if callable(self.jac):
            value = self(U.copy())
            E = None if value == math.inf else self.jac(U.copy())
        else:
            value, E = _both(self._evaluate(U.copy()))
            value = real_number(value) / self.factor
        return value, None if value == math.inf else self._matrix(E, "jac")

    def hessian_product(self, U: np.ndarray, V: np.ndarray) -> np.ndarray:
        """The derivative of the gradient at U along V."""
        assert self.hess is not None
        return self._matrix(self.hess(U.copy(), V.copy()), "hess")

    def _evaluate(self, U: np.ndarray) -> Any:
        with _counting:
            self.evaluations += 1
        return self.f(U)

    def _matrix(self, E: Any, name: str) -> np.ndarray:
        E = real_matrix(E, name, self.shape)
        E /= self.factor
        return E


def _both(returned: Any) -> tuple[Any, Any]:
    if isinstance(returned, tuple | list) and len(returned) == 2:
        return returned[0], returned[1]
    raise TypeError(
        f"with jac=True f must return the value and the gradient, but it returned {type(returned).__name__}"
    )


def real_number(value: Any) -> float:
    """The value that f returned, as a float: a number, or an array of one; an error if it is no real number, NaN or −inf."""
    # Nearly every f returns a float: it is checked first.
    if not isinstance(value, float) and isinstance(value, np.ndarray | np.generic) and value.size == 1:
        if value.dtype in (np.float32, np.float16):
            raise TypeError(
                f"f must compute in double precision, but it returned a number of type {value.dtype}; convert its data to "
                "float64"
            )
        value = value.item()
    if not isinstance(value, float | Real):
        kind = type(value).__name__
        if isinstance(value, np.ndarray):
            kind = f"an array of shape {value.shape}; sum it, or choose one of its entries"
        raise TypeError(f"f must return one real number, but it returned {kind}")
    value = float(value)
    if math.isnan(value) or value == -math.inf:
        raise NotFinite(
            f"f must be finite, or inf where it is not defined, but it returned {value} for an orthogonal matrix"
        )
    return value


def real_matrix(E: Any, name: str, shape: tuple[int, int]) -> np.ndarray:
    """A copy of the matrix that `jac` or `hess` returned; an error if it is no matrix of real numbers of this shape."""
    # A copy, since a function may return the same array every time. Nearly every function returns an array of floats.
    if type(E) is np.ndarray and E.dtype == np.float64:
        E = E.copy()
    else:
        try:
            kind = "None" if E is None else "complex numbers" if np.iscomplexobj(E) else ""
            E = E if kind else np.array(E, dtype=np.float64, order="C")
        except (TypeError, ValueError):
            kind = type(E).__name__
        if kind:
            raise TypeError(
                f"{name} must return a matrix of {shape[0]} x {shape[1]} real numbers, but it returned {kind}"
            )
    if E.shape != shape:
        raise ValueError(f"{name} must return a matrix of shape {shape}, but it returned shape {E.shape}")
    return E
