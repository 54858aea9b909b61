"""From arrays to the sections of the page.

The page holds what a reader can look at: the entries that are not zero (all of them up to `MOST_WEIGHTS`; beyond that
the largest of each component, at least `LEAST_ENTRIES`), and at most `MOST_POINTS` samples, evenly chosen. The files beside the
page hold everything, and the page says what it leaves to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from givens.app.report.labels import Separation, strength

MOST_WEIGHTS = 300_000  # of all components together
LEAST_ENTRIES = 1000  # that a component may have in the page, however many components there are
MOST_NAMES = 100_000  # of variables without an entry in the page, for the search
MOST_POINTS = 3000
MOST_ROWS = 300


def components_view(
    weights: np.ndarray,
    variables: Sequence[str],
    *,
    share: Sequence[float] | np.ndarray | None = None,
    second: np.ndarray | None = None,
    second_title: str = "",
    either: bool = False,
    names: Sequence[str] | None = None,
    title: str = "Components",
    noun: str = "component",
    lead: str = "",
    weight: str = "weights",
    entry: str = "non-zero weight",
    variable: str = "variable",
) -> dict[str, object]:
    """Return the section of bars.

    Parameters
    ----------
    weights : array of shape (components, variables)
    variables : sequence of str
    share : sequence of float, optional
        Share of the variance of each component, between 0 and 1.
    second : array of shape (components, variables), optional
        Shown as another bar beside each weight: how often a variable was selected, or the weight in another result. A variable
        with a zero weight and a second value that is not zero gets a line too.
    second_title : str
        What `second` is.
    either : bool
        Whether such a variable is part of the component. If not, it is neither counted nor copied with it.
    names : sequence of str, optional
        Of the components; `noun` and a number if None.
    title, noun, lead, weight, entry, variable
        What to call things.
    """
    weights = np.asarray(weights, np.float64)
    beside = None if second is None else np.asarray(second, np.float64)
    most = max(LEAST_ENTRIES, MOST_WEIGHTS // max(1, len(weights)))
    entries: list[dict[str, object]] = []
    cut: list[int] = []
    used: dict[int, int] = {}
    for k, row in enumerate(weights):
        shown = row != 0 if beside is None else (row != 0) | (beside[k] != 0)
        found = np.flatnonzero(shown)
        size = np.abs(row[found]).round(12)
        order = (
            found[np.argsort(-size, kind="stable")]
            if beside is None
            else found[np.lexsort((-np.abs(beside[k][found]), -size))]
        )
        belonging = len(order) if either else int(np.count_nonzero(row))
        cut.append(belonging if belonging > most else 0)
        kept = order[:most]
        held = {
            "variables": [used.setdefault(j, len(used)) for j in kept.tolist()],
            "weights": shortened_all(row[kept]),
        }
        if beside is not None:
            held["second"] = shortened_all(beside[k][kept])
        entries.append(held)
    # Whoever looks for a variable whose weight is not here has to be told so, and not that it has none.
    left_out = [j for j in range(len(variables)) if j not in used] if any(cut) else []
    return {
        "title": title,
        "noun": noun,
        "lead": lead,
        "weight": weight,
        "entry": entry,
        "variable": variable,
        "names": list(names) if names else [f"{noun.capitalize()} {k + 1}" for k in range(len(weights))],
        "share": None if share is None else shortened_all(share),
        "variables": [variables[k] for k in used],
        "others": [variables[k] for k in left_out[:MOST_NAMES]],
        "othersCut": len(left_out) > MOST_NAMES,
        "entries": entries,
        "secondTitle": second_title,
        "either": either,
        "secondSigned": beside is not None and bool((beside < 0).any()),
        "cut": cut,
    }


def separation_view(
    found: Sequence[Separation], notes: Sequence[str], components: Sequence[str], permutations: int
) -> dict[str, object] | None:
    """Return the table of which components separate which labels, or None where there is nothing to tell."""
    if not found:
        return None
    lead = (
        "AUC (two classes): the probability that a sample of one class has a higher score than a sample of the other; 0.5 is "
        "chance. Correlation ratio (more classes): the share of a component's variance that lies between the classes. Rank "
        f"correlation (numbers): Spearman's. p: the share of {permutations + 1:,} random permutations of the labels, the actual "
        "labels included, that are separated as well. p, any component: the same for the best of all components, which corrects "
        "for testing all of them."
    )
    return {
        "lead": " ".join([lead, *notes]),
        "header": [
            "Component",
            "Label",
            "Measure",
            "Value",
            "Highest scores",
            "Samples",
            "p",
            "p, any component",
        ],
        "rows": [
            {
                "component": row.component,
                "strength": shortened(strength(row)),
                "cells": [
                    components[row.component],
                    row.label,
                    row.measure,
                    f"{row.value:.3f}",
                    row.high,
                    f"{row.samples:,}",
                    f"{row.p:.3f}",
                    f"{row.p_any:.3f}",
                ],
            }
            for row in found
        ],
    }


def heat_map_view(
    before: np.ndarray,
    after: np.ndarray,
    variables: Sequence[str],
    names_before: Sequence[str],
    names_after: Sequence[str],
) -> dict[str, object]:
    """Return the section of loadings before and after a rotation, both variables x factors.

    Rows are put together by the factor that they load on most after the rotation, the largest loading first; of more than
    MOST_ROWS variables those with the largest loadings are kept.
    """
    before, after = np.asarray(before, np.float64), np.asarray(after, np.float64)
    peaks = np.abs(after).max(axis=1)
    kept = np.argsort(-peaks, kind="stable")[:MOST_ROWS]
    order = kept[np.lexsort((-peaks[kept], np.abs(after[kept]).argmax(axis=1)))]
    lead = (
        "Loadings before and after the rotation. Variables are grouped by the factor that they load on most."
    )
    if len(kept) < len(after):
        lead += f" Of {len(after):,} variables, the {len(kept)} with the largest loadings are shown."
    return {
        "lead": lead,
        "variables": [variables[k] for k in order],
        "places": [int(k) for k in order],
        "before": {"names": list(names_before), "values": [shortened_all(row) for row in before[order]]},
        "after": {"names": list(names_after), "values": [shortened_all(row) for row in after[order]]},
    }


def shortened(value: float) -> float:
    """Return the number with six digits, as many as anyone can see."""
    return float(f"{value:.6g}")


def shortened_all(values: Sequence[float] | np.ndarray) -> list[float]:
    """Return numbers with six digits.

    >>> shortened_all(np.array([0.123456789, 0.0, -1e-300]))
    [0.123457, 0.0, -1e-300]
    """
    return [shortened(value) for value in np.asarray(values).tolist()]


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
    labels: Mapping[str, Sequence[str]] | None = None,
    lead: str = "",
    total: int | None = None,
    marks: Sequence[tuple[str, np.ndarray]] = (),
) -> dict[str, object] | None:
    """Return the scatter of samples, or None where there is nothing to show; a single score is drawn in their order.

    `labels` are the samples' labels by what they are called; the first colours until the reader chooses another. `total` is the
    number of samples there are, if `scores` holds only some of them. `marks` are short names with a value for
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
        "values": [shortened_all(scores[k]) for k in rows],
        "labels": [
            {"name": name, **coded([words[k] for k in rows])} for name, words in (labels or {}).items()
        ],
        "marks": [{"name": name, "values": shortened_all(place)} for name, place in marks],
    }


def coded(words: Sequence[str]) -> dict[str, object]:
    """Return words as numbers of the different ones among them.

    >>> coded(["b", "a", "b"])
    {'levels': ['b', 'a'], 'codes': [0, 1, 0]}
    """
    levels: dict[str, int] = {}
    codes = [levels.setdefault(word, len(levels)) for word in words]
    return {"levels": list(levels), "codes": codes}


def path_view(
    nonzeros: Sequence[float] | np.ndarray,
    variance: Sequence[float] | np.ndarray,
    chosen: tuple[float, float] | None,
    counted: bool = False,
) -> dict[str, object]:
    """Return variance against non-zeros along the path, with the point of this model.

    `counted` says that the model's components have the counts of non-zeros that were asked for.
    """
    curve = [(float(x), float(y)) for x, y in sorted(zip(nonzeros, variance)) if x > 0]
    lead = "How much variance is explained as the components are allowed more variables."
    if chosen is not None:
        lead += " The filled point is this model."
        if counted:
            lead += (
                " Its components have the numbers of variables that were asked for. Along the curve, stronger components have"
                " more variables than weaker ones, so the curve can lie above the point."
            )
    drawn = sorted([(x, y, False) for x, y in curve] + ([] if chosen is None else [(*chosen, True)]))
    points = [
        {
            "x": x,
            "y": shortened(y),
            "title": f"{'this model, ' if of_model else ''}{x:,.0f} non-zeros",
            "text": f"{100 * y:.1f} % explained",
            **({"chosen": True} if of_model else {}),
        }
        for x, y, of_model in drawn
    ]
    return {
        "lead": lead,
        "points": points,
        "xTitle": "non-zero weights of all components",
        "yTitle": "explained variance",
        "xLog": bool(drawn) and drawn[-1][0] > 20 * drawn[0][0],
        "yLog": False,
        "zero": True,
        "percent": True,
        "header": ["Non-zeros", "Explained"],
        "table": [[f"{x:,.0f}", f"{100 * y:.2f} %"] for x, y in curve],
    }


def trace_view(
    trace: Any, message: str, name: str = "objective", most: int = 400
) -> dict[str, object] | None:
    """Return the convergence: the value after each step, from a `Trace`; without points where all that changes is rounding."""
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
    what = f"The {name} after each step."
    # Of a value: a smaller change of it is rounding
    if max(values) - min(values) <= 1e-12 * max(map(abs, values)):
        what = (
            f"The {name} was {values[-1]:.8g} at the start, and the steps changed it by rounding errors only."
        )
        points = []
    return {
        "lead": f"{what} {message[:1].upper()}{message[1:]}.",
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
