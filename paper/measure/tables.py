"""The data of the paper's experiments: the real ones where a folder has them, simulations of the same shape where not.

`--data FOLDER`, or the environment variable GIVENS_DATA, names a folder of NumPy archives:

| file | holds |
|---|---|
| singh2002_prostate_102x12600.npz | X, samples x probes: raw intensities (Singh et al. 2002) |
| brain_3702.npz | X, sites x genes: the atlas at 3702 sites, if you have it (Hawrylycz et al. 2012) |
| pbmc3k_2700x32738_csr.npz | counts of 2,700 cells, as data, indices, indptr, shape (10x Genomics) |
| ahba_dk_83x15633.npz | X, regions x genes: the atlas by region |
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from givens.datasets import sparse_modules
from paper.measure.task import ExperimentSettings


class Data(NamedTuple):
    """Samples x variables, and what they are."""

    X: np.ndarray
    source: str
    file: str | None = None


def folder(settings: ExperimentSettings) -> Path | None:
    """Where the real data lie, if anywhere."""
    place = settings.data or os.environ.get("GIVENS_DATA")
    return None if place is None else Path(place)


def find(settings: ExperimentSettings, name: str) -> Path | None:
    """A file of that folder, if it is there."""
    place = folder(settings)
    path = None if place is None else place / name
    return path if path is not None and path.exists() else None


def prostate(settings: ExperimentSettings) -> Data:
    """Prostate cancer, 102 samples x 12,600 probes, log2 of the intensities."""
    path = find(settings, "singh2002_prostate_102x12600.npz")
    if path is not None:
        with np.load(path, allow_pickle=False) as archive:
            X = np.log2(np.maximum(archive["X"].astype(np.float64), 10))
        if settings.quick:
            X = X[:, ::4]
        return Data(
            X,
            f"prostate cancer data (Singh et al. 2002), {X.shape[0]} samples x {X.shape[1]:,} probes",
            path.name,
        )
    features = 3150 if settings.quick else 12_600
    X = sparse_modules(
        102, features, n_modules=12, module_size=60, strength=1.5, spread=0.6, background=0.5, random_state=0
    ).X
    return Data(X, f"simulated data of the prostate data's shape, 102 samples x {features:,} variables")


def brain(settings: ExperimentSettings) -> Data:
    """Gene expression of the brain: the atlas at many sites if it is there, else by region, else a simulation."""
    for name, label in (
        ("brain_3702.npz", "brain atlas"),
        ("ahba_dk_83x15633.npz", "brain atlas by region (not at the paper's 3,702 sites)"),
    ):
        path = find(settings, name)
        if path is not None:
            X = _thinned(_dense(path), settings)
            return Data(X, f"{label}, {X.shape[0]:,} samples x {X.shape[1]:,} genes", name)
    return _simulated(settings, "brain", 3702, 20_000)


def cells(settings: ExperimentSettings) -> Data:
    """Gene expression of many cells, for the stream: blood cells, else a simulation."""
    name = "pbmc3k_2700x32738_csr.npz"
    path = find(settings, name)
    if path is not None:
        X = _thinned(_cells(path), settings)
        return Data(X, f"PBMC 3k blood cells, {X.shape[0]:,} samples x {X.shape[1]:,} genes", name)
    return _simulated(settings, "blood cell", 2700, 13_714)


def _thinned(X: np.ndarray, settings: ExperimentSettings) -> np.ndarray:
    return X[:: max(1, len(X) // 500), :: max(1, X.shape[1] // 2500)] if settings.quick else X


def _simulated(settings: ExperimentSettings, kind: str, samples: int, features: int) -> Data:
    if settings.quick:
        samples, features = 400, 2000
    X = sparse_modules(
        samples, features, n_modules=15, module_size=features // 50, strength=1.0, spread=0.6, random_state=0
    ).X
    return Data(X, f"simulated data of the {kind} data's kind, {samples:,} samples x {features:,} variables")


def _dense(path: Path) -> np.ndarray:
    with np.load(path, allow_pickle=False) as archive:
        return archive["X"].astype(np.float64)


def _cells(path: Path) -> np.ndarray:
    """Genes seen in at least 3 cells; every cell scaled to 10,000 counts; log(1 + x)."""
    from scipy.sparse import csr_matrix

    with np.load(path, allow_pickle=False) as archive:
        counts = csr_matrix(
            (archive["data"], archive["indices"], archive["indptr"]), shape=tuple(archive["shape"])
        )
    counts = counts[:, np.asarray((counts > 0).sum(axis=0)).ravel() >= 3].astype(np.float64)
    totals = np.asarray(counts.sum(axis=1)).ravel()
    return np.log1p(counts.toarray() * (1e4 / totals)[:, None])
