from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from givens import minimize
from givens.objectives import Function
from givens.objectives.harmonics import Harmonics, _minimum, periodic, polynomial
from tests.oracles.harmonics import minimum as plain_minimum
from tests.properties import examples

COEFFICIENTS = st.floats(-1, 1).map(lambda x: 0.0 if abs(x) < 1e-3 else x)


def minimum_by_roots(g: Harmonics) -> float:
    """The oracle: critical points are the roots of a polynomial of degree 2p in exp(iθ)."""
    k = np.arange(len(g.a))
    c = np.zeros(2 * g.order + 1, dtype=complex)
    slope = 0.5 * k * (g.b + 1j * g.a)  # the derivative's coefficients at exp(ikθ)
    c[g.order :] += slope
    c[: g.order + 1] += np.conj(slope)[::-1]
    theta = np.concatenate(([0.0], np.angle(np.roots(c[::-1]))))
    return float(g(theta).min())


@given(st.integers(1, 6), st.data())
def test_minimum_equals_that_of_all_critical_points(order, data):
    a = data.draw(arrays(float, order + 1, elements=COEFFICIENTS))
    b = data.draw(arrays(float, order + 1, elements=COEFFICIENTS))
    b[0] = 0
    g = Harmonics(a, b)
    theta, gain = plain_minimum(g)
    size = np.hypot(a[1:], b[1:]).sum()
    assert -np.pi <= theta <= np.pi
    assert g(0.0) - gain <= minimum_by_roots(g) + 1e-12 * size
    assert abs(g(0.0) - g(theta) - gain) <= 1e-14 * max(size, np.abs(a).sum(), 1e-300) * 8


@given(st.integers(1, 64), st.integers(0, 100_000), st.booleans())
def test_the_compiled_minimum_equals_the_plain_one(order, seed, near):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, order + 1))
    if near:  # close to a minimum at 0
        a, b = -np.abs(a), 1e-9 * b
    b[0] = 0
    g = Harmonics(a, b)
    size = np.hypot(a[1:], b[1:]).sum()
    theta, gain = _minimum(Harmonics(a, b), 0.0)
    plain, plain_gain = plain_minimum(g)
    assert -np.pi <= theta <= np.pi
    assert abs(gain - plain_gain) <= 1e-13 * size
    assert abs(theta - plain) <= 1e-7
    if near and plain_gain > 0:
        assert gain == pytest.approx(plain_gain, rel=1e-6)


@pytest.mark.parametrize("minimum", [plain_minimum, lambda g: _minimum(g, 0.0)])
def test_equal_optima_are_broken_by_the_smallest_angle(minimum):
    theta, gain = minimum(Harmonics(np.array([0, 0, 0, 0, -1.0]), np.zeros(5)))  # minima at 0, ±π/2, π
    assert theta == 0
    assert gain == 0
    theta, _ = minimum(Harmonics(np.array([0, 0, -1.0]), np.zeros(3)))
    assert theta == 0
    theta, _ = minimum(
        Harmonics(np.array([0, 0, 0, 0, 1.0]), np.array([0, 0, 0, 0, 1e-3]))
    )  # near ±π/4, ±3π/4
    assert abs(theta) < np.pi / 4 + 1e-3


@pytest.mark.parametrize("minimum", [plain_minimum, lambda g: _minimum(g, 0.0)])
def test_a_turn_too_small_for_values_is_still_found(minimum):
    tiny = 1e-10
    g = Harmonics(
        np.array([5.0, -1.0]), np.array([0.0, -tiny])
    )  # −cos θ − tiny·sin θ: the minimum is at θ = tiny
    theta, gain = minimum(g)
    assert theta == pytest.approx(tiny, rel=1e-6)
    assert gain == pytest.approx(tiny**2 / 2, rel=1e-5)


@examples(60)
@given(st.integers(1, 64), st.integers(0, 100_000), st.booleans())
def test_any_function_of_up_to_64_harmonics_is_minimised_globally(order, seed, sparse):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, order + 1))
    if sparse:  # a lone high harmonic is what a coarse grid takes for a constant
        a[1:order], b[1:order] = 0, 0
    b[0] = 0
    g = Harmonics(a, b)
    found = periodic(lambda t: float(g(t)), float(g(0.0)))
    grid = g(np.linspace(0, 2 * np.pi, 40 * order + 1000))
    spread = np.ptp(grid)
    assert found.resolved
    assert g(found.theta) <= grid.min() + 1e-10 * spread
    assert g(found.theta) <= g(0.0) - plain_minimum(g)[1] + 1e-10 * spread


def test_more_than_64_harmonics_are_admitted_and_never_make_it_worse():
    def rough(t: float) -> float:
        return abs(np.sin(3 * t + 1)) + 0.3 * np.sign(np.sin(t - 2))

    found = periodic(rough, rough(0.0))
    assert not found.resolved
    assert rough(found.theta) <= rough(0.0) - found.gain + 1e-12


def test_a_constant_is_left_alone():
    found = periodic(lambda t: 7.0, 7.0)
    assert (found.theta, found.gain, found.resolved) == (0.0, 0.0, True)


@given(arrays(float, (3, 2), elements=st.floats(-10, 10)))
def test_polynomial_needs_exactly_2p_plus_1_evaluations(M):
    calls = []

    def g(theta: float) -> float:
        calls.append(theta)
        c, s = np.cos(theta), np.sin(theta)
        return float(np.sum((c * M[:, 0] + s * M[:, 1]) ** 3))

    found = polynomial(g, g(0.0), 3)
    assert len(calls) == 7
    grid = np.linspace(-np.pi, np.pi, 721)
    lowest = min(g(t) for t in grid)
    assert g(found.theta) <= lowest + 1e-11 * max(1.0, np.abs(M).max() ** 3)


@pytest.mark.parametrize("size", [6, 8, 12])
def test_what_harmonics_cannot_resolve_is_polished_by_differences(size):
    x = np.random.default_rng(size).standard_normal((5, 2)) * size / 2

    def g(theta):
        return float(np.sum(np.log(np.cosh(x @ np.array([np.cos(theta), np.sin(theta)])))))

    found = periodic(g, g(0.0), noise=1e-13)
    assert not found.resolved
    assert g(found.theta) <= min(g(theta) for theta in np.linspace(-np.pi, np.pi, 10_001))
    assert abs(g(0.0) - g(found.theta) - found.gain) <= 1e-10 * g(0.0)
    step = 1e-5
    slope = (g(found.theta + step) - g(found.theta - step)) / (2 * step)
    assert abs(slope) <= 1e-8 * g(0.0)


def test_a_function_of_more_harmonics_than_allowed_still_loses_its_gradient():
    A = 4 * np.random.default_rng(0).standard_normal((10, 4))
    f = Function(lambda U: float(np.sum(np.log(np.cosh(A @ U)))), 4, jac=lambda U: A.T @ np.tanh(A @ U))
    result = minimize(f, random_state=0, method="tournament")
    assert "more than 64 harmonics" in result.message
    assert result.gradient_norm <= 1e-8 * abs(result.value)
