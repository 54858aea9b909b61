"""`givens compare`: two results that share few names."""

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
