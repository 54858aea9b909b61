import numpy as np
import pytest

from givens import decompose
from givens.objectives import MomentTensor, SymmetricTensor, from_samples
from givens.rotations import random_orthogonal
from givens.schedules import Tournament
from tests.memory import most_bytes
from tests.tensor_data import distance, from_components, orthogonal, symmetric

STARTS = ["power", "eigh", "random"]

# Seeds of starts are not those of the tensors: a random start would be the solution, drawn from the same numbers.


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("d", [2, 3, 10, 33, 50])
def test_without_noise_the_components_are_found(d, start):
    for seed in range(3):
        T, weights, V = orthogonal(np.random.default_rng(seed), d)
        found = decompose(T, start=start, random_state=100 + seed)
        assert found.result.converged, found.result.message
        assert distance(found.factors, V) < 1e-10
        assert np.allclose(found.weights, weights, rtol=1e-12)
        assert np.all(np.diff(found.weights) <= 0)
        assert found.residual < 1e-12
        assert np.allclose(found.reconstruct(), T, atol=1e-12)
        assert np.isclose(found.result.value, weights.sum(), rtol=1e-12)
        unpacked = dict(zip(("weights", "factors"), found))
        assert all(unpacked[name] is getattr(found, name) for name in unpacked)


def test_the_residual_is_that_of_the_reconstruction():
    rng = np.random.default_rng(0)
    T = orthogonal(rng, 12, noise=0.02)[0]
    for rank in (12, 5):
        found = decompose(T, rank, random_state=0)
        assert np.isclose(
            found.residual, np.linalg.norm(T - found.reconstruct()) / np.linalg.norm(T), rtol=1e-10
        )
        assert np.allclose(found.factors.T @ found.factors, np.eye(rank), atol=1e-12)
        assert np.allclose(found.weights, np.einsum("ijk,ia,ja,ka->a", T, *[found.factors] * 3))


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_fewer_components_than_there_are(start, noise):
    for seed in range(5):
        T, weights, V = orthogonal(np.random.default_rng(2), 9, noise=noise)
        found = decompose(T, 4, start=start, random_state=100 + seed)
        which = np.abs(V.T @ found.factors).argmax(axis=0)
        assert distance(found.factors, V[:, which]) < 1e-10 + 10 * noise
        assert np.allclose(found.weights, weights[which], atol=10 * noise)
        if start == "power":
            assert set(which) == set(range(4))


@pytest.mark.parametrize("start", STARTS)
def test_negative_weights_become_signs(start):
    T, _, V = orthogonal(np.random.default_rng(4), 6, weights=[5, -4, 3, -2, 1, -0.5])
    found = decompose(T, start=start, random_state=100)
    assert np.allclose(found.weights, [5, 4, 3, 2, 1, 0.5])
    assert np.allclose(found.factors, V * [1, -1, 1, -1, 1, -1], atol=1e-10)
    assert np.allclose(found.reconstruct(), T, atol=1e-12)


@pytest.mark.parametrize("start", [*STARTS, "array"])
@pytest.mark.parametrize(("d", "rank"), [(1, 1), (2, 2), (2, 1), (3, 3), (6, 4)])
@pytest.mark.filterwarnings("ignore:the components found leave")
def test_the_value_is_the_sum_of_the_weights(d, rank, start):
    """Whatever their signs in T, and wherever the run ends."""
    start = np.eye(d) if start == "array" else start
    for seed in range(5):
        weights = np.random.default_rng(seed).uniform(-3, 1, d)
        T = orthogonal(np.random.default_rng(seed), d, noise=0.1, weights=weights)[0]
        for most in (0, 1, 100):
            found = decompose(T, rank, start=start, random_state=100, max_iter=most)
            assert (found.weights >= 0).all()
            assert found.result.value == pytest.approx(found.weights.sum(), rel=1e-12)
            assert found.result.trace.value[-1] == found.result.value
            np.testing.assert_allclose(
                np.einsum("abc,ai,bi,ci->i", T, *[found.factors] * 3), found.weights, atol=1e-12
            )


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("d", [5, 40])
def test_repeated_weights(d, start):
    # Unlike eigenvectors, the components are unique even then.
    T, _, V = orthogonal(np.random.default_rng(5), d, weights=np.ones(d))
    found = decompose(T, start=start, random_state=100)
    assert np.allclose(found.weights, 1)
    assert distance(found.factors, V) < 1e-10


@pytest.mark.parametrize("value", [3.0, -3.0, 0.0])
def test_one_dimension(value):
    found = decompose(np.full((1, 1, 1), value))
    assert found.weights.tolist() == [abs(value)]
    assert found.factors.tolist() == [[-1.0 if value < 0 else 1.0]] or value == 0
    assert found.residual == 0
    assert np.array_equal(found.reconstruct(), np.full((1, 1, 1), value))


@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_all_zeros(d):
    found = decompose(np.zeros((d, d, d)), random_state=100)
    assert np.array_equal(found.weights, np.zeros(d))
    assert np.allclose(found.factors.T @ found.factors, np.eye(d))
    assert found.residual == 0
    assert found.result.converged


def test_two_dimensions_in_every_direction():
    for angle in np.linspace(0, 2 * np.pi, 25):
        V = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        for weights in ([2.0, 1.0], [1.0, 1.0], [1.0, -1.0], [1.0, 1e-8]):
            found = decompose(from_components(weights, V), start=np.eye(2))
            assert np.allclose(found.weights, np.abs(weights), atol=1e-13)
            assert distance(found.factors, V) < 1e-7


@pytest.mark.parametrize("scale", [1e150, 1e-150, 1e-290])
@pytest.mark.parametrize("d", [6, 40])
def test_scale_does_not_matter(scale, d):
    T = orthogonal(np.random.default_rng(6), d, noise=1e-3)[0]
    plain, scaled = (decompose(factor * T, random_state=100) for factor in (1.0, scale))
    assert np.allclose(scaled.weights / scale, plain.weights, rtol=1e-9)
    assert distance(scaled.factors, plain.factors) < 1e-7
    assert np.isclose(scaled.residual, plain.residual, rtol=1e-6)


@pytest.mark.parametrize("size", [1.5e308, 5e-324])
def test_the_ends_of_the_range_of_numbers(size):
    T = np.zeros((2, 2, 2))
    T[0, 0, 0], T[1, 1, 1] = size, -size
    assert decompose(T).weights.tolist() == [size, size]


def test_other_types_of_numbers():
    T, weights, V = orthogonal(np.random.default_rng(7), 6)
    single = decompose(T.astype(np.float32), random_state=100)
    assert single.factors.dtype == np.float64
    assert distance(single.factors, V) < 1e-6
    integers = decompose(np.einsum("a,ia,ja,ka->ijk", [3, 2, 1], *[np.eye(3, dtype=int)] * 3))
    assert np.allclose(integers.weights, [3, 2, 1])
    fortran = decompose(np.asfortranarray(T), random_state=100)
    assert distance(fortran.factors, V) < 1e-10
    assert np.allclose(decompose(T.tolist(), random_state=100).weights, weights)


def test_asymmetry_is_refused_or_averaged():
    rng = np.random.default_rng(8)
    T, _, V = orthogonal(rng, 6)
    skew = rng.standard_normal((6, 6))
    lopsided = T + 0.1 * np.einsum("i,jk->ijk", rng.standard_normal(6), skew - skew.T)
    with pytest.raises(ValueError, match=r"not symmetric: .* apart .*symmetrize=True"):
        decompose(lopsided)
    assert distance(decompose(lopsided, symmetrize=True, random_state=100).factors, V) < 1e-10


def test_a_tensor_that_is_not_orthogonal_is_reported():
    rng = np.random.default_rng(9)
    with pytest.warns(UserWarning, match="not an orthogonal tensor"):
        found = decompose(symmetric(rng, 8), random_state=100)
    assert found.residual > 0.5
    assert np.allclose(found.factors.T @ found.factors, np.eye(8), atol=1e-12)


@pytest.mark.parametrize("start", ["eigh", "power", "random"])
def test_flops_and_method_include_the_start(start):
    rng = np.random.default_rng(0)
    V = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    T = np.einsum("a,ia,ja,ka->ijk", np.arange(1.0, 9.0), V, V, V)
    result = decompose(T, start=start, random_state=0).result
    before = result.flops - result.trace.flops[-1]
    first = result.phases[0]
    assert first.name == start
    assert before == first.flops > 0
    words = "a random matrix" if start == "random" else "eigenvectors of a contraction"
    assert result.method.startswith(f"{words}, then ")
    assert ("power iteration" in result.method) == (start == "power") == (first.steps > 0)
    several = decompose(T, start=start, n_starts=3, random_state=0).result
    assert several.flops > 2 * first.flops + result.flops
    assert len(several.starts) == 3
    assert several.value == several.starts.max()
    assert result.starts is None


def test_samples_can_be_decomposed():
    rng = np.random.default_rng(12)
    V = random_orthogonal(5, rng)
    picks = rng.integers(5, size=2000)
    Y = V.T[picks] * np.sqrt(5.0)
    for implicit in (True, False):
        found = decompose(from_samples(Y, implicit=implicit), random_state=100)
        assert distance(found.factors, V) < 1e-10
        assert np.allclose(np.sort(found.weights), np.sort(np.sqrt(5.0) ** 3 * np.bincount(picks) / 2000))
    assert isinstance(from_samples(Y, implicit=True), MomentTensor)
    assert isinstance(from_samples(Y, implicit=False), SymmetricTensor)
    with pytest.raises(ValueError, match="the objective counts 5 columns"):
        decompose(from_samples(Y), rank=3)


def test_noise_is_averaged_over_pairs():
    # Angles (E_iij − E_ijj)/(λ_i + λ_j) to first order in the noise.
    rng = np.random.default_rng(13)
    T, weights, V = orthogonal(rng, 8)
    noise = 1e-6
    E = symmetric(rng, 8)
    found = decompose(T + noise * E, random_state=0, tol=1e-8)
    inner = np.einsum("abc,ai,bi,cj->ij", E, V, V, V)  # E_iij
    angles = noise * (inner - inner.T) / (weights[:, None] + weights)
    turned = V.T @ found.factors
    assert np.allclose(turned.T - np.diag(np.diag(turned)), angles - np.diag(np.diag(angles)), atol=1e-10)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"start": "best"}, "start must be one of 'power', 'eigh', 'random'"),
        ({"n_starts": 0}, "n_starts must be a whole number"),
        ({"rank": 7}, "rank must be a whole number from 1 to 3, the order of the tensor"),
        ({"start": np.ones((3, 3))}, "orthogonal"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        decompose(from_components([3.0, 2.0, 1.0], np.eye(3)), **options)


def test_memory_is_a_few_times_the_tensor():
    d = 90
    T = orthogonal(np.random.default_rng(14), d, noise=1e-3)[0]
    decompose(T[:3, :3, :3], schedule=Tournament(block=2))
    peak = most_bytes(lambda: decompose(T, random_state=100))
    assert peak + T.nbytes <= 3.5 * T.nbytes
