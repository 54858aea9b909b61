"""The one place where the golden fits call `givens`, and read what it found."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import givens
from givens import objectives
from tests.ica.sources import OWN, picard

SETTINGS: dict[str, dict[str, Any]] = {
    "SparsePCA": {"tol": 3e-7, "max_iter": 2000, "threads": 1},
    "StreamingSparsePCA": {"tol": 3e-7, "max_iter": 2000, "threads": 1},
    "sparse_pca_path": {"tol": 3e-7, "max_iter": 2000, "threads": 1},
    "FactorRotation": {"tol": 1e-7, "threads": 1},
    "RotatedPCA": {"tol": 1e-7, "threads": 1},
    "ICA": {"threads": 1},
    "ica": {"contrast": "adaptive", "tol": 1e-8, "max_iter": 1000, "w_init": None, "threads": 1},
    "JADE": {"tol": 1e-7, "max_iter": 200, "threads": 1},
    "SOBI": {"tol": 1e-7, "max_iter": 200, "threads": 1},
    "SphericalMixture": {"tol": 1e-6, "max_iter": 1000, "basis_samples": 300, "threads": 1},
    "TopicModel": {"n_components": 3, "max_iter": 10, "basis_samples": 150, "threads": 1},
    "minimize": {"threads": 1},
    "decompose": {"tol": 3e-5, "max_iter": 200, "threads": 1},
    "joint_diagonalize": {"tol": 1e-9, "max_iter": 200, "threads": 1},
}
"""Call → what it is given unless a fit says otherwise: runs go on to the optimum, which they reach on one thread."""


def library(call: str) -> Callable[..., Any]:
    """What the library calls it."""
    return picard if call == "ica" else getattr(givens, call)


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
    every = SETTINGS[call] | given
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
    if "jac" in given:
        gradient = given["jac"]
        given["jac"] = lambda U: gradient(X, U)
    objective = OBJECTIVES[name](X, **options)
    found = library("minimize")(objective, **SETTINGS["minimize"] | given)
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
