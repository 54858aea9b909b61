"""Mechanisms of sparse PCA, of its streams, and of factor rotation."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.ablation.mechanism import Mechanism

COUNTS = (
    "SparsePCA n_nonzero=50, 62*",
    "SparsePCA n_nonzero=50, 102*",
    "SparsePCA n_nonzero=50, colon*",
    "SparsePCA n_nonzero_total*",
)
TABLES = ("SparsePCA n_nonzero=50, 102*", "SparsePCA n_nonzero=50, prostate*", "SparsePCA n_nonzero=100*")
ROTATIONS = (
    "FactorRotation varimax, 3,000*",
    "FactorRotation varimax, structured 3,000*",
    "FactorRotation varimax, 5 searches*",
    "FactorRotation varimax, 40 matrices*",
    "FactorRotation equamax*",
    "FactorRotation quartimax*",
    "RotatedPCA varimax, 15 of 20,000 x 200",
)
SAMPLES = ("StreamingSparsePCA n_nonzero*", "StreamingSparsePCA alpha*")


def _varimax(Y: np.ndarray) -> np.ndarray:
    """Rows turned by the usual iteration with singular vectors."""
    R, before = np.eye(len(Y)), 0.0
    for _ in range(100):
        B = R @ Y
        squares = B * B
        P, sizes, Qt = np.linalg.svd((squares - squares.mean(axis=1, keepdims=True)) * B @ Y.T)
        R = P @ Qt
        if sizes.sum() <= before * (1 + 1e-5):
            break
        before = float(sizes.sum())
    return R @ Y


def _starts_without_rotations() -> None:
    """For data of any size a start by varimax of the principal columns in NumPy, and two random ones; one search by exchanges."""
    from givens.sparse_pca.forms import SampleForm, orthonormal_columns

    from givens.sparse_pca.cardinality import SeveralStarts

    def starts(self: Any, previous: Any, rng: np.random.Generator) -> Any:
        if previous is None:
            self.tried.append("varimax")
            yield _varimax(self.table.principal_columns(self.options.m))
        for _ in range(self.options.n_starts - (1 if previous is not None else -1)):
            self.tried.append("random loadings")
            yield orthonormal_columns(self.table, rng.standard_normal((self.options.m, self.table.features)))

    def run(self: Any, previous: Any, rng: np.random.Generator) -> Any:
        firsts, axes, rank = self._firsts(previous)
        found = [self._replaced(self.ascend(first), axes, rank) for first in firsts]
        found += [self.ascend(self._cut(Y)) for Y in starts(self, previous, rng)]
        best = max(found, key=lambda ascent: ascent.explained)
        if isinstance(self.table, SampleForm) and isinstance(self.table.At, np.ndarray):
            best = self._exchanged(best)
        self.reached = [ascent.explained for ascent in found]
        return best

    SeveralStarts.run = run  # type: ignore[method-assign]


def _without_l0_start() -> None:
    from givens.sparse_pca import cardinality

    cardinality.ROTATED = cardinality.ROTATED[:2]


def _one_start() -> None:
    from givens.sparse_pca.cardinality import SeveralStarts

    others = SeveralStarts._others
    SeveralStarts._others = lambda self, rotate, *rest: others(self, False, *rest)  # type: ignore[method-assign]


def _no_exchanges() -> None:
    from givens.sparse_pca.cardinality import SeveralStarts

    SeveralStarts._exchanged = lambda self, best: best  # type: ignore[method-assign]


def _no_replacing() -> None:
    from givens.sparse_pca.cardinality import SeveralStarts

    SeveralStarts._replaced = lambda self, best, axes, rank: best  # type: ignore[method-assign]


def _none_missed() -> None:
    from givens.sparse_pca import cardinality

    cardinality._missed = lambda data, table, features, able, best: features[:0]


def _all_features() -> None:
    from givens.sparse_pca import cardinality

    cardinality.strongest = lambda squares, counts: np.arange(len(squares))


def _samples_alone() -> None:
    from givens.sparse_pca.forms import SampleForm

    from givens.sparse_pca import cardinality

    def table(data: Any, features: np.ndarray, options: Any) -> SampleForm:
        return SampleForm(data.factor(features, options.m, keep_layout=True, implicit=options.n_starts == 1))

    cardinality._table = table


def _axes_of_all_features() -> None:
    from givens.sparse_pca import forms

    forms.AXES = 10**9


def _whole_decomposition() -> None:
    from givens.numerics import gram

    gram.decomposed_whole = lambda n, m: True


def _equal_counts() -> None:
    from givens.sparse_pca import cardinality

    cardinality.solve_total = cardinality.solve


def _no_screening() -> None:
    from givens.sparse_pca import estimator

    estimator.screen = lambda norms, asked: np.arange(len(norms))


def _all_columns() -> None:
    from givens.sparse_pca.options import FitOptions

    FitOptions.all_columns = lambda self, rows: self.counts is None  # type: ignore[method-assign]


def _gradients_alone() -> None:
    from givens.sparse_pca.few_components import FewColumns

    sweep = FewColumns._sweep

    def swept(self: Any, state: Any) -> Any:
        found = sweep(self, state)
        state.step = state.step[:0]
        return found

    FewColumns._sweep = swept  # type: ignore[method-assign]


def _dense_products() -> None:
    from givens.sparse_pca.data import CentredData

    CentredData._through_nonzeros = lambda self, features: False  # type: ignore[method-assign]


def _cold_starts() -> None:
    from givens.sparse_pca.estimator import SparsePCA

    SparsePCA._last_loadings = lambda self, m: None  # type: ignore[method-assign]


def _starts_of_minimize() -> None:
    """Four starts of `minimize` itself, where a run is not expensive."""
    from givens.rotation import factor_rotation
    from givens.rotation.explore import Found

    minimize, affordable, number = factor_rotation.minimize, factor_rotation.affordable, 1

    def explore(loadings: np.ndarray, kappa: float, candidates: int, *_: Any) -> Found:
        nonlocal number
        number = candidates
        return Found(np.eye(loadings.shape[1]), False)

    def minimized(objective: Any, start: Any, *, phases: Any, **options: Any) -> Any:
        return minimize(objective, n_starts=1 if start is None else number, **options)

    factor_rotation.affordable = lambda rows, columns: min(affordable(rows, columns), 4)
    factor_rotation.explore = explore
    factor_rotation.minimize = minimized


def _four_candidates() -> None:
    from givens.rotation import explore

    explore.CANDIDATES = 4


def _no_scouts() -> None:
    from givens.rotation import explore

    explore._agreed = lambda scouts, size: None


def _products_by_blas() -> None:
    from givens.streaming import products

    products.FEW_ROWS = 0


def _centred_in_numpy() -> None:
    from givens.kernels import stream

    def centre(
        X: Any, unit: Any, forgetting: Any, weights: Any, own: Any, mean: Any, squares: Any, W: Any,
        begin: int, energies: Any, first: int, last: int,
    ) -> None:  # fmt: skip
        m = mean[first:last]
        for s in range(len(X)):
            rate = own[s] / weights[s]
            difference = X[s, first:last] / unit - m
            m += rate * difference
            difference *= np.sqrt(own[s] * (1.0 - rate))
            W[begin + s, first:last] = difference
            energies[s] = difference @ difference
            if len(squares):
                squares[first:last] *= forgetting
                squares[first:last] += difference**2

    stream.centre = centre


def _small_reserve() -> None:
    from givens.streaming import settings

    settings.default_reserve = lambda components: components


def _rotated_alone() -> None:
    from givens.streaming import components

    loadings = components._loadings

    def without_axes(Y: Any, columns: Any, asked: Any, levels: Any, method: str, *rest: Any) -> Any:
        found = loadings(Y, columns, asked, levels, method, *rest)
        if method.startswith("principal axes, which"):
            found.adjusted = np.zeros_like(found.adjusted)
        return found

    components._loadings = without_axes


MECHANISMS = (
    Mechanism(
        "factor rotation: exploration",
        ROTATIONS,
        ("rotation/explore.py", "kernels/quartic.py:sweep_all"),
        _starts_of_minimize,
        "kept: without it forty matrices of few variables take 2.3 to 3.9 times as long, though 3,000 x 20 takes 0.19.",
    ),
    Mechanism(
        "streams: turn and multiply in compiled loops",
        SAMPLES,
        (
            "kernels/stream.py:turn",
            "kernels/stream.py:_turn_strip",
            "kernels/stream.py:multiply",
            "kernels/stream.py:_multiply_strip",
        ),
        _products_by_blas,
        "deleted: matrix products take 0.95 to 1.18 times as long, and nothing of theirs is compiled.",
    ),
    Mechanism(
        "streams: centring in compiled loops",
        SAMPLES,
        ("kernels/stream.py:centre",),
        _centred_in_numpy,
        "deleted: in NumPy a fit of 2,000 x 2,000 took 1.4 times as long; now the scatter of a block is centred, and no "
        "sample is.",
    ),
    Mechanism(
        "n_nonzero: a third start from rotations, for l0",
        COUNTS,
        ("sparse_pca/cardinality.py:ROTATED",),
        _without_l0_start,
        "deleted: it costs 1.4 times the time on 33 small tables, and explains 0.01 % more in their mean, 0.27 % at most.",
    ),
    Mechanism(
        "n_nonzero: starts from rotations",
        COUNTS,
        ("sparse_pca/cardinality.py:ROTATED", "sparse_pca/loadings.py:rotated"),
        _starts_without_rotations,
        "kept: with varimax and random starts, counts of digits explain 1.8 and 2.5 % less than their threshold.",
    ),
    Mechanism(
        "n_nonzero: products of features",
        ("SparsePCA sparse matrix, n_nonzero*",),
        ("sparse_pca/forms.py:ProductForm", "sparse_pca/forms.py:ProductRest"),
        _samples_alone,
        "kept: 3,000 x 2,000 sparse counts take 2.8 times as long through samples.",
    ),
    Mechanism(
        "n_nonzero: replacing",
        COUNTS,
        (
            "sparse_pca/cardinality.py:SeveralStarts._replaced",
            "sparse_pca/cardinality.py:replaced",
            "sparse_pca/cardinality.py:_beside",
        ),
        _no_replacing,
        "kept: as renewals, without which a heavy-tailed table explains 3 to 6 % less, though these rows do not change.",
    ),
    Mechanism(
        "n_nonzero: exchanges",
        COUNTS,
        ("sparse_pca/exchanges.py", "sparse_pca/cardinality.py:SeveralStarts._exchanged"),
        _no_exchanges,
        "kept: without them ten components of 200 genes of colon explain 6.4 % less.",
    ),
    Mechanism(
        "n_nonzero: features that were missed",
        TABLES,
        ("sparse_pca/cardinality.py:_missed",),
        _none_missed,
        "kept: 0.01 % here, 1.4 % at worst in a first measurement of version 0.2.",
    ),
    Mechanism(
        "sparse PCA: products through non-zeros",
        ("SparsePCA sparse matrix*",),
        (
            "sparse_pca/data.py:CentredData._through_nonzeros",
            "sparse_pca/data.py:CentredData._far",
            "sparse_pca/data.py:_row_blocks",
            "numerics/gram.py:add_sparse",
            "kernels/gram.py",
        ),
        _dense_products,
        "kept: twice the time without them.",
    ),
    Mechanism(
        "n_nonzero: axes of the strongest features",
        TABLES,
        ("sparse_pca/forms.py:AXES",),
        _axes_of_all_features,
        "deleted: it changed nothing.",
    ),
    Mechanism(
        "sparse PCA: leading axes by iteration",
        ("SparsePCA sparse matrix*",),
        ("numerics/gram.py:leading_subspace", "numerics/gram.py:rough_axes"),
        _whole_decomposition,
        "kept: wide tables take up to 8 times as long without it.",
    ),
    Mechanism(
        "alpha: directions of the sweep before",
        ("SparsePCA alpha=0.1, 10 of*", "SparsePCA alpha=0.1, 8 starts*", "StreamingSparsePCA alpha*"),
        ("sparse_pca/few_components.py:State",),
        _gradients_alone,
        "kept: six lines, without which ten components explain 0.25 % less.",
    ),
    Mechanism(
        "n_nonzero: strongest features first",
        TABLES,
        ("sparse_pca/cardinality.py:strongest", "sparse_pca/cardinality.py:_missed"),
        _all_features,
        "kept: 100 x 8,000 takes 1.9 to 2.6 times as long by the present search with all features at once.",
    ),
    Mechanism(
        "path and stability: warm starts",
        ("sparse_pca_path*", "SparsePCA stability*"),
        ("sparse_pca/estimator.py:SparsePCA._last_loadings",),
        _cold_starts,
        "kept: cold starts take 1.2 to 2.4 times as long.",
    ),
    Mechanism(
        "alpha: screening",
        ("SparsePCA alpha*", "SparsePCA sparse matrix, alpha*", "sparse_pca_path*"),
        ("sparse_pca/loadings.py:screen",),
        _no_screening,
        "kept: four lines; few features exceed a high threshold, and three times the time goes into the others.",
    ),
    Mechanism(
        "n_nonzero_total: the budget divided again",
        ("SparsePCA n_nonzero_total*",),
        ("sparse_pca/cardinality.py:solve_total", "sparse_pca/cardinality.py:spent"),
        _equal_counts,
        "kept: equal counts leave a tenth more unexplained.",
    ),
    Mechanism(
        "streams: principal axes beside rotated ones",
        ("StreamingSparsePCA alpha*",),
        (),
        _rotated_alone,
        "deleted: it changed nothing.",
    ),
    Mechanism(
        "streams: reserve of three times the components",
        ("StreamingSparsePCA n_nonzero*", "StreamingSparsePCA alpha*"),
        ("streaming/rules.py:default_reserve",),
        _small_reserve,
        "kept: on 18 planted problems it finds 80 of 80 modules instead of 73.",
    ),
    Mechanism(
        "alpha: few components",
        (
            "SparsePCA alpha=0.1, 10 of*",
            "SparsePCA alpha=0.1, 8 starts*",
            "SparsePCA sparse matrix, alpha*",
            "sparse_pca_path*",
        ),
        ("sparse_pca/few_components.py",),
        _all_columns,
        "kept: all components take up to 5.4 times as long.",
    ),
    Mechanism(
        "n_nonzero: several starts on small data",
        COUNTS,
        ("sparse_pca/cardinality.py:SeveralStarts._others",),
        _one_start,
        "kept: one start takes a tenth of the time on 62 x 2,000, but explains up to 0.9 % less there, and 5.3 % on 800 genes.",
    ),
    Mechanism(
        "factor rotation: 16 candidates, not 4",
        ROTATIONS,
        ("rotation/explore.py:CANDIDATES",),
        _four_candidates,
        "kept: four candidates take a quarter of the time on 3,000 x 20 normal loadings, and find 0.6 % less.",
    ),
    Mechanism(
        "factor rotation: scouts",
        ROTATIONS,
        ("rotation/explore.py:_agreed",),
        _no_scouts,
        "kept: without them five fits of 3,000 x 20 structured loadings take 1.35 s instead of 0.33.",
    ),
)
