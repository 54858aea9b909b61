"""The loop: what holds for every objective and every schedule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from givens import check_objective, minimize, rotations
from givens.objectives import Columns, Function, JointDiagonal, Kurtosis, Objective, Solved
from givens.schedules import SCHEDULES, ByGradient, Cyclic, Random, Shuffled, Tournament
from tests.cases import CASES, N

EVERY = pytest.mark.parametrize("case", CASES)


def schedules(objective: Objective) -> list:
    kinds = [kind() for name, kind in SCHEDULES.items() if not (objective.dear and name == "gradient")]
    return [*kinds, Tournament(block=4), Shuffled(block=3), Cyclic(block=5), Random(block=64)]


class Watched(Objective):
    """An objective that looks at the value, made anew from U, before and after every single application."""

    def __init__(self, inner: Objective) -> None:
        self.inner = inner
        self.n, self.active, self.separable, self.dear = inner.n, inner.active, inner.separable, inner.dear
        self.rises: list[float] = []

    def prepare(self, start):
        self.inner.prepare(start)
        self.scale, self.floor = self.inner.scale, self.inner.floor

    def state(self, U):
        self.U = U.copy()
        value = self.inner.value(self.inner.state(U))
        if hasattr(self, "last"):
            self.rises.append(value - self.last)
        self.last = value
        return self.inner.state(U)

    def value(self, state):
        return self.inner.value(state)

    def solve(self, state, blocks):
        return self.inner.solve(state, blocks)

    def apply(self, state, blocks, Q):
        flops = self.inner.apply(state, blocks, Q)
        for block, q in zip(blocks, Q):
            self.U[:, block] = self.U[:, block] @ q
            value = self.inner.value(self.inner.state(self.U))
            self.rises.append(value - self.last)
            self.last = value
        return flops

    def gradient(self, state):
        return self.inner.gradient(state)


@EVERY
@settings(max_examples=6)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_theorem_1_what_is_minimised_never_rises(case, seed, data):
    objective = CASES[case](seed)
    schedule = data.draw(st.sampled_from(schedules(objective)))
    watched = Watched(objective)
    minimize(watched, schedule=schedule, max_sweeps=4, repair_every=2, random_state=seed)
    assert max(watched.rises) <= 1e-12 * watched.scale


@EVERY
def test_the_parts_of_every_objective_agree(case):
    report = check_objective(CASES[case](1), pairs=6)
    assert report, str(report)


@EVERY
def test_every_run_ends_at_a_point_without_gradient_and_orthogonal(case):
    objective = CASES[case](2)
    result = minimize(objective, random_state=0, max_sweeps=300)
    assert result.converged, result.message
    assert result.gradient_norm <= 3e-6 * objective.scale * objective.unit
    assert result.orthogonality <= 1e-13
    assert result.determinant == rotations.determinant(result.U)
    assert result.value == pytest.approx(
        objective.sense * objective.unit * objective.value(objective.state(result.U)), rel=1e-12, abs=1e-20
    )
    values = objective.sense * np.array(result.trace.value)
    assert np.all(np.diff(values) <= 1e-12 * objective.scale * objective.unit)
    assert result.trace.sweep == list(range(result.sweeps + 1))


@EVERY
@pytest.mark.parametrize("block", [2, 4, 64])
def test_one_thread_and_two_give_the_same_bits(case, block):
    def run(threads):
        objective = CASES[case](3)
        return minimize(
            objective, schedule=Tournament(block=block), threads=threads, max_sweeps=5, random_state=1
        )

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
    double = minimize(Columns(A, contrast), schedule=schedule)
    single = minimize(Columns(A.astype(np.float32), contrast), schedule=schedule)
    assert single.converged
    assert single.U.dtype == np.float64
    assert single.orthogonality < 1e-13
    assert single.value == pytest.approx(double.value, rel=1e-5)


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
    for run in range(runs):
        U, draw = U0.copy(), np.random.default_rng(run)
        f = Function(lambda U: -float(np.sum(U * M)), d, degree=1, gradient=lambda U: -M)
        f.prepare(U0)
        for t in range(T + 1):
            slopes = f.gradient(f.state(U))
            norms[run, t] = np.sum(slopes**2)  # both triangles: 2 Σ over pairs
            i, j = sorted(draw.choice(d, 2, replace=False))
            Q = f.solve(f.state(U), np.array([[i, j]])).rotations[0]
            U[:, [i, j]] = U[:, [i, j]] @ Q
    for t in (5, 20, T):
        bound = 2 * L * d * (d - 1) * (-np.sum(U0 * M) - minimum) / (t + 1)
        assert norms.mean(axis=0)[: t + 1].min() <= bound


class Spinning(Objective):
    """Turns every pair by a random angle and claims a gain: rotations without end."""

    def __init__(self, n: int) -> None:
        self.n = self.active = n
        self.rng = np.random.default_rng(0)

    def state(self, U):
        return None

    def value(self, state):
        return 0.0

    def solve(self, state, blocks):
        angles = self.rng.uniform(-np.pi, np.pi, len(blocks))
        return Solved(rotations.turn(angles), np.ones(len(blocks)), len(blocks), 0.0)

    def apply(self, state, blocks, Q):
        return 0.0

    def gradient(self, state):
        return np.ones((self.n, self.n))


@pytest.mark.parametrize(("repair_every", "allowed"), [(None, 1e-12), (10, 1e-14)])
def test_a_million_rotations_stay_orthogonal(repair_every, allowed):
    result = minimize(
        Spinning(100), schedule="tournament", max_sweeps=210, threads=1, repair_every=repair_every
    )
    assert result.rotations > 1_000_000
    assert result.orthogonality <= allowed * 100


@pytest.mark.parametrize("sign", [1, -1])
def test_procrustes_in_either_component(sign):
    M = np.random.default_rng(7).standard_normal((10, 10))
    u, s, vt = np.linalg.svd(M)
    s[-1] *= sign * round(np.linalg.det(u @ vt))
    best = u @ np.diag(np.sign(s)) @ vt
    f = Function(lambda U: float(np.sum((U - M) ** 2)), 10, degree=2)
    result = minimize(f, determinant=sign, random_state=0, max_sweeps=400)
    assert result.determinant == sign
    assert np.abs(result.U - best).max() < 1e-8 * 10
    assert result.value == pytest.approx(np.sum((best - M) ** 2), rel=1e-8)


def test_both_components_keeps_the_better_one():
    M = np.random.default_rng(8).standard_normal((4, 4))

    def f(U):
        return -float(np.sum(U * M))

    result = minimize(f, n=4, determinant="both", random_state=0)
    assert result.value == pytest.approx(-np.linalg.svd(M)[1].sum(), rel=1e-10)
    other = minimize(f, n=4, determinant=-result.determinant, random_state=0)
    assert other.value > result.value
    assert f"reached {other.value:.12g}" in result.message


def test_a_start_in_the_other_component_has_its_last_column_reversed():
    start = np.diag([1.0, 1.0, -1.0])
    assert minimize(lambda U: 0.0, start).determinant == -1
    assert np.array_equal(minimize(lambda U: 0.0, start, determinant=1).U, np.eye(3))


def test_one_matrix_of_order_200_has_the_eigenvalues_of_scipy(rng):
    A = rng.standard_normal((200, 200))
    A += A.T
    result = minimize(JointDiagonal(A))
    found = np.sort(np.diag(result.U.T @ A @ result.U))
    assert np.abs(found - np.linalg.eigvalsh(A)).max() <= 1e-10 * np.linalg.norm(A, 2)


def test_a_shared_basis_is_recovered(rng):
    basis = rotations.random_orthogonal(50, rng)
    stack = np.array([basis @ np.diag(rng.standard_normal(50)) @ basis.T for _ in range(20)])
    result = minimize(JointDiagonal(stack))
    overlap = np.abs(basis.T @ result.U)
    assert np.abs(np.sort(overlap, axis=0)[-1] - 1).max() < 1e-8
    assert np.abs(np.sort(overlap, axis=0)[:-1]).max() < 1e-8


def test_a_callback_sees_every_sweep_and_can_stop():
    seen = []

    def callback(snapshot):
        seen.append(snapshot)
        return len(seen) == 3

    objective = CASES["smooth"](0)
    result = minimize(objective, random_state=0, callback=callback)
    assert [s.sweep for s in seen] == [1, 2, 3]
    assert result.sweeps == 3
    assert not result.converged
    assert result.message.startswith("stopped by the callback")
    assert np.array_equal(seen[-1].U, result.U)
    with pytest.raises(ValueError, match="read-only"):
        seen[0].U[0, 0] = 1


def test_gradient_tolerance_stops_a_run():
    objective = CASES["quartic"](0)
    result = minimize(objective, random_state=0, gradient_tol=1e-3)
    assert result.message.startswith("converged: the gradient norm")
    assert result.gradient_norm <= 1e-3 * objective.scale
    assert all(norm > 1e-3 * objective.scale for norm in result.trace.gradient_norm[:-1])


def test_too_few_sweeps_are_reported():
    result = minimize(CASES["smooth"](0), max_sweeps=1, random_state=0)
    assert not result.converged
    assert result.message == "not converged: max_sweeps = 1 reached"
    assert minimize(CASES["smooth"](0), max_sweeps=0, random_state=0).sweeps == 0


def test_order_1_has_nothing_to_rotate():
    for result in (minimize(lambda U: float(U[0, 0]), n=1), minimize(Columns(np.ones((3, 1)), "varimax"))):
        assert result.converged
        assert result.U.tolist() == [[1.0]]
        assert result.gradient_norm == 0
    assert minimize(lambda U: float(U[0, 0]), n=1, determinant="both").U.tolist() == [[-1.0]]


def test_seeds_decide_and_generators_of_both_kinds_are_taken():
    runs = [minimize(CASES["smooth"](0), random_state=s, max_sweeps=2).U for s in (0, 0, 1)]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
    for generator in (np.random.default_rng, np.random.RandomState):
        pair = [minimize(CASES["smooth"](0), random_state=generator(4), max_sweeps=2).U for _ in range(2)]
        assert np.array_equal(*pair)


def test_a_saddle_is_left(rng):
    """At the start every slope vanishes, but no minimum is there: exact searches see beyond."""
    A = np.diag([3.0, 2.0, 1.0])
    f = Function(
        lambda U: float(np.sum(np.diag(U.T @ A @ U) * [1, 2, 3])),
        3,
        degree=2,
        gradient=lambda U: 2 * A @ U * [1, 2, 3],
    )
    start = np.eye(3)[[2, 1, 0]]  # the maximum
    for schedule in ("tournament", "gradient", ByGradient(delta=0.1), "random"):
        assert minimize(f, start, schedule=schedule, random_state=0).value == pytest.approx(3 + 4 + 3)


def test_the_trace_becomes_a_frame():
    frame = minimize(CASES["varimax"](0)).trace.to_pandas()
    assert list(frame.columns) == ["sweep", "seconds", "flops", "value", "gradient_norm"]
    assert frame.flops.is_monotonic_increasing
    assert frame.flops.iloc[-1] > 0


def test_the_progress_bar_is_a_real_one(capsys):
    minimize(CASES["smooth"](0), random_state=0, progress=True, max_sweeps=3)
    shown = capsys.readouterr().out
    assert "sweep 3 of at most 3" in shown
    assert "━" in shown
    assert minimize(CASES["smooth"](0), random_state=0, max_sweeps=3).sweeps == 3
    assert capsys.readouterr().out == ""


def test_a_start_in_single_precision_is_made_orthogonal(rng):
    start = rotations.random_orthogonal(N, rng).astype(np.float32)
    result = minimize(CASES["varimax"](0), start, max_sweeps=1)
    assert result.orthogonality < 1e-13


def wavy(U):
    """A function with many local minima."""
    return float(np.sum(np.cos(np.arange(16).reshape(4, 4) * U)))


@pytest.mark.parametrize("case", ["quartimax", "function"])
def test_several_starts_return_the_best_of_them(case):
    def problem():
        if case == "function":
            return Function(wavy, 4)
        return Columns(np.random.default_rng(12).standard_normal((25, 7)), "quartimax")

    sense = problem().sense
    single = minimize(problem(), random_state=1)
    several = minimize(problem(), n_starts=6, random_state=1)
    assert sense * several.value <= sense * single.value
    assert "; the best of 6 starts, " in several.message
    # Each of the others can be had by itself, and the best of them all is what came back.
    rng = np.random.default_rng(1)
    first = problem().start(rng)
    values = [single.value]
    for _ in range(5):
        start = rotations.random_orthogonal(len(first), rng, determinant=1)
        values.append(minimize(problem(), start).value)
    assert len({round(value, 6) for value in values}) > 1
    assert several.value == min(values, key=lambda value: sense * value)


def test_several_starts_have_the_same_bits_for_any_number_of_threads():
    A = np.random.default_rng(4).standard_normal((40, 9))
    runs = [minimize(Columns(A, "varimax"), n_starts=4, random_state=0, threads=t) for t in (1, 2)]
    assert np.array_equal(runs[0].U, runs[1].U)
    assert runs[0].message == runs[1].message


def test_several_starts_stay_in_the_component_they_are_given():
    A = np.random.default_rng(5).standard_normal((20, 5))
    start = np.diag([1.0, 1, 1, 1, -1])
    assert minimize(Columns(A, "quartimax"), start, n_starts=5, random_state=0).determinant == -1
    M = np.random.default_rng(6).standard_normal((4, 4))
    both = minimize(lambda U: -float(np.sum(U * M)), n=4, determinant="both", n_starts=2, random_state=0)
    assert both.value == pytest.approx(-np.linalg.svd(M)[1].sum(), rel=1e-10)
    assert "other component" in both.message


def test_several_starts_of_a_form_with_few_columns():
    from givens.objectives.few import FewColumns

    At = np.random.default_rng(7).standard_normal((8, 30))
    one, several = (
        minimize(FewColumns(At, np.full(3, 1.0), l0=False), n_starts=k, random_state=0) for k in (1, 3)
    )
    assert several.value >= one.value
    assert several.U.shape == one.U.shape
