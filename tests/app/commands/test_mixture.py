"""`givens mixture`: planted clusters come back, sample by sample."""

from __future__ import annotations

import json

import numpy as np
import pandas
import pytest

from givens import SphericalMixture
from givens.app.commands.mixture import plane


def planted(k=3, d=6, each=60, seed=0):
    rng = np.random.default_rng(seed)
    member = np.repeat(np.arange(k), each)
    return rng.normal(size=(k * each, d)) + 8 * np.eye(k, d)[member], member


@pytest.mark.parametrize("variance", ["common", "distinct"])
def test_clusters_come_back(givens, tmp_path, variance):
    values, member = planted()
    frame = pandas.DataFrame(values, columns=list("abcdef"), index=[f"s{k}" for k in range(len(values))])
    frame.insert(0, "truth", [f"group {k}" for k in member])
    frame.to_csv(tmp_path / "x.csv")
    run = givens(
        "mixture", "x.csv", "-k", 3, "--variance", variance, "--labels", "truth", "--out", "out", "--json"
    )
    assert run.code == 0, run.err
    scores = pandas.read_csv(tmp_path / "out" / "scores.csv", index_col=0)
    assert list(scores.columns) == ["truth", "cluster", "cluster 1", "cluster 2", "cluster 3"]
    # Each cluster is one group, with nearly all of its samples.
    assert (pandas.crosstab(scores["truth"], scores["cluster"]).max(axis=1) >= 55).all()
    np.testing.assert_allclose(scores.iloc[:, 2:].sum(axis=1), 1)
    model = SphericalMixture(3, variance=variance, random_state=0).fit(values)
    means = pandas.read_csv(tmp_path / "out" / "components.csv", index_col=0)
    np.testing.assert_allclose(means.to_numpy().T, model.means_, atol=1e-9)
    summary = json.loads(run.out)
    assert sum(cluster["samples"] for cluster in summary["clusters"]) == 180


def test_what_em_left_open_is_said(givens, tmp_path):
    """The decomposition converges in any case; whether the answer has depends on what follows it."""
    values = np.random.default_rng(0).normal(size=(80, 5)) + np.eye(3, 5)[np.arange(80) % 3]
    np.save(tmp_path / "x.npy", values)
    for steps in (1, 500):
        run = givens("mixture", "x.npy", "-k", 3, "--refine-em", steps, "--out", f"out{steps}", "--json")
        summary = json.loads(run.out)
        assert summary["converged"] == (steps == 500)
        assert ("EM did not converge in 1 step" in summary["message"]) == (steps == 1)
        assert summary["warnings"] == ([summary["message"]] if steps == 1 else [])


def test_three_clusters_in_a_plane(givens, tmp_path):
    rng = np.random.default_rng(0)
    member = np.arange(150) % 3
    values = np.array([[0, 0], [9, 0], [4, 8]])[member] + rng.normal(size=(150, 2))
    pandas.DataFrame(values, columns=["a", "b"]).to_csv(tmp_path / "x.csv")
    run = givens("mixture", "x.csv", "-k", 3, "--out", "out", "--json")
    assert run.code == 0, run.err
    summary = json.loads(run.out)
    assert [cluster["samples"] for cluster in summary["clusters"]] == [50, 50, 50]
    assert summary["converged"]
    assert "moments cannot tell 3 components apart in these 2 features" in summary["method"]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "drawn as in k-means++" in page
    assert "Gradient norm" not in page


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
