"""`givens sparse-pca`: what the golden outputs (`tests/net`) have not."""

from __future__ import annotations

import json
import warnings
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
import scipy.sparse

from givens import SparsePCA, StreamingSparsePCA
from givens.app.commands.samples import ScoreMoments, Thinned
from givens.app.commands.sparse_pca import Spread
from givens.app.tables.table import Block
from givens.metrics import adjusted_variance, total_variance
from tests.tables import read_exactly


def modules(samples=40, variables=25, seed=0):
    """Two planted groups of five variables each."""
    rng = np.random.default_rng(seed)
    loadings = np.zeros((2, variables))
    loadings[0, :5], loadings[1, 5:10] = 3, 2
    return rng.normal(size=(samples, 2)) @ loadings + 0.3 * rng.normal(size=(samples, variables))


def write(path, values, labelled=True):
    frame = pandas.DataFrame(
        values,
        index=[f"s{k}" for k in range(len(values))],
        columns=[f"<b>gene</b> {k}" for k in range(values.shape[1])],
    )
    if labelled:
        frame.insert(0, "group", ["x", "y"] * (len(values) // 2))
    frame.to_csv(path)
    return frame


def test_sparse_matrices(givens, tmp_path):
    counts = np.random.default_rng(0).poisson(0.7, (30, 20)).astype(float)
    scipy.sparse.save_npz(tmp_path / "x.npz", scipy.sparse.csr_matrix(counts))
    run = givens(
        "sparse-pca", "x.npz", "-m", 2, "--n-nonzero", 4, "--log2", "--samples", "rows", "--out", "out"
    )
    assert run.code == 0, run.err
    expected = SparsePCA(n_components=2, n_nonzero=4, random_state=0).fit(np.log2(np.maximum(counts, 1)))
    found = read_exactly(tmp_path / "out" / "components.csv").to_numpy().T
    np.testing.assert_allclose(np.abs(found), np.abs(expected.components_), atol=1e-6)


def test_streams_take_what_tables_take(givens, tmp_path):
    values = modules(60) * np.geomspace(1e-3, 1e3, 25)
    values[:, 20] = 0.1
    write(tmp_path / "x.csv", values, labelled=False)
    options = ["--standardise", "--starts", 3, "--max-iter", 7, "--threads", 1, "--seed", 5]
    run = givens(
        "sparse-pca", "x.csv", "-m", 2, "--n-nonzero", 5, "--stream", *options, "--out", "out", "--json"
    )
    assert run.code == 0, run.err
    model = StreamingSparsePCA(2, n_nonzero=5, scale=True, n_starts=3, max_iter=7, random_state=5)
    model.partial_fit(values)
    found = read_exactly(tmp_path / "out" / "components.csv").to_numpy().T
    np.testing.assert_array_equal(found, model.components_)
    np.testing.assert_allclose(
        read_exactly(tmp_path / "out" / "scores.csv"), model.transform(values), rtol=1e-9
    )
    said = json.loads(run.out)
    assert said["parameters"] | {"scale": True, "n_starts": 3, "max_iter": 7} == said["parameters"]
    standard = (values - values.mean(axis=0)) / np.where(np.ptp(values, axis=0) > 0, values.std(axis=0), 1)
    expected = adjusted_variance(standard, found) / total_variance(standard)
    np.testing.assert_allclose(
        [part["explained_variance_ratio"] for part in said["components"]], expected, rtol=1e-9
    )


def test_shares_of_a_stream_are_those_of_the_whole():
    rng = np.random.default_rng(0)
    values, weights = rng.normal(size=(50, 7)), rng.normal(size=(3, 7))
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)

    def shares(weights, parts):
        model = SimpleNamespace(mean_=values.mean(axis=0), scale_=None, missing=None)
        spread, moments = Spread(model, np.asarray), ScoreMoments(len(weights))
        for part in np.array_split(values, parts):
            moments.add((spread(part) - values.mean(axis=0)) @ weights.T)
        return spread.shares(moments)

    np.testing.assert_allclose(
        shares(weights, 6), adjusted_variance(values, weights) / total_variance(values)
    )
    # A component that repeats another adds nothing.
    assert shares(weights[[0, 0]], 1)[1] == 0


@pytest.mark.parametrize("total", [5, 10, 11, 1000])
def test_thinned_samples_are_even_whatever_the_cut(total):
    kept = []
    for size in (1, 7, 1000):
        thinned = Thinned(most=10)
        for start in range(0, total, size):
            stop = min(total, start + size)
            thinned.add(Block(np.arange(start, stop)[:, None], [str(k) for k in range(start, stop)]))
        np.testing.assert_array_equal(thinned.block.values[:, 0], thinned.rows)
        kept.append([int(name) for name in thinned.block.names])
    assert kept[0] == kept[1] == kept[2]
    assert len(kept[0]) < 10
    assert len(set(np.diff(kept[0]))) == 1
    assert kept[0][-1] >= total * 0.75


def test_a_warning_is_said_and_stands_in_the_report(givens, tmp_path):
    write(tmp_path / "x.csv", modules())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = givens(
            "sparse-pca", "x.csv", "-m", 6, "--threshold", 0.01, "--max-iter", 1, "--no-path", "--out", "out"
        )
    assert run.code == 0
    assert "warning:" in run.err
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["warnings"]
    assert summary["converged"] is False


@pytest.mark.parametrize("kept", [True, False])
def test_compiling_is_told_once_whether_the_fit_or_the_curve_begins_it(givens, tmp_path, monkeypatch, kept):
    """A fit with counts compiles nothing, the curve of the report does. Another command or type of numbers compiles more."""

    @contextmanager
    def always(begun):
        begun(kept)
        yield lambda: 0.5

    monkeypatch.setattr("givens.kernels.compile.compiling", always)
    table = tmp_path / "t.csv"
    table.write_text("\n".join([",".join("abcd"), *(f"{k},{k * k % 7},{k % 3},{k % 5}" for k in range(12))]))
    run = givens("sparse-pca", table, "-m", 2, "--n-nonzero", 2, "--json", "--out", "out")
    assert run.err.count("· compiling") == 1
    assert json.loads(run.out)["seconds_compiling"] == 1.0  # the seconds of both
    assert ("what this machine has not compiled yet, and keeping it" in run.err) == kept
    assert ("in every run" in run.err) == (not kept)
    assert "once on a machine" not in run.err


def test_streams_hold_to_the_orientation_of_whole_tables(givens, tmp_path):
    """Named rows by the thousand are genes, streamed or not."""
    values = np.random.default_rng(0).normal(size=(1200, 6))
    frame = pandas.DataFrame(values, [f"g{k}" for k in range(1200)], [f"s{k}" for k in range(6)])
    frame.to_csv(tmp_path / "x.csv")
    frame.to_parquet(tmp_path / "x.parquet")
    for name in ("x.csv", "x.parquet"):
        options = ["sparse-pca", name, "-m", 2, "--n-nonzero", 2, "--no-path", "--quiet", "--out", "out"]
        run = givens(*options, "--stream")
        assert run.code == 1
        assert "look like genes or other variables" in run.err
        assert givens(*options, "--stream", "--samples", "rows").code == 0
        assert givens(*options).code == 0
        assert read_exactly(tmp_path / "out" / "components.csv").shape[0] == 1200
