"""`givens mixture`: clusters of a table, from its moments."""

from __future__ import annotations

from typing import Literal

import numpy as np

import givens
from givens.app.commands import options as o
from givens.app.commands.cluster import opened
from givens.app.commands.results import CommandOutcome, outcome, percent, records, size_line, size_of
from givens.app.commands.samples import Scored
from givens.app.commands.session import Session, TableSession, option
from givens.app.commands.session import command as clean
from givens.app.report.views import scores_view
from givens.app.tables import staged
from givens.app.tables.table import numbered

Variance = Literal["common", "distinct"]


@clean
def command(
    *,
    clusters: int = option(..., "Number of clusters.", "--clusters", "-k", min=1),
    variance: Variance = option("common", "One variance for all clusters, or one for each."),
    source: o.Source,
    standardise: bool = o.standardise_option,
    max_iter: int = o.fitting(100, "Largest number of EM steps after the fit to the moments.", min=0),
    run: o.Running,
    session: TableSession,
) -> None:
    """Find clusters: a mixture of spherical Gaussians, fitted to the moments of the data and refined by EM.

    Writes components.csv (the means of the clusters), scores.csv (the cluster of each sample and its probabilities),
    summary.json and report.html.

    Example: [bold]givens mixture table.csv -k 3 --out results[/]
    """
    model = givens.SphericalMixture(clusters, variance=variance, max_iter=max_iter, **run.parameters(session))
    with staged(session.out) as files, opened(session, source, run, dense=True) as samples:
        if standardise:
            spread = samples.computed(samples.X.std(axis=0))
            samples.X = samples.X / np.where(spread > 0, spread, 1)
            samples.notes.append("divided each variable by its standard deviation")
        with session.step(f"fitting {clusters} clusters"):
            samples.fit(model)
        header = numbered("cluster", clusters)
        scored = samples.scored(model.predict_proba, header, files, assigned="cluster")
        mixture_outcome(session, scored, model).write(session, files)


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


def mixture_outcome(session: Session, scored: Scored, model: givens.SphericalMixture) -> CommandOutcome:
    """Return the results of a fitted SphericalMixture."""
    samples = scored.samples
    means, weights = np.asarray(model.means_), np.asarray(model.weights_)
    variances = np.broadcast_to(np.asarray(model.variances_), weights.shape)
    centre = samples.computed(samples.X.mean(axis=0))
    values = samples.shown(scored)
    directions = plane(means, weights, values, centre)
    likelihood, bic = float(model.score(samples.X)), float(model.bic(samples.X))
    return outcome(
        session,
        "mixture",
        scored,
        samples.file,
        model.result_,
        noun="cluster",
        weights=means,
        components={
            "weights": means - centre,
            "share": weights,
            "title": "Clusters",
            "weight": "differences from the mean",
            "entry": "variable",
            "lead": "How the mean of each cluster differs from the mean of all samples. The percentage is the cluster's "
            "weight in the mixture.",
        },
        columns={
            "weight": (weights, "%"),
            "samples": (scored.largest, ","),
            "variance": (variances, ".4g"),
        },
        title=f"{len(means)} clusters of {scored.number:,} samples ({scored.described})",
        page_title=f"Clusters of {samples.file.name}",
        subtitle=size_line(scored, len(means), "cluster"),
        facts=[
            ("Clusters", str(len(means)), f"the largest with {percent(float(weights.max()))} of the samples"),
            ("Mean log-likelihood", f"{likelihood:,.4g}", "of a sample under the mixture"),
            ("BIC", f"{bic:,.6g}", "to compare numbers of clusters; smaller is better"),
            ("Samples", f"{scored.number:,}", scored.described),
        ],
        size=size_of(scored),
        settings=model.get_params(),
        figures={
            "clusters": records(scored.header, weight=weights, variance=variances, samples=scored.largest),
            "mean_log_likelihood": likelihood,
            "bic": bic,
        },
        scores=scores_view(
            (values - centre) @ directions.T,
            scored.shown.names,
            axes=numbered("Direction", len(directions)),
            labels=scored.labels_with("cluster"),
            total=scored.number,
            lead="The samples, projected on the directions in which the means of the clusters differ most.",
        ),
    )
