"""Evaluations of a user's function before the run: its size, and whether its derivatives and its degree are right.

The matrices lie around a fixed random one, or around a start if f is infinite there. They are made by rotations of its columns,
and for n x m matrices of its rows: f may be unchanged where few columns rotate, and a single one has nothing to rotate with.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from givens.numerics.scaling import EPS
from givens.objectives.angle_derivatives import rotated
from givens.objectives.base import NotFinite
from givens.objectives.harmonics import PROBE_ANGLES, polynomial
from givens.objectives.values import Values
from givens.rotations import check_orthogonal, random_orthogonal, repair

ANGLES = (0.0, *PROBE_ANGLES)
"""Angles at which f is evaluated; with a gradient, only the first two."""


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
        probes = _around(values, start, 1e-3)  # f need not be finite farther away
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
    # A larger difference is no rounding error.
    if np.isfinite(found).all() and not abs(again - found[0]) <= 1e-8 * np.abs(found).max():
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
    """Compare the gradient with differences of values, along one direction."""
    U, E = probes.place, probes.gradient
    assert E is not None
    if not np.isfinite(E).all():
        raise NotFinite("jac must be finite, but it returned NaN or infinity")
    curve, tangent = _curve(U)
    slope, size = float(np.vdot(E, tangent)), float(np.linalg.norm(_projected(E, U)))
    difference = _disagreeing(lambda step: values(curve(step)), probes.values[0], slope, size, noise)
    if difference is not None:
        raise ValueError(
            f"jac disagrees with f: along one direction the slope is {slope:.6g} by jac, and {difference:.6g} by a difference "
            "of values; give the matrix of the partial derivatives ∂f/∂U_ij, or objectives.Function(..., check=False) if f has "
            "kinks or large rounding errors"
        )


def check_hessian(values: Values, probes: Probes) -> None:
    """Compare a product of the second derivatives with differences of gradients, along one direction."""
    assert probes.gradient is not None
    curve, tangent = _curve(probes.place)
    product = values.hessian_product(probes.place, tangent)
    size, rounding = (float(np.linalg.norm(array)) for array in (product, 32 * EPS * probes.gradient))

    def gradient(step: float) -> np.ndarray:
        E = values.with_gradient(curve(step))[1]
        return np.full(product.shape, math.nan) if E is None else E

    difference = _disagreeing(gradient, probes.gradient, product, size, rounding)
    if difference is not None:
        share = np.linalg.norm(difference - product) / max(size, float(np.linalg.norm(difference)))
        raise ValueError(
            f"hess disagrees with jac: along one direction its product differs by {share:.2g} of its size from a difference of "
            "gradients; hess(U, V) must return the derivative of ∂f/∂U along V, or give objectives.Function(..., check=False) if "
            "the gradient has kinks or large rounding errors"
        )


def _disagreeing(g: Callable[[float], Any], here: Any, slope: Any, size: float, rounding: float) -> Any:
    """The last of some central differences of g at 0, where its value is `here`; None if one of them agrees with `slope`.

    The first is nearly always enough. If not, a noisy function needs a large step, and one with large higher derivatives a small
    step.
    """
    for step in 1e-6 * 3.0 ** np.arange(5):
        ahead, behind = g(step), g(-step)
        difference = (ahead - behind) / (2 * step)
        if step < 1e-5:
            # The curvature hardly shows in so short a step: the rest are the rounding errors of g.
            rounding = max(rounding, 2 * float(np.linalg.norm(ahead - 2 * here + behind)))
        error = float(np.linalg.norm(difference - slope))
        if error <= 1e-4 * max(size, float(np.linalg.norm(difference))) + rounding / step:
            return None
    return difference


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
