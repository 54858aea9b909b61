"""Streaming sparse PCA: the bits, the bounds, the sources, the saves, and what is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.utils.estimator_checks import check_estimator

from givens import SparsePCA, StreamingSparsePCA
from givens.datasets import sparse_modules
from givens.metrics import adjusted_variance, total_variance
from tests.properties import examples

SKETCHES = (None, ("algorithm 5", 2.0))
DATA = sparse_modules(150, 40, n_modules=3, module_size=6, random_state=1)


def fitted(X, cuts=(), **parameters):
    model = StreamingSparsePCA(**({"n_components": 3, "random_state": 3} | parameters))
    for batch in np.split(X, sorted(cuts)):
        if len(batch):
            model.partial_fit(batch)
    return model


def same_bits(one, other):
    for name in ("components_", "mean_", "explained_variance_", "gamma_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in ("Y", "squares"):
        np.testing.assert_array_equal(getattr(one._finished(), name), getattr(other._finished(), name))
    assert one._finished().energy == other._finished().energy


@pytest.mark.parametrize("sketch", SKETCHES)
@examples(25)
@given(
    cuts=st.lists(st.integers(1, 149), max_size=12),
    forgetting=st.sampled_from((1.0, 0.97)),
    scale=st.booleans(),
)
def test_any_way_to_cut_the_stream_gives_the_same_bits(sketch, cuts, forgetting, scale):
    parameters = {"sketch": sketch, "forgetting": forgetting, "scale": scale}
    same_bits(fitted(DATA.X, **parameters), fitted(DATA.X, cuts, **parameters))


@pytest.mark.parametrize("sketch", SKETCHES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [False, True])
def test_row_by_row_fit_and_sparse_rows_give_the_same_bits(sketch, dtype, scale):
    X = np.where(np.abs(DATA.X) > 1, DATA.X, 0).astype(dtype)
    whole = fitted(X, sketch=sketch, scale=scale)
    assert whole.components_.dtype == dtype
    assert whole.transform(X).dtype == dtype
    same_bits(whole, fitted(X, range(1, 150), sketch=sketch, scale=scale))
    same_bits(whole, fitted(X, sketch=sketch, scale=scale).fit(X))
    model = StreamingSparsePCA(**whole.get_params())
    same_bits(whole, model.fit(sparse.csr_matrix(X)))
    same_bits(whole, model.fit(sparse.csc_matrix(X)))


@pytest.mark.parametrize("sketch", SKETCHES)
@pytest.mark.parametrize("scale", [False, True])
def test_the_number_of_threads_changes_nothing(sketch, scale):
    X = np.random.default_rng(0).standard_normal((40, 20_000))
    X[:, :50] *= 5
    one, two = (fitted(X, sketch=sketch, scale=scale, threads=threads) for threads in (1, 2))
    same_bits(one, two)


def test_without_threshold_and_loss_it_is_pca():
    model = StreamingSparsePCA(3, threshold=0.0, sketch=40, max_iter=0).fit(DATA.X)
    C = DATA.X - DATA.X.mean(axis=0)
    _, size, Vt = np.linalg.svd(C, full_matrices=False)
    np.testing.assert_allclose(np.abs(np.sum(model.components_ * Vt[:3], axis=1)), 1, atol=1e-9)
    np.testing.assert_allclose(model.explained_variance_, size[:3] ** 2 / 149, rtol=1e-9)
    np.testing.assert_allclose(model.explained_variance_ratio_, size[:3] ** 2 / np.sum(size**2), rtol=1e-9)
    assert model.score_correlation_ < 1e-9


def test_planted_modules_are_found():
    data = sparse_modules(900, 200, n_modules=3, module_size=12, random_state=0)
    for options, overlap in (({"n_nonzero": 12}, 0.98), ({"sketch": ("algorithm 5", 3.0)}, 0.7)):
        model = StreamingSparsePCA(3, **options).fit(data.X)
        np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
        assert np.abs(model.components_ @ data.components.T).max(axis=0).min() > overlap


@pytest.mark.parametrize("seed", range(4))
def test_modules_weaker_than_dense_directions_are_found_as_in_memory(seed):
    """The fifth module has less variance than fifteen dense directions, which the kept columns have to hold beside it."""
    rng = np.random.default_rng(seed)
    modules = np.eye(5, 20).repeat(20, axis=1) / np.sqrt(20)
    dense = rng.standard_normal((15, 400)) / np.sqrt(400)
    X = rng.standard_normal((600, 400)) + rng.standard_normal((600, 15)) * 2.8 @ dense
    X += rng.standard_normal((600, 5)) * np.sqrt([24, 18, 14, 10, 8]) @ modules
    for model in (SparsePCA(5, n_nonzero=20), StreamingSparsePCA(5, n_nonzero=20)):
        found = np.abs(model.fit(X).components_ @ modules.T)
        assert found.max(axis=0).min() > 0.95


def test_rotations_separate_modules_of_equal_strength():
    """Principal axes of equal modules are any mixture of them; rotations for sparsity are what tells them apart."""
    rng = np.random.default_rng(0)
    truth = np.zeros((3, 60))
    for j in range(3):
        truth[j, 10 * j : 10 * j + 10] = 10**-0.5
    X = rng.standard_normal((600, 3)) * 6 @ truth + 0.3 * rng.standard_normal((600, 60))
    rotated = StreamingSparsePCA(3, threshold=0.3).fit(X)
    axes = StreamingSparsePCA(3, threshold=0.3, max_iter=0).fit(X)
    found, mixed = (np.abs(model.components_ @ truth.T).max(axis=0).min() for model in (rotated, axes))
    assert found > 0.99
    assert mixed < 0.95
    assert rotated.n_nonzero_.tolist() == [10, 10, 10]


def test_explained_variance_is_at_most_the_samples_own_and_close_to_it():
    for parameters in ({"threshold": 0.1}, {"n_nonzero": 6}, {"threshold": ("l0", 0.05)}):
        model = StreamingSparsePCA(3, **parameters).fit(DATA.X)
        true = adjusted_variance(DATA.X, model.components_).sum()
        assert 0.95 * true <= model.explained_variance_.sum() <= true * (1 + 1e-9)
        np.testing.assert_allclose(
            model.explained_variance_ratio_.sum(),
            model.explained_variance_.sum() / total_variance(DATA.X),
            rtol=1e-9,
        )
        assert model.projected_variance_ratio_ <= model.score(DATA.X) + 1e-9


def test_shrunk_and_unshrunk_values():
    plain = StreamingSparsePCA(3, threshold=0.3, max_iter=0).fit(DATA.X)
    shrunk = StreamingSparsePCA(3, threshold=0.3, max_iter=0, refit=False).fit(DATA.X)
    np.testing.assert_array_equal(plain.components_ != 0, shrunk.components_ != 0)
    sketch = plain._finished()
    Y = sketch.Y
    for model, cut in ((plain, 0.0), (shrunk, plain.gamma_[0] / sketch.unit)):
        y = Y[0] * np.sign(Y[0][np.argmax(np.abs(Y[0]))])
        expected = np.where(np.abs(y) > plain.gamma_[0] / sketch.unit, y - np.sign(y) * cut, 0)
        np.testing.assert_allclose(model.components_[0], expected / np.linalg.norm(expected), atol=1e-12)


def test_parameters_of_the_components_may_change_in_mid_stream():
    model = fitted(DATA.X)
    model.set_params(threshold=None, n_nonzero=[9, 4, 2])
    assert model.n_nonzero_.tolist() == [9, 4, 2]
    same_bits(model, fitted(DATA.X, threshold=None, n_nonzero=[9, 4, 2]))
    with pytest.raises(ValueError, match=r"began with forgetting=1\.0, not 0\.9"):
        model.set_params(forgetting=0.9).partial_fit(DATA.X)


@pytest.mark.parametrize("sketch", SKETCHES)
@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_scale_of_the_data_does_not_matter(sketch, size):
    with warnings.catch_warnings():
        gamma = sketch and ("algorithm 5", 2.0 * size)
        model, plain = fitted(DATA.X * size, sketch=gamma), fitted(DATA.X, sketch=sketch)
    np.testing.assert_allclose(model.components_, plain.components_, atol=1e-6)
    np.testing.assert_array_equal(model.components_ != 0, plain.components_ != 0)
    np.testing.assert_allclose(model.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-6)


def test_drift_is_followed_with_forgetting_and_late_without():
    """Planted components change after 3,000 samples: how many samples until each of the new ones is found."""
    old = sparse_modules(3000, 120, n_modules=3, module_size=10, random_state=0)
    new = sparse_modules(6000, 120, n_modules=3, module_size=10, random_state=1)

    def delay(forgetting):
        model = StreamingSparsePCA(3, n_nonzero=10, forgetting=forgetting).partial_fit(old.X)
        for seen in range(0, 6000, 100):
            model.partial_fit(new.X[seen : seen + 100])
            if np.abs(model.components_ @ new.components.T).max(axis=0).min() > 0.9:
                return seen + 100
        return np.inf

    quick, slow = delay(0.99), delay(1.0)
    assert quick <= 400
    assert slow > 3000  # as many again
    assert slow < np.inf  # and no more than about that: the reserve lets the new directions in


WEIGHTED = ({}, {"sketch": ("algorithm 5", 2.0)}, {"scale": True})


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_a_weight_counts_samples(form):
    X, weights = DATA.X, np.random.default_rng(0).integers(0, 4, 150)
    weighted = StreamingSparsePCA(3, n_nonzero=6, sketch=40).fit(form(X), sample_weight=weights)
    repeated = StreamingSparsePCA(3, n_nonzero=6, sketch=40).fit(form(np.repeat(X, weights, axis=0)))
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-6)
    np.testing.assert_allclose(weighted.explained_variance_, repeated.explained_variance_, rtol=1e-6)
    np.testing.assert_allclose(weighted.mean_, repeated.mean_, atol=1e-12)
    assert weighted.n_samples_seen_ == np.count_nonzero(weights)


@pytest.mark.parametrize("options", WEIGHTED)
def test_weights_of_one_and_any_cut_change_no_bit(options):
    X = DATA.X
    plain = StreamingSparsePCA(3, **options).fit(X)
    same_bits(plain, StreamingSparsePCA(3, **options).fit(X, sample_weight=np.ones(len(X))))
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    whole = StreamingSparsePCA(3, **options).fit(X, sample_weight=weights)
    cut = StreamingSparsePCA(3, **options)
    for part in (slice(0, 50), slice(50, 51), slice(51, 150)):
        cut.partial_fit(X[part], sample_weight=weights[part])
    same_bits(whole, cut)
    batches = (X[k : k + 30] for k in range(0, 150, 30))
    same_bits(whole, StreamingSparsePCA(3, **options).fit(batches, sample_weight=weights))
    assert not np.array_equal(whole.components_, plain.components_)


def test_weights_that_will_not_do():
    X = DATA.X
    for weights, told in [
        (np.ones(149), "one number for each of 150 samples"),
        (np.where(np.arange(150) == 5, -1.0, 1.0), "that of sample 5 is -1"),
        (np.full(150, 1 / 150), "sum to more than 1"),
        (np.arange(150) == 3, "at least 2 samples"),
        (np.zeros(150), "every number of sample_weight is zero"),
    ]:
        with pytest.raises(ValueError, match=told):
            StreamingSparsePCA(3).fit(X, sample_weight=weights)
    for number, told in [(100, "more samples than sample_weight"), (170, "X has 150 samples")]:
        batches = (X[k : k + 30] for k in range(0, 150, 30))
        with pytest.raises(ValueError, match=told):
            StreamingSparsePCA(3).fit(batches, sample_weight=np.ones(number))


HOLED = np.where(np.random.default_rng(0).random(DATA.X.shape) < 0.1, np.nan, DATA.X)


def test_a_table_with_holes_is_completed_as_sparse_pca_does():
    table = SparsePCA(3, n_nonzero=6, missing="em").fit(HOLED)
    stream = StreamingSparsePCA(3, n_nonzero=6, missing="em", sketch=40).fit(HOLED)
    assert stream.n_missing_ == table.n_missing_ == np.isnan(HOLED).sum()
    assert (np.abs(np.sum(table.components_ * stream.components_, axis=1)) > 0.999).all()
    np.testing.assert_allclose(stream.transform(HOLED), table.transform(HOLED), atol=0.05 * DATA.X.std())
    np.testing.assert_allclose(stream.completion_.mean, table.completion_.mean, atol=1e-6)


@pytest.mark.parametrize("unit", [1.0, 1e150, 1e-150])
def test_batches_with_holes_are_completed_by_what_came_before(unit):
    rng = np.random.default_rng(0)
    truth = unit * (rng.normal(size=(300, 2)) @ rng.normal(size=(2, 20)) + 3 * rng.normal(size=20))
    holes = rng.random(truth.shape) < 0.1
    holed = np.where(holes, np.nan, truth)
    model = StreamingSparsePCA(2, threshold=0.0, missing="em")
    for start in range(0, 300, 60):
        model.partial_fit(holed[start : start + 60])
    filled = model.completion_.fill(holed, holes)
    np.testing.assert_array_equal(filled[~holes], truth[~holes])
    error = np.sqrt(np.mean(((filled - truth)[holes] / unit) ** 2))
    # Against the means, which know nothing of a sample's other values.
    assert error < 0.02 * np.sqrt(np.mean(((truth.mean(axis=0) - truth)[holes] / unit) ** 2))
    assert model.n_missing_ == holes.sum()


def test_complete_streams_are_the_same_with_and_without_and_saves_keep_the_count(tmp_path):
    plain = StreamingSparsePCA(3, n_nonzero=6).fit(DATA.X)
    model = StreamingSparsePCA(3, n_nonzero=6, missing="em").fit(DATA.X)
    same_bits(plain, model)
    assert model.n_missing_ == 0
    assert not hasattr(plain, "completion_")
    model.partial_fit(HOLED[:5]).save(tmp_path / "stream")
    loaded = StreamingSparsePCA.load(tmp_path / "stream")
    assert loaded.n_missing_ == np.isnan(HOLED[:5]).sum()
    np.testing.assert_array_equal(loaded.transform(HOLED), model.transform(HOLED))


def test_holes_that_will_not_do():
    holed = HOLED.copy()
    holed[:, 7] = np.nan
    for options, X, told in [
        ({"missing": "em"}, holed, "feature 7 has no value at all"),
        ({}, holed, "missing values"),
        ({"missing": "em"}, np.where(np.isnan(holed), np.inf, holed), "infinity"),
        ({"missing": "em"}, sparse.csr_matrix(DATA.X), "for dense data"),
    ]:
        with pytest.raises(ValueError, match=told):
            StreamingSparsePCA(3, **options).fit(X)
    with pytest.raises(ValueError, match="cannot be estimated with sample_weight"):
        StreamingSparsePCA(3, missing="em").fit(DATA.X).partial_fit(HOLED, sample_weight=np.ones(150))


SIZES = np.geomspace(1e-3, 1e3, 40)[np.random.default_rng(0).permutation(40)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scaled_features_beside_the_batch_estimator(dtype):
    """The planted modules, of features of very different sizes, have the same loadings in both."""
    X = (DATA.X * SIZES + 3 * SIZES).astype(dtype)
    found = StreamingSparsePCA(3, n_nonzero=6, scale=True).fit(X)
    batch = SparsePCA(3, n_nonzero=6, scale=True).fit(X)
    assert found.scale_.dtype == found.components_.dtype == dtype
    np.testing.assert_allclose(found.scale_, batch.scale_, rtol=1e-5)
    np.testing.assert_allclose(found.mean_, batch.mean_, rtol=1e-5)
    np.testing.assert_array_equal(found.components_ != 0, batch.components_ != 0)
    np.testing.assert_allclose(found.components_, batch.components_, atol=0.05)
    np.testing.assert_allclose(found.explained_variance_.sum(), batch.explained_variance_.sum(), rtol=0.05)
    np.testing.assert_allclose(found.transform(X), batch.transform(X), atol=0.3)
    assert found.score(X) == pytest.approx(batch.score(X), rel=0.02)
    back = found.inverse_transform(found.transform(X))
    expected = found.transform(X) @ np.linalg.pinv(found.components_).T * found.scale_ + found.mean_
    np.testing.assert_allclose(back, expected, rtol=1e-3 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("sketch", SKETCHES)
@examples(15)
@given(exponents=st.lists(st.integers(-30, 30), min_size=40, max_size=40))
def test_units_of_scaled_features_do_not_matter_to_the_last_bit(sketch, exponents):
    units = 2.0 ** np.array(exponents)
    one, other = (fitted(X, sketch=sketch, scale=True) for X in (DATA.X, DATA.X * units))
    np.testing.assert_array_equal(one.components_, other.components_)
    np.testing.assert_array_equal(one.scale_ * units, other.scale_)
    np.testing.assert_array_equal(one.explained_variance_, other.explained_variance_)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_constant_features_stay_out(dtype):
    Y = (DATA.X * SIZES).astype(dtype)
    Y[:, 5] = 0.1
    Y[:, 9] = 0
    Y[:, 11] *= dtype(1e-20)  # tiny, but it varies
    Y[:100, 13] = 7.0  # varies late
    found = StreamingSparsePCA(3, threshold=0.0, scale=True).fit(Y)
    assert found.scale_[5] == found.scale_[9] == 1
    assert not found.components_[:, [5, 9]].any()
    assert np.isfinite(found.transform(Y)).all()
    np.testing.assert_allclose(
        found.scale_[[11, 13]], Y[:, [11, 13]].astype(float).std(axis=0, ddof=1), rtol=1e-4
    )
    total = found.explained_variance_.sum() / found.explained_variance_ratio_.sum()
    assert total == pytest.approx(38, rel=1e-6)
    with pytest.raises(ValueError, match="constant"):
        StreamingSparsePCA(2, scale=True).partial_fit(np.full((5, 4), 0.3)).components_.sum()


def test_more_starts_explain_no_less_and_are_the_same_every_time():
    rows = np.random.default_rng(12).standard_normal((200, 30)) ** 3  # whose first start is not the best
    found = StreamingSparsePCA(3, n_nonzero=4, random_state=1).partial_fit(rows)
    shares = []
    for n_starts in (1, 4, 16):
        found.set_params(n_starts=n_starts)
        shares.append(found.explained_variance_ratio_.sum())
        again = StreamingSparsePCA(3, n_nonzero=4, random_state=1, n_starts=n_starts).fit(rows)
        np.testing.assert_array_equal(found.components_, again.components_)
    assert shares[0] <= shares[1] * (1 + 1e-9) <= shares[2] * (1 + 2e-9)
    assert shares[2] > shares[0] + 1e-3


def test_the_method_says_what_the_stream_did_and_how_its_components_were_made():
    rotated = StreamingSparsePCA(3, threshold=0.1).fit(DATA.X)
    assert rotated.result_.method.startswith("150 samples, 23 columns kept as principal axes")
    assert "sweeps of rotations" in rotated.result_.method
    paper = StreamingSparsePCA(3, sketch=("algorithm 5", 2.0)).fit(DATA.X)
    assert "3 columns kept, the weakest replaced by each sample, then 3 rotations" in paper.result_.method
    assert paper.result_.method.endswith("(Algorithm 5); loadings from the columns as they are")


@pytest.mark.parametrize("parts", [2, 5, 9])
def test_merged_streams_find_what_one_finds(parts, tmp_path):
    data = sparse_modules(900, 60, n_modules=3, module_size=10, random_state=0)
    one, *others = (StreamingSparsePCA(3, n_nonzero=10).fit(part) for part in np.array_split(data.X, parts))
    before = others[0].components_.copy()
    for other in others:
        one.merge(other)
    np.testing.assert_array_equal(others[0].components_, before)
    assert one.n_samples_seen_ == 900
    np.testing.assert_allclose(one.mean_, data.X.mean(axis=0), atol=1e-12)
    assert abs(data.components @ one.components_.T).max(axis=1).min() > 0.95
    one.save(tmp_path / "stream")
    again = StreamingSparsePCA.load(tmp_path / "stream").partial_fit(data.X)
    same_bits(one.partial_fit(data.X), again)


def test_what_cannot_be_merged():
    one = fitted(DATA.X)
    for options, told in [
        ({"n_components": 2}, "n_components=3 here, 2 there"),
        ({"forgetting": 0.9}, "forgetting"),
    ]:
        with pytest.raises(ValueError, match=f"same parameters can be merged: {told}"):
            one.merge(fitted(DATA.X, **options))
    with pytest.raises(ValueError, match="same features"):
        one.merge(fitted(DATA.X[:, :20]))
    assert one.n_samples_seen_ == 150


@pytest.mark.filterwarnings("ignore:nothing of")
@pytest.mark.parametrize("sketch", SKETCHES)
@pytest.mark.parametrize("scale", [False, True])
def test_check_estimator(sketch, scale):
    # scikit-learn repeats samples in another order; test_weights_and_holes.py has them in the same, and keeps all columns.
    names = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
    order = dict.fromkeys(names, "the order of the samples counts in a stream that drops columns")
    model = StreamingSparsePCA(sketch=sketch, scale=scale)
    results = check_estimator(model, on_skip=None, expected_failed_checks=order)
    assert {result["status"] for result in results} <= {"passed", "skipped", "xfail"}
    skipped = [result["check_name"] for result in results if result["status"] == "skipped"]
    assert skipped in ([], ["check_array_api_input"])
