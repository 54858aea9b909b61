import numpy as np
import pytest
from scipy import sparse

from givens.topics.documents import as_sparse


@pytest.mark.parametrize("shape", [(0, 5), (1, 1), (7, 3), (300, 40)])
@pytest.mark.parametrize("kind", ["u2", "i8", "f4", "f8", ">f8", "f2"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_dense_table_becomes_the_sparse_matrix_of_scipy(shape, kind, order):
    table = np.random.default_rng(0).poisson(0.3, shape)
    found = as_sparse(table.astype(kind, order=order))
    expected = sparse.csr_matrix(table)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))
    assert found.shape == shape
    assert found.has_sorted_indices


def test_a_view_of_every_other_word_becomes_its_own_counts():
    table = np.arange(24).reshape(4, 6)[:, ::2]
    assert as_sparse(table).toarray().tolist() == table.tolist()
