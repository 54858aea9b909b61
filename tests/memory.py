"""How much memory a call takes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow


def most_bytes(call: Callable[[], Any]) -> int:
    """The largest amount of memory that is allocated at one time during a call, as Python and NumPy count it."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def most_bytes_reading(open_chunks: Callable[[], Iterable[Any]]) -> int:
    """The largest amount of memory that reading some chunks takes; what Arrow holds is counted at every chunk."""
    before = held = pyarrow.total_allocated_bytes()

    def read() -> None:
        nonlocal held
        for _ in open_chunks():
            held = max(held, pyarrow.total_allocated_bytes())

    return most_bytes(read) + held - before
