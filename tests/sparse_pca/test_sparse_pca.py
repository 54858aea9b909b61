"""SparsePCA: scikit-learn's contract, PCA as its limit, exact counts, hostile input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import subspace_angles
from sklearn.datasets import load_breast_cancer
from sklearn.utils.estimator_checks import check_estimator

from givens import SparsePCA, metrics, sparse_pca_path
from givens.data.moments import Moments, moments_of
from givens.datasets import pitprops, sparse_modules
from givens.numerics import gram
from givens.sparse_pca import centred_data as data_module
from givens.sparse_pca.centred_data import CentredData
from tests.memory import most_bytes
from tests.oracles.breakpoints import breakpoint_search


@pytest.fixture
def X():
    return sparse_modules(30, 120, n_modules=3, module_size=8, random_state=3).X


def recorded_widths(monkeypatch):
    """How many features are taken from the data, each time that some are."""
    factor, products, widths = CentredData.factor, CentredData.products, []

    def recorded(take):
        def record(self, features, *rest, **options):
            widths.append(len(features))
            return take(self, features, *rest, **options)

        return record

    monkeypatch.setattr(CentredData, "factor", recorded(factor))
    monkeypatch.setattr(CentredData, "products", recorded(products))
    return widths


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", [SparsePCA(), SparsePCA(n_components=1, n_nonzero=1)], ids=["all", "one"])
def test_scikit_learns_own_checks(model):
    # With the default number of components there are as many as samples, and repeating samples makes more.
    default = "repeated samples are more samples, and there are as many components by default"
    names = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
    expected = dict.fromkeys(names, default) if model.n_components is None else {}
    outcomes = check_estimator(model, on_fail=None, expected_failed_checks=expected)
    assert [outcome["check_name"] for outcome in outcomes if outcome["status"] == "failed"] == []


@pytest.mark.parametrize("m", [1, 4])
def test_without_a_threshold_it_is_pca(X, m):
    model = SparsePCA(m, threshold=0.0, tol=1e-7).fit(X)
    Xc = X - X.mean(axis=0)
    _, sizes, Vt = np.linalg.svd(Xc, full_matrices=False)
    assert subspace_angles(model.components_.T, Vt[:m].T).max() < 1e-8
    np.testing.assert_allclose(np.abs(np.sum(model.components_ * Vt[:m], axis=1)), 1.0, atol=1e-8)
    np.testing.assert_allclose(model.explained_variance_, sizes[:m] ** 2 / 29, rtol=1e-9)
    assert model.score(X) == pytest.approx(np.sum(sizes[:m] ** 2) / np.sum(sizes**2))


@pytest.mark.parametrize("penalty", ["l1", "l0"])
@pytest.mark.parametrize("m", [3, None])
def test_what_is_fitted_is_what_the_metrics_say(X, penalty, m):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = SparsePCA(m, threshold=(penalty, 0.3)).fit(X)
    Z = model.components_
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1.0)
    assert np.all(Z[np.arange(len(Z)), np.argmax(np.abs(Z), axis=1)] > 0)
    np.testing.assert_allclose(
        model.explained_variance_, metrics.adjusted_variance(X, Z), rtol=1e-8, atol=1e-10
    )
    np.testing.assert_allclose(
        model.explained_variance_ratio_, model.explained_variance_ / metrics.total_variance(X)
    )
    np.testing.assert_array_equal(model.n_nonzero_, np.count_nonzero(Z, axis=1))
    projected = metrics.projected_variance(X, Z) / metrics.total_variance(X)
    assert model.projected_variance_ratio_ == pytest.approx(projected)
    assert model.score(X) == pytest.approx(projected)
    assert model.loading_overlap_ == pytest.approx(metrics.loading_overlap(Z))
    assert model.score_correlation_ == pytest.approx(metrics.score_correlation(X, Z))
    scores = model.transform(X)
    assert np.all(np.diff(np.sum(scores**2, axis=0)) <= 1e-9 * np.sum(scores**2))
    np.testing.assert_allclose(scores, (X - X.mean(axis=0)) @ Z.T, atol=1e-10)
    back = model.inverse_transform(scores)
    fitted = (X - X.mean(axis=0)) @ Z.T @ np.linalg.pinv(Z).T
    np.testing.assert_allclose(back - X.mean(axis=0), fitted, atol=1e-8)


def largest_norm(X):
    return np.linalg.norm(X - X.mean(axis=0), axis=0).max()


@pytest.mark.parametrize("m", [3, None])
def test_components_are_thresholded_and_the_value_is_the_formulas(X, m):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = SparsePCA(m, threshold=5.0 / largest_norm(X), refit=False).fit(X)
    Y = (X - X.mean(axis=0)).T @ model.result_.U
    value = np.sum(np.maximum(np.abs(Y) - 5.0, 0.0) ** 2)
    assert model.result_.value == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(model.gamma_, 5.0)
    S = np.sign(Y) * np.maximum(np.abs(Y) - 5.0, 0.0)
    some = S.any(axis=0)
    S = S[:, some] / np.linalg.norm(S[:, some], axis=0)
    match = np.abs(S.T @ model.components_.T)
    np.testing.assert_allclose(match.max(axis=1), 1.0)


def test_pitprops_best_single_components():
    best = [1, 1.954, 2.47533, 2.93748, 3.40615, 3.77096, 3.99619, 4.06861, 4.13865, 4.17264, 4.20828]
    best += [4.21825, 4.21863]
    table = pitprops()
    hits = 0
    for k, expected in enumerate(best, start=1):
        model = SparsePCA(1, n_nonzero=k, n_starts=20, random_state=0, threads=1)
        variance = model.fit_covariance(table.R, table.n_obs).explained_variance_[0]
        assert variance <= expected + 1e-5
        hits += variance >= expected - 1e-5
    assert hits >= 11


def test_pitprops_six_components_explain_what_zous_do():
    table = pitprops()
    model = SparsePCA(6, n_nonzero=[7, 4, 4, 1, 1, 1], threads=1).fit_covariance(table.R, table.n_obs)
    assert model.explained_variance_ratio_.sum() >= 0.758
    expected = metrics.adjusted_from_gram(model.components_ @ table.R @ model.components_.T)
    np.testing.assert_allclose(model.explained_variance_, expected, rtol=1e-8)


def test_a_covariance_gives_what_its_data_give(X):
    Xc = X - X.mean(axis=0)
    direct = SparsePCA(2, n_nonzero=8).fit(X)
    through = SparsePCA(2, n_nonzero=8).fit_covariance(Xc.T @ Xc / 29, 30)
    np.testing.assert_allclose(through.components_, direct.components_, atol=1e-6)
    np.testing.assert_allclose(through.explained_variance_, direct.explained_variance_, rtol=1e-6)


@pytest.mark.parametrize("factor", [2.0**-500, 2.0**500])
@pytest.mark.parametrize("asked", [{"threshold": 0.3}, {"n_nonzero": 6}, {"threshold": ("l0", 0.2)}])
def test_the_size_of_the_data_does_not_matter(X, factor, asked):
    plain = SparsePCA(3, **asked).fit(X)
    scaled = SparsePCA(3, **asked).fit(X * factor)
    np.testing.assert_array_equal(scaled.components_, plain.components_)
    np.testing.assert_allclose(scaled.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-12)
    assert scaled.score(X * factor) == pytest.approx(plain.score(X))


def test_float32_stays_float32(X):
    model = SparsePCA(3, threshold=0.3).fit(X.astype(np.float32))
    assert model.components_.dtype == np.float32
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    double = SparsePCA(3, threshold=0.3).fit(X)
    np.testing.assert_allclose(model.components_, double.components_, atol=1e-3)


def test_a_sparse_matrix_gives_the_same_and_is_screened_before_it_is_made_dense(rng, monkeypatch):
    X = rng.poisson(0.05, size=(40, 300)) * 1.0
    X[:, :20] += rng.poisson(3.0, size=(40, 20))
    expected = SparsePCA(3, threshold=0.5).fit(X)
    widths = recorded_widths(monkeypatch)
    for form in (sparse.csr_matrix, sparse.csc_array):
        model = SparsePCA(3, threshold=0.5).fit(form(X))
        np.testing.assert_allclose(model.components_, expected.components_, atol=1e-7)
        np.testing.assert_allclose(model.transform(form(X)), expected.transform(X), atol=1e-6)
        assert model.score(form(X)) == pytest.approx(expected.score(X))
    assert max(widths) < 100


def test_threads_do_not_change_the_bits(X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for m in (3, None):
            one, two = (SparsePCA(m, threshold=0.2, threads=t).fit(X).components_ for t in (1, 2))
            np.testing.assert_array_equal(one, two)


def test_standardised_features(X):
    model = SparsePCA(2, n_nonzero=10, scale=True).fit(X)
    standard = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    expected = SparsePCA(2, n_nonzero=10).fit(standard)
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-7)
    np.testing.assert_allclose(model.transform(X), expected.transform(standard), atol=1e-7)
    assert model.score(X) == pytest.approx(expected.score(standard))
    back = model.inverse_transform(model.transform(X))
    assert np.sum((back - X) ** 2 / X.var(axis=0)) < np.sum((X - X.mean(axis=0)) ** 2 / X.var(axis=0))


def tall(rng, n=400, d=60, density=0.1):
    """Counts with two groups of features that go together."""
    rate = np.full((n, d), density)
    rate[:, :10] += rng.gamma(0.3, 1.0, (n, 1))
    rate[:, 10:18] += rng.gamma(0.3, 1.0, (n, 1))
    return rng.poisson(rate) * rng.uniform(0.5, 2.0, d)


@pytest.mark.parametrize(
    "asked", [{"n_nonzero": [9, 7, 4]}, {"threshold": 0.3}, {"threshold": 0.2, "scale": True}], ids=str
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tall_sparse_data_give_what_a_dense_factor_gives(rng, monkeypatch, asked, dtype):
    X = tall(rng).astype(dtype)
    models = [
        SparsePCA(3, **asked).fit(form(X)) for form in (np.asarray, sparse.csr_matrix, sparse.csc_array)
    ]
    shuffled = sparse.csr_matrix(X)
    for start, stop in zip(shuffled.indptr, shuffled.indptr[1:]):
        shuffled.indices[start:stop] = shuffled.indices[start:stop][::-1].copy()
        shuffled.data[start:stop] = shuffled.data[start:stop][::-1].copy()
    shuffled.has_sorted_indices = False
    models.append(SparsePCA(3, **asked).fit(shuffled))
    # All samples, centred, as wide data have them.
    monkeypatch.setattr(CentredData, "factor", lambda self, features, *_, **__: self._all_samples(features))
    expected = SparsePCA(3, **asked).fit(X)
    for model in models:
        np.testing.assert_allclose(model.components_, expected.components_, atol=1e-6)
        np.testing.assert_allclose(
            model.explained_variance_ratio_,
            expected.explained_variance_ratio_,
            rtol=1e-6 if dtype == np.float32 else 1e-9,
        )


def test_tall_data_are_neither_copied_nor_made_dense(rng, monkeypatch):
    X = tall(rng, 6000, 50)
    blocks = []
    add, centred = gram.add_sparse, Moments._centred
    monkeypatch.setattr(gram, "add_sparse", lambda C, block: blocks.append(block.shape[0]) or add(C, block))

    def counted(self, rows, weights):
        if self.with_products:
            blocks.append(rows.shape[0])
        return centred(self, rows, weights)

    monkeypatch.setattr(Moments, "_centred", counted)
    monkeypatch.setattr(data_module, "CACHED_ENTRIES", 1000)
    monkeypatch.setattr(CentredData, "_all_samples", None)
    for form in (np.asarray, sparse.csr_matrix, lambda X: sparse.csr_matrix(X + 1)):
        blocks.clear()
        model = SparsePCA(3, n_nonzero=6).fit(form(X))
        assert len(blocks) > 5
        assert sum(blocks) == 6000
        assert max(blocks) < 1500
        np.testing.assert_allclose(
            model.explained_variance_, metrics.adjusted_variance(X, model.components_), rtol=1e-9
        )


def wide(rng, n=60, d=300):
    """More features than samples, of which one is nearly constant and far from zero, and one is constant."""
    X = tall(rng, n, d, 0.08)
    X[:, 20] = 1e4 + rng.standard_normal(n)
    X[:, 21] = 3.0
    return X


@pytest.mark.parametrize(
    "asked",
    [
        {"threshold": 0.2},
        {"threshold": ("l0", 0.1), "scale": True},
        {"threshold": 0.2, "refit": False},
        {"threshold": 0.98},
        {"n_nonzero": [9, 7, 4]},
        {"n_nonzero": 60, "scale": True},
        {"n_nonzero": 9, "n_starts": 3},
        {"n_nonzero": ("total", 30)},
    ],
    ids=str,
)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.filterwarnings("ignore:nothing of")
def test_wide_sparse_data_give_what_dense_data_give(rng, monkeypatch, asked, weighted):
    X = wide(rng)
    weights = rng.integers(1, 4, len(X)) if weighted else None
    expected = SparsePCA(3, random_state=0, **asked).fit(X, sample_weight=weights)
    monkeypatch.setattr(data_module, "DENSE_PART", 0)
    for most in (0, 2000):
        # Some columns of the data are taken as arrays, or all stay sparse.
        monkeypatch.setattr("givens.numerics.centred_sparse.DENSE_PART", most)
        for form in (sparse.csr_matrix, sparse.csc_array):
            model = SparsePCA(3, random_state=0, **asked).fit(form(X), sample_weight=weights)
            np.testing.assert_allclose(model.components_, expected.components_, atol=1e-7)
            np.testing.assert_allclose(
                model.explained_variance_ratio_, expected.explained_variance_ratio_, rtol=1e-8
            )


def test_wide_sparse_data_are_not_made_dense():
    X = sparse.random(1000, 20_000, 0.003, random_state=0, format="csr")
    for asked in ({"threshold": 0.3}, {"n_nonzero": 20}):
        model = SparsePCA(3, **asked)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model.fit(X[:50])
            assert most_bytes(lambda model=model: model.fit(X)) < 0.25 * 8 * X.shape[0] * X.shape[1]


def test_wide_sparse_data_that_have_to_be_dense_are_made_so_once():
    X = sparse.random(400, 6000, 0.005, random_state=0, format="csr")
    data = CentredData(X, data_module.feature_moments(moments_of(X, products=False), False))
    features = np.arange(6000)
    assert most_bytes(lambda: data.factor(features, 3)) < 1.3 * 8 * X.shape[0] * X.shape[1]


def test_pandas_frames_in_and_out(X):
    import pandas as pd

    frame = pd.DataFrame(X, columns=[f"gene{k}" for k in range(X.shape[1])])
    model = SparsePCA(2, n_nonzero=4).set_output(transform="pandas")
    scores = model.fit_transform(frame)
    assert list(scores.columns) == list(model.get_feature_names_out()) == ["sparsepca0", "sparsepca1"]
    assert list(model.feature_names_in_) == list(frame.columns)


def test_the_path_trades_variance_for_zeros(X):
    path = sparse_pca_path(X, 3, n_thresholds=6)
    assert path.components.shape == (6, 3, 120)
    totals = path.n_nonzero.sum(axis=1)
    assert totals[0] > totals[-1]
    assert path.explained_variance_ratio[0].sum() > path.explained_variance_ratio[-1].sum()
    assert np.all(np.diff(path.gammas) > 0)
    chosen = sparse_pca_path(X, 2, thresholds=[0.5, 0.1])
    np.testing.assert_array_equal(chosen.thresholds, [0.1, 0.5])
    with pytest.raises(TypeError, match="multiple values for keyword argument 'threshold'"):
        sparse_pca_path(X, 2, threshold=0.1)
    with pytest.raises(ValueError, match="n_thresholds"):
        sparse_pca_path(X, 2, n_thresholds=0)


def test_components_that_run_empty_get_their_largest_entry_and_a_warning(X):
    with pytest.warns(UserWarning, match="exceeds the threshold"):
        model = SparsePCA(4, threshold=1.0).fit(X)
    np.testing.assert_array_equal(model.n_nonzero_, 1)
    assert len(np.unique(np.argmax(model.components_, axis=1))) == 4


def test_constant_features_have_no_part(X):
    X = X.copy()
    X[:, [0, 50]] = 7.3
    model = SparsePCA(3, threshold=0.0).fit(X)
    assert not model.components_[:, [0, 50]].any()
    scaled = SparsePCA(3, threshold=0.1, scale=True).fit(X)
    assert not scaled.components_[:, [0, 50]].any()


BAD = [
    ({"n_components": 31}, "n_components must be a whole number from 1 to 30"),
    ({"n_components": 0}, "n_components"),
    ({"n_components": 2.5}, "n_components"),
    ({"threshold": -1.0}, "threshold must be a finite number of at least 0"),
    ({"threshold": float("nan")}, "threshold"),
    ({"threshold": 1.5}, "threshold is a share"),
    ({"threshold": (0.1,)}, "a number, or a penalty and a number"),
    ({"n_nonzero": 121}, "n_nonzero must be a whole number from 1 to 120"),
    ({"n_nonzero": 0}, "n_nonzero"),
    ({"n_components": 3, "n_nonzero": [1, 2]}, "got 2 for 3 components"),
    ({"threshold": 0.1, "n_nonzero": 3}, "give threshold or n_nonzero, not both"),
    ({"threshold": ("l2", 0.1)}, "penalty of threshold must be"),
    ({"tol": -1.0}, "tol"),
    ({"max_iter": 0}, "max_iter"),
    ({"n_starts": 0}, "n_starts"),
    ({"threads": 0}, "threads"),
]


@pytest.mark.parametrize(("asked", "message"), BAD, ids=[str(asked) for asked, _ in BAD])
def test_bad_parameters_are_named(X, asked, message):
    with pytest.raises(ValueError, match=message):
        SparsePCA(**asked).fit(X)


def test_bad_data_are_named(X):
    broken = X.copy()
    broken[3, 4] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        SparsePCA(2).fit(broken)
    with pytest.raises(ValueError, match="1 sample"):
        SparsePCA(1).fit(X[:1])
    with pytest.raises(ValueError, match="constant"):
        SparsePCA(1).fit(np.ones((5, 3)))
    with pytest.raises(ValueError, match=r"could not convert|numeric"):
        SparsePCA(1).fit(np.array([["a", "b"], ["c", "d"]]))


def test_bad_covariances_are_named():
    with pytest.raises(ValueError, match="square"):
        SparsePCA(1).fit_covariance(np.ones((3, 2)), 10)
    with pytest.raises(ValueError, match="symmetric"):
        SparsePCA(1).fit_covariance(np.array([[1.0, 0.5], [0.0, 1.0]]), 10)
    with pytest.raises(
        ValueError, match=r"negative eigenvalue, but its smallest is -1 of the largest in size"
    ):
        SparsePCA(2, n_nonzero=2).fit_covariance(-np.eye(5), 40)
    with pytest.raises(ValueError, match="negative eigenvalue"):
        SparsePCA(1).fit_covariance(np.array([[1.0, 2.0], [2.0, 1.0]]), 10)
    with pytest.raises(ValueError, match="n_obs"):
        SparsePCA(1).fit_covariance(np.eye(2), 1)
    with pytest.raises(ValueError, match="zero"):
        SparsePCA(1).fit_covariance(np.zeros((2, 2)), 10)


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.3])
def test_refitted_values_explain_no_less_than_the_columns_own(X, alpha):
    model = SparsePCA(3, threshold=alpha).fit(X)
    Y = (X - X.mean(axis=0)).T @ model.result_.U
    own = np.where(np.abs(Y) > model.gamma_[0], Y, 0.0)
    own = (own / np.linalg.norm(own, axis=0)).T
    own = own[np.argsort(-np.linalg.norm((X - X.mean(axis=0)) @ own.T, axis=0))]
    assert model.explained_variance_.sum() >= metrics.adjusted_variance(X, own).sum() * (1 - 1e-9)


def algorithm_2(A, U, gamma, penalty, pairs):
    """The paper's Algorithm 2 for the given pairs, in plain NumPy; with fewer components than columns, only theirs count."""
    Y, U = A @ U, U.copy()
    for i, j, gammas in pairs:
        theta, _ = breakpoint_search(Y[:, i], Y[:, j], tuple(gammas), penalty)
        c, s = np.cos(theta), np.sin(theta)
        G = np.array([[c, -s], [s, c]])
        Y[:, [i, j]] = Y[:, [i, j]] @ G
        U[:, [i, j]] = U[:, [i, j]] @ G
    return U


@pytest.mark.parametrize("penalty", ["l1", "l0"])
@pytest.mark.parametrize("m", [None, 4])
def test_the_random_schedule_is_algorithm_2(penalty, m):
    X = sparse_modules(12, 60, n_modules=3, module_size=8, random_state=3).X
    gamma = 2.0 if penalty == "l1" else 4.0
    sweeps, n = 3, 12
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        share = gamma / largest_norm(X) ** (1 if penalty == "l1" else 2)
        asked = {"threshold": (penalty, share), "schedule": "random", "random_state": 7, "tol": 0.0}
        model = SparsePCA(m, max_iter=sweeps, refit=False, **asked).fit(X)
    A = (X - X.mean(axis=0)).T
    active = m or n
    # The start: principal axes of the features that can count, and any columns beside those of the components.
    size = gamma if penalty == "l1" else np.sqrt(gamma)
    start = np.linalg.svd(A[np.linalg.norm(A, axis=1) > size])[2].T
    rng = np.random.default_rng(np.random.RandomState(7).randint(2**31, size=4))
    numbered = [(i, j) for i in range(active) for j in range(i + 1, n)]
    pairs = [
        (i, j, (gamma, gamma if j < active else np.inf))
        for _ in range(sweeps)
        for i, j in (numbered[k] for k in rng.integers(len(numbered), size=len(numbered)))
    ]
    expected = algorithm_2(A, start, gamma, penalty, pairs)[:, :active]

    def value(U):
        Y = A @ U
        if penalty == "l0":
            return np.maximum(Y**2 - gamma, 0).sum()
        return np.sum(np.maximum(np.abs(Y) - gamma, 0) ** 2)

    result = model.result_
    assert result.value == pytest.approx(value(result.U[:, :active]), rel=1e-10)
    assert result.value > value(start[:, :active])
    assert "sweeps of exact rotations" in result.method
    if m is None:
        # The axes may differ in sign, which does not change what is reached.
        assert result.value == pytest.approx(value(expected), rel=1e-6)


def test_a_schedule_goes_with_a_threshold(X):
    with pytest.raises(ValueError, match="give threshold, not n_nonzero"):
        SparsePCA(2, n_nonzero=3, schedule="random").fit(X)
    with pytest.raises(ValueError, match="there is no schedule 'best'"):
        SparsePCA(2, threshold=0.1, schedule="best").fit(X)


@pytest.mark.parametrize("penalty", ["l1", "l0"])
@pytest.mark.parametrize("share", [1.0, 1e-300, 5e-324])
@pytest.mark.parametrize("m", [2, None])
def test_thresholds_of_any_size(X, penalty, share, m):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SparsePCA(m, threshold=(penalty, share)).fit(X)
    assert np.isfinite(model.components_).all()
    assert np.isfinite(model.gamma_).all()
    if share == 1:
        np.testing.assert_array_equal(model.n_nonzero_, 1)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize(
    "asked", [{"n_nonzero": 4}, {"threshold": 0.3}, {"threshold": 0.3, "scale": True}], ids=str
)
@pytest.mark.parametrize("factor", [2.0**-1060, 2.0**-1074, 2.0**1015])
def test_subnormal_and_huge_data(rng, form, asked, factor):
    X = rng.integers(-8, 8, size=(30, 12)) * 4.0
    X[:, :4] += rng.integers(-20, 20, size=(30, 1))
    plain = SparsePCA(2, **asked).fit(X)
    model = SparsePCA(2, **asked)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        if factor > 1 and "scale" not in asked:
            # Their variances are no numbers.
            with pytest.raises(ValueError, match="explained_variance_ of SparsePCA would not be finite"):
                model.fit(form(X * factor))
            return
        model.fit(form(X * factor))
    np.testing.assert_allclose(np.abs(model.components_), np.abs(plain.components_), atol=1e-7)


@pytest.mark.parametrize("penalty", ["l1", "l0"])
def test_a_threshold_that_goes_to_zero_ends_at_principal_components(penalty):
    X = load_breast_cancer().data
    pca = SparsePCA(4, threshold=0.0, scale=True).fit(X).explained_variance_ratio_.sum()
    alphas = (1e-12, 1e-6, 1e-3, 1e-2) if penalty == "l1" else (1e-24, 1e-12, 1e-6, 1e-4)
    models = [SparsePCA(4, threshold=(penalty, alpha), scale=True).fit(X) for alpha in alphas]
    shares = [model.explained_variance_ratio_.sum() for model in models]
    np.testing.assert_allclose(shares[:2], pca, rtol=1e-4)
    assert min(shares) > 0.97 * pca


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("ample", [0, 60])
def test_counts_look_at_strong_features_first_and_at_others_where_they_count(rng, monkeypatch, scale, ample):
    X = rng.poisson(0.3, size=(40, 300)) * 0.5
    X[:, :20] += rng.poisson(3.0, size=(40, 1)) * rng.uniform(1, 2, 20)
    X[:, 20:40] += rng.poisson(2.0, size=(40, 1)) * rng.uniform(1, 2, 20)
    # Strong, and alone: they keep the others out at first.
    X[:, 40:90] += rng.poisson(5.0, size=(40, 50))
    expected = SparsePCA(2, n_nonzero=[18, 15], scale=scale).fit(X)
    widths = recorded_widths(monkeypatch)
    monkeypatch.setattr("givens.sparse_pca.cardinality.SPARE_FEATURES", ample)
    for form in (sparse.csr_matrix, np.ascontiguousarray, np.asfortranarray):
        widths.clear()
        model = SparsePCA(2, n_nonzero=[18, 15], scale=scale).fit(form(X))
        # Where all features are as strong, as after scaling, none can be left out.
        assert (widths[0] == 300) == scale
        assert model.explained_variance_ratio_.sum() >= 0.97 * expected.explained_variance_ratio_.sum()
        np.testing.assert_array_equal(model.n_nonzero_, [18, 15])


@pytest.mark.parametrize(
    ("samples", "features", "rank"), [(5, 10, 4), (10, 50, 9), (50, 10, 3), (60, 5, 1), (200, 8, 7)]
)
def test_components_beyond_the_rank_take_nothing_from_the_others(samples, features, rank):
    rng = np.random.default_rng(rank)
    full = min(samples - 1, features)
    X = rng.standard_normal((samples, features))
    if rank < full:
        X = rng.standard_normal((samples, rank)) @ rng.standard_normal((rank, features))
    count = min(4, features)
    within = SparsePCA(rank, n_nonzero=count, random_state=0).fit(X)
    with pytest.warns(UserWarning, match="1 component is beyond the rank of X"):
        beyond = SparsePCA(rank + 1, n_nonzero=count, random_state=0).fit(X)
    assert (beyond.n_nonzero_ == count).all()
    shares = beyond.explained_variance_ratio_
    # They may gain by chance: with one more component the search goes other ways.
    assert shares[:-1].sum() >= within.explained_variance_ratio_.sum() * (1 - 1e-6)
    assert shares[-1] < 1e-14


@pytest.mark.parametrize("penalty", ["l1", "l0"])
@pytest.mark.parametrize("refit", [True, False])
def test_without_a_threshold_all_components_are_principal(penalty, refit):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.laplace(size=(60, 8)) @ rng.standard_normal((8, 8))
        model = SparsePCA(8, threshold=(penalty, 0), refit=refit).fit(X)
        axes = np.linalg.svd(X - X.mean(axis=0))[2]
        np.testing.assert_allclose(np.abs(np.sum(model.components_ * axes, axis=1)), 1, atol=1e-9)


def test_anndata_is_told_where_to_go(X):
    class AnnData:
        X = None

    with pytest.raises(TypeError, match=r"X is an AnnData: pass its matrix, X\.X, or call givens\.anndata"):
        SparsePCA(2).fit(AnnData())
