"""Checkpoints: a run that was killed resumes, and ends in the same bits.

The run repairs U and recomputes its state after a fixed number of steps (never of seconds). Directly after that, U, the random
generator, the counters, the trace and the memory of the phases determine the rest of the run. They are saved as a NumPy
archive without pickles, written to a temporary file that then replaces the old one.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from givens.result import PhaseSummary, Trace
from givens.solve.state import Progress
from givens.support import archive
from givens.support.arguments import whole

FORMAT = "run 8"


@dataclass(frozen=True)
class Checkpoint:
    """Where to save a run, and how often.

    Parameters
    ----------
    path : path
        The file. If it exists, the run resumes from it.
    every : int, default=1
        Number of steps between two saves: sweeps or steps of descent. U is repaired at each of them, so only runs with
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


class Saved(NamedTuple):
    """A run that was saved: how far it had come, its matrix, what each phase remembers, and the digest of its problem."""

    progress: Progress
    U: np.ndarray
    memories: list[dict[str, np.ndarray]]
    problem: str


def save(path: str | os.PathLike[str], saved: Saved) -> None:
    """Write a checkpoint: all of it, or nothing."""
    progress = saved.progress
    header: dict[str, Any] = {
        "format": FORMAT,
        "problem": saved.problem,
        "rng": progress.rng.bit_generator.state,
        "summaries": [asdict(summary) for summary in progress.summaries],
        "trace_phase": progress.trace.phase,
        "phases": len(saved.memories),
        **{name: getattr(progress, name) for name in COUNTERS},
    }
    arrays = {f"trace_{name}": np.array(getattr(progress.trace, name), dtype=float) for name in TRACE_NUMBERS}
    for number, memory in enumerate(saved.memories):
        arrays |= {f"memory_{number}_{name}": array for name, array in memory.items()}
    archive.write(path, header, {"start": progress.start, "U": saved.U, **arrays})


def load(path: str | os.PathLike[str]) -> Saved | None:
    """Read a checkpoint; None if there is no such file."""
    if not Path(path).exists():
        return None
    header, arrays = archive.read(path, "the checkpoint")
    if header["format"] != FORMAT:
        raise ValueError(
            f"the file {os.fspath(path)!r} has the format {header['format']}, not {FORMAT}: it is no checkpoint of this "
            "version of givens; give another path"
        )
    rng = np.random.default_rng()
    rng.bit_generator.state = header["rng"]
    progress = Progress(arrays.pop("start"), rng, **{name: header[name] for name in COUNTERS})
    progress.trace = Trace(
        **{name: arrays.pop(f"trace_{name}").tolist() for name in TRACE_NUMBERS}, phase=header["trace_phase"]
    )
    progress.trace.step = [int(step) for step in progress.trace.step]
    progress.summaries = [PhaseSummary(**summary) for summary in header["summaries"]]
    U = arrays.pop("U")
    memories: list[dict[str, np.ndarray]] = [{} for _ in range(header["phases"])]
    for name, array in arrays.items():
        _, number, inner = name.split("_", 2)
        memories[int(number)][inner] = array
    return Saved(progress, U, memories, header["problem"])


TRACE_NUMBERS = tuple(field.name for field in fields(Trace) if field.name != "phase")
COUNTERS = tuple(
    field.name for field in fields(Progress) if field.name not in ("start", "rng", "summaries", "trace")
)
