from __future__ import annotations

import numpy as np
import pytest

from givens.datasets import psychological_tests


def principal_loadings(R: np.ndarray, factors: int) -> np.ndarray:
    """Loadings of the first principal components of a correlation matrix."""
    variances, axes = np.linalg.eigh(R)
    return (axes * np.sqrt(np.maximum(variances, 0)))[:, ::-1][:, :factors]


@pytest.fixture(scope="session")
def tests_of_24():
    """Unrotated loadings of four principal components of the 24 psychological tests."""
    return principal_loadings(psychological_tests().R, 4)


def unstructured(seed: int) -> np.ndarray:
    """Loadings without structure, whose criteria have local maxima: 12 to 60 variables, 3 to 10 factors."""
    rng = np.random.default_rng(seed)
    factors = int(rng.integers(3, 11))
    return rng.standard_normal((int(rng.integers(4 * factors, 6 * factors + 1)), factors))


def structured(rows: int, columns: int, seed: int, noise: float = 0.1) -> np.ndarray:
    """One large loading in every row, noise, and a random rotation of all."""
    rng = np.random.default_rng(seed)
    simple = np.zeros((rows, columns))
    simple[np.arange(rows), rng.integers(columns, size=rows)] = rng.uniform(0.5, 1, rows)
    noisy = simple + noise * rng.standard_normal(simple.shape)
    return noisy @ np.linalg.qr(rng.standard_normal((columns, columns)))[0]
