"""What may come out of a call: finite numbers, or one of the errors that a user can act on.

An error is the library's own where the innermost line of Python is a `raise` statement of the package. Anything else is a raw
exception: an error of NumPy, SciPy or pandas that got out, an IndexError, a LinAlgError.
"""

from __future__ import annotations

import dis
import os
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError

import givens

PACKAGE = str(Path(givens.__file__).parent) + os.sep
# scikit-learn's checks of data and parameters, and what its estimators say of methods that a setting takes away.
CHECKS = ("utils/validation.py", "utils/_param_validation.py", "utils/_available_if.py", "sklearn/base.py")


class Finding(Exception):
    """Something that must not happen: its kind, and the details."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(kind, detail)
        self.kind, self.detail = kind, detail


def raised_by_package(trace: TracebackType | None) -> bool:
    """Whether the innermost frame is the package's own, at a `raise`."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not trace.tb_frame.f_code.co_filename.startswith(PACKAGE):
        return False
    opcode = trace.tb_frame.f_code.co_code[trace.tb_lasti]
    return dis.opname[opcode] == "RAISE_VARARGS"


def checked_by_scikit_learn(trace: TracebackType | None) -> bool:
    files = [frame.filename.replace(os.sep, "/") for frame in traceback.extract_tb(trace)]
    return any(file.endswith(CHECKS) for file in files)


def allowed(error: BaseException, file: str | None = None) -> bool:
    """Whether a user can act on this error; `file` is the name that an OSError has to mention."""
    if isinstance(error, NotFittedError):
        return True
    if isinstance(error, OSError):
        return file is not None and file in str(error)
    if isinstance(error, ValueError | TypeError) and str(error).strip():
        return raised_by_package(error.__traceback__) or checked_by_scikit_learn(error.__traceback__)
    # A method that this setting does not have, as scikit-learn says it.
    return isinstance(error, AttributeError) and checked_by_scikit_learn(error.__traceback__)


def judge(error: BaseException, file: str | None = None) -> None:
    """Raise a Finding unless the error is allowed."""
    if not allowed(error, file):
        lines = traceback.format_exception(error)
        raise Finding("raw exception", "".join(lines[-12:])) from error


def numbers(value: Any) -> list[np.ndarray]:
    """All arrays of real numbers in an outcome."""
    if isinstance(value, dict):
        return [array for item in value.values() for array in numbers(item)]
    if isinstance(value, list | tuple):
        return [array for item in value for array in numbers(item)]
    if sparse.issparse(value):
        return numbers(value.data) if value.format != "lil" and value.format != "dok" else []
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    if isinstance(value, float | np.floating | np.ndarray):
        array = np.asarray(value)
        return [array] if array.dtype.kind in "fc" else []
    return []


def finite(value: Any, what: str, overflow: bool = False) -> None:
    """Raise a Finding where an outcome holds NaN or infinity; with `overflow`, only where it holds NaN.

    Powers of large numbers may be infinite: the value of an objective, say, of data of size 1e200.
    """
    for array in numbers(value):
        bad = np.isnan(array) if overflow else ~np.isfinite(array)
        if bad.any():
            raise Finding("not finite", f"{what} has {int(bad.sum())} of {array.size} entries not finite")
