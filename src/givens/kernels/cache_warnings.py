"""Warnings about compiled code that cannot be saved or read, each given once per process."""

from __future__ import annotations

import warnings

_told: set[str] = set()


def warn_damaged(folder: str, reason: str) -> None:
    """Warn that files cannot be read."""
    _warn_once(
        "damaged",
        f"compiled code in {folder} is damaged ({reason}), so it is compiled and written again; if this warning comes back, "
        "delete that folder",
    )


def warn_not_kept(reason: str) -> None:
    """Warn that compiled code is not saved for later processes."""
    _warn_once(
        "not kept",
        f"{reason}, so it is compiled again in every process; free space on the disk, or set NUMBA_CACHE_DIR to a folder that "
        "you can write to",
    )


def is_kept() -> bool:
    """Whether compiled code is saved for later processes, as far as is known yet."""
    return "not kept" not in _told


def _warn_once(subject: str, text: str) -> None:
    if subject not in _told:
        _told.add(subject)
        warnings.warn(text, UserWarning, stacklevel=3)
