"""Few components: rotations against a complement that is chosen anew."""

from __future__ import annotations

import numpy as np
import pytest

from givens import minimize
from givens.numerics import flop_counts
from givens.numerics.tiles import scores
from givens.objectives import SparseColumns
from givens.sparse_pca.few_components import FewColumns
from givens.sparse_pca.loadings import shrink
from paper.baselines import gpower


@pytest.fixture(params=[0, 1])
def At(request):
    rng = np.random.default_rng(request.param)
    return np.ascontiguousarray(rng.standard_t(4, size=(12, 150)) * np.exp(rng.standard_normal(150)))


def maximise(At, V, levels, l0, counts=None, **options):
    objective = FewColumns(At, levels, l0, counts)
    return objective.maximise(V, **options), objective.columns


def start(At, m):
    return np.linalg.svd(At, full_matrices=False)[0][:, :m]


@pytest.mark.parametrize("l0", [False, True])
def test_it_converges_to_a_point_without_gradient(At, l0):
    level = 0.3 * np.linalg.norm(At, axis=0).max()
    result, Y = maximise(At, start(At, 3), np.full(3, level), l0, tol=1e-14, max_sweeps=3000)
    assert result.converged
    np.testing.assert_allclose(Y, result.U.T @ At, atol=1e-9)
    np.testing.assert_allclose(result.U.T @ result.U, np.eye(3), atol=1e-12)
    assert np.all(np.diff(result.trace.value) >= -1e-9 * result.value)
    S = shrink(Y, level**2 if l0 else level, "l0" if l0 else "l1")
    E = At @ S.T
    residual = E - result.U @ (result.U.T @ E)
    inside = S @ Y.T - Y @ S.T
    assert np.linalg.norm(residual) < 1e-4 * np.linalg.norm(E)
    assert np.linalg.norm(inside) < 1e-4 * np.linalg.norm(E)
    expected = np.sqrt(8 * np.sum(residual**2) + 4 * np.sum(inside**2))
    assert result.gradient_norm == pytest.approx(expected, rel=1e-3, abs=1e-8)


def test_it_reaches_what_rotations_of_the_whole_completed_matrix_reach(At):
    level = 0.2 * np.linalg.norm(At, axis=0).max()
    U = np.linalg.svd(At)[0]
    whole = minimize(SparseColumns(At.T, level, active=3), U, tol=1e-6, max_iter=500)
    few, _ = maximise(At, U[:, :3], np.full(3, level), False, tol=1e-12, max_sweeps=2000)
    # Two ways up the same hills may end on different ones; neither may be far below.
    assert few.value >= 0.97 * whole.value


def test_it_is_not_below_block_gpower(At):
    level = 0.2 * np.linalg.norm(At, axis=0).max()
    rival = gpower(At.T, 3, level, start=start(At, 3), tol=1e-9, max_iter=5000)
    few, _ = maximise(At, start(At, 3), np.full(3, level), False, tol=1e-9, max_sweeps=2000)
    assert few.value >= 0.99 * rival.value


def test_counts_are_kept_exactly(At):
    counts = np.array([7, 4, 1])
    levels = np.zeros(3)
    result, Y = maximise(At, start(At, 3), levels, False, counts=counts, tol=1e-6)
    assert result.converged
    np.testing.assert_array_equal((np.abs(Y) > levels[:, None]).sum(axis=1), counts)


def test_the_loop_keeps_its_books(At):
    level = 0.3 * np.linalg.norm(At, axis=0).max()
    objective = FewColumns(At, np.full(3, level), False)
    result = objective.maximise(start(At, 3), tol=1e-10)
    assert result.determinant is None
    assert result.U.shape == (12, 3)
    assert len(result.trace) == result.sweeps + 1
    assert np.isfinite(result.trace.gradient_norm).all()
    assert result.trace.gradient_norm[-1] < 1e-3 * result.trace.gradient_norm[0]
    assert np.all(np.diff(result.trace.flops) > 0)
    assert result.phases[0].gain == pytest.approx(result.value - result.trace.value[0])
    again = objective.maximise(start(At, 3), tol=1e-10)
    assert again.flops == result.flops
    early = objective.maximise(start(At, 3), tol=1e-10, max_sweeps=2)
    assert (early.sweeps, early.converged) == (2, False)
    assert "max_sweeps = 2" in early.message
    assert early.trace.value == result.trace.value[:3]


def test_a_gradient_that_is_small_enough_ends_it(At):
    level = 0.3 * np.linalg.norm(At, axis=0).max()
    result = FewColumns(At, np.full(3, level), False).maximise(start(At, 3), gradient_tol=1e-2)
    assert "gradient norm" in result.message
    assert result.trace.gradient_norm[-1] <= 1e-2 * result.value < result.trace.gradient_norm[-2]


def test_bad_starts_are_named(At):
    objective = FewColumns(At, np.ones(3), False)
    with pytest.raises(ValueError, match="matrix of 3 columns"):
        objective.maximise(np.eye(12))
    with pytest.raises(ValueError, match="order 5"):
        objective.maximise(np.eye(5)[:, :3])


@pytest.mark.parametrize("counts", [[500, 3, 1], [2, 3, 1], [500, 400, 450], [0, 0, 0]])
def test_scores_by_few_features_are_the_scores(rng, counts):
    At, S = rng.standard_normal((9, 600)), np.zeros((3, 600))
    for row, count in zip(S, counts):
        row[rng.permutation(600)[:count]] = rng.standard_normal(count)
    for few in (False, True):
        with flop_counts.job(flop_counts.Flops()) as counter:
            E = scores(S, At, few=few)
        np.testing.assert_allclose(E, S @ At.T, atol=1e-12)
        assert counter.flops <= 2 * 3 * 600 * 9
