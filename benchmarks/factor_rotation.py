"""Factor rotation: varimax and quartimax beside statsmodels and factor_analyzer.

Twenty random loading matrices, half of them of a simple structure with noise and half without structure,
where the criteria have many local optima. Every method starts from the loadings as they are, and Kaiser's
normalisation is left out, so that all maximise the same criterion. The rivals have their default tolerances,
at which nine digits of the criterion have settled, but factor_analyzer's varimax, which needs a smaller one
for that.
"""

from __future__ import annotations

import numpy as np
from factor_analyzer import Rotator
from statsmodels.multivariate.factor_rotation import rotate_factors

from givens import minimize
from givens.objectives import Columns

METHODS = ("givens", "statsmodels", "factor_analyzer")


def run(report):
    for criterion in ("varimax", "quartimax"):
        values, seconds = _measure(report, criterion)
        best_rival = np.maximum(values["statsmodels"], values["factor_analyzer"])
        for method in METHODS:
            report.row(
                criterion=criterion,
                method=method,
                seconds_for_all=seconds[method],
                mean_of_best=float(np.mean(values[method] / np.maximum(best_rival, values["givens"]))),
                at_least_the_others=sum(
                    values[method][k] >= (1 - 1e-9) * max(values[other][k] for other in METHODS)
                    for k in range(20)
                ),
            )
        for rival in METHODS[1:]:
            reached = int(np.sum(values["givens"] >= (1 - 1e-9) * values[rival]))
            report.claim(
                f"{criterion} at least that of {rival}",
                "20 of 20 matrices",
                f"{reached} of 20",
                reached == 20,
            )


def _measure(report, criterion):
    values = {method: np.zeros(20) for method in METHODS}
    seconds = dict.fromkeys(METHODS, 0.0)
    for k in range(20):
        A = loadings(k)
        timings = report.race(
            {
                "givens": lambda A=A: A @ minimize(Columns(A, criterion)).U,
                "statsmodels": lambda A=A: rotate_factors(A, criterion, max_tries=5_000)[0],
                "factor_analyzer": lambda A=A: _factor_analyzer(A, criterion),
            },
            repeat=1,
            warm=1 if k == 0 else 0,
        )
        for method, timing in timings.items():
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
