"""What was measured as a Markdown table, the worst ratio first, and in a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from benchmarks.compare.measure import Measured
from benchmarks.compare.paired import geometric_mean

HEADER = "| row | user | old, s | new, s | old / new (95 %) | value: old | new | change | peak: old, MB | new, MB |"
RULE = "|---|---|---:|---:|---|---:|---:|---:|---:|---:|"


def line(row: Measured) -> str:
    """One row of the table."""
    cells = [
        row.name,
        row.user,
        f"{median(row.old_seconds):.3g}",
        f"{median(row.new_seconds):.3g}",
        str(row.ratio),
        f"{row.old_value:.6g}",
        f"{row.new_value:.6g}",
        _change(row.change),
        _megabytes(row.old_memory),
        _megabytes(row.new_memory),
    ]
    return "| " + " | ".join(cells) + " |"


def markdown(rows: Sequence[Measured]) -> str:
    """The table, and under it the geometric means and the least ratio."""
    ordered = sorted(rows, key=lambda row: row.ratio.mean)
    lines = [HEADER, RULE, *(line(row) for row in ordered), "", *_means(rows)]
    least, worst = ordered[0], max(rows, key=lambda row: row.change)
    lines.append(f"- least ratio: {least.ratio.mean:.2f} ({least.name})")
    lines.append(f"- largest growth of a value (smaller is better): {_change(worst.change)} ({worst.name})")
    return "\n".join(lines) + "\n"


def _means(rows: Sequence[Measured]) -> list[str]:
    groups = {user: [row for row in rows if row.user == user] for user in sorted({row.user for row in rows})}
    lines = [
        f"- {user}: geometric mean {geometric_mean([row.ratio.mean for row in group]):.2f} of {len(group)} rows"
        for user, group in groups.items()
    ]
    everything = geometric_mean([row.ratio.mean for row in rows])
    return [*lines, f"- all: geometric mean {everything:.2f} of {len(rows)} rows"]


def _change(change: float) -> str:
    """In per cent; below a millionth the two values count as equal."""
    return "0" if abs(change) < 1e-6 else f"{100 * change:+.2g} %"


def _megabytes(count: int) -> str:
    return f"{count / 2**20:.0f}" if count else "-"
