"""The minimum of a quadratic model of f over steps of a limited length: the trust region of Newton's method.

    f(U exp(K)) − f(U)  ≈  ⟨g, K⟩ + ½ ⟨K, H K⟩  over antisymmetric K

`Truncated` knows H by its products, and stops early. `Exact` has all of H, which takes one product for each pair, and its
eigenvalues: only then is the predicted gain the most that the model has to offer, however much the curvatures differ.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from givens.numerics.scaling import EPS
from givens.solve.point import MAX_ANGLE

FIRST_RADIUS = 0.3
"""The first radius, in radians: where a model begins, f is not known to be like it further away."""

MAX_PRODUCTS = 500
"""Products of the second derivatives for one step: as many tell all of them where there are no more pairs."""


LEFT = 1e-3
"""The share of the squared slopes at which conjugate gradients stop."""


class Minimum(NamedTuple):
    """The step that minimises a model within a radius.

    Attributes
    ----------
    step : array
        The antisymmetric K.
    promised : float
        The predicted decrease of f; NaN if the slopes, the weights or a product are not finite.
    length : float
        The length of the step, which the radius limits.
    bounded : bool
        Whether the step ends at the radius.
    """

    step: np.ndarray
    promised: float
    length: float
    bounded: bool

    def next_radius(self, radius: float, fall: float) -> float:
        """The radius after this step has lowered f: smaller where the model is poor, larger where it is good."""
        share = fall / self.promised
        if share < 0.25:
            return 0.25 * self.length
        return min(2.0 * radius, MAX_ANGLE) if share > 0.75 and self.bounded else radius


def inverse_curvatures(curvatures: np.ndarray, typical: float) -> np.ndarray:
    """The inverses of the curvatures of pairs; those below a hundredth of a typical one, which say little, are raised to it."""
    return 1.0 / np.maximum(np.abs(curvatures), 0.01 * typical or 1.0)


class QuadraticModel(ABC):
    """The slopes and the second derivatives at one U."""

    @abstractmethod
    def minimum(self, slopes: np.ndarray, radius: float) -> Minimum:
        """The best step within a radius.

        Slopes are those of `Look`: entry (i, j), i < j, is the slope of the pair (i, j), whose angle is K_ji.
        """


class Truncated(QuadraticModel):
    """By conjugate gradients (Steihaug 1983): they end at the radius, or at a direction of negative curvature.

    Parameters
    ----------
    product : callable
        Maps K to H K, as in `Product`.
    weights : array of shape (n, n)
        The preconditioner: positive and symmetric, about the inverses of the curvatures of pairs.
    """

    def __init__(self, product: Callable[[np.ndarray], np.ndarray], weights: np.ndarray) -> None:
        self.product, self.weights = product, weights

    def minimum(self, slopes: np.ndarray, radius: float) -> Minimum:
        """No angle exceeds the radius."""
        left = slopes.T.copy()
        K = np.zeros_like(left)
        direction = -self.weights * left
        size = first = -_inner(left, direction)
        bounded, products = False, 0
        while products < MAX_PRODUCTS and size > LEFT * first and size != 0.0 and not bounded:
            image = self.product(direction)
            products += 1
            curvature = _inner(direction, image)
            ahead = np.where(direction > 0.0, K, -K)
            # Along a zero of the direction there is all the room.
            room = max(float(((radius - ahead) / np.maximum(np.abs(direction), 1e-290)).min()), 0.0)
            length = size / curvature if curvature > 0.0 else math.inf
            bounded = length >= room
            length = min(length, room)
            K += length * direction
            left += length * image
            steepest = self.weights * left
            last, size = size, _inner(steepest, left)
            direction = size / last * direction - steepest
        # ⟨g, K⟩ + ½ ⟨K, H K⟩, where g + H K is left; comparisons with NaN have ended the loop.
        promised = -0.5 * _inner(slopes.T + left, K) if math.isfinite(size) else math.nan
        return Minimum(K, promised, float(np.abs(K).max()), bounded)


class Exact(QuadraticModel):
    """By the eigenvalues of H (Moré and Sorensen 1983)."""

    def __init__(self, product: Callable[[np.ndarray], np.ndarray], n: int) -> None:
        self.i, self.j = np.triu_indices(n, 1)
        self.n = n
        H = np.array([product(self._skew(angles))[self.j, self.i] for angles in np.eye(len(self.i))])
        self.finite = bool(np.isfinite(H).all())
        curvatures, axes = np.linalg.eigh(0.5 * (H + H.T)) if self.finite else (np.zeros(len(H)), H)
        self.axes: np.ndarray = axes
        # Smaller ones are rounding errors.
        least = 8 * EPS * float(np.abs(curvatures).max()) or 1.0
        self.curvatures = np.where(np.abs(curvatures) < least, least, curvatures)

    def minimum(self, slopes: np.ndarray, radius: float) -> Minimum:
        """The root of the sum of all squared angles is at most the radius."""
        if not self.finite:
            return Minimum(slopes, math.nan, 0.0, False)
        gradient = slopes[self.i, self.j] @ self.axes
        step, bounded = _within(gradient, self.curvatures, radius)
        promised = -float(step @ (gradient + 0.5 * self.curvatures * step))
        return Minimum(self._skew(self.axes @ step), promised, float(np.linalg.norm(step)), bounded)

    def _skew(self, angles: np.ndarray) -> np.ndarray:
        K = np.zeros((self.n, self.n))
        K[self.j, self.i] = angles
        return K - K.T


def _inner(a: np.ndarray, b: np.ndarray) -> float:
    """The inner product over pairs, each of which occurs twice in an antisymmetric matrix."""
    return 0.5 * float(np.vdot(a, b))


def _within(gradient: np.ndarray, curvatures: np.ndarray, radius: float) -> tuple[np.ndarray, bool]:
    """The x of length at most `radius` where ⟨gradient, x⟩ + ½ Σ curvatures x² is least; and whether it has this length."""
    if curvatures.min() > 0.0:
        step = -gradient / curvatures
        if np.linalg.norm(step) <= radius:
            return step, False
    # −gradient / (curvatures + shift), for the shift that makes it as long as the radius. No gradient is exactly 0, so that a
    # step also leaves a saddle point, where the gradient is 0 along the axis of the least curvature.
    least = EPS * max(float(np.abs(gradient).max()), radius * float(np.abs(curvatures).max()))
    gradient = np.where(np.abs(gradient) < least, np.copysign(least, gradient), gradient)
    shift = max(0.0, float((np.abs(gradient) / radius - curvatures).max()))
    for _ in range(50):  # Newton's steps for the shift; five are usual
        step = -gradient / (curvatures + shift)
        length = float(np.linalg.norm(step))
        if length <= radius * (1.0 + 1e-6):
            break
        shift += (length / radius - 1.0) * length**2 / float(step @ (step / (curvatures + shift)))
    return step, True
