"""What holds for every objective: its parts agree, and runs end well, the same whatever should not matter."""

from __future__ import annotations

import numpy as np
import pytest

from givens import check_objective, minimize, rotations
from givens.objectives import Columns, Contrast, JointDiagonal, Kurtosis, Look, Objective, PairSolutions
from givens.schedules import Tournament
from tests.cases import CASES, FEW, N, value_at

EVERY = pytest.mark.parametrize("case", CASES)
EVERY_FEW = pytest.mark.parametrize("case", FEW)


@pytest.mark.parametrize(("protocol", "most"), [((Objective, Look, PairSolutions), 21), ((Contrast,), 8)])
def test_a_protocol_has_few_names(protocol, most):
    names = [{*vars(part), *part.__annotations__} - {*vars(tuple), "count", "index"} for part in protocol]
    assert sum(not name.startswith("_") for part in names for name in part) <= most


@EVERY
def test_the_parts_of_every_objective_agree(case):
    report = check_objective(CASES[case](1), pairs=6)
    assert report, str(report)


@EVERY
def test_every_run_ends_at_a_point_without_gradient_and_orthogonal(case):
    objective = CASES[case](2)
    result = minimize(objective, random_state=0, max_iter=300)
    assert result.converged, result.message
    assert result.gradient_norm <= 3e-6 * objective.scale * abs(objective.factor)
    assert result.orthogonality <= 1e-13
    assert result.value == pytest.approx(
        objective.factor * value_at(objective, objective.state(result.U)), rel=1e-12, abs=1e-20
    )
    values = np.sign(objective.factor) * np.array(result.trace.value)
    assert np.all(np.diff(values) <= 1e-12 * objective.scale * abs(objective.factor))
    assert result.trace.step == list(range(result.steps + 1))


@EVERY_FEW
def test_every_run_of_few_components_ends_where_all_pairs_have_no_slope(case):
    few = FEW[case](2)
    result = minimize(few, np.eye(N)[:, : few.active], tol=1e-9, max_iter=3000)
    assert result.converged, result.message
    assert result.U.shape == (N, few.active)
    assert result.gradient_norm <= 3e-6 * result.value
    assert result.orthogonality <= 1e-13
    assert np.all(np.diff(result.trace.value) >= -1e-12 * result.value)
    # With all columns, by rotations of pairs: nothing is left to gain.
    U = rotations.complete(result.U)
    pairs = np.array([(i, j) for i in range(few.active) for j in range(i + 1, N)])
    state = few.state(U)
    assert result.value == pytest.approx(-value_at(few, state), rel=1e-12)
    slopes = [
        (
            value_at(few, few.state(rotations.rotate(U, i, j, 1e-6)))
            - value_at(few, few.state(rotations.rotate(U, i, j, -1e-6)))
        )
        / 2e-6
        for i, j in pairs
    ]
    assert np.abs(slopes).max() <= 1e-5 * result.value


@EVERY_FEW
def test_one_thread_and_two_give_the_same_bits_of_few_components(case):
    start = np.eye(N)[:, : FEW[case](3).active]
    one, two = (minimize(FEW[case](3), start, threads=threads, max_iter=12) for threads in (1, 2))
    assert np.array_equal(one.U, two.U)
    assert one.trace.value == two.trace.value
    assert one.trace.flops == two.trace.flops


@EVERY
@pytest.mark.parametrize("method", [None, *(Tournament(block=block) for block in (2, 4, 64))])
def test_one_thread_and_two_give_the_same_bits(case, method):
    def run(threads):
        return minimize(CASES[case](3), method=method, threads=threads, max_iter=5, random_state=1)

    one, two = run(1), run(2)
    assert np.array_equal(one.U, two.U)
    assert one.trace.value == two.trace.value
    assert one.trace.flops == two.trace.flops
    np.testing.assert_array_equal(one.trace.gradient_norm, two.trace.gradient_norm)


def test_the_same_bits_where_the_data_fill_many_tiles(rng):
    X = rng.laplace(size=(30_000, 12))
    runs = [minimize(Columns(X, "kurtosis"), threads=threads) for threads in (1, 2, 3)]
    assert np.array_equal(runs[0].U, runs[1].U)
    assert np.array_equal(runs[0].U, runs[2].U)


@pytest.mark.parametrize("case", ["varimax", "kurtosis", "joint"])
def test_the_optimum_does_not_depend_on_signs_and_order(case, rng):
    """Turned data, columns reversed and permuted: another way round, the same optimum (of a problem with one optimum)."""
    S = rng.laplace(size=(4000, 4))
    if case == "joint":
        basis = rotations.random_orthogonal(4, rng)
        stack = np.array([basis @ np.diag(rng.standard_normal(4)) @ basis.T for _ in range(4)])

        def problem(P):
            return JointDiagonal(P.T @ stack @ P)
    else:

        def problem(P):
            return Columns(S @ P, case)

    P = np.eye(4)[rng.permutation(4)] * rng.choice([-1, 1], 4)
    plain, changed = minimize(problem(np.eye(4))), minimize(problem(P))
    assert changed.value == pytest.approx(plain.value, rel=1e-9, abs=1e-18)
    overlap = np.abs((P @ changed.U).T @ plain.U)
    assert np.abs(np.sort(overlap, axis=1) - np.eye(4)[[3, 3, 3, 3]]).max() < 1e-5


@pytest.mark.parametrize("case", ["varimax", "kurtosis", "joint", "one matrix"])
@pytest.mark.parametrize("exponent", [-150, -20, 20, 150])
def test_scaled_data_give_the_same_rotation(case, exponent):
    def run(factor):
        rng = np.random.default_rng(5)
        if case in ("joint", "one matrix"):
            A = rng.standard_normal((3, 5, 5)) if case == "joint" else rng.standard_normal((5, 5))
            return minimize(JointDiagonal(A * factor))
        return minimize(Columns(rng.standard_t(4, size=(50, 5)) * factor, case))

    # A power of two changes no digit, so nothing at all may change.
    plain, scaled = run(1.0), run(2.0 ** round(exponent * np.log2(10)))
    assert np.array_equal(plain.U, scaled.U)
    assert plain.sweeps == scaled.sweeps


@pytest.mark.parametrize("contrast", ["varimax", "kurtosis", "logcosh", Kurtosis(-1)])
@pytest.mark.parametrize("schedule", [None, "tournament"])
def test_single_precision_data(rng, contrast, schedule):
    A = rng.standard_t(4, size=(60, 5))
    double = minimize(Columns(A, contrast), method=schedule)
    single = minimize(Columns(A.astype(np.float32), contrast), method=schedule)
    assert single.converged
    assert single.U.dtype == np.float64
    assert single.orthogonality < 1e-13
    assert single.value == pytest.approx(double.value, rel=1e-5)
