"""From a fitted model to the files that a command writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from rich.table import Table as RichTable

import givens
from givens.app.commands.session import Session, command_line, shown, summary_head, write_results
from givens.app.report import Report
from givens.app.report.labels import PERMUTATIONS, Separation, separations
from givens.app.report.views import components_view, scores_view, separation_view, trace_view
from givens.app.tables import Table
from givens.app.tables.table import numbered
from givens.app.tables.write import Staged, distinct, write_matrix
from givens.metrics import largest_correlation

SCORES_LEAD = "Each point is a sample. Point at one, or use the arrow keys, to see its name and scores."


HIDDEN = ("progress", "warm_start")  # parameters that say nothing about the result


def percent(share: float) -> str:
    """Return a share as a percentage.

    >>> percent(0.4213)
    '42.1 %'
    """
    return f"{100 * share:.1f} %"


def described(labels: Sequence[str] | Counter[str] | None) -> str:
    """Return the most frequent labels with their counts.

    >>> described(["a", "b", "a"])
    '2 a, 1 b'
    """
    if labels is None:
        return "without labels"
    tally = Counter(labels)
    shown = ", ".join(f"{number:,} {label}" for label, number in tally.most_common(3))
    return shown if len(tally) <= 3 else f"{len(tally):,} different labels"


def shares(sizes: np.ndarray) -> np.ndarray:
    """Return each size as a share of their sum; zeros where the sum is 0."""
    total = float(sizes.sum())
    return sizes / total if total > 0 else np.zeros(len(sizes))


def summary_table(
    title: str, noun: str, columns: dict[str, list[str]], last: str, words: Sequence[str]
) -> RichTable:
    """Return the table that a command prints at its end: a line for each component, its variables or words last."""
    table = RichTable(
        title=shown(title), title_justify="left", header_style="bold", box=None, pad_edge=False, expand=True
    )
    table.add_column(noun, no_wrap=True)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column(last, overflow="ellipsis", no_wrap=True, ratio=1)
    for k, text in enumerate(words):
        table.add_row(str(k + 1), *(cells[k] for cells in columns.values()), shown(text))
    return table


def component_table(
    weights: np.ndarray, variables: Sequence[str], noun: str, columns: dict[str, list[str]], title: str
) -> RichTable:
    """Return the summary table of components, with the four largest weights of each."""
    words = []
    for row in weights:
        order = np.argsort(-np.abs(row), kind="stable")[:4]
        words.append(", ".join(f"{'−' if row[j] < 0 else '+'}{variables[j]}" for j in order if row[j]))
    return summary_table(title, noun, columns, "largest variables", words)


def weight_files(
    weights: dict[str, np.ndarray | None], variables: Sequence[str], header: Sequence[str]
) -> dict[str, Callable[[IO[str]], None]]:
    """Return files of weights, components x variables, by name: with a line for each variable and a column for each component."""

    def written(rows: np.ndarray) -> Callable[[IO[str]], None]:
        return lambda stream: write_matrix(stream, ["variable"], header, [([list(variables)], rows.T)])

    return {name: written(np.asarray(rows)) for name, rows in weights.items() if rows is not None}


def write_score_blocks(
    stream: IO[str],
    labels: list[str],
    extra: list[str],
    header: Sequence[str],
    blocks: Iterable[tuple[list[list[str]], np.ndarray]],
) -> None:
    """Write a line for each sample: its name, its labels if it has any, what else is said of it, its scores."""
    headings = ["sample", *distinct(labels, ["sample", *extra, *header]), *extra]
    write_matrix(stream, headings, header, blocks)


def with_labels(table: Table, found: str, assigned: list[str]) -> dict[str, list[str]]:
    """Return the labels to colour by: those of the table, then what was found, under a name of its own."""
    return {**table.all_labels, distinct([found], list(table.all_labels))[0]: assigned}


@dataclass
class CommandOutcome:
    """What a command writes and prints."""

    summary: dict[str, Any]
    report: Report
    table: RichTable
    files: dict[str, Callable[[IO[str]], None]]

    def with_scores(
        self, table: Table, scores: np.ndarray, noun: str, extra: dict[str, list[str]] | None = None
    ) -> Self:
        """Add scores.csv: the scores of all samples, a column for each `noun`, and what else is said of them."""
        extra, labels = extra or {}, table.all_labels
        words = [table.samples, *labels.values(), *extra.values()]
        header = numbered(noun, scores.shape[1])
        self.files["scores.csv"] = lambda stream: write_score_blocks(
            stream, list(labels), list(extra), header, [(words, scores)]
        )
        return self

    def write(self, session: Session, files: Staged) -> None:
        """Write every file, and say where they are."""
        written = write_results(self.summary, self.report, self.files, files)
        session.finish(self.summary, self.table, written)


def outcome(
    session: Session,
    report: Report,
    analysis: str,
    file: Path,
    result: Any,
    *,
    size: dict[str, Any],
    settings: dict[str, Any],
    figures: dict[str, Any],
    table: RichTable,
    files: dict[str, Callable[[IO[str]], None]],
    criterion: str = "objective",
) -> CommandOutcome:
    """Return the outcome of a command: its report, completed with the run, the settings and the warnings.

    `size` and `figures` go into the summary: the size of the data, and the numbers that were found.
    """
    settings = {name: value for name, value in settings.items() if name not in HIDDEN}
    summary = {
        **summary_head(analysis, file, report.notes),
        **size,
        "parameters": settings,
        **figures,
        **convergence(result),
        "warnings": session.warnings,
        "seconds": session.seconds,
        "seconds_compiling": session.seconds_compiling,
    }
    report.warnings = session.warnings
    report.settings = [(key, str(value)) for key, value in settings.items()]
    report.command, report.version = command_line(), givens.__version__
    if result is not None:
        report.facts += converged_fact(result, session.compiled)
        report.diagnostics += convergence_lines(result)
        message = result.message
        if session.compiled:
            kept = " code that later runs find compiled" if session.kept else ""
            message += f". The time includes {session.compiled:.1f} s for compiling{kept}"
        report.trace = trace_view(result.trace, message, criterion)
    return CommandOutcome(summary, report, table, files)


@dataclass
class Described:
    """The data that a model was fitted to, as the results describe them."""

    file: Path
    samples: int
    variables: list[str]
    notes: list[str]
    labels: str  # in words

    @classmethod
    def of(cls, file: Path, table: Table) -> Described:
        """Describe a whole table."""
        return cls(file, table.shape[0], table.variables, table.notes, described(table.labels))


def sparse_pca_outcome(
    session: Session,
    data: Described,
    model: Any,
    *,
    share: np.ndarray,
    score_gram: np.ndarray,
    samples: tuple[Sequence[str], np.ndarray, Mapping[str, Sequence[str]]],
    path: dict[str, Any] | None = None,
) -> CommandOutcome:
    """Return the summary, the report and the components of a fitted SparsePCA or StreamingSparsePCA.

    `score_gram` is the Gram matrix of the centred scores of all samples. `samples` are the names, scores and labels of those that
    the page shows: all of them, or some, evenly chosen.
    """
    sample_names, scores, labels = samples
    separated, notes = separations(scores, labels)
    if len(scores) < data.samples:
        notes.append(f"Computed from {len(scores):,} of the samples, evenly chosen.")
    weights = np.asarray(model.components_)
    names, axes = numbered("component", len(weights)), numbered("Component", len(weights))
    nonzero = (weights != 0).sum(axis=1)
    used = int(np.any(weights != 0, axis=0).sum())
    overlapping, correlated = largest_correlation(weights @ weights.T), largest_correlation(score_gram)
    total = float(share.sum())
    stable, halves = getattr(model, "stability_", None), getattr(model, "stability", None)
    selected = getattr(model, "selection_frequency_", None)
    report = Report(
        title=f"Sparse components of {data.file.name}",
        subtitle=f"{data.samples:,} samples × {len(data.variables):,} variables, {len(weights)} components",
        facts=[
            ("Variance explained", percent(total), "by all components together, adjusted for their overlap"),
            ("Non-zero weights", f"{int(nonzero.sum()):,}", f"of {weights.size:,}"),
            ("Variables used", f"{used:,}", f"of {len(data.variables):,}"),
            ("Samples", f"{data.samples:,}", data.labels),
        ],
        notes=data.notes,
        components=components_view(
            weights,
            data.variables,
            share=share,
            lead="Each component is a weighted sum of few variables. The percentage is the share of the variance that it "
            "adds to those before it. Point at a bar to see its variable in every component."
            + (STABILITY if halves else ""),
            second=selected,
            second_title="Selected" if halves else "",
        ),
        separation=separation_view(separated, notes, axes, PERMUTATIONS),
        scores=scores_view(
            scores, sample_names, axes=axes, labels=labels, lead=SCORES_LEAD, total=data.samples
        ),
        path=path,
        diagnostics=[
            *stability_lines(stable, halves),
            *stream_lines(model),
            ("Largest overlap of two components", f"{overlapping:.3f}", OVERLAP),
            ("Largest correlation of scores", f"{correlated:.3f}", CORRELATION),
        ],
    )
    columns = {
        "explained": [percent(value) for value in share],
        "non-zeros": [f"{value:,}" for value in nonzero],
        **({} if stable is None else {"stability": [f"{value:.2f}" for value in stable]}),
    }
    title = f"{len(weights)} components explain {percent(total)} of the variance"
    return outcome(
        session,
        report,
        "sparse-pca",
        data.file,
        getattr(model, "result_", None),
        size={"samples": data.samples, "variables": len(data.variables)},
        settings=model.get_params(),
        figures={
            "explained_variance_ratio": total,
            "variables_used": used,
            "components": [
                {
                    "name": names[k],
                    "explained_variance_ratio": share[k],
                    "n_nonzero": int(nonzero[k]),
                    **({} if stable is None else {"stability": stable[k]}),
                }
                for k in range(len(weights))
            ],
            "gamma": getattr(model, "gamma_", None),
            **({"method": model.method_} if hasattr(model, "method_") else {}),
            "largest_overlap": overlapping,
            "largest_score_correlation": correlated,
            **separation_figures(separated, names),
        },
        table=component_table(weights, data.variables, "component", columns, title),
        files=weight_files({"components.csv": weights, "selection.csv": selected}, data.variables, names),
    )


def separation_figures(found: Sequence[Separation], names: Sequence[str]) -> dict[str, Any]:
    """Return the entries of the summary about labels that components separate."""
    if not found:
        return {}
    rows = [
        {
            "component": names[row.component],
            "label": row.label,
            "measure": row.measure,
            "value": row.value,
            "highest": row.high,
            "samples": row.samples,
            "p": row.p,
            "p_any_component": row.p_any,
        }
        for row in found
    ]
    return {"separation": rows}


def stability_lines(stable: np.ndarray | None, halves: int | None) -> list[tuple[str, str, str]]:
    """Return the diagnostics of stability, the least stable component first."""
    if stable is None:
        return []
    meaning = (
        f"Mean |cosine| between a component and its matches in {halves} random halves of the samples: 1 if every half finds "
        "the same component. This is the least stable one."
    )
    return [("Stability", f"{stable.min():.2f}", f"Component {int(stable.argmin()) + 1}. {meaning}")]


def stream_lines(model: Any) -> list[tuple[str, str, str]]:
    """Return the diagnostics of a stream, which has no `result_`."""
    if not hasattr(model, "method_"):
        return []
    samples = f"{model.n_samples_seen_:,} samples"
    return [("What ran", samples, model.method_[:1].upper() + model.method_[1:] + ".")]


STABILITY = (
    " Selected: the share of random halves of the samples in which the variable has a weight in the matching component. "
    "Variables that only halves selected are listed last, in grey: they have weight 0 and are no part of the component. "
    "selection.csv holds the shares of all variables."
)
OVERLAP = "Largest |zᵢ·zⱼ| of the weights z of two components: 0 if they are orthogonal, 1 if they are equal."
CORRELATION = (
    "0 in ordinary PCA. Where it is large, two components share variance; the explained variance counts "
    "what they share once."
)


def convergence(result: Any) -> dict[str, Any]:
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


def converged_fact(result: Any, compiled: float) -> list[tuple[str, str, str]]:
    """Return the card that says whether a run converged, and in how many seconds."""
    state = "yes" if result.converged else "no"
    seconds = f"{result.seconds:.2f} s" + (", compiling included" if compiled else "")
    return [("Converged", state, f"{_steps(result)}, {seconds}")]


def _steps(result: Any) -> str:
    return "1 step" if result.steps == 1 else f"{result.steps} steps"


def convergence_lines(result: Any) -> list[tuple[str, str, str]]:
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
