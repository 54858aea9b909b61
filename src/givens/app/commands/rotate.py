"""`givens rotate`: varimax and its relatives, for a table of loadings or the principal components of data."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

import givens
from givens.app.commands import options as o
from givens.app.commands.results import CommandOutcome, outcome, shares
from givens.app.commands.session import Session, TableSession, option
from givens.app.commands.session import command as clean
from givens.app.report.views import heat_map_view
from givens.app.tables import DataError, OptionError, Table, staged
from givens.app.tables.table import numbered
from givens.app.tables.write import write_matrix
from givens.support.arguments import warn_of_dominant_feature
from givens.support.imports import require

Criterion = Literal["varimax", "quartimax", "biquartimax", "equamax", "parsimax", "parsimony"]


def principal_loadings(values: Any, factors: int, standardise: bool) -> tuple[np.ndarray, float]:
    """Return the loadings of the first principal components, variables x factors, and the variance of all variables."""
    data = o.dense(values)
    if factors > min(data.shape[0] - 1, data.shape[1]):
        raise DataError(f"{data.shape[0]} x {data.shape[1]} numbers have no {factors} principal components")
    centred = data - data.mean(axis=0)
    if standardise:
        spread = centred.std(axis=0, ddof=1)
        centred = centred / np.where(spread > 0, spread, 1)
    _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    sizes = sizes / np.sqrt(len(data) - 1)
    return axes[:factors].T * sizes[:factors], float(np.sum(sizes**2))


@clean
def command(
    *,
    criterion: Criterion = option("varimax", "The criterion of simple structure."),
    components: int | None = option(
        None,
        "The file holds data: rotate this many principal components of them.",
        "--components",
        "-m",
        min=1,
    ),
    kaiser: bool = option(
        True, "Kaiser's normalisation: give all variables the same communality.", "--kaiser/--no-kaiser"
    ),
    starts: int = option(
        1, "Number of searches; each tries several starts where that is cheap. The best is kept.", min=1
    ),
    source: o.UnlabelledSource,
    standardise: bool = o.standardise_option,
    threads: int | None = o.threads_option,
    session: TableSession,
) -> None:
    """Rotate factors to simple structure: varimax, quartimax, equamax and others.

    The file holds loadings, with a row for each variable and a column for each factor. With -m it holds data, and that many
    of their principal components are rotated. Writes components.csv (the loadings), rotation.csv, summary.json and report.html.

    Example: [bold]givens rotate loadings.csv --criterion varimax --out results[/]
    """
    data_options = {"--samples": source.samples, "--log2": source.log2, "--standardise": standardise}
    for name, given in data_options.items():
        if given and components is None:
            raise OptionError(
                f"{name} is for data, but without -m the file holds loadings: give -m, or leave {name} out"
            )
    total = None
    with staged(session.out) as files:
        if components is None:
            table = table_of_loadings(session, source)
            loadings, before = table.values.T, table.samples
        else:
            table = source.table(session)
            loadings, total = principal_loadings(table.values, components, standardise)
            before = numbered("principal component", components)
            table.notes.append(f"took the loadings of the first {components} principal components")
        with session.fitting():
            if total is not None:
                warn_of_dominant_feature(np.sum(loadings**2, axis=1), total)
            model = givens.FactorRotation(
                criterion,
                normalize=kaiser,
                n_starts=starts,
                threads=threads,
            ).fit(named(loadings, table.variables))
        rotate_outcome(session, source.file, table, before, model, total).write(session, files)


def table_of_loadings(session: Session, source: o.Source) -> Table:
    """Read a table of loadings, and return it with a column for each variable, as data have it."""
    # In a table of loadings the rows are the variables, whatever a table of data would look like.
    source.samples = "rows"
    table = source.table(session, ("variable", "factor"))
    loadings, factors = o.dense(table.values), table.variables
    if len(factors) > len(loadings):
        raise DataError(
            f"{len(factors):,} factors of {len(loadings):,} variables are no loadings: "
            "if the file holds data, give the number of components to rotate (-m)"
        )
    return Table(loadings.T, factors, table.samples, notes=table.notes)


def named(loadings: np.ndarray, variables: list[str]) -> Any:
    """Return the loadings as a data frame, so that a warning can name a variable."""
    frame = require("pandas", extra="cli").DataFrame(loadings, index=variables)
    frame.columns = numbered("factor", loadings.shape[1])
    return frame


def rotate_outcome(
    session: Session,
    file: Path,
    table: Table,
    before: list[str],
    model: givens.FactorRotation,
    total: float | None,
) -> CommandOutcome:
    """Return the results of a rotation; `total` is the variance of all variables, if it is known."""
    rotated, sizes = model.loadings_, model.explained_variance_
    criterion, kaiser = str(model.method), bool(model.normalize)
    factors = numbered("factor", rotated.shape[1])
    share = shares(sizes) if not total else sizes / total
    of = "the sum of all squared loadings" if not total else "the variance of all variables"
    found = outcome(
        session,
        "rotate",
        table,
        file,
        model.result_,
        noun="factor",
        weights=rotated.T,
        components={
            "share": share,
            "title": "Factors",
            "weight": "loadings",
            "entry": "loading",
            "lead": f"The rotated loadings. The percentage is a factor's share of {of}.",
        },
        columns={
            "sum of squares": (sizes, ".4g"),
            "share" if not total else "explained": (share, "%"),
        },
        title=f"{criterion} rotation of {len(factors)} factors",
        page_title=f"Rotated factors of {file.name}",
        subtitle=f"{len(rotated):,} variables × {len(factors)} factors, {criterion}",
        facts=[
            ("Factors", str(len(factors)), f"{criterion}{', Kaiser-normalised' if kaiser else ''}"),
            ("Variables", f"{len(rotated):,}", "one row of loadings each"),
            ("Criterion", f"{model.criterion_:.6g}", "after the rotation"),
        ],
        size={"variables": len(rotated), "factors": len(factors)},
        settings={"criterion": criterion, "kaiser": kaiser, "starts": model.n_starts},
        figures={
            "sum_of_squares": sizes,
            "explained_variance_ratio": None if not total else share,
            "certificate": model.certificate_,
        },
        diagnostics=[
            (
                "Certificate",
                f"{model.certificate_:.2g}",
                "No rotation of two factors, by any angle, raises the criterion by more than this.",
            )
        ],
        criterion="criterion",
        heat_map=heat_map_view(model.unrotated_loadings_, rotated, table.variables, before, factors),
    )
    blocks = [([before], model.rotation_)]
    found.files["rotation.csv"] = lambda stream: write_matrix(stream, ["before"], factors, blocks)
    return found
