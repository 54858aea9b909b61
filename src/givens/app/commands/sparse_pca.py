"""`givens sparse-pca`: from a table to components of few variables."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

import givens
from givens.app.commands import options as o
from givens.app.commands.cluster import opened
from givens.app.commands.results import CommandOutcome, outcome, percent, records, size_line, size_of
from givens.app.commands.samples import InMemory, Scored, ScoreMoments, Streamed
from givens.app.commands.session import (
    Session,
    TableSession,
    checking_options,
    option,
    refuse_contradictions,
    results,
)
from givens.app.commands.session import command as clean
from givens.app.report.labels import PERMUTATIONS, Separation, separations
from givens.app.report.views import path_view, scores_view, separation_view
from givens.app.tables import OptionError, staged
from givens.app.tables.table import count, numbered
from givens.metrics import adjusted_from_gram, largest_correlation
from givens.sparse_pca.options import check_sparsity, counts_of, penalty_and_number
from givens.support.arguments import LARGEST_COUNT


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
        check_sparsity(model)
        if model.n_nonzero is not None:
            counts_of(model, model.n_components, LARGEST_COUNT)


@clean
def command(
    *,
    components: int = option(5, "Number of components.", "--components", "-m", min=1),
    n_nonzero: str | None = option(
        None, "How sparse: the number of variables in each component, or one number per component (7,4,4)."
    ),
    n_nonzero_total: int | None = option(
        None, "Or: the number of variables in all components together, shared by what they explain.", min=1
    ),
    threshold: float | None = option(
        None,
        "Or: a threshold between 0 (ordinary PCA) and 1 (one variable in each component). Default: 0.05.",
    ),
    penalty: o.Penalty = o.fitting("l1", "With --threshold: the l1 or the l0 penalty of sparse PCA."),
    source: o.EstimableSource,
    standardise: bool = o.standardise_option,
    stream: bool = o.reading(False, "Read a few rows at a time, for files larger than memory.", "--stream"),
    sketch: int | None = o.fitting(
        None,
        "With --stream: how many columns stand for the samples. More of them lose less of weak components, and take more memory "
        "and time. Default: four for each component, and at least 20 more than components.",
        min=1,
    ),
    path: bool = results(
        True, "Compute the report's curve of variance against the number of variables.", "--path/--no-path"
    ),
    starts: int = o.fitting(1, "Number of starts; the best is kept.", min=1),
    max_iter: int | None = o.fitting(None, "Stop after this many sweeps.", min=1),
    stability: int | None = o.fitting(
        None,
        "Also fit this many random halves of the samples, and report how often each variable is selected again. "
        "20 is a good number.",
        min=1,
    ),
    schedule: o.Order | None = o.fitting(
        None, "With a threshold: the order of the pairs that are rotated. random is the paper's Algorithm 2."
    ),
    run: o.Running,
    session: TableSession,
) -> None:
    """Find components made of few variables.

    Writes components.csv (the weights), scores.csv, summary.json and report.html, a page to open in a browser.

    Example: [bold]givens sparse-pca expression.tsv -m 10 --n-nonzero 50 --log2 --out results[/]
    """
    parameters: dict[str, Any] = {
        "n_components": components,
        "n_nonzero": counts(n_nonzero) if n_nonzero_total is None else ("total", n_nonzero_total),
        "threshold": threshold if penalty == "l1" else (penalty, threshold),
        "scale": standardise,
        "n_starts": starts,
        "missing": "em" if source.impute == "em" else None,
    }
    parameters |= {
        name: value
        for name, value in {"max_iter": max_iter, "schedule": schedule}.items()
        if value is not None
    }
    spread = run.cluster is not None
    in_memory = {"--schedule": schedule, "--stability": stability, "--n-nonzero-total": n_nonzero_total}
    counted = n_nonzero is not None or n_nonzero_total is not None
    refuse_contradictions(
        {
            "--stream reads the file on this machine: leave out --stream or --cluster": stream and spread,
            **{
                f"{name} is for tables in memory: leave out --stream or {name}": stream and value is not None
                for name, value in in_memory.items()
            },
            "--n-nonzero and --n-nonzero-total exclude each other: give one of them": n_nonzero is not None
            and n_nonzero_total is not None,
            "--penalty says what a threshold means: give --threshold too": penalty != "l1"
            and threshold is None,
            "--schedule orders rotations with a threshold: give --threshold, not --n-nonzero": counted
            and schedule is not None,
            "--sketch goes with --stream, and does nothing without it": sketch is not None and not stream,
            "--stability needs all samples in memory: leave out --cluster or --stability": spread
            and stability is not None,
        }
    )
    if stream:
        parameters |= {"sketch": sketch, "random_state": run.seed, "threads": run.threads}
    else:
        parameters |= {"stability": stability, **run.parameters(session)}
    estimator = givens.StreamingSparsePCA if stream else givens.SparsePCA
    model = estimator(**parameters)
    check_parameters(model)
    fit(session, source, model, run, path)


def fit(session: Session, source: o.Source, model: Any, run: o.Running, path: bool) -> None:
    """Fit the model and write the results; with `path` and a table in memory, the curve along the thresholds too."""
    stream = isinstance(model, givens.StreamingSparsePCA)
    with (
        staged(session.out) as files,
        nullcontext(Streamed(session, source)) if stream else opened(session, source, run) as samples,
    ):
        whole = isinstance(samples, InMemory)
        if whole and looks_like_covariance(samples.X):
            session.warn(
                "the table is square and symmetric, as a covariance or correlation matrix is, but its rows are taken as "
                "samples; SparsePCA.fit_covariance in Python is for such a matrix"
            )
        if whole and hasattr(samples.X, "tocsr"):
            model.set_params(missing=None)  # what a sparse table does not hold is zero
        samples.fit(model)
        if model.missing is not None and model.n_missing_:
            samples.note(
                f"estimated {count(model.n_missing_, 'missing value')} from the values that are there (--impute em)"
            )
        spread = Spread(model, samples.source.prepared)
        if whole and model.missing is not None:
            samples.X = completed(model, samples.X)
        with session.step("turning what was kept into components"):
            number = len(model.components_)  # a stream computes them when they are asked for
        if isinstance(samples, Streamed):
            samples.prepare = spread
        curve = walk(session, samples.X, model) if path and whole else None
        scored = samples.scored(model.transform, numbered("component", number), files)
        share = spread.shares(scored.moments) if stream else np.asarray(model.explained_variance_ratio_)
        sparse_pca_outcome(session, scored, model, share, curve).write(session, files)


def completed(model: Any, values: Any) -> Any:
    """Return samples with what the model has estimated in place of their missing values."""
    if model.missing is None or not np.isnan(values).any():
        return values
    return model.completion_.fill(o.dense(values), np.isnan(values))


class Spread:
    """The sum of squares of a stream's centred samples, of which the scores explain shares; it prepares and adds blocks."""

    def __init__(self, model: Any, prepare: Callable[[np.ndarray], np.ndarray]) -> None:
        self.model, self.prepare, self.total = model, prepare, 0.0

    def __call__(self, block: np.ndarray) -> np.ndarray:
        """Return a block as the model takes it, and add it."""
        model, values = self.model, completed(self.model, self.prepare(block))
        centred = np.asarray(values, np.float64) - np.asarray(model.mean_, np.float64)
        if model.scale_ is not None:
            centred /= model.scale_
        self.total += float(np.einsum("ij,ij->", centred, centred))
        return values

    def shares(self, moments: ScoreMoments) -> np.ndarray:
        """Return the adjusted share of each component, R_jj² of the total, with R = chol(G) of the scores' Gram matrix."""
        adjusted = adjusted_from_gram(moments.centred())
        return adjusted / self.total if self.total > 0 else np.zeros(len(adjusted))


def looks_like_covariance(values: Any) -> bool:
    """Whether a table is a symmetric matrix with a positive diagonal, which no table of samples is by chance.

    >>> looks_like_covariance(np.array([[1.0, 0.5], [0.5, 1.0]])), looks_like_covariance(np.ones((1, 1)))
    (True, False)
    """
    if values.shape[0] != values.shape[1] or len(values.diagonal()) < 2 or not (values.diagonal() > 0).all():
        return False
    return float(abs(values - values.T).max()) <= 1e-8 * float(abs(values).max())


def walk(session: Session, values: Any, model: Any) -> dict[str, object]:
    """Return variance against non-zeros along the path of thresholds, for the report."""
    shared = {name: getattr(model, name) for name in ("scale", "threads", "random_state")}
    penalty = penalty_and_number(model)[0]
    components = len(model.components_)
    with session.step("walking the path of thresholds"), session.compiling(), warnings.catch_warnings():
        # The curve shows a trend; a point that stopped early needs no warning.
        warnings.simplefilter("ignore")
        # From 0, which is PCA, to a threshold that leaves very few non-zeros.
        thresholds = np.concatenate(([0.0, 0.02], np.geomspace(0.08, 0.6, 8)))
        path = givens.sparse_pca_path(
            values, components, thresholds=thresholds, penalty=penalty, tol=1e-2, **shared
        )
    chosen = (float(np.sum(model.n_nonzero_)), float(np.sum(model.explained_variance_ratio_)))
    shares = path.explained_variance_ratio.sum(axis=1)
    return path_view(path.n_nonzero.sum(axis=1), shares, chosen, counted=model.n_nonzero is not None)


def sparse_pca_outcome(
    session: Session, scored: Scored, model: Any, share: np.ndarray, path: dict[str, object] | None
) -> CommandOutcome:
    """Return the results of a fitted SparsePCA or StreamingSparsePCA."""
    scores, labels = scored.shown.values, scored.labels
    separated, notes = separations(scores, labels)
    if len(scores) < scored.number:
        notes.append(f"Computed from {len(scores):,} of the samples, evenly chosen.")
    weights = np.asarray(model.components_)
    names, axes = scored.header, numbered("Component", len(weights))
    nonzero = (weights != 0).sum(axis=1)
    used = int(np.any(weights != 0, axis=0).sum())
    overlapping = largest_correlation(weights @ weights.T)
    correlated = largest_correlation(scored.moments.centred())
    total = float(share.sum())
    stable, halves = getattr(model, "stability_", None), getattr(model, "stability", None)
    selected = getattr(model, "selection_frequency_", None)
    return outcome(
        session,
        "sparse-pca",
        scored,
        scored.samples.file,
        model.result_,
        noun="component",
        weights=weights,
        further={"selection.csv": selected},
        components={
            "share": share,
            "lead": "Each component is a weighted sum of few variables. The percentage is the share of the variance that it "
            "adds to those before it. Point at a bar to see its variable in every component."
            + (
                (
                    " Selected: the share of random halves of the samples in which the variable has a weight in the "
                    "matching component. Variables that only halves selected are listed last, in grey: they have "
                    "weight 0 and are no part of the component. selection.csv holds the shares of all variables."
                )
                if halves
                else ""
            ),
            "second": selected,
            "second_title": "Selected" if halves else "",
        },
        columns={
            "explained": (share, "%"),
            "non-zeros": (nonzero, ","),
            "stability": (stable, ".2f"),
        },
        title=f"{len(weights)} components explain {percent(total)} of the variance",
        facts=[
            ("Variance explained", percent(total), "by all components together, adjusted for their overlap"),
            ("Non-zero weights", f"{int(nonzero.sum()):,}", f"of {weights.size:,}"),
            ("Variables used", f"{used:,}", f"of {weights.shape[1]:,}"),
            ("Samples", f"{scored.number:,}", scored.described),
        ],
        size=size_of(scored),
        settings=model.get_params(),
        figures={
            "explained_variance_ratio": total,
            "variables_used": used,
            "components": records(names, explained_variance_ratio=share, n_nonzero=nonzero, stability=stable),
            "gamma": getattr(model, "gamma_", None),
            "largest_overlap": overlapping,
            "largest_score_correlation": correlated,
            **separation_figures(separated, names),
        },
        diagnostics=[
            *stability_lines(stable, halves),
            (
                "Largest overlap of two components",
                f"{overlapping:.3f}",
                "Largest |zᵢ·zⱼ| of the weights z of two components: 0 if they are orthogonal, 1 if they are equal.",
            ),
            (
                "Largest correlation of scores",
                f"{correlated:.3f}",
                (
                    "0 in ordinary PCA. Where it is large, two components share variance; the explained variance counts "
                    "what they share once."
                ),
            ),
        ],
        page_title=f"Sparse components of {scored.samples.file.name}",
        subtitle=size_line(scored, len(weights), "component"),
        separation=separation_view(separated, notes, axes, PERMUTATIONS),
        scores=scores_view(
            scores,
            scored.shown.names,
            axes=axes,
            labels=labels,
            lead="Each point is a sample. Point at one, or use the arrow keys, to see its name and scores.",
            total=scored.number,
        ),
        path=path,
    )


def separation_figures(found: Sequence[Separation], names: Sequence[str]) -> dict[str, object]:
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
