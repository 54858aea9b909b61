"""Sketches beside plain sums of weighted samples: exact means and energies, and no more lost than is said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from givens.data.passes import Weighted
from givens.data.sketch import Frequent, Sketch, sendable_rule
from givens.numerics import parallel
from tests.properties import examples


def exact(rows, weights):
    mean = weights @ rows / weights.sum()
    return mean, (rows - mean).T * weights @ (rows - mean)


def sketched(rows, cuts, weights, **options):
    sketch = Sketch(
        rows.shape[1], Frequent(2, options.pop("columns", rows.shape[1])), np.float64, **options
    ).begin(0)
    for part in np.split(np.arange(len(rows)), sorted(cuts)):
        sketch.add(rows[part], weights[part])
    return sketch


@examples(40)
@given(
    seed=st.integers(0, 1000),
    cuts=st.lists(st.integers(1, 119), max_size=5),
    forgetting=st.sampled_from([1.0, 0.99, 0.8, 0.1]),
    scaled=st.booleans(),
    unit=st.sampled_from([1.0, 1e150, 1e-150]),
    merged=st.booleans(),
)
def test_mean_scatter_and_divisor_are_those_of_weighted_samples(seed, cuts, forgetting, scaled, unit, merged):
    rng = np.random.default_rng(seed)
    rows, own = rng.standard_normal((120, 4)) + 3, rng.uniform(0.1, 4.0, 120)
    options = {"forgetting": forgetting, "scaled": scaled}  # room for all: nothing is dropped
    if merged:
        sketch = sketched(rows[:70] * unit, [], own[:70], **options)
        sketch.merge(sketched(rows[70:] * unit, [], own[70:], **options))
    else:
        sketch = sketched(rows * unit, cuts, own, **options).finished()
    fade = forgetting ** np.arange(120)[::-1]
    weights = own * fade
    mean, scatter = exact(rows, weights)
    size = sketch.unit / unit
    np.testing.assert_allclose(sketch.mean * size, mean, rtol=1e-11)
    np.testing.assert_allclose((sketch.Y * size).T @ (sketch.Y * size), scatter, atol=1e-9)
    if scaled:
        np.testing.assert_allclose(sketch.squares * size**2, np.diag(scatter), rtol=1e-10)
        assert sketch.total() == pytest.approx(4 * sketch.divisor())
    else:
        assert sketch.total() * size**2 == pytest.approx(np.trace(scatter), rel=1e-11)
    # As if `own` samples of weight 1, forgotten together, had come.
    assert sketch.divisor() == pytest.approx(weights.sum() - own @ fade**2 / weights.sum())


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("columns", [3, 8, 40])
@pytest.mark.parametrize("forgetting", [1.0, 0.97])
@pytest.mark.parametrize("scaled", [False, True])
def test_no_more_is_lost_than_is_said(parts, columns, forgetting, scaled):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 40)) * np.geomspace(3, 0.1, 40) + 5
    options = {"forgetting": forgetting, "scaled": scaled, "columns": columns}
    sketch, *others = (sketched(part, [], np.ones(len(part)), **options) for part in np.array_split(X, parts))
    for other in others:
        sketch.merge(other)
    sketch.end()
    _, scatter = exact(X, forgetting ** np.arange(300)[::-1])
    if scaled:
        roots = np.sqrt(np.diag(scatter) / sketch.divisor())
        scatter = scatter / np.outer(roots, roots)
    Y = sketch.columns() * (1.0 if scaled else sketch.unit)
    lost = np.linalg.eigvalsh(scatter - Y.T @ Y)
    total = np.trace(scatter)
    assert lost[0] >= -1e-10 * total
    assert lost[-1] <= total - np.sum(Y**2) + 1e-10 * total
    assert sketch.kept() == pytest.approx(np.sum(Y**2) / total)
    if not scaled:  # deviations that change move the bound
        assert lost[-1] <= (sketch.largest_loss() + 1e-10) * total
    if columns == 40:
        assert lost[-1] <= 1e-10 * total


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_threads_cuts_and_forms_change_no_bit(form):
    X = form(np.random.default_rng(0).standard_normal((90, 9000)))

    def arrays(threads, cuts):
        sketch = Sketch(9000, Frequent(3, 10), np.float64).begin(0)
        with parallel.pool(threads):
            for start, stop in zip([0, *cuts], [*cuts, 90], strict=True):
                sketch.add(X[start:stop])
            sketch.end()
        return sketch.Y.tobytes(), sketch.mean.tobytes(), sketch.energy

    assert arrays(1, []) == arrays(2, []) == arrays(3, [1, 7, 26, 27, 60])


def test_a_copy_keeps_what_it_has():
    from copy import copy

    X = np.random.default_rng(0).standard_normal((200, 5))
    sketch = sketched(X[:90], [], np.ones(90))
    kept, before = copy(sketch), (sketch.Y.copy(), sketch.mean.copy(), len(sketch.waiting_weights))
    batch = X[90:95].copy()
    sketch.add(batch)
    batch[:] = np.nan  # the caller fills the same array again
    sketch.add(X[95:])
    sketch.merge(sketched(X, [], np.ones(200)))
    assert np.array_equal(kept.Y, before[0])
    assert np.array_equal(kept.mean, before[1])
    assert len(kept.waiting_weights) == before[2]
    np.testing.assert_allclose(sketch.mean * sketch.unit, X.mean(axis=0), atol=1e-13)


def test_what_overflows_is_refused_also_if_it_waits():
    X = np.random.default_rng(0).standard_normal((200, 5))
    sketch = sketched(X, [], np.ones(200))
    for rows in (X[:3] * 1e200, X * 1e200, sparse.csr_matrix(X[:3] * 1e200)):
        with pytest.raises(
            ValueError, match="samples are too large beside the first, which are of the size of"
        ):
            sketch.finished().add(rows)
    with pytest.raises(ValueError, match="ask for fewer components"):
        sendable_rule(3000, 100_000)


def test_weights_are_shared_out_by_the_numbers_of_rows():
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((60, 4)), rng.integers(0, 3, 60).astype(float)
    empty = Weighted(Sketch(4, Frequent(2, 4), np.float64), weights)
    one, two = empty.begin(0), empty.begin(25)
    one.add(X[:10])
    one.add(X[10:25])
    two.add(X[25:])
    two.end()
    assert two.weights.size == 0
    one.merge(two)
    mean, scatter = exact(X, weights)
    sketch = one.summary
    assert (one.next, sketch.count) == (60, np.count_nonzero(weights))
    np.testing.assert_allclose(sketch.mean * sketch.unit, mean)
    np.testing.assert_allclose(sketch.total() * sketch.unit**2, np.trace(scatter))
    with pytest.raises(ValueError, match="more samples than sample_weight"):
        empty.begin(50).add(X)
