"""How much memory a call takes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any


def most_bytes(call: Callable[[], Any]) -> int:
    """The largest amount of memory that is allocated at one time during a call, as Python and NumPy count it."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
