"""One page with all figures and claims, and how they were made: as self-contained HTML, or as Markdown for a site."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path

from paper import EXPERIMENTS
from paper.experiment import ABOUT, Claim
from paper.runner import ExperimentOutcome, repetitions, write_whole
from paper.verdicts import DEPENDS, FAILS, HOLDS, TIE, UNCLEAR

COUNTED = {
    HOLDS: "hold",
    FAILS: "do not hold",
    TIE: "tie",
    DEPENDS: "depend",
    UNCLEAR: "cannot be told",
}

REPETITIONS = 20  # of a verdict

STYLE = """
:root { color-scheme: light dark; --text: #1c2530; --soft: #5a6675; --line: #d9dee5; --back: #fff; --card: #f6f8fa; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6eaf0; --soft: #9aa6b5; --line: #333c48; --back: #12161c; --card: #1a2029; } }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--text); background: var(--back); margin: 0 auto;
  max-width: 62rem; padding: 2rem 1rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.25; } h2 { font-size: 1.25rem; margin-top: 3rem; }
p.source { color: var(--soft); }
figure { margin: 1rem 0; background: #fff; border: 1px solid var(--line); border-radius: 8px; padding: .5rem; }
figure svg { width: 100%; height: auto; display: block; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem .6rem; border-bottom: 1px solid var(--line); }
td.yes { color: #00795a; font-weight: 600; white-space: nowrap; } td.no { color: #c04a00; font-weight: 600; white-space: nowrap; }
td.open { font-weight: 600; white-space: nowrap; }
@media (prefers-color-scheme: dark) { td.yes { color: #4cc9a0; } td.no { color: #ff9a55; } }
details { color: var(--soft); font-size: .85rem; }
pre { overflow-x: auto; background: var(--card); padding: .8rem; border-radius: 6px; }
@media print { details { display: none; } h2 { break-after: avoid; } figure, table { break-inside: avoid; } }
"""


def page(outcomes: list[ExperimentOutcome], failures: dict[str, str]) -> str:
    """The HTML of the page."""
    parts = [_section(outcome) for outcome in outcomes]
    parts += [
        f"<h2>{escape(name)}</h2><p>This one failed: {escape(text)}</p>" for name, text in failures.items()
    ]
    body = "\n".join(parts)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>The paper's experiments, made again</title><style>{STYLE}</style></head><body>
<h1>The paper's experiments, made again</h1>
<p>Uri Shalit and Gal Chechik, “Efficient coordinate-descent for orthogonal matrices through Givens rotations”. Each figure was
made by <code>python -m paper</code>; under it is what was claimed, what was measured, and the verdict.</p>
{"".join(f"<p><strong>{escape(line)}</strong></p>" for line in counts(outcomes))}
{body}
</body></html>
"""


def markdown(outcomes: list[ExperimentOutcome], failures: dict[str, str]) -> str:
    """The same as Markdown, beside figures called `<experiment>.png`."""
    parts = [_markdown_section(outcome) for outcome in outcomes]
    parts += [f"## {name}\n\nThis one failed: {text}\n" for name, text in failures.items()]
    return "# The paper's experiments: results\n\n" + _summary(outcomes) + "\n" + "\n".join(parts)


def write_markdown(folder: Path, outcomes: list[ExperimentOutcome], failures: dict[str, str]) -> None:
    """Write `results.md` and the figures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for outcome in outcomes:
        figure = (outcome.folder / "figure.png").read_bytes()
        write_whole(folder / f"{outcome.experiment.name}.png", figure)
    write_whole(folder / "results.md", markdown(outcomes, failures).encode())


def counts(outcomes: list[ExperimentOutcome]) -> list[str]:
    """Two counts: of the claims about the paper's algorithms, and of those about ours."""
    lines = []
    for about in ABOUT:
        own = [claim for outcome in outcomes for claim in outcome.claims if claim.about == about]
        found = {verdict: sum(claim.verdict == verdict for claim in own) for verdict in COUNTED}
        words = ", ".join(f"{count} {COUNTED[verdict]}" for verdict, count in found.items() if count)
        if own:
            lines.append(f"Of {len(own)} claims about {about}: {words}.")
    return lines


def shortfalls(outcomes: list[ExperimentOutcome]) -> list[str]:
    """Notes on experiments with few repetitions, and on missing ones."""
    few = [
        f"{outcome.experiment.name} ({repetitions(outcome.rows)})"
        for outcome in outcomes
        if repetitions(outcome.rows) < REPETITIONS
    ]
    missing = sorted(set(EXPERIMENTS) - {outcome.experiment.name for outcome in outcomes})
    lines = [f"Made with fewer than {REPETITIONS} repetitions: {', '.join(few)}."] if few else []
    return lines + ([f"Not run for this page: {', '.join(missing)}."] if missing else [])


def _summary(outcomes: list[ExperimentOutcome]) -> str:
    lines = "\n".join(
        [f"- **{line}**" for line in counts(outcomes)] + [f"- {line}" for line in shortfalls(outcomes)]
    )
    rows = "\n".join(
        f"| {outcome.experiment.title.partition(':')[0]} | {_cell(claim.statement)} | {claim.about} | {claim.verdict} |"
        for outcome in outcomes
        for claim in outcome.claims
    )
    return f"""Made by `python -m paper`, not by hand: each figure is followed by what was claimed, what was measured, and the
verdict. Verdicts are over pairs (the same start, seed or split for both methods) with 95 % intervals in brackets: *holds*, *does
not hold*, *tie* (the interval lies within the margin that the claim states), *depends* (on what the cases differ in), *cannot be
told*.

{lines}

| | Claim | About | Verdict |
|---|---|---|---|
{rows}
"""


def _markdown_section(outcome: ExperimentOutcome) -> str:
    made = json.loads((outcome.folder / "made.json").read_text())
    name = outcome.experiment.name
    tables = "\n".join(_markdown_table(outcome, about) for about in ABOUT)
    versions = ", ".join(f"{package} {version}" for package, version in made["versions"].items())
    file = f" (`{made['file']}`)" if made["file"] else ""
    return f"""## {outcome.experiment.title}

{outcome.experiment.about}

Data: {outcome.source}{file}.

![{outcome.experiment.title}]({name}.png)

{tables}
Made on {made["date"]} by `{made["command"]}`, {made["repetitions"]} repetitions; {versions}.
"""


def _markdown_table(outcome: ExperimentOutcome, about: str) -> str:
    own = [claim for claim in outcome.claims if claim.about == about]
    if not own:
        return ""
    rows = "\n".join(
        f"| {_cell(claim.statement)} | {_cell(claim.measured)} | {claim.verdict} |" for claim in own
    )
    return f"| About {about} | Measured | |\n|---|---|---|\n{rows}\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("; ", ";<br>")


def _lines(text: str) -> str:
    """Many figures, one to a line."""
    return ";<br>".join(escape(part) for part in text.split("; "))


def _section(outcome: ExperimentOutcome) -> str:
    tables = "".join(
        f"<table><thead><tr><th>About {about}</th><th>Measured</th><th></th></tr></thead><tbody>"
        + "".join(_html_row(claim) for claim in outcome.claims if claim.about == about)
        + "</tbody></table>"
        for about in ABOUT
        if any(claim.about == about for claim in outcome.claims)
    )
    made = json.dumps(json.loads((outcome.folder / "made.json").read_text()), indent=2)
    return f"""<section><h2>{escape(outcome.experiment.title)}</h2>
<p>{escape(outcome.experiment.about)}</p><p class="source">Data: {escape(outcome.source)}.</p>
<figure>{_inline(outcome.folder / "figure.svg", outcome.experiment.name)}</figure>
{tables}
<details><summary>How this was made</summary><pre>{escape(made)}</pre></details></section>"""


def _html_row(claim: Claim) -> str:
    shade = {HOLDS: "yes", FAILS: "no"}.get(claim.verdict, "open")
    return (
        f"<tr><td>{escape(claim.statement)}</td><td>{_lines(claim.measured)}</td>"
        f'<td class="{shade}">{claim.verdict}</td></tr>'
    )


def _inline(path: Path, name: str) -> str:
    """The figure for the page, with identifiers that no other figure has."""
    svg = path.read_text(encoding="utf-8")
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{name}-", svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(name)}"', 1)
