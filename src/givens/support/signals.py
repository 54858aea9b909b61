"""Delay Ctrl-C where it would leave something half done."""

from __future__ import annotations

import threading
from _signal import SIGINT, getsignal, signal  # without the enumerations of the module `signal`
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C until the block is done: for a few steps that belong together.

    If Ctrl-C came during the block, KeyboardInterrupt is raised at its end. Every run does this twice: with the functions of the
    module `signal`, which look for enumerations, it would take 16 µs instead of 2.
    """
    main = threading.current_thread() is threading.main_thread()
    # Only the main thread gets signals. A handler that was not installed from Python, None, could not be put back.
    if not main or getsignal(SIGINT) is None:
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    before = signal(SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal(SIGINT, before)
        if came and callable(before):
            before(*came[0])
