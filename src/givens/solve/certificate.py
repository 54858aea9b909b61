"""The certificate: how much any rotation of two columns, by any angle, could still lower f.

Slopes and curvatures describe f for small angles only. The pair searches of sweeps cover all angles, and they only read the
state, so that all pairs are searched at the same U. Where the look of an objective has the gains of pairs, or close bounds of
them, these need no search. Pairs that gain are rotated, and the run continues. The certificate is as exact as the objective's
searches, or these bounds: for a function whose degree is not given, it is an estimate.
"""

from __future__ import annotations

import numpy as np

from givens.objectives.base import PairSolutions
from givens.result import Certificate
from givens.schedules import all_pairs
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
    worth = max(MIN_GAIN, run.tol) * objective.scale
    chosen = _disjoint(pairs, gains, worth) if progress.steps < run.options.max_iter else []
    if not objective.separable:
        chosen = chosen[:1]
    gain = 0.0
    if chosen:
        blocks = pairs[chosen]
        rotations = np.asarray(_search(run, blocks).rotations)
        before = run.value()
        run.rotate(blocks, rotations)
        progress.rotations += len(chosen)
        gain = before - run.value()
        if gain <= 0.0:  # rounding in the searches
            run.rotate(blocks, np.ascontiguousarray(rotations.transpose(0, 2, 1)))
            if gains[chosen].max() > 1e-10 * objective.scale:  # or in the values
                progress.untrue = True
    unit = abs(objective.factor)
    most = unit * float(gains.max(initial=0.0))
    return Certificate(most, len(pairs), len(pairs) / total, unit * error), gain


def _search(run: Run, pairs: np.ndarray) -> PairSolutions:
    """Search pairs over all angles."""
    run.prepare_rotations()
    return search(run, pairs)


def _disjoint(pairs: np.ndarray, gains: np.ndarray, worth: float) -> list[int]:
    """The indices of disjoint pairs whose gains are above `worth`, the largest first."""
    chosen: list[int] = []
    seen: set[int] = set()
    worthy = np.flatnonzero(gains > worth)
    for k in worthy[np.argsort(-gains[worthy], kind="stable")].tolist():
        columns = set(pairs[k].tolist())
        if not seen & columns:
            chosen.append(k)
            seen |= columns
    return chosen
