"""A mechanism, the code that goes with it, and the switch that leaves it out.

Switches and lines refer to one commit, `BASE`, so that the ablation of code that has been deleted since can be repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

BASE = "27173c5"


@dataclass(frozen=True)
class Mechanism:
    """Something that makes a fit faster or its answer better, at a price in lines and compile time.

    Attributes:
        name: As in the table, such as "model of columns".
        rows: Patterns (`fnmatch`) of the names in `benchmarks/compare/rows.py` whose runs reach it.
        code: Its lines at `BASE`, relative to `src/givens`: a file ("phases/column_model.py"), or a class, function or method
            in a file ("loop.py:Run._leap").
        off: Changes the imported package so that the mechanism is not used. It runs in a process of its own, after
            `import givens` and before the row's data are made, so it need not be undone. It imports what it changes itself: the
            list of mechanisms is also read where `givens` is another version.
        verdict: One plain sentence, "kept: ..." or "deleted: ...", with the reason.
    """

    name: str
    rows: tuple[str, ...]
    code: tuple[str, ...]
    off: Callable[[], None]
    verdict: str
