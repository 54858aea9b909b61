"""Moments of streams against brute force over all rows."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from givens.data.moments import moments_of
from givens.data.passes import TILE_ROWS
from givens.data.rows import Numbers
from givens.data.stream import Stream
from givens.data.third_moments import (
    Basis,
    ThirdMoments,
    contract,
    principal_basis,
    principal_moments,
    whiten,
)
from givens.numerics import parallel
from givens.numerics.scaling import unit_of
from tests.properties import examples


def skewed(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Rows whose third moments do not vanish, far from the origin."""
    rng = np.random.default_rng(seed)
    return rng.exponential(size=(n, d)) @ rng.standard_normal((d, d)) + 3.0


def some_basis(d: int, r: int, seed: int = 1) -> Basis:
    rng = np.random.default_rng(seed)
    return Basis(rng.standard_normal(d), np.linalg.qr(rng.standard_normal((d, d)))[0][:, :r])


def sums_of(state: ThirdMoments) -> list[np.ndarray]:
    return [np.array(getattr(state, name)) for name in state.shapes]


def state_of(basis: Basis, *batches: np.ndarray) -> ThirdMoments:
    state = ThirdMoments(basis).begin(0)
    for batch in batches:
        state.add(batch)
    return state


@pytest.mark.parametrize(
    ("n", "d", "r"), [(50, 4, 2), (TILE_ROWS + 300, 6, 6), (2 * TILE_ROWS, 3, 1), (700, 40, 30), (20, 3, 0)]
)
def test_cumulants_are_the_central_moments(n: int, d: int, r: int) -> None:
    X, basis = skewed(n, d), some_basis(d, r)
    moments = state_of(basis, X).cumulants()
    centred = X - X.mean(axis=0)
    p = centred @ basis.axes
    outside = np.sum((centred - p @ basis.axes.T) ** 2, axis=1)
    size = np.abs(centred).max()
    np.testing.assert_allclose(moments.mean, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(moments.cross, centred.T @ p / n, atol=1e-11 * size**2)
    np.testing.assert_allclose(moments.covariance, p.T @ p / n, atol=1e-11 * size**2)
    np.testing.assert_allclose(moments.third, np.einsum("na,nb,nc->abc", p, p, p) / n, atol=1e-11 * size**3)
    np.testing.assert_allclose(moments.energy, outside.mean(), atol=1e-11 * size**2)
    np.testing.assert_allclose(moments.energy_third, p.T @ outside / n, atol=1e-10 * size**3)


def test_third_moments_are_symmetric() -> None:
    third = state_of(some_basis(8, 7), skewed(300, 8)).cumulants().third
    for order in ((0, 2, 1), (1, 0, 2), (2, 1, 0)):
        np.testing.assert_allclose(third, third.transpose(order), atol=1e-13 * np.abs(third).max())


@examples(25)
@given(cuts=st.lists(st.integers(0, 3 * TILE_ROWS + 17), max_size=6))
def test_any_cut_gives_the_same_sums(cuts: list[int]) -> None:
    X, basis = skewed(3 * TILE_ROWS + 17, 3), some_basis(3, 2)
    for a, b in zip(sums_of(state_of(basis, X)), sums_of(state_of(basis, *np.split(X, sorted(cuts))))):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * np.abs(a).max())


def test_any_number_of_threads_gives_the_same_bits() -> None:
    X, basis = skewed(3 * TILE_ROWS + 17, 3), some_basis(3, 2)
    whole = sums_of(state_of(basis, X))
    with parallel.pool(2):
        for a, b in zip(whole, sums_of(state_of(basis, X))):
            np.testing.assert_array_equal(a, b)


def test_merging_equals_one_stream_and_other_bases_are_refused() -> None:
    X, basis = skewed(5000, 5), some_basis(5, 3)
    one, two = state_of(basis, X[:2000]), state_of(basis, X[2000:])
    before = sums_of(two)
    one.merge(two)
    assert one.count == 5000
    for a, b in zip(sums_of(one), sums_of(state_of(basis, X))):
        np.testing.assert_allclose(a, b, rtol=1e-11)
    for a, b in zip(before, sums_of(two)):
        np.testing.assert_array_equal(a, b)
    for other in (
        some_basis(5, 3, seed=2),
        Basis(basis.origin + 1, basis.axes),
        Basis(basis.origin, basis.axes, 2.0),
    ):
        with pytest.raises(ValueError, match="different bases"):
            one.merge(ThirdMoments(other))
    assert one.count == 5000


def test_principal_rotates_all_moments() -> None:
    X, basis = skewed(800, 6), some_basis(6, 5)
    values, top = state_of(basis, X).cumulants().principal(2)
    direct = state_of(Basis(basis.origin, top.axes), X).cumulants()
    inside = np.linalg.eigvalsh(basis.axes.T @ np.cov(X.T, bias=True) @ basis.axes)[::-1]
    np.testing.assert_allclose(values, inside, rtol=1e-9)
    np.testing.assert_allclose(top.covariance, np.diag(values[:2]), atol=1e-9 * values[0])
    for name in ("cross", "third", "energy", "energy_third"):
        a, b = getattr(top, name), getattr(direct, name)
        np.testing.assert_allclose(a, b, atol=1e-10 * np.abs(b).max(), err_msg=name)


def test_whitening_makes_components_orthonormal() -> None:
    rng = np.random.default_rng(0)
    means, weights = rng.standard_normal((6, 3)), np.array([0.5, 0.3, 0.2])
    M2 = (means * weights) @ means.T
    M3 = np.einsum("i,ai,bi,ci->abc", weights, means, means, means)
    white = whiten(M2, 3)
    V = white.W.T @ means * np.sqrt(weights)
    np.testing.assert_allclose(V.T @ V, np.eye(3), atol=1e-12)
    T = np.einsum("i,ai,bi,ci->abc", weights**-0.5, V, V, V)
    np.testing.assert_allclose(contract(M3, white.W), T, atol=1e-12)
    np.testing.assert_allclose(M2 @ white.W @ V / np.sqrt(weights), means, atol=1e-12)


def test_whitening_counts_the_positive_eigenvalues() -> None:
    with pytest.raises(ValueError, match=r"only 2 positive eigenvalues.*cannot tell 3 components apart"):
        whiten(np.diag([4.0, 1.0, 0.0]), 3)
    with pytest.raises(ValueError, match="only 0 positive eigenvalues"):
        whiten(np.zeros((2, 2)), 2)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_extreme_scales_stay_finite(scale: float) -> None:
    X = skewed(500, 4)
    unit = unit_of(X * scale)
    assert np.frexp(unit)[0] == 0.5
    values, basis = principal_basis(moments_of(X * scale, unit), 2)
    moments = state_of(basis, X * scale).cumulants()
    _, axes = principal_basis(moments_of(X), 2)
    expected = state_of(axes, X).cumulants()
    factor = scale * unit
    signs = np.sign(np.sum(moments.axes * expected.axes, axis=0))
    np.testing.assert_allclose(values[:2], np.diag(expected.covariance) * factor**2, rtol=1e-9)
    np.testing.assert_allclose(
        moments.third, np.einsum("abc,a,b,c->abc", expected.third, *[signs * factor] * 3), rtol=1e-6
    )


def test_a_stream_fixes_its_basis_once() -> None:
    X = skewed(900, 5)
    streams = []
    for cuts in ([], [1, 130, 131, 400], range(50, 900, 50)):
        stream = Stream(200, partial(principal_moments, rank=3), Numbers())
        for batch in np.split(X, list(cuts)):
            stream.add(batch)
        streams.append(stream)
    for stream in streams[1:]:
        assert stream.empty.basis.same(streams[0].empty.basis)
        for a, b in zip(sums_of(stream.total()), sums_of(streams[0].total())):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * np.abs(a).max())
    np.testing.assert_allclose(streams[0].empty.basis.origin, X[:200].mean(axis=0))


def test_a_stream_keeps_its_own_copy_of_what_waits() -> None:
    X = skewed(60, 3)
    stream, buffer = Stream(50, partial(principal_moments, rank=2), Numbers()), np.empty((20, 3))
    for start in range(0, 60, 20):
        buffer[:] = X[start : start + 20]
        stream.add(buffer)
    buffer[:] = np.nan
    np.testing.assert_allclose(stream.total().cumulants().mean, X.mean(axis=0), rtol=1e-12)


def test_a_stream_without_a_basis_cannot_be_merged() -> None:
    one, two = (Stream(10, partial(principal_moments, rank=2), Numbers()) for _ in range(2))
    one.add(skewed(20, 3))
    two.add(skewed(4, 3))
    with pytest.raises(ValueError, match="10 samples fix them, and 4 have come"):
        one.merged(two)
