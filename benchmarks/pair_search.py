"""Pairs of columns: is the best angle found, and what does exactness cost?

The search for the best angle of two columns is compared with an independent one, on random pairs, for every penalty and
contrast. For sparse PCA this is the search of sorted breakpoints in NumPy (`tests.oracles.breakpoints`), for
contrasts a grid of 720 angles per turn, refined at its three lowest minima. A pair is "short" where the independent search
finds a better value by more than a bound: for contrasts 1e-9 of the range of values; for ℓ1 rounding, which is (10 + 5√rows)
eps times the sum of squares of the columns; for ℓ0 2e-14 of this sum more, since the search treats maxima as equal that
differ by less than 1e-14 of the sum of squares of each column, and then takes the smallest angle. Contrasts get columns of
mean 0 and variance 1, for which their search is made.

GIVENS_PAIRS says how many pairs of each kind, 10,000 if it is not set.
"""

from __future__ import annotations

import os

import numpy as np

from givens.kernels import sparse_pair
from givens.objectives import Exp, Kurtosis, LogCosh, Orthomax
from tests.oracles.breakpoints import breakpoint_search, pair_value

EPS = float(np.finfo(np.float64).eps)
ANGLES = np.linspace(0, np.pi / 2, 180, endpoint=False)  # of even contrasts, a quarter turn is the period
ROWS = (2, 3, 7, 30)
TOGETHER = 500  # pairs of a contrast solved by one call


def _fourth(Y):
    squares = Y * Y
    return np.einsum("...k,...k->...", squares, squares)


def _log_cosh(Y):
    size = np.abs(Y)
    return np.sum(size + np.log(0.5 + 0.5 * np.exp(-2 * size)), -1)


CONTRASTS = {
    "varimax": (Orthomax(1.0), lambda Y: np.einsum("...k,...k->...", Y, Y) ** 2 / Y.shape[-1] - _fourth(Y)),
    "quartimax": (Orthomax(0.0), lambda Y: -_fourth(Y)),
    "kurtosis, light tails": (Kurtosis(-1), _fourth),
    "log cosh": (LogCosh(), _log_cosh),
    "exp": (Exp(), lambda Y: -np.sum(np.exp(-(Y * Y) / 2), -1)),
}


def run(report):
    number = int(os.environ.get("GIVENS_PAIRS", "10000"))
    for penalty in ("l1", "l0"):
        short, worst = _sparse(penalty, number)
        report.row(pairs_of=f"sparse PCA, {penalty}", pairs=number, short=short, worst_share_of_energy=worst)
        report.claim(
            f"{penalty}: pairs short of the sorted breakpoints", "0", f"{short} of {number:,}", short == 0
        )
    for name, (contrast, value) in CONTRASTS.items():
        short, worst = _contrast(contrast, value, number)
        report.row(pairs_of=name, pairs=number, short=short, worst_share_of_range=worst)
        report.claim(
            f"{name}: pairs short of a refined grid of 720 angles", "0", f"{short} of {number:,}", short == 0
        )
    for penalty in ("l1", "l0"):
        _cost(report, penalty)


def _pair(rng, rows):
    """Two columns and their thresholds: heavy tails, dependent, nearly sparse, of one threshold, two, or one and infinity."""
    x, y = rng.standard_normal((2, rows)) ** rng.choice([1, 1, 3])
    kind = rng.integers(4)
    if kind == 0:
        y = rng.standard_normal() * x + 0.1 * y
    elif kind == 1:
        first = rng.random(rows) < 0.5
        x, y = np.where(first, x, 0.05 * x), np.where(first, 0.05 * y, y)
    gamma = rng.choice([0.0, 0.05, 0.3, 0.5, 1.0, 2.0]) * rng.uniform(0.5, 1.5)
    second = gamma * rng.choice([1.0, 1.4]) if rng.random() < 0.75 else np.inf
    return x, y, (gamma, second)


def _sparse(penalty, number):
    """How many pairs fall short of the oracle, and by how much the worst."""
    rng = np.random.default_rng(2024)
    short, worst = 0, 0.0
    for _ in range(number):
        x, y, gammas = _pair(rng, int(rng.choice(ROWS)))
        energy = float(np.sum(x**2 + y**2))
        theta = _exact(x, y, gammas, penalty, energy)
        levels = gammas if penalty == "l1" else (gammas[0] ** 2, gammas[1] ** 2)
        _, best = breakpoint_search(x, y, levels, penalty)
        here, there = pair_value(x, y, np.array([0.0, theta]), levels, penalty)
        missing = (best - (there - here)) / energy
        worst = max(worst, missing)
        short += missing > (10 + 5 * len(x) ** 0.5) * EPS + (2e-14 if penalty == "l0" else 0.0)
    return short, worst


def _exact(x, y, gammas, penalty, energy):
    pair = x, y, len(x), gammas[0], gammas[1], penalty == "l0"
    return sparse_pair.exact_search(pair, EPS * energy, 1e-15)[0]


def _contrast(contrast, value, number):
    rng, short, worst = np.random.default_rng(2025), 0, 0.0
    done = 0
    while done < number:
        count = min(TOGETHER, number - done)
        rows = int(rng.choice([7, 30, 100]))
        Y = rng.standard_normal((2 * count, rows)) ** rng.choice([1, 1, 3])
        Y -= Y.mean(axis=1, keepdims=True)
        Y /= Y.std(axis=1, keepdims=True)
        pairs = np.arange(2 * count).reshape(-1, 2)
        rotations = contrast.solve(Y, pairs, 2 * count).rotations
        for (i, j), Q in zip(pairs, rotations):
            values = _at_angles(value, Y[i], Y[j], np.append(ANGLES, np.arctan2(Q[1, 0], Q[0, 0])))
            lowest = _lowest(value, Y[i], Y[j], values[:-1])
            missing = (values[-1] - lowest) / max(float(np.ptp(values)), 1e-12 * float(np.abs(values).max()))
            worst = max(worst, missing)
            short += missing > 1e-9
        done += count
    return short, worst


def _at_angles(value, x, y, theta):
    c, s = np.cos(theta)[:, None], np.sin(theta)[:, None]
    return value(c * x + s * y) + value(c * y - s * x)


def _lowest(value, x, y, values):
    """The lowest value near the grid's three lowest local minima, on grids that are finer by 20 each time."""
    minima = np.flatnonzero((values <= np.roll(values, 1)) & (values <= np.roll(values, -1)))
    lowest, near = float(values.min()), np.linspace(-1, 1, 41)
    for angle in ANGLES[minima[np.argsort(values[minima])[:3]]]:
        for step in (ANGLES[1], ANGLES[1] / 20, ANGLES[1] / 400):
            finer = _at_angles(value, x, y, angle + step * near)
            angle += step * near[np.argmin(finer)]
            lowest = min(lowest, float(finer.min()))
    return lowest


def _cost(report, penalty):
    """One pass over the same pairs, exact and by the grid that sweeps over many pairs use."""
    rng = np.random.default_rng(7)
    for rows in (30, 200, 2000):
        pairs = [_pair(rng, rows) for _ in range(200)]

        def each(search, *more, pairs=pairs):
            gains = 0.0
            for x, y, gammas in pairs:
                noise = EPS * float(np.sum(x**2 + y**2))
                pair = x, y, len(x), gammas[0], gammas[1], penalty == "l0"
                gains += search(pair, noise, 1e-15, *more)[1]
            return gains

        timings = report.race(
            {
                "exact": lambda each=each: each(sparse_pair.exact_search),
                "grid": lambda each=each: each(sparse_pair.search, True, 1.0),
            },
            repeat=3,
            warm=1,
        )
        exact, grid = timings["exact"], timings["grid"]
        report.row(
            penalty=penalty,
            rows=rows,
            exact_microseconds=1e6 * exact.best / len(pairs),
            grid_microseconds=1e6 * grid.best / len(pairs),
            exact_takes_times=exact.best / grid.best,
            gain_of_the_grid=grid.value / exact.value,
        )
