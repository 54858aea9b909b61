"""Small runs of what the experiments compare, with the flops reported and those executed: a program, run by a test.

What only observes a run is not part of it: the trace's values and gradients, the figures of a finished result. Everything else is
counted, from the first product with the data to the last rotation.
"""

from __future__ import annotations

import json
import sys
import warnings
from contextlib import contextmanager

import numpy as np

from tests.paper.tally import install
from tests.paper.tally import tally as counter

if __name__ == "__main__":
    install()  # before anything that is counted is imported

from givens.datasets import sparse_modules
from givens.numerics import flop_counts, modes
from givens.objectives import SparseColumns, SymmetricTensor
from givens.rotations import random_orthogonal
from givens.schedules import Tournament
from givens.solve import loop
from givens.solve.minimize import minimize
from givens.solve.run import Run
from givens.streaming.estimator import StreamingSparsePCA
from paper.baselines import gpower, tensor_power
from tests.tensor_data import ORDERS


@contextmanager
def replaced(owner, wrapper, *names):
    originals = {name: getattr(owner, name) for name in names}
    for name, original in originals.items():
        setattr(owner, name, wrapper(original))
    yield
    for name, original in originals.items():
        setattr(owner, name, original)


def run(objective, schedule, **options):
    """A short run, without its trace and its result, which only observe it, but with the states that they first ask for."""
    start = random_orthogonal(objective.n, np.random.default_rng(0), determinant=1)
    counter.counts.clear()
    with (
        replaced(loop, counter.resting_in, "trace"),
        replaced(loop.Loop, counter.resting_in, "result"),
        replaced(Run, counter.counting_in, "_make_state"),
    ):
        return minimize(objective, start, method=schedule, threads=1, random_state=0, **options).flops


def sparse_data(samples, features):
    X = sparse_modules(samples, features, n_modules=4, module_size=features // 10, random_state=0).X
    return X - X.mean(axis=0)


def sparse(schedule, n=8, features=120, share=0.1):
    X = sparse_data(n, features)
    threshold = share * np.sqrt((X**2).sum(axis=0).max())
    return run(SparseColumns(np.ascontiguousarray(X.T), threshold), schedule, tol=0.001, max_iter=3)


def power(m, block, start):
    A = np.ascontiguousarray(sparse_data(20, 200).T)
    gamma = 0.1 * np.sqrt((A**2).sum(axis=1).max())
    counter.counts.clear()
    options = {"block": block, "start": start, "tol": 1e-6, "max_iter": 10, "threads": 1}
    return gpower(A, m, gamma, **options).flops[-1]


def stream(**options):
    X = sparse_data(60, 100)
    model = StreamingSparsePCA(3, threads=1, random_state=0, **options)
    counter.counts.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(X).result_.flops


def tensor_data(d):
    rng = np.random.default_rng(0)
    V = np.linalg.qr(rng.standard_normal((d, d)))[0]
    T = np.einsum("a,ia,ja,ka->ijk", rng.uniform(1, 2, d), V, V, V)
    T += 0.05 * rng.standard_normal((d, d, d))
    return sum(T.transpose(order) for order in ORDERS) / 6


def tensor(schedule, d=10):
    return run(SymmetricTensor(tensor_data(d)), schedule, tol=0.0001, max_iter=5)


def power_method():
    T = tensor_data(10)
    counter.counts.clear()
    return tensor_power(T, random_state=0).result.flops


def tensor_rotations(d=24):
    T = tensor_data(d)
    rng = np.random.default_rng(0)
    turns = [(np.sort(rng.choice(d, 2, replace=False)), rng.uniform(0, 1)) for _ in range(60)]
    counter.counts.clear()
    with flop_counts.job(flop_counts.Flops()) as reported:
        for pair, t in turns:
            modes.rotate(T, [pair], [np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]])])
    return reported.flops


CASES = {
    "sparse PCA, pairs": lambda: sparse("random"),
    "sparse PCA, blocks": lambda: sparse(Tournament(block=10), n=18, features=60),
    "sparse PCA, many features": lambda: sparse(None, n=18, features=200, share=0.5),
    "GPower, block": lambda: power(20, True, random_orthogonal(20, np.random.default_rng(0))),
    "GPower, greedy": lambda: power(5, False, None),
    "stream, weakest": lambda: stream(sketch=("algorithm 5", 2.0)),
    "stream, frequent": lambda: stream(threshold=0.1),
    "tensor, one block": lambda: tensor(None),
    "tensor, blocks": lambda: tensor(Tournament(block=4), d=12),
    "tensor, pairs": lambda: tensor("random", d=12),
    "tensor, one pair at a time": tensor_rotations,
    "tensor, power method": power_method,
}

APART = ("divisions", "comparisons", "sorted", "functions")


def measured(names):
    """For each case, the flops it reports and what was executed."""
    outcome = {}
    for name in names:
        reported = CASES[name]()
        outcome[name] = {"reported": reported, **counter.counts}
    return outcome


def markdown(outcome):
    """The page of the documentation that shows these."""
    lines = [
        "# Flops, counted",
        "",
        "Every algorithm that the experiments compare reports its flops: additions and multiplications. These are small runs",
        "of each, in which every operation that the source executes was counted one by one; beside the two, for every 1,000",
        "flops, what is not one: divisions, comparisons, numbers sorted, and functions (cos, √). LAPACK's factorisations go by",
        "a textbook's figures in both. The page is written by",
        "`NUMBA_DISABLE_JIT=1 python -W ignore -m tests.paper.flop_cases --markdown`, and a",
        "test fails beyond 5 %.",
        "",
        "| | reported | executed | reported / executed | divisions | comparisons | sorted | functions |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, counts in outcome.items():
        flops = counts["flops"]
        apart = " | ".join(f"{1000 * counts.get(kind, 0) / flops:.2f}" for kind in APART)
        lines.append(
            f"| {name} | {counts['reported']:,.0f} | {flops:,.0f} | {counts['reported'] / flops:.3f} | {apart} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    if sys.argv[1:] == ["--markdown"]:
        print(markdown(measured(CASES)))
    else:
        print(json.dumps(measured(sys.argv[1:] or CASES)))
