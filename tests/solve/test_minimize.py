"""A run: what stops it, what it reports, what its options do."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from givens import minimize, rotations
from givens.numerics.cayley import turned
from givens.objectives import Columns, Function, JointDiagonal, SymmetricTensor
from givens.result import Stop
from givens.support.progress import bar, progress
from tests.cases import CASES
from tests.runs import run


@pytest.mark.parametrize(
    ("answer", "sweeps"),
    [(True, 1), (np.True_, 1), (np.float64(2) > 1, 1), (False, 3), (np.False_, 3), (None, 3)],
)
def test_a_callback_stops_with_true_of_either_kind(answer, sweeps):
    result = minimize(
        CASES["cubic"](0),
        random_state=0,
        method="tournament",
        max_iter=3,
        tol=0,
        callback=lambda _: answer,
    )
    assert result.sweeps == sweeps


@pytest.mark.parametrize("phase", ["descent", "sweeps"])
def test_a_callback_sees_every_step_and_can_stop(phase):
    seen = []

    def callback(snapshot):
        seen.append(snapshot)
        return len(seen) == 3

    objective = CASES["smooth"](0)
    result = minimize(objective, random_state=0, callback=callback, method=phase)
    assert [s.step for s in seen] == [1, 2, 3]
    assert [s.phase for s in seen] == 3 * [phase]
    assert result.steps == 3
    assert result.sweeps == (3 if phase == "sweeps" else 0)
    assert not result.converged
    assert result.message.startswith("stopped by the callback")
    assert np.array_equal(seen[-1].U, result.U)
    with pytest.raises(ValueError, match="read-only"):
        seen[0].U[0, 0] = 1


class Changed(Columns):
    """Columns with another look."""

    def __init__(self, change, A, contrast="varimax"):
        super().__init__(A, contrast)
        self.change = change

    def look(self, state, Q=None, slopes=True):
        look = super().look(state, Q, slopes)
        return look._replace(**self.change(look))


def columns(change=lambda look: {}, contrast="varimax"):
    return Changed(change, np.random.default_rng(6).laplace(size=(40, 5)), contrast)


def brockett(n, m):
    """Σ j (UᵀAU)_jj over m columns, smallest at the last columns of the identity, in their order from the last one."""
    A, weights = np.diag(np.arange(1.0, n + 1)), np.arange(m, 0.0, -1)
    return Function(
        lambda U: np.sum(np.diag(U.T @ A @ U) * weights), (n, m), jac=lambda U: 2 * A @ U * weights
    )


def decomposable():
    V = rotations.random_orthogonal(4, 0)
    return SymmetricTensor(np.einsum("ia,ja,ka->ijk", V, V, V), symmetrize=True)


def kinked():
    M = np.random.default_rng(2).standard_normal((20, 5))
    return Function(lambda V: np.abs(M @ V).sum(), (5, 4), jac=lambda V: M.T @ np.sign(M @ V))


ENDINGS = {
    Stop.NOTHING_TO_ROTATE: (lambda: run(Function(np.sum, 1)), "there is nothing to rotate"),
    Stop.SMALL_GRADIENT: (
        lambda: run(columns(), gradient_tol=1e-3),
        "the gradient norm is at most 0.001 times",
    ),
    Stop.SMALL_SWEEPS: (
        lambda: minimize(columns(contrast="logcosh"), method="cyclic"),
        "a sweep gained at most 1e-18 ",
    ),
    Stop.SMALL_REMAINDER: (lambda: minimize(decomposable()), "all pairs together could gain "),
    Stop.SMALL_STEP: (
        lambda: minimize(CASES["quartic"](0), method="descent"),
        "the next step would gain at most 1e-18 ",
    ),
    Stop.ROUNDING: (
        lambda: minimize(CASES["quartic"](0), method="descent", tol=0),
        "by more than its rounding errors",
    ),
    Stop.SADDLE: (
        lambda: minimize(brockett(4, 2), np.eye(4)[:, :2]),
        "the slopes vanish at the start, which may be a saddle",
    ),
    Stop.STATIONARY: (
        lambda: minimize(brockett(4, 4), np.eye(4), method="descent"),
        "which sweeps may leave",
    ),
    Stop.EXHAUSTED: (
        lambda: minimize(columns(lambda look: {"slopes": -look.slopes}, "logcosh"), method="descent"),
        "no step of the phase 'descent' lowers f any more",
    ),
    Stop.KINK: (lambda: minimize(kinked(), random_state=0), "though its slopes are large: f has a kink here"),
    Stop.MAX_ITER: (lambda: minimize(columns(), max_iter=1), "max_iter = 1 reached"),
    Stop.CALLBACK: (lambda: minimize(columns(), callback=lambda snapshot: True), "stopped by the callback"),
}
LACKING = {
    "descent": ("slopes (Look.slopes)", columns(lambda look: {"slopes": None})),
    "newton": ("second derivatives (Objective.second)", columns(contrast="logcosh")),
    "widened sweeps": ("n x m matrices, m < n, and objectives with gradients", columns()),
}


@pytest.mark.parametrize("stop", ENDINGS)
def test_each_way_to_end_has_its_reason(stop):
    result = ENDINGS[stop][0]()
    assert result.stop is stop
    assert result.converged == (stop in list(Stop)[:7])
    assert ENDINGS[stop][1] in result.message


@pytest.mark.parametrize("phase", LACKING)
def test_a_phase_says_what_the_objective_lacks_and_the_next_one_follows(phase):
    what, objective = LACKING[phase]
    result = minimize(objective, method=phase)
    assert result.stop is Stop.LACKING
    assert what in result.message
    assert minimize(objective, method=[phase, "sweeps"]).converged


def test_a_phase_that_is_slow_gives_way_and_no_run_ends_by_that():
    whole = minimize(without_common_basis())
    assert whole.stop is not Stop.SLOW
    for limit in range(1, whole.steps, 5):
        assert minimize(without_common_basis(), max_iter=limit).stop is Stop.MAX_ITER


def test_gradient_tolerance_stops_at_the_first_small_gradient():
    objective = CASES["quartic"](0)
    result = run(objective, random_state=0, gradient_tol=1e-3)
    assert result.gradient_norm <= 1e-3 * objective.scale
    assert all(norm > 1e-3 * objective.scale for norm in result.trace.gradient_norm[:-1])


@pytest.mark.parametrize("method", ["tournament", None])
@pytest.mark.parametrize("limit", [0, 1, 4])
def test_no_more_steps_are_made_than_asked_for(method, limit):
    assert minimize(CASES["smooth"](0), max_iter=limit, method=method, random_state=0).steps == limit


@pytest.mark.parametrize("shape", [(1,), (1, 1)])
def test_a_value_may_be_an_array_of_one_number(shape):
    def f(u):
        return u.T @ np.diag([1.0, 2.0, 3.0]) @ u

    usual, other = (
        minimize(g, n=(3, 1), random_state=0)
        for g in (lambda u: float(f(u)[0, 0]), lambda u: f(u).reshape(shape))
    )
    assert np.array_equal(usual.U, other.U)


def test_order_1_has_nothing_to_rotate():
    for result in (minimize(lambda U: float(U[0, 0]), n=1), minimize(Columns(np.ones((3, 1)), "varimax"))):
        assert result.converged
        assert result.U.tolist() == [[1.0]]
        assert result.gradient_norm == 0
    assert minimize(lambda U: float(U[0, 0]), n=1, determinant="both").U.tolist() == [[-1.0]]


def test_seeds_decide_and_generators_of_both_kinds_are_taken():
    runs = [minimize(CASES["smooth"](0), random_state=s, max_iter=2).U for s in (0, 0, 1)]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
    for generator in (np.random.default_rng, np.random.RandomState):
        pair = [minimize(CASES["smooth"](0), random_state=generator(4), max_iter=2).U for _ in range(2)]
        assert np.array_equal(*pair)


def test_a_saddle_is_left(rng):
    """At the start every slope vanishes, but no minimum is there: exact searches see beyond."""
    A = np.diag([3.0, 2.0, 1.0])
    f = Function(
        lambda U: float(np.sum(np.diag(U.T @ A @ U) * [1, 2, 3])),
        3,
        degree=2,
        jac=lambda U: 2 * A @ U * [1, 2, 3],
    )
    start = np.eye(3)[[2, 1, 0]]  # the maximum
    for schedule in ("tournament", "gradient", "random"):
        assert minimize(f, start, method=schedule, random_state=0).value == pytest.approx(3 + 4 + 3)


def test_the_trace_becomes_a_frame():
    frame = minimize(CASES["varimax"](0)).trace.to_pandas()
    assert list(frame.columns) == ["step", "seconds", "flops", "value", "gradient_norm", "phase"]
    assert frame.flops.is_monotonic_increasing
    assert frame.flops.iloc[-1] > 0


def without_common_basis():
    """Matrices whose joint diagonalisation sweeps leave to descent."""
    C = np.random.default_rng(3).standard_normal((20, 30, 30))
    return JointDiagonal(C + C.swapaxes(1, 2))


def test_the_result_says_what_was_done():
    random = minimize(CASES["cubic"](0), method="random", random_state=0, max_iter=3)
    assert random.method == "3 sweeps of exact rotations of random pairs (Algorithm 1)"
    (sweeps,) = random.phases
    assert (sweeps.name, sweeps.steps) == ("sweeps", 3)
    assert sweeps.gain == pytest.approx(random.trace.value[0] - random.value, rel=1e-9)
    several = minimize(without_common_basis())
    phases = several.phases
    assert [phase.name for phase in phases] == ["sweeps", "descent", "newton", "sweeps"]
    assert phases[0].steps > 1
    assert phases[1].steps > 1
    descent = f", then quasi-Newton descent, {phases[1].steps} steps"
    assert several.method.startswith(f"{phases[0].steps} sweeps of rotations in blocks{descent}")
    assert several.steps == sum(phase.steps for phase in phases)
    assert several.sweeps == phases[0].steps + phases[3].steps
    gain = sum(phase.gain for phase in phases)
    assert gain == pytest.approx(several.trace.value[0] - several.value, rel=1e-9)
    assert several.trace.phase == ["", *(phase.name for phase in phases for _ in range(phase.steps))]
    with pytest.raises(ValueError, match="there is no method 'jumps'; it is one of 'descent', "):
        minimize(CASES["cubic"](0), method="jumps")


def test_only_exact_searches_are_called_exact():
    searched = minimize(CASES["logcosh"](0), method="cyclic", certify=True)
    assert "not proved to be exact" in searched.message
    assert " of rotations; certified by " in searched.method
    assert "exact" not in searched.method


def test_the_certificate_of_an_interpolated_function_is_not_called_exact():
    """A minimum of width 0.02, which 16 angles do not see."""

    def narrow(U):
        return U[0, 0] - 10 * np.exp(-(((U[0, 1] - 0.5) / 0.02) ** 2))

    missed = minimize(narrow, n=3, random_state=0)
    assert missed.value > -2
    assert "interpolation, which can miss a narrow minimum" in missed.message
    assert missed.method.endswith("certified by one sweep of searches")
    exact = minimize(Function(lambda U: U[0, 0], 3, degree=1), random_state=0)
    assert "interpolation" not in exact.message
    assert exact.method.endswith("of exact searches")


@pytest.mark.parametrize("jac", [None, True])
@pytest.mark.parametrize("n_starts", [1, 3])
def test_calls_of_a_function_are_counted(jac, n_starts):
    calls = []
    M = np.random.default_rng(0).standard_normal((9, 9))

    def f(U):
        calls.append(1)
        value = np.sum((M @ U) ** 4)
        return value if jac is None else (value, 4 * M.T @ (M @ U) ** 3)

    # The pairs of a certificate are searched in two threads.
    found = minimize(f, n=9, jac=jac, n_starts=n_starts, certify=True, threads=2, random_state=0, tol=1e-5)
    assert found.evaluations == len(calls)
    assert minimize(CASES["logcosh"](0)).evaluations is None
    problem = Function(f, 9, jac=jac)
    calls.clear()
    assert minimize(problem, tol=1e-5, random_state=0).evaluations == len(calls)


def test_a_function_that_draws_random_numbers_is_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(
        ValueError, match=r"same number for the same matrix, but it returned .* and then .* draw them once"
    ):
        minimize(lambda U: U[0, 0] + rng.normal(), n=3)


def test_a_start_of_another_order_than_n_is_refused_before_f_is_called():
    with pytest.raises(ValueError, match="start is of order 8, but U is of order 7"):
        minimize(lambda U: 1 / 0, np.eye(8), n=7)


def test_the_progress_bar_tells_phases_apart(capsys):
    with progress(), bar() as shown:
        minimize(lambda U: np.sum((U - 1) ** 3), n=4, random_state=0, max_iter=2, callback=shown.callback)
    shown = "".join(capsys.readouterr())
    assert "descent, step 2" in shown
    assert "sweep" not in shown


def test_the_progress_bar_shows_the_step_and_the_value(capsys):
    with progress(), bar() as shown:
        found = minimize(
            CASES["smooth"](0), random_state=0, method="tournament", max_iter=3, callback=shown.callback
        )
    # On whichever of the two Rich's console writes to: a command sends it to the second.
    shown = "".join(capsys.readouterr())
    assert "sweeps, step 3" in shown
    assert f"value {found.value:.8g}" in shown
    with bar() as shown:
        minimize(CASES["smooth"](0), random_state=0, max_iter=3, callback=shown.callback)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-100, 1e200, 1e300])
@pytest.mark.parametrize("with_gradient", [True, False])
def test_functions_of_any_size_are_minimised_alike(size, with_gradient):
    """Powers of ten are not exact, so the runs agree only as far as rounding lets them."""
    A = np.random.default_rng(3).standard_normal((5, 5))

    def found(size):
        jac = (lambda U: -size * A) if with_gradient else None
        return minimize(lambda U: -size * np.sum(U * A), n=5, jac=jac, random_state=0, tol=1e-10)

    usual, other = found(1.0), found(size)
    assert other.converged
    assert other.value == pytest.approx(size * usual.value, rel=1e-12, abs=0)
    assert np.isfinite(other.gradient_norm)
    assert other.gradient_norm <= 1e-6 * size


def test_a_degree_that_is_wrong_for_one_column_is_refused():
    for n, column in ((3, 2), (3, 0), (4, 2), (5, 4), (1, 0)):
        for jac in (None, lambda U, k=column: np.where(np.arange(len(U)) == k, 5 * U**4, 0.0)):
            f = partial(lambda U, k: float(np.sum(U[:, k] ** 5)), k=column)
            if n == 1:
                Function(f, n, degree=1, jac=jac)  # nothing can rotate
                continue
            with pytest.raises(ValueError, match="not a polynomial of degree 1"):
                Function(f, n, degree=1, jac=jac)
            Function(f, n, degree=5, jac=jac)


def test_a_start_without_slopes_is_certified_too():
    a = np.arange(1.0, 5.0)

    def f(U):
        return np.sum(a * np.sum(U * (np.diag(a) @ U), axis=0))

    # The identity is the maximum, 30: all slopes vanish there. The minimum is 20.
    result = minimize(f, np.eye(4), tol=1e-6, certify=True)
    assert result.value == pytest.approx(20, rel=1e-9)
    assert result.certificate.gain < 1e-6
    assert minimize(lambda U: 0.0, n=1, certify=True).certificate.pairs == 0
    assert minimize(lambda U: 0.0, n=1, certify=0.5).certificate.share == 1


def test_a_finished_checkpoint_is_certified_again(tmp_path):
    A = np.random.default_rng(4).standard_normal((40, 6))
    options = {"certify": True, "checkpoint": tmp_path / "run.npz"}
    first, again = (minimize(Columns(A, "varimax"), **options) for _ in range(2))
    assert again.certificate == first.certificate is not None
    assert again.method == first.method
    assert np.array_equal(again.U, first.U)


def test_gains_far_below_the_values_of_f_are_taken():
    def f(U):
        return 3e11 + np.sum(U[:, 0] ** 3)

    def jac(U):
        return np.hstack([3 * U[:, :1] ** 2, np.zeros((3, 2))])

    result = minimize(f, n=3, jac=jac, certify=True, random_state=0)
    assert result.value - 3e11 == pytest.approx(-1, abs=1e-3)
    assert result.certificate.gain < 1e-3


def test_the_message_of_a_race_says_why_the_others_ended():
    M = np.random.default_rng(5).standard_normal((6, 6))

    def f(U):
        return np.sum((M @ U) ** 4)

    def jac(U):
        return 4 * M.T @ (M @ U) ** 3

    limited = minimize(f, n=6, jac=jac, n_starts=4, max_iter=3, random_state=0)
    assert "0 of the others stopped where" in limited.message
    assert limited.message.endswith(", 3 did not converge")
    assert "the 3 others stopped where" in minimize(f, n=6, jac=jac, n_starts=4, random_state=0).message


@pytest.mark.parametrize("phase", ["descent", "sweeps"])
def test_an_objective_whose_value_is_nan_is_refused_or_left_at_the_last_good_matrix(phase):
    class Broken(Columns):
        looks = 0

        def look(self, state, Q=None, slopes=True):
            self.looks += 1
            look = super().look(state, Q, slopes)
            return look if self.looks <= self.good else look._replace(value=float("nan"))

    A = np.random.default_rng(0).laplace(size=(50, 5))
    objective = Broken(A, "logcosh")
    objective.good = 0
    with pytest.raises(ValueError, match=r"look\(\) returned nan"):
        minimize(objective, method=phase)
    for good in (3, 4, 9):
        objective.good, objective.looks = good, 0
        result = run(objective, method=phase, coarse=False)
        assert not result.converged
        where = f"stopped in step {result.steps + 1}, of the phase '{phase}': "
        assert result.message.startswith(where + "f must be finite")
        assert result.orthogonality < 1e-13
        value = Columns(A, "logcosh").look(np.ascontiguousarray((A @ result.U).T)).value
        assert value == pytest.approx(result.value, rel=1e-13)


def guarded(n):
    """A linear function that is infinite unless the whole diagonal is above 0.1, with its gradient."""
    target = np.random.default_rng(n).standard_normal((n, n))
    refused = []

    def f(U):
        room = np.diag(U) - 0.1
        if room.min() <= 0:
            refused.append(U)
            return np.inf, np.full((n, U.shape[1]), np.nan)
        return -np.sum(U * target) - 0.01 * np.sum(np.log(room)), -target - np.diag(0.01 / room)

    return f, refused


@pytest.mark.parametrize("n", [2, 5, 12])
def test_descent_stays_inside_a_barrier(n):
    f, refused = guarded(n)
    result = minimize(f, np.eye(n), jac=True)
    assert result.converged
    assert refused
    assert np.diag(result.U).min() > 0.1
    assert (np.diff(result.trace.value) <= 1e-12).all()
    # A minimum: all points beside it are higher, as far as rounding allows.
    rng = np.random.default_rng(0)
    for _ in range(20):
        K = rng.standard_normal((n, n))
        assert f(turned(result.U, 1e-4 * (K - K.T)))[0] > result.value - 1e-12
    separate = minimize(lambda U: f(U)[0], np.eye(n), jac=lambda U: f(U)[1])
    assert separate.value == pytest.approx(result.value, rel=1e-12)


def test_values_alone_stay_inside_a_barrier():
    f, refused = guarded(4)
    best = minimize(f, np.eye(4), jac=True)
    result = minimize(lambda U: f(U)[0], np.eye(4), certify=False)
    assert refused
    assert result.value == pytest.approx(best.value, rel=1e-9)


def test_where_a_barrier_matters_is_said():
    f, _ = guarded(4)
    with pytest.raises(
        ValueError, match="infinite near the rotation where it is first evaluated; give a start"
    ):
        minimize(f, n=4, jac=True, random_state=0)
    with pytest.raises(ValueError, match="infinite near the start"):
        minimize(f, -np.eye(4), jac=True)
    inside = Function(f, 4, jac=True, near=np.eye(4))
    with pytest.raises(ValueError, match="f is infinite at the start; give one where it is finite"):
        minimize(inside, -np.eye(4))
    with pytest.raises(ValueError, match="near must be orthogonal"):
        Function(f, 4, jac=True, near=np.ones((4, 4)))
    with pytest.raises(ValueError, match="near is of order 3, but n = 4"):
        Function(f, 4, jac=True, near=np.eye(3))
    sweeps = minimize(f, np.eye(4), jac=True, method="sweeps")
    assert not sweeps.converged
    assert "f returned inf where two columns are rotated" in sweeps.message
    assert np.diag(sweeps.U).min() > 0.1
    certified = minimize(f, np.eye(4), jac=True, certify=True)
    assert certified.converged
    assert certified.certificate is None
    assert "not certified: f returned inf" in certified.message
    assert certified.value == minimize(f, np.eye(4), jac=True).value


def test_starts_outside_a_barrier_lose():
    f, _ = guarded(3)
    result = minimize(f, np.eye(3), jac=True, n_starts=60, random_state=0)
    assert np.isinf(result.starts).any()
    assert np.isfinite(result.starts).sum() > 1
    assert result.value == result.starts.min()
    both = minimize(f, np.eye(3), jac=True, determinant="both")
    assert np.diag(both.U).min() > 0.1


def test_callbacks_see_the_last_step_and_may_stop_all_starts():
    f = Function(lambda U: U[0, 0], 4)
    steps = []
    minimize(f, max_iter=5, callback=lambda snapshot: steps.append(snapshot.step), random_state=0)
    assert steps == [1, 2, 3, 4, 5]
    steps.clear()

    def stop(snapshot):
        steps.append(snapshot.step)
        if len(steps) == 3:
            raise StopIteration

    result = minimize(f, callback=stop, n_starts=3, random_state=0)
    assert len(steps) == 3
    assert result.message.startswith("stopped by the callback")
    both = minimize(f, callback=lambda _: True, determinant="both", random_state=0)
    assert both.steps == 1


def test_the_limit_holds_for_the_steps_of_all_phases_together():
    sweeps, descent, *_ = minimize(without_common_basis()).phases
    limited = minimize(without_common_basis(), max_iter=sweeps.steps + 1)
    assert [phase.steps for phase in limited.phases] == [sweeps.steps, 1, 0, 0]
    assert descent.steps > 1
    assert not limited.converged


def test_starts_where_a_function_is_not_a_number_lose():
    def f(v):
        return float(v[1, 0]) if v[0, 0] <= 0.5 else np.nan

    options = {"jac": lambda v: np.eye(3)[:, 1:2], "n_starts": 12, "random_state": 0}
    result = minimize(f, -np.eye(3)[:, :1], **options)
    assert np.isinf(result.starts).any()
    assert result.value == pytest.approx(-1.0)


def test_gradients_of_functions_with_large_rounding_errors_pass():
    """The logarithm of a determinant that is constant: all differences of values are rounding errors, 1e-9 of f."""
    D = np.diag(np.logspace(0, 6, 6))
    Function(
        lambda U: -np.linalg.slogdet(U.T @ D @ U)[1], 6, jac=lambda U: -2 * D @ U @ np.linalg.inv(U.T @ D @ U)
    )


def test_the_scale_of_a_function_is_reported():
    small = minimize(lambda U: U[0, 0], n=3, random_state=0)
    large = minimize(lambda U: 1e200 * U[0, 0], n=3, random_state=0)
    assert 0.1 < small.scale < 1.0
    assert large.scale == pytest.approx(1e200 * small.scale)
