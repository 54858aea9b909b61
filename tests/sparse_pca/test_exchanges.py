"""Exchanges of single entries against brute force, and counts against thresholds."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from givens import SparsePCA, metrics
from givens.datasets import pitprops, sparse_modules
from givens.sparse_pca.cardinality import ScoredLoadings, exchanged
from givens.sparse_pca.truncated_power import (
    ImagedLoadings,
    ProductForm,
    SampleForm,
    SparseRows,
    cut,
    reported_order,
    settled,
)


def centred(seed, n=15, d=20):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(4, size=(n, d)) * np.exp(0.5 * rng.standard_normal(d))
    return X - X.mean(axis=0)


def reported(X, loadings, asked):
    E = loadings.scores(X)
    order = reported_order(np.sum(E**2, axis=1), loadings.counts(), asked)
    return metrics.adjusted_from_scores(E[order].T).sum() * (len(X) - 1)


def share(model):
    return float(model.explained_variance_ratio_.sum())


def fit(model, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit_covariance(table.R, table.n_obs) if hasattr(table, "R") else model.fit(table)


def products(X):
    return ProductForm(X.T @ X)


FORMS = pytest.mark.parametrize("form", [SampleForm, products])


@FORMS
@given(seed=st.integers(0, 1000), place=st.integers(0, 3), count=st.integers(1, 6))
def test_the_gain_of_an_exchange_is_that_of_the_adjusted_variance(form, seed, place, count):
    X = centred(seed)
    # Counts that differ are reported in the order in which they are asked for.
    counts = np.array([8, 7, 6, 5])
    counts[place] = count
    Z = cut(np.random.default_rng(seed).standard_normal((4, 20)), counts)
    asked = np.arange(4)
    squares = np.sum(X**2, axis=0)
    scored = ScoredLoadings(ImagedLoadings.of(form(X), Z), squares, counts)
    np.testing.assert_array_equal(np.sort(scored.order), asked)
    order = scored.order
    exchange = scored.best_exchange(int(np.flatnonzero(order == place)[0]))
    assert exchange.j == place
    assert len(exchange.where) == count
    assert len(np.setdiff1d(exchange.where, Z.where[place])) == 1
    assert np.linalg.norm(exchange.values) == pytest.approx(1.0)

    def total(where, values):
        other = SparseRows(list(Z.where), list(Z.values))
        other.where[place], other.values[place] = where, values
        E = other.scores(X)
        return metrics.adjusted_from_scores(E[order].T).sum() * (len(X) - 1)

    before = total(Z.where[place], Z.values[place])
    assert total(exchange.where, exchange.values) - before == pytest.approx(exchange.gain, abs=1e-8 * before)
    # No other entry in the place of one of these brings more, with the weight that makes its score largest.
    earlier = order[: np.flatnonzero(order == place)[0]]
    B = np.linalg.qr(Z.scores(X)[earlier].T)[0]
    best = -np.inf
    for out in range(count):
        kept = np.delete(Z.values[place], out)
        old = np.delete(Z.where[place], out)
        for new in np.setdiff1d(np.arange(20), Z.where[place]):
            parts = np.column_stack((X[:, old] @ kept / (np.linalg.norm(kept) or 1.0), X[:, new]))
            parts -= B @ (B.T @ parts)
            weights = np.linalg.eigh(parts.T @ parts)[1][:, -1] if count > 1 else np.array([0.0, 1.0])
            tried = np.append(weights[0] * kept / (np.linalg.norm(kept) or 1.0), weights[1])
            best = max(best, total(np.append(old, new), tried) - before)
    assert exchange.gain == pytest.approx(best, abs=1e-7 * before)


@FORMS
@given(seed=st.integers(0, 1000), counts=st.lists(st.integers(1, 12), min_size=1, max_size=5))
def test_exchanges_keep_the_counts_and_never_lose(form, seed, counts):
    X = centred(seed)
    asked = np.array(counts)
    start = cut(np.random.default_rng(seed).standard_normal((len(counts), 20)), asked)
    found = exchanged(ImagedLoadings.of(form(X), start), np.sum(X**2, axis=0), asked)
    np.testing.assert_array_equal(found.counts(), asked)
    assert all(np.all(np.diff(where) > 0) for where in found.where)
    assert found is start or reported(X, found, asked) > reported(X, start, asked)


@pytest.mark.parametrize("seed", range(4))
def test_a_wrong_entry_is_exchanged_for_the_right_one(seed):
    data = sparse_modules(60, 80, n_modules=2, module_size=6, random_state=seed)
    X = data.X - data.X.mean(axis=0)
    good = cut(data.components, np.array([6, 6]))
    spoilt = SparseRows([w.copy() for w in good.where], good.values)
    spoilt.where[0][2] = np.setdiff1d(np.arange(80), np.concatenate(good.where))[0]
    start = settled(
        SampleForm(X), SparseRows([np.sort(w) for w in spoilt.where], good.values), np.array([6, 6])
    )
    here = ImagedLoadings.of(SampleForm(X), start)
    found = exchanged(here, np.sum(X**2, axis=0), np.array([6, 6]))
    assert {tuple(w) for w in found.where} == {tuple(w) for w in good.where}


def test_dependent_scores_are_left_alone(rng):
    X = rng.standard_normal((10, 3))[:, [0, 0, 1, 2]]
    twice = SparseRows([np.array([0]), np.array([1])], [np.ones(1), np.ones(1)])
    here = ImagedLoadings.of(SampleForm(X), twice)
    assert exchanged(here, np.sum(X**2, axis=0), np.array([1, 1])) is twice


THRESHOLDS = [("l1", 0.27), ("l0", 0.2), ("l1", 0.45)]
TABLES = {
    "digits": (lambda: load_digits().data, False),
    "wine": (lambda: load_wine().data, True),
    "breast cancer": (lambda: load_breast_cancer().data, True),
    "pit props": (pitprops, False),
}


@pytest.mark.parametrize(("penalty", "alpha"), THRESHOLDS)
@pytest.mark.parametrize("name", TABLES)
def test_counts_explain_at_least_what_a_threshold_does_at_its_own_counts(name, penalty, alpha):
    make, scale = TABLES[name]
    table = make()
    by_threshold = fit(SparsePCA(4, threshold=(penalty, alpha), scale=scale), table)
    counts = by_threshold.n_nonzero_.tolist()
    by_counts = fit(SparsePCA(4, n_nonzero=counts, scale=scale), table)
    assert share(by_counts) >= share(by_threshold) * (1 - 1e-9)
    np.testing.assert_array_equal(by_counts.n_nonzero_, counts)
    result = by_counts.result_
    assert result.rotations > 0
    assert result.starts.max() == pytest.approx(result.value)


@given(seed=st.integers(0, 500), counts=st.lists(st.integers(1, 20), min_size=1, max_size=4))
def test_more_starts_never_report_less(seed, counts):
    X = centred(seed)
    shares = [
        share(SparsePCA(len(counts), n_nonzero=counts, n_starts=k, random_state=0).fit(X)) for k in (1, 2, 5)
    ]
    assert shares[0] * (1 - 1e-12) <= shares[1] <= shares[2] * (1 + 1e-12)


def test_more_starts_never_report_less_on_a_table():
    X = load_wine().data
    shares = []
    for k in (1, 2, 4, 6):
        model = SparsePCA(4, n_nonzero=[2, 7, 4, 4], n_starts=k, scale=True, random_state=0)
        shares.append(share(model.fit(X)))
        assert len(model.result_.starts) == k
    assert np.all(np.diff(shares) >= -1e-12)
