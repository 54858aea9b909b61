"""`givens mixture`, `rotate`, `topics` and `compare`: what the golden outputs (`tests/net`) have not."""

from __future__ import annotations

import csv
import json

import numpy as np
import pandas
import pytest

from givens.app.commands.mixture import plane
from givens.app.commands.topics import topic_map
from givens.datasets import make_topics


def em_without_clusters():
    """The decomposition converges in any case; whether the answer has depends on what follows it."""
    return np.random.default_rng(0).normal(size=(80, 5)) + np.eye(3, 5)[np.arange(80) % 3]


def counts():
    return make_topics(300, n_components=3, n_words=40, random_state=0).X.toarray()


@pytest.mark.parametrize(
    ("command", "data", "enough"), [("mixture", em_without_clusters, 500), ("topics", counts, 60)]
)
def test_a_fit_that_was_cut_is_said(givens, tmp_path, command, data, enough):
    np.save(tmp_path / "x.npy", data())
    line = [command, "x.npy", "-k", 3, "--samples", "rows", "--out", "out", "--json", "--max-iter"]
    for steps in (1, enough):
        summary = json.loads(givens(*line, steps).out)
        assert summary["converged"] == (steps == enough)
        assert ("max_iter = 1 reached" in summary["message"]) == (steps == 1)
        assert any("max_iter" in warning for warning in summary["warnings"]) == (steps == 1)


def test_the_plane_of_means_is_orthonormal():
    rng = np.random.default_rng(0)
    member = np.repeat([0, 1], 60)
    values = rng.normal(size=(120, 6)) + 8 * np.eye(2, 6)[member]
    means = np.array([values[member == k].mean(axis=0) for k in range(2)])
    directions = plane(means, np.full(2, 0.5), values, values.mean(axis=0))
    np.testing.assert_allclose(directions @ directions.T, np.eye(2), atol=1e-12)
    difference = (means[0] - means[1]) / np.linalg.norm(means[0] - means[1])
    np.testing.assert_allclose(abs(directions[0] @ difference), 1)
    assert plane(np.zeros((1, 6)), np.ones(1), values, values.mean(axis=0)).shape == (2, 6)
    assert plane(np.zeros((2, 1)), np.full(2, 0.5), values[:, :1], values[:, :1].mean(axis=0)).shape[1] == 1


def test_a_mixture_of_one_variable(givens, tmp_path):
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=50), rng.normal(9, 1, 50)])
    pandas.DataFrame({"a": values}).to_csv(tmp_path / "x.csv")
    run = givens("mixture", "x.csv", "-k", 1, "--standardise", "--out", "out")
    assert run.code == 0, run.err


def test_a_variable_without_loadings_is_named_in_a_warning(givens, tmp_path):
    loadings = np.random.default_rng(3).normal(size=(6, 2))
    loadings[2] = 0
    items = [f"item {k + 1}" for k in range(6)]
    pandas.DataFrame(loadings, index=items, columns=["F1", "F2"]).to_csv(tmp_path / "x.csv")
    run = givens("rotate", "x.csv", "--out", "out", "--json")
    assert run.code == 0
    assert any("variable 2 ('item 3') are zero" in text for text in json.loads(run.out)["warnings"])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "holds no .txt files"),
        (b"one two three", "lower --min-documents"),
        ("apple banana cherry".encode("utf-16"), "a.txt is UTF-16 text: save it as UTF-8"),
    ],
)
def test_texts_that_cannot_be_read_get_one_sentence(givens, tmp_path, content, sentence):
    (tmp_path / "texts").mkdir()
    if content is not None:
        (tmp_path / "texts" / "a.txt").write_bytes(content)
    run = givens("topics", "texts", "-k", 2)
    assert run.code == 1
    assert sentence in run.err
    assert not (tmp_path / "results").exists()


def test_the_map_of_topics_keeps_equal_distances_equal():
    positions = topic_map(np.eye(3))
    distances = np.linalg.norm(positions[:, None] - positions, axis=2)
    np.testing.assert_allclose(distances[np.triu_indices(3, 1)], np.sqrt(2))
    assert topic_map(np.ones((1, 4)) / 4).tolist() == [[0.0, 0.0]]


def write_result(folder, weights, variables, scores):
    folder.mkdir()
    names = [f"component {k + 1}" for k in range(len(weights))]
    components = [["variable", *names], *([v, *w] for v, w in zip(variables, weights.T.tolist()))]
    rows = [["sample", "kind", *names], *([f"s{k}", "label", *row] for k, row in enumerate(scores.tolist()))]
    for name, table in (("components.csv", components), ("scores.csv", rows)):
        with open(folder / name, "w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows(table)
    (folder / "summary.json").write_text(json.dumps({"analysis": "sparse-pca"}))


def test_results_that_share_few_names_are_compared_by_these_alone(givens, tmp_path):
    """What is printed of a pair agrees: no small cosine beside a correlation of 1 because names do not match."""
    rng = np.random.default_rng(0)
    weights, scores = rng.normal(size=(2, 40)), rng.normal(size=(9, 3))
    # A third component with no weight on the common variables.
    weights = np.vstack([weights, np.arange(40) >= 30])
    write_result(tmp_path / "a", weights, [f"gene {k}" for k in range(40)], scores)
    other = [f"gene {k}" if k < 10 else f"probe {k}" for k in range(40)]
    write_result(tmp_path / "b", weights, other, scores)
    run = givens("compare", "a", "b", "--json", "--out", "both")
    assert run.code == 0, run.err
    told = "the results have only 10 variable names in common, of 40 in a and 40 in b"
    assert run.err.index(told) < run.err.index("Cosine")
    summary = json.loads(run.out)
    assert summary["variables_in_common"] == 10
    assert summary["warnings"][0].startswith(told)
    assert [p["cosine"] for p in summary["pairs"]] == [pytest.approx(1), pytest.approx(1), None]
    assert [p["shared"] + p["only_first"] + p["only_second"] for p in summary["pairs"]] == [10, 10, 0]
    assert [p["score_correlation"] for p in summary["pairs"]] == pytest.approx([1, 1, 1])
