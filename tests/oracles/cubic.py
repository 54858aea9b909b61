"""The pair problem of a symmetric tensor, by the roots of a polynomial: the oracle of `givens.kernels.tensor`."""

from __future__ import annotations

import numpy as np

EPS = float(np.finfo(np.float64).eps)


def cubic(A: float, B: float, D: float, E: float) -> tuple[float, float]:
    """The maximum of g(θ) = A c³ + 3B c²s + 3D cs² + E s³, c = cos θ, s = sin θ, and its gain over θ = 0.

    With a = T_iii, b = T_iij, q = T_ijj, e = T_jjj of a symmetric tensor, and A = a+e, B = b−q, D = b+q, E = e−a, this is the
    pair problem of Σ T_iii; with A, B, D, E = a, b, q, e that of T_iii alone. In t = tan θ the critical points are the roots of
    −D t³ + (E−2B) t² + (2D−A) t + B, and ±π/2 where that loses a degree.
    """
    size = max(abs(A), abs(B), abs(D), abs(E))
    if size == 0:
        return 0.0, 0.0
    form = np.array([B, 2 * D - A, E - 2 * B, -D]) / size
    # Each way round the small roots are good, |tan θ| ≤ 1 or |cot θ| ≤ 1: together all of them.
    theta = np.concatenate(
        ([0.0, np.pi / 2], np.arctan(_roots(form)), np.pi / 2 - np.arctan(_roots(form[::-1])))
    )
    theta = np.concatenate((theta, theta - np.pi * np.where(theta > 0, 1, -1)))
    c, s = np.cos(theta), np.sin(theta)
    g = A * c**3 + 3 * B * c**2 * s + 3 * D * c * s**2 + E * s**3
    best = g >= g.max() - 8 * EPS * size
    chosen = theta[best][np.argmin(np.abs(theta[best]))]
    return float(chosen), float(max(g[theta == chosen].max() - A, 0.0))


def _roots(ascending: np.ndarray) -> np.ndarray:
    """The real roots of a polynomial, and those that rounding has made complex; a negligible leading coefficient is none."""
    significant = np.flatnonzero(np.abs(ascending) > EPS * np.abs(ascending).max())
    t = np.roots(ascending[: significant[-1] + 1][::-1])
    return t.real[np.abs(t.imag) <= 1e-4 * (1 + np.abs(t))]
