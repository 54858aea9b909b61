"""`givens tensor`: a planted decomposition comes back."""

from __future__ import annotations

import json

import numpy as np
import pandas
import pytest


def planted(d=5, seed=0):
    factors = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]
    weights = np.arange(d, 0, -1.0)
    return np.einsum("a,ia,ja,ka->ijk", weights, factors, factors, factors), weights, factors


@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_weights_and_vectors_come_back(givens, tmp_path, ending):
    tensor, weights, factors = planted()
    np.save(tmp_path / "x.npy", tensor) if ending == "npy" else np.savez(
        tmp_path / "x.npz", T=tensor, other=weights
    )
    run = givens("tensor", f"x.{ending}", "--out", "out", "--json")
    assert run.code == 0, run.err
    summary = json.loads(run.out)
    np.testing.assert_allclose(summary["weights"], weights, atol=1e-10)
    assert summary["residual"] < 1e-10
    found = pandas.read_csv(tmp_path / "out" / "components.csv", index_col=0).to_numpy()
    np.testing.assert_allclose(found, factors, atol=1e-9)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "components.csv",
        "report.html",
        "summary.json",
    ]


def test_rank_and_symmetrize(givens, tmp_path):
    tensor, weights, _ = planted()
    np.save(tmp_path / "x.npy", tensor + 1e-3 * np.random.default_rng(1).normal(size=tensor.shape))
    run = givens("tensor", "x.npy", "--rank", 2, "--symmetrize", "--out", "out", "--json")
    assert run.code == 0, run.err
    np.testing.assert_allclose(json.loads(run.out)["weights"], weights[:2], atol=1e-2)
