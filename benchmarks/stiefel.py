"""Functions of n x m matrices with orthonormal columns, beside pymanopt.

Six functions of points of the Stiefel manifold: Brockett's, of a random symmetric matrix and of a covariance (both have
eigenvectors as their minimum), log cosh and the fourth power of few columns (projection pursuit), Procrustes of few columns, and
the discretised energy of electrons that repel each other, a nonlinear eigenvalue problem (from Wen and Yin 2013). n is 100
and 500, and m is 3 to 20. Rules are those of `function`: the same gradients by autograd, the same starts, each of pymanopt's
optimizers with its best number of threads, and `givens` timed to the gradient where that one ends; the claim takes the optimizer
that `givens` is ahead of by least.
"""

from __future__ import annotations

import autograd.numpy as anp
import numpy as np

from benchmarks.function import beside_pymanopt
from givens.rotations import random_orthogonal

SHAPES = ((100, 5), (500, 3), (500, 20))
CHARTED = (500, 3)  # the chart of all benchmarks has room for one
STARTS, REPEATS = 2, 1


def objectives(n, m):
    """Name and function, of NumPy's or autograd's arrays."""
    rng = np.random.default_rng(0)
    S = rng.standard_normal((n, n))
    S = (S + S.T) / 2
    weights = np.arange(m, 0, -1.0)
    rows = min(2 * n, 1000)
    X = rng.laplace(size=(rows, n)) * np.logspace(0, -1, n)
    B = rng.standard_normal((rows, m))

    def energy(V):
        density = anp.sum(V * V, axis=1)
        bends = anp.sum(V[1:] * V[:-1])
        potential = anp.dot(inverse, density)
        return anp.sum(V * V) - bends + 0.25 * anp.sum(density * potential)

    grid = np.arange(1, n + 1)
    inverse = np.minimum.outer(grid, grid) * (n + 1 - np.maximum.outer(grid, grid)) / (n + 1)
    return {
        "Brockett": lambda V: anp.sum(V * anp.dot(S, V) * weights),
        "covariance": lambda V: -anp.sum(anp.dot(X, V) ** 2 * weights),
        "log cosh": lambda V: anp.sum(anp.log(anp.cosh(anp.dot(X, V)))),
        "quartic": lambda V: -anp.sum(anp.dot(X, V) ** 4),
        "Procrustes": lambda V: anp.sum((anp.dot(X, V) - B) ** 2),
        "electrons": energy,
    }


def run(report):
    for n, m in SHAPES:
        rng = np.random.default_rng(1)
        starts = [random_orthogonal(n, rng, columns=m) for _ in range(STARTS)]
        for name, f in objectives(n, m).items():
            title = f"{name}, {n} x {m}"
            best, rivals, _ = beside_pymanopt(report, title, f, starts, REPEATS, wanted=1)
            if (n, m) == CHARTED:
                report.ratio(f"few columns: {title}", f"pymanopt, {best}", rivals[best].times, wanted=1)
