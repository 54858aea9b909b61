"""From the moments of words to topics (Anandkumar et al. 2014, section 3.2).

For k topics μ_i and Dirichlet parameters α with α0 = Σ α_i, the moments are, with m = E[x1] and a = α0/(α0+1),

    M2 = E[x1⊗x2] − a m⊗m                                            = Σ α_i/(α0(α0+1)) μ_i⊗μ_i,
    M3 = E[x1⊗x2⊗x3] − α0/(α0+2) (E[x1⊗x2]⊗m, three placements)
         + 2α0²/((α0+1)(α0+2)) m⊗m⊗m                                 = Σ 2α_i/(α0(α0+1)(α0+2)) μ_i⊗μ_i⊗μ_i.

E[x1⊗x2] is whitened once: in white coordinates it is I, the mean is y, M2 = I − a y⊗y, and R = M2^(-½) differs from I in the
direction of y only. So everything that depends on α0 is computed from arrays of k³ numbers. T = M3(R, R, R) = Σ λ_i v_i⊗v_i⊗v_i
with orthonormal v_i, and

    α_i = 4α0(α0+1) / ((α0+2)² λ_i²),    μ_i = ((α0+2)/2) λ_i M2 R v_i.

These μ_i and α_i reproduce m and M2 for every α0, but only for the right α0 is T an orthogonal tensor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from givens.data.cumulants import TooFewDirections, contract, whiten
from givens.result import Result
from givens.tensors.decompose import decompose
from givens.topics.word_moments import TopicMoments


@dataclass(frozen=True)
class MomentTopics:
    """Topics from moments.

    Attributes
    ----------
    topics : array of shape (k, words)
        Each sums to about 1; entries may be negative.
    weights : array of shape (k,)
        Mean shares of the topics, α_i/α0.
    alpha : array of shape (k,)
        0 for the single-topic model. Their sum is α0.
    eigenvalues : array
        Eigenvalues of the second moment on its axes, descending.
    residual : float
        The share of T that the components leave unexplained.
    result : Result
        The run that decomposed T.
    """

    topics: np.ndarray
    weights: np.ndarray
    alpha: np.ndarray
    eigenvalues: np.ndarray
    residual: float
    result: Result


@dataclass(frozen=True)
class _Whitened:
    """Moments in the coordinates in which E[x1⊗x2] is I."""

    mean: np.ndarray
    third: np.ndarray

    def tensor(self, alpha0: float) -> np.ndarray:
        """The tensor T of this α0."""
        y, k = self.mean, len(self.mean)
        T = self.third + 2 * alpha0**2 / ((alpha0 + 1) * (alpha0 + 2)) * np.multiply.outer(np.outer(y, y), y)
        every = np.arange(k)
        placed = alpha0 / (alpha0 + 2) * y
        T[every, every, :] -= placed
        T[every, :, every] -= placed
        T[:, every, every] -= placed[:, None]
        u, s = self.root(alpha0)
        return contract(T, np.eye(k) + s * np.outer(u, u))

    def root(self, alpha0: float) -> tuple[np.ndarray, float]:
        """The unit vector u and the number s of R = I + s u⊗u."""
        size = float(np.linalg.norm(self.mean))
        # Without noise, the length of y is at most 1.
        shrunk = max(1 - alpha0 / (alpha0 + 1) * size**2, 1e-3)
        return self.mean / (size or 1.0), 1 / np.sqrt(shrunk) - 1


def solve_topics(
    moments: TopicMoments, k: int, alpha0: float, rng: np.random.Generator, threads: int | None = None
) -> MomentTopics:
    """Find k topics.

    Parameters
    ----------
    moments : TopicMoments
    k : int
    alpha0 : float
        0: the single-topic model, in which all words of a document belong to one topic.
    rng : Generator
        For the start of the decomposition.
    threads : int, optional
    """
    second = moments.second
    eigenvalues = np.linalg.eigvalsh(second)[::-1]
    positive = int(np.sum(eigenvalues > len(second) * np.finfo(float).eps * max(eigenvalues[0], 0.0)))
    if positive < k:
        raise TooFewDirections(
            f"the words' second moment has only {positive} positive eigenvalues, so moments cannot tell n_topics={k} "
            f"topics apart: ask for at most {positive}, or give more documents"
        )
    white = whiten(second, k)
    pulled = _Whitened(white.W.T @ (moments.axes.T @ moments.mean), contract(moments.third, white.W))
    # Moments of real documents are never exactly those of a model: a large residual is no reason for a warning.
    found = decompose(
        pulled.tensor(alpha0), symmetrize=True, residual_tol=np.inf, threads=threads, random_state=rng
    )
    u, s = pulled.root(alpha0)
    stretched = found.factors + s * np.outer(u, u @ found.factors)
    a = alpha0 / (alpha0 + 1)
    images = moments.cross @ (white.W @ stretched) - a * np.outer(moments.mean, pulled.mean @ stretched)
    squares = np.maximum(found.weights, 1e-3) ** 2
    weights = 4 * (alpha0 + 1) / ((alpha0 + 2) ** 2 * squares)
    weights /= weights.sum()
    return MomentTopics(
        topics=np.ascontiguousarray(((alpha0 + 2) / 2 * found.weights * images).T),
        weights=weights,
        alpha=alpha0 * weights,
        eigenvalues=eigenvalues,
        residual=found.residual,
        result=found.result,
    )
