"""One page with all of it: figures, claims, how they were made. Self-contained, no script."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path

from givens.experiments.runner import Outcome

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
@media (prefers-color-scheme: dark) { td.yes { color: #4cc9a0; } td.no { color: #ff9a55; } }
details { color: var(--soft); font-size: .85rem; }
pre { overflow-x: auto; background: var(--card); padding: .8rem; border-radius: 6px; }
@media print { details { display: none; } h2 { break-after: avoid; } figure, table { break-inside: avoid; } }
"""


def page(outcomes: list[Outcome], failures: dict[str, str]) -> str:
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
made by <code>givens reproduce</code>; under it is what the paper says, what was measured, and whether it holds.</p>
{body}
</body></html>
"""


def _section(outcome: Outcome) -> str:
    rows = "".join(
        f"<tr><td>{escape(claim.statement)}</td><td>{escape(claim.measured)}</td>"
        f'<td class="{"yes" if claim.holds else "no"}">{claim.verdict}</td></tr>'
        for claim in outcome.claims
    )
    made = json.dumps(json.loads((outcome.folder / "made.json").read_text()), indent=2)
    return f"""<section><h2>{escape(outcome.experiment.title)}</h2>
<p>{escape(outcome.experiment.about)}</p><p class="source">Data: {escape(outcome.source)}.</p>
<figure>{_inline(outcome.folder / "figure.svg", outcome.experiment.name)}</figure>
<table><thead><tr><th>What the paper says</th><th>Measured</th><th></th></tr></thead><tbody>{rows}</tbody></table>
<details><summary>How this was made</summary><pre>{escape(made)}</pre></details></section>"""


def _inline(path: Path, name: str) -> str:
    """The figure as it stands in the page; its identifiers made the experiment's own, or figures would share them."""
    svg = path.read_text(encoding="utf-8")
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{name}-", svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(name)}"', 1)
