"""Checkpoints: a run that was killed resumes, and ends in the same bits.

The run repairs U and recomputes its state after a fixed number of steps (never of seconds). Directly after that, U, the random
generator, the counters, the trace and the memory of the current phase determine the rest of the run. They are saved as a NumPy
archive without pickles, written to a temporary file that then replaces the old one.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from givens.result import TRACE_FIELDS, PhaseSummary, Trace
from givens.support import archive
from givens.support.arguments import whole

FORMAT = "run 5"


@dataclass(frozen=True)
class Checkpoint:
    """Where to save a run, and how often.

    Parameters
    ----------
    path : path
        The file. If it exists, the run resumes from it.
    every : int, default=1
        Number of steps between two saves: sweeps, leaps, or steps of descent. U is repaired at each of them, so only runs with
        the same number end in the same bits.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from givens import Checkpoint, minimize
    >>> from givens.objectives import JointDiagonal
    >>> problem = JointDiagonal(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = minimize(problem, checkpoint=Checkpoint(Path(folder) / "run.npz", every=5))
    >>> result.converged
    True
    """

    path: str | os.PathLike[str]
    every: int = 1

    def __post_init__(self) -> None:
        whole(self.every, "every", 1)
        folder = Path(self.path).parent
        if not folder.is_dir():
            raise FileNotFoundError(f"the folder of the checkpoint does not exist: {folder}")
        if Path(self.path).is_dir():
            raise IsADirectoryError(f"the checkpoint {os.fspath(self.path)!r} is a folder: name a file in it")


def as_checkpoint(checkpoint: str | os.PathLike[str] | Checkpoint) -> Checkpoint:
    """A checkpoint itself; for a path, a checkpoint that is saved after every step."""
    if isinstance(checkpoint, str | os.PathLike):
        return Checkpoint(checkpoint)
    if not isinstance(checkpoint, Checkpoint):
        raise TypeError(f"checkpoint must be a path or a Checkpoint, got {type(checkpoint).__name__}")
    return checkpoint


@dataclass
class Progress:
    """The variables of a run, apart from the data: what a checkpoint holds."""

    start: np.ndarray
    U: np.ndarray
    rng: np.random.Generator
    steps: int = 0
    phase: int = 0
    sweeps: int = 0
    leaps: int = 0
    rotations: int = 0
    certifications: int = 0
    flops: float = 0.0
    seconds: float = 0.0
    gain: float = float("nan")
    gains: list[float] = field(default_factory=list)
    summaries: list[PhaseSummary] = field(default_factory=list)
    memory: dict[str, np.ndarray] = field(default_factory=dict)
    note: str = ""
    converged: bool = False
    trace: Trace = field(default_factory=Trace)


def save(path: str | os.PathLike[str], progress: Progress, problem: str) -> None:
    """Write a checkpoint: all of it, or nothing."""
    counters: dict[str, Any] = {
        "format": FORMAT,
        "problem": problem,
        "rng": progress.rng.bit_generator.state,
        "summaries": [asdict(summary) for summary in progress.summaries],
        "trace_phase": progress.trace.phase,
        "note": progress.note,
        **{name: getattr(progress, name) for name in _COUNTERS},
    }
    arrays: dict[str, Any] = {
        f"trace_{name}": np.array(getattr(progress.trace, name), dtype=float) for name in _NUMBERS
    }
    arrays |= {f"memory_{name}": array for name, array in progress.memory.items()}
    archive.write(path, counters, {"start": progress.start, "U": progress.U, **arrays})


def load(path: str | os.PathLike[str]) -> tuple[Progress, str] | None:
    """Read a checkpoint: the run so far, and the digest of its problem; None if there is no such file."""
    if not Path(path).exists():
        return None
    counters, arrays = archive.read(path, "the checkpoint")
    if counters["format"] != FORMAT:
        raise ValueError(
            f"the file {os.fspath(path)!r} has the format {counters['format']}, not {FORMAT}: it is no checkpoint of this "
            "version of givens; give another path"
        )
    rng = np.random.default_rng()
    rng.bit_generator.state = counters["rng"]
    trace = Trace(
        **{name: arrays[f"trace_{name}"].tolist() for name in _NUMBERS}, phase=counters["trace_phase"]
    )
    trace.step = [int(step) for step in trace.step]
    progress = Progress(start=arrays["start"], U=arrays["U"], rng=rng, trace=trace)
    progress.summaries = [PhaseSummary(**summary) for summary in counters["summaries"]]
    progress.memory = {
        name.removeprefix("memory_"): array for name, array in arrays.items() if name.startswith("memory_")
    }
    for name in (*_COUNTERS, "note"):
        setattr(progress, name, counters[name])
    return progress, counters["problem"]


_COUNTERS = (
    "steps",
    "phase",
    "sweeps",
    "leaps",
    "rotations",
    "certifications",
    "flops",
    "seconds",
    "gain",
    "gains",
)
_NUMBERS = tuple(name for name in TRACE_FIELDS if name != "phase")
