"""The pair problem of fourth-order contrasts against the stationary points that a polynomial's roots give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial import polynomial

from givens.kernels.quartic import solve_pairs

EPS = float(np.finfo(np.float64).eps)


def criterion(x, y, theta, kappa):
    """Σ z⁴ − κ(Σ z²)² of z = x cos θ + y sin θ, for one angle or several."""
    z = np.multiply.outer(np.cos(theta), x) + np.multiply.outer(np.sin(theta), y)
    return np.sum(z**4, axis=-1) - kappa * np.sum(z**2, axis=-1) ** 2


def largest(x, y, kappa, sign):
    """The maximum over all angles: the criterion, a quartic in tan θ over (1 + tan² θ)², at its stationary points."""
    rows = np.stack([x, y], axis=1)
    power = np.zeros(5)
    for row in rows:
        power += polynomial.polypow(row, 4)
    square = np.zeros(3)
    for row in rows:
        square += polynomial.polypow(row, 2)
    power -= kappa * polynomial.polymul(square, square)
    slope = polynomial.polysub(
        polynomial.polymul(polynomial.polyder(power), [1.0, 0.0, 1.0]), polynomial.polymul(power, [0.0, 4.0])
    )
    angles = np.arctan(polynomial.polyroots(polynomial.polytrim(slope, 0.0)).real)
    angles = np.concatenate([[0.0, np.pi / 2], angles])
    return float(np.max(sign * criterion(x, y, angles, kappa)))


def solved(Y, kappa, sign):
    """The best angle of two columns, the second of which is inactive, and its gain."""
    out = np.empty((1, 2))
    solve_pairs(Y, np.array([[0, 1]]), 1, kappa, sign, out)
    return out[0]


def random_columns(rng):
    """Few rows or many, heavy tails, dependent, small, of whole numbers, or with two maxima that are nearly equal."""
    x, y = rng.standard_normal((2, int(rng.choice([1, 2, 3, 7, 30])))) ** rng.choice([1, 1, 3])
    kind = rng.integers(6)
    if kind == 0:
        y = rng.standard_normal() * x + 0.1 * y
    elif kind == 1:
        y = y * 10.0 ** rng.integers(-12, 0)
    elif kind == 2:
        x, y = np.round(x), np.round(y)
    elif kind == 3:
        # Maxima near θ = ± an angle, that differ by little.
        x, y = np.concatenate([x, x]), np.concatenate([y, -y * (1 + 1e-6 * rng.standard_normal())])
    unit = 2.0 ** rng.choice([0, 0, -60, 60])
    return unit * x, unit * y


@given(
    seed=st.integers(0, 2**32 - 1), share=st.sampled_from([0.0, 0.3, 1.0, 3.0]), sign=st.sampled_from([1, -1])
)
def test_no_angle_of_a_column_beside_an_inactive_one_is_better(seed, share, sign):
    x, y = random_columns(np.random.default_rng(seed))
    kappa = share / len(x)
    angle, gain = solved(np.stack([x, y]), kappa, float(sign))
    size = (1 + share) * float(np.sum(x**4 + y**4)) + 1e-300
    turned = [sign * float(criterion(x, y, theta, kappa)) for theta in (angle, -angle)]
    before = sign * float(criterion(x, y, 0.0, kappa))
    assert max(turned) >= largest(x, y, kappa, sign) - 100 * EPS * size
    assert min(abs(value - before - gain) for value in turned) <= 100 * EPS * size


@pytest.mark.parametrize("tiny", [1e-3, 1e-9, 1e-15])
def test_a_small_angle_has_all_its_digits(tiny):
    """Of the column (cos t, sin t), whose fourth power is largest when it is rotated back by t."""
    Y = np.array([[np.cos(tiny), 0.0], [np.sin(tiny), 0.0]])
    angle, gain = solved(Y, 0.0, 1.0)
    assert (gain > 0) == (tiny > EPS)
    assert abs(abs(np.sin(angle)) - np.sin(tiny)) <= 4 * EPS * tiny
    assert abs(gain - (1 - np.cos(tiny) ** 4)) <= 4 * EPS
