"""Theorems 1 (2) and 3, shown and judged: stable points and local minima; see `measure.critical_points` for what is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from paper.drawing import GIVENS, RIVAL, finish, key, new_figure
from paper.experiment import Claim, Experiment, ExperimentSettings, Row, Task
from paper.measure import critical_points
from paper.measure.critical_points import LINEAR, NEAR, STARTS, TENSOR
from paper.verdicts import FAILS, HOLDS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BACK = 10 * NEAR  # a run that ends closer to the point than this has come back
FLAT = 1e-6  # curvatures above it are positive


class Optima(Experiment):
    """Theorems 1 (2) and 3."""

    name = "optima"
    title = "Theorems 1 (2) and 3: stable points and local minima"
    about = (
        "Algorithm 1 starts close to a critical point. Whether the point is a local minimum is told by the least "
        "eigenvalue of the Hessian there, whether it is stable by whether the run comes back. Each dot is a critical "
        "point of one of the seeds' problems of order 4."
    )
    measured = critical_points.__name__

    def source(self, settings: ExperimentSettings) -> str:
        """Random problems."""
        return "random linear functions and random orthogonal tensors"

    def tasks(self, settings: ExperimentSettings) -> list[Task]:
        """All critical points, or random starts, of a seed."""
        return critical_points.tasks(settings)

    def figure(self, rows: list[Row], settings: ExperimentSettings) -> Figure:
        """Least curvature against where the run ended."""
        figure, axes = new_figure(10, 4.0, 1, 2, sharey=True)
        for ax, problem in zip(axes, (LINEAR, TENSOR)):
            for minimum, colour in ((True, GIVENS), (False, RIVAL)):
                own = [row for row in points(rows, problem) if (row["curvature"] > FLAT) == minimum]
                ax.plot(
                    [row["curvature"] for row in own],
                    [max(row["distance"], 1e-12) for row in own],
                    "o",
                    color=colour,
                    markersize=4,
                    alpha=0.6,
                )
            ax.axhline(BACK, color="0.6", linewidth=0.8, linestyle=":")
            ax.axvline(0, color="0.6", linewidth=0.8, linestyle=":")
            ax.set(yscale="log", xlabel="least curvature at the critical point", title=f"{problem} function"
                   if problem == LINEAR else "orthogonal tensor")  # fmt: skip
        axes[0].set_ylabel("distance from the point at the end of the run")
        key(axes[0], {"local minima": GIVENS, "other critical points": RIVAL}, (0.02, 0.3), 0.08)
        seeds = len({row["seed"] for row in rows})
        return finish(figure, f"{self.source(settings)}; {seeds} seeds")

    def claims(self, rows: list[Row], settings: ExperimentSettings) -> list[Claim]:
        """Stable if and only if a local minimum; and the maxima of a tensor."""
        minima = [row for row in points(rows) if row["curvature"] > FLAT]
        others = [row for row in points(rows) if row["curvature"] <= FLAT]
        back = {problem: [row["distance"] < BACK for row in minima if row["problem"] == problem]
                for problem in (LINEAR, TENSOR)}  # fmt: skip
        strayed = sum(row["distance"] < BACK for row in others)
        flipped = [row for row in points(rows, TENSOR) if row["signs"] == "+++-"]
        strict = sum(row["curvature"] > FLAT for row in flipped)
        left = sum(row["distance"] >= BACK for row in flipped)
        reached = np.array([row["reached"] for row in rows if row["problem"] == STARTS])
        return [
            Claim(
                "Theorem 1 (2): a point that Algorithm 1 comes back to is a local minimum.",
                f"it came back to {strayed} of {len(others)} critical points that are none",
                HOLDS if strayed == 0 else FAILS,
            ),
            Claim(
                "Theorem 1 (2): Algorithm 1 comes back to every local minimum.",
                f"linear functions: to {sum(back[LINEAR])} of {len(back[LINEAR])}; tensors: to {sum(back[TENSOR])} of "
                f"{len(back[TENSOR])}: an exact search over the whole circle leaves a local minimum for a lower point",
                HOLDS if all(back[LINEAR]) and all(back[TENSOR]) else FAILS,
            ),
            Claim(
                "Theorem 3: the stable stationary points are exactly the U with columns v_π(i).",
                f"with the v of the smallest λ reversed, U is a strict local maximum in {strict} of {len(flipped)} tensors, "
                f"which Algorithm 1 leaves in {left}",
                FAILS if strict else HOLDS,
            ),
            Claim(
                "Theorem 3: the maximum is Σ λ_i; Algorithm 4 reaches it from a random start.",
                f"reached, to 1e-10 of it, in {int(np.sum(np.abs(reached - 1) < 1e-10))} of {len(reached)} runs",
                HOLDS if np.all(np.abs(reached - 1) < 1e-10) else FAILS,
            ),
        ]


def points(rows: list[Row], problem: str | None = None) -> list[Row]:
    """The critical points, of one problem or of both."""
    return [row for row in rows if row["problem"] in ((problem,) if problem else (LINEAR, TENSOR))]
