"""Passes through the features of a block, beside plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from givens.numerics import parallel
from givens.streaming.products import BlockPasses, Samples


def centred(X, unit, forgetting, weights, mean):
    """One sample after the other, by the mean of those before it."""
    mean, rows = mean.copy(), []
    for x, weight in zip(X.astype(float) / unit, weights):
        rows.append(np.sqrt(1 - 1 / weight) * (x - mean))
        mean += (x - mean) / weight
    return np.array(rows).reshape(X.shape), mean


@given(
    st.integers(1, 4),
    st.integers(1, 5),
    st.integers(1, 900),
    st.sampled_from([np.float64, np.float32]),
    st.booleans(),
    st.sampled_from([1.0, 0.9]),
    st.integers(0, 2**31),
)
def test_a_pass_is_a_turn_a_centring_and_a_product(tiles, kept, d, dtype, scaled, forgetting, seed):
    rng = np.random.default_rng(seed)
    n = 12 * tiles
    W = rng.standard_normal((n, d)).astype(dtype)
    Q = rng.standard_normal((kept, n))
    samples = int(rng.integers(0, n - kept + 1))
    X = rng.standard_normal((samples, d)).astype(dtype) * 8
    begin = n - samples
    mean, squares = rng.standard_normal(d), rng.random(d) if scaled else np.zeros(0)
    weights = np.cumprod(np.full(samples, 1.5)) + 1
    inverse = (rng.random(d) + 0.5).astype(dtype) if scaled else None
    expected = W.astype(float)
    expected[:kept] = Q @ expected
    expected[begin:], moved = centred(X, 4.0, forgetting, weights, mean)
    summed = squares.copy()
    for row in expected[begin:] if scaled else ():
        summed = forgetting * summed + row**2
    untouched = slice(min(begin, kept), begin)

    passes = BlockPasses(W, Samples(X, weights, np.ones(len(X)), mean, squares, forgetting, 4.0))
    G, energies = passes(Q, 0, samples, begin, True, inverse)

    tol = 1e-12 if dtype is np.float64 else 1e-5
    for rows in (slice(0, min(kept, begin)), untouched, slice(begin, n)):
        np.testing.assert_allclose(W[rows], expected[rows], rtol=tol, atol=tol * n)
    np.testing.assert_allclose(mean, moved, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(squares, summed, rtol=tol, atol=tol)
    np.testing.assert_allclose(energies, np.sum(expected[begin:] ** 2, axis=1), rtol=tol)
    P = W.astype(float) if inverse is None else W.astype(float) * inverse
    np.testing.assert_allclose(G, P @ P.T, rtol=tol, atol=tol * np.abs(P).max() ** 2 * d)
    np.testing.assert_array_equal(G, G.T)


@pytest.mark.parametrize("n", [12, 60, 96])
def test_what_is_not_wanted_is_left_alone(n):
    W = np.random.default_rng(0).standard_normal((n, 50))
    before = W.copy()
    passes = BlockPasses(W)
    G, energies = passes()
    assert G.size == energies.size == 0
    np.testing.assert_array_equal(W, before)
    G, _ = passes(products=True)
    np.testing.assert_array_equal(W, before)
    np.testing.assert_allclose(G, W @ W.T, atol=1e-12)


@pytest.mark.parametrize("rows", [12, 96])
def test_threads_and_cuts_give_the_same_bits(rows):
    """A piece for every thread to take; samples that come one by one, or together."""
    rng = np.random.default_rng(0)
    X, d = rng.standard_normal((8, 30_000)), 30_000
    weights = np.arange(2.0, 10.0)

    def found(threads, cuts):
        W, mean = np.random.default_rng(1).standard_normal((rows, d)), np.zeros(d)
        new = Samples(X, weights, np.ones(len(X)), mean, np.zeros(0))
        with parallel.pool(threads):
            passes = BlockPasses(W, new)
            for first, last in cuts:
                Q = np.eye(4, rows)[::-1] if first == 0 else None
                G, _ = passes(Q, first, last, 4 + first, last == 8)
        return W.tobytes(), mean.tobytes(), G.tobytes()

    whole = found(1, [(0, 8)])
    assert found(2, [(0, 8)]) == whole
    assert found(3, [(0, 1), (1, 7), (7, 8)]) == whole
