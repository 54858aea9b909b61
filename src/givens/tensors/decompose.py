"""Orthogonal tensor decomposition: T = Σ λ_i v_i⊗v_i⊗v_i with orthonormal v_i, by rotations (the paper's Algorithm 4).

The v_i are the U that maximises Σ T(u_i, u_i, u_i), and λ_i = T(v_i, v_i, v_i). All components are found together: nothing is
deflated, and an error in one is not handed on to the next. If T is an orthogonal tensor plus noise E, a pair of components is off
by the angle (E_iij − E_ijj)/(λ_i + λ_j), where the power method is off by E_iij/λ_i.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from givens.numerics import flop_counts, modes, parallel
from givens.numerics.polar import polar_by_products
from givens.objectives.tensor import SymmetricTensor, negligible
from givens.result import PhaseSummary, Result
from givens.rotations import random_orthogonal
from givens.schedules import Schedule
from givens.solve.minimize import minimize
from givens.solve.outer_loops import best_of
from givens.support.arguments import counted, generator, one_of, tolerance, warn_caller, whole
from givens.tensors.from_samples import MomentTensor


@dataclass
class Decomposition:
    """T ≈ Σ weights[i] · v_i⊗v_i⊗v_i.

    Attributes
    ----------
    weights : array, shape (rank,)
        λ, in descending order. They are not negative: −λ with v is λ with −v.
    factors : array, shape (d, rank)
        The v_i, as columns.
    residual : float
        ‖T − Σ λ_i v_i⊗v_i⊗v_i‖ / ‖T‖, in the Frobenius norm; 0 for T = 0.
    result : Result
        The run: value (Σ λ_i), trace, flops, why it stopped. Flops, seconds and method include its start, the trace does not.
    """

    weights: np.ndarray
    factors: np.ndarray
    residual: float
    result: Result

    def __iter__(self) -> Iterator[np.ndarray]:
        """The weights and the factors: `weights, factors = decompose(T)`."""
        return iter((self.weights, self.factors))

    def reconstruct(self) -> np.ndarray:
        """The d x d x d array Σ λ_i v_i⊗v_i⊗v_i."""
        d, rank = self.factors.shape
        pairs = (self.factors[:, None, :] * self.factors).reshape(d * d, rank)
        return ((self.factors * self.weights) @ pairs.T).reshape(d, d, d)


def decompose(
    T: np.ndarray | SymmetricTensor | MomentTensor,
    rank: int | None = None,
    *,
    start: str | np.ndarray | None = None,
    n_starts: int = 1,
    symmetrize: bool = False,
    schedule: str | Schedule | None = None,
    tol: float = 1e-6,
    max_iter: int = 100,
    threads: int | None = None,
    random_state: int | np.random.Generator | np.random.RandomState | None = 0,
) -> Decomposition:
    """Decompose a symmetric tensor into orthonormal components.

    Warns if all d components together leave more than half of the norm of T: then T is not an orthogonal tensor, nor close to
    one.

    Parameters
    ----------
    T : array, shape (d, d, d), or SymmetricTensor or MomentTensor
        Symmetric. For third moments of samples see `objectives.from_samples`, whose outcome can stand here.
    rank : int, optional
        How many components; d by default. With fewer, those of the largest λ if the start is "power", which looks at all d. From
        another start no rotation of two columns need lead from a component to a larger one that is spread over several.
    start : "power", "eigh", "random" or array of shape (d, d), optional
        "eigh": the eigenvectors of T contracted with a random vector, which decompose a tensor without noise outright.
        "power": from there, some power iterations of all columns at once, U ← polar(T(·, u_i, u_i)). "random": a random
        orthogonal matrix. By default "power", and "eigh" where d is small and all components are wanted.
    n_starts : int, default=1
        Number of starts, each with a random vector of its own; the best run is kept, and `result.starts` has the values of all.
    symmetrize : bool, default=False
        Average T over the six orders of its indices. Without it, a T that is not symmetric is refused.
    schedule : str or Schedule, optional
        By default a tournament with blocks that suit d.
    tol : float, default=1e-6
        Converged when an iteration gains at most tol² times the objective's scale, the norm of T times the root of the rank: tol
        is about the error that is left in the components.
    max_iter : int, default=100
        Maximum number of iterations, which are sweeps.
    threads : int, optional
        As for `minimize`; by default one where d is small.
    random_state : int, Generator or RandomState or None, default=0
        For the starts, and for schedules that draw.

    Returns
    -------
    Decomposition

    Examples
    --------
    >>> import numpy as np
    >>> from givens import decompose
    >>> V = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    >>> T = np.einsum("a,ia,ja,ka->ijk", [4.0, 3.0, 2.0, 1.0], V, V, V)
    >>> found = decompose(T, random_state=0)
    >>> found.weights.round(10)
    array([4., 3., 2., 1.])
    >>> bool(np.allclose(np.abs(found.factors.T @ V), np.eye(4))), bool(found.residual < 1e-12)
    (True, True)
    """
    if isinstance(T, np.ndarray) or not isinstance(T, (SymmetricTensor, MomentTensor)):
        T = SymmetricTensor(T, rank, symmetrize=symmetrize)
    elif rank is not None and rank != T.active:
        raise ValueError(
            f"the objective counts {T.active} columns, so rank = {rank} must be given to it instead"
        )
    found = orthogonal_components(
        T,
        start,
        n_starts,
        method=schedule,
        tol=tol,
        max_iter=max_iter,
        threads=threads,
        random_state=random_state,
    )
    # Tensors of order 8 without structure leave 0.7.
    if T.active == T.n and found.residual > 0.5:
        warn_caller(
            f"the components found leave {found.residual:.2g} of the norm of T unexplained: T is not an orthogonal tensor, "
            "nor close to one"
        )
    return found


def orthogonal_components(
    objective: SymmetricTensor | MomentTensor,
    start: str | np.ndarray | None = None,
    n_starts: int = 1,
    *,
    random_state: int | np.random.Generator | np.random.RandomState | None,
    threads: int | None = None,
    tol: float = 1e-6,
    **options: Any,
) -> Decomposition:
    """What `decompose` returns, without its warning; `options` are those of `minimize`."""
    if start is None:
        # In small tensors, power iterations take more time than they save.
        start = "eigh" if objective.active == objective.n <= 32 else "power"
    elif isinstance(start, str):
        one_of(start, "start", ("power", "eigh", "random"), " or an orthogonal matrix")
    if threads is None and objective.n <= 64:
        threads = 1  # more of them take more time than they save
    rng, tol = generator(random_state), tolerance(tol, "tol")
    options |= {"tol": tol, "threads": threads, "random_state": rng}
    n_starts = whole(n_starts, "n_starts", 1) if isinstance(start, str) else 1
    with parallel.pool(threads):
        best, runs = best_of(
            range(n_starts), lambda _: _run(objective, start, rng, tol, options), lambda run: run.value
        )
        best.flops = sum(run.flops for run in runs)
        if n_starts > 1:
            best.starts = np.array([run.value for run in runs])
        return _finish(objective, best)


def _run(
    objective: SymmetricTensor | MomentTensor,
    start: str | np.ndarray,
    rng: np.random.Generator,
    tol: float,
    options: dict[str, Any],
) -> Result:
    """One run; what its start took is part of the result, but for the trace."""
    began, steps = perf_counter(), 0
    name = start if isinstance(start, str) else "given"
    with flop_counts.job(flop_counts.Flops()) as counter:
        if name == "given":
            U, words = np.asarray(start), "the given matrix"
        elif name == "random":
            U, words = random_orthogonal(objective.n, rng), "a random matrix"
        else:
            U, words = objective.start(rng), "eigenvectors of a contraction"
        if name == "power":
            least = 0.5 * negligible(tol**2 * objective.scale, objective.scale)
            U, steps = power_steps(_squares(objective), U, least)
            # Beside the squares two products, and six steps of Newton and Schulz for the polar factor.
            flop_counts.count(steps * 28.0 * objective.n**3)
            words += f", then {counted(steps, 'power iteration', 'power iterations')}"
        elif U.shape == objective.shape:  # `minimize` refuses others
            # Signs for which no T(u, u, u) is negative; every rotation of two columns to their maximum keeps that so.
            U = U * np.copysign(1.0, (U * objective.squares(U)).sum(axis=0))
    result = minimize(objective, U, **options)
    seconds = perf_counter() - began - result.seconds
    result.flops += counter.flops
    result.seconds += seconds
    result.phases = (
        PhaseSummary(name, steps, float("nan"), counter.flops, seconds),
        *result.phases,
    )
    result.method = f"{words}, then {result.method}"
    return result


def _squares(objective: SymmetricTensor | MomentTensor) -> Callable[[np.ndarray], np.ndarray]:
    """The function U ↦ T(·, u, u), for many calls: of a `SymmetricTensor`, it keeps half of the entries."""
    return modes.quadratic(objective.T) if isinstance(objective, SymmetricTensor) else objective.squares


def power_steps(
    squares: Callable[[np.ndarray], np.ndarray], U: np.ndarray, min_gain: float, most: int = 30
) -> tuple[np.ndarray, int]:
    """U ← polar(T(·, u_i, u_i)) until no more than `min_gain` is left to gain, or rotations do it sooner; the largest come first.

    Returns U, with no negative T(u_i, u_i, u_i), and the number of iterations. `squares` is the function of U whose columns are
    T(·, u_i, u_i).

    Near the solution, where UᵀW of the images W is nearly diagonal, its polar factor is I + X with
    X_ij = (T_ijj − T_iij)/(λ_i + λ_j): a step of Newton's method for all pairs at once, with the diagonal of the Hessian.
    Far from it, this is the power method with its columns kept apart.
    """
    value, left, steps = -np.inf, np.inf, 0
    while True:
        steps += 1
        images = squares(U)
        products = U.T @ images
        heights = np.diag(products)
        skew = products - products.T
        last_value, value = value, float(np.abs(heights).sum())
        # A pair gains 3/2 (T_iij − T_ijj)²/(λ_i + λ_j); here with the mean of the λ, and every pair twice.
        last, left = left, 0.375 * float(np.vdot(skew, skew)) * len(U) / (value or 1.0)
        # A sweep of rotations takes as long as some eight iterations.
        slow = value <= last_value * (1 + 1e-11) and left * (left / last) ** 8 > min_gain
        if steps == most or left <= min_gain or slow:
            break
        near = np.abs(skew).max() < 0.1 * heights.min()
        U = polar_by_products(U + U @ (skew / (heights[:, None] + heights)) if near else images)
    U = U * np.copysign(1.0, heights)
    return np.ascontiguousarray(U[:, np.argsort(-np.abs(heights), kind="stable")]), steps


def _finish(objective: SymmetricTensor | MomentTensor, result: Result) -> Decomposition:
    columns = result.U[:, : objective.active]
    weights = (columns * objective.squares(columns)).sum(axis=0)
    residual = objective.residual(result.U, weights)
    sizes = np.abs(weights)
    order = (-sizes).argsort(kind="stable")
    factors = (columns * np.copysign(1.0, weights)).take(order, axis=1)
    return Decomposition(-objective.factor * sizes[order], factors, residual, result)
