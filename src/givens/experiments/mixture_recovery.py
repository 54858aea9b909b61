"""Figures 3 and 4: clustering by a mixture of 20 spherical Gaussians, reconstructed from its third moment.

Normalised mutual information of the clusters found with the true ones, against the dimension and against the number of
samples. As in the paper the tensor is decomposed by Givens rotations or by the power method, and the mixture reconstructed
after Anandkumar et al. (2014); beside them the true parameters, and ours: `SphericalMixture`, which fits all parameters to
the moments, each weighed by its noise, without and with EM. The paper's d = 10 is left out: 20 components need d ≥ 20.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from givens.baselines import tensor_power
from givens.datasets import MixtureSample, make_spherical_mixture
from givens.experiments.drawing import COLOURS, GIVENS, OTHER, RIVAL, TRUTH, new_figure
from givens.experiments.experiment import Claim, Experiment, ExperimentSettings, Row, Task
from givens.mixtures.estimator import SphericalMixture
from givens.mixtures.model import Mixture, posterior
from givens.moments import TILE, Basis, Cumulants, ThirdMoments, contract, second_moments, whiten
from givens.tensors.decompose import decompose

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

COMPONENTS = 20
METHODS = {
    "true parameters": (TRUTH, "--", "s"),
    "Givens (the paper's)": (GIVENS, "-", "o"),
    "power method (the paper's)": (RIVAL, "-", "^"),
    "SphericalMixture, moments only": (OTHER, "-", "D"),
    "SphericalMixture, with EM": (COLOURS[3], "-", "v"),
}
TRUE, PAPER_GIVENS, PAPER_POWER, OURS, WITH_EM = METHODS


def run_one(d: int, n: int, seed: int, threads: int | None) -> list[Row]:
    """One sample, clustered by every method."""
    sample = make_spherical_mixture(n, n_components=COMPONENTS, n_features=d, random_state=seed)
    moments, noise = uncentred(sample.X)
    fits: dict[str, Callable[[], Mixture]] = {
        TRUE: lambda: Mixture(sample.weights, sample.means, sample.variances),
        PAPER_GIVENS: lambda: reconstruct(moments, noise, by_givens),
        PAPER_POWER: lambda: reconstruct(moments, noise, by_power),
        OURS: lambda: _fitted(sample, refine_em=0, threads=threads),
        WITH_EM: lambda: _fitted(sample, refine_em=100, threads=threads),
    }
    return [
        {"method": name, "d": d, "n": n, "seed": seed, "nmi": agreement(fit(), sample)}
        for name, fit in fits.items()
    ]


def agreement(mixture: Mixture, sample: MixtureSample) -> float:
    """Normalised mutual information of the most probable components with the true ones."""
    shares, _ = posterior(mixture, sample.X)
    return float(normalized_mutual_info_score(sample.y, np.argmax(shares, axis=1)))


def uncentred(X: np.ndarray) -> tuple[Cumulants, float]:
    """Moments on the top k eigenvectors of the uncentred second moment, and the noise, as the paper has it."""
    seconds = second_moments(X[:TILE])
    seconds.add(X)
    mean, covariance = seconds.mean_and_covariance()
    noise = float(np.linalg.eigvalsh(covariance)[: X.shape[1] - COMPONENTS + 1].mean())
    vectors = np.linalg.eigh(covariance + np.outer(mean, mean))[1]
    state = ThirdMoments(Basis(mean, np.ascontiguousarray(vectors[:, -COMPONENTS:])))
    state.add(X)
    return state.cumulants(), noise


def reconstruct(moments: Cumulants, noise: float, decomposition: Callable[[np.ndarray], Any]) -> Mixture:
    """Anandkumar et al.'s reconstruction: w_i = λ_i⁻², μ_i = λ_i B v_i."""
    m, eye = moments.axes.T @ moments.mean, np.eye(COMPONENTS)
    second = moments.covariance + np.outer(m, m) - noise * eye
    placed = np.einsum("ab,c->abc", moments.covariance - noise * eye, m)
    third = moments.third + placed + placed.transpose(0, 2, 1) + placed.transpose(2, 1, 0)
    third += np.einsum("a,b,c->abc", m, m, m)
    white = whiten(second, COMPONENTS)
    found = decomposition(contract(third, white.W))
    # Noise leaves some λ near 0 or below, whose weight would count for more than all the others: weights are kept within a
    # factor of five of their mean, which serves both methods best where they are weak and changes little elsewhere.
    lambdas = np.clip(found.weights, np.sqrt(COMPONENTS / 5), np.sqrt(COMPONENTS * 5))
    weights = lambdas**-2.0
    means = (moments.axes @ white.B @ (found.factors * lambdas)).T
    return Mixture(weights / weights.sum(), means, np.full(COMPONENTS, noise))


def by_givens(T: np.ndarray) -> Any:
    """By rotations."""
    return decompose(T, symmetrize=True, tol=1e-8, residual_tol=np.inf, random_state=0)


def by_power(T: np.ndarray) -> Any:
    """By the robust power method."""
    return tensor_power(T, symmetrize=True, random_state=0)


def _fitted(sample: MixtureSample, refine_em: int, threads: int | None) -> Mixture:
    model = SphericalMixture(COMPONENTS, refine_em=refine_em, threads=threads).fit(sample.X)
    return Mixture(model.weights_, model.means_, model.variances_)


class Mixtures(Experiment):
    """Cells of the paper's grid of dimensions and numbers of samples."""

    panels: ClassVar[dict[bool, list[list[tuple[int, int]]]]]
    axis: str
    label: str

    def source(self, settings: ExperimentSettings) -> str:
        """Simulated, as in the paper."""
        return f"simulated mixtures of {COMPONENTS} spherical Gaussians, variance 2, centres as in the paper"

    def tasks(self, settings: ExperimentSettings) -> list[Task]:
        """A sample per cell and seed."""
        seeds = settings.seeds or (1 if settings.quick else 5)
        cells = dict.fromkeys(cell for panel in self.panels[settings.quick] for cell in panel)
        return [
            Task(f"d{d}-n{n}-{seed}", partial(run_one, d, n, seed, settings.threads), weight=float(d * n))
            for d, n in cells
            for seed in range(seeds)
        ]

    def figure(self, rows: list[Row], settings: ExperimentSettings) -> Figure:
        """Mean and standard error, a line per method."""
        panels = self.panels[settings.quick]
        figure, axes = new_figure(4.0 * len(panels) + 3.6, 4.2, 1, len(panels), squeeze=False, sharey=True)
        for ax, panel in zip(axes[0], panels):
            for method, (colour, line, marker) in METHODS.items():
                cells = [_scores(rows, method, *cell) for cell in panel]
                x = [cell[0] if self.axis == "d" else cell[1] for cell in panel]
                error = [np.std(c, ddof=1) / np.sqrt(len(c)) if len(c) > 1 else 0.0 for c in cells]
                ax.errorbar(
                    x, [np.mean(c) for c in cells], error, color=colour, linestyle=line, marker=marker, markersize=5,
                    capsize=3, label=method,
                )  # fmt: skip
            fixed = f"{panel[0][1]:,} samples" if self.axis == "d" else f"d = {panel[0][0]}"
            ax.set(xlabel=self.label, xscale="log", title=fixed)
            ax.set_xticks(x, [f"{value:,}" for value in x])
            ax.minorticks_off()
        axes[0][0].set_ylabel("normalised mutual information")
        axes[0][0].set_ylim(bottom=0)
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside right center", fontsize="small")
        seeds = len({row["seed"] for row in rows})
        figure.suptitle(
            f"{self.source(settings)}\n"
            + (f"mean and standard error over {seeds} seeds" if seeds > 1 else "one seed"),
            fontsize="medium",
        )
        return figure

    def compare(
        self, rows: list[Row], cells: list[tuple[int, int]], first: str, second: str
    ) -> tuple[str, int]:
        """How two methods compare in each of some cells: in words, and in how many the first is ahead."""
        ahead, words = 0, []
        for d, n in cells:
            ours, theirs = np.mean(_scores(rows, first, d, n)), np.mean(_scores(rows, second, d, n))
            ahead += bool(ours > theirs)
            words.append(f"d = {d}, N = {n:,}: {ours:.3f} against {theirs:.3f}")
        return "; ".join(words), ahead


def _scores(rows: list[Row], method: str, d: int, n: int) -> list[float]:
    return [row["nmi"] for row in rows if (row["method"], row["d"], row["n"]) == (method, d, n)]


class MixtureDimensions(Mixtures):
    """Figure 3 of the paper."""

    name = "mixture-dimensions"
    title = "Figure 3: clustering against the dimension"
    about = "Normalised mutual information with the true clusters, for few and for many samples, against the dimension."
    axis, label = "d", "dimension d"
    panels: ClassVar = {
        False: [[(d, n) for d in (20, 50, 100, 200)] for n in (10_000, 200_000)],
        True: [[(d, n) for d in (20, 40)] for n in (4_000, 20_000)],
    }

    def claims(self, rows: list[Row], settings: ExperimentSettings) -> list[Claim]:
        """Ahead with many samples, behind with few in between."""
        few, many = self.panels[settings.quick]
        words, ahead = self.compare(rows, many, PAPER_GIVENS, PAPER_POWER)
        behind_words, behind = self.compare(rows, few[1:-1] or few, PAPER_POWER, PAPER_GIVENS)
        ours, ours_ahead = self.compare(rows, few + many, OURS, PAPER_POWER)
        return [
            Claim(
                f"Givens outperforms the power method for the large sample size ({many[0][1]:,}).",
                f"ahead in {ahead} of {len(many)} dimensions: {words}",
                ahead == len(many),
            ),
            Claim(
                f"For {few[0][1]:,} samples the power method is better at intermediate dimensions.",
                f"ahead in {behind} of {len(few[1:-1] or few)}: {behind_words}",
                behind == len(few[1:-1] or few),
            ),
            Claim(
                "(Ours, not the paper's: SphericalMixture's moments beat the paper's reconstruction by the power method.)",
                f"ahead in {ours_ahead} of {len(few + many)}: {ours}",
                ours_ahead == len(few + many),
            ),
        ]


class MixtureSamples(Mixtures):
    """Figure 4 of the paper."""

    name = "mixture-samples"
    title = "Figure 4: clustering against the number of samples"
    about = "Normalised mutual information with the true clusters at one dimension, against the number of samples."
    axis, label = "n", "samples N"
    panels: ClassVar = {
        False: [[(100, n) for n in (10_000, 30_000, 50_000, 100_000, 200_000)]],
        True: [[(40, n) for n in (4_000, 10_000, 20_000)]],
    }

    def claims(self, rows: list[Row], settings: ExperimentSettings) -> list[Claim]:
        """Better for larger samples."""
        (cells,) = self.panels[settings.quick]
        larger = cells[len(cells) // 2 :]
        words, ahead = self.compare(rows, larger, PAPER_GIVENS, PAPER_POWER)
        return [
            Claim(
                f"At d = {cells[0][0]} Givens performs better for larger sample sizes.",
                f"ahead in {ahead} of {len(larger)}: {words}",
                ahead == len(larger),
            )
        ]
