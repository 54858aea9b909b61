"""What a run returns: a `Result`, whatever was minimised and however the run ended."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from givens.rotations import determinant
from givens.support.imports import require

if TYPE_CHECKING:
    import pandas


class Stop(Enum):
    """Why a run stopped; `Result.message` says it in a sentence.

    Those up to `SADDLE` count as converged. `SLOW` ends a phase, never a run: another phase follows, and is faster here.
    `EXHAUSTED` is a line search, or a trust region, without a step that lowers f as the derivatives predict; `KINK` the same
    where slopes are large, so that f has a kink or they are not its slopes; `STATIONARY` a start without slopes, which sweeps
    can leave and descent cannot; `LACKING` an objective without the derivatives that a phase needs.
    """

    NOTHING_TO_ROTATE = "nothing to rotate"
    SMALL_GRADIENT = "small gradient"
    SMALL_SWEEPS = "small sweeps"
    SMALL_REMAINDER = "small remainder"
    SMALL_STEP = "small step"
    ROUNDING = "rounding"
    SADDLE = "saddle"
    SLOW = "slow"
    EXHAUSTED = "exhausted"
    KINK = "kink"
    STATIONARY = "stationary"
    LACKING = "lacking"
    MAX_ITER = "max_iter"
    INFINITE_START = "infinite start"
    NOT_FINITE = "not finite"
    CALLBACK = "callback"

    @property
    def converged(self) -> bool:
        """Whether a tolerance was met, or f cannot be lowered any more."""
        return self in _CONVERGED


_CONVERGED = frozenset(list(Stop)[: list(Stop).index(Stop.SADDLE) + 1])


@dataclass
class Trace:
    """The run, step by step, as lists of the same length; entry 0 is the start.

    Attributes
    ----------
    step : list of int
        Number of the step: a step of descent or of Newton's method, or a sweep.
    seconds : list of float
        Wall-clock time since the start.
    flops : list of float
        Number of additions and multiplications so far.
    value : list of float
        Value of the objective.
    gradient_norm : list of float
        As in `Result`; NaN where the objective's derivatives are too expensive to be computed in every sweep.
    phase : list of str
        The phase that made the step. For the start it is empty, or "samples" if steps on a sample of the data
        led to it.

    Examples
    --------
    >>> import numpy as np
    >>> from givens import minimize
    >>> from givens.objectives import JointDiagonal
    >>> trace = minimize(JointDiagonal(np.array([[2.0, 1.0], [1.0, 2.0]]))).trace
    >>> trace.step[:2], trace.phase[:2]
    ([0, 1], ['', 'sweeps'])
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
        """Add a step."""
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


@dataclass(frozen=True)
class Certificate:
    """What a search of pairs over all angles found at the end of a run.

    Attributes
    ----------
    gain : float
        The largest improvement of the value that a rotation of two columns, by any angle, would bring. It is an
        estimate where `Result.message` says that the search is not exact. For n x m matrices, pairs are those of one completion
        to a square matrix.
    pairs : int
        Number of pairs that were searched.
    share : float
        Their share of all pairs; if it is below 1, they were chosen at random.
    error : float
        How far `gain` may be off: 0 if the searches are exact, NaN if that is not known. For a plain function it is the largest
        difference that was seen between f and the sum of harmonics that was minimised in its place. That is an estimate
        and no bound: a narrow minimum between all angles at which f was evaluated is not seen.
    """

    gain: float
    pairs: int
    share: float
    error: float = 0.0


@dataclass
class PhaseSummary:
    """What one phase of a run did.

    Attributes
    ----------
    name : str
        "descent", "newton", "sweeps" or "widened sweeps"; "samples" for steps on a sample of the data that precede the
        run.
    steps : int
        Number of steps.
    gain : float
        Improvement of the value by all steps; NaN for "samples", which minimise another function.
    flops, seconds : float
        Additions and multiplications, and time, of all steps.
    """

    name: str
    steps: int = 0
    gain: float = 0.0
    flops: float = 0.0
    seconds: float = 0.0


@dataclass(eq=False)
class Result:
    """The outcome of `minimize`.

    Attributes
    ----------
    U : array of float64, shape (n, n) or (n, m)
        The orthogonal matrix found. If f depends on the first m < n columns only (the Stiefel form), the others are arbitrary;
        functions of n x m matrices and sparse PCA with m components do not compute them, and U is n x m.
    value : float
        The value of the objective at U, with its usual sign: objectives that are maximised have their maximum here.
    converged : bool
        Whether a tolerance was met.
    message : str
        Why the run stopped, in a sentence.
    sweeps, rotations : int
        Number of sweeps, and number of rotations in them, of pairs or of blocks of columns. Steps of all columns at once are not
        counted.
    flops : float
        Number of additions and multiplications, over all starts, without those inside a function given as a callable.
    gradient_norm : float
        The norm of the Riemannian gradient at U, by the paper's definition: √(Σ 2·g'_ij(0)²) over the pairs i < j.
    orthogonality : float
        The Frobenius norm of UᵀU − I.
    seconds : float
        Wall-clock time.
    trace : Trace
        The run, step by step.
    method : str
        What was done, in one sentence: "3 sweeps of rotations in blocks".
    phases : tuple of PhaseSummary
        Steps, gain, flops and seconds of each phase.
    evaluations : int, optional
        If a function was given as a callable: the number of its calls, over all starts and before the run. Calls before a run was
        resumed from a checkpoint are not included.
    certificate : Certificate, optional
        With `certify`, and if the run converged: how much a rotation of two columns, by any angle, could still gain.
    starts : array, optional
        With several starts, the value that each run reached, in the order of the starts. After a race (see `minimize`) only the
        best of them has run to the end.
    scale : float
        The size of f, to which `tol` is relative. For a plain function it is the largest of a few values
        that are computed before the run.
    stop : Stop, optional
        Why the run stopped.
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
    seconds: float
    trace: Trace
    method: str = ""
    phases: tuple[PhaseSummary, ...] = ()
    evaluations: int | None = None
    certificate: Certificate | None = None
    starts: np.ndarray | None = None
    scale: float = 1.0
    stop: Stop | None = None

    @property
    def determinant(self) -> int | None:
        """The component of O(n), +1 or −1; None for an n x m matrix, m < n, which has none: all of them are connected."""
        return determinant(self.U) if len(self.U) == self.U.shape[1] else None

    @property
    def steps(self) -> int:
        """Number of steps, of all phases."""
        return len(self.trace) - 1

    def __repr__(self) -> str:
        return (
            f"Result(value={self.value:.12g}, converged={self.converged}, method={self.method!r}, "
            f"gradient_norm={self.gradient_norm:.3g}, message={self.message!r})"
        )


@dataclass(frozen=True)
class Snapshot:
    """What a callback gets after each step.

    Attributes
    ----------
    step, rotations : int
        Number of steps, and of Givens rotations in sweeps, so far.
    phase : str
        The phase that made the step.
    seconds, flops : float
        Wall-clock time, and number of additions and multiplications, so far.
    value, gradient_norm : float
        As in `Trace`.
    gain : float
        By how much the step improved the value.
    U : array of float64, shape (n, n) or (n, m)
        A read-only copy of the present matrix.
    """

    step: int
    phase: str
    rotations: int
    seconds: float
    flops: float
    value: float
    gradient_norm: float
    gain: float
    U: np.ndarray
