"""Blocks of columns of sparse PCA: what they gain, and that compact copies are the columns."""

from __future__ import annotations

import numpy as np
import pytest

from givens.kernels import sparse_blocks

PENALTIES = pytest.mark.parametrize("penalty", ["l1", "l0"])


def brute_value(Y, levels, l0):
    A = np.abs(Y)
    if l0:
        return float(np.maximum(Y**2 - levels[:, None] ** 2, 0.0).sum())
    return float((np.maximum(A - levels[:, None], 0.0) ** 2).sum())


@PENALTIES
@pytest.mark.parametrize("relaxation", [1.0, 1.35])
@pytest.mark.parametrize("inactive", [0, 3])
def test_a_block_gains_at_least_what_it_says_and_its_rotation_is_orthogonal(
    rng, penalty, relaxation, inactive
):
    Y = rng.standard_t(3, size=(9, 400))
    l0 = penalty == "l0"
    levels = np.full(9, 2.0)
    levels[9 - inactive :] = np.inf
    C, rows, others = sparse_blocks.compact(Y, np.arange(9), 2.0 / np.sqrt(2))
    np.testing.assert_array_equal(np.sort(np.append(rows, others)), np.arange(400))
    steps = np.empty((36, 4))
    Qt = np.eye(9)
    gain, turned, flops = sparse_blocks.turn_block(C, levels, l0, 1e-12, 0.1, 1e-2, relaxation, Qt, steps)
    assert turned > 0
    assert flops > 0
    np.testing.assert_allclose(Qt @ Qt.T, np.eye(9), atol=1e-13)
    before, after = brute_value(Y, levels, l0), brute_value(Qt @ Y, levels, l0)
    # A feature that was left out can only add to what is said.
    assert after - before >= gain - 1e-9 * after
    for turn in (
        lambda Z: sparse_blocks.replay(Z, np.arange(9), steps[:turned]),
        lambda Z: sparse_blocks.install(Z, np.arange(9), Qt, C, rows, others),
    ):
        Z = Y.copy()
        turn(Z)
        np.testing.assert_allclose(Z, Qt @ Y, atol=1e-12 * np.abs(Y).max())
    np.testing.assert_allclose(
        C, (Qt @ Y)[:, np.abs(Y).max(axis=0) > 2.0 / np.sqrt(2)], atol=1e-12 * np.abs(Y).max()
    )


def test_a_feature_below_the_threshold_in_norm_never_counts(rng):
    Y = rng.standard_normal((6, 50)) * 0.3
    Y[:, :5] *= 10
    small = np.linalg.norm(Y, axis=0) <= 2.0
    assert small.any()
    for seed in range(20):
        Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((6, 6)))[0]
        assert np.all(np.abs(Q @ Y)[:, small] <= 2.0)
