"""Plain functions of an orthogonal matrix, beside pymanopt.

Six objectives of order 10 and 100: orthogonal Procrustes, a cubic (a random symmetric tensor), a quartic, log cosh, which is no
polynomial, and two whose curvatures differ by orders of magnitude: Brockett's weighted sum of squares, and a Procrustes problem
with weights on both sides. Both libraries get the same gradient, by autograd, and the same starts. pymanopt works on its special
orthogonal group; each of its optimizers runs until its gradient is below 1e-8 or it gives up, as conjugate gradients and steepest
descent often do. At order 100 it has one thread of BLAS or all, whichever it is faster with from the first start. `givens` is
timed to 1e-8, and to the gradient at which each optimizer ended from the same start; the claim takes the optimizer that `givens`
is ahead of by least.

Such functions cost microseconds, so most of the time is that of the library around them, and of autograd. The claims also say how
many times faster than pymanopt the evaluations that `givens` makes would be by themselves: a bound for any library around them.

Without a gradient `givens` sees values only, and ends with a search of every pair of columns over all angles.
"""

from __future__ import annotations

import os
from time import perf_counter
from typing import NamedTuple

import autograd.numpy as anp
import numpy as np
import pymanopt
from autograd import grad
from pymanopt.manifolds import SpecialOrthogonalGroup, Stiefel
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions
from threadpoolctl import threadpool_limits

from givens import autodiff, minimize
from givens.numerics import parallel
from givens.objectives import Function
from givens.rotations import random_orthogonal
from givens.solve.minimize import planned
from givens.solve.race import lowest_run

OPTIMIZERS = {
    "conjugate gradient": ConjugateGradient,
    "trust regions": TrustRegions,
    "steepest descent": SteepestDescent,
}
GRADIENT = 1e-8
ENDS = 2 * GRADIENT  # pymanopt's norm of the same gradient is half of ours
STARTS = {10: 20, 100: 20}
TIMED = {10: 5, 100: 2}  # of these starts, so many are timed with each optimizer
REPEATS = {10: 5, 100: 1}  # runs of milliseconds are repeated, on both sides, and the fastest is taken


class Counted:
    """A function that counts its calls, and the seconds in them."""

    def __init__(self, f):
        self.f, self.calls, self.seconds = f, 0, 0.0

    def __call__(self, U):
        began = perf_counter()
        out = self.f(U)
        self.seconds += perf_counter() - began
        self.calls += 1
        return out


def objectives(n):
    """Name, function (of NumPy's or autograd's arrays), degree."""
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, 3 * n, n))
    T = rng.standard_normal((n, n, n))
    orders = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
    T = sum(T.transpose(order) for order in orders) / 6
    weights = np.logspace(0, 1, n)

    def cubic(U):
        return -anp.sum(U * anp.einsum("abi,bi->ai", anp.tensordot(T, U, 1), U))

    return {
        "Procrustes": (lambda U: anp.sum((anp.dot(A, U) - B) ** 2), 2),
        "cubic": (cubic, 3),
        "quartic": (lambda U: -anp.sum(anp.dot(A, U) ** 4), 4),
        "log cosh": (lambda U: anp.sum(anp.log(anp.cosh(anp.dot(A, U)))), None),
        "Brockett": (lambda U: anp.sum(anp.dot(A, U) ** 2 * np.arange(1, n + 1)), 2),
        "weighted Procrustes": (
            lambda U: anp.sum((anp.dot(anp.dot(A * weights, U), weights[:, None] * B[:n]) - B) ** 2),
            2,
        ),
    }


def run(report):
    for n in STARTS:
        rng = np.random.default_rng(1)
        starts = [random_orthogonal(n, rng, determinant=1) for _ in range(STARTS[n])]
        for name, (f, _) in objectives(n).items():
            _with_gradient(report, f"{name}, order {n}", f, n, starts)
    rng = np.random.default_rng(1)
    start = random_orthogonal(10, rng, determinant=1)
    for name, (f, degree) in objectives(10).items():
        _values_only(report, name, f, degree, start)
    for determinant in (1, -1):
        _procrustes(report, determinant)


def _with_gradient(report, name, f, n, starts):
    best, fastest, both = beside_pymanopt(report, name, f, starts[: TIMED[n]], REPEATS[n])
    report.ratio(f"function: {name}", f"pymanopt, {best}", fastest[best].times, wanted=5)
    # Brockett's minima are all equal, and twenty weighted problems would take pymanopt many minutes.
    if not name.startswith(("Brockett", "weighted")):
        _means(report, name, f, n, starts, both, min(fastest.values(), key=lambda rival: rival.seconds))


def beside_pymanopt(report, name, f, starts, repeats, wanted=5):
    """Time both libraries from these starts: the optimizer that we are ahead of by least, all of them, and our function."""
    both = Counted(autodiff.autograd(f))
    givens_minimum(both, starts[0])  # what is loaded at the first call is not part of the race
    ours = _timed(report, both, starts, [ENDS] * len(starts), repeats)
    _row(report, name, "givens", f, ours.seconds, ours.found, evaluations=ours.evaluations)
    rivals = {}
    for optimizer, kind in OPTIMIZERS.items():
        if starts[0].size > 100 and optimizer == "steepest descent":
            continue  # it runs into its limit of time
        with threadpool_limits(_best_threads(f, kind, starts[0])):
            found = report.time(lambda k=kind: [pymanopt_minimum(f, k, s) for s in starts], repeat=repeats)
        seconds, ends = found.best / len(starts), [max(gradient_norm(f, U), ENDS) for U in found.value]
        same = _timed(report, both, starts, ends, repeats)
        _row(report, name, f"pymanopt, {optimizer}", f, seconds, found.value, same=same.seconds)
        rivals[optimizer] = Rival(seconds, min(ends), seconds / same.seconds, seconds / same.inside)
    best = min(rivals, key=lambda optimizer: rivals[optimizer].times)
    report.claim(
        f"{name}: times faster than pymanopt's {best}, to the gradient where that ends; the evaluations alone would be "
        f"{rivals[best].bound:.1f} times",
        f"at least {wanted}",
        rivals[best].times,
        rivals[best].times >= wanted,
    )
    return best, rivals, both


class Rival(NamedTuple):
    """Seconds of an optimizer, the least gradient that it ended at, and how many times faster our runs and evaluations were."""

    seconds: float
    end: float
    times: float
    bound: float


class Ours(NamedTuple):
    """Means over the starts: seconds, evaluations, seconds in them; and where the runs ended."""

    seconds: float
    evaluations: float
    inside: float
    found: list[np.ndarray]


def _timed(report, both, starts, ends, repeats):
    """Minimise from every start until the norm of the gradient is what `ends` says."""
    both.calls, both.seconds = 0, 0.0
    timing = report.time(
        lambda: [givens_minimum(both, s, end) for s, end in zip(starts, ends)], repeat=repeats
    )
    runs = len(starts) * repeats
    return Ours(timing.best / len(starts), both.calls / runs, both.seconds / runs, timing.value)


def _row(report, name, method, f, seconds, found, evaluations=None, same=None):
    report.row(
        objective=name,
        method=method,
        seconds=seconds,
        mean_value=float(np.mean([f(U) for U in found])),
        largest_gradient_norm=max(gradient_norm(f, U) for U in found),
        evaluations=evaluations,
        givens_to_the_same_gradient=same,
    )


def _means(report, name, f, n, starts, both, rival):
    """The values of all starts, both sides; and how long a race of as many starts takes."""
    ours = np.array([f(givens_minimum(both, start)) for start in starts])
    # Starts share the threads where a call takes long enough for that.
    options = {"n_starts": len(starts), "random_state": 0, "threads": os.cpu_count() if n > 10 else None}
    timing = report.time(lambda: givens_minimum(both, starts[0], rival.end, **options), repeat=REPEATS[n])
    theirs = np.array([f(pymanopt_minimum(f, ConjugateGradient, start)) for start in starts])
    error = float(np.hypot(ours.std(ddof=1), theirs.std(ddof=1)) / np.sqrt(len(starts)))
    excess = float(ours.mean() - theirs.mean())
    report.claim(
        f"{name}: mean value of {len(starts)} starts above pymanopt's, standard error {error:.2g}",
        "at most a standard error",
        excess,
        excess <= error + 1e-9 * abs(theirs.mean()),
    )
    report.claim(
        f"{name}: seconds for the best of {len(starts)} starts, which race, over those of pymanopt's fastest for one",
        "at most 1",
        timing.best / rival.seconds,
        timing.best <= rival.seconds,
    )


def _values_only(report, name, f, degree, start):
    calls = Counted(f)
    timing = report.time(lambda: minimize(Function(calls, 10, degree=degree), start), repeat=1)
    result = timing.value
    report.row(
        objective=f"{name}, order 10, values only",
        method="givens" if degree is None else f"givens, degree={degree}",
        seconds=timing.best,
        mean_value=result.value,
        largest_gradient_norm=gradient_norm(f, result.U),
        evaluations=calls.calls,
    )
    norm = gradient_norm(f, result.U)
    report.claim(f"{name}, values only: gradient norm, by autograd", "< 1e-6", norm, norm < 1e-6)


def _procrustes(report, determinant):
    f, degree = objectives(10)["Procrustes"]
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, 30, 10))
    left, _, right = np.linalg.svd(A.T @ B)
    signs = np.ones(10)
    signs[-1] = determinant * np.sign(np.linalg.det(left @ right))
    exact = f((left * signs) @ right)
    result = minimize(Function(f, 10, degree=degree), determinant=determinant, random_state=0)
    excess = (result.value - exact) / exact
    assert result.determinant == determinant
    report.claim(
        f"Procrustes, determinant {determinant}: above the SVD's minimum by", "≤ 1e-8", excess, excess <= 1e-8
    )


def givens_minimum(both, start, end=ENDS, **options):
    """Until the norm of the gradient is below `end`."""
    function = Function(both, start.shape, jac=True)
    ends = planned(function, tol=1e-13, gradient_tol=end / function.scale)
    with parallel.pool(1):
        return lowest_run(function, start, ends, **options).U


def pymanopt_minimum(f, optimizer, start):
    """Where one of pymanopt's optimizers ends, with room enough that its tolerance decides."""
    n, m = start.shape
    manifold = SpecialOrthogonalGroup(n) if m == n else Stiefel(n, m)
    problem = pymanopt.Problem(manifold, pymanopt.function.autograd(manifold)(f))
    solver = optimizer(min_gradient_norm=GRADIENT, max_iterations=5_000, max_time=20, verbosity=0)
    return solver.run(problem, initial_point=start).point


def _best_threads(f, optimizer, start):
    """The number of threads of BLAS with which an optimizer is faster, 1 or None for all. Small products are never shared."""
    if start.size <= 100:
        return None
    seconds = {}
    for threads in (None, 1):
        with threadpool_limits(threads):
            began = perf_counter()
            pymanopt_minimum(f, optimizer, start)
            seconds[threads] = perf_counter() - began
    return min(seconds, key=seconds.get)


def gradient_norm(f, U):
    """By the paper's definition: √2 times the norm of the slopes of all pairs, with those of a completion of n x m matrices."""
    E = grad(f)(U)
    beyond = E - U @ (U.T @ E)
    return float(np.sqrt(np.sum((E.T @ U - U.T @ E) ** 2) + 2 * np.sum(beyond**2)))
