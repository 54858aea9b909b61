from __future__ import annotations

import numpy as np
import pytest

from givens.datasets import make_spherical_mixture
from givens.kernels.tensor import turn_pairs
from givens.objectives import SymmetricTensor
from givens.rotations import random_orthogonal
from paper import ExperimentSettings
from paper.measure import mixture_cells
from paper.measure.algorithm_4 import algorithm_4
from paper.measure.mixture_cells import (
    GIVENS,
    POWER,
    Cell,
    by_power,
    by_rotations,
    reconstruct,
    uncentred,
)
from paper.mixture_recovery import Mixtures, compared


@pytest.mark.parametrize("decomposition", [by_rotations, by_power])
def test_the_papers_reconstruction_finds_well_separated_clusters(decomposition):
    k = 20
    sample = make_spherical_mixture(60_000, n_components=k, n_features=30, scale=400, random_state=1)
    moments, eigenvalues = uncentred(sample.X, k)
    noise = float(eigenvalues[: 30 - k + 1].mean())
    mixture = reconstruct(moments, noise, k, lambda T: decomposition(0, T))
    distances = np.linalg.norm(mixture.means[:, None] - sample.means[None], axis=2)
    nearest = distances.argmin(axis=0)
    assert sorted(nearest) == list(range(k)), "a mean for every mean"
    assert np.median(distances.min(axis=0)) < 0.05 * np.median(np.linalg.norm(sample.means, axis=1))
    assert mixture.weights.sum() == pytest.approx(1)
    assert mixture.variances == pytest.approx(np.full(k, 2.0), rel=0.1)


def symmetric(d, seed):
    T = np.random.default_rng(seed).standard_normal((d, d, d))
    return sum(T.transpose(p) for p in [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]) / 6


def test_pairs_turned_one_by_one_are_the_objectives_own_rotations():
    d, rng = 6, np.random.default_rng(0)
    T = symmetric(d, 1)
    U = random_orthogonal(d, rng)
    pairs = np.array([np.sort(rng.choice(d, 2, replace=False)) for _ in range(40)])
    V = np.ascontiguousarray(U.T)
    S = np.ascontiguousarray((V @ T.reshape(d, d * d)).reshape(d, d, d))
    W = np.einsum("ikl,il->ik", S, V)
    gained, _, flops = turn_pairs(S, S, pairs, d, 0.0, 1, 0.0, V, W)
    objective = SymmetricTensor(T, symmetrize=True)
    for pair in pairs:
        rotation = objective.solve(objective.state(U), pair[None]).rotations[0]
        U[:, pair] = U[:, pair] @ rotation
    assert np.allclose(V.T, U, atol=1e-9)

    def value(columns):
        return np.einsum("ijk,ia,ja,ka->", T, columns, columns, columns)

    assert gained == pytest.approx(value(V.T) - value(random_orthogonal(d, np.random.default_rng(0))))
    assert flops > 0


def test_algorithm_4_decomposes_an_orthogonal_tensor():
    rng = np.random.default_rng(0)
    V = random_orthogonal(8, rng)
    weights = np.arange(8, 0, -1.0)
    T = np.einsum("a,ia,ja,ka->ijk", weights, V, V, V)
    found = algorithm_4(T, rng, tol=1e-14)
    assert found.weights == pytest.approx(weights)
    assert np.allclose(found.factors.T @ V, np.eye(8), atol=1e-6)


def test_quick_figures_have_every_cell(monkeypatch):
    few = [Cell(k, d, n) for n in (2000, 4000) for k, d in ((10, 10), (20, 20), (20, 25))]
    monkeypatch.setattr(
        mixture_cells, "cells", lambda quick: [*few, Cell(20, 20, 4000, True), Cell(20, 25, 3000)]
    )
    settings = ExperimentSettings(quick=True, seeds=2)
    experiment = Mixtures()
    rows = [row for task in experiment.tasks(settings) for row in task.run()]
    assert all(0 <= row["nmi"] <= 1 for row in rows)
    claims = experiment.claims(rows, settings)
    assert [claim.about for claim in claims] == 8 * ["the paper's algorithms"] + ["ours"]
    assert all("k/d" in claim.measured for claim in claims)
    found = compared(rows, Cell(20, 20, 2000), GIVENS, POWER, mixture_cells.MEAN)
    assert found.pairs == 2
    titles = [ax.get_title() for ax in experiment.figure(rows, settings).axes if ax.get_visible()]
    assert "Figure 3: k = 20, N = 4,000" in titles
    assert "Figure 4: k = 20, d = 25" in titles
