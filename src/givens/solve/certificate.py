"""The certificate: how much any rotation of two columns, by any angle, could still lower f.

Slopes and curvatures describe f for small angles only. The pair searches of sweeps cover all angles, and they only read the
state, so that all pairs are searched at the same U. Where the look of an objective has the gains of pairs, or close bounds of
them, these need no search. Pairs that gain are rotated, and the run continues. The certificate is as exact as the objective's
searches, or these bounds: for a function whose degree is not given, it is an estimate.
"""

from __future__ import annotations

import numpy as np

from givens.objectives.base import Blocks, PairSolutions
from givens.result import Certificate
from givens.schedules import all_pairs, disjoint_runs
from givens.solve.run import Run
from givens.solve.sweeps import search

MIN_GAIN = 1e-13
"""Relative to the scale: smaller gains may be rounding errors, and are not applied."""


def certify(run: Run, share: float) -> tuple[Certificate, float]:
    """Find the gains of all pairs, or of a random share, and rotate disjoint pairs that gain, if a step is left.

    Returns the certificate, and the gain of these rotations.
    """
    objective, progress = run.objective, run.progress
    pairs = all_pairs(run.shape)
    total = len(pairs)
    if total == 0:
        return Certificate(0.0, 0, 1.0), 0.0
    if share < 1.0:
        number = min(total, max(1, round(share * total)))
        pairs = pairs[np.sort(progress.rng.choice(total, size=number, replace=False))]
    known = run.gains()
    run.searched = known is None
    if known is None:
        solved = _search(run, pairs)
        gains, error = solved.gains, solved.error
    else:
        gains, error = known[pairs[:, 0], pairs[:, 1]], 0.0
    gain, most = 0.0, float(gains.max(initial=0.0))
    least = max(MIN_GAIN, run.tol) * objective.scale
    if most > least and progress.steps < run.options.max_iter:
        # The largest gains, up to the first pair that shares a column with one before it.
        order = np.argsort(-gains, kind="stable")
        worthy = order[gains[order] > least]
        blocks = next(disjoint_runs(pairs[worthy] if objective.separable else pairs[worthy[:1]]))
        rotations = np.asarray(_search(run, blocks).rotations)
        before = run.value()
        run.rotate(blocks, rotations)
        progress.rotations += len(blocks)
        gain = before - run.value()
        if gain <= 0.0:  # rounding in the searches
            run.rotate(blocks, np.ascontiguousarray(rotations.transpose(0, 2, 1)))
            if most > 1e-10 * objective.scale:  # or in the values
                progress.untrue = True
    return Certificate(run.unit * most, len(pairs), len(pairs) / total, run.unit * error), gain


def _search(run: Run, pairs: Blocks) -> PairSolutions:
    """Search pairs over all angles."""
    run.prepare_rotations()
    return search(run, pairs)
