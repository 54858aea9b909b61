"""Where a run may stop between two steps: the rule, and the gain that a step must exceed."""

from __future__ import annotations

import math

from givens.numerics import flop_counts
from givens.result import Stop
from givens.solve.run import Run
from givens.solve.state import Ending

NOTHING = 1e-26
"""Relative to the scale: a smaller gain of all pairs together is rounding."""

SMALL_NORM = 1e-9
"""Relative to the scale: with a larger gradient the gains of all pairs are not next to nothing, and need not be summed."""


def rule(run: Run) -> Ending | None:
    """Why to stop now, or None; `Stop.converged` tells which reasons mean that the run has converged."""
    progress, options, scale = run.progress, run.options, run.objective.scale
    if run.pairs == 0:
        return Ending(Stop.NOTHING_TO_ROTATE)
    if progress.steps == 0 and run.value() == math.inf:
        return Ending(Stop.INFINITE_START)
    norm = progress.trace.gradient_norm[-1]
    limit = options.gradient_tol
    if limit is not None and norm <= limit * scale * run.unit and math.isfinite(norm):
        return Ending(Stop.SMALL_GRADIENT, limit)
    if len(progress.gains) >= options.schedule.patience and max(progress.gains) <= run.tol * scale:
        return Ending(Stop.SMALL_SWEEPS, run.tol, len(progress.gains))
    if norm <= SMALL_NORM * scale * run.unit:
        with flop_counts.uncounted():
            gains = run.gains()
        left = math.nan if gains is None else 0.5 * float(gains.sum())
        if left <= max(run.tol**2, NOTHING) * scale:
            return Ending(Stop.SMALL_REMAINDER, number=left / scale)
    return Ending(Stop.MAX_ITER, options.max_iter) if progress.steps >= options.max_iter else None


def set_tol(run: Run, coarse_gain: float) -> None:
    """Set the gain, relative to the scale, that a step must exceed; where a run is to pause, a share of the gain so far."""
    run.tol = run.options.tol**2
    if run.stop_share:
        values, unit = run.progress.trace.value, run.objective.factor * run.objective.scale
        # Where powers of the data overflow, the gain is NaN, and `max` keeps `tol`.
        gain = coarse_gain + (values[0] - values[-1]) / (unit or 1.0)
        run.tol = max(run.tol, run.stop_share * gain)
