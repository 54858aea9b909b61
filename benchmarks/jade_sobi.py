"""JADE and SOBI: sources from cumulant matrices and from lagged covariances, beside pyRiemann and coroICA.

No other Python package with JADE was found. The rival is put together from our cumulant matrices, which a test compares with
brute force, and pyRiemann's `rjd`, a translation of JADE's own joint diagonalisation, at its default tolerance. The data are
EEG of 32 channels x 30,504 samples, and twelve sources with heavy and light tails alternating.

SOBI separates twenty Gaussian resonances of 50,000 samples from covariances at 100 lags. coroICA's `UwedgeICA` gets the same
lags and the whole recording as one partition; its function `uwedge` alone gets the same matrices as `joint_diagonalize`.
"""

from __future__ import annotations

import numpy as np
from pyriemann.geometry.ajd import rjd
from scipy.signal import lfilter

from givens import JADE, SOBI, joint_diagonalize
from givens.ica.jade import cumulant_matrices
from givens.ica.sobi import lagged_covariances
from givens.ica.whitening import white_space
from givens.metrics import amari

LAGS = 100


def run(report):
    JADE().fit(np.random.default_rng(0).laplace(size=(500, 3)))  # compiles
    _jade(report)
    _eeg(report)
    _sobi(report)


def _jade(report):
    errors = {"givens": [], "rjd": []}
    seconds = dict.fromkeys(errors, 0.0)
    for seed in range(3):
        X, A = mixed_tails(30_000, 12, seed)
        timings = report.race(
            {"givens": lambda X=X: JADE().fit(X).components_, "rjd": lambda X=X: _by_rjd(X)}, repeat=1
        )
        for name, timing in timings.items():
            errors[name].append(amari(timing.value, A))
            seconds[name] += timing.best
    for name in errors:
        report.row(jade="12 sources", method=name, seconds_for_3=seconds[name], amari=max(errors[name]))
    worst = max(np.array(errors["givens"]) / errors["rjd"])
    report.claim(
        "JADE, 12 sources: Amari error over that by rjd, worst of three",
        "≤ 1.001",
        float(worst),
        worst <= 1.001,
    )


def _eeg(report):
    path = report.data("eeg_eeglab")
    if path is None:
        return
    X = np.load(path)["X"].T.astype(np.float64)
    timings = report.race({"givens": lambda: JADE().fit(X), "rjd": lambda: _by_rjd(X)}, repeat=1)
    report.row(jade="EEG, 32 x 30,504", method="givens", seconds=timings["givens"].best)
    report.row(jade="EEG, 32 x 30,504", method="rjd", seconds=timings["rjd"].best)
    ratio = timings["rjd"].best / timings["givens"].best
    report.claim("JADE of EEG: faster than by rjd", "≥ 2 times", f"{ratio:.1f} times", ratio >= 2)
    report.ratio("JADE of EEG, 32 channels", "pyRiemann rjd", ratio, wanted=2)


def _by_rjd(X):
    white = white_space(X)
    V, _ = rjd(cumulant_matrices(white.coordinates(X)), n_iter_max=1000)
    return V.T @ white.whitening


def _sobi(report):
    X, A = resonances(50_000, 20, seed=0)
    timing = report.time(lambda: SOBI(lags=LAGS).fit(X).components_, repeat=3)
    error = amari(timing.value, A)
    report.row(sobi="20 x 50,000", method="givens", seconds=timing.best, amari=error)
    report.claim("SOBI, 20 x 50,000: Amari error", "≤ 0.02", error, error <= 0.02)
    try:
        from coroica import UwedgeICA
        from coroica.uwedge import uwedge
    except ImportError:
        report.note("left out coroICA, which is not installed")
        return
    lags = list(range(1, LAGS + 1))
    model = UwedgeICA(timelags=lags, partitionsize=len(X))
    rival = report.time(lambda: model.fit(X), repeat=1)
    report.row(sobi="20 x 50,000", method="coroICA", seconds=rival.best, amari=amari(model.V_, A))
    ratio = rival.best / timing.best
    report.claim("SOBI, 20 x 50,000: faster than UwedgeICA", "≥ 10 times", f"{ratio:.1f} times", ratio >= 10)
    report.ratio("SOBI, 20 sources x 50,000", "coroICA", ratio, wanted=10)
    R = lagged_covariances(white_space(X).coordinates(X), lags)
    alone = report.race({"givens": lambda: joint_diagonalize(R), "uwedge": lambda: uwedge(R)}, repeat=3)
    report.row(
        sobi="100 matrices of order 20", **{f"{name}_seconds": found.best for name, found in alone.items()}
    )


def mixed_tails(samples, number, seed):
    """Sources with heavy and light tails in turn, mixed: samples x channels, and the mixing."""
    rng = np.random.default_rng(seed)
    kinds = (rng.laplace, lambda size: rng.uniform(-1, 1, size))
    S = np.column_stack([kinds[k % 2](size=samples) for k in range(number)])
    A = rng.standard_normal((number, number)) / S.std(axis=0)
    return S @ A.T, A * S.std(axis=0)


def resonances(samples, number, seed):
    """Noise filtered by resonances at different frequencies, mixed: samples x channels, and the mixing."""
    rng = np.random.default_rng(seed)
    S = np.empty((samples, number))
    for k in range(number):
        poles = [1.0, -1.8 * np.cos(np.pi * (k + 0.5) / number), 0.81]
        S[:, k] = lfilter([1.0], poles, rng.standard_normal(samples + 200))[200:]
    A = rng.standard_normal((number, number))
    return S / S.std(axis=0) @ A.T, A
