"""Optimisation over orthogonal matrices by Givens rotations and descent, with estimators for data analysis.

The names below are imported when they are first used: `import givens` loads neither numba nor the estimators.
"""

from __future__ import annotations

from givens.support.imports import TYPE_CHECKING, lazy_names

__version__ = "0.2.0"

_HOMES = {
    "ICA": "givens.ica.estimator",
    "JADE": "givens.ica.jade",
    "SOBI": "givens.ica.sobi",
    "Checkpoint": "givens.solve.checkpoint",
    "FactorRotation": "givens.factors.factor_rotation",
    "Result": "givens.result",
    "RotatedPCA": "givens.factors.rotated_pca",
    "SparsePCA": "givens.sparse_pca.estimator",
    "SphericalMixture": "givens.mixtures.estimator",
    "Stop": "givens.result",
    "StreamingSparsePCA": "givens.streaming.estimator",
    "TopicModel": "givens.topics.estimator",
    "anndata": "givens.anndata",
    "autodiff": "givens.autodiff",
    "check_objective": "givens.checks",
    "datasets": "givens.datasets",
    "decompose": "givens.tensors.decompose",
    "factors": "givens.factors",
    "joint_diagonalize": "givens.ica.diagonalize",
    "metrics": "givens.metrics",
    "minimize": "givens.solve.minimize",
    "mne": "givens.mne",
    "objectives": "givens.objectives",
    "plotting": "givens.plotting",
    "progress": "givens.support.progress",
    "rotations": "givens.rotations",
    "schedules": "givens.schedules",
    "sparse_pca_path": "givens.sparse_pca.path",
}

if TYPE_CHECKING:
    from givens import (
        anndata,
        autodiff,
        datasets,
        factors,
        metrics,
        mne,
        objectives,
        plotting,
        rotations,
        schedules,
    )
    from givens.checks import check_objective
    from givens.factors.factor_rotation import FactorRotation
    from givens.factors.rotated_pca import RotatedPCA
    from givens.ica.diagonalize import joint_diagonalize
    from givens.ica.estimator import ICA
    from givens.ica.jade import JADE
    from givens.ica.sobi import SOBI
    from givens.mixtures.estimator import SphericalMixture
    from givens.result import Result, Stop
    from givens.solve.checkpoint import Checkpoint
    from givens.solve.minimize import minimize
    from givens.sparse_pca.estimator import SparsePCA
    from givens.sparse_pca.path import sparse_pca_path
    from givens.streaming.estimator import StreamingSparsePCA
    from givens.support.progress import progress
    from givens.tensors.decompose import decompose
    from givens.topics.estimator import TopicModel

__all__ = [
    "ICA",
    "JADE",
    "SOBI",
    "Checkpoint",
    "FactorRotation",
    "Result",
    "RotatedPCA",
    "SparsePCA",
    "SphericalMixture",
    "Stop",
    "StreamingSparsePCA",
    "TopicModel",
    "anndata",
    "autodiff",
    "check_objective",
    "datasets",
    "decompose",
    "factors",
    "joint_diagonalize",
    "metrics",
    "minimize",
    "mne",
    "objectives",
    "plotting",
    "progress",
    "rotations",
    "schedules",
    "sparse_pca_path",
]


__getattr__, __dir__ = lazy_names(__name__, _HOMES)
