"""Run an experiment: task by task, each kept as soon as it is done; then the numbers, the figure, the claims.

Into its folder go `figure.svg`, `figure.png`, `numbers.csv`, `claims.csv` and `made.json` (versions, seeds, data, machine,
seconds); `tasks/` holds what is done so far, and a further run with the same settings goes on from there.
"""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import givens
from givens.experiments.base import Claim, Experiment, Row, Settings
from givens.io.write import plain

Advance = Callable[[str, float], None]
"""Told the name of a task that is done, and the share of the whole that it was."""


@dataclass(frozen=True)
class Outcome:
    """What came of an experiment."""

    experiment: Experiment
    folder: Path
    source: str
    rows: list[Row]
    claims: list[Claim]
    seconds: float


def run(experiment: Experiment, settings: Settings, folder: Path, advance: Advance) -> Outcome:
    """Run the tasks that are not done yet, and write everything."""
    tasks = experiment.tasks(settings)
    kept = folder / "tasks"
    _begin(kept, settings)
    total = sum(task.weight for task in tasks)
    rows: list[Row] = []
    seconds = 0.0
    for task in tasks:
        path = kept / f"{task.name}.json"
        if path.exists():
            done = json.loads(path.read_text())
        else:
            began = time.perf_counter()
            done = {"rows": plain(task.run()), "seconds": time.perf_counter() - began}
            write_whole(path, json.dumps(done).encode())
        rows += done["rows"]
        seconds += done["seconds"]
        advance(task.name, task.weight / total)
    outcome = Outcome(
        experiment, folder, experiment.source(settings), rows, experiment.claims(rows, settings), seconds
    )
    _write(outcome, settings)
    return outcome


def _begin(kept: Path, settings: Settings) -> None:
    """Keep what was done with the same settings and version; what was done with others is of no use."""
    kept.mkdir(parents=True, exist_ok=True)
    mark = kept / "settings.json"
    key = json.dumps({**settings.key(), "givens": givens.__version__}, sort_keys=True)
    if mark.exists() and mark.read_text() == key:
        return
    for path in kept.glob("*.json"):
        path.unlink()
    write_whole(mark, key.encode())


def _write(outcome: Outcome, settings: Settings) -> None:
    figure = outcome.experiment.figure(outcome.rows, settings)
    for kind in ("svg", "png"):
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, dpi=160)
        write_whole(outcome.folder / f"figure.{kind}", buffer.getvalue())
    write_whole(outcome.folder / "numbers.csv", table(outcome.rows).encode())
    claims = [{**asdict(claim), "holds": claim.verdict} for claim in outcome.claims]
    write_whole(outcome.folder / "claims.csv", table(claims).encode())
    write_whole(outcome.folder / "made.json", (json.dumps(made(outcome, settings), indent=2) + "\n").encode())


def made(outcome: Outcome, settings: Settings) -> dict[str, Any]:
    """How the numbers were made."""
    return {
        "experiment": outcome.experiment.name,
        "data": outcome.source,
        "settings": settings.key(),
        "date": time.strftime("%Y-%m-%d"),
        "seconds": round(outcome.seconds, 2),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}},
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
        "command": "givens " + " ".join(sys.argv[1:]),
    }


_PACKAGES = ("givens", "numpy", "scipy", "numba", "scikit-learn")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return givens.__version__ if package == "givens" else "not installed"


def table(rows: list[Row]) -> str:
    """Rows as CSV, with the columns of all of them."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that appears whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(content)
    os.replace(part, path)
