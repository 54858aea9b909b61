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

A step minimises the model within a radius (a trust region), which is set by comparing the actual with the predicted decrease of
f. Far from a minimum, following a model would lead to the nearest minimum, which is often not the best: there only steps that end
inside the radius are made.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from givens.numerics import flop_counts
from givens.numerics.scaling import EPS
from givens.objectives.base import Look
from givens.solve.conjugate_gradients import Minimum, bounded_minimum

LEAST_ORDER = (
    21  # a step on smaller matrices takes longer than the evaluations of f that it saves, if these are cheap
)
MOST_ORDER = 1000  # eigenvalues of larger matrices take longer than many evaluations of f
KEPT = 4  # steps that H and R are fitted to
ROUNDS = 2  # of least squares for H and R, after each step
TRUSTED = 0.01  # relative error of the predicted change of the gradient below which steps are proposed
FITTED = 1e-6  # relative error below which H and R are not fitted again
PATIENCE = 25  # steps after which the model is dropped if the error is still above
HOPELESS = 0.3
UNEQUAL = 1e-8  # relative error of the trapezoidal rule above which f is not quadratic
FIRST_RADIUS = 0.3  # radii are the largest angle of a step, in radians
LEAST_CURVATURE = 0.01  # share of the median curvature of a pair to which smaller ones are raised
LARGEST_GRADIENT = 1e150  # gradients above this are not used: their squares would overflow
# No step that ends at the radius is proposed where the norm of the slopes is above this share of the largest norm so far.
FAR = 0.05
INEXACT = 0.1  # conjugate gradients stop at this share of the slopes, or at a smaller one
POOR, GOOD = 0.25, 0.75  # ratios of the actual to the predicted decrease, for the radius


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
    steepest : float
        The largest norm of the slopes so far.
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
        self.past: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=KEPT)
        self.steps = 0
        self.error = 1.0
        self.radius = FIRST_RADIUS
        self.steepest = 0.0

    @property
    def known(self) -> bool:
        """Whether the last step was predicted well."""
        return self.error <= TRUSTED

    def learn(self, move: np.ndarray, before: Look, after: Look) -> None:
        """Learn from the moves of the columns, as rows, and the looks at both ends."""
        assert before.gradient is not None
        assert after.gradient is not None
        S, Y = move.T, after.gradient - before.gradient
        long, changed = float(np.linalg.norm(S)), float(np.linalg.norm(Y))
        if not self._is_quadratic(S, before, after) or not changed < LARGEST_GRADIENT:
            self._drop()
            return
        if long == 0.0 or changed == 0.0:
            return
        flop_counts.count(4.0 * self.n**3)
        self.past.append((S / long, Y / long))
        self.steps += 1
        self.error = float(np.linalg.norm(Y - self.H @ S @ self.R)) / changed
        # Nor where the error is one of rounding: the gradients differ too little to learn from.
        if self.error <= max(FITTED, 100 * EPS * float(np.linalg.norm(after.gradient)) / changed):
            return
        if self.steps > PATIENCE and self.error > HOPELESS:
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
        return error <= UNEQUAL * sizes[0] + 64 * EPS * sizes[1]

    def _fit(self) -> None:
        """Improve H for given R, and R for given H."""
        flop_counts.count(ROUNDS * (60.0 + 12.0 * len(self.past)) * self.n**3)
        for _ in range(ROUNDS):
            self.H = _symmetric([(S @ self.R, Y) for S, Y in self.past])
            if len(self.past) > 1:
                self.R = _symmetric([(S.T @ self.H, Y.T) for S, Y in self.past])
                # Their product alone is known: let the diagonal of R be 1 in the mean of squares.
                unit = float(np.linalg.norm(self.R)) / np.sqrt(self.n) or 1.0
                self.R, self.H = self.R / unit, self.H * unit

    def propose(self, Ut: np.ndarray, look: Look, slope: float) -> Minimum | None:
        """The best step from U, given the norm of the slopes there; None where too little is known."""
        self.steepest = max(self.steepest, slope)
        if self.dropped or not self.known:
            return None
        step = self.minimum(Ut, look, min(INEXACT, math.sqrt(slope / (self.steepest or 1.0))))
        if not step.promised > 0.0 or (step.bounded and slope > FAR * self.steepest):
            return None
        return step

    def judge(self, step: Minimum, kept: float) -> None:
        """Set the radius by `kept`, the ratio of the actual to the predicted decrease of f."""
        if kept < POOR:
            self.radius = POOR * float(np.abs(step.step).max())
        elif kept > GOOD and step.bounded:
            self.radius *= 2.0

    def minimum(self, Ut: np.ndarray, look: Look, little: float) -> Minimum:
        """The minimum of the model within the radius, by conjugate gradients until a share `little` of the slopes is left."""
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

        def product(K: np.ndarray) -> np.ndarray:
            bent = H @ K if common else H @ K @ R - D @ K
            return bent - bent.T

        least = LEAST_CURVATURE * float(np.median(curvatures)) or 1.0
        found = bounded_minimum(
            look.slopes, 1.0 / np.maximum(curvatures, least), product, self.radius, little**2
        )
        flop_counts.count(((2.0 if common else 6.0) * found.products + 6.0) * self.n**3)
        return found

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays for a checkpoint."""
        numbers = np.array([self.dropped, self.steps, self.error, self.radius, self.steepest])
        moves = np.array([S for S, _ in self.past]).reshape(-1, self.n, self.n)
        changes = np.array([Y for _, Y in self.past]).reshape(-1, self.n, self.n)
        factors = np.array([self.H, self.R])
        return {"kronecker_model": numbers, "moves": moves, "changes": changes, "factors": factors}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore saved arrays, bit by bit."""
        numbers = arrays["kronecker_model"]
        self.past = deque(zip(arrays["moves"].copy(), arrays["changes"].copy()), maxlen=KEPT)
        self.H, self.R = arrays["factors"].copy()
        self.dropped, self.steps = bool(numbers[0]), int(numbers[1])
        self.error, self.radius, self.steepest = (float(number) for number in numbers[2:])


def _symmetric(pairs: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The symmetric H that minimises Σ ‖Y − H X‖² over pairs (X, Y); of several, the smallest."""
    C = sum(X @ X.T for X, _ in pairs)
    P = sum(Y @ X.T for X, Y in pairs)
    sizes, V = np.linalg.eigh(C)
    sums = np.add.outer(sizes, sizes)
    rounding = len(sizes) * EPS * max(float(sums[-1, -1]), np.finfo(np.float64).tiny)
    image = V.T @ (P + P.T) @ V
    image[sums <= rounding] = 0.0
    image /= np.maximum(sums, rounding)
    found = V @ image @ V.T
    return 0.5 * (found + found.T)
