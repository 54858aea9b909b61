"""Optimisation over orthogonal matrices by Givens rotations and descent, with estimators for data analysis.

The names below are imported when they are first used: `import givens` loads neither numba nor the estimators.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

# As in `typing`, whose import would take most of the time in which Ctrl-C ends the command with Python's own traceback.
TYPE_CHECKING = False

__version__ = "0.2.0"

_HOMES = {
    "ICA": "givens.ica.estimator",
    "Checkpoint": "givens.solve.checkpoint",
    "Decomposition": "givens.tensors.decompose",
    "FactorRotation": "givens.factors.factor_rotation",
    "JADE": "givens.ica.jade",
    "Result": "givens.result",
    "RotatedPCA": "givens.factors.rotated_pca",
    "SOBI": "givens.ica.sobi",
    "SparsePCA": "givens.sparse_pca.estimator",
    "SphericalMixture": "givens.mixtures.estimator",
    "StreamingSparsePCA": "givens.streaming.estimator",
    "TopicModel": "givens.topics.estimator",
    "check_objective": "givens.checks",
    "decompose": "givens.tensors.decompose",
    "joint_diagonalize": "givens.ica.diagonalize",
    "minimize": "givens.solve.minimize",
    "progress": "givens.support.progress",
    "sparse_pca_path": "givens.sparse_pca.path",
}
_MODULES = {
    "anndata": "givens.anndata",
    "autodiff": "givens.autodiff",
    "datasets": "givens.datasets",
    "factors": "givens.factors",
    "ica": "givens.ica",
    "loadings": "givens.sparse_pca.loadings",
    "metrics": "givens.metrics",
    "mne": "givens.mne",
    "objectives": "givens.objectives",
    "plotting": "givens.plotting",
    "rotations": "givens.rotations",
    "rows": "givens.data.rows",
    "schedules": "givens.schedules",
}

if TYPE_CHECKING:
    from typing import Any

    from givens import (
        anndata,
        autodiff,
        datasets,
        factors,
        ica,
        metrics,
        objectives,
        plotting,
        rotations,
        schedules,
    )
    from givens.checks import check_objective
    from givens.data import rows
    from givens.factors.factor_rotation import FactorRotation
    from givens.factors.rotated_pca import RotatedPCA
    from givens.ica.diagonalize import joint_diagonalize
    from givens.ica.estimator import ICA
    from givens.ica.jade import JADE
    from givens.ica.sobi import SOBI
    from givens.mixtures.estimator import SphericalMixture
    from givens.result import Result
    from givens.solve.checkpoint import Checkpoint
    from givens.solve.minimize import minimize
    from givens.sparse_pca import loadings
    from givens.sparse_pca.estimator import SparsePCA
    from givens.sparse_pca.path import sparse_pca_path
    from givens.streaming.estimator import StreamingSparsePCA
    from givens.support.progress import progress
    from givens.tensors.decompose import Decomposition, decompose
    from givens.topics.estimator import TopicModel

__all__ = [
    "ICA",
    "JADE",
    "SOBI",
    "Checkpoint",
    "Decomposition",
    "FactorRotation",
    "Result",
    "RotatedPCA",
    "SparsePCA",
    "SphericalMixture",
    "StreamingSparsePCA",
    "TopicModel",
    "anndata",
    "autodiff",
    "check_objective",
    "datasets",
    "decompose",
    "factors",
    "ica",
    "joint_diagonalize",
    "loadings",
    "metrics",
    "minimize",
    "objectives",
    "plotting",
    "progress",
    "rotations",
    "rows",
    "schedules",
    "sparse_pca_path",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(_MODULES[name])
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
