"""Fits on dask arrays: the same bits on every scheduler, and the model that a fit in memory finds."""

from __future__ import annotations

import multiprocessing
import re
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import dask
import dask.array as da
import dask.dataframe
import numpy as np
import pandas as pd
import pytest
from dask.callbacks import Callback
from scipy import sparse

from givens import ICA, RotatedPCA, SparsePCA, SphericalMixture, StreamingSparsePCA, TopicModel
from givens.data.rows import Rows
from givens.data.sketch import Frequent, Sketch
from givens.datasets import make_topics
from tests.data.accidents import counting_reads, deadly
from tests.data.fits import (
    DATA,
    DOCUMENTS,
    FITS,
    MIXTURE,
    MODULES,
    SOURCES,
    counts,
    dense,
    fit_mixture,
    fit_rotated_pca,
    fit_sparse_pca,
    fit_stream,
    fit_topics,
)

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore:not converged")  # mixtures take few steps here


@pytest.fixture(scope="module")
def expected():
    with dask.config.set(scheduler="synchronous"):
        return {name: fit() for name, fit in FITS.items()}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", FITS)
def test_the_number_of_threads_does_not_change_the_bits(name, threads, expected):
    with ThreadPoolExecutor(threads) as pool, dask.config.set(scheduler="threads", pool=pool):
        np.testing.assert_array_equal(FITS[name](), expected[name])


def test_the_number_of_workers_does_not_change_the_bits(expected):
    with (
        dask.config.set({"distributed.worker.memory.terminate": False}),
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        for workers in (1, 3):
            cluster.scale(workers)
            client.wait_for_workers(workers)
            for name, fit in FITS.items():
                np.testing.assert_array_equal(fit(), expected[name], err_msg=f"{name}, {workers} workers")


# When chunk 1 is read for the last sums: a mixture reads it for the first rows and the second moments before. Other fits pass
# over their chunks in the same way; each worker more takes seconds to start.
LATE = {"mixture": 2, "stream": 0, "ICA": 4}


def test_a_worker_killed_in_a_pass_does_not_change_the_bits(expected, tmp_path):
    # A worker more than are killed: Dask starts new ones in their place when it can, and no fit has to wait for that.
    with (
        dask.config.set(
            {"distributed.comm.timeouts.connect": "5s"}
        ),  # 30 s else, to fetch from one that is gone
        distributed.LocalCluster(
            n_workers=len(LATE) + 1, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        for name, moment in LATE.items():
            (tmp_path / name).mkdir()
            found = FITS[name](deadly(DATA[name](), tmp_path / name, (moment,)))
            np.testing.assert_array_equal(found, expected[name], err_msg=name)
            assert len(list((tmp_path / name).iterdir())) > moment + 1, name


def test_processes_do_not_change_the_bits(expected):
    processes = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(2, processes) as pool,
        dask.config.set(scheduler="processes", pool=pool),
    ):
        for name in ("rotated PCA", "stream"):
            np.testing.assert_array_equal(FITS[name](), expected[name])


def test_mixtures_equal_those_fitted_in_memory(expected):
    np.testing.assert_allclose(expected["mixture"], fit_mixture(MIXTURE), rtol=1e-10, atol=1e-10)


SIZES = [MIXTURE, MIXTURE * 1e150, MIXTURE * 1e-150, np.hstack([MIXTURE, np.full((9000, 1), 0.1)])]


@pytest.mark.parametrize("number", range(len(SIZES)))
@pytest.mark.parametrize(
    "options",
    [{"threshold": 0.3}, {"n_nonzero": 2}, {"scale": True, "threshold": 0.2}, {"threshold": ("l0", 0.05)}],
    ids=str,
)
def test_sparse_pca_equals_that_in_memory(options, number):
    X = SIZES[number]
    known = fit_sparse_pca(X, **options)
    np.testing.assert_allclose(
        fit_sparse_pca(dense(X, 700), **options), known, rtol=1e-10, atol=1e-12 * abs(X).max()
    )


def test_sparse_pca_of_sparse_chunks_says_what_it_is_of():
    X = sparse.csr_matrix(np.where(abs(MIXTURE) > 3, MIXTURE, 0.0))
    model = SparsePCA(2, threshold=0.3).fit(counts(X, 700))
    np.testing.assert_allclose(
        model.components_, SparsePCA(2, threshold=0.3).fit(X).components_, rtol=1e-10, atol=1e-12
    )
    assert model.result_.method.endswith("on the products of features, summed over 13 chunks of samples")
    lazy = model.transform(counts(X, 700))
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), model.transform(X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize(
    "options", [{"threshold": 0.1}, {"n_nonzero": 8}, {"n_nonzero": ("total", 24)}], ids=str
)
def test_sparse_pca_of_many_features_is_that_of_a_sketch(monkeypatch, options, scale):
    known = SparsePCA(3, scale=scale, **options).fit(MODULES.X)
    monkeypatch.setattr("givens.sparse_pca.centred_data.MOST_PRODUCT_FEATURES", 39)
    model = SparsePCA(3, scale=scale, **options).fit(dense(MODULES.X, 170))
    stated = re.search(
        r"on a sketch of 23 columns, merged over 12 chunks of samples, that keeps .* lacks at most (.*)% of it",
        model.result_.method,
    )
    X = MODULES.X / MODULES.X.std(axis=0, ddof=1) if scale else MODULES.X
    variance = np.cov(X.T)
    # The first adjusted variance is that of the first score: none is claimed that the samples do not have.
    first = model.components_[0]
    bound = (float(stated[1]) + 0.005) / 100 * np.trace(variance)
    assert 0 < bound < variance.max()
    true = first @ variance @ first
    assert true - bound <= model.explained_variance_[0] <= true * (1 + 1e-12)
    np.testing.assert_allclose(model.explained_variance_.sum(), known.explained_variance_.sum(), rtol=0.05)
    overlap = abs(known.components_ @ model.components_.T).max(axis=1)
    assert overlap.min() > 0.98
    np.testing.assert_allclose(model.mean_, known.mean_, rtol=1e-10, atol=1e-12)


def test_sketches_of_sparse_pca_have_the_same_bits_on_threads(monkeypatch, tmp_path):
    monkeypatch.setattr("givens.sparse_pca.centred_data.MOST_PRODUCT_FEATURES", 39)
    expected = None
    reads = []
    for number, threads in enumerate((1, 3)):
        folder = tmp_path / f"readings {number}"
        with ThreadPoolExecutor(threads) as pool, dask.config.set(scheduler="threads", pool=pool):
            X = counting_reads(dense(MODULES.X, 170), folder)
            model = SparsePCA(3, threshold=0.1).fit(X)
        reads.append(len(list(folder.iterdir())))
        expected = model.components_ if expected is None else expected
        np.testing.assert_array_equal(model.components_, expected)
    assert reads == [2 + 2 * 12] * 2  # the first rows, the means and the sketch


def test_too_many_components_for_a_sketch_are_refused(monkeypatch):
    monkeypatch.setattr("givens.sparse_pca.centred_data.MOST_PRODUCT_FEATURES", 39)
    monkeypatch.setattr("givens.data.sketch.MOST_PRODUCT_FEATURES", 39)
    with pytest.raises(
        ValueError, match=r"40 components of 40 features need a sketch of 40 x 40 numbers.*fewer components"
    ):
        SparsePCA(threshold=0.01).fit(dense(MODULES.X, 170))


@pytest.mark.parametrize("chunks", [1, 7, 40])
@pytest.mark.parametrize("decay", [0.0, 0.5, 2.0])
def test_what_a_sketch_lacks_is_bounded(decay, chunks):
    rng = np.random.default_rng(chunks)
    X = rng.standard_normal((1200, 60)) / np.arange(1, 61) ** decay + rng.standard_normal(60)
    with dask.config.set(scheduler="synchronous"):
        data = Rows(dense(X, 1200 // chunks))
        sketch = data.total(Sketch(60, Frequent(3, 15), np.float64), "sketch")
    centred = X - X.mean(axis=0)
    Y = sketch.Y * sketch.unit
    total = np.sum(centred**2)
    lacks = np.linalg.eigvalsh(centred.T @ centred - Y.T @ Y)
    assert lacks[0] >= -1e-10 * total
    assert lacks[-1] <= sketch.largest_loss() * total * (1 + 1e-10)
    np.testing.assert_allclose(np.sum(Y**2), sketch.kept() * total, rtol=1e-10)


@pytest.mark.filterwarnings("ignore:all loadings of variable 6 are zero")  # of the constant feature
@pytest.mark.parametrize("number", range(len(SIZES)))
@pytest.mark.parametrize(
    "options",
    [{}, {"scale": True}, {"n_components": 0.8}, {"method": "quartimax", "normalize": False}],
    ids=str,
)
def test_rotated_pca_equals_that_in_memory(options, number):
    X = SIZES[number]
    size = 1.0 if options.get("scale") and number != 3 else abs(X).max()
    np.testing.assert_allclose(
        fit_rotated_pca(dense(X, 700), **options),
        fit_rotated_pca(X, **options),
        rtol=1e-10,
        atol=1e-10 * size,
    )


def test_rotated_scores_are_lazy_and_of_unit_variance():
    X = MIXTURE.astype(np.float32)
    model = RotatedPCA(3).fit(dense(X, 700))
    assert model.result_.method.startswith(
        "principal components from the products of features, summed over 13"
    )
    lazy = model.transform(dense(X, 700))
    assert isinstance(lazy, da.Array)
    assert lazy.dtype == np.float32
    np.testing.assert_allclose(lazy.compute(), model.transform(X), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.cov(lazy.compute().T), np.eye(3), atol=1e-4)
    assert model.pca_.n_samples_ == 9000
    np.testing.assert_allclose(
        model.pca_.noise_variance_, RotatedPCA(3).fit(X).pca_.noise_variance_, rtol=1e-4
    )


@pytest.mark.parametrize("scale", [False, True])
def test_rotated_pca_of_many_features_is_that_of_a_sketch(monkeypatch, scale):
    known = RotatedPCA(3, scale=scale).fit(MODULES.X)
    monkeypatch.setattr("givens.factors.principal_components.MOST_PRODUCT_FEATURES", 39)
    model = RotatedPCA(3, scale=scale).fit(dense(MODULES.X, 170))
    assert "a sketch of 23 columns, merged over 12 chunks of samples, that keeps" in model.result_.method
    # The subspaces, whose angles the noise that was dropped may turn a little, and what they explain.
    cosines = np.linalg.svd(model.pca_.components_ @ known.pca_.components_.T, compute_uv=False)
    assert cosines.min() > 0.995
    assert model.explained_variance_.sum() <= known.explained_variance_.sum() * (1 + 1e-12)
    np.testing.assert_allclose(model.explained_variance_.sum(), known.explained_variance_.sum(), rtol=0.05)
    np.testing.assert_allclose(model.mean_, known.mean_, rtol=1e-10, atol=1e-12)
    with pytest.raises(
        ValueError, match=r"n_components=0.5 needs the products of all features.*give the number"
    ):
        RotatedPCA(0.5).fit(dense(MODULES.X, 170))


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_rotated_pca_reads_blocks_and_files(kind, tmp_path):
    X = MIXTURE.astype(kind)
    known = RotatedPCA(3).fit(X)
    np.save(tmp_path / "X.npy", X)
    for source in ([X[:10], X[10:4000], X[4000:]], np.load(tmp_path / "X.npy", mmap_mode="r")):
        model = RotatedPCA(3).fit(source)
        tolerance = 1e-10 if kind == np.float64 else 1e-4
        np.testing.assert_allclose(model.loadings_, known.loadings_, atol=tolerance * abs(X).max())
        np.testing.assert_array_equal(model.transform(X).dtype, kind)
        assert model.pca_.n_samples_ == 9000
    with pytest.raises(ValueError, match="n_components must be a whole number from 1 to 6"):
        RotatedPCA(7).fit([X])


def test_rotated_pca_refuses_what_it_cannot_do():
    with pytest.raises(ValueError, match="svd_solver='arpack' is for dense samples in memory"):
        RotatedPCA(2, svd_solver="arpack").fit(dense(MIXTURE, 700))
    with pytest.raises(ValueError, match="n_components must be a whole number from 1 to 6"):
        RotatedPCA(7).fit(dense(MIXTURE, 700))
    with pytest.raises(ValueError, match="every feature of X is constant"):
        RotatedPCA(2).fit(dense(np.ones((10, 3)), 5))


def test_streams_of_chunks_are_merged():
    model = StreamingSparsePCA(3, n_nonzero=8).fit(dense(MODULES.X, 170))
    assert model.n_samples_seen_ == 2000
    overlap = abs(MODULES.components @ model.components_.T).max(axis=1)
    assert overlap.min() > 0.99
    # Nothing is claimed that the samples do not have, and little is lost beside the stream in memory.
    known = StreamingSparsePCA(3, n_nonzero=8).fit(MODULES.X)
    assert 0.97 * known.explained_variance_.sum() < model.explained_variance_.sum()
    centred = MODULES.X - MODULES.X.mean(axis=0)
    W = model._sketch.Y * model._sketch.unit
    lost = np.linalg.eigvalsh(centred.T @ centred - W.T @ W)
    total = np.sum(centred**2)
    assert lost[0] >= -1e-10 * total
    assert lost[-1] <= total * (1 - model.kept_variance_ratio_) * (1 + 1e-10)
    lazy = model.transform(dense(MODULES.X, 170))
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), model.transform(MODULES.X), rtol=1e-10, atol=1e-12)


def test_streams_of_chunks_go_on_and_have_weights():
    X, weights = MODULES.X, np.random.default_rng(0).integers(0, 3, 2000).astype(float)
    model = StreamingSparsePCA(3, n_nonzero=8, scale=True)
    model.fit(dense(X[:1000], 170), sample_weight=weights[:1000]).partial_fit(
        X[1000:], sample_weight=weights[1000:]
    )
    assert model.n_samples_seen_ == np.count_nonzero(weights)
    rows = np.repeat(X, weights.astype(int), axis=0)
    np.testing.assert_allclose(model.mean_, rows.mean(axis=0), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(model.scale_, rows.std(axis=0, ddof=1), rtol=1e-10)


def test_forgetting_counts_the_samples_of_later_chunks():
    weights = 0.99 ** np.arange(2000)[::-1]
    model = StreamingSparsePCA(3, n_nonzero=8, forgetting=0.99).fit(dense(MODULES.X, 170))
    np.testing.assert_allclose(model.mean_, weights @ MODULES.X / weights.sum(), rtol=1e-9, atol=1e-12)
    variance = StreamingSparsePCA(3, n_nonzero=8, forgetting=0.99).fit(MODULES.X).explained_variance_
    np.testing.assert_allclose(model.explained_variance_.sum(), variance.sum(), rtol=0.03)


def test_topics_equal_those_fitted_in_memory(expected):
    # The variational passes are in single precision, where a last bit of the topics may round to another number.
    np.testing.assert_allclose(expected["topics"], fit_topics(DOCUMENTS), rtol=1e-8)


@pytest.mark.parametrize("max_iter", [0, 3])
def test_many_topics_equal_those_fitted_in_memory(max_iter):
    k = 20
    X = make_topics(3000, n_components=k, n_words=800, topic_sparsity=0.2, random_state=k).X
    known, found = (TopicModel(k, max_iter=max_iter).fit(data) for data in (X, counts(X, 401)))
    np.testing.assert_allclose(found.alpha_, known.alpha_, rtol=1e-10)
    np.testing.assert_allclose(
        found.components_, known.components_, rtol=1e-10, atol=1e-12 * known.components_.max()
    )


def test_one_chunk_is_the_fit_in_memory():
    np.testing.assert_array_equal(fit_mixture(dense(MIXTURE, 9000)), fit_mixture(MIXTURE))
    np.testing.assert_array_equal(fit_topics(counts(DOCUMENTS, 3000)), fit_topics(DOCUMENTS))
    np.testing.assert_array_equal(fit_stream(dense(MODULES.X, 2000)), fit_stream(MODULES.X))


def test_more_clusters_than_features_equal_those_fitted_in_memory():
    X = MIXTURE[:, :2]
    known, found = (SphericalMixture(3).fit(data) for data in (X, dense(X, 700)))
    np.testing.assert_allclose(found.means_, known.means_, rtol=1e-9, atol=1e-9)
    assert found.result_.method == known.result_.method


def test_predictions_are_lazy_and_the_same():
    X = dense(MIXTURE, 700)
    model = SphericalMixture(3, max_iter=1, n_starts=1).fit(X)
    for method in ("predict", "predict_proba", "score_samples"):
        lazy = getattr(model, method)(X)
        known = getattr(model, method)(MIXTURE)
        assert isinstance(lazy, da.Array)
        assert lazy.dtype == known.dtype
        assert lazy.chunks[0] == X.chunks[0]
        np.testing.assert_allclose(lazy.compute(), known, rtol=1e-12, atol=1e-12)
    assert model.score(X) == pytest.approx(model.score(MIXTURE), rel=1e-12)
    assert model.bic(X) == pytest.approx(model.bic(MIXTURE), rel=1e-12)
    assert model.bic(X[X[:, 0] > 0]) == pytest.approx(model.bic(MIXTURE[MIXTURE[:, 0] > 0]), rel=1e-12)


@pytest.mark.parametrize("method", ["score", "bic", "aic"])
def test_sums_alone_come_back(method):
    model = SphericalMixture(3, max_iter=1, n_starts=1).fit(MIXTURE)
    sizes = []

    def note(graph, state, failed):
        sizes.extend(np.size(result) for result in state["cache"].values())

    with dask.config.set(scheduler="synchronous"), Callback(finish=note):
        getattr(model, method)(dense(MIXTURE, 700))
    assert sizes
    assert sum(sizes) <= 2


def test_shares_are_lazy_and_the_same():
    X = counts(DOCUMENTS, 401)
    model = TopicModel(3, max_iter=0).fit(X)
    lazy = model.transform(X)
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), model.transform(DOCUMENTS), rtol=1e-6, atol=1e-9)
    assert model.perplexity(X) == pytest.approx(model.perplexity(DOCUMENTS), rel=1e-9)
    np.testing.assert_allclose(model.coherence(X), model.coherence(DOCUMENTS), rtol=1e-12)


def test_data_frames_have_names():
    frame = pd.DataFrame(MIXTURE, columns=list("abcdef"))
    model = SphericalMixture(3, max_iter=1, n_starts=1).fit(dask.dataframe.from_pandas(frame, npartitions=5))
    assert list(model.feature_names_in_) == list("abcdef")
    expected = SphericalMixture(3, max_iter=1, n_starts=1).fit(frame)
    np.testing.assert_allclose(model.means_, expected.means_, rtol=1e-9)


FRAMED = {
    "mixture": (MIXTURE, lambda: SphericalMixture(3, max_iter=1, n_starts=1)),
    "sparse PCA": (MIXTURE, lambda: SparsePCA(2, threshold=0.3)),
    "rotated PCA": (MIXTURE, lambda: RotatedPCA(3)),
    "stream": (MIXTURE, lambda: StreamingSparsePCA(2, n_nonzero=3)),
    "ICA": (SOURCES, lambda: ICA(3)),
    "topics": (DOCUMENTS.toarray(), lambda: TopicModel(3)),
}


@pytest.mark.parametrize("name", FRAMED)
def test_a_data_frame_is_fitted_as_its_array(name):
    X, make = FRAMED[name]
    frame = pd.DataFrame(X, columns=[f"feature {number}" for number in range(X.shape[1])])
    parts = dask.dataframe.from_pandas(frame, npartitions=5)
    model, expected = make().fit(parts), make().fit(parts.to_dask_array(lengths=True))
    assert list(model.feature_names_in_) == list(frame.columns)
    found = "means_" if name == "mixture" else "components_"
    np.testing.assert_array_equal(getattr(model, found), getattr(expected, found))


def test_the_tree_depends_on_the_number_of_chunks_only():
    # Chunks of other lengths, the same number: another cut of the rows, another sum; the same cut in another place, the same one.
    one = fit_mixture(dense(MIXTURE, 900))
    again = fit_mixture(da.from_delayed(dask.delayed(MIXTURE), MIXTURE.shape, float).rechunk((900, -1)))
    np.testing.assert_array_equal(one, again)
