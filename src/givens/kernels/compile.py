"""How the compiled code is compiled: cached on disk where that is possible, without the GIL, NaN kept.

The cache (see `cache`) is stamped with this whole folder, so that its files may share helpers. It is built on numba's
internals; where a version of numba has changed them, an entry is cached by numba's own rule, which knows the entry's file only,
and therefore only if it calls nothing of another file.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from givens.kernels.cache_warnings import is_kept, warn_not_kept

# Numba makes some hundred thousand objects that stay for good. Looking through them for garbage, again and again while they
# are being made, would be a seventh of what the first call of a process takes.
_collecting = gc.isenabled()
gc.disable()
try:
    import numba
    from numba.core import event
    from numba.core.caching import NullCache
    from numba.core.registry import cpu_target

    # What the first call of a compiled function would do.
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
finally:
    if _collecting:
        gc.enable()

# Not `fastmath=True`: that assumes there is no NaN, and the checks for it would be compiled away.
FASTMATH = {"reassoc", "contract", "nsz"}

try:
    from givens.kernels.cache import FolderCache
except ImportError:
    FolderCache = None  # type: ignore[assignment,misc]


def kernel(function: Callable) -> Any:
    """Compile an entry, cached on disk if a cache folder can be written."""
    compiled = numba.njit(nogil=True, fastmath=FASTMATH)(function)
    if not hasattr(compiled, "enable_caching"):  # NUMBA_DISABLE_JIT: plain Python
        return compiled
    try:
        _cache(compiled)
    except (RuntimeError, OSError) as error:
        # numba says "cannot cache function ...: no locator available" when neither the package's own folder nor the
        # user's cache folder is writable.
        warn_not_kept(f"there is no folder to keep compiled code in ({error})")
    return compiled


def _cache(compiled: Any) -> None:
    if FolderCache is not None:
        try:
            compiled._cache = FolderCache(compiled.py_func)
            return
        except (AttributeError, TypeError):  # as above: other internals
            pass
    if is_complete(compiled.py_func):
        compiled.enable_caching()


def is_complete(function: Callable) -> bool:
    """Whether a function's file imports no compiled code of another one."""
    return not any(
        getattr(value, "__module__", function.__module__) != function.__module__
        for value in function.__globals__.values()
        if hasattr(value, "py_func")
    )


def inline(function: Callable) -> Any:
    """Compile a helper for entries, of this file or another, which LLVM writes out in each of them.

    In all of them: a helper that is called instead is linked by its name. A process that has just compiled it finds another
    body of that name than one that loads entries from the cache, optimised differently, and results differ in their last bits.

    Not numba's `inline="always"`: code written out before types are known is typed and optimised once per call, and sparse
    PCA's first fit took twice as long to compile, for the same speed.
    """
    return numba.njit(nogil=True, fastmath=FASTMATH, forceinline=True)(function)


def bound(function: Callable) -> Any:
    """Compile a user's function, or an entry closed over one: once per process, not cached."""
    return numba.njit(nogil=True, fastmath=FASTMATH)(function)


class _Timer(event.TimingListener):
    """Times what is compiled, and tells when that begins."""

    def __init__(self, begun: Callable[[bool], None]) -> None:
        super().__init__()
        self.begun: Callable[[bool], None] | None = begun

    def on_start(self, happening: Any) -> None:
        super().on_start(happening)
        if self.begun is not None:
            begun, self.begun = self.begun, None
            cached = not isinstance(happening.data["dispatcher"]._cache, NullCache)
            begun(cached and is_kept())


@contextmanager
def compiling(begun: Callable[[bool], None]) -> Iterator[Callable[[], float]]:
    """Yield a function that says for how many seconds code has been compiled since: what a machine's first run takes longer.

    `begun` is called once, if anything is compiled at all; its argument is whether compiled code is kept for later runs.
    """
    with event.install_listener("numba:compile", _Timer(begun)) as timer:
        yield lambda: float(timer.duration) if timer.done else 0.0
