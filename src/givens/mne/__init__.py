"""Recordings in MNE-Python: independent components as an `mne.preprocessing.ICA`, and files that MNE reads."""

from givens.mne.decomposition import fit

__all__ = ["fit"]
