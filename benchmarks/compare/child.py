"""One side of one row: makes the data, then answers each line "run" with seconds, memory and value as a line of JSON.

The value and the memory belong to the first call. `cold` is the time of the imports and the first call.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from benchmarks.compare.adapter import Library
    from benchmarks.compare.rows import Row

STATUS = Path("/proc/self/status")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("row")
    parser.add_argument("--source", required=True, type=Path)
    parser.add_argument("--switch")
    options = parser.parse_args()
    start = time.perf_counter()
    package = importlib.import_module("givens")
    importlib.import_module("numpy")
    import_seconds = time.perf_counter() - start
    if not Path(str(package.__file__)).resolve().is_relative_to(options.source.resolve()):
        raise SystemExit(f"givens was imported from {package.__file__}, not from {options.source}")

    from benchmarks.compare.adapter import Library
    from benchmarks.compare.rows import by_name
    from benchmarks.compare.switch import resolved

    if options.switch:
        resolved(options.switch)()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the library prints is not an answer
    _serve(by_name()[options.row], Library(switch=options.switch), import_seconds, answers)


def _serve(row: Row, library: Library, import_seconds: float, answers: TextIO) -> None:
    data = row.data()
    _say({"ready": True}, answers)
    if not sys.stdin.readline():
        return
    gc.collect()
    before = _reset_peak()
    result, spent = _timed(row, library, data)
    peak = _kilobytes("VmHWM") * 1024 - before
    value = float(row.value(library, data, result))
    del result
    _say({**spent, "cold": import_seconds + spent["seconds"], "memory": peak, "value": value}, answers)
    for _ in sys.stdin:
        gc.collect()
        _say(_timed(row, library, data)[1], answers)


def _say(answer: dict[str, Any], answers: TextIO) -> None:
    print(json.dumps(answer), file=answers, flush=True)


def _timed(row: Row, library: Library, data: Any) -> tuple[Any, dict[str, float]]:
    start, busy = time.perf_counter(), _processor_seconds()
    result = row.call(library, data)
    seconds, processor = time.perf_counter() - start, _processor_seconds() - busy
    return result, {"seconds": seconds, "processor": processor}


def _processor_seconds() -> float:
    """Of all threads of this process and of the commands that it has run."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def _reset_peak() -> int:
    """Make the resident set of now the peak of this process (Linux only; elsewhere memory is not measured)."""
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5")
    return _kilobytes("VmRSS") * 1024


def _kilobytes(name: str) -> int:
    if not STATUS.exists():
        return 0
    return next(int(line.split()[1]) for line in STATUS.read_text().splitlines() if line.startswith(name))


if __name__ == "__main__":
    main()
