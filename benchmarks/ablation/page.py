"""The page `docs/ablations.md`: what each mechanism costs and earns, and what was decided."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from statistics import fmean, median
from typing import Any

from benchmarks.ablation.mechanism import BASE, Mechanism
from benchmarks.compare.measure import Measured
from benchmarks.compare.paired import geometric_mean
from benchmarks.compare.rows import ROWS

INTRODUCTION = f"""# What each mechanism earns

A mechanism is code that makes a fit faster or its answer better, and that the fit would work without. This page compares each
of them with its absence: the calls are rows of `make compare`, the code is that of commit {BASE}, and on one of the two sides
a switch leaves the mechanism out. Both sides run in turns. `make ablation` measures, and writes this page; no figure is edited
by hand.

**The rule.** A mechanism stays if leaving it out costs 20 % of time in the geometric mean of one user's rows, or twice the time
in one row of more than 0.1 s, or a visible part of the answer. What does not earn its place is deleted, and all deletions
together may cost at most 10 % in the geometric mean of all rows of `make compare`.

The columns of the first table:

- *lines*: of code, without docstrings, comments and blanks.
- *time off/on*: seconds without the mechanism over seconds with it, in the rows that reach it: geometric mean (least to
  greatest). Above 1, the mechanism saves time. This run took two rounds of each call, by the clock of the processor, on two
  cores that other work shared, so single ratios are good to a tenth or two; cold seconds are of a loaded machine.
- *one user's rows*: the same ratio in the geometric mean over all rows of the user who gains most, rows that do not reach the
  mechanism included.
- *answer without it*: how much the answer changes in the row where it changes most. Each row has a number that is smaller for a
  better answer: above 0, the answer is worse without the mechanism.
- *cold, s*: import and first call with nothing compiled, without the mechanism → with it, where compiled code belongs to it.
"""


def markdown(mechanisms: Mapping[str, Mechanism], results: Mapping[str, Mapping[str, Any]]) -> str:
    """The introduction, a table of mechanisms, and one of all rows."""
    measured = {switch: _rows(results[switch]) for switch in mechanisms if _rows(results.get(switch, {}))}
    summary = [
        "| mechanism | lines | time off/on | one user's rows | answer without it | cold, s | verdict |",
        "|---|---:|---|---|---|---|---|",
    ]
    details = [
        "| mechanism | row | off, s | on, s | off/on (95 %) | value off | on |",
        "|---|---|---:|---:|---|---:|---:|",
    ]
    for switch, rows in measured.items():
        summary.append(_summary(mechanisms[switch], rows, results[switch]))
        details += [_detail(mechanisms[switch].name, row) for row in rows]
    return "\n".join([INTRODUCTION, *summary, "", "## Every row", "", *details]) + "\n"


def _rows(parts: Mapping[str, Any]) -> list[Measured]:
    return [Measured(**part) for name, part in parts.items() if name not in ("cold", "lines")]


def _summary(mechanism: Mechanism, rows: list[Measured], parts: Mapping[str, Any]) -> str:
    ratios = [row.ratio.mean for row in rows]
    times = f"{geometric_mean(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    cold = Measured(**parts["cold"]) if "cold" in parts else None
    cells = [
        mechanism.name,
        str(parts.get("lines", "-")),
        times,
        _best_user(rows),
        _answer(rows),
        f"{fmean(cold.old_seconds):.1f} → {fmean(cold.new_seconds):.1f}" if cold else "-",
        mechanism.verdict,
    ]
    return "| " + " | ".join(cells) + " |"


def _best_user(rows: list[Measured]) -> str:
    counts = Counter(row.user for row in ROWS)
    means = {
        user: math.exp(
            sum(math.log(row.ratio.mean) for row in rows if row.user == user) / max(counts[user], 1)
        )
        for user in {row.user for row in rows}
    }
    best = max(means, key=lambda user: means[user])
    return f"{means[best]:.2f} ({best})"


def _answer(rows: list[Measured]) -> str:
    """Old is without the mechanism, so the change from old to new has the other sign."""
    worst = max(rows, key=lambda row: abs(row.change))
    if abs(worst.change) < 1e-6:
        return "same"
    return f"{-100 * worst.change:+.2g} % ({worst.name})"


def _detail(name: str, row: Measured) -> str:
    seconds = f"{median(row.old_seconds):.3g} | {median(row.new_seconds):.3g}"
    return f"| {name} | {row.name} | {seconds} | {row.ratio} | {row.old_value:.6g} | {row.new_value:.6g} |"
