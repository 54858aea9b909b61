import numpy as np
import pytest

from givens.numerics import parallel
from givens.numerics.packed import Packed
from givens.rotations import random_orthogonal
from tests.tensor_data import rotated, symmetric


def pack(T):
    return Packed.from_full(T)[0]


@pytest.mark.parametrize("d", [1, 2, 3, 7, 16, 17, 33, 50])
def test_packing_keeps_every_entry(d):
    T = symmetric(np.random.default_rng(d), d)
    packed, largest, spread = Packed.from_full(T)
    assert packed.entries.size == d * (d + 1) * (d + 2) // 6
    assert np.allclose(packed.full(), T, atol=1e-15, rtol=0)
    assert largest == np.abs(T[tuple(np.sort(np.indices(T.shape), axis=0))]).max()
    places = [
        np.abs(T - T.transpose(order)).max()
        for order in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
    ]
    assert spread == max(places)


def test_packing_takes_the_mean_of_the_six_places():
    T = np.random.default_rng(0).standard_normal((20, 20, 20))
    packed, _, spread = Packed.from_full(T)
    mean = (
        sum(
            T.transpose(order) for order in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
        )
        / 6
    )
    assert np.allclose(packed.full(), mean, atol=1e-14, rtol=0)
    assert spread > 2


@pytest.mark.parametrize("d", [1, 2, 5, 30, 60])
def test_rotating_anew_is_three_products(d):
    rng = np.random.default_rng(d)
    T, U = symmetric(rng, d), random_orthogonal(d, rng)
    assert np.allclose(pack(T).rotated(U).full(), rotated(T, U), atol=1e-13 * d, rtol=0)


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
    packed = pack(T)
    blocks = list(rounds(d, rng))[kind]
    rotations = [random_orthogonal(len(block), rng, determinant=1) for block in blocks]
    U = np.eye(d)
    for block, Q in zip(blocks, rotations):
        U[np.ix_(block, block)] = Q
    flops = packed.rotate(blocks, np.array(rotations) if isinstance(blocks, np.ndarray) else rotations)
    assert np.allclose(packed.full(), rotated(T, U), atol=1e-13, rtol=0)
    assert flops > 0


def test_the_same_bits_for_one_and_two_threads():
    rng = np.random.default_rng(0)
    T, U = symmetric(rng, 70), random_orthogonal(70, rng)
    blocks = [np.sort(part) for part in np.array_split(rng.permutation(70), 4)]
    rotations = [random_orthogonal(len(block), rng) for block in blocks]
    outcomes = []
    for threads in (1, 2, 3):
        with parallel.pool(threads):
            packed = pack(T).rotated(U)
            packed.rotate(blocks, rotations)
            outcomes.append((packed.entries.copy(), packed.squares(U)))
    for entries, squares in outcomes[1:]:
        assert np.array_equal(entries, outcomes[0][0])
        assert np.array_equal(squares, outcomes[0][1])


@pytest.mark.parametrize("d", [1, 2, 9, 25])
def test_contractions(d):
    rng = np.random.default_rng(d)
    T, r, U = symmetric(rng, d), rng.standard_normal(d), rng.standard_normal((d, 3))
    packed = pack(T)
    assert np.allclose(packed.contract(r), T @ r)
    assert np.allclose(packed.squares(U), np.einsum("xjk,ja,ka->xa", T, U, U))
    assert np.allclose(packed.squares(U, packed.unfolded()), packed.squares(U))
    assert np.isclose(packed.squared_norm(), np.sum(T**2))
    assert np.allclose(packed.doubles(), np.einsum("iij->ij", T))
    assert np.allclose(packed.diagonal, np.einsum("iii->i", T))
