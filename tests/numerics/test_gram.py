"""Gram matrices in blocks, and their roots."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from givens.numerics import gram, parallel


@settings(max_examples=25)
@given(seed=st.integers(0, 1000), n=st.integers(1, 40), d=st.integers(1, 30), density=st.floats(0.0, 1.0))
def test_products_of_sparse_and_dense_blocks(seed, n, d, density):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * (rng.uniform(size=(n, d)) < density)
    through, plain = np.zeros((d, d)), np.zeros((d, d))
    for part in (slice(0, n // 2), slice(n // 2, n)):
        gram.add_sparse(through, sparse.csr_matrix(A[part]))
        gram.add_dense(plain, A[part])
    upper = np.triu(A.T @ A)
    np.testing.assert_allclose(np.triu(through), upper, atol=1e-12)
    np.testing.assert_allclose(np.triu(plain), upper, atol=1e-12)


@pytest.mark.parametrize("rank", [1, 5, 8])
def test_the_root_has_as_many_rows_as_there_is_rank(rng, rank):
    sizes = 10.0 ** np.linspace(-12, 12, 8)
    A = rng.standard_normal((60, rank)) @ rng.standard_normal((rank, 8)) * sizes
    A[:, 3] = 0.0
    norms = np.linalg.norm(A, axis=0)
    C = A.T @ A
    R = gram.root(np.triu(C), norms)
    assert R.shape == (min(rank, 7), 8)
    np.testing.assert_allclose(R.T @ R, C, atol=1e-13 * np.outer(norms, norms).max(initial=0), rtol=1e-9)
    padded = gram.root(np.triu(C), norms, rows=8)
    np.testing.assert_array_equal(padded[: len(R)], R)
    assert not padded[len(R) :].any()


def test_threads_do_not_change_the_bits(rng):
    A = rng.standard_normal((50, 1200))
    S = sparse.csr_matrix(A * (rng.uniform(size=A.shape) < 0.1))
    found = []
    for threads in (1, 2):
        with parallel.pool(threads):
            C, T = np.zeros((1200, 1200)), np.zeros((1200, 1200))
            gram.add_dense(C, A)
            gram.add_sparse(T, S)
            found.append((C, T))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])
