"""Progress bars: one line per run, a bar per sweep, with what the run has reached; and bars of samples or chunks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from givens.support.imports import require


class Bar:
    """A bar that shows nothing."""

    callback: Callable[[Any], None] | None = None

    def step(self, phase: str, number: int, most: int, pairs: int) -> None:
        """Begin a step of a phase; a sweep is of so many pairs."""

    def advance(self, blocks: Iterable[Any]) -> None:
        """The blocks of a round are done."""

    def show(self, value: float, gain: float) -> None:
        """Show the value, and the last gain relative to the scale."""


class RichBar(Bar):
    """A bar on the terminal."""

    def __init__(self, display: Any) -> None:
        self.display = display
        self.task = display.add_task("", total=1, value="", gain="")
        self.callback = self._after

    def step(self, phase: str, number: int, most: int, pairs: int) -> None:
        """Begin a step of a phase; a sweep is of so many pairs."""
        if phase == "sweeps":
            text, total = f"sweep {number} of at most {most}", pairs
        else:
            text, total = (phase if phase == "certificate" else f"{phase}, step {number}"), None
        self.display.update(self.task, description=text, total=total, completed=0)

    def advance(self, blocks: Iterable[Any]) -> None:
        """The blocks of a round are done."""
        self.display.update(self.task, advance=sum(_cross_pairs(block) for block in blocks))

    def show(self, value: float, gain: float) -> None:
        """Show the value, and the last gain relative to the scale."""
        self.display.update(self.task, value=f"{value:.8g}", gain="" if gain != gain else f"{gain:.1e}")

    def _after(self, snapshot: Any) -> None:
        """As a callback of `minimize`: show the step that was made."""
        text = f"{snapshot.phase}, step {snapshot.step}"
        self.display.update(self.task, description=text, total=None)
        self.show(snapshot.value, snapshot.gain)


def _cross_pairs(block: Any) -> int:
    # A block is two groups. Pairs inside a group occur in each of its blocks, and are not counted.
    half = len(block) // 2
    return half * (len(block) - half)


def _displayed(*columns: Any) -> Any:
    """A display with its own console: an interrupt while a shared one prints would silence all later displays."""
    console = require("rich.console", extra="progress").Console()
    return require("rich.progress", extra="progress").Progress(*columns, console=console)


def bar(shown: bool) -> AbstractContextManager[Bar]:
    """A bar while the run lasts."""
    return _rich_bar() if shown else _NO_BAR


_NO_BAR = nullcontext(Bar())


@contextmanager
def _rich_bar() -> Iterator[Bar]:
    progress = require("rich.progress", extra="progress")
    with _displayed(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TextColumn("value {task.fields[value]}"),
        progress.TextColumn("gain {task.fields[gain]}"),
        progress.TimeElapsedColumn(),
    ) as display:
        yield RichBar(display)


@contextmanager
def counter(text: str, noun: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar of how many things of a kind are done, after a few words; yields a function that adds to them."""
    progress = require("rich.progress", extra="progress")
    done = "{task.completed:,.0f}" if total is None else "{task.completed:,.0f} of {task.total:,.0f}"
    with _displayed(
        *([progress.TextColumn("{task.description}")] if text else []),
        progress.TextColumn(f"{done} {noun}"),
        progress.BarColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
    ) as display:
        task = display.add_task(text, total=total)
        yield lambda number: display.update(task, advance=number)


def counting(batches: Iterable[Any], total: int | None, shown: bool) -> Generator[Any]:
    """Pass batches of samples on, with a bar of how many went by; `total` if that is known."""
    if not shown:
        yield from batches
        return
    with counter("", "samples", total) as advance:
        for batch in batches:
            yield batch
            advance(np.shape(batch)[0])
