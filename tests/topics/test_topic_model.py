import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from givens import TopicModel
from givens.data.passes import TILE_ROWS
from givens.datasets import make_topics

# Simulated documents seldom have every word. `test_empty_documents_and_words_are_taken_with_a_sentence` looks at this warning.
pytestmark = pytest.mark.filterwarnings("ignore:.* words occur in no document", "ignore:not converged")


# Some of scikit-learn's checks have tables without structure, of which moments see too little; a warning says so.
@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(
    [TopicModel(n_components=2, counts="any"), TopicModel(n_components=2, counts="any", alpha0=0)]
)
def test_scikit_learns_contract(estimator, check):
    check(estimator)


def error(truth, components):
    """Mean L1 distance of topics, in their best order."""
    found = components / components.sum(axis=1, keepdims=True)
    distances = np.abs(truth[:, None] - found[None]).sum(axis=2)
    rows, columns = linear_sum_assignment(distances)
    return distances[rows, columns].mean()


@pytest.fixture(scope="module")
def sample():
    return make_topics(4000, n_components=6, n_words=150, document_length=60, random_state=0)


@pytest.fixture(scope="module")
def fitted(sample):
    return TopicModel(6).fit(sample.X)


def test_topics_of_simulated_documents_are_found(sample, fitted):
    pure = TopicModel(6, max_iter=0).fit(sample.X)
    assert error(sample.topics, pure.components_) < 0.2
    assert error(sample.topics, fitted.components_) < 0.1
    assert fitted.alpha_.sum() == pytest.approx(1.0, rel=0.35)
    assert fitted.perplexity(sample.X) < pure.perplexity(sample.X)
    assert pure.result_.converged
    assert 0 < pure.residual_ < 0.1
    np.testing.assert_allclose(fitted.weights_.sum(), 1)


def test_error_falls_with_the_number_of_documents():
    big = make_topics(16_000, n_components=5, n_words=100, document_length=60, random_state=1)
    errors = [
        error(big.topics, TopicModel(5, max_iter=0).fit(big.X[:n]).components_) for n in (1000, 4000, 16_000)
    ]
    # As 1/√N: halved for four times as many; a third more is allowed for chance.
    assert errors[1] < 0.67 * errors[0]
    assert errors[2] < 0.67 * errors[1]


def test_single_topic_model_tells_the_topic_of_each_document():
    drawn = make_topics(2000, n_components=4, n_words=80, document_length=40, alpha0=0, random_state=2)
    for steps in (0, 5):
        model = TopicModel(4, alpha0=0, max_iter=steps).fit(drawn.X)
        assert error(drawn.topics, model.components_) < 0.2
        shares = model.transform(drawn.X)
        rows, columns = linear_sum_assignment(-(drawn.shares.T @ shares))
        assert np.mean(drawn.shares[:, rows].argmax(axis=1) == shares[:, columns].argmax(axis=1)) > 0.98
        assert not model.alpha_.any()


@pytest.mark.parametrize("max_iter", [0, 3])
def test_same_bits_for_any_number_of_threads_and_the_same_topics_for_any_cut(max_iter):
    X = make_topics(TILE_ROWS + 700, n_components=4, n_words=60, document_length=20, random_state=3).X
    whole, threaded = (TopicModel(4, max_iter=max_iter, threads=threads).fit(X) for threads in (1, 2))
    np.testing.assert_array_equal(threaded.components_, whole.components_)
    np.testing.assert_array_equal(threaded.transform(X), whole.transform(X))
    assert threaded.result_.trace.value == whole.result_.trace.value
    for cut in ([X[:100], X[100:5000], X[5000:]], [X[n : n + 999] for n in range(0, X.shape[0], 999)]):
        model = TopicModel(4, max_iter=max_iter).fit(cut)
        # The passes over documents compute in single precision.
        for name in ("components_", "alpha_"):
            np.testing.assert_allclose(getattr(model, name), getattr(whole, name), rtol=1e-7)
        assert model.result_.value == pytest.approx(whole.result_.value, rel=1e-7)


def test_the_last_bound_is_that_of_the_returned_model(sample):
    X = sample.X[:1000]
    for max_iter in (1, 2, 30):
        # With as many steps per document as `perplexity` takes; they stop at 1e-3 instead of 1e-4.
        model = TopicModel(6, max_iter=max_iter, max_doc_update_iter=100).fit(X)
        assert model.bound_ == np.exp(-model.result_.trace.value[-1])
        np.testing.assert_allclose(model.bound_, model.perplexity(X), rtol=2e-3)
    # Few steps per document give a lower bound too, and a longer fit goes on from the same bounds.
    short, longer = (TopicModel(6, max_iter=max_iter, tol=0).fit(X) for max_iter in (2, 4))
    assert short.bound_ > short.perplexity(X)
    assert short.result_.trace.value == longer.result_.trace.value[:3]
    assert np.isnan(TopicModel(6, max_iter=0).fit(X).bound_)


def test_convergence_is_that_of_the_passes(sample):
    model = TopicModel(6).fit(sample.X)
    gains = np.diff(model.result_.trace.value)
    assert gains[-1] < 1e-4 <= gains[-2]
    assert model.result_.message.startswith(
        f"converged: step {model.n_iter_} of variational inference gained "
    )
    assert TopicModel(6, max_iter=0).fit(sample.X).converged_


def test_stream_before_its_axes_are_fixed(sample):
    model = TopicModel(6, basis_samples=10_000)
    model.partial_fit(sample.X[:2000])
    assert error(sample.topics, model.components_) < 0.4
    with pytest.raises(NotFittedError, match="10000 samples"):
        model.sibling()
    with pytest.raises(ValueError, match="fed by partial_fit"):
        model.merge(TopicModel(6))


def test_attributes_of_scikit_learns_class_are_there(sample, fitted):
    other = LatentDirichletAllocation(6, max_iter=2, random_state=0).fit(sample.X)
    for name in [name for name in vars(other) if name.endswith("_") and not name.startswith("_")]:
        if name != "random_state_":
            assert hasattr(fitted, name), name
    assert fitted.components_.shape == other.components_.shape
    assert fitted.exp_dirichlet_component_.shape == other.components_.shape
    np.testing.assert_array_equal(fitted.get_feature_names_out(), [f"topicmodel{i}" for i in range(6)])
    assert fitted.set_output(transform="pandas").transform(sample.X[:3]).shape == (3, 6)
    fitted.set_output(transform="default")


def test_shares_are_near_the_truth(sample, fitted):
    shares = fitted.transform(sample.X)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    gamma = fitted.transform(sample.X, normalize=False)
    np.testing.assert_allclose(gamma.sum(axis=1), sample.X.sum(axis=1).A1 + fitted.alpha_.sum())
    np.testing.assert_allclose(gamma / gamma.sum(axis=1, keepdims=True), shares)
    rows, columns = linear_sum_assignment(-(sample.shares.T @ shares))
    assert np.abs(shares[:, columns] - sample.shares[:, rows]).mean() < 0.04


def test_top_words_take_their_names_from_the_vocabulary():
    texts = [
        "the cat sat on the mat",
        "dogs and cats and mats",
        "stocks fell on the market",
        "the market and stocks rose",
    ] * 10
    vectorizer = CountVectorizer()
    X = vectorizer.fit_transform(texts)
    for vocabulary in (vectorizer.get_feature_names_out(), vectorizer.vocabulary_):
        model = TopicModel(2, vocabulary=vocabulary, max_iter=2).fit(X)
        words = model.top_words(3)
        assert all(word in vectorizer.vocabulary_ for row in words for word in row)
        assert words[0][0] == vectorizer.get_feature_names_out()[model.components_[0].argmax()]
    with pytest.raises(ValueError, match="n_words must be a whole number from 1"):
        model.top_words(1000)
    pipeline = make_pipeline(CountVectorizer(), TopicModel(2, max_iter=1)).fit(texts)
    assert pipeline.transform(texts).shape == (40, 2)


def test_coherence_of_words_that_meet_and_of_words_that_do_not():
    # Words 0 and 1 are in the same documents, 2 and 3 never meet.
    X = np.array([[3, 3, 1, 0], [3, 3, 0, 1]] * 20 + [[0, 0, 4, 0], [0, 0, 0, 4]] * 20)
    model = TopicModel(2, max_iter=5).fit(X)
    model._solved = replace(model._solved, counts=np.array([[9.0, 8, 1, 1], [1, 1, 9, 8]]))
    np.testing.assert_allclose(model.coherence(X, 2), [1.0, -1.0])
    shares = np.array([0.5, 0.5, 0.25])
    expected = np.log(shares[2] / (shares[0] * 0.5)) / -np.log(shares[2])
    model._solved = replace(model._solved, counts=np.array([[9.0, 1, 8, 1], [1, 9, 1, 8]]))
    np.testing.assert_allclose(model.coherence(X, 2), expected, atol=1e-12)


BAD = [
    (np.array([[1, -1], [2, 2]]), "word 1 of document 0 has -1"),
    (np.array([[1, 1], [2.5, 2]]), "word 0 of document 1 has 2.5"),
    (np.array([[1, 1], [1e300, 2]]), "word 0 of document 1 has 1e\\+300"),
    (np.array([[1, np.nan], [2, 2]]), "NaN"),
    (["some text", "more text"], "X holds text \\('some text'\\)"),
    (np.array([["some text"], ["more text"]]), "count the words first"),
    ([["some", "text"], ["more", "text"]], "X holds text"),
]


# partial_fit takes a batch without words.
NO_WORDS = ("fit", np.zeros((3, 4)), "X holds no words: every count is zero")


@pytest.mark.parametrize(
    ("method", "X", "sentence"),
    [*((method, *case) for method in ("fit", "partial_fit") for case in BAD), NO_WORDS],
)
def test_bad_counts_get_one_sentence_and_change_nothing(method, X, sentence, fitted):
    before = dict(vars(fitted))
    with pytest.raises((ValueError, TypeError), match=sentence):
        getattr(fitted, method)(X)
    assert vars(fitted) == before


PARAMETERS = [
    ({"n_components": 0}, "n_components must be a whole number"),
    ({"max_iter": -1}, "max_iter must be a whole number"),
    ({"alpha0": -0.1}, "alpha0 must be"),
    ({"alpha0": np.inf}, "alpha0 must be a number from 0"),
    ({"topic_word_prior": -1}, "topic_word_prior must be"),
    ({"topic_word_prior": "x"}, "topic_word_prior must be"),
    ({"tol": np.nan}, "tol must be"),
    ({"counts": "some"}, "counts must be one of 'whole', 'any'"),
    (
        {"vocabulary": ["a", "b"]},
        "vocabulary must have a word for each of the \\d+ columns of X, got 2 words",
    ),
    ({"basis_samples": 0}, "basis_samples must be a whole number from 1"),
    ({"max_doc_update_iter": 0}, "max_doc_update_iter must be a whole number from 1"),
    ({"random_state": "x"}, "random_state must be"),
    ({"threads": 0}, "threads must be"),
]


@pytest.mark.parametrize(("parameters", "sentence"), PARAMETERS)
def test_bad_parameters_get_one_sentence(parameters, sentence, sample):
    with pytest.raises(ValueError, match=sentence):
        TopicModel(**parameters).fit(sample.X)


def test_more_topics_than_moments_can_tell_apart():
    X = np.array([[2, 2, 0, 0], [0, 0, 2, 2]] * 30)
    with pytest.raises(ValueError, match="only 2 positive eigenvalues"):
        TopicModel(3, max_iter=0).fit(X)
    with pytest.warns(UserWarning, match="starts from random topics"):
        model = TopicModel(3, max_iter=3).fit(X)
    assert model.components_.shape == (3, 4)
    assert model.result_.U.size == 0
    assert model.result_.method == "random topics; 3 variational passes"
    assert np.isnan(model.residual_)


def test_documents_of_at_most_two_words_have_no_triples():
    X = np.array([[1, 1, 0], [0, 1, 1]] * 10)
    with pytest.raises(ValueError, match="no document has three words"):
        TopicModel(2, max_iter=0).fit(X)


def test_empty_documents_and_words_are_taken_with_a_sentence(sample):
    used = np.asarray(sample.X[:500].sum(axis=0)).ravel() > 0
    X = sparse.hstack([sample.X[:500, used], sparse.csr_matrix((500, 2))]).tolil()
    words = X.shape[1]
    X = sparse.vstack([X[:7], sparse.csr_matrix((1, words)), X[7:]]).tocsr()
    sentence = (
        "1 of 501 documents have no words: they say nothing about the topics; "
        f"2 of {words} words occur in no document, the first is {words - 2}: they have the least probability in every topic"
    )
    with pytest.warns(UserWarning, match=sentence):
        model = TopicModel(3, max_iter=2).fit(X)
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
    assert np.all(topics[:, -2:] > 0)
    np.testing.assert_allclose(topics[:, -2:].max(axis=1), topics.min(axis=1))
    np.testing.assert_allclose(model.transform(X)[7], model.weights_)


def test_a_bad_count_in_a_later_batch_is_found(sample):
    bad = sample.X[:5].tolil()
    bad[1, 3] = -2
    with pytest.raises(ValueError, match="word 3 of document 101 has -2"):
        TopicModel(2).fit([sample.X[:100], bad.tocsr()])


def test_duplicate_documents_and_a_single_word(sample):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same = TopicModel(1, max_iter=2).fit(sparse.vstack([sample.X[:1]] * 40))
        one = TopicModel(1, max_iter=2).fit(np.full((5, 1), 4))
    np.testing.assert_allclose(same.transform(sample.X[:4]), 1)
    np.testing.assert_allclose(one.transform(np.full((2, 1), 3)), 1)


def test_the_result_says_what_ran():
    X = make_topics(400, n_components=3, n_words=60, random_state=0).X
    refined = TopicModel(3, max_iter=2, tol=0).fit(X)
    assert refined.result_.method.startswith("moments of words up to the third, decomposed by ")
    assert refined.result_.method.endswith("; 2 variational passes")
    assert "pass" not in TopicModel(3, max_iter=0).fit(X).result_.method


def test_words_that_stand_twice_are_refused(sample):
    words = [f"w{k}" for k in range(sample.X.shape[1])]
    words[3] = "w1"
    with pytest.raises(ValueError, match="vocabulary has the word 'w1' more than once"):
        TopicModel(2, vocabulary=words).fit(sample.X)
