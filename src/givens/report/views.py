"""From arrays to the sections of the page.

The page holds what a reader can look at, not the whole result: the entries that are not zero (at most
`MOST_ENTRIES` a component), and at most `MOST_POINTS` samples, evenly chosen. The files beside the page
hold everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

MOST_ENTRIES = 1000
MOST_POINTS = 3000
MOST_ROWS = 300


def components_view(
    weights: np.ndarray,
    variables: Sequence[str],
    *,
    share: Sequence[float] | np.ndarray | None = None,
    title: str = "Components",
    noun: str = "component",
    lead: str = "",
    weight: str = "weights",
    entry: str = "non-zero weight",
    variable: str = "variable",
) -> dict[str, Any]:
    """Return the section of bars.

    Parameters
    ----------
    weights : array of shape (components, variables)
    variables : sequence of str
    share : sequence of float, optional
        Share of the variance of each component, between 0 and 1.
    title, noun, lead, weight, entry, variable
        What to call things.
    """
    weights = np.asarray(weights, np.float64)
    names = [f"{noun.capitalize()} {k + 1}" for k in range(len(weights))]
    entries: list[list[list[float]]] = []
    cut: list[int] = []
    used: dict[int, int] = {}
    for row in weights:
        found = np.flatnonzero(row)
        order = found[np.argsort(-np.abs(row[found]), kind="stable")]
        cut.append(len(order) if len(order) > MOST_ENTRIES else 0)
        kept = order[:MOST_ENTRIES].tolist()
        entries.append([[used.setdefault(k, len(used)), shortened(row[k])] for k in kept])
    return {
        "title": title,
        "noun": noun,
        "lead": lead,
        "weight": weight,
        "entry": entry,
        "variable": variable,
        "names": names,
        "share": None if share is None else [shortened(value) for value in share],
        "variables": [variables[k] for k in used],
        "entries": entries,
        "cut": cut,
    }


def heat_map_view(
    before: np.ndarray,
    after: np.ndarray,
    variables: Sequence[str],
    names_before: Sequence[str],
    names_after: Sequence[str],
) -> dict[str, Any]:
    """Return the section of loadings before and after a rotation, both variables x factors.

    Rows are put together by the factor that they load on most after the rotation, the largest loading first; of more than
    MOST_ROWS variables those with the largest loadings are kept.
    """
    before, after = np.asarray(before, np.float64), np.asarray(after, np.float64)
    peaks = np.abs(after).max(axis=1)
    kept = np.argsort(-peaks, kind="stable")[:MOST_ROWS]
    order = kept[np.lexsort((-peaks[kept], np.abs(after[kept]).argmax(axis=1)))]
    lead = (
        "Loadings before and after the rotation; variables are put together by the factor they load on most."
    )
    if len(kept) < len(after):
        lead += f" The {len(kept)} variables with the largest loadings of {len(after):,} are shown."
    return {
        "lead": lead,
        "variables": [variables[k] for k in order],
        "places": [int(k) for k in order],
        "before": {"names": list(names_before), "values": _rounded(before[order])},
        "after": {"names": list(names_after), "values": _rounded(after[order])},
    }


def _rounded(values: np.ndarray) -> list[list[float]]:
    return [[shortened(value) for value in row] for row in values]


def shortened(value: float) -> float:
    """Return the number with six digits, as many as anyone can see."""
    return float(f"{value:.6g}")


def chosen_rows(total: int) -> np.ndarray:
    """Return the rows that the page shows: all of them, or MOST_POINTS evenly chosen."""
    if total <= MOST_POINTS:
        return np.arange(total)
    return np.linspace(0, total - 1, MOST_POINTS).round().astype(int)


def scores_view(
    scores: np.ndarray,
    samples: Sequence[str],
    *,
    axes: Sequence[str],
    labels: Sequence[str] | None = None,
    label_name: str = "",
    lead: str = "",
    total: int | None = None,
    marks: Sequence[tuple[str, np.ndarray]] = (),
) -> dict[str, Any] | None:
    """Return the scatter of samples, or None where there is nothing to show; a single score is drawn in their order.

    `total` is the number of samples there are, if `scores` holds only some of them. `marks` are short names with a value for
    each axis, written where they belong.
    """
    scores = np.asarray(scores, np.float64)
    if scores.shape[1] < 1 or not len(scores):
        return None
    if scores.shape[1] == 1:
        scores, axes = np.column_stack([np.arange(1, len(scores) + 1), scores]), ["Samples in order", *axes]
    rows = chosen_rows(len(scores))
    total = len(scores) if total is None else total
    if len(rows) < total:
        lead = f"{lead} The page shows {len(rows):,} of {total:,} samples, evenly chosen.".strip()
    return {
        "lead": lead,
        "axes": list(axes),
        "names": [samples[k] for k in rows],
        "values": [[shortened(value) for value in scores[k]] for k in rows],
        "labels": None if labels is None else [labels[k] for k in rows],
        "labelName": label_name,
        "marks": [{"name": name, "values": [shortened(value) for value in place]} for name, place in marks],
    }


def path_view(
    nonzeros: Sequence[float] | np.ndarray,
    variance: Sequence[float] | np.ndarray,
    chosen: tuple[float, float] | None,
    counted: bool = False,
) -> dict[str, Any]:
    """Return variance against non-zeros along the path, with the point of this model.

    `counted` says that the model's components have the counts of non-zeros that were asked for.
    """
    points: list[dict[str, Any]] = [
        {
            "x": float(x),
            "y": shortened(y),
            "title": f"{x:,.0f} non-zeros",
            "text": f"{100 * y:.1f} % explained",
        }
        for x, y in sorted(zip(nonzeros, variance))
        if x > 0
    ]
    table = [[f"{p['x']:,.0f}", f"{100 * p['y']:.2f} %"] for p in points]
    lead = "How much variance is explained as the components are allowed more variables."
    if chosen is not None:
        x, y = chosen
        title, text = f"this model, {x:,.0f} non-zeros", f"{100 * y:.1f} % explained"
        points.append({"x": float(x), "y": shortened(y), "title": title, "text": text, "chosen": True})
        points.sort(key=lambda point: point["x"])
        lead += " The filled point is this model."
        if counted:
            lead += (
                " It has the counts that were asked for; along the curve the stronger components take more of"
                " the variables, which explains more with as many in all."
            )
    return {
        "lead": lead,
        "points": points,
        "xTitle": "non-zero weights, all components together",
        "yTitle": "explained variance",
        "xLog": bool(points) and points[-1]["x"] > 20 * points[0]["x"],
        "yLog": False,
        "zero": True,
        "percent": True,
        "header": ["Non-zeros", "Explained"],
        "table": table,
    }


def trace_view(trace: Any, message: str, name: str = "objective", most: int = 400) -> dict[str, Any] | None:
    """Return the convergence: the value after each step, from a `Trace`."""
    steps, values, seconds = list(trace.step), list(trace.value), list(trace.seconds)
    if len(values) < 2:
        return None
    gradients = list(trace.gradient_norm)
    keep = np.unique(np.linspace(0, len(values) - 1, min(most, len(values))).round().astype(int)).tolist()
    points = [
        {
            "x": float(steps[k]),
            "y": float(values[k]),
            "title": f"step {steps[k]}",
            "text": f"{name} {values[k]:.8g}\nafter {seconds[k]:.2f} s",
        }
        for k in keep
    ]
    table = [[str(steps[k]), f"{values[k]:.10g}", f"{gradients[k]:.3g}", f"{seconds[k]:.3f}"] for k in keep]
    return {
        "lead": f"The {name} after each step. {message[:1].upper()}{message[1:]}.",
        "points": points,
        "xTitle": "steps",
        "yTitle": name,
        "xLog": False,
        "yLog": False,
        "zero": False,
        "percent": False,
        "header": ["Step", name.capitalize(), "Gradient norm", "Seconds"],
        "table": [["–" if cell == "nan" else cell for cell in line] for line in table],
    }
