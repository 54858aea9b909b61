"""Binary tables: each format is read back, nothing is unpickled, and a wrong ending is refused."""

from __future__ import annotations

import gzip
import pickle

import anndata
import numpy as np
import pandas
import pytest
import scipy.io
import scipy.sparse

from givens.app.tables import DataError, open_rows, read_table

VALUES = np.arange(12.0).reshape(4, 3) / 8
SPARSE = scipy.sparse.csr_matrix(np.where(VALUES > 0.6, VALUES, 0))


def write_parquet(path):
    frame = pandas.DataFrame(VALUES, columns=["a", "b", "c"], index=["r1", "r2", "r3", "r4"])
    frame.assign(kind=["x", "y", "x", "y"]).to_parquet(path)


def write_h5ad(path):
    obs = pandas.DataFrame({"kind": ["x", "y", "x", "y"]}, index=["r1", "r2", "r3", "r4"])
    anndata.AnnData(VALUES, obs=obs, var=pandas.DataFrame(index=["a", "b", "c"])).write_h5ad(path)


def write_npz(path):
    np.savez(
        path,
        X=VALUES,
        genes=np.array(["a", "b", "c"]),
        cells=np.array(["r1", "r2", "r3", "r4"]),
        kind=list("xyxy"),
    )


@pytest.mark.parametrize("index", [["s1", "s2", "s3"], [7, 5, 3]])
def test_a_named_index_of_pandas_is_the_names(tmp_path, index):
    """The index comes last in the file, after a first column of words that are no names."""
    frame = pandas.DataFrame({"group": ["A", "B", "A"], "a": [1.0, 2, 4], "b": [3.0, 1, 2]}, index=index)
    frame.rename_axis("patient").to_parquet(tmp_path / "x.parquet")
    table = read_table(tmp_path / "x.parquet")
    assert (table.samples, table.variables) == ([str(name) for name in index], ["a", "b"])
    np.testing.assert_array_equal(table.values, frame[["a", "b"]])
    frame.reset_index(drop=True).to_parquet(tmp_path / "x.parquet")
    assert read_table(tmp_path / "x.parquet", labels="group").samples == ["sample 1", "sample 2", "sample 3"]


@pytest.mark.parametrize(
    ("ending", "write"), [("parquet", write_parquet), ("h5ad", write_h5ad), ("npz", write_npz)]
)
def test_formats_with_names_and_labels(tmp_path, ending, write):
    path = tmp_path / f"x.{ending}"
    write(path)
    table = read_table(path, labels="kind")
    np.testing.assert_array_equal(table.values, VALUES)
    assert (table.samples, table.variables) == (["r1", "r2", "r3", "r4"], ["a", "b", "c"])
    assert table.all_labels == {"kind": ["x", "y", "x", "y"]}
    with pytest.raises(DataError, match="colour"):
        read_table(path, labels="colour")
    if ending != "npz":
        chunks = list(open_rows(path, labels="kind"))
        np.testing.assert_array_equal(np.concatenate([chunk.values for chunk in chunks]), VALUES)
        assert chunks[0].names == table.samples
        assert chunks[0].labels == [table.labels]


def test_entries_of_a_file_at_one_place_are_summed(tmp_path):
    twice = scipy.sparse.csr_matrix(([1.0, 2.0, 4.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    scipy.sparse.save_npz(tmp_path / "s.npz", twice)
    values = read_table(tmp_path / "s.npz").values
    assert values.nnz == 2
    np.testing.assert_array_equal(values.toarray(), [[3.0, 0.0], [0.0, 4.0]])


def test_arrays_and_sparse_matrices(tmp_path):
    np.save(tmp_path / "x.npy", VALUES.astype(np.float32))
    assert read_table(tmp_path / "x.npy").values.dtype == np.float32
    np.save(tmp_path / "i.npy", np.arange(6).reshape(2, 3))
    assert read_table(tmp_path / "i.npy").values.dtype == np.float64
    scipy.sparse.save_npz(tmp_path / "s.npz", SPARSE)
    np.savez(
        tmp_path / "t.npz", data=SPARSE.data, indices=SPARSE.indices, indptr=SPARSE.indptr, shape=SPARSE.shape
    )
    scipy.io.mmwrite(tmp_path / "m.mtx", SPARSE)
    (tmp_path / "m.mtx.gz").write_bytes(gzip.compress((tmp_path / "m.mtx").read_bytes()))
    for name in ("s.npz", "t.npz", "m.mtx", "m.mtx.gz"):
        table = read_table(tmp_path / name)
        assert scipy.sparse.issparse(table.values)
        np.testing.assert_array_equal(table.values.toarray(), SPARSE.toarray())


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
def test_matrix_market_agrees_with_scipy(tmp_path, symmetry, field):
    if field == "pattern" and symmetry == "skew-symmetric":
        field = "real"
    rng = np.random.default_rng(0)
    values = np.tril(rng.integers(-9, 9, (7, 7)) * (rng.random((7, 7)) < 0.4))
    values = {"general": values, "symmetric": values + values.T, "skew-symmetric": values - values.T}[
        symmetry
    ]
    matrix = scipy.sparse.coo_matrix(values * (1.5 if field == "real" else 1))
    scipy.io.mmwrite(tmp_path / "x.mtx", matrix, comment="one\ntwo", field=field, symmetry=symmetry)
    expected = scipy.io.mmread(tmp_path / "x.mtx").toarray()
    np.testing.assert_array_equal(read_table(tmp_path / "x.mtx", samples="rows").values.toarray(), expected)
    scipy.io.mmwrite(tmp_path / "d.mtx", VALUES)
    np.testing.assert_array_equal(read_table(tmp_path / "d.mtx", samples="rows").values, VALUES)


def test_ten_x_folders_give_their_names(tmp_path):
    scipy.io.mmwrite(tmp_path / "matrix.mtx", SPARSE)
    (tmp_path / "barcodes.tsv").write_text("AAA-1\nAAC-1\nAAG-1\n")
    (tmp_path / "features.tsv.gz").write_bytes(gzip.compress(b"E1\tTP53\nE2\tKLK3\nE3\tAMACR\nE4\tPTEN\n"))
    table = read_table(tmp_path / "matrix.mtx")
    assert (table.samples, table.variables) == (["AAA-1", "AAC-1", "AAG-1"], ["E1", "E2", "E3", "E4"])
    np.testing.assert_array_equal(table.values.toarray(), SPARSE.toarray().T)


class Bomb:
    """Writes a file when unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_nothing_is_unpickled(tmp_path):
    bomb = Bomb(str(tmp_path / "exploded"))
    np.save(tmp_path / "x.npy", np.array([[bomb, 1]], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "x.npz", X=np.array([[bomb, 1]], dtype=object))
    for name in ("x.npy", "x.npz"):
        with pytest.raises(DataError, match="never unpickled"):
            read_table(tmp_path / name)
    for ending in ("npy", "npz", "csv", "h5ad"):
        (tmp_path / f"p.{ending}").write_bytes(pickle.dumps(bomb))
        with pytest.raises(DataError, match="pickle"):
            read_table(tmp_path / f"p.{ending}")
    with pytest.raises(DataError, match="never unpickled"):
        open_rows(tmp_path / "x.npy")
    assert not (tmp_path / "exploded").exists()


REAL = b"%%MatrixMarket matrix coordinate real "


# The golden outputs (`tests/net`) have the files of one format under the ending of another, and halves of files.
@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("x.csv", b"PK\x03\x04 sheet", "spreadsheet"),
        ("x.parquet", b"PAR1 and nothing else", "damaged Parquet"),
        ("x.h5ad", b"\x89HDF\r\n\x1a\n" + b"\0" * 600, "damaged .h5ad"),
        ("x.mtx", REAL + b"general\n2 2 5\n1 1 3\n", "damaged Matrix Market file .*Expected another 4 lines"),
        ("x.mtx", REAL + b"general\n2 2 1\n1 3 3\n", "Line 3: Column index out of bounds"),
        ("x.mtx", REAL + b"general\n2 2 1\n1 1 x\n", "Line 3: Invalid floating-point value"),
        ("x.mtx", REAL + b"general\ntwo two\n", "damaged Matrix Market file .Invalid integer"),
        ("x.mtx", REAL + b"symmetric\n2 3 1\n2 1 3\n", "calls a matrix of 2 x 3 symmetric"),
        ("x.mtx", b"%%MatrixMarket nonsense\n", "damaged Matrix Market"),
        ("x.npz", b"PK\x03\x04 damaged", "damaged .npz"),
        ("x.npy", b"\x93NUMPY\x01\x00v\x00{'descr': '<f8'", "damaged .npy|cannot be read"),
    ],
)
def test_damaged_files(tmp_path, name, content, match):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=match):
        read_table(tmp_path / name)


def test_indices_of_a_sparse_archive_that_point_outside(tmp_path):
    arrays = {"data": SPARSE.data, "indices": SPARSE.indices + 90, "indptr": SPARSE.indptr}
    np.savez(tmp_path / "b.npz", shape=SPARSE.shape, **arrays)
    with pytest.raises(DataError, match="damaged sparse matrix file"):
        read_table(tmp_path / "b.npz")


def test_streams_check_every_chunk_and_say_where(tmp_path, monkeypatch):
    monkeypatch.setattr("givens.app.tables.chunks.CHUNK_BYTES", 3 * 8 * 2)
    values = np.arange(21.0).reshape(7, 3)
    np.save(tmp_path / "x.npy", values)
    rows = open_rows(tmp_path / "x.npy")
    assert rows.total == 7
    assert [len(chunk.values) for chunk in rows] == [2, 2, 2, 1]
    np.testing.assert_array_equal(np.concatenate([chunk.values for chunk in rows]), values)
    values[4, 1] = np.nan
    np.save(tmp_path / "x.npy", values)
    with pytest.raises(DataError, match=r"row 5 \('sample 5'\), variable 'variable 2'"):
        list(rows)
    with pytest.raises(DataError, match=r"1 value of 21 is missing \(NaN\), at row 5, column 2"):
        read_table(tmp_path / "x.npy")


def test_what_cannot_be_read_by_rows_is_said(tmp_path):
    names = pandas.DataFrame(index=["a", "b"])
    anndata.AnnData(obs=names, var=names).write_h5ad(tmp_path / "none.h5ad")
    np.save(tmp_path / "row.npy", VALUES[0])
    sentences = {"none.h5ad": r"none\.h5ad has no X$", "row.npy": "1 dimension, and a table has two"}
    for name, sentence in sentences.items():
        with pytest.raises(DataError, match=sentence):
            open_rows(tmp_path / name)


def test_a_column_of_parquet_that_counts_the_rows_is_no_variable(tmp_path):
    path = tmp_path / "x.parquet"
    for heading in ("Unnamed: 0", "rownames", ""):
        frame = pandas.DataFrame({heading: range(1, 1501), "a": np.arange(1500.0) % 7, "count": range(1500)})
        frame.to_parquet(path)
        table = read_table(path)
        assert (table.shape, table.variables) == ((1500, 2), ["a", "count"])
        assert f"left out '{heading}', which counts the rows" in table.notes
        assert [chunk.values.shape for chunk in open_rows(path)] == [(1500, 2)]
        frame[heading] = frame[heading] % 5
        frame.to_parquet(path)
        assert read_table(path).variables == [heading, "a", "count"]
