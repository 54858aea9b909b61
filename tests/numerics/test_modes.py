import numpy as np
import pytest

from givens.numerics import flop_counts, modes, parallel
from givens.rotations import random_orthogonal
from tests.tensor_data import ORDERS, rotated, symmetric


def rounds(d, rng):
    """Rounds of every kind: pairs, few of them, blocks of all sizes, columns that rest."""
    order = rng.permutation(d)
    yield np.sort(order[: 2 * (d // 2)].reshape(-1, 2), axis=1)
    yield np.sort(order[:2].reshape(-1, 2), axis=1)
    yield [np.sort(order[: d // 2]), np.sort(order[d // 2 :])]
    yield [np.arange(d)]
    yield [np.sort(order[:3])]
    yield [np.sort(part) for part in np.array_split(order[: d - 2], 5)]
    yield [np.r_[0 : d // 4, d // 2 : 3 * d // 4], np.r_[d // 4 : d // 2, 3 * d // 4 : d]]


@pytest.mark.parametrize("d", [16, 45, 90])
@pytest.mark.parametrize("kind", range(7))
def test_rotating_blocks_is_three_products(d, kind):
    rng = np.random.default_rng(d)
    T = symmetric(rng, d)
    blocks = list(rounds(d, rng))[kind]
    rotations = [random_orthogonal(len(block), rng, determinant=1) for block in blocks]
    U = np.eye(d)
    for block, Q in zip(blocks, rotations):
        U[np.ix_(block, block)] = Q
    expected = rotated(T, U)
    with flop_counts.job(flop_counts.Flops()) as counter:
        modes.rotate(T, blocks, np.array(rotations) if isinstance(blocks, np.ndarray) else rotations)
    assert np.allclose(T, expected, atol=1e-13, rtol=0)
    assert counter.flops > 0


@pytest.mark.parametrize("d", [1, 2, 5, 30, 60])
def test_rotating_all_indices_is_three_products(d):
    rng = np.random.default_rng(d)
    T, U = symmetric(rng, d), random_orthogonal(d, rng)
    expected = rotated(T, U)
    modes.rotate(T, [np.arange(d)], [U])
    assert np.allclose(T, expected, atol=1e-13 * d, rtol=0)


def test_a_hundred_rounds_keep_the_symmetry():
    rng, d = np.random.default_rng(0), 24
    T = symmetric(rng, d)
    for _ in range(100):
        blocks = [np.sort(part) for part in np.array_split(rng.permutation(d), 3)]
        modes.rotate(T, blocks, [random_orthogonal(len(block), rng) for block in blocks])
    assert max(np.abs(T - T.transpose(order)).max() for order in ORDERS) < 1e-13


def test_the_same_bits_for_one_and_two_threads():
    rng = np.random.default_rng(0)
    d = 70
    T, U = symmetric(rng, d), random_orthogonal(d, rng)
    blocks = [np.sort(part) for part in np.array_split(rng.permutation(d), 4)]
    rotations = [random_orthogonal(len(block), rng) for block in blocks]
    outcomes = []
    for threads in (1, 2, 3):
        with parallel.pool(threads):
            turned = T.copy()
            modes.rotate(turned, [np.arange(d)], [U])
            modes.rotate(turned, blocks, rotations)
            outcomes.append((turned, modes.squares(turned, U)))
    for turned, squares in outcomes[1:]:
        assert np.array_equal(turned, outcomes[0][0])
        assert np.array_equal(squares, outcomes[0][1])


@pytest.mark.parametrize("d", [1, 2, 9, 25, 50])
def test_contractions(d):
    rng = np.random.default_rng(d)
    T, r, U = symmetric(rng, d), rng.standard_normal(d), rng.standard_normal((d, 3))
    assert np.allclose(modes.contracted(T, r), T @ r)
    assert np.allclose(modes.squares(T, U), np.einsum("xjk,ja,ka->xa", T, U, U))
    assert np.isclose(modes.squared_norm(T), np.sum(T**2))
    assert np.allclose(modes.doubles(T), np.einsum("iij->ij", T))
    assert np.allclose(modes.diagonal(T), np.einsum("iii->i", T))
    block = np.flatnonzero(rng.random(d) < 0.5)
    assert np.array_equal(modes.subtensor(T, block), T[block][:, block][:, :, block])
