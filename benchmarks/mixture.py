"""Mixtures of spherical Gaussians from moments, beside the power method and scikit-learn.

The paper's experiment: 20 components of variance 2 whose centres have an inverse-Wishart covariance. By default a part of
the paper's grid (the full grid takes most of an hour: `GIVENS_GRID=full make bench ONLY=mixture`, which also writes
docs/mixture_grid.md, where the full grid is published).
"""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from benchmarks import _mixture_grid as grid
from benchmarks._runner import Suite
from givens import SphericalMixture
from givens.data.moments import moments_of
from givens.data.passes import TILE_ROWS
from givens.data.third_moments import Basis, ThirdMoments, principal_basis
from givens.datasets import make_spherical_mixture
from givens.mixtures.whitened_moments import by_givens, solve
from givens.numerics import parallel
from givens.numerics.scaling import unit_of

HERE = Path(__file__).resolve().parent


def run(report):
    _population(report)
    _speed(report)
    _bits(report)
    full = os.environ.get("GIVENS_GRID") == "full"
    samples, seeds = (grid.SAMPLES, grid.SEEDS) if full else ((10_000, 50_000), 2)
    version = Suite(HERE).version("mixture")
    store = HERE / "results" / "mixture_grid.jsonl"
    cells = grid.cells_of(
        grid.measured([(d, n) for d in grid.DIMENSIONS for n in samples], seeds, store, version)
    )
    for kind, names in (("nmi", grid.NMI), ("likelihood", grid.LIKELIHOOD), ("seconds", grid.SECONDS)):
        for cell in cells:
            report.row(figure=kind, **grid.shown(cell, kind, names))
    report.note(grid.SETTINGS)
    before = len(report.claims)
    _grid_claims(report, cells)
    streams = [grid.streams(d, 50_000, seeds) for d in grid.DIMENSIONS]
    for row in streams:
        report.row(**row)
    if full:
        about = {"date": datetime.now(UTC).date().isoformat(), "machine": _machine(report)}
        grid.publish(cells, streams, report.claims[before:], HERE.parent / "docs", about)
    else:
        report.note(
            f"{seeds} samples of {len(cells)} cells; all 20 cells with 5 samples are in docs/mixture_grid.md"
        )


def _machine(report):
    return f"{report.machine.get('processor', 'a machine')}, {report.machine.get('cores', '?')} cores"


def _grid_claims(report, cells):
    def least(name, rival):
        gaps = {(cell["d"], cell["n"]): cell[f"{name}_nmi"] - cell[f"{rival}_nmi"] for cell in cells}
        worst = min(gaps, key=gaps.get)
        ahead = sum(gap > 0 for gap in gaps.values())
        text = f"{ahead} of {len(gaps)} cells; least {gaps[worst]:+.4f} at d = {worst[0]}, N = {worst[1]}"
        return text, ahead == len(gaps)

    for rival, title in (
        ("paper_power", "the power method with the paper's reconstruction"),
        ("power", "the power method with the same reconstruction"),
    ):
        measured, holds = least("givens", rival)
        report.claim(f"NMI of pure moments above {title}", "every cell", measured, holds)
    for name, figure in (("em", "nmi"), ("em_distinct", "nmi"), ("em_distinct", "likelihood")):
        for rival in ("sklearn", "sklearn_on"):
            ours, theirs = (np.mean([cell[f"{who}_{figure}"] for cell in cells]) for who in (name, rival))
            report.claim(
                f"mean {figure} over the grid, {name.replace('_', ' ')}, at least {rival.replace('_', ' ')}",
                f"≥ {theirs:.4f}",
                f"{ours:.4f}",
                ours >= theirs,
            )
    for name in ("em", "em_distinct"):
        ours, theirs = (sum(cell[f"{who}_seconds"] for cell in cells) for who in (name, "sklearn"))
        report.claim(
            f"seconds over the grid, {name.replace('_', ' ')}, at most scikit-learn's",
            f"≤ {theirs:.1f}",
            f"{ours:.1f}",
            ours <= theirs,
        )


def _population(report):
    """Exact moments: μ ± σ√d e_j has the first three moments of a spherical Gaussian."""
    for d in (20, 50, 100):
        for variance in ("common", "distinct"):
            variances = 2.0 if variance == "common" else np.linspace(1.0, 3.0, grid.COMPONENTS)
            truth = make_spherical_mixture(1, n_features=d, variances=variances, random_state=0)
            steps = np.sqrt(d) * np.vstack([np.eye(d), -np.eye(d)])
            points = truth.means[:, None, :] + np.sqrt(truth.variances)[:, None, None] * steps
            state = ThirdMoments(Basis(np.zeros(d), np.eye(d))).begin(0)
            state.add(points.reshape(-1, d))
            moments = replace(state.cumulants(), count=np.inf)
            decomposition = partial(by_givens, random_state=0, threads=None)
            found = solve(moments, grid.COMPONENTS, common=variance == "common", decomposition=decomposition)
            order = np.argmin(np.sum((truth.means[:, None] - found.mixture.means) ** 2, axis=2), axis=1)
            errors = [
                np.abs(part[order] - exact).max()
                for part, exact in zip(found.mixture, (truth.weights, truth.means, truth.variances))
            ]
            least = float(found.eigenvalues[grid.COMPONENTS - 2] - np.mean(truth.variances))
            report.row(
                exact_moments=variance, d=d, least_eigenvalue_of_the_means=least,
                weights=errors[0], means=errors[1], variances=errors[2],
            )  # fmt: skip
            report.claim(
                f"exact moments, {variance}, d = {d}: largest error",
                "≤ 1e-8",
                max(errors),
                max(errors) <= 1e-8,
            )


def _speed(report):
    """N = 200,000, d = 100: the whole fit beside scikit-learn's, and the sums beside their matrix products."""
    data = make_spherical_mixture(200_000, n_features=100, random_state=0)
    model = SphericalMixture(grid.COMPONENTS, max_iter=0)
    timings = report.race({"pure moments": lambda: model.fit(data.X)}, repeat=3, warm=1)
    rival = GaussianMixture(grid.COMPONENTS, covariance_type="spherical", random_state=0)
    timings |= report.race({"scikit-learn": lambda: rival.fit(data.X)}, repeat=1)
    ours, theirs = timings["pure moments"].best, timings["scikit-learn"].best
    for name, timing in timings.items():
        report.row(method=name, N=200_000, d=100, seconds=timing.best, times_moments=timing.best / ours)
    ratio = theirs / ours
    report.claim("pure moments faster than scikit-learn", "≥ 10 times", f"{ratio:.1f} times", ratio >= 10)
    report.ratio("Gaussian mixture from moments", "scikit-learn", ratio, wanted=10)

    basis = _basis(data.X)
    with threadpool_limits(1, user_api="blas"), parallel.pool(1):
        sums = report.race(
            {"sums": lambda: _sums(data.X, basis), "products": lambda: _products(data.X, basis)}, repeat=3
        )
    ratio = sums["sums"].best / sums["products"].best
    report.claim(
        "accumulating over its matrix products, one thread", "≤ 3 times", f"{ratio:.2f} times", ratio <= 3
    )


def _basis(X):
    return principal_basis(moments_of(X, unit_of(X[:TILE_ROWS])), grid.COMPONENTS - 1)[1]


def _sums(X, basis):
    _basis(X)
    state = ThirdMoments(basis).begin(0)
    state.add(X)


def _products(X, basis):
    """XᵀX, XP, Xᵀ(XP), and the products of pairs with the axes: half of the r² pairs, made once for all tiles."""
    r = basis.axes.shape[1]
    pairs = np.ones((r * (r + 1) // 2, TILE_ROWS))
    for start in range(0, len(X), TILE_ROWS):
        x = X[start : start + TILE_ROWS]
        p = x @ basis.axes
        _ = x.T @ x, x.T @ p, pairs[:, : len(x)] @ p


def _bits(report):
    data = make_spherical_mixture(50_000, n_features=50, random_state=0)

    def fit(threads, X):
        return SphericalMixture(grid.COMPONENTS, threads=threads).fit(X)

    def stream(size):
        model = SphericalMixture(grid.COMPONENTS)
        for start in range(0, len(data.X), size):
            model.partial_fit(data.X[start : start + size])
        return model

    one = fit(1, data.X)
    same = all(
        np.array_equal(getattr(one, name), getattr(fit(2, data.X), name)) for name in ("weights_", "means_")
    )
    report.claim("one thread and two: the same bits", "equal", "equal" if same else "different", same)
    cut = fit(1, np.array_split(data.X, 7))
    gap = float(np.abs(one.means_ - cut.means_).max())
    report.claim(
        "fit on 7 batches beside one table: largest difference of the means", "≤ 1e-10", gap, gap <= 1e-10
    )
    gap = float(np.abs(stream(50_000).means_ - stream(333).means_).max())
    report.claim("stream cut by 333 rows beside one batch", "≤ 1e-10", gap, gap <= 1e-10)
