"""Moments of the words of documents, up to the third, on a few axes: no array is as large as the vocabulary squared.

Let x1, x2, x3 be three different words of a document, as unit vectors. All pairs and triples of words of a document with counts c
and length ℓ are used, except those of a word with itself:

    E[x1⊗x2]    ≈ (c⊗c − diag c) / (ℓ(ℓ−1)),
    E[x1⊗x2⊗x3] ≈ (c⊗c⊗c − Σ_v c_v (e_v⊗e_v⊗c, three placements) + 2 Σ_v c_v e_v⊗e_v⊗e_v) / (ℓ(ℓ−1)(ℓ−2)).

Both are unbiased for every document, so any weighted mean over documents is. The weights are ℓ, since the estimates from short
documents are noisy. Documents of one word only count for the first moment, those of two words for the first and second.

On axes F (words x r), with y = Fᵀc and f_v the rows of F, the sums over documents of

    c,    c yᵀ/(ℓ−1),    c/(ℓ−1),    y⊗y⊗y / ((ℓ−1)(ℓ−2)),    c yᵀ / ((ℓ−1)(ℓ−2)),    c / ((ℓ−1)(ℓ−2)),

are kept, 2·words·r + r³ numbers. Those of chunks, machines or batches are added up. So that the bits are the same for any number
of threads, the tables with a row per word are summed entry by entry in the order of the documents, and y⊗y⊗y block by block
(`CUBE_BLOCK`).

Topics follow from the moments (Anandkumar et al. 2014, section 3.2). For k topics μ_i and Dirichlet parameters α with α0 = Σ α_i
the moments are, with m = E[x1] and a = α0/(α0+1),

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
from typing import Any, Self

import numpy as np
from scipy import sparse

from givens.data.passes import Summary
from givens.data.rows import Rows
from givens.data.third_moments import (
    TooFewDirections,
    contract,
    packed_triples,
    pair_groups,
    unpacked_triples,
    whiten,
)
from givens.numerics import parallel
from givens.numerics.tiles import add_in_order
from givens.result import Result
from givens.support.arguments import generator
from givens.tensors.decompose import decompose
from givens.topics.documents import Counts, WordCounts

OVERSAMPLING = 10
POWER_STEPS = 4
FLATTENING = 5.0
"""Words are scaled by 1/√(m_v + FLATTENING·mean(m)), a compromise between no scaling, with which frequent words dominate, and
1/√m_v, with which rare words add much noise.
"""

RARE = 10
"""Words that occur less often have no part in the axes, but in the topics: their pairs are mostly noise, and there are many."""

CUBE_BLOCK = 1024
"""Number of documents in a block, whose y⊗y⊗y are summed by one product."""

_TILE = 2048


@dataclass(frozen=True)
class TopicMoments:
    """Moments of the words on axes F.

    Attributes
    ----------
    axes : array of shape (words, r)
        F.
    mean : array of shape (words,)
        E[x1].
    cross : array of shape (words, r)
        E[x1⊗x2] F.
    second : array of shape (r, r)
        E[x1⊗x2](F, F).
    third : array of shape (r, r, r)
        E[x1⊗x2⊗x3](F, F, F).
    """

    axes: np.ndarray
    mean: np.ndarray
    cross: np.ndarray
    second: np.ndarray
    third: np.ndarray


class WordMoments(Summary):
    """Sums over documents on fixed axes.

    Parameters
    ----------
    axes : array of shape (words, r)
        Sums on the same axes can be merged.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from givens.support.arguments import generator
    >>> from givens.topics.documents import Counts
    >>> from givens.topics.word_moments import WordMoments
    >>> state = WordMoments(np.eye(3))
    >>> state.add(Counts.of(sparse.csr_matrix([[1.0, 1.0, 1.0], [0.0, 2.0, 0.0]])))
    >>> moments = state.moments()
    >>> moments.mean, moments.third[0, 1, 2].round(3)
    (array([0.2, 0.6, 0.2]), np.float64(0.167))
    """

    def __init__(self, axes: np.ndarray) -> None:
        words, r = axes.shape
        self.axes = np.ascontiguousarray(axes, dtype=np.float64)
        self.documents = 0
        self.totals = np.zeros(3)  # words in documents of at least one, two and three words
        self.diagonals = np.zeros((words, 3))  # Σ c, Σ c/(ℓ−1), Σ c/((ℓ−1)(ℓ−2))
        self.pairs = np.zeros((words, r))
        self.on_axes = self.axes.any(axis=1)  # words with zeros on all axes are in no triples
        self.triples = np.zeros((int(np.sum(self.on_axes)), r))
        self.cubes = np.zeros((r * (r + 1) // 2, r))

    def __reduce__(self) -> Any:
        # Without documents only the axes have to be sent.
        return super().__reduce__() if self.documents else (type(self), (self.axes,))

    def begin(self, first: int) -> Self:
        """Empty sums on the same axes."""
        return type(self)(self.axes)

    def add(self, counts: Counts) -> None:
        """Add documents."""
        lengths = counts.lengths
        scales = document_scales(lengths)
        self.documents += counts.size
        self.totals += [np.sum(lengths[lengths > order]) for order in range(3)]
        y = projected(counts, self.axes)
        add_products(counts, (scales, self.diagonals), (y * scales[:, 1:2], self.pairs))
        place = np.where(self.on_axes, np.cumsum(self.on_axes, dtype=np.int32) - 1, -1)
        add_product(counts.only(place), y * scales[:, 2:3], self.triples)
        # y⊗y⊗y needs one factor: the cube root of the scale with each y.
        y *= np.cbrt(scales[:, 2:3])
        blocks = parallel.slices(len(y), CUBE_BLOCK)
        add_in_order([self.cubes], lambda block: [packed_triples(y[block].T, CUBE_BLOCK)], blocks)

    def merge(self, other: Self) -> None:
        """Add the sums of other documents, which must be on the same axes."""
        if not np.array_equal(self.axes, other.axes):
            raise ValueError(
                "moments kept on different axes cannot be merged: start both from one model (see `sibling`)"
            )
        self.documents += other.documents
        for name in ("totals", "diagonals", "pairs", "triples", "cubes"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def moments(self) -> TopicMoments:
        """The moments, without the pairs and triples of a word with itself."""
        if not self.totals[2] > 0:
            raise ValueError(
                "no document has three words, and topics are told apart by triples of words: give longer documents"
            )
        first, second, third = self.totals
        r = self.axes.shape[1]
        # Of the three placements of e_v⊗e_v⊗c, and of twice e_v⊗e_v⊗e_v, which is two thirds in each placement.
        axes = self.axes[self.on_axes]
        partner = self.triples - (2 / 3) * self.diagonals[self.on_axes, 2:] * axes
        distinct = (self.cubes - _placements(axes, partner)) / third
        cross = (self.pairs - self.diagonals[:, 1:2] * self.axes) / second
        square = self.axes.T @ cross
        square = (square + square.T) / 2
        return TopicMoments(
            axes=self.axes,
            mean=self.diagonals[:, 0] / first,
            cross=cross,
            second=square,
            third=unpacked_triples(distinct, r),
        )


def document_scales(lengths: np.ndarray) -> np.ndarray:
    """The factors of counts, pairs and triples of each document: 1, 1/(ℓ−1), 1/((ℓ−1)(ℓ−2)); 0 if the document has none."""
    scales = np.zeros((len(lengths), 3))
    scales[:, 0] = 1.0
    pairs, triples = lengths >= 2, lengths >= 3
    scales[pairs, 1] = 1 / (lengths[pairs] - 1)
    scales[triples, 2] = scales[triples, 1] / (lengths[triples] - 2)
    return scales


def projected(counts: Counts, axes: np.ndarray) -> np.ndarray:
    """y = Fᵀc of every document."""
    from givens.kernels.sparse_products import project

    y = np.empty((counts.size, axes.shape[1]))
    parallel.each(lambda block: project(*counts, axes, block.start, block.stop, y), counts.blocks)
    return y


def add_product(counts: Counts, y: np.ndarray, out: np.ndarray) -> None:
    """Add Σ c yᵀ over the documents to `out`. Threads share the words; each entry is summed in the order of the documents."""
    add_products(counts, (y, out))


def add_products(counts: Counts, *products: tuple[np.ndarray, np.ndarray]) -> None:
    """Add Σ c yᵀ to `out` for several pairs (y, out).

    The counts are sorted by words first: the rows that are then read in random order are those of y, which are few.
    """
    from givens.kernels.sparse_products import add_by_words, by_words

    words = len(products[0][1])
    transposed = by_words(*counts, words)

    def add(part: slice) -> None:
        for y, out in products:
            add_by_words(*transposed, y, part.start, part.stop, out)

    parallel.each(add, parallel.parts(words, 8 * parallel.width()))


def _placements(f: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Σ_v f_v⊗f_v⊗g_v in its three placements, packed as by `packed_triples`.

    They are f_b (f_a g_c + ½ g_a f_c), and the same with b and c exchanged: one matrix product for several a.
    """
    words, r = f.shape
    size = r * (r + 1) // 2
    groups = pair_groups(r)

    def tile(part: slice) -> list[np.ndarray]:
        sums = np.zeros((size, r))
        rows, other = np.ascontiguousarray(f[part].T), np.ascontiguousarray(g[part].T)
        for low, high, place in groups:
            products = np.empty((place.stop - place.start, rows.shape[1]))
            used = 0
            for index in range(low, high):
                pairs = products[used : used + r - index]
                np.multiply(rows[index], other[index:], out=pairs)
                pairs += rows[index:] * (0.5 * other[index])
                used += r - index
            sums[place, low:] = products @ rows[low:].T
        return [sums]

    total = np.zeros((size, r))
    add_in_order([total], tile, parallel.slices(words, _TILE))
    row = 0
    for a in range(r):
        half = total[row : row + r - a, a:]
        half += half.T.copy()
        row += r - a
    return total


class _Frequencies(Summary):
    """Sums over documents of c and c/(ℓ−1)."""

    def __init__(self, words: int) -> None:
        self.words = words

    def begin(self, first: int) -> Self:
        """A copy whose sums are 0."""
        other = type(self)(self.words)
        other.sums = np.zeros((self.words, 2))
        return other

    def add(self, counts: Counts) -> None:
        """Add documents."""
        add_product(counts, np.ascontiguousarray(document_scales(counts.lengths)[:, :2]), self.sums)

    def merge(self, other: Self) -> None:
        """Add the sums of other documents."""
        self.sums = self.sums + other.sums

    sums: np.ndarray


class _SecondImage(Summary):
    """Sum over documents of c yᵀ/(ℓ−1) on some words, y = Fᵀc.

    Parameters
    ----------
    F : array of shape (some words, r)
    place : array of shape (words,)
        The row of each word in F, −1 for the others.
    """

    def __init__(self, F: np.ndarray, place: np.ndarray) -> None:
        self.F, self.place = F, place

    def begin(self, first: int) -> Self:
        """A copy without documents."""
        other = type(self)(self.F, self.place)
        other.image = np.zeros(self.F.shape)
        return other

    def add(self, counts: Counts) -> None:
        """Add documents."""
        scales = document_scales(counts.lengths)[:, 1:2]
        counts = counts.only(self.place)
        y = projected(counts, self.F)
        y *= scales
        add_product(counts, y, self.image)

    def merge(self, other: Self) -> None:
        """Add the sums of other documents."""
        self.image = self.image + other.image

    image: np.ndarray


def principal_axes(documents: Rows, words: int, rank: int, rng: np.random.Generator) -> np.ndarray:
    """The leading axes of the second moment of the words, by power steps from random axes.

    Takes one pass for the frequencies of the words and one per step. Words are scaled first (`FLATTENING`), and the axes scaled
    back. Steps use some additional axes (`OVERSAMPLING`), which are dropped after the last one. Rare words (`RARE`) have zeros on
    all axes.
    """
    frequencies, diagonal = documents.total(_Frequencies(words), "topics-frequencies").sums.T
    total = frequencies.sum()
    if not total > 0:
        raise ValueError("X holds no words: every count is zero")
    width = min(rank + OVERSAMPLING, words)
    kept = np.flatnonzero(frequencies >= _least_frequency(frequencies, width))
    place = np.full(words, -1, dtype=np.int32)
    place[kept] = np.arange(len(kept))
    scale = np.sqrt(total / (frequencies[kept] + FLATTENING * frequencies.mean()))[:, None]
    rows = scale * np.sqrt(1 / total)
    alone = diagonal[kept, None]
    Q = rng.random((len(kept), min(width, len(kept))), dtype=np.float32) - 0.5
    for step in range(POWER_STEPS):
        F = rows * Q
        image = documents.total(_SecondImage(F, place), "topics-axes").image
        image -= alone * F
        image *= rows
        if step < POWER_STEPS - 1:
            Q = _orthonormal(image)
    second = Q.T @ image
    ritz = np.linalg.eigh(second + second.T)[1][:, ::-1][:, :rank]
    axes = np.zeros((words, ritz.shape[1]))
    axes[kept] = scale * _orthonormal(image @ ritz)
    return axes


def principal_word_moments(rows: sparse.csr_matrix, rank: int, random_state: Any) -> WordMoments:
    """Moments, of no documents yet, on the principal axes of these documents."""
    documents = Rows(rows, check=WordCounts(whole=False))
    return WordMoments(principal_axes(documents, rows.shape[1], rank, generator(random_state)))


def _least_frequency(frequencies: np.ndarray, width: int) -> float:
    """The smallest frequency of words on the axes: `RARE`, or less if too few words or occurrences would be left."""
    falling = np.sort(frequencies)[::-1]
    most = int(np.searchsorted(np.cumsum(falling), 0.75 * falling.sum()))
    number = min(max(most + 1, 4 * width), len(falling))
    return float(max(min(RARE, falling[number - 1]), np.nextafter(0.0, 1.0)))


def _orthonormal(A: np.ndarray) -> np.ndarray:
    """Nearly orthonormal columns with the span of A: by a Cholesky factor if there is one, or QR."""
    try:
        factor = np.linalg.cholesky(A.T @ A)
        sizes = np.diag(factor)
    except np.linalg.LinAlgError:
        sizes = np.zeros(1)
    if not sizes.min() > 1e-4 * sizes.max():
        return np.asarray(np.linalg.qr(A)[0])
    return np.asarray(A @ np.linalg.inv(factor).T)


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
