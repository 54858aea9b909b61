"""Fit a spherical mixture to its first three moments, each weighted by its noise.

The decomposition of the whitened third moment gives all its entries the same weight, and whitening amplifies the directions in
which the means hardly differ. Here the weights follow from the noise. On axes scaled so that the data have unit variance, the
averages over n rows of Hermite polynomials of degree j have variances close to j!/n and are uncorrelated. So minus twice the
log-likelihood, expanded in cumulants up to the third, is n times

    (Σw − 1)²·c + ‖Σ w_i b_i‖² + ½‖Σ w_i b_i b_iᵀ + σ²H − I‖² + ⅙‖Σ w_i b_i⊗b_i⊗b_i − K‖² + ½q(σ²/s² − 1)²

with b_i the centred means, K the third cumulant, H = diag(1/h) for data of variance h along the axes before scaling, and
s² the variance in the q directions that carry noise only. Two priors, with the weight of one row each, fix what the data do not
determine: log w_i is near log 1/k, and b_i near 0 with the variance that the means have along each axis. For the moments of a
population (n infinite) there is no prior, and the minimum, 0, is at the exact solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

_SUM = 10.0
_TOLERANCE = 1e-7
_STEPS = 1000


@dataclass(frozen=True)
class Scaled:
    """The moments to fit, on axes along which the data have unit variance."""

    count: float
    third: np.ndarray  # K
    noise_share: np.ndarray  # s²/h, per axis
    noise_dims: int  # q


class Refitted(NamedTuple):
    """Weights, centred means b (one column per component), σ²/s², and whether the minimum was reached."""

    weights: np.ndarray
    b: np.ndarray
    noise: float
    converged: bool


def refit(data: Scaled, weights: np.ndarray, b: np.ndarray) -> Refitted:
    """Minimise the misfit from a start, by L-BFGS in log w, √w·b and log σ²."""
    # √w at the start: curvature in b_i is proportional to w_i, so the problem is better scaled in √w_i b_i.
    root = np.sqrt(weights)
    start = np.concatenate([np.log(weights), (b * root).ravel(), [0.0]])
    # In units of the log-likelihood; the moments of a population are fitted to machine precision.
    size = min(data.count, 1 / np.finfo(float).eps)

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = misfit(data, *_parts(x, root))
        gradient[len(root) : -1] /= np.tile(root, len(b))
        return size * value, size * gradient

    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _STEPS, "maxcor": 20, "ftol": _TOLERANCE, "gtol": 1e-10},
    )
    logs, b, noise = _parts(found.x, root)
    weights = np.exp(logs)
    # A line search that finds no descent (status 2) has reached the limits of rounding: that is a minimum too.
    return Refitted(weights / weights.sum(), b, float(np.exp(noise)), found.status in (0, 2))


def _parts(x: np.ndarray, root: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    k = len(root)
    return x[:k], x[k:-1].reshape(-1, k) / root, float(x[-1])


def misfit(data: Scaled, logs: np.ndarray, b: np.ndarray, log_noise: float) -> tuple[float, np.ndarray]:
    """Value of the formula above, priors included, and its gradient in log w, b and log σ²/s²."""
    r, k = b.shape
    w, noise = np.exp(logs), np.exp(log_noise)
    wb = b * w
    total = w.sum() - 1
    first = wb.sum(axis=1)
    second = wb @ b.T
    second[np.diag_indices(r)] += noise * data.noise_share - 1
    pairs = (b[:, None, :] * b[None, :, :]).reshape(r * r, k)
    third = pairs @ wb.T - data.third.reshape(r * r, r)
    # Along b_i: second·b_i and third·(b_i, b_i).
    second_b, third_b = second @ b, third.T @ pairs

    prior_w = (logs + np.log(k)) / data.count
    prior_b = b / (data.count * np.maximum(1 - data.noise_share, 1e-8)[:, None])
    value = (
        _SUM * total**2
        + first @ first
        + np.sum(second**2) / 2
        + np.sum(third**2) / 6
        + data.noise_dims * (noise - 1) ** 2 / 2
        + prior_w @ (logs + np.log(k))
        + np.sum(prior_b * b)
    )
    along = _SUM * total + first @ b + np.sum(b * second_b, axis=0) / 2 + np.sum(b * third_b, axis=0) / 6
    by_logs = 2 * (w * along + prior_w)
    by_b = 2 * (w * (first[:, None] + second_b + third_b / 2) + prior_b)
    by_noise = (np.diag(second) @ data.noise_share + data.noise_dims * (noise - 1)) * noise
    return float(value), np.concatenate([by_logs, by_b.ravel(), [by_noise]])
