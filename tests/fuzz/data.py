"""Arrays and tables of every kind, and what else is passed by mistake."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
from scipy import sparse

ROWS = [0, 1, 2, 3, 5, 12, 40, 40, 120]
COLUMNS = [0, 1, 2, 3, 4, 4, 7, 7, 20, 60]
DTYPES = ["f4", "f2", ">f8", "g", "i1", "i4", "i8", "u1", "u8", "?", "c16", "O", "U8"]
SPARSE = [
    sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix, sparse.csr_array, sparse.csc_array,
    sparse.lil_matrix, sparse.dok_matrix, sparse.bsr_matrix, sparse.dia_matrix,
]  # fmt: skip
NO_DATA: list[Any] = [
    None,
    "data.csv",
    3.5,
    [],
    [[]],
    {},
    np.array(1.0),
    np.array(["a"]),
    object(),
    [[1, "x"], [2, 3]],
]


def values(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Real numbers: ordinary, heavy-tailed, constant, of low rank, counts, of all sizes at once."""
    X = rng.standard_normal((rows, columns))
    kind = rng.integers(14)
    if kind == 0:
        X = rng.standard_cauchy((rows, columns))
    elif kind == 1:
        X = np.full((rows, columns), rng.choice([0.0, 1.0, -3.0, 0.1, 1e-320]))
    elif kind == 2:
        rank = int(rng.integers(1, 4))
        X = rng.standard_normal((rows, rank)) @ rng.standard_normal((rank, columns))
    elif kind == 3:
        X = rng.poisson(rng.choice([0.1, 1.0, 9.0]), (rows, columns)).astype(float)
    elif kind == 4:
        X = np.sign(X) * 10.0 ** rng.uniform(-300, 300, X.shape)
    elif kind == 5 and columns:
        X[:, rng.integers(columns, size=columns // 2 + 1)] = rng.choice([0.0, 1.0, 1e150, 1e-200])
    elif kind == 6 and rows:
        X = X[rng.integers(min(rows, 3), size=rows)]
    elif kind == 7:
        X = X + 10.0 ** rng.uniform(0, 12)
    elif kind == 8:
        X = X * 10.0 ** rng.uniform(-14, 14, columns)
    elif kind == 9:
        X = np.where(rng.random(X.shape) < 0.05, X, 0.0)
    elif kind == 10:
        X = rng.poisson(3.0 * rng.random((rows, 1)) * rng.random((1, columns)) + 0.5).astype(float)
    elif kind == 11:
        X = np.repeat(4.0 * rng.standard_normal((3, columns)), rows // 3 + 1, axis=0)[:rows] + 0.3 * X
    scale = rng.choice([0, 0, 0, 0, 0, 0, 150, -150, 290, 300, -300, -310])
    with np.errstate(all="ignore"):
        X = X * 10.0 ** float(scale) if scale > -305 else X * 1e-150 * 1e-160
    if not np.isfinite(X).all():
        X = np.clip(X, -1e308, 1e308)
    spoiled = rng.integers(16)
    if X.size and spoiled < 3:
        X[rng.integers(rows), rng.integers(columns)] = [np.nan, np.inf, -np.inf][spoiled]
    return X


def container(rng: np.random.Generator, X: np.ndarray) -> Any:
    """The same numbers as users hold them."""
    kind = rng.integers(22)
    if kind == 0:
        return np.asfortranarray(X)
    if kind == 1:
        return np.repeat(X, 2, axis=0)[::2]
    if kind == 2:
        return X[::-1, ::-1]
    if kind == 3:
        X.setflags(write=False)
        return X
    if kind == 4:
        return X.tolist()
    if kind == 5:
        return np.ma.masked_array(X, mask=rng.random(X.shape) < rng.choice([0.0, 0.1]))
    if kind in (6, 7):
        with np.errstate(all="ignore"):
            return as_dtype(X, str(rng.choice(DTYPES)))
    if kind in (8, 9, 10):
        return frame(rng, X)
    if kind in (11, 12, 13):
        with np.errstate(all="ignore"):
            return SPARSE[rng.integers(len(SPARSE))](np.where(np.abs(X) < 0.5, 0.0, X))
    if kind == 14:
        return np.asmatrix(X)
    if kind == 15:
        return X[0] if len(X) else X.ravel()
    if kind == 16:
        return np.stack([X, X])
    return X


def as_dtype(X: np.ndarray, name: str) -> np.ndarray:
    if name[-2:] in ("i1", "i4", "i8", "u1", "u8"):
        limits = np.iinfo(name)
        X = np.clip(np.nan_to_num(X), max(limits.min, -(2.0**62)), min(limits.max, 2.0**62))
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return X.astype(name)


def frame(rng: np.random.Generator, X: np.ndarray) -> pandas.DataFrame:
    """A pandas table: names of any kind, also twice; columns of whole numbers, categories, text or missing values."""
    table = pandas.DataFrame(X, columns=[f"v{k}" for k in range(X.shape[1])])
    kind = rng.integers(8)
    if kind == 0:
        table.columns = ["v"] * X.shape[1]
    elif kind == 1:
        table.columns = list(range(X.shape[1]))
    elif kind == 2 and X.shape[1]:
        table["v0"] = pandas.array([1] * len(X), dtype="Int64")
        if len(X):
            table.loc[0, "v0"] = pandas.NA
    elif kind == 3 and X.shape[1]:
        table["v0"] = pandas.Categorical(["a"] * len(X))
    elif kind == 4 and X.shape[1]:
        table["v0"] = "text"
    elif kind == 5 and X.shape[1]:
        table["v0"] = True
    elif kind == 6:
        table = table.astype(pandas.SparseDtype(float, 0.0))
    return table


def data(rng: np.random.Generator) -> Any:
    """Something to fit on, or to be refused."""
    if rng.random() < 0.03:
        return NO_DATA[rng.integers(len(NO_DATA))]
    rows, columns = int(rng.choice(ROWS)), int(rng.choice(COLUMNS))
    if rng.random() < 0.1:
        rows, columns = columns, rows
    return container(rng, values(rng, rows, columns))


def good(rng: np.random.Generator) -> np.ndarray:
    """Data without tricks, of a shape that every model takes."""
    return np.repeat(3.0 * rng.standard_normal((3, 6)), 14, axis=0) + rng.standard_normal((42, 6))


def is_finite(X: Any) -> bool:
    """Whether data are real, finite numbers, as far as can be told from outside."""
    try:
        array = X.toarray() if sparse.issparse(X) else np.asarray(X)
        return bool(np.isfinite(array.astype(np.float64)).all()) and array.dtype.kind != "c"
    except (TypeError, ValueError):
        return False


def say(X: Any) -> str:
    """Describe data in a few words."""
    shape, kind = getattr(X, "shape", None), getattr(X, "dtype", "")
    return (
        f"{type(X).__name__}{'' if shape is None else shape} {kind}".strip()
        if shape is not None
        else repr(X)[:60]
    )
