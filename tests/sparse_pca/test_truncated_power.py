"""Exact counts: derivative, matching and choice of entries against brute force; the ascent; SparsePCA with counts."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import sparse

from givens import SparsePCA, metrics
from givens.datasets import sparse_modules
from givens.numerics import gram, parallel
from givens.sparse_pca.cardinality import one_by_one, renewed, strongest
from givens.sparse_pca.truncated_power import (
    ProductForm,
    SampleForm,
    SparseRows,
    ascend,
    combinations,
    cut,
    divided,
    largest,
    matched,
    settled,
)
from paper.baselines import gpower
from tests.properties import examples


def adjusted(E):
    """Σ R_jj² of scores, a row each, the strongest first."""
    E = E[np.argsort(-np.linalg.norm(E, axis=1))]
    return metrics.adjusted_from_scores(E.T).sum() * (E.shape[1] - 1)


def reported(loadings, X, asked):
    """Σ R_jj² of loadings in the order of the counts that were asked for, equal counts by their variance."""
    E, counts = loadings.scores(X), loadings.counts()
    left, order = list(np.argsort(-np.linalg.norm(E, axis=1), kind="stable")), []
    for count in asked:
        order.append(next(j for j in left if counts[j] == count))
        left.remove(order[-1])
    return metrics.adjusted_from_scores(E[order].T).sum() * (E.shape[1] - 1)


def centred(seed, n=20, d=60):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(4, size=(n, d)) * np.exp(0.5 * rng.standard_normal(d))
    return X - X.mean(axis=0)


def products(X):
    return ProductForm(X.T @ X)


def axes_of(X):
    """All principal columns."""
    _, s, axes = np.linalg.svd(X, full_matrices=False)
    return axes * s[:, None]


def began(X, counts, form=SampleForm):
    return one_by_one(form(X), axes_of(X), np.sum(X**2, axis=0), np.sort(counts)[::-1])


def directions(E):
    """W, half the derivative of the adjusted variance, and that, the strongest score first."""
    S = E @ E.T
    T, _, held = combinations(S, np.argsort(-np.diagonal(S), kind="stable"))
    return T @ E, held


FORMS = pytest.mark.parametrize("form", [SampleForm, products])


@examples(25)
@given(seed=st.integers(0, 1000), m=st.integers(1, 6))
def test_directions_are_half_the_derivative_of_the_adjusted_variance(seed, m):
    rng = np.random.default_rng(seed)
    E = rng.standard_normal((m, 9)) * 2.0 ** -np.arange(m)[:, None]
    W, held = directions(E)
    assert held == pytest.approx(adjusted(E))
    for _ in range(3):
        D = rng.standard_normal(E.shape)
        h = 1e-6
        slope = (adjusted(E + h * D) - adjusted(E - h * D)) / (2 * h)
        assert np.sum(2 * W * D) == pytest.approx(slope, rel=1e-4, abs=1e-5 * np.sum(E**2))


def test_scores_that_others_explain_or_that_are_zero_take_no_part(rng):
    E = rng.standard_normal((3, 8))
    E = np.vstack([3 * E, E[:1] * 0.5, np.zeros((1, 8))])
    W, held = directions(E)
    assert held == pytest.approx(adjusted(E[:3]))
    np.testing.assert_allclose(W[:3], directions(E[:3])[0])
    np.testing.assert_array_equal(W[3:], E[3:])
    W, held = directions(rng.standard_normal((5, 3)))
    assert np.isfinite(W).all()
    assert not directions(np.zeros((2, 4)))[0].any()


@given(seed=st.integers(0, 1000), counts=st.lists(st.integers(1, 12), min_size=2, max_size=5))
def test_counts_go_where_they_hold_most(seed, counts):
    Y = np.random.default_rng(seed).standard_normal((len(counts), 12))
    squares = -np.sort(-(Y**2), axis=1)

    def held(order):
        return sum(row[:count].sum() for row, count in zip(squares, order))

    found = matched(Y, np.array(counts))
    assert sorted(found) == sorted(counts)
    assert held(found) == pytest.approx(max(held(order) for order in permutations(counts)))


@given(y=st.lists(st.integers(-3, 3), min_size=1, max_size=30), count=st.integers(1, 30))
def test_the_largest_entries_are_counted_exactly_also_among_equal_ones(y, count):
    y = np.array(y, dtype=float)
    where, values = largest(y, count)
    assert len(where) == min(count, len(y))
    assert np.all(np.diff(where) > 0)
    left = np.delete(np.abs(y), where)
    assert np.abs(y[where]).min() >= left.max(initial=0.0)
    size = np.linalg.norm(y[where])
    np.testing.assert_allclose(values * size, y[where] if size else 0 * values)


@pytest.mark.parametrize("order", ["C", "F"])
def test_scores_of_long_and_short_loadings(rng, order):
    X = np.array(rng.standard_normal((7, 200)), order=order)
    Y = rng.standard_normal((4, 200))
    loadings = cut(Y, np.array([150, 3, 40, 1]))
    Z = loadings.dense(200)
    np.testing.assert_array_equal(loadings.counts(), np.count_nonzero(Z, axis=1))
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1.0)
    np.testing.assert_allclose(loadings.scores(X), Z @ X.T, atol=1e-12)


def test_the_strongest_features(rng):
    squares = rng.uniform(size=5000) ** 8
    kept = strongest(squares, np.array([20, 30]))
    np.testing.assert_array_equal(kept, np.sort(np.argsort(-squares)[:1100]))
    np.testing.assert_array_equal(strongest(squares[:1500], np.array([20, 30])), np.arange(1500))
    # Among features that are much alike, none is strong.
    np.testing.assert_array_equal(strongest(1 + squares, np.array([20, 30])), np.arange(5000))


@FORMS
@examples(25)
@given(seed=st.integers(0, 1000), counts=st.lists(st.integers(1, 60), min_size=1, max_size=6))
def test_the_ascent_keeps_the_best_of_its_steps_and_the_counts(form, seed, counts):
    X = centred(seed)
    start = began(X, counts, form)
    np.testing.assert_array_equal(start.counts(), sorted(counts, reverse=True))
    found = ascend(form(X), start, np.array(counts), 0.0, 100)
    assert sorted(found.here.rows.counts()) == sorted(counts)
    assert found.explained >= reported(start, X, counts) * (1 - 1e-9)
    assert found.explained == max(found.trace.value)
    assert found.explained == pytest.approx(reported(found.here.rows, X, counts))
    E = found.here.rows.scores(X)
    np.testing.assert_allclose(found.here.images, E @ X, atol=1e-9 * np.sum(E**2))
    # Columns in which the next loadings are counted: of unit directions in the span of the scores.
    W = np.linalg.lstsq(X.T, found.Y.T, rcond=None)[0].T
    np.testing.assert_allclose(np.linalg.norm(W, axis=1), 1.0, rtol=1e-6)
    assert found.converged


@FORMS
@pytest.mark.parametrize("seed", range(4))
def test_settled_values_are_the_best_of_their_features(seed, form):
    X = centred(seed)
    where = np.sort(np.random.default_rng(seed).permutation(60)[:7])
    one = SparseRows([where], [np.full(7, 7**-0.5)])
    values = settled(form(X), one, np.array([7]), 1e-9).values[0]
    top = np.linalg.eigvalsh(X[:, where].T @ X[:, where])[-1]
    assert np.sum((X[:, where] @ values) ** 2) == pytest.approx(top, rel=1e-6)
    some = cut(np.random.default_rng(seed).standard_normal((3, 60)), np.array([9, 4, 2]))
    better = settled(form(X), some, np.array([9, 4, 2]))
    assert reported(better, X, [9, 4, 2]) >= reported(some, X, [9, 4, 2])
    assert better.same_features(some)


@FORMS
def test_one_by_one_finds_the_strongest_features_of_all(form):
    X = centred(3)
    start = began(X, [1, 1, 1], form)
    rest, expected = X.copy(), []
    for _ in range(3):
        expected.append(int(np.argmax(np.linalg.norm(rest, axis=0))))
        q = rest[:, expected[-1]] / np.linalg.norm(rest[:, expected[-1]])
        rest -= np.outer(q, q @ rest)
    assert [int(where[0]) for where in start.where] == expected


@examples(15)
@given(seed=st.integers(0, 1000), counts=st.lists(st.integers(1, 60), min_size=1, max_size=5))
@example(seed=505, counts=[1, 1, 24, 17])  # two entries of a loading cost nothing to leave out
@example(seed=76, counts=[36, 1, 36, 60])  # the feature of the second component has weight 0 in the last
@example(seed=0, counts=[1, 1, 59])  # only 58 features have a weight in the last
def test_components_follow_counts_features_and_signs(seed, counts):
    X = centred(seed)
    rng = np.random.default_rng(seed)
    model = SparsePCA(len(counts), n_nonzero=counts).fit(X)
    # What a component of one feature explains leaves nothing of that feature to the later ones, whose weight is then 0 up to
    # rounding errors.
    fewest = np.maximum(np.array(counts) - counts.count(1), 1)
    assert np.all(model.n_nonzero_ <= counts)
    assert np.all(model.n_nonzero_ >= fewest)
    np.testing.assert_array_equal(np.count_nonzero(model.components_, axis=1), model.n_nonzero_)
    assert model.result_.trace.value[-1] <= model.result_.value
    adjusted_variances = metrics.adjusted_variance(X, model.components_)
    np.testing.assert_allclose(model.explained_variance_, adjusted_variances, rtol=1e-7, atol=1e-12)
    assert model.result_.value == pytest.approx(19 * adjusted_variances.sum(), rel=1e-7)
    scaled = SparsePCA(len(counts), n_nonzero=counts).fit(X * 2.0**-300)
    np.testing.assert_array_equal(scaled.components_, model.components_)
    signs, places = rng.choice([-1.0, 1.0], 60), rng.permutation(60)
    turned = SparsePCA(len(counts), n_nonzero=counts).fit((X * signs)[:, places])
    # Where a count includes features of weight 0, rounding errors choose among these, and steps differ from there on; what
    # they explain does not, beyond the gain at which they end.
    assert turned.result_.value == pytest.approx(model.result_.value, rel=3e-4)
    if max(counts) <= 60 - counts.count(1):
        np.testing.assert_allclose(
            np.abs(turned.components_), np.abs(model.components_)[:, places], atol=1e-6
        )


@pytest.mark.parametrize("m", [1, 3])
def test_all_features_counted_are_principal_components(m):
    X = centred(0)
    model = SparsePCA(m, n_nonzero=60).fit(X)
    sizes = np.linalg.svd(X, compute_uv=False)[:m]
    np.testing.assert_allclose(model.explained_variance_.sum(), np.sum(sizes**2) / 19, rtol=1e-6)


def test_layouts_sparse_matrices_and_threads_change_nothing(rng):
    X = rng.poisson(1.0, size=(30, 2500)) * rng.uniform(0.5, 2.0, 2500)
    X[:, :50] += 2 * rng.poisson(2.0, size=(30, 1))
    models = [
        SparsePCA(3, n_nonzero=[40, 5, 12], threads=threads).fit(form(X))
        for form in (np.ascontiguousarray, np.asfortranarray, sparse.csr_matrix)
        for threads in (1, 2)
    ]
    for one, two in zip(models[::2], models[1::2]):
        np.testing.assert_array_equal(one.components_, two.components_)
        np.testing.assert_allclose(one.components_, models[0].components_, atol=1e-8)
    assert models[0].gamma_ == pytest.approx(models[-1].gamma_)


@pytest.mark.parametrize("penalty", ["l1", "l0"])
@pytest.mark.parametrize("alpha", [0.1, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_no_less_than_greedy_gpower_with_its_own_counts(seed, alpha, penalty):
    X = sparse_modules(50, 800, n_modules=6, module_size=40, spread=0.3, random_state=seed).X
    X -= X.mean(axis=0)
    level = alpha * np.linalg.norm(X, axis=0).max()
    Z = gpower(X.T, 5, level if penalty == "l1" else level**2, penalty=penalty, block=False).Z.T
    counts = np.maximum(np.count_nonzero(Z, axis=1), 1)
    model = SparsePCA(5, n_nonzero=counts.tolist()).fit(X)
    assert adjusted(model.components_ @ X.T) >= adjusted(Z @ X.T) * (1 - 1e-6)


@FORMS
@pytest.mark.parametrize("seed", range(4))
def test_a_loading_gives_way_to_one_that_explains_more_beside_the_others(seed, form):
    X = centred(seed, d=200)
    table, squares, axes = form(X), np.sum(X**2, axis=0), axes_of(X)
    counts = np.array([3, 3, 3])
    good = ascend(table, began(X, counts, form), counts, 0.0, 100)
    # A weak one in the place of the last.
    weak = np.sort(np.argsort(squares)[:3])
    spoilt = good.here.replaced(2, weak, np.full(3, 3**-0.5))
    better = renewed(spoilt, axes, squares)
    np.testing.assert_array_equal(better.rows.counts(), counts)
    assert adjusted(better.rows.scores(X)) > spoilt.directions(counts)[2]
    # What cannot be bettered is left alone.
    single = began(X, [1], form)
    again = ascend(table, single, np.array([1]), 0.0, 100)
    assert renewed(again.here, axes, squares) is again.here


@given(seed=st.integers(0, 1000), total=st.integers(3, 36))
def test_a_sum_of_counts_goes_to_the_largest_entries(seed, total):
    Y = np.random.default_rng(seed).standard_normal((3, 12))
    counts = divided(Y, total)
    assert counts.sum() == total
    assert counts.min() >= 1
    counted = [np.sort(np.abs(y))[::-1][:count] for y, count in zip(Y, counts)]
    uncounted = [np.sort(np.abs(y))[::-1][count:] for y, count in zip(Y, counts)]
    # But for the one entry that each component has in any case.
    more = [entries[1:] for entries in counted if len(entries) > 1]
    assert min(map(np.min, more), default=np.inf) >= max((u.max(initial=0.0) for u in uncounted), default=0.0)


@examples(25)
@given(seed=st.integers(0, 1000), counts=st.lists(st.integers(1, 12), min_size=1, max_size=4))
def test_samples_and_their_products_lead_to_the_same_loadings(seed, counts):
    X = centred(seed, n=150)
    with parallel.pool(1):
        found = [
            ascend(form(X), began(X, counts, form), np.array(counts), 0.0, 100)
            for form in (SampleForm, products)
        ]
    assert found[1].explained == pytest.approx(found[0].explained, rel=1e-9)
    assert found[1].here.rows.same_features(found[0].here.rows)
    for one, two in zip(found[0].here.rows.values, found[1].here.rows.values):
        np.testing.assert_allclose(np.abs(two), np.abs(one), atol=1e-4)


@FORMS
def test_axes_of_many_features_are_the_principal_ones(rng, form, monkeypatch):
    monkeypatch.setattr(gram, "MANY_ROWS", 100)
    X = rng.standard_normal((300, 200)) * 0.9 ** np.arange(200)
    found, exact = form(X).principal_columns(6), np.linalg.svd(X, full_matrices=False)
    np.testing.assert_allclose(np.linalg.norm(found[:3], axis=1), exact[1][:3], rtol=1e-3)
    expected = exact[1][:3, None] * exact[2][:3]
    np.testing.assert_allclose(
        np.abs(found[:3] @ expected.T), np.diag(exact[1][:3] ** 2), atol=0.05 * exact[1][0] ** 2
    )


def test_tall_tables_are_fitted_through_products_with_the_same_components(rng):
    """Large and tall: the products of features; the same rows twice as many starts go through samples."""
    X = rng.standard_normal((1200, 400)) + 2 * rng.standard_normal((1200, 1)) * (np.arange(400) < 30)
    X[:, 40:70] += 1.5 * rng.standard_normal((1200, 1))
    through_products = SparsePCA(20, n_nonzero=30, threads=1).fit(X)
    two = SparsePCA(20, n_nonzero=30, threads=2).fit(sparse.csr_matrix(X))
    np.testing.assert_allclose(two.components_, through_products.components_, atol=1e-6)
    through_samples = SparsePCA(20, n_nonzero=30, n_starts=2, random_state=0).fit(X)
    share = through_products.explained_variance_ratio_.sum()
    assert through_samples.explained_variance_ratio_.sum() >= share * (1 - 1e-6)
    assert through_samples.explained_variance_ratio_.sum() <= share * 1.2
    np.testing.assert_allclose(
        through_products.explained_variance_, metrics.adjusted_variance(X, through_products.components_)
    )
    total = SparsePCA(20, n_nonzero=("total", 600)).fit(X)
    assert total.n_nonzero_.sum() == 600
    assert total.explained_variance_ratio_.sum() >= share * (1 - 1e-6)


def test_the_loadings_of_an_earlier_fit_stay():
    """They are where halves begin, for stability."""
    X = centred(4)
    model = SparsePCA(3, n_nonzero=6).fit(X)
    before = model.explained_variance_ratio_.sum()
    again = model._fit_from(X, previous=model.components_)
    assert again.explained_variance_ratio_.sum() >= before * (1 - 1e-3)
    assert again.n_iter_ <= 2


@pytest.mark.parametrize("seed", range(12))
def test_the_trace_never_falls_and_ends_at_the_value(seed):
    rng = np.random.default_rng(seed)
    n, d, m = int(rng.integers(6, 40)), int(rng.integers(6, 30)), int(rng.integers(2, 6))
    X = rng.standard_normal((n, d)) * rng.gamma(1, 1, d)
    total = int(rng.integers(m, m * d + 1))
    for options in ({"n_nonzero": ("total", total)}, {"n_nonzero": 1 + total // m % d}):
        result = SparsePCA(m, **options).fit(X).result_
        assert np.all(np.diff(result.trace.value) >= 0)
        assert result.trace.value[-1] == result.value
