"""Fits on Dask: data on disk, one, two and four worker processes, what they hold and send, and a simulator beside them.

Samples of 500 features, float64, in a zarr store with chunks of 8,192 samples (33 MB), 5 GB of them; GIVENS_CLUSTER_GB
sets another size, GIVENS_CLUSTER_FOLDER the place. Every worker has one thread. Memory is the most that a worker held
(VmHWM) less what it held before the fit, in chunks; bytes are what workers received from each other, as Dask counts them.
The simulator (`_task_graph.py`) replays one pass, the products of `RotatedPCA`, with constants from passes over fewer
chunks: on one worker, the seconds of a chunk and those of a pass without chunks; on two, how much longer a chunk takes
where cores share memory and disk. No constant comes from the passes that are predicted. More workers than cores are
replayed as so many as there are cores. dask-ml's PCA,
IncrementalPCA and TruncatedSVD stand beside `RotatedPCA`, which finds the same components before it rotates them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from time import perf_counter

import dask
import dask.array as da
import distributed
import numpy as np
import zarr

from benchmarks._cluster_bytes import LONG_LOG, received
from benchmarks._measure import high_water_mark
from benchmarks._task_graph import Constants, pass_seconds
from givens import RotatedPCA, SparsePCA, SphericalMixture, StreamingSparsePCA
from givens.moments.repeated_rows import RepeatedRows
from givens.moments.scatter import Scatter

GIGABYTES = float(os.environ.get("GIVENS_CLUSTER_GB", "5"))
FEATURES, ROWS, COMPONENTS = 500, 8192, 5
WORKERS = (1, 2, 4)
FEW, SOME = 4, 12  # chunks of the passes that constants are measured on
BANDWIDTH = 1e9  # bytes per second between workers, assumed
MODELS = {
    "SparsePCA": lambda: SparsePCA(COMPONENTS, alpha=0.3),
    "RotatedPCA": lambda: RotatedPCA(COMPONENTS),
    "StreamingSparsePCA": lambda: StreamingSparsePCA(COMPONENTS, n_nonzero=40),
    "SphericalMixture": lambda: SphericalMixture(COMPONENTS, refine_em=2, n_starts=1),
}


def run(report):
    parent = os.environ.get("GIVENS_CLUSTER_FOLDER")
    chunks = max(16, round(GIGABYTES * 1e9 / (8 * FEATURES * ROWS)))
    size = 8 * FEATURES * ROWS * chunks
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        if shutil.disk_usage(folder).free < 1.5 * size:
            report.missing.append(f"{size / 1e9:.1f} GB on disk for the samples: set GIVENS_CLUSTER_GB")
            return
        X = store(Path(folder) / "samples.zarr", chunks)
        report.note(f"{chunks} chunks, {size / 1e9:.2f} GB, {os.cpu_count()} cores")
        constants = {"merge": merge_seconds(), "summary": 8.0 * FEATURES**2, "bandwidth": BANDWIDTH}
        seconds, models = {}, {}
        for workers in WORKERS:
            on_cluster(report, X, workers, constants, seconds, models)
    for name in MODELS:
        faster = seconds[name, 1] / seconds[name, 2]
        report.claim(f"{name}: two workers beside one", "≥ 1.6 times", faster, faster >= 1.6)
        same = all(np.array_equal(models[name, 1], models[name, w]) for w in WORKERS)
        report.claim(f"{name}: the same bits with 1, 2 and 4 workers", True, same, same)
    larger(report, constants)


def store(path, chunks):
    """Planted modules, of other strength each, in noise: chunk by chunk, so that memory holds one."""
    array = zarr.create_array(
        store=str(path),
        shape=(chunks * ROWS, FEATURES),
        chunks=(ROWS, FEATURES),
        dtype="f8",
        compressors=None,
    )
    loadings = np.zeros((COMPONENTS, FEATURES))
    for j in range(COMPONENTS):
        loadings[j, 40 * j : 40 * j + 40] = 2.0 - 0.2 * j
    for number in range(chunks):
        rng = np.random.default_rng(number)
        part = rng.standard_normal((ROWS, FEATURES))
        part += rng.standard_normal((ROWS, COMPONENTS)) @ loadings
        array[number * ROWS : (number + 1) * ROWS] = part
    return da.from_zarr(str(path))


def products(X):
    """One pass: the means and products of all features."""
    return RepeatedRows(RotatedPCA(), X).total(Scatter(FEATURES), "benchmark-products")


def merge_seconds():
    """Seconds of merging two summaries, in this process."""
    one, other = Scatter(FEATURES).begin(0), Scatter(FEATURES).begin(0)
    for part in (one, other):
        part.add(np.random.default_rng(0).standard_normal((ROWS, FEATURES)))
    began = perf_counter()
    for _ in range(20):
        one.merge(other)
    return (perf_counter() - began) / 20


def small_passes(X):
    """The fewest seconds of passes over few chunks and over some."""
    took = {FEW: [], SOME: []}
    for _ in range(3):
        for chunks, seconds in took.items():
            began = perf_counter()
            products(X[: chunks * ROWS])
            seconds.append(perf_counter() - began)
    return min(took[FEW]), min(took[SOME])


def calibrate(X, workers, constants):
    """What passes over few chunks tell, on one worker and on two."""
    few, some = small_passes(X)
    if workers == 1:
        each = (some - few) / (SOME - FEW)
        constants["chunk"] = max(each - constants["merge"] - constants["scheduler"], 0.0)
        constants["fixed"] = max(few - FEW * each, 0.0)
        constants["sharing"] = 1.0
    elif workers == 2:
        alone = pass_seconds(SOME, 2, costs(constants, 1)) - constants["fixed"]
        constants["sharing"] = max((some - constants["fixed"]) / alone, 1.0)


def costs(constants, workers):
    """For so many workers on this machine."""
    known = {name: value for name, value in constants.items() if name != "sharing"}
    known["chunk"] *= constants["sharing"] if workers > 1 else 1.0
    return Constants(**known)


def on_cluster(report, X, workers, constants, seconds, models):
    """All fits on so many workers."""
    with (
        dask.config.set(LONG_LOG),
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, memory_limit=None, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(exec, "import givens.cluster.graph, givens.moments.scatter, givens.streaming.merging")
        for name, model in MODELS.items():
            found, row = fitted(client, model, X)
            seconds[name, workers], most = row["seconds"], row["worker_peak_chunks"]
            models[name, workers] = _numbers(found)
            report.row(fit=name, workers=workers, **row)
            limit = 3 + constants["summary"] / (8 * ROWS * FEATURES)
            report.claim(
                f"{name}, {workers} workers: peak of a worker, in chunks",
                "≤ 3 and a summary",
                most,
                most <= limit,
            )
        products(X[: FEW * ROWS])
        constants["scheduler"] = _empty_tasks(client)
        calibrate(X, workers, constants)
        began = perf_counter()
        products(X)
        took = perf_counter() - began
        said = pass_seconds(X.numblocks[0], min(workers, os.cpu_count() or 1), costs(constants, workers))
        report.row(one_pass="products", workers=workers, seconds=took, simulated=said)
        report.claim(
            f"one pass, {workers} workers: simulated over measured",
            "0.75 to 1.25",
            said / took,
            0.75 <= said / took <= 1.25,
        )
        rivals(report, client, X, workers)


def fitted(client, model, X):
    """A model of X, fitted for the second time on every worker, and what that took."""
    model().fit(X[: 4 * ROWS])  # loads and compiles on every worker
    client.run(_forget_peak)
    before, sent = client.run(_resident), received(client)
    began = perf_counter()
    found = model().fit(X)
    seconds = perf_counter() - began
    peaks = client.run(high_water_mark)
    most = max(peaks[worker] - before[worker] for worker in peaks) / (8 * ROWS * FEATURES)
    row = {
        "seconds": seconds,
        "worker_peak_chunks": most,
        "mb_between_workers": (received(client) - sent) / 1e6,
    }
    if hasattr(found, "explained_variance_"):
        row["explained_variance"] = float(np.sum(found.explained_variance_))
    return found, row


def rivals(report, client, X, workers):
    """dask-ml's components of the same samples: what `RotatedPCA` finds before its rotation."""
    try:
        from dask_ml.decomposition import PCA, IncrementalPCA, TruncatedSVD
    except (ImportError, AttributeError) as error:
        if workers == 1:
            report.missing.append(f"dask-ml ({error})")
        return
    for name, model in {
        "dask-ml PCA (tsqr)": lambda: PCA(COMPONENTS, svd_solver="full"),
        "dask-ml PCA (randomized)": lambda: PCA(
            COMPONENTS, svd_solver="randomized", iterated_power=4, random_state=0
        ),
        "dask-ml IncrementalPCA": lambda: IncrementalPCA(COMPONENTS, iterated_power=4, random_state=0),
        "dask-ml TruncatedSVD": lambda: TruncatedSVD(COMPONENTS),
    }.items():
        try:
            report.row(fit=name, workers=workers, **fitted(client, model, X)[1])
        except Exception as error:  # of another library, whatever it is
            report.note(f"{name} failed: {type(error).__name__}: {str(error)[:120]}")


def larger(report, constants):
    """1e9 samples of 1,000 features in chunks of 65,536, by the simulator."""
    growth = (65_536 / ROWS) * (1000 / FEATURES) ** 2
    cost = Constants(
        chunk=constants["chunk"] * growth,
        merge=constants["merge"] * 4,
        scheduler=constants["scheduler"],
        summary=constants["summary"] * 4,
        bandwidth=BANDWIDTH,
        fixed=constants["fixed"],
    )
    report.note(
        f"constants: {constants['chunk']:.3f} s for a chunk, {constants['sharing']:.2f} times that where two workers share this "
        f"machine, {constants['fixed']:.3f} s for a pass, {1e3 * constants['scheduler']:.2f} ms for a task, "
        f"{1e3 * constants['merge']:.2f} ms for a merge; a network of {8 * BANDWIDTH / 1e9:.0f} Gbit/s is assumed"
    )
    chunks = -(-1_000_000_000 // 65_536)
    for workers in (10, 100, 1000):
        seconds = pass_seconds(chunks, workers, cost)
        ideal = chunks * cost.chunk / workers
        report.row(simulated_workers=workers, chunks=chunks, seconds=seconds, share_of_ideal=ideal / seconds)


def _resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _forget_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def _empty_tasks(client, number=500):
    began = perf_counter()
    client.gather(client.map(_same, range(number), pure=False))
    return (perf_counter() - began) / number


def _same(value):
    return value


def _numbers(model):
    if isinstance(model, SphericalMixture):
        return np.concatenate([model.means_.ravel(), model.weights_])
    return np.asarray(model.components_).ravel()
