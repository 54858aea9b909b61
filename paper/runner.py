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
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import givens
from givens.app.tables.write import plain
from givens.support.archive import part_of, remove_leftovers
from givens.support.imports import require
from paper.experiment import Claim, Experiment, ExperimentSettings, Row, Task
from paper.provenance import code

Advance = Callable[[str, float], None]
"""Called with the name of a finished task and its share of the whole."""


@dataclass(frozen=True)
class ExperimentOutcome:
    """The rows and claims of an experiment."""

    experiment: Experiment
    folder: Path
    source: str
    rows: list[Row]
    claims: list[Claim]
    seconds: float


def run(
    experiment: Experiment, settings: ExperimentSettings, folder: Path, advance: Advance, jobs: int = 1
) -> ExperimentOutcome:
    """Run the tasks that are not done yet, so many at a time, and write everything."""
    tasks = experiment.tasks(settings)
    kept = folder / "tasks"
    _begin(kept, experiment, settings)
    total = sum(task.weight for task in tasks)
    waiting = [task for task in tasks if not _path(kept, task).exists()]
    for task in tasks:
        if task not in waiting:
            advance(task.name, task.weight / total)
    for task in _each(waiting, kept, jobs):
        advance(task.name, task.weight / total)
    rows: list[Row] = []
    seconds = 0.0
    for task in tasks:
        done = read_done(_path(kept, task))
        rows += done["rows"]
        seconds += done["seconds"]
    outcome = ExperimentOutcome(
        experiment, folder, experiment.source(settings), rows, experiment.claims(rows, settings), seconds
    )
    _write(outcome, settings)
    return outcome


def _path(kept: Path, task: Task) -> Path:
    return kept / f"{task.name}.json"


def _each(tasks: list[Task], kept: Path, jobs: int) -> Iterator[Task]:
    """Do the tasks, in this process or in several, each of which uses one thread."""
    if jobs == 1 or len(tasks) < 2:
        for task in tasks:
            yield _do(kept, task)
        return
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(backend="loky", inner_max_num_threads=1):
        yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(
            delayed(_do)(kept, task) for task in tasks
        )


def _do(kept: Path, task: Task) -> Task:
    """Run a task and keep its rows."""
    began = time.perf_counter()
    done = {"rows": plain(task.run()), "seconds": time.perf_counter() - began}
    write_whole(_path(kept, task), json.dumps(done).encode())
    return task


def read_done(path: Path) -> dict[str, Any]:
    """Return the rows of a task, or raise an error that names a damaged file."""
    try:
        done = json.loads(path.read_text(encoding="utf-8"))
        return {"rows": list(done["rows"]), "seconds": float(done["seconds"])}
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path} is damaged or truncated: delete it, and the task is done again") from None


def _begin(kept: Path, experiment: Experiment, settings: ExperimentSettings) -> None:
    """Keep the tasks that the same code has done with the same settings; remove others."""
    kept.mkdir(parents=True, exist_ok=True)
    mark = kept / "settings.json"
    key = json.dumps({**settings.key(), "code": code(experiment.measured)}, sort_keys=True)
    if mark.exists() and mark.read_text() == key:
        return
    for path in kept.glob("*.json"):
        path.unlink()
    write_whole(mark, key.encode())


def _write(outcome: ExperimentOutcome, settings: ExperimentSettings) -> None:
    matplotlib = require("matplotlib", extra="plot")
    figure = outcome.experiment.figure(outcome.rows, settings)
    for kind in ("svg", "png"):
        buffer = io.BytesIO()
        # No date and no random identifiers: the same numbers give the same file.
        with matplotlib.rc_context({"svg.hashsalt": outcome.experiment.name}):
            figure.savefig(buffer, format=kind, dpi=100, metadata={"Date": None} if kind == "svg" else None)
        write_whole(outcome.folder / f"figure.{kind}", buffer.getvalue())
    write_whole(outcome.folder / "numbers.csv", table(outcome.rows).encode())
    claims = [asdict(claim) for claim in outcome.claims]
    write_whole(outcome.folder / "claims.csv", table(claims).encode())
    write_whole(outcome.folder / "made.json", (json.dumps(made(outcome, settings), indent=2) + "\n").encode())


def made(outcome: ExperimentOutcome, settings: ExperimentSettings) -> dict[str, Any]:
    """How the numbers were made."""
    experiment, file = outcome.experiment, outcome.experiment.file(settings)
    return {
        "experiment": experiment.name,
        "data": outcome.source,
        "file": file,
        "quick": settings.quick,
        "repetitions": repetitions(outcome.rows),
        "date": time.strftime("%Y-%m-%d"),
        "task_seconds": round(outcome.seconds, 2),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}},
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
        "command": " ".join(
            filter(None, ["python -m paper", experiment.name, settings.options(), file and "--data FOLDER"])
        ),
    }


def repetitions(rows: list[Row]) -> int:
    """How many starts, seeds or splits there are."""
    return len({row.get("seed", row.get("split")) for row in rows})


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
    """Write a file completely or not at all; temporary files of killed processes are removed."""
    remove_leftovers(path.parent, path.name)
    part = part_of(path)
    try:
        part.write_bytes(content)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
