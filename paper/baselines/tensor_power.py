"""The robust tensor power method (Anandkumar et al. 2014, Algorithm 1): the rival of `givens.decompose`.

One component at a time: L random starts on the sphere, iterated as θ ← T(I, θ, θ)/‖·‖, the best by T(θ, θ, θ) iterated further,
and its λ θ⊗θ⊗θ taken out of T before the next. All starts go through one matrix product, with T unfolded to
d x d(d+1)/2 by its symmetry, and what was found is taken out of the product instead of the tensor.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from givens.objectives.tensor import SymmetricTensor
from givens.result import Result, Trace
from givens.support.arguments import generator, whole
from givens.tensors.decompose import Decomposition


def tensor_power(
    T: np.ndarray,
    rank: int | None = None,
    *,
    starts: int = 10,
    iterations: int = 30,
    tol: float = 1e-8,
    symmetrize: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> Decomposition:
    """Decompose a symmetric tensor by the robust power method.

    Parameters
    ----------
    T : array, shape (d, d, d)
        Symmetric.
    rank : int, optional
        How many components to find, d by default.
    starts : int, default=10
        L of the method: random starts for each component.
    iterations : int, default=30
        N of the method: iterations of each start, and again of the best.
    tol : float, default=1e-8
        Stop iterating early when no vector moves by more than this.
    symmetrize : bool, default=False
        Average T over the six orders of its indices first.
    random_state : int or Generator, optional

    Returns
    -------
    Decomposition
        As by `givens.decompose`; the factors are orthogonal only as far as T is an orthogonal tensor.

    Examples
    --------
    >>> import numpy as np
    >>> from paper.baselines import tensor_power
    >>> V = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    >>> T = np.einsum("a,ia,ja,ka->ijk", [3.0, 2.0, 1.0], V, V, V)
    >>> tensor_power(T, random_state=0).weights.round(8)
    array([3., 2., 1.])
    """
    began = perf_counter()
    for name, number in (("starts", starts), ("iterations", iterations)):
        whole(number, name, 1)
    objective = SymmetricTensor(T, rank, symmetrize=symmetrize)
    rng = generator(random_state)
    iteration = _Iteration(objective, tol)
    for _ in range(objective.active):
        theta = rng.standard_normal((objective.n, starts))
        theta /= np.linalg.norm(theta, axis=0)
        theta = iteration.run(theta, iterations)
        heights = np.sum(theta * iteration.image(theta), axis=0)
        best = theta[:, [np.argmax(heights)]]
        iteration.take_out(iteration.run(best, iterations))
    return _finish(objective, iteration, perf_counter() - began)


class _Iteration:
    """θ ← T(I, θ, θ)/‖·‖ for several θ at once, of T less what was taken out."""

    def __init__(self, objective: SymmetricTensor, tol: float) -> None:
        d = objective.n
        self.j, self.k = np.triu_indices(d)
        # Entries (x, j, k) and (x, k, j) are one column, counted twice.
        self.unfolded = objective.T[:, self.j, self.k] * np.where(self.j == self.k, 1.0, 2.0)
        self.vectors = np.empty((d, 0))
        self.weights = np.empty(0)
        self.tol = tol
        self.steps = 0
        self.flops = 0.0
        self.converged = True

    def image(self, theta: np.ndarray) -> np.ndarray:
        """T(I, θ, θ), column by column."""
        out = self.unfolded @ (theta[self.j] * theta[self.k])
        if len(self.weights):
            out -= (self.vectors * self.weights) @ (self.vectors.T @ theta) ** 2
        d, starts, found = *theta.shape, len(self.weights)
        self.flops += (2.0 * d + 1.0) * len(self.j) * starts + (4.0 * d + 1.0) * found * starts
        self.flops += d * (found + starts) if found else 0
        return out

    def run(self, theta: np.ndarray, iterations: int) -> np.ndarray:
        """Iterate until nothing moves, or so many times."""
        for _ in range(iterations):
            new = self.image(theta)
            length = np.sqrt(np.einsum("ij,ij->j", new, new))
            new /= np.where(length > 0, length, 1.0)
            # Where T(I, θ, θ) vanishes, nothing is left to find in that direction: stay.
            new = np.where(length > 0, new, theta)
            moved = np.abs(new - theta).max()
            self.flops += 3.0 * theta.size
            theta = new
            self.steps += 1
            if moved <= self.tol:
                return theta
        self.converged = self.converged and theta.shape[1] > 1
        return theta

    def take_out(self, theta: np.ndarray) -> None:
        """Deflate: λ = T(θ, θ, θ)."""
        height = float(np.sum(theta * self.image(theta)))
        self.vectors = np.column_stack((self.vectors, theta))
        self.weights = np.append(self.weights, height)


def _finish(objective: SymmetricTensor, iteration: _Iteration, seconds: float) -> Decomposition:
    order = np.argsort(-iteration.weights, kind="stable")
    factors = np.ascontiguousarray(iteration.vectors[:, order])
    weights = iteration.weights[order]
    value = -objective.factor * float(weights.sum())
    trace = Trace()
    trace.append(0, seconds, iteration.flops, value, float("nan"))
    result = Result(
        U=factors,
        value=value,
        converged=iteration.converged,
        message=f"{iteration.steps} power iterations"
        + (
            "" if iteration.converged else "; some component had not settled after the last of its iterations"
        ),
        sweeps=iteration.steps,
        rotations=0,
        flops=iteration.flops,
        gradient_norm=float("nan"),
        orthogonality=float(np.linalg.norm(factors.T @ factors - np.eye(len(weights)))),
        seconds=seconds,
        trace=trace,
    )
    heights = np.sum(factors * objective.squares(factors), axis=0)
    left = objective.norm**2 - 2 * weights @ heights + weights @ (factors.T @ factors) ** 3 @ weights
    residual = np.sqrt(max(left, 0.0)) / (objective.norm or 1.0)
    return Decomposition(-objective.factor * weights, factors, float(residual), result)
