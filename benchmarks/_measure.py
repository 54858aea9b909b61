"""Seconds and bytes: calls timed in turns, and the peak memory of a call in a process of its own."""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Timing:
    """Seconds of each call in order, and what the last one returned."""

    seconds: tuple[float, ...]
    value: Any

    @property
    def best(self) -> float:
        """The fewest seconds: what the work takes when nothing disturbs it."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        return median(self.seconds)


@dataclass(frozen=True)
class Peak:
    """Most memory held during a call, what the process held before it, the call's seconds and its outcome."""

    bytes: int
    before: int
    seconds: float
    value: Any


def rest() -> None:
    """Let the threads of a BLAS fall asleep.

    They look out for more work for a tenth of a second after their last, and take a core from whoever is measured next.
    """
    time.sleep(0.25)


def race(functions: Mapping[str, Callable[[], Any]], repeat: int, warm: int) -> dict[str, Timing]:
    """Call the functions in turns, `repeat` times each."""
    if repeat < 1:
        raise ValueError(f"repeat must be at least 1, got {repeat}")
    for function in functions.values():
        for _ in range(warm):
            function()
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    values = {}
    for _ in range(repeat):
        for name, function in functions.items():
            gc.collect()
            rest()
            start = time.perf_counter()
            values[name] = function()
            seconds[name].append(time.perf_counter() - start)
    return {name: Timing(tuple(seconds[name]), values[name]) for name in functions}


def peak(function: Callable[..., Any], *arguments: Any) -> Peak:
    """Call the function in a fresh process and read that process's peak."""
    if "<" in function.__qualname__:
        raise ValueError(
            f"{function.__qualname__} does not stand at the top of a module, so no other process finds it"
        )
    with tempfile.TemporaryDirectory() as folder:
        task, answer = Path(folder) / "task", Path(folder) / "answer"
        task.write_bytes(pickle.dumps((function.__module__, function.__qualname__, arguments)))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        command = [sys.executable, "-m", "benchmarks._measure", str(task), str(answer)]
        subprocess.run(command, env=environment, check=True)
        return Peak(*pickle.loads(answer.read_bytes()))


def high_water_mark() -> int:
    """Most memory this process has held, in bytes.

    Not `ru_maxrss` on Linux: a child inherits that from its parent through fork and exec, so a small child of
    a large process would seem large.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _answer(task: Path, answer: Path) -> None:
    module, name, arguments = pickle.loads(task.read_bytes())
    function = getattr(importlib.import_module(module), name)
    before = high_water_mark()
    start = time.perf_counter()
    value = function(*arguments)
    seconds = time.perf_counter() - start
    answer.write_bytes(pickle.dumps((high_water_mark(), before, seconds, value)))


if __name__ == "__main__":
    _answer(Path(sys.argv[1]), Path(sys.argv[2]))
