from __future__ import annotations

import numpy as np
import pytest

from givens.datasets import make_spherical_mixture
from givens.experiments import ExperimentSettings
from givens.experiments.mixture_recovery import (
    COMPONENTS,
    MixtureDimensions,
    MixtureSamples,
    by_givens,
    by_power,
    reconstruct,
    run_one,
    uncentred,
)


@pytest.mark.parametrize("decomposition", [by_givens, by_power])
def test_the_papers_reconstruction_finds_well_separated_clusters(decomposition):
    sample = make_spherical_mixture(60_000, n_components=COMPONENTS, n_features=30, scale=400, random_state=1)
    mixture = reconstruct(*uncentred(sample.X), decomposition)
    distances = np.linalg.norm(mixture.means[:, None] - sample.means[None], axis=2)
    nearest = distances.argmin(axis=0)
    assert sorted(nearest) == list(range(COMPONENTS)), "a mean for every mean"
    assert np.median(distances.min(axis=0)) < 0.05 * np.median(np.linalg.norm(sample.means, axis=1))
    assert mixture.weights.sum() == pytest.approx(1)
    assert mixture.variances == pytest.approx(np.full(COMPONENTS, 2.0), rel=0.1)


def test_quick_figures_have_every_cell(monkeypatch):
    monkeypatch.setattr(
        MixtureDimensions, "panels", {True: [[(20, 2000), (25, 2000)], [(20, 4000), (25, 4000)]]}
    )
    monkeypatch.setattr(MixtureSamples, "panels", {True: [[(20, 2000), (20, 4000)]]})
    settings = ExperimentSettings(quick=True)
    rows = {(d, n): run_one(d, n, 0, None) for d in (20, 25) for n in (2000, 4000)}
    assert all(0 <= row["nmi"] <= 1 for cell in rows.values() for row in cell)
    for experiment, number in ((MixtureDimensions(), 3), (MixtureSamples(), 1)):
        everything = [row for cell in rows.values() for row in cell]
        claims = experiment.claims(everything, settings)
        assert len(claims) == number
        assert all(claim.holds in (True, False) for claim in claims)
        figure = experiment.figure(everything, settings)
        assert len(figure.legends[0].get_texts()) == 5
        assert all(ax.get_xlabel() for ax in figure.axes)
