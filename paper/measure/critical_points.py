"""Theorems 1 (2) and 3, measured: which critical points Algorithm 1 comes back to, and where Algorithm 4 ends.

All critical points of a linear function −tr(UᵀM), M = PΣQᵀ, are U = P D Qᵀ with a diagonal D of signs. Of an orthogonal tensor
Σ λ_i v_i⊗v_i⊗v_i, U = V D are among them. Whether such a point is a local minimum is told by the Hessian over all
antisymmetric directions, by differences. Algorithm 1 (random pairs) then starts close to it, and either comes back or not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
from scipy.linalg import expm

from givens.objectives import Function, SymmetricTensor
from givens.objectives.base import Objective
from givens.rotations import random_orthogonal
from givens.solve.minimize import minimize
from paper.measure.algorithm_4 import algorithm_4
from paper.measure.task import ExperimentSettings, Row, Task

ORDER = 4
NEAR = 1e-3
STEP = 1e-3
LINEAR, TENSOR, STARTS = "linear", "tensor", "random starts"


def skew(values: np.ndarray) -> np.ndarray:
    """The antisymmetric matrix with these entries above its diagonal."""
    X = np.zeros((ORDER, ORDER))
    X[np.triu_indices(ORDER, 1)] = values
    return X - X.T


def least_curvature(f: Callable[[np.ndarray], float], U: np.ndarray) -> float:
    """The smallest eigenvalue of the Hessian of X ↦ f(U exp X), X antisymmetric, by central differences."""
    size = ORDER * (ORDER - 1) // 2
    steps = STEP * np.eye(size)

    def at(x: np.ndarray) -> float:
        return f(U @ expm(skew(x)))

    H = np.zeros((size, size))
    for i, a in enumerate(steps):
        for j, b in enumerate(steps[: i + 1]):
            H[i, j] = at(a + b) - at(a - b) - at(b - a) + at(-a - b)
    return float(np.linalg.eigvalsh(H / (4 * STEP**2), UPLO="L")[0])


def linear(rng: np.random.Generator) -> tuple[Objective, Callable, np.ndarray, np.ndarray]:
    """A linear function, as objective and as function, and the two factors of its critical points."""
    M = rng.standard_normal((ORDER, ORDER))
    P, _, Qt = np.linalg.svd(M)

    def f(U: np.ndarray) -> float:
        return -float(np.sum(U * M))

    return Function(f, ORDER, degree=1, jac=lambda U: -M), f, P, Qt


def tensor(rng: np.random.Generator) -> tuple[Objective, Callable, np.ndarray, np.ndarray]:
    """The same for an orthogonal tensor; the last v has the smallest λ."""
    V = random_orthogonal(ORDER, rng)
    weights = np.sort(rng.uniform(1, 3, ORDER))[::-1]
    T = np.einsum("a,ia,ja,ka->ijk", weights, V, V, V)

    def f(U: np.ndarray) -> float:
        return -float(np.einsum("ijk,ia,ja,ka->", T, U, U, U))

    return SymmetricTensor(T, symmetrize=True), f, V, np.eye(ORDER)


def run_points(problem: str, seed: int) -> list[Row]:
    """Start Algorithm 1 close to every critical point P D Qᵀ."""
    rng = np.random.default_rng(seed)
    objective, f, P, Qt = (linear if problem == LINEAR else tensor)(rng)
    rows = []
    for signs in product((1.0, -1.0), repeat=ORDER):
        point = (P * signs) @ Qt
        start = point @ expm(NEAR * skew(rng.standard_normal(ORDER * (ORDER - 1) // 2)))
        if problem == LINEAR and np.linalg.det(point) < 0:
            continue  # the other component of O(d), to the same effect
        run = minimize(objective, start, method="random", max_iter=300, random_state=seed, threads=1)
        rows.append(
            {
                "problem": problem,
                "seed": seed,
                "signs": "".join("+" if sign > 0 else "-" for sign in signs),
                "curvature": least_curvature(f, point),
                "distance": float(np.linalg.norm(run.U - point)),
            }
        )
    return rows


def run_starts(seed: int, d: int) -> list[Row]:
    """Algorithm 4 on an orthogonal tensor, from a random start: Σ T(u_i, u_i, u_i) over Σ λ_i."""
    rng = np.random.default_rng(seed)
    V, weights = random_orthogonal(d, rng), rng.uniform(1, 3, d)
    T = np.einsum("a,ia,ja,ka->ijk", weights, V, V, V, optimize=True)
    found = algorithm_4(T, rng, tol=1e-14, sweeps=2000)
    return [{"problem": STARTS, "seed": seed, "d": d, "reached": float(found.weights.sum() / weights.sum())}]


def tasks(settings: ExperimentSettings) -> list[Task]:
    """All critical points of a problem, or one random start, per seed."""
    seeds = range(settings.seeds or (4 if settings.quick else 20))
    points = [
        Task(f"{name}-{seed}", partial(run_points, name, seed)) for name in (LINEAR, TENSOR) for seed in seeds
    ]
    return points + [Task(f"starts-{seed}", partial(run_starts, seed, 12)) for seed in seeds]
