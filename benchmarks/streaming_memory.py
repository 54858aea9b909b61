"""A stream of 200,000 samples x 5,000 features from a generator: memory stays flat, and throughput beside rivals.

The stream is simulated modules in noise, float32, in batches of 500, generated while it is read; generating it is not timed.
Resident memory is read after every batch, in a process of its own: growth is the maximum after the first 1 % of the stream,
minus the memory at that point. The rivals with `partial_fit` get the beginning of the same stream, as much as they can
process in reasonable time, in batches of the size that is fastest for them. Rates are compared by the median batch of 500,
which a busy machine disturbs least. The rivals' components are dense; like `StreamingSparsePCA` they read the data once.
"""

from __future__ import annotations

import gc
import warnings
from statistics import median
from time import perf_counter

import numpy as np
from sklearn.decomposition import IncrementalPCA, MiniBatchDictionaryLearning
from sklearn.exceptions import ConvergenceWarning

from benchmarks._measure import high_water_mark
from givens import StreamingSparsePCA

FEATURES, BATCH, COMPONENTS = 5000, 500, 10
SAMPLES = 200_000
# Samples, and the size of batch with which each was fastest, of 20, 50, 100 and 250.
RIVALS = {"IncrementalPCA": (10_000, 50), "MiniBatchDictionaryLearning": (1000, 250)}


def run(report):
    ours = report.peak(flat, SAMPLES).value
    fifth = report.peak(flat, SAMPLES // 5).value
    report.row(
        method="givens",
        samples=SAMPLES,
        seconds=ours["seconds"],
        samples_per_second=SAMPLES / ours["seconds"],
        resident_mb_after_1_percent=ours["first"] / 1e6,
        growth_mb=ours["growth"] / 1e6,
        modules_found=ours["found"],
    )
    speed = BATCH / ours["median"]
    for name, (samples, size) in RIVALS.items():
        seconds = rival(name, samples, size)
        report.row(method=name, samples=samples, seconds=seconds, samples_per_second=samples / seconds)
        ratio = speed * seconds / samples
        report.claim(f"samples per second, beside {name}", "≥ 1 times", f"{ratio:.1f} times", ratio >= 1)
    report.claim(
        "resident memory grows by less than 50 MB after the first 1 %",
        "< 50 MB",
        f"{ours['growth'] / 1e6:.1f} MB",
        ours["growth"] < 50e6,
    )
    slowing = (ours["seconds"] / SAMPLES) / (fifth["seconds"] / (SAMPLES // 5))
    report.claim("time per sample, whole stream over its first fifth", "≤ 1.5", slowing, slowing <= 1.5)


def batches(samples):
    """Ten planted modules of 40 features, and noise."""
    rng = np.random.default_rng(0)
    truth = modules()
    for _ in range(samples // BATCH):
        scores = rng.standard_normal((BATCH, COMPONENTS), dtype=np.float32) * np.float32(2.0)
        X = rng.standard_normal((BATCH, FEATURES), dtype=np.float32)
        X += scores * np.float32(6.0) * np.linspace(1, 0.7, COMPONENTS, dtype=np.float32) @ truth
        yield X


def modules():
    truth = np.zeros((COMPONENTS, FEATURES), np.float32)
    for j in range(COMPONENTS):
        truth[j, 40 * j : 40 * j + 40] = 40**-0.5
    return truth


def resident():
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096
    except FileNotFoundError:
        return high_water_mark()


def flat(samples):
    """Read the stream; returns seconds without those of making it, and memory."""
    model = StreamingSparsePCA(COMPONENTS, n_nonzero=40)
    model.partial_fit(next(batches(BATCH)))
    model = StreamingSparsePCA(COMPONENTS, n_nonzero=40)
    each, first, most = [], 0, 0
    for number, X in enumerate(batches(samples), start=1):
        began = perf_counter()
        model.partial_fit(X)
        each.append(perf_counter() - began)
        if number == max(1, samples // BATCH // 100):
            gc.collect()
            first = resident()
        most = max(most, resident())
    began = perf_counter()
    components = model.components_
    seconds = sum(each) + perf_counter() - began
    found = np.abs(components @ modules().T).max(axis=0) > 0.95
    return {
        "seconds": seconds,
        "median": median(each),
        "first": first,
        "growth": most - first,
        "found": int(found.sum()),
    }


def rival(name, samples, size):
    if name == "IncrementalPCA":
        model = IncrementalPCA(COMPONENTS)
    else:
        model = MiniBatchDictionaryLearning(COMPONENTS, alpha=1.0, batch_size=size, random_state=0)
    seconds = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for X in batches(samples):
            began = perf_counter()
            for start in range(0, BATCH, size):
                model.partial_fit(X[start : start + size])
            seconds.append(perf_counter() - began)
    return median(seconds) * len(seconds)
