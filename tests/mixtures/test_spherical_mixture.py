"""SphericalMixture: scikit-learn's contract, sources of rows, streams, hostile data."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import normalized_mutual_info_score
from sklearn.mixture import GaussianMixture
from sklearn.utils.estimator_checks import parametrize_with_checks

from givens import SphericalMixture
from givens.data.rows import Rows
from givens.datasets import MixtureSample, make_spherical_mixture
from givens.mixtures.em import EM, Mixture


@parametrize_with_checks([SphericalMixture(), SphericalMixture(2), SphericalMixture(2, variance="distinct")])
def test_scikit_learn_checks(estimator: SphericalMixture, check: object) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def data() -> MixtureSample:
    return make_spherical_mixture(
        9000,
        n_components=4,
        n_features=7,
        variances=[0.5, 1.0, 1.5, 1.0],
        weights=[0.4, 0.3, 0.2, 0.1],
        scale=4.0,
        random_state=0,
    )


def parameters(model: SphericalMixture) -> tuple[np.ndarray, ...]:
    return model.weights_, model.means_, model.variances_


def assert_bits(one: SphericalMixture, two: SphericalMixture) -> None:
    for a, b in zip(parameters(one), parameters(two)):
        np.testing.assert_array_equal(a, b)


def assert_near(one: SphericalMixture, two: SphericalMixture) -> None:
    """Equal but for the rounding of sums over other batches, which a fit can enlarge."""
    for a, b in zip(parameters(one), parameters(two)):
        np.testing.assert_allclose(a, b, rtol=1e-8)


@pytest.mark.parametrize("max_iter", [0, 50])
def test_it_finds_the_mixture(data: MixtureSample, max_iter: int) -> None:
    model = SphericalMixture(4, variance="distinct", max_iter=max_iter).fit(data.X)
    order = [int(np.argmin(np.sum((model.means_ - mean) ** 2, axis=1))) for mean in data.means]
    assert sorted(order) == [0, 1, 2, 3]
    within = 0.25 if max_iter == 0 else 0.12
    np.testing.assert_allclose(model.weights_[order], data.weights, atol=within / 3)
    np.testing.assert_allclose(model.means_[order], data.means, atol=2 * within)
    np.testing.assert_allclose(model.variances_[order], data.variances, atol=within)
    assert model.converged_
    assert model.result_.converged
    expected = np.linalg.eigvalsh(np.cov(data.X.T, bias=True))[::-1]
    np.testing.assert_allclose(model.eigenvalues_, expected, rtol=1e-9)


@pytest.mark.parametrize("variance", ["common", "distinct"])
def test_one_thread_and_two_give_the_same_bits(data: MixtureSample, variance: str) -> None:
    one, two = (SphericalMixture(4, variance=variance, threads=t).fit(data.X) for t in (1, 2))
    assert_bits(one, two)
    np.testing.assert_array_equal(one.predict_proba(data.X), two.predict_proba(data.X))


def test_merging_refuses_what_does_not_belong(data: MixtureSample) -> None:
    one = SphericalMixture(4, basis_samples=500).partial_fit(data.X)
    with pytest.raises(ValueError, match="different bases"):
        one.merge(SphericalMixture(4, basis_samples=500).partial_fit(data.X[1:]))
    with pytest.raises(NotFittedError, match="give partial_fit 2000 samples first"):
        SphericalMixture(4).partial_fit(data.X[:100]).sibling()
    with pytest.raises(NotFittedError, match="no data yet"):
        _ = one.sibling().means_


@pytest.mark.parametrize("scale", [2.0**-700, 1e-200, 1e-80, 1e80, 1e200, 2.0**700])
@pytest.mark.parametrize("features", [7, 3])
def test_units_do_not_matter(data: MixtureSample, scale: float, features: int) -> None:
    """The squares of some such data are 0 or infinite: everything is computed in another unit."""
    X = data.X[:, :features]
    here, there = SphericalMixture(3).fit(X), SphericalMixture(3).fit(X * scale)
    np.testing.assert_allclose(there.means_ / scale, here.means_, rtol=1e-6)
    np.testing.assert_allclose(there.predict_proba(X * scale), here.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(
        there.score_samples(X * scale), here.score_samples(X) - features * np.log(scale), rtol=1e-7
    )
    np.testing.assert_allclose(there.lower_bound_, here.lower_bound_ - features * np.log(scale), rtol=1e-8)
    if 1e-100 < scale < 1e100:
        np.testing.assert_allclose(there.variances_ / scale**2, here.variances_, rtol=1e-6)
    else:
        np.testing.assert_array_equal(there.variances_, 0.0 if scale < 1 else np.inf)
    drawn, _ = there.sample(50)
    np.testing.assert_allclose(drawn / scale, here.sample(50)[0], rtol=1e-5)


def test_rows_that_outgrow_the_first_are_refused(data: MixtureSample) -> None:
    with pytest.raises(ValueError, match="some rows are too large beside the first"):
        SphericalMixture(2).fit([data.X, data.X * 1e200])


@pytest.mark.parametrize("shape", [(9000, 7), (60, 90)])
def test_bits_do_not_depend_on_the_order_in_memory(data: MixtureSample, shape: tuple[int, int]) -> None:
    X = np.resize(data.X, shape) + np.random.default_rng(0).standard_normal(shape)
    one, two = SphericalMixture(3).fit(X), SphericalMixture(3).fit(np.asfortranarray(X))
    assert_bits(one, two)
    np.testing.assert_array_equal(one.score_samples(X), one.score_samples(np.asfortranarray(X)))
    streams = [SphericalMixture(3).partial_fit(order(X)) for order in (np.asarray, np.asfortranarray)]
    assert_bits(*streams)


def wide(rows: int, features: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    means = 1.5 * rng.standard_normal((3, features))
    y = rng.integers(3, size=rows)
    return means[y] + rng.uniform(0.5, 1.5, 3)[y, None] * rng.standard_normal((rows, features)) + 7.0


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("variance", ["common", "distinct"])
@pytest.mark.parametrize("max_iter", [0, 8])
@pytest.mark.parametrize("unit", [1.0, 1e-80])
def test_fewer_rows_than_features_are_fitted_as_in_all_features(
    variance: str, max_iter: int, unit: float
) -> None:
    """The coordinates of the rows' span, against the covariance of all features."""
    X = wide(40, 90) * unit
    model = SphericalMixture(3, variance=variance, max_iter=max_iter, tol=0.0).fit(X)
    direct = clone(model)._fit_passes(Rows(X), X)
    ours, theirs = np.argsort(model.weights_), np.argsort(direct.mixture.weights)
    np.testing.assert_allclose(model.weights_[ours], direct.mixture.weights[theirs], rtol=1e-7)
    means, variances = model.means_[ours] * direct.unit, model.variances_[ours] * direct.unit**2
    np.testing.assert_allclose(means, direct.mixture.means[theirs], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(variances, direct.mixture.variances[theirs], rtol=1e-7)
    np.testing.assert_allclose(
        model.eigenvalues_ * direct.unit**2, direct.spread, atol=1e-12 * direct.spread[0]
    )
    if max_iter:
        np.testing.assert_allclose(model.lower_bound_, direct.result.value, rtol=1e-9)
        np.testing.assert_allclose(model.score(X), model.lower_bound_, rtol=1e-9)


def elongated(seed: int) -> np.ndarray:
    """Clusters that are no spheres, and whose means lie in few directions: moments alone start EM badly."""
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((6, 3)) @ rng.standard_normal((3, 40))
    y = rng.choice(6, 300, p=rng.dirichlet(np.full(6, 2.0)))
    along = rng.standard_normal((300, 3)) * rng.uniform(0.2, 1.0, (6, 3))[y]
    return means[y] + along @ rng.standard_normal((3, 40)) + rng.standard_normal((300, 40))


def test_more_starts_are_more_likely_where_moments_mislead() -> None:
    gains = []
    for seed in range(6):
        X = elongated(seed)
        one, more = (
            SphericalMixture(6, variance="distinct", n_starts=n, max_iter=200).fit(X) for n in (1, 10)
        )
        gains.append(more.lower_bound_ - one.lower_bound_)
        assert more.weights_.min() * 300 >= 2 or "moments' solution" in more.result_.method
        assert ("k-means++" in more.result_.method) == (gains[-1] != 0)
    assert min(gains) >= 0
    assert np.count_nonzero(np.array(gains) > 0.1) >= 2


def test_a_component_of_one_row_is_no_better_start() -> None:
    """A far row alone has a variance of 0 and an unbounded likelihood: that is no better mixture."""
    rng = np.random.default_rng(0)
    X = np.concatenate(
        [rng.standard_normal((60, 8)) + 4, rng.standard_normal((60, 8)) - 4, np.full((1, 8), 60.0)]
    )
    model = SphericalMixture(2, variance="distinct").fit(X)
    rows = X - X.mean(axis=0)
    start = Mixture(np.array([0.5, 0.5]), rows[[0, 70]], np.array([50.0, 50.0]))
    found = EM(False, 1e-12, 1e-4).better_start(rows, 2, start, 20, 0)
    assert found is None or found.weights.min() * len(X) >= 2
    assert np.isfinite(model.score(X))


PLACES = np.array([[0.0, 0.0], [8.0, 1.0], [3.0, 7.0], [-6.0, 5.0], [-2.0, -9.0]])


@pytest.mark.parametrize(("k", "features"), [(3, 2), (5, 2), (3, 1)])
@pytest.mark.parametrize("variance", ["common", "distinct"])
@pytest.mark.parametrize("offset", [1e6])
def test_more_clusters_than_features_are_found_by_em(
    k: int, features: int, variance: str, offset: float
) -> None:
    rng = np.random.default_rng(0)
    y = rng.choice(k, 3000, p=np.arange(2, k + 2) / np.arange(2, k + 2).sum())
    X = PLACES[y, :features] + rng.standard_normal((3000, features)) + offset
    model = SphericalMixture(k, variance=variance).fit(X)
    order = [
        int(np.argmin(np.sum((model.means_ - offset - place) ** 2, axis=1)))
        for place in PLACES[:k, :features]
    ]
    assert sorted(order) == list(range(k))
    np.testing.assert_allclose(model.means_[order] - offset, PLACES[:k, :features], atol=0.2)
    np.testing.assert_allclose(model.weights_[order], np.bincount(y) / 3000, atol=0.02)
    np.testing.assert_allclose(model.variances_, 1.0, atol=0.2)
    assert model.converged_
    said = model.result_.method
    assert f"since moments cannot tell {k} components apart in these {features} features" in said
    assert said.endswith(" of EM from the best of 10 starts drawn as in k-means++")
    assert_near(model, clone(model).fit([X[:7], X[7:2000], X[2000:]]))
    one = SphericalMixture(k, variance=variance, n_starts=1).fit(X)
    assert one.result_.method.endswith("the best of 1 start drawn as in k-means++")
    assert one.score(X) <= model.score(X) + 1e-3


def test_the_method_is_said(data: MixtureSample) -> None:
    model = SphericalMixture(4).fit(data.X)
    said = model.result_.method
    assert said.startswith("moments up to the third, decomposed by ")
    assert said.endswith(f"; {model.n_iter_} steps of EM from the moments' solution")
    assert "EM" not in SphericalMixture(4, max_iter=0).fit(data.X).result_.method


@pytest.mark.parametrize("variance", ["common", "distinct"])
def test_scikit_learn_takes_over(data: MixtureSample, variance: str) -> None:
    model = SphericalMixture(4, variance=variance).fit(data.X)
    other = model.to_sklearn()
    assert isinstance(other, GaussianMixture)
    np.testing.assert_allclose(model.score_samples(data.X), other.score_samples(data.X), rtol=1e-10)
    np.testing.assert_allclose(model.predict_proba(data.X), other.predict_proba(data.X), atol=1e-10)
    np.testing.assert_array_equal(model.predict(data.X), other.predict(data.X))
    np.testing.assert_array_equal(clone(model).fit_predict(data.X), model.predict(data.X))
    np.testing.assert_allclose(model.score(data.X), other.score(data.X))
    # Three variances fewer, if there is but one.
    fewer = 3 if variance == "common" else 0
    np.testing.assert_allclose(model.aic(data.X), other.aic(data.X) - 2 * fewer)
    np.testing.assert_allclose(model.bic(data.X), other.bic(data.X) - np.log(9000) * fewer)


def test_a_stream_cannot_be_asked_for_more_components_than_its_axes_hold(data: MixtureSample) -> None:
    model = SphericalMixture(2).partial_fit(data.X).set_params(n_components=6)
    with pytest.raises(ValueError, match="kept on 4 axes, too few for n_components=6"):
        _ = model.means_


class TestHostileData:
    def test_more_components_than_features_need_em(self) -> None:
        X = np.random.default_rng(0).standard_normal((50, 3))
        for use in (SphericalMixture(5, max_iter=0).fit, SphericalMixture(5).partial_fit):
            with pytest.raises(ValueError, match="n_components=5 is more than n_features=3: moments tell"):
                use(X)
        with pytest.raises(ValueError, match="n_samples=4 rows are too few for n_components=5"):
            SphericalMixture(5).fit(X[:4])
        with pytest.raises(ValueError, match="all rows are equal"):
            SphericalMixture(5).fit(np.ones((50, 3)))

    def test_equal_rows(self) -> None:
        for k in (1, 2):
            with pytest.raises(ValueError, match="all rows are equal"):
                SphericalMixture(k).fit(np.full((30, 3), 0.1))

    def test_rank_deficient_rows_name_the_eigenvalues(self) -> None:
        X = np.random.default_rng(0).standard_normal((100, 2)) @ np.ones((2, 5))
        with pytest.raises(
            ValueError, match=r"4 components need means that differ in 3 directions.*eigenvalues"
        ):
            SphericalMixture(4, max_iter=0).fit(X)
        said = SphericalMixture(4).fit(X).result_.method
        assert "since moments cannot tell 4 components apart in these 5 features" in said

    def test_a_single_cluster_has_a_defined_answer(self) -> None:
        X = np.random.default_rng(0).standard_normal((5000, 4))
        model = SphericalMixture(3).fit(X)
        assert np.all(np.isfinite(model.means_))
        np.testing.assert_allclose(model.weights_.sum(), 1)
        np.testing.assert_allclose(model.weights_ @ model.means_, X.mean(axis=0), atol=0.05)
        assert np.all(model.variances_ > 0.5)

    def test_rows_on_a_few_points_are_told_apart(self) -> None:
        points = np.array([[0.0, 0, 0, 0], [3, 0, 0, 0], [0, 4, 0, 0]])
        y = np.repeat([0, 1, 2], [20, 30, 50])
        model = SphericalMixture(3).fit(points[y])
        assert normalized_mutual_info_score(y, model.predict(points[y])) == 1.0
        assert np.all(model.variances_ > 0)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"n_components": 0}, "n_components must be a whole number of at least 1, got 0"),
            ({"n_components": 2.5}, "n_components must be a whole number"),
            ({"max_iter": -1}, "max_iter must be a whole number of at least 0"),
            ({"variance": "full"}, "variance must be one of 'common', 'distinct', got 'full'"),
            ({"n_starts": 0}, "n_starts must be a whole number of at least 1, got 0"),
            ({"tol": -1.0}, "tol must be a number of at least 0"),
            ({"basis_samples": 0}, "basis_samples must be a whole number of at least 1"),
            ({"threads": 0}, "threads must be a whole number from 1 to 1024"),
        ],
    )
    def test_bad_parameters(self, options: dict, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            SphericalMixture(**{"n_components": 2, **options}).fit(
                np.random.default_rng(0).standard_normal((50, 3))
            )
