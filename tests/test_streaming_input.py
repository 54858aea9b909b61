"""What a stream can be read from, what it refuses, and what survives a kill."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
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

from givens import StreamingSparsePCA, archive
from givens.datasets import sparse_modules
from givens.rows import batches, in_memory, length

DATA = sparse_modules(130, 30, n_modules=3, module_size=6, random_state=1).X


def model(**parameters):
    return StreamingSparsePCA(**({"n_components": 3, "alpha": 0.1, "random_state": 0} | parameters))


def state(fitted):
    """Everything there is to a model, as bytes."""
    sketch = fitted._sketch
    numbers = (sketch.count, sketch.waiting, sketch.weight, sketch.energy, sketch.unit, sketch.flops)
    return numbers, sketch.W.tobytes(), sketch.mean.tobytes(), sorted(vars(fitted))


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
    yield "dask", dask.array.from_array(DATA, chunks=(40, 17))
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


@pytest.mark.parametrize("drop", ["frequent", "leftover", "weakest"])
def test_a_bad_batch_leaves_the_model_as_it_was(drop):
    found = model(drop=drop, alpha=0.02)
    rows = np.random.default_rng(0).standard_normal((1500, 30))
    for number in range(499):
        found.partial_fit(rows[3 * number : 3 * number + 3])
    before = state(found)
    bad = rows[-3:].copy()
    bad[1, 4] = np.nan
    for batch, message in (
        (bad, "NaN"),
        (np.where(np.isnan(bad), np.inf, bad), "infinity"),
        (rows[:3, :29], "29 features, but .* is expecting 30"),
        (rows[:0], "0 sample"),
        (rows[0], "2D array"),
        (np.array([["a"] * 30]), "could not convert|numeric"),
    ):
        with pytest.raises(ValueError, match=message):
            found.partial_fit(batch)
        assert state(found) == before
    found.partial_fit(rows[-3:])
    assert state(found) != before


def test_a_refused_first_batch_leaves_nothing():
    found = model()
    with pytest.raises(ValueError, match="NaN"):
        found.partial_fit(np.full((3, 4), np.nan))
    assert set(vars(found)) == set(found.get_params())
    found.partial_fit(DATA)


def test_a_refused_stream_leaves_the_last_fit():
    found = model().fit(DATA)
    before = state(found)

    def rows():
        yield DATA[:50]
        yield np.full((2, 30), np.nan)

    with pytest.raises(ValueError, match="batch 1 of X contains NaN"):
        found.fit(rows())
    assert state(found) == before
    with pytest.raises(ValueError, match="batch 1 of X has 29 features, but those before it have 30"):
        found.fit([DATA[:50], DATA[:50, 1:]])
    with pytest.raises(ValueError, match="yields no rows"):
        found.fit(iter([]))
    with pytest.raises((TypeError, ValueError)):
        found.fit("a file")
    assert state(found) == before


@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", [(0, 0), (101, 7), (129, 29)])
def test_a_refused_table_leaves_the_last_fit(warm_start, bad, where):
    found = model(warm_start=warm_start).fit(DATA)
    before = state(found)
    X = DATA.copy()
    X[where] = bad
    for table in (X, sparse.csr_matrix(X)):
        with pytest.raises(ValueError, match="NaN" if np.isnan(bad) else "infinity"):
            found.fit(table)
        assert state(found) == before


def test_samples_that_outgrow_the_first_are_refused():
    found = model().fit(DATA)
    before = state(found)
    for fit in (found.fit, found.partial_fit):
        with pytest.raises(ValueError, match="too large beside the first, which was of the size of 4"):
            fit(np.vstack((DATA, DATA * 1e200)))
        assert state(found) == before
    found = model().fit(DATA.astype(np.float32))
    before = state(found)
    with pytest.raises(ValueError, match="exceed what float32 holds"):
        found.partial_fit(sparse.csr_matrix(DATA.astype(np.float32) * 1e25))
    assert state(found) == before


def test_a_stream_that_was_interrupted_does_not_go_on(monkeypatch):
    found = model().partial_fit(DATA)

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("givens.streams.rules.Frequent.turn", interrupt)
        with pytest.raises(KeyboardInterrupt):
            found.partial_fit(DATA)
    for use in (lambda: found.partial_fit(DATA), lambda: found.components_, lambda: found.save("never")):
        with pytest.raises(RuntimeError, match="interrupted while it took in samples"):
            use()
    assert found.fit(DATA).n_samples_seen_ == len(DATA)


def test_a_warm_start_goes_on_with_the_stream():
    whole = model().partial_fit(DATA)
    found = model(warm_start=True).fit(DATA[:50])
    found.fit(DATA[50:51]).fit(row for row in DATA[51:])
    assert state(found)[:3] == state(whole)[:3]
    np.testing.assert_array_equal(found.components_, whole.components_)
    afresh = found.set_params(warm_start=False).fit(DATA)
    np.testing.assert_array_equal(afresh.components_, whole.components_)
    assert afresh.n_samples_seen_ == 130


def test_a_warm_start_that_is_refused_leaves_the_stream():
    found = model(warm_start=True).fit(DATA[:60])
    before = state(found)
    with pytest.raises(ValueError, match="batch 1 of X contains NaN"):
        found.fit([DATA[60:], np.full((2, 30), np.nan)])
    with pytest.raises(ValueError, match="29 features"):
        found.fit(DATA[60:, 1:])
    with pytest.raises(ValueError, match="batch 0 of X has 29 features, but those before it have 30"):
        found.fit(iter([DATA[60:, 1:]]))
    with pytest.raises(ValueError, match="began with scale=False, not True, and that holds"):
        found.set_params(scale=True).fit(DATA[60:])
    assert state(found) == before


def test_a_warm_start_with_an_early_stop():
    found = model(warm_start=True, stop_after=0.5).fit(DATA[:60])
    assert found.n_samples_seen_ == 30
    assert found.fit(DATA[60:]).n_samples_seen_ == 30 + 35  # half of those that came now
    found.set_params(stop_after=70)
    assert found.fit(DATA).n_samples_seen_ == 70
    assert found.fit(row for row in DATA).n_samples_seen_ == 70


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 31}, "between 1 and 30"),
        ({"n_components": 0}, "between 1 and 30"),
        ({"gamma": -1.0, "alpha": None}, "gamma must be"),
        ({"gamma": 1.0}, "only one of gamma, alpha"),
        ({"alpha": 1.5}, "between 0 and 1"),
        ({"alpha": None, "n_nonzero": 31}, "n_nonzero"),
        ({"alpha": None, "n_nonzero": [1, 2]}, "got 2 for 3"),
        ({"penalty": "l2"}, "penalty"),
        ({"drop": "strongest"}, "'frequent', 'leftover' or 'weakest'"),
        ({"oversample": -1}, "oversample"),
        ({"inner_rotations": 1.5}, "inner_rotations"),
        ({"forgetting": 0.0}, "forgetting"),
        ({"forgetting": 1.1}, "forgetting"),
        ({"stop_after": 1.5}, "stop_after"),
        ({"stop_after": 0.5}, "length is not known"),
        ({"threads": 0}, "threads"),
        ({"max_sweeps": -1}, "max_sweeps"),
        ({"n_starts": 0}, "n_starts"),
        ({"n_starts": 2, "drop": "leftover"}, "n_starts = 2 goes with drop='frequent'"),
        ({"n_starts": 2, "drop": "weakest"}, "n_starts = 2 goes with drop='frequent'"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(parameters, message):
    found = model(**parameters)
    with pytest.raises(ValueError, match=message):
        found.partial_fit(DATA)
    assert not found.__sklearn_is_fitted__()


def test_too_little_to_go_on():
    found = model()
    with pytest.raises(NotFittedError):
        found.components_.sum()
    with pytest.raises(NotFittedError):
        found.save("nowhere")
    found.partial_fit(DATA[:1])
    with pytest.raises(ValueError, match="at least 2 samples"):
        found.components_.sum()
    with pytest.raises(ValueError, match="constant"):
        model().partial_fit(np.ones((5, 4))).components_.sum()
    with pytest.warns(UserWarning, match="nothing of"):
        few = model().partial_fit(DATA[:3]).components_
    np.testing.assert_allclose(np.linalg.norm(few, axis=1), 1)
    zeros = np.concatenate((np.zeros((5, 30)), DATA))
    assert np.isfinite(model().fit(zeros).components_).all()


def test_early_stop():
    part = model(stop_after=0.2).fit(DATA)
    assert part.n_samples_seen_ == 26
    np.testing.assert_array_equal(part.components_, model().fit(DATA[:26]).components_)
    stream = model(stop_after=26).fit(DATA[k : k + 10] for k in range(0, 130, 10))
    np.testing.assert_array_equal(part.components_, stream.components_)
    online = model(stop_after=26).partial_fit(DATA[:20]).partial_fit(DATA[20:60]).partial_fit(DATA[60:])
    np.testing.assert_array_equal(part.components_, online.components_)


@pytest.mark.parametrize("drop", ["frequent", "leftover", "weakest"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [False, True])
def test_a_saved_stream_goes_on_to_the_same_bits(tmp_path, drop, dtype, scale):
    X, path = DATA.astype(dtype), tmp_path / "stream.npz"
    parameters = {"drop": drop, "alpha": 0.02, "forgetting": 0.99, "scale": scale}
    whole = model(**parameters).partial_fit(X)
    part = model(**parameters).partial_fit(X[:77])
    part.save(path)
    other = StreamingSparsePCA.load(path).partial_fit(X[77:])
    assert state(other)[:3] == state(whole)[:3]
    assert other.get_params() == whole.get_params()
    assert other.trace_ == whole.trace_
    np.testing.assert_array_equal(other.components_, whole.components_)
    assert [file.name for file in tmp_path.iterdir()] == ["stream.npz"]


def test_a_generator_s_seed_is_saved(tmp_path):
    found = model(drop="weakest", random_state=np.random.RandomState(4), alpha=0.02).partial_fit(DATA[:60])
    found.save(tmp_path / "s")
    other = StreamingSparsePCA.load(tmp_path / "s").partial_fit(DATA[60:])
    np.testing.assert_array_equal(other.components_, found.partial_fit(DATA[60:]).components_)


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "stream.npz"
    model().partial_fit(DATA).save(path)
    content = path.read_bytes()
    for size in (0, 10, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(ValueError, match=r"stream\.npz' is damaged"):
            StreamingSparsePCA.load(path)
    broken = bytearray(content)
    broken[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(broken))
    with pytest.raises(ValueError, match="damaged"):
        StreamingSparsePCA.load(path)
    np.savez(path, header=np.array('{"format": 99}'))
    with pytest.raises(ValueError, match="format is 99"):
        StreamingSparsePCA.load(path)
    np.savez(path, x=np.array([{}], dtype=object))
    with pytest.raises(
        ValueError, match="damaged, or was not saved by StreamingSparsePCA: load another save"
    ):
        StreamingSparsePCA.load(path)
    with pytest.raises(FileNotFoundError):
        StreamingSparsePCA.load(tmp_path / "none")


def test_a_save_that_fails_leaves_the_last_one(tmp_path, monkeypatch):
    path = tmp_path / "stream.npz"
    found = model().partial_fit(DATA)
    found.save(path)
    content = path.read_bytes()

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(archive.os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        found.partial_fit(DATA).save(path)
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["stream.npz"]


KILLED = """
import itertools, os, sys
import numpy as np
from givens import StreamingSparsePCA
X, path = np.load(sys.argv[1]), sys.argv[2]
model = StreamingSparsePCA(3, alpha=0.1)
for k in itertools.count():
    model.partial_fit(X[k * 5 : k * 5 + 5]).save(path)
    if k == 11:
        model.partial_fit(X[:7])
        os.kill(os.getpid(), 9)
"""


def test_a_killed_stream_goes_on_from_its_last_save(tmp_path):
    np.save(tmp_path / "x.npy", DATA)
    arguments = [sys.executable, "-c", KILLED, tmp_path / "x.npy", tmp_path / "s.npz"]
    killed = subprocess.run(arguments, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert killed.returncode == -9
    found = StreamingSparsePCA.load(tmp_path / "s.npz")
    assert found.n_samples_seen_ == 60
    found.partial_fit(DATA[60:])
    np.testing.assert_array_equal(
        found.components_, StreamingSparsePCA(3, alpha=0.1).partial_fit(DATA).components_
    )


def test_progress_counts_the_samples_and_changes_nothing(capsys):
    X = np.random.default_rng(0).standard_normal((250, 6))
    batches = [X[start : start + 100] for start in range(0, 250, 100)]
    quiet = StreamingSparsePCA(2).fit(iter(batches))
    assert capsys.readouterr() == ("", "")
    shown = StreamingSparsePCA(2, progress=True).fit(iter(batches))
    # On whichever of the two Rich's console writes to: a command sends it to the second.
    assert "250 samples" in "".join(capsys.readouterr())
    assert np.array_equal(quiet.components_, shown.components_)


def test_a_name_of_a_file_is_no_stream(tmp_path):
    for name in ("rows.npy", tmp_path / "rows.npy"):
        with pytest.raises(TypeError, match=r"X must be rows, not the name of a file.*mmap_mode"):
            StreamingSparsePCA(3).fit(name)


def test_with_counts_the_advice_is_not_to_use_counts():
    X = np.random.default_rng(0).standard_normal((2, 60))
    with pytest.warns(UserWarning, match=r"nothing of 2 of 3 components is left by the others.*more samples"):
        StreamingSparsePCA(3, n_nonzero=6).fit(X)


def other_sources(folder):
    """Ways to hold the same rows that are rarer."""
    names = [f"gene {k}" for k in range(30)]
    frame = pandas.DataFrame(DATA, columns=names)
    rows = sparse.csr_array(DATA)
    yield "sparse rows of one dimension", (rows[k] for k in range(130))
    yield "list of nested lists", [DATA[:50].tolist(), DATA[50:].tolist()]
    yield "generator of nested lists and a row", iter([DATA[:50].tolist(), DATA[50].tolist(), DATA[51:]])
    yield "dask data frame", dask.dataframe.from_pandas(frame, npartitions=3)
    whole = dask.array.from_array(np.vstack((DATA, DATA)), chunks=(20, 30))
    yield "dask, empty blocks", whole[dask.array.from_array(np.arange(260) < 130, chunks=20)]
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
    monkeypatch.setattr("givens.rows.MOST", 1 << 24)
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
        with pytest.raises(ValueError, match=r"batch 1 of X: The feature names should match"):
            found.fit(stream)
        assert state(found) == before
    with pytest.raises(ValueError, match=r"batch 0 of X: The feature names should match"):
        found.set_params(warm_start=True).fit(iter([turned]))
    assert state(found) == before
    assert not hasattr(found.set_params(warm_start=False).fit(iter([DATA])), "feature_names_in_")


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (DATA[:0], r"batch 2 of X: Found array with 0 sample"),
        (np.full((1, 30), np.inf), "batch 2 of X contains infinity"),
        (DATA[:5] + 0j, "batch 2 of X: Complex data not supported"),
        ([["a"] * 30], "batch 2 of X: could not convert string"),
        (DATA[None], "batch 2 of X: Found array with dim 3"),
        (None, "batch 2 of X: Expected 2D array, got scalar"),
    ],
)
def test_the_number_of_a_bad_batch_is_said_in_one_line(batch, message):
    with pytest.raises(ValueError, match=message) as caught:
        model().fit(iter([DATA[:5], DATA[5:9], batch]))
    assert "\n" not in str(caught.value)


def test_a_batch_is_no_stream():
    found = model().partial_fit(DATA)
    before = state(found)
    for stream in (iter(DATA), anndata.AnnData(DATA), [DATA[:50], DATA[50:]]):
        with pytest.raises(TypeError, match=r"partial_fit takes one batch of rows.*warm_start=True"):
            found.partial_fit(stream)
    with pytest.raises(TypeError, match="not the name of a file"):
        found.partial_fit("rows.npy")
    assert state(found) == before


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_components": 2}, "began with n_components=3, not 2, and that holds"),
        ({"oversample": 9}, "began with oversample=5, not 9, and"),
        ({"drop": "leftover"}, "began with drop='frequent', not 'leftover', and"),
        ({"forgetting": 0.9, "scale": True}, "forgetting=1.0, not 0.9 and scale=False, not True, and"),
    ],
)
def test_what_may_not_change_is_named_as_the_parameter_is(changed, message):
    found = model().partial_fit(DATA)
    before = state(found)
    with pytest.raises(ValueError, match=message):
        found.set_params(**changed).partial_fit(DATA)
    assert state(found) == before
    assert found.fit(DATA).n_samples_seen_ == 130


def test_the_mean_needs_no_components():
    found = model(scale=True).partial_fit(DATA[:1])
    np.testing.assert_allclose(found.mean_, DATA[0], rtol=1e-15)
    np.testing.assert_array_equal(found.scale_, np.ones(30))
    np.testing.assert_array_equal(model().partial_fit(np.ones((5, 4))).mean_, np.ones(4))


def test_a_truth_value_is_no_share():
    with pytest.raises(ValueError, match="stop_after must be a whole number of samples, or a share"):
        model(stop_after=True).fit(DATA)


def test_scores_that_are_no_numbers_have_no_inverse():
    found = model().fit(DATA)
    with pytest.raises(ValueError, match="scores contains NaN"):
        found.inverse_transform(np.full((2, 3), np.nan))
    with pytest.raises(ValueError, match="could not convert string"):
        found.inverse_transform([["a", "b", "c"]])
    with pytest.raises(TypeError, match="dense data is required"):
        found.inverse_transform(sparse.csr_matrix(np.ones((2, 3))))


def test_a_save_goes_to_a_folder_that_is_there(tmp_path):
    found = model(alpha=None, n_nonzero=range(3, 6)).fit(DATA)
    with pytest.raises(
        FileNotFoundError, match=r"no folder '.*missing' to save the stream in: make it first"
    ):
        found.save(tmp_path / "missing" / "s.npz")
    with pytest.raises(IsADirectoryError, match="is a folder: name a file in it"):
        found.save(tmp_path)
    assert not list(tmp_path.iterdir())
    found.save(tmp_path / "s.npz")
    np.testing.assert_array_equal(StreamingSparsePCA.load(tmp_path / "s.npz").n_nonzero_, [3, 4, 5])


def test_what_is_not_a_saved_stream_is_not_to_be_deleted(tmp_path):
    np.savez(tmp_path / "data.npz", X=DATA)
    with pytest.raises(
        ValueError, match=r"data\.npz' is damaged, or was not saved by StreamingSparsePCA"
    ) as caught:
        StreamingSparsePCA.load(tmp_path / "data.npz")
    assert "delete" not in str(caught.value)
    with pytest.raises(IsADirectoryError):
        StreamingSparsePCA.load(tmp_path)
    with pytest.raises(TypeError, match="PathLike"):
        StreamingSparsePCA.load(3)


def test_any_flipped_bit_is_found_or_harmless(tmp_path):
    path = tmp_path / "s.npz"
    model().partial_fit(DATA).save(path)
    found = StreamingSparsePCA.load(path)
    content, rng = path.read_bytes(), np.random.default_rng(0)
    directory = content.rindex(b"PK\x01\x02")
    places = [*rng.choice(len(content), 150, replace=False), *range(directory, len(content))]
    refused = 0
    for place in places:
        broken = bytearray(content)
        broken[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(broken)
        try:
            other = StreamingSparsePCA.load(path)
        except ValueError as error:
            refused += "damaged" in str(error)
            continue
        assert state(other)[:3] == state(found)[:3]
        assert other.trace_ == found.trace_
        assert other.get_params() == found.get_params()
    assert refused > 100


def test_an_early_stop_waits_for_no_more_samples():
    def live():
        yield DATA[:20]
        yield DATA[20:26]
        raise AssertionError("nobody needs these")

    found = model(stop_after=26, warm_start=True).fit(live())
    assert found.n_samples_seen_ == 26
    untouched = iter([DATA])
    assert found.fit(untouched).n_samples_seen_ == 26
    assert next(untouched) is DATA


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
    assert seen == 15
    frame = pandas.DataFrame(DATA, columns=[f"gene {k}" for k in range(30)])
    scores = model().set_output(transform="pandas").fit(frame).transform(iter([frame[:50], frame[50:]]))
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)
    assert list(scores.columns) == [f"streamingsparsepca{k}" for k in range(3)]
    with pytest.raises(ValueError, match="an iterator that has been gone through is to be made anew"):
        model().fit_transform(iter(DATA))
    with pytest.raises(NotFittedError):
        model().transform(iter(DATA))


def test_progress_counts_up_to_the_early_stop(capsys):
    model(progress=True, stop_after=26).fit(DATA[k : k + 20] for k in range(0, 130, 20))
    assert "40 samples" in "".join(capsys.readouterr())


def test_an_error_ends_the_bar(capsys):
    """An error's traceback holds what was running, and would hold the bar too."""
    with pytest.raises(ValueError, match="batch 1 of X") as error:
        model(progress=True).fit(iter([DATA[:20], np.full((2, 30), np.nan)]))
    assert "20 samples" in "".join(capsys.readouterr())  # off a terminal a bar is shown when it ends
    assert error.traceback
