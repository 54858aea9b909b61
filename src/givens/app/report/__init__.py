"""One page that shows a result: no network, no build step, nothing but the file itself.

The page is a template, a style sheet and a few scripts of this folder, put together with the data as JSON.
Names come from other people's files, so three things keep them text: the JSON is written without `<`, `>`
and `&`, the scripts put names on the page through `textContent` only, and the page's own policy lets no
script run but the one whose hash it names.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.resources import files

from givens.app.tables.write import plain

SCRIPTS = (
    "base.js",
    "download.js",
    "components.js",
    "tables.js",
    "heat_map.js",
    "charts.js",
    "scores.js",
    "sources.js",
    "main.js",
)

PAPER = {
    "text": "U. Shalit and G. Chechik: Coordinate-descent for learning orthogonal matrices through Givens "
    "rotations. ICML 2014.",
    "bibtex": """@inproceedings{shalit2014givens,
  title     = {Coordinate-descent for learning orthogonal matrices through Givens rotations},
  author    = {Shalit, Uri and Chechik, Gal},
  booktitle = {Proceedings of the 31st International Conference on Machine Learning},
  series    = {Proceedings of Machine Learning Research},
  volume    = {32},
  number    = {1},
  pages     = {548--556},
  year      = {2014}
}""",
}


@dataclass
class Report:
    """What the page shows, section by section; a section that is None or empty is left out.

    Attributes
    ----------
    title, subtitle : str
    facts : list of (label, value, note)
        The figures at the top.
    notes, warnings : list of str
        What was guessed while reading; what the reader has to know.
    sources, components, separation, heat_map, scores, path, trace : dict or None
        Made by the functions of `givens.app.report.views`.
    pairs : dict or None
        What two results have in common: `lead`, `header` and `rows` of a table.
    diagnostics : list of (name, value, meaning)
    settings : list of (name, value)
    command : str
        What made it.
    version : str
    """

    title: str
    subtitle: str = ""
    facts: list[tuple[str, str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    sources: dict[str, object] | None = None
    components: dict[str, object] | None = None
    separation: dict[str, object] | None = None
    pairs: dict[str, object] | None = None
    heat_map: dict[str, object] | None = None
    scores: dict[str, object] | None = None
    path: dict[str, object] | None = None
    trace: dict[str, object] | None = None
    diagnostics: list[tuple[str, str, str]] = field(default_factory=list)
    settings: list[tuple[str, str]] = field(default_factory=list)
    command: str = ""
    version: str = ""

    def html(self) -> str:
        """Return the page.

        Examples
        --------
        >>> from givens.app.report import Report
        >>> page = Report("A gene called <script>", facts=[("Samples", "102", "")]).html()
        >>> page[:15], "A gene called <script>" in page
        ('<!doctype html>', False)
        """
        return render(self)


def embedded(content: object) -> str:
    """Return JSON that can stand inside a script element whatever it holds.

    >>> print(embedded({"gene": "</script><b>"}))
    {"gene":"\\u003c/script\\u003e\\u003cb\\u003e"}
    """
    text = json.dumps(plain(content), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Half a surrogate pair, as a damaged name may hold, cannot be written as UTF-8.
    text = text.encode("utf-8", "replace").decode("utf-8")
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _named(pairs: Sequence[tuple[str, ...]], keys: Sequence[str]) -> list[dict[str, str]]:
    return [dict(zip(keys, pair)) for pair in pairs]


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def render(report: Report) -> str:
    """Put the page together."""
    folder = files("givens.app.report")
    style = folder.joinpath("page.css").read_text(encoding="utf-8")
    script = "".join(folder.joinpath(name).read_text(encoding="utf-8") for name in SCRIPTS)
    script = '"use strict";\n(() => {\n' + script + "})();\n"
    made = f"Made by givens {report.version} on {datetime.now().astimezone():%d %B %Y at %H:%M}."
    content = {
        "title": report.title,
        "subtitle": report.subtitle,
        "made": made + " This page is complete in itself: it loads nothing and sends nothing.",
        "facts": _named(report.facts, ("label", "value", "note")),
        "notes": report.notes,
        "warnings": report.warnings,
        "sources": report.sources,
        "components": report.components,
        "separation": report.separation,
        "pairs": report.pairs,
        "heatMap": report.heat_map,
        "scores": report.scores,
        "path": report.path,
        "trace": report.trace,
        "diagnostics": _named(report.diagnostics, ("name", "value", "meaning")),
        "settings": [[name, str(value)] for name, value in report.settings],
        "command": report.command,
        "citations": [PAPER],
    }
    # The hashes are the whole policy: an injected script or style, had there been a way for one, would not
    # run.
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": policy,
        "title": html.escape(report.title),
        "style": style,
        "data": embedded(content),
        "script": script,
    }
    page = folder.joinpath("page.html").read_text(encoding="utf-8")
    # One pass over the template: a marker that stands in a name is not filled in.
    return re.sub("@(policy|title|style|data|script)@", lambda marker: parts[marker[1]], page)
