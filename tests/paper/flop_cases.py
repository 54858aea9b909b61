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


@contextmanager
def replaced(owner, wrapper, *names):
    originals = {name: getattr(owner, name) for name in names}
    for name, original in originals.items():
        setattr(owner, name, wrapper(original))
    yield
    for name, original in originals.items():
        setattr(owner, name, original)


@contextmanager
def run_alone():
    """Do not count the trace and the result, which only observe a run, but the states that they are the first to ask for."""
    from givens.solve import loop
    from givens.solve.run import Run

    with (
        replaced(loop, counter.resting_in, "trace"),
        replaced(loop.Loop, counter.resting_in, "result"),
        replaced(Run, counter.counting_in, "_make_state"),
    ):
        yield


def sparse_data(samples, features):
    from givens.datasets import sparse_modules

    X = sparse_modules(samples, features, n_modules=4, module_size=features // 10, random_state=0).X
    return X - X.mean(axis=0)


def sparse(schedule, n=8, features=120, share=0.1):
    from givens.objectives import SparseColumns
    from givens.rotations import random_orthogonal
    from givens.solve.minimize import minimize

    X = sparse_data(n, features)
    objective = SparseColumns(np.ascontiguousarray(X.T), share * np.sqrt((X**2).sum(axis=0).max()))
    start = random_orthogonal(n, np.random.default_rng(0), determinant=1)
    counter.counts.clear()
    with run_alone():
        return minimize(
            objective, start, method=schedule, tol=0.001, max_iter=3, threads=1, random_state=0
        ).flops


def pairs():
    from givens.schedules import Random

    return sparse(Random())


def blocks():
    from givens.schedules import Tournament

    return sparse(Tournament(block=10), n=18, features=60)


def many_features():
    return sparse(None, n=18, features=200, share=0.5)


def power(block):
    from givens.rotations import random_orthogonal
    from paper.baselines import gpower

    X = sparse_data(20, 200)
    A = np.ascontiguousarray(X.T)
    gamma = 0.1 * np.sqrt((X**2).sum(axis=0).max())
    start = random_orthogonal(20, np.random.default_rng(0)) if block else None
    counter.counts.clear()
    return gpower(
        A, 20 if block else 5, gamma, block=block, start=start, tol=1e-6, max_iter=10, threads=1
    ).flops[-1]


def stream(drop, samples=60):
    from givens.streaming import estimator

    X = sparse_data(samples, 100)
    model = estimator.StreamingSparsePCA(3, threshold=0.1, drop=drop, threads=1, random_state=0)
    counter.counts.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(X).flops_


def tensor_data(d):
    rng = np.random.default_rng(0)
    V = np.linalg.qr(rng.standard_normal((d, d)))[0]
    T = np.einsum("a,ia,ja,ka->ijk", rng.uniform(1, 2, d), V, V, V)
    T += 0.05 * rng.standard_normal((d, d, d))
    return (
        sum(
            T.transpose(order) for order in [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
        )
        / 6
    )


def tensor(schedule, d=10):
    from givens.objectives import SymmetricTensor
    from givens.rotations import random_orthogonal
    from givens.solve.minimize import minimize

    objective = SymmetricTensor(tensor_data(d))
    start = random_orthogonal(d, np.random.default_rng(0))
    counter.counts.clear()
    with run_alone():
        return minimize(
            objective, start, method=schedule, tol=0.0001, max_iter=5, threads=1, random_state=0
        ).flops


def tensor_power():
    from paper import baselines

    T = tensor_data(10)
    counter.counts.clear()
    return baselines.tensor_power(T, random_state=0).result.flops


def rounds():
    from givens.schedules import Tournament

    return tensor(Tournament(block=4), d=12)


def tensor_rotations(d=24):
    from givens.numerics import flop_counts, modes

    T = tensor_data(d)
    rng = np.random.default_rng(0)
    turns = [(np.sort(rng.choice(d, 2, replace=False)), rng.uniform(0, 1)) for _ in range(60)]
    counter.counts.clear()
    with flop_counts.job(flop_counts.Flops()) as reported:
        for pair, t in turns:
            modes.rotate(T, [pair], [np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]])])
    return reported.flops


CASES = {
    "sparse PCA, pairs": pairs,
    "sparse PCA, blocks": blocks,
    "sparse PCA, many features": many_features,
    "GPower, block": lambda: power(True),
    "GPower, greedy": lambda: power(False),
    "stream, weakest": lambda: stream("weakest"),
    "stream, frequent": lambda: stream("frequent"),
    "tensor, one block": lambda: tensor(None),
    "tensor, blocks": rounds,
    "tensor, pairs": lambda: tensor("random", d=12),
    "tensor, one pair at a time": tensor_rotations,
    "tensor, power method": tensor_power,
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
    install()
    if sys.argv[1:] == ["--markdown"]:
        print(markdown(measured(CASES)))
    else:
        print(json.dumps(measured(sys.argv[1:] or CASES)))
