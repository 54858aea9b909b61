"""Tucker's congruence, factors matched, and rotation towards a target."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from givens.factors import align, congruence, target_rotation
from givens.rotations import random_orthogonal


def test_congruence_is_its_definition():
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((9, 3)), rng.standard_normal((9, 4))
    expected = [[np.sum(a * b) / np.sqrt(np.sum(a**2) * np.sum(b**2)) for b in B.T] for a in A.T]
    np.testing.assert_allclose(congruence(A, B), expected, atol=1e-14)
    np.testing.assert_allclose(congruence(A * 1e200, B * 1e-200), expected, atol=1e-14)
    assert congruence(A, np.zeros((9, 1))).tolist() == [[0.0]] * 3


def test_factors_are_matched_in_order_and_sign():
    rng = np.random.default_rng(1)
    reference = rng.standard_normal((20, 5))
    order, signs = rng.permutation(5), rng.choice([-1.0, 1.0], 5)
    noisy = (reference + 0.1 * rng.standard_normal((20, 5)))[:, order] * signs
    np.testing.assert_allclose(
        align(noisy, reference), noisy[:, np.argsort(order)] * signs[np.argsort(order)]
    )


def test_target_rotation_is_scipys_procrustes():
    rng = np.random.default_rng(2)
    A, B = rng.standard_normal((10, 4)), rng.standard_normal((10, 4))
    np.testing.assert_allclose(target_rotation(A, B), scipy.linalg.orthogonal_procrustes(A, B)[0], atol=1e-12)
    R = random_orthogonal(4, rng)
    np.testing.assert_allclose(target_rotation(A * 1e180, A @ R * 1e-180), R, atol=1e-12)


@pytest.mark.parametrize("function", [congruence, align, target_rotation])
def test_refusals(function):
    A = np.ones((4, 2))
    with pytest.raises(ValueError, match="must be of the same variables, got 4 and 3 rows"):
        function(A, A[:3])
    with pytest.raises(ValueError, match="NaN"):
        function(A, A * np.nan)
    if function is not congruence:
        with pytest.raises(ValueError, match="must have the shape of the loadings"):
            function(A, A[:, :1])
