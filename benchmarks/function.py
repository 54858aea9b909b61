"""Plain functions of an orthogonal matrix, beside pymanopt.

Four objectives of order 10 and 100: orthogonal Procrustes, a cubic (a random symmetric tensor), a quartic and log cosh, which is
no polynomial. Both sides get the same gradient, by autograd, and the same random starts. pymanopt works on its special orthogonal
group; each of its optimizers runs until its gradient is below 1e-8 or it gives up; the fastest is taken for each objective.
The gradient that each side ends at is shown: conjugate gradients and steepest descent often give up before 1e-8.

Such functions cost microseconds, so most of the time is that of the library around them, and of autograd. The claims also say how
many times faster than pymanopt the evaluations that `givens` makes would be by themselves: a bound for any library around them.

Without a gradient `givens` sees values only, and ends with a search of every pair of columns over all angles.
"""

from __future__ import annotations

from time import perf_counter

import autograd.numpy as anp
import numpy as np
import pymanopt
from autograd import grad
from pymanopt.manifolds import SpecialOrthogonalGroup
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions

from givens import autodiff, minimize
from givens.objectives import Function
from givens.rotations import random_orthogonal

OPTIMIZERS = {
    "conjugate gradient": ConjugateGradient,
    "trust regions": TrustRegions,
    "steepest descent": SteepestDescent,
}
GRADIENT = 1e-8
STARTS = {10: 20, 100: 6}
TIMED = {10: 5, 100: 2}  # of these starts, so many are timed with each optimizer


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

    def cubic(U):
        return -anp.sum(U * anp.einsum("abi,bi->ai", anp.tensordot(T, U, 1), U))

    return {
        "Procrustes": (lambda U: anp.sum((anp.dot(A, U) - B) ** 2), 2),
        "cubic": (cubic, 3),
        "quartic": (lambda U: -anp.sum(anp.dot(A, U) ** 4), 4),
        "log cosh": (lambda U: anp.sum(anp.log(anp.cosh(anp.dot(A, U)))), None),
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
    timed = starts[: TIMED[n]]
    both = Counted(autodiff.autograd(f))
    givens_minimum(both, starts[0])  # what is loaded at the first call is not part of the race
    both.calls, both.seconds = 0, 0.0
    timing = report.time(lambda: [givens_minimum(both, start) for start in timed], repeat=1)
    ours = timing.best / len(timed)
    evaluations, inside = both.calls / len(timed), both.seconds / len(timed)
    rows = {"givens": (ours, timing.value, evaluations)}
    for rival, optimizer in OPTIMIZERS.items():
        if n > 10 and rival == "steepest descent":
            continue  # it runs into its limit of time
        found = report.time(lambda o=optimizer: [pymanopt_minimum(f, o, s, n) for s in timed], repeat=1)
        rows[f"pymanopt, {rival}"] = (found.best / len(timed), found.value, float("nan"))
    for method, (seconds, found, calls) in rows.items():
        report.row(
            objective=name,
            method=method,
            seconds=seconds,
            mean_value=float(np.mean([f(U) for U in found])),
            largest_gradient_norm=max(gradient_norm(f, U) for U in found),
            evaluations=calls,
        )
    rivals = {method: row for method, row in rows.items() if method != "givens"}
    best = min(rivals, key=lambda method: rivals[method][0])
    report.claim(
        f"{name}: times faster than {best}; the evaluations alone would be {rivals[best][0] / inside:.1f} times",
        "at least 5",
        rivals[best][0] / ours,
        rivals[best][0] >= 5 * ours,
    )
    _means(report, name, f, n, starts, both, rivals[best][0])


def _means(report, name, f, n, starts, both, rival_seconds):
    """The values of all starts, both sides; and how long a race of as many starts takes."""
    ours = np.array([f(givens_minimum(both, start)) for start in starts])
    timing = report.time(
        lambda: givens_minimum(both, starts[0], n_starts=len(starts), random_state=0), repeat=1
    )
    theirs = np.array([f(pymanopt_minimum(f, ConjugateGradient, start, n)) for start in starts])
    error = float(np.hypot(ours.std(ddof=1), theirs.std(ddof=1)) / np.sqrt(len(starts)))
    excess = float(ours.mean() - theirs.mean())
    report.claim(
        f"{name}: mean value of {len(starts)} starts above pymanopt's, standard error {error:.2g}",
        "at most a standard error",
        excess,
        excess <= error + 1e-9 * abs(theirs.mean()),
    )
    report.claim(
        f"{name}: seconds for the best of {len(starts)} starts, which race, over pymanopt's for one",
        "at most 1",
        timing.best / rival_seconds,
        timing.best <= rival_seconds,
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


def givens_minimum(both, start, **options):
    """Until the gradient is as small as pymanopt's has to be: its norm of the same gradient is half of ours."""
    function = Function(both, len(start), jac=True)
    return minimize(function, start, gradient_tol=2 * GRADIENT / function.scale, tol=1e-26, **options).U


def pymanopt_minimum(f, optimizer, start, n):
    """Where one of pymanopt's optimizers ends, with room enough that its tolerance decides."""
    manifold = SpecialOrthogonalGroup(n)
    problem = pymanopt.Problem(manifold, pymanopt.function.autograd(manifold)(f))
    solver = optimizer(min_gradient_norm=GRADIENT, max_iterations=5_000, max_time=20, verbosity=0)
    return solver.run(problem, initial_point=start).point


def gradient_norm(f, U):
    """By the paper's definition: √2 times the Frobenius norm of EᵀU − UᵀE over the pairs i < j."""
    E = grad(f)(U)
    return float(np.linalg.norm(E.T @ U - U.T @ E))
