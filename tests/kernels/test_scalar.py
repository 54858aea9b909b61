"""Compiled contrasts: accurate at every scale; cached code of one must never be run for another."""

import os
import subprocess
import sys

import numpy as np
import pytest

from givens.kernels.scalar import _log_cosh_row

VALUE = """
import sys
import numpy as np
from givens.objectives import Columns
A = np.arange(24.0).reshape(8, 3) / 10 - 1
for name in sys.argv[1:]:
    objective = Columns(A, name)
    print(objective.look(objective.state(np.eye(3))).value)
"""


def values(folder, *names):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", VALUE, *names], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [float(line) for line in done.stdout.split()]


def test_contrasts_cached_by_different_processes_are_told_apart(tmp_path):
    """Alone in its process, each has the same place in the order of compiled closures."""
    A = np.arange(24.0).reshape(8, 3) / 10 - 1
    expected = {
        "logcosh": np.sum(np.logaddexp(A, -A) - np.log(2)),
        "exp": -np.sum(np.exp(-(A**2) / 2)),
    }
    for names in (["logcosh"], ["exp", "logcosh"]):
        found = values(tmp_path, *names)
        assert found == pytest.approx([expected[name] for name in names], rel=1e-12)


def log_cosh(y):
    """In extended precision where there is one, without cancellation."""
    a = np.abs(np.asarray(y, dtype=np.longdouble))
    small = np.log1p(2 * np.sinh(np.minimum(a, 1) / 2) ** 2)
    return np.where(a < 1, small, a + np.log1p(np.exp(-2 * a)) - np.log(np.longdouble(2)))


@pytest.mark.parametrize("weighted", [False, True])
def test_log_cosh_and_its_derivatives_are_accurate_for_every_number(weighted, rng):
    """Where its square does not underflow: one number at a time, so that none hides behind larger ones."""
    exponents = rng.uniform(-153, 300, size=300)
    near_one = rng.uniform(-4, 2, size=700)
    y = rng.choice([-1.0, 1.0], 1000) * 10.0 ** np.concatenate((exponents, near_one))
    y = np.concatenate((y, [0.0, 0.125, -0.125, np.nextafter(0.125, 0), 0.0884, 0.0885]))
    slopes, curves, values = np.empty_like(y), np.empty_like(y), np.empty(len(y))
    weight = 3.0 if weighted else 1.0
    counts = np.full(1 if weighted else 0, weight)
    for k in range(len(y)):
        part = slice(k, k + 1)
        values[k] = _log_cosh_row(y[part], counts, slopes[part], curves[part])
    eps = float(np.finfo(np.float64).eps)
    expected = weight * log_cosh(y)
    assert (np.abs(values - expected) <= 1024 * eps * expected).all()
    assert slopes == pytest.approx(weight * np.tanh(y), rel=8 * eps, abs=0)
    assert curves == pytest.approx(weight * (1 - np.tanh(y) ** 2), abs=16 * eps)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [1e-15, 1e-9, 1e-5, 1e-3, 0.03, 0.1, 0.3, 1.0, 30.0])
def test_sums_of_log_cosh_are_accurate_also_with_outliers(kind, scale, rng):
    y = (scale * rng.laplace(size=1300)).astype(kind)
    for outliers in (0, 1, 20):
        y[:outliers] = 3.0
        found = _log_cosh_row(y, np.empty(0), np.empty_like(y), np.empty_like(y))
        assert found == pytest.approx(float(log_cosh(y).sum()), rel=64 * float(np.finfo(kind).eps))
