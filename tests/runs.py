"""Runs with options that `minimize` does not offer, as estimators use them."""

from __future__ import annotations

from typing import Any

import numpy as np

from givens.numerics import parallel
from givens.objectives import Objective
from givens.result import Result
from givens.solve.minimize import Method, planned
from givens.solve.race import lowest_run


def run(
    objective: Objective,
    start: np.ndarray | None = None,
    *,
    method: Method = None,
    coarse: bool | None = None,
    n_starts: int = 1,
    random_state: Any = None,
    threads: int | None = None,
    **options: Any,
) -> Result:
    """`minimize`, with the options of `RunOptions`, and the choice whether to begin on cheaper forms of the objective."""
    with parallel.pool(threads):
        asked = planned(objective, method, **options)
        return lowest_run(
            objective, start, asked, coarse=coarse, n_starts=n_starts, random_state=random_state
        )
