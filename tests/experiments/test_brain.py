from __future__ import annotations

import numpy as np
import pytest

from givens.datasets import sparse_modules
from givens.experiments import Settings, brain, data
from givens.experiments.brain import LIMITS, METHODS, POWER, SIZES, Brain, best, halves


@pytest.fixture
def small(monkeypatch):
    X = sparse_modules(120, 200, n_modules=10, module_size=8, random_state=0).X
    monkeypatch.setattr(data, "brain", lambda settings: data.Data(X, "small data"))
    monkeypatch.setattr(brain, "thresholds", lambda settings: np.array([0.3, 0.1]))
    return X


def test_the_protocol(small):
    settings = Settings(quick=True)
    experiment = Brain()
    rows = [row for task in experiment.tasks(settings) for row in task.run()]
    assert len(rows) == len(METHODS) * 2 * len(SIZES) * 2
    for row in rows:
        assert 0 <= row["variance"] <= 1
        assert 0 < row["nonzeros"] <= 1
        assert row["flops"] > 0
    ends = {
        row["stop"]: row["flops"]
        for row in rows
        if (row["method"], row["m"], row["share"]) == (POWER, 3, 0.1)
    }
    assert ends["early stop"] < ends["convergence"]
    chosen = best(rows, POWER, 3, LIMITS[1])
    assert chosen is None or chosen["nonzeros"] <= LIMITS[1]
    assert len(experiment.claims(rows, settings)) == 4
    figure = experiment.figure(rows, settings)
    assert len(figure.axes) == 9
    assert len(figure.legends[0].get_texts()) == 6


def test_a_split_has_four_fifths_to_learn_from(small):
    train, test = halves(small, 1)
    assert (len(train), len(test)) == (96, 24)
    together = np.concatenate((train, test))
    assert np.array_equal(np.sort(together, axis=0), np.sort(small, axis=0))
