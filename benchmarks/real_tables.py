"""Sparse PCA of real tables: counts against thresholds, and tall sparse matrices beside scanpy's PCA.

First, sixty settings: five tables, each with 2, 4 and 8 components and four thresholds. `SparsePCA(n_nonzero=...)`
is given the counts of non-zeros that the fit with the threshold has, in its order, and the two are compared by the adjusted
variance that both report. More starts must never report less.

Then counts of genes as single cells give them, simulated: 7 % of the entries are not zero. The time is that of scanpy's
`pp.pca` with twenty principal components, which are not sparse (its default is fifty; they stand beside these, and the memory is
theirs), and of `SparsePCA` with twenty components of 50 genes, each in a process of its own that reads the same file. With
GIVENS_TABLES=full a million cells follow.

Then mixtures of spherical Gaussians: 102 tumours by 12,600 genes, and 700 blood cells by 765 genes, beside scikit-learn's
best of ten starts in which no component holds a single row (such a component has the variance 0, and the likelihood has no
bound).

Last, reading files: a table of 12,625 genes by 128 samples in each text format, compared with pandas with the settings that
the file needs; and files of counts compared with anndata, SciPy and scanpy. Matrix Market files are read as text: SciPy's
compiled reader is faster, but trusts the number of entries that a file claims to have.
"""

from __future__ import annotations

import csv
import gzip
import os
import tempfile
import time
import warnings
from functools import partial
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
    mixtures(report)
    readers(report)


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
                by_threshold = fitted(SparsePCA(m, threshold=(penalty, alpha), scale=scale), table)
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
            theirs, twenty, ours = (
                report.peak(function, path) for function in (scanpy_pca, scanpy_pca_of_twenty, sparse_pca)
            )
            report.row(
                cells=cells,
                genes=genes,
                scanpy_seconds=theirs.value,
                scanpy_seconds_of_twenty=twenty.value,
                givens_seconds=ours.value,
                scanpy_gb=theirs.bytes / 1e9,
                givens_gb=ours.bytes / 1e9,
            )
            size = f"{cells:,} x {genes:,}"
            times = twenty.value / ours.value
            report.claim(
                f"{size}: no slower than scanpy's PCA of as many components",
                "≥ 1 times",
                f"{times:.2f} times",
                times >= 1,
            )
            memory = ours.bytes / theirs.bytes
            report.claim(f"{size}: memory over scanpy's", "≤ 1.5 times", f"{memory:.2f} times", memory <= 1.5)
    if os.environ.get("GIVENS_TABLES") != "full":
        report.note(f"{CELLS:,} x {GENES:,} cells are measured with GIVENS_TABLES=full only.")
        return
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


def scanpy_pca(path, **settings):
    """Seconds of `scanpy.pp.pca` with its default settings, once warm."""
    import anndata
    import scanpy

    X = sparse.load_npz(path)
    scanpy.pp.pca(anndata.AnnData(X[:500, :200]), n_comps=M)
    table = anndata.AnnData(X)
    start = time.perf_counter()
    scanpy.pp.pca(table, **settings)
    return time.perf_counter() - start


def scanpy_pca_of_twenty(path):
    """The same with as many components as `SparsePCA` has here."""
    return scanpy_pca(path, n_comps=M)


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


def mixtures(report):
    """Time on a wide table; likelihood on blood cells."""
    from givens import SphericalMixture

    path = report.data("singh2002_prostate")
    if path is not None:
        with np.load(path, allow_pickle=False) as file:
            X = np.log2(np.maximum(file["X"], 10)).astype(np.float64)
        SphericalMixture(2).fit(X[:, :50])
        start = time.perf_counter()
        SphericalMixture(3, random_state=0).fit(X)
        seconds = time.perf_counter() - start
        report.row(mixture="tumours", samples=X.shape[0], genes=X.shape[1], givens_seconds=seconds)
        report.claim("a mixture of 102 x 12,600", "≤ 2 s", f"{seconds:.2f} s", seconds <= 2)
    blood_cells(report)


def blood_cells(report, clusters=10, starts=10):
    """Mean log-likelihood with a variance for each component, where none of them holds a single row."""
    import scanpy
    from sklearn.mixture import GaussianMixture

    from givens import SphericalMixture

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = scanpy.datasets.pbmc68k_reduced()
        X = np.asarray(table.X.toarray() if sparse.issparse(table.X) else table.X, np.float64)
        rivals = [
            GaussianMixture(clusters, covariance_type="spherical", random_state=seed, max_iter=300).fit(X)
            for seed in range(starts)
        ]
        model = SphericalMixture(clusters, variance="distinct", max_iter=300, random_state=0).fit(X)

    def least(fit):
        return float(fit.predict_proba(X).sum(axis=0).min())

    sound = [fit.score(X) for fit in rivals if least(fit) >= 2]
    ours, best = float(model.score(X)), max(sound, default=-np.inf)
    report.row(
        mixture="blood cells",
        givens_log_likelihood=ours,
        givens_smallest_component=least(model),
        sklearn_log_likelihood=best,
        sklearn_starts_without_a_single_row=len(sound),
        sklearn_log_likelihood_of_all_starts=max(fit.score(X) for fit in rivals),
    )
    report.claim(
        f"blood cells: log-likelihood beside the best of {len(sound)} of scikit-learn's {starts} starts without a single row",
        f"≥ {best:.2f}",
        f"{ours:.2f}",
        ours >= best - 1e-6 * abs(best) and least(model) >= 2,
    )


def readers(report, genes=12_625, samples=128):
    """Seconds of reading one table in several spellings."""
    import pandas

    rng = np.random.default_rng(0)
    values = rng.gamma(2.0, 3.0, (genes, samples))
    names = {"index": [f"{k}_at" for k in range(genes)], "columns": [f"sample {k}" for k in range(samples)]}
    table = pandas.DataFrame(values.round(4), **names).rename_axis("gene")
    exact = pandas.DataFrame(values, **names).rename_axis("gene")
    quoted = {"quoting": csv.QUOTE_NONNUMERIC}
    spellings = {
        "csv": (table, {}, {}),
        "csv, samples in rows": (table.T.rename_axis("sample"), {}, {}),
        "csv, 17 digits": (exact, {}, {}),
        "csv.gz": (table, {"compression": {"method": "gzip", "compresslevel": 1}}, {"compression": "gzip"}),
        "tsv": (table, {"sep": "\t"}, {"sep": "\t"}),
        "semicolons, decimal commas": (table, {"sep": ";", "decimal": ","}, {"sep": ";", "decimal": ","}),
        "CRLF": (table, {"lineterminator": "\r\n"}, {}),
        "R's write.csv": (table, quoted, {}),
        "R's write.table": (table, {"sep": " ", **quoted}, {"sep": " "}),
    }
    with tempfile.TemporaryDirectory() as folder:
        for spelling, (frame, writing, reading) in spellings.items():
            path = Path(folder) / ("x.csv.gz" if "gz" in spelling else "x.csv")
            frame.to_csv(path, **writing)
            read = partial(pandas.read_csv, path, index_col=0, **reading)
            _race_readers(report, spelling, path, "pandas", lambda read=read: read().to_numpy())
        for spelling, (path, rival, read) in _other_formats(Path(folder), table).items():
            _race_readers(report, spelling, path, rival, read, repeat=1 if spelling == "xlsx" else 3)


def _race_readers(report, spelling, path, rival, read, repeat=3):
    from givens.app.tables import read_table

    timings = report.race(
        {"givens": lambda: read_table(path), "rival": read}, repeat=repeat, warm=int(repeat > 1)
    )
    ratio = timings["givens"].best / timings["rival"].best
    report.row(
        spelling=spelling,
        rival=rival,
        givens_seconds=timings["givens"].best,
        rival_seconds=timings["rival"].best,
    )
    report.claim(f"reading, {spelling}", f"≤ 1.5 times {rival}", f"{ratio:.2f} times", ratio <= 1.5)


def _other_formats(folder, table):
    """Files that are not text, who else reads them, and how. Those of matrices hold zeros, as counts do."""
    import anndata
    import pandas
    import scanpy
    from scipy.io import mmread, mmwrite

    samples = table.T.rename_axis("sample")
    samples.to_parquet(folder / "x.parquet")
    table.to_excel(folder / "x.xlsx")
    counts = sparse.csr_matrix(np.where(samples.to_numpy() > 8, np.floor(samples.to_numpy()), 0.0))
    cells = anndata.AnnData(
        counts, pandas.DataFrame(index=samples.index), pandas.DataFrame(index=table.index)
    )
    cells.write_h5ad(folder / "x.h5ad")
    sparse.save_npz(folder / "x.npz", counts)
    mmwrite(folder / "x.mtx", counts)
    tenx = folder / "10x"
    tenx.mkdir()
    mmwrite(tenx / "matrix.mtx", counts.T, field="integer")
    lines = "".join(f"ENSG{k:011d}\t{name}\tGene Expression\n" for k, name in enumerate(table.index))
    (tenx / "features.tsv").write_text(lines)
    (tenx / "barcodes.tsv").write_text("".join(f"{name}\n" for name in samples.index))
    for name in ("matrix.mtx", "features.tsv", "barcodes.tsv"):
        with gzip.open(tenx / f"{name}.gz", "wb", compresslevel=1) as file:
            file.write((tenx / name).read_bytes())
        (tenx / name).unlink()
    return {
        "parquet": (
            folder / "x.parquet",
            "pandas",
            lambda: pandas.read_parquet(folder / "x.parquet").to_numpy(),
        ),
        "xlsx": (
            folder / "x.xlsx",
            "pandas",
            lambda: pandas.read_excel(folder / "x.xlsx", index_col=0).to_numpy(),
        ),
        "h5ad": (folder / "x.h5ad", "anndata", lambda: anndata.read_h5ad(folder / "x.h5ad")),
        "npz": (folder / "x.npz", "scipy", lambda: sparse.load_npz(folder / "x.npz")),
        "mtx": (folder / "x.mtx", "pandas", lambda: _coordinates(pandas, folder / "x.mtx", counts.shape)),
        "mtx, beside SciPy's own reader": (
            folder / "x.mtx",
            "scipy",
            lambda: mmread(folder / "x.mtx").tocsr(),
        ),
        "10x folder": (tenx, "scanpy", lambda: scanpy.read_10x_mtx(tenx)),
    }


def _coordinates(pandas, path, shape):
    """A Matrix Market file by pandas: entries are rows of text."""
    entries = pandas.read_csv(path, sep=" ", comment="%", header=None, skiprows=3).to_numpy()
    return sparse.csr_matrix((entries[:, 2], entries[:, :2].astype(int).T - 1), shape)
