"""The mechanisms of the engine: phases, cheaper forms of an objective, starts, and the search of a pair of sparse columns."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from benchmarks.ablation.mechanism import Mechanism

FUNCTIONS = ("minimize Function quadratic, n = [13]0", "minimize Function log cosh, n = [13]0")
QUADRATIC = ("minimize Function quadratic*", "minimize Function log cosh, n = 30")
ROTATIONS = (
    "FactorRotation varimax, 3,000 x 20",
    "FactorRotation varimax, structured*",
    "FactorRotation varimax, 10,000 x 50",
    "FactorRotation varimax, field*",
    "FactorRotation [qe]*",
    "RotatedPCA varimax, 15 of 20,000 x 200",
    "minimize Columns varimax, 3,000 x 30",
)
SPARSE = (
    "minimize SparseColumns l1, 2,000 x 60",
    "minimize SparseColumns l0, 2,000 x 60",
    "SparsePCA alpha=0.1, all of 100 x 8,000",
    "SparsePCA alpha=0.3, all of 100 x 8,000",
    "SparsePCA alpha=0.1, l0, all of 100 x 8,000",
)


def _set(place: str, **values: Any) -> Callable[[], None]:
    """A switch that assigns names of a module, or of a class in it: "phases.descent" or "objectives.quartic:Orthomax"."""

    def off() -> None:
        module, _, name = place.partition(":")
        owner = importlib.import_module(f"givens.{module}")
        for key, value in values.items():
            setattr(getattr(owner, name) if name else owner, key, value)

    return off


def _no_model_of_columns() -> None:
    """Nor the Kronecker model for few columns, which would take its place where f is quadratic, and more time."""
    from givens.phases import descent
    from givens.phases.kronecker_model import KroneckerModel

    def kronecker(n: int) -> KroneckerModel:
        model = KroneckerModel(n)
        model.dropped = n <= descent.FEW_COLUMNS
        return model

    descent.MOST_COLUMNS = 0
    descent.KroneckerModel = kronecker  # type: ignore[assignment,misc]


def _no_second_derivatives() -> None:
    """Leave Newton's method out, but not the cheaper forms that are made for it."""
    from givens.objectives.columns import Columns

    plan = Columns.plan

    def without(self: Any) -> Any:
        planned = plan(self)
        phases = tuple(phase for phase in planned.phases if phase != "newton")
        return planned._replace(second=None, phases=phases)

    Columns.plan = without  # type: ignore[method-assign]


def _not_coarse(*names: str) -> Callable[[], None]:
    """Leave out samples and single precision for the contrasts of these classes."""

    def off() -> None:
        from givens.objectives.columns import Columns

        coarse = Columns.coarse

        def without(self: Any) -> Any:
            return None if type(self.contrast).__name__ in names else coarse(self)

        Columns.coarse = without  # type: ignore[method-assign]

    return off


def _one_sample() -> None:
    """No smaller sample of a sample."""
    from givens.objectives.columns import Columns

    coarse = Columns.coarse
    Columns.coarse = lambda self: None if self.single else coarse(self)  # type: ignore[method-assign]


def _double_precision() -> None:
    """Samples in double precision; a smaller sample where all rows in single precision were the first cheaper form."""
    import numpy as np

    from givens.objectives.columns import Columns

    coarse, look = Columns.coarse, Columns.look

    def double(self: Any) -> Any:
        other = coarse(self)
        while other is not None and other._height() == self._height():
            other = coarse(other)
        if other is not None:
            other.A = other.A.astype(np.float64)
        return other

    def precise(self: Any, state: Any, Q: Any = None, slopes: bool = True) -> Any:
        single, self.single = self.single, False
        try:
            return look(self, state, Q, slopes)
        finally:
            self.single = single

    Columns.coarse, Columns.look = double, precise  # type: ignore[method-assign]


def _no_leaps() -> None:
    from givens.objectives.sparse_columns import SparseColumns

    SparseColumns.propose = lambda self, state, memory, first: None  # type: ignore[method-assign]


def _plain_leaps() -> None:
    """Leaps from the last U, not from a V beyond it."""
    from givens.objectives import leaps

    leaps.BEYOND = 0.0
    # Nesterov's factor grows with this count.
    leaps.PolarLeaps.agreed = property(lambda self: 0, lambda self, value: None)  # type: ignore[assignment]


def _pairs() -> None:
    """Every pair by itself, to its global maximum."""
    from givens.objectives.sparse_columns import Threshold

    Threshold.block = lambda self, n: 2  # type: ignore[method-assign]


def _no_race() -> None:
    Runs = importlib.import_module("givens.minimize").Runs
    best = Runs.best
    Runs.best = lambda self, first, number, rng, forms, race: best(self, first, number, rng, forms, False)


def _breakpoints_only() -> None:
    """The exact pair by its sorted breakpoints alone."""
    from givens.kernels import sparse_blocks, sparse_pair
    from givens.kernels.compile import inline
    from givens.kernels.sorted_breakpoints import sorted_search

    cosine, sine, curvature, value, rounding = _pair_functions(sparse_pair)

    @inline
    def exact_search(x, y, number, first, second, l0, floor, accuracy, values):  # type: ignore[no-untyped-def]
        start = curvature(x, y, number, first, second, l0)[0]
        theta, flops = sorted_search(x, y, number, first, second, l0)
        best = value(x, y, number, cosine(theta), sine(theta), first, second, l0)
        flops += 30.0 * number
        if not best - start > max(floor, rounding(start, number)):
            return 0.0, 0.0, flops
        return theta, best - start, flops

    sparse_blocks.exact_search = exact_search


def _no_grid() -> None:
    """The pairs of blocks and streams that are far from a maximum also by their sorted breakpoints."""
    from givens.kernels import sparse_pair
    from givens.kernels.compile import inline
    from givens.kernels.sorted_breakpoints import sorted_search

    cosine, sine, _, value, _ = _pair_functions(sparse_pair)

    @inline
    def from_breakpoints(x, y, number, first, second, l0, start, slope, floor, accuracy, values):  # type: ignore[no-untyped-def]
        theta, flops = sorted_search(x, y, number, first, second, l0)
        return theta, value(x, y, number, cosine(theta), sine(theta), first, second, l0), flops

    sparse_pair._from_grid = from_breakpoints


def _pair_functions(sparse_pair: Any) -> tuple[Any, ...]:
    import numpy as np

    return np.cos, np.sin, sparse_pair._curvature, sparse_pair._value, sparse_pair._rounding


def _uncached(*places: str) -> Callable[[], None]:
    """Call these functions ("phases.charts:_flat_indices") anew every time."""

    def off() -> None:
        for place in places:
            name, _, function = place.partition(":")
            module = importlib.import_module(f"givens.{name}")
            setattr(module, function, getattr(module, function).__wrapped__)

    return off


MECHANISMS = (
    Mechanism(
        "model of columns",
        FUNCTIONS,
        (
            "phases/column_model.py",
            "kernels/column_model.py",
            "objectives/function.py:Function._is_sum_over_columns",
        ),
        _no_model_of_columns,
        "deleted: without it quadratic functions of order 10 take 1.5 times as long, and other functions 0.7 to 1.0 times.",
    ),
    Mechanism(
        "branch and bound of an exact pair",
        ("minimize SparseColumns l1, certify*",),
        tuple(f"kernels/sparse_pair.py:{name}" for name in ("_bounds", "_certify", "_around", "_none_above")),
        _breakpoints_only,
        "kept: sorted breakpoints alone take 2.5 times as long where all pairs are certified, a row of 1 s.",
    ),
    Mechanism(
        "Newton's method for orthomax",
        ROTATIONS,
        (
            "phases/newton.py",
            "objectives/contrasts.py:second_of_columns",
            "objectives/quartic.py:Orthomax.second",
        ),
        _no_second_derivatives,
        "kept: loadings of smooth fields, where f is nearly flat, do not converge in 500 steps of descent without it.",
    ),
    Mechanism(
        "samples, log cosh",
        ("ICA logcosh*",),
        ("objectives/columns.py:Columns.coarse", "objectives/columns.py:Columns._cheaper"),
        _not_coarse("LogCosh"),
        "kept: the same code as for kurtosis, where it is 3 times faster.",
    ),
    Mechanism(
        "samples, kurtosis",
        ("ICA kurtosis*", "minimize Columns kurtosis*"),
        ("objectives/columns.py:Columns.coarse", "objectives/columns.py:Columns._cheaper"),
        _not_coarse("Kurtosis"),
        "kept: 3 times faster on 50,000 x 64, with the same answer.",
    ),
    Mechanism(
        "samples, exp",
        ("ICA exp*",),
        ("objectives/columns.py:Columns.coarse", "objectives/columns.py:Columns._cheaper"),
        _not_coarse("Exp"),
        "kept: it changes nothing on 20,000 x 32, but it is the code of the other contrasts.",
    ),
    Mechanism(
        "samples, adaptive ICA",
        ("ICA mixed tails, 40,000 x 40", "ICA mixed tails, 20,000 x 16", "ICA float32*"),
        ("objectives/columns.py:Columns.coarse", "objectives/columns.py:Columns._cheaper"),
        _not_coarse("NonGaussianity"),
        "kept: the same code as for kurtosis, and the fixed point begins on the sample.",
    ),
    Mechanism(
        "samples, orthomax",
        ROTATIONS,
        ("objectives/columns.py:Columns.coarse", "objectives/columns.py:Columns._cheaper"),
        _not_coarse("Orthomax"),
        "kept: structured loadings take 2.3 times as long without it, rotated components twice as long; normal ones 0.7 times.",
    ),
    Mechanism(
        "single precision of samples",
        (
            "ICA logcosh*",
            "ICA mixed tails, 40,000 x 40",
            "FactorRotation varimax, 3,000 x 20",
            "FactorRotation varimax, 10,000 x 50",
            "FactorRotation varimax, structured 10,000 x 50",
        ),
        (),
        _double_precision,
        "deleted: with and without it rows take 0.89 to 1.15 times as long.",
    ),
    Mechanism(
        "a smaller sample of a sample",
        (
            "ICA logcosh*",
            "ICA mixed tails, 40,000 x 40",
            "FactorRotation varimax, 3,000 x 20",
            "FactorRotation varimax, 10,000 x 50",
            "FactorRotation varimax, structured 10,000 x 50",
        ),
        (),
        _one_sample,
        "deleted: one sample of 96 rows a column serves all; seven other data sets were as fast with it.",
    ),
    Mechanism(
        "Kronecker model",
        QUADRATIC,
        ("phases/kronecker_model.py",),
        _set("phases.descent", MOST_ORDER=0),
        "kept: above order 20 it saves three quarters of the evaluations; since then it begins at order 12.",
    ),
    Mechanism(
        "leaps of sparse columns",
        SPARSE,
        ("objectives/leaps.py", "phases/leaping.py", "objectives/sparse_columns.py:SparseColumns.propose"),
        _no_leaps,
        "deleted: rows are faster without leaps and explain as much or more; so are 30 problems of three gene tables.",
    ),
    Mechanism(
        "extrapolation of leaps",
        SPARSE,
        (),
        _plain_leaps,
        "deleted: with the leaps, which were worth little without it.",
    ),
    Mechanism(
        "leaps of the strongest features first",
        SPARSE,
        ("objectives/leaps.py:Features.select",),
        _set("objectives.leaps", SHARES=()),
        "deleted: with the leaps.",
    ),
    Mechanism(
        "grid for the pairs of a block",
        (*SPARSE, "StreamingSparsePCA Algorithm 5*"),
        ("kernels/sparse_pair.py:_from_grid",),
        _no_grid,
        "kept: Algorithm 5's row takes 38 times as long by sorted breakpoints alone.",
    ),
    Mechanism(
        "blocks of sparse columns",
        ("minimize SparseColumns l1, 2,000 x 60", "SparsePCA alpha=0.1, all of 100 x 8,000"),
        ("kernels/sparse_blocks.py:turn_block", "kernels/sparse_blocks.py:_union"),
        _pairs,
        "kept: pairs take 1.3 to 3.9 times as long.",
    ),
    Mechanism(
        "race of starts",
        (
            "SparsePCA alpha=0.1, 8 starts*",
            "ICA 8 starts*",
            "minimize SymmetricTensor*",
            "FactorRotation varimax, 5 searches*",
        ),
        ("minimize.py:_best",),
        _no_race,
        "kept: these rows do not tell, but on 216 plain functions with ten starts a race took 0.62 of the time.",
    ),
    Mechanism(
        "caches of index arrays",
        (
            "minimize Function log cosh, n = 10",
            "minimize StiefelFunction*",
            "FactorRotation varimax, 40 matrices, normal",
            "minimize Columns varimax, 20,000 x 20, dask",
        ),
        (),
        _uncached(
            "phases.charts:_flat_indices",
            "objectives.quartic:_sweep_flops",
            "objectives.quartic:_shares",
            "objectives.function:_probe_place",
            "objectives.function:_direction",
            "objectives.stiefel:_probe_place",
            "objectives.block_moments:quadruples",
        ),
        "kept: a line each; some runs of small matrices take 1.1 times as long without them.",
    ),
)
