"""The rows of the comparison: whose work it is, its data, the call, and a number that says how good the answer is.

A row takes 50 ms to 10 s on a quiet machine. Its name begins with what is run; then come the data and their size, and `, chunks`
or `, dask` where they are not in memory. Calls use the vocabulary of version 0.2 and go through `adapter.Library`.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.compare import data, values
from benchmarks.compare.adapter import Library

USERS = ("biologist", "data scientist", "large data", "researcher", "signals")


@dataclass(frozen=True)
class Row:
    """One row. `call` is timed; `value` is a number of its result, by plain NumPy; smaller is better."""

    name: str
    user: str
    data: Callable[[], Any]
    call: Callable[[Library, Any], Any]
    value: Callable[[Library, Any, Any], float]


# Sparse PCA


def _sparse_pca(
    name: str,
    make: Callable[[], Any],
    user: str = "biologist",
    *,
    chunked: Callable[[Any], Any] | None = None,
    estimator: str = "SparsePCA",
    **options: Any,
) -> Row:
    """A fit of samples x features; `chunked` divides them before the clock starts."""

    def prepared() -> tuple[Any, Any]:
        X = make()
        return X, chunked(X) if chunked else X

    return Row(
        f"{estimator} {name}",
        user,
        prepared,
        lambda library, pair: getattr(library, estimator)(random_state=0, **options).fit(pair[1]),
        lambda library, pair, model: values.unexplained(
            np.nan_to_num(pair[0]) if options.get("missing") else pair[0], library.read(model, "components_")
        ),
    )


def _covariance_row() -> Row:
    def covariance() -> np.ndarray:
        return np.cov(data.expression(500, 300).T)

    return Row(
        "SparsePCA covariance of 300",
        "researcher",
        covariance,
        lambda library, S: library.SparsePCA(10, n_nonzero=20, random_state=0).fit_covariance(S, 500),
        lambda library, S, model: values.unexplained_covariance(S, library.read(model, "components_")),
    )


def _path_row() -> Row:
    return Row(
        "sparse_pca_path 100 x 2,000",
        "biologist",
        lambda: data.expression(100, 2000),
        lambda library, X: library.sparse_pca_path(X, 5, random_state=0),
        lambda library, X, path: float(
            np.mean([values.unexplained(X, Z) for Z in library.read(path, "components")])
        ),
    )


SPARSE_PCA = (
    _sparse_pca(
        "n_nonzero=50, 62 x 2,000", lambda: data.tilted_expression(62, 2000), n_components=10, n_nonzero=50
    ),
    _sparse_pca(
        "n_nonzero=50, 102 x 12,600",
        lambda: data.tilted_expression(102, 12_600),
        n_components=10,
        n_nonzero=50,
    ),
    _sparse_pca(
        "n_nonzero=100, planted 100 x 8,000",
        lambda: data.expression(100, 8000),
        n_components=10,
        n_nonzero=100,
    ),
    _sparse_pca(
        "n_nonzero_total=200, 62 x 2,000",
        lambda: data.tilted_expression(62, 2000),
        n_components=5,
        n_nonzero_total=200,
    ),
    _sparse_pca(
        "alpha=0.1, 10 of 100 x 8,000", lambda: data.expression(100, 8000), n_components=10, alpha=0.1
    ),
    _sparse_pca("alpha=0.1, all of 100 x 8,000", lambda: data.expression(100, 8000), alpha=0.1),
    _sparse_pca("alpha=0.3, all of 100 x 8,000", lambda: data.expression(100, 8000), alpha=0.3),
    _sparse_pca(
        "alpha=0.1, l0, all of 100 x 8,000",
        lambda: data.expression(100, 8000),
        alpha=0.1,
        penalty="l0",
    ),
    _sparse_pca(
        "alpha=0.1, float32, all of 100 x 8,000",
        lambda: data.expression(100, 8000).astype(np.float32),
        alpha=0.1,
    ),
    _sparse_pca(
        "alpha=0.1, 8 starts, 10 of 62 x 2,000",
        lambda: data.tilted_expression(62, 2000),
        n_components=10,
        alpha=0.1,
        n_starts=8,
    ),
    _sparse_pca(
        "stability=20, n_nonzero=30, 62 x 2,000",
        lambda: data.tilted_expression(62, 2000),
        n_components=3,
        n_nonzero=30,
        stability=20,
    ),
    _sparse_pca(
        "missing values, n_nonzero=30, 100 x 1,000",
        lambda: data.with_missing(data.expression(100, 1000), 0.02),
        n_components=5,
        n_nonzero=30,
        missing="em",
    ),
    _sparse_pca(
        "sparse matrix, n_nonzero=50, 3,000 x 2,000",
        lambda: data.cells(3000, 2000),
        n_components=8,
        n_nonzero=50,
    ),
    _sparse_pca(
        "sparse matrix, alpha=0.1, 3,000 x 2,000",
        lambda: data.cells(3000, 2000),
        n_components=8,
        alpha=0.1,
    ),
    _sparse_pca(
        "n_nonzero=30, 20,000 x 300, dask",
        lambda: data.expression(20_000, 300),
        "large data",
        chunked=lambda X: data.dask_array(X, 10),
        n_components=5,
        n_nonzero=30,
    ),
    _covariance_row(),
    _path_row(),
)

_stream = functools.partial(_sparse_pca, user="large data", estimator="StreamingSparsePCA")

STREAMS = (
    _stream(
        "n_nonzero=100, 2,000 x 2,000", lambda: data.expression(2000, 2000), n_components=5, n_nonzero=100
    ),
    _stream(
        "n_nonzero=100, 2,000 x 2,000, chunks",
        lambda: data.expression(2000, 2000),
        chunked=lambda X: data.blocks(X, 20),
        n_components=5,
        n_nonzero=100,
    ),
    _stream(
        "n_nonzero=30, 20,000 x 300, dask",
        lambda: data.expression(20_000, 300),
        chunked=lambda X: data.dask_array(X, 10),
        n_components=5,
        n_nonzero=30,
    ),
    _stream(
        "alpha=0.1, sparse matrix, 3,000 x 2,000",
        lambda: data.cells(3000, 2000),
        n_components=5,
        alpha=0.1,
    ),
    _stream(
        "Algorithm 5, 2,000 x 500",
        lambda: data.expression(2000, 500),
        user="researcher",
        n_components=5,
        gamma=15.0,
        gamma_grows=False,
        inner_rotations=5,
        oversample=0,
        drop="weakest",
    ),
)

# Of versions that have this rule: not in `ROWS`, but found by its name.
LEFTOVER = _stream(
    "drop=leftover, 4,000 x 500",
    lambda: data.expression(4000, 500),
    user="researcher",
    n_components=5,
    alpha=0.05,
    drop="leftover",
)


# Sources of signals


def _separation(
    name: str,
    make: Callable[[], data.Mixed],
    *,
    chunked: Callable[[Any], Any] | None = None,
    estimator: str = "ICA",
    user: str = "signals",
    **options: Any,
) -> Row:
    def prepared() -> tuple[data.Mixed, Any]:
        mixed = make()
        return mixed, chunked(mixed.X) if chunked else mixed.X

    return Row(
        f"{estimator} {name}",
        user,
        prepared,
        lambda library, pair: getattr(library, estimator)(**options).fit(pair[1]),
        lambda library, pair, model: values.amari(library.read(model, "components_"), pair[0].mixing),
    )


_ica = functools.partial(_separation, random_state=0)


def _single(mixed: data.Mixed) -> data.Mixed:
    return data.Mixed(mixed.X.astype(np.float32), mixed.mixing)


SIGNALS = (
    _ica("mixed tails, 40,000 x 40", lambda: data.mixed_tails(40_000, 40)),
    _ica("mixed tails, 20,000 x 16", lambda: data.mixed_tails(20_000, 16)),
    _ica("logcosh, Laplace, 50,000 x 64", lambda: data.laplace(50_000, 64), contrast="logcosh"),
    _ica("kurtosis, Laplace, 50,000 x 64", lambda: data.laplace(50_000, 64), contrast="kurtosis"),
    _ica("exp, Laplace, 20,000 x 32", lambda: data.laplace(20_000, 32), contrast="exp"),
    _ica("float32, mixed tails, 40,000 x 40", lambda: _single(data.mixed_tails(40_000, 40))),
    _ica(
        "certify, kurtosis, Laplace, 20,000 x 32",
        lambda: data.laplace(20_000, 32),
        contrast="kurtosis",
        certify=True,
    ),
    _ica("stability=10, mixed tails, 5,000 x 12", lambda: data.mixed_tails(5000, 12), stability=10),
    _ica("8 starts, mixed tails, 10,000 x 20", lambda: data.mixed_tails(10_000, 20), n_starts=8),
    _ica(
        "mixed tails, 20,000 x 16, chunks",
        lambda: data.mixed_tails(20_000, 16),
        chunked=lambda X: data.blocks(X, 10),
        user="large data",
    ),
    _ica(
        "mixed tails, 20,000 x 16, dask",
        lambda: data.mixed_tails(20_000, 16),
        chunked=lambda X: data.dask_array(X, 10),
        user="large data",
    ),
    _separation("Laplace, 10,000 x 30", lambda: data.laplace(10_000, 30), estimator="JADE"),
    _separation("coloured, 20,000 x 30", lambda: data.coloured(20_000, 30), estimator="SOBI"),
    Row(
        "joint_diagonalize 200 of order 60",
        "signals",
        lambda: data.stack(200, 60),
        lambda library, matrices: library.joint_diagonalize(matrices),
        lambda library, matrices, found: values.off_diagonal(matrices, found[0].T),
    ),
)


# Factor rotation


def _rotation(
    name: str,
    make: Callable[[], np.ndarray],
    kappa: float = 1.0,
    repeat: int = 1,
    **options: Any,
) -> Row:
    def call(library: Library, A: np.ndarray) -> Any:
        return [library.FactorRotation(**options).fit(A) for _ in range(repeat)][-1]

    return Row(
        f"FactorRotation {name}{f', {repeat} times' if repeat > 1 else ''}",
        "researcher",
        make,
        call,
        lambda library, A, model: values.orthomax(library.read(model, "loadings_"), kappa, True),
    )


def _many_rotations(name: str, structured: bool) -> Row:
    """Forty matrices of the sizes that psychologists have."""

    def matrices() -> list[np.ndarray]:
        return [data.loadings(40 + 5 * i, 4 + i // 4, structured, seed=i) for i in range(40)]

    return Row(
        f"FactorRotation varimax, 40 matrices, {name}",
        "researcher",
        matrices,
        lambda library, group: [library.FactorRotation().fit(A) for A in group],
        lambda library, group, models: float(
            np.mean([values.orthomax(library.read(model, "loadings_"), 1.0, True) for model in models])
        ),
    )


def _rotated_pca(name: str, chunked: Callable[[Any], Any] | None = None, user: str = "data scientist") -> Row:
    def prepared() -> Any:
        X = data.expression(20_000, 200)
        return chunked(X) if chunked else X

    return Row(
        f"RotatedPCA varimax, 15 of 20,000 x 200{name}",
        user,
        prepared,
        lambda library, X: library.RotatedPCA(15).fit(X),
        lambda library, X, model: values.orthomax(library.read(model, "loadings_"), 1.0, True),
    )


def _target_row() -> Row:
    def pair() -> tuple[np.ndarray, np.ndarray]:
        A = data.loadings(40_000, 100, structured=True)
        return A, np.round(A)

    return Row(
        "FactorRotation target, 40,000 x 100",
        "researcher",
        pair,
        lambda library, both: library.FactorRotation("target", target=both[1]).fit(both[0]),
        lambda library, both, model: float(np.linalg.norm(library.read(model, "loadings_") - both[1])),
    )


ROTATION = (
    _rotation("varimax, 3,000 x 20", lambda: data.loadings(3000, 20)),
    _rotation("varimax, structured 3,000 x 20", lambda: data.loadings(3000, 20, structured=True), repeat=5),
    _rotation("varimax, 10,000 x 50", lambda: data.loadings(10_000, 50)),
    _rotation("varimax, structured 10,000 x 50", lambda: data.loadings(10_000, 50, structured=True)),
    _rotation("varimax, field of 6,000 x 40", lambda: data.field(6000, 40, 30)),
    _rotation("quartimax, 2,000 x 30", lambda: data.loadings(2000, 30), 0.0, method="quartimax"),
    _rotation("equamax, 1,000 x 20", lambda: data.loadings(1000, 20), 10.0, method="equamax"),
    _rotation("varimax, 5 searches, 500 x 20", lambda: data.loadings(500, 20), n_starts=5),
    _many_rotations("normal", structured=False),
    _many_rotations("structured", structured=True),
    _target_row(),
    _rotated_pca(""),
    _rotated_pca(", dask", lambda X: data.dask_array(X, 10), "large data"),
)


# Mixtures, topics and tensors


def _mixture(
    name: str,
    make: Callable[[], np.ndarray],
    chunked: Callable[[Any], Any] | None = None,
    user: str = "data scientist",
    **options: Any,
) -> Row:
    def prepared() -> tuple[np.ndarray, Any]:
        X = make()
        return X, chunked(X) if chunked else X

    def value(library: Library, pair: Any, model: Any) -> float:
        weights, means, variances = (
            library.read(model, f"{word}_") for word in ("weights", "means", "variances")
        )
        return values.minus_log_likelihood(pair[0], weights, means, variances)

    return Row(
        f"SphericalMixture {name}",
        user,
        prepared,
        lambda library, pair: library.SphericalMixture(**options).fit(pair[1]),
        value,
    )


def _topics(
    name: str,
    make: Callable[[], Any],
    chunked: Callable[[Any], Any] | None = None,
    user: str = "data scientist",
    **options: Any,
) -> Row:
    def prepared() -> tuple[Any, Any]:
        X = make()
        return X, chunked(X) if chunked else X

    return Row(
        f"TopicModel {name}",
        user,
        prepared,
        lambda library, pair: library.TopicModel(**options).fit(pair[1]),
        lambda library, pair, model: values.perplexity(pair[0], library.read(model, "components_")),
    )


def _decompose(d: int, repeat: int = 1, rank: int | None = None) -> Row:
    def call(library: Library, T: np.ndarray) -> Any:
        return [library.decompose(T, rank, random_state=seed) for seed in range(repeat)][-1]

    times = f", {repeat} times" if repeat > 1 else ""
    return Row(
        f"decompose order {d}{'' if rank is None else f', rank {rank}'}{times}",
        "data scientist",
        lambda: data.tensor(d),
        call,
        lambda library, T, found: values.residual(
            T, library.read(found, "weights"), library.read(found, "factors")
        ),
    )


MODELS = (
    _mixture("12 of 60,000 x 40", lambda: data.clusters(60_000, 12, 40, 0.5), n_components=12),
    _mixture("5 of 5,000 x 10", lambda: data.clusters(5000, 5, 10), n_components=5),
    _mixture(
        "distinct variances, 6 of 20,000 x 20",
        lambda: data.clusters(20_000, 6, 20, spread=0.3),
        n_components=6,
        variance="distinct",
    ),
    _mixture(
        "12 of 60,000 x 40, dask",
        lambda: data.clusters(60_000, 12, 40, 0.5),
        lambda X: data.dask_array(X, 10),
        "large data",
        n_components=12,
    ),
    _mixture(
        "5 of 20,000 x 10, chunks",
        lambda: data.clusters(20_000, 5, 10),
        lambda X: data.blocks(X, 10),
        "large data",
        n_components=5,
    ),
    _topics("10 of 2,000 x 3,000", lambda: data.documents(2000, 10, 3000), n_topics=10),
    _topics(
        "10 of 2,000 x 3,000, moments only",
        lambda: data.documents(2000, 10, 3000),
        n_topics=10,
        refine=0,
    ),
    _topics(
        "5 of 3,000 x 500, chunks",
        lambda: data.documents(3000, 5, 500),
        lambda X: data.blocks(X, 10),
        "large data",
        n_topics=5,
    ),
    _decompose(10, repeat=150),
    _decompose(20, repeat=80),
    _decompose(32, repeat=40),
    _decompose(50, repeat=10),
    _decompose(100, repeat=2),
    _decompose(50, rank=10, repeat=5),
)


# Objectives


def _columns(
    contrast: str, size: str, make: Callable[[], np.ndarray], chunked: bool = False, **options: Any
) -> Row:
    def prepared() -> tuple[np.ndarray, Any]:
        A = make()
        return A, data.dask_array(A, 10) if chunked else A

    def value(library: Library, pair: Any, result: Any) -> float:
        Y = pair[0] @ library.read(result, "U")
        kappa = {"quartimax": 0.0, "varimax": 1.0}.get(contrast)
        return values.pointwise(Y, contrast) if kappa is None else values.orthomax(Y, kappa)

    return Row(
        f"minimize Columns {contrast}, {size}{', dask' if chunked else ''}",
        "large data" if chunked else "researcher",
        prepared,
        lambda library, pair: library.minimize(library.Columns(pair[1], contrast), **options),
        value,
    )


def _phi(y: float) -> float:
    return np.sqrt(1.0 + y * y)


def _dphi(y: float) -> float:
    return y / np.sqrt(1.0 + y * y)


def _scalar_row() -> Row:
    """A function of the user's own; one object, so that it is compiled in the first call only."""
    contrasts: list[Any] = []

    def call(library: Library, A: np.ndarray) -> Any:
        if not contrasts:
            contrasts.append(library.Scalar(_phi, _dphi))
        return library.minimize(library.Columns(A, contrasts[0]))

    return Row(
        "minimize Columns Scalar, 40,000 x 20",
        "researcher",
        lambda: data.white(data.laplace(40_000, 20)),
        call,
        lambda library, A, result: float(np.mean(np.sqrt(1 + (A @ library.read(result, "U")) ** 2))),
    )


def _sparse_columns(name: str, penalty: str, gamma: float, **options: Any) -> Row:
    return Row(
        f"minimize SparseColumns {name}, 2,000 x 60",
        "researcher",
        lambda: data.tilted_expression(60, 2000).T.copy(),
        lambda library, A: library.minimize(library.SparseColumns(A, gamma, penalty), tol=1e-9, **options),
        lambda library, A, result: values.thresholded(A @ library.read(result, "U"), gamma, penalty),
    )


def _joint(name: str, make: Callable[[], np.ndarray]) -> Row:
    return Row(
        f"minimize JointDiagonal {name}",
        "researcher",
        make,
        lambda library, matrices: library.minimize(library.JointDiagonal(matrices)),
        lambda library, matrices, result: values.off_diagonal(matrices, library.read(result, "U")),
    )


def _moment_row() -> Row:
    return Row(
        "minimize MomentTensor 2,000 x 30",
        "researcher",
        lambda: np.random.default_rng(112).exponential(size=(2000, 30)) - 1,
        lambda library, Y: library.minimize(library.MomentTensor(Y), random_state=0),
        lambda library, Y, result: -float(np.mean((Y @ library.read(result, "U")) ** 3) * Y.shape[1]),
    )


def _tensor_row() -> Row:
    return Row(
        "minimize SymmetricTensor order 40, 10 starts",
        "researcher",
        lambda: data.tensor(40, noise=1.0),
        lambda library, T: library.minimize(library.SymmetricTensor(T), n_starts=10, random_state=0),
        lambda library, T, result: values.cubic(T, library.read(result, "U")),
    )


# Functions of the user's own


@dataclass(frozen=True)
class Plain:
    """A function with its gradient, and starts."""

    value: Callable[[np.ndarray], float]
    gradient: Callable[[np.ndarray], np.ndarray]
    starts: list[np.ndarray]


def _procrustes(n: int, starts: int) -> Plain:
    """‖A U W − B‖² with weights on both sides: quadratic, with curvatures that differ."""
    rng = np.random.default_rng(113)
    A, B = rng.standard_normal((2, 2 * n, n)) * np.logspace(0, 1, n)
    W = np.diag(np.logspace(0, 1, n))

    def value(U: np.ndarray) -> float:
        return float(np.sum((A @ U @ W - B) ** 2))

    def gradient(U: np.ndarray) -> np.ndarray:
        return 2 * A.T @ (A @ U @ W - B) @ W

    return Plain(value, gradient, [data.orthogonal(n, rng) for _ in range(starts)])


def _log_cosh(n: int, starts: int) -> Plain:
    """Σ log cosh(AU): no polynomial."""
    rng = np.random.default_rng(114)
    A = rng.standard_normal((3 * n, n))

    def value(U: np.ndarray) -> float:
        Y = A @ U
        return float(np.sum(np.logaddexp(Y, -Y)))

    return Plain(value, lambda U: A.T @ np.tanh(A @ U), [data.orthogonal(n, rng) for _ in range(starts)])


def _function(name: str, n: int, repeat: int, make: Callable[[int, int], Plain], jac: bool = True) -> Row:
    """From several starts, one after the other; the value is the mean of the minima."""

    def call(library: Library, plain: Plain) -> list[Any]:
        options = {"jac": plain.gradient} if jac else {}
        return [
            library.minimize(library.Function(plain.value, n, **options), start) for start in plain.starts
        ]

    return Row(
        f"minimize Function {name}, n = {n}{'' if jac else ', values only'}",
        "researcher",
        lambda: make(n, repeat),
        call,
        lambda library, plain, results: float(
            np.mean([plain.value(library.read(result, "U")) for result in results])
        ),
    )


def _stiefel_row() -> Row:
    def problem() -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(115)
        A = rng.standard_normal((400, 100))
        return A.T @ A / 400, np.arange(1.0, 11)

    def call(library: Library, pair: Any) -> Any:
        S, weights = pair
        starts = [
            np.ascontiguousarray(data.orthogonal(100, np.random.default_rng(seed))[:, :10])
            for seed in range(5)
        ]
        return [
            library.minimize(
                lambda X: -float(np.sum(X * (S @ X) * weights)), start, jac=lambda X: -2 * S @ X * weights
            )
            for start in starts
        ][-1]

    def value(library: Library, pair: Any, result: Any) -> float:
        X = library.read(result, "U")[:, :10]
        return -float(np.sum(X * (pair[0] @ X) * pair[1]))

    return Row("minimize function of few columns, Brockett, 100 x 10", "researcher", problem, call, value)


OBJECTIVES = (
    _columns("varimax", "3,000 x 30", lambda: data.loadings(3000, 30)),
    _columns("kurtosis", "50,000 x 64", lambda: data.white(data.laplace(50_000, 64))),
    _columns("varimax", "20,000 x 20", lambda: data.loadings(20_000, 20), chunked=True, max_sweeps=2),
    _scalar_row(),
    _sparse_columns("l1", "l1", 3.0),
    _sparse_columns("l0", "l0", 9.0),
    _sparse_columns("l1, certify", "l1", 3.0, certify=True),
    _joint("50 of order 100", lambda: data.stack(50, 100)),
    _joint("flat, 20 of order 120", lambda: data.stack(20, 120, gap=1e-3)),
    _joint("no common basis, 20 of order 30", lambda: data.stack(20, 30, noise=10.0)),
    _tensor_row(),
    _moment_row(),
    *(
        _function(name, n, repeat, make)
        for n, repeat in ((10, 20), (30, 5), (100, 1))
        for name, make in (("quadratic", _procrustes), ("log cosh", _log_cosh))
    ),
    _function("log cosh", 6, 1, _log_cosh, jac=False),
    _stiefel_row(),
)


# The command


def _command(
    name: str,
    title: str,
    make: Callable[[Path], Any],
    score: Callable[[Any, np.ndarray], float],
    *options: str,
    user: str = "biologist",
) -> Row:
    """From a file to the folder of results; `make` writes the file `input.*` and returns what the score needs."""

    def prepared() -> tuple[Any, tempfile.TemporaryDirectory]:
        folder = tempfile.TemporaryDirectory()
        return make(Path(folder.name)), folder

    def call(library: Library, pair: Any) -> Path:
        folder = Path(pair[1].name)
        source = next(folder.glob("input.*"))
        library.command(name, str(source), *options, "--out", str(folder / "results"), "--quiet")
        return folder / "results"

    return Row(
        f"command {name}, {title}",
        user,
        prepared,
        call,
        lambda library, pair, folder: score(pair[0], _components(folder / "components.csv")),
    )


def _components(file: Path) -> np.ndarray:
    """Variables x components of a table whose first column has names."""
    lines = file.read_text().splitlines()[1:]
    return np.array([[float(cell) for cell in line.split(",")[1:]] for line in lines])


def _csv(make: Callable[[], np.ndarray]) -> Callable[[Path], np.ndarray]:
    def write(folder: Path) -> np.ndarray:
        X = make()
        header = ",".join(f"v{i}" for i in range(X.shape[1]))
        np.savetxt(folder / "input.csv", X, delimiter=",", fmt="%.6g", header=header, comments="")
        return X

    return write


def _npy(make: Callable[[], np.ndarray]) -> Callable[[Path], np.ndarray]:
    def write(folder: Path) -> np.ndarray:
        X = make()
        np.save(folder / "input.npy", X)
        return X

    return write


def _matrix_market(make: Callable[[], Any]) -> Callable[[Path], Any]:
    def write(folder: Path) -> Any:
        from scipy.io import mmwrite

        X = make()
        mmwrite(folder / "input.mtx", X)
        return X

    return write


def _annotated(make: Callable[[], Any]) -> Callable[[Path], Any]:
    def write(folder: Path) -> Any:
        from anndata import AnnData

        X = make()
        AnnData(X).write_h5ad(folder / "input.h5ad")
        return X

    return write


def _scattered(X: np.ndarray, means: np.ndarray) -> float:
    """Mean squared distance to the nearest mean (variables x clusters)."""
    squares = (X**2).sum(axis=1)[:, None] - 2 * X @ means + (means**2).sum(axis=0)
    return float(np.mean(squares.min(axis=1)))


COMMANDS = (
    _command(
        "sparse-pca",
        "CSV 62 x 2,000",
        _csv(lambda: data.tilted_expression(62, 2000)),
        lambda X, Z: values.unexplained(X, Z.T),
        *("--samples", "rows", "-m", "5", "--n-nonzero", "30"),
    ),
    _command(
        "sparse-pca",
        "Matrix Market 3,000 x 2,000",
        _matrix_market(lambda: data.cells(3000, 2000)),
        lambda X, Z: values.unexplained(X, Z.T),
        *("--samples", "rows", "-m", "5", "--n-nonzero", "30", "--no-path"),
    ),
    _command(
        "sparse-pca",
        "AnnData 3,000 x 2,000",
        _annotated(lambda: data.cells(3000, 2000)),
        lambda X, Z: values.unexplained(X, Z.T),
        *("-m", "5", "--n-nonzero", "30", "--no-path"),
    ),
    _command(
        "sparse-pca",
        "--stream, CSV 5,000 x 200",
        _csv(lambda: data.expression(5000, 200)),
        lambda X, Z: values.unexplained(X, Z.T),
        *("--samples", "rows", "-m", "5", "--n-nonzero", "30", "--stream"),
        user="large data",
    ),
    _command(
        "sparse-pca",
        "--stream, CSV 20,000 x 300",
        _csv(lambda: data.expression(20_000, 300)),
        lambda X, Z: values.unexplained(X, Z.T),
        *("--samples", "rows", "-m", "5", "--n-nonzero", "30", "--stream"),
        user="large data",
    ),
    _command(
        "ica",
        "CSV 10,000 x 8",
        _csv(lambda: data.mixed_tails(10_000, 8).X),
        lambda X, A: values.dependence(X, np.linalg.inv(A)),
        *("--samples", "rows", "-m", "8"),
        user="signals",
    ),
    _command(
        "rotate",
        "CSV 500 x 40",
        _csv(lambda: data.expression(500, 40, 5, 12)),
        lambda X, L: values.orthomax(L, 1.0, True),
        *("--samples", "rows", "-m", "5"),
        user="researcher",
    ),
    _command(
        "rotate",
        "CSV 20,000 x 300",
        _csv(lambda: data.expression(20_000, 300, 5, 12)),
        lambda X, L: values.orthomax(L, 1.0, True),
        *("--samples", "rows", "-m", "5"),
        user="large data",
    ),
    _command(
        "mixture",
        "NumPy 5,000 x 10",
        _npy(lambda: data.clusters(5000, 5, 10)),
        _scattered,
        *("--samples", "rows", "-k", "5"),
        user="data scientist",
    ),
    _command(
        "topics",
        "Matrix Market 1,000 x 500",
        _matrix_market(lambda: data.documents(1000, 5, 500)),
        lambda X, T: values.perplexity(X, T.T),
        *("--samples", "rows", "-k", "5"),
        user="data scientist",
    ),
    _command(
        "tensor",
        "order 20",
        _npy(lambda: data.tensor(20)),
        lambda T, V: values.cubic(T, V / np.linalg.norm(V, axis=0)),
        "--symmetrize",
        user="researcher",
    ),
)


# Real data, where GIVENS_DATA names their folder


def _log2(name: str) -> Callable[[], np.ndarray]:
    def load() -> np.ndarray:
        file = data.real(name)
        assert file is not None
        with np.load(file) as arrays:
            return np.log2(np.maximum(arrays["X"], 10)).astype(float)

    return load


def _real_rows() -> tuple[Row, ...]:
    names = {"alon_colon": "colon, 62 x 2,000", "singh2002_prostate": "prostate, 102 x 12,600"}
    return tuple(
        _sparse_pca(f"n_nonzero=50, {title}", _log2(name), n_components=10, n_nonzero=50)
        for name, title in names.items()
        if data.real(name)
    )


ROWS: tuple[Row, ...] = (
    *SPARSE_PCA,
    *STREAMS,
    *SIGNALS,
    *ROTATION,
    *MODELS,
    *OBJECTIVES,
    *COMMANDS,
    *_real_rows(),
)

# The rows of `--cold`: one for each thing that is compiled, large enough to compile all that a fit needs.
COLD = (
    "SparsePCA n_nonzero=50, 62 x 2,000",
    "SparsePCA alpha=0.1, all of 100 x 8,000",
    "StreamingSparsePCA n_nonzero=100, 2,000 x 2,000",
    "ICA mixed tails, 20,000 x 16",
    "JADE Laplace, 10,000 x 30",
    "SOBI coloured, 20,000 x 30",
    "joint_diagonalize 200 of order 60",
    "FactorRotation varimax, 3,000 x 20",
    "RotatedPCA varimax, 15 of 20,000 x 200",
    "SphericalMixture 5 of 5,000 x 10",
    "TopicModel 10 of 2,000 x 3,000",
    "decompose order 20, 80 times",
    "minimize Function quadratic, n = 30",
)


def by_name() -> dict[str, Row]:
    return {row.name: row for row in (*ROWS, LEFTOVER)}
