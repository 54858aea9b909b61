"""Progress bars: one line per run, with its last step and what it has reached; and bars of samples or chunks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from givens.support.imports import require


class Bar:
    """A bar that shows nothing."""

    callback: Callable[[Any], None] | None = None

    def show(self, phase: str, step: int, value: float, gain: float) -> None:
        """Show a step of a phase, the value, and the last gain relative to the scale."""


class RichBar(Bar):
    """A bar on the terminal."""

    def __init__(self, display: Any) -> None:
        self.display = display
        self.task = display.add_task("", total=1, value="", gain="")
        self.callback = self._after

    def show(self, phase: str, step: int, value: float, gain: float) -> None:
        """Show a step of a phase, the value, and the last gain relative to the scale."""
        last = "" if gain != gain else f"{gain:.1e}"
        text = f"{phase}, step {step}"
        self.display.update(self.task, description=text, total=None, value=f"{value:.8g}", gain=last)

    def _after(self, snapshot: Any) -> None:
        """As a callback of `minimize`: show the step that was made."""
        self.show(snapshot.phase, snapshot.step, snapshot.value, snapshot.gain)


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
