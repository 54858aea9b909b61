"""`givens sparse-pca`: from a table to components of few variables."""

from __future__ import annotations

import warnings
from typing import Annotated, Any

import numpy as np
import typer

import givens
from givens.app.commands import options as o
from givens.app.commands import streaming
from givens.app.commands.results import Described, sparse_pca_outcome
from givens.app.commands.session import RESULTS, Session, TableSession, checking_options
from givens.app.commands.session import command as clean
from givens.app.report.views import path_view
from givens.app.tables import OptionError, Table, staged
from givens.sparse_pca.options import (
    SPARSITY,
    check_sparsity,
    checked_alpha,
    counts_of_components,
    equal_counts,
)
from givens.support.arguments import LARGEST_COUNT, finite

# Thresholds of the report's curve: from 0, which is PCA, to one that leaves very few non-zeros.
ALPHAS = np.concatenate(([0.0, 0.02], np.geomspace(0.08, 0.6, 8)))
PATH_TOL = 1e-4


def counts(text: str | None) -> int | list[int] | None:
    """Return --n-nonzero as a number or a list.

    >>> counts("50"), counts("7,4,4"), counts(None)
    (50, [7, 4, 4], None)
    """
    if text is None:
        return None
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise OptionError(
            f"--n-nonzero takes a number of at least 1, or one for each component as in 7,4,4, not '{text}'"
        )
    return numbers[0] if len(numbers) == 1 else numbers


def check_parameters(model: Any) -> None:
    """Refuse what no table could be fitted with, by the estimator's own checks, before the file is read."""
    with checking_options():
        check_sparsity(model, [name for name in SPARSITY if hasattr(model, name)])
        checked_alpha(model.alpha)
        if model.gamma is not None:
            finite(model.gamma, "gamma")
        if model.n_nonzero is not None:
            counts_of_components(model.n_nonzero, model.n_components, LARGEST_COUNT)
        elif getattr(model, "n_nonzero_total", None) is not None:
            equal_counts(model, model.n_components, LARGEST_COUNT)


@clean
def command(
    *,
    components: Annotated[int, typer.Option("--components", "-m", help="Number of components.", min=1)] = 5,
    n_nonzero: Annotated[
        str | None,
        typer.Option(
            help="How sparse: the number of variables in each component, or one number per component (7,4,4)."
        ),
    ] = None,
    n_nonzero_total: Annotated[
        int | None,
        typer.Option(
            min=1, help="Or: the number of variables in all components together, shared by what they explain."
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            help="Or: a threshold between 0 (ordinary PCA) and 1 (one variable in each component). Default: 0.05.",
            show_default=False,
        ),
    ] = None,
    gamma: Annotated[
        float | None, typer.Option(help="Or: the threshold in the units of the data, the paper's gamma.")
    ] = None,
    penalty: Annotated[
        o.Penalty,
        typer.Option(
            help="With a threshold: the l1 or the l0 penalty of sparse PCA.", rich_help_panel=o.FITTING
        ),
    ] = o.Penalty.l1,
    source: o.EstimableSource,
    standardise: o.Standardise = False,
    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="Read a few rows at a time, for files larger than memory.",
            rich_help_panel=o.READING,
        ),
    ] = False,
    oversample: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="With --stream: how many columns are kept beyond the components. More of them lose less of weak components, and "
            "take more memory and time. Default: three for each component, and at least 20.",
            rich_help_panel=o.FITTING,
            show_default=False,
        ),
    ] = None,
    path: Annotated[
        bool,
        typer.Option(
            "--path/--no-path",
            help="Compute the report's curve of variance against the number of variables.",
            rich_help_panel=RESULTS,
        ),
    ] = True,
    starts: Annotated[
        int,
        typer.Option(help="Number of starts; the best is kept.", min=1, rich_help_panel=o.FITTING),
    ] = 1,
    max_sweeps: Annotated[
        int | None, typer.Option(min=1, help="Stop after this many sweeps.", rich_help_panel=o.FITTING)
    ] = None,
    stability: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Also fit this many random halves of the samples, and report how often each variable is selected again. "
            "20 is a good number.",
            rich_help_panel=o.FITTING,
        ),
    ] = None,
    schedule: Annotated[
        o.Order | None,
        typer.Option(
            help="With a threshold: the order of the pairs that are rotated. random is the paper's Algorithm 2.",
            rich_help_panel=o.FITTING,
        ),
    ] = None,
    run: o.Running,
    session: TableSession,
) -> None:
    """Find components made of few variables.

    Writes components.csv (the weights), scores.csv, summary.json and report.html, a page to open in a browser.

    Example: [bold]givens sparse-pca expression.tsv -m 10 --n-nonzero 50 --log2 --out results[/]
    """
    parameters: dict[str, Any] = {
        "n_components": components,
        "n_nonzero": counts(n_nonzero),
        "alpha": alpha,
        "gamma": gamma,
        "penalty": penalty.value,
        "scale": standardise,
        "n_starts": starts,
        "missing": "em" if source.impute == o.ImputeOrEstimate.em else None,
    }
    if max_sweeps is not None:
        parameters["max_sweeps"] = max_sweeps
    if schedule is not None:
        if stream:
            raise OptionError("--schedule is for tables in memory: leave out --stream or --schedule")
        if n_nonzero is not None or n_nonzero_total is not None:
            raise OptionError(
                "--schedule orders rotations with a threshold: give --alpha or --gamma, not --n-nonzero"
            )
        parameters["schedule"] = schedule.value
    if oversample is not None and not stream:
        raise OptionError("--oversample goes with --stream, and does nothing without it")
    if stream:
        if run.cluster is not None:
            raise OptionError("--stream reads the file on this machine: leave out --stream or --cluster")
        for name, value in (("--stability", stability), ("--n-nonzero-total", n_nonzero_total)):
            if value is not None:
                raise OptionError(f"{name} is for tables in memory: leave out --stream or {name}")
        parameters |= {"oversample": oversample, "random_state": run.seed, "threads": run.threads}
        model = givens.StreamingSparsePCA(**parameters)
        check_parameters(model)
        streaming.run(session, source, model)
        return
    parameters |= {"n_nonzero_total": n_nonzero_total, "stability": stability, **run.parameters(session)}
    model = givens.SparsePCA(**parameters)
    check_parameters(model)
    if run.cluster is not None:
        if stability is not None:
            raise OptionError("--stability needs all samples in memory: leave out --cluster or --stability")
        fit_on_cluster(session, source, model, run.cluster)
        return
    fit_in_memory(session, source, model, path)


def fit_in_memory(session: Session, source: o.Source, model: Any, path: bool) -> None:
    """Fit the model to the whole table and write the results."""
    with staged(session.out) as files:
        table = source.table(session)
        if looks_like_covariance(table.values):
            session.warn(
                "the table is square and symmetric, as a covariance or correlation matrix is, but its rows are taken as "
                "samples; SparsePCA.fit_covariance in Python is for such a matrix"
            )
        if hasattr(table.values, "tocsr"):
            model.set_params(missing=None)  # what a sparse table does not hold is zero
        with session.fitting():
            model.fit(table.values)
        if model.missing is not None and model.n_missing_:
            table.values = model.completion_.fill(o.dense(table.values), np.isnan(table.values))
            table.notes.append(streaming.estimated(model))
            session.say(table.notes[-1])
        curve = walk(session, table, model) if path else None
        scores = np.asarray(model.transform(table.values), np.float64)
        centred = scores - scores.mean(axis=0)
        outcome = sparse_pca_outcome(
            session,
            Described.of(source.file, table),
            model,
            share=np.asarray(model.explained_variance_ratio_),
            score_gram=centred.T @ centred,
            samples=(table.samples, scores, table.all_labels),
            path=curve,
        )
        outcome.with_scores(table, scores, "component").write(session, files)


def fit_on_cluster(session: Session, source: o.Source, model: Any, address: str) -> None:
    """Fit the model where the chunks of a store are, and write the results; there is no curve, which needs the whole table."""
    from givens.app.commands.cluster import score, store_on_cluster

    with staged(session.out) as files:
        with store_on_cluster(session, source, address, model.threads) as store:
            with session.fitting():
                model.fit(store.X)
            scores = model.transform(store.X)
            moments = streaming.ScoreMoments(scores.shape[1])
            scored = score(session, source, store, scores, "component", files, seen=moments.add)
        sparse_pca_outcome(
            session,
            scored.data,
            model,
            share=np.asarray(model.explained_variance_ratio_),
            score_gram=moments.centred(),
            samples=(scored.table.samples, scored.scores, scored.table.all_labels),
        ).write(session, files)


def looks_like_covariance(values: Any) -> bool:
    """Whether a table is a symmetric matrix with a positive diagonal, which no table of samples is by chance.

    >>> looks_like_covariance(np.array([[1.0, 0.5], [0.5, 1.0]])), looks_like_covariance(np.ones((1, 1)))
    (True, False)
    """
    if values.shape[0] != values.shape[1] or len(values.diagonal()) < 2 or not (values.diagonal() > 0).all():
        return False
    return float(abs(values - values.T).max()) <= 1e-8 * float(abs(values).max())


def walk(session: Session, table: Table, model: Any) -> dict[str, Any]:
    """Return variance against non-zeros along the path of thresholds, for the report."""
    shared = {name: getattr(model, name) for name in ("penalty", "scale", "threads", "random_state")}
    components = len(model.components_)
    with session.step("walking the path of thresholds"), session.compiling(), warnings.catch_warnings():
        # The curve shows a trend; a point that stopped early needs no warning.
        warnings.simplefilter("ignore")
        path = givens.sparse_pca_path(table.values, components, alphas=ALPHAS, tol=PATH_TOL, **shared)
    chosen = (float(np.sum(model.n_nonzero_)), float(np.sum(model.explained_variance_ratio_)))
    shares = path.explained_variance_ratio.sum(axis=1)
    return path_view(path.n_nonzero.sum(axis=1), shares, chosen, counted=model.n_nonzero is not None)
