"""Factor rotation: loadings turned to simple structure, or towards a target, and solutions compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from givens.support.imports import lazy_names

if TYPE_CHECKING:
    from givens.factors.compare import align, congruence, target_rotation

__all__ = ["align", "congruence", "target_rotation"]

__getattr__, __dir__ = lazy_names(__name__, dict.fromkeys(__all__, "givens.factors.compare"))
