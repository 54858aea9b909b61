"""A function of n x m matrices V with orthonormal columns, m < n: of points of the Stiefel manifold.

Such a V is the first m columns of an orthogonal U = [V W], and f does not depend on W. The pairs of columns that f depends on are
those inside V, and those of a column of V and one of W. With E = ∂f/∂V their slopes are EᵀV − VᵀE and EᵀW. The second of these
are R = W(WᵀE) in the coordinates of the n-dimensional space, where

    R  =  (I − VVᵀ) E.

So descent computes nothing of order n², and W need not be chosen: `solve.charts` makes steps from these slopes. Rotations of two
columns need a W; any will do, and the loop chooses one (`Run.complete`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from givens.objectives.base import Look, Plan
from givens.objectives.function import Function, FunctionState, Jacobian
from givens.rotations import complete, random_orthogonal, repair
from givens.support.arguments import whole


@lru_cache(maxsize=8)
def _probe_place(n: int, m: int) -> np.ndarray:
    return random_orthogonal(n, np.random.default_rng(0), columns=m)


class StiefelFunction(Function):
    """A function f(V) -> float of n x m matrices with orthonormal columns.

    `minimize(f, n=n, m=m)` makes one. By default runs consist of descent.

    Parameters
    ----------
    f : callable
        Gets a copy of V, an n x m array, and returns a real number.
    n : int
        Number of rows.
    m : int
        Number of columns, m < n.
    degree : int, optional
        The degree of f, if it is a polynomial in the entries of V, for exact rotations of two columns, as in `Function`.
    jac : callable or True, optional
        The matrix ∂f/∂V of partial derivatives, in Euclidean space: a function of V, or True if f returns the value and this
        matrix. Without it, slopes are finite differences, from two values of f for each of the m(2n − m − 1)/2 pairs in each
        step, and from four more where all slopes are small; V is then completed to a square matrix.
    check_jac : bool, default=True
        Compare `jac` with a finite difference once, before the run.
    near : array, optional
        A matrix where f is finite, if f is infinite for others, as in `Function`.

    Attributes
    ----------
    evaluations : int
        Number of calls of f so far.

    Examples
    --------
    The two leading eigenvectors of a symmetric matrix of order 100:

    >>> import numpy as np
    >>> from givens import minimize
    >>> from givens.objectives import StiefelFunction
    >>> A = np.random.default_rng(0).standard_normal((100, 100)); A = A + A.T
    >>> weights = np.array([2.0, 1.0])
    >>> f = StiefelFunction(lambda V: -np.sum(weights * V * (A @ V)), 100, 2, jac=lambda V: -2 * weights * (A @ V))
    >>> V = minimize(f, random_state=0).U
    >>> V.shape
    (100, 2)
    >>> np.allclose(np.diag(V.T @ A @ V), np.linalg.eigvalsh(A)[:-3:-1])
    True
    """

    def __init__(
        self,
        f: Callable[[np.ndarray], Any],
        n: int,
        m: int,
        degree: int | None = None,
        jac: Jacobian = None,
        *,
        check_jac: bool = True,
        near: np.ndarray | None = None,
    ) -> None:
        self.m = whole(m, "m", 1, whole(n, "n", 2) - 1, "n - 1")
        super().__init__(f, n, degree, jac, check_jac=check_jac, near=near)

    def _columns(self) -> int:
        return self.m

    def _place(self) -> np.ndarray:
        return _probe_place(self.n, self.m)

    def _turn(self, start: np.ndarray, theta: float, first: int = 0) -> np.ndarray:
        """Rotate pairs of rows: f may not change where columns rotate, and a single one has nothing to rotate with."""
        return np.ascontiguousarray(super()._turn(start.T, theta, first).T)

    def _curve(self, U: np.ndarray, slopes: np.ndarray) -> tuple[Callable[[float], np.ndarray], float]:
        rng = np.random.default_rng(0)
        inside, beyond = np.triu(rng.standard_normal((self.m, self.m)), 1), rng.standard_normal(U.shape)
        beyond -= U @ (U.T @ beyond)
        size = math.sqrt(np.vdot(inside, inside) + np.vdot(beyond, beyond))
        tangent = (beyond + U @ (inside.T - inside)) / size
        slope = (np.vdot(inside, slopes[: self.m]) + np.vdot(beyond, slopes[self.m :])) / size
        # For steps of 1e-4 and less, the columns are orthonormal up to rounding errors after one repair.
        return lambda step: repair(U + step * tangent), float(slope)

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """A random matrix with orthonormal columns."""
        return random_orthogonal(self.n, rng, columns=self.m)

    def plan(self) -> Plan:
        """Descent alone: where n is large, a sweep takes very many evaluations."""
        return Plan(phases=("descent",), stiefel=True)

    def look(self, state: FunctionState, Q: np.ndarray | None = None, slopes: bool = True) -> Look:
        """Value and slopes at V, or at the matrix Q.

        Slopes are an array of m + n rows and m columns: those inside V, an antisymmetric matrix, and below it R.
        """
        if self.jac is None and not slopes and Q is None:
            return Look(self.value(state))
        V = state.Ut[: self.m].T.copy() if Q is None else Q
        if self.jac is not None:
            value, first, E = self._with_gradient(V)
            return Look(value, first, None, 12.0 * self.n * self.m**2, gradient=E)
        value = self(V.copy()) / self.factor
        if value == math.inf:
            return Look(value, np.zeros(self._slopes_shape()))
        return Look(value, self._by_differences(V, value))

    def _slopes(self, E: np.ndarray, U: np.ndarray) -> tuple[np.ndarray, bool]:
        P = U.T @ E
        R = E - U @ P
        R -= U @ (U.T @ R)  # the first time leaves rounding errors of the size of E
        slopes = np.concatenate([P.T - P, R])
        return slopes, bool(np.isfinite(slopes).all())

    def _slopes_shape(self) -> tuple[int, int]:
        return self.m + self.n, self.m

    def _by_differences(self, V: np.ndarray, value: float) -> np.ndarray:
        """The slopes, by central differences along rotations of two columns of [V W], for some W."""
        U = complete(V)
        upper = self._differences(U, value)[0][: self.m]
        inside = upper[:, : self.m]
        return np.concatenate([inside - inside.T, U[:, self.m :] @ upper[:, self.m :].T])
