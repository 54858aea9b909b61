"""Attack saved streams and checkpoints: bits and bytes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from givens import Checkpoint, StreamingSparsePCA, minimize
from givens.objectives import Columns, JointDiagonal, Objective, SparseColumns
from tests.fuzz.files import mutated
from tests.fuzz.inputs import check_model
from tests.fuzz.judge import Finding, finite, judge
from tests.stream_data import DATA, model

A = np.random.default_rng(0).standard_normal((20, 5))
OBJECTIVES: list[Callable[[], Objective]] = [
    lambda: Columns(A, "varimax"),
    lambda: Columns(A, "logcosh"),
    lambda: SparseColumns(A, 0.5),
    lambda: JointDiagonal(np.stack([A[:5] + A[:5].T, A[5:10] + A[5:10].T])),
]


@cache
def saved_stream(kind: int) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved"
        settings: dict[str, Any] = [{}, {"scale": True}, {"drop": "weakest"}, {"forgetting": 0.9}][kind]
        model(**settings).partial_fit(DATA[: 40 + 9 * kind]).save(path)
        return path.read_bytes()


@cache
def saved_checkpoint(kind: int) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved"
        minimize(OBJECTIVES[kind](), checkpoint=Checkpoint(path), max_iter=3, random_state=0)
        return path.read_bytes()


def attack(rng: np.random.Generator, note: Callable[[str], None]) -> None:
    """One changed save: refused with a sentence that names it, or of use."""
    stream, kind = rng.random() < 0.5, int(rng.integers(4))
    content = saved_stream(kind) if stream else saved_checkpoint(kind)
    changed = mutated(rng, content, False)
    note(f"{'stream' if stream else 'checkpoint'} {kind}")
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        path = folder / "saved"
        path.write_bytes(changed)
        (go_on_with_stream if stream else go_on_with_run)(path, kind)
        left = [name.name for name in folder.iterdir() if name.name != "saved"]
        if left:
            raise Finding("half-written", f"left {left} behind")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def go_on_with_stream(path: Path, kind: int) -> None:
    try:
        found = StreamingSparsePCA.load(path)
    except Exception as error:
        _named(error, path)
        return
    for use in (
        lambda: found.components_,
        lambda: found.partial_fit(DATA[90:]),
        lambda: found.transform(DATA),
    ):
        try:
            finite(use(), "what a loaded stream gives")
        except Finding:
            raise
        except Exception as error:
            judge(error, path.name)
            return
    check_model(found)
    found.save(path)


def go_on_with_run(path: Path, kind: int) -> None:
    try:
        result = minimize(OBJECTIVES[kind](), checkpoint=Checkpoint(path), max_iter=50, random_state=0)
    except Exception as error:
        _named(error, path)
        return
    finite((result.U, result.value, result.gradient_norm), "the result of a resumed run")
    if result.orthogonality > 1e-8:
        raise Finding("not orthogonal", f"U differs from an orthogonal matrix by {result.orthogonality:.1e}")


def _named(error: Exception, path: Path) -> None:
    judge(error, path.name)
    if path.name not in str(error):
        raise Finding("raw exception", f"the file is not named: {error}")
