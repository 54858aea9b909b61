"""Phases: the ways in which a run may lower f.

A run is a short list of phases on one state. The loop asks the current phase to `advance` by one step, until the phase says that
it has nothing more to do; then comes the next one.

| phase | a step |
|---|---|
| `Descent` | a quasi-Newton step of all columns at once, from the slopes of all pairs |
| `Newton` | a step of all columns at once, from all second derivatives |
| `Leaps` | a rotation of all columns that the objective itself proposes; taken back if f does not fall |
| `Sweeps` | every pair, or block of columns, turned to its best rotation, in the order of a schedule |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from givens.phases.descent import Descent
from givens.phases.leaping import Leaps
from givens.phases.newton import Newton
from givens.phases.phase import Phase
from givens.phases.sweeping import Sweeps

PHASES: dict[str, Callable[[], Phase]] = {
    "descent": Descent,
    "newton": Newton,
    "leaps": Leaps,
    "sweeps": Sweeps,
}


def as_phases(names: Sequence[str]) -> tuple[str, ...]:
    """The names of phases, checked."""
    if isinstance(names, str):
        names = (names,)
    for name in names:
        if name not in PHASES:
            known = ", ".join(repr(known) for known in PHASES)
            raise ValueError(f"there is no phase {name!r}; it is one of {known}")
    if not names:
        raise ValueError("phases must name at least one phase")
    return tuple(names)


__all__ = ["PHASES", "Descent", "Leaps", "Newton", "Phase", "Sweeps", "as_phases"]
