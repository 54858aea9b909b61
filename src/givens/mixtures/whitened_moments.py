"""A mixture of spherical Gaussians from its first three moments.

The centred means b_i = μ_i − m of k components span k − 1 directions: the leading eigenvectors of the covariance
Σ w_i b_i b_iᵀ + σ²I. σ² is the mean of the other eigenvalues. The third cumulant of the noise is 0, so K = Σ w_i b_i⊗b_i⊗b_i.

Lift the centred means to (1, b_i). Their second moment is diag(1, Σ w b bᵀ), of rank k, whitened by W on the k − 1
directions, and their whitened third moment

    T_000 = 1,   T_00a = 0,   T_0ab = δ_ab,   T_abc = K(W, W, W)_abc

is Σ w_i^{-½} v_i⊗v_i⊗v_i with orthonormal v_i = √w_i (1, Wᵀ b_i). All entries but those of K are known without noise, the result
does not depend on the origin, and the first row of V has √w_i, which is less noisy than the weights w_i = λ_i⁻² of the third
moment.

From the result a fit to the moments begins (`refit`). The decomposition gives all entries of the whitened third moment the same
weight, and whitening amplifies the directions in which the means hardly differ. In the fit the weights follow from the noise. On
axes scaled so that the data have unit variance, the averages over n rows of Hermite polynomials of degree j have variances close
to j!/n and are uncorrelated. So minus twice the log-likelihood, expanded in cumulants up to the third, is n times

    (Σw − 1)²·c + ‖Σ w_i b_i‖² + ½‖Σ w_i b_i b_iᵀ + σ²H − I‖² + ⅙‖Σ w_i b_i⊗b_i⊗b_i − K‖² + ½q(σ²/s² − 1)²

with b_i the centred means, K the third cumulant, H = diag(1/h) for data of variance h along the axes before scaling, and
s² the variance in the q directions that carry noise only. Two priors, with the weight of one row each, fix what the data do not
determine: log w_i is near log 1/k, and b_i near 0 with the variance that the means have along each axis. For the moments of a
population (n infinite) there is no prior, and the minimum, 0, is at the exact solution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize

from givens.data.third_moments import Cumulants, TooFewDirections, contract, placements
from givens.mixtures.em import Mixture
from givens.objectives.tensor import SymmetricTensor
from givens.result import Result
from givens.tensors.decompose import orthogonal_components

Decomposer = Callable[[np.ndarray], tuple[np.ndarray, Result]]
"""A function of a symmetric tensor that returns an orthogonal V, one component per column, and the `Result` to report."""

SUM_WEIGHT = 10.0
"""The c of the formula. The weights are scaled to the sum 1 afterwards, so it only has to keep them near it."""


def by_givens(T: np.ndarray, random_state: int, threads: int | None) -> tuple[np.ndarray, Result]:
    """Decompose a tensor into all its components together, by rotations."""
    # Noisy tensors have a large residual, about which `decompose` would warn; the refit does not need a small one.
    tensor = SymmetricTensor(T, symmetrize=True)
    found = orthogonal_components(tensor, random_state=random_state, threads=threads)
    return found.factors, found.result


@dataclass(frozen=True)
class SolvedMixture:
    """The mixture of unit·x, the eigenvalues of its covariance, the run that found it, and its number of steps of EM."""

    mixture: Mixture
    spread: np.ndarray
    result: Result
    unit: float = 1.0
    n_iter: int = 0

    @property
    def weights(self) -> np.ndarray:
        """Weights of the components."""
        return self.mixture.weights

    @property
    def eigenvalues(self) -> np.ndarray:
        """Eigenvalues of the covariance of x, descending."""
        return self.squared(self.spread)

    def squared(self, variances: np.ndarray) -> np.ndarray:
        """Variances of x from those of unit·x; infinite or 0 where float64 cannot hold them."""
        with np.errstate(over="ignore", under="ignore"):
            return variances / self.unit / self.unit


def solve(
    moments: Cumulants, k: int, *, common: bool, decomposition: Decomposer, beyond: int = 0
) -> SolvedMixture:
    """Find k components from moments kept on at least k − 1 axes.

    Parameters
    ----------
    moments : Cumulants
        Of a sample or of a population (`count` infinite).
    k : int
        Number of components, at most the number of variables.
    common : bool
        One variance for all components, or one each.
    decomposition : callable
        Finds the orthonormal components of the whitened tensor.
    beyond : int, default=0
        Number of further directions, in which all rows are equal and which have no coordinates: they are noise of variance 0.

    Returns
    -------
    SolvedMixture
    """
    eigenvalues, top = moments.principal(k - 1)
    dims = len(top.mean) + beyond - (k - 1)
    spread = eigenvalues[: k - 1]
    # Covariance of x outside the axes with its coordinates p on them: 0 for axes that are eigenvectors of the covariance. A basis
    # that was fixed beforehand misses a part of the means; that part is a linear function of p, whose coefficients are this
    # covariance divided by that of the means.
    outside = top.cross - top.axes @ (top.axes.T @ top.cross)
    noise = _noise(top, spread, np.sum(outside**2, axis=0), dims)
    signal = _signal(spread, noise, top.count)
    white = _roots(signal, noise)
    paths = outside / signal
    noise_third = np.zeros(k - 1) if common else _noise_third(top, paths, dims)
    third = top.third - placements(np.multiply.outer(np.eye(k - 1), noise_third))

    V, result = decomposition(_lifted(contract(third, np.diag(1 / white))))
    # A component whose weight is lost in the noise starts with a tenth of the mean weight.
    root = np.maximum(V[0], np.sqrt(0.1 / k))
    start = white[:, None] * V[1:] / root

    scale = np.sqrt(spread)
    scaled = Scaled(top.count, contract(third, np.diag(1 / scale)), noise / spread, dims)
    fitted = refit(scaled, root**2 / np.sum(root**2), start / scale[:, None])

    variances = np.full(k, fitted.noise * noise)
    if not common:
        variances *= _variances(fitted.weights, fitted.b, noise_third / scale / variances[0])
    b = fitted.b * scale[:, None]
    means = top.mean + ((top.axes + paths) @ b).T
    if not fitted.converged:
        message = "the fit to the moments did not converge; steps of EM may improve it"
        result = replace(result, converged=False, message=message)
    return SolvedMixture(Mixture(fitted.weights, means, variances), eigenvalues, result)


def _signal(spread: np.ndarray, noise: float, count: float) -> np.ndarray:
    """The variance of the means along each axis; for samples, at least its standard error."""
    return np.maximum(spread - noise, spread * np.sqrt(2 / count))


def _roots(signal: np.ndarray, noise: float) -> np.ndarray:
    """The standard deviations of the means along the axes, which must be positive."""
    positive = int(np.sum(signal > len(signal) * np.finfo(float).eps * signal.max(initial=0.0)))
    if positive < len(signal):
        raise TooFewDirections(
            f"{len(signal) + 1} components need means that differ in {len(signal)} directions by more than the noise of "
            f"variance {noise:.4g}, but beyond it the covariance has {positive} positive eigenvalues; ask for fewer components, "
            "or fit with steps of EM (max_iter)"
        )
    return np.sqrt(signal)


def _lifted(K: np.ndarray) -> np.ndarray:
    """The whitened third moment of (1, b)."""
    k = len(K) + 1
    T = np.zeros((k, k, k))
    T[1:, 1:, 1:] = K
    T[0, 0, 0] = 1.0
    a = np.arange(1, k)
    T[0, a, a] = T[a, 0, a] = T[a, a, 0] = 1.0
    return T


def _variances(weights: np.ndarray, b: np.ndarray, noise_third: np.ndarray) -> np.ndarray:
    """σ_i² over their mean, from Σ w_i σ_i² (1, b_i): the mean variance, and its covariance with the axes, by least squares."""
    A = np.vstack([weights, b * weights])
    apart = np.linalg.lstsq(A, np.append(1.0, noise_third) - A.sum(axis=1), rcond=None)[0]
    return np.maximum(1 + apart, 0.05)


def _noise(top: Cumulants, spread: np.ndarray, outside: np.ndarray, dims: int) -> float:
    """σ²: the variance outside the axes, per direction, without the part that the means contribute.

    `outside` are the squared lengths of the covariances, with each axis, of what is outside.
    """

    def excess(noise: float) -> float:
        signal = np.maximum(_signal(spread, noise, top.count), least)
        return noise - (top.energy - np.sum(outside / signal)) / dims

    least = 1e-12 * float(spread.max(initial=0.0))
    whole = top.energy / dims
    if whole <= least or excess(least) >= 0:
        return least
    return float(brentq(excess, least, whole, xtol=1e-300, rtol=1e-15)) if excess(whole) > 0 else whole


def _noise_third(top: Cumulants, paths: np.ndarray, dims: int) -> np.ndarray:
    """Σ w_i σ_i² b_i, from the covariance of p with ‖x − m‖² outside the axes, without the part that the means contribute."""
    metric = paths.T @ paths
    seen = top.energy_third - np.einsum("abc,ab->c", top.third, metric)
    matrix = (dims - np.trace(metric)) * np.eye(len(metric)) - 2 * metric
    return np.linalg.solve(matrix, seen)


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
        options={"maxiter": 1000, "maxcor": 20, "ftol": 1e-7, "gtol": 1e-10},
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
        SUM_WEIGHT * total**2
        + first @ first
        + np.sum(second**2) / 2
        + np.sum(third**2) / 6
        + data.noise_dims * (noise - 1) ** 2 / 2
        + prior_w @ (logs + np.log(k))
        + np.sum(prior_b * b)
    )
    along = (
        SUM_WEIGHT * total + first @ b + np.sum(b * second_b, axis=0) / 2 + np.sum(b * third_b, axis=0) / 6
    )
    by_logs = 2 * (w * along + prior_w)
    by_b = 2 * (w * (first[:, None] + second_b + third_b / 2) + prior_b)
    by_noise = (np.diag(second) @ data.noise_share + data.noise_dims * (noise - 1)) * noise
    return float(value), np.concatenate([by_logs, by_b.ravel(), [by_noise]])
