"""Ctrl-C at moments when it would leave something half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Keep Ctrl-C waiting until the block is done: for a few steps that belong together.

    The block is left by the KeyboardInterrupt that has waited, if one came.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are for the main thread
        return
    came: list[tuple[int, FrameType | None]] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came and callable(before):
            before(*came[0])
