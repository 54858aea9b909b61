"""From the moments of words to topics (Anandkumar et al. 2014, section 3.2).

For k topics μ_i and Dirichlet parameters α with α0 = Σ α_i, the moments are, with m = E[x1] and a = α0/(α0+1),

    M2 = E[x1⊗x2] − a m⊗m                                            = Σ α_i/(α0(α0+1)) μ_i⊗μ_i,
    M3 = E[x1⊗x2⊗x3] − α0/(α0+2) (E[x1⊗x2]⊗m, three placements)
         + 2α0²/((α0+1)(α0+2)) m⊗m⊗m                                 = Σ 2α_i/(α0(α0+1)(α0+2)) μ_i⊗μ_i⊗μ_i.

E[x1⊗x2] is whitened once: in white coordinates it is I, the mean is y, M2 = I − a y⊗y, and R = M2^(-½) differs from I in the
direction of y only. So everything that depends on α0 is computed from arrays of k³ numbers. T = M3(R, R, R) = Σ λ_i v_i⊗v_i⊗v_i
with orthonormal v_i, and

    α_i = 4α0(α0+1) / ((α0+2)² λ_i²),    μ_i = ((α0+2)/2) λ_i M2 R v_i.

These μ_i and α_i reproduce m and M2 for every α0. But only for the right α0 is T an orthogonal tensor. So α0, if it is not given,
is the number for which the components leave the smallest share of T unexplained.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from givens.data.cumulants import TooFewDirections, contract, whiten
from givens.kernels.packed import products
from givens.numerics.polar import polar_by_products
from givens.result import Result
from givens.tensors.decompose import SMALL_TENSOR, Decomposition, decompose
from givens.topics.word_moments import TopicMoments

ALPHA0_GRID = (0.02, 0.2, 1.0, 5.0, 50.0)
"""The values of α0 that the search tries first."""

_MOST_TRIALS = 25
_ROUGH = 1e-3
_NOISY = 0.03

_BEGIN, _STEPS, _FINISH = 8, 1, 40
"""Power steps before the search for α0, at each α0 that it tries, and at the one that it ends with."""

_NEAR = 0.3
"""Largest angle for which all pairs of components are rotated at once by Newton's method."""

_COARSENESS, _FINEST = 1.0, 1e-3
"""The precision of log α0: the first number times the unexplained share of T, but no less than the second."""

_ENOUGH = 1e-5
"""Power steps stop when they would gain less than this share of √k ‖T‖."""

_PRECISION = 0.1
"""The precision of the decomposition, relative to the unexplained share of T, which is mostly noise of the moments."""


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
        0 for the single-topic model. Their sum α0 is given, or estimated.
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
        return _stretched(T, *self.root(alpha0))

    def root(self, alpha0: float) -> tuple[np.ndarray, float]:
        """The unit vector u and the number s of R = I + s u⊗u."""
        size = float(np.linalg.norm(self.mean))
        # Without noise, the length of y is at most 1.
        shrunk = max(1 - alpha0 / (alpha0 + 1) * size**2, 1e-3)
        return self.mean / (size or 1.0), 1 / np.sqrt(shrunk) - 1


def _stretched(T: np.ndarray, u: np.ndarray, s: float) -> np.ndarray:
    """T(R, R, R) for a symmetric T and R = I + s u⊗u, in k³ operations; overwrites T."""
    matrix = np.tensordot(u, T, axes=1)
    vector = matrix @ u
    pairs = np.outer(u, u)
    # s (u⊗M) + s² (u⊗u⊗v) in three placements each, s³ u⊗u⊗u once.
    part = s * matrix + s**2 * (np.outer(u, vector) + np.outer(vector, u)) + s**3 * float(vector @ u) * pairs
    T += np.multiply.outer(u, part)
    T += np.multiply.outer(s * matrix + s**2 * np.outer(vector, u), u)
    T += (s * matrix)[:, None, :] * u[:, None]
    return T


def solve_topics(
    moments: TopicMoments, k: int, alpha0: float | None, rng: np.random.Generator, threads: int | None = None
) -> MomentTopics:
    """Find k topics.

    Parameters
    ----------
    moments : TopicMoments
    k : int
    alpha0 : float or None
        0: the single-topic model, in which all words of a document belong to one topic. None: estimated from the third moment.
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
    start, left = None, None
    if alpha0 is None:
        alpha0, start, left = _orthogonal_alpha0(pulled, rng, threads)
    found = _decomposed(pulled.tensor(alpha0), start, left, rng, threads)
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


def _decomposed(
    T: np.ndarray, start: np.ndarray | None, left: float | None, rng: np.random.Generator, threads: int | None
) -> Decomposition:
    """Decompose T as precisely as its noise permits; exactly, if there is none."""
    if start is None or left is None:
        rough = _decompose(T, start, _ROUGH, rng, threads)
        start, left = rough.factors, rough.residual
        if (_PRECISION * left) ** 2 >= _ROUGH:
            return rough
    return _decompose(T, start, max(1e-13, (_PRECISION * left) ** 2), rng, threads)


def _decompose(
    T: np.ndarray, start: np.ndarray | None, tol: float, rng: np.random.Generator, threads: int | None
) -> Decomposition:
    """Decompose without a warning about a large residual: moments of real documents are never exactly those of a model."""
    return decompose(
        T, start=start, tol=tol, symmetrize=True, residual_tol=np.inf, threads=threads, random_state=rng
    )


def _orthogonal_alpha0(
    pulled: _Whitened, rng: np.random.Generator, threads: int | None
) -> tuple[float, np.ndarray, float]:
    """The α0 for which T is most nearly orthogonal, the components of that T, and the share of it that they leave unexplained.

    Descends on a grid, then uses Brent's method. The components change little from one α0 to the next, so a few power steps from
    the last ones are enough.
    """
    middle = len(ALPHA0_GRID) // 2
    family, begun = _begun(pulled, ALPHA0_GRID[middle], rng, threads)
    tried: dict[float, tuple[float, np.ndarray]] = {}

    def left(alpha0: float, near: np.ndarray) -> float:
        tried[alpha0] = family.left(alpha0, near, _STEPS)
        return tried[alpha0][0]

    best = middle
    tried[ALPHA0_GRID[best]] = family.left(ALPHA0_GRID[best], begun, steps=0)
    for step in (1, -1):
        while (
            0 <= best + step < len(ALPHA0_GRID)
            and left(ALPHA0_GRID[best + step], tried[ALPHA0_GRID[best]][1]) < tried[ALPHA0_GRID[best]][0]
        ):
            best += step
        if best != middle:
            break
    low, high = (
        np.log(ALPHA0_GRID[max(best - 1, 0)]),
        np.log(ALPHA0_GRID[min(best + 1, len(ALPHA0_GRID) - 1)]),
    )
    alpha0, precision = ALPHA0_GRID[best], np.inf
    while precision > _FINEST:
        least, U = tried[alpha0]
        # As precisely as the noise permits: repeated with more precision if the unexplained share has become much smaller.
        precision = float(np.clip(_COARSENESS * np.sqrt(max(least, 0.0)), _FINEST, 0.3))
        # All trials start from the same components: otherwise later trials would have taken more steps, and look better.
        found = minimize_scalar(
            lambda point: left(float(np.exp(point)), U),  # noqa: B023
            bounds=(low, high),
            method="bounded",
            options={"xatol": precision, "maxiter": _MOST_TRIALS},
        )
        alpha0 = float(np.exp(found.x))
        if tried[alpha0][0] > least / 4:
            break
        low, high = max(low, found.x - 2 * precision), min(high, found.x + 2 * precision)
    share, U = tried[alpha0]
    # The last bits of α0 are rounding errors of the search.
    alpha0 = float(np.float32(alpha0))
    if len(U) > SMALL_TENSOR:
        U = family.left(alpha0, U, _FINISH)[1]
    return alpha0, U, float(np.sqrt(max(share, 0.0)))


def _begun(
    pulled: _Whitened, alpha0: float, rng: np.random.Generator, threads: int | None
) -> tuple[_Family, np.ndarray]:
    """The family of tensors, and rough components of the tensor of this α0.

    If noise leaves much of T unexplained, single precision is precise enough for the search.
    """
    if len(pulled.mean) <= SMALL_TENSOR:
        rough = _decompose(pulled.tensor(alpha0), None, _ROUGH, rng, threads)
        return _Family(pulled, np.float32 if rough.residual > _NOISY else np.float64), rough.factors
    family = _Family(pulled, np.float32)
    share, U = family.left(alpha0, family.start(alpha0, rng), _BEGIN)
    if share > _NOISY**2:
        return family, U
    family = _Family(pulled, np.float64)
    return family, family.left(alpha0, U, _BEGIN)[1]


class _Family:
    """The tensors T of all α0, none of which is stored.

    T = S(R, R, R) with S = E + c u⊗u⊗u − d (I⊗u, three placements): E the third moment, u the direction of the mean. So
    T(·, w, w) = R S(·, v, v) with v = Rw, and with R² = I + t u⊗u, ‖T‖² = ‖S‖² + 3t‖S(u)‖² + 3t²‖S(u, u)‖² + t³S(u, u, u)².
    """

    def __init__(self, pulled: _Whitened, dtype: type) -> None:
        self.pulled = pulled
        third = pulled.third
        k = len(third)
        self.size = float(np.linalg.norm(pulled.mean))
        self.u = pulled.root(0.0)[0]
        self.slice = np.tensordot(self.u, third, axes=1)
        self.energy = float(np.vdot(third, third))
        first, second = np.triu_indices(k)
        self.unfolded: np.ndarray = third.astype(dtype)[:, first, second]

    def start(self, alpha0: float, rng: np.random.Generator) -> np.ndarray:
        """The eigenvectors of T contracted with a random vector: without noise, the components up to signs."""
        u, s = self.pulled.root(alpha0)
        c, d = self._factors(alpha0)
        r = rng.standard_normal(len(u))
        v = r + s * (u @ r) * u
        matrix = np.tensordot(v, self.pulled.third, axes=1)
        along, placed = float(u @ v), np.outer(u, v)
        matrix += c * along * np.outer(u, u) - d * (placed + placed.T + along * np.eye(len(u)))
        matrix += s * np.outer(u, u @ matrix)
        matrix += s * np.outer(matrix @ u, u)
        return np.linalg.eigh((matrix + matrix.T) / 2)[1]

    def left(self, alpha0: float, U: np.ndarray, steps: int) -> tuple[float, np.ndarray]:
        """Take at most `steps` steps from U; return the squared share of T that is left unexplained, and the components.

        Far from the components a step is U ← polar(T(·, u_i, u_i)). Near them it is a Newton step with the diagonal of the
        Hessian (`tensors.decompose.power_steps`), whose polar factor takes a few matrix products.
        """
        norm = max(self._norm(alpha0), 0.0)
        for step in range(steps + 1):
            images = self._images(alpha0, U)
            products = U.T @ images
            U = U * np.where(np.diag(products) < 0, -1.0, 1.0)
            products *= np.where(np.diag(products) < 0, -1.0, 1.0)[:, None]
            heights = np.diag(products)
            skew = products - products.T
            gain = 0.375 * float(np.vdot(skew, skew)) * len(U) / (float(heights.sum()) or 1.0)
            if step == steps or gain <= _ENOUGH * np.sqrt(len(U) * norm):
                break
            turns = skew / np.maximum(heights[:, None] + heights, 1e-300)
            near = np.abs(turns).max() < _NEAR
            U = polar_by_products(U + U @ turns if near else images)
        return 1 - float(heights @ heights) / norm, U

    def _factors(self, alpha0: float) -> tuple[float, float]:
        """The numbers c and d of the class's docstring."""
        c = 2 * alpha0**2 / ((alpha0 + 1) * (alpha0 + 2)) * self.size**3
        return c, alpha0 / (alpha0 + 2) * self.size

    def _images(self, alpha0: float, U: np.ndarray) -> np.ndarray:
        u, s = self.pulled.root(alpha0)
        c, d = self._factors(alpha0)
        V = U + s * np.outer(u, u @ U)
        pairs = np.empty((self.unfolded.shape[1], V.shape[1]), dtype=self.unfolded.dtype)
        products(np.ascontiguousarray(V, dtype=pairs.dtype), 0, len(V), pairs)
        images = (self.unfolded @ pairs).astype(np.float64)
        along = u @ V
        images += np.outer(u, c * along**2 - d * np.sum(V * V, axis=0)) - 2 * d * along * V
        return images + s * np.outer(u, u @ images)

    def _norm(self, alpha0: float) -> float:
        u, s = self.pulled.root(alpha0)
        c, d = self._factors(alpha0)
        k, t = len(u), (1 + s) ** 2 - 1
        own = float(u @ self.slice @ u)
        whole = self.energy + 2 * (c * own - 3 * d * float(np.trace(self.slice)))
        whole += c**2 - 6 * c * d + d**2 * (3 * k + 6)
        matrix = self.slice + (c - 2 * d) * np.outer(u, u) - d * np.eye(k)
        vector = matrix @ u
        return float(
            whole + 3 * t * np.vdot(matrix, matrix) + 3 * t**2 * (vector @ vector) + t**3 * (u @ vector) ** 2
        )
