"""The table in docs/scale.md of what each estimator takes, compared with what the estimators do.

A case is a fit to a few rows, in one of three places: in memory, on disk (a memory map, or blocks of sparse rows), on Dask.
What is taken must give the model of the plain rows; what is not must be refused.
"""

from __future__ import annotations

import inspect
import re
import weakref
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from givens import ICA, JADE, SOBI, RotatedPCA, SparsePCA, SphericalMixture, StreamingSparsePCA, TopicModel

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
RNG = np.random.default_rng(0)
GROUPS = RNG.standard_normal((240, 6)) + 8 * np.eye(6)[RNG.integers(0, 3, 240)]
SIGNALS = RNG.laplace(size=(1200, 4)) @ RNG.standard_normal((4, 4))
COUNTS = RNG.poisson(6 * RNG.dirichlet(np.full(12, 0.3), 3)[RNG.integers(0, 3, 400)] + 0.01).astype(float)
COUNTS[:, 0] += 3  # no document is empty
MODELS = {
    "SphericalMixture": (SphericalMixture(3, max_iter=5), "means_", GROUPS),
    "TopicModel": (TopicModel(3, max_iter=3), "components_", COUNTS),
    "SparsePCA": (SparsePCA(2, threshold=0.1), "components_", GROUPS),
    "StreamingSparsePCA": (StreamingSparsePCA(2, threshold=0.1), "components_", GROUPS),
    "RotatedPCA": (RotatedPCA(2), "loadings_", GROUPS),
    "ICA": (ICA(), "components_", SIGNALS),
    "JADE": (JADE(), "components_", SIGNALS),
    "SOBI": (SOBI(lags=5), "components_", SIGNALS),
}
PLACES = {frozenset(): "no", frozenset({"memory"}): "in memory", frozenset({"memory", "disk"}): "not on Dask"}


def documented() -> dict[str, dict[str, str]]:
    """The table, by estimator and column."""
    lines = re.findall(r"^\|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.M)
    rows = [[cell.strip().strip("`") for cell in line.split("|")] for line in lines]
    start = next(number for number, row in enumerate(rows) if row[-1] == "merge")
    return {row[0]: dict(zip(rows[start][1:], row[1:])) for row in rows[start + 2 : start + 2 + len(MODELS)]}


def placed(X: Any, place: str, folder: Path) -> Any:
    """The rows in a place."""
    step = X.shape[0] // 3
    if place == "memory":
        return X
    if place == "Dask":
        rows = X.toarray() if sparse.issparse(X) else X
        chunks = da.from_array(rows, chunks=(step, -1))
        return (
            chunks.map_blocks(sparse.csr_matrix, meta=sparse.csr_matrix((0, 0))) if rows is not X else chunks
        )
    if sparse.issparse(X):
        return [X[start : start + step] for start in range(0, X.shape[0], step)]
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def matched(model: Any, attribute: str, expected: np.ndarray) -> float:
    """The largest difference of a model from another, whose rows may have another order, in units of the largest entry."""
    found = getattr(model, attribute)
    costs = np.abs(expected[:, None] - found[None]).max(axis=2)
    return float(costs[linear_sum_assignment(costs)].max() / np.abs(expected).max())


def taken(name: str, folder: Path, X: Any, expected: np.ndarray, tolerance: float, **given: Any) -> str:
    """Where a fit takes the rows, and what else is given, in the words of the table."""
    model, attribute, _ = MODELS[name]
    places = set()
    for place in ("memory", "disk", "Dask"):
        other = type(model)(**{**model.get_params(), **given.get("parameters", {})})
        try:
            other.fit(placed(X, place, folder), **given.get("arguments", {}))
        except (TypeError, ValueError, AttributeError):
            continue
        assert matched(other, attribute, expected) < tolerance, place
        places.add(place)
    return PLACES.get(frozenset(places), "yes")


def weights(name: str, folder: Path, expected: np.ndarray) -> str:
    model, attribute, X = MODELS[name]
    if "sample_weight" not in inspect.signature(model.fit).parameters:
        return "no"
    twice = np.concatenate((X, X[: len(X) // 2]))
    known = getattr(type(model)(**model.get_params()).fit(twice), attribute)
    often = np.where(np.arange(len(X)) < len(X) // 2, 2.0, 1.0)
    return taken(name, folder, X, known, 0.02, arguments={"sample_weight": often})


def missing(name: str, folder: Path, expected: np.ndarray) -> str:
    model, _, X = MODELS[name]
    holed = X.copy()
    holed[5, 1] = np.nan
    parameters = {"missing": "em"} if "missing" in model.get_params() else {}
    return taken(name, folder, holed, expected, 0.1, parameters=parameters)


def sparse_rows(name: str, folder: Path, expected: np.ndarray) -> str:
    return taken(name, folder, sparse.csr_matrix(MODELS[name][2]), expected, 1e-4)


def single(name: str, folder: Path, expected: np.ndarray) -> str:
    model, attribute, X = MODELS[name]
    found = type(model)(**model.get_params()).fit(X.astype(np.float32))
    assert matched(found, attribute, expected) < 1e-3
    return str(getattr(found, attribute).dtype)


class Blocks:
    """Rows in blocks that are made when they are read; `most` is how many were there at one time of the last pass."""

    def __init__(self, X: np.ndarray, number: int) -> None:
        self.X, self.number = X, number

    def __iter__(self):
        made, self.most = [], 0
        for part in np.array_split(self.X, self.number):
            block = part.copy()
            made.append(weakref.ref(block))
            self.most = max(self.most, sum(reference() is not None for reference in made))
            yield block


def on_disk(name: str, folder: Path, expected: np.ndarray) -> str:
    model, attribute, X = MODELS[name]
    blocks = Blocks(X, 6)
    found = type(model)(**model.get_params()).fit(blocks)
    assert matched(found, attribute, expected) < 1e-4
    assert taken(name, folder, X, expected, 1e-4) in ("yes", "not on Dask")
    return "read whole" if blocks.most == blocks.number else "in blocks"


def on_dask(name: str, folder: Path, expected: np.ndarray) -> str:
    return "yes" if taken(name, folder, MODELS[name][2], expected, 1e-4) == "yes" else "no"


def partly(name: str, folder: Path, expected: np.ndarray) -> str:
    model, attribute, X = MODELS[name]
    if not hasattr(model, "partial_fit"):
        return "no"
    other = type(model)(**model.get_params())
    for part in np.array_split(X, 4):
        other.partial_fit(part)
    assert matched(other, attribute, expected) < 0.5
    return "yes"


def merged(name: str, folder: Path, expected: np.ndarray) -> str:
    model, attribute, X = MODELS[name]
    if not hasattr(model, "merge"):
        return "no"
    half = len(X) // 2
    basis = {"basis_samples": 60}
    parameters = {key: value for key, value in basis.items() if key in model.get_params()}
    one = type(model)(**{**model.get_params(), **parameters}).partial_fit(X[:half])
    two = one.sibling() if hasattr(one, "sibling") else type(model)(**model.get_params())
    one.merge(two.partial_fit(X[half:]))
    assert matched(one, attribute, expected) < 0.5
    return "yes"


PROBES = {
    "weights": weights,
    "missing values": missing,
    "sparse": sparse_rows,
    "float32": single,
    "disk": on_disk,
    "Dask": on_dask,
    "partial_fit": partly,
    "merge": merged,
}


def test_the_table_has_a_row_for_each_estimator():
    table = documented()
    assert list(table) == list(MODELS)
    assert all(list(row) == list(PROBES) for row in table.values())


@pytest.mark.filterwarnings("ignore")  # of fits to so little data
@pytest.mark.parametrize("name", MODELS)
def test_the_table_says_what_an_estimator_takes(name, tmp_path):
    model, attribute, X = MODELS[name]
    with dask.config.set(scheduler="synchronous"):
        expected = np.asarray(getattr(type(model)(**model.get_params()).fit(X), attribute))
        found = {column: probe(name, tmp_path, expected) for column, probe in PROBES.items()}
    assert found == documented()[name]
