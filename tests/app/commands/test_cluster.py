"""`--cluster`: the files of the command without it, from a real cluster; and one sentence for what goes wrong with one."""

from __future__ import annotations

import json
import logging
import re

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
WORDS = make_topics(1500, n_components=3, n_words=30, topic_sparsity=0.5).X
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


def write_zarr(path, values, rows=350):
    chunks = (rows, values.shape[1])
    array = zarr.open(str(path), mode="w", shape=values.shape, chunks=chunks, dtype=values.dtype)
    array[:] = values


def write_parquet(path):
    frame = pd.DataFrame(MIXTURE, columns=list("abcde"), index=[f"s{k}" for k in range(len(MIXTURE))])
    frame["kind"] = KINDS
    frame.to_parquet(path, row_group_size=333)


def tables(folder):
    return {path.name: pd.read_csv(path, index_col=0) for path in sorted(folder.glob("*.csv"))}


def equal(one, two, atol=1e-9):
    """The same files, with the same words and, to rounding, the same numbers."""
    assert list(one) == list(two)
    for name in one:
        pd.testing.assert_frame_equal(one[name], two[name], rtol=1e-9, atol=atol)


def both(givens, tmp_path, address, *command, atol=1e-9):
    """Run a command without and with a cluster, compare what they write, and return the summaries."""
    store, *rest = [word for word in command if word is not None]
    name, *rest = [store, *rest]
    for folder, options in (("alone", []), ("spread", ["--cluster", address])):
        run = givens(name, *rest, *options, "--out", folder)
        assert run.code == 0, run.err
    equal(tables(tmp_path / "alone"), tables(tmp_path / "spread"), atol)
    for folder in ("alone", "spread"):
        assert (tmp_path / folder / "report.html").stat().st_size > 10_000
    alone, spread = (json.loads((tmp_path / f / "summary.json").read_text()) for f in ("alone", "spread"))
    assert "progress" not in spread["parameters"]
    assert "the dashboard of the cluster is at http://" in run.err
    assert any("chunks by 2 workers of a Dask cluster" in note for note in spread["notes"])
    return alone, spread


@pytest.mark.parametrize(
    "options", [[], ["--standardise", "--variance", "distinct"], ["--log2", "--floor", "0.5"]]
)
def test_mixture_of_parquet(givens, tmp_path, address, options):
    write_parquet(tmp_path / "x.parquet")
    words = ["mixture", "x.parquet", "-k", "3", "--labels", "kind", "--samples", "rows", *options]
    alone, spread = both(givens, tmp_path, address, *words)
    for key in ("samples", "variables"):
        assert alone[key] == spread[key]
    for key in ("mean_log_likelihood", "bic"):
        assert spread[key] == pytest.approx(alone[key], rel=1e-9)
    assert [row["samples"] for row in alone["clusters"]] == [row["samples"] for row in spread["clusters"]]


def test_sparse_pca_of_h5ad(givens, tmp_path, address):
    values = scipy.sparse.csr_matrix(np.where(abs(MIXTURE) > 2, MIXTURE, 0))
    adata = anndata.AnnData(values)
    adata.obs["kind"] = KINDS
    adata.var_names = list("abcde")
    adata.write_h5ad(tmp_path / "x.h5ad")
    words = ["sparse-pca", "x.h5ad", "-m", "2", "--n-nonzero", "3", "--labels", "kind", "--no-path"]
    alone, spread = both(givens, tmp_path, address, *words)
    assert spread["explained_variance_ratio"] == pytest.approx(alone["explained_variance_ratio"], rel=1e-9)
    assert spread["largest_score_correlation"] == pytest.approx(alone["largest_score_correlation"], abs=1e-9)
    assert "summed over" in spread["method"]
    assert spread["separation"]


def test_topics_of_zarr(givens, tmp_path, address):
    # The command without a cluster reads no zarr: the same counts as .npy.
    write_zarr(tmp_path / "x.zarr", WORDS.toarray().astype(np.int32))
    np.save(tmp_path / "x.npy", WORDS.toarray())
    words = ["topics", "-k", "3", "--max-iter", "3", "--samples", "rows"]
    assert givens(*words, "x.npy", "--out", "alone").code == 0
    run = givens(*words, "x.zarr", "--cluster", address, "--out", "spread", "--json")
    assert run.code == 0, run.err
    one, two = tables(tmp_path / "alone"), tables(tmp_path / "spread")
    equal({"components.csv": one["components.csv"]}, {"components.csv": two["components.csv"]})
    pd.testing.assert_frame_equal(one["scores.csv"], two["scores.csv"], rtol=1e-6, atol=1e-9)
    alone = json.loads((tmp_path / "alone" / "summary.json").read_text())
    for key in ("perplexity", "alpha0", "documents", "passes"):
        assert json.loads(run.out)[key] == pytest.approx(alone[key], rel=1e-8)
    assert [row["documents"] for row in alone["topics"]] == [
        row["documents"] for row in json.loads(run.out)["topics"]
    ]


def test_ica_of_zarr(givens, tmp_path, address):
    sources = np.random.default_rng(0).laplace(size=(4000, 3)) @ np.random.default_rng(1).normal(size=(3, 3))
    write_zarr(tmp_path / "x.zarr", sources)
    np.save(tmp_path / "x.npy", sources)
    assert givens("ica", "x.npy", "--stability", "0", "--out", "alone").code == 0
    run = givens("ica", "x.zarr", "--cluster", address, "--out", "spread")
    assert run.code == 0, run.err
    equal(tables(tmp_path / "alone"), tables(tmp_path / "spread"), atol=1e-5)


def test_local_starts_a_cluster_and_closes_it(givens, tmp_path):
    write_zarr(tmp_path / "x.zarr", MIXTURE)
    np.save(tmp_path / "x.npy", MIXTURE)
    assert givens("mixture", "x.npy", "-k", "3", "--out", "alone").code == 0
    run = givens("mixture", "x.zarr", "-k", "3", "--cluster", "local", "--threads", "2", "--out", "spread")
    assert run.code == 0, run.err
    assert "opened x.zarr: 4,000 samples x 5 variables, in 6 chunks" in run.err
    equal(tables(tmp_path / "alone"), tables(tmp_path / "spread"))
    with pytest.raises(ValueError, match="No clients found"):
        distributed.default_client()


def test_scores_in_several_parts(givens, tmp_path, address, monkeypatch):
    import givens.app.commands.cluster as module

    monkeypatch.setattr(module, "SCORES_AT_ONCE", 3 * 1000)
    write_parquet(tmp_path / "x.parquet")
    both(
        givens, tmp_path, address, "mixture", "x.parquet", "-k", "3", "--labels", "kind", "--samples", "rows"
    )


# What goes wrong.


def refused(givens, sentence, *words, code=1):
    run = givens(*words, "--out", "results")
    assert run.code == code, run.err
    assert len(re.findall("^error:", run.err, re.MULTILINE)) == 1
    assert "Traceback" not in run.err
    assert sentence in run.err, run.err


def test_options_that_do_not_go_together(givens, tmp_path):
    write_zarr(tmp_path / "x.zarr", MIXTURE)
    on = ["--cluster", "local"]
    for sentence, *words in (
        ("--impute needs the whole table", "mixture", "x.zarr", "-k", "2", "--impute", "drop", *on),
        ("--stability needs all samples in memory", "ica", "x.zarr", "--stability", "2", *on),
        ("--stability needs all samples in memory", "sparse-pca", "x.zarr", "--stability", "2", *on),
        ("leave out --stream or --cluster", "sparse-pca", "x.zarr", "--stream", *on),
    ):
        refused(givens, sentence, *words, code=2)
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    refused(
        givens, "which --cluster cannot read in chunks: save it as zarr", "mixture", "x.csv", "-k", "1", *on
    )
    assert not (tmp_path / "results").exists()


def test_signals_in_rows_are_no_samples(givens, tmp_path, address):
    write_zarr(tmp_path / "x.zarr", np.ascontiguousarray(MIXTURE.T))
    on = ["--cluster", address]
    refused(givens, "5 rows of 4,000 columns look like signals", "ica", "x.zarr", *on)
    write_zarr(tmp_path / "x.zarr", MIXTURE[:4])
    refused(givens, "say --samples columns if each row is a signal, or --samples rows", "ica", "x.zarr", *on)


def test_an_address_that_does_not_answer(givens, tmp_path, monkeypatch):
    monkeypatch.setattr("givens.app.commands.cluster.SCHEDULER_TIMEOUT", "1s")
    write_zarr(tmp_path / "x.zarr", MIXTURE)
    for address in ("tcp://127.0.0.1:9", "nowhere", "ftp://a:1"):
        refused(
            givens,
            f"no Dask scheduler answers at {address}",
            "mixture",
            "x.zarr",
            "-k",
            "2",
            "--cluster",
            address,
        )


def test_a_cluster_without_workers_or_the_library(givens, tmp_path):
    import dask

    write_zarr(tmp_path / "x.zarr", MIXTURE)
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster:
        words = ["mixture", "x.zarr", "-k", "2", "--cluster", cluster.scheduler_address]
        refused(givens, "has no workers: start some with `dask worker", *words)
    preload = "import sys\nsys.modules['givens'] = None\n"
    with (
        dask.config.set({"distributed.worker.preload": [preload]}),
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
    ):
        words = ["mixture", "x.zarr", "-k", "2", "--cluster", cluster.scheduler_address]
        refused(givens, "a worker of the Dask cluster cannot import givens", *words)


def test_other_versions(givens, tmp_path, address, monkeypatch):
    write_zarr(tmp_path / "x.zarr", MIXTURE)
    monkeypatch.setattr(library, "__version__", "0.0.1")
    words = ["mixture", "x.zarr", "-k", "2", "--cluster", address]
    refused(
        givens, f"has givens {_installed()}, and this process has 0.0.1: install the same version", *words
    )
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(stores, "DEFAULT_CHUNK_BYTES", 8 * 5 * 700)
    from distributed import versions

    known = versions.get_package_info

    def other(packages):
        found = known(packages)
        return {**found, "numpy": "1.0.0"} if "numpy" in found else found

    monkeypatch.setattr(versions, "get_package_info", other)
    run = givens(*words, "--out", "results")
    assert run.code == 0, run.err
    assert "warning: the cluster has other versions of packages than this process" in run.err
    assert "numpy" in run.err


def _installed():
    from importlib.metadata import version

    return version("givens")


def test_workers_that_do_not_see_the_store(givens, tmp_path, address, monkeypatch):
    """A missing chunk of zarr is read as zeros: what workers do not see must never be fitted."""
    write_zarr(tmp_path / "x.zarr", MIXTURE)
    monkeypatch.setattr("os.path.exists", _blind)
    words = ["mixture", "x.zarr", "-k", "2", "--cluster", address]
    refused(givens, "2 workers of the cluster cannot see", *words)


def _blind(path):
    return False


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite(givens, tmp_path, address, bad):
    values = MIXTURE.copy()
    values[1500, 2] = bad
    write_zarr(tmp_path / "x.zarr", values)
    words = ["mixture", "x.zarr", "-k", "2", "--cluster", address]
    refused(givens, "rows 1400 to 2099 of X (chunk 2)", *words)
    assert not (tmp_path / "results").exists()


def test_a_damaged_chunk(givens, tmp_path, address):
    write_zarr(tmp_path / "x.zarr", MIXTURE)
    damaged = [file for file in (tmp_path / "x.zarr").rglob("*") if file.is_file() and file.name[0] in "0c"]
    assert damaged
    for file in damaged:
        file.write_bytes(b"no chunk")
    words = ["mixture", "x.zarr", "-k", "2", "--cluster", address]
    refused(givens, "x.zarr is a damaged zarr file", *words)
    assert not (tmp_path / "results").exists()


def test_an_extra_that_is_not_installed(givens, tmp_path, monkeypatch):
    import sys

    write_zarr(tmp_path / "x.zarr", MIXTURE)
    monkeypatch.setitem(sys.modules, "distributed", None)
    refused(givens, "pip install 'givens[dask]'", "mixture", "x.zarr", "-k", "2", "--cluster", "local")
    monkeypatch.setitem(sys.modules, "zarr", None)
    refused(givens, "pip install 'givens[zarr]'", "mixture", "x.zarr", "-k", "2", "--cluster", "local")
