"""`givens compare`: what two results have in common, component by component.

Components are paired so that the sum of |cosines| between their weights is largest (an assignment problem). Cosines and counts
are over the variables that both results have, by their names: nothing is known of the others. The sign of a component is
arbitrary, so the second one of a pair is turned to agree with the first.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linear_sum_assignment

import givens
from givens.app.commands.results import CommandOutcome, cell, plain_table
from givens.app.commands.session import (
    Session,
    argument,
    command_line,
    option_group,
    results,
    shown,
    summary_head,
)
from givens.app.commands.session import command as clean
from givens.app.report import Report
from givens.app.report.views import components_view
from givens.app.tables import DataError, staged
from givens.app.tables.table import count
from givens.app.tables.write import write_matrix

if TYPE_CHECKING:
    import pandas


@dataclass
class Loaded:
    """Components, and scores where they are there, as a command has written them."""

    folder: Path
    analysis: str
    weights: pandas.DataFrame  # components x variables
    scores: pandas.DataFrame  # samples x components

    def described(self, component: int) -> str:
        """The name of a component."""
        return str(self.weights.index[component])


@option_group
class ComparisonSession(Session):
    """One run of this command, whose results go into a folder of their own."""

    out: Path = results(Path("comparison"), "Folder for the results.", "--out", "-o")


@clean
def command(
    *,
    first: Path = argument("A folder of results, as the other commands write them."),
    second: Path = argument("A folder of results, as the other commands write them."),
    session: ComparisonSession,
) -> None:
    """Compare two results: match their components, and say how similar the matched ones are.

    Writes pairs.csv, summary.json and report.html.

    Example: [bold]givens compare results results_of_the_second_batch --out comparison[/]
    """
    with staged(session.out) as files:
        a, b = load(first), load(second)
        compared(session, a, b).write(session, files)


def read_matrix(path: Path, columns: int | None = None) -> pandas.DataFrame:
    """Return the last columns of numbers of a CSV file that a command wrote, after one of names: all of them, or so many."""
    import pandas

    try:
        with open(path, encoding="utf-8", newline="") as stream:
            header, *lines = csv.reader(stream)
    except (OSError, ValueError, csv.Error):
        raise DataError(
            f"{path} cannot be read: give two folders that a command of givens wrote its results to"
        ) from None
    if any(len(line) != len(header) for line in lines):
        raise DataError(f"{path} is damaged: its lines differ in length; make the results again")
    first = 1 if columns is None else len(header) - columns
    try:
        rows = [[float(cell) for cell in line[first:]] for line in lines]
    except ValueError:
        what = "weights" if columns is None else "scores"
        raise DataError(f"{path} holds words where {what} are expected; make the results again") from None
    names = pandas.Index([line[0] for line in lines], name=header[0])
    frame = pandas.DataFrame(rows, names, header[first:], np.float64)
    return frame[~names.duplicated(keep="last")]


def load(folder: Path) -> Loaded:
    """Read the components and scores of a folder of results."""
    weights = read_matrix(folder / "components.csv")
    if not weights.size or weights.index.name != "variable":
        raise DataError(
            f"{folder / 'components.csv'} is not a table of components: its first column is '{weights.index.name}'"
        )
    try:
        analysis = str(json.loads((folder / "summary.json").read_text(encoding="utf-8"))["analysis"])
    except (OSError, ValueError, KeyError, TypeError):
        analysis = ""
    scores, path = weights.iloc[:0], folder / "scores.csv"
    if path.exists():
        scores = read_matrix(path, weights.shape[1])
        if list(scores) != list(weights):
            scores = weights.iloc[:0]
    return Loaded(folder, analysis, weights.T, scores)


def paired(first: np.ndarray, second: np.ndarray) -> list[tuple[int, int, float]]:
    """Return pairs of rows and the cosines between them, whose sizes have the largest sum.

    >>> paired(np.eye(3)[:2], -np.eye(3)[[2, 1]])
    [(0, 0, 0.0), (1, 1, -1.0)]
    """
    lengths = [np.linalg.norm(rows, axis=1, keepdims=True) for rows in (first, second)]
    one, two = (rows / np.where(length > 0, length, 1) for rows, length in zip((first, second), lengths))
    cosines = one @ two.T
    rows, columns = linear_sum_assignment(-np.abs(cosines))
    return [(int(i), int(j), float(cosines[i, j]) + 0.0) for i, j in zip(rows, columns)]


def pairs_of(a: Loaded, b: Loaded, common: list[str]) -> list[tuple[int, int, dict[str, float | None]]]:
    """Return the pairs in the order of the first result, with the figures of each: of weights, on the common variables.

    The cosine is None where one of them has no weight there, the correlation where too few samples are common.
    """
    first, second = (result.weights[common].to_numpy() for result in (a, b))
    samples = [name for name in a.scores.index if name in b.scores.index]
    one, two = (result.scores.loc[samples].to_numpy() for result in (a, b))
    found = []
    for i, j, cosine in paired(first, second):
        sign = -1.0 if cosine < 0 else 1.0
        here, there = first[i] != 0, second[j] != 0
        shared, either = int((here & there).sum()), int((here | there).sum())
        known = len(samples) > 2 and np.ptp(one[:, i]) > 0 and np.ptp(two[:, j]) > 0
        figures = {
            "cosine": abs(cosine) if here.any() and there.any() else None,
            "sign": sign,
            "shared": shared,
            "only_first": int(here.sum()) - shared,
            "only_second": int(there.sum()) - shared,
            "jaccard": shared / either if either else 0.0,
            "score_correlation": sign * float(np.corrcoef(one[:, i], two[:, j])[0, 1]) if known else None,
        }
        found.append((i, j, figures))
    return found


def note_common(session: Session, a: Loaded, b: Loaded) -> list[str]:
    """Say how many names match, before anything that rests on them; return the variables that both results have."""
    sizes = a.weights.shape[1], b.weights.shape[1]
    common = [name for name in a.weights if name in b.weights]
    if not common:
        raise DataError(f"{a.folder} and {b.folder} have no variable in common: their names must be the same")
    # Of the variables of the larger result: if fewer are common, the cosines leave out most of its weights.
    few = len(common) < 0.5 * max(sizes)
    said = (
        f"the results have {'only ' if few else ''}{count(len(common), 'variable name')} in common, of {sizes[0]:,} in "
        f"{a.folder} and {sizes[1]:,} in {b.folder}; cosines and counts are over these alone"
    )
    if few:
        session.warn(f"{said}: are the variables named alike in both?")
    else:
        session.say(said)
    if a.analysis != b.analysis:
        session.warn(
            f"the results come from two analyses, {a.analysis or 'unknown'} and {b.analysis or 'unknown'}"
        )
    return common


def compared(session: Session, a: Loaded, b: Loaded) -> CommandOutcome:
    """Return the results of a comparison."""
    common = note_common(session, a, b)
    pairs = pairs_of(a, b, common)
    names = [(a.described(i), b.described(j)) for i, j, _ in pairs]
    figures = [row for _, _, row in pairs]
    lines = [[*both, *cells(row)] for both, row in zip(names, figures)]
    table = plain_table(f"{a.folder} and {b.folder}: {len(pairs)} pairs")
    header = [
        "First",
        "Second",
        "Cosine",
        "Sign",
        "Shared",
        "Only first",
        "Only second",
        "Jaccard",
        "Score correlation",
    ]
    for heading in header:
        table.add_column(heading, justify="left" if heading in header[:2] else "right")
    for line in lines:
        table.add_row(*map(shown, line))
    summary: dict[str, object] = {
        **summary_head("compare", a.folder, []),
        "second": str(b.folder),
        "variables_in_common": len(common),
        "pairs": [{"first": i, "second": j, **row} for (i, j), row in zip(names, figures)],
        "warnings": session.warnings,
    }
    rows = np.array([list(row.values()) for row in figures], np.float64)
    blocks = [([list(column) for column in zip(*names)], rows)]
    report = page(a, b, common, pairs, names)
    report.warnings = session.warnings
    report.pairs = {
        "lead": (
            "Components are matched one to one so that the sum of the cosines between their weights is largest. "
            "Cosines and counts are over the variables that both results have; a cosine is missing where a component "
            "has no weight on them. Shared: the number of variables with a weight in both. Jaccard: shared variables, "
            "divided by those with a weight in either. Sign: − where the second component had the opposite sign, which"
            " has no meaning. Score correlation: over the samples that both results have."
        ),
        "header": header,
        "rows": lines,
    }
    files = {"pairs.csv": lambda stream: write_matrix(stream, ["first", "second"], list(figures[0]), blocks)}
    return CommandOutcome(summary, report, table, files)


def page(
    a: Loaded,
    b: Loaded,
    common: list[str],
    pairs: list[tuple[int, int, dict[str, float | None]]],
    names: list[tuple[str, str]],
) -> Report:
    """Return the page of a comparison, but for its table."""
    first, second = a.folder, b.folder
    known = [row["cosine"] for _, _, row in pairs if row["cosine"] is not None]
    alike = sum(cosine >= 0.9 for cosine in known)
    variables = list(dict.fromkeys([*a.weights, *b.weights]))
    one, two = (result.weights.reindex(columns=variables, fill_value=0.0).to_numpy() for result in (a, b))
    in_common = f"of {a.weights.shape[1]:,} and {b.weights.shape[1]:,}"
    samples = a.scores.index.isin(b.scores.index).sum()
    return Report(
        title=f"{first} and {second}",
        subtitle=f"{len(one)} and {len(two)} components over {len(common):,} variables in common",
        facts=[
            ("Variables in common", f"{len(common):,}", in_common),
            ("Pairs", str(len(pairs)), f"{alike} with a cosine of at least 0.9"),
            (
                "Mean cosine",
                f"{np.mean(known):.3f}" if known else "–",
                "of the weights of a pair on the variables in common",
            ),
            ("Samples in common", f"{samples:,}", f"of {len(a.scores):,} and {len(b.scores):,}"),
        ],
        components=components_view(
            np.array([one[i] for i, _, _ in pairs]),
            variables,
            second=np.array([row["sign"] * two[j] for _, j, row in pairs]),
            second_title=f"Weight in {second.name or second}",
            either=True,
            names=[" | ".join(both).capitalize() for both in names],
            title="Weights side by side",
            noun="pair",
            entry="variable",
            lead=f"The weights in {first} and, beside them, in {second}. Variables with a weight in either are shown.",
        ),
        command=command_line(),
        version=givens.__version__,
    )


def cells(figures: dict[str, float | None]) -> list[str]:
    """Return the figures of a pair as the cells of a table; those without a form of their own are counts."""
    forms = {"cosine": ".3f", "jaccard": ".2f", "score_correlation": ".3f"}
    signs = {-1.0: "−", 1.0: "+"}
    return [
        signs[value] if name == "sign" and value else cell(value, forms.get(name, ","))
        for name, value in figures.items()
    ]
