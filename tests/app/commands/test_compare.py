"""`givens compare`: pairs of components of two results, and what it says of folders that are not results."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest


def result(folder, weights, variables, scores=None, samples=None, analysis="sparse-pca"):
    folder.mkdir()
    names = [f"component {k + 1}" for k in range(len(weights))]
    with open(folder / "components.csv", "w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(
            [["variable", *names], *([v, *map(repr, w)] for v, w in zip(variables, weights.T.tolist()))]
        )
    if scores is not None:
        with open(folder / "scores.csv", "w", encoding="utf-8", newline="") as stream:
            rows = ([name, "label", *map(repr, line)] for name, line in zip(samples, scores.tolist()))
            csv.writer(stream).writerows([["sample", "kind", *names], *rows])
    (folder / "summary.json").write_text(json.dumps({"analysis": analysis}))


def test_pairs_are_found_whatever_the_order_sign_and_variables(givens, tmp_path):
    rng = np.random.default_rng(0)
    weights = np.zeros((3, 12))
    for k in range(3):
        weights[k, 4 * k : 4 * k + 4] = rng.normal(size=4)
    scores = rng.normal(size=(9, 3))
    samples = [f"s{k}" for k in range(9)]
    variables = [f"gene {k}" for k in range(12)]
    result(tmp_path / "a", weights, variables, scores, samples)
    # Turned, in another order, without one variable that has a weight, and the variables the other way round.
    other = (weights * np.array([[-1.0], [1.0], [-1.0]]))[[2, 0, 1]][:, 1:][:, ::-1]
    result(
        tmp_path / "b", other, variables[1:][::-1], (scores * [-1, 1, -1])[:, [2, 0, 1]][::-1], samples[::-1]
    )
    run = givens("compare", "a", "b", "--json", "--out", "both")
    assert run.code == 0, run.err
    pairs = json.loads(run.out)["pairs"]
    found = [(p["first"][-1], p["second"][-1], p["sign"]) for p in pairs]
    assert found == [("1", "2", -1.0), ("2", "3", 1.0), ("3", "1", -1.0)]
    assert "the results have 11 variable names in common, of 12 in a and 11 in b" in run.err
    assert [p["cosine"] for p in pairs] == pytest.approx([1, 1, 1])
    assert (pairs[0]["shared"], pairs[0]["only_first"], pairs[0]["only_second"]) == (3, 0, 0)
    assert pairs[0]["jaccard"] == 1
    assert [p["score_correlation"] for p in pairs] == pytest.approx([1, 1, 1])
    with open(tmp_path / "both" / "pairs.csv", newline="") as stream:
        assert len(list(csv.reader(stream))) == 4
    assert {path.name for path in (tmp_path / "both").iterdir()} == {
        "pairs.csv",
        "report.html",
        "summary.json",
    }


def test_results_that_share_few_names(givens, tmp_path):
    """What is printed of a pair agrees: no small cosine beside a correlation of 1 because names do not match."""
    rng = np.random.default_rng(0)
    weights, scores = rng.normal(size=(2, 40)), rng.normal(size=(9, 3))
    # A third component with no weight on the common variables.
    weights = np.vstack([weights, np.arange(40) >= 30])
    samples = [f"s{k}" for k in range(9)]
    result(tmp_path / "a", weights, [f"gene {k}" for k in range(40)], scores, samples)
    other = [f"gene {k}" if k < 10 else f"probe {k}" for k in range(40)]
    result(tmp_path / "b", weights, other, scores, samples)
    run = givens("compare", "a", "b", "--json", "--out", "both")
    assert run.code == 0, run.err
    told = "the results have only 10 variable names in common, of 40 in a and 40 in b"
    assert told in run.err
    assert run.err.index(told) < run.err.index("Cosine")
    summary = json.loads(run.out)
    assert summary["variables_in_common"] == 10
    assert summary["warnings"][0].startswith(told)
    assert [p["cosine"] for p in summary["pairs"]] == [pytest.approx(1), pytest.approx(1), None]
    assert [p["shared"] + p["only_first"] + p["only_second"] for p in summary["pairs"]] == [10, 10, 0]
    assert [p["score_correlation"] for p in summary["pairs"]] == pytest.approx([1, 1, 1])


def test_different_numbers_of_components_and_analyses(givens, tmp_path):
    result(tmp_path / "a", np.eye(4)[:3], list("wxyz"))
    result(tmp_path / "b", np.eye(4)[[3, 1]], list("wxyz"), analysis="mixture")
    run = givens("compare", "a", "b", "--json")
    summary = json.loads(run.out)
    assert len(summary["pairs"]) == 2
    assert {"first": "component 2", "second": "component 2"}.items() <= next(
        p for p in summary["pairs"] if p["cosine"] == 1
    ).items()
    assert summary["pairs"][0]["score_correlation"] is None
    assert summary["warnings"] == ["the results come from two analyses, sparse-pca and mixture"]


def test_folders_that_are_not_results(givens, tmp_path):
    result(tmp_path / "a", np.eye(2), ["x", "y"])
    result(tmp_path / "b", np.eye(2), ["u", "v"])
    (tmp_path / "empty").mkdir()
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "components.csv").write_text("variable,component 1\nx,much\n")
    (tmp_path / "short").mkdir()
    (tmp_path / "short" / "components.csv").write_text("variable,component 1\nx\n")
    for other, told in [
        ("b", "a and b have no variable in common: their names must be the same"),
        ("empty", "empty/components.csv cannot be read: give two folders that a command of givens wrote"),
        ("nowhere", "nowhere/components.csv cannot be read"),
        ("words", "words/components.csv holds words where weights are expected"),
        ("short", "short/components.csv is damaged: its lines differ in length"),
    ]:
        run = givens("compare", "a", other, "--out", "both")
        assert run.code == 1
        assert told in run.err
        assert not (tmp_path / "both").exists()
