"""From a fitted model to the files that a command writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import numpy as np
from rich.table import Table as RichTable

import givens
from givens.app.commands.samples import SAMPLE_NOUNS, Scored
from givens.app.commands.session import Session, command_line, shown, summary_head, write_results
from givens.app.report import Report
from givens.app.report.views import components_view, trace_view
from givens.app.tables import Table
from givens.app.tables.table import numbered
from givens.app.tables.write import Staged, write_matrix

Columns = dict[str, tuple[Any, str]]


def percent(share: float) -> str:
    """Return a share as a percentage.

    >>> percent(0.4213)
    '42.1 %'
    """
    return f"{100 * share:.1f} %"


def cell(value: float | None, form: str) -> str:
    """Return a number as the cell of a table: of the form "%" as a percentage, where there is none as a dash.

    >>> cell(0.4213, "%"), cell(12600, ","), cell(None, ".2f")
    ('42.1 %', '12,600', '–')
    """
    if value is None or value != value:
        return "–"
    return percent(value) if form == "%" else format(value, form)


def records(names: Sequence[str], **columns: Sequence[object] | np.ndarray | None) -> list[dict[str, object]]:
    """Return a record for each name, of those columns that are not None."""
    known = {key: values for key, values in columns.items() if values is not None}
    return [
        {"name": name, **{key: values[k] for key, values in known.items()}} for k, name in enumerate(names)
    ]


def shares(sizes: np.ndarray) -> np.ndarray:
    """Return each size as a share of their sum; zeros where the sum is 0."""
    total = float(sizes.sum())
    return sizes / total if total > 0 else np.zeros(len(sizes))


def plain_table(title: str, **more: Any) -> RichTable:
    """Return a table without lines for the terminal."""
    return RichTable(
        title=shown(title), title_justify="left", header_style="bold", box=None, pad_edge=False, **more
    )


def summary_table(title: str, noun: str, columns: Columns, last: str, words: Sequence[str]) -> RichTable:
    """Return the table that a command prints at its end: a line for each component, its variables or words last."""
    table = plain_table(title, expand=True)
    table.add_column(noun, no_wrap=True)
    columns = {name: column for name, column in columns.items() if column[0] is not None}
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column(last, overflow="ellipsis", no_wrap=True, ratio=1)
    for k, text in enumerate(words):
        table.add_row(str(k + 1), *(cell(values[k], form) for values, form in columns.values()), shown(text))
    return table


def largest(weights: np.ndarray, variables: Sequence[str]) -> list[str]:
    """Return the variables with the four largest weights of each component."""
    words = []
    for row in weights:
        # Weights that are equal but for rounding come in the order of the variables, on every processor.
        order = np.argsort(-np.abs(row).round(12), kind="stable")[:4]
        words.append(", ".join(f"{'−' if row[j] < 0 else '+'}{variables[j]}" for j in order if row[j]))
    return words


def weight_files(
    weights: dict[str, np.ndarray | None], variables: Sequence[str], header: Sequence[str]
) -> dict[str, Callable[[IO[str]], None]]:
    """Return files of weights, components x variables, by name: with a line for each variable and a column for each component."""

    def written(rows: np.ndarray) -> Callable[[IO[str]], None]:
        return lambda stream: write_matrix(stream, ["variable"], header, [([list(variables)], rows.T)])

    return {name: written(np.asarray(rows)) for name, rows in weights.items() if rows is not None}


@dataclass
class CommandOutcome:
    """What a command writes and prints."""

    summary: dict[str, object]
    report: Report
    table: RichTable
    files: dict[str, Callable[[IO[str]], None]]

    def write(self, session: Session, files: Staged) -> None:
        """Write every file, and say where they are."""
        written = write_results(self.summary, self.report, self.files, files)
        session.finish(self.summary, self.table, written)


def outcome(
    session: Session,
    analysis: str,
    data: Scored | Table,
    file: Path,
    result: givens.Result | None,
    *,
    noun: str,
    weights: np.ndarray,
    components: dict[str, Any],
    columns: Columns,
    title: str,
    page_title: str,
    facts: list[tuple[str, str, str]],
    size: Mapping[str, object],
    settings: dict[str, object],
    figures: dict[str, object],
    further: Mapping[str, np.ndarray | None] = MappingProxyType({}),
    words: tuple[str, list[str]] | None = None,
    diagnostics: Sequence[tuple[str, str, str]] = (),
    criterion: str = "objective",
    **page: Any,
) -> CommandOutcome:
    """Return the outcome of a command: its page, its summary and its files, with the run, the settings and the warnings.

    Parameters
    ----------
    session : Session
    analysis : str
        The name of the command.
    data : Scored or Table
        The samples; in memory and without scores their table.
    file : Path
    result : Result or None
        The run.
    noun : str
        What a row of `weights` is.
    weights : array of shape (components, variables)
        For components.csv.
    components : dict
        How the page shows the components: what `components_view` takes; other weights than those of the file as `weights`.
    columns : dict of str to (array or None, form)
        Of the table that the command prints, under `title`; `cell` says what a form is.
    title, page_title : str
    facts, diagnostics : list of (label, value, note)
        For the page.
    size, settings, figures : dict
        For the summary: the size of the data, the parameters, and the numbers that were found.
    further : dict of str to array
        Weights in other files, by name.
    words : str and list of str, optional
        The last column of the table that the command prints; the largest variables of each component if None.
    criterion : str
        What the run optimises.
    **page
        Other parts of the `Report`.
    """
    samples = data.samples if isinstance(data, Scored) else data
    variables, notes = samples.variables, samples.notes
    names = numbered(noun, len(weights))
    shown_weights = components.pop("weights", weights)
    summary = {
        **summary_head(analysis, file, notes),
        **size,
        "parameters": settings,
        **figures,
        **convergence(result),
        "warnings": session.warnings,
        "seconds": session.seconds,
        "seconds_compiling": session.seconds_compiling,
    }
    report = Report(
        page_title,
        facts=facts,
        notes=notes,
        warnings=session.warnings,
        components=components_view(shown_weights, variables, noun=noun, **components),
        diagnostics=list(diagnostics),
        settings=[(key, str(value)) for key, value in settings.items()],
        command=command_line(),
        version=givens.__version__,
        **page,
    )
    if result is not None:
        report.facts += converged_fact(result, session.compiled)
        report.diagnostics += convergence_lines(result)
        message = result.message
        if session.compiled:
            kept = " code that later runs find compiled" if session.kept else ""
            message += f". The time includes {session.compiled:.1f} s for compiling{kept}"
        report.trace = trace_view(result.trace, message, criterion)
    last, cells = words or ("largest variables", largest(shown_weights, variables))
    files = weight_files({"components.csv": weights, **further}, variables, names)
    if isinstance(data, Scored):
        files |= data.files
    return CommandOutcome(summary, report, summary_table(title, noun, columns, last, cells), files)


def size_line(data: Scored, number: int, noun: str, nouns: tuple[str, str] = SAMPLE_NOUNS) -> str:
    """Return the size of data and result, as stands under the title of a page."""
    return f"{data.number:,} {nouns[0]}s × {len(data.samples.variables):,} {nouns[1]}s, {number} {noun}s"


def size_of(data: Scored, nouns: tuple[str, str] = SAMPLE_NOUNS) -> dict[str, int]:
    """Return the size of data for the summary."""
    return {f"{nouns[0]}s": data.number, f"{nouns[1]}s": len(data.samples.variables)}


def convergence(result: givens.Result | None) -> dict[str, object]:
    """Return the entries of the summary about a run."""
    if result is None:
        return {}
    return {
        "converged": bool(result.converged),
        "message": result.message,
        "steps": result.steps,
        "method": result.method,
        "value": result.value,
        "gradient_norm": result.gradient_norm,
    }


def converged_fact(result: givens.Result, compiled: float) -> list[tuple[str, str, str]]:
    """Return the card that says whether a run converged, and in how many seconds."""
    state = "yes" if result.converged else "no"
    seconds = f"{result.seconds:.2f} s" + (", compiling included" if compiled else "")
    return [("Converged", state, f"{_steps(result)}, {seconds}")]


def _steps(result: givens.Result) -> str:
    return "1 step" if result.steps == 1 else f"{result.steps} steps"


def convergence_lines(result: givens.Result) -> list[tuple[str, str, str]]:
    """Return the diagnostics of a run."""
    reason = result.message[:1].upper() + result.message[1:].rstrip(".") + "."
    lines = [
        ("What ran", _steps(result), result.method[:1].upper() + result.method[1:] + "."),
        ("Converged", "yes" if result.converged else "no", reason),
    ]
    if not result.U.size:
        return lines
    return [
        *lines,
        (
            "Gradient norm",
            f"{result.gradient_norm:.2e}",
            "0 at an optimum of the objective; it stays above 0 where a number of non-zeros is given.",
        ),
        ("Loss of orthogonality", f"{result.orthogonality:.1e}", "‖UᵀU − I‖: rounding errors only."),
    ]
