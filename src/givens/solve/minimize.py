"""`minimize`: what to minimise, where to start, when to stop. The runs are in `race`, the loop in `loop`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from givens.numerics import parallel
from givens.objectives.base import Objective
from givens.objectives.function import Function, order_and_columns
from givens.objectives.values import HessianProduct, Jacobian
from givens.result import Result
from givens.rotations import check_orthogonal
from givens.schedules import as_schedule
from givens.solve.checkpoint import Checkpoint, as_checkpoint
from givens.solve.race import Method, lowest_run, phases_of
from givens.solve.state import Callback, RunOptions
from givens.support.arguments import as_array, tolerance, whole


def minimize(
    objective: Objective | Callable[[np.ndarray], Any],
    start: np.ndarray | None = None,
    *,
    n: int | tuple[int, int] | None = None,
    jac: Jacobian = None,
    hess: HessianProduct = None,
    method: Method = None,
    tol: float = 1e-9,
    max_iter: int = 10_000,
    certify: bool | float | None = None,
    determinant: int | str | None = None,
    n_starts: int = 1,
    threads: int | None = None,
    random_state: int | np.random.Generator | np.random.RandomState | None = 0,
    callback: Callback | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
) -> Result:
    """Minimise a function of an orthogonal matrix, by rotations of two columns or descent of all columns.

    Parameters
    ----------
    objective : Objective or callable
        What to minimise. A callable f(U) -> float is wrapped in `objectives.Function` and needs `n` or `start`. It may return
        an array of one number, such as the product u.T @ A @ u of shape (1, 1); and infinity where it is not defined, but not at
        the start.
    start : array, shape (n, n) or (n, m), optional
        An orthogonal matrix to start from. By default the objective chooses: the identity for `Columns`, the principal axes for
        `SparseColumns`, a random rotation for a plain function.
    n : int or tuple of int, optional
        For a plain function, the order of U, or the pair (n, m) of its numbers of rows and columns: functions of n x m matrices
        with orthonormal columns (a Stiefel manifold). With `jac`, their descent computes nothing of order n². Rotations of two
        columns, in sweeps and certificates, are then those of n x n matrices of which f depends on the first m columns. By
        default the shape of `start`.
    jac : callable or True, optional
        For a plain function, the matrix ∂f/∂U of partial derivatives: a function of U, or True if f returns the value and this
        matrix, as in `scipy.optimize.minimize`. Without it, slopes are finite differences. `givens.autodiff` computes it by
        PyTorch, JAX or autograd. Before the run, `jac` and `hess` are compared with finite differences once.
    hess : callable, optional
        For a plain function of square matrices, with `jac`: hess(U, V) is the derivative of ∂f/∂U along the n x n matrix V, that
        is d/dt ∂f/∂U (U + tV) at t = 0, as `hessp` in `scipy.optimize.minimize`. Runs then end with Newton's method, which finds
        the minimum also where curvatures differ by a factor of 1e14. Functions of `givens.autodiff` have it as `f.hess`.
    method : str, Schedule or sequence of them, optional
        The phases of the run in their order, the ways to lower f: "descent" (quasi-Newton steps of all columns, from the slopes
        of all pairs), "newton" (Newton's method, for objectives with second derivatives; it takes over where descent becomes
        slow), "sweeps" (rotations of pairs to their best angle, or of blocks of columns), "widened sweeps" (for n x m matrices:
        these columns and 2m others, chosen before each sweep, as one block). A phase follows where the one before it can lower f
        no further without having converged, or where sweeps would have to go on for long. In place of "sweeps", the order of
        pairs: "tournament", "random" (Algorithm 1), "without-replacement" (the appendix), "cyclic", "shuffled", "gradient", or an
        object of `givens.schedules`, which also sets the size of blocks. By default the objective chooses, for sweeps a
        tournament, in blocks where that is faster. `Result.method` says what was done.
    tol : float, default=1e-9
        Converged when an iteration gains at most tol² times the scale of the objective (`Result.scale`): tol is about the error
        that is left in the components. Of a step of descent or of Newton's method it is the predicted gain. Gains are computed
        from slopes and pair problems, not as differences of values, so they can be smaller than the rounding errors of f.
    max_iter : int, default=10_000
        Maximum number of steps, of all phases together; a sweep is one step.
    certify : bool or float, optional
        When the run has converged, search every pair of columns over all angles, which takes at most about two sweeps.
        `Result.certificate` has the largest gain found. Gains above rounding are taken, and the run continues. A number between
        0 and 1 searches this share of the pairs, chosen at random. By default only plain functions of square matrices without
        `jac` are certified.
    determinant : 1, -1 or "both", optional
        The component of O(n) to search, which rotations never leave. A start in the other component has its last column
        reversed. "both" searches both components and returns the better result; None keeps the component of the start. For n x m
        matrices, m < n, there is one component only.
    n_starts : int, default=1
        Number of starts, for functions with many local minima. The first one is as above, the others are random orthogonal
        matrices of the same determinant. Each is run until the next step is predicted to gain less than 1e-4 of the run's gain
        so far, and only the lowest run is continued to the end and returned; `Result.starts` has the values where each run
        stopped. On 216 functions of twelve kinds with ten starts each, this missed the lowest minimum in 4, by at most 2 % of the
        gain. `random_state` makes the starts reproducible. Runs share the threads, except for data in chunks, and with a
        callback.
    threads : int, optional
        Number of threads, by default one per core, at most 8. It changes the time, never the result. A plain function is called
        from several threads at once only if this is given; it saves time with several starts, in certificates and in differences
        of values, if a call takes milliseconds, most of them outside Python's own loops.
    random_state : int, Generator or RandomState or None, default=0
        Seed or generator of the start and the schedule.
    callback : callable, optional
        Called after each step with a `Snapshot`; stops the run by returning True, or by raising StopIteration. Starts that follow
        are then left out.
    checkpoint : path or Checkpoint, optional
        Save the run to this file after every step (or every ten: `Checkpoint(path, every=10)`), and resume from it if it exists.
        With determinant="both" there are two files, with .plus and .minus before the suffix. A run that ends between two saves
        is resumed from the last one. Each save of a run by descent costs one more evaluation of f.

    Returns
    -------
    Result
        The matrix U, its value, why the run stopped, and how it got there.

    Examples
    --------
    The eigenvectors of a symmetric matrix, as the U that makes the off-diagonal entries vanish:

    >>> import numpy as np
    >>> from givens import minimize
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((5, 5)); A = A + A.T
    >>> def off_diagonal(U): return U.T @ A @ U - np.diag(np.diag(U.T @ A @ U))
    >>> def f(U): return np.sum(off_diagonal(U) ** 2)
    >>> def gradient(U): return 4 * A @ U @ off_diagonal(U)
    >>> result = minimize(f, n=5, jac=gradient, random_state=0)
    >>> result.converged, bool(result.value < 1e-12)
    (True, True)
    >>> np.allclose(np.sort(np.diag(result.U.T @ A @ result.U)), np.linalg.eigvalsh(A))
    True
    """
    plain = isinstance(objective, Function) or not isinstance(objective, Objective)
    # Everything runs inside the pool: after a single product outside, idle threads of BLAS would spin for a tenth of a second, on
    # the cores that the pool needs.
    with parallel.pool(1 if plain and threads is None else threads):
        earlier = getattr(objective, "evaluations", 0)
        problem, first = _posed(objective, start, n, (jac, hess))
        options = planned(
            problem,
            method,
            tol=tolerance(tol, "tol"),
            max_iter=whole(max_iter, "max_iter", 0),
            certify=certify,
            callback=_as_callback(callback),
        )
        result = lowest_run(
            problem,
            first,
            options,
            determinant=_component(determinant, problem.shape),
            n_starts=whole(n_starts, "n_starts", 1),
            random_state=random_state,
            checkpoint=None if checkpoint is None else as_checkpoint(checkpoint),
        )
    if isinstance(problem, Function):
        result.evaluations = problem.evaluations - earlier
    return result


def planned(
    objective: Objective, method: Method = None, certify: bool | float | None = None, **options: Any
) -> RunOptions:
    """The options of a run, with the phases and the schedule that `method` names; by default those of the objective."""
    if certify is None:
        certify = isinstance(objective, Function) and objective.square and objective.values.jac is None
    phases, schedule = phases_of(objective.method if method is None else method)
    schedule = schedule or phases_of(objective.method)[1] or "tournament"
    return RunOptions(phases, as_schedule(schedule), certify=_share(certify), **options)


def _share(certify: bool | float) -> float:
    """The share of the pairs to certify; 0 for none."""
    if not (isinstance(certify, bool | np.bool_ | int | float | np.number) and 0 <= certify <= 1):
        raise ValueError(f"certify must be True, False or a share between 0 and 1, got {certify!r}")
    return float(certify)


def _as_callback(callback: Callback | None) -> Callback | None:
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of a Snapshot, got {type(callback).__name__}")
    return callback


def _component(determinant: int | str | None, shape: tuple[int, int]) -> int | str | None:
    if shape[1] < shape[0] and determinant is not None:
        raise ValueError("n x m matrices, m < n, have no determinant: leave it out")
    if determinant not in (None, 1, -1, "both"):
        raise ValueError(f"determinant must be 1, -1, 'both' or None, got {determinant!r}")
    return determinant


def _posed(
    objective: Objective | Callable[[np.ndarray], Any],
    start: np.ndarray | None,
    n: int | tuple[int, int] | None,
    derivatives: tuple[Jacobian, HessianProduct],
) -> tuple[Objective, np.ndarray | None]:
    """The objective, made of a function of matrices of this shape if it is one; and the start, checked."""
    if not isinstance(objective, Objective):
        if not callable(objective):
            raise TypeError(
                f"objective must be an Objective or a function of U, got {type(objective).__name__}"
            )
        shape = _shape_of(start) if n is None else order_and_columns(n)
        first = _checked(start, *shape)
        return Function(objective, shape, None, *derivatives, near=first), first
    if derivatives != (None, None):
        name = "hess" if derivatives[0] is None else "jac"
        raise ValueError(
            f"{name} belongs to a plain function; {type(objective).__name__} knows its own derivatives"
        )
    shape = objective.shape
    if n is not None and order_and_columns(n) != shape:
        raise ValueError(f"n = {n}, but the objective is a function of {shape[0]} x {shape[1]} matrices")
    return objective, _checked(start, *shape)


def _shape_of(start: np.ndarray | None) -> tuple[int, int]:
    """The shape of the matrices of which a function with this start is one."""
    if start is None:
        raise ValueError("n, the order of U, is needed for a plain function (or a start)")
    rows, columns = (*np.shape(as_array(start, "start")), 1, 1)[:2]
    # A start that is wider than long is refused as not square.
    return rows, min(columns, rows)


def _checked(start: np.ndarray | None, n: int, columns: int) -> np.ndarray | None:
    """The start, if it is an orthogonal matrix of this shape."""
    if start is None:
        return None
    shape = np.shape(as_array(start, "start"))
    if len(shape) == 1:
        raise ValueError(
            f"start must be a matrix, got shape {shape}; for a unit vector give start.reshape(-1, 1), of one column"
        )
    first = check_orthogonal(start, name="start", columns=columns if columns < n else None)
    if len(first) != n:
        raise ValueError(f"start is of order {len(first)}, but U is of order {n}")
    return first
