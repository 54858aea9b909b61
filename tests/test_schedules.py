from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from givens import schedules
from givens.schedules import ByGradient, Cyclic, Random, Shape, Shuffled, Tournament, WithoutReplacement


def deal(schedule, shape, gain=0.0, slopes=None, seed=0):
    """Play one sweep, telling the schedule that every round gained so much."""
    rounds = schedule.sweep(shape, np.random.default_rng(seed), lambda: slopes)
    dealt = []
    try:
        blocks = next(rounds)
        while True:
            dealt.append([tuple(int(k) for k in block) for block in blocks])
            blocks = rounds.send(gain)
    except StopIteration:
        return dealt


def pairs_of(shape):
    return {(i, j) for i, j in combinations(range(shape.n), 2) if i < shape.active}


SHAPES = (
    st.integers(1, 11).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n))).map(lambda s: Shape(*s))
)


@given(SHAPES, st.integers(2, 8), st.sampled_from([Cyclic, Shuffled, Tournament, WithoutReplacement]))
def test_a_sweep_visits_every_pair(shape, block, kind):
    visited = set()
    for blocks in deal(kind(block=block), shape):
        columns = [k for b in blocks for k in b]
        assert len(columns) == len(set(columns)), "the blocks of a round share no column"
        for b in blocks:
            assert list(b) == sorted(b)
            assert len(b) <= max(block, 2)
            visited |= {pair for pair in combinations(b, 2) if pair[0] < shape.active}
    if shape.n > 1:
        assert visited == pairs_of(shape)


@given(SHAPES, st.sampled_from([Cyclic, Shuffled, Tournament]))
def test_a_sweep_of_pairs_visits_each_once(shape, kind):
    dealt = [b for blocks in deal(kind(), shape) for b in blocks]
    if shape.n > 1:
        assert sorted(dealt) == sorted(pairs_of(shape))
        assert len(dealt) == shape.pairs


def test_random_draws_uniformly_with_replacement():
    shape = Shape(5, 5)
    drawn = [b for seed in range(400) for blocks in deal(Random(), shape, seed=seed) for b in blocks]
    assert len(drawn) == 400 * shape.pairs
    counts = np.array([drawn.count(pair) for pair in pairs_of(shape)])
    chi2 = np.sum((counts - 400) ** 2 / 400)
    assert chi2 < 27.9  # the 0.999 quantile with 9 degrees of freedom
    assert any(len({b for blocks in deal(Random(), shape, seed=s) for b in blocks}) < 10 for s in range(5))


def test_without_replacement_starts_afresh_only_after_a_gain():
    shape = Shape(6, 6)
    idle = [b for blocks in deal(WithoutReplacement(), shape, gain=0.0) for b in blocks]
    assert sorted(idle) == sorted(pairs_of(shape))
    busy = [b for blocks in deal(WithoutReplacement(), shape, gain=1.0) for b in blocks]
    assert len(busy) == shape.pairs
    assert len(set(busy)) < shape.pairs


@given(st.integers(3, 9), st.integers(0, 1000))
def test_by_gradient_is_the_greedy_matching(n, seed):
    slopes = np.triu(np.random.default_rng(seed).standard_normal((n, n)), 1)
    first = deal(ByGradient(), Shape(n, n), gain=1.0, slopes=slopes)[0]
    free, greedy = set(range(n)), []
    for i, j in sorted(pairs_of(Shape(n, n)), key=lambda p: -abs(slopes[p])):
        if i in free and j in free:
            greedy.append((i, j))
            free -= {i, j}
    assert sorted(first) == sorted(greedy)


def test_without_any_gradient_every_pair_is_tried():
    dealt = deal(ByGradient(), Shape(5, 5), slopes=np.zeros((5, 5)))
    assert sorted(b for blocks in dealt for b in blocks) == sorted(pairs_of(Shape(5, 5)))


@given(SHAPES, st.integers(3, 8), st.integers(0, 99))
def test_blocks_by_gradient_are_disjoint_and_not_too_large(shape, block, seed):
    slopes = np.random.default_rng(seed).standard_normal((shape.n, shape.n))
    slopes[shape.active :] = 0
    blocks = schedules.largest_blocks(np.triu(np.abs(slopes), 1), shape, block)
    columns = [int(k) for b in blocks for k in b]
    assert len(columns) == len(set(columns))
    assert all(len(b) <= max(block, 2) for b in blocks)


def test_schedules_by_name():
    for name, kind in schedules.SCHEDULES.items():
        assert schedules.as_schedule(name) == kind()
    assert schedules.as_schedule(Tournament(block=8)).block == 8
    with pytest.raises(ValueError, match="no schedule 'spiral'; it is one of 'random'"):
        schedules.as_schedule("spiral")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Tournament(block=1), "block must be"),
        (lambda: Tournament(block=2.5), "block must be"),
    ],
)
def test_impossible_schedules(make, message):
    with pytest.raises(ValueError, match=message):
        make()
