"""`givens mixture`: what the golden outputs (`tests/net`) have not."""

from __future__ import annotations

import json

import numpy as np
import pandas

from givens.app.commands.mixture import plane


def planted(k=3, d=6, each=60, seed=0):
    rng = np.random.default_rng(seed)
    member = np.repeat(np.arange(k), each)
    return rng.normal(size=(k * each, d)) + 8 * np.eye(k, d)[member], member


def test_what_em_left_open_is_said(givens, tmp_path):
    """The decomposition converges in any case; whether the answer has depends on what follows it."""
    values = np.random.default_rng(0).normal(size=(80, 5)) + np.eye(3, 5)[np.arange(80) % 3]
    np.save(tmp_path / "x.npy", values)
    for steps in (1, 500):
        run = givens("mixture", "x.npy", "-k", 3, "--max-iter", steps, "--out", f"out{steps}", "--json")
        summary = json.loads(run.out)
        assert summary["converged"] == (steps == 500)
        assert ("EM did not converge in 1 step" in summary["message"]) == (steps == 1)
        assert summary["warnings"] == ([summary["message"]] if steps == 1 else [])


def test_directions_are_orthonormal_and_there_are_two(tmp_path):
    values, member = planted(k=2)
    means = np.array([values[member == k].mean(axis=0) for k in range(2)])
    directions = plane(means, np.full(2, 0.5), values, values.mean(axis=0))
    np.testing.assert_allclose(directions @ directions.T, np.eye(2), atol=1e-12)
    difference = (means[0] - means[1]) / np.linalg.norm(means[0] - means[1])
    np.testing.assert_allclose(abs(directions[0] @ difference), 1)
    assert plane(np.zeros((1, 6)), np.ones(1), values, values.mean(axis=0)).shape == (2, 6)
    assert plane(np.zeros((2, 1)), np.full(2, 0.5), values[:, :1], values[:, :1].mean(axis=0)).shape[1] == 1


def test_one_variable_and_standardise(givens, tmp_path):
    values = np.concatenate(
        [np.random.default_rng(0).normal(size=50), np.random.default_rng(1).normal(9, 1, 50)]
    )
    pandas.DataFrame({"a": values}).to_csv(tmp_path / "x.csv")
    run = givens("mixture", "x.csv", "-k", 1, "--standardise", "--out", "out")
    assert run.code == 0, run.err
