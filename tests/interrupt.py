"""Ctrl-C at a chosen moment of a call."""

from __future__ import annotations

import signal
import sys
from types import FrameType

from givens.numerics.parallel import Pool


class SignalAt:
    """Sends SIGINT at one of the moments at which Python looks for signals: where functions begin and calls of C end.

    Without a moment the moments are counted. Those of files under `within` are counted only.
    """

    def __init__(self, moment: int | None = None, within: str = "") -> None:
        self.moment, self.within, self.count = moment, within, 0

    def __enter__(self) -> SignalAt:
        sys.setprofile(self.profile)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def profile(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event not in ("call", "c_return") or not code.co_filename.startswith(self.within):
            return
        # Nothing can be done about a signal that comes in the few nanoseconds between the body and the first line of `__exit__`.
        exits = event == "call" and code is Pool.__exit__.__code__
        if not exits and code is not SignalAt.__exit__.__code__:
            self.count += 1
            if self.count == self.moment:
                signal.raise_signal(signal.SIGINT)
