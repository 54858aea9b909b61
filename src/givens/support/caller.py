"""Warnings that point to the line of the user's program, however deep in the package they arise."""

from __future__ import annotations

import sys
import warnings

SKIPPED = ("givens", "sklearn")  # packages: scikit-learn wraps methods such as `fit_transform`


def warn_caller(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn as if the line that called this package, or scikit-learn with one of its estimators, had done so."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).split(".")[0] in SKIPPED:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
