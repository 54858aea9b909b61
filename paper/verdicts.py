"""From paired differences to a verdict.

A claim "ours is better" is tested by the differences of pairs (the same start, seed or split for both methods), by their
mean and its 95 % interval of Student's t. With a margin below which a difference does not matter,

| the interval | verdict |
|---|---|
| within ± the margin | tie |
| above 0 | holds |
| below 0 | does not hold |
| else | cannot be told |

A claim about several cases (values of γ, panels, dimensions) that holds in some and not in others *depends* on them. If it
holds in none and fails in at least one, it does not hold, whatever the undecided cases would show.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

HOLDS, FAILS, TIE, DEPENDS, UNCLEAR = VERDICTS = (
    "holds",
    "does not hold",
    "tie",
    "depends",
    "cannot be told",
)


@dataclass(frozen=True)
class Interval:
    """A mean over pairs, and where it lies with 95 % confidence."""

    mean: float
    low: float
    high: float
    pairs: int

    def ratio(self) -> str:
        """The ratio as text, where the differences are logarithms of ratios."""
        mean, low, high = np.exp([self.mean, self.low, self.high])
        return f"{mean:.2f} [{low:.2f}, {high:.2f}]"

    def percent(self) -> str:
        """The difference as text, in per cent, with a sign."""
        return f"{100 * self.mean:+.2f} % [{100 * self.low:+.2f}, {100 * self.high:+.2f}]"

    def difference(self) -> str:
        """The difference as text, with a sign."""
        return f"{self.mean:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"

    def reversed(self) -> Interval:
        """The interval of the differences with the opposite sign."""
        return Interval(-self.mean, -self.high, -self.low, self.pairs)


def interval(differences: Iterable[float]) -> Interval:
    """The mean of paired differences and its 95 % interval, which is infinite for one pair."""
    d = np.asarray(list(differences), dtype=float)
    if len(d) < 2:
        return Interval(float(d.mean()) if len(d) else np.nan, -np.inf, np.inf, len(d))
    half = float(student.ppf(0.975, len(d) - 1) * d.std(ddof=1) / np.sqrt(len(d)))
    return Interval(float(d.mean()), float(d.mean() - half), float(d.mean() + half), len(d))


def better(found: Interval, margin: float) -> str:
    """The verdict on "better": differences above 0."""
    if found.low >= -margin and found.high <= margin:
        return TIE
    if found.low > 0:
        return HOLDS
    return FAILS if found.high < 0 else UNCLEAR


def at_least(found: Interval, margin: float) -> str:
    """The verdict on "similar or better": differences above minus the margin."""
    if found.low > -margin:
        return HOLDS
    return FAILS if found.high < -margin else UNCLEAR


def together(verdicts: Iterable[str]) -> str:
    """The verdict on all cases of a claim."""
    found = set(verdicts)
    if len(found) == 1:
        return found.pop()
    if not found:
        return UNCLEAR
    if HOLDS in found and found & {FAILS, TIE, DEPENDS}:
        return DEPENDS
    return FAILS if FAILS in found else UNCLEAR
