"""Documents drawn from a latent Dirichlet allocation with known topics."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from givens.support.arguments import generator, whole


class TopicSample(NamedTuple):
    """Documents, and the parameters that they were drawn from.

    Attributes
    ----------
    X : sparse matrix of shape (documents, words)
        Counts.
    topics : array of shape (k, words)
        Probabilities of the words of each topic.
    alpha : array of shape (k,)
        Dirichlet parameters of the documents' topic shares.
    shares : array of shape (documents, k)
    """

    X: sparse.csr_matrix
    topics: np.ndarray
    alpha: np.ndarray
    shares: np.ndarray


def make_topics(
    n_documents: int = 1000,
    *,
    n_topics: int = 10,
    n_words: int = 1000,
    document_length: int = 100,
    alpha0: float = 1.0,
    topic_sparsity: float = 0.05,
    topics: np.ndarray | None = None,
    alpha: np.ndarray | None = None,
    random_state: Any = 0,
) -> TopicSample:
    """Draw documents from a latent Dirichlet allocation.

    Parameters
    ----------
    n_documents : int, default=1000
    n_topics : int, default=10
    n_words : int, default=1000
    document_length : int, default=100
        Number of words of every document.
    alpha0 : float, default=1.0
        Sum of the Dirichlet parameters, which are proportional to draws from a Gamma distribution of shape 5. 0: one topic per
        document.
    topic_sparsity : float, default=0.05
        Topics are drawn from a symmetric Dirichlet distribution with this parameter.
    topics : array of shape (k, words), optional
        Topics to draw from, instead of random ones.
    alpha : array of shape (k,), optional
        Dirichlet parameters to draw from, instead of random ones.
    random_state : int, RandomState, Generator or None, default=0

    Returns
    -------
    TopicSample

    Examples
    --------
    >>> from givens.datasets import make_topics
    >>> sample = make_topics(50, n_topics=3, n_words=20, document_length=40)
    >>> sample.X.shape, int(sample.X.sum()), sample.topics.shape
    ((50, 20), 2000, (3, 20))
    """
    n = whole(n_documents, "n_documents", 1)
    length = whole(document_length, "document_length", 1)
    rng = generator(random_state)
    if not (isinstance(alpha0, Real) and 0 <= float(alpha0) < 1e15):
        raise ValueError(f"alpha0 must be a number of at least 0, got {alpha0!r}")
    if topics is None:
        k, words = whole(n_topics, "n_topics", 1), whole(n_words, "n_words", 1)
        topics = rng.gamma(topic_sparsity, size=(k, words)) + 1e-12
    topics = np.asarray(topics, dtype=float)
    topics = topics / topics.sum(axis=1, keepdims=True)
    k = len(topics)
    weights = rng.gamma(5.0, size=k) if alpha is None else np.asarray(alpha, dtype=float)
    if alpha is None:
        alpha = alpha0 * weights / weights.sum()
    alpha = np.asarray(alpha, dtype=float)
    shares = _shares(alpha, weights, n, rng)
    return TopicSample(_drawn(shares, topics, length, rng), topics, alpha, shares)


def _shares(alpha: np.ndarray, weights: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """The topic shares of n documents; where α is zero, each document has one topic, drawn with these weights."""
    if alpha.sum() > 0:
        return rng.dirichlet(np.maximum(alpha, 1e-9), size=n)
    return np.eye(len(alpha))[rng.choice(len(alpha), size=n, p=weights / weights.sum())]


def _drawn(
    shares: np.ndarray, topics: np.ndarray, length: int, rng: np.random.Generator
) -> sparse.csr_matrix:
    """Counts of documents with `length` words: first the number of words of each topic is drawn, then the words."""
    numbers = rng.multinomial(length, shares)
    rows, columns = [], []
    for number, topic in zip(numbers.T, topics):
        drawn = np.searchsorted(np.cumsum(topic), rng.random(int(number.sum())))
        columns.append(np.minimum(drawn, len(topic) - 1))
        rows.append(np.repeat(np.arange(len(shares)), number))
    row, column = np.concatenate(rows), np.concatenate(columns)
    counts = sparse.coo_matrix((np.ones(len(row)), (row, column)), shape=(len(shares), topics.shape[1]))
    return sparse.csr_matrix(counts)
