"""Optimise over orthogonal matrices, one exact Givens rotation at a time.

The names below are imported when they are first used: `import givens` loads neither numba nor the estimators.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Checkpoint": "givens.checkpoint",
    "Decomposition": "givens.decompose",
    "Result": "givens.result",
    "SparsePCA": "givens.estimators.sparse_pca",
    "SphericalMixture": "givens.estimators.mixture",
    "StreamingSparsePCA": "givens.estimators.streaming",
    "check_objective": "givens.checks",
    "decompose": "givens.decompose",
    "minimize": "givens.minimize",
    "sparse_pca_path": "givens.path",
}
_MODULES = (
    "anndata",
    "baselines",
    "datasets",
    "io",
    "loadings",
    "metrics",
    "moments",
    "objectives",
    "plotting",
    "report",
    "rotations",
    "rows",
    "schedules",
    "searches",
)

if TYPE_CHECKING:
    from givens import (
        anndata,
        baselines,
        datasets,
        io,
        loadings,
        metrics,
        moments,
        objectives,
        plotting,
        report,
        rotations,
        rows,
        schedules,
        searches,
    )
    from givens.checkpoint import Checkpoint
    from givens.checks import check_objective
    from givens.decompose import Decomposition, decompose
    from givens.estimators.mixture import SphericalMixture
    from givens.estimators.sparse_pca import SparsePCA
    from givens.estimators.streaming import StreamingSparsePCA
    from givens.minimize import minimize
    from givens.path import sparse_pca_path
    from givens.result import Result

__all__ = [
    "Checkpoint",
    "Decomposition",
    "Result",
    "SparsePCA",
    "SphericalMixture",
    "StreamingSparsePCA",
    "anndata",
    "baselines",
    "check_objective",
    "datasets",
    "decompose",
    "io",
    "loadings",
    "metrics",
    "minimize",
    "moments",
    "objectives",
    "plotting",
    "report",
    "rotations",
    "rows",
    "schedules",
    "searches",
    "sparse_pca_path",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"givens.{name}")
    else:
        raise AttributeError(f"module 'givens' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


class _Package(ModuleType):
    """Keeps `givens.minimize` the function: importing the module of that name would put the module in its place."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
