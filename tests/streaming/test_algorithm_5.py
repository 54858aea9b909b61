"""The paper's Algorithm 5, as printed, in plain NumPy, beside the settings of `StreamingSparsePCA` that are it."""

from __future__ import annotations

import numpy as np
import pytest

from givens import StreamingSparsePCA
from givens.datasets import sparse_modules
from givens.streaming import algorithm_5 as rule
from tests.oracles.breakpoints import breakpoint_search

DATA = sparse_modules(45, 25, n_modules=3, module_size=6, random_state=3).X


def scatter(number):
    """SplitMix64's finaliser: the stream's random numbers, which depend on the seed and the sample's number alone."""
    mask = (1 << 64) - 1
    z = number * 0x9E3779B97F4A7C15 & mask
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    return z ^ z >> 31


def pairs(seed, sample, m, L):
    """L random pairs i < j of m columns, those that the stream draws after a sample."""
    state = scatter(seed ^ scatter(sample + 1))
    for _ in range(L):
        state = scatter(state + 1 & (1 << 64) - 1)
        i, j = (state >> 32) % m, (state & 0xFFFFFFFF) % (m - 1)
        j += j >= i
        yield min(i, j), max(i, j)


class Ambiguous(Exception):
    """Step 2 or step 4 has two answers that differ by rounding: columns that may as well change places."""


def best_rotation(AU, i, j, gamma):
    """Step 2: the best angle, by sorted breakpoints; the objective has the period π/2, and the smallest angle is meant."""
    theta, gain = breakpoint_search(AU[:, i], AU[:, j], (gamma, gamma))
    if abs(theta) > np.pi / 4 - np.pi / 16:  # the best angle is θ ± π/2 as well
        raise Ambiguous
    G = np.eye(AU.shape[1])
    if gain > 1e-14 * np.square(AU[:, [i, j]]).sum():  # less is rounding: at gamma = 0 every angle is as good
        G[i, i] = G[j, j] = np.cos(theta)
        G[j, i], G[i, j] = np.sin(theta), -np.sin(theta)
    return G


def algorithm_5(a, U0, gamma, inner):
    """As printed: a has a sample per row, `inner` yields for each round the pairs of its L rotations."""
    m = len(U0)
    AU = a[:m].T @ U0
    waiting = iter(a[m:])
    while True:
        for i, j in next(inner):
            AU = AU @ best_rotation(AU, i, j, gamma)
        new = next(waiting, None)
        if new is None:
            return AU
        norms = np.linalg.norm(AU, axis=0)
        if np.diff(np.sort(norms)[:2]) < 1e-6 * norms.max():
            raise Ambiguous
        AU[:, np.argmin(norms)] = new


def from_the_first_sample(a, m, L, gamma, seed):
    """Algorithm 5 with the U_0 that a stream has: rotations made while the first m samples fill the columns."""
    U0 = np.eye(m)
    for filled in range(1, m):
        for i, j in pairs(seed, filled, m, L):
            U0 = U0 @ best_rotation(a[:m].T * (np.arange(m) < filled) @ U0, i, j, gamma)
    return algorithm_5(a, U0, gamma, (pairs(seed, t, m, L) for t in range(m, len(a) + 1)))


def centred(X):
    """a_t = (x_t − mean of those before)·√((t − 1)/t): Σ aaᵀ is the scatter about the mean. The first of them is 0."""
    means = np.cumsum(X, axis=0) / np.arange(1, len(X) + 1)[:, None]
    t = np.arange(2, len(X) + 1)[:, None]
    a = (X[1:] - means[:-1]) * np.sqrt((t - 1) / t)
    scatter = (X - X.mean(axis=0)).T @ (X - X.mean(axis=0))
    np.testing.assert_allclose(a.T @ a, scatter, atol=1e-9)
    return a


@pytest.mark.parametrize("gamma", [0.0, 1.5, 4.0])
def test_it_is_algorithm_5_as_printed(monkeypatch, gamma):
    # Step 2 asks for the best angle, not for nearly all of its gain.
    monkeypatch.setattr(rule, "MAX_GAIN_LEFT", 1e-14)
    a, compared, m = centred(DATA), 0, 3
    for seed in range(400):
        try:
            expected = from_the_first_sample(a, m, m, gamma, seed)
        except Ambiguous:
            continue
        given = {"sketch": ("algorithm 5", gamma), "refit": False, "random_state": seed}
        model = StreamingSparsePCA(m, **given).partial_fit(DATA)
        sketch = model._sketch
        assert sketch.count > sketch.block  # a whole block and a part of one
        columns = sketch.finished().Y * sketch.unit
        np.testing.assert_allclose(columns.T, expected, atol=1e-5 * np.abs(expected).max())
        cut = np.sign(expected) * np.maximum(np.abs(expected) - gamma, 0)
        Z = (cut / np.linalg.norm(cut, axis=0)).T
        np.testing.assert_allclose(np.abs(model.components_ @ Z.T).max(axis=1), 1, atol=1e-8)
        np.testing.assert_array_equal(model.gamma_, gamma)
        compared += 1
        if compared == 2:
            return
    pytest.fail(f"only {compared} seeds of 400 leave no choice")


def test_the_threshold_belongs_to_the_algorithm():
    for given in ({"threshold": 0.1}, {"n_nonzero": 3}):
        with pytest.raises(ValueError, match="Algorithm 5 has the threshold of sketch"):
            StreamingSparsePCA(2, sketch=("algorithm 5", 1.0), **given).fit(DATA)
    for sketch in ("algorithm 5", ("algorithm 4", 1.0), 2.5):
        with pytest.raises(ValueError, match="sketch must be a number of columns or"):
            StreamingSparsePCA(2, sketch=sketch).fit(DATA)
    with pytest.raises(ValueError, match="threshold of sketch must be"):
        StreamingSparsePCA(2, sketch=("algorithm 5", -1.0)).fit(DATA)
