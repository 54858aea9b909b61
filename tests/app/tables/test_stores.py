"""Stores that Dask reads in chunks hold what the readers of whole tables find in them."""

from __future__ import annotations

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr

from givens.app.tables import DataError, open_rows, read_table
from givens.app.tables import stores as module
from givens.app.tables.stores import open_store

VALUES = np.random.default_rng(0).poisson(0.7, (50, 6)).astype(float)
NAMES = [f"cell {k}" for k in range(50)]
GENES = [f"gene-{k}" for k in range(6)]
KINDS = [f"kind {k % 3}" for k in range(50)]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(module, "DEFAULT_CHUNK_BYTES", 8 * 6 * 16)  # 16 rows of numbers


def annotated(values):
    return anndata.AnnData(
        values,
        obs=pd.DataFrame({"kind": pd.Categorical(KINDS)}, index=NAMES),
        var=pd.DataFrame({"symbol": [name.upper() for name in GENES]}, index=GENES),
    )


def write_parquet(path, **options):
    frame = pd.DataFrame(VALUES, columns=GENES, index=pd.Index(NAMES, name="cell"))
    frame["kind"] = KINDS
    frame.to_parquet(path, **options)


def checked(store, dtype=np.float64, sparse=False):
    """The store holds the values, in several chunks, and the words of any samples."""
    assert store.X.shape == (50, 6)
    assert store.X.numblocks[0] > 2
    assert store.X.numblocks[1] == 1
    whole = store.X.compute(scheduler="synchronous")
    assert scipy.sparse.issparse(whole) == sparse
    whole = whole.toarray() if sparse else whole
    assert whole.dtype == dtype
    np.testing.assert_array_equal(whole, VALUES)
    names, labels = store.words(7, 33)
    assert len(names) == 26
    return names, labels


@pytest.mark.filterwarnings("ignore:Writing zarr v2 data")
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_matrix, np.float32, np.int32], ids=str)
@pytest.mark.parametrize("ending", ["h5ad", "zarr"])
@pytest.mark.parametrize("dense", [False, True])
def test_annotated_data(kind, ending, dense, tmp_path):
    path = tmp_path / f"x.{ending}"
    adata = annotated(kind(VALUES))
    (adata.write_h5ad if ending == "h5ad" else adata.write_zarr)(path)
    store = open_store(path, labels=["kind"], names="symbol", dense=dense)
    sparse = kind is scipy.sparse.csr_matrix and not dense
    names, labels = checked(store, np.float32 if kind is np.float32 else np.float64, sparse)
    assert (names, labels) == (NAMES[7:33], [KINDS[7:33]])
    assert store.variables == [name.upper() for name in GENES]
    assert open_store(path).variables == GENES


@pytest.mark.parametrize("group", [None, "X", "only"])
def test_zarr_arrays(group, tmp_path):
    path = tmp_path / "x.zarr"
    if group is None:
        array = zarr.open(str(path), mode="w", shape=VALUES.shape, chunks=(5, 4), dtype="f8")
    else:
        zarr.open_group(str(path), mode="w")
        array = zarr.open(str(path / group), mode="w", shape=VALUES.shape, chunks=(5, 4), dtype="f8")
        zarr.open(str(path / "others"), mode="w", shape=(50,), dtype="f8")
    array[:] = VALUES
    store = open_store(path)
    names, labels = checked(store)
    assert (names[0], labels) == ("sample 8", [])
    assert store.variables[-1] == "variable 6"
    assert store.X.chunks[0] == (15, 15, 15, 5)  # three chunks of the store each
    np.testing.assert_array_equal(read_table(path, samples="rows").values, VALUES)
    np.testing.assert_array_equal(np.concatenate([block.values for block in open_rows(path)]), VALUES)


@pytest.mark.parametrize("size", [7, 16, 50])
def test_parquet(size, tmp_path):
    write_parquet(tmp_path / "x.parquet", row_group_size=size)
    store = open_store(tmp_path / "x.parquet", labels=["kind"])
    whole = store.X.compute(scheduler="synchronous")
    np.testing.assert_array_equal(whole, VALUES)
    assert store.words(7, 33) == (NAMES[7:33], [KINDS[7:33]])
    assert store.X.chunks[0] == {7: (14, 14, 14, 8), 16: (16, 16, 16, 2), 50: (50,)}[size]
    assert store.variables == read_table(tmp_path / "x.parquet", labels="kind").variables
    assert open_store(tmp_path / "x.parquet", drop=["gene-0"]).X.shape == (50, 5)


def test_folders_of_parquet(tmp_path):
    dask_frame = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(VALUES, columns=GENES)
    dask_frame.from_pandas(frame, npartitions=12).to_parquet(tmp_path / "x.parquet", write_index=False)
    assert (tmp_path / "x.parquet" / "part.10.parquet").is_file()
    checked(open_store(tmp_path / "x.parquet"))
    np.testing.assert_array_equal(read_table(tmp_path / "x.parquet", samples="rows").values, VALUES)
    frame.rename(columns={"gene-0": "other"}).to_parquet(tmp_path / "x.parquet" / "part.9.parquet")
    with pytest.raises(DataError, match=r"part\.9\.parquet has other columns than part\.0"):
        open_store(tmp_path / "x.parquet")


def test_stores_that_will_not_do(tmp_path):
    def refused(pattern, name, **options):
        with pytest.raises(DataError, match=pattern):
            open_store(tmp_path / name, **options)

    annotated(scipy.sparse.csc_matrix(VALUES)).write_h5ad(tmp_path / "columns.h5ad")
    refused("stored column by column.*save X as csr", "columns.h5ad")
    annotated(VALUES).write_h5ad(tmp_path / "x.h5ad")
    refused("reads samples as rows", "x.h5ad", samples="columns")
    refused("--drop is for CSV, TSV, Excel and Parquet", "x.h5ad", drop=["a"])
    refused("has no 'none' in obs", "x.h5ad", labels=["none"])
    zarr.open_group(str(tmp_path / "two.zarr"), mode="w")
    for name in ("a", "b"):
        zarr.open(str(tmp_path / "two.zarr" / name), mode="w", shape=(3, 2), dtype="f8")
    refused("should hold one matrix, or one called 'X'; it holds a, b", "two.zarr")
    zarr.open(str(tmp_path / "one.zarr"), mode="w", shape=(3,), dtype="f8")
    refused("the array has 1 dimension, and a table has two", "one.zarr")
    zarr.open(str(tmp_path / "text.zarr"), mode="w", shape=(3, 2), dtype="c16")
    refused("holds complex128, not real numbers", "text.zarr")
    zarr.open(str(tmp_path / "nothing.zarr"), mode="w", shape=(0, 2), dtype="f8")
    refused("holds 0 x 2 numbers: nothing to do", "nothing.zarr")
    refused("holds numbers only, so --labels kind finds nothing", "nothing.zarr", labels=["kind"])
    next((tmp_path / "nothing.zarr").iterdir()).write_text("{")  # of the format 2 or 3: the only file there
    refused("is a damaged zarr file", "nothing.zarr")
    frame = pd.DataFrame(np.zeros((1000, 3)), columns=list("abc"))
    frame.index = pd.Index([f"g{k}" for k in range(1000)], name="gene")
    frame.to_parquet(tmp_path / "genes.parquet")
    refused("the rows are headed 'gene', so they are no samples, and --cluster reads", "genes.parquet")
    assert open_store(tmp_path / "genes.parquet", samples="rows").X.shape == (1000, 3)


def test_a_damaged_chunk_is_said(tmp_path):
    """Indices beyond the columns: SciPy would read there."""
    adata = annotated(scipy.sparse.csr_matrix(VALUES))
    adata.write_h5ad(tmp_path / "x.h5ad")
    with h5py.File(tmp_path / "x.h5ad", "r+") as file:
        file["X"]["indices"][40] = 77
    store = open_store(tmp_path / "x.h5ad")
    with pytest.raises(DataError, match=r"x\.h5ad is a damaged \.h5ad file"):
        store.X.compute(scheduler="synchronous")


@pytest.mark.parametrize("group", [False, True])
def test_a_damaged_chunk_of_zarr_is_said(group, tmp_path):
    path = tmp_path / "x.zarr"
    if group:
        zarr.open_group(str(path), mode="w")
    array = path / "X" if group else path
    zarr.open(str(array), mode="w", shape=VALUES.shape, chunks=(7, 6), dtype="f8")[:] = VALUES
    store = open_store(path)
    for file in path.rglob("*"):
        if file.name in ("0", "0.0") and file.is_file():
            file.write_bytes(b"no chunk")
    with pytest.raises(DataError, match=r"x\.zarr is a damaged zarr file"):
        store.X.compute(scheduler="synchronous")


@pytest.mark.filterwarnings("ignore:Writing zarr v2 data", "ignore:zarr v3 autosharding")
def test_zarr_stores_whose_parts_do_not_fit(tmp_path):
    path = tmp_path / "x.zarr"
    store = zarr.open_group(str(path), mode="w")
    store.attrs["encoding-type"] = "anndata"
    with pytest.raises(DataError, match=r"x\.zarr is a damaged zarr file"):  # without obs
        open_store(path)
    adata = annotated(VALUES)
    for name in ("obs", "var"):
        anndata.io.write_elem(store, name, getattr(adata, name))
    zarr.open(str(path / "X"), mode="w", shape=(50, 5), dtype="f8")
    with pytest.raises(DataError, match="X is 50 x 5, and obs and var have 50 and 6 names"):
        open_store(path)
    zarr.open(str(tmp_path / "wide.zarr"), mode="w", shape=(50, 10**12), chunks=(50, 10**6), dtype="f8")
    with pytest.raises(DataError, match="has 1,000,000,000,000 columns, more than"):
        open_store(tmp_path / "wide.zarr")
