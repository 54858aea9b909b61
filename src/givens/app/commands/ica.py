"""`givens ica`: independent components of a table or a recording."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Literal

import numpy as np

import givens
from givens.app.commands import options as o
from givens.app.commands.cluster import opened
from givens.app.commands.results import CommandOutcome, outcome, percent, size_line, size_of
from givens.app.commands.samples import Scored
from givens.app.commands.session import (
    Session,
    TableSession,
    argument,
    option,
    option_group,
    refuse_contradictions,
)
from givens.app.commands.session import command as clean
from givens.app.report.time_courses import sources_view
from givens.app.tables import DataError, ReadingOptions, Table, staged
from givens.app.tables.table import guess_times, numbered
from givens.mne.recording import SUFFIXES, read_recording

ContrastName = Literal["adaptive", "logcosh", "exp", "kurtosis"]


@option_group
class TableOrRecording(o.UnlabelledSource):
    """A file and the options for reading it; values are taken as they are."""

    file: Path = argument(
        "CSV or TSV (also .gz), .xlsx, .parquet, .npy, .npz, .mtx; with MNE, .edf, .bdf, .gdf, .set, .fif or .vhdr."
    )
    log2: bool = field(default=False, init=False)
    floor: None = field(default=None, init=False)

    signals = True


@clean
def command(
    *,
    components: int | None = option(
        None, "Number of sources. Default: the rank of the data.", "--components", "-m", min=1
    ),
    contrast: ContrastName = o.fitting(
        "adaptive",
        "The measure of independence. adaptive separates sources with heavy and light tails; logcosh, exp and "
        "kurtosis only those with heavy tails.",
    ),
    stability: int | None = o.fitting(
        None,
        "How many random halves of the samples to separate too, to see which sources are found again; 0 leaves it out. "
        "Default: 10, and 0 with --cluster.",
        min=0,
    ),
    starts: int = o.fitting(1, "Number of starts; the best is kept.", min=1),
    rate: float | None = o.reading(
        None, "Samples per second of a table, for times and spectra. Recordings contain it."
    ),
    high_pass: float | None = o.reading(
        None, "Cut-off of a high-pass filter that is applied to a recording first, in Hz; 1 is usual.", min=0
    ),
    source: TableOrRecording,
    run: o.Running,
    session: TableSession,
) -> None:
    """Find independent components: the sources of which the variables are mixtures.

    For signals, the samples are points in time and the variables are channels; a table much wider than long is taken as
    a row for each channel. Writes components.csv (the mixing weights),
    unmixing.csv, scores.csv (the sources), summary.json and report.html.

    Example: [bold]givens ica recording.csv --rate 250 --out results[/]
    """  # fmt: skip
    recorded = source.file.suffix.lower() in SUFFIXES
    positive = rate is None or (np.isfinite(rate) and rate > 0)
    refuse_contradictions(
        {
            f"--rate must be a positive number of samples per second, not {rate or 0:g}": not positive,
            "--stability needs all samples in memory: leave out --cluster or --stability": run.cluster
            is not None
            and bool(stability),
            "--high-pass is for recordings that MNE reads, not for tables": high_pass is not None
            and not recorded,
            f"--rate is for tables: {source.file.name} contains its own sampling rate": rate is not None
            and recorded,
        }
    )
    model = givens.ICA(
        components,
        contrast=contrast,
        stability=(10 if run.cluster is None else 0) if stability is None else stability,
        n_starts=starts,
        **run.parameters(session),
    )
    with staged(session.out) as files:
        table = places = None
        if recorded:
            table, rate, places = read_signals(session, source, high_pass)
        with opened(session, source, run, dense=True, table=table) as samples:
            samples.X = samples.X.astype(np.float64)
            # Rows are samples by the definition of .h5ad.
            if run.cluster is not None and source.samples is None and source.file.suffix != ".h5ad":
                refuse_signals_in_rows(samples.X.shape)
            refuse_more_components(model.n_components, samples.X.shape)
            with session.step("separating sources"):
                samples.fit(model)
            scored = samples.scored(model.transform, numbered("source", len(model.kurtosis_)), files)
            sources = scored.shown.values
            if len(sources) < scored.number:
                # Samples of a store that the page shows
                sources = np.asarray(samples.computed(model.transform(samples.X[: 1 << 16])), np.float64)
            if len(sources) < scored.number:
                samples.notes.append(f"the report shows the sources of the first {len(sources):,} samples")
            ica_outcome(session, scored, model, sources, rate, places).write(session, files)


def read_signals(
    session: Session, source: o.Source, high_pass: float | None
) -> tuple[Table, float | None, np.ndarray | None]:
    """Read a recording: its samples, how many there are in a second, and the places of sensors, where they are known."""
    file = source.file
    ReadingOptions(**source.reading()).refuse_row_options(file.name)
    with session.step(f"reading {file.name}"):
        try:
            found = read_recording(file, high_pass)
        except ValueError as error:
            raise DataError(str(error)) from None
    for note in found.notes:
        session.say(note)
    times = [f"{time:.4f}" for time in found.times]
    return Table(found.values, times, found.channels, notes=found.notes), found.rate, found.places


def refuse_more_components(components: float | None, shape: tuple[int, int]) -> None:
    """Refuse more components than there are samples or variables."""
    if components is not None and components > min(shape):
        raise DataError(f"{shape[0]} x {shape[1]} numbers have no {components} components")


def refuse_signals_in_rows(shape: tuple[int, int]) -> None:
    """Refuse a store whose rows are signals by the rule for tables: a store is not transposed."""
    side, reason = guess_times(*shape)
    if side == "columns":
        raise DataError(
            f"the columns look like the samples, {reason}, and --cluster reads samples as rows: transpose the store, "
            "or say --samples rows"
        )


def ica_outcome(
    session: Session,
    scored: Scored,
    model: givens.ICA,
    sources: np.ndarray,
    rate: float | None,
    places: np.ndarray | None,
) -> CommandOutcome:
    """Return the results of a separation; `sources` are those that the page shows."""
    mixing, kurtosis, stability = model.mixing_, model.kurtosis_, model.stability_
    variables = scored.samples.variables
    share = model.explained_variance_ratio_
    hidden = ("w_init", "threads", "whiten")
    return outcome(
        session,
        "ica",
        scored,
        scored.samples.file,
        model.result_,
        noun="source",
        weights=mixing.T,
        further={"unmixing.csv": model.components_},
        components={
            "share": share,
            "title": "Mixing weights",
            "weight": "mixing weights",
            "entry": "mixing weight",
            "lead": "How much one standard deviation of a source adds to each variable. The percentage is the share of the "
            "variance that the source explains.",
        },
        columns={"explained": (share, "%"), "kurtosis": (kurtosis, ".2f"), "stability": (stability, ".3f")},
        title=f"{len(kurtosis)} independent components",
        page_title=f"Independent components of {scored.samples.file.name}",
        subtitle=size_line(scored, len(kurtosis), "source"),
        facts=[
            ("Sources", str(len(kurtosis)), f"rank {model.rank_} of {len(variables):,} variables"),
            ("Variance explained", percent(float(share.sum())), "all sources together"),
            *_found_again(stability),
        ],
        size={**size_of(scored), "rank": model.rank_},
        settings={key: value for key, value in model.get_params().items() if key not in hidden},
        figures={
            "explained_variance_ratio": share,
            "kurtosis": kurtosis,
            "signs": model.signs_,
            "stability": stability,
            "samples_per_second": rate,
        },
        diagnostics=[
            ("Gradient per sample", f"{model.gradient_norm_:.2e}", "0 at an optimum of the contrast."),
        ],
        criterion="contrast",
        sources=sources_view(
            sources, share=share, kurtosis=kurtosis, stability=stability, rate=rate, mixing=mixing,
            variables=variables, places=places,
        ),
    )  # fmt: skip


def _found_again(stability: np.ndarray | None) -> list[tuple[str, str, str]]:
    if stability is None:
        return []
    stable = int(np.sum(stability > 0.95))
    return [
        (
            "Stable sources",
            f"{stable} of {len(stability)}",
            "found again in random halves of the samples, with a mean correlation above 0.95",
        )
    ]
