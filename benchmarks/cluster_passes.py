"""Fits on Dask that read the data many times, ICA and topics: one, two and four worker processes, what they hold and send.

Signals of 64 channels, mixed Laplace sources, float64, in chunks of 65,536 samples; and documents of 2,000 words, counts in 16
bits, drawn from ten topics, in chunks of 8,388 documents. Both are zarr stores with chunks of 33 MB, 20 GB each where the disk
has twice that to spare, else 5 GB; GIVENS_CLUSTER_GB sets another size, GIVENS_CLUSTER_FOLDER the place. Every worker has one
thread, also of BLAS. Memory is the most that a worker held (VmHWM) less what it held before the fit, in chunks; bytes are what
workers received from each other in all passes, as Dask counts them. Errors are Amari's of the sources (0 is best), and for topics
the share of a topic's probability that is given to the wrong words, in the mean.

The benchmark is made of parts, each of which is kept as soon as it is done.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from time import perf_counter

import dask.array as da
import numpy as np
import zarr
from scipy.optimize import linear_sum_assignment

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
)
from benchmarks._parts import part
from givens import ICA, TopicModel
from givens.datasets import make_topics
from givens.metrics import amari

CHUNK = 8 * 65_536 * 64  # bytes
CHUNKS = max(16, round(GIGABYTES * 1e9 / CHUNK))
CHANNELS, WORDS, TOPICS, LENGTH = 64, 2000, 10, 100


def run(report):
    size = CHUNK * CHUNKS
    if 1.5 * size > SPARE * 1e9:
        report.missing.append(f"{size / 1e9:.1f} GB on disk for the data: set GIVENS_CLUSTER_GB")
        return
    report.note(f"{CHUNKS} chunks, {size / 1e9:.2f} GB of each kind of data")
    kept = partial(part, report, "cluster_passes")
    for task in (Signals(), Documents()):
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            data = partial(stored, Path(folder) / "data.zarr", task)
            found = {
                workers: kept(
                    f"{task.name} on {workers}, {GIGABYTES:g} GB", partial(fit, workers, task, data)
                )
                for workers in WORKERS
            }
        claim_workers(report, task.name, found)


class Signals:
    """ICA of all channels: a pass for the covariance, one for a sample, and one for every look at the contrast."""

    name, dtype = "ICA", "f8"
    rows, features = CHUNK // (8 * CHANNELS), CHANNELS
    summary = 8 * CHANNELS**2

    def __init__(self):
        rng = np.random.default_rng(0)
        self.mixing = rng.standard_normal((CHANNELS, CHANNELS)) * rng.uniform(0.5, 2.0, CHANNELS)

    def make(self):
        return ICA()

    def chunk(self, number):
        sources = np.random.default_rng([1, number]).laplace(size=(self.rows, CHANNELS))
        return sources @ self.mixing.T

    def numbers(self, model):
        return bits(model.components_)

    def error(self, model):
        return amari(model.components_, self.mixing)


class Documents:
    """Topics by moments, and two variational passes."""

    name, dtype = "TopicModel", "u2"
    rows, features = CHUNK // (2 * WORDS), WORDS
    summary = 8 * 3 * WORDS * (TOPICS + 10)

    def __init__(self):
        drawn = make_topics(1, n_components=TOPICS, n_words=WORDS, random_state=0)
        self.topics, self.alpha = drawn.topics, drawn.alpha

    def make(self):
        return TopicModel(TOPICS, max_iter=2)

    def chunk(self, number):
        drawn = make_topics(
            self.rows, topics=self.topics, alpha=self.alpha, document_length=LENGTH, random_state=number
        )
        return drawn.X.toarray()

    def numbers(self, model):
        return bits(model.components_, model.alpha_)

    def error(self, model):
        topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
        apart = np.abs(topics[:, None] - self.topics[None]).sum(axis=2) / 2
        return float(apart[linear_sum_assignment(apart)].mean())


def stored(path, task):
    """The data on disk, written when the first part needs them."""
    if not path.exists():
        began = perf_counter()
        array = zarr.create_array(
            store=str(path),
            shape=(CHUNKS * task.rows, task.features),
            chunks=(task.rows, task.features),
            dtype=task.dtype,
            compressors=None,
        )
        for number in range(CHUNKS):
            array[number * task.rows : (number + 1) * task.rows] = task.chunk(number)
        print(f"  data of {task.name} written, {perf_counter() - began:.0f} s", flush=True)
    return da.from_zarr(str(path))


def fit(workers, task, data, report):
    """The fit on so many workers: its seconds, and what it found."""
    X = data()
    with cluster(workers) as client:
        model, row = fitted(client, task.make, X)
    report.row(fit=task.name, workers=workers, **row, steps=model.n_iter_, error=task.error(model))
    claim_peak(report, task.name, workers, row["worker_peak_chunks"], 3 + task.summary / CHUNK)
    return {task.name: {"seconds": row["seconds"], "numbers": task.numbers(model)}}
