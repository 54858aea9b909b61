"""Factor rotation: loadings turned to simple structure, or towards a target, and solutions compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from givens.support.imports import lazy_names

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


__getattr__, __dir__ = lazy_names(__name__, _HOMES)
