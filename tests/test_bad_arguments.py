"""Each mistake gets a sentence that says what was wrong."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from givens import SparsePCA, check_objective, minimize, rotations, sparse_pca_path
from givens.objectives import Columns, Function, JointDiagonal, Kurtosis, Look, Objective, Orthomax, Scalar

NAN = np.array([[1.0, 2.0], [np.nan, 4.0]])
ONES = np.ones((2, 2))


class Unsloped(Objective):
    """Says nothing of its slopes."""

    shape, active = (3, 3), 3

    def state(self, U):
        return None

    def look(self, state, Q=None, slopes=True):
        return Look(0.0)

    def solve(self, state, blocks, min_gain=0.0):
        raise AssertionError("nothing is to be solved")

    def apply(self, state, blocks, rotations, solutions=None):
        return 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": np.ones((3, 4))}, r"start must be a square matrix, got shape \(3, 4\)"),
        ({"start": 2 * np.eye(3)}, r"start must be orthogonal, but .* = 5.2"),
        ({"start": np.eye(4)}, "start is of order 4"),
        ({"start": np.eye(3)[0]}, r"got shape \(3,\); for a unit vector give start.reshape\(-1, 1\)"),
        ({"n": 0}, "n must be a whole number of at least 1, got 0"),
        ({"n": 2.5}, "got 2.5"),
        ({"n": None}, "n, the order of U, is needed"),
        ({"method": "spiral"}, "no method 'spiral'"),
        ({"method": 3}, "no method 3"),
        ({"method": ["cyclic", "random"]}, "at most one schedule"),
        ({"method": []}, "at least one phase"),
        ({"determinant": 0}, "determinant must be 1, -1, 'both' or None, got 0"),
        ({"n_starts": 0}, "n_starts must be a whole number of at least 1, got 0"),
        ({"n_starts": 1.5}, "n_starts must be"),
        ({"n_starts": 2, "checkpoint": "x.npz"}, "a checkpoint holds one run, not 2"),
        ({"threads": 0}, "threads must be"),
        ({"threads": 1.5}, "threads must be"),
        ({"tol": -1}, "tol must be"),
        ({"tol": np.nan}, "tol must be"),
        ({"tol": "small"}, "tol must be a number of at least 0, got 'small'"),
        ({"max_iter": -1}, "max_iter must be"),
        ({"max_iter": 2.5}, "max_iter must be"),
        ({"max_iter": "many"}, "max_iter must be a whole number"),
        ({"max_iter": np.nan}, "max_iter must be a whole number"),
        ({"random_state": "seven"}, "random_state must be .*, got 'seven'"),
        ({"random_state": -1}, "random_state must be .*, got -1"),
        ({"callback": 3}, "callback must be a function of a Snapshot, got int"),
        ({"checkpoint": 3}, "checkpoint must be a path or a Checkpoint, got int"),
        (
            {"jac": lambda U: U[0]},
            r"jac must return a matrix of shape \(3, 3\), but it returned shape \(3,\)",
        ),
        ({"jac": lambda U: np.nan * U}, "jac must be finite"),
        ({"jac": lambda U: None}, "jac must return a matrix of 3 x 3 real numbers, but it returned None"),
        ({"jac": lambda U: "x"}, "3 x 3 real numbers, but it returned str"),
        ({"jac": lambda U: [[1.0, 2.0], [3.0]]}, "3 x 3 real numbers, but it returned list"),
        ({"jac": lambda U: 1j * U}, "3 x 3 real numbers, but it returned complex numbers"),
    ],
)
def test_mistakes_in_arguments_of_minimize_are_explained(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        minimize(lambda U: 0.0, **({"n": 3} | options))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "f must be finite, or inf where it is not defined, but it returned nan"),
        (-np.inf, "f must be finite, or inf where it is not defined, but it returned -inf"),
        (np.inf, "f is infinite near the rotation where it is first evaluated; give a start"),
        (np.float32(1), "f must compute in double precision, but it returned a number of type float32"),
        (np.ones(3), r"must return one real number, but it returned an array of shape \(3,\); sum it"),
        (1j, "f must return one real number, but it returned complex"),
        (np.complex128(1), "but it returned complex"),
        (None, "it returned NoneType"),
        ("1", "it returned str"),
    ],
)
def test_functions_that_return_no_number_are_refused(value, message):
    with pytest.raises((ValueError, TypeError), match=message):
        minimize(lambda U: value, n=3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: minimize(3.0, n=3), "objective must be an Objective or a function of U, got float"),
        (
            lambda: minimize(lambda U: np.inf, np.eye(3)),
            "f is infinite near the start; give a start around which",
        ),
        (lambda: minimize(Unsloped(), method="gradient"), "needs slopes, which this objective"),
        (lambda: minimize(JointDiagonal(np.eye(3)), n=4), "n = 4, but the objective"),
        (lambda: Function(3, 2), "f must be a function of U, got int"),
        (lambda: Function(lambda U: 0.0, 3, degree=-1), "degree must be"),
        (lambda: minimize(Function(lambda U: np.sum(U**3), 4, degree=2)), "not a polynomial of degree 2"),
        (lambda: check_objective(lambda U: 0.0), r"got function: wrap it in objectives.Function\(f, n\)"),
        (lambda: check_objective(3), "objective must be an Objective, got int"),
        (lambda: Columns(scipy.sparse.eye_array(3), "varimax"), r"A must be dense, .* pass A.toarray\(\)"),
        (
            lambda: Columns(NAN, "varimax"),
            r"A must be finite, but 1 entry is not, the first at \(1, 0\): nan",
        ),
        (lambda: Columns(np.full((2, 2), np.inf), "varimax"), "4 entries are not"),
        (lambda: Columns(np.ones(3), "varimax"), r"A must be a matrix, got an array of shape \(3,\)"),
        (lambda: Columns(np.ones((0, 3)), "varimax"), "at least one row"),
        (lambda: Columns(np.array([["a"]]), "varimax"), "A must be numbers"),
        (lambda: Columns(ONES * 1j, "varimax"), "A must be real"),
        (lambda: Columns(ONES, "oblimin"), "no contrast 'oblimin'; it is one of 'quartimax'"),
        (
            lambda: Columns(ONES, "varimax", active=3),
            "active must be a whole number from 1 to 2, the number of columns, got 3",
        ),
        (lambda: Columns(ONES, "varimax", active=0), "active must be a whole number"),
        (lambda: Orthomax(np.nan), "kappa must be finite"),
        (lambda: Kurtosis(2), "sign must be 1 or -1"),
        (lambda: JointDiagonal(np.ones((2, 3))), r"square, .* got shape \(2, 3\)"),
        (
            lambda: JointDiagonal(NAN),
            r"matrices must be finite, but 1 entry is not, the first at \(1, 0\)",
        ),
        (lambda: JointDiagonal(np.zeros((0, 2, 2))), "matrices must be square"),
        (lambda: JointDiagonal([np.eye(2), np.eye(3)]), "a sequence of unequal parts"),
        (lambda: rotations.random_orthogonal(3, "seed"), "random_state must be"),
        (lambda: sparse_pca_path(np.eye(3), 1, thresholds=[]), "at least one threshold"),
        (
            lambda: SparsePCA(2, n_nonzero=1).fit(np.eye(3)).inverse_transform(np.ones((1, 3))),
            r"a column for each of 2 components, got shape \(1, 3\)",
        ),
    ],
)
def test_mistakes_are_explained(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_a_contrast_that_overflows_is_found():
    contrast = Scalar(lambda y: np.exp(y * y), lambda y: 2 * y * np.exp(y * y))
    with pytest.raises(ValueError, match="not finite on this data"):
        Columns(np.full((3, 2), 1e3), contrast)


def test_f_may_do_as_it_likes_with_its_argument():
    def f(U):
        value = float(np.sum(U[:, 0] ** 3))
        U[:] = 99
        return value

    result = minimize(f, n=3, random_state=0)
    assert result.value == pytest.approx(-1)
    assert result.orthogonality < 1e-13


@pytest.mark.parametrize("A", [np.zeros((5, 3)), np.ones((5, 3)), np.eye(3), 1e-320 * np.ones((5, 3))])
def test_degenerate_data_have_an_answer(A):
    for contrast in ("varimax", "quartimax", "kurtosis"):
        result = minimize(Columns(A, contrast))
        assert result.converged
        assert result.orthogonality < 1e-13
    result = minimize(JointDiagonal(A[:3].T @ A[:3]))
    assert result.converged


def test_a_constant_function_is_converged_at_its_start():
    result = minimize(lambda U: 5.0, np.eye(4))
    assert result.converged
    assert np.array_equal(result.U, np.eye(4))
    assert result.rotations == 0


def test_a_rough_function_says_so():
    def rough(U):
        return float(np.sum(np.abs(np.round(3 * U))) + np.sum(np.abs(U)))

    result = minimize(rough, n=3, random_state=0, max_iter=20, method="tournament")
    assert "more than 64 harmonics" in result.message
    values = np.array(result.trace.value)
    assert np.all(np.diff(values) <= 1e-12)
