"""Tables of text, whole or streamed, give the components of the estimators; names, labels, missing values.

That every other format gives what a table of text does is one of the golden outputs (`tests/net`).
"""

from __future__ import annotations

import json

import anndata
import numpy as np
import pandas
import pytest
import scipy.io
import scipy.sparse

from givens import SparsePCA, StreamingSparsePCA
from tests.tables import read_exactly

SAMPLES = [f"patient {k}" for k in range(30)]
GENES = [f"gene-{k}" for k in range(12)]


def intensities():
    rng = np.random.default_rng(0)
    loadings = np.zeros((2, 12))
    loadings[0, :4], loadings[1, 4:8] = 3, 2
    values = rng.normal(size=(30, 2)) @ loadings + 0.3 * rng.normal(size=(30, 12))
    return np.where(np.abs(values) < 0.2, 0.0, values)


def frame_of(genes_in_rows):
    frame = pandas.DataFrame(intensities(), index=SAMPLES, columns=GENES)
    return frame.T if genes_in_rows else frame


def r_table(frame, separator, header, decimal="."):
    """What R's write.table and its relatives write: names in quotation marks, numbers without."""
    quoted = [f'"{name}"' for name in frame.columns]
    lines = [separator.join([*header, *quoted])]
    for name, row in zip(frame.index, frame.to_numpy().tolist()):
        lines.append(separator.join([f'"{name}"', *(repr(value).replace(".", decimal) for value in row)]))
    return "\n".join(lines) + "\n"


TEXTS = {
    "x.csv": lambda frame: frame.to_csv(),
    "write.csv.csv": lambda frame: r_table(frame, ",", ['""']),
    "write.csv2.csv": lambda frame: r_table(frame, ";", ['""'], ","),
}


def write_ten_x(path, frame):
    path.mkdir()
    scipy.io.mmwrite(path / "matrix.mtx", scipy.sparse.coo_matrix(intensities().T), precision=17)
    (path / "barcodes.tsv").write_text("".join(f"{name}\n" for name in SAMPLES))
    (path / "features.tsv").write_text("".join(f"{name}\tS{name}\tGene Expression\n" for name in GENES))


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("genes_in_rows", [False, True], ids=["genes in columns", "genes in rows"])
@pytest.mark.parametrize("name", TEXTS)
def test_the_same_components(givens, tmp_path, name, genes_in_rows, streamed):
    frame = frame_of(genes_in_rows)
    (tmp_path / name).write_text(TEXTS[name](frame))
    side = ["--samples", "columns" if genes_in_rows else "rows"]
    options = ["-m", 2, "--n-nonzero", 4, "--no-path", *side, *(["--stream"] if streamed else [])]
    run = givens("sparse-pca", name, *options, "--out", "out")
    if streamed and genes_in_rows:
        assert run.code == 2
        assert "--stream reads samples as rows" in run.err
        return
    assert run.code == 0, run.err
    estimator = StreamingSparsePCA if streamed else SparsePCA
    expected = estimator(n_components=2, n_nonzero=4, random_state=0).fit(intensities()).components_
    found = read_exactly(tmp_path / "out" / "components.csv")
    np.testing.assert_allclose(found.to_numpy().T, expected, atol=1e-9)
    scores = read_exactly(tmp_path / "out" / "scores.csv")
    assert (list(found.index), list(scores.index)) == (GENES, SAMPLES)


def test_streams_hold_to_the_orientation_of_whole_tables(givens, tmp_path):
    """Named rows by the thousand are genes, streamed or not."""
    values = np.random.default_rng(0).normal(size=(1200, 6))
    frame = pandas.DataFrame(values, [f"g{k}" for k in range(1200)], [f"s{k}" for k in range(6)])
    frame.to_csv(tmp_path / "x.csv")
    frame.to_parquet(tmp_path / "x.parquet")
    for name in ("x.csv", "x.parquet"):
        options = ["sparse-pca", name, "-m", 2, "--n-nonzero", 2, "--no-path", "--quiet", "--out", "out"]
        run = givens(*options, "--stream")
        assert run.code == 1
        assert "look like genes or other variables" in run.err
        assert givens(*options, "--stream", "--samples", "rows").code == 0
        assert givens(*options).code == 0
        assert read_exactly(tmp_path / "out" / "components.csv").shape[0] == 1200


def test_names_of_a_column_made_unique(givens, tmp_path):
    var = pandas.DataFrame({"symbol": ["TP53", "KLK3", "TP53"] + [f"S{k}" for k in range(9)]}, index=GENES)
    adata = anndata.AnnData(intensities(), obs=pandas.DataFrame(index=SAMPLES), var=var)
    adata.write_h5ad(tmp_path / "x.h5ad")
    write_ten_x(tmp_path / "ten_x", None)
    lines = [f"{gene}\t{symbol}\tGene Expression\n" for gene, symbol in zip(GENES, var["symbol"])]
    (tmp_path / "ten_x" / "features.tsv").write_text("".join(lines))
    unique = adata.copy()
    unique.var_names = var["symbol"].to_numpy()
    unique.var_names_make_unique()
    for name, extra in (("x.h5ad", []), ("x.h5ad", ["--stream"]), ("ten_x", [])):
        options = ["-m", 2, "--n-nonzero", 4, "--no-path", "--names", "symbol", "--out", "out", *extra]
        run = givens("sparse-pca", name, *options)
        assert run.code == 0, run.err
        assert "made 1 name unique, as scanpy does: a second 'TP53' is called 'TP53-1'" in run.err
        found = read_exactly(tmp_path / "out" / "components.csv")
        assert list(found.index) == list(unique.var_names)
        run = givens("sparse-pca", name, "-m", 2, "--names", "colour", "--out", "none", *extra)
        assert run.code == 1
        assert "'colour'" in run.err


def test_missing_values_are_filled_in_or_dropped(givens, tmp_path):
    frame = frame_of(False)
    frame.iloc[3, 2] = frame.iloc[7, 2] = frame.iloc[7, 5] = np.nan
    frame.to_csv(tmp_path / "x.csv")
    options = ["sparse-pca", "x.csv", "-m", 2, "--n-nonzero", 4, "--no-path", "--out", "out"]
    run = givens(*options)
    assert run.code == 1
    assert "3 values of 360 are missing" in run.err
    assert "--impute em, --impute median or --impute drop" in run.err
    assert "--impute em" not in givens("mixture", "x.csv", "-k", 2, "--out", "none").err
    filled, dropped = frame.fillna(frame.median()), frame.dropna()
    for how, values, note in (
        ("median", filled, "filled in 3 missing values of 2 variables with the variables' medians"),
        ("drop", dropped, "left out 2 samples with missing values"),
    ):
        run = givens(*options, "--impute", how)
        assert run.code == 0, run.err
        assert note in run.err
        assert note in (tmp_path / "out" / "report.html").read_text().replace("&#x27;", "'").replace(
            "&#39;", "'"
        )
        expected = SparsePCA(n_components=2, n_nonzero=4, random_state=0).fit(values.to_numpy())
        found = read_exactly(tmp_path / "out" / "components.csv").to_numpy().T
        np.testing.assert_allclose(found, expected.components_, atol=1e-12)
    run = givens(*options, "--impute", "drop", "--stream")
    assert run.code == 0, run.err
    assert "left out 2 samples with missing values" in run.err
    assert list(read_exactly(tmp_path / "out" / "scores.csv").index) == list(dropped.index)
    run = givens(*options, "--impute", "median", "--stream")
    assert run.code == 2
    assert "needs the whole table" in run.err
    frame["gene-2"] = np.nan
    frame.to_csv(tmp_path / "x.csv")
    assert "1 variable without any value, 'gene-2'" in givens(*options, "--impute", "median").err
    assert "1 variable without any value, 'gene-2'" in givens(*options, "--impute", "em").err
    for extra in ([], ["--stream"]):
        told = givens(*options, "--impute", "drop", *extra).err
        assert "every sample has a missing value: --impute em" in told


@pytest.mark.parametrize("extra", [[], ["--stream"], ["--log2", "--standardise"]])
def test_missing_values_are_estimated(givens, tmp_path, extra):
    """With holes everywhere no sample is complete, and the model estimates them."""
    rng = np.random.default_rng(0)
    values = np.exp(
        0.3 * rng.normal(size=(120, 3)) @ rng.normal(size=(3, 20)) + 0.1 * rng.normal(size=(120, 20))
    )
    frame = pandas.DataFrame(values, columns=[f"v{k}" for k in range(20)])
    holes = rng.random(values.shape) < 0.02
    holes[np.arange(120), np.arange(120) % 20] = True
    frame.mask(holes).to_csv(tmp_path / "x.csv", index=False)
    options = ["sparse-pca", "x.csv", "-m", 2, "--n-nonzero", 6, "--out", "out", *extra]
    assert givens(*options, "--impute", "drop").code == 1
    run = givens(*options, "--impute", "em", "--json")
    assert run.code == 0, run.err
    note = f"estimated {holes.sum()} missing values from the values that are there (--impute em)"
    assert note in run.err
    summary = json.loads(run.out)
    assert note in summary["notes"]
    assert 0.1 < summary["explained_variance_ratio"] <= 1
    prepared = np.where(holes, np.nan, np.log2(np.maximum(values, 1)) if "--log2" in extra else values)
    parameters = {"n_components": 2, "n_nonzero": 6, "random_state": 0, "missing": "em"}
    if "--stream" in extra:
        expected = StreamingSparsePCA(**parameters).partial_fit(prepared)
    else:
        expected = SparsePCA(**parameters, scale="--standardise" in extra).fit(prepared)
    found = read_exactly(tmp_path / "out" / "components.csv").to_numpy().T
    np.testing.assert_allclose(found, expected.components_, atol=1e-9)
    scores = read_exactly(tmp_path / "out" / "scores.csv").to_numpy()
    np.testing.assert_allclose(scores, expected.transform(prepared), atol=1e-8)


@pytest.mark.parametrize("extra", [[], ["--stream"]])
def test_several_labels(givens, tmp_path, extra):
    frame = frame_of(False)
    frame.insert(0, "kind", ["x", "y"] * 15)
    frame["place"] = ["here", "there", "nowhere"] * 10
    frame.to_csv(tmp_path / "x.csv")
    options = ["-m", 2, "--n-nonzero", 4, "--no-path", "--labels", "place", "--labels", "kind", *extra]
    run = givens("sparse-pca", "x.csv", *options, "--out", "out")
    assert run.code == 0, run.err
    scores = pandas.read_csv(tmp_path / "out" / "scores.csv")
    assert list(scores.columns) == ["sample", "place", "kind", "component 1", "component 2"]
    assert list(scores["kind"]) == list(frame["kind"])
    assert list(scores["place"]) == list(frame["place"])


def test_numbers_that_look_like_clusters_are_asked_about(givens, tmp_path):
    frame = frame_of(False)
    frame["cluster"] = [1, 2, 3] * 10
    frame.to_csv(tmp_path / "x.csv")
    run = givens("sparse-pca", "x.csv", "-m", 2, "--n-nonzero", 4, "--no-path", "--out", "out")
    assert "took 'cluster' as a variable, though it looks like numbers of groups" in run.err
    assert "--labels 'cluster' takes it" in run.err
    run = givens("rotate", "x.csv", "-m", 2, "--out", "out")
    assert "--drop 'cluster' leaves it out" in run.err
    assert "--labels" not in run.err
    run = givens(
        "sparse-pca", "x.csv", "-m", 2, "--n-nonzero", 4, "--no-path", "--labels", "cluster", "--out", "o"
    )
    assert "looks like" not in run.err


@pytest.mark.parametrize("extra", [[], ["--stream"]])
def test_the_row_of_names_can_be_told(givens, tmp_path, extra):
    frame = frame_of(False)
    frame.columns = range(5000, 5000 - frame.shape[1], -1)
    text = frame.to_csv(index_label="array")
    (tmp_path / "x.csv").write_text(f"exported today\n\n{text}")
    options = ["sparse-pca", "x.csv", "-m", 2, "--n-nonzero", 4, "--no-path", "--out", "out", *extra]
    for told in (["--header", 3], ["--skip-rows", 2, "--header", 1]):
        run = givens(*options, *told)
        assert run.code == 0, run.err
        found = read_exactly(tmp_path / "out" / "components.csv")
        assert [str(name) for name in found.index] == [str(name) for name in frame.columns]
    assert givens(*options).code == 1
