"""`givens ica`: independent components of a table or a recording."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated

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
)
from givens.app.commands.session import Session, TableSession
from givens.app.commands.session import command as clean
from givens.app.report import Report
from givens.app.report.time_courses import sources_view
from givens.app.report.views import components_view
from givens.app.tables import DataError, OptionError, Table, staged
from givens.app.tables.table import guess_times
from givens.app.tables.write import Staged
from givens.mne.recording import SUFFIXES, Recording, read_recording

FIRST = 1 << 16  # samples of a store that the page shows


class ContrastName(StrEnum):
    """The contrasts of `ICA` that have a name."""

    adaptive = "adaptive"
    logcosh = "logcosh"
    exp = "exp"
    kurtosis = "kurtosis"


@dataclass
class TableOrRecording(o.UnlabelledSource):
    """A file and the options for reading it; values are taken as they are."""

    file: Annotated[
        Path,
        typer.Argument(
            help="CSV or TSV (also .gz), .xlsx, .parquet, .npy, .npz, .mtx; with MNE, .edf, .bdf, .gdf, .set, .fif or .vhdr.",
            show_default=False,
        ),
    ]
    log2: bool = field(default=False, init=False)
    floor: None = field(default=None, init=False)

    signals = True


@clean
def command(
    *,
    components: Annotated[
        int | None,
        typer.Option(
            "--components",
            "-m",
            min=1,
            help="Number of sources. Default: the rank of the data.",
            show_default=False,
        ),
    ] = None,
    contrast: Annotated[
        ContrastName,
        typer.Option(
            help="The measure of independence. adaptive separates sources with heavy and light tails; logcosh, exp and "
            "kurtosis only those with heavy tails.",
            rich_help_panel=o.FITTING,
        ),
    ] = ContrastName.adaptive,
    stability: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="How many times to compare the sources of two random halves of the samples; 0 leaves it out. Default: 5, and 0 "
            "with --cluster.",
            rich_help_panel=o.FITTING,
            show_default=False,
        ),
    ] = None,
    starts: Annotated[
        int, typer.Option(min=1, help="Number of starts; the best is kept.", rich_help_panel=o.FITTING)
    ] = 1,
    rate: Annotated[
        float | None,
        typer.Option(
            help="Samples per second of a table, for times and spectra. Recordings contain it.",
            rich_help_panel=o.READING,
            show_default=False,
        ),
    ] = None,
    high_pass: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Cut-off of a high-pass filter that is applied to a recording first, in Hz; 1 is usual.",
            rich_help_panel=o.READING,
            show_default=False,
        ),
    ] = None,
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
    if rate is not None and not (np.isfinite(rate) and rate > 0):
        raise OptionError(f"--rate must be a positive number of samples per second, not {rate:g}")
    if run.cluster is not None and stability:
        raise OptionError("--stability needs all samples in memory: leave out --cluster or --stability")
    model = givens.ICA(
        components,
        contrast=contrast.value,
        stability=(5 if run.cluster is None else 0) if stability is None else stability,
        n_starts=starts,
        **run.parameters(session),
    )
    with staged(session.out) as files:
        if run.cluster is not None:
            found = fit_on_cluster(session, source, model, rate, run.cluster, files)
        else:
            found = fit_in_memory(session, source, model, *signals(session, source, rate, high_pass))
        found.write(session, files)


def signals(
    session: Session, source: o.Source, rate: float | None, high_pass: float | None
) -> tuple[Table, float | None, np.ndarray | None]:
    """Read a table or a recording; return also the samples per second and the places of sensors, where they are known."""
    file = source.file
    if file.suffix.lower() not in SUFFIXES:
        if high_pass is not None:
            raise OptionError("--high-pass is for recordings that MNE reads, not for tables")
        return source.table(session), rate, None
    if rate is not None:
        raise OptionError(f"--rate is for tables: {file.name} contains its own sampling rate")
    source.refuse_row_options(file.name)
    with session.step(f"reading {file.name}"):
        found = recording(file, high_pass)
    for note in found.notes:
        session.say(note)
    times = [f"{time:.4f}" for time in found.times]
    return Table(found.values, times, found.channels, notes=found.notes), found.rate, found.places


def fit_in_memory(
    session: Session,
    source: o.Source,
    model: givens.ICA,
    table: Table,
    rate: float | None,
    places: np.ndarray | None,
) -> CommandOutcome:
    """Separate the sources of a table or a recording."""
    values = table.values = o.dense(table.values)
    refuse_more_components(model.n_components, values.shape)
    with session.step("separating sources"), session.fitting():
        sources = model.fit_transform(values)
    variance = float(np.var(values, axis=0).sum())
    data = Described.of(source.file, table)
    return ica_outcome(session, data, model, sources, variance, rate, places).with_scores(
        table, sources, "source"
    )


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


def fit_on_cluster(
    session: Session, source: o.Source, model: givens.ICA, rate: float | None, address: str, files: Staged
) -> CommandOutcome:
    """Separate the sources where the chunks of a store are; the page shows the first samples."""
    from givens.app.commands.cluster import computed, score, store_on_cluster

    with store_on_cluster(session, source, address, model.threads, dense=True) as store:
        if source.samples is None and source.file.suffix != ".h5ad":  # where rows are samples by definition
            refuse_signals_in_rows(store.X.shape)
        refuse_more_components(model.n_components, store.X.shape)
        with session.fitting():
            model.fit(store.X)
        scores = model.transform(store.X)
        scored = score(session, source, store, scores, "source", files)
        sources = np.asarray(computed(scores[:FIRST]), np.float64)
        variance = float(computed(store.X.var(axis=0)).sum())
    if len(sources) < scored.data.samples:
        scored.data.notes.append(f"the report shows the sources of the first {len(sources):,} samples")
    return ica_outcome(session, scored.data, model, sources, variance, rate, None)


def recording(file: Path, high_pass: float | None) -> Recording:
    """Read a recording; a file that cannot be used is a DataError."""
    try:
        return read_recording(file, high_pass)
    except ValueError as error:
        raise DataError(str(error)) from None


def ica_outcome(
    session: Session,
    data: Described,
    model: givens.ICA,
    sources: np.ndarray,
    variance: float,
    rate: float | None,
    places: np.ndarray | None,
) -> CommandOutcome:
    """Return the results of a separation; `sources` are those that the page shows, `variance` is that of all variables."""
    mixing, kurtosis = model.mixing_, model.kurtosis_
    number = len(kurtosis)
    share = model.explained_variance_ / variance
    columns = {
        "explained": [percent(value) for value in share],
        "kurtosis": [f"{value:.2f}" for value in kurtosis],
    }
    if model.stability_ is not None:
        columns["stability"] = [f"{value:.3f}" for value in model.stability_]
    report = Report(
        title=f"Independent components of {data.file.name}",
        subtitle=f"{data.samples:,} samples × {len(data.variables):,} variables, {number} sources",
        facts=[
            ("Sources", str(number), f"rank {model.rank_} of {len(data.variables):,} variables"),
            ("Variance explained", percent(float(share.sum())), "all sources together"),
            *_found_again(model.stability_),
        ],
        notes=data.notes,
        sources=sources_view(
            sources, share=share, kurtosis=kurtosis, stability=model.stability_, rate=rate, mixing=mixing,
            variables=data.variables, places=places,
        ),
        components=components_view(
            mixing.T,
            data.variables,
            share=share,
            title="Mixing weights",
            noun="source",
            weight="mixing weights",
            entry="mixing weight",
            lead="How much one standard deviation of a source adds to each variable. The percentage is the share of the "
            "variance that the source explains.",
        ),
        diagnostics=[
            ("Gradient per sample", f"{model.gradient_norm_:.2e}", "0 at an optimum of the contrast."),
        ],
    )  # fmt: skip
    return outcome(
        session,
        report,
        "ica",
        data.file,
        model.result_,
        size={"samples": data.samples, "variables": len(data.variables), "rank": model.rank_},
        settings={
            key: value
            for key, value in model.get_params().items()
            if key not in ("w_init", "threads", "whiten")
        },
        figures={
            "explained_variance_ratio": share,
            "kurtosis": kurtosis,
            "signs": model.signs_,
            "stability": model.stability_,
            "samples_per_second": rate,
        },
        table=component_table(
            mixing.T, data.variables, "source", columns, f"{number} independent components"
        ),
        files=weight_files(
            {"components.csv": mixing.T, "unmixing.csv": model.components_},
            data.variables,
            numbered("source", number),
        ),
        criterion="contrast",
    )


def _found_again(stability: np.ndarray | None) -> list[tuple[str, str, str]]:
    if stability is None:
        return []
    stable = int(np.sum(stability > 0.95))
    return [
        (
            "Stable sources",
            f"{stable} of {len(stability)}",
            "found again in every random half of the samples, with a correlation above 0.95",
        )
    ]
