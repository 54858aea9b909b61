"""`givens mixture`: clusters of a table, from its moments."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
import typer

import givens
from givens.app.commands import options as o
from givens.app.commands.results import (
    CommandOutcome,
    Described,
    component_table,
    numbered,
    outcome,
    percent,
    weight_files,
    with_labels,
)
from givens.app.commands.session import Session, TableSession
from givens.app.commands.session import command as clean
from givens.app.report import Report
from givens.app.report.views import components_view, scores_view
from givens.app.tables import Table, staged
from givens.app.tables.write import Staged

STANDARDISED = "divided each variable by its standard deviation"


class Variance(StrEnum):
    """One variance for all clusters, or one each."""

    common = "common"
    distinct = "distinct"


@clean
def command(
    *,
    clusters: Annotated[int, typer.Option("--clusters", "-k", help="Number of clusters.", min=1)],
    variance: Annotated[
        Variance, typer.Option(help="One variance for all clusters, or one for each.")
    ] = Variance.common,
    source: o.Source,
    standardise: o.Standardise = False,
    refine_em: Annotated[
        int,
        typer.Option(
            min=0, help="Largest number of EM steps after the fit to the moments.", rich_help_panel=o.FITTING
        ),
    ] = 100,
    run: o.Running,
    session: TableSession,
) -> None:
    """Find clusters: a mixture of spherical Gaussians, fitted to the moments of the data and refined by EM.

    Writes components.csv (the means of the clusters), scores.csv (the cluster of each sample and its probabilities),
    summary.json and report.html.

    Example: [bold]givens mixture table.csv -k 3 --out results[/]
    """
    model = givens.SphericalMixture(
        clusters, variance=variance.value, refine_em=refine_em, **run.parameters(session)
    )
    with staged(session.out) as files:
        if run.cluster is not None:
            fit_on_cluster(session, source, model, standardise, run.cluster, files).write(session, files)
            return
        table = source.table(session)
        values = o.dense(table.values, table.values.dtype)
        if standardise:
            spread = values.std(axis=0)
            values = values / np.where(spread > 0, spread, 1)
            table.notes.append(STANDARDISED)
        with session.step(f"fitting {clusters} clusters"), session.fitting():
            model.fit(values)
        probabilities = np.asarray(model.predict_proba(values))
        figures = Figures.of(model, values, values.mean(axis=0), probabilities)
        data = Described.of(source.file, table)
        found = mixture_outcome(session, data, table, values, probabilities, model, figures)
        found.with_scores(table, probabilities, "cluster", members(probabilities)).write(session, files)


@dataclass
class Figures:
    """What is said of all samples together: those of each cluster, their mean, and how likely they are."""

    sizes: np.ndarray
    centre: np.ndarray
    likelihood: float
    bic: float

    @classmethod
    def of(cls, model: Any, values: Any, centre: np.ndarray, probabilities: np.ndarray) -> Figures:
        """Return the figures of samples in memory, or, but for the sizes, on Dask."""
        sizes = np.bincount(probabilities.argmax(axis=1), minlength=probabilities.shape[1])
        return cls(sizes, centre, float(model.score(values)), float(model.bic(values)))


def members(probabilities: np.ndarray) -> dict[str, list[str]]:
    """Return the cluster of each sample, under the heading that it has in scores.csv."""
    return {"cluster": [f"cluster {k + 1}" for k in probabilities.argmax(axis=1)]}


def fit_on_cluster(
    session: Session, source: o.Source, model: Any, standardise: bool, address: str, files: Staged
) -> CommandOutcome:
    """Fit the model where the chunks of a store are."""
    from givens.app.commands.cluster import computed, score, store_on_cluster

    with store_on_cluster(session, source, address, model.threads, dense=True) as store:
        if standardise:
            spread = computed(store.X.std(axis=0))
            store.X = store.X / np.where(spread > 0, spread, 1)
            store.notes.append(STANDARDISED)
        with session.fitting():
            model.fit(store.X)
        figures = Figures.of(
            model, store.X, computed(store.X.mean(axis=0)), np.empty((0, model.n_components))
        )

        def seen(part: np.ndarray) -> None:
            figures.sizes += np.bincount(part.argmax(axis=1), minlength=len(figures.sizes))

        scores = model.predict_proba(store.X)
        scored = score(session, source, store, scores, "cluster", files, extra=members, seen=seen)
        values = computed(store.X[scored.rows])
    return mixture_outcome(session, scored.data, scored.table, values, scored.scores, model, figures)


def plane(means: np.ndarray, weights: np.ndarray, values: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Return orthonormal directions: first those in which the clusters' means differ most, then of the data's spread."""
    spread = (means - centre) * np.sqrt(weights)[:, None]
    directions = np.linalg.svd(spread, full_matrices=False)[2][: min(len(means) - 1, 6)]
    if len(directions) < 2 <= values.shape[1]:
        rest = values - centre
        rest = rest - rest @ directions.T @ directions
        directions = np.concatenate(
            [directions, np.linalg.svd(rest, full_matrices=False)[2][: 2 - len(directions)]]
        )
    return directions


def mixture_outcome(
    session: Session,
    data: Described,
    table: Table,
    values: np.ndarray,
    probabilities: np.ndarray,
    model: Any,
    figures: Figures,
) -> CommandOutcome:
    """Return the results of a fitted SphericalMixture; table, values and probabilities are of the samples that the page shows."""
    means, weights = np.asarray(model.means_), np.asarray(model.weights_)
    variances = np.broadcast_to(np.asarray(model.variances_), weights.shape)
    clusters = numbered("cluster", len(means))
    sizes, centre = figures.sizes, figures.centre
    directions = plane(means, weights, values, centre)
    likelihood, bic = figures.likelihood, figures.bic
    report = Report(
        title=f"Clusters of {data.file.name}",
        subtitle=f"{data.samples:,} samples × {len(data.variables):,} variables, {len(means)} clusters",
        facts=[
            ("Clusters", str(len(means)), f"the largest with {percent(float(weights.max()))} of the samples"),
            ("Mean log-likelihood", f"{likelihood:,.4g}", "of a sample under the mixture"),
            ("BIC", f"{bic:,.6g}", "to compare numbers of clusters; smaller is better"),
            ("Samples", f"{data.samples:,}", data.labels),
        ],
        notes=data.notes,
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
            labels=with_labels(table, "cluster", members(probabilities)["cluster"]),
            total=data.samples,
            lead="The samples, projected on the directions in which the means of the clusters differ most.",
        ),
    )
    columns = {
        "weight": [percent(value) for value in weights],
        "samples": [f"{value:,}" for value in sizes],
        "variance": [f"{value:.4g}" for value in variances],
    }
    title = f"{len(means)} clusters of {data.samples:,} samples ({data.labels})"
    return outcome(
        session,
        report,
        "mixture",
        data.file,
        model.result_,
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
        files=weight_files({"components.csv": means}, data.variables, clusters),
    )
