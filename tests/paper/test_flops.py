"""The flops that are reported are those that are executed, for ours and for the rivals, to within 5 %."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.paper import tally
from tests.paper.flop_cases import CASES, markdown

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def executed():
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "OMP_NUM_THREADS": "1"}
    # Whole numbers that scatter bits overflow on purpose, which only plain Python remarks on.
    command = [sys.executable, "-W", "ignore", "-m", "tests.paper.flop_cases"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", CASES)
def test_what_is_reported_was_executed(executed, name):
    case = executed[name]
    assert case["flops"] > 1e5
    assert case["reported"] == pytest.approx(case["flops"], rel=0.05)


def test_the_page_shows_every_case(executed):
    page = markdown(executed)
    published = (ROOT / "docs" / "experiments" / "flops.md").read_text()
    for name in CASES:
        assert f"| {name} | " in page
        assert f"| {name} | " in published


def counted(source, **given):
    tally.tally.counts.clear()
    names = {"np": np, "__tally__": tally.tally, **given}
    exec(tally.rewritten(source), names)
    return dict(tally.tally.counts), names


def test_a_rotation_takes_six_flops_a_row():
    source = """
for k in range(len(x)):
    a, b = x[k], y[k]
    x[k] = c * a + s * b
    y[k] = c * b - s * a
"""
    x, y = np.arange(7.0), np.ones(7)
    counts, _ = counted(source, x=x, y=y, c=0.6, s=0.8)
    assert counts == {"flops": 42}
    assert np.allclose(x, 0.6 * np.arange(7) + 0.8)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("A @ B", {"flops": 2 * 3 * 4 * 5}),
        ("A @ A.T", {"flops": 3 * 4 * 4}),
        ("A @ np.ones((6, 4, 5))", {"flops": 6 * 2 * 3 * 4 * 5}),
        ("np.matmul(A, B, out=C)", {"flops": 2 * 3 * 4 * 5}),
        ("np.einsum('ij,ij->i', A, A)", {"flops": 2 * 12}),
        ("np.einsum('a,b->ab', A[0], B[0])", {"flops": 20}),
        ("A.sum(axis=0) / 3.0", {"flops": 12, "divisions": 4}),
        ("C += 2.0 * C", {"flops": 30}),
        ("A[1, 2] -= A[0, 0] ** 2", {"flops": 2}),
        ("np.cos(A) > 0.5", {"functions": 12, "comparisons": 12}),
        ("np.sort(A[0])", {"sorted": 4}),
        ("n * n + 1 < 5", {}),
        ("flops = 3.0 * A.size", {}),
        ("t = x * x if x > 0.0 else x + x", {"flops": 2, "comparisons": 1}),
        ("np.linalg.inv(np.eye(3))", {"flops": 54}),
    ],
)
def test_what_is_counted(source, expected):
    counts, _ = counted(source, A=np.ones((3, 4)), B=np.ones((4, 5)), C=np.ones((3, 5)), n=3, x=1.5)
    assert {kind: number for kind, number in counts.items() if number} == expected
