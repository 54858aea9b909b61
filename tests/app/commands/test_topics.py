"""`givens topics`: what the golden outputs (`tests/net`) have not."""

from __future__ import annotations

import json

import numpy as np

from givens.app.commands.topics import topic_map
from givens.datasets import make_topics


def test_passes_that_were_cut_are_said(givens, tmp_path):
    X = make_topics(300, n_components=3, n_words=40, random_state=0).X.toarray()
    np.save(tmp_path / "x.npy", X)
    for max_iter in (1, 60):
        run = givens(
            "topics", "x.npy", "-k", 3, "--samples", "rows", "--max-iter", max_iter, "--out", "out", "--json"
        )
        summary = json.loads(run.out)
        assert summary["converged"] == (max_iter == 60)
        assert "raised the bound per word by" in summary["message"]
        assert ("not converged with max_iter=1" in summary["message"]) == (max_iter == 1)


def test_what_cannot_be_read_gets_one_sentence(givens, tmp_path):
    (tmp_path / "none").mkdir()
    run = givens("topics", "none", "-k", 2)
    assert run.code == 1
    assert "holds no .txt files" in run.err
    (tmp_path / "none" / "a.txt").write_text("one two three")
    run = givens("topics", "none", "-k", 2)
    assert run.code == 1
    assert "lower --min-documents" in run.err
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((30, 4)))
    run = givens("topics", "x.npy", "-k", 2, "--samples", "rows")
    assert run.code == 1
    assert "whole counts" in run.err
    assert not (tmp_path / "results").exists()


def test_map_keeps_equal_distances_equal():
    positions = topic_map(np.eye(3))
    distances = np.linalg.norm(positions[:, None] - positions, axis=2)
    np.testing.assert_allclose(distances[np.triu_indices(3, 1)], np.sqrt(2))
    assert topic_map(np.ones((1, 4)) / 4).tolist() == [[0.0, 0.0]]


def test_texts_in_another_encoding_are_named(givens, tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("apple banana cherry")
    (folder / "b.txt").write_text("apple banana cherry", encoding="utf-16")
    run = givens("topics", "texts", "-k", 2, "--out", "out")
    assert run.code == 1
    assert "b.txt is UTF-16 text: save it as UTF-8" in run.err
