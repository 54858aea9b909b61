"""Newton's method: steps of all columns at once, from all second derivatives."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.linalg import expm

from givens import check_objective, minimize
from givens.numerics.cayley import turned
from givens.objectives import Columns, LogCosh, Orthomax
from givens.rotations import random_orthogonal
from givens.solve.checkpoint import Checkpoint


def antisymmetric(rng, n):
    K = rng.standard_normal((n, n))
    return K - K.T


@cache
def flat_field(seed=0, points=1500, modes=24, patterns=18):
    """Loadings of a smooth field with more modes than patterns: some columns look alike from nearly every angle."""
    rng = np.random.default_rng(seed)
    grid = np.linspace(0, 1, points)
    bumps = np.exp(-((grid[:, None] - rng.uniform(0, 1, patterns)) ** 2) / (2 * 0.05**2))
    series = rng.standard_normal((200, patterns)) @ bumps.T + 0.3 * rng.standard_normal((200, points))
    _, s, Vt = np.linalg.svd(series - series.mean(axis=0), full_matrices=False)
    A = Vt[:modes].T * s[:modes]
    return A / np.linalg.norm(A, axis=1, keepdims=True)


def value_at(A, kappa, active, U):
    squares = (A @ U)[:, :active] ** 2
    return -(np.sum(squares**2) - kappa / len(A) * np.sum(squares.sum(axis=0) ** 2))


@pytest.mark.parametrize("active", [5, 2])
@pytest.mark.parametrize("kappa", [0.0, 1.0, 2.5])
def test_second_derivatives_against_differences_of_values(rng, kappa, active):
    A = rng.standard_normal((300, 5))
    objective = Columns(A, Orthomax(kappa), active=active)
    U, Q = random_orthogonal(5, rng), random_orthogonal(5, rng)
    product = objective.second(objective.state(U), Q)
    for _ in range(4):
        K = antisymmetric(rng, 5)
        K[active:, active:] = 0.0
        h = 1e-3
        low, here, high = (value_at(A, kappa, active, U @ Q @ expm(t * K)) for t in (-h, 0.0, h))
        assert 0.5 * np.vdot(K, product(K)) == pytest.approx((low - 2 * here + high) / h**2, rel=1e-4)
    one, other = antisymmetric(rng, 5), antisymmetric(rng, 5)
    assert np.vdot(one, product(other)) == pytest.approx(np.vdot(other, product(one)), rel=1e-5)


def test_the_transform_agrees_with_the_exponential_to_second_order(rng):
    K = antisymmetric(rng, 7)
    Q = random_orthogonal(7, rng)
    for step in (1e-1, 1e-2):
        R = turned(Q, step * K)
        assert np.abs(R - Q @ expm(step * K)).max() <= (step * np.abs(K).sum(axis=1).max()) ** 3
        np.testing.assert_allclose(R.T @ R, np.eye(7), atol=1e-14)


def test_check_objective_finds_a_wrong_second_derivative(rng):
    class Wrong(Columns):
        @property
        def second(self):
            right = super().second
            return lambda state, Q: lambda K: 1.5 * right(state, Q)(K)

    A = rng.standard_normal((50, 4))
    assert check_objective(Columns(A, "varimax"))
    report = check_objective(Wrong(A, "varimax"))
    assert [finding.name for finding in report.findings if not finding.passed] == ["second derivatives"]


@pytest.mark.parametrize("kappa", [0.0, 1.0, 12.0])
def test_newton_ends_where_no_pair_gains(kappa):
    A = flat_field()
    objective = Columns(A, Orthomax(kappa))
    result = minimize(objective, np.eye(24), method=["descent", "newton"], tol=3e-7, certify=True)
    assert result.converged, result.message
    assert result.orthogonality <= 1e-13
    assert result.phases[1].steps >= 1
    assert result.certificate.gain <= 1e-12 * objective.scale
    values = -np.array(result.trace.value)
    assert np.all(np.diff(values) <= 1e-13 * np.abs(values).max())


def near_a_maximum(A, rng, angle=0.05):
    """A place from which every method finds the same maximum."""
    U = minimize(Columns(A, "varimax"), np.eye(A.shape[1]), tol=3e-7).U
    K = antisymmetric(rng, len(U))
    return turned(U, angle / np.abs(K).max() * K)


def test_newton_takes_fewer_steps_than_descent_where_f_is_nearly_flat(rng):
    A = flat_field(seed=1)
    start = near_a_maximum(A, rng)
    slow = minimize(Columns(A, "varimax"), start, method="descent", tol=3e-7, max_iter=2000)
    quick = minimize(Columns(A, "varimax"), start, method="newton", tol=3e-7)
    assert quick.converged
    assert quick.steps < slow.steps / 2
    assert quick.value == pytest.approx(slow.value, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_any_start_and_any_scale(scale):
    """Newton alone, from a random place where f bends downwards in many directions."""
    A = scale * flat_field(seed=2)
    start = random_orthogonal(24, np.random.default_rng(3), determinant=1)
    result = minimize(Columns(A, "varimax"), start, method="newton", tol=1e-6)
    assert result.converged, result.message
    assert set(result.trace.phase[1:]) == {"newton"}
    again = minimize(Columns(A, "varimax"), result.U, method="descent", tol=1e-6)
    assert np.isfinite(again.value) or scale == 1e150
    assert again.steps <= 2


def test_objectives_without_second_derivatives_leave_the_phase_out(rng):
    A = rng.laplace(size=(400, 4))
    plain = minimize(Columns(A, LogCosh()), method="descent", random_state=0)
    with_newton = minimize(Columns(A, LogCosh()), method=["descent", "newton"], random_state=0)
    assert np.array_equal(plain.U, with_newton.U)
    assert minimize(Columns(A, LogCosh()), method="newton").steps == 0


def test_a_run_goes_on_from_its_checkpoint(tmp_path):
    A = flat_field(seed=6)

    def run(path, **options):
        return minimize(
            Columns(A, "varimax"),
            np.eye(24),
            method=["descent", "newton"],
            checkpoint=Checkpoint(tmp_path / path, 1),
            **options,
        )

    whole = run("whole")
    stop = whole.phases[0].steps + 2
    assert whole.phases[1].steps > 2
    run("parts", callback=lambda snapshot: snapshot.step >= stop)
    parts = run("parts")
    assert np.array_equal(whole.U, parts.U)
    assert whole.trace.value == parts.trace.value


class Spoilt(Columns):
    """An objective that returns NaN from its k-th look at another U on, or for products of second derivatives."""

    def __init__(self, A, part, after=1):
        self.part, self.after, self.looks = part, after, 0  # the constructor asks for `second`
        super().__init__(A, "varimax")

    def look(self, state, Q=None, slopes=True):
        look = super().look(state, Q, slopes)
        self.looks += Q is not None
        assert self.looks < 1000, "the run does not end"
        if self.looks < self.after or self.part == "product":
            return look
        spoilt = getattr(look, self.part) * np.nan
        return look._replace(**{self.part: float(spoilt) if self.part == "value" else spoilt})

    @property
    def second(self):
        return super().second if self.part != "product" else lambda state, Q: lambda K: np.nan * K


@pytest.mark.parametrize(
    ("part", "after", "sentence"),
    [
        ("value", 1, "look() returned nan"),
        ("value", 3, "look() returned nan"),
        ("slopes", 0, "the slopes of look() must be finite"),
        ("slopes", 2, "the slopes of look() must be finite"),
        ("curvatures", 0, "the curvatures of look() must be finite"),
        ("curvatures", 2, "the curvatures of look() must be finite"),
        ("product", 0, "the second derivatives must be finite"),
    ],
)
def test_numbers_that_are_not_finite_end_a_run_at_the_last_good_place(part, after, sentence):
    A, start = flat_field(seed=2), random_orthogonal(24, np.random.default_rng(3), determinant=1)
    objective = Spoilt(A, part, after)
    result = minimize(objective, start, method="newton", tol=1e-6)
    assert not result.converged
    assert result.message.startswith(f"stopped in step {result.steps + 1}, of the phase 'newton': ")
    assert sentence in result.message
    assert result.orthogonality <= 1e-13
    if after > 0:
        right = Columns(A, "varimax")
        assert result.value == pytest.approx(right.factor * right.look(right.state(result.U)).value, rel=1e-9)
    if after > 1:
        assert result.steps > 0
        assert result.value > result.trace.value[0]


def test_curvatures_of_inactive_columns_are_not_read(rng):
    class Unknown(Columns):
        def look(self, state, Q=None, slopes=True):
            look = super().look(state, Q, slopes)
            curvatures = look.curvatures.copy()
            curvatures[self.active :, self.active :] = np.nan
            np.fill_diagonal(curvatures, np.nan)
            return look._replace(curvatures=curvatures)

    A = rng.standard_t(4, size=(60, 6))
    plain, unknown = (
        minimize(kind(A, "varimax", active=3), random_state=0, method="newton") for kind in (Columns, Unknown)
    )
    assert unknown.converged
    assert unknown.value == pytest.approx(plain.value, rel=1e-9)
