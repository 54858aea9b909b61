"""Few components: rotations against a complement that is chosen anew."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from givens import minimize
from givens.metrics import total_adjusted
from givens.numerics.centred_sparse import CentredSparse
from givens.numerics.flop_counts import Flops, job
from givens.numerics.tiles import scores
from givens.objectives import SparseColumns
from givens.sparse_pca.cardinality import rotated
from givens.sparse_pca.loadings import shrink
from givens.sparse_pca.truncated_power import cut
from paper.baselines import gpower


@pytest.fixture(params=[0, 1])
def At(request):
    rng = np.random.default_rng(request.param)
    return np.ascontiguousarray(rng.standard_t(4, size=(12, 150)) * np.exp(rng.standard_normal(150)))


def maximise(At, V, gamma, penalty="l1", **options):
    return minimize(SparseColumns(At.T, gamma, penalty, active=V.shape[1]), V, **options)


def start(At, m):
    return np.linalg.svd(At, full_matrices=False)[0][:, :m]


@pytest.mark.parametrize("l0", [False, True])
def test_it_converges_to_a_point_without_gradient(At, l0):
    level = 0.3 * np.linalg.norm(At, axis=0).max()
    gamma, penalty = (level**2, "l0") if l0 else (level, "l1")
    result = maximise(At, start(At, 3), gamma, penalty, tol=1e-7, max_iter=3000)
    assert result.converged
    Y = result.U.T @ At
    np.testing.assert_allclose(result.U.T @ result.U, np.eye(3), atol=1e-6)
    assert np.all(np.diff(result.trace.value) >= -1e-9 * result.value)
    S = shrink(Y, gamma, penalty)
    E = At @ S.T
    residual = E - result.U @ (result.U.T @ E)
    inside = S @ Y.T - Y @ S.T
    assert np.linalg.norm(residual) < 1e-4 * np.linalg.norm(E)
    assert np.linalg.norm(inside) < 1e-4 * np.linalg.norm(E)
    expected = np.sqrt(8 * np.sum(residual**2) + 4 * np.sum(inside**2))
    assert result.gradient_norm == pytest.approx(expected, rel=1e-3, abs=1e-8)


def test_it_reaches_what_rotations_of_the_whole_completed_matrix_reach(At):
    level = 0.2 * np.linalg.norm(At, axis=0).max()
    V = start(At, 3)
    whole = maximise(At, V, level, tol=1e-6, max_iter=500, method="sweeps")
    few = maximise(At, V, level, tol=1e-6, max_iter=2000)
    # Two ways up the same hills may end on different ones; neither may be far below.
    assert few.value >= 0.97 * whole.value


def test_it_is_not_below_block_gpower(At):
    level = 0.2 * np.linalg.norm(At, axis=0).max()
    rival = gpower(At.T, 3, level, start=start(At, 3), tol=1e-9, max_iter=5000)
    assert maximise(At, start(At, 3), level, tol=3e-5, max_iter=2000).value >= 0.99 * rival.value


@pytest.mark.parametrize("shared", [False, True])
def test_rotations_that_track_counts_stay_in_the_span_and_lose_nothing(At, shared):
    counts = np.array([7, 4, 1])
    axes = start(At, 12).T @ At
    Y, sweeps, rotations = rotated(axes, counts, 200, shared)
    assert 0 < rotations <= sweeps < 200
    V = np.linalg.lstsq(axes.T, Y.T, rcond=None)[0]
    np.testing.assert_allclose(V.T @ V, np.eye(3), atol=1e-9)

    def counted(Y):
        return total_adjusted(cut(Y, counts).scores(At))

    assert shared or counted(Y) >= counted(axes[:3]) * (1 - 1e-12)


FORMS = [
    sparse.csc_array,
    lambda A: CentredSparse(sparse.csc_array(A), np.zeros(12), np.zeros(150)),
]


@pytest.mark.parametrize("form", FORMS)
def test_products_are_all_that_is_asked_of_the_data(At, form):
    At = np.where(np.abs(At) > 0.5, At, 0.0)
    gamma = 0.2 * np.linalg.norm(At, axis=0).max()
    dense = maximise(At, start(At, 3), gamma, tol=1e-6)
    given = minimize(SparseColumns(form(At).T, gamma, active=3), start(At, 3), tol=1e-6)
    own = minimize(SparseColumns(form(At).T, gamma, active=3), tol=1e-6)
    assert [given.value, own.value] == pytest.approx([dense.value] * 2, rel=1e-8)


@pytest.mark.parametrize("counts", [[500, 3, 1], [2, 3, 1], [500, 400, 450], [0, 0, 0]])
def test_scores_by_few_features_are_the_scores(rng, counts):
    At, S = rng.standard_normal((9, 600)), np.zeros((3, 600))
    for row, count in zip(S, counts):
        row[rng.permutation(600)[:count]] = rng.standard_normal(count)
    for few in (False, True):
        with job(Flops()) as counter:
            E = scores(S, At, few=few)
        np.testing.assert_allclose(E, S @ At.T, atol=1e-6)
        assert counter.flops <= 2 * 3 * 600 * 9
