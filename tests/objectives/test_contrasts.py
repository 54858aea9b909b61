"""Looks at contrasts: against sums written out in NumPy, for all kinds of data."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from givens import minimize
from givens.numerics import parallel
from givens.objectives import Columns, Exp, Kurtosis, LogCosh, Orthomax, Scalar
from givens.rotations import random_orthogonal, rotate
from tests.cases import value_at


def fourth(kappa, sign):
    """Of one column: the criterion, its gradient, and its Hessian's quadratic form."""

    def value(y):
        return -sign * (np.sum(y**4) - kappa / len(y) * np.sum(y**2) ** 2)

    def gradient(y):
        return -sign * (4 * y**3 - 4 * kappa / len(y) * np.sum(y**2) * y)

    def bend(y, v):
        of_norms = 4 * np.sum(y**2) * np.sum(v**2) + 8 * np.sum(y * v) ** 2
        return -sign * (12 * np.sum(y**2 * v**2) - kappa / len(y) * of_norms)

    return value, gradient, bend


def pointwise(phi, dphi, d2phi):
    return lambda y: np.sum(phi(y)), dphi, lambda y, v: np.sum(d2phi(y) * v**2)


ORACLES = {
    "logcosh": (
        LogCosh(),
        pointwise(lambda y: np.logaddexp(y, -y) - np.log(2), np.tanh, lambda y: 1 - np.tanh(y) ** 2),
    ),
    "exp": (
        Exp(),
        pointwise(
            lambda y: -np.exp(-(y**2) / 2),
            lambda y: y * np.exp(-(y**2) / 2),
            lambda y: (1 - y**2) * np.exp(-(y**2) / 2),
        ),
    ),
    "kurtosis": (Kurtosis(1), fourth(0.0, 1)),
    "light-tailed": (Kurtosis(-1), fourth(0.0, -1)),
    "varimax": (Orthomax(1.0), fourth(1.0, 1)),
}
EVERY = pytest.mark.parametrize("name", ORACLES)


def written_out(name, Y, active):
    """Value, slopes and curvatures of all pairs from their definitions, column by column."""
    value, gradient, bend = ORACLES[name][1]
    n, gradients = len(Y), [gradient(y) for y in Y[:active]]
    slopes, curves = np.zeros((n, n)), np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            for a, b, sign in ((i, j, 1), (j, i, -1)):
                if a < active:
                    slopes[i, j] += sign * gradients[a] @ Y[b]
                    curves[i, j] += bend(Y[a], Y[b]) - gradients[a] @ Y[a]
    # What curvatures are the sum of may be larger than they are.
    size = (
        12 * np.sum(Y**4, axis=1).max() if "exp" not in name and "cosh" not in name else np.abs(curves).max()
    )
    return sum(value(y) for y in Y[:active]), slopes, curves, max(1.0, size)


def assert_looks_like(look, expected, tolerance):
    value, slopes, curves, scale = expected
    off = ~np.eye(len(slopes), dtype=bool)
    assert look.value == pytest.approx(value, rel=tolerance, abs=tolerance)
    assert np.abs(look.slopes - slopes).max() <= tolerance * scale
    # Curvatures, which only shape steps, are in single precision.
    assert np.abs((look.curvatures - curves)[off]).max(initial=0.0) <= max(tolerance, 2e-6) * scale


@EVERY
@pytest.mark.parametrize("shape", [(300, 5), (5, 5), (1, 3), (2000, 40), (40, 1)])
@pytest.mark.parametrize("share", [1.0, 0.4])
def test_a_look_is_what_the_definitions_say(name, shape, share):
    rng = np.random.default_rng(1)
    A = rng.laplace(size=shape)
    active = max(1, round(share * shape[1]))
    objective = Columns(A, ORACLES[name][0], active=active)
    U = random_orthogonal(shape[1], rng)
    assert_looks_like(objective.look(objective.state(U)), written_out(name, (A @ U).T, active), 1e-11)
    Q = random_orthogonal(shape[1], rng)
    turned = objective.look(objective.state(U), Q)
    assert_looks_like(turned, written_out(name, (A @ U @ Q).T, active), 1e-11)


@EVERY
@given(
    A=arrays(
        np.float64,
        st.tuples(st.integers(1, 30), st.integers(1, 4)),
        elements=st.floats(-1e3, 1e3).map(lambda y: round(y, 6)),
    )
)
def test_looks_at_any_data(name, A):
    objective = Columns(A, ORACLES[name][0])
    n = A.shape[1]
    look = objective.look(objective.state(np.eye(n)))
    Y = A / objective.divisor
    expected = written_out(name, Y.T, n)
    # A variance of fourth powers may cancel: its rounding error is that of their sum.
    assert_looks_like(look, expected, 1e-9 * max(1.0, abs(expected[0])) + 1e-14 * float(np.sum(Y**4)))


@EVERY
def test_the_same_bits_for_any_number_of_threads(name, rng):
    objective = Columns(rng.laplace(size=(20_000, 9)), ORACLES[name][0])
    Q = random_orthogonal(9, rng)
    looks = []
    for threads in (1, 2, 3):
        with parallel.pool(threads):
            state = objective.state(np.eye(9))
            looks.append((objective.look(state), objective.look(state, Q), value_at(objective, state)))
    for one, other, value in looks:
        assert value == looks[0][2] == pytest.approx(one.value, rel=1e-14)
        for look, first in ((one, looks[0][0]), (other, looks[0][1])):
            assert look.value == first.value
            assert np.array_equal(look.slopes, first.slopes)
            assert np.array_equal(look.curvatures, first.curvatures)


@EVERY
def test_single_precision_data_are_added_up_in_double(name, rng):
    A = rng.laplace(size=(3000, 6)).astype(np.float32)
    objective = Columns(A, ORACLES[name][0])
    look = objective.look(objective.state(np.eye(6)))
    assert_looks_like(look, written_out(name, (A.astype(np.float64) / objective.divisor).T, 6), 1e-10)


@pytest.mark.parametrize("name", ["kurtosis", "varimax"])
@pytest.mark.parametrize("exponent", [-500, -100, 100, 500])
def test_powers_of_two_change_no_digit_of_a_homogeneous_look(name, exponent, rng):
    A = rng.laplace(size=(50, 4))
    plain, scaled = (Columns(A * 2.0**k, ORACLES[name][0]) for k in (0, exponent))
    one, other = (objective.look(objective.state(np.eye(4))) for objective in (plain, scaled))
    for a, b in zip(one[:3], other[:3]):
        np.testing.assert_allclose(
            np.asarray(a) / plain.scale, np.asarray(b) / scaled.scale, rtol=1e-13, atol=1e-13
        )


@pytest.mark.parametrize("contrast", [LogCosh(), Exp()])
@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_contrasts_without_a_scale_stay_finite(contrast, size, rng):
    objective = Columns(rng.laplace(size=(50, 3)) * size, contrast)
    look = objective.look(objective.state(np.eye(3)))
    assert np.isfinite(look.value)
    assert np.isfinite(look.slopes).all()
    assert np.isfinite(look.curvatures).all()


def accurate_phi(y):
    """log cosh y without cancellation, by functions that the built-in contrast does not use."""
    a = abs(y)
    return np.log1p(2 * np.sinh(0.5 * a) ** 2) if a < 1 else a + np.log1p(np.exp(-2 * a)) - np.log(2)


ACCURATE = Scalar(accurate_phi, lambda y: np.tanh(y), lambda y: 1 / np.cosh(min(abs(y), 300.0)) ** 2)


@given(exponent=st.floats(-150, 2), seed=st.integers(0, 2**32 - 1), weighted=st.booleans())
def test_log_cosh_is_accurate_at_every_scale(exponent, seed, weighted):
    rng = np.random.default_rng(seed)
    A = rng.laplace(size=(int(rng.integers(1, 700)), 3)) * 10.0**exponent
    weights = rng.uniform(1, 2, size=len(A)) if weighted else None
    Q = random_orthogonal(3, rng)
    objectives = [Columns(A, contrast, weights=weights) for contrast in (LogCosh(), ACCURATE)]
    one, other = (objective.look(objective.state(np.eye(3)), Q) for objective in objectives)
    assert one.value == pytest.approx(other.value, rel=1e-12, abs=0)
    assert np.abs(one.slopes - other.slopes).max() <= 1e-12 * other.value


@pytest.mark.parametrize("scale", [1e2, 1.0, 1e-2, 1e-3, 1e-4, 1e-5, 1e-9, 1e-12, 1e-30, 1e-150])
def test_runs_with_log_cosh_end_where_those_with_an_accurate_one_do(scale):
    """Where the data are too small for any difference of values, that is near the start."""
    rng = np.random.default_rng(0)
    B = rng.laplace(size=(2000, 4)) @ random_orthogonal(4, rng)
    one, other = (minimize(Columns(B * scale, contrast)) for contrast in (LogCosh(), ACCURATE))
    assert one.converged
    assert other.converged
    assert one.value == pytest.approx(other.value, rel=1e-12 if scale <= 1 else 1e-5, abs=0)
    assert np.sum((B @ one.U) ** 4) == pytest.approx(np.sum((B @ other.U) ** 4), rel=1e-3)


def test_pairs_of_small_columns_rotate_as_for_fourth_powers(rng):
    """log cosh y = y²/2 − y⁴/12 + ..., and rotations of two columns do not change the sum of y²."""
    B, scale = rng.laplace(size=(2000, 2)) @ random_orthogonal(2, rng), 1e-4
    solved = []
    for objective in (Columns(B * scale, LogCosh()), Columns(B, Kurtosis(1))):
        solved.append(objective.solve(objective.state(np.eye(2)), np.array([[0, 1]])))
    found, exact = solved
    assert found.rotations[0] == pytest.approx(exact.rotations[0], abs=1e-3)
    assert found.gains[0] == pytest.approx(exact.gains[0] * scale**4 / 12, rel=1e-3)


def test_a_contrast_that_is_not_finite_says_so():
    with pytest.raises(ValueError, match=r"Scalar\(reciprocal\) is not finite"):
        Columns(np.array([[0.0, 1.0]]), Scalar(reciprocal, lambda y: -1 / y**2))


def reciprocal(y):
    return 1 / y


UNKNOWN = {"key": 2.0}


def unknown(y, *more):
    return UNKNOWN["key"] * y


@pytest.mark.parametrize("role", ["phi", "dphi", "d2phi", "pair"])
def test_a_function_that_numba_cannot_compile_is_named_in_one_sentence(role, rng):
    functions = {"phi": lambda y: y * y, "dphi": lambda y: 2 * y, role: unknown}
    with pytest.raises(
        TypeError, match=f"^numba cannot compile {role}: .*'UNKNOWN'.*; use functions of math"
    ) as caught:
        Columns(rng.laplace(size=(9, 3)), Scalar(**functions))
    assert len(str(caught.value).splitlines()) == 1
    assert "\x1b" not in str(caught.value)
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize("role", ["phi", "dphi", "d2phi", "pair"])
def test_a_function_that_returns_no_number_is_refused(role, rng):
    functions = {"phi": lambda y: y * y, "dphi": lambda y: 2 * y, role: lambda *y: None}
    with pytest.raises(TypeError, match=f"^{role} must return .* returns none$"):
        Columns(rng.laplace(size=(9, 3)), Scalar(**functions))


def test_functions_of_your_own_may_use_where(rng):
    A = rng.laplace(size=(9, 3))
    plain = Scalar(lambda y: y * y if y > 0 else 0.0, lambda y: 2 * y if y > 0 else 0.0, even=False)
    where = Scalar(lambda y: np.where(y > 0, y * y, 0.0), lambda y: np.where(y > 0, 2 * y, 0.0), even=False)
    one, other = (Columns(A, contrast) for contrast in (plain, where))
    assert one.look(A.T.copy()).value == other.look(A.T.copy()).value


def test_your_own_log_cosh_sees_what_the_built_in_one_does(rng):
    A = rng.laplace(size=(4000, 7))
    mine = Scalar(lambda y: np.log(np.cosh(y)), lambda y: np.tanh(y))
    with_curvature = Scalar(lambda y: np.log(np.cosh(y)), lambda y: np.tanh(y), lambda y: 1 - np.tanh(y) ** 2)
    looks = [
        objective.look(objective.state(np.eye(7)))
        for objective in (Columns(A, contrast) for contrast in (LogCosh(), with_curvature, mine))
    ]
    for look in looks[1:]:
        assert look.value == pytest.approx(looks[0].value, rel=1e-13)
        assert look.slopes == pytest.approx(looks[0].slopes, abs=1e-12 * looks[0].value)
        assert look.curvatures == pytest.approx(looks[0].curvatures, abs=1e-6 * looks[0].value)


def test_signs_add_up_column_by_column(rng):
    A = rng.laplace(size=(500, 3))
    signs = np.array([1, -1, -1])
    objective = Columns(A, LogCosh(signs))
    assert value_at(objective, objective.state(np.eye(3))) == pytest.approx(
        np.sum(signs * (np.logaddexp(A, -A) - np.log(2))), rel=1e-12
    )


def test_signs_separate_heavy_tailed_from_light_tailed_sources(rng):
    S = np.column_stack((rng.laplace(size=(4000, 2)), rng.uniform(-2, 2, size=(4000, 2))))
    S = np.linalg.qr(S - S.mean(axis=0))[0] * np.sqrt(len(S))
    mixing = random_orthogonal(4, rng)
    result = minimize(Columns(S @ mixing, LogCosh([1, 1, -1, -1])), mixing.T @ random_orthogonal(4, 0))
    overlap = np.abs(mixing @ result.U)
    assert np.sort(overlap.max(axis=0))[0] > 0.99
    assert sorted(overlap.argmax(axis=0).tolist()) == [0, 1, 2, 3]


def test_signs_that_do_not_fit_are_refused(rng):
    with pytest.raises(ValueError, match="list of 1 and -1"):
        LogCosh([1, 0])
    objective = Columns(rng.laplace(size=(9, 3)), LogCosh([1, -1]))
    with pytest.raises(ValueError, match="has 2 signs, but there are 3 active columns"):
        objective.look(objective.state(np.eye(3)))


def test_derivatives_that_are_not_finite_are_refused(rng):
    objective = Columns(rng.laplace(size=(9, 3)), Scalar(lambda y: y * y, lambda y: y / 0.0))
    with pytest.raises(ValueError, match="whiten or rescale"):
        objective.look(objective.state(np.eye(3)))


@pytest.mark.parametrize("name", ["logcosh", "exp"])
@given(seed=st.integers(0, 2**32 - 1))
def test_no_angle_of_a_grid_is_better_than_the_search_on_columns_of_variance_one(name, seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_t(3, size=(int(rng.integers(2, 60)), 2))
    A /= np.sqrt(np.mean(A**2, axis=0))
    objective = Columns(A, ORACLES[name][0])
    solved = objective.solve(objective.state(np.eye(2)), np.array([[0, 1]]))
    values = [
        value_at(objective, objective.state(rotate(np.eye(2), 0, 1, theta)))
        for theta in np.linspace(-np.pi / 4, np.pi / 4, 400)
    ]
    start = value_at(objective, objective.state(np.eye(2)))
    spread = max(values) - min(values)
    assert start - solved.gains[0] <= min(values) + 1e-4 * spread + 1e-12 * abs(start)
    turned = value_at(objective, objective.state(solved.rotations[0]))
    assert start - turned == pytest.approx(solved.gains[0], rel=1e-3, abs=1e-11 * abs(start))
