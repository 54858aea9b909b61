"""What a benchmark writes its figures into."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks._measure import Peak, Timing, peak, race


class Report:
    """The figures of one benchmark.

    Attributes
    ----------
    machine : dict
        The machine as it was measured at the start of the run: `cores`, `memory_gb`, and per number of
        threads, as strings, `gflops` (double-precision matrix product), `read_gbs` and `copy_gbs` (memory
        bandwidth; a copied byte counts twice). `report.machine["gflops"]["2"]`, say.
    """

    def __init__(self, machine: Mapping[str, Any] | None = None) -> None:
        self.machine = dict(machine or {})
        self.rows: list[dict[str, Any]] = []
        self.claims: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.missing: list[str] = []
        self.ratios: list[dict[str, Any]] = []
        self.figures: list[dict[str, Any]] = []

    def row(self, **figures: Any) -> None:
        """Add a row to the table. Rows with the same names stand in one table, in the order they came."""
        self.rows.append(figures)
        print("  " + "  ".join(f"{name}={show(figure)}" for name, figure in figures.items()), flush=True)

    def claim(self, text: str, target: Any, measured: Any, holds: bool) -> None:
        """Say what should be true, what was measured, and whether it holds."""
        self.claims.append({"text": text, "target": target, "measured": measured, "holds": bool(holds)})
        verdict = "holds " if holds else "MISSED"
        print(f"  {verdict} {text}: {show(measured)} (target: {show(target)})", flush=True)

    def ratio(self, task: str, rival: str, times: float, wanted: float | None = None) -> None:
        """Say how many times faster givens is than a rival on a task: a bar of the published chart.

        `wanted`, the target, is drawn as a mark.
        """
        self.ratios.append({"task": task, "rival": rival, "times": float(times), "wanted": wanted})
        print(f"  {task}: {times:.2f} times as fast as {rival}", flush=True)

    def figure(
        self,
        name: str,
        title: str,
        x: str,
        y: str,
        series: Mapping[str, list[tuple[float, float]]],
        slope: float | None = None,
    ) -> None:
        """Add curves on logarithmic axes, published as `NAME.svg`; with a dashed line of this slope beside each of them."""
        points = {label: [[float(a), float(b)] for a, b in pairs] for label, pairs in series.items()}
        self.figures.append({"name": name, "title": title, "x": x, "y": y, "series": points, "slope": slope})

    def note(self, text: str) -> None:
        """Add a sentence that a reader of the figures needs."""
        self.notes.append(text)
        print(f"  note: {text}", flush=True)

    def time(self, function: Callable[[], Any], repeat: int = 3, warm: int = 0) -> Timing:
        """Time a call `repeat` times, after `warm` calls that do not count.

        The timing has `.best`, `.median`, `.seconds` of each call, and `.value`, what the last one returned.
        """
        return race({"": function}, repeat, warm)[""]

    def race(
        self, functions: Mapping[str, Callable[[], Any]], repeat: int = 3, warm: int = 0
    ) -> dict[str, Timing]:
        """Time several calls in turns, so that a disturbance of the machine falls on all of them."""
        return race(functions, repeat, warm)

    def peak(self, function: Callable[..., Any], *arguments: Any) -> Peak:
        """Peak memory of a call in a process of its own: `.bytes`, `.before`, `.seconds`, `.value`.

        The function has to stand at the top of a module; arguments and outcome are pickled.
        """
        return peak(function, *arguments)

    def data(self, name: str) -> Path | None:
        """The file of real data whose name begins so, or None (and a note that it was not found)."""
        path = find_data(name)
        if path is None:
            self.missing.append(name)
            self.note(f"left out for want of the data file {name}: GIVENS_DATA names the folder of real data")
        return path


def find_data(name: str) -> Path | None:
    """Look in the folder GIVENS_DATA, or else in shared/data beside the checkout."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("GIVENS_DATA") or beside)
    exact = folder / name
    if exact.is_file():
        return exact
    found = sorted(folder.glob(f"{name}*.npz")) if folder.is_dir() else []
    return found[0] if len(found) == 1 else None


def show(figure: Any) -> str:
    """Write a figure as people read it: four digits, no more."""
    if isinstance(figure, bool):
        return "yes" if figure else "no"
    if figure is None:
        return ""
    if hasattr(figure, "item"):
        figure = figure.item()
    if isinstance(figure, int):
        return f"{figure:,}"
    if isinstance(figure, float):
        if figure == 0 or 1e-3 <= abs(figure) < 1e5:
            return f"{figure:,.4g}" if abs(figure) < 1e4 else f"{figure:,.0f}"
        return f"{figure:.3g}"
    return str(figure)
