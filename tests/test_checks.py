"""`check_objective` finds what is wrong with an objective, and nothing wrong with the library's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from givens import check_objective
from givens.objectives import Columns, Exp, Function, JointDiagonal, Kurtosis, SparseColumns
from givens.schedules import Tournament
from tests.cases import CASES


def wrong(objective, **options):
    """The names of the checks that did not pass."""
    return [
        finding.name
        for finding in check_objective(objective, grid=60, **options).findings
        if not finding.passed
    ]


def detail(objective, name):
    (found,) = (finding for finding in check_objective(objective, grid=60).findings if finding.name == name)
    return found.detail


def square_of_a_sum(separable):
    rng = np.random.default_rng(0)
    S, w = rng.standard_normal((6, 6)), rng.standard_normal(6)
    S = S + S.T

    class Square(Function):
        pass

    Square.separable = separable
    return Square(lambda U: float(np.sum(w * np.diag(U.T @ S @ U)) ** 2), 6, degree=4)


class Changed(Columns):
    """A right objective whose looks are changed."""

    def __init__(self, change, contrast="varimax", only_turned=False):
        super().__init__(np.random.default_rng(1).standard_t(4, size=(40, 5)), contrast)
        self.change, self.only_turned = change, only_turned

    def look(self, state, Q=None, slopes=True):
        look = super().look(state, Q, slopes)
        return look if self.only_turned and Q is None else self.change(look)


def test_gains_that_do_not_add_up_are_found():
    assert wrong(square_of_a_sum(True)) == ["separable"]
    assert "separable must be False" in detail(square_of_a_sum(True), "separable")
    assert check_objective(square_of_a_sum(False), grid=60)


def test_a_gain_that_depends_on_the_other_pairs_of_a_call_is_found():
    class Shared(Columns):
        def solve(self, state, blocks, min_gain=0.0):
            solved = super().solve(state, blocks, min_gain)
            return replace(solved, gains=solved.gains / len(blocks))

    shared = Shared(np.random.default_rng(1).standard_t(4, size=(40, 5)), "varimax")
    assert "separable" in wrong(shared)
    assert "depends on the other pairs" in detail(shared, "separable")


def with_one_nan(array):
    array = array.copy()
    array[0, 1] = array[1, 0] = np.nan
    return array


@pytest.mark.parametrize("spoil", [with_one_nan, lambda array: np.full_like(array, np.nan)])
def test_curvatures_that_are_nan_are_found(spoil):
    objective = Changed(lambda look: look._replace(curvatures=spoil(look.curvatures)))
    assert wrong(objective) == ["curvatures"]


def test_slopes_at_a_turned_matrix_that_are_nan_are_found():
    objective = Changed(
        lambda look: look._replace(slopes=np.full_like(look.slopes, np.nan)), only_turned=True
    )
    assert wrong(objective) == ["turned look"]


@pytest.mark.parametrize("contrast", ["varimax", "logcosh"])
def test_rotations_and_gains_that_are_nan_are_found(contrast):
    class Lost(Columns):
        def solve(self, state, blocks, min_gain=0.0):
            solved = super().solve(state, blocks, min_gain)
            if not isinstance(blocks, np.ndarray):
                return solved
            return replace(solved, gains=np.full(len(blocks), np.nan), rotations=np.nan * solved.rotations)

    objective = Lost(np.random.default_rng(1).standard_t(4, size=(40, 5)), contrast)
    assert {"gain", "optimum", "separable"} <= set(wrong(objective))


@pytest.mark.parametrize("case", ["varimax", "joint", "tensor", "smooth"])
def test_a_scale_far_above_the_values_is_found(case):
    objective = CASES[case](0)
    objective.scale = 1e30
    assert wrong(objective) == ["scale"]


CONSTANT = {
    "zeros": lambda: Columns(np.zeros((5, 4)), "varimax"),
    "constant": lambda: Columns(np.full((9, 4), 0.37), "varimax"),
    "constant, single precision": lambda: Columns(np.full((9, 4), 0.37, dtype=np.float32), "varimax"),
    "log cosh of zeros": lambda: Columns(np.zeros((5, 4)), "logcosh"),
    "multiples of the identity": lambda: JointDiagonal(0.3 * np.array([np.eye(5), 2 * np.eye(5)])),
    "zero matrices": lambda: JointDiagonal(np.zeros((2, 5, 5))),
    "nothing above the threshold": lambda: SparseColumns(np.ones((5, 4)), 100.0),
    "the function 0": lambda: Function(lambda U: 0.0, 4),
    "the function 3": lambda: Function(lambda U: 3.0, 4),
    "a constant and a little": lambda: Function(lambda U: 1e9 + U[0, 0], 3, degree=1),
    "order 1": lambda: Columns(np.ones((3, 1)), "varimax"),
    "powers that underflow": lambda: Columns(1e-150 * np.arange(12.0).reshape(4, 3), "varimax"),
}


@pytest.mark.parametrize("case", CONSTANT)
def test_functions_that_hardly_change_are_right(case):
    report = check_objective(CONSTANT[case](), grid=60)
    assert report, str(report)


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (("foo",), "there is no method 'foo'"),
        ((), "must name at least one phase"),
        ((Tournament(block=3), Tournament(block=4)), "at most one schedule"),
    ],
)
def test_a_method_that_cannot_run_is_found(method, sentence):
    objective = JointDiagonal(np.random.default_rng(0).standard_normal((2, 4, 4)))
    objective.method = method
    assert "method" in wrong(objective)
    assert sentence in detail(objective, "method")


@pytest.mark.parametrize("contrast", ["varimax", "exp", Kurtosis(-1)])
def test_data_in_single_precision_are_right(contrast):
    rng = np.random.default_rng(0)
    A = (rng.standard_t(4, size=(40, 6)) @ rng.standard_normal((6, 6))).astype(np.float32)
    report = check_objective(Columns(A, contrast), pairs=6, grid=60)
    assert report, str(report)


@pytest.mark.parametrize("name", ["slopes", "curvatures"])
def test_wrong_derivatives_are_found_in_single_precision(name):
    class Half(Columns):
        def look(self, state, Q=None, slopes=True):
            look = super().look(state, Q, slopes)
            return look._replace(**{name: 0.5 * getattr(look, name)})

    A = np.random.default_rng(0).standard_t(4, size=(40, 6)).astype(np.float32)
    assert name in wrong(Half(A, Exp()))


class Bare(JointDiagonal):
    """An objective whose attributes are changed or left out."""

    def __init__(self, **attributes):
        super().__init__(np.random.default_rng(0).standard_normal((2, 4, 4)))
        for name, value in attributes.items():
            if value is None:
                delattr(self, name)
            else:
                setattr(self, name, value)


@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ({"shape": None}, "shape is missing"),
        ({"shape": 4}, "shape must be that of U, a pair of numbers, got 4"),
        ({"active": None}, "active is missing"),
        ({"shape": (2.5, 2.5)}, "n must be a whole number"),
        ({"active": 5}, "active must be a whole number from 1 to 4, the order n, got 5"),
        ({"scale": 0.0}, "scale must be a positive and finite number, got 0.0"),
        ({"scale": float("nan")}, "scale must be"),
        ({"scale": float("inf")}, "scale must be"),
        ({"scale": "large"}, "scale must be a positive and finite number, got 'large'"),
        ({"factor": float("nan")}, "factor must be"),
        ({"separable": "yes"}, "separable must be True or False, got 'yes'"),
    ],
)
def test_a_missing_or_impossible_attribute_is_a_finding(attributes, sentence):
    report = check_objective(Bare(**attributes))
    assert not report
    assert [finding.name for finding in report.findings] == ["attributes"]
    assert sentence in str(report)


class Blocked(SparseColumns):
    """Sparse columns whose gains of blocks are changed."""

    def __init__(self, times):
        A = np.random.default_rng(0).standard_t(4, size=(2000, 6))
        super().__init__(A, gamma=0.2 * float(np.linalg.norm(A, axis=1).max()))
        self.times = times

    def solve(self, state, blocks, min_gain=0.0):
        solved = super().solve(state, blocks, min_gain)
        return solved if isinstance(blocks, np.ndarray) else replace(solved, gains=self.times * solved.gains)


def test_the_gain_of_a_block_may_be_a_lower_bound_but_no_upper_one():
    assert wrong(Blocked(1.0)) == []
    assert wrong(Blocked(0.9)) == []
    assert wrong(Blocked(1.1)) == ["blocks"]
