import numpy as np
import pytest

from givens.data.documents import as_sparse


@pytest.mark.parametrize("kind", ["u2", "i8", "f4", ">f8", ">i4", "f2"])
def test_dense_counts_of_any_type_become_a_sparse_matrix(kind):
    table = np.random.default_rng(0).poisson(0.3, (7, 3))
    found = as_sparse(table.astype(kind, order="F"))
    np.testing.assert_array_equal(found.toarray(), table)
    assert found.has_sorted_indices


def test_a_view_of_every_other_word_becomes_its_own_counts():
    table = np.arange(24).reshape(4, 6)[:, ::2]
    assert as_sparse(table).toarray().tolist() == table.tolist()
