"""`givens rotate`: what the golden outputs (`tests/net`) have not."""

from __future__ import annotations

import json

import numpy as np
import pandas


def write(path, loadings):
    names = [f"item {k + 1}" for k in range(len(loadings))]
    pandas.DataFrame(loadings, index=names, columns=[f"F{k + 1}" for k in range(loadings.shape[1])]).to_csv(
        path
    )


def test_a_variable_without_loadings_is_named_in_a_warning(givens, tmp_path):
    loadings = np.random.default_rng(3).normal(size=(6, 2))
    loadings[2] = 0
    write(tmp_path / "x.csv", loadings)
    run = givens("rotate", "x.csv", "--out", "out", "--json")
    assert run.code == 0
    assert any("variable 2 ('item 3') are zero" in text for text in json.loads(run.out)["warnings"])
