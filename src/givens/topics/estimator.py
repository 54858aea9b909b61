"""`TopicModel`: latent Dirichlet allocation from the moments of words, refined by a few variational passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.special import digamma
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags

from givens.data.by_rows import by_rows
from givens.data.documents import WordCounts
from givens.data.rows import Rows
from givens.data.stream import Stream, StreamedMoments
from givens.numerics import parallel
from givens.result import Result
from givens.solve.outer_loops import no_run
from givens.support.arguments import (
    Samples,
    counted,
    finite,
    generator,
    one_of,
    tolerance,
    warn_caller,
    whole,
)
from givens.support.fitting import atomic_fit, warn_unless_converged
from givens.topics.variational import LEAST_ALPHA, DirichletShares, Inference, OneTopic, Prior, refine
from givens.topics.word_moments import (
    MomentTopics,
    WordMoments,
    npmi,
    principal_axes,
    principal_word_moments,
    solve_topics,
)


@dataclass(frozen=True)
class _Solved:
    """Pseudo-counts of the words of each topic, the prior, what the moments gave, and the run."""

    counts: np.ndarray
    prior: Prior
    start: MomentTopics
    result: Result
    n_iter: int = 0

    @property
    def topics(self) -> np.ndarray:
        """Words x topics, each topic of sum 1."""
        return np.ascontiguousarray((self.counts / self.counts.sum(axis=1, keepdims=True)).T)

    @property
    def weights(self) -> np.ndarray:
        """Mean shares of the topics under the prior."""
        return self.prior.weights

    @property
    def eigenvalues(self) -> np.ndarray:
        """Eigenvalues of the second moment."""
        return self.start.eigenvalues


class TopicModel(StreamedMoments, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Topics of documents: latent Dirichlet allocation from moments, refined by variational passes.

    The frequencies of pairs and triples of words determine the topics: pairs give the space that the topics span; triples,
    whitened, are an orthogonal tensor whose components are the topics. No start has to be chosen, and there are no restarts. A
    few variational passes over the documents then use the information that the moments do not contain.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics, k.
    alpha0 : float, optional
        Sum of the Dirichlet parameters of a document's topic shares: small if documents have few topics each. 0 is the
        single-topic model, in which all words of a document belong to one topic. By default the topics from moments are those for
        α0 = 1, and the refinement then learns α. A given α0 is not changed.
    max_iter : int, default=100
        Maximum number of variational passes. 0: moments only. If all are taken before `tol` is met, there is a
        ConvergenceWarning.
    max_doc_update_iter : int, default=5
        Maximum number of steps per document in each of these passes. On real texts, which no model describes exactly, few steps
        are as good or better; for tens of thousands of documents that follow the model, 30 give more accurate topics.
    topic_word_prior : float, default=0.05
        η, the count that the refinement adds to every word of every topic. With moments only, the counts that are added are
        proportional to the frequencies of the words, and η on average.
    tol : float, default=0.01
        Converged when an iteration gains at most tol² times one nat in the bound of the log-likelihood per word.
    counts : {"whole", "any"}, default="whole"
        "whole" refuses fractional counts, for which the moments have no meaning. "any" accepts them.
    vocabulary : sequence of str, or mapping of str to int, optional
        The words of the columns, for `top_words`; as `CountVectorizer` has them in `get_feature_names_out()` or `vocabulary_`.
    basis_samples : int, default=5000
        For `partial_fit`: moments are kept on the first 2k + 10 principal axes of this many first documents.
    threads : int, optional
        By default one per core, at most 8. The result has the same bits for any number.
    random_state : int, RandomState, Generator or None, default=0
        For the starts of the search for axes and of the decomposition, on which the result depends little.

    Attributes
    ----------
    components_ : array of shape (k, n_features_in_)
        Pseudo-counts of the words of each topic; each row, divided by its sum, is a topic.
    weights_ : array of shape (k,)
        Mean shares of the topics under the prior. Topics are in descending order of the weights of
        the components in the decomposition of the third moment.
    alpha_ : array of shape (k,)
        Dirichlet parameters of the shares, 0 in the single-topic model.
    n_components_ : int
        k.
    n_iter_ : int
        Number of variational passes.
    converged_ : bool
        Whether the variational passes converged; without passes, whether the decomposition did.
    result_ : Result
        The run of the passes: its trace has the lower bound of the log-likelihood per word, first that of the topics from
        moments. U is that of the decomposition. Without passes, the run that decomposed the third moment. If moments cannot tell
        k topics apart (a warning says so), U is empty.
    residual_ : float
        The share of the whitened third moment that the topics leave unexplained; NaN if moments cannot tell them apart.
    eigenvalues_ : array
        Eigenvalues of the second moment of the words on the axes, descending.
    bound_ : float
        Perplexity of the training documents by the last bound of the trace; NaN without passes. `perplexity` takes up to 100
        steps per document instead of `max_doc_update_iter`, and is lower.
    doc_topic_prior_, topic_word_prior_, exp_dirichlet_component_, n_batch_iter_
        As in scikit-learn's `LatentDirichletAllocation`; the first is `alpha_`.
    n_features_in_ : int
    feature_names_in_ : array of str
        If the columns of X have names.

    Examples
    --------
    >>> from givens import TopicModel
    >>> from givens.datasets import make_topics
    >>> data = make_topics(2000, n_components=3, n_words=50, topic_sparsity=0.5)
    >>> model = TopicModel(n_components=3).fit(data.X)
    >>> model.transform(data.X[:2]).sum(axis=1).round(6)
    array([1., 1.])
    >>> [len(words) for words in model.top_words(5)]
    [5, 5, 5]
    """

    _solved: _Solved | None

    def __init__(
        self,
        n_components: int = 10,
        *,
        alpha0: float | None = None,
        max_iter: int = 100,
        max_doc_update_iter: int = 5,
        topic_word_prior: float = 0.05,
        tol: float = 1e-2,
        counts: str = "whole",
        vocabulary: Sequence[str] | Mapping[str, int] | None = None,
        basis_samples: int = 5000,
        threads: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.alpha0 = alpha0
        self.max_iter = max_iter
        self.max_doc_update_iter = max_doc_update_iter
        self.topic_word_prior = topic_word_prior
        self.tol = tol
        self.counts = counts
        self.vocabulary = vocabulary
        self.basis_samples = basis_samples
        self.threads = threads
        self.random_state = random_state

    @atomic_fit
    def fit(self, X: Samples, y: object = None) -> Self:
        """Fit in six passes over the documents, and at most `max_iter` + 1 more.

        Parameters
        ----------
        X : sparse matrix or array-like of shape (documents, words), or iterable of such, or dask array or data frame
            Counts. With a list of matrices, or an object whose `__iter__` yields them each time it is called, the documents need
            not fit in memory. A dask array must be chunked along documents; only sums leave the workers.
        y : ignored, optional

        Returns
        -------
        self
        """
        self._check()
        documents = Rows(X, self, self._door())
        words = self._words(documents.n_features)
        rng = generator(self.random_state)
        with parallel.pool(self.threads):
            axes = principal_axes(documents, documents.n_features, int(self.n_components), rng)
            moments = documents.total(WordMoments(axes), "topics-moments")
            _warn_of_empty(moments, words)
            solved = self._solve(moments, rng, documents if self.max_iter else None)
        self._solved, self._stream = solved, None
        return self

    @atomic_fit
    def partial_fit(self, X: Samples, y: object = None) -> Self:
        """Update the model with a batch of documents.

        The first `basis_samples` documents determine 2k + 10 axes, on which the moments of all documents are kept. They
        take 2·words·rank + rank³ numbers. There is no refinement, which would need the documents again. Topics are computed when
        they are first used; before the axes are determined, from the documents so far.

        Parameters
        ----------
        X : sparse matrix or array-like of shape (documents, words)
        y : ignored, optional

        Returns
        -------
        self
        """
        self._check()
        stream = getattr(self, "_stream", None)
        rows = self._door().table(self, X, reset=stream is None)
        if stream is None:
            self._words(rows.shape[1])
            rank = 2 * int(self.n_components) + 10
            start = partial(principal_word_moments, rank=rank, random_state=self.random_state)
            self._stream = Stream(int(self.basis_samples), start, self._door())
        self._add(rows)
        return self

    def transform(self, X: Samples, normalize: bool = True) -> np.ndarray:
        """Topic shares of documents.

        Parameters
        ----------
        X : sparse matrix or array-like of shape (documents, words), or iterable of such
        normalize : bool, default=True
            Divide each row by its sum. Otherwise a row has the parameters of the Dirichlet distribution of a document's shares;
            their sum is that of `alpha_` plus the number of words.

        Returns
        -------
        array of shape (documents, k)
            Rows of sum 1, if normalised; a document without words has the mean shares of the prior. For a dask array or data
            frame, a dask array that is not computed yet.
        """
        method = "_shares" if normalize else "_pseudo_counts"
        return by_rows(self, method, X, self.n_components_, np.float64)

    def _shares(self, X: Samples) -> np.ndarray:
        solved = self._fitted()
        topics = solved.topics
        documents = Rows(X, self, self._door(), reset=False)
        with parallel.pool(self.threads):
            return np.concatenate([solved.prior.infer(counts, topics).shares for counts in documents])

    def _pseudo_counts(self, X: Samples) -> np.ndarray:
        lengths = np.concatenate([counts.lengths for counts in Rows(X, self, self._door(), reset=False)])
        return self._shares(X) * (lengths + self.alpha_.sum())[:, None]

    def score(self, X: Samples, y: object = None) -> float:
        """Lower bound of the log-likelihood of documents, given the topics and α (the likelihood itself if alpha0 is 0).

        Parameters
        ----------
        X : sparse matrix or array-like of shape (documents, words), or iterable of such
        y : ignored, optional

        Returns
        -------
        float
        """
        return float(self._inferred(X).bound)

    def perplexity(self, X: Samples) -> float:
        """exp(−score per word): lower is better.

        Parameters
        ----------
        X : sparse matrix or array-like of shape (documents, words), or iterable of such

        Returns
        -------
        float
        """
        found = self._inferred(X)
        return float(np.exp(-found.bound / found.words)) if found.words else float("nan")

    def top_words(self, n_words: int = 10) -> list[list[str]]:
        """The most probable words of each topic.

        Parameters
        ----------
        n_words : int, default=10

        Returns
        -------
        list of list of str
            Names from `vocabulary`, or those of X's columns, or the columns' numbers.
        """
        names = self._names()
        return [[names[v] for v in row] for row in self._top(n_words)]

    def coherence(self, X: Samples, n_words: int = 10) -> np.ndarray:
        """Mean normalised pointwise mutual information of each topic's most probable words, estimated from X.

        Parameters
        ----------
        X : sparse matrix or array-like of shape (documents, words), or iterable of such
        n_words : int, default=10

        Returns
        -------
        array of shape (k,)
            Between −1 (words that never occur together) and 1; NaN if none of a topic's words occurs.
        """
        top = self._top(whole(n_words, "n_words", 2))
        documents = Rows(X, self, self._door(), reset=False)
        return npmi(documents, top)

    @property
    def components_(self) -> np.ndarray:
        """Pseudo-counts of the words of each topic."""
        return self._fitted().counts

    @property
    def weights_(self) -> np.ndarray:
        """Mean shares of the topics under the prior."""
        return self._fitted().prior.weights

    @property
    def alpha_(self) -> np.ndarray:
        """Dirichlet parameters of the topic shares."""
        return self._fitted().prior.alpha

    @property
    def residual_(self) -> float:
        """What the decomposition left unexplained."""
        return self._fitted().start.residual

    @property
    def n_batch_iter_(self) -> int:
        """Variational passes, as scikit-learn calls them in batch learning."""
        return self.n_iter_

    @property
    def bound_(self) -> float:
        """Perplexity of the training documents."""
        return float(np.exp(-self.result_.value)) if self.n_iter_ else float("nan")

    @property
    def doc_topic_prior_(self) -> np.ndarray:
        """The same as `alpha_`."""
        return self.alpha_

    @property
    def topic_word_prior_(self) -> float:
        """The parameter of that name."""
        self._fitted()
        return float(self.topic_word_prior)

    @property
    def exp_dirichlet_component_(self) -> np.ndarray:
        """exp(E[log topic]) if the components are the parameters of Dirichlet distributions."""
        counts = self._fitted().counts
        return np.exp(digamma(counts) - digamma(counts.sum(axis=1))[:, None])

    @property
    def _n_features_out(self) -> int:
        return len(self._fitted().counts)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def _solve_moments(self, moments: WordMoments) -> _Solved:
        return self._solve(moments, generator(self.random_state))

    def _solve(
        self, moments: WordMoments, rng: np.random.Generator, documents: Rows | None = None
    ) -> _Solved:
        """Topics from moments, refined by passes over documents; if moments fail, the passes start from random topics."""
        k, prior_count = int(self.n_components), float(self.topic_word_prior)
        alpha0 = 1.0 if self.alpha0 is None else float(self.alpha0)  # a pass can double or halve it
        total = moments.totals[0]
        frequencies = moments.diagonals[:, 0] / total
        try:
            start = solve_topics(moments.moments(), k, alpha0, rng, self.threads)
            method = f"moments of words up to the third, decomposed by {start.result.method}"
        except ValueError as error:
            if documents is None:
                raise
            method = "random topics"
            warn_caller(f"{error}; the refinement starts from {method} instead", UserWarning)
            # As scikit-learn's LatentDirichletAllocation does, but about the frequencies of the words.
            topics = frequencies * rng.gamma(100.0, size=(k, len(frequencies)))
            start = MomentTopics(topics, np.full(k, 1 / k), np.empty(0), float("nan"), no_run())
        topics, weights = on_simplex(start.topics, frequencies), start.weights
        prior: Prior = OneTopic(weights)
        if alpha0:
            alpha = np.maximum(alpha0 * weights, LEAST_ALPHA)
            prior = DirichletShares(alpha, fixed=self.alpha0 is not None)
        counts = total * weights[:, None] * topics + prior_count * len(frequencies) * frequencies
        # Words that occur in no document get a small probability instead of 0.
        counts = np.maximum(counts, 1e-3 * prior_count + 1e-300)
        if documents is None:
            result = replace(start.result, method=method)
            return _Solved(counts, prior, start, result)
        refined = refine(
            documents,
            counts,
            prior,
            passes=int(self.max_iter),
            steps=int(self.max_doc_update_iter),
            smoothing=prior_count + 1e-12,
            min_gain=float(self.tol) ** 2,
        )
        counts, prior = refined.last
        passes = len(refined.values) - 1
        method = f"{method}; {counted(passes, 'variational pass', 'variational passes')}"
        result = refined.result(start.result, "variational inference", "in the bound per word", method)
        warn_unless_converged(result.converged, result.message)
        return _Solved(np.ascontiguousarray(counts.T), prior, start, result, passes)

    def _door(self) -> WordCounts:
        return WordCounts(whole=self.counts == "whole")

    def _inferred(self, X: Samples) -> Inference:
        """The inference over the documents of X."""
        solved = self._fitted()
        documents = Rows(X, self, self._door(), reset=False)
        with parallel.pool(self.threads):
            return documents.total(Inference(solved.topics, solved.prior), "topics-likelihood")

    def _top(self, n_words: int) -> np.ndarray:
        n_words = whole(n_words, "n_words", 1, self.n_features_in_, "the number of words")
        topics = self._fitted().topics.T
        return np.argsort(-topics, axis=1, kind="stable")[:, :n_words]

    def _names(self) -> Sequence[str]:
        words = self._words(self.n_features_in_)
        if words is not None:
            return words
        names = getattr(self, "feature_names_in_", None)
        return [str(v) for v in (range(self.n_features_in_) if names is None else names)]

    def _words(self, number: int) -> list[str] | None:
        """The vocabulary as a list, which must have a word for every column."""
        if self.vocabulary is None:
            return None
        if isinstance(self.vocabulary, Mapping):
            columns = sorted(self.vocabulary.items(), key=lambda item: item[1])
            words = [str(word) for word, _ in columns]
            fits = [column for _, column in columns] == list(range(number))
        else:
            words = [str(word) for word in _as_list(self.vocabulary)]
            fits = len(words) == number
        if not fits:
            raise ValueError(
                f"vocabulary must have a word for each of the {number} columns of X, got {len(words)} words"
            )
        if len(set(words)) < number:
            twice = Counter(words).most_common(1)[0][0]
            raise ValueError(
                f"vocabulary has the word {twice!r} more than once: each column of X needs a word of its own"
            )
        return words

    def _check(self) -> None:
        """Refuse invalid parameters."""
        for name in ("n_components", "max_doc_update_iter", "basis_samples"):
            whole(getattr(self, name), name, 1, 2**31 - 1)
        whole(self.max_iter, "max_iter", 0)
        if self.alpha0 is not None and not (tolerance(self.alpha0, "alpha0") <= 1e9):
            raise ValueError(
                f"alpha0 must be a number from 0 (one topic per document) to 1e9, got {self.alpha0!r}"
            )
        tolerance(self.tol, "tol")
        finite(self.topic_word_prior, "topic_word_prior")
        one_of(self.counts, "counts", ("whole", "any"))


def on_simplex(topics: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """Topics as probabilities: negative entries become 0, rows have sum 1; an empty topic becomes the words' frequencies."""
    cut = np.where(frequencies > 0, np.maximum(topics, 0.0), 0.0)
    sums = cut.sum(axis=1, keepdims=True)
    return np.where(sums > 0, cut / np.where(sums > 0, sums, 1.0), frequencies)


def _as_list(vocabulary: Any) -> list[Any]:
    try:
        return list(vocabulary)
    except TypeError:
        raise ValueError(
            f"vocabulary must be a list of words or a dictionary from words to columns, got {vocabulary!r}"
        ) from None


def _warn_of_empty(moments: WordMoments, words: list[str] | None) -> None:
    """Warn of documents without words and of words without documents, which are seldom intended."""
    notes = []
    if moments.empty:
        notes.append(
            f"{moments.empty:.0f} of {moments.count} documents have no words: they say nothing about the topics"
        )
    unused = np.flatnonzero(moments.diagonals[:, 0] == 0)
    if len(unused):
        first = str(unused[0]) if words is None else repr(words[unused[0]])
        notes.append(
            f"{len(unused)} of {len(moments.diagonals)} words occur in no document, the first is {first}: "
            "they have the least probability in every topic"
        )
    if notes:
        warn_caller("; ".join(notes), UserWarning)
