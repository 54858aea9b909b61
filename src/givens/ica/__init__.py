"""Independent components by contrasts, fourth-order cumulants or lagged covariances, and joint diagonalisation."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from givens.support.imports import lazy_names

if TYPE_CHECKING:
    from givens.ica.diagonalize import joint_diagonalize
    from givens.ica.estimator import ICA
    from givens.ica.jade import JADE, cumulant_matrices
    from givens.ica.separation import SourceSeparation, amari_error
    from givens.ica.sobi import SOBI, lagged_covariances
    from givens.ica.whitening import Whitened, whiten_samples

__all__ = [
    "ICA",
    "JADE",
    "SOBI",
    "SourceSeparation",
    "Whitened",
    "amari_error",
    "cumulant_matrices",
    "joint_diagonalize",
    "lagged_covariances",
    "whiten_samples",
]

_HOMES = {
    "ICA": "givens.ica.estimator",
    "JADE": "givens.ica.jade",
    "SOBI": "givens.ica.sobi",
    "SourceSeparation": "givens.ica.separation",
    "Whitened": "givens.ica.whitening",
    "amari_error": "givens.ica.separation",
    "cumulant_matrices": "givens.ica.jade",
    "joint_diagonalize": "givens.ica.diagonalize",
    "lagged_covariances": "givens.ica.sobi",
    "whiten_samples": "givens.ica.whitening",
}


__getattr__, __dir__ = lazy_names(__name__, _HOMES)


class _Room(ModuleType):
    """Makes the package callable: `givens.ica(X)` is `givens.ica.solver.ica(X)`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from givens.ica.solver import ica

        return ica(*args, **kwargs)


sys.modules[__name__].__class__ = _Room
