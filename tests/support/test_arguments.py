"""Checks of arguments that several estimators share."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from givens import SparsePCA, StreamingSparsePCA
from givens.support.arguments import dense, sample_weights

BAD = [
    ([1.0, 2.0], "one number for each of 3 samples"),
    (np.ones((3, 1)), "one number for each of 3 samples"),
    ([1.0, -1.0, 1.0], "finite and not negative, but that of sample 1 is -1"),
    ([1.0, 1.0, np.nan], "finite and not negative, but that of sample 2 is nan"),
    ([1.0, np.inf, 1.0], "that of sample 1 is inf"),
    ([0.0, 0.0, 0.0], "every number of sample_weight is zero"),
]


@pytest.mark.parametrize(("weights", "sentence"), BAD)
@pytest.mark.parametrize("estimator", [SparsePCA, StreamingSparsePCA])
def test_both_estimators_refuse_the_same_weights_in_the_same_words(estimator, weights, sentence):
    X = np.arange(12.0).reshape(3, 4) ** 2
    with pytest.raises(ValueError, match=sentence):
        estimator(1).fit(X, sample_weight=weights)


def test_weights_of_an_unknown_number_of_samples():
    np.testing.assert_array_equal(sample_weights([1, 2], None), [1.0, 2.0])
    with pytest.raises(ValueError, match="one number for each sample, got shape"):
        sample_weights(1.0, None)


def test_one_number_weighs_all_samples_of_sparse_pca_alike():
    X = np.random.default_rng(0).standard_normal((20, 4))
    one, several = (
        SparsePCA(2, n_nonzero=2, random_state=0).fit(X, sample_weight=weight)
        for weight in (3.0, np.full(20, 3.0))
    )
    np.testing.assert_array_equal(one.components_, several.components_)
    np.testing.assert_array_equal(one.explained_variance_, several.explained_variance_)


def test_dense_converts_sparse_rows_only():
    X = np.eye(3)
    assert dense(X) is X
    np.testing.assert_array_equal(dense(sparse.csr_matrix(X)), X)
