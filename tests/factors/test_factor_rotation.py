"""`FactorRotation`: its criteria, its maxima, its certificate, and scikit-learn's contract."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import NMF, PCA, FactorAnalysis, IncrementalPCA, TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from givens import FactorRotation, RotatedPCA, minimize
from givens.factors import congruence
from givens.factors.factor_rotation import KAPPAS, kappa_of
from givens.objectives import Columns, Orthomax
from givens.rotations import random_orthogonal
from tests.factors.conftest import structured, unstructured
from tests.oracles.values import orthomax

FAMILY = (*KAPPAS, 0.25)


def plane(theta):
    return np.array([[np.cos(theta), -np.sin(theta)], [np.sin(theta), np.cos(theta)]])


@pytest.mark.filterwarnings(
    "ignore:all loadings of variable", "ignore:one factor has nothing", "ignore:every column of X"
)
# Some of the checks compare fits to 1e-7, which is less than the default tolerance.
@parametrize_with_checks([FactorRotation(), RotatedPCA(tol=1e-10)])
def test_contract(estimator, check):
    check(estimator)


def test_kappa_of_every_method():
    # Crawford and Ferguson (1970), table 1, times p: 0, 1/p, m/(2p), (m − 1)/(p + m − 2), 1.
    found = [
        kappa_of(method, 24, 4) for method in ("quartimax", "varimax", "equamax", "parsimax", "parsimony")
    ]
    assert found == [0.0, 1.0, 2.0, 24 * 3 / 26, 24.0]
    assert kappa_of("biquartimax", 24, 4) == 0.5
    assert kappa_of(3, 24, 4) == 3.0


@pytest.mark.parametrize("method", FAMILY)
def test_no_pair_gains_more_than_the_certificate_says(method):
    L = unstructured(5)[:, :4]
    kappa = kappa_of(method, *L.shape)
    model = FactorRotation(method, normalize=False).fit(L)
    assert 0 <= model.certificate_ <= 1e-12 * np.sum(L**4)
    # What the best angle of a fine grid gains, over all pairs of what was found.
    found, gains = model.unrotated_loadings_ @ model.rotation_, []
    for i in range(4):
        for j in range(i + 1, 4):
            pair = found[:, [i, j]]
            values = [orthomax(pair @ plane(theta), kappa) for theta in np.linspace(0, np.pi / 2, 2001)]
            gains.append(max(values) - values[0])
    assert max(gains) <= model.certificate_ + 1e-12 * np.sum(L**4)
    assert model.criterion_ == pytest.approx(orthomax(found, kappa), rel=1e-12)


@pytest.mark.parametrize("method", ["varimax", "quartimax", "equamax"])
def test_one_search_finds_the_best_of_ten_starts(method):
    missed = 0
    for seed in range(22):
        L = unstructured(seed)
        model = FactorRotation(method, normalize=False).fit(L)
        objective = Columns(L, Orthomax(model.kappa_))
        ten = minimize(objective, n_starts=10, random_state=seed, tol=1e-6)
        assert model.criterion_ >= ten.value - 1e-8 * np.sum(L**4), seed
        single = minimize(objective, random_orthogonal(L.shape[1], np.random.default_rng(seed)))
        missed += single.value < model.criterion_ - 1e-6 * np.sum(L**4)
    assert missed > 0  # else there would be nothing to find


def test_more_searches_are_never_worse():
    L = np.random.default_rng(7).standard_normal((90, 18))
    values = [FactorRotation("quartimax", n_starts=k).fit(L).criterion_ for k in (1, 4)]
    assert values[1] >= values[0] - 1e-9 * abs(values[0])


@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(4, 40),
    columns=st.integers(2, 6),
    method=st.sampled_from(FAMILY),
    normalize=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_never_below_the_start_and_at_a_maximum_of_every_pair(rows, columns, method, normalize, seed):
    L = structured(max(rows, 2 * columns), columns, seed, noise=0.05)
    model = FactorRotation(method, normalize=normalize).fit(L)
    A = L / np.linalg.norm(L, axis=1, keepdims=True) if normalize else L
    scale = np.sum(A**4)
    assert model.criterion_ >= orthomax(A, model.kappa_) - 1e-10 * scale
    assert model.criterion_ == pytest.approx(orthomax(A @ model.rotation_, model.kappa_), abs=1e-12 * scale)
    assert model.certificate_ <= 1e-9 * scale
    found = model.loadings_
    np.testing.assert_allclose(model.rotation_.T @ model.rotation_, np.eye(columns), atol=1e-13)
    np.testing.assert_allclose(found, L @ model.rotation_, atol=1e-12)
    np.testing.assert_array_equal(model.components_, found.T)
    np.testing.assert_allclose(model.explained_variance_, np.sum(found**2, axis=0))
    assert (np.diff(model.explained_variance_) <= 0).all()
    assert (found.max(axis=0) >= -found.min(axis=0)).all()


def test_variables_in_another_order_and_with_other_signs_get_the_same_loadings(tests_of_24):
    rng = np.random.default_rng(0)
    order, signs = rng.permutation(24), rng.choice([-1.0, 1.0], 24)
    one = FactorRotation().fit(tests_of_24).loadings_
    two = FactorRotation().fit(tests_of_24[order] * signs[:, None]).loadings_
    np.testing.assert_allclose(np.abs(two), np.abs(one[order]), atol=1e-7)


@pytest.mark.parametrize("scale", [1e-150, 1e-40, 1e40, 1e150])
@pytest.mark.parametrize("normalize", [True, False])
def test_scaled_loadings(scale, normalize, tests_of_24):
    one = FactorRotation(normalize=normalize).fit(tests_of_24)
    with np.errstate(over="ignore", under="ignore"):
        two = FactorRotation(normalize=normalize).fit(tests_of_24 * scale)
    np.testing.assert_allclose(two.loadings_ / scale, one.loadings_, atol=1e-7)


def test_rank_deficient_and_single_precision_loadings():
    L = structured(20, 4, seed=1)
    L[:, 3] = L[:, 0]
    model = FactorRotation(normalize=False).fit(L)
    assert model.result_.converged
    single = FactorRotation().fit(structured(20, 4, seed=2).astype(np.float32))
    double = FactorRotation().fit(structured(20, 4, seed=2))
    np.testing.assert_allclose(single.loadings_, double.loadings_, atol=1e-5)


def test_same_bits_for_any_number_of_threads():
    for shape in ((40, 6), (3000, 25)):
        L = structured(*shape, seed=4)
        one, two = (FactorRotation(threads=threads).fit(L).loadings_ for threads in (1, 2))
        assert np.array_equal(one, two)


@pytest.mark.parametrize("method", ["varimax", "quartimax"])
@pytest.mark.parametrize("scale", [1.0, 1e-70, 1e70])
def test_of_very_many_variables(method, scale):
    """A field on a line, of which a sample comes first."""
    rng = np.random.default_rng(3)
    grid = np.linspace(0, 1, 9001)[:, None]
    bumps = np.exp(-((grid - rng.uniform(0, 1, 32)) ** 2) / 0.002) + 0.05 * rng.standard_normal((9001, 32))
    L = scale * bumps @ np.linalg.qr(rng.standard_normal((32, 32)))[0]
    one, two = (FactorRotation(method, threads=threads).fit(L) for threads in (1, 2))
    assert np.array_equal(one.loadings_, two.loadings_)
    assert one.criterion_ == two.criterion_
    assert "samples" in [phase.name for phase in one.result_.phases]
    normal = L / np.linalg.norm(L / scale, axis=1, keepdims=True) / scale
    kappa = kappa_of(method, *L.shape)
    assert one.criterion_ == pytest.approx(orthomax(normal @ one.rotation_, kappa), rel=1e-12)
    assert one.criterion_ > orthomax(normal, kappa)
    assert 0 <= one.certificate_ <= 1e-10 * one.criterion_


def test_statsmodels_and_factor_analyzer_reach_no_more():
    rotate_factors = pytest.importorskip("statsmodels.multivariate.factor_rotation").rotate_factors
    rotator = pytest.importorskip("factor_analyzer").Rotator
    for seed, shape in enumerate([(6, 2), (12, 3), (30, 5)]):
        for L in (structured(*shape, seed=seed), np.random.default_rng(seed).standard_normal(shape)):
            for method in ("varimax", "quartimax", "equamax", "parsimax", "parsimony"):
                model = FactorRotation(method, normalize=False).fit(L)
                # statsmodels calls γ = 1/p "equamax"; that of the literature, m/2, has to be given as a number.
                theirs = rotate_factors(L, "CF", model.kappa_ / len(L), "orthogonal", max_tries=1000)[0]
                assert model.criterion_ >= orthomax(theirs, model.kappa_) - 1e-9 * np.sum(L**4)
            model = FactorRotation("varimax", normalize=True).fit(L)
            theirs = rotator(method="varimax", normalize=True, max_iter=5000, tol=1e-12).fit_transform(L)
            lengths = np.linalg.norm(L, axis=1, keepdims=True)
            assert model.criterion_ >= orthomax(theirs / lengths, 1.0) - 1e-9


class TestDecompositions:
    X = load_wine().data

    def standardised(self):
        return StandardScaler().fit_transform(self.X)

    @pytest.mark.parametrize("whiten", [False, True])
    def test_pca(self, whiten):
        X = self.standardised()
        pca = PCA(4, whiten=whiten).fit(X)
        model = FactorRotation().fit(pca)
        # Loadings are covariances of the variables with the scores, before and after the rotation.
        scores = model.transform(pca.transform(X))
        np.testing.assert_allclose(np.cov(scores.T), np.eye(4), atol=1e-10)
        covariances = (X - X.mean(axis=0)).T @ scores / (len(X) - 1)
        np.testing.assert_allclose(covariances, model.loadings_, atol=1e-10)
        np.testing.assert_allclose(
            scores @ model.loadings_.T + pca.mean_, pca.inverse_transform(pca.transform(X)), atol=1e-10
        )
        assert model.explained_variance_.sum() == pytest.approx(pca.explained_variance_.sum())
        assert model.explained_variance_ratio_.sum() == pytest.approx(pca.explained_variance_ratio_.sum())
        np.testing.assert_allclose(model.inverse_transform(scores), pca.transform(X), atol=1e-10)

    def test_factor_analysis_and_its_own_varimax(self):
        X = self.standardised()
        plain = FactorAnalysis(3, tol=1e-8, max_iter=5000).fit(X)
        theirs = FactorAnalysis(3, tol=1e-8, max_iter=5000, rotation="varimax").fit(X)
        model = FactorRotation("varimax", normalize=False).fit(plain)
        assert model.criterion_ >= orthomax(theirs.components_.T, 1.0) - 1e-12
        np.testing.assert_allclose(
            np.abs(congruence(theirs.components_.T, model.loadings_)).max(axis=1), 1.0, atol=1e-4
        )
        np.testing.assert_allclose(model.loadings_, plain.components_.T @ model.rotation_, atol=1e-12)
        np.testing.assert_allclose(
            model.transform(plain.transform(X)), plain.transform(X) @ model.rotation_, atol=1e-12
        )
        total = np.sum(plain.components_**2) + plain.noise_variance_.sum()
        assert model.explained_variance_ratio_.sum() == pytest.approx(np.sum(plain.components_**2) / total)

    def test_truncated_svd_and_incremental_pca(self):
        X = self.standardised()
        # TruncatedSVD's variances have the divisor n.
        for decomposition, ddof in (
            (TruncatedSVD(3, random_state=0), 0),
            (IncrementalPCA(3, batch_size=len(X)), 1),
        ):
            fitted = decomposition.fit(X)
            model = FactorRotation().fit(fitted)
            scores = model.transform(fitted.transform(X))
            np.testing.assert_allclose(np.cov(scores.T, ddof=ddof), np.eye(3), atol=1e-6)

    def test_a_pca_of_deficient_rank(self):
        X = np.column_stack((self.standardised()[:, :3], np.zeros((len(self.X), 1))))
        X[:, 3] = X[:, 0] + X[:, 1]
        model = FactorRotation().fit(PCA(4).fit(X))
        scores = model.transform(PCA(4).fit_transform(X))
        assert np.isfinite(scores).all()
        assert np.abs(scores).max() < 10
        np.testing.assert_allclose(scores @ model.loadings_.T + X.mean(axis=0), X, atol=1e-9)

    def test_a_step_behind_the_decomposition_in_a_pipeline(self):
        pca = PCA(3)
        pipeline = Pipeline(
            [("scale", StandardScaler()), ("pca", pca), ("rotate", FactorRotation(decomposition=pca))]
        )
        scores = pipeline.fit_transform(self.X)
        expected = RotatedPCA(3).fit(self.standardised())
        np.testing.assert_allclose(np.abs(scores), np.abs(expected.transform(self.standardised())), atol=1e-6)
        np.testing.assert_allclose(pipeline["rotate"].loadings_, expected.loadings_, atol=1e-6)
        with pytest.raises(NotFittedError, match="must be the very object that is the step before"):
            clone(pipeline).fit(self.X)

    def test_scores_are_not_taken_for_loadings_silently(self):
        with pytest.warns(UserWarning, match="every column of X has mean zero, as scores have"):
            make_pipeline(PCA(3), FactorRotation()).fit(self.standardised())

    def test_what_has_no_loadings(self):
        with pytest.raises(NotFittedError, match="not fitted"):
            FactorRotation().fit(PCA(2))
        with pytest.raises(TypeError, match="NMF has no loadings to rotate"):
            FactorRotation().fit(NMF(2, max_iter=2000).fit(np.abs(self.standardised())))
        with pytest.raises(TypeError, match="StandardScaler has no loadings"):
            FactorRotation().fit(StandardScaler().fit(self.X))
        sparse = PCA(2).fit(self.X)
        sparse.components_ = np.ones_like(sparse.components_)
        with pytest.raises(TypeError, match="are not orthonormal"):
            FactorRotation().fit(sparse)
        with pytest.raises(ValueError, match="X has 2 columns, but decomposition has 3 components"):
            FactorRotation(decomposition=PCA(3).fit(self.X)).fit(self.X[:, :2])


class TestRotatedPCA:
    X = load_iris(as_frame=True).data

    def test_it_is_pca_and_rotation(self):
        model = RotatedPCA(2).fit(self.X)
        pca = PCA(2).fit(self.X)
        rotation = FactorRotation().fit(pca)
        np.testing.assert_allclose(model.loadings_, rotation.loadings_)
        np.testing.assert_allclose(model.transform(self.X), rotation.transform(pca.transform(self.X)))
        np.testing.assert_allclose(
            model.inverse_transform(model.transform(self.X)), pca.inverse_transform(pca.transform(self.X))
        )
        assert np.sum(model.singular_values_**2) == pytest.approx(np.sum(pca.singular_values_**2))
        parts = [
            np.linalg.norm(np.outer(*part)) for part in zip(model.transform(self.X).T, model.components_)
        ]
        np.testing.assert_allclose(model.singular_values_, parts)
        assert model.noise_variance_ == pytest.approx(pca.noise_variance_)
        np.testing.assert_allclose(model.get_covariance(), pca.get_covariance())

    @pytest.mark.parametrize("shape", [(200, 4), (8, 12)])
    def test_by_default_all_components_with_variance(self, rng, shape):
        X = rng.standard_normal(shape)
        X[:, 0] = X[:, 1] - X[:, 2]
        model = RotatedPCA().fit(X)
        assert model.n_components_ == min(shape[0] - 1, shape[1] - 1)
        np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-9)

    def test_scaled_features_have_correlations_as_loadings(self):
        model = RotatedPCA(2, scale=True).fit(self.X)
        scores = model.transform(self.X)
        expected = np.corrcoef(np.column_stack((self.X, scores)).T)[:4, 4:]
        np.testing.assert_allclose(model.loadings_, expected, atol=1e-10)
        back = model.inverse_transform(scores)
        assert np.mean((back - self.X.to_numpy()) ** 2) < 0.05 * self.X.to_numpy().var()


class TestPandas:
    def test_names_of_variables_and_factors(self):
        frame = pandas.DataFrame(
            structured(6, 2, seed=0), index=[f"item {k}" for k in range(6)], columns=["a", "b"]
        )
        model = FactorRotation().fit(frame)
        assert list(model.variable_names_in_) == list(frame.index)
        assert list(model.feature_names_in_) == ["a", "b"]
        assert list(model.to_pandas().index) == list(frame.index)
        assert list(model.get_feature_names_out()) == ["factorrotation0", "factorrotation1"]
        turned = model.set_output(transform="pandas").transform(frame)
        assert list(turned.index) == list(frame.index)
        np.testing.assert_allclose(turned.to_numpy(), model.loadings_)
        model.fit(frame.to_numpy())
        assert not hasattr(model, "variable_names_in_")

    def test_names_from_a_pca_and_frames_of_scores(self):
        X = load_iris(as_frame=True).data
        pca = PCA(2).set_output(transform="pandas").fit(X)
        model = FactorRotation().set_output(transform="pandas").fit(pca)
        assert list(model.variable_names_in_) == list(X.columns)
        assert list(model.transform(pca.transform(X)).columns) == ["factorrotation0", "factorrotation1"]
        assert model.to_pandas().shape == (4, 2)


class TestTarget:
    def test_towards_a_target(self):
        target = structured(20, 3, seed=5)
        L = target @ random_orthogonal(3, np.random.default_rng(0))
        model = FactorRotation("target", target=target).fit(L)
        np.testing.assert_allclose(model.loadings_, target, atol=1e-12)
        assert model.criterion_ == pytest.approx(0.0, abs=1e-20)
        assert model.result_ is None
        np.testing.assert_allclose(model.transform(L), target, atol=1e-12)

    def test_refusals(self):
        L = structured(6, 2, seed=0)
        with pytest.raises(ValueError, match="needs a target"):
            FactorRotation("target").fit(L)
        with pytest.raises(ValueError, match=r"target must have the shape of the loadings, \(6, 2\)"):
            FactorRotation("target", target=np.ones((6, 3))).fit(L)
        with pytest.raises(ValueError, match="must be of the same variables, got 6 and 5 rows"):
            FactorRotation("target", target=np.ones((5, 2))).fit(L)


class TestBadInput:
    def test_a_zero_row_under_kaisers_normalisation(self):
        L = structured(6, 2, seed=0)
        L[3] = 0
        with pytest.warns(
            UserWarning, match="all loadings of variable 3 are zero, so Kaiser's normalisation cannot"
        ):
            model = FactorRotation().fit(L)
        assert np.array_equal(model.loadings_[3], [0.0, 0.0])
        assert model.criterion_ > 0
        frame = pandas.DataFrame(L, index=list("abcdef"), columns=["f1", "f2"])
        with pytest.warns(UserWarning, match=r"variable 3 \('d'\) are zero"):
            FactorRotation().fit(frame)
        assert np.array_equal(FactorRotation(normalize=False).fit(L).loadings_[3], [0.0, 0.0])

    def test_one_factor(self):
        with pytest.warns(UserWarning, match="one factor has nothing to rotate with"):
            model = FactorRotation().fit([[-0.5], [-0.7], [0.1]])
        np.testing.assert_array_equal(model.loadings_, [[0.5], [0.7], [-0.1]])
        assert model.certificate_ == 0.0

    @pytest.mark.parametrize(
        ("X", "sentence"),
        [
            (np.array([[1.0, 2.0], [np.nan, 1.0], [1.0, 1.0]]), "contains NaN"),
            (np.ones((3, 2)) * 1j, "Complex data not supported"),
            (np.ones((2, 5)), "5 factors of 2 variables are no loadings.*pass the transpose"),
            (np.ones(5), "Expected 2D array"),
            (np.ones((1, 2)), "minimum of 2 is required"),
            ([["a", "b"], ["c", "d"]], "could not convert string"),
        ],
    )
    def test_what_is_no_loading_matrix(self, X, sentence):
        with pytest.raises(ValueError, match=sentence):
            FactorRotation().fit(X)

    @pytest.mark.parametrize(
        ("parameters", "sentence"),
        [
            ({"method": "verimax"}, "method must be one of 'quartimax'"),
            ({"method": np.inf}, "or a finite number"),
            ({"method": True}, "or a finite number"),
            ({"n_starts": 0}, "n_starts must be a whole number of at least 1"),
            ({"tol": -1.0}, "tol must be a number of at least 0"),
            ({"max_iter": 1.5}, "max_iter must be a whole number"),
            ({"threads": 0}, "threads must be a whole number"),
            ({"random_state": "x"}, "random_state must be"),
        ],
    )
    def test_parameters(self, parameters, sentence):
        L = structured(12, 3, seed=0)
        model = FactorRotation().fit(L)
        before = dict(vars(model))
        with pytest.raises(ValueError, match=sentence):
            model.set_params(**parameters).fit(L[:, :2])
        # A refused fit leaves the model as it was.
        after = vars(model)
        assert all(after[name] is before[name] for name in before if name.endswith("_"))

    def test_scores_of_another_number_of_factors(self):
        model = FactorRotation().fit(structured(6, 2, seed=0))
        with pytest.raises(ValueError, match="X has 3 features, but FactorRotation is expecting 2"):
            model.transform(np.ones((4, 3)))
        with pytest.raises(NotFittedError):
            FactorRotation().transform(np.ones((4, 3)))


@pytest.mark.parametrize("scale", [False, True])
def test_a_constant_feature_has_no_say_in_rotated_pca(scale, rng):
    # The criterion of varimax counts the variables, that of quartimax does not.
    X = rng.standard_normal((50, 6)) @ rng.standard_normal((6, 6))
    with pytest.warns(UserWarning, match="all loadings of variable 6 are zero"):
        model = RotatedPCA(3, "quartimax", scale=scale).fit(np.hstack([X, np.full((50, 1), 0.1)]))
    np.testing.assert_array_equal(model.loadings_[6], 0.0)
    np.testing.assert_allclose(
        model.loadings_[:6], RotatedPCA(3, "quartimax", scale=scale).fit(X).loadings_, atol=1e-7
    )


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize(
    ("shape", "solver"), [((60, 5), "auto"), ((40, 30), "auto"), ((40, 30), "randomized")]
)
def test_weights_of_rotated_pca_are_repetitions(rng, shape, solver, scale):
    X = rng.standard_normal(shape) @ rng.standard_normal((shape[1], shape[1])) + 100.0
    weights = rng.integers(0, 4, len(X))
    model = RotatedPCA(3, scale=scale, svd_solver=solver)
    weighted = clone(model).fit(X, sample_weight=weights)
    repeated = clone(model).fit(np.repeat(X, weights, axis=0))
    for name in ("loadings_", "singular_values_", "explained_variance_ratio_", "mean_"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-6)
    with pytest.raises(ValueError, match="sum to more than 1"):
        model.fit(X, sample_weight=np.full(len(X), 1e-3))


@pytest.mark.parametrize("n_components", [1, 3, 5])
@pytest.mark.filterwarnings("ignore:one factor has nothing to rotate with")
def test_the_score_is_that_of_pca_which_no_rotation_changes(rng, n_components):
    X = rng.standard_normal((80, 5)) @ rng.standard_normal((5, 5)) + 3
    train, test = X[:50], X[50:]
    pca, model = PCA(n_components).fit(train), RotatedPCA(n_components).fit(train)
    np.testing.assert_allclose(model.score_samples(test), pca.score_samples(test))
    np.testing.assert_allclose(model.score(test), pca.score(test))
    chunked = pytest.importorskip("dask.array").from_array(train, chunks=(20, -1))
    lazy = RotatedPCA(n_components).fit(chunked)
    np.testing.assert_allclose(lazy.score_samples(test), pca.score_samples(test), rtol=1e-6)
    np.testing.assert_allclose(lazy.score(chunked), pca.score(train), rtol=1e-6)


def test_the_score_of_scaled_features_is_the_density_of_the_data(rng):
    X = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 3)) * [1.0, 10.0, 0.1]
    # With all components the model is a Gaussian with the covariance of the samples, scaled or not.
    expected = multivariate_normal(X.mean(axis=0), np.cov(X.T)).logpdf(X)
    for scale in (False, True):
        model = RotatedPCA(scale=scale).fit(X)
        np.testing.assert_allclose(model.score_samples(X), expected)
        np.testing.assert_allclose(model.get_covariance(), np.cov(X.T))
