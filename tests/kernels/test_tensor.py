import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from givens.kernels import tensor as kernels
from tests.oracles.cubic import cubic
from tests.properties import examples
from tests.tensor_data import ORDERS

GRID = np.linspace(-np.pi, np.pi, 2_001)


def g(coefficients, c, s):
    A, B, D, E = np.asarray(coefficients, float).T[..., None] if np.ndim(coefficients) == 2 else coefficients
    return A * c**3 + 3 * B * c**2 * s + 3 * D * c * s**2 + E * s**3


def directions(coefficients, floor=0.0):
    coefficients = np.ascontiguousarray(np.atleast_2d(np.asarray(coefficients, float)).T)
    out = np.empty((3, coefficients.shape[1]))
    kernels.directions(coefficients, floor, out)
    return out.T


def degenerate(rng, count):
    """Coefficient sets of every kind: generic, diagonal tensors, lost degrees, double roots, wide ranges of size."""
    C = rng.standard_normal((count, 4))
    part = np.array_split(np.arange(count), 8)
    C[part[0], 1:3] = 0.0
    C[part[1], 1:3] *= 1e-9
    C[part[2], 2] = 0.0
    C[part[3]] = rng.integers(-2, 3, (len(part[3]), 4))
    C[part[4]] *= 10.0 ** rng.uniform(-12, 0, (len(part[4]), 4))
    # A form with a double root: (p·t − q)²(r·t − w), integrated to the coefficients of g.
    p, q, r, w = rng.standard_normal((4, len(part[5])))
    cubic = np.array([-q * q * w, q * q * r + 2 * p * q * w, -2 * p * q * r - p * p * w, p * p * r])
    B, D = cubic[0], -cubic[3]
    C[part[5]] = np.column_stack((2 * D - cubic[1], B, D, cubic[2] + 2 * B))
    # Both columns count: A = a+e, B = b−q, D = b+q, E = e−a near a solution.
    a, e = rng.uniform(0, 2, (2, len(part[6])))
    b, q = 0.02 * rng.standard_normal((2, len(part[6])))
    C[part[6]] = np.column_stack((a + e, b - q, b + q, e - a))
    return C


def test_no_angle_of_a_fine_grid_is_better():
    C = degenerate(np.random.default_rng(0), 10_000)
    found = directions(C)
    c, s, gain = found.T
    assert np.allclose(c**2 + s**2, 1, atol=1e-15, rtol=0)
    size = np.abs(C).sum(axis=1)
    values = g(C, c[:, None], s[:, None])[:, 0]
    best = np.empty(len(C))
    for part in np.array_split(np.arange(len(C)), 20):
        best[part] = g(C[part], np.cos(GRID), np.sin(GRID)).max(axis=1)
    assert np.all(values >= best - 1e-14 * size)
    assert np.allclose(gain, values - C[:, 0], atol=1e-14 * size.max(), rtol=1e-12)


def test_agrees_with_the_plain_closed_form():
    C = degenerate(np.random.default_rng(1), 1_000)
    gains = np.array([cubic(*row)[1] for row in C])
    assert np.allclose(directions(C)[:, 2], gains, atol=1e-12 * np.abs(C).max(), rtol=0)


numbers = st.one_of(
    st.just(0.0), st.integers(-3, 3).map(float), st.floats(-4, 4, allow_nan=False, allow_subnormal=False)
)


@examples(100)
@given(arrays(np.float64, (100, 4), elements=numbers, fill=st.nothing()))
def test_optimal_for_any_coefficients(C):
    c, s, gain = directions(C).T
    size = np.abs(C).sum(axis=1)
    best = g(C, np.cos(GRID), np.sin(GRID)).max(axis=1)
    assert np.all(g(C, c[:, None], s[:, None])[:, 0] >= best - 1e-13 * size)
    assert np.all(gain >= 0)
    # The plain closed form takes its time: some of them are enough.
    theta, plain = np.array([cubic(*row) for row in C[:5]]).T
    assert np.all(np.abs(gain[:5] - plain) <= 1e-12 * size[:5])
    assert np.all(
        g(C[:5], np.cos(theta)[:, None], np.sin(theta)[:, None])[:, 0] >= best[:5] - 1e-12 * size[:5]
    )


def test_a_quarter_turn_is_not_lost():
    # A diagonal tensor whose second weight is negative: the columns change places, one with its sign.
    c, s, gain = directions([2.0 - 1.0, 0.0, 0.0, -1.0 - 2.0])[0]
    assert (abs(c) < 1e-15, s, gain) == (True, -1.0, 2.0)


def test_equal_optima_stay_where_they_are():
    # Equal weights: exchanging the columns would gain nothing.
    assert directions([2.0, 0.0, 0.0, 0.0])[0].tolist() == [1.0, 0.0, 0.0]
    assert directions([1.0, 0.0, 0.0, 1.0], floor=1e-15)[0].tolist() == [1.0, 0.0, 0.0]
    assert directions([0.0, 0.0, 0.0, 0.0])[0].tolist() == [1.0, 0.0, 0.0]


def test_tiny_angles_are_exact():
    # θ ≈ B/(A − 2D), relative to which the error must be small even where the gain is far below rounding of A.
    for B in 10.0 ** np.arange(-15, -3):
        c, s, gain = directions([3.0, B, 0.01, 0.5], floor=1e-15)[0]
        assert np.isclose(s, B / (3 - 0.02), rtol=1e-2 * B + 1e-15)
        assert np.isclose(gain, 1.5 * B**2 / (3 - 0.02), rtol=B + 1e-13)
        assert c <= 1


def test_the_short_cut_finds_what_the_closed_form_finds():
    rng = np.random.default_rng(2)
    A = rng.uniform(0.5, 2, 1_000)
    E = A * rng.uniform(-1, 1, 1_000)
    B, D = rng.standard_normal((2, 1_000)) * np.minimum(A - np.abs(E), 0.07 * A)
    C = np.column_stack((A, B, D, E))
    taken = 1.16 * (np.abs(B) + np.abs(D)) <= np.minimum(A - np.abs(E), 0.07 * A)
    assert 0.2 < taken.mean() < 0.8
    plain = np.array([cubic(*row)[0] for row in C])
    c, s, _ = directions(C).T
    apart = np.angle(np.exp(1j * (np.arctan2(s, c) - plain)))
    # Other optima are equal only by accident, so angles can be compared, to what np.roots can do.
    assert np.abs(apart).max() < 1e-6


@pytest.mark.parametrize("d", [1, 2, 3, 7, 16, 17, 33, 50])
def test_a_tensor_is_the_mean_over_the_six_orders(d):
    T = np.random.default_rng(d).standard_normal((d, d, d))
    mean = sum(T.transpose(order) for order in ORDERS) / 6
    places = [np.abs(T - T.transpose(order)).max() for order in ORDERS]
    averaged = T.copy()
    assert kernels.symmetrize(averaged) == pytest.approx(max(places), rel=1e-14)
    assert np.allclose(averaged, mean, atol=1e-14, rtol=0)
    symmetric_to_the_last_bit = averaged.copy()
    assert kernels.symmetrize(averaged) == 0
    assert np.array_equal(averaged, symmetric_to_the_last_bit)
