"""Figures 3 and 4, measured: clustering by mixtures of spherical Gaussians that are reconstructed from their third moment.

A cell is a number of components k, a dimension d, a number of samples N, and a rule for the centres; a seed draws one mixture and
one sample. The whitened tensor is decomposed by Algorithm 4 (random pairs, a random start) and by the robust power method, and
the mixture reconstructed after Anandkumar et al. (2014) with either of two noise rules: σ² as the least eigenvalue of the
covariance (theirs) or as the mean of its d − k + 1 smallest (ours; less biased on samples). The score is the normalised mutual
information of the most probable components with the true ones, on at most 50,000 of the samples. k ≤ d throughout: moments tell
no more apart.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from givens.data.moments import moments_of
from givens.data.third_moments import Basis, Cumulants, ThirdMoments, contract, whiten
from givens.datasets import MixtureSample, make_spherical_mixture
from givens.mixtures.em import Mixture, posterior
from givens.mixtures.estimator import SphericalMixture
from paper.baselines import tensor_power
from paper.measure.algorithm_4 import algorithm_4
from paper.measure.task import ExperimentSettings, Row, Task

TRUE, GIVENS, POWER, OURS = "true parameters", "Algorithm 4", "power method", "SphericalMixture"
MEAN, LEAST = "mean of the smallest eigenvalues", "least eigenvalue"
NOISE_RULES = (MEAN, LEAST)
CLUSTERED = 50_000
OURS_UP_TO = 20  # components that the library's own fit is shown for


class Cell(NamedTuple):
    """k, d, N, and how the centres are drawn: `narrow` has 2d degrees of freedom for the inverse Wishart matrix, not d + 2."""

    k: int
    d: int
    n: int
    narrow: bool = False

    @property
    def name(self) -> str:
        """For the file of its rows."""
        return f"k{self.k}-d{self.d}-n{self.n}{'-narrow' if self.narrow else ''}"


SAMPLES = (10_000, 30_000, 50_000, 100_000, 200_000)
DIMENSIONS = {10: (10, 20, 50), 20: (20, 50, 100, 200), 50: (50, 100, 200)}


def cells(quick: bool) -> list[Cell]:
    """Of Figure 3, few and many samples in every dimension, and of Figure 4, one dimension and every number of samples."""
    if quick:
        few = [Cell(k, d, n) for n in (4_000, 20_000) for k, d in ((10, 10), (10, 40), (20, 20), (20, 40))]
        return [*few, Cell(20, 40, 10_000), Cell(20, 20, 20_000, narrow=True)]
    figure_3 = [Cell(k, d, n) for n in (SAMPLES[0], SAMPLES[-1]) for k in DIMENSIONS for d in DIMENSIONS[k]]
    figure_4 = [Cell(k, 100, n) for k in (20, 50) for n in SAMPLES[1:-1]]
    return figure_3 + figure_4 + [Cell(20, d, SAMPLES[-1], narrow=True) for d in (20, 50, 100)]


def draw(cell: Cell, seed: int) -> MixtureSample:
    """A mixture and a sample; the mean covariance of the centres is the identity with either rule."""
    degrees, scale = (2 * cell.d, cell.d - 1.0) if cell.narrow else (cell.d + 2, 1.0)
    return make_spherical_mixture(
        cell.n,
        n_components=cell.k,
        n_features=cell.d,
        degrees=degrees,
        scale=scale,
        random_state=np.random.default_rng([seed, cell.k, cell.d]),
    )


def run_one(cell: Cell, seed: int) -> list[Row]:
    """One sample, clustered by every method."""
    sample = draw(cell, seed)
    moments, eigenvalues = uncentred(sample.X, cell.k)
    noise = {MEAN: float(eigenvalues[: cell.d - cell.k + 1].mean()), LEAST: float(eigenvalues[0])}
    fits: list[tuple[str, str, Callable[[], Mixture]]] = [
        (TRUE, MEAN, lambda: Mixture(sample.weights, sample.means, sample.variances))
    ]
    if cell.k <= OURS_UP_TO:
        fits.append((OURS, MEAN, lambda: ours(sample, cell.k)))
    for rule in NOISE_RULES:
        for method, decomposition in ((GIVENS, by_rotations), (POWER, by_power)):
            found = partial(reconstruct, moments, noise[rule], cell.k, partial(decomposition, seed))
            fits.append((method, rule, found))
    cell_row = {"k": cell.k, "d": cell.d, "n": cell.n, "narrow": cell.narrow, "seed": seed}
    return [
        {**cell_row, "method": method, "noise": rule, "nmi": agreement(fit(), sample)}
        for method, rule, fit in fits
    ]


def agreement(mixture: Mixture, sample: MixtureSample) -> float:
    """Normalised mutual information of the most probable components with the true ones."""
    shares, _ = posterior(mixture, sample.X[:CLUSTERED])
    return float(normalized_mutual_info_score(sample.y[:CLUSTERED], np.argmax(shares, axis=1)))


def uncentred(X: np.ndarray, k: int) -> tuple[Cumulants, np.ndarray]:
    """Moments on the top k eigenvectors of the uncentred second moment, and the eigenvalues of the covariance, ascending."""
    seconds = moments_of(X)
    mean, covariance = seconds.mean, seconds.covariance()
    vectors = np.linalg.eigh(covariance + np.outer(mean, mean))[1]
    state = ThirdMoments(Basis(mean, np.ascontiguousarray(vectors[:, -k:]))).begin(0)
    state.add(X)
    return state.cumulants(), np.linalg.eigvalsh(covariance)


def reconstruct(
    moments: Cumulants, noise: float, k: int, decomposition: Callable[[np.ndarray], Any]
) -> Mixture:
    """Anandkumar et al.'s reconstruction: w_i = λ_i⁻², μ_i = λ_i M2 W v_i."""
    m, eye = moments.axes.T @ moments.mean, np.eye(k)
    second = moments.covariance + np.outer(m, m) - noise * eye
    placed = np.einsum("ab,c->abc", moments.covariance - noise * eye, m)
    third = moments.third + placed + placed.transpose(0, 2, 1) + placed.transpose(2, 1, 0)
    third += np.einsum("a,b,c->abc", m, m, m)
    white = whiten(second, k)
    T = contract(third, white.W)
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    found = decomposition(np.mean([T.transpose(order) for order in orders], axis=0))
    # Noise leaves some λ near 0 or below, whose weight would count for more than all the others: weights are kept within a
    # factor of five of their mean, which serves both methods best where they are weak and changes little elsewhere.
    lambdas = np.clip(found.weights, np.sqrt(k / 5), np.sqrt(k * 5))
    weights = lambdas**-2.0
    means = (moments.axes @ second @ white.W @ (found.factors * lambdas)).T
    return Mixture(weights / weights.sum(), means, np.full(k, noise))


def by_rotations(seed: int, T: np.ndarray) -> Any:
    """By Algorithm 4."""
    return algorithm_4(T, np.random.default_rng(seed))


def by_power(seed: int, T: np.ndarray) -> Any:
    """By the robust power method, 10 starts of 30 iterations each."""
    return tensor_power(T, symmetrize=True, random_state=seed)


def ours(sample: MixtureSample, k: int) -> Mixture:
    """By the moments that the library fits, each weighed by its noise; without EM."""
    model = SphericalMixture(k, max_iter=0, threads=1).fit(sample.X)
    return Mixture(model.weights_, model.means_, model.variances_)


def tasks(settings: ExperimentSettings) -> list[Task]:
    """A sample per cell and seed."""
    seeds = settings.seeds or (3 if settings.quick else 20)
    return [
        Task(f"{cell.name}-{seed}", partial(run_one, cell, seed), weight=float(cell.n * (cell.d + cell.k)))
        for seed in range(seeds)
        for cell in cells(settings.quick)
    ]
