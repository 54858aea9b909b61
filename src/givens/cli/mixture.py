"""`givens mixture`: clusters of a table, from its moments."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import givens
from givens.cli import options as o
from givens.cli.results import (
    CommandOutcome,
    Described,
    component_table,
    described,
    numbered,
    outcome,
    percent,
    with_labels,
    write_components,
    write_scores,
)
from givens.cli.session import Session
from givens.cli.session import command as clean
from givens.io import Table, staged
from givens.report import Report
from givens.report.views import components_view, scores_view
from givens.result import Result


class Variance(StrEnum):
    """One variance for all clusters, or one each."""

    common = "common"
    distinct = "distinct"


@clean
def command(
    file: o.File,
    clusters: Annotated[int, typer.Option("--clusters", "-k", help="Number of clusters.", min=1)],
    variance: Annotated[
        Variance, typer.Option(help="One variance for all clusters, or one for each.")
    ] = Variance.common,
    samples: o.Samples = None,
    labels: o.Labels = None,
    names: o.Names = None,
    drop: o.Drop = None,
    impute: o.ImputeOption = None,
    log2: o.Log2 = False,
    floor: o.Floor = None,
    standardise: o.Standardise = False,
    refine_em: Annotated[
        int,
        typer.Option(
            min=0, help="Largest number of EM steps after the fit to the moments.", rich_help_panel=o.FITTING
        ),
    ] = 20,
    seed: o.Seed = 0,
    threads: o.Threads = None,
    out: o.Out = Path("results"),
    excel_safe: o.ExcelSafe = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Find clusters: a mixture of spherical Gaussians, fitted to the moments of the data and refined by EM.

    Writes components.csv (the means of the clusters), scores.csv (the cluster of each sample and its probabilities),
    summary.json and report.html.

    Example: [bold]givens mixture table.csv -k 3 --out results[/]
    """
    session = Session(quiet, json)
    source = o.Source(file, samples, labels, names, drop, log2, floor, impute, excel_safe)
    with staged(out) as files:
        table = source.table(session)
        values = o.dense(table.values, table.values.dtype)
        if standardise:
            spread = values.std(axis=0)
            values = values / np.where(spread > 0, spread, 1)
            table.notes.append("divided each variable by its standard deviation")
        model = givens.SphericalMixture(
            clusters, variance=variance.value, refine_em=refine_em, threads=threads, random_state=seed
        )
        with session.step(f"fitting {clusters} clusters"), session.fitting():
            model.fit(values)
        mixture_outcome(session, file, table, values, model).write(session, out, files)


def plane(means: np.ndarray, weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return orthonormal directions: first those in which the clusters' means differ most, then of the data's spread."""
    centre = values.mean(axis=0)
    spread = (means - centre) * np.sqrt(weights)[:, None]
    directions = np.linalg.svd(spread, full_matrices=False)[2][: min(len(means) - 1, 6)]
    if len(directions) < 2 <= values.shape[1]:
        rest = values - centre
        rest = rest - rest @ directions.T @ directions
        directions = np.concatenate(
            [directions, np.linalg.svd(rest, full_matrices=False)[2][: 2 - len(directions)]]
        )
    return directions


def settled(model: Any) -> Result:
    """Return the run of the decomposition, which has not converged unless all that followed it has."""
    result: Result = model.result_
    if result.converged and not model.converged_:
        reason = "the fit to the moments did not converge"
        if len(model.log_likelihood_) == model.refine_em > 0:
            reason = f"EM was stopped after {model.refine_em} steps (--refine-em allows more)"
        return replace(result, converged=False, message=f"not converged: {reason}")
    return result


def mixture_outcome(
    session: Session, file: Path, table: Table, values: np.ndarray, model: Any
) -> CommandOutcome:
    """Return the results of a fitted SphericalMixture."""
    data = Described.of(file, table)
    means, weights = np.asarray(model.means_), np.asarray(model.weights_)
    variances = np.broadcast_to(np.asarray(model.variances_), weights.shape)
    probabilities = np.asarray(model.predict_proba(values))
    member = probabilities.argmax(axis=1)
    clusters = numbered("cluster", len(means))
    sizes = np.bincount(member, minlength=len(means))
    centre = values.mean(axis=0)
    directions = plane(means, weights, values)
    likelihood, bic = float(model.score(values)), float(model.bic(values))
    assigned = [clusters[k] for k in member]
    report = Report(
        title=f"Clusters of {file.name}",
        subtitle=f"{data.samples:,} samples × {len(data.variables):,} variables, {len(means)} clusters",
        facts=[
            ("Clusters", str(len(means)), f"the largest with {percent(float(weights.max()))} of the samples"),
            ("Mean log-likelihood", f"{likelihood:,.4g}", "of a sample under the mixture"),
            ("BIC", f"{bic:,.6g}", "to compare numbers of clusters; smaller is better"),
            ("Samples", f"{data.samples:,}", data.labels),
        ],
        notes=table.notes,
        components=components_view(
            means - centre,
            data.variables,
            share=weights,
            title="Clusters",
            noun="cluster",
            weight="differences from the mean",
            entry="variable",
            lead="How the mean of each cluster differs from the mean of all samples. The percentage is the cluster's "
            "weight in the mixture.",
        ),
        scores=scores_view(
            (values - centre) @ directions.T,
            table.samples,
            axes=numbered("Direction", len(directions)),
            labels=with_labels(table, "cluster", assigned),
            lead="The samples, projected on the directions in which the means of the clusters differ most.",
        ),
    )
    columns = {
        "weight": [percent(value) for value in weights],
        "samples": [f"{value:,}" for value in sizes],
        "variance": [f"{value:.4g}" for value in variances],
    }
    title = f"{len(means)} clusters of {data.samples:,} samples ({described(table.labels)})"
    return outcome(
        session,
        report,
        "mixture",
        file,
        settled(model),
        size={"samples": data.samples, "variables": len(data.variables)},
        settings=model.get_params(),
        figures={
            "clusters": [
                {
                    "name": clusters[k],
                    "weight": weights[k],
                    "variance": variances[k],
                    "samples": int(sizes[k]),
                }
                for k in range(len(means))
            ],
            "mean_log_likelihood": likelihood,
            "bic": bic,
        },
        table=component_table(means - centre, data.variables, "cluster", columns, title),
        files={
            "components.csv": lambda stream: write_components(stream, means, data.variables, clusters),
            "scores.csv": lambda stream: write_scores(
                stream, table, probabilities, clusters, {"cluster": assigned}
            ),
        },
    )
