"""Elementary functions that vectorise, against NumPy's."""

import math

import numba
import numpy as np
import pytest

from givens.kernels import elementary
from givens.kernels.elementary import vectorised

NAMES = ("exp", "log", "log1p", "tanh", "cosh")


def on_array(function):
    @numba.njit
    def loop(x, out):
        for k in range(x.size):
            out[k] = function(x[k])
        return out

    return lambda x: loop(x, np.empty_like(x))


@pytest.mark.parametrize("name", NAMES)
def test_within_four_units_in_the_last_place(name):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.standard_normal(20_000) * size for size in (1e-300, 1e-9, 1e-3, 0.1, 1, 10, 150)])
    ours = on_array(getattr(elementary, name))(x)
    with np.errstate(all="ignore"):
        theirs = getattr(np, name)(x)
    sure = np.isfinite(theirs) & (np.abs(x) <= 700)
    assert sure.any()
    assert np.array_equal(np.isfinite(ours[np.abs(x) <= 700]), np.isfinite(theirs[np.abs(x) <= 700]))
    assert (np.abs(ours - theirs)[sure] <= 4 * np.spacing(np.abs(theirs[sure]))).all()


@pytest.mark.parametrize("name", NAMES)
def test_zero_infinities_and_nan(name):
    x = np.array([0.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(on_array(getattr(elementary, name))(x), getattr(np, name)(x))


def test_functions_of_numpy_and_math_are_replaced_wherever_they_are_named():
    from math import log1p

    tail = np.tanh

    def function(y):
        return math.exp(-y * y) + np.exp(-y) + tail(y) + log1p(y * y) + np.sqrt(abs(y)) + np.pi

    compiled = on_array(vectorised(function))
    x = np.linspace(-3, 3, 101)
    assert compiled(x) == pytest.approx(np.array([function(y) for y in x]), rel=1e-14)
    # The function itself is as it was.
    assert function.__globals__["np"] is np


def test_a_compiled_function_is_taken_as_it_is():
    mine = numba.njit(lambda y: y * y)
    assert vectorised(mine) is mine


def test_what_is_no_function_of_python_is_refused():
    with pytest.raises(TypeError, match="must be Python functions"):
        vectorised(np.tanh)
