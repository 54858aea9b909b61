"""Recordings in MNE-Python: independent components as an `mne.preprocessing.ICA`, and files that MNE reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from givens.support.imports import lazy_names

if TYPE_CHECKING:
    from givens.mne.decomposition import fit

__all__ = ["fit"]

__getattr__, __dir__ = lazy_names(__name__, {"fit": "givens.mne.decomposition"})
