"""What users are told of compiled code that can not be kept or read: once in a process."""

from __future__ import annotations

import warnings

_told: set[str] = set()


def warn_damaged(folder: str, reason: str) -> None:
    """Warn of files that can not be read."""
    _warn_once(
        "damaged",
        f"compiled code in {folder} is damaged ({reason}), so it is compiled and written again; if this warning comes back, "
        "delete that folder",
    )


def warn_not_kept(reason: str) -> None:
    """Warn that compiled code does not outlive the process."""
    _warn_once(
        "not kept",
        f"{reason}, so it is compiled anew in every process; delete what fills the disk, or set NUMBA_CACHE_DIR to a folder that "
        "you can write to",
    )


def is_kept() -> bool:
    """Whether compiled code is kept for later processes, as far as is known by now."""
    return "not kept" not in _told


def _warn_once(subject: str, text: str) -> None:
    if subject not in _told:
        _told.add(subject)
        warnings.warn(text, UserWarning, stacklevel=3)
