"""Factor rotation: loadings turned to simple structure, or towards a target, and solutions compared."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from givens.rotation.compare import align, congruence, target_rotation
    from givens.rotation.criteria import METHODS, kappa_of, orthomax
    from givens.rotation.factor_rotation import FactorRotation
    from givens.rotation.rotated_pca import RotatedPCA

__all__ = [
    "METHODS",
    "FactorRotation",
    "RotatedPCA",
    "align",
    "congruence",
    "kappa_of",
    "orthomax",
    "target_rotation",
]

_HOMES = {
    "METHODS": "givens.rotation.criteria",
    "FactorRotation": "givens.rotation.factor_rotation",
    "RotatedPCA": "givens.rotation.rotated_pca",
    "align": "givens.rotation.compare",
    "congruence": "givens.rotation.compare",
    "kappa_of": "givens.rotation.criteria",
    "orthomax": "givens.rotation.criteria",
    "target_rotation": "givens.rotation.compare",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'givens.rotation' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
