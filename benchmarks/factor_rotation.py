"""Factor rotation: `FactorRotation` beside statsmodels, factor_analyzer and xeofs.

Twenty random loading matrices, half of them of a simple structure with noise and half without structure. The
latter have many local maxima. `FactorRotation` makes one search, which tries several starts by exact rotations of pairs and
gives most of them up early; the best of ten runs of `minimize` from ten starts is what it is held against. The rivals have no
such option and make one run from the loadings as they are. Kaiser's normalisation is left out, so that all maximise the same
criterion. The rivals have their default tolerances, at which nine digits of the criterion have settled, but
factor_analyzer's varimax, which needs a smaller one for that. Equamax is κ = m/2 for all (statsmodels and factor_analyzer get it
through their Crawford-Ferguson criteria).

Then forty matrices from 6 x 2 to 2,000 x 60, twenty with structure over the whole range and twenty without up to 60 x 10
(statsmodels takes minutes for larger ones), where factor_analyzer runs once more with its own tolerance, 1e-5; and a field of
10,000 grid points x 50 modes for xeofs' `EOFRotator` at its default tolerance, normalised as it does; both also give the
rotated scores. xeofs runs with all threads of its BLAS, and with one, and the faster of the two counts.
"""

from __future__ import annotations

import numpy as np
from factor_analyzer import Rotator
from statsmodels.multivariate.factor_rotation import rotate_factors
from threadpoolctl import threadpool_limits

from givens import FactorRotation, minimize
from givens.factors.factor_rotation import kappa_of
from givens.objectives import Columns, Orthomax
from tests.oracles.values import orthomax

OURS = "givens"
TEN = "givens, ten runs"
RIVALS = ("statsmodels", "factor_analyzer")
ITS_TOLERANCE = "factor_analyzer, its own tolerance"
EQUAL = 1 - 1e-9


def run(report):
    FactorRotation().fit(loadings(0))  # compiles
    for criterion in ("varimax", "quartimax", "equamax"):
        _twenty(report, criterion)
    _forty(report)
    _field(report)


def _twenty(report, criterion):
    values = {method: np.zeros(20) for method in (OURS, TEN, *RIVALS)}
    seconds = dict.fromkeys(values, 0.0)
    for k in range(20):
        A = loadings(k)
        kappa = kappa_of(criterion, *A.shape)
        calls = {
            name: lambda rotate=rotate, A=A, kappa=kappa: rotate(A, kappa) for name, rotate in METHODS.items()
        }
        if criterion == "varimax":
            calls["factor_analyzer"] = lambda A=A: _varimax(A)
        for method, timing in report.race(calls, repeat=1).items():
            values[method][k] = orthomax(timing.value, kappa) / np.sum(A**4)
            seconds[method] += timing.best
    best = np.max(list(values.values()), axis=0)
    for method in values:
        report.row(
            criterion=criterion,
            method=method,
            seconds_for_20=seconds[method],
            finds_best=int(np.sum(values[method] >= best - (1 - EQUAL))),
        )
    reached = int(np.sum(values[OURS] >= values[TEN] - (1 - EQUAL)))
    report.claim(
        f"{criterion}: as good as the best of ten runs",
        "20 of 20 matrices",
        f"{reached} of 20",
        reached == 20,
    )
    for rival, wanted in (("statsmodels", 5.0), ("factor_analyzer", 1.0)):
        reached = int(np.sum(values[OURS] >= values[rival] - (1 - EQUAL)))
        report.claim(
            f"{criterion}: at least that of {rival}", "20 of 20 matrices", f"{reached} of 20", reached == 20
        )
        ratio = seconds[rival] / seconds[OURS]
        report.claim(
            f"{criterion}: faster than {rival}", f"≥ {wanted:g} times", f"{ratio:.2f} times", ratio >= wanted
        )
        if criterion == "varimax":
            report.ratio("varimax of 20 small matrices", rival, ratio, wanted=wanted)


def _forty(report):
    """Twenty with structure over the whole range, twenty without up to 60 x 10: varimax."""
    sizes = [(round(6 * (2000 / 6) ** (k / 19)), round(2 * 30 ** (k / 19))) for k in range(20)]
    small = [(round(6 * 10 ** (k / 19)), round(2 * 5 ** (k / 19))) for k in range(20)]
    cases = [_structured(p, m, seed=k) for k, (p, m) in enumerate(sizes)]
    cases += [np.random.default_rng(100 + k).standard_normal((p, m)) for k, (p, m) in enumerate(small)]
    reached = dict.fromkeys(RIVALS, 0)
    seconds = {method: np.zeros(40) for method in (OURS, *RIVALS, ITS_TOLERANCE)}
    for k in (0, 12, 16, 17):
        METHODS[OURS](cases[k], 1.0)  # compiles what larger matrices need
    for k, A in enumerate(cases):
        calls = {
            OURS: lambda A=A: METHODS[OURS](A, 1.0),
            "statsmodels": lambda A=A: METHODS["statsmodels"](A, 1.0),
        }
        calls["factor_analyzer"] = lambda A=A: _varimax(A)
        calls[ITS_TOLERANCE] = lambda A=A: _varimax(A, tol=1e-5)
        timings = report.race(calls, repeat=1)
        values = {name: orthomax(timing.value, 1.0) for name, timing in timings.items()}
        for name, timing in timings.items():
            seconds[name][k] = timing.best
        for rival in RIVALS:
            reached[rival] += values[OURS] >= values[rival] - (1 - EQUAL) * np.sum(A**4)
    for part, which in (("with structure", slice(0, 20)), ("without", slice(20, 40))):
        report.row(forty=part, **{f"{name}_seconds": float(seconds[name][which].sum()) for name in seconds})
    for rival in RIVALS:
        text = f"6 x 2 to 2,000 x 60, varimax: at least that of {rival}"
        report.claim(text, "40 of 40 matrices", f"{reached[rival]} of 40", reached[rival] == 40)
    for rival, wanted in (("statsmodels", 5.0), ("factor_analyzer", 1.0), (ITS_TOLERANCE, 1.0)):
        ratio = float(seconds[rival].sum() / seconds[OURS].sum())
        report.claim(
            f"6 x 2 to 2,000 x 60, varimax: faster than {rival}",
            f"≥ {wanted:g} times",
            f"{ratio:.2f} times",
            ratio >= wanted,
        )
        report.ratio("varimax of 40 matrices up to 2,000 x 60", rival, ratio, wanted=wanted)


def _field(report):
    try:
        import xarray
        import xeofs
    except ImportError:
        report.note("left out the field: xeofs is not installed")
        return
    X, grid = field()
    data = xarray.DataArray(
        X.reshape(len(X), len(grid), len(grid)),
        dims=("time", "lat", "lon"),
        coords={"time": np.arange(len(X)), "lat": grid, "lon": grid},
    )
    model = xeofs.single.EOF(n_modes=50, random_state=0)
    model.fit(data, "time")
    components = model.data["components"].transpose(..., "mode").values.reshape(-1, 50)
    A = np.ascontiguousarray(components * np.sqrt(model.data["explained_variance"].values))
    scores = model.data["scores"].transpose(..., "mode").values
    rotator = xeofs.single.EOFRotator(n_modes=50, power=1)
    _with_scores(A[:, :40], scores[:, :40])  # compiles
    timings = report.race(
        {
            "givens": lambda: _with_scores(A, scores),
            "xeofs": lambda: rotator.fit(model),
            "xeofs, one BLAS thread": lambda: _alone(rotator, model),
        },
        repeat=1,
    )
    normal = A / np.linalg.norm(A, axis=1, keepdims=True)
    values = {
        "givens": orthomax(normal @ timings["givens"].value, 1.0),
        "xeofs": orthomax(normal @ rotator.data["rotation_matrix"].values, 1.0),
    }
    for name, timing in timings.items():
        value = values[name.split(",")[0]]
        report.row(field="10,000 x 50", method=name, seconds=timing.best, criterion=value)
    # Its matrices are small: threads of a BLAS that wait for each other may take longer than one.
    rival = min(timings["xeofs"].best, timings["xeofs, one BLAS thread"].best)
    ratio = rival / timings["givens"].best
    report.claim(
        "10,000 x 50: faster than xeofs' EOFRotator, with one BLAS thread or all, whichever is faster",
        "≥ 10 times",
        f"{ratio:.1f} times",
        ratio >= 10,
    )
    gain = values["givens"] / values["xeofs"] - 1
    report.claim("10,000 x 50: criterion above xeofs' by, relatively", "> 0", gain, gain > 0)
    report.ratio("varimax of 10,000 grid points x 50 modes", "xeofs", ratio, wanted=10)


def _alone(rotator, model):
    with threadpool_limits(1, user_api="blas"):
        rotator.fit(model)


def _with_scores(A, scores):
    rotation = FactorRotation().fit(A)
    rotation.transform(scores)
    return rotation.rotation_


def _ten(A, kappa):
    return A @ minimize(Columns(A, Orthomax(kappa)), n_starts=10, random_state=0, tol=1e-6).U


def _varimax(A, tol=1e-12):
    return Rotator(method="varimax", normalize=False, max_iter=5_000, tol=tol).fit_transform(A)


def _statsmodels(A, kappa):
    """Its own name for the criterion where it has one that means the same."""
    name = {0.0: "quartimax", 1.0: "varimax"}.get(kappa)
    if name is not None:
        return rotate_factors(A, name, max_tries=5_000)[0]
    return rotate_factors(A, "CF", kappa / len(A), "orthogonal", max_tries=5_000)[0]


def _crawford_ferguson(A, kappa):
    """factor_analyzer's gradient projections: its "equamax" takes the κ of Crawford and Ferguson, 0 of which is quartimax."""
    return Rotator(method="equamax", normalize=False, kappa=kappa / len(A), max_iter=5_000).fit_transform(A)


METHODS = {
    OURS: lambda A, kappa: FactorRotation(kappa, normalize=False).fit(A).loadings_,
    TEN: _ten,
    "statsmodels": lambda A, kappa: _statsmodels(A, kappa),
    "factor_analyzer": _crawford_ferguson,
}


def loadings(seed):
    """Twelve to sixty variables, three to ten factors; an even seed gives simple structure."""
    rng = np.random.default_rng(seed)
    factors = int(rng.integers(3, 11))
    variables = int(rng.integers(4 * factors, 6 * factors + 1))
    if seed % 2:
        return rng.standard_normal((variables, factors))
    return _structured(variables, factors, rng=rng)


def _structured(variables, factors, seed=None, rng=None):
    rng = np.random.default_rng(seed) if rng is None else rng
    simple = np.zeros((variables, factors))
    simple[np.arange(variables), rng.integers(factors, size=variables)] = rng.uniform(0.5, 1, variables)
    noisy = simple + 0.1 * rng.standard_normal(simple.shape)
    return noisy @ np.linalg.qr(rng.standard_normal((factors, factors)))[0]


def field(side=100, patterns=80, times=500):
    """Eighty bumps of different widths on a grid, each with a series of its own, and noise."""
    rng = np.random.default_rng(0)
    grid = np.arange(side) / side
    centres, widths = rng.uniform(0, 1, (patterns, 2)), rng.uniform(0.03, 0.12, patterns)
    squares = (grid[:, None, None] - centres[:, 0]) ** 2 + (grid[None, :, None] - centres[:, 1]) ** 2
    bumps = np.exp(-squares / (2 * widths**2)).reshape(-1, patterns) * rng.uniform(0.5, 2, patterns)
    X = rng.standard_normal((times, patterns)) @ bumps.T
    return X + 0.3 * rng.standard_normal(X.shape), grid
