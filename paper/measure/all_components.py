"""Figure 1, measured: sparse PCA with as many components as samples, by Algorithm 2, by GPower and by `SparsePCA`'s own search.

All three see the same features, those whose norm exceeds γ (the others contribute nothing to any U), start at the same random
rotation, and stop by the same rule: a pass (GPower: an iteration; rotations: as many as there are pairs) that raises
the objective by no more than 1e-4 of itself is the last. Loadings at some U are found alike for all: the pattern of S(AU), with
values by pattern filling (solveForZ, Algorithm 6 of Journée et al. 2010). Operations are those of the search for U. Algorithm 2
finds an angle by a search on a grid, on the rows that can count, which leaves at most a thousandth of the gain; the library's own
search proves that no angle is better, which the paper does not ask for, and takes several times as many operations.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from givens.metrics import adjusted_from_scores
from givens.numerics import flop_counts
from givens.numerics.scaling import unit_rows
from givens.objectives import SparseColumns
from givens.objectives.sparse_columns import Threshold
from givens.result import Snapshot
from givens.rotations import random_orthogonal, turn
from givens.schedules import Random
from givens.solve.minimize import minimize
from givens.sparse_pca.loadings import shrink
from paper.baselines import fill_pattern, gpower
from paper.measure import tables
from paper.measure.recorded import Recorded
from paper.measure.task import ExperimentSettings, Row, Task

SHARES = (0.05, 0.1, 0.2)  # γ as a share of the largest feature norm
ALGORITHM_2, POWER, OURS = "Algorithm 2", "GPower, block form", "SparsePCA's search"
METHODS = (ALGORITHM_2, POWER, OURS)
TOLERANCE = 1e-4  # the paper's
PASSES = 200
ACCURACY = 1e-3  # share of a rotation's gain that Algorithm 2 may leave
# Operations grow by these factors between two values, and between two measurements of loadings.
FINE, COARSE = 1.03, 3.0


class FewEvaluations(Threshold):
    """The pair problem solved about as well as the paper does: at most a thousandth of the gain is left."""

    def solve_pairs(self, Y: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A good angle of each pair, from the rows that can count."""
        from givens.kernels.sparse_pair import search

        angles, gains, flops = np.zeros(len(pairs)), np.zeros(len(pairs)), 0.0
        for k, (i, j) in enumerate(pairs):
            level = float(self.levels[i])
            some = Y[i] ** 2 + Y[j] ** 2 > level * level
            x, y = Y[i, some], Y[j, some]
            pair = x, y, len(x), level, level, False
            angles[k], gains[k], spent = search(pair, self.noise, ACCURACY, True, 1.0)
            flops += spent + 3.0 * Y.shape[1]
        flop_counts.count(flops)
        return turn(angles), gains


def paper_columns(A: np.ndarray, gamma: float) -> SparseColumns:
    """The objective of Algorithm 2, with the paper's pair search in place of our exact one."""
    objective = SparseColumns(A, gamma)
    exact = objective.contrast
    objective.contrast = FewEvaluations(exact.levels, exact.l0)
    objective.contrast.noise = exact.noise
    return objective


class Problem:
    """The data, centred and screened, and how good the loadings at some U are."""

    def __init__(self, settings: ExperimentSettings, share: float) -> None:
        X = tables.prostate(settings).X
        X = X - X.mean(axis=0)
        squares = np.sum(X**2, axis=0)
        self.n = len(X)
        self.features = X.shape[1]
        self.gamma = share * float(np.sqrt(squares.max()))
        self.total = float(squares.sum())
        self.X = np.ascontiguousarray(X[:, squares > self.gamma**2])
        self.A = np.ascontiguousarray(self.X.T)

    def value(self, U: np.ndarray) -> float:
        """The objective."""
        return float(np.sum(shrink(U.T @ self.X, self.gamma) ** 2))

    def measure(self, U: np.ndarray) -> Row:
        """Explained variance (Zou's, of all components) and share of non-zeros of the filled loadings at U."""
        Z, _ = fill_pattern(self.X, unit_rows(shrink(U.T @ self.X, self.gamma)))
        scores = self.X @ Z.T
        order = np.argsort(-np.sum(scores**2, axis=0), kind="stable")
        variance = adjusted_from_scores(scores[:, order]).sum() * (self.n - 1) / self.total
        return {
            "variance": float(variance),
            "nonzeros": float(np.count_nonzero(Z) / (self.n * self.features)),
        }


def run_rotations(problem: Problem, start: np.ndarray, seed: int, *, pairs: bool) -> list[Row]:
    """Values along a run, and now and then the loadings."""
    began = problem.value(start)
    rows: list[Row] = [{"flops": 0.0, "value": began, **problem.measure(start)}]
    measured = [1.0]

    def watch(U: np.ndarray, rotations: int, flops: float) -> None:
        if flops <= FINE * rows[-1]["flops"]:
            return
        row = {
            "flops": flops,
            "value": began - watched.factor * watched.gained if pairs else problem.value(U),
        }
        if flops > COARSE * measured[-1]:
            measured.append(flops)
            row |= problem.measure(U)
        rows.append(row)

    last = [began]

    def settled(snapshot: Snapshot) -> bool:
        gain, last[0] = snapshot.value - last[0], snapshot.value
        return snapshot.step > 0 and gain <= TOLERANCE * snapshot.value

    columns = paper_columns if pairs else SparseColumns
    watched = Recorded(columns(problem.A, problem.gamma), watch)
    result = minimize(
        watched,
        start,
        method=Random() if pairs else watched.method[-1],
        tol=0,
        max_iter=PASSES,
        random_state=seed,
        callback=settled,
        threads=1,
    )
    return [*rows, {"flops": result.flops, "value": result.value, **problem.measure(result.U)}]


def run_power(problem: Problem, start: np.ndarray) -> list[Row]:
    """The same of GPower, which is stopped to be measured and goes on from its U."""
    rows: list[Row] = [{"flops": 0.0, "value": problem.value(start), **problem.measure(start)}]
    U, flops, steps = start, 0.0, 1
    while True:
        found = gpower(problem.A, problem.n, problem.gamma, start=U, tol=TOLERANCE, max_iter=steps, threads=1)
        # The first value of a run that goes on is the last of the run before.
        spent = np.array(found.flops) - (found.flops[0] if flops else 0.0)
        new = range(1 if flops else 0, len(spent))
        rows += [{"flops": flops + float(spent[k]), "value": found.values[k]} for k in new]
        rows[-1] |= problem.measure(found.U)
        if found.converged or steps > 1000:
            return rows
        U, flops, steps = found.U, flops + float(spent[-1]), 2 * steps


def run_one(settings: ExperimentSettings, share: float, method: str, seed: int) -> list[Row]:
    """One method at one γ from one start."""
    problem = Problem(settings, share)
    start = random_orthogonal(problem.n, np.random.default_rng(seed), determinant=1)
    if method == POWER:
        rows = run_power(problem, start)
    else:
        rows = run_rotations(problem, start, seed, pairs=method == ALGORITHM_2)
    return [{"share": share, "method": method, "seed": seed, **row} for row in rows]


def tasks(settings: ExperimentSettings) -> list[Task]:
    """A run per start, γ and method."""
    seeds = settings.seeds or (2 if settings.quick else 20)
    return [
        Task(f"{share:g}-{number}-{seed}", partial(run_one, settings, share, method, seed))
        for seed in range(seeds)
        for share in SHARES
        for number, method in enumerate(METHODS)
    ]
