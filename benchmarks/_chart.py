"""The chart of the published front page: how many times faster, one bar per task and rival, on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

WIDTH, LEFT, RIGHT = 920, 330, 210
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

    def x(times: float) -> float:
        return LEFT + (math.log10(times) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    height = TOP + ROW * len(rows) + BOTTOM
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="13" role="img" '
        'aria-label="How many times faster givens is than each rival">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="16" fill="{INK}">times as fast as the rival (right of 1: givens is faster)</text>',
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
            f'<text x="{LEFT - 10}" y="{middle + 4:.1f}" text-anchor="end" fill="{INK}">{escape(row["task"])}</text>'
        )
        out.append(
            f'<rect x="{start:.1f}" y="{middle - 8:.1f}" width="{max(end - start, 1):.1f}" height="16" rx="2" fill="{colour}"/>'
        )
        if row["wanted"]:
            at = x(row["wanted"])
            out.append(
                f'<path d="M{at:.1f} {middle - 11:.1f}v22" stroke="{MARK}" stroke-width="2" stroke-dasharray="2 2"/>'
            )
        label = f"{row['times']:.3g} × {row['rival']}"
        out.append(
            f'<text x="{max(end, x(1.0)) + 8:.1f}" y="{middle + 4:.1f}" fill="{INK}" stroke="#ffffff" stroke-width="3" '
            f'paint-order="stroke">{escape(label)}</text>'
        )
    return "\n".join([*out, "</svg>"]) + "\n"
