"""The certificate: no rotation of two columns, by any angle, gains more than it says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from givens import check_objective, minimize, rotations
from givens.numerics import flop_counts, parallel
from givens.objectives import Columns, Function, JointDiagonal, Kurtosis, SparseColumns
from givens.objectives.base import NotFinite, PairSolutions
from tests.cases import CASES, value_at
from tests.runs import run


@pytest.mark.parametrize(
    "case", ["cubic", "quartic", "joint", "varimax", "kurtosis", "light-tailed, 1 of 6 columns"]
)
def test_no_angle_of_any_pair_gains_more_than_the_certificate_says(case):
    objective = CASES[case](5)
    result = minimize(objective, random_state=0, method="descent", certify=True)
    assert result.converged
    certificate = result.certificate
    assert certificate.share == 1.0
    known = objective.look(objective.state(result.U)).gains is not None
    assert ("certified by the gains of all pairs" if known else "certified by one sweep of ") in result.method
    assert 0 <= certificate.gain <= 1e-11 * objective.scale * abs(objective.factor)
    here = value_at(objective, objective.state(result.U))
    for i in range(objective.active):
        for j in range(i + 1, objective.n):
            for theta in np.linspace(-np.pi, np.pi, 60):
                there = value_at(objective, objective.state(rotations.rotate(result.U, i, j, theta)))
                assert abs(objective.factor) * (
                    here - there
                ) <= certificate.gain + 1e-12 * objective.scale * abs(objective.factor)


def test_a_local_minimum_that_a_pair_can_leave_is_left():
    """Σ u³ over the first column has a local minimum at (1, 1, 1)/√3 and global ones at −e."""

    def f(U):
        return float(np.sum(U[:, 0] ** 3))

    start = rotations.random_orthogonal(3, 0, determinant=1)
    start[:, 0] = 1 / np.sqrt(3)
    start = np.linalg.qr(start)[0]
    start *= np.sign(start[0, 0])

    def jac(U):
        return np.column_stack((3 * U[:, 0] ** 2, np.zeros((3, 2))))

    plain = minimize(f, start @ rotations.rotation(3, 0, 1, 0.1), jac=jac)
    assert plain.value == pytest.approx(3**-0.5)
    assert plain.certificate is None
    certified = minimize(f, start @ rotations.rotation(3, 0, 1, 0.1), jac=jac, certify=True)
    assert certified.value == pytest.approx(-1)
    assert certified.certificate.gain < 1e-10
    assert "certificate" in certified.trace.phase
    assert "rotations that the search of all pairs found, 1 time" in certified.method
    assert np.all(np.diff(certified.trace.value) <= 1e-14)
    # A plain function without slopes is certified unless told otherwise.
    assert minimize(f, start).value == pytest.approx(-1)
    assert minimize(f, start @ rotations.rotation(3, 0, 1, 0.1), certify=False).value == pytest.approx(
        3**-0.5
    )


@pytest.mark.parametrize("seed", [31, 33, 92])
def test_of_a_function_with_kinks_the_certificate_carries_its_doubt(seed):
    """For these seeds a grid of one degree gains up to 2e-4 of the scale where the certificate says 0."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    A = rng.standard_normal((int(rng.integers(3, 12)), n))

    def f(U):
        return float(np.abs(A @ U).sum())

    result = minimize(f, n=n, random_state=seed, certify=True)
    assert "harmonics, so their minima may not be global" in result.message
    certificate = result.certificate
    grid = [
        f(rotations.rotate(result.U, i, j, theta))
        for i, j in itertools.combinations(range(n), 2)
        for theta in np.radians(np.arange(360))
    ]
    assert result.value - min(grid) <= certificate.gain + certificate.error
    assert 1e-4 < certificate.error / result.scale < 1e-2


def test_the_error_of_a_certificate_is_zero_rounding_or_unknown():
    M = np.random.default_rng(0).standard_normal((3, 3))
    for degree, most in ((1, 0.0), (None, 1e-10)):
        f = Function(lambda U: float(np.sum(M * U)), 3, degree)
        result = minimize(f, random_state=0, certify=True)
        assert 0.0 <= result.certificate.error <= most * result.scale
    large = minimize(lambda U: 1e200 * float(np.abs(M @ U).sum()), n=3, random_state=0, certify=True)
    assert large.certificate.error > 1e195
    A = np.random.default_rng(0).laplace(size=(50, 3))
    assert minimize(Columns(A, "quartimax"), random_state=0, certify=True).certificate.error == 0.0
    assert np.isnan(minimize(Columns(A, "logcosh"), random_state=0, certify=True).certificate.error)


def test_a_share_of_the_pairs_is_stated():
    result = minimize(CASES["quartic"](0), random_state=0, certify=0.4)
    assert result.certificate.pairs == 6
    assert result.certificate.share == pytest.approx(0.4)
    assert result.method.endswith("of exact searches of 40% of the pairs")
    with pytest.raises(ValueError, match="certify must be True, False or a share between 0 and 1, got 2"):
        minimize(CASES["quartic"](0), certify=2)


class Searched(Columns):
    """Columns that do not tell the gains of all pairs, so that certificates search them."""

    def look(self, state, Q=None, slopes=True):
        return super().look(state, Q, slopes)._replace(gains=None)


class Unsearchable(Columns):
    def solve(self, state, blocks, min_gain=0.0):
        raise AssertionError("there is nothing to search")


@pytest.mark.parametrize(
    ("contrast", "kind"),
    [
        *itertools.product(["quartimax", "varimax", "kurtosis", Kurtosis(-1)], ["plain", "single"]),
        ("kurtosis", "weights"),
        (Kurtosis(-1), "weights"),
    ],
)
def test_gains_of_all_pairs_are_those_of_a_fine_grid(contrast, kind, rng):
    A = rng.standard_t(5, size=(80, 5)).astype(np.float32 if kind == "single" else np.float64)
    weights = rng.uniform(0.5, 2.0, 80) if kind == "weights" else None
    objective = Columns(A, contrast, weights=weights)
    U = rotations.random_orthogonal(5, 3, determinant=1)
    gains = objective.look(objective.state(U)).gains()
    here = value_at(objective, objective.state(U))
    rounding = 1e-6 if kind == "single" else 1e-12
    for i in range(5):
        for j in range(i + 1, 5):
            there = [
                value_at(objective, objective.state(rotations.rotate(U, i, j, theta)))
                for theta in np.linspace(-np.pi / 4, np.pi / 4, 361)
            ]
            # The nearest angle of the grid is at most 0.0022 away from the best one.
            best = here - min(there)
            assert -rounding * objective.scale <= gains[i, j] - best <= 1e-4 * objective.scale


@pytest.mark.parametrize("contrast", ["quartimax", "varimax", "kurtosis"])
def test_certificates_without_searches_equal_those_of_searches(contrast, rng):
    A = rng.standard_t(5, size=(300, 6))
    start = rotations.random_orthogonal(6, 0, determinant=1)
    runs = [
        minimize(kind(A, contrast), start, method="descent", certify=True, threads=threads)
        for kind, threads in ((Unsearchable, 1), (Unsearchable, 2), (Searched, 1))
    ]
    first, second, searched = runs
    assert first.certificate == second.certificate
    assert np.array_equal(first.U, second.U)
    assert np.array_equal(first.U, searched.U)
    scale = Columns(A, contrast).scale
    assert first.certificate.pairs == searched.certificate.pairs == 15
    assert abs(first.certificate.gain - searched.certificate.gain) <= 1e-20 * scale
    assert first.method.endswith("certified by the gains of all pairs")
    assert searched.method.endswith("certified by one sweep of exact searches")
    some = minimize(Unsearchable(A, contrast), first.U, method="descent", certify=0.4)
    assert some.certificate.pairs == 6
    assert some.certificate.gain <= first.certificate.gain + 1e-20 * scale


def test_pairs_that_gain_are_rotated_whether_they_were_searched_or_not(rng):
    """A loose tolerance ends descent early, and the rotations of certificates go on."""
    A = rng.standard_t(5, size=(300, 6))
    start = rotations.random_orthogonal(6, 0, determinant=1)
    known, searched = (
        run(kind(A, "varimax"), start, method="descent", gradient_tol=0.1, certify=True)
        for kind in (Columns, Searched)
    )
    for result in known, searched:
        assert result.trace.phase.count("certificate") > 1
        assert np.all(np.diff(result.trace.value) >= 0)
        assert result.certificate.gain <= 1e-11 * Columns(A, "varimax").scale
    assert known.value == pytest.approx(searched.value, rel=1e-10)
    matrices = rng.standard_normal((4, 6, 6))
    result = run(JointDiagonal(matrices), start, method="descent", gradient_tol=0.1, certify=True)
    assert "certificate" in result.trace.phase
    assert result.certificate.gain <= 1e-11 * JointDiagonal(matrices).scale * JointDiagonal(matrices).factor


def test_columns_that_are_inactive_are_searched(rng):
    objective = Columns(rng.standard_t(5, size=(80, 5)), "varimax", active=2)
    assert objective.look(objective.state(np.eye(5))).gains is None
    result = minimize(objective, certify=True)
    assert result.certificate.pairs == 7
    assert result.certificate.gain <= 1e-11 * objective.scale


def test_wrong_gains_are_found_by_the_check(rng):
    class Wrong(Columns):
        def look(self, state, Q=None, slopes=True):
            look = super().look(state, Q, slopes)
            return look._replace(gains=lambda: 0.99 * look.gains())

    report = check_objective(Wrong(rng.standard_t(5, size=(80, 5)), "quartimax"), grid=180)
    assert [finding.name for finding in report.findings if not finding.passed] == ["gains of all pairs"]


def test_many_pairs_are_solved_alike_with_threads_and_without(rng):
    objective = SparseColumns(rng.standard_normal((80, 12)), 1.5)
    state = objective.state(rotations.random_orthogonal(12, rng))
    pairs = np.array(list(itertools.combinations(range(12), 2)))
    with flop_counts.job(flop_counts.Flops()) as alone:
        expected = objective.solve(state, pairs)
    with parallel.pool(2), flop_counts.job(flop_counts.Flops()) as together:
        found = objective.solve(state, pairs)
    np.testing.assert_array_equal(found.gains, expected.gains)
    np.testing.assert_array_equal(found.rotations, expected.rotations)
    assert together.flops == alone.flops


@pytest.mark.parametrize(("claim", "told"), [(1e-3, True), (1e-12, False)])
def test_a_gain_that_does_not_come_true_is_undone_and_told(claim, told):
    class Boastful(Columns):
        def solve(self, state, blocks, min_gain=0.0):
            turned = np.broadcast_to(rotations.turn(0.3), (len(blocks), 2, 2)).copy()
            return PairSolutions(turned, np.full(len(blocks), claim * self.scale))

    A = np.random.default_rng(5).laplace(size=(60, 4))
    right = minimize(Columns(A, "logcosh"), method="descent")
    result = minimize(Boastful(A, "logcosh"), method="descent", certify=True)
    assert np.abs(result.U - right.U).max() < 1e-12
    assert ("was not realised" in result.message) == told


def test_widened_sweeps_begin_anew_after_a_certificate_that_gained():
    """Or they would end at once, by the small gain of the sweep before it, and certificates would do all the work."""
    A = np.random.default_rng(5).standard_t(3, size=(30, 12))
    result = minimize(
        SparseColumns(A, 4.0, "l0", active=1), certify=True, method="widened sweeps", random_state=5
    )
    phases = result.trace.phase
    assert phases.count("certificate") == 1
    assert phases[phases.index("certificate") + 1 :].count("widened sweeps") > 10
    assert result.converged


def certified(**options):
    A = np.random.default_rng(3).standard_t(5, size=(300, 6))
    start = rotations.random_orthogonal(6, 0, determinant=1)
    return run(Columns(A, "varimax"), start, method="descent", gradient_tol=0.1, certify=True, **options)


def test_the_step_of_a_certificate_is_seen_by_the_callback_which_may_stop_there():
    steps = []
    whole = certified(callback=lambda snapshot: steps.append((snapshot.step, snapshot.phase)) and None)
    assert [phase for _, phase in steps] == whole.trace.phase[1:]
    first = whole.trace.phase.index("certificate")
    stopped = certified(callback=lambda snapshot: snapshot.phase == "certificate")
    assert stopped.trace.step[-1] == first
    assert stopped.trace.phase[-1] == "certificate"
    assert stopped.message == "stopped by the callback"
    assert certified(max_iter=first).trace.step[-1] == first


def test_a_run_that_was_stopped_after_the_step_of_a_certificate_goes_on_in_the_same_bits(tmp_path):
    def saved(name, **options):
        A = np.random.default_rng(5).standard_t(3, size=(30, 12))
        objective = SparseColumns(A, 4.0, "l0", active=1)
        return minimize(
            objective,
            certify=True,
            method="widened sweeps",
            random_state=5,
            checkpoint=tmp_path / name,
            **options,
        )

    whole = saved("whole.npz")
    cut = saved("cut.npz", callback=lambda snapshot: snapshot.phase == "certificate")
    assert cut.trace.phase[-1] == "certificate"
    again = saved("cut.npz")
    assert again.trace.value == whole.trace.value
    np.testing.assert_array_equal(again.U, whole.U)


def test_a_gain_that_is_not_finite_leaves_the_value_of_the_matrix_that_is_returned():
    """What comes after a step that was made belongs to the next one."""

    class Fragile(Columns):
        def look(self, state, Q=None, slopes=True):
            def gains():
                raise NotFinite("the gains are not finite")

            return super().look(state, Q, slopes)._replace(gains=gains)

    A = np.random.default_rng(3).standard_t(5, size=(300, 6))
    result = minimize(Fragile(A, "varimax"), method="sweeps", random_state=0)
    assert "the gains are not finite" in result.message
    objective = Columns(A, "varimax")
    assert objective.factor * value_at(objective, objective.state(result.U)) == pytest.approx(
        result.value, rel=1e-14
    )
    assert result.steps == len(result.trace.value) - 1
    assert f"stopped in step {result.steps + 1}," in result.message
