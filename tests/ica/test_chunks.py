"""ICA of data that are read in chunks: the components of a fit in memory, and the same bits wherever chunks are summed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import dask
import dask.array as da
import dask.dataframe
import numpy as np
import pandas as pd
import pytest

from givens import ICA
from givens.data.passes import EveryNth
from givens.objectives import Exp, Kurtosis, LogCosh
from givens.objectives.quartic import Orthomax
from tests.ica.sources import OWN
from tests.memory import most_bytes


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(11)
    S = np.column_stack((rng.laplace(size=(9000, 3)), rng.uniform(-1, 1, (9000, 2))))
    return S @ rng.standard_normal((5, 5)) + 2.0


def fit(X, **options):
    return ICA(**{"contrast": "adaptive", "tol": 1e-11, **options}).fit(X)


def as_map(X, folder):
    np.save(folder / "samples.npy", X)
    return np.load(folder / "samples.npy", mmap_mode="r")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"contrast": LogCosh()},
        {"contrast": Exp()},
        {"contrast": Kurtosis()},
        {"contrast": OWN},
        {"n_components": 3},
        {"n_components": 0.95, "whiten": "arbitrary-variance"},
        {"n_starts": 2, "random_state": 0},
    ],
    ids=str,
)
def test_the_components_are_those_of_a_fit_in_memory(X, options, tmp_path):
    expected = fit(X, **options)
    for chunked in (as_map(X, tmp_path), da.from_array(X, chunks=(1700, -1)), [X[:4000], X[4000:]]):
        found = fit(chunked, **options)
        size = np.abs(expected.components_).max()
        np.testing.assert_allclose(found.components_, expected.components_, atol=1e-6 * size)
        np.testing.assert_allclose(
            found.mixing_, expected.mixing_, atol=1e-6 * np.abs(expected.mixing_).max()
        )
        np.testing.assert_allclose(found.kurtosis_, expected.kurtosis_, atol=1e-5)
        np.testing.assert_array_equal(found.signs_, expected.signs_)
        assert found.gradient_norm_ <= 1e-9
        assert found.rank_ == expected.rank_
        assert found.n_features_in_ == 5


@pytest.mark.parametrize("contrast", ["adaptive", Kurtosis()])
def test_the_number_of_threads_does_not_change_the_bits(X, contrast, tmp_path):
    chunked = da.from_array(X, chunks=(1700, -1))
    with dask.config.set(scheduler="synchronous"):
        expected = fit(chunked, contrast=contrast).components_
    for threads in (1, 3):
        with ThreadPoolExecutor(threads) as pool, dask.config.set(scheduler="threads", pool=pool):
            np.testing.assert_array_equal(fit(chunked, contrast=contrast).components_, expected)
    mapped = as_map(X, tmp_path)
    one, two = (fit(mapped, contrast=contrast, threads=threads).components_ for threads in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_sources_are_lazy_and_the_same(X):
    chunked = da.from_array(X, chunks=(1700, -1))
    model = fit(chunked)
    lazy = model.transform(chunked)
    assert isinstance(lazy, da.Array)
    assert lazy.chunks[0] == chunked.chunks[0]
    np.testing.assert_allclose(lazy.compute(), model.transform(X), atol=1e-12)
    np.testing.assert_array_equal(
        ICA(contrast="adaptive", tol=1e-11).fit_transform(chunked).compute(), lazy.compute()
    )
    frame = pd.DataFrame(X, columns=list("abcde"))
    named = fit(dask.dataframe.from_pandas(frame, npartitions=4))
    assert list(named.feature_names_in_) == list("abcde")
    parts = named.transform(dask.dataframe.from_pandas(frame, npartitions=4)).compute()
    np.testing.assert_allclose(parts, named.transform(frame), atol=1e-12)


def test_single_precision_and_huge_numbers(X, tmp_path):
    single = fit(as_map(X.astype(np.float32), tmp_path), tol=1e-7)
    assert single.components_.dtype == np.float32
    np.testing.assert_allclose(single.components_, fit(X).components_, atol=1e-4)
    for factor in (2.0**-400, 2.0**400):
        huge = fit(da.from_array(X * factor, chunks=(3000, -1)))
        np.testing.assert_allclose(huge.mixing_ / factor, fit(X).mixing_, atol=1e-5)


def test_white_data_as_they_are(X):
    Z = fit(X).transform(X)
    chunked = da.from_array(Z, chunks=(3000, -1))
    np.testing.assert_allclose(
        np.abs(fit(chunked, whiten=False).components_).max(axis=1), np.ones(5), atol=1e-4
    )
    with pytest.warns(UserWarning, match="whiten=False, but X is not white"):
        fit(chunked * 2.0, whiten=False)


def test_a_map_is_an_array_where_chunks_do_not_do(X, tmp_path):
    mapped, weights = as_map(X, tmp_path), np.linspace(0.5, 2.0, len(X))
    options = {"stability": 1, "certify": True, "random_state": 0}
    found = ICA(**options).fit(mapped, sample_weight=weights)
    expected = ICA(**options).fit(X, sample_weight=weights)
    np.testing.assert_array_equal(found.components_, expected.components_)
    np.testing.assert_array_equal(found.stability_, expected.stability_)


@pytest.mark.parametrize("cut", [[100], [1, 2, 97], [33, 33, 34], [50, 0, 50]])
def test_the_sample_does_not_depend_on_the_chunks(cut):
    rows = np.arange(200.0).reshape(100, 2)
    total, first = None, 0
    for length in cut:
        part = EveryNth(7).begin(first)
        for some in np.array_split(rows[first : first + length], 3):
            part.add(some)
        first += length
        if total is None:
            total = part
        else:
            total.merge(part)
    np.testing.assert_array_equal(total.rows(), rows[::7])


def test_a_map_larger_than_what_is_held(tmp_path):
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(tmp_path / "large.npy", "w+", np.float64, (1_500_000, 4))
    A = rng.standard_normal((4, 4))
    for start in range(0, len(X), 100_000):
        X[start : start + 100_000] = rng.laplace(size=(100_000, 4)) @ A
    model = ICA().fit(X)
    assert most_bytes(lambda: model.fit(X)) < 0.7 * X.nbytes
    assert model.gradient_norm_ <= 1e-7


def test_columns_with_their_squares_taken_away(X):
    """Varimax is no sum over rows, but follows from two."""
    found = [
        ICA(contrast=Orthomax(1.0)).fit(data).components_ for data in (X, da.from_array(X, chunks=(1700, -1)))
    ]
    np.testing.assert_allclose(found[1], found[0], atol=1e-6)


def test_what_needs_memory_is_refused_in_one_sentence(X):
    chunked = da.from_array(X, chunks=(1700, -1))
    with pytest.raises(
        ValueError, match="sample_weight needs all samples in memory: leave it out with a dask array"
    ):
        ICA().fit(chunked, sample_weight=np.ones(len(X)))
    with pytest.raises(ValueError, match="stability needs all samples in memory"):
        ICA(stability=2).fit(chunked)
    with pytest.raises(ValueError, match="certify needs all samples in memory"):
        ICA(certify=True).fit(chunked)
    with pytest.raises(TypeError, match="yields its rows only once"):
        ICA().fit(iter([X]))
    bad = X.copy()
    bad[4000, 2] = np.nan
    with pytest.raises(ValueError, match=r"rows 3400 to 5099 of X \(chunk 2\): .*NaN"):
        ICA().fit(da.from_array(bad, chunks=(1700, -1)))
    with pytest.raises(ValueError, match="rank 1 only"):
        ICA(2).fit(da.from_array(np.outer(X[:, 0], np.ones(5)), chunks=(1700, -1)))
    with pytest.raises(ValueError, match="all samples are equal"):
        ICA().fit(da.ones((50, 3), chunks=(10, 3)))


class Changing:
    """Blocks of which one is another one from the third time on that they are read."""

    def __init__(self, blocks, other):
        self.blocks, self.other, self.times = blocks, other, 0

    def __iter__(self):
        self.times += 1
        return iter([*self.blocks, self.other] if self.times > 2 else self.blocks)


@pytest.mark.parametrize(
    ("bad", "sentence"), [(np.nan, "chunk 2 of X contains NaN"), (None, "chunk 2 of X has 2 columns")]
)
def test_blocks_that_change_after_the_first_pass_are_refused(bad, sentence):
    rng = np.random.default_rng(0)
    blocks = [rng.laplace(size=(300, 3)) for _ in range(2)]
    other = np.ones((4, 2)) if bad is None else np.full((4, 3), bad)
    with pytest.raises(ValueError, match=sentence):
        ICA(random_state=0).fit(Changing(blocks, other))
