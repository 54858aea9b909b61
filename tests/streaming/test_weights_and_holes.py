"""Streams of samples that count several times, and of samples with missing values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from givens import SparsePCA, StreamingSparsePCA
from givens.datasets import sparse_modules
from givens.streaming.rules import Frequent
from givens.streaming.sketch import Sketch
from tests.properties import examples

DATA = sparse_modules(120, 60, n_modules=3, module_size=10, random_state=0)
X = DATA.X
RULES = ({}, {"drop": "weakest"}, {"scale": True})


@examples(25)
@given(
    seed=st.integers(0, 1000),
    forgetting=st.sampled_from([1.0, 0.99, 0.8]),
    scaled=st.booleans(),
    unit=st.sampled_from([1.0, 1e150, 1e-150]),
)
def test_mean_scatter_and_divisor_are_those_of_weighted_samples(seed, forgetting, scaled, unit):
    rng = np.random.default_rng(seed)
    rows, own = rng.standard_normal((20, 4)) + 3, rng.uniform(0.1, 4.0, 20)
    sketch = Sketch(4, 24, np.float64, forgetting, scaled)  # room for all: nothing is dropped
    sketch.add(rows[:7] * unit, Frequent(4), own=own[:7])
    sketch.add(rows[7:] * unit, Frequent(4), own=own[7:])
    weights = own * forgetting ** np.arange(20)[::-1]
    mean = weights @ rows / weights.sum()
    scatter = (rows - mean).T * weights @ (rows - mean)
    np.testing.assert_allclose(sketch.mean * sketch.unit / unit, mean)
    columns = sketch.columns_now(Frequent(4)) * (sketch.unit / unit)
    np.testing.assert_allclose(columns.T @ columns, scatter, atol=1e-9)
    assert sketch.energy * (sketch.unit / unit) ** 2 == pytest.approx(np.trace(scatter))
    # As if `own` samples of weight 1, forgotten together, had come.
    fade = forgetting ** np.arange(20)[::-1]
    assert sketch.divisor() == pytest.approx(weights.sum() - own @ fade**2 / weights.sum())


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_a_weight_counts_samples(form):
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = StreamingSparsePCA(3, n_nonzero=10, oversample=57).fit(form(X), sample_weight=weights)
    repeated = StreamingSparsePCA(3, n_nonzero=10, oversample=57).fit(form(np.repeat(X, weights, axis=0)))
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-6)
    np.testing.assert_allclose(weighted.explained_variance_, repeated.explained_variance_, rtol=1e-6)
    np.testing.assert_allclose(weighted.mean_, repeated.mean_, atol=1e-12)
    assert weighted.n_samples_seen_ == np.count_nonzero(weights)


@pytest.mark.parametrize("rule", RULES)
def test_weights_of_one_and_any_cut_change_no_bit(rule):
    plain = StreamingSparsePCA(3, random_state=0, **rule).fit(X)
    ones = StreamingSparsePCA(3, random_state=0, **rule).fit(X, sample_weight=np.ones(len(X)))
    np.testing.assert_array_equal(plain.components_, ones.components_)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    whole = StreamingSparsePCA(3, random_state=0, **rule).fit(X, sample_weight=weights)
    cut = StreamingSparsePCA(3, random_state=0, **rule)
    for part in (slice(0, 50), slice(50, 51), slice(51, 120)):
        cut.partial_fit(X[part], sample_weight=weights[part])
    np.testing.assert_array_equal(whole.components_, cut.components_)
    batches = StreamingSparsePCA(3, random_state=0, **rule)
    batches.fit((X[k : k + 30] for k in range(0, 120, 30)), sample_weight=weights)
    np.testing.assert_array_equal(whole.components_, batches.components_)
    assert not np.array_equal(whole.components_, plain.components_)


def test_weights_that_will_not_do():
    for weights, told in [
        (np.ones(119), "one number for each of 120 samples"),
        (np.where(np.arange(120) == 5, -1.0, 1.0), "that of sample 5 is -1"),
        (np.where(np.arange(120) == 5, np.nan, 1.0), "that of sample 5 is nan"),
        (np.full(120, 1 / 120), "sum to more than 1"),
        (np.arange(120) == 3, "at least 2 samples"),
        (np.zeros(120), "every number of sample_weight is zero"),
    ]:
        with pytest.raises(ValueError, match=told):
            StreamingSparsePCA(3).fit(X, sample_weight=weights)
    for number, told in [(100, "X has more samples"), (130, "X has 120 samples")]:
        with pytest.raises(ValueError, match=told):
            StreamingSparsePCA(3).fit(
                (X[k : k + 30] for k in range(0, 120, 30)), sample_weight=np.ones(number)
            )


def test_a_table_with_holes_is_completed_as_sparse_pca_does():
    rng = np.random.default_rng(0)
    holed = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    table = SparsePCA(3, n_nonzero=10, missing="em").fit(holed)
    stream = StreamingSparsePCA(3, n_nonzero=10, missing="em", oversample=57).fit(holed)
    assert stream.n_missing_ == table.n_missing_ == np.isnan(holed).sum()
    assert (np.abs(np.sum(table.components_ * stream.components_, axis=1)) > 0.999).all()
    np.testing.assert_allclose(stream.transform(holed), table.transform(holed), atol=0.05 * X.std())
    np.testing.assert_allclose(stream.completion_.mean, table.completion_.mean, atol=1e-6)


@pytest.mark.parametrize("unit", [1.0, 1e150, 1e-150])
@pytest.mark.parametrize(("rule", "share"), [({}, 0.02), ({"drop": "weakest"}, 1.01)])
def test_batches_with_holes_are_completed_by_what_came_before(unit, rule, share):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 20)) + 3 * rng.normal(size=20)
    truth *= unit
    holes = rng.random(truth.shape) < 0.1
    holed = np.where(holes, np.nan, truth)
    model = StreamingSparsePCA(2, threshold=0.0, missing="em", random_state=0, **rule)
    for start in range(0, 300, 60):
        model.partial_fit(holed[start : start + 60])
    filled = model.completion_.fill(holed, holes)
    np.testing.assert_array_equal(filled[~holes], truth[~holes])
    error = np.sqrt(np.mean(((filled - truth)[holes] / unit) ** 2))
    # Against the means, which know nothing of a sample's other values: "weakest" drops so much that it knows no more.
    means = np.sqrt(np.mean((((truth.mean(axis=0) - truth) / unit)[holes]) ** 2))
    assert error < share * means
    assert model.n_missing_ == holes.sum()


def test_complete_streams_are_the_same_with_and_without_and_saves_keep_the_count(tmp_path):
    plain = StreamingSparsePCA(3, n_nonzero=10).fit(X)
    model = StreamingSparsePCA(3, n_nonzero=10, missing="em").fit(X)
    np.testing.assert_array_equal(plain.components_, model.components_)
    assert model.n_missing_ == 0
    assert not hasattr(plain, "completion_")
    holed = X[:5].copy()
    holed[2, 3] = np.nan
    model.partial_fit(holed, sample_weight=None)
    model.save(tmp_path / "stream")
    loaded = StreamingSparsePCA.load(tmp_path / "stream")
    assert loaded.n_missing_ == 1
    np.testing.assert_array_equal(loaded.transform(holed), model.transform(holed))


def test_holes_that_will_not_do():
    holed = X.copy()
    holed[:, 7] = np.nan
    with pytest.raises(ValueError, match="feature 7 has no value at all"):
        StreamingSparsePCA(3, missing="em").fit(holed)
    with pytest.raises(ValueError, match="NaN"):
        StreamingSparsePCA(3).fit(holed)
    with pytest.raises(ValueError, match="infinity"):
        StreamingSparsePCA(3, missing="em").fit(np.where(np.isnan(holed), np.inf, holed))
    with pytest.raises(ValueError, match="for dense data"):
        StreamingSparsePCA(3, missing="em").fit(sparse.csr_matrix(X))
    with pytest.raises(ValueError, match="missing must be 'em' or None"):
        StreamingSparsePCA(3, missing="mean").fit(X)
    model = StreamingSparsePCA(3, missing="em").fit(X)
    before = model.components_.copy()
    with pytest.raises(ValueError, match="cannot be estimated with sample_weight"):
        model.partial_fit(holed, sample_weight=np.ones(len(X)))
    np.testing.assert_array_equal(model.components_, before)
    assert model.n_samples_seen_ == 120
