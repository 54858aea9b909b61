"""Factor rotation: loadings turned to simple structure, or towards a target, and solutions compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from givens.support.imports import lazy_names

if TYPE_CHECKING:
    from givens.factors.compare import align, congruence, target_rotation
    from givens.factors.criteria import METHODS, kappa_of, orthomax
    from givens.factors.factor_rotation import FactorRotation
    from givens.factors.rotated_pca import RotatedPCA

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
    "METHODS": "givens.factors.criteria",
    "FactorRotation": "givens.factors.factor_rotation",
    "RotatedPCA": "givens.factors.rotated_pca",
    "align": "givens.factors.compare",
    "congruence": "givens.factors.compare",
    "kappa_of": "givens.factors.criteria",
    "orthomax": "givens.factors.criteria",
    "target_rotation": "givens.factors.compare",
}


__getattr__, __dir__ = lazy_names(__name__, _HOMES)
