"""Evaluations of a user's function before the run: its size, and whether its derivatives and its degree are right.

The matrices lie around a fixed random one, or around a start if f is infinite there. They are made by rotations of its columns,
and for n x m matrices of its rows: f may be unchanged where few columns rotate, and a single one has nothing to rotate with.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from givens.numerics.scaling import EPS
from givens.objectives.base import NotFinite
from givens.objectives.harmonics import polynomial
from givens.objectives.pair_angles import rotated
from givens.objectives.values import Values
from givens.rotations import check_orthogonal, random_orthogonal, repair

ANGLES = (0.0, 1.0, 2.0, 4.0)
"""Angles at which f is evaluated; with a gradient, only the first two."""

NEAR = 1e-3
"""The share of these angles near a start."""

REPEATS = 1e-8
"""Relative to the values of f: a larger difference between two values for one matrix is no rounding error."""

AGREEMENT = 1e-4
"""A derivative that differs from a finite difference by more than this share is wrong."""

NOISE_STEPS = (1.5e-6, 2e-6, 2.5e-6, 3e-6, 4e-6)
"""Steps from whose values the rounding error of f is estimated."""

HESS_STEPS = (1e-5, 1e-4, 1e-6)
"""Steps of differences of gradients, in the order in which they are tried."""


class Probes(NamedTuple):
    """A matrix, the values of f around it, and the gradient there, if it is known."""

    place: np.ndarray
    values: np.ndarray
    gradient: np.ndarray | None


def probe(values: Values, near: np.ndarray | None) -> Probes:
    """Evaluate f near a fixed matrix, or where it is infinite there, near a start."""
    n, m = values.shape
    probes = _around(values, _place(n, m), 1.0)
    if not np.isfinite(probes.values).all() and near is not None:
        start = check_orthogonal(near, name="near", columns=m if m < n else None)
        if len(start) != n:
            raise ValueError(f"near is of order {len(start)}, but n = {n}")
        probes = _around(values, start, NEAR)
    if not np.isfinite(probes.values).all():
        where = "the rotation where it is first evaluated" if near is None else "the start"
        raise ValueError(f"f is infinite near {where}; give a start around which it is finite")
    return probes


@lru_cache(maxsize=8)
def _place(n: int, m: int) -> np.ndarray:
    """The matrix near which functions are evaluated."""
    return random_orthogonal(n, np.random.default_rng(0), determinant=1 if m == n else None, columns=m)


def _around(values: Values, place: np.ndarray, share: float) -> Probes:
    if values.jac is not None:
        first, gradient = values.with_gradient(place)
        return Probes(place, np.array([first, values(_paired(place, share * ANGLES[1]))]), gradient)
    found = np.array([values(_paired(place, share * angle)) for angle in ANGLES])
    again = values(place.copy())
    if np.isfinite(found).all() and not abs(again - found[0]) <= REPEATS * np.abs(found).max():
        raise ValueError(
            f"f must return the same number for the same matrix, but it returned {found[0]:.6g} and then {again:.6g}; "
            "if it draws random numbers, draw them once"
        )
    return Probes(place, found, None)


def _paired(U: np.ndarray, theta: float, first: int = 0) -> np.ndarray:
    """U with its columns (first, first + 1), (first + 2, first + 3), ... rotated by an angle; of n x m matrices, the rows."""
    V = U.copy() if len(U) == U.shape[1] else U.T.copy()
    V[:, first:-1:2], V[:, first + 1 :: 2] = rotated(V[:, first:-1:2], V[:, first + 1 :: 2], theta)
    return V if V.shape == U.shape else np.ascontiguousarray(V.T)


def check_degree(values: Values, probes: Probes, degree: int, scale: float) -> None:
    """Compare f with a polynomial of this degree, along curves on which every entry of U is linear in (cos θ, sin θ)."""
    thetas = np.array(ANGLES[1:])
    # For odd n, one curve leaves out the last column or row, and the other one the first.
    for first in range(1 + values.shape[0] % 2):

        def along(theta: float, first: int = first) -> float:
            return values.finite(_paired(probes.place, theta, first))

        claimed = polynomial(along, float(probes.values[0]), degree).harmonics
        error = float(np.abs(claimed(thetas) - [along(theta) for theta in thetas]).max())
        if error > 1e-8 * scale:
            raise ValueError(
                f"f is not a polynomial of degree {degree} in U: it differs from every such polynomial by "
                f"{error:.3g}, {error / scale:.1e} of its size; give its true degree, or none"
            )


def check_gradient(values: Values, probes: Probes, noise: float) -> None:
    """Compare the gradient with a difference of values, along one direction."""
    U, value, E = probes.place, float(probes.values[0]), probes.gradient
    assert E is not None
    if not np.isfinite(E).all():
        raise NotFinite("jac must be finite, but it returned NaN or infinity")
    curve, tangent = _curve(U)
    expected, norm = float(np.vdot(E, tangent)), float(np.linalg.norm(_projected(E, U)))
    # One more value is nearly always enough. If not, a noisy function needs a large step, and one with large higher
    # derivatives a small step.
    for step in (1e-6, *NOISE_STEPS, 1e-4):
        ahead, back = values.finite(curve(step)), value if step == 1e-6 else values.finite(curve(-step))
        width = step if step == 1e-6 else 2 * step
        if step in NOISE_STEPS:
            # The curvature hardly shows in so short a step: the rest is the noise of f.
            noise = max(noise, 2 * abs(ahead - 2 * value + back))
        difference = (ahead - back) / width
        if abs(difference - expected) <= AGREEMENT * max(norm, abs(difference)) + noise / step:
            return
    raise ValueError(
        f"jac disagrees with f: along one direction the slope is {expected:.6g} by jac, and {difference:.6g} by a difference "
        "of values; give the matrix of the partial derivatives ∂f/∂U_ij, or objectives.Function(..., check=False) if f has "
        "kinks or large rounding errors"
    )


def check_hessian(values: Values, probes: Probes) -> None:
    """Compare a product of the second derivatives with a difference of gradients, along one direction."""
    curve, tangent = _curve(probes.place)
    product = values.hessian_product(probes.place, tangent)
    norm, least = float(np.linalg.norm(product)), math.inf
    for step in HESS_STEPS:
        ahead, back = values.with_gradient(curve(step))[1], values.with_gradient(curve(-step))[1]
        if ahead is None or back is None:
            continue
        rounding = 32 * EPS * float(np.linalg.norm(ahead)) / step
        difference = (ahead - back) / (2 * step)
        size = max(norm, float(np.linalg.norm(difference)))
        error = float(np.linalg.norm(difference - product))
        if error <= AGREEMENT * size + rounding:
            return
        least = min(least, error / size)
    raise ValueError(
        f"hess disagrees with jac: along one direction its product differs by {least:.2g} of its size from a difference of "
        "gradients; hess(U, V) must return the derivative of ∂f/∂U along V, or give objectives.Function(..., check=False) if "
        "the gradient has kinks or large rounding errors"
    )


def _curve(U: np.ndarray) -> tuple[Callable[[float], np.ndarray], np.ndarray]:
    """A curve through U on which all columns move, as a function of its length, and its tangent at U."""
    # Not the seed of `_place`, which for one column is made of the same numbers.
    tangent = _projected(np.random.default_rng(1).standard_normal(U.shape), U)
    tangent /= np.linalg.norm(tangent)
    # For steps of 1e-4 and less, the columns are orthonormal up to rounding errors after one repair.
    return lambda step: repair(U + step * tangent), tangent


def _projected(Z: np.ndarray, U: np.ndarray) -> np.ndarray:
    """The part of Z that is tangent to the matrices with orthonormal columns, at U."""
    P = U.T @ Z
    return Z - 0.5 * U @ (P + P.T)
