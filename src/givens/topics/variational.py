"""Refinement of topics: passes over the documents that raise a bound of their likelihood.

A pass infers the topics of every document with the topics β as they are (`priors`), and then sets

    β_iv ∝ η + Σ_documents (expected number of words v of topic i):

the maximum of the bound plus η Σ log β, for which η is so many extra counts of every word in every topic. The prior's parameters
follow from the same pass. Inference takes at most `STEPS` steps per document and begins anew in every pass: nothing is kept per
document.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from givens.topics.documents import Counts
from givens.topics.priors import Prior

STEPS = 5
STEP_TOL = 1e-3


@dataclass(frozen=True)
class RefinedTopics:
    """Outcome of a refinement.

    Attributes
    ----------
    counts : array of shape (k, words)
        Expected counts of the words of each topic, η included.
    prior : Prior
    bounds : list of float
        Of the log-likelihood per word, before each pass.
    converged : bool
        The last pass gained less than `tol`.
    """

    counts: np.ndarray
    prior: Prior
    bounds: list[float]
    converged: bool


def refine(
    documents: Iterable[Counts],
    topics: np.ndarray,
    prior: Prior,
    *,
    passes: int,
    smoothing: float,
    tol: float,
) -> RefinedTopics:
    """Refine topics (k x words, each of sum 1) by at most so many passes; stop when one gains less than `tol` per word."""
    beta = np.ascontiguousarray(topics.T)
    bounds: list[float] = []
    converged = False
    for _ in range(passes):
        single = beta.astype(np.float32)
        expected = np.zeros(beta.shape)
        statistics = np.zeros(beta.shape[1])
        bound, words, number = 0.0, 0.0, 0
        for counts in documents:
            inferred = prior.infer(counts, single, steps=STEPS, tol=STEP_TOL, expected=expected)
            statistics += inferred.statistics
            bound += inferred.bound
            words += float(counts.data.sum())
            number += counts.size
        expected *= single
        expected += smoothing
        beta = expected / expected.sum(axis=0)
        prior = prior.learned(statistics, number)
        bounds.append(bound / words)
        converged = len(bounds) > 1 and bounds[-1] - bounds[-2] < tol
        if converged:
            break
    return RefinedTopics(np.ascontiguousarray(expected.T), prior, bounds, converged)
