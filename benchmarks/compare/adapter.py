"""Rows are written in the vocabulary of version 0.2. Here it is translated for a tree that has other names.

A translation is made only where the tree does not know the old name, or shows that it has a new meaning. So the same rows run on
every version between.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class NewMeaning:
    """An argument that has kept its name and not its meaning, in trees whose function has the argument `beside` too."""

    beside: str
    value: Callable[[Any], Any]


# A new name; None for an argument that is gone; or the new arguments as a function of all old ones.
Translation = str | None | NewMeaning | Callable[[Mapping[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Vocabulary:
    """What is called differently now, by its old name.

    Attributes:
        names: Functions and classes of `givens` and `givens.objectives`: "decompose" to "tensors.decompose".
        arguments: For each function or class, by its old name, its arguments.
        attributes: Attributes of fitted models and results: "components_" to "loadings_".
        options: For each command, its options: "--components" to "--rank".
    """

    names: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, Mapping[str, Translation]] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def _threshold(old: Mapping[str, Any]) -> dict[str, Any]:
    """The number and the penalty, which were arguments of their own."""
    return {"threshold": (old.get("penalty", "l1"), old["alpha"])}


_SWEEPS = {"max_sweeps": "max_iter"}
_SPARSITY: dict[str, Translation] = {
    **_SWEEPS,
    "tol": NewMeaning("threshold", math.sqrt),
    "alpha": _threshold,
    "penalty": None,
    "n_nonzero_total": lambda old: {"n_nonzero": ("total", old["n_nonzero_total"])},
}
_SHARE = {"tol": NewMeaning("max_iter", math.sqrt)}
_ROTATIONS = {**_SWEEPS, **_SHARE}
CHANGED = Vocabulary(
    arguments={
        "minimize": {"max_sweeps": None, **_SHARE},
        "SparsePCA": _SPARSITY,
        "StreamingSparsePCA": {
            **_SPARSITY,
            "drop": lambda old: {"sketch": ("algorithm 5", old["gamma"])},  # as printed
            **dict.fromkeys(("gamma", "gamma_grows", "oversample", "inner_rotations")),
        },
        **dict.fromkeys(("FactorRotation", "RotatedPCA", "JADE", "SOBI", "decompose"), _ROTATIONS),
        "joint_diagonalize": {"init": "start", "eps": "tol", "n_iter_max": "max_iter", "method": None},
        "ICA": {"max_steps": "max_iter"},
        "SphericalMixture": {"refine_em": "max_iter"},
        "TopicModel": {"n_topics": "n_components", "refine": "max_iter"},
    },
)


class Library:
    """The package as rows see it: `library.SparsePCA(10, alpha=0.1)`, `library.Columns(A, "varimax")`.

    With a switch ("module:name"), commands are run with it too.
    """

    def __init__(
        self, package: str = "givens", changed: Vocabulary = CHANGED, switch: str | None = None
    ) -> None:
        self._package, self._changed, self._switch = package, changed, switch

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        target = self._find(name)
        translations = self._changed.arguments.get(name, {})
        return functools.partial(_call, target, translations) if translations else target

    def read(self, model: Any, attribute: str) -> Any:
        """An attribute of a fitted model or a result."""
        known = hasattr(model, attribute)
        return getattr(model, attribute if known else self._changed.attributes.get(attribute, attribute))

    def command(self, name: str, *arguments: str) -> None:
        """Run `givens NAME ARGUMENTS` in a process of its own; an error ends the row."""
        options = self._changed.options.get(name, {})
        if options:
            known = self._run(name, "--help")
            arguments = tuple(text if text in known else options.get(text, text) for text in arguments)
        self._run(name, *arguments)

    def _find(self, name: str) -> Any:
        for place in (name, f"objectives.{name}", self._changed.names.get(name)):
            if place is None:
                continue
            module, _, leaf = f"{self._package}.{place}".rpartition(".")
            try:
                return getattr(importlib.import_module(module), leaf)
            except (ImportError, AttributeError):
                continue
        raise AttributeError(f"{self._package} has no {name!r}; if it has a new name, add it to adapter.py")

    def _run(self, *arguments: str) -> str:
        switched = ("-m", "benchmarks.compare.switch", self._switch) if self._switch else ("-m", "givens")
        command = [sys.executable, "-W", "ignore", *switched, *arguments]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def _call(
    target: Callable[..., Any], translations: Mapping[str, Translation], /, *values: Any, **options: Any
) -> Any:
    known = inspect.signature(target).parameters
    translated: dict[str, Any] = {}
    for name, value in options.items():
        new = translations.get(name, name)
        if isinstance(new, NewMeaning):
            translated[name] = new.value(value) if new.beside in known else value
        elif name in known or new == name:
            translated[name] = value
        elif isinstance(new, str):
            translated[new] = value
        elif new is not None:
            translated |= new(options)
    return target(*values, **translated)
