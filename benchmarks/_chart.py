"""The chart of the published front page: how many times faster, one bar per task and rival, on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

BARS, SPACE, LETTER = 380, 20, 7.2
"""Width of the bars, of the space beside them, and of a letter."""
ROW, TOP, BOTTOM = 26, 44, 16
AHEAD, BEHIND, MARK, INK, FAINT = "#00796b", "#c2571a", "#222222", "#333333", "#d5d9dc"


def chart(ratios: Sequence[Mapping[str, Any]]) -> str:
    """An SVG of ratios, each with `task`, `rival`, `times` and `wanted` (a target, or None)."""
    rows = [row for row in ratios if row["times"] > 0]
    if not rows:
        return '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>\n'
    figures = [row["times"] for row in rows] + [row["wanted"] for row in rows if row["wanted"]]
    low = min(-0.3, math.floor(math.log10(min(figures)) * 2) / 2)
    high = max(1.0, math.ceil(math.log10(max(figures)) * 2) / 2)

    left = round(SPACE + LETTER * max(len(row["task"]) for row in rows))
    labels = [f"{row['times']:.3g} × {row['rival']}" for row in rows]

    def x(times: float) -> float:
        return left + (math.log10(times) - low) / (high - low) * BARS

    def beside(row: Mapping[str, Any]) -> float:
        """Where the label of a bar begins: right of the bar, and of the mark of a target that it misses."""
        return (
            max(
                x(times)
                for times in (1.0, row["times"], row["wanted"] or 0.0)
                if times >= row["times"] or times == 1.0
            )
            + 8
        )

    width = round(
        max(beside(row) + LETTER * len(label) for row, label in zip(rows, labels, strict=True)) + SPACE
    )

    height = TOP + ROW * len(rows) + BOTTOM
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="13" role="img" '
        'aria-label="How many times faster givens is than each rival">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{left}" y="16" fill="{INK}">times as fast as the rival (right of 1: givens is faster)</text>',
    ]
    for power in range(math.ceil(low), math.floor(high) + 1):
        at, weight = x(10.0**power), 1.6 if power == 0 else 1
        colour = INK if power == 0 else FAINT
        out.append(
            f'<path d="M{at:.1f} {TOP - 6}V{height - BOTTOM}" stroke="{colour}" stroke-width="{weight}"/>'
        )
        out.append(
            f'<text x="{at:.1f}" y="{TOP - 12}" text-anchor="middle" fill="{INK}">{10.0**power:g}</text>'
        )
    for number, row in enumerate(rows):
        middle = TOP + ROW * (number + 0.5)
        start, end = sorted((x(1.0), x(row["times"])))
        colour = AHEAD if row["times"] >= 1 else BEHIND
        out.append(
            f'<text x="{left - 10}" y="{middle + 4:.1f}" text-anchor="end" fill="{INK}">{escape(row["task"])}</text>'
        )
        out.append(
            f'<rect x="{start:.1f}" y="{middle - 8:.1f}" width="{max(end - start, 1):.1f}" height="16" rx="2" fill="{colour}"/>'
        )
        if row["wanted"]:
            at = x(row["wanted"])
            out.append(
                f'<path d="M{at:.1f} {middle - 11:.1f}v22" stroke="{MARK}" stroke-width="2" stroke-dasharray="2 2"/>'
            )
        out.append(
            f'<text x="{beside(row):.1f}" y="{middle + 4:.1f}" fill="{INK}" stroke="#ffffff" stroke-width="3" '
            f'paint-order="stroke">{escape(labels[number])}</text>'
        )
    return "\n".join([*out, "</svg>"]) + "\n"
