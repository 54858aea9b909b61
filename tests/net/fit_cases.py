"""The golden fits: data, arguments, and the oracle of the objective for each.

The optimum that each fit reaches is well separated from others, so that rounding does not decide which one it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import numpy as np

from tests.net.calls import Outcome
from tests.oracles import values


@dataclass(frozen=True)
class Fit:
    """A call, its data, and how its outcome is judged.

    Attributes
    ----------
    call : str
        A name of `calls.SETTINGS`.
    data : callable
        Makes the data.
    value : callable
        The oracle: of the data as float64 and the outcome; the larger, the better.
    given : dict
        Arguments beside those of `calls.SETTINGS`, or in their place.
    forms : tuple of str
        The forms in which the data are given, names of `FORMS`; the reference is the same for all.
    how : str
        A name of `calls.HOW`.
    fitting : dict
        Arguments of `fit`.
    share : float
        The share of the value that may be lost.
    unique : bool
        Whether there is one optimum, up to signs and order: then all arrays of the outcome are compared, too.
    close : float
        The difference from the reference that an array may have then, relative to its largest entry.
    like : str
        The fit that has the same optimum, and whose reference this one has. By default it has its own.
    """

    call: str
    data: Callable[[], Any]
    value: Callable[[Any, Outcome], float]
    given: dict[str, Any] = field(default_factory=dict)
    forms: tuple[str, ...] = ("float64",)
    how: str = "fit"
    fitting: dict[str, Any] = field(default_factory=dict)
    share: float = 1e-7
    unique: bool = True
    close: float = 1e-5
    like: str = ""


def offset(X: np.ndarray) -> np.ndarray:
    """A mean of a million deviations."""
    return 1e6 * X.std(axis=0)


def _csr(X: np.ndarray) -> Any:
    from scipy import sparse

    return sparse.csr_array(X)


def _csc(X: np.ndarray) -> Any:
    from scipy import sparse

    return sparse.csc_array(X)


def _dask(X: np.ndarray) -> Any:
    import dask.array

    return dask.array.from_array(X, chunks=(-(-len(X) // 3), -1))


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "by columns": np.asfortranarray,
    "offset": lambda X: X + offset(X),
    "csr": _csr,
    "csc": _csc,
    "blocks": lambda X: np.array_split(X, 3),
    "dask": _dask,
}
DENSE = ("float64", "float32", "by columns", "offset")
FILES = (*DENSE, "csr", "csc", "dask")

# Data.


@cache
def modules(n: int, d: int, seed: int = 0, m: int = 3, size: int = 5, zeros: float = 0.0) -> np.ndarray:
    """Samples in which m modules of features vary together, the first one most; a share of the entries may be zero."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for k in range(m):
        strengths = (m + 1 - k) * np.linspace(1.5, 1.0, size)
        X[:, k * size : (k + 1) * size] += rng.standard_normal((n, 1)) * strengths
    X[rng.random((n, d)) < zeros] = 0.0
    return X + 0.5 * (zeros == 0.0)


@cache
def centred_features(n: int, d: int) -> np.ndarray:
    """Features x samples, as the paper has them."""
    return values.centred(modules(n, d)).T


@cache
def with_holes(n: int, d: int) -> np.ndarray:
    X = modules(n, d, seed=4).copy()
    X[np.random.default_rng(5).random(X.shape) < 0.05] = np.nan
    return X


@cache
def mixed(n: int, d: int, kind: str = "both", seed: int = 0) -> np.ndarray:
    """Linear mixtures of independent signals with different spectra and tails: heavy, light or both."""
    rng = np.random.default_rng(seed)
    S = rng.laplace(size=(n, d))
    if kind == "light":
        S = 2 * rng.random((n, d)) - 1
    if kind == "both":
        S[:, ::2] = 2 * rng.random((n, len(S[0, ::2]))) - 1
    S[1:] += S[:-1] * np.linspace(-0.5, 0.5, d)
    return S @ (np.eye(d) * np.linspace(3, 1, d) + 0.4 * rng.standard_normal((d, d))) + 1.0


@cache
def whitened(n: int, d: int, kind: str = "heavy") -> np.ndarray:
    X = mixed(n, d, kind)
    return np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[0] * np.sqrt(n)


@cache
def structured(p: int, m: int, seed: int = 0) -> np.ndarray:
    """Loadings of simple structure, turned."""
    rng = np.random.default_rng(seed)
    L = 0.15 * rng.standard_normal((p, m))
    L[np.arange(p), np.arange(p) % m] += np.linspace(0.9, 0.5, p)
    return L @ np.linalg.qr(rng.standard_normal((m, m)))[0]


@cache
def clusters(n: int, d: int, k: int, seed: int = 0, spread: float = 0.0) -> np.ndarray:
    """Rows around k means, the clusters of different sizes."""
    rng = np.random.default_rng(seed)
    labels = np.searchsorted(np.cumsum(np.linspace(2, 1, k) / np.linspace(2, 1, k).sum())[:-1], rng.random(n))
    deviations = 1 + spread * np.arange(k)
    return 4 * rng.standard_normal((k, d))[labels] + rng.standard_normal((n, d)) * deviations[labels, None]


@cache
def documents(n: int, words: int = 40, seed: int = 0, single: bool = False) -> np.ndarray:
    """Counts of words, from three topics."""
    rng = np.random.default_rng(seed)
    topics = rng.standard_gamma(0.3, size=(3, words)) + 0.02
    topics /= topics.sum(axis=1, keepdims=True)
    shares = rng.standard_gamma(np.array([0.6, 0.4, 0.3]), size=(n, 3))
    if single:
        shares = np.eye(3)[np.argmax(shares, axis=1)]
    counts = rng.poisson(60 * shares / shares.sum(axis=1, keepdims=True) @ topics).astype(np.float64)
    counts[:, 0] += counts.sum(axis=1) < 3  # so that no document is too short
    return counts


@cache
def tensor(d: int, rank: int, noise: float, seed: int = 0) -> np.ndarray:
    """A symmetric tensor: orthogonal components, and noise."""
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.standard_normal((d, rank)))[0]
    T = np.einsum("r,ir,jr,kr->ijk", np.linspace(3, 1.5, rank), V, V, V, optimize=True)
    E = noise * rng.standard_normal((d, d, d))
    orders = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
    return T + sum(E.transpose(order) for order in orders) / 6


@cache
def third_parts(n: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    Y = (rng.standard_exponential((n, d)) - 1) @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    G = rng.standard_normal((d, d))
    return Y, 0.3 * rng.standard_normal(d), np.eye(d) + 0.05 * (G + G.T)


@cache
def stack(k: int, n: int, noise: float = 0.1) -> np.ndarray:
    """Symmetric matrices that have common axes, but for noise."""
    rng = np.random.default_rng(2)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    E = noise * rng.standard_normal((k, n, n))
    return (Q * rng.standard_normal((k, 1, n))) @ Q.T + (E + E.swapaxes(1, 2)) / 2


def weights(n: int) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 4, n).astype(np.float64)


# Oracles: of the data and the outcome.


def adjusted(X: np.ndarray, found: Outcome, scale: bool = False, sample_weight: Any = None) -> float:
    return values.adjusted_variance(
        values.centred(X, sample_weight, scale), found["components"], sample_weight
    )


def counted(X: np.ndarray, found: Outcome, counts: tuple[int, ...], scale: bool = False) -> float:
    assert tuple(np.count_nonzero(found["components"], axis=1)) == counts
    return adjusted(X, found, scale)


def in_total(X: np.ndarray, found: Outcome, total: int) -> float:
    assert np.count_nonzero(found["components"]) == total
    return adjusted(X, found)


def thresholded(
    X: np.ndarray,
    found: Outcome,
    alpha: float,
    penalty: str = "l1",
    scale: bool = False,
    sample_weight: Any = None,
) -> float:
    """The objective of sparse PCA; the threshold is the share α of the largest norm of a feature, or of its square."""
    X = values.centred(X, sample_weight, scale)
    squares = np.sum(X**2 if sample_weight is None else sample_weight[:, None] * X**2, axis=0)
    gamma = alpha * (squares.max() if penalty == "l0" else np.sqrt(squares.max()))
    levels = np.full(len(found["components"]), gamma)
    return values.sparse_components(X, found["components"], levels, penalty, sample_weight)


def along_path(X: np.ndarray, found: Outcome, alphas: tuple[float, ...]) -> float:
    each = zip(found["components"], alphas)
    return sum(thresholded(X, {"components": Z}, alpha) for Z, alpha in each)


def completed(X: np.ndarray, found: Outcome) -> float:
    """Variance of the samples as they were before entries were left out."""
    return adjusted(modules(*X.shape, seed=4), found)


def contrast(X: np.ndarray, found: Outcome, name: str = "adaptive", sample_weight: Any = None) -> float:
    Y = values.centred(X, sample_weight) @ found["components"].T.astype(np.float64)
    return values.sources(Y, name, sample_weight)


def cumulants(X: np.ndarray, found: Outcome) -> float:
    return values.fourth_cumulants(values.centred(X) @ found["components"].T)


def lagged(X: np.ndarray, found: Outcome, lags: int) -> float:
    return values.autocorrelations(values.centred(X) @ found["components"].T, lags)


def criterion(A: np.ndarray, found: Outcome, kappa: float, normalize: bool = True) -> float:
    return values.rotated_loadings(found["components"].T, A, kappa, normalize)


def to_target(A: np.ndarray, found: Outcome, target: np.ndarray) -> float:
    values.rotated_loadings(found["components"].T, A, 0.0, False)
    return -float(np.sum((found["components"].T - target) ** 2))


def principal(
    X: np.ndarray, found: Outcome, kappa: float, normalize: bool = True, scale: bool = False
) -> float:
    A = values.principal_loadings(values.centred(X, scale=scale), len(found["components"]))
    return criterion(A, found, kappa, normalize)


def likelihood(X: np.ndarray, found: Outcome) -> float:
    return values.mixture(X, found["weights"], found["components"], found["variances"])


def per_word(X: np.ndarray, found: Outcome, single: bool = False) -> float:
    """Of documents that the fit has not seen."""
    counts = documents(200, X.shape[1], seed=9, single=single)
    return values.topics(counts, found["components"], found["alpha"], found["weights"])


def entries(A: np.ndarray, found: Outcome, of: Callable[[np.ndarray], np.ndarray]) -> float:
    U = found["components"].T
    values._orthonormal(U, 1e-10)
    return float(np.sum(of(np.asarray(A, dtype=np.float64) @ U)))


def orthomaximal(A: np.ndarray, found: Outcome, kappa: float) -> float:
    U = found["components"].T
    values._orthonormal(U, 1e-10)
    return values.orthomax(np.asarray(A, dtype=np.float64) @ U, kappa)


def above(A: np.ndarray, found: Outcome, gamma: Any, penalty: str) -> float:
    return values.threshold(A, found["components"].T, gamma, penalty)


def joint(X: np.ndarray, found: Outcome, sample_weight: Any = 1.0) -> float:
    return values.diagonals(X, found["components"].T, sample_weight)


def cubic(T: np.ndarray, found: Outcome) -> float:
    return values.cubes(T, found["components"].T)


def cubic_moments(parts: tuple[np.ndarray, ...], found: Outcome) -> float:
    return values.cubes(values.third_moment(*parts), found["components"].T)


def plain(A: np.ndarray, found: Outcome, f: Callable[[np.ndarray, np.ndarray], float]) -> float:
    U = found["components"].T
    values._orthonormal(U, 1e-10)
    return -f(A, U)


# Plain functions for `minimize`.


def brockett(A: np.ndarray, U: np.ndarray) -> float:
    """Σ_i i·u_iᵀAu_i: eigenvectors of A are its minimum."""
    return float(np.sum(np.arange(1, U.shape[1] + 1) * np.sum(U * (A @ U), axis=0)))


def brockett_gradient(A: np.ndarray, U: np.ndarray) -> np.ndarray:
    return 2 * A @ U * np.arange(1, U.shape[1] + 1)


def smooth(A: np.ndarray, U: np.ndarray) -> float:
    return float(np.sum(values.logcosh(A @ U)))


def smooth_gradient(A: np.ndarray, U: np.ndarray) -> np.ndarray:
    return A.T @ np.tanh(A @ U)


def heavy(A: np.ndarray) -> np.ndarray:
    return -values.logcosh(A)


def gauss(A: np.ndarray) -> np.ndarray:
    return np.exp(-(A**2) / 2)


def fourth(A: np.ndarray) -> np.ndarray:
    return A**4


def hyperbola(A: np.ndarray) -> np.ndarray:
    return -np.sqrt(1 + A**2)


def signed(A: np.ndarray) -> np.ndarray:
    return -values.logcosh(A) * np.array([-1, 1, -1, 1, -1])


def _thresholded(
    call: str,
    data: Callable[[], Any],
    level: float,
    penalty: str = "l1",
    *,
    scale: bool = False,
    sample_weight: Any = None,
    options: dict[str, Any] | None = None,
    **judged: Any,
) -> Fit:
    """A fit with a threshold, without refitting, which maximises its own objective."""
    value = partial(thresholded, alpha=level, penalty=penalty, scale=scale, sample_weight=sample_weight)
    given = {"n_components": 3, "threshold": (penalty, level), "refit": False, "scale": scale}
    fitting = {} if sample_weight is None else {"sample_weight": sample_weight}
    return Fit(call, data, value, given | (options or {}), fitting=fitting, **judged)


def _counted(call: str, data: Callable[[], Any], counts: Any = 5, options: Any = None, **judged: Any) -> Fit:
    """A fit with three loadings of so many entries, whose optimum nobody knows."""
    value = partial(counted, counts=counts if isinstance(counts, tuple) else (counts,) * 3)
    given = {"n_components": 3, "n_nonzero": counts} | (options or {})
    return Fit(call, data, value, given, share=5e-3, unique=False, **judged)


WEIGHTED = ("float64", "offset", "csr")
REFITTED = {"n_components": 3, "threshold": 0.25}


def _sparse_pca() -> dict[str, Fit]:
    tall, wide, all_components = partial(modules, 200, 18), partial(modules, 30, 80), partial(modules, 24, 60)
    some_zero = partial(modules, 200, 18, zeros=0.5)
    at_level, at_counts = partial(_thresholded, "SparsePCA"), partial(_counted, "SparsePCA")
    every = {"n_components": None}
    found = {
        "l1, tall": at_level(tall, 0.25, forms=FILES),
        "l1, wide": at_level(wide, 0.25, forms=FILES),
        "l1, many zeros": at_level(some_zero, 0.25, forms=("float64", "csr", "csc")),
        "l0, tall": at_level(tall, 0.1, "l0", forms=FILES),
        "l0, wide": at_level(wide, 0.1, "l0"),
        "l1, scaled": at_level(tall, 0.4, scale=True, forms=FILES),
        "l1, weights": at_level(tall, 0.25, sample_weight=weights(200), forms=WEIGHTED),
        "l1, random pairs": at_level(wide, 0.25, options={"schedule": "random"}, like="SparsePCA l1, wide"),
        "l1, three starts": at_level(wide, 0.25, options={"n_starts": 3}, like="SparsePCA l1, wide"),
        "l1, all components": at_level(all_components, 0.25, options=every, forms=FILES, unique=False),
        "l0, all components": at_level(all_components, 0.1, "l0", options=every, unique=False),
        "l1, refitted": Fit("SparsePCA", tall, adjusted, REFITTED, FILES),
        "counts, tall": at_counts(tall, forms=FILES),
        "counts, wide": at_counts(wide, forms=FILES),
        "counts, list": at_counts(wide, (3, 8, 5)),
        "counts, far apart": at_counts(wide, (1, 4, 12)),
        "counts in total": replace(
            at_counts(tall, options={"n_nonzero": ("total", 14)}), value=partial(in_total, total=14)
        ),
    }
    holes = Fit("SparsePCA", partial(with_holes, 200, 18), completed, REFITTED | {"missing": "em"})
    return {f"SparsePCA {name}": fit for name, fit in found.items()} | {"SparsePCA, missing values": holes}


def _streaming() -> dict[str, Fit]:
    tall, wide = partial(modules, 200, 18), partial(modules, 300, 60)
    at_level = partial(_thresholded, "StreamingSparsePCA", tall)
    at_counts = partial(_counted, "StreamingSparsePCA", wide, options={"sketch": 8})
    judged = partial(Fit, "StreamingSparsePCA")
    in_parts = {"forms": (*DENSE, "csr"), "like": "StreamingSparsePCA l1"}
    by_batches = {"how": "partial_fit", "like": "StreamingSparsePCA l1, weights"}
    lossy = REFITTED | {"sketch": 8}
    algorithm_5 = {"n_components": 4, "sketch": ("algorithm 5", 3.0)}
    found = {
        # As many columns as features are kept: nothing is lost.
        " l1": at_level(0.25, forms=(*FILES, "blocks")),
        " l1, batches": at_level(0.25, how="partial_fit", **in_parts),
        " l1, merged": at_level(0.25, how="merge", **in_parts),
        " l0": at_level(0.1, "l0"),
        " l1, scaled": at_level(0.4, scale=True, forms=FILES),
        " l1, weights": at_level(0.25, sample_weight=weights(200), forms=WEIGHTED),
        " l1, weights in batches": at_level(0.25, sample_weight=weights(200), **by_batches),
        ", missing values": judged(partial(with_holes, 200, 18), completed, REFITTED | {"missing": "em"}),
        " l1, lossy": judged(wide, adjusted, lossy, (*DENSE, "csr")),
        " counts, lossy": at_counts(forms=(*DENSE, "csr", "blocks")),
        " counts, lossy on dask": at_counts(forms=("dask",)),
        " counts, lossy merged": at_counts(how="merge"),
        ", forgetting": judged(wide, adjusted, lossy | {"forgetting": 0.98}),
        ", Algorithm 5": judged(wide, adjusted, algorithm_5, ("float64", "csr")),
    }
    return {f"StreamingSparsePCA{name}": fit for name, fit in found.items()}


def _path() -> dict[str, Fit]:
    thresholds = (0.1, 0.2, 0.3, 0.4)
    value = partial(along_path, alphas=thresholds)
    given = {"n_components": 3, "thresholds": thresholds, "refit": False}
    data = partial(modules, 200, 18)
    return {"sparse_pca_path": Fit("sparse_pca_path", data, value, given, ("float64", "csr"), unique=False)}


def _fit(
    call: str,
    data: Callable[[], Any],
    value: Callable[[Any, Outcome], float],
    forms: tuple[str, ...] = ("float64",),
    how: str = "fit",
    *,
    fitting: dict[str, Any] | None = None,
    share: float = 1e-7,
    unique: bool = True,
    close: float = 1e-5,
    like: str = "",
    **given: Any,
) -> Fit:
    """A fit with these arguments of the library."""
    return Fit(call, data, value, given, forms, how, fitting or {}, share, unique, close, like)


def _named(prefix: str, fits: dict[str, Fit]) -> dict[str, Fit]:
    return {f"{prefix}{name}": fit for name, fit in fits.items()}


CHUNKS = (*DENSE, "blocks", "dask")


def _separations() -> dict[str, Fit]:
    both, few = partial(mixed, 6000, 6), partial(mixed, 800, 5)
    heavy_tails, few_heavy = partial(mixed, 3000, 5, "heavy"), partial(mixed, 800, 5, "heavy")
    w = weights(800)
    weighted = partial(contrast, sample_weight=w)
    logcosh, exp, kurtosis = (partial(contrast, name=name) for name in ("logcosh", "exp", "kurtosis"))
    fit = partial(_fit, "ICA")
    by_weights = partial(_fit, "ICA", fitting={"sample_weight": w})
    separated = {
        "adaptive": fit(both, contrast, CHUNKS),
        "adaptive, few samples": fit(few, contrast, CHUNKS),
        "adaptive, weights": by_weights(few, weighted, ("float64", "offset")),
        "adaptive, fewer components": fit(few, contrast, CHUNKS, n_components=3),
        "adaptive, three starts": fit(few, contrast, n_starts=3, like="ICA adaptive, few samples"),
        "kurtosis, weights": by_weights(few_heavy, partial(weighted, name="kurtosis"), contrast="kurtosis"),
        "white samples": fit(partial(whitened, 3000, 5), contrast, whiten=False),
        "logcosh": fit(heavy_tails, logcosh, CHUNKS, contrast="logcosh"),
        # Code for "exp" in float32 would be compiled for this alone.
        "exp": fit(heavy_tails, exp, tuple(form for form in CHUNKS if form != "float32"), contrast="exp"),
        "kurtosis": fit(heavy_tails, kurtosis, CHUNKS, contrast="kurtosis"),
    }
    return _named("ICA ", separated) | {
        "ica": _fit("ica", few, contrast, ("float64", "offset")),
        "ica logcosh": _fit("ica", heavy_tails, logcosh, contrast="logcosh"),
        "JADE": _fit("JADE", few, cumulants, DENSE),
        "JADE, fewer components": _fit("JADE", both, cumulants, n_components=4),
        "SOBI": _fit("SOBI", few, partial(lagged, lags=10), DENSE, lags=10),
        "SOBI, many lags": _fit("SOBI", few, partial(lagged, lags=60), lags=60),
    }


def _rotations() -> dict[str, Fit]:
    small, large = partial(structured, 24, 4), partial(structured, 600, 20)
    kappas = {"varimax": 1.0, "quartimax": 0.0, "biquartimax": 0.5, "equamax": 2.0, "parsimax": 24 * 3 / 26}
    target = structured(24, 4, seed=1)
    varimax = partial(criterion, kappa=1.0)
    fit = partial(_fit, "FactorRotation")
    rotated = {f" {name}": fit(small, partial(criterion, kappa=k), method=name) for name, k in kappas.items()}
    rotated |= {
        " parsimony": fit(small, partial(criterion, kappa=24.0), method="parsimony", unique=False),
        " kappa": fit(small, partial(criterion, kappa=0.7, normalize=False), method=0.7, normalize=False),
        ", large": fit(large, varimax, unique=False),
        ", two starts": fit(small, varimax, n_starts=2, like="FactorRotation varimax"),
        " target": fit(small, partial(to_target, target=target), method="target", target=target),
    }
    tall, wide = partial(modules, 200, 18), partial(modules, 30, 80)
    many_samples, many_features = partial(modules, 8300, 18, zeros=0.5), partial(modules, 30, 8300, size=1000)
    by_kaiser = partial(principal, kappa=1.0)
    three = partial(_fit, "RotatedPCA", n_components=3)
    raw = partial(three, value=partial(principal, kappa=1.0, normalize=False), normalize=False)
    components = {
        ", tall": three(tall, by_kaiser, FILES),
        ", wide": raw(wide, forms=FILES),
        ", scaled": three(tall, partial(by_kaiser, scale=True), FILES, scale=True),
        " quartimax": three(tall, partial(principal, kappa=0.0), method="quartimax"),
        ", many samples": raw(many_samples, forms=("csr", "dask")),
        ", many features": raw(many_features, forms=("csr", "dask"), unique=False),
    }
    return _named("FactorRotation", rotated) | _named("RotatedPCA", components)


def _models() -> dict[str, Fit]:
    near, apart = partial(clusters, 1500, 6, 4), partial(clusters, 1500, 6, 4, spread=0.3)
    in_plane, few = partial(clusters, 600, 2, 4, seed=2), partial(clusters, 60, 100, 3)
    fit = partial(_fit, "SphericalMixture", value=likelihood, n_components=4)
    moments = partial(fit, max_iter=0)
    in_parts = {"forms": ("float64", "float32", "offset"), "like": "SphericalMixture, moments"}
    mixtures = {
        "": fit(near, forms=CHUNKS),
        ", distinct": fit(apart, forms=CHUNKS, variance="distinct"),
        ", moments": moments(near, forms=CHUNKS),
        ", distinct moments": moments(apart, variance="distinct"),
        ", batches": moments(near, how="partial_fit", **in_parts),
        ", merged": moments(near, how="merge", **in_parts),
        ", more components than features": fit(in_plane),
        ", fewer rows than features": fit(few, n_components=3),
    }
    texts, single = partial(documents, 400), partial(documents, 400, single=True)
    forms = ("float64", "float32", "csr", "csc", "blocks", "dask")
    two = ("float64", "csr")
    # Inference is in single precision, and the search for α0 ends before rounding does.
    fit = partial(_fit, "TopicModel", share=1e-4, close=1e-3)
    topics = {
        "": fit(texts, per_word, forms),
        ", given alpha0": fit(texts, per_word, alpha0=1.3),
        ", single topics": fit(single, partial(per_word, single=True), two, alpha0=0.0),
        ", moments": fit(texts, per_word, forms, max_iter=0, alpha0=1.3),
        ", moments, default alpha0": fit(texts, per_word, max_iter=0),
        ", batches": fit(texts, per_word, two, "partial_fit", alpha0=1.3),
        ", merged": fit(texts, per_word, two, "merge", alpha0=1.3, like="TopicModel, batches"),
    }
    return _named("SphericalMixture", mixtures) | _named("TopicModel", topics)


def _objectives() -> dict[str, Fit]:
    white, loadings = partial(whitened, 3000, 5), partial(structured, 60, 6)
    light, some_light = partial(whitened, 3000, 4, "light"), partial(whitened, 3000, 5, "both")
    signs = [-1, 1, -1, 1, -1]

    def fit(objective: str, data: Any, value: Any, options: Any = None, **given: Any) -> Fit:
        return _fit("minimize", data, value, objective=objective, options=options or {}, **given)

    def sparse(data: Any, gamma: float, penalty: str, **options: int) -> Fit:
        value = partial(above, gamma=gamma, penalty=penalty)
        return fit("sparse", data, value, {"gamma": gamma, "penalty": penalty, **options})

    varimax, quartimax = (partial(orthomaximal, kappa=kappa) for kappa in (1.0, 0.0))
    by_varimax = partial(fit, "orthomax", value=varimax)
    common = ("float64", "float32", "dask")
    bimodal = partial(entries, of=lambda A: -(A**4))
    problems: dict[str, tuple[Any, ...]] = {
        "varimax": ("orthomax", loadings, varimax, {"kappa": 1.0}),
        "exp": ("exp", white, partial(entries, of=gauss)),
        "tensor": ("tensor", partial(tensor, 10, 10, 0.05), cubic),
        "joint": ("joint", partial(stack, 6, 8), joint),
    }
    found = {
        "varimax": fit(*problems["varimax"], forms=common),
        "varimax, 20 columns": by_varimax(partial(structured, 600, 20), options={"kappa": 1.0}),
        "varimax, 2 active": by_varimax(
            loadings, options={"kappa": 1.0, "active": 2}, unique=False, n_starts=5
        ),
        "quartimax": fit("orthomax", loadings, quartimax, {"kappa": 0.0}),
        "kurtosis": fit(
            "kurtosis", white, partial(entries, of=fourth), {"sign": 1}, forms=("float64", "dask")
        ),
        "kurtosis, light tails": fit("kurtosis", light, bimodal, {"sign": -1}),
        "logcosh": fit("logcosh", partial(whitened, 6000, 6), partial(entries, of=heavy), forms=common),
        "logcosh, signs": fit("logcosh", some_light, partial(entries, of=signed), {"signs": signs}),
        "logcosh, 2 active": fit("logcosh", white, partial(entries, of=heavy), {"active": 2}, unique=False),
        "exp": fit(*problems["exp"]),
        "scalar": fit("scalar", white, partial(entries, of=hyperbola), method=("descent",)),
        "sparse l1": sparse(loadings, 0.3, "l1"),
        "sparse l0": sparse(loadings, 0.1, "l0"),
        "sparse l1, 3 active": sparse(partial(centred_features, 30, 80), 2.5, "l1", active=3),
        "joint": fit(*problems["joint"]),
        "joint, one matrix": fit("joint", partial(stack, 1, 8), joint),
        "joint, 40 columns": fit("joint", partial(stack, 5, 40, 0.02), joint, unique=False),
        "tensor": fit(*problems["tensor"]),
        "tensor, rank 3": fit("tensor", partial(tensor, 10, 3, 0.02), cubic, {"rank": 3}, n_starts=5),
        "moments": fit("moments", partial(third_parts, 400, 6), cubic_moments),
    }
    eigen = partial(fit, "function", lambda: stack(1, 6)[0], partial(plain, f=brockett), {"f": brockett})
    data = partial(whitened, 300, 4)
    bend = partial(fit, "function", data, partial(plain, f=smooth), {"f": smooth}, n=4, start=np.eye(4))
    found |= {
        "function": eigen(n=6),
        "function, gradient": eigen(n=6, jac=brockett_gradient),
        "function, smooth": bend(),
        "function, smooth gradient": bend(jac=smooth_gradient),
        "Stiefel": eigen(n=(6, 2), n_starts=2),
        "Stiefel, gradient": eigen(n=(6, 2), n_starts=2, jac=brockett_gradient),
    }
    methods: dict[str, dict[str, Any]] = {
        "descent": {"method": ("descent",)},
        "Newton": {"method": ("descent", "newton")},
        "sweeps": {"method": ("sweeps",)},
        "certified": {"certify": True},
    }
    names = ("tournament", "random", "without-replacement", "cyclic", "shuffled", "gradient")
    methods |= {name: {"method": name} for name in names}
    for name, given in methods.items():
        for problem, parts in problems.items():
            if name != "Newton" or problem == "varimax":
                found[f"{problem}, {name}"] = fit(*parts, like=f"minimize {problem}", **given)
    return _named("minimize ", found)


def _tensors() -> dict[str, Fit]:
    small, large = partial(tensor, 10, 10, 0.05), partial(tensor, 40, 40, 0.002)
    fit = partial(_fit, "decompose", value=cubic)
    decomposed = {
        f", {start}": fit(small, start=start, like="decompose") for start in ("power", "eigh", "random")
    }
    decomposed |= {
        "": fit(small),
        ", rank 3": fit(partial(tensor, 10, 3, 0.02), rank=3),
        ", 40 columns": fit(large, unique=False),
        ", two starts": fit(small, n_starts=2, start="eigh", like="decompose"),
    }
    w = np.linspace(0.5, 2.0, 30)
    fit = partial(_fit, "joint_diagonalize")
    weighted = fit(partial(stack, 30, 6), partial(joint, sample_weight=w), sample_weight=w)
    diagonalized = {
        "": fit(partial(stack, 6, 8), joint, ("float64", "float32")),
        ", many matrices": fit(partial(stack, 60, 6), joint),
        ", weights": weighted,
    }
    return _named("decompose", decomposed) | _named("joint_diagonalize", diagonalized)


FITS: dict[str, Fit] = {
    **_sparse_pca(),
    **_streaming(),
    **_path(),
    **_separations(),
    **_rotations(),
    **_models(),
    **_objectives(),
    **_tensors(),
}
