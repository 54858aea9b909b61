"""Start-up: what the import costs, and the first compiled call.

Every figure is from fresh interpreters, in turns. The import is timed from inside, after NumPy has been
imported. The first compiled call is a first call of `minimize`, two sweeps of a small problem, with all the
imports it pulls in (numba's among them): with an empty folder for compiled code, and with one that an earlier
process has filled.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

IMPORT = """
import time, numpy
start = time.perf_counter()
import givens
print(time.perf_counter() - start)
"""
CALL = """
import time, numpy as np, givens
A = np.random.default_rng(0).standard_normal((200, 4))
start = time.perf_counter()
{call}
print(time.perf_counter() - start)
"""
CALLS = {
    "Columns, varimax": 'givens.minimize(givens.objectives.Columns(A, "varimax"), max_iter=2)',
    "Columns, kurtosis, pair by pair": "givens.minimize(givens.objectives.Columns(A, 'kurtosis'), "
    "method=givens.schedules.Tournament(block=2), max_iter=2)",
    "JointDiagonal": "givens.minimize(givens.objectives.JointDiagonal(A.T @ A), max_iter=2)",
    "Function": "givens.minimize(lambda U: float(np.sum((A @ U)[:, 0] ** 2)), n=4, random_state=0, max_iter=2)",
}


def run(report):
    numpy_alone = min(
        fresh("import time; s = time.perf_counter(); import numpy; print(time.perf_counter() - s)")
        for _ in range(5)
    )
    cost = min(fresh(IMPORT) for _ in range(5))
    report.row(what="import numpy", seconds=numpy_alone)
    report.row(what="import givens, after numpy", seconds=cost)
    report.claim("import givens, over numpy", "≤ 0.2 s", f"{cost:.3f} s", cost <= 0.2)
    worst = {"empty": 0.0, "warm": 0.0}
    for name, call in CALLS.items():
        seconds = {"empty": [], "warm": []}
        for _ in range(3):
            with tempfile.TemporaryDirectory() as folder:
                seconds["empty"].append(fresh(CALL.format(call=call), NUMBA_CACHE_DIR=folder))
                seconds["warm"].append(fresh(CALL.format(call=call), NUMBA_CACHE_DIR=folder))
        best = {state: min(figures) for state, figures in seconds.items()}
        worst = {state: max(worst[state], best[state]) for state in best}
        report.row(first_call=name, empty_cache_seconds=best["empty"], warm_cache_seconds=best["warm"])
    report.claim("first compiled call, empty cache", "≤ 5 s", f"{worst['empty']:.2f} s", worst["empty"] <= 5)
    report.claim("first compiled call, warm cache", "≤ 0.8 s", f"{worst['warm']:.2f} s", worst["warm"] <= 0.8)


def fresh(code, **environment):
    """Run code in a fresh interpreter and read the number it prints last."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout.split()[-1])
