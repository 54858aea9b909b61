"""An earlier version of the code beside the present one: `python -m benchmarks._compare COMMIT`, or `make compare OLD=COMMIT`.

Both run the same calls on the same data, in processes that take turns, so that a busy moment of the machine meets both. The
ratio is old seconds over new ones: above 1, the present code is faster. `--only` takes some of the tasks.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent


def _kurtosis() -> Callable[[], Any]:
    from givens import minimize
    from givens.objectives import Columns

    rng = np.random.default_rng(100)
    X = np.linalg.qr(rng.standard_normal((64, 64)))[0] @ rng.laplace(size=(64, 50_000))
    X -= X.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(X @ X.T / X.shape[1])
    white = np.ascontiguousarray(((vectors / np.sqrt(values)).T @ X).T)
    return lambda: minimize(Columns(white, "kurtosis"))


def _joint_diagonal() -> Callable[[], Any]:
    from givens import minimize
    from givens.objectives import JointDiagonal

    rng = np.random.default_rng(101)
    U = np.linalg.qr(rng.standard_normal((50, 50)))[0]
    stack = np.stack([(U * rng.standard_normal(50)) @ U.T for _ in range(20)])
    noise = 1e-3 * rng.standard_normal(stack.shape)
    stack += noise + noise.transpose(0, 2, 1)
    return lambda: minimize(JointDiagonal(stack))


def _loadings(criterion: str) -> Callable[[], Any]:
    from givens import minimize
    from givens.objectives import Columns

    rng = np.random.default_rng(102)
    matrices = [rng.standard_normal((40 + 10 * i, 4 + i // 2)) for i in range(20)]

    def run() -> None:
        for A in matrices:
            minimize(Columns(A, criterion))

    return run


def _tensor(d: int) -> Callable[[], Any]:
    from givens import decompose

    rng = np.random.default_rng(103)
    V = np.linalg.qr(rng.standard_normal((d, d)))[0]
    T = np.einsum("i,ai,bi,ci->abc", rng.uniform(1, 2, d), V, V, V, optimize=True)
    noise = rng.standard_normal(T.shape)
    axes = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    noise = sum((noise.transpose(order) for order in axes), np.zeros_like(noise))
    T += 0.1 / np.linalg.norm(noise) * np.linalg.norm(T) * noise
    return lambda: decompose(T, random_state=0)


def _expression(n: int, p: int) -> np.ndarray:
    """A table with twenty planted programmes of 60 features each."""
    rng = np.random.default_rng(104)
    X = rng.standard_normal((n, p))
    for i in range(20):
        X[:, rng.choice(p, 60, replace=False)] += (3 - i / 10) * rng.standard_normal((n, 1))
    return X


def _sparse_pca(**options: Any) -> Callable[[], Any]:
    from givens import SparsePCA

    X = _expression(100, 8000)
    return lambda: SparsePCA(**options).fit(X)


def _stream(m: int) -> Callable[[], Any]:
    from givens import StreamingSparsePCA

    X = _expression(2000, 2000)
    return lambda: StreamingSparsePCA(m, n_nonzero=100).fit(X)


def _mixture() -> Callable[[], Any]:
    from givens import SphericalMixture

    rng = np.random.default_rng(105)
    means = 1.3 * rng.standard_normal((10, 50))
    X = means[rng.integers(10, size=100_000)] + rng.standard_normal((100_000, 50))
    return lambda: SphericalMixture(10).fit(X)


TASKS: dict[str, Callable[[], Callable[[], Any]]] = {
    "kurtosis, 64 x 50,000": _kurtosis,
    "joint diagonalisation, 20 of order 50": _joint_diagonal,
    "varimax, 20 matrices": lambda: _loadings("varimax"),
    "quartimax, 20 matrices": lambda: _loadings("quartimax"),
    **{f"tensor of order {d}": (lambda d=d: _tensor(d)) for d in (20, 50, 100, 200)},
    "SparsePCA(alpha=0.1), 10 of 100 x 8,000": lambda: _sparse_pca(n_components=10, alpha=0.1),
    "SparsePCA(alpha=0.1), all of 100 x 8,000": lambda: _sparse_pca(n_components=None, alpha=0.1),
    "SparsePCA(n_nonzero=100), 10 of 100 x 8,000": lambda: _sparse_pca(n_components=10, n_nonzero=100),
    **{f"stream 2,000 x 2,000, {m} components": (lambda m=m: _stream(m)) for m in (3, 5, 10)},
    "mixture of 10, 100,000 x 50": _mixture,
}


def _time(name: str, repeat: int) -> None:
    """Run one task in this process and print its seconds as JSON."""
    call = TASKS[name]()
    call()
    seconds = []
    for _ in range(repeat):
        time.sleep(0.25)  # the threads of a BLAS look out for work for a tenth of a second after their last
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    print(json.dumps(min(seconds)))


def _run(source: Path, name: str, repeat: int) -> float:
    variables = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}"}
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "benchmarks._compare",
        "--task",
        name,
        "--repeat",
        str(repeat),
    ]
    answer = subprocess.run(command, env=variables, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return float(json.loads(answer.stdout.splitlines()[-1]))


def _compare(old: str, names: list[str], rounds: int, repeat: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", folder, old], cwd=ROOT, check=True)
        try:
            sources = {"old": Path(folder) / "src", "new": ROOT / "src"}
            print(f"| task | {old}, s | now, s | old / now (each round) |\n|---|---|---|---|", flush=True)
            everything = []
            for name in names:
                seconds: dict[str, list[float]] = {"old": [], "new": []}
                for i in range(rounds):
                    for side in sorted(sources, reverse=bool(i % 2)):
                        seconds[side].append(_run(sources[side], name, repeat))
                ratios = [a / b for a, b in zip(seconds["old"], seconds["new"])]
                everything.append(median(ratios))
                each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
                print(
                    f"| {name} | {min(seconds['old']):.3g} | {min(seconds['new']):.3g} | "
                    f"{median(ratios):.2f} ({each}) |",
                    flush=True,
                )
            print(f"\ngeometric mean {geometric_mean(everything):.2f}, least {min(everything):.2f}")
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", folder], cwd=ROOT, check=True)


def main() -> None:
    """Compare, or run one task of a comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", nargs="?", help="the earlier commit")
    parser.add_argument("--only", help="a part of the names of tasks")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        _time(options.task, options.repeat)
        return
    if not options.old:
        parser.error("name the commit to compare with")
    names = [name for name in TASKS if not options.only or options.only in name]
    if not names:
        parser.error(f"no task has {options.only!r} in its name; they are {'; '.join(TASKS)}")
    _compare(options.old, names, options.rounds, options.repeat)


if __name__ == "__main__":
    main()
