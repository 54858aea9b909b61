import numpy as np
import pytest

from givens import decompose
from paper.baselines import tensor_power
from tests.tensor_data import distance, orthogonal


@pytest.mark.parametrize("d", [1, 2, 10, 30])
def test_without_noise_the_components_are_found(d):
    T, weights, V = orthogonal(np.random.default_rng(d), d)
    found = tensor_power(T, random_state=0)
    assert distance(found.factors, V) < 1e-7
    assert np.allclose(found.weights, weights)
    assert found.residual < 1e-6
    assert found.result.converged
    assert found.result.flops > 0


def test_lower_rank_finds_large_components():
    T, weights, V = orthogonal(np.random.default_rng(1), 8, weights=[9, 8, 7, 1, 1, 1, 1, 1])
    found = tensor_power(T, 3, random_state=0)
    assert np.allclose(found.weights, weights[:3])
    assert distance(found.factors, V[:, :3]) < 1e-7


def test_noise_hurts_less_when_components_are_found_together():
    worse = 0
    for seed in range(5):
        T, _, V = orthogonal(np.random.default_rng(seed), 12, noise=0.02)
        errors = [
            (1 - np.abs(V.T @ method(T, random_state=0).factors).max(axis=1)).max()
            for method in (decompose, tensor_power)
        ]
        worse += errors[0] > errors[1]
    assert worse == 0
