"""Refinement of topics: passes over the documents, each of which raises a lower bound of their likelihood.

A pass infers the topic shares of every document, given the present topics β (`priors`), and then sets

    β_iv ∝ η + Σ_documents (expected number of words v of topic i):

which maximises the bound plus η Σ log β: η extra counts for every word of every topic. The parameters of the prior are learned in
the same pass. Inference takes a few steps per document and starts from the prior in every pass: nothing is stored for single
documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from givens.data.rows import Rows
from givens.data.summary import Summary
from givens.solve.iterate import iterate
from givens.topics.documents import Counts
from givens.topics.priors import Prior

STEP_TOL = 1e-3


@dataclass(frozen=True)
class RefinedTopics:
    """The result of a refinement.

    Attributes
    ----------
    counts : array of shape (k, words)
        Expected counts of the words of each topic, η included.
    prior : Prior
    bounds : list of float
        Lower bounds of the log-likelihood per word: of the start, and after each pass.
    converged : bool
        The last pass gained no more than the tolerance.
    """

    counts: np.ndarray
    prior: Prior
    bounds: list[float]
    converged: bool


class Inference(Summary):
    """Sums over documents: expected counts divided by the topics, the bound, statistics from which the prior is learned.

    Parameters
    ----------
    topics : array of shape (words, k)
    prior : Prior
    steps, tol
        Maximum number of steps per document, and the change at which they stop.
    counted : bool
        Whether to sum the expected counts.
    """

    def __init__(self, topics: np.ndarray, prior: Prior, steps: int, tol: float, counted: bool) -> None:
        self.topics, self.prior, self.steps, self.tol, self.counted = topics, prior, steps, tol, counted
        self.expected: np.ndarray | None = None
        self.statistics = np.zeros(topics.shape[1])
        self.bound, self.words, self.documents = 0.0, 0.0, 0

    def begin(self, first: int) -> Self:
        """A copy without documents."""
        other = type(self)(self.topics, self.prior, self.steps, self.tol, self.counted)
        other.expected = np.zeros(self.topics.shape) if self.counted else None
        return other

    def add(self, counts: Counts) -> None:
        """Infer the topics of documents and add them to the sums."""
        inferred = self.prior.infer(
            counts, self.topics, steps=self.steps, tol=self.tol, expected=self.expected
        )
        self.statistics = self.statistics + inferred.statistics
        self.bound += inferred.bound
        self.words += float(counts.data.sum())
        self.documents += counts.size

    def end(self) -> None:
        """Drop the topics, so that they are not sent back."""
        self.topics = np.empty((0, 0))

    def merge(self, other: Self) -> None:
        """Add the sums of another summary."""
        if self.expected is not None and other.expected is not None:
            self.expected = self.expected + other.expected
        self.statistics = self.statistics + other.statistics
        self.bound += other.bound
        self.words += other.words
        self.documents += other.documents


def refine(
    documents: Rows,
    topics: np.ndarray,
    prior: Prior,
    *,
    passes: int,
    steps: int,
    smoothing: float,
    tol: float,
) -> RefinedTopics:
    """Refine topics (k x words, each of sum 1) by at most `passes` passes, with at most `steps` steps per document in each.

    Stop when a pass gains no more than `tol` per word. What a pass gained is known after the next inference, so the documents are
    read once more than there are passes, and the largest bound is that of the topics that are returned.
    """
    left = iter(range(passes, -1, -1))

    def step(x: tuple[np.ndarray, Prior]) -> tuple[float, tuple[np.ndarray, Prior]]:
        counts, prior = x
        single = (counts / counts.sum(axis=0)).astype(np.float32)
        inference = Inference(single, prior, steps, STEP_TOL, counted=next(left) > 0)
        found = documents.total(inference, "topics-inference")
        if found.expected is not None:
            counts = found.expected * single
            counts += smoothing
            prior = prior.learned(found.statistics, found.documents)
        return float(found.bound / found.words), (counts, prior)

    found = iterate(step, (np.ascontiguousarray(topics.T), prior), tol, passes + 1)
    counts, prior = found.best
    return RefinedTopics(np.ascontiguousarray(counts.T), prior, found.values, found.converged)
