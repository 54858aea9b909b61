"""Results as a page that people read: verdicts first, then one section per benchmark."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Any

from benchmarks._report import show

Result = dict[str, Any]
STALE = "*Measured with other code than the present.*"


def page(results: Sequence[Result], stale: Collection[str] = ()) -> str:
    """Everything on one page, for the terminal: verdicts first, then a section per benchmark."""
    if not results:
        return "# Benchmarks\n\nNothing is measured yet.\n"
    lines = ["# Benchmarks", "", *_machine(results), *_verdicts(results)]
    for result in results:
        lines += _section(result, result["name"] in stale)
    return "\n".join(lines).rstrip() + "\n"


def front(results: Sequence[Result], stale: Collection[str] = (), unmeasured: Collection[str] = ()) -> str:
    """The published front page: a chart of the ratios, what is missed, and a line that leads to every benchmark."""
    lines = [
        "# Benchmarks",
        "",
        "![How many times faster givens is than each rival](benchmarks/chart.svg)",
        "",
        "How fast and how accurate is `givens` beside other libraries for the same task? Each bar of the chart compares it with "
        "one rival on one task, measured in the same run on the same data. Rivals have their default settings, except for what "
        "makes the work equal or lets them finish: starts, tolerances and limits of iterations (FastICA, Picard, pymanopt, "
        "factor_analyzer, statsmodels, rjd), passes, priors and batches (LDA, dask-ml, dictionary learning), penalties (sparse "
        "PCA), threads. GPower and the tensor power method are implementations of ours, GPower with the rules of its authors' "
        "program. Below are the targets that are missed, and a link to the tables of each benchmark. `make bench` and `make "
        "publish` write all figures; none is edited by hand, and [one file](claims.json) holds the targets of all.",
        "",
    ]
    missed = [(result, claim) for result in results for claim in result["claims"] if not claim["holds"]]
    number = sum(len(result["claims"]) for result in results)
    lines += [f"## {len(missed)} of {number} targets are missed", ""]
    for result in results:
        mine = [claim for other, claim in missed if other is result]
        if mine:
            first = mine[0]
            more = f"; and {len(mine) - 1} more in this benchmark" if len(mine) > 1 else ""
            lines.append(
                f"- [{result['title']}](benchmarks/{result['name']}.md): {first['text']}: "
                f"{show(first['measured'])}, target {show(first['target'])}{more}"
            )
    lines += ["", "## All benchmarks", ""]
    rows = []
    for result in results:
        claims = result["claims"]
        rows.append(
            {
                "benchmark": f"[{result['title']}](benchmarks/{result['name']}.md)",
                "targets met": f"{sum(claim['holds'] for claim in claims)} of {len(claims)}"
                if claims
                else "",
                "measured": result["date"][:10] + (", with earlier code" if result["name"] in stale else ""),
            }
        )
    rows += [{"benchmark": name, "targets met": "", "measured": "not yet"} for name in unmeasured]
    return "\n".join([*lines, *table(rows), *_machine(results)]).rstrip() + "\n"


def detail(result: Result) -> str:
    """The published page of one benchmark."""
    lines = _section(result, stale=False)
    lines[0] = lines[0].removeprefix("#")
    for figure in result.get("figures", []):
        lines += [f"![{figure['title']}]({figure['name']}.svg)", ""]
    return "\n".join([*lines, "[All benchmarks](../benchmarks.md)"]) + "\n"


def marked(text: str) -> str:
    """The page of a benchmark with the mark of results of other code, below its title."""
    title, rest = text.split("\n\n", 1)
    return text if rest.startswith(STALE) else f"{title}\n\n{STALE}\n\n{rest}"


def verdicts(claims: Sequence[dict[str, Any]]) -> list[str]:
    """A table of targets."""
    rows = [
        {
            "target": f"{claim['text']}: {show(claim['target'])}",
            "measured": show(claim["measured"]),
            "": "holds" if claim["holds"] else "**missed**",
        }
        for claim in claims
    ]
    return table(rows) if rows else []


def table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """A Markdown table of rows that have the same names; numbers stand to the right."""
    names = list(rows[0])
    numeric = [all(isinstance(row[name], int | float) or row[name] is None for row in rows) for name in names]
    lines = [
        "| " + " | ".join(name.replace("_", " ") for name in names) + " |",
        "|" + "|".join("---:" if right else "---" for right in numeric) + "|",
    ]
    lines += ["| " + " | ".join(_cell(row[name]) for name in names) + " |" for row in rows]
    return [*lines, ""]


def _cell(figure: Any) -> str:
    return show(figure).replace("|", "\\|").replace("\n", " ")


def _machine(results: Sequence[Result]) -> list[str]:
    newest = max(results, key=lambda result: result["date"])
    machine, versions = newest["machine"], newest["versions"]
    seconds = sum(result["seconds"] for result in results)
    lines = [f"Measured {newest['date'][:10]}; all benchmarks together took {seconds / 60:.1f} minutes."]
    if machine:
        lines += [
            "",
            f"Machine: {machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB; "
            f"matrix product {_per_thread(machine['gflops'])} GF/s, "
            f"memory read {_per_thread(machine['read_gbs'])} GB/s, "
            f"copied {_per_thread(machine['copy_gbs'])} GB/s (one thread / two).",
        ]
    return [
        *lines,
        "",
        "Versions: " + ", ".join(f"{name} {number}" for name, number in versions.items()) + ".",
        "",
    ]


def _per_thread(figures: dict[str, float]) -> str:
    return " / ".join(f"{figure:g}" for figure in figures.values())


def _verdicts(results: Sequence[Result]) -> list[str]:
    claims = [(result, claim) for result in results for claim in result["claims"]]
    crashed = [result["name"] for result in results if result["error"]]
    missed = [(result, claim) for result, claim in claims if not claim["holds"]]
    lines = ["## Targets", "", f"{len(claims) - len(missed)} of {len(claims)} targets are met."]
    if missed:
        lines += ["", "Missed:", ""]
        lines += [
            f"- **{claim['text']}** ({result['name']}): {show(claim['measured'])}, "
            f"target {show(claim['target'])}"
            for result, claim in missed
        ]
    if crashed:
        lines += ["", f"Crashed: {', '.join(crashed)}."]
    return [*lines, ""]


def _section(result: Result, stale: bool) -> list[str]:
    lines = [f"## {result['title']}", ""]
    if result["error"]:
        last = result["error"].strip().split("\n")[-1]
        lines += [f"**This benchmark crashed:** `{last}`", ""]
    if stale:
        lines += [STALE, ""]
    if result.get("text"):
        lines += [result["text"], ""]
    for _, rows in groupby(result["rows"], key=tuple):
        lines += table(list(rows))
    lines += verdicts(result["claims"])
    lines += [f"- {note}" for note in result["notes"]]
    if result["notes"]:
        lines.append("")
    return [*lines, f"`{result['name']}`, {result['seconds']:.0f} s", ""]
