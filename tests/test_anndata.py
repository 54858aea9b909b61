"""AnnData: what is stored is what the estimator found, and scanpy's own plots draw it."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pandas
import pytest
import scipy.sparse
from anndata import AnnData, read_h5ad

from givens import SparsePCA, StreamingSparsePCA
from givens.anndata import sparse_pca


def cells(sparse=False):
    rng = np.random.default_rng(0)
    values = np.log1p(rng.poisson(1.0, (50, 30)).astype(np.float64))
    adata = AnnData(
        scipy.sparse.csr_matrix(values) if sparse else values,
        obs=pandas.DataFrame({"kind": ["a", "b"] * 25}, index=[f"cell {k}" for k in range(50)]),
        var=pandas.DataFrame(
            {"highly_variable": np.arange(30) % 3 == 0}, index=[f"gene {k}" for k in range(30)]
        ),
    )
    adata.layers["doubled"] = adata.X * 2
    return adata, values


@pytest.mark.parametrize("sparse", [False, True])
def test_stores_what_the_estimator_found(tmp_path, sparse):
    adata, _ = cells(sparse)
    assert sparse_pca(adata, 3, n_nonzero=6, mask_var=None, random_state=0) is None
    model = SparsePCA(n_components=3, n_nonzero=6, random_state=0).fit(adata.X)
    np.testing.assert_allclose(adata.varm["PCs"], model.components_.T)
    np.testing.assert_allclose(adata.obsm["X_pca"], model.transform(adata.X))
    np.testing.assert_allclose(adata.uns["pca"]["variance_ratio"], model.explained_variance_ratio_)
    assert (adata.varm["PCs"] != 0).sum(axis=0).tolist() == [6, 6, 6]
    adata.write_h5ad(tmp_path / "x.h5ad")
    again = read_h5ad(tmp_path / "x.h5ad")
    np.testing.assert_array_equal(again.varm["PCs"], adata.varm["PCs"])


def test_masks_layers_keys_and_copies():
    adata, values = cells()
    other = sparse_pca(
        adata, 2, n_nonzero=4, mask_var="highly_variable", key_added="spca", copy=True, random_state=0
    )
    assert "spca" not in adata.uns
    assert other.obsm["spca"].shape == (50, 2)
    assert not other.varm["spca"][np.arange(30) % 3 != 0].any()
    np.testing.assert_allclose(
        other.varm["spca"][::3].T,
        SparsePCA(n_components=2, n_nonzero=4, random_state=0).fit(values[:, ::3]).components_,
    )
    sparse_pca(adata, 2, n_nonzero=4, layer="doubled", mask_var=None, random_state=0)
    plain = SparsePCA(n_components=2, n_nonzero=4, random_state=0).fit(values)
    np.testing.assert_allclose(adata.uns["pca"]["variance"], 4 * plain.explained_variance_, rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"layer": "none"}, "there is no layer 'none'"),
        ({"mask_var": "none"}, "there is no 'none' in adata.var"),
        ({"mask_var": np.zeros(30, bool)}, "leaves no variable"),
        ({"mask_var": np.zeros(4, bool)}, "30 truth values"),
    ],
)
def test_bad_arguments(arguments, match):
    adata, _ = cells()
    with pytest.raises(ValueError, match=match):
        sparse_pca(adata, 2, **arguments)
    assert not adata.uns


def test_what_is_not_in_memory_or_no_anndata(tmp_path):
    with pytest.raises(TypeError, match="must be an AnnData object, got ndarray"):
        sparse_pca(np.eye(3), 2)
    adata, _ = cells()
    adata.write_h5ad(tmp_path / "x.h5ad")
    backed = read_h5ad(tmp_path / "x.h5ad", backed="r")
    with pytest.raises(ValueError, match=r"leave out copy, or take adata\.to_memory"):
        sparse_pca(backed, 2, copy=True)
    backed.file.close()
    adata.X = scipy.sparse.csc_matrix(adata.X)
    adata.write_h5ad(tmp_path / "y.h5ad")
    backed = read_h5ad(tmp_path / "y.h5ad", backed="r")
    with pytest.raises(ValueError, match="stored by columns"):
        sparse_pca(backed, 2)
    backed.file.close()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("layer", [None, "doubled"])
def test_backed_objects_are_streamed(tmp_path, monkeypatch, sparse, layer):
    adata, values = cells(sparse)
    adata.write_h5ad(tmp_path / "x.h5ad")
    backed = read_h5ad(tmp_path / "x.h5ad", backed="r")
    monkeypatch.setattr("givens.anndata.READ_ENTRIES", 7 * 30)
    sparse_pca(backed, 2, n_nonzero=4, layer=layer, random_state=0)
    data = values[:, ::3] * (1 if layer is None else 2)
    model = StreamingSparsePCA(n_components=2, n_nonzero=4, random_state=0).fit(data)
    np.testing.assert_array_equal(backed.varm["PCs"][::3], model.components_.T)
    assert not backed.varm["PCs"][np.arange(30) % 3 != 0].any()
    np.testing.assert_allclose(backed.obsm["X_pca"], model.transform(data), atol=1e-10)
    np.testing.assert_allclose(backed.uns["pca"]["variance"], model.explained_variance_)
    assert backed.uns["pca"]["params"]["method"] == "givens.StreamingSparsePCA"
    assert backed.uns["pca"]["params"]["use_highly_variable"]
    backed.file.close()


def test_highly_variable_genes_are_the_default_where_they_are_marked():
    adata, values = cells()
    sparse_pca(adata, 2, n_nonzero=4, random_state=0)
    expected = SparsePCA(n_components=2, n_nonzero=4, random_state=0).fit(values[:, ::3])
    np.testing.assert_allclose(adata.varm["PCs"][::3].T, expected.components_)
    assert adata.uns["pca"]["params"]["mask_var"] == "highly_variable"
    del adata.var["highly_variable"]
    sparse_pca(adata, 2, n_nonzero=4, random_state=0)
    expected = SparsePCA(n_components=2, n_nonzero=4, random_state=0).fit(values)
    np.testing.assert_allclose(adata.varm["PCs"].T, expected.components_)
    assert "mask_var" not in adata.uns["pca"]["params"]


def test_scanpy_draws_it(tmp_path):
    """In a process of its own: scanpy warns of many things that are not ours."""
    script = textwrap.dedent("""
        import matplotlib
        matplotlib.use("Agg")
        import numpy as np, scanpy
        from anndata import AnnData
        from givens.anndata import sparse_pca
        adata = AnnData(np.random.default_rng(0).normal(size=(40, 60)))
        adata.obs["kind"] = ["a", "b"] * 20
        sparse_pca(adata, 4, n_nonzero=5, random_state=0)
        drawn = scanpy.pl.pca(adata, color="kind", show=False)
        offsets = np.concatenate([part.get_offsets() for part in drawn.collections])
        assert np.allclose(np.sort(offsets[:, 0]), np.sort(adata.obsm["X_pca"][:, 0]), atol=1e-5)
        scanpy.pl.pca_loadings(adata, components="1,2", show=False)
        scanpy.pl.pca_variance_ratio(adata, n_pcs=4, show=False)
        print("drawn")
    """)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout.endswith("drawn\n"), done.stderr
