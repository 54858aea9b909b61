"""The contrast of sparse PCA and its slopes, beside plain NumPy and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from givens.kernels import threshold
from givens.objectives.sparse_columns import Threshold
from givens.sparse_pca.loadings import shrink
from tests.oracles.breakpoints import pair_value

PENALTIES = pytest.mark.parametrize("penalty", ["l1", "l0"])


@PENALTIES
def test_slopes_are_the_derivatives_of_every_pair(rng, penalty):
    Y = rng.standard_normal((5, 300))
    levels = np.array([0.7, 0.7, 1.1])
    gammas = levels**2 if penalty == "l0" else levels
    M = Threshold(levels, penalty == "l0").sums(Y, 3)[1]
    np.testing.assert_allclose(M, shrink(Y[:3], gammas, penalty) @ Y.T, rtol=1e-12)
    h = 1e-6
    full = np.append(gammas, [np.inf, np.inf])
    for i, j in ((0, 1), (0, 2), (1, 3), (2, 4)):
        ahead, behind = pair_value(Y[i], Y[j], np.array([h, -h]), (full[i], full[j]), penalty)
        back = M[j, i] if j < 3 else 0.0
        assert 2 * (M[i, j] - back) == pytest.approx((ahead - behind) / (2 * h), rel=1e-4)


@pytest.mark.parametrize("in_place", [False, True])
@PENALTIES
def test_shrink_and_value_agree_with_plain_numpy(rng, penalty, in_place):
    Y = rng.standard_normal((4, 101))
    levels = np.array([0.3, 0.9, 1.5, 9.0])
    gammas = levels**2 if penalty == "l0" else levels
    S = Y.copy() if in_place else np.empty_like(Y)
    total, nonzeros = threshold.shrink(S if in_place else Y, levels, penalty == "l0", S)
    expected = shrink(Y, gammas, penalty)
    np.testing.assert_array_equal(S, expected)
    assert nonzeros == np.count_nonzero(expected)
    other = np.array([float(pair_value(y, 0 * y, 0.0, (g, np.inf), penalty)) for y, g in zip(Y, gammas)])
    assert total == pytest.approx(other.sum(), rel=1e-12)
