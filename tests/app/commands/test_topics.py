"""`givens topics`: planted topics come back, from tables and from text."""

from __future__ import annotations

import json

import numpy as np
import pandas
import pytest
from scipy import io, sparse

from givens import TopicModel
from givens.app.commands.topics import topic_map
from givens.datasets import make_topics

COOKING = ["soup", "salt", "pan", "stove", "bread", "oven", "onion", "pepper", "flour", "butter"]
SAILING = ["sail", "mast", "wind", "harbour", "rope", "anchor", "keel", "tide", "deck", "crew"]


def texts(folder, seed=0):
    rng = np.random.default_rng(seed)
    folder.mkdir()
    for n in range(60):
        words = COOKING if n % 2 else SAILING
        (folder / f"{n:02}.txt").write_text("the " + " ".join(rng.choice(words, size=40)), encoding="utf-8")


def test_topics_of_a_folder_of_texts(givens, tmp_path):
    texts(tmp_path / "texts")
    run = givens("topics", "texts", "-k", 2, "--stop-words", "--out", "out", "--json")
    assert run.code == 0, run.err
    summary = json.loads(run.out)
    found = [set(topic["words"]) for topic in summary["topics"]]
    assert set(COOKING) in found
    assert set(SAILING) in found
    scores = pandas.read_csv(tmp_path / "out" / "scores.csv", index_col=0)
    assert list(scores.index[:2]) == ["00.txt", "01.txt"]
    assert scores["topic"].iloc[0] == scores["topic"].iloc[2] != scores["topic"].iloc[1]
    np.testing.assert_allclose(scores[["topic 1", "topic 2"]].sum(axis=1), 1, atol=1e-6)
    topics = pandas.read_csv(tmp_path / "out" / "components.csv", index_col=0)
    np.testing.assert_allclose(topics.sum(), 1, atol=1e-6)
    assert "the" not in topics.index
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Topics of texts" in page
    assert "harbour" in page


def test_a_vocabulary_names_the_words_of_a_table_without_names(givens, tmp_path):
    rng = np.random.default_rng(3)
    X = sparse.csr_matrix(np.kron(np.eye(2), np.ones((20, 3))).astype(int) * rng.integers(1, 4, (40, 6)))
    io.mmwrite(tmp_path / "counts.mtx", X)
    words = ["cat", "dog", "cow", "plane", "train", "ship"]
    (tmp_path / "words.txt").write_text("\n".join(words) + "\n")
    run = givens(
        "topics",
        "counts.mtx",
        "-k",
        2,
        "--samples",
        "rows",
        "--vocabulary",
        "words.txt",
        "--out",
        "out",
        "--json",
    )
    assert run.code == 0, run.err
    found = [set(topic["words"][:3]) for topic in json.loads(run.out)["topics"]]
    assert sorted(map(sorted, found)) == [["cat", "cow", "dog"], ["plane", "ship", "train"]]
    (tmp_path / "words.txt").write_text("cat\ndog\n")
    run = givens(
        "topics", "counts.mtx", "-k", 2, "--samples", "rows", "--vocabulary", "words.txt", "--out", "no"
    )
    assert run.code != 0
    assert "2 lines, but the table has 6 words" in " ".join(run.err.split())
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("kind", ["csv", "mtx", "npy"])
def test_topics_of_a_table_are_those_of_the_library(givens, tmp_path, kind):
    rng = np.random.default_rng(1)
    shares = rng.dirichlet(np.full(3, 0.3), size=200)
    X = np.stack([rng.multinomial(50, row) for row in shares @ rng.dirichlet(np.full(20, 0.3), size=3)])
    if kind == "csv":
        pandas.DataFrame(X, columns=[f"w{v}" for v in range(20)]).to_csv(tmp_path / "x.csv")
    elif kind == "mtx":
        io.mmwrite(tmp_path / "x.mtx", sparse.csr_matrix(X))
    else:
        np.save(tmp_path / "x.npy", X)
    run = givens("topics", f"x.{kind}", "-k", 3, "--samples", "rows", "--out", "out", "--json")
    assert run.code == 0, run.err
    model = TopicModel(3, random_state=0).fit(X)
    topics = pandas.read_csv(tmp_path / "out" / "components.csv", index_col=0).to_numpy().T
    np.testing.assert_allclose(
        topics, model.components_ / model.components_.sum(axis=1, keepdims=True), atol=1e-6
    )
    assert json.loads(run.out)["perplexity"] == pytest.approx(model.perplexity(X))


def test_passes_that_were_cut_are_said(givens, tmp_path):
    X = make_topics(300, n_topics=3, n_words=40, random_state=0).X.toarray()
    np.save(tmp_path / "x.npy", X)
    for refine in (1, 60):
        run = givens(
            "topics", "x.npy", "-k", 3, "--samples", "rows", "--refine", refine, "--out", "out", "--json"
        )
        summary = json.loads(run.out)
        assert summary["converged"] == (refine == 60)
        assert "raised the bound per word by" in summary["message"]
        assert ("not converged with refine=1" in summary["message"]) == (refine == 1)


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
