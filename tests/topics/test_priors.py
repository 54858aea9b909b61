import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import gammaln
from scipy.stats import beta as beta_distribution

from givens.data.documents import Counts, WordCounts
from givens.data.rows import Rows
from givens.topics.variational import DirichletShares, OneTopic, dirichlet_maximum, refine
from givens.topics.word_moments import add_products


def two_topics():
    rng = np.random.default_rng(0)
    topics = np.ascontiguousarray(rng.dirichlet(np.full(6, 0.8), size=2).T)
    X = sparse.csr_matrix(rng.poisson(1.0, size=(12, 6)).astype(float))
    return topics, Counts.of(X), X.toarray()


def test_bound_lies_below_the_likelihood_and_near_it():
    topics, counts, X = two_topics()
    alpha = np.array([0.7, 1.2])

    def density(h, c):
        return np.prod((h * topics[:, 0] + (1 - h) * topics[:, 1]) ** c) * beta_distribution.pdf(h, *alpha)

    exact = [np.log(quad(density, 0, 1, args=(c,))[0]) for c in X]
    inferred = DirichletShares(alpha).infer(counts, topics, steps=500, tol=1e-12, expected=None)
    assert sum(exact) - 0.5 * len(X) < inferred.bound < sum(exact)
    rough = DirichletShares(alpha).infer(counts, topics, steps=1, tol=0.0, expected=None)
    assert rough.bound < inferred.bound


def test_one_topic_has_the_likelihood_of_a_mixture_of_multinomials():
    topics, counts, X = two_topics()
    weights = np.array([0.3, 0.7])
    inferred = OneTopic(weights).infer(counts, topics, steps=0, tol=0.0, expected=None)
    probabilities = weights * np.prod(topics[None] ** X[:, :, None], axis=1)
    assert inferred.bound == pytest.approx(np.log(probabilities.sum(axis=1)).sum())
    np.testing.assert_allclose(inferred.shares, probabilities / probabilities.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("prior", [DirichletShares(np.array([0.7, 1.2])), OneTopic(np.array([0.4, 0.6]))])
def test_expected_counts_share_out_the_words(prior):
    topics, counts, X = two_topics()
    expected = np.zeros(topics.shape)
    prior.infer(counts, topics, steps=50, tol=1e-9, expected=expected)
    np.testing.assert_allclose((expected * topics).sum(axis=1), X.sum(axis=0))


def test_dirichlet_maximum_is_that_of_a_general_optimiser():
    rng = np.random.default_rng(1)
    truth = np.array([0.2, 1.5, 0.6, 4.0])
    mean_logs = np.log(rng.dirichlet(truth, size=3000)).mean(axis=0)

    def loss(logs):
        alpha = np.exp(logs)
        return -(gammaln(alpha.sum()) - gammaln(alpha).sum() + (alpha - 1) @ mean_logs)

    best = np.exp(minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-9}).x)
    for start in (np.ones(4), np.array([20.0, 0.01, 3.0, 0.1])):
        np.testing.assert_allclose(dirichlet_maximum(start, mean_logs), best, rtol=1e-5)


@pytest.mark.parametrize("kind", ["dirichlet", "one topic"])
def test_passes_raise_the_bound(kind):
    rng = np.random.default_rng(2)
    X = sparse.csr_matrix(rng.poisson(rng.gamma(0.3, size=(60, 20))).astype(float))
    topics = rng.dirichlet(np.ones(20), size=3)
    prior = DirichletShares(np.ones(3)) if kind == "dirichlet" else OneTopic(np.full(3, 1 / 3))
    # Without smoothing, which is no part of the bound.
    refined = refine(
        Rows([X], check=WordCounts(True)),
        topics,
        prior,
        passes=15,
        steps=2000,
        smoothing=1e-9,
        min_gain=0.0,
        step_tol=1e-6,
    )
    assert len(refined.values) > 3
    assert np.all(np.diff(refined.values) > -1e-5)
    assert refined.values[-1] > refined.values[0] + 0.01
    assert refined.last[0].sum() == pytest.approx(X.sum(), rel=1e-4)


def test_products_are_added_to_what_is_there():
    _, counts, X = two_topics()
    out = np.ones((6, 9))
    y = np.random.default_rng(3).standard_normal((12, 9))
    add_products(counts, (y, out))
    np.testing.assert_allclose(out, 1 + X.T @ y)
