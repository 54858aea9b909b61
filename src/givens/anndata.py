"""Sparse PCA of an AnnData object, stored where scanpy's plots look for it.

`scanpy.pp.pca` keeps the scores in `obsm["X_pca"]`, the weights in `varm["PCs"]` and the variances in
`uns["pca"]`; so does `sparse_pca`, and with `key_added` all three go to that key, as scanpy has it. Like scanpy it uses the
highly variable genes where `var` says which these are. An object in backed mode is read in parts and never whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from givens.support.imports import require

if TYPE_CHECKING:
    from anndata import AnnData

__all__ = ["sparse_pca"]

READ_ENTRIES = 1 << 22
"""Entries of a file that are in memory at a time: 32 MB."""


def sparse_pca(
    adata: AnnData,
    n_components: int = 10,
    *,
    layer: str | None = None,
    mask_var: str | np.ndarray | None = "highly_variable",
    key_added: str | None = None,
    copy: bool = False,
    **parameters: Any,
) -> AnnData | None:
    """Fit `givens.SparsePCA` to an AnnData object and store the result by scanpy's conventions.

    Parameters
    ----------
    adata : AnnData
        Cells x genes, normalised and on a logarithmic scale, as for any PCA. In backed mode it is read in parts, and
        `givens.StreamingSparsePCA` takes the place of `SparsePCA`; results are kept in memory, not written to the file.
    n_components : int, default=10
    layer : str, optional
        The layer to use instead of X.
    mask_var : str, array of bool or None, default="highly_variable"
        Which variables to use: a column of `var`, or a mask; None: all. As in scanpy, all are used too where no column
        "highly_variable" marks some. The others get the weight 0.
    key_added : str, optional
        Store under this key instead of "X_pca", "PCs" and "pca".
    copy : bool, default=False
        Return a changed copy instead of changing `adata`.
    **parameters
        Of `SparsePCA`, or of `StreamingSparsePCA` in backed mode: n_nonzero, threshold, random_state and so on.

    Returns
    -------
    AnnData or None
        The copy, if one was asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> from givens.anndata import sparse_pca
    >>> adata = AnnData(np.random.default_rng(0).standard_normal((20, 8)))
    >>> sparse_pca(adata, n_components=2, n_nonzero=3, random_state=0)
    >>> adata.obsm["X_pca"].shape, adata.varm["PCs"].shape, (adata.varm["PCs"] != 0).sum(axis=0)
    ((20, 2), (8, 2), array([3, 3]))
    """
    anndata = require("anndata", extra="anndata")
    if not isinstance(adata, anndata.AnnData):
        raise TypeError(f"adata must be an AnnData object, got {type(adata).__name__}")
    if copy and adata.isbacked:
        raise ValueError(
            "a copy of an object in backed mode needs a file of its own: leave out copy, or take adata.to_memory()"
        )
    if isinstance(mask_var, str) and mask_var == "highly_variable" and mask_var not in adata.var:
        mask_var = None
    mask, values = _mask(adata, mask_var), _values(adata, layer)
    if copy:
        adata = adata.copy()
    model, scores = (_streamed if adata.isbacked else _fitted)(values, mask, n_components, parameters)
    keys = ("X_pca", "PCs", "pca") if key_added is None else (key_added,) * 3
    column = mask_var if isinstance(mask_var, str) else None
    _store(adata, model, scores, mask, keys, {"mask_var": column, "layer": layer})
    return adata if copy else None


def _store(
    adata: AnnData,
    model: Any,
    scores: np.ndarray,
    mask: np.ndarray | None,
    keys: tuple[str, str, str],
    chosen: dict[str, str | None],
) -> None:
    """Keep scores, weights and variances where scanpy looks for them; `chosen` are the layer and the column of the mask."""
    weights = np.zeros((adata.n_vars, scores.shape[1]), model.components_.dtype)
    weights[slice(None) if mask is None else mask] = model.components_.T
    adata.obsm[keys[0]], adata.varm[keys[1]] = scores, weights
    adata.uns[keys[2]] = {
        "params": {
            "zero_center": True,
            "use_highly_variable": chosen["mask_var"] == "highly_variable",
            "method": f"givens.{type(model).__name__}",
            # None cannot be written to .h5ad.
            **{name: value for name, value in chosen.items() if value is not None},
        },
        "variance": np.asarray(model.explained_variance_),
        "variance_ratio": np.asarray(model.explained_variance_ratio_),
        "n_nonzero": np.asarray(model.n_nonzero_),
    }


def _values(adata: AnnData, layer: str | None) -> Any:
    """The matrix to fit: X, or a layer."""
    if layer is not None and layer not in adata.layers:
        raise ValueError(f"there is no layer {layer!r}; the layers are {sorted(adata.layers)}")
    values = adata.X if layer is None else adata.layers[layer]
    if values is None:
        raise ValueError("adata.X is empty: name a layer")
    return values


def _fitted(
    values: Any, mask: np.ndarray | None, n_components: int, parameters: dict[str, Any]
) -> tuple[Any, np.ndarray]:
    """The model of a matrix in memory, and the scores."""
    from givens import SparsePCA

    model = SparsePCA(n_components=n_components, **parameters)
    return model, model.fit_transform(values if mask is None else values[:, mask])


def _streamed(
    values: Any, mask: np.ndarray | None, n_components: int, parameters: dict[str, Any]
) -> tuple[Any, np.ndarray]:
    """The same for a matrix in a file: one pass for the model, another for the scores."""
    from givens import StreamingSparsePCA

    if getattr(values, "format", None) == "csc":
        raise ValueError(
            "the matrix in the file is stored by columns (csc), and cannot be read a few cells at a time: save it as csr, or "
            "take adata.to_memory()"
        )
    model = StreamingSparsePCA(n_components=n_components, **parameters).fit(_parts(values, mask))
    return model, np.concatenate([model.transform(part) for part in _parts(values, mask)])


def _parts(values: Any, mask: np.ndarray | None) -> Iterator[Any]:
    """Some rows of a matrix in a file at a time, with the columns of the mask."""
    cells, genes = values.shape
    step = max(1, READ_ENTRIES // max(genes, 1))
    for start in range(0, cells, step):
        part = values[start : start + step]
        yield part if mask is None else part[:, mask]


def _mask(adata: AnnData, mask_var: str | np.ndarray | None) -> np.ndarray | None:
    """Return the variables to use as a mask, or None for all."""
    if mask_var is None:
        return None
    if isinstance(mask_var, str):
        if mask_var not in adata.var:
            raise ValueError(f"there is no {mask_var!r} in adata.var; it has {list(adata.var.columns)}")
        mask_var = np.asarray(adata.var[mask_var])
    mask = np.asarray(mask_var)
    if mask.dtype != bool or mask.shape != (adata.n_vars,):
        raise ValueError(
            f"mask_var must be {adata.n_vars} truth values, one for each variable, got {mask.dtype} of shape {mask.shape}"
        )
    if not mask.any():
        raise ValueError("mask_var leaves no variable")
    return mask
