"""Refinement of topics: passes over the documents, each of which raises a lower bound of their likelihood.

A pass infers the topic shares of every document, given the present topics β and a prior, and then sets

    β_iv ∝ η + Σ_documents (expected number of words v of topic i):

which maximises the bound plus η Σ log β: η extra counts for every word of every topic. Inference takes a few steps per document
and starts from the prior in every pass: nothing is stored for single documents.

| prior | a document's topics | inference |
|---|---|---|
| `DirichletShares` | shares of a Dirichlet distribution with parameters α | variational (`kernels.dirichlet`) |
| `OneTopic` | one topic for all words, with probabilities w | exact: the posterior of a mixture of multinomials |

Both compute a lower bound of the log-likelihood of the documents (for `OneTopic` the log-likelihood itself), the expected counts
of the words of each topic, and, from the statistics of all documents in a pass, better parameters of the prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import digamma, gammaln, logsumexp, polygamma

from givens.data.documents import Counts
from givens.data.passes import Sums
from givens.data.rows import Rows
from givens.numerics import parallel
from givens.solve.outer_loops import Iterated, iterate
from givens.topics.word_moments import add_products, projected

LEAST_ALPHA = 1e-3
"""Smallest Dirichlet parameter: below it, a topic would be lost and could not come back."""


class Inferred(NamedTuple):
    """Topic shares of each document, a lower bound of their log-likelihood, and the statistics from which a prior is learned."""

    shares: np.ndarray
    bound: float
    statistics: np.ndarray


class Prior(Protocol):
    """The distribution of a document's topics."""

    @property
    def alpha(self) -> np.ndarray:
        """Dirichlet parameters; 0 if every document has one topic."""

    @property
    def weights(self) -> np.ndarray:
        """Mean shares of the topics."""

    def infer(
        self,
        counts: Counts,
        topics: np.ndarray,
        *,
        steps: int = 100,
        tol: float = 1e-4,
        expected: np.ndarray | None = None,
    ) -> Inferred:
        """Infer the topics of documents; add to `expected` the expected counts divided by `topics`."""

    def learned(self, statistics: np.ndarray, documents: int) -> Prior:
        """The prior with the parameters that fit the documents best."""


@dataclass(frozen=True)
class DirichletShares:
    """A Dirichlet distribution with parameters `alpha`, which are learned unless `fixed`."""

    alpha: np.ndarray
    fixed: bool = False

    @property
    def weights(self) -> np.ndarray:
        """Mean shares of the topics."""
        return self.alpha / self.alpha.sum()

    def infer(
        self,
        counts: Counts,
        topics: np.ndarray,
        *,
        steps: int = 100,
        tol: float = 1e-4,
        expected: np.ndarray | None = None,
    ) -> Inferred:
        """Infer by at most `steps` variational steps per document; stop when one changes γ by less than `tol` times the words."""
        from givens.kernels.dirichlet import infer

        n, k = counts.size, len(self.alpha)
        gamma, weights, ratios = np.empty((n, k)), np.empty((n, k)), np.empty(len(counts.data))

        def block(part: slice) -> tuple[np.ndarray, float]:
            infer(*counts, topics, self.alpha, part.start, part.stop, steps, tol, gamma, weights, ratios)
            return self._bound(counts, ratios, gamma, part)

        parts = parallel.each(block, counts.blocks)
        if expected is not None:
            add_products(Counts(ratios, counts.indices, counts.indptr), (weights, expected))
        gamma /= gamma.sum(axis=1, keepdims=True)
        return Inferred(gamma, sum(part[1] for part in parts), np.add.reduce([part[0] for part in parts]))

    def _bound(
        self, counts: Counts, ratios: np.ndarray, gamma: np.ndarray, part: slice
    ) -> tuple[np.ndarray, float]:
        """Σ E[log θ] over a block, and the bound of its log-likelihood."""
        start, stop = counts.indptr[part.start], counts.indptr[part.stop]
        data = counts.data[start:stop]
        used = data > 0
        # log Σ_k exp(ψ(γ_k)) β_vk, since ratio = count / that sum; ψ(Σγ) is subtracted below.
        words = float(np.sum(data[used] * np.log(data[used] / ratios[start:stop][used])))
        g, alpha = gamma[part], self.alpha
        total = g.sum(axis=1)
        logs = digamma(g) - digamma(total)[:, None]
        lengths = counts.lengths[part]
        prior = gammaln(alpha.sum()) - gammaln(alpha).sum()
        bound = (
            words
            - float(lengths @ digamma(total))
            + len(g) * prior
            + float(np.sum(gammaln(g)) - np.sum(gammaln(total)) + np.sum((alpha - g) * logs))
        )
        return logs.sum(axis=0), bound

    def learned(self, statistics: np.ndarray, documents: int) -> DirichletShares:
        """The α that maximises the bound, by Newton's method, but at most twice and at least half the old α."""
        if self.fixed or not documents or len(self.alpha) == 1:
            return self
        alpha = dirichlet_maximum(self.alpha, statistics / documents)
        alpha = np.clip(alpha, self.alpha / 2, self.alpha * 2)
        return DirichletShares(np.clip(alpha, LEAST_ALPHA, 100.0))


def dirichlet_maximum(alpha: np.ndarray, mean_logs: np.ndarray, most: int = 50) -> np.ndarray:
    """The Dirichlet parameters of maximum likelihood, given the means of log θ, by Newton's method (Minka 2000)."""
    for _ in range(most):
        slope = digamma(alpha.sum()) - digamma(alpha) + mean_logs
        curvature, common = -polygamma(1, alpha), polygamma(1, alpha.sum())
        shift = np.sum(slope / curvature) / (1 / common + np.sum(1 / curvature))
        step = (slope - shift) / curvature
        # No step reduces a parameter to less than a tenth.
        new = np.maximum(alpha - step, 0.1 * alpha)
        if np.max(np.abs(new - alpha) / alpha) < 1e-9:
            return new
        alpha = new
    return alpha


@dataclass(frozen=True)
class OneTopic:
    """One topic per document, with probabilities `weights`."""

    weights: np.ndarray

    @property
    def alpha(self) -> np.ndarray:
        """Zeros: the model is the limit of Dirichlet distributions as their parameters tend to 0."""
        return np.zeros(len(self.weights))

    def infer(
        self,
        counts: Counts,
        topics: np.ndarray,
        *,
        steps: int = 100,
        tol: float = 1e-4,
        expected: np.ndarray | None = None,
    ) -> Inferred:
        """Compute the posterior of each document's topic; `steps` and `tol` are not used."""
        logs = projected(counts, np.log(np.maximum(topics, 1e-300, dtype=np.float64)))
        logs += np.log(np.maximum(self.weights, 1e-300))
        likelihood = logsumexp(logs, axis=1)
        shares = np.exp(logs - likelihood[:, None])
        if expected is not None:
            sums = np.zeros(expected.shape)
            add_products(counts, (shares, sums))
            expected += sums / np.maximum(topics, 1e-300, dtype=np.float64)
        return Inferred(shares, float(np.sum(likelihood)), shares.sum(axis=0))

    def learned(self, statistics: np.ndarray, documents: int) -> OneTopic:
        """The prior whose weights are the mean shares of the documents."""
        return OneTopic(statistics / statistics.sum())


class Inference(Sums):
    """Sums over documents: expected counts divided by the topics, the bound, statistics from which the prior is learned.

    Parameters
    ----------
    topics : array of shape (words, k)
    prior : Prior
    steps, tol
        Maximum number of steps per document, and the change at which they stop.
    counted : bool
        Whether to sum the expected counts, as for a pass.
    """

    statistics: np.ndarray
    bound: float
    words: float
    expected: np.ndarray | None = None

    def __init__(
        self, topics: np.ndarray, prior: Prior, steps: int = 100, tol: float = 1e-4, counted: bool = False
    ) -> None:
        shapes = {"expected": topics.shape} if counted else {}
        super().__init__(statistics=(topics.shape[1],), bound=(), words=(), **shapes)
        self.topics, self.prior, self.steps, self.tol = topics, prior, steps, tol

    def add(self, counts: Counts) -> None:
        """Infer the topics of documents and add them to the sums."""
        inferred = self.prior.infer(
            counts, self.topics, steps=self.steps, tol=self.tol, expected=self.expected
        )
        self.statistics += inferred.statistics
        self.bound += inferred.bound
        self.words += counts.data.sum()
        self.count += counts.size

    def end(self) -> None:
        """Drop the topics, so that they are not sent back."""
        self.topics = np.empty((0, 0))


def refine(
    documents: Rows,
    counts: np.ndarray,
    prior: Prior,
    *,
    passes: int,
    steps: int,
    smoothing: float,
    min_gain: float,
    step_tol: float = 1e-3,
) -> Iterated[tuple[np.ndarray, Prior]]:
    """Refine topics (k x words, up to factors) by at most `passes` passes, with at most `steps` steps per document in each.

    Stop when a pass gains no more than `min_gain` per word. What a pass gained is known after the next inference, so the
    documents are read once more than there are passes, and the last bound is that of the topics that are returned.
    """
    left = iter(range(passes, -1, -1))

    def step(x: tuple[np.ndarray, Prior]) -> tuple[float, tuple[np.ndarray, Prior]]:
        counts, prior = x
        single = (counts / counts.sum(axis=0)).astype(np.float32)
        inference = Inference(single, prior, steps, step_tol, counted=next(left) > 0)
        found = documents.total(inference, "topics-inference")
        if found.expected is not None:
            counts = found.expected * single
            counts += smoothing
            prior = prior.learned(found.statistics, found.count)
        return float(found.bound / found.words), (counts, prior)

    return iterate(step, (np.ascontiguousarray(counts.T), prior), min_gain, passes + 1)
