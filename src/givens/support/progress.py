"""Progress bars: one line per run, with its last step and what it has reached; and bars of samples or chunks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import numpy as np

from givens.support.imports import require

_shown: ContextVar[bool] = ContextVar("givens_progress", default=False)


@contextmanager
def progress(shown: bool = True) -> Iterator[None]:
    """Show the progress of what is fitted in this block: the value of a run, or how many samples or chunks have been read.

    Parameters
    ----------
    shown : bool, default=True
        False: show nothing, also inside a block that shows it.

    Examples
    --------
    >>> import numpy as np
    >>> import givens
    >>> X = np.random.default_rng(0).standard_normal((50, 6))
    >>> with givens.progress(False):
    ...     model = givens.SparsePCA(2, n_nonzero=3).fit(X)
    """
    before = _shown.set(shown)
    try:
        yield
    finally:
        _shown.reset(before)


def showing() -> bool:
    """Whether progress is shown."""
    return _shown.get()


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


def bar() -> AbstractContextManager[Bar]:
    """A bar while the run lasts."""
    return _rich_bar() if showing() else nullcontext(Bar())


@contextmanager
def _rich_bar() -> Iterator[Bar]:
    rich = require("rich.progress", extra="progress")
    with _displayed(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TextColumn("value {task.fields[value]}"),
        rich.TextColumn("gain {task.fields[gain]}"),
        rich.TimeElapsedColumn(),
    ) as display:
        yield RichBar(display)


@contextmanager
def counter(text: str, noun: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar of how many things of a kind are done, after a few words; yields a function that adds to them."""
    rich = require("rich.progress", extra="progress")
    done = "{task.completed:,.0f}" if total is None else "{task.completed:,.0f} of {task.total:,.0f}"
    with _displayed(
        *([rich.TextColumn("{task.description}")] if text else []),
        rich.TextColumn(f"{done} {noun}"),
        rich.BarColumn(),
        rich.TimeElapsedColumn(),
        rich.TimeRemainingColumn(),
    ) as display:
        task = display.add_task(text, total=total)
        yield lambda number: display.update(task, advance=number)


def counting(batches: Iterable[Any], total: int | None) -> Generator[Any]:
    """Pass batches of samples on, with a bar of how many went by; `total` if that is known."""
    if not showing():
        yield from batches
        return
    with counter("", "samples", total) as advance:
        for batch in batches:
            yield batch
            advance(np.shape(batch)[0])
