"""Ratios of paired times: geometric mean, and its 95 % interval by Student's t on the logarithms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ratio:
    """A geometric mean, and the interval that holds the true one in 95 % of all repetitions."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} ({self.low:.2f} to {self.high:.2f})"


def ratio(old: Sequence[float], new: Sequence[float]) -> Ratio:
    """Old seconds over new ones of the same rounds."""
    logarithms = np.log(old) - np.log(new)
    centre, rounds = float(logarithms.mean()), len(logarithms)
    if rounds < 2:
        return Ratio(math.exp(centre), 0.0, math.inf)
    error = float(logarithms.std(ddof=1)) / math.sqrt(rounds)
    width = float(stats.t.ppf((1 + CONFIDENCE) / 2, rounds - 1)) * error
    return Ratio(math.exp(centre), math.exp(centre - width), math.exp(centre + width))


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(float(np.mean(np.log(values))))
