"""Theorems 1 (1) and 2, measured: the norm of the gradient along runs of Algorithm 1.

**Theorem 2** on a linear function, f(U) = −tr(UᵀM), the orthogonal Procrustes problem: its minimum is known from the singular
values σ of M, and along a rotation g(θ) = −(A cos θ + B sin θ) + const with √(A² + B²) ≤ σ₁ + σ₂, so that L = σ₁ + σ₂. What is
proved, with the constant corrected, is

    min_{t ≤ T} E‖∇f(U_t)‖² ≤ 2 L d(d−1) (f(U₀) − f_min) / (T + 1)        for pairs drawn uniformly at random.

**Theorem 1** on that function, on a tensor that is not orthogonally decomposable and on sparse PCA, which is once differentiable:
random pairs until the gradient's norm is 1e-8 of what it was, or for so many sweeps that it would have been.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from givens.datasets import sparse_modules
from givens.objectives import Function, SparseColumns, SymmetricTensor
from givens.objectives.base import Objective
from givens.result import Snapshot
from givens.rotations import random_orthogonal
from givens.solve.minimize import minimize
from paper.measure.recorded import Recorded
from paper.measure.task import ExperimentSettings, Row, Task

SCHEDULES = ("random", "without-replacement", "shuffled", "gradient")
LINEAR, TENSOR, SPARSE = OBJECTIVES = ("linear", "tensor", "sparse PCA")
SMALL = 1e-8
SWEEPS = 3000


class Procrustes:
    """f(U) = −tr(UᵀM) on the rotations, with its constants."""

    def __init__(self, d: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.M = rng.standard_normal((d, d))
        self.start = random_orthogonal(d, rng, determinant=1)
        u, sizes, vt = np.linalg.svd(self.M)
        last = sizes[-1] if np.linalg.det(u) * np.linalg.det(vt) > 0 else -sizes[-1]
        self.minimum = -(sizes[:-1].sum() + last)
        self.L = sizes[0] + sizes[1]
        self.gap = -float(np.sum(self.start * self.M)) - self.minimum
        self.d = d

    def objective(self) -> Function:
        """As the loop takes it."""
        return Function(lambda U: -float(np.sum(U * self.M)), self.d, degree=1, jac=lambda U: -self.M)

    def squared_norm(self, U: np.ndarray) -> float:
        """‖∇f‖² by the paper's definition."""
        product = self.M.T @ U
        return float(np.sum((product - product.T) ** 2))


def run_bound(schedule: str, seed: int, d: int, sweeps: int) -> list[Row]:
    """‖∇f‖² after every rotation of one run, and the bound."""
    problem = Procrustes(d, seed)
    norms = [problem.squared_norm(problem.start)]
    watched = Recorded(problem.objective(), lambda U, rotations, flops: norms.append(problem.squared_norm(U)))
    minimize(watched, problem.start, method=schedule, max_iter=sweeps, tol=0, random_state=seed, threads=1)
    bound = 2 * problem.L * d * (d - 1) * problem.gap
    last = len(norms) - 1
    # All of the first ones, then fewer and fewer: the axis is logarithmic.
    kept = sorted({min(round(k), last) for k in np.geomspace(1, last + 1, 120) - 1})
    return [
        {
            "schedule": schedule,
            "seed": seed,
            "rotations": t,
            "squared_norm": norms[t],
            "bound": bound / (t + 1),
        }
        for t in kept
    ]


def smooth_objective(name: str, seed: int) -> Objective:
    """An objective of Theorem 1, by its name."""
    rng = np.random.default_rng(seed)
    if name == LINEAR:
        return Procrustes(6, seed).objective()
    if name == TENSOR:
        return SymmetricTensor(rng.standard_normal((8, 8, 8)), symmetrize=True)
    X = sparse_modules(10, 200, n_modules=3, module_size=15, random_state=seed).X
    X = X - X.mean(axis=0)
    return SparseColumns(np.ascontiguousarray(X.T), 0.3 * float(np.linalg.norm(X, axis=0).max()))


def run_limit(name: str, seed: int) -> list[Row]:
    """The norm of the gradient after each sweep of random pairs, over the first."""
    objective = smooth_objective(name, seed)
    start = random_orthogonal(objective.shape[0], np.random.default_rng(seed), determinant=1)
    first: list[float] = []

    def vanished(snapshot: Snapshot) -> bool:
        first.append(float(snapshot.gradient_norm))
        return first[-1] <= SMALL * first[0]

    result = minimize(
        objective,
        start,
        method="random",
        tol=0,
        max_iter=SWEEPS,
        random_state=seed,
        callback=vanished,
        threads=1,
    )
    norms = result.trace.gradient_norm
    last = len(norms) - 1
    kept = sorted({min(round(k), last) for k in np.geomspace(1, last + 1, 60) - 1})
    return [{"objective": name, "seed": seed, "sweeps": k, "norm": norms[k] / norms[0]} for k in kept]


def order(quick: bool) -> int:
    """Of the matrices in Theorem 2."""
    return 6 if quick else 10


def tasks(settings: ExperimentSettings) -> list[Task]:
    """A run per schedule or objective, and seed."""
    seeds = settings.seeds or (4 if settings.quick else 20)
    sweeps = 30 if settings.quick else 60
    bounds = [
        Task(f"{schedule}-{seed}", partial(run_bound, schedule, seed, order(settings.quick), sweeps))
        for schedule in SCHEDULES
        for seed in range(seeds)
    ]
    limits = [
        Task(f"limit-{name.replace(' ', '-')}-{seed}", partial(run_limit, name, seed))
        for name in OBJECTIVES
        for seed in range(seeds)
    ]
    return bounds + limits
