"""The prostate data of Singh et al. (2002), prepared as gene expression is, or simulated data of their shape."""

from __future__ import annotations

import numpy as np

from givens.datasets import sparse_modules


def prostate(report):
    """Centred data, samples x features: 102 x 12,600."""
    path = report.data("singh2002_prostate")
    if path is None:
        report.note("simulated data of the same shape take their place")
        X = sparse_modules(
            102, 12_600, n_modules=20, module_size=100, spread=0.6, background=0.5, random_state=0
        ).X
    else:
        with np.load(path, allow_pickle=False) as file:
            X = np.log2(np.maximum(file["X"], 10)).astype(np.float64)
    return X - X.mean(axis=0)
