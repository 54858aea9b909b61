"""What scikit-learn's tests hold true of `LatentDirichletAllocation` holds for `TopicModel`.

Where it does not, the test's comment names the line of docs/topics.md, "In place of LatentDirichletAllocation", that says so.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.special import digamma
from sklearn.decomposition import LatentDirichletAllocation

from givens import TopicModel
from givens.datasets import make_topics

pytestmark = pytest.mark.filterwarnings("ignore:not converged")

GROUPS = [{0, 1, 2}, {3, 4, 5}, {6, 7, 8}]


@pytest.fixture(scope="module")
def separate():
    """Nine documents of three topics that share no words, three times each word of their own topic."""
    return sparse.csr_matrix(np.kron(np.eye(3, dtype=int), np.full((3, 3), 3)))


@pytest.fixture(scope="module")
def mixed():
    """600 documents of four topics, without words that occur in none of them."""
    X = make_topics(600, n_components=4, n_words=50, document_length=40, random_state=0).X
    return X[:, np.asarray(X.sum(axis=0)).ravel() > 0]


def groups(model):
    """The three most probable words of each topic."""
    return sorted((set(row[-3:].tolist()) for row in np.argsort(model.components_, axis=1)), key=min)


KINDS = {
    "csr matrix": sparse.csr_matrix,
    "csr array": sparse.csr_array,
    "dense": lambda X: X.toarray(),
    "batches": lambda X: [X[:2], X[2:7], X[7:]],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("max_iter", [0, 10])
def test_topics_without_common_words_are_told_apart(separate, kind, threads, max_iter):
    model = TopicModel(3, max_iter=max_iter, threads=threads).fit(KINDS[kind](separate))
    assert groups(model) == GROUPS


def test_shares_are_positive_and_sum_to_one(mixed):
    # "`transform` returns shares only": scikit-learn's normalize=False returns the parameters instead.
    shares = TopicModel(4).fit(mixed).transform(mixed)
    assert shares.min() > 0
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)


def test_negative_counts_are_refused_in_the_same_words():
    for model in (TopicModel(2), LatentDirichletAllocation(2)):
        with pytest.raises(ValueError, match=r"^Negative values in data"):
            model.fit(np.full((5, 10), -1.0))


@pytest.mark.parametrize("method", ["perplexity", "score", "transform"])
def test_another_number_of_words_is_refused(mixed, method):
    model = TopicModel(4).fit(mixed)
    with pytest.raises(ValueError, match=r"X has \d+ features, but TopicModel is expecting \d+ features"):
        getattr(model, method)(mixed[:, 1:])


def test_each_pass_improves_what_it_maximises(mixed):
    """The bound, which has five steps per document, or with all steps the score and the perplexity."""
    # "Passes raise the bound": by default they need not lower `perplexity`, which takes more steps.
    passes = TopicModel(4, max_iter=6, tol=0).fit(mixed)
    assert passes.n_iter_ == 6
    assert np.diff(passes.result_.trace.value).min() > 0
    one, ten = (
        TopicModel(4, max_iter=max_iter, max_doc_update_iter=100, tol=0).fit(mixed) for max_iter in (1, 10)
    )
    assert ten.n_iter_ > one.n_iter_
    assert ten.score(mixed) > one.score(mixed)
    assert ten.perplexity(mixed) < one.perplexity(mixed)


def test_perplexity_follows_from_the_score(mixed):
    model = TopicModel(4).fit(mixed)
    assert model.perplexity(mixed) == pytest.approx(np.exp(-model.score(mixed) / mixed.sum()), rel=1e-12)


@pytest.mark.parametrize("max_iter", [1, 10])
def test_the_bound_of_a_fit_is_the_perplexity_of_its_documents(separate, mixed, max_iter):
    # Equal where five steps per document are enough; elsewhere "`bound_`" is larger.
    model = TopicModel(3, max_iter=max_iter).fit(separate)
    assert model.bound_ == pytest.approx(model.perplexity(separate), rel=1e-6)
    model = TopicModel(4, max_iter=max_iter).fit(mixed)
    assert 1.0 < model.bound_ / model.perplexity(mixed) < 1.05
    model = TopicModel(4, max_iter=max_iter, max_doc_update_iter=100).fit(mixed)
    assert model.bound_ == pytest.approx(model.perplexity(mixed), rel=2e-3)


def test_priors(separate, mixed):
    # "α is learned": scikit-learn's default is 1/k for both priors. A given α0 is shared by the topics, and kept.
    learned, given = TopicModel(4).fit(mixed), TopicModel(4, alpha0=1.0).fit(mixed)
    np.testing.assert_array_equal(learned.doc_topic_prior_, learned.alpha_)
    assert len(set(learned.alpha_.tolist())) == 4
    assert given.doc_topic_prior_.sum() == pytest.approx(1.0)
    assert learned.topic_word_prior_ == 0.05
    assert LatentDirichletAllocation(4, max_iter=1).fit(separate).topic_word_prior_ == 0.25


def test_documents_without_words(separate):
    # "A table without words is refused": scikit-learn returns the prior.
    for X in (np.zeros((5, 4)), sparse.csr_matrix((5, 4))):
        with pytest.raises(ValueError, match="X holds no words: every count is zero"):
            TopicModel(2).fit(X)
    # A single empty document has the shares of the prior for both.
    empty = np.zeros((1, 9))
    for model in (TopicModel(3), LatentDirichletAllocation(3, max_iter=1, random_state=0)):
        alpha = np.broadcast_to(model.fit(separate).doc_topic_prior_, 3)
        np.testing.assert_allclose(model.transform(empty)[0], alpha / alpha.sum(), rtol=1e-6)


def test_expected_logarithms_of_the_topics(separate):
    for model in (TopicModel(3), LatentDirichletAllocation(3, max_iter=2, random_state=0)):
        counts = model.fit(separate).components_
        expected = np.exp(digamma(counts) - digamma(counts.sum(axis=1, keepdims=True)))
        np.testing.assert_allclose(model.exp_dirichlet_component_, expected, rtol=1e-6)


def test_single_and_double_precision_agree():
    # "Fractional counts": only with counts="any". "float64": scikit-learn keeps the precision of X.
    double = np.random.default_rng(0).uniform(size=(20, 10))
    single = double.astype(np.float32)
    with pytest.raises(ValueError, match="X must hold whole counts"):
        TopicModel(5).fit(double)
    with warnings.catch_warnings():
        # Uniform numbers have no topics: the passes start from random topics, as all of scikit-learn's do.
        warnings.filterwarnings("ignore", ".*starts from random topics instead")
        models = [TopicModel(5, counts="any").fit(X) for X in (double, single)]
    np.testing.assert_allclose(models[1].components_, models[0].components_, rtol=1e-5)
    np.testing.assert_allclose(models[1].transform(single), models[0].transform(double), rtol=1e-5)
    assert models[1].components_.dtype == models[1].exp_dirichlet_component_.dtype == np.float64
