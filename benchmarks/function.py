"""Plain functions of an orthogonal matrix, beside pymanopt.

Four objectives of order 10: orthogonal Procrustes (degree 2), a cubic (a random symmetric tensor), a quartic
and one that is no polynomial and has more than 64 harmonics. They have many local minima, so every method starts
from the same three random rotations. pymanopt works on its special orthogonal group, with gradients (and for
trust regions Hessians) by autograd, each of its optimizers run until its gradient is below 1e-8 or it gives up;
`givens` sees values only, and searches each pair of columns globally. Such functions cost microseconds, so the
seconds are those of the library around them.
"""

from __future__ import annotations

import autograd.numpy as anp
import numpy as np
import pymanopt
from pymanopt.manifolds import SpecialOrthogonalGroup
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions

from givens import minimize
from givens.objectives import Function
from givens.rotations import random_orthogonal

N = 10
OPTIMIZERS = {
    "trust regions": TrustRegions,
    "conjugate gradient": ConjugateGradient,
    "steepest descent": SteepestDescent,
}


def objectives():
    """Name, function (of NumPy's or autograd's arrays), degree."""
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, 30, N))
    T = rng.standard_normal((N, N, N))
    T = (
        sum(
            T.transpose(order) for order in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
        )
        / 6
    )
    return {
        "Procrustes": (lambda U: anp.sum((anp.dot(A, U) - B) ** 2), 2),
        "cubic": (lambda U: -anp.einsum("abc,ai,bi,ci->", T, U, U, U), 3),
        "quartic": (lambda U: -anp.sum(anp.dot(A, U) ** 4), 4),
        "log cosh": (lambda U: anp.sum(anp.log(anp.cosh(anp.dot(A, U)))), None),
    }


def run(report):
    rng = np.random.default_rng(1)
    starts = [random_orthogonal(N, rng, determinant=1) for _ in range(3)]
    for name, (f, degree) in objectives().items():
        settings = "givens" if degree is None else f"givens, degree={degree}"
        methods = {settings: lambda start, f=f, degree=degree: givens_minimum(f, degree, start)}
        for rival, optimizer in OPTIMIZERS.items():
            methods[f"pymanopt, {rival}"] = lambda start, f=f, o=optimizer: pymanopt_minimum(f, o, start)
        best = {}
        for method, solve in methods.items():
            timing = report.time(lambda solve=solve: [solve(start) for start in starts], repeat=1)
            values = [float(f(U)) for U in timing.value]
            best[method] = min(values)
            norm = max(gradient_norm(f, U) for U in timing.value)
            report.row(
                objective=name,
                method=method,
                best_value=min(values),
                mean_value=float(np.mean(values)),
                largest_gradient_norm=norm,
                seconds=timing.best / len(starts),
            )
            if method == settings:
                report.claim(f"{name}: largest gradient norm, by autograd", "< 1e-6", norm, norm < 1e-6)
        ours = best.pop(settings)
        theirs = min(best.values())
        reached = ours <= theirs + 1e-9 * abs(theirs)
        report.claim(f"{name}: best value at most pymanopt's", f"{theirs:.9g}", f"{ours:.9g}", reached)
    for determinant in (1, -1):
        _procrustes(report, determinant)


def _procrustes(report, determinant):
    f, degree = objectives()["Procrustes"]
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, 30, N))
    left, _, right = np.linalg.svd(A.T @ B)
    signs = np.ones(N)
    signs[-1] = determinant * np.sign(np.linalg.det(left @ right))
    exact = f((left * signs) @ right)
    result = minimize(Function(f, N, degree=degree), determinant=determinant, random_state=0)
    excess = (result.value - exact) / exact
    assert result.determinant == determinant
    report.claim(
        f"Procrustes, determinant {determinant}: above the SVD's minimum by", "≤ 1e-8", excess, excess <= 1e-8
    )


def givens_minimum(f, degree, start):
    """With a tolerance so small that rounding decides: the gradient goes with the root of a sweep's gain."""
    return minimize(Function(f, N, degree=degree), start, tol=1e-20, max_sweeps=1000).U


def pymanopt_minimum(f, optimizer, start):
    """Where one of pymanopt's optimizers ends, with room enough that its tolerance decides."""
    manifold = SpecialOrthogonalGroup(N)
    problem = pymanopt.Problem(manifold, pymanopt.function.autograd(manifold)(f))
    solver = optimizer(min_gradient_norm=1e-8, max_iterations=5_000, max_time=20, verbosity=0)
    return solver.run(problem, initial_point=start).point


def gradient_norm(f, U):
    """By the paper's definition: √2 times the Frobenius norm of EᵀU − UᵀE over the pairs i < j."""
    from autograd import grad

    E = grad(f)(U)
    return float(np.linalg.norm(E.T @ U - U.T @ E))
