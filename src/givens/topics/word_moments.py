"""Moments of the words of a document, up to the third, on a few axes: nothing of the square of the vocabulary.

Let x1, x2, x3 be three different words of a document, as unit vectors. Of a document with counts c and length ℓ all its pairs and
triples of words are used, without those of a word with itself:

    E[x1⊗x2]    ≈ (c⊗c − diag c) / (ℓ(ℓ−1)),
    E[x1⊗x2⊗x3] ≈ (c⊗c⊗c − Σ_v c_v (e_v⊗e_v⊗c, three placements) + 2 Σ_v c_v e_v⊗e_v⊗e_v) / (ℓ(ℓ−1)(ℓ−2)).

Each is unbiased for every document, so the mean over documents may weigh them: it weighs them by ℓ, since a short document says
little and says it loudly (its few pairs are divided by a small number). Documents of one word count for the first moment, of two
for the second.

On axes F (words x r), with y = Fᵀc and f_v the rows of F, what is kept are the sums over documents of

    c,    c yᵀ/(ℓ−1),    c/(ℓ−1),    y⊗y⊗y / ((ℓ−1)(ℓ−2)),    c yᵀ / ((ℓ−1)(ℓ−2)),    c / ((ℓ−1)(ℓ−2)),

2·words·r + r³ numbers. They add up over chunks, machines and time. For the same bits everywhere, the tables with a row per word
are added up entry by entry in the order of the documents, and y⊗y⊗y block by block (`documents.BLOCK`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from givens.cluster import RepeatedData, Summary
from givens.moments.sums import packed_triples, pair_groups, unpacked_triples
from givens.numerics import parallel
from givens.numerics.scaling import power_of_two
from givens.topics.documents import Counts

OVERSAMPLING = 10
POWER_STEPS = 4
FLATTENING = 5.0
"""Words are scaled by 1/√(m_v + FLATTENING·mean(m)): between none (frequent words dominate) and 1/√m_v (rare words make noise).
"""

SINGLE = 32
"""From so many axes on the triples of a word with itself are taken off in single precision: an error of some 1e-8 of the third
moment, where sampling leaves one of 1/√documents.
"""

_AT_ONCE = 1 << 23
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
    third : array of shape (r, r, r)
        E[x1⊗x2⊗x3](F, F, F).
    """

    axes: np.ndarray
    mean: np.ndarray
    cross: np.ndarray
    third: np.ndarray

    @property
    def second(self) -> np.ndarray:
        """E[x1⊗x2](F, F)."""
        second = self.axes.T @ self.cross
        return (second + second.T) / 2


class WordMoments(Summary):
    """Sums over documents on fixed axes.

    Parameters
    ----------
    axes : array of shape (words, r)
        States that share them merge.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
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
        self.triples = np.zeros((words, r))
        self.cubes = np.zeros((r * (r + 1) // 2, r))

    def __reduce__(self) -> Any:
        # Without documents the axes are all there is to send.
        return super().__reduce__() if self.documents else (type(self), (self.axes,))

    def begin(self, first: int) -> Self:
        """Sums of their own on the same axes."""
        return type(self)(self.axes)

    def add(self, counts: Counts) -> None:
        """Take in more documents; all chunks but the last must hold a multiple of BLOCK of them."""
        lengths = counts.lengths
        scales = document_scales(lengths)
        self.documents += counts.size
        self.totals += [np.sum(lengths[lengths > order]) for order in range(3)]
        y = projected(counts, self.axes)
        add_products(
            counts,
            (scales, self.diagonals),
            (y * scales[:, 1:2], self.pairs),
            (y * scales[:, 2:3], self.triples),
        )
        # y⊗y⊗y needs one factor: the cube root of the scale with each y.
        y *= np.cbrt(scales[:, 2:3])
        blocks = counts.blocks
        width = max(2, min(16, _AT_ONCE // self.cubes.size))
        for start in range(0, len(blocks), width):
            for part in parallel.each(
                lambda block: packed_triples(np.ascontiguousarray(y[block].T)), blocks[start : start + width]
            ):
                self.cubes += part

    def merge(self, other: Self) -> None:
        """Take in the documents of another state, which must share the axes."""
        if not np.array_equal(self.axes, other.axes):
            raise ValueError(
                "moments kept on different axes cannot be merged: start both from one model (see `sibling`)"
            )
        self.documents += other.documents
        for name in ("totals", "diagonals", "pairs", "triples", "cubes"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def copy(self) -> WordMoments:
        """A state of its own with the same sums."""
        other = WordMoments(self.axes)
        other.merge(self)
        return other

    def moments(self) -> TopicMoments:
        """The moments, without the pairs and triples that a word makes with itself."""
        if not self.totals[2] > 0:
            raise ValueError(
                "no document has three words, and topics are told apart by triples of words: give longer documents"
            )
        first, second, third = self.totals
        r = self.axes.shape[1]
        # Of the three placements of e_v⊗e_v⊗c, and of twice e_v⊗e_v⊗e_v, which is two thirds in each placement.
        partner = self.triples - (2 / 3) * self.diagonals[:, 2:] * self.axes
        distinct = unpacked_triples(self.cubes - _placements(self.axes, partner), r)
        return TopicMoments(
            axes=self.axes,
            mean=self.diagonals[:, 0] / first,
            cross=(self.pairs - self.diagonals[:, 1:2] * self.axes) / second,
            third=distinct / third,
        )


def document_scales(lengths: np.ndarray) -> np.ndarray:
    """By what counts, pairs and triples of each document are multiplied: 1, 1/(ℓ−1), 1/((ℓ−1)(ℓ−2)); 0 where there are none."""
    scales = np.zeros((len(lengths), 3))
    scales[:, 0] = 1.0
    pairs, triples = lengths >= 2, lengths >= 3
    scales[pairs, 1] = 1 / (lengths[pairs] - 1)
    scales[triples, 2] = scales[triples, 1] / (lengths[triples] - 2)
    return scales


def projected(counts: Counts, axes: np.ndarray) -> np.ndarray:
    """y = Fᵀc of every document, in the precision of the axes."""
    from givens.kernels.counts import project

    y = np.empty((counts.size, axes.shape[1]), dtype=axes.dtype)
    parallel.each(lambda block: project(*counts, axes, block.start, block.stop, y), counts.blocks)
    return y


def add_product(counts: Counts, y: np.ndarray, out: np.ndarray) -> None:
    """Add Σ c yᵀ over the documents to `out`, some words per thread: each entry in the order of the documents."""
    add_products(counts, (y, out))


def add_products(counts: Counts, *products: tuple[np.ndarray, np.ndarray]) -> None:
    """Add Σ c yᵀ to `out` for several (y, out).

    The counts are put into the order of the words first, so that the rows that are read at random are the documents' few.
    """
    from givens.kernels.counts import add_by_words, by_words

    words = len(products[0][1])
    transposed = by_words(*counts, words)

    def add(part: slice) -> None:
        for y, out in products:
            add_by_words(*transposed, y, part.start, part.stop, out)

    parallel.each(add, parallel.parts(words, 8 * parallel.width()))


def _placements(f: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Σ_v of f_v⊗f_v⊗g_v in its three placements, packed as `packed_triples` packs; in single precision for many axes."""
    if f.shape[1] < SINGLE:
        return _summed_placements(f, g)
    (f, f_unit), (g, g_unit) = _single(f), _single(g)
    return _summed_placements(f, g) * (f_unit**2 * g_unit)


def _single(table: np.ndarray) -> tuple[np.ndarray, float]:
    """A table in single precision, divided by a power of two because its range is short, and that power."""
    unit = power_of_two(table)
    return (table * (1 / unit)).astype(np.float32), unit


def _summed_placements(f: np.ndarray, g: np.ndarray) -> np.ndarray:
    """The same, with products in the precision of f and g.

    f_b (f_a g_c + ½ g_a f_c), and the same with b and c exchanged, make the three: for some a at a time one product of matrices.
    """
    from givens.kernels.placements import partners

    words, r = f.shape
    tiles = [slice(start, start + _TILE) for start in range(0, words, _TILE)]
    size = r * (r + 1) // 2
    groups = pair_groups(r)

    def tile(part: slice) -> np.ndarray:
        sums = np.zeros((size, r), dtype=f.dtype)
        rows, other = np.ascontiguousarray(f[part].T), np.ascontiguousarray(g[part].T)
        for low, high, place in groups:
            products = np.empty((place.stop - place.start, rows.shape[1]), dtype=f.dtype)
            partners(rows, other, low, high, products)
            sums[place, low:] = products @ rows[low:].T
        return sums

    total = np.zeros((size, r))
    width = max(2, min(16, _AT_ONCE // total.size))
    for start in range(0, len(tiles), width):
        for sums in parallel.each(tile, tiles[start : start + width]):
            total += sums
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
        """With sums of zero."""
        other = type(self)(self.words)
        other.sums = np.zeros((self.words, 2))
        return other

    def add(self, counts: Counts) -> None:
        """Take in more documents."""
        add_product(counts, np.ascontiguousarray(document_scales(counts.lengths)[:, :2]), self.sums)

    def merge(self, other: Self) -> None:
        """Take in the documents of another."""
        self.sums = self.sums + other.sums

    sums: np.ndarray


class _SecondImage(Summary):
    """The second moment of the words, up to its total, times F: in double precision even for an F in single precision."""

    def __init__(self, F: np.ndarray, diagonal: np.ndarray) -> None:
        self.F = F
        self.diagonal = diagonal

    def begin(self, first: int) -> Self:
        """Without documents; the first of all begins with the pairs of a word with itself, which are taken off."""
        other = type(self)(self.F, self.diagonal)
        other.image = np.zeros(self.F.shape) if first else -self.diagonal * self.F
        return other

    def add(self, counts: Counts) -> None:
        """Take in more documents."""
        y = projected(counts, self.F)
        y *= document_scales(counts.lengths)[:, 1:2]
        add_product(counts, y, self.image)

    def merge(self, other: Self) -> None:
        """Take in the documents of another."""
        self.image = self.image + other.image

    image: np.ndarray


def principal_axes(documents: RepeatedData, words: int, rank: int, rng: np.random.Generator) -> np.ndarray:
    """The axes on which the second moment of the words is largest, by power steps from random ones.

    One pass for the frequencies of the words and one per step. The words are scaled first (`FLATTENING`), and the axes scaled
    back. Steps are made with some axes more than are wanted (`OVERSAMPLING`), which the last one leaves out.
    """
    sums = documents.total(_Frequencies(words), "topics-frequencies").sums
    total = sums[:, 0].sum()
    if not total > 0:
        raise ValueError("X holds no words: every count is zero")
    scale = np.sqrt(total / (sums[:, 0] + FLATTENING * sums[:, 0].mean()))
    scale[sums[:, 0] == 0] = 0.0
    rows = (scale * np.sqrt(1 / total))[:, None]
    # Single precision will do: moments on slightly other axes are as exact. Sums over documents are double, so that another order
    # of them, as on a cluster, does not lead to other axes.
    Q = rng.random((words, min(rank + OVERSAMPLING, words)), dtype=np.float32) - np.float32(0.5)
    for step in range(POWER_STEPS):
        F = rows.astype(np.float32) * Q
        image = documents.total(_SecondImage(F, sums[:, 1:]), "topics-axes").image
        image *= rows
        if step < POWER_STEPS - 1:
            Q = _orthonormal(image, np.eye(image.shape[1]), np.float32)
    second = Q.T.astype(np.float64) @ image
    ritz = np.linalg.eigh(second + second.T)[1][:, ::-1][:, :rank]
    return scale[:, None] * _orthonormal(image, ritz, np.float64)


def _orthonormal(A: np.ndarray, C: np.ndarray, dtype: type) -> np.ndarray:
    """Nearly orthonormal columns of the span of AC, in this precision: by a Cholesky factor, if there is one."""
    try:
        factor = np.linalg.cholesky(C.T @ (A.T @ A) @ C)
        sizes = np.diag(factor)
    except np.linalg.LinAlgError:
        sizes = np.zeros(1)
    if not sizes.min() > 1e-4 * sizes.max():
        return np.linalg.qr(A @ C)[0].astype(dtype)
    return A.astype(dtype) @ (C @ np.linalg.inv(factor).T).astype(dtype)
