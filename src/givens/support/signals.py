"""Delay Ctrl-C where it would leave something half done."""

from __future__ import annotations

import threading
from _signal import SIGINT, getsignal, signal  # without the enumerations of the module `signal`
from types import FrameType


class uninterrupted:
    """Delay Ctrl-C until the `with` block is done: for a few steps that belong together.

    If Ctrl-C came during the block, KeyboardInterrupt is raised at its end. Every run does this twice: with the functions of the
    module `signal`, which look for enumerations, and as a generator it would take ten times as long.
    """

    def __enter__(self) -> None:
        came: list[tuple[int, FrameType | None]] = []
        self._came, self._before = came, None
        # Only the main thread gets signals. A handler that was not installed from Python, None, could not be put back.
        if threading.current_thread() is threading.main_thread() and getsignal(SIGINT) is not None:
            self._before = signal(SIGINT, lambda number, frame: came.append((number, frame)))

    def __exit__(self, *raised: object) -> None:
        if self._before is not None:
            signal(SIGINT, self._before)
            if self._came and callable(self._before):
                self._before(*self._came[0])
