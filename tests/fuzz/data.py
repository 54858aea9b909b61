"""Arrays and tables of every kind, and what else is passed by mistake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
from scipy import sparse

ROWS = [0, 1, 2, 3, 5, 12, 40, 40, 120]
COLUMNS = [0, 1, 2, 3, 4, 4, 7, 7, 20, 60]
DTYPES = ["f4", "f2", ">f8", "g", "i1", "i4", "i8", "u1", "u8", "?", "c16", "O", "U8"]
SPARSE = [
    "csr_matrix",
    "csc_matrix",
    "coo_matrix",
    "csr_array",
    "csc_array",
    "lil_matrix",
    "dok_matrix",
    "bsr_matrix",
]
NO_DATA = [None, "data.csv", 3.5, [], [[]], {}, np.array(1.0), np.array(["a"]), object(), [[1, "x"], [2, 3]]]


def one_of(rng: np.random.Generator, choices: list[Any]) -> Any:
    """One of some things, of any types."""
    return choices[rng.integers(len(choices))]


def values(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Real numbers: ordinary, heavy-tailed, constant, of low rank, counts, of all sizes at once."""
    shape = (rows, columns)
    X = rng.standard_normal(shape)
    rank = int(rng.integers(1, 4))
    kinds: list[Callable[[], np.ndarray]] = [
        lambda: X,
        lambda: X,
        lambda: rng.standard_cauchy(shape),
        lambda: np.full(shape, rng.choice([0.0, 1.0, -3.0, 0.1, 1e-320])),
        lambda: rng.standard_normal((rows, rank)) @ rng.standard_normal((rank, columns)),
        lambda: rng.poisson(rng.choice([0.1, 1.0, 9.0]), shape).astype(float),
        lambda: np.sign(X) * 10.0 ** rng.uniform(-300, 300, shape),
        lambda: np.where(rng.random(columns) < 0.5, X, rng.choice([0.0, 1.0, 1e150, 1e-200])),
        lambda: X[rng.integers(min(rows, 3), size=rows)] if rows else X,
        lambda: X + 10.0 ** rng.uniform(0, 12),
        lambda: X * 10.0 ** rng.uniform(-14, 14, columns),
        lambda: np.where(rng.random(shape) < 0.05, X, 0.0),
        lambda: rng.poisson(3.0 * rng.random((rows, 1)) * rng.random(columns) + 0.5).astype(float),
        lambda: np.repeat(4.0 * rng.standard_normal((3, columns)), rows // 3 + 1, axis=0)[:rows] + 0.3 * X,
    ]
    X = one_of(rng, kinds)()
    half = 10.0 ** (rng.choice([0, 0, 0, 0, 0, 0, 150, -150, 290, 300, -300, -310]) / 2)
    X = np.clip(X * half * half, -1e308, 1e308)
    if X.size and rng.random() < 0.2:
        X[rng.integers(rows), rng.integers(columns)] = rng.choice([np.nan, np.inf, -np.inf])
    return X


def container(rng: np.random.Generator, X: np.ndarray) -> Any:
    """The same numbers as users hold them."""
    read_only = X.copy()
    read_only.setflags(write=False)
    masked = rng.random(X.shape) < rng.choice([0.0, 0.1])
    kinds: list[Callable[[], Any]] = [
        *[lambda: X] * 5,
        *[lambda: frame(rng, X)] * 3,
        *[lambda: getattr(sparse, str(rng.choice(SPARSE)))(np.where(np.abs(X) < 0.5, 0.0, X))] * 3,
        *[lambda: as_dtype(X, str(rng.choice(DTYPES)))] * 2,
        lambda: np.asfortranarray(X),
        lambda: np.repeat(X, 2, axis=0)[::2],
        lambda: X[::-1, ::-1],
        lambda: read_only,
        lambda: X.tolist(),
        lambda: np.ma.masked_array(X, mask=masked),
        lambda: np.asmatrix(X),
        lambda: X[0] if len(X) else X.ravel(),
        lambda: np.stack([X, X]),
    ]
    return one_of(rng, kinds)()


def as_dtype(X: np.ndarray, name: str) -> np.ndarray:
    if name[-2:] in ("i1", "i4", "i8", "u1", "u8"):
        limits = np.iinfo(name)
        X = np.clip(np.nan_to_num(X), max(limits.min, -(2.0**62)), min(limits.max, 2.0**62))
    return X.astype(name)


def frame(rng: np.random.Generator, X: np.ndarray) -> pandas.DataFrame:
    """A pandas table: names of any kind, also twice; columns of whole numbers, categories, text or missing values."""
    width = X.shape[1]
    names = one_of(rng, [["v"] * width, list(range(width)), *[[f"v{k}" for k in range(width)]] * 6])
    table = pandas.DataFrame(X, columns=names)
    whole = pandas.array([pandas.NA, *[1] * len(X)][: len(X)], dtype="Int64")
    columns = [whole, pandas.Categorical(["a"] * len(X)), "text", True]
    if width and rng.random() < 0.5:
        table[names[0]] = one_of(rng, columns)
    elif rng.random() < 0.2:
        table = table.astype(pandas.SparseDtype(float, 0.0))
    return table


def data(rng: np.random.Generator) -> Any:
    """Something to fit on, or to be refused."""
    if rng.random() < 0.03:
        return one_of(rng, NO_DATA)
    shape = [int(rng.choice(ROWS)), int(rng.choice(COLUMNS))]
    return container(rng, values(rng, *(shape if rng.random() < 0.9 else shape[::-1])))


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
    shape = getattr(X, "shape", None)
    return repr(X)[:60] if shape is None else f"{type(X).__name__}{shape} {getattr(X, 'dtype', '')}"
