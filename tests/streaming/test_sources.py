"""What a stream can be read from, and what is no stream."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import anndata
import dask.array
import dask.dataframe
import h5py
import numpy as np
import pandas
import pytest
import zarr
from scipy import sparse
from sklearn.exceptions import NotFittedError

from givens import StreamingSparsePCA
from givens.data.rows import batches, in_memory, length
from tests.stream_data import DATA, model, state


def sources(folder):
    """The same rows from everywhere."""
    np.save(folder / "x.npy", DATA)
    yield "memory map", np.load(folder / "x.npy", mmap_mode="r")
    yield "sparse", sparse.csr_matrix(DATA)
    file = h5py.File(folder / "x.h5", "w")
    yield "HDF5", file.create_dataset("x", data=DATA)
    yield "zarr", zarr.array(DATA, chunks=(50, 30))
    anndata.AnnData(DATA).write_h5ad(folder / "x.h5ad")
    yield "AnnData", anndata.read_h5ad(folder / "x.h5ad")
    yield "AnnData, backed", anndata.read_h5ad(folder / "x.h5ad", backed="r")
    anndata.AnnData(sparse.csr_matrix(DATA)).write_h5ad(folder / "s.h5ad")
    yield "AnnData, backed and sparse", anndata.read_h5ad(folder / "s.h5ad", backed="r")
    yield "dask", dask.array.from_array(DATA, chunks=(130, 30))
    yield "generator of rows", (row for row in DATA)
    yield "generator of batches", (DATA[k : k + 7] for k in range(0, 130, 7))
    yield "list of batches", [DATA[:100], DATA[100:]]
    file.close()


def test_every_source_gives_the_same_bits(tmp_path):
    expected = model().fit(DATA)
    seen = []
    for name, source in sources(tmp_path):
        found = model().fit(source)
        np.testing.assert_array_equal(found.components_, expected.components_, err_msg=name)
        assert found.n_samples_seen_ == 130
        seen.append(name)
    assert len(seen) == 11


def test_lengths_and_tables_are_told_apart(tmp_path):
    for name, source in sources(tmp_path):
        known = None if "generator" in name else 130
        assert length(source) == known, name
        assert in_memory(source) == (name == "sparse"), name
    assert in_memory(DATA)
    assert in_memory(DATA.tolist())


def test_large_tables_come_in_parts():
    parts = list(batches(np.zeros((3000, 1000))))
    assert len(parts) > 3
    assert sum(map(len, parts)) == 3000


def test_data_frames_keep_their_names():
    frame = pandas.DataFrame(DATA, columns=[f"gene {k}" for k in range(30)])
    found = model().partial_fit(frame[:50]).partial_fit(frame[50:])
    assert list(found.feature_names_in_[:2]) == ["gene 0", "gene 1"]
    with pytest.raises(ValueError, match="feature names"):
        found.partial_fit(frame.rename(columns={"gene 0": "other"}))
    scores = found.set_output(transform="pandas").transform(frame)
    assert list(scores.columns) == [f"streamingsparsepca{k}" for k in range(3)]


def test_a_name_of_a_file_is_no_stream(tmp_path):
    for name in ("rows.npy", tmp_path / "rows.npy"):
        with pytest.raises(TypeError, match=r"X must be rows, not the name of a file.*mmap_mode"):
            StreamingSparsePCA(3).fit(name)


def other_sources(folder):
    """Ways to hold the same rows that are rarer."""
    names = [f"gene {k}" for k in range(30)]
    frame = pandas.DataFrame(DATA, columns=names)
    yield "sparse rows of one dimension", (sparse.coo_array(row) for row in DATA)
    yield "list of nested lists", [DATA[:50].tolist(), DATA[50:].tolist()]
    yield "generator of nested lists and a row", iter([DATA[:50].tolist(), DATA[50].tolist(), DATA[51:]])
    yield "dask data frame", dask.dataframe.from_pandas(frame, npartitions=1)
    yield "data frames", (frame[k : k + 40] for k in range(0, 130, 40))


def test_rarer_sources_give_the_same_bits(tmp_path):
    expected = model().fit(DATA)
    for name, source in other_sources(tmp_path):
        found = model().fit(source)
        np.testing.assert_array_equal(found.components_, expected.components_, err_msg=name)
        assert found.n_samples_seen_ == 130


class Chunked:
    """A data set in chunks, as HDF5 and zarr have them, that counts how often each row of chunks is unpacked."""

    def __init__(self, shape, chunks):
        self.shape, self.chunks, self.unpacked = shape, chunks, {}

    def __getitem__(self, part):
        start, stop = part.start, min(part.stop, self.shape[0])
        for chunk in range(start // self.chunks[0], -(-stop // self.chunks[0])):
            self.unpacked[chunk] = self.unpacked.get(chunk, 0) + 1
        return np.zeros((stop - start, self.shape[1]), np.float32)


@pytest.mark.parametrize(("rows", "features"), [(100, 20_000), (7, 20_000), (1000, 50), (11, 50)])
def test_no_chunk_of_a_data_set_is_unpacked_twice(rows, features):
    X = Chunked((1003, features), (rows, 64))
    assert sum(map(len, batches(X))) == 1003
    assert set(X.unpacked.values()) == {1}
    assert len(X.unpacked) == -(-1003 // rows)


def test_rows_of_chunks_that_do_not_fit_are_read_in_parts(monkeypatch):
    monkeypatch.setattr("givens.data.rows.MOST_READ_BYTES", 1 << 24)
    X = Chunked((500, 20_000), (500, 64))
    assert {len(batch) for batch in batches(X)} == {(1 << 24) // 160_000, 500 % ((1 << 24) // 160_000)}


def refused_sources(folder):
    """What is no stream of rows, and what is said of it."""
    with h5py.File(folder / "x.h5", "w") as file:
        file["x"], file["one"] = DATA, 3.0
        yield file, TypeError, r"not a File of several arrays: pass one of them, as in X\[name\]"
        yield file["one"], ValueError, "X must have two dimensions, samples and features, got 0"
    yield zarr.group(), TypeError, "not a Group of several arrays"
    yield {"x": DATA}, TypeError, "not a dict of several arrays"
    yield (
        dask.array.from_array(DATA[0]),
        ValueError,
        "X must have two dimensions, samples and features, got 1",
    )
    yield anndata.AnnData(obs=pandas.DataFrame(index=["a"])), ValueError, "has no X: pass one of its layers"
    yield SimpleNamespace(collect=lambda: DATA), TypeError, "a SimpleNamespace has none yet: pass X.collect()"
    labels = np.zeros(10)
    yield (
        iter([(DATA[:10], labels)]),
        TypeError,
        r"batch 0 of X is a tuple of 2, .* \(rows for rows, \*others in X\)",
    )
    yield iter([DATA[:10], [DATA[:10]]]), TypeError, "batch 1 of X is a list of 1, not a matrix"
    yield ((row, 1) for row in DATA), TypeError, "batch 0 of X is a tuple of 2, not a matrix"
    anndata.AnnData(sparse.csc_matrix(DATA)).write_h5ad(folder / "c.h5ad")
    yield (
        anndata.read_h5ad(folder / "c.h5ad", backed="r"),
        ValueError,
        r"stored by columns \(csc\).* save it as csr",
    )


def test_what_is_no_stream_of_rows_is_refused(tmp_path):
    for source, kind, message in refused_sources(tmp_path):
        found = model()
        with pytest.raises(kind, match=message):
            found.fit(source)
        assert not found.__sklearn_is_fitted__()


def test_frames_of_a_stream_have_their_columns_in_one_order():
    frame = pandas.DataFrame(DATA, columns=[f"gene {k}" for k in range(30)])
    turned = frame[frame.columns[::-1]]
    found = model().fit([frame[:50], frame[50:]])
    assert list(found.feature_names_in_) == list(frame.columns)
    found.transform(frame)  # and no warning that it was fitted without names
    before = state(found)
    for stream in ([frame[:50], turned[50:]], iter([frame[:50], frame[50:].rename(columns={"gene 3": "x"})])):
        with pytest.raises(ValueError, match="chunk 1 of X has other feature names than the first"):
            found.fit(stream)
        assert state(found) == before
    assert not hasattr(found.fit(iter([DATA])), "feature_names_in_")


def test_a_batch_is_no_stream():
    found = model().partial_fit(DATA)
    before = state(found)
    for stream in (iter(DATA), anndata.AnnData(DATA), [DATA[:50], DATA[50:]]):
        with pytest.raises(
            TypeError, match=r"partial_fit takes one batch of rows.*each of its batches to partial_fit"
        ):
            found.partial_fit(stream)
    with pytest.raises(TypeError, match="not the name of a file"):
        found.partial_fit("rows.npy")
    assert state(found) == before


def test_scores_of_everything_that_yields_rows(tmp_path):
    found = model().fit(DATA)
    expected = found.transform(DATA)
    seen = 0
    for name, source in itertools.chain(sources(tmp_path), other_sources(tmp_path)):
        if "frame" not in name:  # they have names, and these samples had none
            np.testing.assert_allclose(
                found.transform(source), expected, rtol=1e-12, atol=1e-12, err_msg=name
            )
            seen += 1
    assert seen == 14
    frame = pandas.DataFrame(DATA, columns=[f"gene {k}" for k in range(30)])
    scores = model().set_output(transform="pandas").fit(frame).transform(iter([frame[:50], frame[50:]]))
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)
    assert list(scores.columns) == [f"streamingsparsepca{k}" for k in range(3)]
    with pytest.raises(ValueError, match="an iterator can be read only once, so pass a new one"):
        model().fit_transform(iter(DATA))
    with pytest.raises(NotFittedError):
        model().transform(iter(DATA))
