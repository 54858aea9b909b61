"""Figures 3 and 4, shown and judged: clustering by mixtures from third moments; see `measure.mixture_cells` for what is run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from paper.drawing import GIVENS as GIVENS_COLOUR
from paper.drawing import OURS as OURS_COLOUR
from paper.drawing import RIVAL, TRUTH, finish, key, new_figure
from paper.experiment import LIBRARY, PAPER, Claim, Experiment, ExperimentSettings, Row, Task
from paper.measure import mixture_cells
from paper.measure.mixture_cells import GIVENS, LEAST, MEAN, OURS, POWER, TRUE, Cell
from paper.verdicts import Interval, better, interval, together

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {TRUE: TRUTH, GIVENS: GIVENS_COLOUR, POWER: RIVAL, OURS: OURS_COLOUR}
MARKS = {TRUE: ":", GIVENS: "o-", POWER: "^-", OURS: "D-"}
MARGIN = 0.01  # of normalised mutual information

Chosen = Callable[[Cell], bool]


class Mixtures(Experiment):
    """Figures 3 and 4 of the paper."""

    name = "mixtures"
    title = "Figures 3 and 4: clustering against the dimension and the number of samples"
    about = (
        "Normalised mutual information of the clusters found with the true ones: mean over the seeds, with its standard "
        "error. The whitened third moment is decomposed by Algorithm 4 or by the robust power method, everything else is "
        "the same for both. k components, d dimensions, N samples; the last panel shows the library's own fit of the "
        "moments."
    )
    measured = mixture_cells.__name__

    def source(self, settings: ExperimentSettings) -> str:
        """Simulated, as in the paper."""
        return "simulated mixtures of spherical Gaussians, variance 2, centres as in the paper"

    def tasks(self, settings: ExperimentSettings) -> list[Task]:
        """A sample per cell and seed."""
        return mixture_cells.tasks(settings)

    def figure(self, rows: list[Row], settings: ExperimentSettings) -> Figure:
        """Figure 3 in two lines, many samples and few, by number of components; Figure 4 below, and ours."""
        found = cells_of(rows)
        sizes = sorted({cell.k for cell in found})
        few, many = min(cell.n for cell in found), max(cell.n for cell in found)
        most = max(len(sizes), 2)
        figure, axes = new_figure(10, 8.4, 3, most, squeeze=False, sharey=True)
        for line, n in zip(axes, (many, few)):
            for ax, k in zip(line, sizes):
                chosen = [cell for cell in found if (cell.k, cell.n, cell.narrow) == (k, n, False)]
                _draw(ax, rows, chosen, (TRUE, GIVENS, POWER), by_dimension=True)
                ax.set_title(f"Figure 3: k = {k}, N = {n:,}")
        series = [k for k in sizes if len(_series(found, k)) > 2]
        for ax, k in zip(axes[2], series):
            _draw(ax, rows, _series(found, k), (TRUE, GIVENS, POWER), by_dimension=False)
            ax.set_title(f"Figure 4: k = {k}, d = {_series(found, k)[0].d}")
        own = [cell for cell in found if (cell.k, cell.n, cell.narrow) == (20, few, False)]
        _draw(axes[2][len(series)], rows, own, (TRUE, OURS, POWER), by_dimension=True)
        axes[2][len(series)].set_title(f"ours: k = 20, N = {few:,}")
        key(axes[2][len(series)], {name: COLOURS[name] for name in (TRUE, OURS, POWER)})
        key(axes[0][0], {name: COLOURS[name] for name in (TRUE, GIVENS, POWER)})
        for ax in axes.ravel():
            ax.set_visible(bool(ax.lines))
        for line in axes:
            line[0].set_ylabel("normalised mutual information")
        axes[0][0].set_ylim(0, 1.02)
        seeds = len({row["seed"] for row in rows})
        return finish(figure, f"{self.source(settings)}; {seeds} seeds")

    def claims(self, rows: list[Row], settings: ExperimentSettings) -> list[Claim]:
        """What the paper says, with our noise rule and with the other, and about ours."""
        found = cells_of(rows)
        few, many = min(cell.n for cell in found), max(cell.n for cell in found)
        k = 20
        middle = sorted({cell.d for cell in found if (cell.k, cell.n) == (k, few)})[1:-1] or [max(found).d]
        large = [cell.n for cell in _series(found, k)][len(_series(found, k)) // 2 :]
        most = max(cell.k for cell in found)

        def usual(cell: Cell) -> bool:
            return not cell.narrow

        claims = [
            _claim(
                rows,
                f"Givens outperforms the power method for the large sample size (k = {k}, N = {many:,})",
                lambda c: usual(c) and (c.k, c.n) == (k, many),
            ),
            _claim(
                rows,
                f"For {few:,} samples the power method is better at intermediate dimensions (k = {k})",
                lambda c: usual(c) and (c.k, c.n) == (k, few) and c.d in middle,
                methods=(POWER, GIVENS),
            ),
            _claim(
                rows,
                f"At one dimension Givens performs better for larger sample sizes (Figure 4, k = {k})",
                lambda c: usual(c) and c in _series(found, k) and c.n in large,
            ),
            _claim(
                rows,
                f"Givens consistently finds better solutions when the number of components is large (k = {most})",
                lambda c: usual(c) and c.k == most,
            ),
            _claim(
                rows,
                f"Few components and dimensions (k = 10, N = {many:,}): Givens outperforms the power method",
                lambda c: usual(c) and (c.k, c.n) == (10, many),
            ),
            _claim(
                rows,
                f"The first claim with σ² as the least eigenvalue (k = {k}, N = {many:,})",
                lambda c: usual(c) and (c.k, c.n) == (k, many),
                noise=LEAST,
            ),
            _claim(
                rows,
                f"The claim about many components with σ² as the least eigenvalue (k = {most})",
                lambda c: usual(c) and c.k == most,
                noise=LEAST,
            ),
            _claim(
                rows,
                f"The first claim with centres of nearly the same variance in all directions (2d degrees of freedom, k = {k})",
                lambda c: c.narrow,
            ),
        ]
        ours = _claim(
            rows,
            "SphericalMixture's moments, without EM, beat the reconstruction by the power method (k ≤ 20)",
            lambda c: usual(c) and c.k <= 20,
            methods=(OURS, POWER),
        )
        return [*claims, ours]


def cells_of(rows: list[Row]) -> list[Cell]:
    """The cells that there are, in order."""
    return sorted({Cell(row["k"], row["d"], row["n"], row["narrow"]) for row in rows})


def _series(found: list[Cell], k: int) -> list[Cell]:
    """The cells of Figure 4: the dimension with the most numbers of samples."""
    own = [cell for cell in found if cell.k == k and not cell.narrow]
    dimensions = [cell.d for cell in own]
    d = max(dimensions, key=lambda d: (dimensions.count(d), d)) if own else 0
    return [cell for cell in own if cell.d == d]


def scores(rows: list[Row], method: str, cell: Cell, noise: str = MEAN) -> dict[int, float]:
    """By seed."""
    return {
        row["seed"]: row["nmi"]
        for row in rows
        if (row["method"], row["noise"]) == (method, noise)
        and Cell(row["k"], row["d"], row["n"], row["narrow"]) == cell
    }


def compared(rows: list[Row], cell: Cell, first: str, second: str, noise: str) -> Interval:
    """The paired differences of two methods in one cell."""
    one = scores(rows, first, cell, MEAN if first == OURS else noise)
    other = scores(rows, second, cell, noise)
    return interval(one[seed] - other[seed] for seed in sorted(one.keys() & other.keys()))


def _claim(
    rows: list[Row],
    statement: str,
    chosen: Chosen,
    methods: tuple[str, str] = (GIVENS, POWER),
    noise: str = MEAN,
) -> Claim:
    verdicts, words = [], []
    for cell in filter(chosen, cells_of(rows)):
        found = compared(rows, cell, *methods, noise)
        verdicts.append(better(found, MARGIN))
        one = np.mean(list(scores(rows, methods[0], cell, MEAN if methods[0] == OURS else noise).values()))
        other = np.mean(list(scores(rows, methods[1], cell, noise).values()))
        words.append(
            f"k/d = {cell.k}/{cell.d}, N = {cell.n:,}: {one:.3f} and {other:.3f}, {found.difference()}, {verdicts[-1]}"
        )
    about = LIBRARY if OURS in methods else PAPER
    pairs = f"{methods[0]} and {methods[1]}, difference [95 % interval]; "
    return Claim(
        f"{statement} (tie: within {MARGIN:g}).", pairs + "; ".join(words), together(verdicts), about
    )


def _draw(
    ax: Axes, rows: list[Row], cells: list[Cell], methods: tuple[str, ...], *, by_dimension: bool
) -> None:
    for method in methods:
        values = [list(scores(rows, method, cell).values()) for cell in cells]
        x = [cell.d if by_dimension else cell.n for cell in cells]
        error = [np.std(v, ddof=1) / np.sqrt(len(v)) if len(v) > 1 else 0.0 for v in values]
        ax.errorbar(
            x, [np.mean(v) for v in values], error, fmt=MARKS[method], color=COLOURS[method], markersize=4, capsize=2,
            linewidth=1.2,
        )  # fmt: skip
    ax.set_xscale("log")
    ax.set_xticks(x, [f"{value:,}" for value in x])
    ax.minorticks_off()
    ax.set_xlabel("dimension d" if by_dimension else "samples N", fontsize=8)
