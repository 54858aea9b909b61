"""Independent components of 64 Laplace sources, beside FastICA and Picard.

50,000 samples of 64 mixed sources are whitened once, and every method gets the same whitened data and two
threads (or as many as there are); three such problems, from three seeds, each method twice on each, in turns. Ratios are
geometric means over the problems of best seconds to best seconds. `givens` turns pairs of columns to the largest sum
of fourth powers, until a sweep gains 1e-8 of it. That tolerance was chosen among three (the default, 1e-18, which is
for the last digits, 1e-10 and 1e-8); it leaves a smaller gradient than FastICA with the cube does at its default
tolerance, 1e-4 (both gradients are in the table). FastICA and Picard have their default tolerances and as
many iterations as they want, and both also run with the cube, the nonlinearity that belongs to fourth powers.
The Amari error is 0 for a perfect separation; the largest of the three problems is given.
"""

from __future__ import annotations

import warnings

import numpy as np
from picard import picard
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from givens import minimize
from givens.objectives import Columns

SOURCES, SAMPLES, SEEDS = 64, 50_000, (0, 1, 2)
TOL = 1e-8
OURS = "givens, kurtosis"


def run(report):
    methods = (OURS, *RIVALS)
    seconds = {name: [] for name in methods}
    errors = {name: [] for name in methods}
    norms = {OURS: [], "FastICA, cube": []}
    for seed in SEEDS:
        X, mixing = whitened(np.random.default_rng(seed))
        entries = {OURS: lambda X=X: minimize(Columns(X, "kurtosis"), tol=TOL)}
        entries |= {name: lambda solve=solve, X=X: solve(X) for name, solve in RIVALS.items()}
        if seed == SEEDS[0]:
            entries[OURS]()  # compiles
        timings = report.race(entries, repeat=2)
        result = timings[OURS].value
        for name, timing in timings.items():
            unmixing = result.U.T if name == OURS else timing.value
            seconds[name].append(timing.best)
            errors[name].append(amari(unmixing @ mixing))
        norms[OURS].append(result.gradient_norm)
        norms["FastICA, cube"].append(_gradient_norm(X, timings["FastICA, cube"].value))
    ratios = {name: np.array(seconds[name]) / seconds[OURS] for name in methods}
    for name in methods:
        report.row(
            method=name,
            seconds=_geometric(seconds[name]),
            amari_error=max(errors[name]),
            times_givens=_geometric(ratios[name]),
            least=float(min(ratios[name])),
            gradient_norm=max(norms[name]) if name in norms else None,
        )
    for name in RIVALS:
        ratio = _geometric(ratios[name])
        report.claim(f"faster than {name}", "≥ 5 times", f"{ratio:.1f} times", ratio >= 5)
    # Both end near the same maximum, so their errors agree to several digits: all of these are shown.
    shares = np.array(errors[OURS]) / errors["FastICA, cube"]
    share = _geometric(shares)
    text = "Amari error over that of FastICA with the cube, geometric mean"
    report.claim(text, "≤ 1", f"{share:.6f} (worst of three: {max(shares):.6f})", share <= 1)
    _streaming(report, X, result)


def _geometric(figures):
    return float(np.exp(np.mean(np.log(figures))))


def _gradient_norm(X, unmixing):
    """Of the sum of fourth powers, at a rival's solution."""
    u, _, vt = np.linalg.svd(unmixing.T)
    return minimize(Columns(X, "kurtosis"), u @ vt, max_sweeps=0).gradient_norm


def _streaming(report, X, result):
    """How far a sweep is from reading the data once, and from the products that its rotations could be."""
    # The mean: the last sweep finds nothing left to turn, and does not look at the data.
    sweep = (result.trace.seconds[-1] - result.trace.seconds[0]) / result.sweeps
    threads = max(report.machine["read_gbs"])
    stream = X.nbytes / (report.machine["read_gbs"][threads] * 1e9)
    flops = result.flops / result.sweeps / (report.machine["gflops"][threads] * 1e9)
    report.row(
        sweeps=result.sweeps,
        mean_sweep_seconds=sweep,
        reading_the_data_once_seconds=stream,
        sweep_over_reading=sweep / stream,
        sweep_over_its_flops_as_matrix_products=sweep / flops,
    )


def whitened(rng):
    """Whitened samples (rows), and how the sources enter them: X = S @ mixing.T, nearly."""
    S = rng.laplace(size=(SAMPLES, SOURCES))
    mixed = S @ rng.standard_normal((SOURCES, SOURCES))
    mixed -= mixed.mean(axis=0)
    U, _, _ = np.linalg.svd(mixed, full_matrices=False)
    X = U * np.sqrt(SAMPLES)
    mixing = np.linalg.lstsq(S - S.mean(axis=0), X, rcond=None)[0].T
    return np.ascontiguousarray(X), mixing


def amari(P):
    """The Amari error of unmixing times mixing."""
    P = np.abs(P)
    n = len(P)
    rows = (P / P.max(axis=1, keepdims=True)).sum() - n
    columns = (P / P.max(axis=0, keepdims=True)).sum() - n
    return (rows + columns) / (2 * n * (n - 1))


def _fastica(fun):
    def solve(X):
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            return FastICA(whiten=False, fun=fun, max_iter=2000, random_state=0).fit(X).components_

    return solve


def _picard(fun):
    def solve(X):
        _, W, _ = picard(X.T, fun=fun, whiten=False, centering=False, max_iter=2000, random_state=0)
        return W

    return solve


RIVALS = {
    "FastICA, cube": _fastica("cube"),
    "FastICA, default": _fastica("logcosh"),
    "Picard, default": _picard("tanh"),
    "Picard, cube": _picard("cube"),
}
