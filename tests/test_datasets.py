"""The paper's generator of mixtures."""

from __future__ import annotations

import numpy as np
import pytest

from givens.datasets import make_spherical_mixture


def test_rows_scatter_about_their_centres() -> None:
    data = make_spherical_mixture(
        40_000,
        n_components=3,
        n_features=4,
        weights=[0.5, 0.3, 0.2],
        variances=[1.0, 2.0, 4.0],
        random_state=0,
    )
    for i in range(3):
        rows = data.X[data.y == i]
        assert abs(len(rows) / 40_000 - data.weights[i]) < 0.02
        np.testing.assert_allclose(rows.mean(axis=0), data.means[i], atol=0.1)
        np.testing.assert_allclose(
            np.cov(rows.T), data.variances[i] * np.eye(4), atol=0.15 * data.variances[i]
        )


def test_centres_have_the_scale_as_mean_covariance() -> None:
    # With many degrees of freedom the inverse Wishart distribution is narrow about scale / (degrees - d - 1).
    data = make_spherical_mixture(
        1, n_components=20_000, n_features=3, degrees=20_004.0, scale=40_000.0, random_state=0
    )
    np.testing.assert_allclose(np.cov(data.means.T), 2.0 * np.eye(3), atol=0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components must be a whole number"),
        ({"n_features": 2.5}, "n_features must be a whole number"),
        ({"degrees": 3.0}, "degrees must be more than n_features - 1 = 49"),
        ({"n_components": 2, "weights": [0.5, 0.6]}, "weights must be 2 numbers"),
        ({"variances": -1.0}, "variances must be at least 0"),
    ],
)
def test_bad_parameters_are_named(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_spherical_mixture(10, **options)
