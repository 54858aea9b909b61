"""Second derivatives of a quadratic function of U, learned from the steps of a descent as a product of two matrices.

If f is quadratic in the entries of U, a move S of U changes the gradient ∂f/∂U by a linear map of S. In weighted and plain
Procrustes problems, ‖AUB − C‖², and in Brockett's function Σ_j w_j u_j·A u_j that map is a Kronecker product,

    Y = H S R,  H and R symmetric matrices of order n,

so that each step gives n² equations for n(n + 1) unknowns, and a few steps tell all. Alternating least squares over the last
steps improves H for given R and R for given H: H solves the Lyapunov equation H C + C H = P + Pᵀ, where C = Σ X Xᵀ, P = Σ Y Xᵀ
and X = S R. (If neither matrix is definite, this may fail.) The rest of the second derivatives, due to columns that rotate
instead of moving along a straight line, is known exactly from ∂f/∂U.

Along a step of a quadratic function the trapezoidal rule for its slope is exact:

    f(U + S) − f(U) = ½⟨E(U) + E(U + S), S⟩,  E = ∂f/∂U.

This costs nothing to check, and other functions fail it at their first long step: for them nothing is learned. Nor are steps
proposed before H and R have predicted the change of the gradient in the last step.

A step minimises the model within the radius of a `trust_region`.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from givens.numerics import flop_counts
from givens.numerics.scaling import EPS
from givens.objectives.base import Look
from givens.solve.trust_region import FIRST_RADIUS, Minimum, Truncated, inverse_curvatures

MIN_ORDER, MAX_ORDER = 12, 1000
"""A step on smaller matrices takes longer than the evaluations of f that it saves, unless one takes 0.1 ms; the eigenvalues of
larger ones take longer than many evaluations."""

KEPT_STEPS = 8
"""The steps that H and R are fitted to: by four, one of eight badly scaled functions of order 30 is never learned."""


class KroneckerModel:
    """A quadratic model of f(U exp(K)), learned from the gradients ∂f/∂U at the two ends of each step.

    Parameters
    ----------
    n : int
        The order of U.

    Attributes
    ----------
    radius : float
        The largest angle of a step.
    dropped : bool
        Whether the model has proved useless for this f: it learns and proposes nothing any more.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.dropped = False
        self.clear()

    def clear(self) -> None:
        """Forget all steps."""
        self.H = self.R = np.eye(self.n)
        self.past: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=KEPT_STEPS)
        self.steps = 0
        self.error = 1.0
        self.radius = FIRST_RADIUS

    def learn(self, move: np.ndarray, before: Look, after: Look) -> None:
        """Learn from the moves of the columns, as rows, and the looks at both ends."""
        assert before.gradient is not None
        assert after.gradient is not None
        S, Y = move.T, after.gradient - before.gradient
        long, changed = float(np.linalg.norm(S)), float(np.linalg.norm(Y))
        # The squares of larger gradients would overflow.
        if not self._is_quadratic(S, before, after) or not changed < 1e150:
            self._drop()
            return
        if long == 0.0 or changed == 0.0:
            return
        flop_counts.count(4.0 * self.n**3)
        self.past.append((S / long, Y / long))
        self.steps += 1
        self.error = float(np.linalg.norm(Y - self.H @ S @ self.R)) / changed
        # Fit H and R again, unless they are exact, or the gradients differ by little more than rounding errors.
        if self.error <= max(1e-6, 100 * EPS * float(np.linalg.norm(after.gradient)) / changed):
            return
        if self.steps > 25 and self.error > 0.3:
            self._drop()
        else:
            self._fit()

    def _drop(self) -> None:
        self.clear()
        self.dropped = True

    def _is_quadratic(self, S: np.ndarray, before: Look, after: Look) -> bool:
        """Whether the trapezoidal rule is exact, up to rounding errors."""
        assert before.gradient is not None
        assert after.gradient is not None
        slopes = float(np.vdot(before.gradient, S)), float(np.vdot(after.gradient, S))
        error = abs(after.value - before.value - 0.5 * sum(slopes))
        sizes = max(map(abs, slopes)), max(abs(after.value), abs(before.value))
        return error <= 1e-8 * sizes[0] + 64 * EPS * sizes[1]

    def _fit(self) -> None:
        """Improve H for given R, and R for given H."""
        flop_counts.count(2 * (60.0 + 12.0 * len(self.past)) * self.n**3)
        moves, changes = (np.array(arrays) for arrays in zip(*self.past))
        for _ in range(2):
            self.H = _symmetric(moves @ self.R, changes)
            if len(self.past) > 1:
                self.R = _symmetric(moves.swapaxes(1, 2) @ self.H, changes.swapaxes(1, 2))
                # Their product alone is known: let the diagonal of R be 1 in the mean of squares.
                unit = float(np.linalg.norm(self.R)) / np.sqrt(self.n) or 1.0
                self.R, self.H = self.R / unit, self.H * unit

    def propose(self, Ut: np.ndarray, look: Look) -> Minimum | None:
        """The best step from U; None unless the last step was predicted well."""
        if self.dropped or self.error > 0.01:
            return None
        step = self.minimum(Ut, look)
        return step if step.promised > 0.0 else None

    def minimum(self, Ut: np.ndarray, look: Look) -> Minimum:
        """The minimum of the model within the radius."""
        assert look.gradient is not None
        assert look.slopes is not None
        M = Ut @ look.gradient
        D = 0.5 * (M + M.T)
        H, R = Ut @ self.H @ Ut.T, self.R
        cross = np.outer(np.diag(H), np.diag(R))
        curvatures = np.abs(cross + cross.T - 2 * H * R - np.add.outer(np.diag(D), np.diag(D)))
        # If R is the identity, all columns have the same second derivatives, and one product takes the place of three.
        common = np.array_equal(R, np.eye(self.n))
        if common:
            H -= D
        flop_counts.count(6.0 * self.n**3)

        def product(K: np.ndarray) -> np.ndarray:
            flop_counts.count((2.0 if common else 6.0) * self.n**3)
            bent = H @ K if common else H @ K @ R - D @ K
            return bent - bent.T

        weights = inverse_curvatures(curvatures, float(curvatures.mean()))
        return Truncated(product, weights).minimum(look.slopes, self.radius)

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays for a checkpoint."""
        numbers = np.array([self.dropped, self.steps, self.error, self.radius])
        moves = np.array([S for S, _ in self.past]).reshape(-1, self.n, self.n)
        changes = np.array([Y for _, Y in self.past]).reshape(-1, self.n, self.n)
        factors = np.array([self.H, self.R])
        return {"kronecker_model": numbers, "moves": moves, "changes": changes, "factors": factors}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore saved arrays, bit by bit."""
        numbers = arrays["kronecker_model"].tolist()
        self.past = deque(zip(arrays["moves"].copy(), arrays["changes"].copy()), maxlen=KEPT_STEPS)
        self.H, self.R = arrays["factors"].copy()
        self.dropped, self.steps = bool(numbers[0]), int(numbers[1])
        self.error, self.radius = numbers[2:]


def _symmetric(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """The symmetric H that minimises Σ ‖Y_k − H X_k‖²; of several, the smallest."""
    C, P = (np.tensordot(Z, X, ([0, 2], [0, 2])) for Z in (X, Y))
    sizes, V = np.linalg.eigh(C)
    sums = np.add.outer(sizes, sizes)
    rounding = len(sizes) * EPS * max(float(sums[-1, -1]), np.finfo(np.float64).tiny)
    image = V.T @ (P + P.T) @ V
    image[sums <= rounding] = 0.0
    image /= np.maximum(sums, rounding)
    found = V @ image @ V.T
    return 0.5 * (found + found.T)
