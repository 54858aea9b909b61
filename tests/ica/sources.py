"""Sources and mixtures for the tests of source separation."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from givens import ICA
from givens.ica.whitening import white_space
from givens.objectives import Scalar


def white(X):
    """White samples."""
    return white_space(X).coordinates(X)


def picard(X, n_components=None, *, whiten=True, **options):
    """The three arrays of `picard.picard`, as docs/ica.md makes them of an `ICA`."""
    model = ICA(n_components, whiten="unit-variance" if whiten else False, **options)
    Y = model.fit_transform(np.transpose(X)).T
    K = model.whitening_
    return K, model.components_ @ np.linalg.pinv(K), Y


def mixed_tails(samples: int, number: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sources with heavy and light tails in turn, a random mixing, and the mixtures."""
    rng = np.random.default_rng(seed)
    kinds = (rng.laplace, lambda size: rng.uniform(-1, 1, size), lambda size: rng.standard_normal(size) ** 3)
    S = np.column_stack([kinds[k % 3](size=samples) for k in range(number)])
    S = (S - S.mean(axis=0)) / S.std(axis=0)
    A = rng.standard_normal((number, number))
    return S, A, S @ A.T


def autoregressive(samples: int, number: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gaussian sources that are resonances at different frequencies, a random mixing, and the mixtures."""
    rng = np.random.default_rng(seed)
    S = np.empty((samples, number))
    for k in range(number):
        frequency, radius = np.pi * (k + 0.5) / number, 0.9
        poles = [1.0, -2 * radius * np.cos(frequency), radius**2]
        S[:, k] = lfilter([1.0], poles, rng.standard_normal(samples + 200))[200:]
    S = (S - S.mean(axis=0)) / S.std(axis=0)
    A = rng.standard_normal((number, number))
    return S, A, S @ A.T


def _phi(y):
    return np.sqrt(1.0 + y * y)


def _dphi(y):
    return y / np.sqrt(1.0 + y * y)


OWN = Scalar(_phi, _dphi)
"""A contrast of one's own: one for all tests, since a process compiles it for seconds."""
