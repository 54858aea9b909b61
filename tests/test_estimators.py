"""What estimators have in common: lists of tables, whole numbers given as floats, shares, missing values, warnings, errors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from givens import ICA, JADE, FactorRotation, RotatedPCA, SparsePCA, SphericalMixture, StreamingSparsePCA


@pytest.fixture
def X(rng):
    return rng.laplace(size=(300, 5)) @ rng.standard_normal((5, 5))


@pytest.mark.parametrize(
    ("model", "methods"),
    [
        (ICA(4), ["transform"]),
        (SphericalMixture(2), ["predict", "predict_proba", "score_samples", "score", "bic", "aic"]),
        (StreamingSparsePCA(2), ["transform"]),
    ],
    ids=str,
)
@pytest.mark.parametrize("edges", [[100, 200], [10, 250]], ids=["equal parts", "unequal parts"])
def test_a_list_of_tables_can_be_asked_for_what_it_was_fitted_to(X, model, methods, edges):
    parts = np.split(X, edges)
    model.fit(parts)
    for name in methods:
        np.testing.assert_allclose(
            getattr(model, name)(parts), getattr(model, name)(X), rtol=1e-9, atol=1e-12
        )
    if hasattr(model, "fit_transform"):
        assert model.fit_transform(parts).shape[0] == len(X)


@pytest.mark.parametrize(
    ("estimator", "methods"), [(ICA, ["transform"]), (SphericalMixture, ["predict", "score_samples"])]
)
def test_parts_without_rows_count_for_nothing_and_no_rows_are_refused(X, estimator, methods):
    model = estimator(2).fit(X)
    for name in methods:
        call = getattr(model, name)
        np.testing.assert_array_equal(call([X, X[:0]]), call(X))
        with pytest.raises(ValueError, match="X yields no rows"):
            call(iter(()))


@pytest.mark.parametrize(
    "estimator", [ICA, JADE, SparsePCA, SphericalMixture, StreamingSparsePCA, RotatedPCA]
)
def test_a_whole_number_may_come_as_a_float(X, estimator):
    attribute = "means_" if estimator is SphericalMixture else "components_"
    first, second = (getattr(estimator(number).fit(X), attribute) for number in (3, 3.0))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("estimator", [ICA, RotatedPCA])
@pytest.mark.filterwarnings("ignore:one factor has nothing to rotate with")
def test_the_float_one_is_neither_a_number_nor_a_share(X, estimator):
    da = pytest.importorskip("dask.array")
    for data in (X, da.from_array(X, chunks=(100, -1))):
        with pytest.raises(
            ValueError, match=r"n_components=1\.0 may mean one or all: write n_components=1 for"
        ):
            estimator(1.0).fit(data)
        assert len(estimator(1).fit(data).components_) == 1
        assert len(estimator(None).fit(data).components_) == 5
        assert len(estimator(0.999999).fit(data).components_) == 5


@pytest.mark.parametrize(
    "form",
    [np.asarray, list, scipy.sparse.csr_array, "frame", "batches"],
    ids=["array", "list", "sparse", "frame", "batches"],
)
@pytest.mark.parametrize("estimator", [SparsePCA, StreamingSparsePCA])
def test_missing_values_are_counted_and_the_remedy_is_named(X, estimator, form):
    holes = X.copy()
    holes[3, 2] = holes[7, 1] = np.nan
    if form == "frame":
        form = pytest.importorskip("pandas").DataFrame
    elif form == "batches":
        if estimator is SparsePCA:
            pytest.skip("takes tables only")
        form = lambda X: [X[:100], X[100:]]  # noqa: E731
    sentence = r"X has 2 missing values \(NaN\): (make X dense \(toarray\) and )?fit with missing='em'"
    model = estimator(2, n_nonzero=4)
    calls = [model.fit, estimator(2).fit(X).transform]
    if hasattr(model, "partial_fit") and not isinstance(form(X), list):
        calls.append(model.partial_fit)
    for call in calls:
        with pytest.raises(ValueError, match=sentence) as caught:
            call(form(holes))
        assert "HistGradientBoosting" not in str(caught.value)


def rotated_one(X):
    RotatedPCA(1).fit(X)


def streamed_empty(X):
    StreamingSparsePCA(2, threshold=1.0).fit(X)


def streamed_lazily(X):
    _ = StreamingSparsePCA(2, threshold=1.0).partial_fit(X).components_


def sparse_empty(X):
    SparsePCA(2, threshold=1.0).fit(X)


def separated_unfinished(X):
    ICA(max_iter=1).fit(X)


def transformed_unfinished(X):
    ICA(max_iter=1).fit_transform(X)


@pytest.mark.parametrize(
    "call",
    [
        rotated_one,
        streamed_empty,
        streamed_lazily,
        sparse_empty,
        separated_unfinished,
        transformed_unfinished,
    ],
)
def test_warnings_point_to_the_line_of_the_caller(X, call):
    with pytest.warns(UserWarning, match=r"nothing (of|to rotate)|did not converge") as caught:
        call(X)
    assert [warning.filename for warning in caught] == [__file__] * len(caught)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("shape", [(300, 5), (4, 5)])
def test_rotated_components_of_huge_numbers_are_refused_with_a_remedy(rng, scale, shape):
    with pytest.raises(ValueError, match="X has numbers so large that variances exceed what"):
        RotatedPCA(2, scale=scale).fit(1e200 * rng.standard_normal(shape))


def test_messages_name_what_is_possible(X):
    with pytest.raises(ValueError, match=r"from 1 to 5, the number of features \(n_features=5\), got 0"):
        StreamingSparsePCA(0).fit(X)
    with pytest.raises(ValueError, match="'parsimony', 'target', or a finite number"):
        FactorRotation("promax").fit(np.eye(5)[:, :2] + 0.1)
    for method in ("promax", "target"):
        with pytest.raises(ValueError, match="'parsimony', or a finite number"):
            RotatedPCA(2, method=method).fit(X)


@pytest.mark.parametrize(
    "model", [SparsePCA(2, n_nonzero=3), ICA(2), RotatedPCA(2), JADE(2), StreamingSparsePCA(2)], ids=str
)
def test_masks_are_not_ignored(X, model):
    with pytest.raises(ValueError, match="X is a masked array in which 1 entry is masked"):
        model.fit(np.ma.masked_greater_equal(X, X.max()))


@pytest.mark.parametrize(("size", "kind"), [(1e-25, np.float32), (1e-200, np.float64)])
def test_data_whose_variances_vanish_are_refused(X, size, kind):
    with pytest.raises(ValueError, match="X is too small for its variances to be numbers"):
        RotatedPCA(2).fit((size * X).astype(kind))


def test_only_streams_are_merged(X):
    with pytest.raises(TypeError, match="other must be a StreamingSparsePCA, got RotatedPCA"):
        StreamingSparsePCA(2).fit(X).merge(RotatedPCA(2))
