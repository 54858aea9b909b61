"""Mixtures from moments, by likelihood, and their density, against exact populations and scikit-learn."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture

from givens.data.rows import Rows
from givens.data.third_moments import Basis, Cumulants, ThirdMoments, contract
from givens.datasets import make_spherical_mixture
from givens.mixtures.em import EM, Mixture, posterior
from givens.mixtures.whitened_moments import Scaled, by_givens, misfit, refit, solve
from tests.properties import examples

GIVENS = partial(by_givens, random_state=0, threads=1)


def sigma_points(mixture: Mixture, copies: int) -> np.ndarray:
    """Rows with exactly the first three moments of a mixture whose weights are multiples of 1/copies.

    μ ± σ√d e_j has the mean, the covariance σ²I and the third central moment, 0, of a Gaussian.
    """
    d = mixture.means.shape[1]
    steps = np.sqrt(d) * np.vstack([np.eye(d), -np.eye(d)])
    points = [
        np.tile(mean + np.sqrt(variance) * steps, (round(weight * copies), 1))
        for weight, mean, variance in zip(*mixture)
    ]
    return np.concatenate(points)


def population(mixture: Mixture, copies: int, axes: np.ndarray) -> Cumulants:
    """Exact moments, from the accumulators that samples go through."""
    state = ThirdMoments(Basis(np.zeros(len(axes)), axes)).begin(0)
    state.add(sigma_points(mixture, copies))
    return replace(state.cumulants(), count=np.inf)


def mixture_of(k: int, d: int, seed: int, common: bool) -> Mixture:
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(60 - k, np.full(k, 1 / k)) + 1
    variances = np.full(k, 1.5) if common else rng.uniform(0.5, 2.0, k)
    return Mixture(weights / 60, 2 * rng.standard_normal((k, d)) + 5.0, variances)


def matched(found: Mixture, truth: Mixture) -> Mixture:
    """The components of `found` in the order of those of `truth`."""
    distances = np.sum((truth.means[:, None] - found.means) ** 2, axis=2)
    order = np.argmin(distances, axis=1)
    assert sorted(order) == list(range(len(order)))
    return Mixture(*(part[order] for part in found))


def assert_same(found: Mixture, truth: Mixture, tolerance: float) -> None:
    for name, a, b in zip(Mixture._fields, matched(found, truth), truth):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("common", [True, False])
@pytest.mark.parametrize(("k", "d"), [(1, 1), (1, 4), (2, 2), (3, 7), (6, 6), (12, 15)])
def test_exact_moments_give_the_exact_mixture(k: int, d: int, common: bool) -> None:
    truth = mixture_of(k, d, seed=k + d, common=common)
    # All axes, which contain the means, and k of them in any direction, which do not.
    rng = np.random.default_rng(0)
    for axes in (np.eye(d), np.linalg.qr(rng.standard_normal((d, d)))[0][:, :k]):
        found = solve(population(truth, 60, axes), k, common=common, decomposition=GIVENS)
        assert found.result.converged
        assert_same(found.mixture, truth, 1e-8)


@examples(15)
@given(k=st.integers(2, 6), extra=st.integers(0, 4), seed=st.integers(0, 1000), common=st.booleans())
def test_exact_moments_of_any_mixture(k: int, extra: int, seed: int, common: bool) -> None:
    truth = mixture_of(k, k + extra, seed, common)
    # Means that nearly share a hyperplane make the answer as sensitive as they are close to it.
    spread = np.linalg.svd((truth.means - truth.weights @ truth.means) * np.sqrt(truth.weights)[:, None])[1]
    found = solve(population(truth, 60, np.eye(k + extra)), k, common=common, decomposition=GIVENS)
    assert_same(found.mixture, truth, 1e-8 * max(1.0, spread[k - 2] ** -3))


def test_means_on_a_line_are_refused_with_their_eigenvalues() -> None:
    means = np.outer([-2.0, 0.0, 3.0], np.ones(4))
    truth = Mixture(np.full(3, 1 / 3), means, np.ones(3))
    with pytest.raises(
        ValueError, match=r"3 components need means that differ in 2 directions.*has 1.*ask for fewer"
    ):
        solve(population(truth, 60, np.eye(4)), 3, common=True, decomposition=GIVENS)


def some_moments(r: int, k: int, count: float) -> tuple[Scaled, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(r + k)
    third = rng.standard_normal((r, r, r))
    third = sum(
        third.transpose(order) for order in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
    )
    data = Scaled(count, third / 6, rng.uniform(0.1, 0.9, r), 7)
    return data, rng.dirichlet(np.ones(k)), rng.standard_normal((r, k))


@pytest.mark.parametrize(("r", "k", "count"), [(2, 3, 50.0), (4, 4, np.inf), (0, 1, 10.0)])
def test_misfit_is_its_formula_and_has_its_gradient(r: int, k: int, count: float) -> None:
    data, w, b = some_moments(r, k, count)
    noise = 1.3
    K = np.einsum("i,ai,bi,ci->abc", w, b, b, b) - data.third
    C = np.einsum("i,ai,bi->ab", w, b, b) + noise * np.diag(data.noise_share) - np.eye(r)
    expected = np.sum(K**2) / 6 + np.sum(C**2) / 2 + np.sum((b @ w) ** 2) + 7 * (noise - 1) ** 2 / 2
    expected += np.sum(np.log(k * w) ** 2) / count + np.sum(b**2 / (1 - data.noise_share)[:, None]) / count
    value, gradient = misfit(data, np.log(w), b, np.log(noise))
    np.testing.assert_allclose(value, expected, rtol=1e-12)

    def of(x: np.ndarray) -> float:
        return misfit(data, x[:k], x[k:-1].reshape(r, k), x[-1])[0]

    x = np.concatenate([np.log(w), b.ravel(), [np.log(noise)]])
    np.testing.assert_allclose(gradient, approx_fprime(x, of, 1e-7), atol=1e-4 * (1 + np.abs(gradient).max()))


def test_refit_leads_back_to_the_exact_moments() -> None:
    truth = mixture_of(4, 6, seed=2, common=True)
    values, top = population(truth, 60, np.eye(6)).principal(3)
    scale = np.sqrt(values[:3])
    data = Scaled(np.inf, contract(top.third, np.diag(1 / scale)), 1.5 / values[:3], 3)
    b = ((truth.means - top.mean) @ top.axes / scale).T
    assert misfit(data, np.log(truth.weights), b, 0.0)[0] < 1e-20
    rng = np.random.default_rng(0)
    found = refit(data, rng.dirichlet(20 * np.ones(4)), b + 0.05 * rng.standard_normal(b.shape))
    assert found.converged
    np.testing.assert_allclose(found.weights, truth.weights, atol=1e-6)
    np.testing.assert_allclose(found.b, b, atol=1e-5)
    np.testing.assert_allclose(found.noise, 1.0, atol=1e-6)


@pytest.fixture(scope="module")
def sample() -> tuple[np.ndarray, Mixture]:
    data = make_spherical_mixture(5000, n_components=4, n_features=6, variances=1.0, random_state=1)
    rng = np.random.default_rng(0)
    start = Mixture(np.full(4, 0.25), data.means + 0.3 * rng.standard_normal((4, 6)), np.full(4, 1.2))
    return data.X, start


def test_em_is_that_of_scikit_learn(sample: tuple[np.ndarray, Mixture]) -> None:
    X, start = sample
    rival = GaussianMixture(
        4,
        covariance_type="spherical",
        weights_init=start.weights,
        means_init=start.means,
        precisions_init=1 / start.variances,
        reg_covar=0.0,
        tol=0.0,
        max_iter=6,
        init_params="random",
    )
    with pytest.warns(Warning, match="did not converge"):
        rival.fit(X)
    ours = EM(False, 0.0, -1.0).refine(Rows([X[:1000], X[1000:]]), start, 6)
    for a, b in zip(ours.last, (rival.weights_, rival.means_, rival.covariances_)):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    assert not ours.converged


@pytest.mark.parametrize("common", [True, False])
def test_em_never_lowers_the_likelihood(sample: tuple[np.ndarray, Mixture], common: bool) -> None:
    X, start = sample
    ours = EM(common, 0.0, 1e-5).refine(Rows(X), start, 300)
    assert ours.converged
    gains = np.diff(ours.values)
    assert gains.min() > -1e-12
    assert gains[-1] < 1e-5
    assert (np.ptp(ours.last.variances) == 0) == common
    np.testing.assert_allclose(ours.values[0], posterior(start, X)[1].mean(), rtol=1e-12)


def test_em_with_one_variance_takes_the_weighted_mean(sample: tuple[np.ndarray, Mixture]) -> None:
    X, start = sample
    shares, _ = posterior(start, X)
    step = EM(True, 0.0, 0.0).refine(Rows(X), start, 1).last
    means = shares.T @ X / shares.sum(axis=0)[:, None]
    variance = sum(shares[:, i] @ np.sum((X - means[i]) ** 2, axis=1) for i in range(4)) / X.size
    np.testing.assert_allclose(step.means, means, rtol=1e-10)
    np.testing.assert_allclose(step.variances, variance, rtol=1e-10)


def test_em_in_other_units_and_about_another_origin(sample: tuple[np.ndarray, Mixture]) -> None:
    X, start = sample
    origin = np.arange(6.0)
    plain = EM(False, 0.0, 0.0).refine(Rows(X), start, 3).last
    em = EM(False, 0.0, 0.0, unit=4.0, origin=origin)
    moved = em.refine(Rows(X), start.moved(4.0, origin), 3).last
    for a, b in zip(moved, plain.moved(4.0, origin)):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_a_component_without_rows_stays() -> None:
    X = np.random.default_rng(0).standard_normal((100, 2))
    start = Mixture(np.array([0.5, 0.5]), np.array([[0.0, 0.0], [1e4, 1e4]]), np.ones(2))
    found = EM(False, 1e-6, 0.0).refine(Rows(X), start, 2).last
    np.testing.assert_array_equal(found.means[1], start.means[1])
    np.testing.assert_allclose(found.weights, [1.0, 0.0], atol=1e-12)
    assert np.all(np.isfinite(posterior(found, X)[0]))


@pytest.mark.parametrize("shift", [0.0, 1e8])
@pytest.mark.parametrize("common", [True, False])
def test_density_is_that_of_the_formula(shift: float, common: bool) -> None:
    truth = mixture_of(3, 4, seed=0, common=common)
    truth = truth._replace(means=truth.means + shift)
    X = truth.means[[0, 1, 2, 2]] + np.random.default_rng(0).standard_normal((4, 4))
    joint = np.array(
        [w * multivariate_normal(mean, variance * np.eye(4)).pdf(X) for w, mean, variance in zip(*truth)]
    )
    shares, logs = posterior(truth, X)
    np.testing.assert_allclose(logs, np.log(joint.sum(axis=0)), rtol=1e-6 if shift else 1e-12)
    np.testing.assert_allclose(shares, (joint / joint.sum(axis=0)).T, atol=1e-6 if shift else 1e-12)
