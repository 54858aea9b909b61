"""The order of pairs in a sweep.

A schedule divides a sweep into rounds of blocks. The blocks of a round share no column, so they can be solved at the same time. A
block of two columns is the paper's step. With `block=b` the columns are divided into groups of b/2, and a block is two of them,
whose pairs are solved together.

| schedule | the order | in the literature |
|---|---|---|
| `Random` | pairs drawn uniformly with replacement | Algorithm 1 |
| `WithoutReplacement` | pairs drawn without replacement; afresh after each gain | the appendix's Algorithm 1 |
| `Cyclic` | (0,1), (0,2), ... row by row | Jacobi's cyclic method |
| `Shuffled` | every pair once, in a new random order each sweep | |
| `Tournament` | every pair once, in rounds of disjoint pairs | parallel Jacobi methods |
| `ByGradient` | the largest \\|g'_ij\\| first | classical Jacobi |
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from givens.support.arguments import whole

if TYPE_CHECKING:
    from givens.objectives.base import Blocks

__all__ = ["ByGradient", "Cyclic", "Random", "Shuffled", "Tournament", "WithoutReplacement"]

Rounds: TypeAlias = "Generator[Blocks, float, None]"
"""Yields the rounds of a sweep, and is sent the gain of each."""


class Shape(NamedTuple):
    """The pairs of a problem: (i, j) with i < j < n and i < active."""

    n: int
    active: int

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return self.active * (self.active - 1) // 2 + self.active * (self.n - self.active)


Derivatives = Callable[[], "np.ndarray | None"]
"""Returns the first derivatives of all pairs at the current state, or None where they are too expensive."""


@dataclass(frozen=True)
class Schedule:
    """An order of pairs.

    Parameters
    ----------
    block : int, default=2
        Number of columns that are solved together; 2 is one rotation at a time.
    """

    block: int = 2

    # Number of sweeps without gain after which no pair can improve f: more than 1 where a sweep may miss pairs.
    patience = 1

    def __post_init__(self) -> None:
        whole(self.block, "block", 2)

    def sweep(self, shape: Shape, rng: np.random.Generator, derivatives: Derivatives) -> Rounds:
        """Yield the rounds of one sweep: by default all blocks, in the order of `order`."""
        blocks = all_blocks(shape, self.block)
        yield from disjoint_runs([blocks[k] for k in self.order(len(blocks), rng)])

    def order(self, number: int, rng: np.random.Generator) -> np.ndarray:
        """The order of so many blocks in a sweep."""
        return np.arange(number)


def all_pairs(shape: Shape) -> np.ndarray:
    """Every pair, row by row, as an array of shape (pairs, 2)."""
    i, j = np.triu_indices(shape.n, 1)
    keep = i < shape.active
    return np.column_stack((i[keep], j[keep]))


def groups(shape: Shape, block: int) -> list[np.ndarray]:
    """The columns in groups of half a block; with blocks of two, every column is a group.

    No group has both active and inactive columns. Otherwise a block could have little to rotate.
    """
    half = max(block // 2, 1)
    parts = []
    for start, stop in ((0, shape.active), (shape.active, shape.n)):
        size = stop - start
        number = -(-size // half)
        parts += [start + np.arange(size * k // number, size * (k + 1) // number) for k in range(number)]
    return parts


def all_blocks(shape: Shape, block: int) -> Blocks:
    """Every block of two groups that has a pair to rotate, row by row; all columns, if they fit into one block."""
    if shape.n <= block:
        return [np.arange(shape.n)]
    parts = groups(shape, block)
    active = sum(part[0] < shape.active for part in parts)
    return _joined(parts, all_pairs(Shape(len(parts), active)), shape)


def _joined(parts: list[np.ndarray], matches: np.ndarray, shape: Shape) -> Blocks:
    """Blocks of two groups each, by the numbers of the groups."""
    if len(parts) == shape.n:
        return matches
    return as_round([np.concatenate((parts[a], parts[b])) for a, b in matches])


def disjoint_runs(blocks: list[np.ndarray] | np.ndarray) -> Iterator[Blocks]:
    """Cut a sequence of blocks into rounds: a new one begins where a block shares a column with its round."""
    run: list[np.ndarray] = []
    seen: set[int] = set()
    for block in blocks:
        columns = set(block.tolist())
        if seen & columns:
            yield as_round(run)
            run, seen = [], set()
        run.append(block)
        seen |= columns
    if run:
        yield as_round(run)


def as_round(blocks: list[np.ndarray]) -> Blocks:
    """Blocks of two columns as one array of shape (k, 2), for the compiled code; other blocks unchanged."""
    if {len(block) for block in blocks} <= {2}:
        return np.array(blocks, dtype=np.int64).reshape(-1, 2)
    return blocks


def tournament(players: int) -> Iterator[np.ndarray]:
    """Rounds of disjoint pairs of players, in which every pair occurs once (the circle method)."""
    even = players + players % 2
    seats = np.arange(even)
    for _ in range(max(even - 1, 1)):
        a, b = seats[: even // 2], seats[: even // 2 - 1 : -1]
        real = (a < players) & (b < players)
        yield np.sort(np.column_stack((a, b))[real], axis=1)
        seats = np.concatenate((seats[:1], seats[-1:], seats[1:-1]))


@dataclass(frozen=True)
class Random(Schedule):
    """Algorithm 1: pairs drawn uniformly at random, with replacement; a sweep is as many draws as there are pairs."""

    patience = 5  # the probability that a pair is not drawn in five sweeps is about e⁻⁵

    def order(self, number: int, rng: np.random.Generator) -> np.ndarray:
        """Draws with replacement."""
        return rng.integers(number, size=number)


@dataclass(frozen=True)
class WithoutReplacement(Schedule):
    """The appendix's Algorithm 1: pairs drawn without replacement until one improves f; then all are drawn from again.

    A sweep is as many draws as there are pairs. When all pairs have been drawn and none has improved f, none can.
    """

    patience = 2  # such a series of draws may begin in one sweep and end in the next

    def sweep(self, shape: Shape, rng: np.random.Generator, derivatives: Derivatives) -> Rounds:
        """Yield the rounds of one sweep."""
        blocks = all_blocks(shape, self.block)
        order = rng.permutation(len(blocks))
        drawn = 0
        for _ in range(len(blocks)):
            gain = yield as_round([blocks[order[drawn]]])
            drawn += 1
            if gain > 0:
                order, drawn = rng.permutation(len(blocks)), 0


@dataclass(frozen=True)
class Cyclic(Schedule):
    """Every pair once, row by row."""


@dataclass(frozen=True)
class Shuffled(Schedule):
    """Every pair once, in a new random order each sweep."""

    def order(self, number: int, rng: np.random.Generator) -> np.ndarray:
        """A permutation."""
        return rng.permutation(number)


@dataclass(frozen=True)
class Tournament(Schedule):
    """Every pair once, in rounds of disjoint pairs (or blocks) that threads can work on at the same time."""

    def sweep(self, shape: Shape, rng: np.random.Generator, derivatives: Derivatives) -> Rounds:
        """Yield the rounds of one sweep."""
        if shape.n <= self.block:
            yield as_round([np.arange(shape.n)])
            return
        parts = groups(shape, self.block)
        first = np.array([part[0] for part in parts])
        for matches in tournament(len(parts)):
            matches = matches[first[matches[:, 0]] < shape.active]
            if len(matches):
                yield _joined(parts, matches, shape)


@dataclass(frozen=True)
class ByGradient(Schedule):
    """The pair with the largest |g'_ij|, then the largest that shares no column with it, and so on: a round.

    Notes
    -----
    The objective must have slopes, which are computed in every round. Where all of them vanish the sweep is a tournament, so that
    a run does not end at a saddle point.
    """

    def sweep(self, shape: Shape, rng: np.random.Generator, derivatives: Derivatives) -> Rounds:
        """Yield the rounds of one sweep."""
        visits, gain = 0, 1.0
        while visits < shape.pairs and gain > 0:
            slopes = derivatives()
            if slopes is None:
                raise ValueError(
                    "the schedule by gradient needs slopes, which this objective's look does not give; use 'tournament' or "
                    "'shuffled'"
                )
            size = np.triu(np.abs(slopes), 1)
            size[shape.active :] = 0
            blocks = largest_blocks(size, shape, self.block)
            if not len(blocks):
                break
            visits += sum(Shape(len(block), int(np.sum(block < shape.active))).pairs for block in blocks)
            gain = yield blocks
        # All slopes vanish, or they are rounding errors, since the pairs with the largest ones do not gain.
        if visits == 0 or gain <= 0:
            yield from Tournament(self.block).sweep(shape, rng, derivatives)


def largest_blocks(size: np.ndarray, shape: Shape, block: int) -> Blocks:
    """Disjoint blocks of large weight: a greedy matching of the groups, by the sums of the derivatives between them."""
    if shape.n <= block:
        return [np.arange(shape.n)]
    parts = groups(shape, block)
    first = [part[0] for part in parts]
    weight = np.add.reduceat(np.add.reduceat(size + size.T, first, axis=0), first, axis=1)
    np.fill_diagonal(weight, 0)
    return _joined(parts, np.array(_matching(weight), dtype=np.int64).reshape(-1, 2), shape)


def _matching(weight: np.ndarray) -> list[tuple[int, int]]:
    """Disjoint pairs by greedy matching: repeatedly, all pairs in which each index has its largest weight with the other."""
    weight = weight.copy()
    index = np.arange(len(weight))
    pairs: list[tuple[int, int]] = []
    while True:
        best = np.argmax(weight, axis=1)
        mutual = (best[best] == index) & (index < best) & (weight[index, best] > 0)
        if not mutual.any():
            return pairs
        pairs += zip(index[mutual].tolist(), best[mutual].tolist())
        taken = np.concatenate((index[mutual], best[mutual]))
        weight[taken] = 0
        weight[:, taken] = 0


SCHEDULES: dict[str, type[Schedule]] = {
    "random": Random,
    "without-replacement": WithoutReplacement,
    "cyclic": Cyclic,
    "shuffled": Shuffled,
    "tournament": Tournament,
    "gradient": ByGradient,
}


def as_schedule(schedule: str | Schedule) -> Schedule:
    """A schedule from its name, or itself.

    Examples
    --------
    >>> from givens.schedules import as_schedule
    >>> as_schedule("tournament")
    Tournament(block=2)
    """
    if isinstance(schedule, Schedule):
        return schedule
    if isinstance(schedule, str) and schedule in SCHEDULES:
        return SCHEDULES[schedule]()
    names = ", ".join(repr(name) for name in SCHEDULES)
    raise ValueError(f"there is no schedule {schedule!r}; it is one of {names}, or a Schedule object")
