"""The paper's grid of mixtures: one sample of one cell, measured by every method, and the tables made of them."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import normalized_mutual_info_score
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from benchmarks._markdown import table
from benchmarks._runner import replace
from givens import SphericalMixture
from givens.data.moments import moments_of
from givens.data.passes import TILE_ROWS
from givens.data.third_moments import ThirdMoments, principal_basis
from givens.datasets import MixtureSample, make_spherical_mixture
from givens.mixtures.em import Mixture, posterior
from givens.mixtures.whitened_moments import Decomposer, solve
from givens.numerics.scaling import unit_of
from givens.result import Result
from paper.baselines import tensor_power
from paper.measure.mixture_cells import by_power, by_rotations, reconstruct, uncentred

COMPONENTS = 20
DIMENSIONS = (20, 50, 100, 200)
SAMPLES = (10_000, 30_000, 50_000, 100_000, 200_000)
SEEDS = 5
SETTINGS = (
    "scikit-learn: GaussianMixture(20, covariance_type='spherical', random_state=seed), all else at its default "
    "(k-means start, n_init=1, tol=1e-3, max_iter=100); 'scikit-learn, on' continues from there (warm_start) to tol=1e-4, "
    "max_iter=1000. givens: SphericalMixture(20, max_iter=0); with EM, max_iter=1000, tol=1e-4; 'distinct' has a variance for "
    "each component, which is scikit-learn's model. Paper: uncentred whitening, λ⁻² for the weights, by rotations and by the "
    "power method (L = 10, N = 30), weights kept within a factor of five of their mean. NMI is between the most probable "
    "component and the true one, on the sample itself; likelihoods are means per row; every method has one thread, and times are "
    "processor seconds."
)


def measure(d: int, n: int, seed: int) -> dict[str, Any]:
    """Fit one sample by every method, each in one thread: many cells can then be measured beside other work."""
    with threadpool_limits(1):
        return _measure(d, n, seed)


def _measure(d: int, n: int, seed: int) -> dict[str, Any]:
    data = make_spherical_mixture(n, n_components=COMPONENTS, n_features=d, random_state=seed)
    row: dict[str, Any] = {"d": d, "n": n, "seed": seed}
    _enter(row, "truth", data, lambda: Mixture(data.weights, data.means, data.variances))
    for name, options in {
        "givens": {"max_iter": 0},
        "em": {"max_iter": 1000},
        "em_distinct": {"max_iter": 1000, "variance": "distinct"},
    }.items():
        model = SphericalMixture(COMPONENTS, threads=1, **options)
        _enter(row, name, data, lambda model=model: _mixture(model.fit(data.X)))
        row[f"{name}_steps"] = model.n_iter_
    _enter(row, "power", data, lambda: same_reconstruction(data.X, partial(_power, seed)))
    moments, eigenvalues = uncentred(data.X, COMPONENTS)
    noise = float(eigenvalues[: d - COMPONENTS + 1].mean())
    for name, decomposition in {"paper_givens": by_rotations, "paper_power": by_power}.items():
        method = partial(decomposition, seed)
        _enter(row, name, data, lambda method=method: reconstruct(moments, noise, COMPONENTS, method))
    rival = GaussianMixture(COMPONENTS, covariance_type="spherical", random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        _enter(row, "sklearn", data, lambda: _rival(rival.fit(data.X)))
        rival.set_params(warm_start=True, tol=1e-4, max_iter=1000)
        _enter(row, "sklearn_on", data, lambda: _rival(rival.fit(data.X)))
    row["sklearn_on_seconds"] += row["sklearn_seconds"]
    return row


def same_reconstruction(X: np.ndarray, decomposition: Decomposer) -> Mixture:
    """What SphericalMixture(max_iter=0) fits, with another decomposition of the whitened tensor."""
    basis = principal_basis(moments_of(X, unit_of(X[:TILE_ROWS])), COMPONENTS - 1)[1]
    state = ThirdMoments(basis).begin(0)
    state.add(X)
    found = solve(state.cumulants(), COMPONENTS, common=True, decomposition=decomposition).mixture
    return Mixture(found.weights, found.means / basis.unit, found.variances / basis.unit**2)


def _power(seed: int, T: np.ndarray) -> tuple[np.ndarray, Result]:
    found = tensor_power(T, symmetrize=True, random_state=seed)
    return found.factors, found.result


def _mixture(model: SphericalMixture) -> Mixture:
    return Mixture(model.weights_, model.means_, model.variances_)


def _rival(model: GaussianMixture) -> Mixture:
    return Mixture(model.weights_, model.means_, model.covariances_)


def _enter(row: dict[str, Any], name: str, data: MixtureSample, fit: Callable[[], Mixture]) -> None:
    # Of the processor: with one thread that is what the work takes, whatever else the machine does.
    start = time.process_time()
    mixture = fit()
    row[f"{name}_seconds"] = time.process_time() - start
    shares, logs = posterior(mixture, data.X)
    row[f"{name}_nmi"] = float(normalized_mutual_info_score(data.y, np.argmax(shares, axis=1)))
    row[f"{name}_likelihood"] = float(logs.mean())


def measured(cells: list[tuple[int, int]], seeds: int, store: Path, version: str) -> list[dict[str, Any]]:
    """Measure what the store does not hold yet for this version of the code."""
    done = [json.loads(line) for line in store.read_text().splitlines()] if store.exists() else []
    rows = {(row["d"], row["n"], row["seed"]): row for row in done if row["version"] == version}
    store.parent.mkdir(exist_ok=True)
    # Compiled code is compiled, or loaded, before any clock runs.
    measure(COMPONENTS, 1000, 0)
    for seed in range(seeds):
        for d, n in cells:
            if (d, n, seed) not in rows:
                rows[d, n, seed] = {"version": version, **measure(d, n, seed)}
                with store.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(rows[d, n, seed]) + "\n")
    return [rows[d, n, seed] for d, n in cells for seed in range(seeds)]


def cells_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean of every figure of a cell, and its standard error under the name with `_se`."""
    cells = []
    for d, n in dict.fromkeys((row["d"], row["n"]) for row in rows):
        of_cell = [row for row in rows if (row["d"], row["n"]) == (d, n)]
        cell: dict[str, Any] = {"d": d, "n": n, "seeds": len(of_cell)}
        for name in of_cell[0].keys() - {"d", "n", "seed", "version"}:
            figures = np.array([row[name] for row in of_cell])
            cell[name] = float(figures.mean())
            cell[f"{name}_se"] = float(figures.std(ddof=1) / np.sqrt(len(figures)))
        cells.append(cell)
    return cells


def shown(cell: dict[str, Any], kind: str, names: dict[str, str]) -> dict[str, Any]:
    """One row of a table, figures with their standard errors."""
    digits = 2 if kind == "seconds" else 3
    row: dict[str, Any] = {"d": cell["d"], "N": cell["n"]}
    for title, name in names.items():
        key = f"{name}_{kind}"
        row[title] = f"{cell[key]:.{digits}f} ± {cell[key + '_se']:.{digits}f}"
    return row


def streams(d: int, n: int, seeds: int) -> dict[str, Any]:
    """NMI of one pass (partial_fit), by the rows that fix the axes, beside two passes."""
    figures: dict[str, list[float]] = {}
    for seed in range(seeds):
        data = make_spherical_mixture(n, n_components=COMPONENTS, n_features=d, random_state=seed)
        models = {"fit": SphericalMixture(COMPONENTS, max_iter=0).fit(data.X)}
        for rows in (1000, 2000, 5000):
            model = SphericalMixture(COMPONENTS, basis_samples=rows)
            models[f"{rows} rows"] = model.partial_fit(data.X)
        for name, model in models.items():
            figures.setdefault(name, []).append(normalized_mutual_info_score(data.y, model.predict(data.X)))
    return {
        "d": d,
        "N": n,
        "seeds": seeds,
        **{name: f"{np.mean(values):.3f}" for name, values in figures.items()},
    }


NMI = {
    "truth": "truth",
    "givens": "givens",
    "power, same reconstruction": "power",
    "givens, paper": "paper_givens",
    "power, paper": "paper_power",
    "givens + EM": "em",
    "distinct + EM": "em_distinct",
    "scikit-learn": "sklearn",
    "scikit-learn, on": "sklearn_on",
}
LIKELIHOOD = {"distinct + EM": "em_distinct", "scikit-learn": "sklearn", "scikit-learn, on": "sklearn_on"}
SECONDS = {"givens": "givens", "givens + EM": "em", **LIKELIHOOD}


def publish(
    cells: list[dict[str, Any]],
    one_pass: list[dict[str, Any]],
    claims: list[dict[str, Any]],
    docs: Path,
    about: dict[str, Any],
) -> None:
    """Write the full grid into the documentation."""
    lines = [
        "# Mixtures: the paper's grid",
        "",
        "How well are the clusters of the paper's experiment found? This page compares [`SphericalMixture`](mixture.md) with the "
        "paper's methods and with scikit-learn, for all sizes of the paper's Figures 3 and 4: "
        f"k = {COMPONENTS} components, d dimensions, N rows, {cells[0]['seeds']} samples per cell, means ± standard errors. "
        "The paper's d = 10 is left out, since moments need as many dimensions as components. "
        f"Measured {about['date']} on {about['machine']}; `GIVENS_GRID=full make bench ONLY=mixture` measures it anew and "
        "writes this page.",
        "",
        SETTINGS,
        "",
    ]
    lines += [
        f"- {'Met' if claim['holds'] else 'Missed'}: {claim['text']}: {claim['measured']} (target {claim['target']})."
        for claim in claims
    ]
    for title, kind, names in (
        ("Normalised mutual information", "nmi", NMI),
        ("Mean log-likelihood", "likelihood", LIKELIHOOD),
        ("Seconds", "seconds", SECONDS),
    ):
        lines += ["", f"## {title}", "", *table([shown(cell, kind, names) for cell in cells])]
    lines += ["", "## Streams: NMI of pure moments in one pass, beside two", "", *table(one_pass)]
    replace(docs / "mixture_grid.md", "\n".join(lines).rstrip() + "\n")
