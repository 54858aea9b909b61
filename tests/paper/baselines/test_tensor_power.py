import numpy as np
import pytest

from givens import decompose
from paper.baselines import tensor_power
from tests.tensor_data import distance, from_components, orthogonal


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


def test_each_component_is_a_fixed_point_of_what_is_left():
    T = orthogonal(np.random.default_rng(2), 6, noise=0.02)[0]
    found = tensor_power(T, random_state=0, iterations=200, tol=1e-12)
    first = found.factors[:, np.argmax(found.weights)]
    image = np.einsum("ijk,j,k->i", T, first, first)
    assert np.allclose(image, found.weights.max() * first, atol=0.2)
    assert np.isclose(found.residual, np.linalg.norm(T - found.reconstruct()) / np.linalg.norm(T), rtol=1e-8)


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


def test_iterations_that_do_not_suffice_are_reported():
    T = orthogonal(np.random.default_rng(3), 8, noise=0.05)[0]
    result = tensor_power(T, iterations=2, random_state=0).result
    assert not result.converged
    assert "not settled" in result.message


def test_zeros():
    found = tensor_power(np.zeros((3, 3, 3)), random_state=0)
    assert np.array_equal(found.weights, np.zeros(3))
    assert found.residual == 0


@pytest.mark.parametrize("options", [{"starts": 0}, {"iterations": 1.5}])
def test_bad_options_are_refused(options):
    with pytest.raises(ValueError, match="whole number of at least 1"):
        tensor_power(from_components([1.0], np.ones((1, 1))), **options)
