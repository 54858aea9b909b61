"""How much memory a fit takes beside the data."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from givens import ICA


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("contrast", ["logcosh", "kurtosis", "adaptive"])
def test_a_fit_holds_one_copy_of_the_data(contrast, dtype):
    rng = np.random.default_rng(0)
    X = (rng.laplace(size=(300_000, 8)) @ rng.standard_normal((8, 8))).astype(dtype)
    model = ICA(contrast=contrast, threads=2)
    model.fit(X)  # what is compiled and imported is not counted
    tracemalloc.start()
    try:
        model.fit(X)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    tiles = 4 << 20
    assert most <= X.nbytes + tiles
