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
    """The run, sweep by sweep; entry 0 is the start.

    Attributes
    ----------
    sweep : list of int
    seconds : list of float
        Wall-clock time since the start.
    flops : list of float
        Additions and multiplications so far.
    value : list of float
    gradient_norm : list of float
        NaN where the objective's derivatives are too dear to have them every sweep.
    """

    sweep: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    flops: list[float] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    gradient_norm: list[float] = field(default_factory=list)

    def append(self, sweep: int, seconds: float, flops: float, value: float, gradient_norm: float) -> None:
        """Add a line."""
        for name, entry in zip(TRACE_FIELDS, (sweep, seconds, flops, value, gradient_norm)):
            getattr(self, name).append(entry)

    def __len__(self) -> int:
        return len(self.sweep)

    def to_pandas(self) -> pandas.DataFrame:
        """The trace as a pandas frame, one row per sweep."""
        return require("pandas", extra="pandas").DataFrame(asdict(self))


TRACE_FIELDS = tuple(f.name for f in fields(Trace))


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
        How many sweeps were made, and how many Givens rotations in all.
    flops : float
        Additions and multiplications (a function given as a callable counts for none).
    gradient_norm : float
        The norm of the Riemannian gradient at U, by the paper's definition: the root of Σ 2·g'_ij(0)² over the pairs.
    orthogonality : float
        The Frobenius norm of UᵀU − I.
    determinant : int or None
        The component of O(n), +1 or −1; None for an n x m matrix, m < n, which has none: all of them are connected.
    seconds : float
        Wall-clock time.
    trace : Trace
        The run, sweep by sweep.
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

    def __repr__(self) -> str:
        return (
            f"Result(value={self.value:.12g}, converged={self.converged}, sweeps={self.sweeps}, "
            f"rotations={self.rotations}, gradient_norm={self.gradient_norm:.3g}, message={self.message!r})"
        )


@dataclass(frozen=True)
class Snapshot:
    """What a callback is shown after each sweep; `U` is a copy that cannot be written to."""

    sweep: int
    rotations: int
    seconds: float
    flops: float
    value: float
    gradient_norm: float
    gain: float
    U: np.ndarray
