"""Figure 2, measured: few sparse components of many samples, by Algorithm 5, by greedy GPower and by `StreamingSparsePCA`.

Each method runs over a range of thresholds, to the end ("convergence": a relative tolerance of 1e-4, or all samples once) and
stopped early at 14 % (of GPower's iterations, of the stream's samples). The variance is Zou's adjusted variance of samples
held out.

Algorithm 5 is the paper's: m columns, L = m rotations of random pairs after each sample, a constant γ, and solveForZ(AU, γ) by
pattern filling on the columns that are held. GPower has its authors' rules: the greedy ℓ1 form, pattern filling before each
deflation, thresholds relative to the deflated data. Both leave out features whose norm over the data cannot exceed their
threshold; Algorithm 5 pays for the norms, too, and which of its columns is the weakest is told by the features that are left.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial

import numpy as np

from givens.data.sketch import Sketch
from givens.metrics import adjusted_variance, total_variance
from givens.numerics.flop_counts import Flops, job
from givens.numerics.scaling import unit_rows
from givens.sparse_pca.loadings import shrink
from givens.streaming.algorithm_5 import Algorithm5
from givens.streaming.estimator import StreamingSparsePCA
from paper.baselines import fill_pattern, gpower
from paper.measure import tables
from paper.measure.task import ExperimentSettings, Row, Task

SIZES = (3, 5, 10)
EARLY = 0.14
CONVERGENCE, EARLY_STOP = STOPS = ("convergence", "early stop")
ALGORITHM_5, POWER, OURS = METHODS = ("Algorithm 5", "GPower, greedy", "StreamingSparsePCA")
CELLS, REGIONS = "blood cells", "brain regions"
# Thresholds go from and to these shares of the largest norm of a feature: from about 1 % of non-zeros to more than 20 %. The
# columns of Algorithm 5 hold less than the data, so that the same γ leaves fewer non-zeros: its range goes further down.
SHARES = {
    (CELLS, ALGORITHM_5): (0.06, 0.005),
    (CELLS, POWER): (0.07, 0.009),
    (CELLS, OURS): (0.07, 0.009),
    (REGIONS, ALGORITHM_5): (0.6, 0.1),
    (REGIONS, POWER): (0.6, 0.15),
    (REGIONS, OURS): (0.6, 0.1),
}
NUMBER = {CELLS: 8, REGIONS: 7}


def thresholds(data: str, method: str) -> list[float]:
    """Shares of the largest feature norm, from large to small."""
    return [float(share) for share in np.geomspace(*SHARES[data, method], NUMBER[data])]


def samples(settings: ExperimentSettings, data: str) -> np.ndarray:
    """Samples x genes."""
    return (tables.cells if data == CELLS else tables.brain)(settings).X


def halves(X: np.ndarray, split: int) -> tuple[np.ndarray, np.ndarray]:
    """80 % to learn from, 20 % held out."""
    order = np.random.default_rng(split).permutation(len(X))
    cut = int(0.8 * len(X))
    return X[order[:cut]], X[order[cut:]]


Found = Iterator[tuple[int, str, float, np.ndarray, float, bool]]
"""Components m, stop, share, loadings, operations, and whether rotations made the loadings."""


def run_one(settings: ExperimentSettings, data: str, method: str, split: int) -> list[Row]:
    """One method on one split: every number of components, threshold and way of stopping."""
    train, test = halves(samples(settings, data), split)
    train -= train.mean(axis=0)
    total = total_variance(test)
    run = {ALGORITHM_5: algorithm_5, POWER: greedy_power, OURS: ours}[method]
    return [
        {
            "method": method,
            "split": split,
            "m": m,
            "stop": stop,
            "share": share,
            "nonzeros": float(np.count_nonzero(Z) / Z.size),
            "variance": float(adjusted_variance(test, Z).sum() / total),
            "flops": flops,
            "rotated": rotated,
        }
        for m, stop, share, Z, flops, rotated in run(train, thresholds(data, method))
    ]


def algorithm_5(train: np.ndarray, shares: list[float]) -> Found:
    """The paper's stream, looked at after 14 % of the samples and after all."""
    squares = np.einsum("ij,ij->j", train, train)
    early = max(2, round(EARLY * len(train)))
    for share in shares:
        gamma = share * float(np.sqrt(squares.max()))
        seen = np.flatnonzero(squares > gamma**2)
        X = np.ascontiguousarray(train[:, seen])
        for m in SIZES:
            sketch = Sketch(X.shape[1], Algorithm5(m, gamma, 0), X.dtype).begin(0)
            for stop, part in ((EARLY_STOP, X[:early]), (CONVERGENCE, X[early:])):
                sketch.add(part)
                with job(Flops()) as last:
                    Y = sketch.finished().Y * sketch.unit
                few, filling = fill_pattern(Y, unit_rows(shrink(Y, gamma)), max_iter=200)
                Z = np.zeros((m, train.shape[1]))
                Z[:, seen] = in_order(few, Y)
                yield m, stop, share, Z, 2.0 * train.size + sketch.flops + last.flops + filling, True


def in_order(Z: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """The loadings whose scores on the columns held are strongest come first, as adjusted variance wants."""
    return Z[np.argsort(-np.linalg.norm(Y @ Z.T, axis=0), kind="stable")]


def greedy_power(train: np.ndarray, shares: list[float]) -> Found:
    """Greedy GPower: one run of the most components holds those of fewer."""
    A = np.ascontiguousarray(train.T)
    for share in shares:
        run = partial(
            gpower, A, max(SIZES), share, block=False, fill=True, relative=True, tol=1e-4, threads=1
        )
        done = run()
        stopped = run(max_iter=max(1, round(EARLY * done.iterations / max(SIZES))))
        for m in SIZES:
            for stop, found in ((CONVERGENCE, done), (EARLY_STOP, stopped)):
                yield m, stop, share, found.Z[:, :m].T, found.flops[m - 1], False


def ours(train: np.ndarray, shares: list[float]) -> Found:
    """The library's stream: its threshold is no part of the stream, so one stream serves every threshold."""
    with warnings.catch_warnings():
        # A component without an entry above the threshold falls back to its largest: the figure shows what that is worth.
        warnings.simplefilter("ignore", UserWarning)
        for m in SIZES:
            for stop, after in ((EARLY_STOP, EARLY), (CONVERGENCE, None)):
                # As many columns in reserve as components: flops are compared with those of m columns.
                part = train if after is None else train[: max(2, round(after * len(train)))]
                model = StreamingSparsePCA(m, sketch=m + max(m, 5), threads=1, random_state=0).fit(part)
                axes = model.set_params(threshold=1e-12, max_iter=0).components_
                for share in shares:
                    model.set_params(threshold=share, max_iter=100)
                    Z = model.components_
                    yield m, stop, share, Z, model.result_.flops, not cut_from(Z, axes)


def cut_from(Z: np.ndarray, axes: np.ndarray) -> bool:
    """Whether every loading is one of the axes, cut to its pattern."""
    sizes = np.sqrt((Z != 0).astype(float) @ (axes**2).T)
    likeness = np.abs(Z @ axes.T) / np.where(sizes > 0, sizes, 1.0)
    return bool(np.all(likeness.max(axis=1) > 1 - 1e-9))


def tasks(settings: ExperimentSettings, data: str) -> list[Task]:
    """A method on a split."""
    splits = settings.seeds or (3 if settings.quick else 20)
    return [
        Task(f"{number}-{split}", partial(run_one, settings, data, method, split))
        for split in range(splits)
        for number, method in enumerate(METHODS)
    ]
