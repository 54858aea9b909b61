"""How the compiled code is compiled: cached on disk where that is possible, without the GIL, NaN kept.

A cached function is keyed on its own file. If it called compiled code of another file, and only that one changed, users
would run stale machine code after an upgrade. So a file of `kernels/` is complete in itself: its entries call only what
stands beside them, and small helpers are repeated rather than imported. A test guards this.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# Numba makes some hundred thousand objects that stay for good. Looking through them for garbage, again and again while they
# are being made, would be a seventh of what the first call of a process takes.
_collecting = gc.isenabled()
gc.disable()
try:
    import numba
    from numba.core import event
    from numba.core.registry import cpu_target

    # What the first call of a compiled function would do.
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
finally:
    if _collecting:
        gc.enable()

# Not `fastmath=True`: that assumes there is no NaN, and the checks for it would be compiled away.
FASTMATH = {"reassoc", "contract", "nsz"}

_warned = False


def kernel(function: Callable) -> Any:
    """Compile an entry, cached on disk if a cache folder can be written."""
    global _warned
    try:
        return numba.njit(cache=True, nogil=True, fastmath=FASTMATH)(function)
    except RuntimeError as error:
        # numba says "cannot cache function ...: no locator available" when neither the package's own folder nor the
        # user's cache folder is writable.
        if "cannot cache" not in str(error):
            raise
        if not _warned:
            _warned = True
            warnings.warn(
                "numba found no folder to cache compiled code in, so it is compiled anew in every process; "
                "set NUMBA_CACHE_DIR to a folder you can write to",
                RuntimeWarning,
                stacklevel=2,
            )
        return numba.njit(nogil=True, fastmath=FASTMATH)(function)


def inline(function: Callable) -> Any:
    """Compile a helper for the entries of its own file; LLVM writes it out where that pays.

    Not numba's `inline="always"`: code written out before types are known is typed and optimised once per call, and sparse
    PCA's first fit took twice as long to compile, for the same speed.
    """
    return numba.njit(nogil=True, fastmath=FASTMATH)(function)


def bound(function: Callable) -> Any:
    """Compile a user's function, or an entry closed over one: once per process, not cached."""
    return numba.njit(nogil=True, fastmath=FASTMATH)(function)


class _Timer(event.TimingListener):
    """Times what is compiled, and tells when that begins."""

    def __init__(self, begun: Callable[[], None]) -> None:
        super().__init__()
        self.begun: Callable[[], None] | None = begun

    def on_start(self, happening: Any) -> None:
        super().on_start(happening)
        if self.begun is not None:
            begun, self.begun = self.begun, None
            begun()


@contextmanager
def compiling(begun: Callable[[], None]) -> Iterator[Callable[[], float]]:
    """Yield a function that says for how many seconds code has been compiled since: what a machine's first run takes longer.

    `begun` is called once, if anything is compiled at all.
    """
    with event.install_listener("numba:compile", _Timer(begun)) as timer:
        yield lambda: float(timer.duration) if timer.done else 0.0
