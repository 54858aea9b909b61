"""The paper's theorems, and what rounding does to a million rotations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from givens import rotations
from givens.objectives import Function, Look, Objective, PairSolutions
from givens.schedules import SCHEDULES, Cyclic, Random, Shuffled, Tournament
from tests.cases import CASES, value_at
from tests.properties import examples
from tests.runs import run


def schedules() -> list:
    kinds = [kind() for kind in SCHEDULES.values()]
    return [*kinds, Tournament(block=4), Shuffled(block=3), Cyclic(block=5), Random(block=64)]


class Watched(Objective):
    """An objective that looks at the value, made anew from U, before and after every single application."""

    def __init__(self, inner: Objective) -> None:
        self.inner = inner
        self.shape, self.active, self.separable = inner.shape, inner.active, inner.separable
        self.scale, self.method = inner.scale, inner.method
        self.rises: list[float] = []

    def state(self, U):
        self.U = U.copy()
        value = value_at(self.inner, self.inner.state(U))
        if hasattr(self, "last"):
            self.rises.append(value - self.last)
        self.last = value
        return self.inner.state(U)

    def look(self, state, Q=None, slopes=True):
        return self.inner.look(state, Q, slopes)

    def solve(self, state, blocks, min_gain=0.0):
        return self.inner.solve(state, blocks, min_gain)

    def apply(self, state, blocks, Q, solutions=None):
        self.inner.apply(state, blocks, Q, solutions)
        for block, q in zip(blocks, Q):
            self.U[:, block] = self.U[:, block] @ q
            value = value_at(self.inner, self.inner.state(self.U))
            self.rises.append(value - self.last)
            self.last = value


@pytest.mark.parametrize("case", CASES)
@examples(6)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_theorem_1_what_is_minimised_never_rises(case, seed, data):
    objective = CASES[case](seed)
    schedule = data.draw(st.sampled_from(schedules()))
    watched = Watched(objective)
    run(watched, method=schedule, max_iter=4, repair_every=2, random_state=seed)
    assert max(watched.rises) <= 1e-12 * watched.scale


def test_theorem_2_the_bound_holds():
    """min_t E‖∇f‖² ≤ 2L d(d−1)(f(U₀) − f_min)/(T+1), on a linear f: L and the minimum are known."""
    d, T, runs = 5, 60, 40
    rng = np.random.default_rng(0)
    M = rng.standard_normal((d, d))
    U0 = rotations.random_orthogonal(d, rng, determinant=1)
    u, s, vt = np.linalg.svd(M)
    minimum = -(s.sum() if np.linalg.det(u @ vt) > 0 else s.sum() - 2 * s[-1])
    # g(θ) = A cos θ + B sin θ + const, with A and B sums of two entries of UᵀM: |g''| ≤ √2·(two singular values).
    L = np.sqrt(2) * (s[0] + s[1])
    norms = np.zeros((runs, T + 1))
    for seed in range(runs):
        U, draw = U0.copy(), np.random.default_rng(seed)
        f = Function(lambda U: -float(np.sum(U * M)), d, degree=1, jac=lambda U: -M)
        for t in range(T + 1):
            slopes = f.look(f.state(U)).slopes
            norms[seed, t] = np.sum(slopes**2)  # both triangles: 2 Σ over pairs
            i, j = sorted(draw.choice(d, 2, replace=False))
            Q = f.solve(f.state(U), np.array([[i, j]])).rotations[0]
            U[:, [i, j]] = U[:, [i, j]] @ Q
    for t in (5, 20, T):
        bound = 2 * L * d * (d - 1) * (-np.sum(U0 * M) - minimum) / (t + 1)
        assert norms.mean(axis=0)[: t + 1].min() <= bound


class Spinning(Objective):
    """Turns every pair by a random angle and claims a gain: rotations without end."""

    def __init__(self, n: int) -> None:
        self.shape, self.active = (n, n), n
        self.rng = np.random.default_rng(0)

    def state(self, U):
        return None

    def look(self, state, Q=None, slopes=True):
        return Look(0.0)

    def solve(self, state, blocks, min_gain=0.0):
        angles = self.rng.uniform(-np.pi, np.pi, len(blocks))
        return PairSolutions(rotations.turn(angles), np.ones(len(blocks)))

    def apply(self, state, blocks, Q, solutions=None):
        return 0.0


@pytest.mark.parametrize(("repair_every", "allowed"), [(None, 1e-12), (10, 1e-14)])
def test_a_million_rotations_stay_orthogonal(repair_every, allowed):
    result = run(Spinning(100), method="tournament", max_iter=210, threads=1, repair_every=repair_every)
    assert result.rotations > 1_000_000
    assert result.orthogonality <= allowed * 100
