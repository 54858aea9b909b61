"""One benchmark in an interpreter of its own: `python -m benchmarks._child FOLDER NAME`, machine on stdin."""

from __future__ import annotations

import importlib
import json
import sys
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks._report import Report
from benchmarks._runner import write


def measure(folder: Path, name: str, context: dict[str, Any]) -> bool:
    """Run the benchmark and write its results; what it had measured before an exception is kept beside it."""
    report = Report(context["machine"])
    result: dict[str, Any] = {"name": name, "title": name, "error": None, **context}
    result["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    start = time.perf_counter()
    try:
        module = importlib.import_module(f"{folder.name}.{name}")
        lines = (module.__doc__ or name).strip().split("\n")
        result["title"], result["text"] = lines[0].rstrip("."), "\n".join(lines[1:]).strip()
        module.run(report)
    except Exception:
        result["error"] = traceback.format_exc()
        traceback.print_exc()
    result["seconds"] = round(time.perf_counter() - start, 2)
    result |= {"rows": report.rows, "claims": report.claims, "notes": report.notes, "missing": report.missing}
    result |= {"ratios": report.ratios, "figures": report.figures}
    write(folder / "results" / f"{name}.json", result)
    return result["error"] is None


if __name__ == "__main__":
    try:
        sys.exit(0 if measure(Path(sys.argv[1]), sys.argv[2], json.load(sys.stdin)) else 1)
    except KeyboardInterrupt:
        sys.exit(130)
