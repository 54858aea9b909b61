"""`givens rotate`: the criteria of the orthomax family, beside factor_analyzer's formulas written out."""

from __future__ import annotations

import json

import numpy as np
import pandas
import pytest

from givens import minimize
from givens.app.commands.rotate import Criterion
from givens.objectives import Columns
from givens.rotation import kappa_of
from tests.tables import read_exactly


def write(path, loadings):
    names = [f"item {k + 1}" for k in range(len(loadings))]
    pandas.DataFrame(loadings, index=names, columns=[f"F{k + 1}" for k in range(loadings.shape[1])]).to_csv(
        path
    )


def criterion_value(loadings, kappa):
    squares = loadings**2
    return float(np.sum(squares**2) - kappa / len(loadings) * np.sum(squares.sum(axis=0) ** 2))


def read(path):
    return read_exactly(path)


@pytest.mark.parametrize("criterion", list(Criterion))
@pytest.mark.parametrize("kaiser", [True, False])
def test_no_rotation_of_a_fine_grid_does_better(givens, tmp_path, criterion, kaiser):
    loadings = np.random.default_rng(1).normal(size=(9, 2))
    write(tmp_path / "x.csv", loadings)
    option = "--kaiser" if kaiser else "--no-kaiser"
    run = givens("rotate", "x.csv", "--criterion", criterion.value, option, "--out", "out", "--json")
    assert run.code == 0
    summary = json.loads(run.out)
    rotated = read(tmp_path / "out" / "components.csv")
    rotation = read(tmp_path / "out" / "rotation.csv")
    np.testing.assert_allclose(loadings @ rotation.to_numpy(), rotated.to_numpy(), atol=1e-12)
    np.testing.assert_allclose(rotation.to_numpy().T @ rotation.to_numpy(), np.eye(2), atol=1e-12)
    assert list(rotated.index) == [f"item {k + 1}" for k in range(9)]
    assert list(rotation.index) == ["F1", "F2"]
    kappa = kappa_of(criterion, 9, 2)
    weights = np.linalg.norm(loadings, axis=1, keepdims=True) if kaiser else 1.0
    angles = np.linspace(0, 2 * np.pi, 5000)
    best = max(
        criterion_value(
            loadings / weights @ np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]), kappa
        )
        for t in angles
    )
    assert criterion_value(rotated.to_numpy() / weights, kappa) >= best - 1e-9
    assert summary["converged"] is True
    assert (np.diff(summary["sum_of_squares"]) <= 1e-12).all()


def test_principal_components_of_data_are_rotated(givens, tmp_path):
    data = np.random.default_rng(2).normal(size=(50, 6)) @ np.diag([4, 3, 2, 1, 1, 1])
    pandas.DataFrame(data, columns=list("abcdef")).to_csv(tmp_path / "x.csv", index=False)
    assert givens("rotate", "x.csv", "-m", 3, "--out", "out", "--quiet").code == 0
    rotated = read(tmp_path / "out" / "components.csv").to_numpy()
    # The rotated loadings reproduce the same part of the covariance as the three principal components do.
    values, vectors = np.linalg.eigh(np.cov(data.T))
    expected = vectors[:, -3:] * values[-3:] @ vectors[:, -3:].T
    np.testing.assert_allclose(rotated @ rotated.T, expected, atol=1e-10)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert sum(summary["explained_variance_ratio"]) == pytest.approx(values[-3:].sum() / values.sum())


def test_standardised_variables_have_communality_1(givens, tmp_path):
    data = np.random.default_rng(2).normal(size=(20, 4)) @ np.diag([4.0, 3, 2, 1])
    pandas.DataFrame(data, columns=list("abcd")).to_csv(tmp_path / "x.csv", index=False)
    assert givens("rotate", "x.csv", "-m", 4, "--standardise", "--out", "out", "--quiet").code == 0
    rotated = read(tmp_path / "out" / "components.csv").to_numpy()
    np.testing.assert_allclose(rotated @ rotated.T, np.corrcoef(data.T), atol=1e-12)


def test_too_many_principal_components(givens, tmp_path):
    pandas.DataFrame(np.eye(4)).to_csv(tmp_path / "x.csv", index=False)
    run = givens("rotate", "x.csv", "-m", 9, "--out", "out")
    assert run.code == 1
    assert "no 9 principal components" in run.err
    assert not (tmp_path / "out").exists()


def test_one_search_finds_what_ten_find_and_the_same_each_time(givens, tmp_path):
    # A single run from the loadings as they are ends in a lower maximum here.
    loadings = np.random.default_rng(8).normal(size=(40, 9))
    write(tmp_path / "x.csv", loadings)
    values = []
    for starts in ("1", "10", "10"):
        run = givens(
            "rotate",
            "x.csv",
            "--criterion",
            "quartimax",
            "--starts",
            starts,
            "--out",
            f"out{len(values)}",
            "--json",
        )
        assert run.code == 0
        summary = json.loads(run.out)
        assert summary["parameters"]["starts"] == int(starts)
        values.append(summary["value"])
    lengths = np.linalg.norm(loadings, axis=1, keepdims=True)
    assert minimize(Columns(loadings / lengths, "quartimax")).value < values[0] - 1e-3
    assert values[0] == pytest.approx(values[1], rel=1e-9)
    assert values[1] == values[2]


def test_a_variable_without_loadings_is_named_in_a_warning(givens, tmp_path):
    loadings = np.random.default_rng(3).normal(size=(6, 2))
    loadings[2] = 0
    write(tmp_path / "x.csv", loadings)
    run = givens("rotate", "x.csv", "--out", "out", "--json")
    assert run.code == 0
    assert any("variable 2 ('item 3') are zero" in text for text in json.loads(run.out)["warnings"])


def test_the_summary_holds_the_certificate_and_the_report_both_loadings(givens, tmp_path):
    loadings = np.random.default_rng(4).normal(size=(8, 3))
    write(tmp_path / "x.csv", loadings)
    run = givens("rotate", "x.csv", "--out", "out", "--json")
    assert 0 <= json.loads(run.out)["certificate"] < 1e-9
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert '"heatMap":{"lead":"Loadings before and after the rotation' in page
