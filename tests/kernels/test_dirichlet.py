import numpy as np
import pytest
from scipy import sparse
from scipy.special import digamma

from givens.data.documents import Counts
from givens.kernels.dirichlet import infer, write_exp_digamma


def test_exp_digamma_is_that_of_scipy():
    x = np.concatenate([np.logspace(-2.5, 15, 2000), np.linspace(0.01, 20, 2000)])
    out = np.empty_like(x)
    write_exp_digamma(x, len(x), out)
    np.testing.assert_allclose(out, np.exp(digamma(x)), rtol=1e-10)


def test_exp_digamma_of_tiny_numbers_is_nothing():
    x = np.array([1e-300, 1e-12, 1e-4])
    out = np.empty_like(x)
    write_exp_digamma(x, len(x), out)
    assert np.all(out >= 0)
    assert np.all(out < 1e-300)


def plain_inference(c, topics, alpha, steps):
    gamma = alpha + c.sum() / len(alpha)
    for _ in range(steps):
        theta = np.exp(digamma(gamma))
        gamma = alpha + theta * ((c / (topics @ theta)) @ topics)
    theta = np.exp(digamma(gamma))
    return gamma, theta, c / (topics @ theta)


@pytest.mark.parametrize(
    ("k", "dtype", "rtol"), [(1, float, 1e-9), (3, float, 1e-9), (8, float, 1e-9), (6, np.float32, 3e-5)]
)
def test_inference_takes_the_textbook_steps(k, dtype, rtol):
    rng = np.random.default_rng(k)
    X = sparse.csr_matrix(rng.poisson(0.7, size=(9, 14)).astype(float))
    topics = rng.dirichlet(np.full(14, 0.5), size=k).T
    alpha = rng.uniform(0.1, 1, size=k)
    counts = Counts.of(X)
    gamma, weights, ratios = np.empty((9, k)), np.empty((9, k)), np.empty(len(counts.data))
    infer(*counts, np.ascontiguousarray(topics.astype(dtype)), alpha, 0, 9, 7, 0.0, gamma, weights, ratios)
    for n in range(9):
        part = slice(counts.indptr[n], counts.indptr[n + 1])
        expected = plain_inference(counts.data[part], topics[counts.indices[part]], alpha, 7)
        for found, right in zip((gamma[n], weights[n], ratios[part]), expected):
            np.testing.assert_allclose(found, right, rtol=rtol)


def test_inference_of_a_document_without_words_or_with_an_impossible_word():
    X = sparse.csr_matrix(np.array([[0, 0, 0], [0, 0, 2]], dtype=float))
    counts = Counts.of(X)
    topics = np.array([[0.5, 0.5], [0.5, 0.5], [0.0, 0.0]])
    gamma, weights, ratios = np.empty((2, 2)), np.empty((2, 2)), np.empty(1)
    infer(*counts, topics, np.array([0.3, 0.7]), 0, 2, 20, 1e-3, gamma, weights, ratios)
    np.testing.assert_allclose(gamma, [[0.3, 0.7], [0.3, 0.7]])
    assert np.all(np.isfinite(ratios))
