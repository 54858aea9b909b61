"""Streams of features that are scaled, and components from several starts, beside the batch estimator."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from givens import SparsePCA, StreamingSparsePCA
from givens.datasets import sparse_modules
from givens.metrics import adjusted_variance, total_variance
from givens.sparse_pca.loadings import solve
from givens.sparse_pca.options import FitOptions
from tests.properties import examples

DROPS = ("frequent", "weakest")
DATA = sparse_modules(300, 40, n_modules=3, module_size=6, random_state=1)
SIZES = np.geomspace(1e-3, 1e3, 40)[np.random.default_rng(0).permutation(40)]
X = DATA.X * SIZES + 3 * SIZES


def model(**parameters):
    alpha = 0.1 if parameters.get("drop", "frequent") == "frequent" else 0.02
    return StreamingSparsePCA(
        **({"n_components": 3, "threshold": alpha, "scale": True, "random_state": 0} | parameters)
    )


def standard(rows, weights=None):
    w = np.ones(len(rows)) if weights is None else weights
    mean = w @ rows / w.sum()
    divisor = w.sum() - (w**2).sum() / w.sum()
    deviation = np.sqrt(w @ (rows - mean) ** 2 / divisor)
    return (rows - mean) / deviation, mean, deviation, divisor


@pytest.mark.parametrize("drop", DROPS)
@pytest.mark.parametrize("forgetting", [1.0, 0.97])
def test_deviations_are_those_of_the_weighted_samples(drop, forgetting):
    found = model(drop=drop, forgetting=forgetting).fit(X)
    _, mean, deviation, _ = standard(X, forgetting ** np.arange(300)[::-1])
    np.testing.assert_allclose(found.mean_, mean, rtol=1e-12)
    np.testing.assert_allclose(found.scale_, deviation, rtol=1e-12)
    assert model(scale=False).fit(X).scale_ is None


def test_with_room_for_everything_it_is_pca_of_the_correlations():
    found = model(gamma=0.0, threshold=None, oversample=37, max_iter=0).fit(X)
    energies, axes = np.linalg.eigh(np.corrcoef(X.T))
    np.testing.assert_allclose(
        np.abs(np.sum(found.components_ * axes[:, ::-1][:, :3].T, axis=1)), 1, atol=1e-9
    )
    np.testing.assert_allclose(found.explained_variance_, energies[::-1][:3], rtol=1e-9)
    np.testing.assert_allclose(found.explained_variance_ratio_, energies[::-1][:3] / 40, rtol=1e-9)


@pytest.mark.parametrize("forgetting", [1.0, 0.97])
def test_kept_columns_never_exceed_the_correlations(forgetting):
    w = forgetting ** np.arange(300)[::-1]
    S, _, deviation, _ = standard(X, w)
    scatter = (S * w[:, None]).T @ S
    for oversample in (0, 5, 37):
        found = model(oversample=oversample, forgetting=forgetting).fit(X)
        sketch = found._sketch
        Y = sketch.columns_now(found._rule(sketch)) * sketch.unit / deviation
        missing = np.linalg.eigvalsh(scatter - Y.T @ Y)
        size = np.linalg.norm(scatter, 2)
        assert missing[0] >= -1e-10 * size
        if oversample == 37:
            assert missing[-1] <= 1e-10 * size
        # On their principal axes, in the present deviations.
        G = Y @ Y.T
        np.testing.assert_allclose(G, np.diag(np.diag(G)), atol=1e-9 * size)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_beside_the_batch_estimator(dtype):
    """The planted modules, of features of very different sizes, have the same loadings in both."""
    found = model(threshold=None, n_nonzero=6).fit(X.astype(dtype))
    batch = SparsePCA(3, n_nonzero=6, scale=True).fit(X.astype(dtype))
    assert found.scale_.dtype == found.components_.dtype == dtype
    np.testing.assert_allclose(found.scale_, batch.scale_, rtol=1e-5)
    np.testing.assert_allclose(found.mean_, batch.mean_, rtol=1e-5)
    np.testing.assert_array_equal(found.components_ != 0, batch.components_ != 0)
    np.testing.assert_allclose(found.components_, batch.components_, atol=0.03)
    np.testing.assert_allclose(found.explained_variance_.sum(), batch.explained_variance_.sum(), rtol=0.03)
    raw = StreamingSparsePCA(3, n_nonzero=6).fit(X.astype(dtype))
    assert np.any((raw.components_ != 0) != (batch.components_ != 0))
    np.testing.assert_allclose(found.transform(X.astype(dtype)), batch.transform(X.astype(dtype)), atol=0.2)
    assert found.score(X) == pytest.approx(batch.score(X), rel=0.01)


@pytest.mark.parametrize("drop", DROPS)
def test_scores_and_their_inverse_are_those_of_scaled_data(drop):
    found = model(drop=drop).fit(X)
    S, mean, deviation, _ = standard(X)
    scores = found.transform(X)
    np.testing.assert_allclose(scores, S @ found.components_.T, atol=1e-9)
    back = found.inverse_transform(scores)
    Z = found.components_
    np.testing.assert_allclose(back, scores @ np.linalg.pinv(Z).T * deviation + mean, rtol=1e-9)
    true = adjusted_variance(S, Z)
    assert found.explained_variance_.sum() <= true.sum() * (1 + 1e-9)
    assert found.explained_variance_.sum() >= (0.95 if drop == "frequent" else 0.3) * true.sum()
    ratio = found.explained_variance_.sum() / total_variance(S)
    assert found.explained_variance_ratio_.sum() == pytest.approx(ratio, rel=1e-9)
    assert 0 < found.trace_.kept[-1] <= 1


@pytest.mark.parametrize("drop", DROPS)
@examples(15)
@given(exponents=st.lists(st.integers(-30, 30), min_size=40, max_size=40))
def test_units_of_the_features_do_not_matter_to_the_last_bit(drop, exponents):
    units = 2.0 ** np.array(exponents)
    one, other = model(drop=drop).fit(DATA.X), model(drop=drop).fit(DATA.X * units)
    np.testing.assert_array_equal(one.components_, other.components_)
    np.testing.assert_array_equal(one.scale_ * units, other.scale_)
    np.testing.assert_array_equal(one.explained_variance_, other.explained_variance_)
    assert one.trace_ == other.trace_


@pytest.mark.parametrize("drop", DROPS)
@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_size_of_the_data_does_not_matter(drop, size):
    one, other = model(drop=drop).fit(X), model(drop=drop).fit(X * size)
    np.testing.assert_allclose(one.components_, other.components_, atol=1e-6)
    np.testing.assert_allclose(one.scale_, other.scale_ / size, rtol=1e-9)
    np.testing.assert_allclose(one.explained_variance_, other.explained_variance_, rtol=1e-6)


@pytest.mark.parametrize("drop", DROPS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_constant_features_stay_out(drop, dtype):
    Y = X.astype(dtype)
    Y[:, 5] = 0.1
    Y[:, 9] = 0
    Y[:, 11] *= dtype(1e-30)  # tiny, but it varies
    found = model(drop=drop, threshold=0.0).fit(Y)
    assert found.scale_[5] == found.scale_[9] == 1
    assert not found.components_[:, [5, 9]].any()
    assert np.isfinite(found.transform(Y)).all()
    np.testing.assert_allclose(found.scale_[11], Y[:, 11].astype(float).std(ddof=1), rtol=1e-4)
    total = found.explained_variance_.sum() / found.explained_variance_ratio_.sum()
    assert total == pytest.approx(38, rel=1e-6)
    with pytest.raises(ValueError, match="constant"):
        model().partial_fit(np.full((5, 4), 0.3)).components_.sum()


def test_a_feature_that_begins_to_vary_late():
    Y = X.copy()
    Y[:200, 3] = 7.0
    found = model(threshold=0.0).fit(Y)
    np.testing.assert_allclose(found.scale_, Y.std(axis=0, ddof=1), rtol=1e-12)


def test_scale_belongs_to_the_whole_stream():
    found = model().partial_fit(X)
    with pytest.raises(ValueError, match="began with scale=True, not False"):
        found.set_params(scale=False).partial_fit(X)


def random_columns(seed=1):
    return np.random.default_rng(seed).standard_normal((8, 60)) ** 3


@pytest.mark.parametrize("l0", [False, True])
def test_the_best_of_several_starts_is_kept(l0):
    from givens.kernels import threshold

    Y, level = random_columns(), 9.0
    values = []
    for n_starts in (1, 2, 12):
        options = FitOptions(3, level, l0, None, True, 1e-9, 100, n_starts, 1)
        found = solve(Y, options, np.eye(8)[:, :3], np.random.default_rng(5))
        values.append(threshold.value(found.Y, found.levels, l0))
    assert values[0] <= values[1] * (1 + 1e-12) <= values[2] * (1 + 1e-12)
    assert values[2] > 1.2 * values[0]


def test_more_starts_explain_no_less_and_are_the_same_every_time():
    rows = np.random.default_rng(12).standard_normal((200, 30)) ** 3  # whose first start is not the best
    found = StreamingSparsePCA(3, n_nonzero=4, random_state=1).partial_fit(rows)
    shares = []
    for n_starts in (1, 4, 16):
        found.set_params(n_starts=n_starts)
        shares.append(found.explained_variance_ratio_.sum())
        again = StreamingSparsePCA(3, n_nonzero=4, random_state=1, n_starts=n_starts).fit(rows)
        np.testing.assert_array_equal(found.components_, again.components_)
    assert shares[0] <= shares[1] <= shares[2]
    assert shares[2] > shares[0] + 1e-3
    assert found.flops_ > again.set_params(n_starts=1).flops_


def test_the_method_says_what_the_stream_did_and_how_its_components_were_made():
    rotated = model().fit(X)
    assert rotated.method_.startswith("300 samples, 23 columns kept as principal axes")
    assert "sweeps of rotations in blocks" in rotated.method_
    rotated.set_params(max_iter=0)
    assert rotated.method_.endswith("loadings from the columns as they are")
    paper = model(drop="weakest", inner_rotations=5).fit(X)
    assert "3 columns kept, the weakest replaced by each sample, then 5 rotations" in paper.method_
    assert "(Algorithm 5); loadings from the columns as they are" in paper.method_
    assert "rotations of random pairs" not in model(drop="weakest", inner_rotations=0).fit(X).method_
