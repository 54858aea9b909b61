"""The minimum of a quadratic model of f over steps of a limited length.

    f(U exp(K)) − f(U)  ≈  ⟨g, K⟩ + ½ ⟨K, H K⟩  over antisymmetric K

`Truncated` knows H by its products, and stops early. `Exact` has all of H, which takes one product for each pair, and its
eigenvalues: only then is the predicted gain the most that the model has to offer, however much the curvatures differ.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from givens.numerics.scaling import EPS
from givens.solve.conjugate_gradients import Minimum, bounded_minimum

ROUNDING = 8 * EPS
"""Relative to the largest curvature: smaller ones are rounding errors, and are raised to this."""

SECULAR_STEPS = 50
"""Newton's steps for the shift that makes a step as long as the radius; five are usual."""


class QuadraticModel(ABC):
    """The second derivatives at one U.

    Attributes
    ----------
    lasting : bool
        Whether the model is still good after a short step.
    """

    lasting: bool

    @abstractmethod
    def length(self, step: np.ndarray) -> float:
        """The length of a step, which a radius limits."""

    @abstractmethod
    def minimum(self, slopes: np.ndarray, radius: float, share: float) -> Minimum:
        """The step within a radius; a share of the squared slopes may be left."""


class Truncated(QuadraticModel):
    """By conjugate gradients, preconditioned with weights: the inverses of the curvatures of pairs."""

    lasting = True

    def __init__(self, product: Callable[[np.ndarray], np.ndarray], weights: np.ndarray) -> None:
        self.product, self.weights = product, weights

    def length(self, step: np.ndarray) -> float:
        """The largest angle."""
        return float(np.abs(step).max())

    def minimum(self, slopes: np.ndarray, radius: float, share: float) -> Minimum:
        """No angle exceeds the radius."""
        return bounded_minimum(slopes, self.weights, self.product, radius, share)


class Exact(QuadraticModel):
    """By the eigenvalues of H (Moré and Sorensen 1983)."""

    lasting = False

    def __init__(self, product: Callable[[np.ndarray], np.ndarray], n: int) -> None:
        self.i, self.j = np.triu_indices(n, 1)
        self.n = n
        H = np.empty((len(self.i), len(self.i)))
        for k in range(len(self.i)):
            H[k] = product(self._skew(np.eye(1, len(self.i), k)[0]))[self.j, self.i]
        self.finite = bool(np.isfinite(H).all())
        curvatures, axes = np.linalg.eigh(0.5 * (H + H.T)) if self.finite else (np.zeros(len(H)), H)
        self.axes: np.ndarray = axes
        least = ROUNDING * float(np.abs(curvatures).max()) or 1.0
        self.curvatures = np.where(np.abs(curvatures) < least, least, curvatures)

    def length(self, step: np.ndarray) -> float:
        """The root of the sum of all squared angles; every pair occurs twice in an antisymmetric matrix."""
        return float(np.linalg.norm(step)) / math.sqrt(2.0)

    def minimum(self, slopes: np.ndarray, radius: float, share: float) -> Minimum:
        """The step is no longer than the radius."""
        if not self.finite:
            return Minimum(slopes, math.nan, False, 0)
        gradient = slopes[self.i, self.j] @ self.axes
        step, bounded = _within(gradient, self.curvatures, radius)
        promised = -float(step @ (gradient + 0.5 * self.curvatures * step))
        return Minimum(self._skew(self.axes @ step), promised, bounded, 0)

    def _skew(self, angles: np.ndarray) -> np.ndarray:
        K = np.zeros((self.n, self.n))
        K[self.j, self.i] = angles
        return K - K.T


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
    for _ in range(SECULAR_STEPS):
        step = -gradient / (curvatures + shift)
        length = float(np.linalg.norm(step))
        if length <= radius * (1.0 + 1e-6):
            break
        shift += (length / radius - 1.0) * length**2 / float(step @ (step / (curvatures + shift)))
    return step, True
