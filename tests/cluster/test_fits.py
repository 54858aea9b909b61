"""Fits on dask arrays: the same bits on every scheduler, and the model that a fit in memory finds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import dask
import dask.array as da
import dask.dataframe
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from givens import SparsePCA, SphericalMixture, TopicModel
from givens.datasets import make_spherical_mixture, make_topics
from tests.cluster.accidents import deadly

distributed = pytest.importorskip("distributed")

MIXTURE = make_spherical_mixture(9000, n_components=3, n_features=6, scale=6, random_state=0).X
DOCUMENTS = make_topics(3000, n_topics=3, n_words=40, topic_sparsity=0.5).X


def dense(X, rows):
    return da.from_array(X, chunks=(rows, X.shape[1]))


def counts(X, rows):
    """A dask array whose chunks are sparse matrices."""
    return dense(X.toarray(), rows).map_blocks(sparse.csr_matrix, meta=sparse.csr_matrix((0, 0)))


def fit_mixture(X=None):
    model = SphericalMixture(3, refine_em=3, n_starts=3).fit(dense(MIXTURE, 700) if X is None else X)
    return np.concatenate([model.weights_, model.means_.ravel(), model.variances_, model.log_likelihood_])


def fit_topics(X=None):
    model = TopicModel(3, refine=2).fit(counts(DOCUMENTS, 401) if X is None else X)
    return np.concatenate([model.components_.ravel(), model.alpha_, model.bounds_])


def fit_sparse_pca(X=None, **options):
    model = SparsePCA(2, **(options or {"alpha": 0.3})).fit(dense(MIXTURE, 700) if X is None else X)
    return np.concatenate([model.components_.ravel(), model.explained_variance_, model.gamma_, model.mean_])


FITS = {"mixture": fit_mixture, "topics": fit_topics, "sparse PCA": fit_sparse_pca}


@pytest.fixture(scope="session")
def cluster():
    with (
        dask.config.set({"distributed.worker.memory.terminate": False}),
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
    ):
        yield cluster


@pytest.fixture(scope="session")
def expected():
    with dask.config.set(scheduler="synchronous"):
        return {name: fit() for name, fit in FITS.items()}


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", FITS)
def test_the_number_of_threads_does_not_change_the_bits(name, threads, expected):
    with ThreadPoolExecutor(threads) as pool, dask.config.set(scheduler="threads", pool=pool):
        np.testing.assert_array_equal(FITS[name](), expected[name])


def test_the_number_of_workers_does_not_change_the_bits(cluster, expected):
    with distributed.Client(cluster) as client:
        for workers in (1, 2, 4):
            cluster.scale(workers)
            client.wait_for_workers(workers)
            for name, fit in FITS.items():
                np.testing.assert_array_equal(fit(), expected[name], err_msg=f"{name}, {workers} workers")


def test_a_worker_killed_in_each_pass_does_not_change_the_bits(cluster, expected, tmp_path):
    # Chunk 1 is read for the first rows, the second moments, again after the worker's death, for the third moments, ...
    moments = (1, 3, 5)
    with distributed.Client(cluster) as client:
        cluster.scale(2)
        client.wait_for_workers(2)
        found = fit_mixture(deadly(dense(MIXTURE, 700), tmp_path, moments))
    np.testing.assert_array_equal(found, expected["mixture"])
    assert len(list(tmp_path.iterdir())) >= 6 + len(moments)


def test_mixtures_equal_those_fitted_in_memory(expected):
    np.testing.assert_allclose(expected["mixture"], fit_mixture(MIXTURE), rtol=1e-10, atol=1e-10)


SIZES = [MIXTURE, MIXTURE * 1e150, MIXTURE * 1e-150, np.hstack([MIXTURE, np.full((9000, 1), 0.1)])]


@pytest.mark.parametrize("number", range(len(SIZES)))
@pytest.mark.parametrize(
    "options", [{"alpha": 0.3}, {"n_nonzero": 2}, {"scale": True, "alpha": 0.2}, {"penalty": "l0"}], ids=str
)
def test_sparse_pca_equals_that_in_memory(options, number):
    X = SIZES[number]
    known = fit_sparse_pca(X, **options)
    np.testing.assert_allclose(
        fit_sparse_pca(dense(X, 700), **options), known, rtol=1e-10, atol=1e-12 * abs(X).max()
    )


def test_sparse_pca_of_sparse_chunks_says_what_it_is_of():
    X = sparse.csr_matrix(np.where(abs(MIXTURE) > 3, MIXTURE, 0.0))
    model = SparsePCA(2, alpha=0.3).fit(counts(X, 700))
    np.testing.assert_allclose(
        model.components_, SparsePCA(2, alpha=0.3).fit(X).components_, rtol=1e-10, atol=1e-12
    )
    assert model.result_.method.endswith("on the products of features, summed over 13 chunks of samples")
    lazy = model.transform(counts(X, 700))
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), model.transform(X), rtol=1e-12, atol=1e-12)


def test_too_many_features_are_refused(monkeypatch):
    monkeypatch.setattr("givens.sparse_pca.chunked.MOST_FEATURES", 5)
    with pytest.raises(ValueError, match=r"6 features of X may count.*StreamingSparsePCA"):
        SparsePCA(2, n_nonzero=2).fit(dense(MIXTURE, 700))


def test_topics_equal_those_fitted_in_memory(expected):
    np.testing.assert_allclose(expected["topics"], fit_topics(DOCUMENTS), rtol=1e-10)


def test_one_chunk_is_the_fit_in_memory():
    np.testing.assert_array_equal(fit_mixture(dense(MIXTURE, 9000)), fit_mixture(MIXTURE))
    np.testing.assert_array_equal(fit_topics(counts(DOCUMENTS, 3000)), fit_topics(DOCUMENTS))


def test_predictions_are_lazy_and_the_same():
    X = dense(MIXTURE, 700)
    model = SphericalMixture(3, refine_em=1, n_starts=1).fit(X)
    for method in ("predict", "predict_proba", "score_samples"):
        lazy = getattr(model, method)(X)
        known = getattr(model, method)(MIXTURE)
        assert isinstance(lazy, da.Array)
        assert lazy.dtype == known.dtype
        assert lazy.chunks[0] == X.chunks[0]
        np.testing.assert_allclose(lazy.compute(), known, rtol=1e-12, atol=1e-12)
    assert model.score(X) == pytest.approx(model.score(MIXTURE), rel=1e-12)
    assert model.bic(X) == pytest.approx(model.bic(MIXTURE), rel=1e-12)


def test_shares_are_lazy_and_the_same():
    X = counts(DOCUMENTS, 401)
    model = TopicModel(3, refine=0).fit(X)
    lazy = model.transform(X)
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), model.transform(DOCUMENTS), rtol=1e-6, atol=1e-9)
    assert model.perplexity(X) == pytest.approx(model.perplexity(DOCUMENTS), rel=1e-9)
    np.testing.assert_allclose(model.coherence(X), model.coherence(DOCUMENTS), rtol=1e-12)


def test_data_frames_have_names():
    frame = pd.DataFrame(MIXTURE, columns=list("abcdef"))
    model = SphericalMixture(3, refine_em=1, n_starts=1).fit(dask.dataframe.from_pandas(frame, npartitions=5))
    assert list(model.feature_names_in_) == list("abcdef")
    expected = SphericalMixture(3, refine_em=1, n_starts=1).fit(frame)
    np.testing.assert_allclose(model.means_, expected.means_, rtol=1e-9)


def test_the_tree_depends_on_the_number_of_chunks_only():
    # Chunks of other lengths, the same number: another cut of the rows, another sum; the same cut in another place, the same one.
    one = fit_mixture(dense(MIXTURE, 900))
    again = fit_mixture(da.from_delayed(dask.delayed(MIXTURE), MIXTURE.shape, float).rechunk((900, -1)))
    np.testing.assert_array_equal(one, again)
