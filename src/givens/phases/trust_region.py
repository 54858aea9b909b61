"""Steps of a quadratic model of f that descent has learned, within a radius (a trust region).

The radius is set by comparing the actual with the predicted decrease of f. Far from a minimum, following a model would lead to
the nearest minimum, which is often not the best: there only steps that end inside the radius are made.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from givens.objectives.base import Look

# No step that ends at the radius is proposed where the norm of the slopes is above this share of the largest norm so far.
FAR = 0.05
INEXACT = 0.1  # conjugate gradients stop at this share of the slopes, or at a smaller one
POOR, GOOD = 0.25, 0.75  # ratios of the actual to the predicted decrease, for the radius


class Proposal(NamedTuple):
    """A step: the antisymmetric K, the predicted decrease of f, whether the step ends at the radius, and the flops spent."""

    K: np.ndarray
    promised: float
    bounded: bool
    flops: float


class LearnedModel(ABC):
    """A quadratic model of f(U exp(K)), learned from the gradients ∂f/∂U at the two ends of each step.

    Attributes
    ----------
    n : int
        The order of U.
    radius : float
        The largest `size` of a step.
    steepest : float
        The largest norm of the slopes so far.
    dropped : bool
        Whether the model has proved useless for this f: it learns and proposes nothing any more.
    conclusive : bool
        Whether a run has converged where the best steps of a known model are within the rounding errors of f, and gain nothing.
    """

    n: int
    radius: float
    steepest: float
    dropped: bool = False
    conclusive: bool = False

    @abstractmethod
    def clear(self) -> None:
        """Forget all steps."""

    @abstractmethod
    def learn(self, move: np.ndarray, before: Look, after: Look) -> float:
        """Learn from the moves of the columns, as rows, and the looks at both ends; return the flops."""

    @property
    @abstractmethod
    def known(self) -> bool:
        """Whether the model can propose a step."""

    @property
    @abstractmethod
    def reliable(self) -> bool:
        """Whether the model can be trusted up to the radius."""

    @abstractmethod
    def minimum(self, Ut: np.ndarray, look: Look, little: float) -> Proposal:
        """The minimum of the model within the radius, by conjugate gradients until a share `little` of the slopes is left."""

    @staticmethod
    @abstractmethod
    def size(K: np.ndarray) -> float:
        """The size of a step, to compare with the radius."""

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays for a checkpoint."""

    @abstractmethod
    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore saved arrays, bit by bit."""

    def propose(self, Ut: np.ndarray, look: Look, slope: float) -> Proposal | None:
        """The best step from U, given the norm of the slopes there; None where too little is known."""
        self.steepest = max(self.steepest, slope)
        if self.dropped or not self.known:
            return None
        step = self.minimum(Ut, look, min(INEXACT, math.sqrt(slope / (self.steepest or 1.0))))
        if not step.promised > 0.0 or (step.bounded and (not self.reliable or slope > FAR * self.steepest)):
            return None
        return step

    def judge(self, step: Proposal, kept: float) -> None:
        """Set the radius by `kept`, the ratio of the actual to the predicted decrease of f."""
        if kept < POOR:
            self.radius = POOR * self.size(step.K)
        elif kept > GOOD and step.bounded:
            self.radius *= 2.0
