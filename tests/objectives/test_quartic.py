"""Fourth-order contrasts: rounds by groups, samples of many rows, and where runs end."""

import numpy as np
import pytest

from givens import minimize
from givens.numerics import flop_counts
from givens.objectives import Columns, Kurtosis, Orthomax
from givens.objectives.quartic import turned_block
from givens.rotations import random_orthogonal
from givens.schedules import Tournament


def sources(seed, rows, n, kind="laplace"):
    rng = np.random.default_rng(seed)
    S = rng.laplace(size=(rows, n)) if kind == "laplace" else rng.uniform(-1, 1, size=(rows, n))
    S -= S.mean(axis=0)
    return np.linalg.svd(S, full_matrices=False)[0] * np.sqrt(rows) @ random_orthogonal(n, rng)


def criterion(Y, kappa):
    """From its definition, of the rows of Y."""
    return float(np.sum(Y**4) - kappa * np.sum(np.sum(Y**2, axis=1) ** 2))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("kappa", "sign", "active"), [(0.0, 1, 40), (0.01, 1, 40), (0.0, -1, 40), (0.01, 1, 7)]
)
def test_rounds_gain_what_they_say_and_turn_what_they_return(dtype, kappa, sign, active):
    before = np.ascontiguousarray(sources(0, 300, 40).T, dtype=dtype)
    Y = before.copy()
    with flop_counts.job(flop_counts.Flops()) as counter:
        Q, gain = turned_block(Y, active, kappa, sign)
    precision = 1e-12 if dtype == np.float64 else 1e-5
    assert np.abs(Y - Q.T @ before).max() < 100 * precision
    assert np.abs(Q.T @ Q - np.eye(40)).max() < 1e-13
    after = criterion(Y[:active].astype(float), kappa) - criterion(before[:active].astype(float), kappa)
    assert sign * after == pytest.approx(gain, rel=100 * precision)
    assert min(gain, counter.flops) > 0


@pytest.mark.parametrize("kind", ["laplace", "uniform"])
@pytest.mark.parametrize("scale", [1.0, 1e-60, 1e60])
def test_a_start_from_a_sample_leads_to_the_optimum_of_all(kind, scale):
    A = sources(5, 12_000, 6, kind)
    contrast = Kurtosis(1 if kind == "laplace" else -1)
    objective = Columns(A * scale, contrast)
    assert objective.coarse() is not None
    result = minimize(objective)
    by_pairs = minimize(Columns(A, contrast), np.eye(6), method="cyclic")
    plain = minimize(Columns(A, contrast), np.eye(6))
    assert result.converged
    assert result.trace.step[-1] < plain.trace.step[-1]
    assert result.value / scale**4 == pytest.approx(by_pairs.value, rel=1e-10)


def test_a_sample_is_some_of_the_rows():
    A = sources(6, 40_000, 16)
    whole = Columns(A, "logcosh")
    sample = whole.coarse()
    assert 96 * 16 <= len(sample.rows.A) < 192 * 16
    assert sample.coarse() is None
    look, full = sample.look(sample.state(np.eye(16))), whole.look(whole.state(np.eye(16)))
    share = len(sample.rows.A) / len(A)
    assert look.value / share == pytest.approx(full.value, rel=0.02)
    assert np.abs(look.slopes / share - full.slopes).max() < 0.1 * np.abs(full.curvatures).max()


def patterns(rows, columns, seed):
    """Loadings of bumps on a line and noise, rotated at random."""
    rng = np.random.default_rng(seed)
    grid = np.linspace(0, 1, rows)[:, None]
    bumps = np.exp(-((grid - rng.uniform(0, 1, columns)) ** 2) / 0.003) + 0.05 * rng.standard_normal(
        (rows, columns)
    )
    return bumps @ random_orthogonal(columns, rng)


def test_orthomax_begins_with_sweeps_over_a_small_sample():
    sample = Columns(patterns(6000, 12, 1), "varimax").coarse()
    assert 1024 <= len(sample.rows.A) < 2048
    assert [type(phase) for phase in sample.method] == [Tournament]
    assert sample.coarse() is None
    # Sources of ICA are far from the start, and descend on samples as other contrasts do.
    assert Columns(sources(6, 60_000, 8), "kurtosis").coarse().method[0] == "descent"


@pytest.mark.parametrize("contrast", [Orthomax(0.0), Orthomax(1.0), Orthomax(6.0)])
@pytest.mark.parametrize("kind", ["plain", "tiny", "huge", "single", "deficient"])
def test_sweeps_over_a_sample_lead_to_a_maximum_of_all_rows(contrast, kind):
    A = patterns(6000, 12, 2)
    if kind == "deficient":
        A[:, -3:] = A[:, :3] @ np.ones((3, 3))
    scale = {"tiny": 1e-150, "huge": 1e150}.get(kind, 1.0)
    data = A.astype(np.float32) if kind == "single" else A * scale
    result = minimize(Columns(data, contrast), tol=1e-6)
    start = minimize(Columns(A, contrast), np.eye(12), method="sweeps", max_iter=0)
    at = minimize(Columns(A, contrast), result.U, method="sweeps", max_iter=1)
    assert result.converged, result.message
    assert "samples" in [phase.name for phase in result.phases]
    assert np.abs(result.U.T @ result.U - np.eye(12)).max() < 1e-13
    # Of all rows, with no sample: the value lies above that of the start, and a sweep adds nothing to it.
    size = float(np.sum(A**4))
    assert at.trace.value[0] > start.value
    assert at.value - at.trace.value[0] <= (1e-6 if kind == "single" else 1e-10) * size


def test_descent_ends_where_pairs_do():
    A = sources(7, 3000, 16)
    start = minimize(Columns(A[::3], "kurtosis")).U
    result = minimize(Columns(A, "kurtosis"), start)
    pairs = minimize(Columns(A, "kurtosis"), start, method="cyclic")
    assert result.value == pytest.approx(pairs.value, rel=1e-12)
    assert result.gradient_norm < 1e-7 * result.value
    assert result.flops < pairs.flops
