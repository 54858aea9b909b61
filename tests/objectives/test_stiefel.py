"""Functions of n x m matrices with orthonormal columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from givens import autodiff, minimize
from givens.objectives import Function
from givens.rotations import orthogonality, random_orthogonal
from givens.schedules import Tournament
from tests.properties import examples

SHAPES = [(2, 1), (9, 1), (9, 4), (6, 5), (40, 3)]


def brockett(n, m, seed=0, scale=1.0):
    """Σ w_j v_jᵀS v_j, whose minimum has the eigenvectors of S; and the eigenvalues, in the order of the columns."""
    rng = np.random.default_rng(seed)
    S = rng.standard_normal((n, n))
    S = scale * (S + S.T)
    weights = np.arange(m, 0, -1.0)

    def f(V):
        return np.sum(weights * V * (S @ V)), 2 * weights * (S @ V)

    return f, S, np.linalg.eigvalsh(S)[:m] @ weights


def log_cosh(n, m, seed=0):
    X = np.random.default_rng(seed).laplace(size=(3 * n, n))

    def f(V):
        Y = X @ V
        return np.sum(np.logaddexp(Y, -Y)), X.T @ np.tanh(Y)

    return f


@st.composite
def shapes(draw):
    n = draw(st.integers(2, 12))
    return n, draw(st.integers(1, n - 1)), draw(st.integers(0, 10_000))


@given(shapes())
@examples(25)
def test_slopes_are_those_of_the_same_function_of_a_square_matrix(problem):
    n, m, seed = problem
    f = log_cosh(n, m, seed)
    U = random_orthogonal(n, seed, determinant=1)

    def padded(U):
        value, E = f(U[:, :m])
        return value, np.hstack([E, np.zeros((n, n - m))])

    few, square = Function(f, (n, m), jac=True), Function(padded, n, jac=True)
    look, whole = few.look(few.state(U[:, :m])), square.look(square.state(U))
    assert look.value == pytest.approx(whole.value, rel=1e-12)
    inside, beyond = look.slopes[:m], look.slopes[m:].T
    np.testing.assert_allclose(inside, whole.slopes[:m, :m], atol=1e-10 * few.scale)
    np.testing.assert_allclose(beyond @ U[:, m:], whole.slopes[:m, m:], atol=1e-10 * few.scale)
    np.testing.assert_allclose(beyond @ U[:, :m], 0, atol=1e-12 * few.scale)
    differences = Function(lambda V: f(V)[0], (n, m))
    estimated = differences.look(differences.state(U[:, :m])).slopes
    np.testing.assert_allclose(estimated, look.slopes, atol=1e-7 * few.scale)


@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_the_minimum_of_brocketts_function_is_made_of_eigenvectors(n, m):
    f, S, least = brockett(n, m)
    result = minimize(f, n=(n, m), jac=True, random_state=0)
    assert result.converged, result.message
    assert result.U.shape == (n, m)
    assert result.value == pytest.approx(least, rel=1e-12)
    assert result.orthogonality < 1e-13
    assert result.gradient_norm < 1e-6 * np.abs(S).max()
    np.testing.assert_allclose(result.U.T @ S @ result.U, np.diag(np.linalg.eigvalsh(S)[:m]), atol=1e-7)
    assert np.all(np.diff(result.trace.value) <= 1e-12 * abs(least))
    assert result.determinant is None
    assert result.method.startswith("quasi-Newton descent on the Stiefel manifold, ")
    assert result.evaluations is not None
    assert result.evaluations > result.steps


@given(shapes())
@examples(10)
def test_runs_end_orthonormal_and_without_a_gradient(problem):
    n, m, seed = problem
    f = log_cosh(n, m, seed)
    result = minimize(f, n=(n, m), jac=True, random_state=seed)
    assert result.converged, result.message
    E = f(result.U)[1]
    inside = E.T @ result.U - result.U.T @ E
    beyond = E - result.U @ (result.U.T @ E)
    norm = np.sqrt(np.sum(inside**2) + 2 * np.sum(beyond**2))
    assert norm <= 3e-6 * result.value
    assert result.gradient_norm == pytest.approx(norm, rel=1e-3, abs=1e-9 * result.value)
    assert orthogonality(result.U) < 1e-13
    assert np.all(np.diff(result.trace.value) <= 1e-12 * result.value)


def test_values_alone_are_enough(rng):
    f, _, least = brockett(7, 2)
    result = minimize(lambda V: f(V)[0], n=(7, 2), random_state=0)
    assert result.converged, result.message
    assert result.value == pytest.approx(least, rel=1e-10)
    assert result.gradient_norm < 1e-6 * abs(least)
    M = rng.standard_normal((5, 1))
    assert minimize(lambda V: -np.sum(M * V), n=(5, 1)).value == pytest.approx(-np.linalg.norm(M), rel=1e-10)


def test_autograd_differentiates_functions_of_few_columns():
    import autograd.numpy as anp

    _, S, least = brockett(12, 2)
    weights = np.array([2.0, 1.0])
    wrapped = autodiff.autograd(lambda V: anp.sum(weights * V * anp.dot(S, V)))
    assert minimize(wrapped, n=(12, 2), jac=True, random_state=0).value == pytest.approx(least, rel=1e-12)


@pytest.mark.parametrize("exponent", [-200, -20, 20, 200])
def test_scaled_functions_have_the_same_minimum(exponent):
    plain = minimize(brockett(8, 3)[0], n=(8, 3), jac=True, random_state=0)
    far = Function(brockett(8, 3, scale=10.0**exponent)[0], (8, 3), jac=True, check=False)
    scaled = minimize(far, random_state=0)
    np.testing.assert_allclose(np.abs(scaled.U), np.abs(plain.U), atol=1e-6)
    assert scaled.converged
    assert scaled.value == pytest.approx(plain.value * 10.0**exponent, rel=1e-9)


def test_a_start_tells_the_number_of_columns():
    f, _, least = brockett(9, 2)
    start = random_orthogonal(9, 0, columns=2)
    result = minimize(f, start, jac=True)
    assert result.U.shape == (9, 2)
    assert result.trace.value[0] == pytest.approx(f(start)[0])
    again = minimize(f, result.U, jac=True)
    assert again.converged, again.message
    assert again.value == pytest.approx(least, rel=1e-12)
    objective = Function(f, (9, 2), jac=True)
    assert np.array_equal(minimize(objective, start).U, result.U)


def test_threads_and_repetitions_give_the_same_bits():
    f = log_cosh(20, 3)
    runs = [
        minimize(f, n=(20, 3), jac=True, n_starts=4, threads=threads, random_state=1)
        for threads in (1, 2, None)
    ]
    for run in runs[1:]:
        assert np.array_equal(run.U, runs[0].U)
        assert np.array_equal(run.starts, runs[0].starts)
    assert len(runs[0].starts) == 4
    assert "the best of 4 starts" in runs[0].message
    assert runs[0].value <= runs[0].starts.min()


def test_a_callback_sees_n_x_m_matrices():
    seen = []
    f, _, _ = brockett(9, 2)
    minimize(f, n=(9, 2), jac=True, random_state=0, callback=lambda s: seen.append((s.U.copy(), s.value)))
    assert seen
    for V, value in seen:
        assert orthogonality(V) < 1e-13
        assert f(V)[0] == pytest.approx(value, rel=1e-10)


def test_a_run_at_rest_from_its_start_says_so():
    _, S, _ = brockett(9, 2)
    vectors = np.linalg.eigh(S)[1][:, [4, 2]]
    weights = np.array([2.0, 1.0])
    result = minimize(
        lambda V: np.sum(weights * V * (S @ V)), vectors, jac=lambda V: 2 * weights * (S @ V), tol=1e-6
    )
    assert result.converged
    assert "may be a saddle point" in result.message


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"method": ["sweep"]}, "there is no method 'sweep'"),
        ({"determinant": 1}, "have no determinant"),
        ({"n": (6, 0)}, "m must be a whole number from 1 to 6"),
        ({"n": (6, 7)}, "m must be a whole number from 1 to 6"),
        ({"n": (6, 2.5)}, "m must be a whole number"),
        ({"start": np.eye(6)[:, :3]}, "start must be a matrix of 2 columns, got shape"),
        ({"start": np.ones((6, 2))}, "start must be orthogonal"),
        ({"start": [[1.0, 0.0], [0.0]]}, "start must be an array, got a sequence of unequal parts"),
        ({"start": np.eye(5)[:, :2]}, "start is of order 5, but U is of order 6"),
    ],
)
def test_what_makes_no_sense_for_few_columns_is_refused(options, sentence):
    f, _, _ = brockett(6, 2)
    arguments = {"n": (6, 2), "jac": True, **options}
    with pytest.raises(ValueError, match=sentence):
        minimize(f, **arguments)


@pytest.mark.parametrize("schedule", ["tournament", "random", "cyclic", "gradient", Tournament(block=4)])
@pytest.mark.parametrize("jac", [True, None])
def test_rotations_of_two_columns_find_the_minimum_too(schedule, jac):
    f, _, least = brockett(6, 2)
    g = f if jac else lambda V: f(V)[0]
    objective = Function(g, (6, 2), degree=2, jac=jac)
    result = minimize(objective, method=schedule, random_state=0, max_iter=400)
    assert result.converged, result.message
    assert result.rotations > 0
    assert "rotations" in result.method
    assert result.U.shape == (6, 2)
    assert result.orthogonality < 1e-13
    assert result.value == pytest.approx(least, rel=1e-9)
    assert np.all(np.diff(result.trace.value) <= 1e-12 * abs(least))


def test_a_certificate_finds_a_way_out_of_a_saddle_point_and_is_exact():
    f, S, least = brockett(8, 2)
    saddle = np.linalg.eigh(S)[1][:, [7, 3]]
    objective = Function(f, (8, 2), degree=2, jac=True)
    result = minimize(objective, saddle, tol=1e-6, certify=True)
    assert result.converged, result.message
    assert result.value < f(saddle)[0] - 0.1 * abs(least)
    assert result.certificate.pairs == 1 + 2 * 6
    assert result.certificate.gain <= 1e-9 * abs(least)
    assert "certified by" in result.method
    assert "exact searches" in result.method
    share = minimize(f, n=(8, 2), jac=True, certify=0.5, random_state=0)
    assert share.certificate.pairs == 6


def test_a_kink_ends_descent_and_sweeps_go_on():
    M = np.random.default_rng(0).standard_normal((12, 5))
    options = {"n": (5, 2), "random_state": 0}
    alone = minimize(lambda V: np.sum(np.abs(M @ V)), **options)
    both = minimize(lambda V: np.sum(np.abs(M @ V)), method=["descent", "sweeps"], **options)
    assert not alone.converged
    assert "no step of the phase 'descent' lowers f" in alone.message
    assert both.converged
    assert both.sweeps > 0
    assert both.value < alone.value + 1e-12


def test_wrong_gradients_are_found():
    f, _, _ = brockett(6, 2)
    with pytest.raises(ValueError, match=r"matrix of shape \(6, 2\), but it returned shape \(6, 6\)"):
        minimize(lambda V: f(V)[0], n=(6, 2), jac=lambda V: np.ones((6, 6)))
    with pytest.raises(ValueError, match="jac disagrees with f"):
        minimize(lambda V: f(V)[0], n=(6, 2), jac=lambda V: -f(V)[1])
    with pytest.raises(TypeError, match="a matrix of 6 x 2 real numbers"):
        minimize(lambda V: f(V)[0], n=(6, 2), jac=lambda V: None)


@pytest.mark.parametrize("with_gradient", [True, False])
def test_descent_stays_inside_a_barrier(with_gradient):
    A = np.random.default_rng(0).standard_normal((12, 12))
    A, refused = A + A.T, []

    def f(V):
        room = V[0, 0] - 0.2
        if room <= 0:
            refused.append(V)
            return np.inf, None
        E = -2 * A @ V
        E[0, 0] -= 0.1 / room
        return -np.trace(V.T @ A @ V) - 0.1 * np.log(room), E

    start = np.eye(12)[:, :2]
    result = minimize(f if with_gradient else lambda V: f(V)[0], start, jac=with_gradient)
    assert refused
    assert result.converged
    assert result.U[0, 0] > 0.2
    assert result.value == pytest.approx(minimize(f, start, jac=True, random_state=1).value, rel=1e-9)
