"""The one place where the golden fits call `givens`: the names of its arguments and attributes, and a value for every argument.

When the API changes, `RENAMED` and the outcomes below change, and neither the cases nor their references do.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import givens
from givens import objectives
from tests.ica.sources import OWN, picard


def _threshold(old_name: str, name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A threshold of sparse PCA, whose number and penalty were arguments of their own."""
    return lambda old: {name: None if old[old_name] is None else (old["penalty"], old[old_name])}


def _counts(old: dict[str, Any]) -> dict[str, Any]:
    total = old.get("n_nonzero_total")
    return {"n_nonzero": old["n_nonzero"] if total is None else ("total", total)}


SQUARED = {"tol": lambda old: {"tol": math.sqrt(old["tol"])}}
SPARSE = {
    "max_sweeps": "max_iter", "progress": None, "alpha": _threshold("alpha", "threshold"), "gamma": None, "penalty": None,
    "n_nonzero": _counts, "n_nonzero_total": None, **SQUARED,
}  # fmt: skip
RENAMED: dict[str, dict[str, str | Callable[[dict[str, Any]], dict[str, Any]] | None]] = {
    "SparsePCA": {**SPARSE, "warm_start": None},
    "StreamingSparsePCA": {**SPARSE, "gamma": _threshold("gamma", "gamma")},
    "ICA": {"max_steps": "max_iter", "progress": None},
    "JADE": {"max_sweeps": "max_iter"},
    "SOBI": {"max_sweeps": "max_iter"},
    "FactorRotation": {"max_sweeps": "max_iter", "progress": None, **SQUARED},
    "RotatedPCA": {"max_sweeps": "max_iter", "progress": None, **SQUARED},
    "SphericalMixture": {"refine_em": "max_iter", "basis_rank": None, "progress": None, **SQUARED},
    "TopicModel": {
        "n_topics": "n_components",
        "refine": "max_iter",
        "basis_rank": None,
        "basis_documents": "basis_samples",
        "progress": None,
        **SQUARED,
    },
    "decompose": {"max_sweeps": "max_iter", **SQUARED},
    "sparse_pca_path": {
        "max_sweeps": "max_iter",
        "alphas": "thresholds",
        "n_alphas": "n_thresholds",
        **SQUARED,
    },
}
"""Call → {argument as written here: its name in the library}; None for an argument that is gone, which cases must not set unless
another takes it in; or a function from all arguments as written here to the library's."""

ARGUMENTS: dict[str, dict[str, Any]] = {
    "SparsePCA": {
        "n_components": None, "gamma": None, "alpha": None, "n_nonzero": None, "n_nonzero_total": None,
        "penalty": "l1", "refit": True, "scale": False, "tol": 1e-13, "max_sweeps": 2000, "n_starts": 1,
        "schedule": None, "missing": None, "stability": None, "warm_start": False, "threads": 1,
        "random_state": 0, "progress": False,
    },
    "StreamingSparsePCA": {
        "n_components": None, "gamma": None, "gamma_grows": True, "alpha": None, "n_nonzero": None,
        "penalty": "l1", "refit": True, "scale": False, "drop": "frequent", "oversample": None,
        "inner_rotations": None, "forgetting": 1.0, "stop_after": None, "tol": 1e-13, "max_sweeps": 2000,
        "n_starts": 1, "missing": None, "warm_start": False, "threads": 1, "random_state": 0,
        "progress": False,
    },
    "ICA": {
        "n_components": None, "contrast": "adaptive", "whiten": "unit-variance", "tol": 1e-8,
        "max_steps": 1000, "w_init": None, "n_starts": 1, "stability": 0, "certify": False, "threads": 1,
        "random_state": 0, "progress": False,
    },
    "ica": {
        "n_components": None, "contrast": "adaptive", "whiten": True, "tol": 1e-8, "max_iter": 1000, "w_init": None, "threads": 1,
    },
    "JADE": {"n_components": None, "tol": 1e-7, "max_sweeps": 200, "threads": 1},
    "SOBI": {"n_components": None, "lags": None, "tol": 1e-7, "max_sweeps": 200, "threads": 1},
    "FactorRotation": {
        "method": "varimax", "normalize": True, "target": None, "decomposition": None, "n_starts": 1,
        "tol": 1e-14, "max_sweeps": 500, "threads": 1, "random_state": 0, "progress": False,
    },
    "RotatedPCA": {
        "n_components": None, "method": "varimax", "normalize": True, "scale": False, "svd_solver": "auto",
        "n_starts": 1, "tol": 1e-14, "max_sweeps": 500, "threads": 1, "random_state": 0, "progress": False,
    },
    "SphericalMixture": {
        "n_components": 1, "variance": "common", "refine_em": 1000, "n_starts": 21, "tol": 1e-12,
        "basis_rank": None, "basis_samples": 300, "threads": 1, "random_state": 0, "progress": False,
    },
    "TopicModel": {
        "n_topics": 3, "alpha0": None, "refine": 10, "max_doc_update_iter": 5, "topic_word_prior": 0.05,
        "tol": 1e-4, "counts": "whole", "vocabulary": None, "basis_rank": None, "basis_documents": 150,
        "threads": 1, "random_state": 0, "progress": False,
    },
    "minimize": {
        "start": None, "n": None, "jac": None, "hess": None, "method": None, "tol": 1e-9, "max_iter": 10_000,
        "certify": None, "determinant": None, "n_starts": 1, "threads": 1, "random_state": 0, "callback": None,
        "checkpoint": None,
    },
    "decompose": {
        "rank": None, "start": None, "n_starts": 1, "symmetrize": False, "schedule": None,
        "tol": 1e-9, "max_sweeps": 200, "threads": 1, "random_state": 0,
    },
    "joint_diagonalize": {
        "start": None, "sample_weight": None, "tol": 1e-9, "max_iter": 200, "certify": False, "threads": 1,
        "return_result": False,
    },
    "sparse_pca_path": {"n_components": 3, "alphas": None, "n_alphas": 4, "penalty": "l1"},
}  # fmt: skip
"""Every argument of every call, apart from the data: a changed default is not a changed fit."""


def library(call: str) -> Callable[..., Any]:
    """What the library calls it."""
    return picard if call == "ica" else getattr(givens, call)


def arguments(call: str, given: dict[str, Any]) -> dict[str, Any]:
    """All arguments of a call, by the names that the library has for them."""
    renamed = RENAMED.get(call, {})
    joined = {"gamma", "penalty", "n_nonzero_total"}  # into the threshold or the counts
    gone = {name for name, present in renamed.items() if present is None} - joined
    assert not gone & set(given), f"{call} no longer has {gone & set(given)}: leave such fits out"
    present: dict[str, Any] = {}
    old = {**ARGUMENTS[call], **given}
    for name, value in old.items():
        new = renamed.get(name, name)
        if new is not None:
            present |= new(old) if callable(new) else {new: value}
    return present


OBJECTIVES: dict[str, Callable[..., Any]] = {
    "orthomax": lambda A, kappa, **options: objectives.Columns(A, objectives.Orthomax(kappa), **options),
    "kurtosis": lambda A, sign, **options: objectives.Columns(A, objectives.Kurtosis(sign), **options),
    "logcosh": lambda A, signs=None, **options: objectives.Columns(A, objectives.LogCosh(signs), **options),
    "exp": lambda A, signs=None, **options: objectives.Columns(A, objectives.Exp(signs), **options),
    "scalar": lambda A, **options: objectives.Columns(A, OWN, **options),
    "sparse": lambda A, gamma, penalty, active=None: objectives.SparseColumns(A, gamma, penalty, active),
    "joint": lambda stack: objectives.JointDiagonal(stack),
    "tensor": lambda T, rank=None: objectives.SymmetricTensor(T, rank, symmetrize=False),
    "moments": lambda parts, rank=None: objectives.MomentTensor(*parts, rank),
    "function": lambda data, f: lambda U: f(data, U),
}

Outcome = dict[str, np.ndarray]
"""What a fit found; the first axis of each array is that of the components."""


def run(call: str, how: str, X: Any, given: dict[str, Any], **fitting: Any) -> Outcome:
    """Call the library on X and return what it found, with what `transform` makes of X."""
    if call == "minimize":
        return _minimized(X, given)
    every = arguments(call, given)
    if call == "ica":
        K, W, Y = library(call)(X.T, **every)
        return {"components": W @ K, "scores": Y}
    if call == "decompose":
        found = library(call)(X, **every)
        return {"components": found.factors.T, "weights": found.weights}
    if call == "joint_diagonalize":
        V, D = library(call)(X, **every)
        return {"components": V, "diagonals": np.diagonal(D, axis1=1, axis2=2).T}
    if call == "sparse_pca_path":
        path = library(call)(X, **every)
        return {
            "components": path.components,
            "gamma": path.gammas,
            "variance": path.explained_variance_ratio,
        }
    model = library(call)(**every)
    return OUTCOMES[call](HOW[how](model, X, fitting), X)


def _minimized(X: Any, given: dict[str, Any]) -> Outcome:
    given = dict(given)
    name, options = given.pop("objective"), given.pop("options", {})
    for former in {"phases", "schedule"} & set(given):
        given["method"] = given.pop(former)
    if "m" in given:
        given["n"] = (given["n"], given.pop("m"))
    given.pop("coarse", None)  # no fit has a start, so all begin on samples where there are any
    if "jac" in given:
        gradient = given["jac"]
        given["jac"] = lambda U: gradient(X, U)
    objective = OBJECTIVES[name](X, **options)
    found = library("minimize")(objective, **arguments("minimize", given))
    active = getattr(objective, "active", found.U.shape[1])
    return {"components": found.U[:, :active].T}


def _in_batches(model: Any, X: Any, fitting: dict[str, Any]) -> Any:
    parts = {name: _batches(value, 3) for name, value in fitting.items()}
    for k, batch in enumerate(_batches(X, 3)):
        model.partial_fit(batch, **{name: part[k] for name, part in parts.items()})
    return model


def _merged(model: Any, X: Any, fitting: dict[str, Any]) -> Any:
    split = 2 * X.shape[0] // 3
    first, second = X[:split], X[split:]  # not halves, for which the weights of the two parts may be swapped
    # A model of moments needs the axes of the first one, a stream does not.
    model.partial_fit(first, **fitting)
    other = (
        model.sibling() if hasattr(model, "sibling") else library(type(model).__name__)(**model.get_params())
    )
    return model.merge(other.partial_fit(second, **fitting))


def _batches(X: Any, number: int) -> list[Any]:
    edges = np.linspace(0, X.shape[0], number + 1).astype(int)
    return [X[start:stop] for start, stop in itertools.pairwise(edges)]


HOW: dict[str, Callable[[Any, Any, dict[str, Any]], Any]] = {
    "fit": lambda model, X, fitting: model.fit(X, **fitting),
    "partial_fit": _in_batches,
    "merge": _merged,
}


def _scores(model: Any, X: Any) -> np.ndarray:
    return np.asarray(model.transform(X)).T


def _sparse(model: Any, X: Any) -> Outcome:
    variance = model.explained_variance_ratio_
    scores = _scores(model, X)
    return {"components": model.components_, "gamma": model.gamma_, "variance": variance, "scores": scores}


def _separated(model: Any, X: Any) -> Outcome:
    return {"components": model.components_, "mixing": model.mixing_.T, "scores": _scores(model, X)}


def _rotated_pca(model: Any, X: Any) -> Outcome:
    variance = model.explained_variance_ratio_
    return {"components": model.components_, "variance": variance, "scores": _scores(model, X)}


OUTCOMES: dict[str, Callable[[Any, Any], Outcome]] = {
    "SparsePCA": _sparse,
    "StreamingSparsePCA": _sparse,
    "ICA": _separated,
    "JADE": _separated,
    "SOBI": _separated,
    "FactorRotation": lambda model, X: {
        "components": model.loadings_.T,
        "variance": model.explained_variance_,
    },
    "RotatedPCA": _rotated_pca,
    "SphericalMixture": lambda model, X: {
        "components": model.means_,
        "weights": model.weights_,
        "variances": model.variances_,
    },
    "TopicModel": lambda model, X: {
        "components": model.components_ / model.components_.sum(axis=1, keepdims=True),
        "alpha": model.alpha_,
        "weights": model.weights_,
    },
}
