"""Signs of tails, and the fixed-point steps that come before them."""

from __future__ import annotations

import numpy as np
import pytest

from givens import ICA
from givens.ica import whiten_samples
from givens.ica.adaptive import fixed_point
from givens.ica.white_array import WhiteArray
from givens.numerics import parallel


@pytest.fixture(scope="module")
def white():
    rng = np.random.default_rng(2)
    S = np.column_stack((rng.laplace(size=(9000, 4)), rng.uniform(-1, 1, (9000, 4))))
    return whiten_samples(S @ rng.standard_normal((8, 8))).Z


def test_signs_are_those_of_the_moments(white):
    U = np.linalg.qr(np.random.default_rng(0).standard_normal((8, 8)))[0]
    Y = white @ U
    moments = np.mean(1 / np.cosh(Y) ** 2, axis=0) - np.mean(np.tanh(Y) * Y, axis=0)
    np.testing.assert_array_equal(WhiteArray(white, None).tail_sums(U).signs, np.sign(moments))


def test_fixed_points_are_stationary_whatever_the_tails(white):
    U, settled = fixed_point(white, np.eye(8))
    assert settled
    np.testing.assert_allclose(U.T @ U, np.eye(8), atol=1e-12)
    signs = WhiteArray(white, None).tail_sums(U).signs
    assert sorted(signs) == [-1] * 4 + [1] * 4
    Y = white @ U
    M = (np.tanh(Y) * signs).T @ Y / len(Y)
    assert np.abs(M - M.T).max() < 0.05


def test_the_bits_do_not_depend_on_the_threads(white):
    found = []
    for threads in (1, 2):
        with parallel.pool(threads):
            found.append(fixed_point(white, np.eye(8))[0])
    np.testing.assert_array_equal(*found)


def test_a_given_start_may_use_samples_of_the_rows_too():
    rng = np.random.default_rng(1)
    X = rng.laplace(size=(20_000, 4)) @ rng.standard_normal((4, 4))
    start = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    few, many = ICA(w_init=start).fit(X), ICA().fit(X)
    np.testing.assert_allclose(few.components_, many.components_, rtol=1e-5, atol=1e-5)
    assert few.n_iter_ < 12
