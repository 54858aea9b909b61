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
from typing import Any

import numpy as np
from rich.table import Table as RichTable
from scipy.optimize import linear_sum_assignment

import givens
from givens.app.commands.results import CommandOutcome
from givens.app.commands.session import (
    OUT,
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

# Of the variables of the larger result: if fewer are common, the cosines leave out most of its weights.
MANY_COMMON = 0.5


@dataclass
class Loaded:
    """Components, and scores where they are there, as a command has written them."""

    folder: Path
    analysis: str
    names: list[str]
    variables: list[str]
    weights: np.ndarray  # components x variables
    scores: dict[str, np.ndarray]  # of each sample


@dataclass
class Pair:
    """Two components that belong together."""

    first: int
    second: int
    sign: float
    cosine: float | None  # None where one of them has no weight on the common variables
    shared: int  # common variables with a weight in both
    only_first: int
    only_second: int
    correlation: float | None  # of the scores of the samples that both results have

    @property
    def jaccard(self) -> float:
        """Common variables with a weight in both, of those with a weight in either."""
        either = self.shared + self.only_first + self.only_second
        return self.shared / either if either else 0.0


FOLDER = argument("A folder of results, as the other commands write them.")


@option_group
class ComparisonSession(Session):
    """One run of this command, whose results go into a folder of their own."""

    out: Path = results(Path("comparison"), OUT, "--out", "-o")


@clean
def command(*, first: Path = FOLDER, second: Path = FOLDER, session: ComparisonSession) -> None:
    """Compare two results: match their components, and say how similar the matched ones are.

    Writes pairs.csv, summary.json and report.html.

    Example: [bold]givens compare results results_of_the_second_batch --out comparison[/]
    """
    with staged(session.out) as files:
        a, b = load(first), load(second)
        compared(session, a, b).write(session, files)


def read_matrix(path: Path) -> tuple[list[str], list[list[str]]]:
    """Return the header and the lines of a CSV file that a command wrote."""
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            header, *lines = csv.reader(stream)
    except (OSError, ValueError, csv.Error):
        raise DataError(
            f"{path} cannot be read: give two folders that a command of givens wrote its results to"
        ) from None
    if any(len(line) != len(header) for line in lines):
        raise DataError(f"{path} is damaged: its lines differ in length; make the results again")
    return header, lines


def load(folder: Path) -> Loaded:
    """Read the components and scores of a folder of results."""
    header, lines = read_matrix(folder / "components.csv")
    try:
        weights = np.array([[float(cell) for cell in line[1:]] for line in lines], np.float64)
    except ValueError:
        raise DataError(
            f"{folder / 'components.csv'} holds words where weights are expected; make the results again"
        ) from None
    if not weights.size or header[0] != "variable":
        raise DataError(
            f"{folder / 'components.csv'} is not a table of components: its first column is '{header[0]}'"
        )
    try:
        analysis = str(json.loads((folder / "summary.json").read_text(encoding="utf-8"))["analysis"])
    except (OSError, ValueError, KeyError, TypeError):
        analysis = ""
    names = header[1:]
    return Loaded(folder, analysis, names, [line[0] for line in lines], weights.T, load_scores(folder, names))


def load_scores(folder: Path, names: list[str]) -> dict[str, np.ndarray]:
    """Return the scores of each sample, or nothing where they are not there."""
    path = folder / "scores.csv"
    if not path.exists():
        return {}
    header, lines = read_matrix(path)
    if header[-len(names) :] != names:
        return {}
    try:
        return {line[0]: np.array([float(cell) for cell in line[-len(names) :]]) for line in lines}
    except ValueError:
        raise DataError(f"{path} holds words where scores are expected; make the results again") from None


def common_weights(a: Loaded, b: Loaded) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the variables of either result, and both weights over them."""
    place = {name: k for k, name in enumerate(dict.fromkeys([*a.variables, *b.variables]))}
    both = []
    for result in (a, b):
        weights = np.zeros((len(result.weights), len(place)))
        weights[:, [place[name] for name in result.variables]] = result.weights
        both.append(weights)
    return list(place), both[0], both[1]


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


def pairs_of(a: Loaded, b: Loaded, first: np.ndarray, second: np.ndarray) -> list[Pair]:
    """Return the pairs in the order of the first result, from the weights of both on the common variables."""
    samples = [name for name in a.scores if name in b.scores]
    found = []
    for i, j, cosine in paired(first, second):
        sign = -1.0 if cosine < 0 else 1.0
        one, two = first[i] != 0, second[j] != 0
        correlation = None
        if len(samples) > 2:
            columns = np.array([[a.scores[name][i], b.scores[name][j]] for name in samples])
            if (np.ptp(columns, axis=0) > 0).all():
                correlation = sign * float(np.corrcoef(columns.T)[0, 1])
        shared = int((one & two).sum())
        only = int(one.sum()) - shared, int(two.sum()) - shared
        size = abs(cosine) if one.any() and two.any() else None
        found.append(Pair(i, j, sign, size, shared, *only, correlation))
    return found


def note_common(session: Session, a: Loaded, b: Loaded) -> list[str]:
    """Say how many names match, before anything that rests on them; return the variables that both results have."""
    names = set(b.variables)
    common = [name for name in a.variables if name in names]
    if not common:
        raise DataError(f"{a.folder} and {b.folder} have no variable in common: their names must be the same")
    few = len(common) < MANY_COMMON * max(len(a.variables), len(b.variables))
    said = (
        f"the results have {'only ' if few else ''}{count(len(common), 'variable name')} in common, of {len(a.variables):,} in "
        f"{a.folder} and {len(b.variables):,} in {b.folder}; cosines and counts are over these alone"
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
    first, second = a.folder, b.folder
    common = note_common(session, a, b)
    variables, one, two = common_weights(a, b)
    places = np.isin(variables, common)
    pairs = pairs_of(a, b, one[:, places], two[:, places])
    known = [p.cosine for p in pairs if p.cosine is not None]
    names = [f"{a.names[p.first]} | {b.names[p.second]}".capitalize() for p in pairs]
    alike = sum(cosine >= 0.9 for cosine in known)
    samples = sum(name in b.scores for name in a.scores)
    report = Report(
        title=f"{first} and {second}",
        subtitle=f"{len(a.weights)} and {len(b.weights)} components over {len(common):,} variables in common",
        facts=[
            ("Variables in common", f"{len(common):,}", f"of {len(a.variables):,} and {len(b.variables):,}"),
            ("Pairs", str(len(pairs)), f"{alike} with a cosine of at least 0.9"),
            (
                "Mean cosine",
                f"{np.mean(known):.3f}" if known else "–",
                "of the weights of a pair on the variables in common",
            ),
            ("Samples in common", f"{samples:,}", f"of {len(a.scores):,} and {len(b.scores):,}"),
        ],
        warnings=session.warnings,
        pairs={"lead": LEAD, "header": HEADER, "rows": [line(a, b, p) for p in pairs]},
        components=components_view(
            np.array([one[p.first] for p in pairs]),
            variables,
            second=np.array([p.sign * two[p.second] for p in pairs]),
            second_title=f"Weight in {second.name or second}",
            either=True,
            names=names,
            title="Weights side by side",
            noun="pair",
            entry="variable",
            lead=f"The weights in {first} and, beside them, in {second}. Variables with a weight in either are shown.",
        ),
        command=command_line(),
        version=givens.__version__,
    )
    table = RichTable(
        title=shown(f"{first} and {second}: {len(pairs)} pairs"), title_justify="left",
        header_style="bold", box=None, pad_edge=False,
    )  # fmt: skip
    for heading in HEADER:
        table.add_column(heading, justify="left" if heading in HEADER[:2] else "right")
    for p in pairs:
        table.add_row(*map(shown, line(a, b, p)))
    summary: dict[str, Any] = {
        **summary_head("compare", first, []),
        "second": str(second),
        "variables_in_common": len(common),
        "pairs": [
            {"first": a.names[p.first], "second": b.names[p.second], **figures(p)} for p in pairs
        ],
        "warnings": session.warnings,
    }  # fmt: skip
    rows = np.array([[np.nan if value is None else value for value in figures(p).values()] for p in pairs])
    words = [[a.names[p.first] for p in pairs], [b.names[p.second] for p in pairs]]
    header = list(figures(pairs[0]))
    return CommandOutcome(
        summary,
        report,
        table,
        {"pairs.csv": lambda stream: write_matrix(stream, ["first", "second"], header, [(words, rows)])},
    )


HEADER = [
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
LEAD = (
    "Components are matched one to one so that the sum of the cosines between their weights is largest. Cosines and counts are "
    "over the variables that both results have; a cosine is missing where a component has no weight on them. Shared: the "
    "number of variables with a weight in both. Jaccard: shared variables, divided by those with a weight in either. Sign: − "
    "where the second component had the opposite sign, which has no meaning. Score correlation: over the samples that both "
    "results have."
)


def figures(pair: Pair) -> dict[str, float | None]:
    """Return the numbers of a pair."""
    return {
        "cosine": pair.cosine,
        "sign": pair.sign,
        "shared": pair.shared,
        "only_first": pair.only_first,
        "only_second": pair.only_second,
        "jaccard": pair.jaccard,
        "score_correlation": pair.correlation,
    }


def line(a: Loaded, b: Loaded, pair: Pair) -> list[str]:
    """Return a pair as a line of a table."""
    return [
        a.names[pair.first],
        b.names[pair.second],
        "–" if pair.cosine is None else f"{pair.cosine:.3f}",
        "+" if pair.sign > 0 else "−",
        f"{pair.shared:,}",
        f"{pair.only_first:,}",
        f"{pair.only_second:,}",
        f"{pair.jaccard:.2f}",
        "–" if pair.correlation is None else f"{pair.correlation:.3f}",
    ]
