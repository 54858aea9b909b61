"""Mechanisms of tensors, mixtures, topics and independent components."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.ablation.mechanism import Mechanism

TENSORS = ("decompose*", "minimize SymmetricTensor*", "command tensor*")
# The switch of dense storage knows no lower rank.
FULL_RANK = tuple(
    f"decompose order {order} times" for order in ("10, 150", "20, 80", "32, 40", "50, 10", "100, 2")
)
MIXTURES = ("SphericalMixture*", "command mixture*")
TOPICS = ("TopicModel*", "command topics*")
ADAPTIVE = ("ICA *mixed tails*", "command ica*")


# Tensors


def _random_start() -> None:
    from givens.objectives.tensor import SymmetricTensor
    from givens.rotations import random_orthogonal

    SymmetricTensor.start = lambda self, rng: random_orthogonal(self.n, rng)


def _no_power_steps() -> None:
    """The columns are still ordered by T(u, u, u), on which fits of a lower rank depend."""
    from givens.tensors import decompose

    steps = decompose.power_steps
    decompose.power_steps = lambda squares, U, min_gain: steps(squares, U, min_gain, most=1)


class Dense:
    """What `SymmetricTensor` needs of a tensor, from an array of d x d x d numbers and matrix products."""

    def __init__(self, T: np.ndarray) -> None:
        self.T, self.d = T, len(T)
        # Entry (i, j, k) stands at row[i, j] + k.
        self.row = self.d * np.arange(self.d * self.d).reshape(self.d, self.d)

    @property
    def entries(self) -> np.ndarray:
        return self.T.reshape(-1)

    @classmethod
    def from_full(cls, T: np.ndarray) -> tuple[Dense, float, float]:
        with np.errstate(over="ignore", invalid="ignore"):
            largest = float(max(T.max(), -T.min()))
            spread = max(float(np.abs(T - T.transpose(order)).max()) for order in ((0, 2, 1), (1, 0, 2)))
        if not np.isfinite(largest + spread):
            return cls(T), np.inf, np.inf
        mean = np.array(T, dtype=np.float64)
        if spread:
            mean = (mean + mean.transpose(0, 2, 1)) / 2
            mean = (mean + mean.transpose(1, 0, 2) + mean.transpose(2, 1, 0)) / 3
        return cls(mean), largest, spread

    def normalize(self) -> int:
        exponent = min(int(np.frexp(max(self.T.max(), -self.T.min()))[1]), 1023)
        self.T *= 2.0**-exponent
        return exponent

    def squared_norm(self) -> float:
        # Not a product by BLAS, whose threads are not limited yet.
        return float(np.square(self.entries).sum())

    def contract(self, r: np.ndarray) -> np.ndarray:
        return (self.T.reshape(-1, self.d) @ r).reshape(self.d, self.d)

    @property
    def diagonal(self) -> np.ndarray:
        return self.entries[:: self.d**2 + self.d + 1]

    def doubles(self) -> np.ndarray:
        return self.T.reshape(-1, self.d)[:: self.d + 1].copy()

    def cube(self, block: np.ndarray, out: np.ndarray) -> None:
        cube = self.T if len(block) == self.d else self.T[np.ix_(block, block, block)]
        out[:] = cube.reshape(-1)

    def unfolded(self) -> np.ndarray:
        """The entries (x, j, k), j ≤ k, as a matrix."""
        first, second = np.triu_indices(self.d)
        return self.T[:, first, second]

    def squares(self, U: np.ndarray, unfolded: np.ndarray | None = None) -> np.ndarray:
        from givens.kernels.packed import products

        from givens.numerics import parallel

        d, entries = self.d, self.unfolded() if unfolded is None else unfolded
        edges = np.concatenate(([0], np.cumsum(d - np.arange(d))))
        U = np.ascontiguousarray(U)

        def share(part: slice) -> np.ndarray:
            start, stop = edges[part.start], edges[part.stop]
            pairs = np.empty((stop - start, d))
            products(U, part.start, part.stop, pairs)
            return entries[:, start:stop] @ pairs

        return sum(parallel.each(share, parallel.slices(d, d if d <= 64 else 8)))

    def rotated(self, U: np.ndarray) -> Dense:
        from givens.numerics import parallel

        d, out = self.d, np.empty_like(self.T)
        Ut = np.ascontiguousarray(U.T)

        def slab(part: slice) -> None:
            first = (Ut[part] @ self.T.reshape(d, d * d)).reshape(-1, d)
            np.matmul(Ut, (first @ U).reshape(-1, d, d), out=out[part])

        parallel.each(slab, parallel.slices(d, 32))
        return Dense(out)

    def rotated_flops(self) -> float:
        return 6.0 * self.d**4

    def rotate(self, blocks: Any, rotations: Any) -> float:
        d, flops = self.d, 0.0
        if len(blocks) == 1 and len(blocks[0]) == d:
            self.T = self.rotated(rotations[0]).T
            return self.rotated_flops()
        for block, Q in zip(blocks, rotations):
            b = len(block)
            self.T[block] = (Q.T @ self.T[block].reshape(b, d * d)).reshape(b, d, d)
            self.T[:, block] = Q.T @ self.T[:, block]
            self.T[:, :, block] = self.T[:, :, block] @ Q
            flops += 6.0 * b * b * d * d
        return flops


def _dense() -> None:
    from givens.objectives import tensor
    from givens.tensors import from_samples

    form = from_samples.form
    tensor.Packed = Dense
    from_samples.form = lambda rotated: Dense(form(rotated).full())


def _blocks_below_32() -> None:
    from givens.objectives import tensor

    tensor.WHOLE = 0


def _one_block() -> None:
    _dense()
    from givens.objectives import tensor

    tensor.WHOLE = 1 << 30


# Mixtures


def _starts_of_em(number: int) -> None:
    import functools

    from givens.mixtures.estimator import SphericalMixture

    start = SphericalMixture.__init__

    @functools.wraps(start)
    def initial(self: Any, n_components: int = 1, **options: Any) -> None:
        start(self, n_components, **({"n_starts": number} | options))

    SphericalMixture.__init__ = initial


def _moments_only_start() -> None:
    _starts_of_em(1)


def _five_drawn_starts() -> None:
    _starts_of_em(6)


def _no_refit() -> None:
    from givens.mixtures.refit import Refitted

    from givens.mixtures import solve

    solve.refit = lambda scaled, weights, b: Refitted(weights, b, 1.0, True)


def _no_shrinking() -> None:
    from givens.mixtures import solve

    lifted = solve._lifted
    solve._lifted = lambda K, noise, white, count: lifted(K, noise, white, np.inf)


# Moments


def _all_triples() -> None:
    """Products of all pairs and all columns, of which a sixth is kept."""
    from givens.moments import sums

    from givens.topics import word_moments

    def triples(p: np.ndarray, columns: int = 256) -> np.ndarray:
        r, n = p.shape
        total = np.zeros((r * r, r), dtype=p.dtype)
        for start in range(0, n, columns):
            part = np.ascontiguousarray(p[:, start : start + columns])
            total += (part[:, None] * part).reshape(r * r, -1) @ part.T
        first, second = np.triu_indices(r)
        return total.reshape(r, r, r)[first, second]

    sums.packed_triples = word_moments.packed_triples = triples


# Topics


def _alpha0_of_1() -> None:
    from givens.topics import from_moments

    from_moments._orthogonal_alpha0 = lambda pulled, rng, threads: (1.0, None, None)


def _plain_sums() -> None:
    from givens.topics import word_moments as place

    def frequencies(self: Any, counts: Any) -> None:
        scales = np.ascontiguousarray(place.document_scales(counts.lengths)[:, :2])
        scales[:, 1] *= 2.0**25
        place.add_product(counts, scales, self.sums)

    def image(self: Any, counts: Any) -> None:
        scales = place.document_scales(counts.lengths)[:, 1:2]
        counts = counts.only(self.place)
        y = place.projected(counts, self.F)
        y *= scales
        place.add_product(counts, y, self.image)

    place._Frequencies.add, place._SecondImage.add = frequencies, image
    place._rounded = lambda second, packed: (second, packed)


def _one_decomposition() -> None:
    from givens.topics import from_moments

    from_moments._decomposed = lambda T, start, left, rng, threads: from_moments._decompose(
        T, start, 1e-12, rng, threads
    )


def _scipy_counts() -> None:
    from scipy import sparse

    from givens.topics import priors, word_moments

    def matrix(counts: Any, words: int) -> Any:
        return sparse.csr_matrix(tuple(counts), shape=(counts.size, words))

    def projected(counts: Any, axes: np.ndarray) -> np.ndarray:
        return (matrix(counts, len(axes)) @ axes).astype(axes.dtype)

    def add_products(counts: Any, *products: tuple[np.ndarray, np.ndarray]) -> None:
        transposed = matrix(counts, len(products[0][1])).T
        for y, out in products:
            out += transposed @ y

    word_moments.projected = priors.projected = projected
    word_moments.add_products = add_products


def _qr_axes() -> None:
    from givens.topics import word_moments

    word_moments._orthonormal = lambda A, C, dtype: np.linalg.qr(A @ C)[0].astype(dtype)


# Independent components


def _descent_only() -> None:
    from givens.ica import estimator

    estimator.fixed_point = lambda objective, U: None


def _stored_white_samples() -> None:
    from givens.objectives.turned_rows import HeldRows

    prepared = HeldRows.prepared
    HeldRows.prepared = lambda self, contrast: prepared(  # type: ignore[method-assign]
        HeldRows(self.at(slice(None)), weights=self.weights), contrast
    )


def _no_partial_fit() -> None:
    from givens.ica.estimator import ICA

    del ICA.partial_fit


MECHANISMS = (
    Mechanism(
        "tensors: eigenvector start",
        TENSORS,
        ("objectives/tensor.py:SymmetricTensor.start", "objectives/tensor.py:leading_eigenvectors"),
        _random_start,
        "kept: seven lines; up to 1.3 times the time without it.",
    ),
    Mechanism(
        "tensors: power steps of the start",
        ("decompose order 50*", "decompose order 100*"),
        ("tensors/decompose.py:power_steps",),
        _no_power_steps,
        "kept: orders 50 and 100 take up to 2.4 times as long without them, and a lower rank has a worse optimum.",
    ),
    Mechanism(
        "tensors: packed symmetric storage",
        FULL_RANK,
        ("numerics/packed.py", "kernels/packed.py"),
        _dense,
        (
            "deleted: dense products took 1.3, 1.4 and 1.7 times the time at d = 32, 50 and 100 in single calls (1.0, "
            "1.4 and 1.8 with the dense code that has replaced it), with the same answers; six times the memory is accepted"
        ),
    ),
    Mechanism(
        "tensors: one block up to order 32",
        TENSORS,
        ("objectives/tensor.py:WHOLE", "objectives/tensor.py:PASSES"),
        _blocks_below_32,
        "kept: two lines; it changes nothing here.",
    ),
    Mechanism(
        "tensors: several blocks above order 32, and packed storage",
        FULL_RANK,
        ("objectives/tensor.py:BLOCK", "numerics/packed.py", "kernels/packed.py"),
        _one_block,
        "kept: several blocks; packed storage is deleted.",
    ),
    Mechanism(
        "mixtures: starts of EM beside the moments",
        MIXTURES,
        ("mixtures/starts.py",),
        _moments_only_start,
        (
            "kept: the time without them is 0.45 times with the same answer (12 of 60,000 x 40), but on real data the first "
            "measurement had log-likelihoods up to 0.31 a row better with them"
        ),
    ),
    Mechanism(
        "mixtures: 20 such starts, against 5",
        MIXTURES,
        (),
        _five_drawn_starts,
        (
            "kept: ten starts, 20 steps each, and no further rounds. On principal components of five real data sets "
            "(k = 5, 10, 20, 95 fits) they take 0.74 of the time of 21 with a race, and the held-out log-likelihood is better "
            "13 times and worse 10 times. Five drawn starts are worse more often (17 of 144) than better (15)."
        ),
    ),
    Mechanism(
        "mixtures: fit to the moments by their noise",
        MIXTURES,
        ("mixtures/refit.py",),
        _no_refit,
        "kept: without EM the errors of the means are 1.0 to 2.3 times as large without it; its time does not show.",
    ),
    Mechanism(
        "mixtures: shrinking of the third moment",
        MIXTURES,
        ("mixtures/solve.py:_lifted",),
        _no_shrinking,
        "deleted: it changed errors by a thousandth.",
    ),
    Mechanism(
        "moments: symmetry of third moments",
        (*MIXTURES, *TOPICS),
        (
            "moments/sums.py:PairGroup",
            "moments/sums.py:pair_groups",
            "moments/sums.py:packed_triples",
            "moments/sums.py:unpacked_triples",
        ),
        _all_triples,
        "kept: half of the memory; its time does not show.",
    ),
    Mechanism(
        "topics: search for alpha0",
        TOPICS,
        (
            "topics/from_moments.py:_Family",
            "topics/from_moments.py:_orthogonal_alpha0",
            "topics/from_moments.py:_begun",
        ),
        _alpha0_of_1,
        (
            "deleted: the time without it is 1.01 and 1.02 times in memory and 1.74 times in chunks, perplexity "
            "the same to 0.04 % (0.8 % worse on the AP articles with 10 topics in the first measurement)"
        ),
    ),
    Mechanism(
        "topics: exact sums",
        TOPICS,
        (
            "topics/word_moments.py:_Frequencies",
            "topics/word_moments.py:_SecondImage",
            "topics/word_moments.py:_rounded",
        ),
        _plain_sums,
        (
            "deleted: times (0.97 to 1.18) and answers are equal within the noise, and the same bits for other chunks are not "
            "promised any more"
        ),
    ),
    Mechanism(
        "topics: a rough decomposition before the precise one",
        TOPICS,
        ("topics/from_moments.py:_decomposed",),
        _one_decomposition,
        "deleted: made for the search for alpha0, and gone with it.",
    ),
    Mechanism(
        "topics: compiled products of counts",
        TOPICS,
        ("kernels/counts.py",),
        _scipy_counts,
        "kept: SciPy's, shared among threads by words, take 1.4 times as long; on one thread 0.8 to 1.0 times.",
    ),
    Mechanism(
        "topics: axes by Cholesky factors",
        TOPICS,
        ("topics/word_moments.py:_orthonormal",),
        _qr_axes,
        "deleted: a whole fit of 10 topics of 2,000 x 3,000 takes 1.0 times as long with QR factors, with the same answer",
    ),
    Mechanism(
        "ICA: fixed-point steps on a sample",
        ADAPTIVE,
        ("ica/adaptive.py:fixed_point",),
        _descent_only,
        "deleted: the time without it is 0.79 to 1.02 times in six rows, and the answer the same in all of them",
    ),
    Mechanism(
        "ICA: white samples computed when they are read",
        ("ICA *",),
        ("ica/white_array.py",),
        _stored_white_samples,
        "kept: it saves a copy of the data.",
    ),
    Mechanism(
        "ICA: fourth moments of a stream",
        ("ICA kurtosis*",),
        ("ica/fourth_moments.py",),
        _no_partial_fit,
        "deleted: only ICA.partial_fit used them, which knew one contrast and 64 features",
    ),
)
