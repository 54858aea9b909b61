"""Attack saved streams and checkpoints: bits and bytes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from givens import Checkpoint, StreamingSparsePCA, minimize
from givens.objectives import Columns, JointDiagonal, SparseColumns
from tests.fuzz.files import mutated
from tests.fuzz.inputs import attempt, check_model, check_result
from tests.fuzz.judge import Finding, judge
from tests.stream_data import DATA, model

A = np.random.default_rng(0).standard_normal((20, 5))
SETTINGS: list[dict[str, Any]] = [{}, {"scale": True}, {"sketch": ("algorithm 5", 0.5)}, {"forgetting": 0.9}]
OBJECTIVES = [
    lambda: Columns(A, "varimax"),
    lambda: Columns(A, "logcosh"),
    lambda: SparseColumns(A, 0.5),
    lambda: JointDiagonal(np.stack([A[:5] + A[:5].T, A[5:10] + A[5:10].T])),
]


def run(path: Path, kind: int, steps: int) -> Any:
    return minimize(OBJECTIVES[kind](), checkpoint=Checkpoint(path), max_iter=steps, random_state=0)


@cache
def saved(stream: bool, kind: int) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved"
        if stream:
            model(**SETTINGS[kind]).partial_fit(DATA[: 40 + 9 * kind]).save(path)
        else:
            run(path, kind, 3)
        return path.read_bytes()


def attack(rng: np.random.Generator, note: Callable[[str], None]) -> None:
    """Change one save: it is refused with a sentence that names it, or of use."""
    stream, kind = bool(rng.random() < 0.5), int(rng.integers(4))
    note(f"{'stream' if stream else 'checkpoint'} {kind}")
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder) / "saved"
        path.write_bytes(mutated(rng, saved(stream, kind), False))
        try:
            opened = StreamingSparsePCA.load(path) if stream else run(path, kind, 50)
        except Exception as error:
            judge(error, path.name)
            if path.name not in str(error):
                raise Finding("raw exception", f"the file is not named: {error}") from error
        else:
            (use_stream(opened, path) if stream else check_result(opened))
        if left := [file.name for file in Path(folder).iterdir() if file != path]:
            raise Finding("half-written", f"left {left} behind")


def use_stream(found: StreamingSparsePCA, path: Path) -> None:
    uses = (lambda: found.components_, lambda: found.partial_fit(DATA[90:]), lambda: found.transform(DATA))
    if all(attempt(use, checked=True, file=path.name) is not None for use in uses):
        check_model(found)
        found.save(path)
