"""Fits on Dask: data on disk, one, two and four worker processes, what they hold and send, and a simulator beside them.

Samples of 500 features, float64, in a zarr store with chunks of 8,192 samples (33 MB), 20 GB of them where the disk has twice
that to spare, else 5 GB; GIVENS_CLUSTER_GB sets another size, GIVENS_CLUSTER_FOLDER the place. Every worker has one thread, also
of BLAS. Memory is the most that a worker held (VmHWM) less what it held before the fit, in chunks; bytes are what workers
received from each other, as Dask counts them.

The simulator (`_task_graph.py`) replays one pass, the products of `RotatedPCA`, with constants from passes over fewer
chunks: on one worker, the seconds of a chunk and those of a pass without chunks; on two, how much longer a chunk takes
where cores share memory and disk. Of three such passes, and of the two that are predicted, the fastest counts. No constant comes
from the passes that are predicted. Where there are more workers than cores, every worker is slower by that ratio.

dask-ml's PCA, IncrementalPCA and TruncatedSVD stand beside `RotatedPCA`, which finds the same components before it rotates them,
on two workers and the first 5 GB of the same store, since dask-ml's `PCA` holds more than all samples in memory. There, workers
have Dask's own limits of memory and move to the disk what exceeds them. Its randomised solvers make four power iterations.

The benchmark is made of parts, each of which is kept as soon as it is done. At the end it writes the figures into docs/scale.md.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter

import dask.array as da
import numpy as np
import zarr

from benchmarks._local_cluster import (
    FOLDER,
    GIGABYTES,
    SPARE,
    WORKERS,
    bits,
    claim_peak,
    claim_workers,
    cluster,
    fitted,
    received,
)
from benchmarks._parts import HERE, part
from benchmarks._runner import replace as write_text
from benchmarks._task_graph import Constants, pass_seconds
from givens import RotatedPCA, SparsePCA, SphericalMixture, StreamingSparsePCA
from givens.data.moments import Moments
from givens.data.rows import Rows

FEATURES, ROWS, COMPONENTS = 500, 8192, 5
CHUNKS = max(16, round(GIGABYTES * 1e9 / (8 * FEATURES * ROWS)))
RIVALS_CHUNKS = min(CHUNKS, round(5e9 / (8 * FEATURES * ROWS)))
CORES = len(os.sched_getaffinity(0))
FEW, SOME = 4, 12  # chunks of the passes that constants are measured on
BANDWIDTH = 1e9  # bytes per second between workers, assumed
SWEEPS, STEPS = 7, 20  # of rotations and of descent, for the same objective: assumed
MODELS = {
    "SparsePCA": lambda: SparsePCA(COMPONENTS, threshold=0.3),
    "RotatedPCA": lambda: RotatedPCA(COMPONENTS),
    "StreamingSparsePCA": lambda: StreamingSparsePCA(COMPONENTS, n_nonzero=40),
    "SphericalMixture": lambda: SphericalMixture(COMPONENTS, max_iter=2, n_starts=1),
}


def run(report):
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        size = 8 * FEATURES * ROWS * CHUNKS
        if 1.5 * size > SPARE * 1e9:
            report.missing.append(f"{size / 1e9:.1f} GB on disk for the samples: set GIVENS_CLUSTER_GB")
            return
        report.note(f"{CHUNKS} chunks, {size / 1e9:.2f} GB, {CORES} cores")
        samples = partial(stored, Path(folder) / "samples.zarr")
        kept = partial(part, report, "cluster")
        label = f"{GIGABYTES:g} GB"
        found = {w: kept(f"fits on {w}, {label}", partial(fits, w, samples)) for w in WORKERS}
        constants = kept(f"passes, {label}", partial(passes, samples))
        kept(f"dask-ml, {label}", partial(rivals, samples))
    for name in MODELS:
        claim_workers(report, name, found)
    lines = larger(report, constants)
    write_section(report, lines)


def stored(path):
    """The samples on disk, written when the first part needs them: planted modules, of other strength each, in noise."""
    if path.exists():
        return da.from_zarr(str(path))
    began = perf_counter()
    array = zarr.create_array(
        store=str(path),
        shape=(CHUNKS * ROWS, FEATURES),
        chunks=(ROWS, FEATURES),
        dtype="f8",
        compressors=None,
    )
    loadings = np.zeros((COMPONENTS, FEATURES))
    for j in range(COMPONENTS):
        loadings[j, 40 * j : 40 * j + 40] = 2.0 - 0.2 * j
    for number in range(CHUNKS):
        rng = np.random.default_rng(number)
        rows = rng.standard_normal((ROWS, FEATURES))
        rows += rng.standard_normal((ROWS, COMPONENTS)) @ loadings
        array[number * ROWS : (number + 1) * ROWS] = rows
    print(f"  samples written, {perf_counter() - began:.0f} s", flush=True)
    return da.from_zarr(str(path))


def fits(workers, samples, report):
    """All fits on so many workers: their seconds, and what they found."""
    X, found = samples(), {}
    with cluster(workers) as client:
        for name, make in MODELS.items():
            model, row = fitted(client, make, X)
            report.row(fit=name, workers=workers, **row)
            claim_peak(report, name, workers, row["worker_peak_chunks"], 3 + FEATURES / ROWS)
            found[name] = {"seconds": row["seconds"], "numbers": numbers(model)}
    return found


def passes(samples, report):
    """One pass on one, two and four workers, measured and simulated; returns the constants of the simulator."""
    X = samples()
    known = {"chunk": 0.0, "merge": merge_seconds(), "scheduler": 0.0, "fixed": 0.0, "sharing": 1.0}
    for workers in WORKERS:
        with cluster(workers) as client:
            products(X[: FEW * ROWS])
            if workers <= 2:
                calibrate(client, X, workers, known)
            sent, seconds = received(client), []
            for _ in range(2):
                began = perf_counter()
                products(X)
                seconds.append(perf_counter() - began)
            took, sent = min(seconds), (received(client) - sent) / 2
        said = pass_seconds(CHUNKS, workers, costs(known, workers))
        report.row(
            one_pass="products", workers=workers, seconds=took, simulated=said, mb_between_workers=sent / 1e6
        )
        near = 0.75 <= said / took <= 1.25
        report.claim(
            f"one pass, {workers} workers: simulated over measured", "0.75 to 1.25", said / took, near
        )
    return known


def products(X):
    """One pass: the means and products of all features."""
    return Rows(X).total(Moments(FEATURES), "benchmark-products")


def merge_seconds():
    """Seconds of merging two summaries, in this process."""
    one, other = Moments(FEATURES).begin(0), Moments(FEATURES).begin(0)
    for summary in (one, other):
        summary.add(np.random.default_rng(0).standard_normal((ROWS, FEATURES)))
        summary.end()
    began = perf_counter()
    for _ in range(20):
        one.merge(other)
    return (perf_counter() - began) / 20


def calibrate(client, X, workers, known):
    """What passes over few chunks tell: the fewest seconds of three, on one worker and on two."""
    known["scheduler"] = _empty_tasks(client)
    took = {FEW: [], SOME: []}
    for _ in range(3):
        for chunks, seconds in took.items():
            began = perf_counter()
            products(X[: chunks * ROWS])
            seconds.append(perf_counter() - began)
    few, some = min(took[FEW]), min(took[SOME])
    if workers == 1:
        each = (some - few) / (SOME - FEW)
        known["chunk"] = max(each - known["merge"] - known["scheduler"], 0.0)
        known["fixed"] = max(few - FEW * each, 0.0)
    else:
        alone = pass_seconds(SOME, workers, costs(known, 1)) - known["fixed"]
        known["sharing"] = max((some - known["fixed"]) / alone, 1.0)


def costs(known, workers):
    """The constants for so many workers on this machine."""
    slower = max(1.0, workers / CORES) * (known["sharing"] if workers > 1 else 1.0)
    return Constants(
        chunk=known["chunk"] * slower,
        merge=known["merge"] * slower,
        scheduler=known["scheduler"],
        summary=4.0 * FEATURES * (FEATURES + 1),
        bandwidth=BANDWIDTH,
        fixed=known["fixed"],
    )


def rivals(samples, report):
    """dask-ml's components of the same samples, on two workers: what `RotatedPCA` finds before its rotation."""
    X = samples()[: RIVALS_CHUNKS * ROWS]
    try:
        from dask_ml.decomposition import PCA, IncrementalPCA, TruncatedSVD
    except (ImportError, AttributeError) as error:
        report.missing.append(f"dask-ml ({error})")
        return
    models = {
        "RotatedPCA": MODELS["RotatedPCA"],
        "dask-ml PCA (tsqr)": lambda: PCA(COMPONENTS, svd_solver="full"),
        "dask-ml PCA (randomized)": lambda: PCA(
            COMPONENTS, svd_solver="randomized", iterated_power=4, random_state=0
        ),
        "dask-ml IncrementalPCA": lambda: IncrementalPCA(COMPONENTS, iterated_power=4, random_state=0),
        "dask-ml TruncatedSVD": lambda: TruncatedSVD(COMPONENTS),
    }
    found = {}
    with cluster(2, memory_limit="auto") as client:
        for name, make in models.items():
            try:
                model, row = fitted(client, make, X)
            except Exception as error:  # of another library, whatever it is
                report.note(f"{name} failed: {type(error).__name__}: {str(error)[:120]}")
            else:
                found[name] = {**row, "explained_variance": float(np.sum(model.explained_variance_))}
                report.row(components_by=name, **found[name])
    ours = found.pop("RotatedPCA")
    for name, theirs in found.items():
        # TruncatedSVD does not centre; the samples' means are nearly zero.
        short = 1 - theirs["explained_variance"] / ours["explained_variance"]
        task = f"components of {8 * FEATURES * ROWS * RIVALS_CHUNKS / 1e9:.0f} GB on two workers"
        report.ratio(task, name, theirs["seconds"] / ours["seconds"], 1.0)
        report.claim(f"variance that {name} explains more than RotatedPCA", "≤ 1e-6", -short, -short <= 1e-6)
    for what, unit in (("seconds", "seconds"), ("worker_peak_chunks", "memory of a worker, chunks")):
        least = min(theirs[what] for theirs in found.values())
        report.claim(
            f"{unit}, beside the best of dask-ml's", f"≤ {least:.3g}", ours[what], ours[what] <= least
        )


def larger(report, known):
    """1e9 samples of 1,000 features in chunks of 65,536, by the simulator: how long, and what the next bottleneck is."""
    growth = (65_536 / ROWS) * (1000 / FEATURES) ** 2
    here = costs(known, 1)
    cost = replace(here, chunk=here.chunk * growth, merge=here.merge * 4, summary=here.summary * 4)
    report.note(
        f"constants: {known['chunk']:.3f} s for a chunk, {known['sharing']:.2f} times that where two workers share this "
        f"machine, {known['fixed']:.3f} s for a pass, {1e3 * known['scheduler']:.2f} ms for a task, "
        f"{1e3 * known['merge']:.2f} ms for a merge; a network of {8 * BANDWIDTH / 1e9:.0f} Gbit/s is assumed"
    )
    chunks = -(-1_000_000_000 // 65_536)
    flops = 2.0 * ROWS * FEATURES**2 / known["chunk"]
    lines = [
        "| workers | seconds of a pass | share of it that computes | next bottleneck | a tournament pays from |",
        "|---|---|---|---|---|",
    ]
    for workers in (10, 100, 1000):
        seconds = pass_seconds(chunks, workers, cost)
        ideal = chunks * cost.chunk / workers
        without = {
            "the scheduler": replace(cost, scheduler=0.0),
            "merging": replace(cost, merge=0.0),
            "the network": replace(cost, bandwidth=float("inf")),
            "the fixed costs of a pass": replace(cost, fixed=0.0),
        }
        saved = {name: seconds - pass_seconds(chunks, workers, other) for name, other in without.items()}
        bottleneck = max(saved, key=saved.get)
        pays = tournament_columns(workers, flops)
        report.row(
            simulated_workers=workers,
            chunks=chunks,
            seconds=seconds,
            share_of_ideal=ideal / seconds,
            next_bottleneck=bottleneck,
            seconds_without_it=seconds - saved[bottleneck],
            tournament_pays_from_columns=pays,
        )
        cells = f"{workers:,}", f"{seconds:.0f}", f"{ideal / seconds:.0%}"
        lines.append(
            f"| {' | '.join(cells)} | {bottleneck}, {saved[bottleneck]:.2g} s | {pays:,.0f} columns |"
        )
    workers = 1000
    while workers < 10**6 and 2 * chunks * cost.chunk / workers > pass_seconds(chunks, workers, cost):
        workers *= 2
    report.note(f"with {workers:,} workers no more than half of a pass computes")
    return [*lines, "", f"With {workers:,} workers no more than half of a pass computes."]


def tournament_columns(workers, flops):
    """The number of columns from which a tournament of columns over workers is faster than descent over rows.

    A sweep of the tournament takes 3n² multiplications and additions per row, shared among the workers, and sends all columns
    through every worker, 8n bytes per row; a step of descent takes 6n² per row and sends next to nothing.
    """
    return SWEEPS * 8 / BANDWIDTH / ((6 * STEPS - 3 * SWEEPS) / (workers * flops))


def write_section(report, lines):
    """Put the figures into docs/scale.md, between its two marks."""
    file = HERE.parent / "docs" / "scale.md"
    text = file.read_text(encoding="utf-8")
    begin, end = "<!-- benchmarks/cluster.py writes from here -->", "<!-- to here -->"
    before, _, rest = text.partition(begin)
    measured = ["| workers | one pass, seconds | simulated | MB between workers |", "|---|---|---|---|"]
    measured += [
        f"| {row['workers']} | {row['seconds']:.1f} | {row['simulated']:.1f} | {row['mb_between_workers']:.0f} |"
        for row in report.rows
        if "one_pass" in row
    ]
    size = f"Measured on {CHUNKS} chunks, {8 * FEATURES * ROWS * CHUNKS / 1e9:.2f} GB:"
    constants = report.notes[-2]
    section = "\n".join([size, "", *measured, "", f"{constants[0].upper()}{constants[1:]}.", "", *lines])
    write_text(file, f"{before}{begin}\n{section}\n{end}{rest.partition(end)[2]}")


def _empty_tasks(client, number=500):
    began = perf_counter()
    client.gather(client.map(_same, range(number), pure=False))
    return (perf_counter() - began) / number


def _same(value):
    return value


def numbers(model):
    """What was found, as text that tells every bit."""
    if isinstance(model, SphericalMixture):
        return bits(model.means_, model.weights_)
    return bits(model.components_)
