"""Any function of an orthogonal matrix, or of an n x m matrix with orthonormal columns, given as a callable.

Slopes come from its gradient, or are finite differences (`angle_derivatives`). Sweeps and certificates search the angles of pairs
from values alone: g(θ) = f(U·G(i, j, θ)) is interpolated by a sum of harmonics, whose global minimum is found (`harmonics`). The
arguments are checked, and the size of f is found, by a few evaluations before the run (`probes`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from givens.numerics import flop_counts, parallel
from givens.numerics.scaling import EPS, unit_of
from givens.objectives.angle_derivatives import (
    differences,
    few_slopes,
    few_slopes_of_pairs,
    second_product,
    square_slopes,
    with_pair_rotated,
)
from givens.objectives.base import Blocks, Look, Objective, PairSolutions, Product, Rotations, gathered
from givens.objectives.harmonics import Search, periodic, polynomial
from givens.objectives.probes import check_degree, check_gradient, check_hessian, probe
from givens.objectives.values import HessianProduct, Jacobian, Values
from givens.rotations import complete, rotate_blocks, turn
from givens.support.arguments import whole


@dataclass
class FunctionState:
    """Uᵀ, and the value of f if it is known."""

    Ut: np.ndarray
    value: float | None = None


class Function(Objective):
    """A function f(U) -> float of an orthogonal matrix, or of n x m matrices with orthonormal columns.

    Parameters
    ----------
    f : callable
        Gets a copy of U, an n x n or n x m array, and returns a real number.
    n : int or tuple of int
        The order of U, or the pair (n, m) of its numbers of rows and columns.
    degree : int, optional
        The degree of f, if it is a polynomial in the entries of U: every pair problem is then solved exactly by 2·degree+1
        evaluations. Without it, harmonics are added until they predict f at three further angles, up to 64. This can miss a
        minimum that is narrower than the angles are apart; the result's message says so, and if 64 are not enough.
    jac : callable or True, optional
        The matrix ∂f/∂U of partial derivatives, in Euclidean space: a function of U, or True if f returns the value and this
        matrix. `givens.autodiff` computes it for functions written in PyTorch, JAX or autograd. Without it, slopes are finite
        differences, from two values of f for each pair of columns in each step, and from four more where all slopes are small;
        n x m matrices are then completed to square ones.
    hess : callable, optional
        For square matrices, hess(U, V) is the derivative of ∂f/∂U along the n x n matrix V: d/dt ∂f/∂U (U + tV) at t = 0. It
        needs `jac`. Runs then end with Newton's method.
    check : bool, default=True
        Compare `jac` and `hess` with finite differences once, before the run.
    near : array, optional
        A matrix where f is finite, if f is infinite for others. `minimize` takes the start.

    Attributes
    ----------
    evaluations : int
        Number of calls of f so far.

    Notes
    -----
    f must always return the same number for the same matrix. It may return infinity (a barrier), but not at the start: steps of
    descent stay where f is finite. Rotations of two columns, and so certificates, need a function that is finite everywhere.
    Before the run f is evaluated a few times near a fixed matrix, and where it is infinite there, at `near`. `minimize` calls
    it from several threads only if its argument `threads` is given. During a run BLAS uses one thread per call.

    Runs of functions of n x m matrices consist of descent by default, since a sweep takes very many evaluations if n is large.

    Examples
    --------
    The rotation nearest to a matrix (orthogonal Procrustes):

    >>> import numpy as np
    >>> from givens import minimize
    >>> from givens.objectives import Function
    >>> M = np.random.default_rng(0).standard_normal((4, 4))
    >>> f = Function(lambda U: -np.sum(U * M), n=4, degree=1, jac=lambda U: -M)
    >>> result = minimize(f, determinant="both", random_state=0)
    >>> bool(np.isclose(-result.value, np.linalg.svd(M)[1].sum()))
    True

    The two leading eigenvectors of a symmetric matrix of order 100:

    >>> A = np.random.default_rng(0).standard_normal((100, 100)); A = A + A.T
    >>> weights = np.array([2.0, 1.0])
    >>> f = Function(lambda V: -np.sum(weights * V * (A @ V)), (100, 2), jac=lambda V: -2 * weights * (A @ V))
    >>> V = minimize(f, random_state=0).U
    >>> V.shape
    (100, 2)
    >>> np.allclose(np.diag(V.T @ A @ V), np.linalg.eigvalsh(A)[:-3:-1])
    True
    """

    separable = False

    def __init__(
        self,
        f: Callable[[np.ndarray], Any],
        n: int | tuple[int, int],
        degree: int | None = None,
        jac: Jacobian = None,
        hess: HessianProduct = None,
        *,
        check: bool = True,
        near: np.ndarray | None = None,
    ) -> None:
        self.shape = self.n, self.active = order_and_columns(n)
        self.square = self.active == self.n
        self.degree = None if degree is None else whole(degree, "degree", 0)
        self.values = Values(f, jac, hess, (self.n, self.active))
        if hess is not None and not self.square:
            raise ValueError("hess is for square matrices: leave it out for n x m matrices")
        # Kinks of f may end descent early: then sweeps follow. Of n x m matrices they take too many evaluations.
        self.method = ("descent", "sweeps") if self.square else ("descent",)
        if hess is not None:
            self.method = ("descent", "newton")
        # With a BLAS of one thread, as during the run: others would spin for a tenth of a second after these evaluations.
        with parallel.pool(parallel.width()):
            self._measure(check, near)
        self._slopes = square_slopes if self.square else few_slopes

    def __call__(self, U: np.ndarray) -> float:
        """Evaluate f, and check what it returned."""
        return self.values(U.copy()) * self.factor

    @property
    def evaluations(self) -> int:
        """Number of calls of f so far."""
        return self.values.evaluations

    def _measure(self, check: bool, near: np.ndarray | None) -> None:
        """Set the scale of f from some of its values, which for checkpoints also identify f; check the other arguments."""
        probes = probe(self.values, near)
        largest = float(np.abs(probes.values).max())
        self.factor = self.values.factor = 1.0 / unit_of(largest)
        gradient = None if probes.gradient is None else probes.gradient / self.factor
        probes = probes._replace(values=probes.values / self.factor, gradient=gradient)
        self.scale = float(np.abs(probes.values).max()) or 1.0
        # An estimate of the rounding errors of f: smaller differences are ignored.
        self.noise = 32 * EPS * self.scale
        if self.degree is not None:
            check_degree(self.values, probes, self.degree, self.scale)
        if check and self.values.jac is not None and self.n > 1:
            check_gradient(self.values, probes, self.noise)
            if self.values.hess is not None:
                check_hessian(self.values, probes)

    def state(self, U: np.ndarray) -> FunctionState:
        """U itself; f is evaluated when it is needed."""
        return FunctionState(np.ascontiguousarray(U.T))

    def _value(self, state: FunctionState) -> float:
        """Evaluate f."""
        if state.value is None:
            state.value = self.values.finite(state.Ut[: self.active].T.copy())
        return state.value

    def look(self, state: FunctionState, Q: np.ndarray | None = None, slopes: bool = True) -> Look:
        """Value and slopes; without `jac`, curvatures of the pairs of a square U too.

        For n x m matrices slopes are those of `angle_derivatives.few_slopes`, and there is no Q.
        """
        if self.values.jac is None:
            # Finite differences take two evaluations per pair, too many after every sweep.
            return self._look_by_values(state, Q) if slopes or Q is not None else Look(self._value(state))
        U = self._matrix(state, Q)
        value, E = self.values.with_gradient(U)
        if E is None:
            return self._infinite()
        flop_counts.count(4.0 * self.n**3 if self.square else 12.0 * self.n * self.active**2)
        return Look(value, self._slopes(E, U), gradient=E)

    def _look_by_values(self, state: FunctionState, Q: np.ndarray | None) -> Look:
        U = self._matrix(state, Q)
        value = self.values(U.copy())
        if value == math.inf:
            return self._infinite()
        if not self.square:
            U = complete(U)
        upper, bends = differences(self.values.finite, U, self.active, value, self.scale)
        if self.square:
            return Look(value, upper - upper.T, bends + bends.T)
        return Look(value, few_slopes_of_pairs(upper, U, self.active))

    def _matrix(self, state: FunctionState, Q: np.ndarray | None) -> np.ndarray:
        """The matrix to look at."""
        return state.Ut[: self.active].T.copy() if Q is None else state.Ut.T @ Q

    def _infinite(self) -> Look:
        return Look(math.inf, np.zeros((self.n if self.square else self.active + self.n, self.active)))

    @property
    def second(self) -> Callable[[FunctionState, np.ndarray], Product] | None:
        """The second derivatives, if `hess` is given."""
        return None if self.values.hess is None else self._second

    def _second(self, state: FunctionState, Q: np.ndarray) -> Product:
        U = self._matrix(state, Q)
        E = self.values.with_gradient(U)[1]
        assert E is not None
        flop_counts.count(2.0 * self.n**3)
        return second_product(E, U, lambda V: self.values.hessian_product(U, V))

    def solve(self, state: FunctionState, blocks: Blocks, min_gain: float = 0.0) -> PairSolutions:
        """Find the best angle of every pair of every block; the pairs of a block one after the other."""
        value = self._value(state)
        rotations, gains, errors = zip(
            *parallel.each(lambda block: self._rotated_block(state.Ut, block, value), blocks)
        )
        # A search by interpolation is off by at least the rounding errors of f.
        error = max(*errors, self.noise) if self.degree is None else 0.0
        return gathered(blocks, zip(rotations, gains), error)

    def _rotated_block(
        self, Ut: np.ndarray, block: np.ndarray, value: float
    ) -> tuple[np.ndarray, float, float]:
        """Rotate every pair of a block to its best angle: Q, the gain, the largest difference between f and its harmonics."""
        Vt, Q = Ut, np.eye(len(block))
        total, error = 0.0, 0.0
        for a in range(np.searchsorted(block, self.active)):
            for b in range(a + 1, len(block)):
                search = self._search(Vt, (int(block[a]), int(block[b])), value)
                error = max(error, search.error)
                if not self._exceeds_rounding(search):
                    continue
                Q[:, [a, b]] = Q[:, [a, b]] @ turn(search.theta)
                Vt = Ut.copy()
                Vt[block] = Q.T @ Ut[block]
                value -= search.gain
                total += search.gain
        return Q, total, error

    def _search(self, Vt: np.ndarray, pair: tuple[int, int], value: float) -> Search:
        """The best angle of a pair."""
        V = np.ascontiguousarray(Vt.T)

        def g(theta: float) -> float:
            return self.values.finite(with_pair_rotated(V, self.active, pair, theta))

        if self.degree is not None:
            return polynomial(g, value, self.degree, noise=self.noise)
        return periodic(g, value, noise=self.noise)

    def _exceeds_rounding(self, search: Search) -> bool:
        """Whether the gain is more than rounding error.

        A large angle must gain more than the noise of f. A small angle, in the basin of θ = 0, is judged by the slope at 0, which
        is as accurate as the values: from differences of values, an angle would be known to the square root of eps only.
        """
        if search.gain <= 0:
            return False
        if search.gain > self.noise:
            return True
        order = max(search.harmonics.order, 1)
        slope = abs(search.harmonics.slope)
        # A search that reached the limit of harmonics has tested its slope itself.
        small = abs(search.theta) < 1e-3 / order if search.resolved else abs(search.theta) < 1e-2
        return small and (slope > self.noise * order or not search.resolved)

    def apply(
        self,
        state: FunctionState,
        blocks: Blocks,
        rotations: Rotations,
        solutions: PairSolutions | None = None,
    ) -> None:
        """Rotate U, and evaluate f there."""
        turned = state.Ut.copy()
        rotate_blocks(turned, blocks, rotations)
        # If f is not finite, this raises before the state is changed.
        state.value, state.Ut = self.values.finite(turned[: self.active].T.copy()), turned


def order_and_columns(n: int | tuple[int, int]) -> tuple[int, int]:
    """Rows and columns of U, from its order or from both."""
    if not isinstance(n, tuple | list):
        return (order := whole(n, "n", 1)), order
    if len(n) != 2:
        raise ValueError(f"n must be the order of U or a pair (n, m), got {n!r}")
    rows = whole(n[0], "n", 1)
    return rows, whole(n[1], "m", 1, rows, "n")
