"""Benchmarks made of parts, each of which is kept as soon as it is done: a run that was interrupted goes on with the others."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._report import Report
from benchmarks._runner import Suite, write

HERE = Path(__file__).resolve().parent
KEPT = ("rows", "claims", "notes", "missing", "ratios", "figures")


def part(
    report: Report, benchmark: str, name: str, measure: Callable[[Report], Any], *, keep: bool = True
) -> Any:
    """What a part hands on; from its file, if it was measured with this code."""
    file = HERE / "results" / f"{benchmark}.parts" / f"{name}.json"
    version = Suite(HERE).version(benchmark)
    if keep and file.is_file():
        kept = json.loads(file.read_text(encoding="utf-8"))
        if kept["version"] == version:
            print(f"  {name}: kept, {kept['seconds']:.0f} s", flush=True)
            for field in KEPT:
                getattr(report, field).extend(kept[field])
            return kept["figures_of_part"]
    print(f"  {name} ...", flush=True)
    own, start = Report(report.machine), time.perf_counter()
    figures = measure(own)
    for field in KEPT:
        getattr(report, field).extend(getattr(own, field))
    seconds = time.perf_counter() - start
    print(f"  {name}: {seconds:.0f} s", flush=True)
    if keep and not own.missing:
        kept = {field: getattr(own, field) for field in KEPT}
        write(file, {"version": version, "seconds": seconds, "figures_of_part": figures, **kept})
    return figures
