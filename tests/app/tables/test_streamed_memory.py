"""What is read some rows at a time is never held whole."""

from __future__ import annotations

import gzip
from contextlib import nullcontext
from functools import partial

import anndata
import dask.array
import distributed
import h5py
import numpy as np
import pandas
import pytest
import zarr
from scipy import sparse

from givens.app.tables import annotated, chunks, open_rows, stores, text
from givens.data import rows
from tests.memory import most_bytes_reading

IMPORTED = (dask.array, distributed)  # before a file is read, or they would be counted
SHAPE = (8_000, 64)
NUMBERS_BYTES = 8 * SHAPE[0] * SHAPE[1]
SMALL = 1 << 17  # bytes of a chunk


def blocks(path):
    X = stores.open_store(path).X
    return (X.blocks[k].compute(scheduler="synchronous") for k in range(X.numblocks[0]))


# Endings of the files, with a word before the ending where one format is written in two ways.
STREAMED = [
    *(
        (name, open_rows)
        for name in ("csv", "tsv.gz", "npy", "parquet", "one_group.parquet", "h5ad", "sparse.h5ad")
    ),
    *((name, blocks) for name in ("zarr", "parquet", "h5ad", "sparse.h5ad")),
    ("npy", lambda path: rows.batches(np.load(path, mmap_mode="r"))),
    ("h5ad", lambda path: rows.batches(h5py.File(path)["X"])),
    ("zarr", lambda path: rows.batches(zarr.open(str(path), mode="r"))),
    ("h5ad", lambda path: rows.batches(anndata.read_h5ad(path, backed="r"))),
    ("sparse.h5ad", lambda path: rows.batches(anndata.read_h5ad(path, backed="r"))),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same numbers in every format."""
    folder = tmp_path_factory.mktemp("formats")
    values = np.random.default_rng(0).random(SHAPE)
    lines = "\n".join(",".join(map(str, row)) for row in (1e3 * values[:500]).round(1).tolist())
    content = f"{','.join(f'v{k}' for k in range(SHAPE[1]))}\n" + f"{lines}\n" * (SHAPE[0] // 500)
    (folder / "x.csv").write_text(content)
    (folder / "x.tsv.gz").write_bytes(gzip.compress(content.replace(",", "\t").encode(), 1))
    np.save(folder / "x.npy", values)
    pandas.DataFrame(values).add_prefix("v").to_parquet(folder / "x.parquet", row_group_size=250)
    columns = pandas.DataFrame(values.reshape(-1, 2)).add_prefix("v")
    columns.to_parquet(folder / "x.one_group.parquet", use_dictionary=False, data_page_size=1 << 17)
    zarr.open(str(folder / "x.zarr"), mode="w", shape=SHAPE, chunks=(250, SHAPE[1]), dtype="f8")[:] = values
    anndata.AnnData(values).write_h5ad(folder / "x.h5ad")
    anndata.AnnData(sparse.csr_matrix(values)).write_h5ad(folder / "x.sparse.h5ad")
    return folder


@pytest.mark.parametrize(("name", "read"), STREAMED)
def test_no_format_is_held_whole(folder, name, read, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK_BYTES", SMALL)
    monkeypatch.setattr(stores, "DEFAULT_CHUNK_BYTES", SMALL)
    monkeypatch.setattr(text, "TextRows", partial(text.TextRows, block=SMALL))
    monkeypatch.setattr(rows, "READ_BYTES", SMALL)
    monkeypatch.setattr(annotated, "walked", nullcontext)  # takes time, and memory of another process
    most = most_bytes_reading(lambda: read(folder / f"x.{name}"))
    assert SMALL < most < 0.7 * NUMBERS_BYTES
