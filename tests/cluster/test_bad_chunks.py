"""What is wrong with chunks, or with a cluster, gets one sentence."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
import pytest

from givens import SphericalMixture, TopicModel

ROWS = np.random.default_rng(0).standard_normal((60, 3))


def fit(X):
    return SphericalMixture(2, refine_em=1, n_starts=1).fit(X)


def test_unknown_lengths():
    X = da.from_array(ROWS, chunks=(20, 3))
    with pytest.raises(ValueError, match=r"lengths of X's chunks are unknown.*compute_chunk_sizes"):
        fit(X[X[:, 0] > 0])


def test_chunks_along_features():
    with pytest.raises(ValueError, match=r"3 chunks along its features.*rechunk\(\{1: -1\}\)"):
        fit(da.from_array(ROWS, chunks=(20, 1)))


def test_another_number_of_dimensions():
    with pytest.raises(ValueError, match="two dimensions"):
        fit(da.from_array(ROWS[0]))


def test_no_rows():
    with pytest.raises(ValueError, match="0 rows and 3 columns"):
        fit(da.from_array(ROWS[:0]))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_located(bad):
    X = ROWS.copy()
    X[45, 1] = bad
    with pytest.raises(ValueError, match=r"rows 40 to 59 of X \(chunk 2\): .*(NaN|infinity)"):
        fit(da.from_array(X, chunks=(20, 3)))


def test_bad_counts_are_located():
    X = np.ones((60, 3))
    X[45, 1] = -2
    with pytest.raises(ValueError, match=r"rows 40 to 59 of X .* word 1 of document 45 has -2"):
        TopicModel(2).fit(da.from_array(X, chunks=(20, 3)))


def test_a_refused_fit_leaves_the_model_as_it_was():
    model = fit(ROWS)
    before = model.means_.copy()
    with pytest.raises(ValueError, match="chunks along its features"):
        model.fit(da.from_array(ROWS, chunks=(20, 1)))
    np.testing.assert_array_equal(model.means_, before)


def test_workers_without_the_library():
    distributed = pytest.importorskip("distributed")
    preload = "import sys\nsys.modules['givens'] = None\n"
    with (
        dask.config.set({"distributed.worker.preload": [preload]}),
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster),
        pytest.raises(ModuleNotFoundError, match="worker of the Dask cluster cannot import givens"),
    ):
        fit(da.from_array(ROWS, chunks=(20, 3)))
