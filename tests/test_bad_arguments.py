"""Each mistake gets a sentence that says what was wrong."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from givens import SparsePCA, check_objective, metrics, minimize, rotations, sparse_pca_path
from givens.objectives import Columns, Function, JointDiagonal, Kurtosis, Look, Objective, Orthomax, Scalar

NAN = np.array([[1.0, 2.0], [np.nan, 4.0]])


def run(f=lambda U: 0.0, **options):
    options.setdefault("n", 3)
    return minimize(f, **options)


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
    ("call", "error", "message"),
    [
        (
            lambda: run(start=np.ones((3, 4))),
            ValueError,
            r"start must be a square matrix, got shape \(3, 4\)",
        ),
        (lambda: run(start=2 * np.eye(3)), ValueError, r"start must be orthogonal, but .* = 5.2"),
        (lambda: run(start=np.eye(4)), ValueError, "start is of order 4"),
        (lambda: run(n=0), ValueError, "n must be a whole number of at least 1, got 0"),
        (lambda: run(n=-2), ValueError, "at least 1, got -2"),
        (lambda: run(n=2.5), ValueError, "got 2.5"),
        (lambda: run(n=None), ValueError, "n, the order of U, is needed"),
        (lambda: run(f=3.0), TypeError, "objective must be an Objective or a function of U, got float"),
        (
            lambda: run(f=lambda U: np.nan),
            ValueError,
            "f must be finite, or inf where it is not defined, but it returned nan",
        ),
        (
            lambda: run(f=lambda U: np.inf),
            ValueError,
            "f is infinite near the rotation where it is first evaluated; give a start",
        ),
        (
            lambda: run(f=lambda U: np.inf, start=np.eye(3)),
            ValueError,
            "f is infinite near the start; give a start around which it is finite",
        ),
        (
            lambda: run(f=lambda U: -np.inf),
            ValueError,
            "f must be finite, or inf where it is not defined, but it returned -inf",
        ),
        (
            lambda: run(f=lambda U: np.float32(1)),
            TypeError,
            "f must compute in double precision, but it returned a number of type float32",
        ),
        (
            lambda: run(start=np.eye(3)[0]),
            ValueError,
            r"start must be a matrix, got shape \(3,\); for a unit vector give start.reshape\(-1, 1\)",
        ),
        (
            lambda: run(f=lambda U: U[0]),
            TypeError,
            r"must return one real number, but it returned an array of shape \(3,\); sum it",
        ),
        (lambda: run(f=lambda U: 1j), TypeError, "f must return one real number, but it returned complex"),
        (lambda: run(f=lambda U: np.complex128(1)), TypeError, "but it returned complex"),
        (lambda: run(f=lambda U: None), TypeError, "it returned NoneType"),
        (lambda: run(f=lambda U: "1"), TypeError, "it returned str"),
        (lambda: run(method="spiral"), ValueError, "no method 'spiral'"),
        (lambda: run(method=3), ValueError, "no method 3"),
        (lambda: minimize(Unsloped(), method="gradient"), ValueError, "needs slopes, which this objective"),
        (lambda: run(determinant=0), ValueError, "determinant must be 1, -1, 'both' or None, got 0"),
        (lambda: run(n_starts=0), ValueError, "n_starts must be a whole number of at least 1, got 0"),
        (lambda: run(n_starts=1.5), ValueError, "n_starts must be"),
        (lambda: run(n_starts=2, checkpoint="x.npz"), ValueError, "a checkpoint holds one run, not 2"),
        (lambda: run(threads=0), ValueError, "threads must be"),
        (lambda: run(threads=1.5), ValueError, "threads must be"),
        (lambda: run(tol=-1), ValueError, "tol must be"),
        (lambda: run(tol=np.nan), ValueError, "tol must be"),
        (lambda: run(method=["cyclic", "random"]), ValueError, "at most one schedule"),
        (lambda: run(method=[]), ValueError, "at least one phase"),
        (lambda: run(max_iter=-1), ValueError, "max_iter must be"),
        (lambda: run(max_iter=2.5), ValueError, "max_iter must be"),
        (lambda: run(tol="small"), ValueError, "tol must be a number of at least 0, got 'small'"),
        (lambda: run(max_iter="many"), ValueError, "max_iter must be a whole number"),
        (lambda: run(max_iter=np.nan), ValueError, "max_iter must be a whole number"),
        (lambda: run(random_state="seven"), ValueError, "random_state must be .*, got 'seven'"),
        (lambda: run(random_state=-1), ValueError, "random_state must be .*, got -1"),
        (lambda: run(callback=3), TypeError, "callback must be a function of a Snapshot, got int"),
        (lambda: run(checkpoint=3), TypeError, "checkpoint must be a path or a Checkpoint, got int"),
        (lambda: Function(3, 2), TypeError, "f must be a function of U, got int"),
        (
            lambda: check_objective(lambda U: 0.0),
            TypeError,
            r"an Objective, got function: wrap it in objectives.Function\(f, n\)",
        ),
        (lambda: check_objective(3), TypeError, "objective must be an Objective, got int"),
        (
            lambda: Columns(scipy.sparse.eye_array(3), "varimax"),
            TypeError,
            r"A must be dense, .* pass A.toarray\(\)",
        ),
        (lambda: JointDiagonal([np.eye(2), np.eye(3)]), ValueError, "a sequence of unequal parts"),
        (
            lambda: metrics.adjusted_variance(scipy.sparse.eye_array(3), np.eye(3)),
            TypeError,
            r"X must be dense, .* pass X.toarray\(\)",
        ),
        (lambda: rotations.random_orthogonal(3, "seed"), ValueError, "random_state must be"),
        (lambda: sparse_pca_path(np.eye(3), 1, thresholds=[]), ValueError, "at least one threshold"),
        (
            lambda: SparsePCA(2, n_nonzero=1).fit(np.eye(3)).inverse_transform(np.ones((1, 3))),
            ValueError,
            r"a column for each of 2 components, got shape \(1, 3\)",
        ),
        (lambda: minimize(JointDiagonal(np.eye(3)), n=4), ValueError, "n = 4, but the objective"),
        (lambda: Function(lambda U: 0.0, 3, degree=-1), ValueError, "degree must be"),
        (
            lambda: minimize(Function(lambda U: np.sum(U**3), 4, degree=2)),
            ValueError,
            "not a polynomial of degree 2",
        ),
        (
            lambda: minimize(Function(lambda U: 0.0, 3, jac=lambda U: U[0])),
            ValueError,
            r"jac must return a matrix of shape \(3, 3\), but it returned shape \(3,\)",
        ),
        *(
            (
                lambda wrong=wrong: minimize(lambda U: 0.0, n=3, jac=lambda U: wrong),
                TypeError,
                f"jac must return a matrix of 3 x 3 real numbers, but it returned {kind}",
            )
            for wrong, kind in (
                (None, "None"),
                ("x", "str"),
                ([[1.0, 2.0], [3.0]], "list"),
                (1j * np.eye(3), "complex numbers"),
            )
        ),
        (
            lambda: minimize(Function(lambda U: 0.0, 3, jac=lambda U: np.nan * U)),
            ValueError,
            "jac must be finite",
        ),
        (
            lambda: Columns(NAN, "varimax"),
            ValueError,
            r"A must be finite, but 1 entry is not, the first at \(1, 0\): nan",
        ),
        (lambda: Columns(np.full((2, 2), np.inf), "varimax"), ValueError, "4 entries are not"),
        (lambda: Columns(np.ones(3), "varimax"), ValueError, r"A must be a matrix .* got shape \(3,\)"),
        (lambda: Columns(np.ones((0, 3)), "varimax"), ValueError, "at least one row"),
        (lambda: Columns(np.array([["a"]]), "varimax"), TypeError, "A must be numbers"),
        (lambda: Columns(np.ones((2, 2)) * 1j, "varimax"), TypeError, "A must be real"),
        (
            lambda: Columns(np.ones((2, 2)), "oblimin"),
            ValueError,
            "no contrast 'oblimin'; it is one of 'quartimax'",
        ),
        (
            lambda: Columns(np.ones((2, 2)), "varimax", active=3),
            ValueError,
            "active must be between 1 and .* 2, got 3",
        ),
        (lambda: Columns(np.ones((2, 2)), "varimax", active=0), ValueError, "active must be between"),
        (lambda: Orthomax(np.nan), ValueError, "kappa must be finite"),
        (lambda: Kurtosis(2), ValueError, "sign must be 1 or -1"),
        (lambda: JointDiagonal(np.ones((2, 3))), ValueError, r"square, .* got shape \(2, 3\)"),
        (
            lambda: JointDiagonal(NAN),
            ValueError,
            r"matrices must be finite, but 1 entry is not, the first at \(0, 1, 0\)",
        ),
        (lambda: JointDiagonal(np.zeros((0, 2, 2))), ValueError, "matrices must be square"),
    ],
)
def test_mistakes_are_explained(call, error, message):
    with pytest.raises(error, match=message):
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
