from __future__ import annotations

import numpy as np
import pytest

from givens.datasets import sparse_modules
from givens.experiments import ExperimentSettings, brain, tables
from givens.experiments.brain import LIMITS, METHODS, POWER, SIZES, Brain, best, halves


@pytest.fixture
def small(monkeypatch):
    X = sparse_modules(120, 200, n_modules=10, module_size=8, random_state=0).X
    monkeypatch.setattr(tables, "brain", lambda settings: tables.Data(X, "small data"))
    monkeypatch.setattr(brain, "thresholds", lambda settings: np.array([0.3, 0.1]))
    return X


def test_the_protocol(small):
    settings = ExperimentSettings(quick=True)
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


def test_points_are_of_all_splits_that_keep_to_the_limit():
    def run(split, share, nonzeros, variance):
        row = {"method": POWER, "m": 3, "stop": "convergence", "split": split, "share": share}
        return {**row, "nonzeros": nonzeros, "variance": variance, "flops": 10.0 ** (split + 1)}

    rows = [run(0, 0.1, 0.04, 0.2), run(1, 0.1, 0.05, 0.4), run(0, 0.2, 0.1, 0.5), run(1, 0.2, 0.1, 0.5)]
    found = brain.points(rows, POWER, 3, "convergence", 0.05)
    assert found[:, 0] == pytest.approx([10**1.5, 30, 20, 40])
    assert found.shape == (4, 1)
    assert brain.points(rows, POWER, 5, "convergence", 0.05).shape == (4, 0)


@pytest.mark.parametrize(
    ("variance", "flops", "holds"),
    [(0.19, 12.0, True), (0.19, 5.0, False), (0.25, 12.0, False), (0.15, 9.5, True)],
)
def test_comparable_at_the_same_cost_is_both(variance, flops, holds):
    """GPower explains 0.2 with 10 operations."""
    rows = [
        {"method": method, "m": m, "stop": "convergence", "split": 0, "share": 0.1, "nonzeros": 0.2} | numbers
        for m in SIZES
        for method in METHODS
        for numbers in [
            {"variance": 0.2, "flops": 10.0} if method == POWER else {"variance": variance, "flops": flops}
        ]
    ]
    claims = Brain().claims(rows, ExperimentSettings())
    assert [claim.holds for claim in claims if "20 %" in claim.statement] == [holds, holds]


def test_a_split_has_four_fifths_to_learn_from(small):
    train, test = halves(small, 1)
    assert (len(train), len(test)) == (96, 24)
    together = np.concatenate((train, test))
    assert np.array_equal(np.sort(together, axis=0), np.sort(small, axis=0))
