"""Results as a page that people read: verdicts first, then one section per benchmark."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Any

from benchmarks._report import show

Result = dict[str, Any]


def page(results: Sequence[Result], stale: Collection[str] = (), published: bool = False) -> str:
    """The whole page. `stale` names results of other code, which are marked as such."""
    lines = ["# Benchmarks", ""]
    if published:
        lines += [
            "Every figure on this page was measured by `make bench`, all on the same code; the page is made from "
            "[the figures](benchmarks.json) by `python -m benchmarks --publish` and never edited by hand. "
            "Rivals run on the same data, in the same process, with the same threads.",
            "",
        ]
    if not results:
        return "\n".join([*lines, "Nothing is measured yet.", ""])
    lines += [*_machine(results), *_verdicts(results)]
    for result in results:
        lines += _section(result, result["name"] in stale)
    return "\n".join(lines).rstrip() + "\n"


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
        lines += ["*Measured with other code than the present.*", ""]
    if result.get("text"):
        lines += [result["text"], ""]
    for _, rows in groupby(result["rows"], key=tuple):
        lines += table(list(rows))
    if result["claims"]:
        lines += table(
            [
                {
                    "target": f"{claim['text']}: {show(claim['target'])}",
                    "measured": show(claim["measured"]),
                    "": "holds" if claim["holds"] else "**missed**",
                }
                for claim in result["claims"]
            ]
        )
    lines += [f"- {note}" for note in result["notes"]]
    if result["notes"]:
        lines.append("")
    return [*lines, f"`{result['name']}`, {result['seconds']:.0f} s", ""]
