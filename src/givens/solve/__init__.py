"""One engine: `minimize`, the loop, and its phases, the ways in which a run lowers f.

A run is a short list of phases on one state of the objective. The loop asks the present phase to `advance` by one step, until the
phase returns an `Ending`, which says why it is over; then the next phase follows.

| phase | a step |
|---|---|
| `Descent` | a quasi-Newton step of all columns at once, from the slopes of all pairs |
| `Newton` | a step of all columns at once, from all second derivatives |
| `Sweeps` | a rotation of every pair, or of every block of columns, in the order of a schedule |
| `WidenedSweeps` | the same for n x m matrices, with a few columns beside them that are chosen anew |
"""

from __future__ import annotations

from collections.abc import Callable

from givens.solve.descent import Descent
from givens.solve.newton import Newton
from givens.solve.run import Phase
from givens.solve.sweeps import Sweeps
from givens.solve.widened_sweeps import WidenedSweeps

PHASES: dict[str, Callable[[], Phase]] = {
    "descent": Descent,
    "newton": Newton,
    "sweeps": Sweeps,
    "widened sweeps": WidenedSweeps,
}
