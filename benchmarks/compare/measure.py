"""One row on both sides, call by call."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.compare.paired import Ratio, ratio
from benchmarks.compare.sides import Child, Side, warm


@dataclass(frozen=True)
class Measured:
    """Seconds of each round, old and new; values and bytes of the first call (0 bytes where they are not measured)."""

    name: str
    user: str
    old_seconds: list[float]
    new_seconds: list[float]
    old_value: float
    new_value: float
    old_memory: int = 0
    new_memory: int = 0

    @property
    def ratio(self) -> Ratio:
        return ratio(self.old_seconds, self.new_seconds)

    @property
    def change(self) -> float:
        """How much the value has grown, relative to the larger one: above 0, the new answer is worse."""
        size = max(abs(self.old_value), abs(self.new_value))
        return (self.new_value - self.old_value) / size if size else 0.0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def turns(rounds: int) -> Iterator[tuple[str, str]]:
    """Which side is called first: old, new; new, old; ..."""
    for i in range(rounds):
        yield ("new", "old") if i % 2 else ("old", "new")


def measure(sides: dict[str, Side], name: str, user: str, rounds: int, clock: str = "seconds") -> Measured:
    """Call the row in turns in a process for each side that has been warmed up.

    The clock is "seconds", or "processor" for the seconds of all threads, which other processes disturb less.
    """
    seconds: dict[str, list[float]] = {"old": [], "new": []}
    with ExitStack() as stack:
        children = {side: stack.enter_context(Child(place, name)) for side, place in sides.items()}
        for child in children.values():
            child.ready()
        first = {}
        for side in sides:
            children[side], first[side] = warm(children[side], name)
            stack.enter_context(children[side])
        for order in turns(rounds):
            for side in order:
                seconds[side].append(children[side].run()[clock])
    return Measured(
        name,
        user,
        seconds["old"],
        seconds["new"],
        first["old"]["value"],
        first["new"]["value"],
        first["old"]["memory"],
        first["new"]["memory"],
    )


def measure_cold(sides: dict[str, Side], name: str, user: str, rounds: int) -> Measured:
    """Import and first call in a new process whose cache of compiled code is empty."""
    seconds: dict[str, list[float]] = {"old": [], "new": []}
    values = {}
    for order in turns(rounds):
        for side in order:
            with tempfile.TemporaryDirectory() as cache:
                place = Side(sides[side].source, Path(cache), sides[side].switch)
                with Child(place, name) as child:
                    answer = child.ready().run()
            seconds[side].append(answer["cold"])
            values[side] = answer["value"]
    return Measured(name, user, seconds["old"], seconds["new"], values["old"], values["new"])
