"""`--cluster`: the files of the command without it, from a real cluster; and one sentence for what goes wrong with one."""

from __future__ import annotations

import json
import logging
import re
import sys
from importlib.metadata import version

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr

import givens as library
from givens.app.tables import stores
from givens.datasets import make_spherical_mixture, make_topics

distributed = pytest.importorskip("distributed")

MIXTURE = make_spherical_mixture(4000, n_components=3, n_features=5, scale=6, random_state=0).X
WORDS = make_topics(1500, n_components=3, n_words=30, topic_sparsity=0.5).X.toarray()
SOURCES = np.random.default_rng(0).laplace(size=(4000, 3)) @ np.random.default_rng(1).normal(size=(3, 3))
KINDS = [f"kind {k % 2}" for k in range(4000)]


@pytest.fixture(scope="module")
def address():
    """A cluster of two worker processes, as another program would have started it."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(autouse=True)
def several_chunks(monkeypatch):
    monkeypatch.setattr(stores, "DEFAULT_CHUNK_BYTES", 8 * 5 * 700)


def write_zarr(path, values):
    chunks = (350, values.shape[1])
    zarr.open(str(path), mode="w", shape=values.shape, chunks=chunks, dtype=values.dtype)[:] = values


@pytest.fixture
def files(tmp_path):
    """The same numbers for the command with a cluster and for that without one, which reads no zarr."""
    frame = pd.DataFrame(MIXTURE, columns=list("abcde"), index=[f"s{k}" for k in range(len(MIXTURE))])
    frame.assign(kind=KINDS).to_parquet(tmp_path / "x.parquet", row_group_size=333)
    adata = anndata.AnnData(scipy.sparse.csr_matrix(np.where(abs(MIXTURE) > 2, MIXTURE, 0)))
    adata.obs["kind"], adata.var_names = KINDS, list("abcde")
    adata.write_h5ad(tmp_path / "x.h5ad")
    for name, values in {"x": MIXTURE, "words": WORDS.astype(np.int32), "sources": SOURCES}.items():
        write_zarr(tmp_path / f"{name}.zarr", values)
        np.save(tmp_path / f"{name}.npy", values)
    return tmp_path


def tables(folder):
    return {path.name: pd.read_csv(path, index_col=0) for path in sorted(folder.glob("*.csv"))}


def both(givens, files, address, line, rtol=1e-9, atol=1e-9):
    """Run a command without and with a cluster, compare the files that they write, and return the summaries."""
    words, summaries = line.split(), []
    for folder, more in (("alone", []), ("spread", ["--cluster", address])):
        given = words if more else [word.replace(".zarr", ".npy") for word in words]
        run = givens(*given, *more, "--out", folder)
        assert run.code == 0, run.err
        assert (files / folder / "report.html").stat().st_size > 10_000
        summaries.append(json.loads((files / folder / "summary.json").read_text()))
    alone, spread = (tables(files / folder) for folder in ("alone", "spread"))
    assert list(alone) == list(spread)
    for name in alone:
        pd.testing.assert_frame_equal(alone[name], spread[name], rtol=rtol, atol=atol)
    assert "the dashboard of the cluster is at http://" in run.err
    assert any("chunks by 2 workers of a Dask cluster" in note for note in summaries[1]["notes"])
    return summaries


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("mixture x.parquet -k 3 --labels kind --samples rows", ["mean_log_likelihood", "bic"]),
        ("mixture x.parquet -k 3 --drop kind --samples rows --standardise --variance distinct", ["bic"]),
        ("mixture x.parquet -k 3 --drop kind --samples rows --log2 --floor 0.5", ["bic"]),
        (
            "sparse-pca x.h5ad -m 2 --n-nonzero 3 --labels kind --no-path",
            ["explained_variance_ratio", "largest_score_correlation"],
        ),
    ],
)
def test_files_are_those_without_a_cluster(givens, files, address, line, keys):
    alone, spread = both(givens, files, address, line)
    for key in ["samples", "variables", *keys]:
        assert spread[key] == pytest.approx(alone[key], rel=1e-9, abs=1e-9)


def test_topics_of_zarr(givens, files, address):
    line = "topics words.zarr -k 3 --max-iter 3 --samples rows"
    alone, spread = both(givens, files, address, line, rtol=1e-6)
    for key in ("perplexity", "alpha0", "documents", "passes"):
        assert spread[key] == pytest.approx(alone[key], rel=1e-8)


def test_ica_of_zarr(givens, files, address):
    both(givens, files, address, "ica sources.zarr --stability 0", atol=1e-5)


def test_scores_in_several_parts(givens, files, address, monkeypatch):
    monkeypatch.setattr("givens.app.commands.cluster.SCORES_AT_ONCE", 3 * 1000)
    both(givens, files, address, "mixture x.parquet -k 3 --labels kind --samples rows")


def test_local_starts_a_cluster_and_closes_it(givens, files):
    assert givens("mixture", "x.npy", "-k", "3", "--out", "alone").code == 0
    run = givens("mixture", "x.zarr", "-k", "3", "--cluster", "local", "--threads", "2", "--out", "spread")
    assert run.code == 0, run.err
    assert "opened x.zarr: 4,000 samples x 5 variables, in 6 chunks" in run.err
    for name, table in tables(files / "alone").items():
        pd.testing.assert_frame_equal(tables(files / "spread")[name], table, rtol=1e-9, atol=1e-9)
    with pytest.raises(ValueError, match="No clients found"):
        distributed.default_client()


# What goes wrong.


def refused(givens, line, sentence, code=1):
    run = givens(*line.split(), "--out", "results")
    assert run.code == code, run.err
    assert len(re.findall("^error:", run.err, re.MULTILINE)) == 1
    assert "Traceback" not in run.err
    assert sentence in run.err, run.err


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("mixture x.zarr -k 2 --impute drop", "--impute needs the whole table"),
        ("ica x.zarr --stability 2", "--stability needs all samples in memory"),
        ("sparse-pca x.zarr --stability 2", "--stability needs all samples in memory"),
        ("sparse-pca x.zarr --stream", "leave out --stream or --cluster"),
    ],
)
def test_options_that_do_not_go_together(givens, tmp_path, line, sentence):
    write_zarr(tmp_path / "x.zarr", MIXTURE)
    refused(givens, f"{line} --cluster local", sentence, code=2)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (np.ascontiguousarray(MIXTURE.T), "5 rows of 4,000 columns look like signals"),
        (MIXTURE[:4], "say --samples columns if each row is a signal, or --samples rows"),
        (np.where(np.arange(4000)[:, None] == 1500, np.nan, MIXTURE), "rows 1400 to 2099 of X (chunk 2)"),
        (np.where(np.arange(4000)[:, None] == 1500, np.inf, MIXTURE), "rows 1400 to 2099 of X (chunk 2)"),
    ],
)
def test_tables_that_cannot_be_fitted(givens, tmp_path, address, values, sentence):
    write_zarr(tmp_path / "x.zarr", values)
    refused(givens, f"ica x.zarr --cluster {address}", sentence)
    assert not (tmp_path / "results").exists()


def test_a_damaged_chunk(givens, tmp_path, address):
    write_zarr(tmp_path / "x.zarr", MIXTURE)
    damaged = [file for file in (tmp_path / "x.zarr").rglob("*") if file.is_file() and file.name[0] in "0c"]
    assert damaged
    for file in damaged:
        file.write_bytes(b"no chunk")
    refused(givens, f"mixture x.zarr -k 2 --cluster {address}", "x.zarr is a damaged zarr file")


@pytest.mark.parametrize("nobody", ["tcp://127.0.0.1:9", "nowhere", "ftp://a:1"])
def test_an_address_that_does_not_answer(givens, tmp_path, monkeypatch, nobody):
    monkeypatch.setattr("givens.app.commands.cluster.SCHEDULER_TIMEOUT", "1s")
    write_zarr(tmp_path / "x.zarr", MIXTURE)
    refused(givens, f"mixture x.zarr -k 2 --cluster {nobody}", f"no Dask scheduler answers at {nobody}")


@pytest.mark.parametrize(
    ("workers", "preload", "sentence"),
    [
        (0, [], "has no workers: start some with `dask worker"),
        (
            1,
            ["import sys\nsys.modules['givens'] = None\n"],
            "a worker of the Dask cluster cannot import givens",
        ),
    ],
)
def test_a_cluster_without_workers_or_the_library(givens, tmp_path, workers, preload, sentence):
    import dask

    write_zarr(tmp_path / "x.zarr", MIXTURE)
    with (
        dask.config.set({"distributed.worker.preload": preload}),
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
    ):
        refused(givens, f"mixture x.zarr -k 2 --cluster {cluster.scheduler_address}", sentence)


def test_another_version_of_the_library(givens, tmp_path, address, monkeypatch):
    write_zarr(tmp_path / "x.zarr", MIXTURE)
    monkeypatch.setattr(library, "__version__", "0.0.1")
    sentence = f"has givens {version('givens')}, and this process has 0.0.1: install the same version"
    refused(givens, f"mixture x.zarr -k 2 --cluster {address}", sentence)


def test_other_versions_of_packages(givens, tmp_path, address, monkeypatch):
    from distributed import versions

    def other(packages):
        found = known(packages)
        return {**found, "numpy": "1.0.0"} if "numpy" in found else found

    known = versions.get_package_info
    monkeypatch.setattr(versions, "get_package_info", other)
    write_zarr(tmp_path / "x.zarr", MIXTURE)
    run = givens("mixture", "x.zarr", "-k", "2", "--cluster", address, "--out", "results")
    assert run.code == 0, run.err
    assert "warning: the cluster has other versions of packages than this process" in run.err
    assert "numpy" in run.err


def blind(path):
    return False


def test_workers_that_do_not_see_the_store(givens, tmp_path, address, monkeypatch):
    """A missing chunk of zarr is read as zeros: what workers do not see must never be fitted."""
    write_zarr(tmp_path / "x.zarr", MIXTURE)
    monkeypatch.setattr("os.path.exists", blind)
    sentence = "2 workers of the cluster cannot see"
    refused(givens, f"mixture x.zarr -k 2 --cluster {address}", sentence)


@pytest.mark.parametrize(("package", "extra"), [("distributed", "dask"), ("zarr", "zarr")])
def test_an_extra_that_is_not_installed(givens, tmp_path, monkeypatch, package, extra):
    write_zarr(tmp_path / "x.zarr", MIXTURE)
    monkeypatch.setitem(sys.modules, package, None)
    refused(givens, "mixture x.zarr -k 2 --cluster local", f"pip install 'givens[{extra}]'")
