"""Factor rotation: varimax and quartimax beside statsmodels and factor_analyzer.

Twenty random loading matrices, half of them of a simple structure with noise and half without structure. The
latter have many local optima, and which of them a method ends in from the loadings as they are is a matter of
luck, of ours as of theirs. Rotations being cheap, several starts are an option of `givens`: `minimize(..., n_starts=10)`,
which is what the command `givens rotate` does unless told otherwise. Both are here, that and a single start; the rivals
have no such option and make one. Kaiser's normalisation is left out, so that all maximise the same criterion.
The rivals have their default tolerances, at which nine digits of the criterion have settled, but factor_analyzer's
varimax, which needs a smaller one for that.
"""

from __future__ import annotations

import numpy as np
from factor_analyzer import Rotator
from statsmodels.multivariate.factor_rotation import rotate_factors

from givens import minimize
from givens.objectives import Columns

OURS = ("givens, n_starts=10", "givens, one start")
RIVALS = ("statsmodels", "factor_analyzer")
EQUAL = 1 - 1e-9


def run(report):
    for criterion in ("varimax", "quartimax"):
        values, seconds = _measure(report, criterion)
        best = np.max(list(values.values()), axis=0)
        for method in (*OURS, *RIVALS):
            report.row(
                criterion=criterion,
                method=method,
                seconds_for_20=seconds[method],
                mean_share_of_best=float(np.mean(values[method] / best)),
                finds_best=int(np.sum(values[method] >= EQUAL * best)),
            )
        for method in OURS:
            for rival in RIVALS:
                reached = int(np.sum(values[method] >= EQUAL * values[rival]))
                text = f"{criterion}, {method}: at least that of {rival}"
                report.claim(text, "20 of 20 matrices", f"{reached} of 20", reached == 20)


def _measure(report, criterion):
    methods = {
        OURS[0]: lambda A: A @ minimize(Columns(A, criterion), n_starts=10, random_state=0).U,
        OURS[1]: lambda A: A @ minimize(Columns(A, criterion)).U,
        "statsmodels": lambda A: rotate_factors(A, criterion, max_tries=5_000)[0],
        "factor_analyzer": lambda A: _factor_analyzer(A, criterion),
    }
    values = {method: np.zeros(20) for method in methods}
    seconds = dict.fromkeys(methods, 0.0)
    minimize(Columns(loadings(0), criterion))  # compiles
    for k in range(20):
        A = loadings(k)
        for method, timing in report.race(
            {name: lambda rotate=rotate, A=A: rotate(A) for name, rotate in methods.items()}, repeat=1
        ).items():
            values[method][k] = value(timing.value, criterion)
            seconds[method] += timing.best
    return values, seconds


def _factor_analyzer(A, criterion):
    tol = 1e-12 if criterion == "varimax" else 1e-5
    return Rotator(method=criterion, normalize=False, max_iter=5_000, tol=tol).fit_transform(A)


def value(L, criterion):
    """The criterion, from its definition."""
    squares = L**2
    if criterion == "quartimax":
        return np.sum(squares**2)
    return np.sum(squares**2) - np.sum(squares.sum(axis=0) ** 2) / len(L)


def loadings(seed):
    """Twelve to sixty variables, three to ten factors; an even seed gives simple structure."""
    rng = np.random.default_rng(seed)
    factors = int(rng.integers(3, 11))
    variables = int(rng.integers(4 * factors, 6 * factors + 1))
    if seed % 2:
        return rng.standard_normal((variables, factors))
    simple = np.zeros((variables, factors))
    simple[np.arange(variables), rng.integers(factors, size=variables)] = rng.uniform(0.5, 1, variables)
    noisy = simple + 0.1 * rng.standard_normal(simple.shape)
    return noisy @ np.linalg.qr(rng.standard_normal((factors, factors)))[0]
