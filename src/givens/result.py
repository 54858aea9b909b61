"""What a run returns: one shape, whatever was minimised and however it ended."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np

from givens.support.extras import require

if TYPE_CHECKING:
    import pandas


@dataclass
class Trace:
    """The run, step by step; entry 0 is the start.

    Attributes
    ----------
    step : list of int
        Its number: a step of descent, a leap, or a sweep.
    seconds : list of float
        Wall-clock time since the start.
    flops : list of float
        Additions and multiplications so far.
    value : list of float
    gradient_norm : list of float
        NaN where the objective's derivatives are too expensive to have them every sweep.
    phase : list of str
        Which phase made the step; empty for the start, or "samples" where steps on samples of the data, or in single
        precision, led there first.
    """

    step: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    flops: list[float] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    gradient_norm: list[float] = field(default_factory=list)
    phase: list[str] = field(default_factory=list)

    def append(
        self, step: int, seconds: float, flops: float, value: float, gradient_norm: float, phase: str = ""
    ) -> None:
        """Add a line."""
        self.step.append(step)
        self.seconds.append(seconds)
        self.flops.append(flops)
        self.value.append(value)
        self.gradient_norm.append(gradient_norm)
        self.phase.append(phase)

    def __len__(self) -> int:
        return len(self.step)

    def to_pandas(self) -> pandas.DataFrame:
        """The trace as a pandas frame, one row per step."""
        return require("pandas", extra="pandas").DataFrame(asdict(self))


TRACE_FIELDS = tuple(f.name for f in fields(Trace))


@dataclass(frozen=True)
class Certificate:
    """What a search of pairs over all angles found at the end of a run.

    Attributes
    ----------
    gain : float
        The most by which a rotation of two columns, by any angle, would still improve the value.
    pairs : int
        How many pairs were searched.
    share : float
        Which share of all pairs that is; below 1 they were chosen at random.
    """

    gain: float
    pairs: int
    share: float


@dataclass
class PhaseSummary:
    """What one phase of a run did.

    Attributes
    ----------
    name : str
        "descent", "newton", "leaps" or "sweeps"; "samples" for steps on samples of the data or in single precision, which looks
        for a start.
    steps : int
        How many steps it made.
    gain : float
        By how much they improved the value, together; NaN for "samples", whose value is another.
    flops, seconds : float
        What they took.
    """

    name: str
    steps: int = 0
    gain: float = 0.0
    flops: float = 0.0
    seconds: float = 0.0


@dataclass
class Result:
    """The outcome of `minimize`.

    Attributes
    ----------
    U : array of float64, shape (n, n)
        The orthogonal matrix found. In the Stiefel form only its first columns count; sparse PCA with m < n components stores no
        others, and U is n x m.
    value : float
        The objective there, with the sign its users know it by.
    converged : bool
        Whether a tolerance was met.
    message : str
        Why it stopped.
    sweeps, rotations : int
        How many sweeps of rotations were made, and how many Givens rotations these took. Steps of all columns at once
        count for none.
    flops : float
        Additions and multiplications, of all starts together (a function given as a callable counts for none).
    gradient_norm : float
        The norm of the Riemannian gradient at U, by the paper's definition: the root of Σ 2·g'_ij(0)² over the pairs.
    orthogonality : float
        The Frobenius norm of UᵀU − I.
    determinant : int or None
        The component of O(n), +1 or −1; None for an n x m matrix, m < n, which has none: all of them are connected.
    seconds : float
        Wall-clock time.
    trace : Trace
        The run, step by step.
    method : str
        What was done, in one sentence: "4 leaps, then 3 sweeps of rotations in blocks".
    phases : tuple of PhaseSummary
        What each phase gained, and what that took.
    certificate : Certificate, optional
        If it was asked for and the run converged: how much a rotation of two columns, by any angle, could still gain.
    starts : array, optional
        With several starts, the value that each of them reached, in their order; `np.ptp(starts)` is their spread. After a race
        (see `minimize`) the best has run to the end, and the others to where they were left.
    """

    U: np.ndarray
    value: float
    converged: bool
    message: str
    sweeps: int
    rotations: int
    flops: float
    gradient_norm: float
    orthogonality: float
    determinant: int | None
    seconds: float
    trace: Trace
    method: str = ""
    phases: tuple[PhaseSummary, ...] = ()
    certificate: Certificate | None = None
    starts: np.ndarray | None = None

    @property
    def steps(self) -> int:
        """How many steps the run made, of whatever phase."""
        return len(self.trace) - 1

    def __repr__(self) -> str:
        return (
            f"Result(value={self.value:.12g}, converged={self.converged}, method={self.method!r}, "
            f"gradient_norm={self.gradient_norm:.3g}, message={self.message!r})"
        )


@dataclass(frozen=True)
class Snapshot:
    """What a callback is shown after each step; `U` is a copy that cannot be written to."""

    step: int
    phase: str
    rotations: int
    seconds: float
    flops: float
    value: float
    gradient_norm: float
    gain: float
    U: np.ndarray
