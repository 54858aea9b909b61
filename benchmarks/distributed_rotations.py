"""Rotations of columns whose rows lie on the workers of a Dask cluster: what a sweep sends and takes, by pairs and by blocks.

Turned heavy-tailed sources, 65,536 samples in 16 chunks of a zarr store, two workers of one thread each, and the contrast
"kurtosis". Bytes are what workers received from each other in one sweep, the first and the last look included, as Dask counts
them. Whole runs are held against the run in memory.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import perf_counter

import dask.array as da
import numpy as np
import zarr

from benchmarks._local_cluster import cluster, received
from givens import minimize
from givens.objectives import Columns
from givens.rotations import random_orthogonal
from givens.schedules import Tournament

SAMPLES, CHUNKS = 65_536, 16


def run(report):
    with (
        tempfile.TemporaryDirectory() as folder,
        cluster(2) as client,
    ):
        sweeps(report, client, Path(folder))
        whole_runs(report, client, Path(folder))


def sweeps(report, client, folder):
    """One sweep from the same place, in pairs and in blocks; then with four times the samples, and with twice the columns."""
    sent = {}
    for n, samples, blocks in (
        (32, SAMPLES, (2, 4, 8, 16)),
        (32, 4 * SAMPLES, (2, 8)),
        (64, SAMPLES, (2, 8)),
    ):
        X = stored(folder / f"{n} {samples}", samples, n)
        objective = Columns(X, "kurtosis")
        for block in blocks:
            schedule = Tournament(block=block)
            minimize(Columns(X[: 4 * len(X) // CHUNKS], "kurtosis"), method=schedule, max_iter=1)
            before, began = received(client), perf_counter()
            result = minimize(objective, method=schedule, max_iter=1)
            seconds = perf_counter() - began
            sent[n, samples, block] = received(client) - before
            report.row(
                columns=n,
                samples=samples,
                block=block,
                passes_per_sweep=2 * n // block - 1,
                seconds_per_sweep=seconds,
                kb_between_workers=sent[n, samples, block] / 1e3,
                numbers_per_square=sent[n, samples, block] / 8 / n**2,
                data_mb=8 * n * samples / 1e6,
                value=result.value / samples,
            )
    for block in (2, 8):
        grown = sent[32, 4 * SAMPLES, block] / sent[32, SAMPLES, block]
        report.claim(
            f"blocks of {block}: bytes with four times the samples", "≤ 1.25 times", grown, grown <= 1.25
        )
        square = sent[64, SAMPLES, block] / sent[32, SAMPLES, block]
        # The sums become four times as many, the numbers of U in all passes of a sweep eight times.
        report.claim(f"blocks of {block}: bytes with twice the columns", "≤ 8 times", square, square <= 8)


def whole_runs(report, client, folder):
    """From start to end, as the objective chooses, beside the run in memory."""
    for n in (16, 64):
        X = stored(folder / f"{n} {SAMPLES}", SAMPLES, n)
        A = X.compute()
        minimize(Columns(A[: SAMPLES // CHUNKS], "kurtosis"), threads=2)  # compiles
        began = perf_counter()
        here = minimize(Columns(A, "kurtosis"), threads=2)
        seconds_here = perf_counter() - began
        minimize(Columns(X[: 4 * SAMPLES // CHUNKS], "kurtosis"), max_iter=2)
        before, began = received(client), perf_counter()
        there = minimize(Columns(X, "kurtosis"))
        report.row(
            whole_run=f"{n} columns",
            seconds=perf_counter() - began,
            seconds_in_memory=seconds_here,
            mb_between_workers=(received(client) - before) / 1e6,
            method=there.method,
        )
        gap = abs(there.value / here.value - 1.0)
        report.claim(f"{n} columns: value beside that in memory", "≤ 1e-10", gap, gap <= 1e-10)


def stored(path, samples, n):
    """Laplace sources of several strengths, turned."""
    if not path.exists():
        rng = np.random.default_rng(n)
        basis = random_orthogonal(n, rng)
        rows = samples // CHUNKS
        array = zarr.create_array(
            store=str(path), shape=(samples, n), chunks=(rows, n), dtype="f8", compressors=None
        )
        for first in range(0, samples, rows):
            array[first : first + rows] = rng.laplace(size=(rows, n)) * np.linspace(1, 1.5, n) @ basis
    return da.from_zarr(str(path))
