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
of threads, the tables with a row per word are summed entry by entry in the order of the documents, and y⊗y⊗y tile by tile.

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

from givens.data.documents import Counts, WordCounts
from givens.data.passes import Sums
from givens.data.rows import Rows
from givens.data.third_moments import (
    contract,
    cubes_of_placements,
    packed_size,
    placements,
    summed_triples,
    unpacked_triples,
    whiten,
)
from givens.numerics import parallel
from givens.objectives.tensor import SymmetricTensor
from givens.result import Result
from givens.support.arguments import generator
from givens.tensors.decompose import orthogonal_components

FLATTENING = 5.0
"""Words are scaled by 1/√(m_v + FLATTENING·mean(m)), a compromise between no scaling, with which frequent words dominate, and
1/√m_v, with which rare words add much noise.
"""


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


class WordMoments(Sums):
    """Sums over documents on fixed axes.

    Parameters
    ----------
    axes : array of shape (words, r)
        Sums on the same axes can be merged.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from givens.data.documents import Counts
    >>> from givens.topics.word_moments import WordMoments
    >>> state = WordMoments(np.eye(3)).begin(0)
    >>> state.add(Counts.of(sparse.csr_matrix([[1.0, 1.0, 1.0], [0.0, 2.0, 0.0]])))
    >>> moments = state.moments()
    >>> moments.mean, moments.third[0, 1, 2].round(3)
    (array([0.2, 0.6, 0.2]), np.float64(0.167))
    """

    empty: float  # documents without words
    totals: np.ndarray  # words in documents of at least one, two and three words
    diagonals: np.ndarray  # Σ c, Σ c/(ℓ−1), Σ c/((ℓ−1)(ℓ−2))
    pairs: np.ndarray
    triples: np.ndarray
    cubes: np.ndarray

    def __init__(self, axes: np.ndarray) -> None:
        words, r = axes.shape
        self.axes = np.ascontiguousarray(axes, dtype=np.float64)
        super().__init__(
            empty=(),
            totals=(3,),
            diagonals=(words, 3),
            pairs=(words, r),
            triples=(words, r),
            cubes=(packed_size(r),),
        )

    def add(self, counts: Counts) -> None:
        """Add documents."""
        lengths = counts.lengths
        scales = document_scales(lengths)
        self.count += counts.size
        self.empty += np.count_nonzero(lengths == 0)
        self.totals += [np.sum(lengths[lengths > order]) for order in range(3)]
        y = projected(counts, self.axes)
        pairs, triples = (y * scales[:, 1:2], self.pairs), (y * scales[:, 2:3], self.triples)
        add_products(counts, (scales, self.diagonals), pairs, triples)
        # y⊗y⊗y needs one factor: the cube root of the scale with each y.
        self.cubes += summed_triples(y * np.cbrt(scales[:, 2:3]))

    def merge(self, other: Self) -> None:
        """Add the sums of other documents, which must be on the same axes."""
        if not np.array_equal(self.axes, other.axes):
            raise ValueError(
                "moments kept on different axes cannot be merged: start both from one model (see `sibling`)"
            )
        super().merge(other)

    def moments(self) -> TopicMoments:
        """The moments, without the pairs and triples of a word with itself."""
        if not self.totals[2] > 0:
            raise ValueError(
                "no document has three words, and topics are told apart by triples of words: give longer documents"
            )
        first, second, third = self.totals
        # Of the three placements of e_v⊗e_v⊗c, and of twice e_v⊗e_v⊗e_v, which is two thirds in each placement.
        partner = self.triples - (2 / 3) * self.diagonals[:, 2:] * self.axes
        distinct = (self.cubes - summed_triples(cubes_of_placements(self.axes, partner))) / third
        cross = (self.pairs - self.diagonals[:, 1:2] * self.axes) / second
        square = self.axes.T @ cross
        square = (square + square.T) / 2
        return TopicMoments(
            axes=self.axes,
            mean=self.diagonals[:, 0] / first,
            cross=cross,
            second=square,
            third=unpacked_triples(distinct, self.axes.shape[1]),
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


def add_products(counts: Counts, *products: tuple[np.ndarray, np.ndarray]) -> None:
    """Add Σ c yᵀ over the documents to `out`, for each (y, out); threads share the words, so each entry is summed in order.

    The counts are sorted by words first: the rows that are then read in random order are those of y, which are few.
    """
    from givens.kernels.sparse_products import add_by_words, by_words

    words = len(products[0][1])
    transposed = by_words(*counts, words)

    def add(part: slice) -> None:
        for y, out in products:
            add_by_words(*transposed, y, part.start, part.stop, out)

    parallel.each(add, parallel.parts(words, 8 * parallel.width()))


class _Frequencies(Sums):
    """Sums over documents of c and c/(ℓ−1)."""

    def __init__(self, words: int) -> None:
        super().__init__(sums=(words, 2))

    def add(self, counts: Counts) -> None:
        """Add documents."""
        add_products(counts, (np.ascontiguousarray(document_scales(counts.lengths)[:, :2]), self.sums))

    sums: np.ndarray


class _SecondImage(Sums):
    """Sum over documents of c yᵀ/(ℓ−1), y = Fᵀc."""

    def __init__(self, F: np.ndarray) -> None:
        super().__init__(image=F.shape)
        self.F = F

    def add(self, counts: Counts) -> None:
        """Add documents."""
        scales = document_scales(counts.lengths)[:, 1:2]
        add_products(counts, (projected(counts, self.F) * scales, self.image))

    image: np.ndarray


def principal_axes(documents: Rows, words: int, rank: int, rng: np.random.Generator) -> np.ndarray:
    """The leading axes of the second moment of the words, by power steps from random axes.

    Takes one pass for the frequencies of the words, and one for each of four steps. Words are scaled first (`FLATTENING`), and
    the axes scaled back. Steps use ten more axes, which are dropped after the last one.
    """
    frequencies, diagonal = documents.total(_Frequencies(words), "topics-frequencies").sums.T
    total = frequencies.sum()
    if not total > 0:
        raise ValueError("X holds no words: every count is zero")
    width = min(rank + 10, int(np.count_nonzero(frequencies)))
    scale = np.sqrt(total / (frequencies + FLATTENING * frequencies.mean()))[:, None]
    rows = scale * np.sqrt(1 / total)
    Q = rng.random((words, width), dtype=np.float32) - 0.5
    for last in (False, False, False, True):
        F = rows * Q
        image = documents.total(_SecondImage(F), "topics-axes").image
        image -= diagonal[:, None] * F
        image *= rows
        if not last:
            Q = np.linalg.qr(image)[0]
    second = Q.T @ image
    ritz = np.linalg.eigh(second + second.T)[1][:, ::-1][:, :rank]
    return scale * np.linalg.qr(image @ ritz)[0]


def principal_word_moments(rows: sparse.csr_matrix, rank: int, random_state: Any) -> WordMoments:
    """Moments, of no documents yet, on the principal axes of these documents."""
    documents = Rows(rows, check=WordCounts(whole=False))
    return WordMoments(principal_axes(documents, rows.shape[1], rank, generator(random_state)))


@dataclass(frozen=True)
class MomentTopics:
    """Topics from moments.

    Attributes
    ----------
    topics : array of shape (k, words)
        Each sums to about 1; entries may be negative.
    weights : array of shape (k,)
        Mean shares of the topics, α_i/α0.
    eigenvalues : array
        Eigenvalues of the second moment on its axes, descending.
    residual : float
        The share of T that the components leave unexplained.
    result : Result
        The run that decomposed T.
    """

    topics: np.ndarray
    weights: np.ndarray
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
        T -= placements(np.multiply.outer(np.eye(k), alpha0 / (alpha0 + 2) * y))
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
    white = whiten(moments.second, k)
    pulled = _Whitened(white.W.T @ (moments.axes.T @ moments.mean), contract(moments.third, white.W))
    # Moments of real documents are never exactly those of a model: a large residual is no reason for a warning.
    tensor = SymmetricTensor(pulled.tensor(alpha0), symmetrize=True)
    found = orthogonal_components(tensor, threads=threads, random_state=rng)
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
        eigenvalues=white.eigenvalues,
        residual=found.residual,
        result=found.result,
    )


class _Meetings(Sums):
    """In how many documents two of some words occur together."""

    together: np.ndarray

    def __init__(self, used: np.ndarray, words: int) -> None:
        super().__init__(together=(len(used), len(used)))
        self.used, self.words = used, words

    def add(self, counts: Counts) -> None:
        """Add documents."""
        table = sparse.csr_matrix(tuple(counts), shape=(counts.size, self.words))[:, self.used]
        occurs = (table > 0).astype(np.float64)
        self.together += (occurs.T @ occurs).toarray()
        self.count += counts.size


def npmi(documents: Rows, top: np.ndarray) -> np.ndarray:
    """Mean NPMI over the pairs of the n most probable words of each topic; `top` (k x n) has their columns in the counts.

    With p_v the share of documents in which word v occurs, and p_uv the share in which both u and v occur, NPMI =
    log(p_uv / (p_u p_v)) / −log p_uv (Bouma 2009; Lau, Newman and Baldwin 2014): −1 for words that never occur together, 0 for
    independent words, 1 for words that only occur together. Pairs with a word that occurs in no document are left out; a topic
    without other pairs has NaN.
    """
    used, place = np.unique(top, return_inverse=True)
    found = documents.total(_Meetings(used, documents.n_features), "topics-coherence")
    share = found.together / found.count
    alone = np.diag(share)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.log(share / np.outer(alone, alone)) / -np.log(share)
    scores[share == 0] = -1.0
    scores[share == 1] = 1.0
    scores[alone == 0] = np.nan
    scores[:, alone == 0] = np.nan
    first, second = place.reshape(top.shape)[:, np.triu_indices(top.shape[1], 1)].swapaxes(0, 1)
    pairs = scores[first, second]
    counted = np.isfinite(pairs)
    sums = np.where(counted, pairs, 0.0).sum(axis=1)
    return np.where(counted.any(axis=1), sums / np.maximum(counted.sum(axis=1), 1), np.nan)
