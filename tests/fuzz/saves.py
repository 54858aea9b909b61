"""Attack saved streams and checkpoints: bits, bytes, and values that were never saved."""

from __future__ import annotations

import copy
import io
import json
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
ODD: list[Any] = [
    None,
    -1,
    0,
    1,
    3,
    10**12,
    2.5,
    "x",
    [],
    [1, 2],
    {},
    {"a": 1},
    True,
    float("nan"),
    float("inf"),
    1e300,
    -1e-320,
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
        minimize(OBJECTIVES[kind](), checkpoint=Checkpoint(path), max_sweeps=2, max_steps=3, random_state=0)
        return path.read_bytes()


def crafted(rng: np.random.Generator, content: bytes) -> bytes:
    """The same file, whole, with values that nobody saved."""
    with np.load(io.BytesIO(content)) as file:
        arrays = dict(file)
    header = json.loads(str(arrays.pop("header")))
    for _ in range(int(rng.choice([1, 1, 2, 4]))):
        if rng.random() < 0.5 or not arrays:
            _change_header(rng, header)
        else:
            name = list(arrays)[rng.integers(len(arrays))]
            arrays[name] = _changed(rng, arrays[name])
            if rng.random() < 0.05:
                del arrays[name]
    buffer = io.BytesIO()
    np.savez(buffer, header=np.array(json.dumps(header)), **arrays)
    return buffer.getvalue()


def _change_header(rng: np.random.Generator, header: dict[str, Any]) -> None:
    place: Any = header
    for _ in range(6):
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = keys[rng.integers(len(keys))]
        if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.7:
            place = place[key]
        elif isinstance(place, dict) and rng.random() < 0.1:
            del place[key]
            return
        else:
            old = place[key]
            place[key] = copy.deepcopy(ODD[rng.integers(len(ODD))])
            if isinstance(old, int | float) and rng.random() < 0.5:
                place[key] = old + rng.choice([-1, 1, 1000]).item()
            return


def _changed(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    kind = rng.integers(8)
    with np.errstate(all="ignore"):
        if kind == 0:
            return array[..., :-1] if array.ndim else array
        if kind == 1:
            return array.astype(str)
        if kind == 2:
            return array.astype("f4") if array.dtype.kind == "f" else array.astype(float)
        if kind == 3:
            return array.ravel()
        if kind == 4 and array.dtype.kind == "f":
            return array * rng.choice([2.0, -1.0, 0.0, 1e200, 1e-200])
        if kind == 5:
            return np.zeros_like(array)
        changed = array.copy()
        if changed.size and changed.dtype.kind in "fiu":
            odd = [np.nan, np.inf, 1e300, -1.0, 0.0] if changed.dtype.kind == "f" else [0, 1, 7]
            changed.flat[rng.integers(changed.size)] = odd[rng.integers(len(odd))]
        return changed


def attack(rng: np.random.Generator, note: Callable[[str], None]) -> None:
    """One changed save: refused with a sentence that names it, or of use."""
    stream, kind = rng.random() < 0.5, int(rng.integers(4))
    content = saved_stream(kind) if stream else saved_checkpoint(kind)
    changed = crafted(rng, content) if rng.random() < 0.7 else mutated(rng, content, False)
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
        result = minimize(
            OBJECTIVES[kind](), checkpoint=Checkpoint(path), max_sweeps=50, max_steps=50, random_state=0
        )
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
