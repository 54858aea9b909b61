"""How much memory a fit takes beside the data."""

from __future__ import annotations

import numpy as np
import pytest

from givens import ICA
from tests.memory import most_bytes


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("contrast", ["logcosh", "kurtosis", "adaptive"])
def test_a_fit_holds_one_copy_of_the_data(contrast, dtype):
    rng = np.random.default_rng(0)
    X = (rng.laplace(size=(300_000, 8)) @ rng.standard_normal((8, 8))).astype(dtype)
    model = ICA(contrast=contrast, threads=2)
    model.fit(X)  # what is compiled and imported is not counted
    tiles = 4 << 20
    assert most_bytes(lambda: model.fit(X)) <= X.nbytes + tiles
