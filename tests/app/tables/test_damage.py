"""Whatever bytes a file holds, reading it ends in a table or in one sentence."""

from __future__ import annotations

import gzip
import subprocess
import sys
import warnings

import anndata
import h5py
import numpy as np
import pandas
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from givens.app.tables import DataError, Table, open_rows, read_table
from givens.app.tables.hdf5 import walked
from tests.properties import examples


def good_files(folder):
    """A small good file of each format."""
    values = np.arange(24.0).reshape(6, 4) / 8 + 0.1
    frame = pandas.DataFrame(values, index=[f"r{k}" for k in range(6)], columns=list("abcd"))
    frame.to_csv(folder / "x.csv")
    frame.to_csv(folder / "x.tsv.gz", sep="\t")
    frame.to_parquet(folder / "x.parquet")
    np.save(folder / "x.npy", values)
    np.savez(folder / "x.npz", X=values, names=np.array(list("abcd")))
    scipy.sparse.save_npz(folder / "s.npz", scipy.sparse.csr_matrix(values))
    scipy.io.mmwrite(folder / "x.mtx", scipy.sparse.coo_matrix(values))
    anndata.AnnData(values).write_h5ad(folder / "x.h5ad")
    return sorted(folder.iterdir())


def read(path):
    """Read it whole and as a stream; return how the first went."""
    outcomes = []
    for reader in (read_table, lambda file: list(open_rows(file))):
        try:
            # What libraries underneath warn of damaged files is theirs; what they raise is ours.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                outcomes.append(reader(path))
        except DataError as error:
            outcomes.append(error)
    sentences = [str(outcome) for outcome in outcomes if isinstance(outcome, DataError)]
    assert all("\n" not in sentence and len(sentence) < 600 for sentence in sentences), sentences
    return outcomes[0]


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    return {path.name: path.read_bytes() for path in good_files(tmp_path_factory.mktemp("good"))}


NAMES = ["s.npz", "x.csv", "x.h5ad", "x.mtx", "x.npy", "x.npz", "x.parquet", "x.tsv.gz"]


@pytest.mark.parametrize("name", NAMES)
def test_truncated_and_corrupted_files(tmp_path, originals, name):
    original = originals[name]
    path = tmp_path / name
    path.write_bytes(original)
    assert isinstance(read(path), Table)
    rng = np.random.default_rng(0)
    for size in rng.integers(0, len(original), 12):
        path.write_bytes(original[:size])
        read(path)
    for _ in range(25):
        damaged = bytearray(original)
        for place in rng.integers(0, len(original), rng.integers(1, 6)):
            damaged[place] = rng.integers(256)
        path.write_bytes(bytes(damaged))
        read(path)


@examples(150)
@given(st.binary(max_size=200) | st.text('0123456789.,;\t\n\r"eE+-naN xyz#é', max_size=200).map(str.encode))
def test_any_bytes_as_text(tmp_path, content):
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    whole = read(path)
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(content))
    zipped = read(tmp_path / "x.csv.gz")
    if content:
        assert isinstance(zipped, Table) == isinstance(whole, Table)


def long_string(path):
    """The first of some strings has 2 GB, as the file says."""
    with h5py.File(path, "w") as file:
        place = file.create_dataset("names", data=["a", "b"], dtype=h5py.string_dtype()).id.get_offset()
    content = bytearray(path.read_bytes())
    content[place + 3] = 120  # the highest byte of its length
    path.write_bytes(content)


def many_strings(path):
    with h5py.File(path, "w") as file:
        file.create_dataset("names", (10**9,), h5py.string_dtype(), chunks=(10,))


def many_numbers(path):
    with h5py.File(path, "w") as file:
        file.create_dataset("X", (10**9, 6), "f8", chunks=(10, 6))


PEAK = """
import resource, sys
from pathlib import Path
from givens.app.tables.hdf5 import walked
try:
    with walked(Path(sys.argv[1])):
        pass
except ValueError:
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.mark.parametrize("damaged", [long_string, many_strings, many_numbers])
def test_hdf5_allocates_no_more_than_a_file_can_hold(tmp_path, damaged):
    path = tmp_path / "x.h5ad"
    damaged(path)
    with pytest.raises(DataError, match=r"x\.h5ad is a damaged \.h5ad file \("), walked(path):
        pass
    if sys.platform == "linux":  # elsewhere a process cannot be told how much memory it may have
        child = subprocess.run([sys.executable, "-c", PEAK, path], capture_output=True, text=True, check=True)
        assert int(child.stdout) < 300_000  # kB
