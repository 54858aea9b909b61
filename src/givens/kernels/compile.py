"""Decorators that compile functions by numba: without the GIL, with correct NaN, and cached on disk where possible.

The cache (see `cache`) depends on the content of this whole folder, so that files can share helpers. It uses numba's internals.
If a version of numba has changed them, numba's own cache is used, for functions that call no compiled code of another file.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from givens.kernels.cache_warnings import is_kept, warn_not_kept

# Importing numba makes some hundred thousand permanent objects. Searching them for garbage, several times during the import,
# would take a seventh of the time of a process's first call.
_collecting = gc.isenabled()
gc.disable()
try:
    import numba
    from numba.core import event
    from numba.core.caching import NullCache
    from numba.core.registry import cpu_target

    # The first call of a compiled function would do this.
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
finally:
    if _collecting:
        gc.enable()

# Not `fastmath=True`, which assumes that there is no NaN: checks for NaN would be removed.
FASTMATH = {"reassoc", "contract", "nsz"}


def kernel(function: Callable) -> Any:
    """Compile a function that Python calls, cached on disk if possible."""
    compiled = numba.njit(nogil=True, fastmath=FASTMATH)(function)
    if not hasattr(compiled, "enable_caching"):  # NUMBA_DISABLE_JIT: plain Python
        return compiled
    try:
        _cache(compiled)
    except (RuntimeError, OSError) as error:
        # Numba raises "cannot cache function ...: no locator available" if neither the package's folder nor the user's cache
        # folder is writable.
        warn_not_kept(f"there is no folder to keep compiled code in ({error})")
    return compiled


def _cache(compiled: Any) -> None:
    try:
        from givens.kernels.cache import FolderCache

        compiled._cache = FolderCache(compiled.py_func)
    except (ImportError, AttributeError, TypeError):  # numba's internals have changed
        if is_complete(compiled.py_func):
            compiled.enable_caching()


def is_complete(function: Callable) -> bool:
    """Whether a function's file imports no compiled code of another file."""
    return not any(
        getattr(value, "__module__", function.__module__) != function.__module__
        for value in function.__globals__.values()
        if hasattr(value, "py_func")
    )


def inline(function: Callable) -> Any:
    """Compile a helper, of this file or another, that LLVM inlines into every function that calls it.

    A helper that is not inlined is linked by its name. A process that has compiled it, and one that loads its callers from the
    cache, can then use differently optimised versions of it, and their results differ in the last bits.

    Numba's `inline="always"` inlines before types are known, so that the code is typed and optimised once per call: sparse PCA's
    first fit took twice as long to compile, for the same speed.
    """
    return numba.njit(nogil=True, fastmath=FASTMATH, forceinline=True)(function)


def bound(function: Callable) -> Any:
    """Compile a user's function, or a closure over one: once per process, not cached."""
    return numba.njit(nogil=True, fastmath=FASTMATH)(function)


def named(name: str) -> Callable[[Callable], Any]:
    """Compile a closure under a unique name.

    Code is linked by name, cached code as well, and the closures of one function have the same name: without this, a contrast
    could get the machine code of another.
    """

    def compile_as(function: Callable) -> Any:
        function.__name__ = function.__qualname__ = f"{name}_{function.__name__}"
        return bound(function)

    return compile_as


def returned_type(compiled: Any, arguments: tuple) -> Any:
    """The type that a compiled function returns for arguments of some types, or None if it is plain Python.

    The function is compiled for them, as it would be when a compiled function that calls it is. Errors are those of numba.
    """
    if not hasattr(compiled, "py_func"):  # NUMBA_DISABLE_JIT
        return None
    return numba.typeof(compiled).get_call_type(cpu_target.typing_context, arguments, {}).return_type


class _Timer(event.TimingListener):
    """Measures the time of compiling, and calls `begun` when it begins."""

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
    """Yield a function that returns the seconds spent on compiling since then.

    `begun` is called when something is compiled for the first time; its argument is whether compiled code is saved for later
    runs.
    """
    with event.install_listener("numba:compile", _Timer(begun)) as timer:
        yield lambda: float(timer.duration) if timer.done else 0.0
