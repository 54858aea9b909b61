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
from sklearn.utils.validation import check_is_fitted

from givens.data.by_rows import by_rows
from givens.data.passes import Together
from givens.data.rows import Rows
from givens.data.stream import Stream, StreamedMoments
from givens.numerics import parallel
from givens.result import Result
from givens.support.arguments import counted, finite, generator, one_of, tolerance, warn_caller, whole
from givens.support.fitting import atomic_fit
from givens.topics.coherence import npmi
from givens.topics.documents import EmptyDocuments, WordCounts
from givens.topics.variational import DirichletShares, Inference, OneTopic, Prior, refine
from givens.topics.word_moments import (
    MomentTopics,
    WordMoments,
    principal_axes,
    principal_word_moments,
    solve_topics,
)

_COUNTS = {"whole": True, "any": False}
_STEPS = 100
_STEP_TOL = 1e-4
_LEAST_ALPHA = 1e-3
_MOST_ALPHA0 = 1e9
_DEFAULT_ALPHA0 = 1.0  # where α begins; a pass can double or halve it


@dataclass(frozen=True)
class _Fitted:
    """What a fit found."""

    counts: np.ndarray
    prior: Prior
    found: MomentTopics | None
    bounds: list[float]
    converged: bool

    @property
    def topics(self) -> np.ndarray:
        """Words x topics, each topic of sum 1."""
        return np.ascontiguousarray((self.counts / self.counts.sum(axis=1, keepdims=True)).T)


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
    max_iter : int, default=10
        Maximum number of variational passes. 0: moments only.
    max_doc_update_iter : int, default=5
        Maximum number of steps per document in each of these passes. On real texts, which no model describes exactly, few steps
        are as good or better; for tens of thousands of documents that follow the model, 30 give more accurate topics.
    topic_word_prior : float, default=0.05
        η, the count that the refinement adds to every word of every topic. With moments only, the counts that are added are
        proportional to the frequencies of the words, and η on average.
    tol : float, default=1e-4
        The refinement stops when a pass raises the bound of the log-likelihood per word by less than this.
    counts : {"whole", "any"}, default="whole"
        "whole" refuses fractional counts, for which the moments have no meaning. "any" accepts them.
    vocabulary : sequence of str, or mapping of str to int, optional
        The words of the columns, for `top_words`; as `CountVectorizer` has them in `get_feature_names_out()` or `vocabulary_`.
    basis_rank : int, optional
        For `partial_fit`: the number of axes on which moments are kept, at least k. By default 2k + 10.
    basis_documents : int, default=5000
        For `partial_fit`: the axes are the principal axes of this many first documents.
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
    converged_ : bool
        Whether the last variational pass raised the bound by less than `tol`; without passes, whether the decomposition
        converged.
    result_ : Result or None
        The run that decomposed the third moment, with the `converged` and `message` of the passes if there were any; None if the
        moments could not tell k topics apart (a warning says so).
    residual_ : float
        The share of the whitened third moment that the topics leave unexplained.
    eigenvalues_ : array
        Eigenvalues of the second moment of the words on the axes, descending.
    n_iter_ : int
        Number of variational passes.
    bounds_ : list of float
        Lower bound of the log-likelihood per word: of the topics from moments, and after each of these passes.
    bound_ : float
        Perplexity of the training documents by the last of these bounds; NaN without refinement. `perplexity` takes up to 100
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

    _solved: _Fitted | None

    def __init__(
        self,
        n_components: int = 10,
        *,
        alpha0: float | None = None,
        max_iter: int = 10,
        max_doc_update_iter: int = 5,
        topic_word_prior: float = 0.05,
        tol: float = 1e-4,
        counts: str = "whole",
        vocabulary: Sequence[str] | Mapping[str, int] | None = None,
        basis_rank: int | None = None,
        basis_documents: int = 5000,
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
        self.basis_rank = basis_rank
        self.basis_documents = basis_documents
        self.threads = threads
        self.random_state = random_state

    @atomic_fit
    def fit(self, X: Any, y: Any = None) -> Self:
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
            both = documents.total(Together(WordMoments(axes), EmptyDocuments()), "topics-moments")
            state, empty = both.parts
            _warn_of_empty(state, empty, words)
            fitted = self._solve(state, rng, bool(self.max_iter))
            if self.max_iter:
                fitted = self._refined(documents, fitted)
        self._solved, self._stream = fitted, None
        return self

    @atomic_fit
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Update the model with a batch of documents.

        The first `basis_documents` documents determine `basis_rank` axes, on which the moments of all documents are kept. They
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
            rank = 2 * int(self.n_components) + 10 if self.basis_rank is None else int(self.basis_rank)
            start = partial(principal_word_moments, rank=rank, random_state=self.random_state)
            self._stream = Stream(int(self.basis_documents), start, self._door())
        self._add(rows)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Topic shares of documents.

        Parameters
        ----------
        X : sparse matrix or array-like of shape (documents, words), or iterable of such

        Returns
        -------
        array of shape (documents, k)
            Rows of sum 1; a document without words has the mean shares of the prior. For a dask array or data frame, a dask array
            that is not computed yet.
        """
        return by_rows(self, "_shares", X, len(self._checked_fit().counts), np.float64)

    def _shares(self, X: Any) -> np.ndarray:
        fitted = self._fitted()
        topics = fitted.topics
        documents = Rows(X, self, self._door(), reset=False)
        with parallel.pool(self.threads):
            shares = [
                fitted.prior.infer(counts, topics, steps=_STEPS, tol=_STEP_TOL, expected=None).shares
                for counts in documents
            ]
        return np.concatenate(shares)

    def score(self, X: Any, y: Any = None) -> float:
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

    def perplexity(self, X: Any) -> float:
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

    def coherence(self, X: Any, n_words: int = 10) -> np.ndarray:
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
        return npmi(documents, top, documents.n_features)

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
    def result_(self) -> Result | None:
        """The run that decomposed the third moment; `method`, `converged` and `message` include the variational passes."""
        found = self._fitted().found
        if found is None:
            return None
        passes = counted(self.n_iter_, "variational pass", "variational passes")
        result = replace(
            found.result,
            method=f"moments of words up to the third, decomposed by {found.result.method}; {passes}",
        )
        if not self.bounds_:
            return result
        gain = self.bounds_[-1] - self.bounds_[-2]
        state = "converged" if self.converged_ else f"not converged with max_iter={self.max_iter}"
        message = f"{state}: the last of {passes} raised the bound per word by {gain:.2g} (tol={self.tol:g})"
        return replace(result, converged=self.converged_, message=message)

    @property
    def converged_(self) -> bool:
        """Whether the variational passes converged, or without passes the decomposition."""
        return self._fitted().converged

    @property
    def residual_(self) -> float:
        """What the decomposition left unexplained."""
        found = self._fitted().found
        return float("nan") if found is None else found.residual

    @property
    def eigenvalues_(self) -> np.ndarray:
        """Eigenvalues of the second moment."""
        found = self._fitted().found
        return np.empty(0) if found is None else found.eigenvalues

    @property
    def n_iter_(self) -> int:
        """Variational passes."""
        return max(len(self.bounds_) - 1, 0)

    @property
    def n_batch_iter_(self) -> int:
        """Variational passes, as scikit-learn calls them in batch learning."""
        return self.n_iter_

    @property
    def bounds_(self) -> list[float]:
        """Bound of the log-likelihood per word at the start and after each pass."""
        return self._fitted().bounds

    @property
    def bound_(self) -> float:
        """Perplexity of the training documents."""
        bounds = self._fitted().bounds
        return float(np.exp(-bounds[-1])) if bounds else float("nan")

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def _solve_moments(self, moments: WordMoments) -> _Fitted:
        return self._solve(moments, generator(self.random_state), False)

    def _solve(self, state: WordMoments, rng: np.random.Generator, refined: bool) -> _Fitted:
        """Topics from moments; if these fail and a refinement follows, random topics."""
        k = int(self.n_components)
        alpha0 = _DEFAULT_ALPHA0 if self.alpha0 is None else float(self.alpha0)
        found: MomentTopics | None = None
        try:
            found = solve_topics(state.moments(), k, alpha0, rng, self.threads)
        except ValueError as error:
            if not refined:
                raise
            warn_caller(
                f"{error}; the refinement starts from random topics instead",
                UserWarning,
            )
        frequencies = state.diagonals[:, 0] / state.totals[0]
        smoothing = self.topic_word_prior * len(frequencies) * frequencies
        if found is None:
            # As scikit-learn's LatentDirichletAllocation does, but about the frequencies of the words.
            topics, weights = frequencies * rng.gamma(100.0, size=(k, len(frequencies))), np.full(k, 1 / k)
        else:
            topics, weights = found.topics, found.weights
        topics = on_simplex(topics, frequencies)
        prior: Prior = OneTopic(weights)
        if alpha0:
            prior = DirichletShares(np.maximum(alpha0 * weights, _LEAST_ALPHA), fixed=self.alpha0 is not None)
        counts = state.totals[0] * weights[:, None] * topics + smoothing
        # Words that occur in no document get a small probability instead of 0.
        counts = np.maximum(counts, 1e-3 * self.topic_word_prior + 1e-300)
        return _Fitted(counts, prior, found, [], found is not None and found.result.converged)

    def _refined(self, documents: Rows, start: _Fitted) -> _Fitted:
        refined = refine(
            documents,
            start.topics.T,
            start.prior,
            passes=int(self.max_iter),
            steps=int(self.max_doc_update_iter),
            smoothing=float(self.topic_word_prior) + 1e-12,
            tol=float(self.tol),
        )
        counts, prior = refined.last
        return _Fitted(np.ascontiguousarray(counts.T), prior, start.found, refined.values, refined.converged)

    def _door(self) -> WordCounts:
        return WordCounts(_COUNTS[self.counts])

    def _checked_fit(self) -> _Fitted:
        check_is_fitted(self)
        return self._fitted()

    def _inferred(self, X: Any) -> Inference:
        """The inference over the documents of X."""
        fitted = self._checked_fit()
        documents = Rows(X, self, self._door(), reset=False)
        with parallel.pool(self.threads):
            inference = Inference(fitted.topics, fitted.prior, _STEPS, _STEP_TOL, counted=False)
            return documents.total(inference, "topics-likelihood")

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
        k = whole(self.n_components, "n_components", 1, 2**31 - 1)
        whole(self.max_iter, "max_iter", 0)
        whole(self.max_doc_update_iter, "max_doc_update_iter", 1)
        whole(self.basis_documents, "basis_documents", 1)
        if self.basis_rank is not None:
            whole(self.basis_rank, "basis_rank", k)
        if self.alpha0 is not None and not (tolerance(self.alpha0, "alpha0") <= _MOST_ALPHA0):
            raise ValueError(
                f"alpha0 must be a number from 0 (one topic per document) to {_MOST_ALPHA0:g}, got {self.alpha0!r}"
            )
        tolerance(self.tol, "tol")
        finite(self.topic_word_prior, "topic_word_prior")
        one_of(self.counts, "counts", _COUNTS)


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


def _warn_of_empty(state: WordMoments, empty: EmptyDocuments, words: list[str] | None) -> None:
    """Warn of documents without words and of words without documents, which are seldom intended."""
    notes = []
    if empty.number:
        notes.append(
            f"{empty.number} of {state.count} documents have no words, the first is number {empty.first}: "
            "they say nothing about the topics"
        )
    unused = np.flatnonzero(state.diagonals[:, 0] == 0)
    if len(unused):
        first = str(unused[0]) if words is None else repr(words[unused[0]])
        notes.append(
            f"{len(unused)} of {len(state.diagonals)} words occur in no document, the first is {first}: "
            "they have the least probability in every topic"
        )
    if notes:
        warn_caller("; ".join(notes), UserWarning)
