from itertools import permutations

import numpy as np
import pytest
from scipy import sparse

from givens.data.documents import Counts, WordCounts
from givens.data.rows import Rows
from givens.topics.word_moments import FLATTENING, WordMoments, principal_axes

pytest.importorskip("numba")


def documents(n, words, rng, most=6):
    return sparse.csr_matrix(
        rng.poisson(0.4, size=(n, words)) * rng.integers(1, most, size=(n, words)) // 2
    ).astype(float)


def by_enumeration(X):
    """Moments from every ordered pair and triple of different words, each document weighed by its length."""
    words = X.shape[1]
    sums = [np.zeros((words,) * order) for order in (1, 2, 3)]
    totals = np.zeros(3)
    for row in X.toarray().astype(int):
        tokens = np.repeat(np.arange(words), row)
        for order in (1, 2, 3):
            drawn = list(permutations(tokens, order))
            if drawn:
                totals[order - 1] += len(tokens)
                for which in drawn:
                    sums[order - 1][which] += len(tokens) / len(drawn)
    return [total / size for total, size in zip(sums, totals)]


def test_moments_are_those_of_all_triples_of_words():
    rng = np.random.default_rng(0)
    X = documents(30, 5, rng)
    assert {1, 2} <= set(np.asarray(X.sum(axis=1)).ravel())
    axes = rng.standard_normal((5, 3))
    state = WordMoments(axes).begin(0)
    state.add(Counts.of(X))
    moments = state.moments()
    first, second, third = by_enumeration(X)
    np.testing.assert_allclose(moments.mean, first, atol=1e-14)
    np.testing.assert_allclose(moments.cross, second @ axes, atol=1e-13)
    np.testing.assert_allclose(moments.second, axes.T @ second @ axes, atol=1e-13)
    np.testing.assert_allclose(
        moments.third, np.einsum("abc,ai,bj,ck->ijk", third, axes, axes, axes), atol=1e-13
    )


@pytest.mark.parametrize("scale", [1.0, 1e-40, 1e40])
def test_moments_on_many_axes_of_any_size(scale):
    rng = np.random.default_rng(9)
    X = documents(20, 45, rng, most=3)
    axes = scale * rng.standard_normal((45, 35))
    state = WordMoments(axes).begin(0)
    state.add(Counts.of(X))
    third = by_enumeration(X)[2]
    expected = np.einsum("abc,ai,bj,ck->ijk", third, axes, axes, axes, optimize=True)
    np.testing.assert_allclose(
        state.moments().third / scale**3, expected / scale**3, atol=1e-12 * np.abs(expected).max() / scale**3
    )


def test_merged_moments_are_those_of_all_documents():
    rng = np.random.default_rng(3)
    X = documents(512, 9, rng)
    axes = rng.standard_normal((9, 4))
    whole, left, right = (WordMoments(axes).begin(0) for _ in range(3))
    whole.add(Counts.of(X))
    left.add(Counts.of(X[:256]))
    right.add(Counts.of(X[256:]))
    left.merge(right)
    np.testing.assert_allclose(left.moments().third, whole.moments().third, atol=1e-14)
    assert left.count == 512
    with pytest.raises(ValueError, match="different axes"):
        left.merge(WordMoments(axes + 1))


def test_principal_axes_span_the_leading_eigenvectors():
    rng = np.random.default_rng(4)
    topics = rng.dirichlet(np.full(30, 0.1), size=3)
    X = sparse.csr_matrix(np.stack([rng.multinomial(80, topics[n % 3]) for n in range(600)]).astype(float))
    second = (X.T @ X).toarray() - np.diag(np.asarray(X.sum(axis=0)).ravel())
    frequency = np.asarray(X.sum(axis=0)).ravel()
    scale = np.where(frequency > 0, 1 / np.sqrt(frequency + FLATTENING * frequency.mean()), 0.0)
    leading = np.linalg.eigh(scale[:, None] * second * scale)[1][:, -3:]
    axes = principal_axes(Rows([X], check=WordCounts(True)), 30, 3, np.random.default_rng(0))
    Q = np.linalg.qr(axes[frequency > 0] / scale[frequency > 0, None])[0]
    assert not axes[frequency == 0].any()
    cosines = np.linalg.svd(leading[frequency > 0].T @ Q, compute_uv=False)
    np.testing.assert_allclose(cosines, 1, atol=1e-6)


def test_lengths_of_documents_without_words():
    X = sparse.csr_matrix(np.array([[0, 0], [1, 2], [0, 0], [0, 4], [0, 0]], dtype=float))
    np.testing.assert_array_equal(Counts.of(X).lengths, [0, 3, 0, 4, 0])
