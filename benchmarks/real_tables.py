"""Sparse PCA of real tables: counts against thresholds, and tall sparse matrices beside scanpy's PCA.

First, sixty settings: five tables, each with 2, 4 and 8 components and four thresholds (`alpha`).
`SparsePCA(n_nonzero=...)` is given the counts of non-zeros that the fit with the threshold has, in its order, and the two are
compared by the adjusted variance that both report. More starts must never report less.

Then counts of genes as single cells give them, simulated: 7 % of the entries are not zero. The time and the memory are those
of scanpy's `pp.pca` with its default settings (fifty principal components, which are not sparse) and of `SparsePCA` with twenty
components of 50 genes, each in a process of its own that reads the same file.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from givens import SparsePCA
from givens.datasets import pitprops

COMPONENTS = (2, 4, 8)
THRESHOLDS = (("l1", 0.15), ("l1", 0.27), ("l1", 0.45), ("l0", 0.2))
STARTS = 5
SIZES = ((30_000, 3_000), (80_000, 2_000))
CELLS, GENES = 1_000_000, 2_000
LIMIT = 8e9  # bytes, for a million cells
M, COUNT = 20, 50


def run(report):
    against_thresholds(report)
    beside_scanpy(report)


def tables(report):
    """Name, fit and data of each table; the measurements of wine and breast cancer have many units and are standardised."""
    yield "digits", load_digits().data, False
    yield "wine", load_wine().data, True
    yield "breast cancer", load_breast_cancer().data, True
    yield "pit props", pitprops(), False
    path = report.data("alon_colon")
    if path is not None:
        with np.load(path, allow_pickle=False) as file:
            yield "colon", np.log2(np.maximum(file["X"], 10)).astype(np.float64), False


def fitted(model, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit_covariance(table.R, table.n_obs) if hasattr(table, "R") else model.fit(table)


def against_thresholds(report):
    cases = wins = rises = 0
    fitted(SparsePCA(2, n_nonzero=3), pitprops())
    for name, table, scale in tables(report):
        for m in COMPONENTS:
            for penalty, alpha in THRESHOLDS:
                start = time.perf_counter()
                by_threshold = fitted(SparsePCA(m, alpha=alpha, penalty=penalty, scale=scale), table)
                middle = time.perf_counter()
                counts = by_threshold.n_nonzero_.tolist()
                by_counts = fitted(SparsePCA(m, n_nonzero=counts, scale=scale, random_state=0), table)
                end = time.perf_counter()
                more = fitted(
                    SparsePCA(m, n_nonzero=counts, scale=scale, random_state=0, n_starts=STARTS), table
                )
                shares = [float(f.explained_variance_ratio_.sum()) for f in (by_threshold, by_counts, more)]
                cases += 1
                wins += shares[1] >= shares[0] * (1 - 1e-9)
                rises += shares[2] >= shares[1]
                report.row(
                    table=name,
                    components=m,
                    threshold=f"{penalty}, {alpha}",
                    nonzeros=sum(counts),
                    alpha_variance=shares[0],
                    n_nonzero_variance=shares[1],
                    best_of_5_starts=shares[2],
                    alpha_seconds=middle - start,
                    n_nonzero_seconds=end - middle,
                )
    report.claim(
        "n_nonzero: at least the adjusted variance of alpha at the same counts",
        f"{cases} of {cases}",
        f"{wins} of {cases}",
        wins == cases,
    )
    report.claim(
        "more starts never report less", f"{cases} of {cases}", f"{rises} of {cases}", rises == cases
    )


def beside_scanpy(report):
    """Time and peak memory, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for cells, genes in SIZES:
            path = str(Path(folder) / f"{cells}.npz")
            sparse.save_npz(path, cell_counts(cells, genes), compressed=False)
            theirs, ours = (report.peak(function, path) for function in (scanpy_pca, sparse_pca))
            report.row(
                cells=cells,
                genes=genes,
                scanpy_seconds=theirs.value,
                givens_seconds=ours.value,
                scanpy_gb=theirs.bytes / 1e9,
                givens_gb=ours.bytes / 1e9,
            )
            size = f"{cells:,} x {genes:,}"
            times = theirs.value / ours.value
            report.claim(
                f"{size}: no slower than scanpy's PCA", "≥ 1 times", f"{times:.2f} times", times >= 1
            )
            memory = ours.bytes / theirs.bytes
            report.claim(f"{size}: memory over scanpy's", "≤ 1.5 times", f"{memory:.2f} times", memory <= 1.5)
        many = report.peak(million)
    report.row(cells=CELLS, genes=GENES, givens_seconds=many.value, givens_gb=many.bytes / 1e9)
    report.claim(
        f"{CELLS:,} x {GENES:,}: peak memory", "≤ 8 GB", f"{many.bytes / 1e9:.2f} GB", many.bytes <= LIMIT
    )


def cell_counts(cells, genes, seed=0, piece=20_000):
    """Counts in twenty groups of genes that go together, on a logarithmic scale, csr and float32; made piece by piece."""
    rng = np.random.default_rng(seed)
    base = rng.gamma(0.7, 1.0, genes).astype(np.float32)
    base *= 0.075 / base.mean()
    size = genes // (2 * M)
    parts = []
    for start in range(0, cells, piece):
        number = min(piece, cells - start)
        rate = np.tile(base, (number, 1))
        active = rng.gamma(0.5, 1.0, (number, M)).astype(np.float32)
        for j in range(M):
            rate[:, j * size : (j + 1) * size] *= 0.3 + 1.5 * active[:, j : j + 1]
        parts.append(sparse.csr_matrix(np.log1p(rng.poisson(rate).astype(np.float32))))
    return sparse.vstack(parts, format="csr")


def scanpy_pca(path):
    """Seconds of `scanpy.pp.pca` with its default settings, once warm."""
    import anndata
    import scanpy

    X = sparse.load_npz(path)
    scanpy.pp.pca(anndata.AnnData(X[:500, :200]), n_comps=M)
    table = anndata.AnnData(X)
    start = time.perf_counter()
    scanpy.pp.pca(table)
    return time.perf_counter() - start


def sparse_pca(path):
    """Seconds of `SparsePCA` once warm."""
    return _seconds(sparse.load_npz(path))


def million():
    """Seconds of `SparsePCA` for a million cells; its process makes them too."""
    return _seconds(cell_counts(CELLS, GENES))


def _seconds(X):
    SparsePCA(2, n_nonzero=5).fit(X[:500, :200])
    start = time.perf_counter()
    SparsePCA(M, n_nonzero=COUNT, random_state=0).fit(X)
    return time.perf_counter() - start
