from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from givens.datasets import sparse_modules
from givens.objectives import SparseColumns
from givens.rotations import random_orthogonal
from tests.cases import value_at
from tests.properties import examples


@pytest.mark.parametrize("penalty", ["l1", "l0"])
@examples(12)
@given(seed=st.integers(0, 10_000), share=st.floats(0.1, 0.35), width=st.sampled_from([12, 24]))
def test_a_block_gains_at_least_what_it_says(penalty, seed, share, width):
    """Columns sparse enough to carry lists of the features that count, turned so often that the lists go stale."""
    X = sparse_modules(24, 600, n_modules=8, module_size=40, strength=1.5, random_state=seed).X
    A = (X - X.mean(axis=0)).T
    gamma = share * np.sqrt(np.max(np.sum(A**2, axis=1)))
    objective = SparseColumns(A, gamma**2 if penalty == "l0" else gamma, penalty)
    U = random_orthogonal(24, np.random.default_rng(seed))
    state = objective.state(U)
    block = np.arange(width)
    gained = 0.0
    for _ in range(6):
        before = value_at(objective, state)
        solved = objective.solve(state, [block])
        objective.apply(state, [block], solved.rotations, solved)
        gain = before - value_at(objective, state)
        assert gain >= solved.gains[0] - 1e-12 * objective.scale
        gained += gain
    assert gained > 0
