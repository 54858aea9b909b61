"""All sentences about a run: why it stopped, what was done, how several starts compare. Nothing reads them but people."""

from __future__ import annotations

import math
from collections.abc import Sequence

from givens.objectives.harmonics import MAX_HARMONICS
from givens.result import Certificate, PhaseSummary, Stop
from givens.schedules import Random
from givens.solve.point import Stiefel
from givens.solve.run import Run
from givens.solve.state import Ending, Progress
from givens.support.arguments import counted


def message(ending: Ending, run: Run, uncertified: str = "") -> str:
    """Why the run stopped; why it has no certificate, if one was asked for; and whether its searches are exact."""
    parts = [_why(ending)]
    if uncertified:
        parts.append(f"not certified: {uncertified}")
    if not _are_exact(run.progress):
        parts.append(_searches(run.progress, run.objective.scale))
    return "; ".join(parts)


def _are_exact(progress: Progress) -> bool:
    return progress.error == 0.0 and not progress.untrue


def _searches(progress: Progress, scale: float) -> str:
    """Why the searches of pairs are not exact."""
    if progress.untrue:
        return "the searches of pairs found a gain that was not realised, so they are not exact"
    if math.isnan(progress.error):
        return "angles of pairs by an adaptive search, which is not proved to be exact"
    if progress.error > 1e-9 * scale:
        return (
            f"some pair problems have more than {MAX_HARMONICS} harmonics, so their minima may not be global"
        )
    return "angles of pairs by interpolation, which can miss a narrow minimum"


def _why(ending: Ending) -> str:
    limit, number, phase = ending.limit, ending.number, ending.phase
    stuck = f"no step of the phase {phase!r} lowers f any more"
    sweeps = "a sweep" if number == 1 else f"{number:.0f} sweeps"
    step = "Newton's next step" if phase == "newton" else "the next step"
    reason = {
        Stop.NOTHING_TO_ROTATE: "there is nothing to rotate",
        Stop.CALLBACK: "stopped by the callback",
        Stop.NOT_FINITE: f"stopped in step {number:.0f}, of the phase {phase!r}: {ending.text}",
        Stop.SMALL_GRADIENT: f"the gradient norm is at most {limit:g} times the scale",
        Stop.SMALL_SWEEPS: f"{sweeps} gained at most {limit:g} times the {'value' if phase == 'widened sweeps' else 'scale'}",
        Stop.SMALL_REMAINDER: f"all pairs together could gain {number:.1g} times the scale",
        Stop.SMALL_STEP: f"{step} would gain at most {limit:g} times the scale",
        Stop.ROUNDING: "no step lowers f by more than its rounding errors",
        Stop.SADDLE: "the slopes vanish at the start, which may be a saddle point",
        Stop.EXHAUSTED: stuck,
        Stop.KINK: f"{stuck}, though its slopes are large: f has a kink here",
        Stop.STATIONARY: "the slopes vanish at the start, which sweeps may leave",
        Stop.LACKING: ending.text,
        Stop.MAX_ITER: f"max_iter = {limit:.0f} reached",
        Stop.INFINITE_START: "f is infinite at the start",
    }[ending.stop]
    if ending.stop in (Stop.NOTHING_TO_ROTATE, Stop.CALLBACK, Stop.NOT_FINITE):
        return reason
    return f"{'converged' if ending.stop.converged else 'not converged'}: {reason}"


def method(run: Run, coarse: PhaseSummary | None, certificate: Certificate | None) -> str:
    """What was done: a clause for each phase that made a step, and the certificate."""
    progress = run.progress
    clauses = [_clause(summary, run) for summary in progress.summaries if summary.steps]
    if coarse is not None:
        steps = counted(coarse.steps, "step", "steps")
        clauses.insert(0, f"{steps} on a sample of the data")
    taken = progress.trace.phase.count("certificate")
    if taken:
        clauses.append(f"rotations that the search of all pairs found, {counted(taken, 'time', 'times')}")
    text = ", then ".join(clauses) or "no step"
    if certificate is None:
        return text
    part = "" if certificate.share == 1.0 else f"{certificate.share:.0%} of the pairs"
    if not run.searched:
        return f"{text}; certified by the gains of {part or 'all pairs'}"
    sweeps = "one sweep" if progress.certifications == 1 else f"{progress.certifications} sweeps"
    return f"{text}; certified by {sweeps} of {_exact(run)}searches{part and f' of {part}'}"


def _clause(summary: PhaseSummary, run: Run) -> str:
    """For example "3 sweeps of exact rotations"; blocks are not claimed to be exact."""
    steps = counted(summary.steps, "step", "steps")
    if summary.name == "descent":
        return f"quasi-Newton descent{' on the Stiefel manifold' if isinstance(run.point, Stiefel) else ''}, {steps}"
    if summary.name == "newton":
        return f"{steps} of Newton's method"
    schedule = run.options.schedule
    pairs = summary.name == "sweeps" and min(schedule.block, run.shape.n) <= 2
    kind = f"{_exact(run)}rotations" if pairs else "rotations in blocks"
    random = isinstance(schedule, Random) and schedule.block == 2
    sweeps = counted(summary.steps, "sweep", "sweeps")
    return f"{sweeps} of {kind}{' of random pairs (Algorithm 1)' if random else ''}"


def _exact(run: Run) -> str:
    return "exact " if _are_exact(run.progress) else ""


def race(runs: int, others: Sequence[tuple[int, bool]], share: float) -> str:
    """How a race of so many starts ended: the steps of the other runs, and whether each had converged or paused."""
    steps = [number for number, ended in others if ended]
    number, failed = len(steps), len(others) - len(steps)
    if failed:
        who = f"{number} of the others"
    else:
        who = "the other one" if number == 1 else f"the {number} others"
    text = f"; the best of {runs} starts, {who} stopped where a step promised {share:g} of the gain, "
    text += f"after {counted(sum(steps), 'step', 'steps')}"
    return text + (f", {failed} did not converge" if failed else "")


def components(other: float) -> str:
    """The value that the other component of O(n) reached."""
    return f"; the other component of O(n) reached {other:.12g}"
