"""Figures of a benchmark's own page: curves on logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any

from benchmarks._chart import FAINT, INK

WIDTH, HEIGHT = 620, 380
LEFT, RIGHT, TOP, BOTTOM = 66, 130, 40, 52
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
DIGITS = (1, 2, 5)


def curves(figure: Mapping[str, Any]) -> str:
    """An SVG of curves.

    `figure` has a `title`, the names `x` and `y` of the axes, `series` (lists of points by name) and `slope` (or None): a dashed
    line of this slope begins at the first point of each curve.
    """
    series: Mapping[str, list[list[float]]] = figure["series"]
    xs = [point[0] for points in series.values() for point in points]
    ys = [point[1] for points in series.values() for point in points]
    if figure["slope"] is not None:
        ys += [_straight(points, figure["slope"]) for points in series.values()]
    across = _Axis(min(xs), max(xs), LEFT, WIDTH - RIGHT)
    up = _Axis(min(ys), max(ys), HEIGHT - BOTTOM, TOP)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="13" role="img" aria-label="{escape(figure["title"])}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20" fill="{INK}">{escape(figure["title"])}</text>',
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.1f}" y="{HEIGHT - 10}" text-anchor="middle" fill="{INK}">'
        f"{escape(figure['x'])}</text>",
        f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2:.1f}) rotate(-90)" text-anchor="middle" '
        f'fill="{INK}">{escape(figure["y"])}</text>',
    ]
    for tick in across.ticks():
        at = across(tick)
        out.append(f'<path d="M{at:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="{FAINT}"/>')
        out.append(
            f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="{INK}">{tick:,g}</text>'
        )
    for tick in up.ticks():
        at = up(tick)
        out.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="{FAINT}"/>')
        out.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end" fill="{INK}">{tick:,g}</text>')
    for number, ((name, points), colour) in enumerate(zip(series.items(), COLOURS)):
        out.append(
            f'<text x="{WIDTH - RIGHT + 14}" y="{TOP + 14 + 20 * number}" fill="{colour}" font-weight="bold">'
            f"{escape(name)}</text>"
        )
        out += _curve(points, colour, figure["slope"], across, up)
    return "\n".join([*out, "</svg>"]) + "\n"


class _Axis:
    """A logarithmic axis between two places of the picture, a little longer than its figures."""

    def __init__(self, least: float, most: float, start: float, end: float) -> None:
        room = 0.05 * math.log(most / least) if most > least else 1.0
        self.low, self.high = math.log(least) - room, math.log(most) + room
        self.start, self.end = start, end

    def __call__(self, figure: float) -> float:
        return self.start + (math.log(figure) - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """1, 2 and 5 times powers of ten within the axis."""
        powers = range(math.floor(self.low / math.log(10)), math.ceil(self.high / math.log(10)) + 1)
        found = [digit * 10.0**power for power in powers for digit in DIGITS]
        return [tick for tick in found if self.low <= math.log(tick) <= self.high]


def _straight(points: list[list[float]], slope: float) -> float:
    """Where a line of this slope through the first point is at the last one."""
    return points[0][1] * (points[-1][0] / points[0][0]) ** slope


def _curve(
    points: list[list[float]], colour: str, slope: float | None, across: _Axis, up: _Axis
) -> list[str]:
    places = [(across(x), up(y)) for x, y in points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    out = [f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>']
    out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in places]
    if slope is not None:
        start, end = f"{places[0][0]:.1f} {places[0][1]:.1f}", up(_straight(points, slope))
        out.append(
            f'<path d="M{start}L{places[-1][0]:.1f} {end:.1f}" stroke="{colour}" stroke-dasharray="3 4"/>'
        )
    return out
