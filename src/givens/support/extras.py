"""Optional packages, imported when they are used and not before."""

from __future__ import annotations

import importlib
from types import ModuleType


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"this needs {package}, which is not installed; install it with: pip install 'givens[{extra}]'"
        ) from error
