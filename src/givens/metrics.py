"""How good loadings are: the variance they explain, and how far from orthogonal they and their scores are.

Sparse components are not orthogonal and their scores are correlated, so their variances do not add up. Two corrections
are in use. Zou, Hastie and Tibshirani (2006) take from each score what the earlier ones explain: with XZᵀ = QR the
*adjusted variance* of component j is R_jj². It depends on the order. Shen and Huang (2008) take the variance of the data
projected on the span of the loadings, tr(P_Z XᵀX), the *projected variance*; it is never smaller than the sum of the
adjusted ones.

Data are samples x features and are centred here; loadings are components x features. Variances have the divisor n − 1.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr, solve_triangular

from givens.numerics.scaling import check_data, power_of_two, refuse_too_large

__all__ = [
    "adjusted_variance",
    "amari",
    "loading_overlap",
    "mutual_information_reduction",
    "orthogonality_defect",
    "projected_variance",
    "score_correlation",
    "total_variance",
]


def _centred(X: np.ndarray, components: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    X, components = _matrix(X, "X"), _rows(components)
    if X.shape[1] != components.shape[1]:
        raise ValueError(
            f"X must be a matrix with a column per feature, and components a row per component: got {X.shape}, {components.shape}"
        )
    if len(X) == 0:
        raise ValueError("X must have at least one sample, got none")
    with np.errstate(over="ignore", invalid="ignore"):
        centred = X - X.mean(axis=0)
    refuse_too_large(centred, "X", "their sums", "divide it by the largest")
    return centred, components


def _matrix(values: np.ndarray, name: str) -> np.ndarray:
    return check_data(values, name, 2).astype(np.float64, copy=False)


def _rows(components: np.ndarray) -> np.ndarray:
    """Loadings, one component per row; a single one may come as a vector."""
    return _matrix(np.atleast_2d(check_data(components, "components")), "components")


def total_variance(X: np.ndarray) -> float:
    """The sum of the features' variances.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.metrics import total_variance
    >>> total_variance(np.array([[0.0, 0.0], [2.0, 0.0]]))
    2.0
    """
    X = _matrix(X, "X")
    if len(X) == 0:
        return 0.0
    return float(np.sum((X - X.mean(axis=0)) ** 2) / max(len(X) - 1, 1))


def adjusted_variance(X: np.ndarray, components: np.ndarray) -> np.ndarray:
    """The variance of each score that the scores before it do not explain (Zou et al. 2006).

    Parameters
    ----------
    X : array, shape (samples, features)
    components : array, shape (components, features)
        Loadings, of unit norm or zero.

    Returns
    -------
    array, shape (components,)
        Divide the sum by `total_variance(X)` for the ratio.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.metrics import adjusted_variance
    >>> X = np.array([[1.0, 1.0], [-1.0, -1.0], [0.0, 1.0], [0.0, -1.0]])
    >>> adjusted_variance(X, np.eye(2)).round(4)
    array([0.6667, 0.6667])
    """
    X, components = _centred(X, components)
    return adjusted_from_scores(X @ components.T)


def adjusted_from_scores(scores: np.ndarray) -> np.ndarray:
    """R_jj² of the QR decomposition of centred scores, over n − 1; a score that the earlier ones explain takes nothing away."""
    samples, number = scores.shape
    adjusted = np.zeros(number)
    size = np.linalg.norm(scores, axis=0)
    kept = np.flatnonzero(size)
    while len(kept):
        rest = np.abs(np.diagonal(np.linalg.qr(scores[:, kept], mode="r")))
        dependent = np.flatnonzero(rest <= 1e-10 * size[kept[: len(rest)]])
        if len(dependent) == 0:
            adjusted[kept[: len(rest)]] = rest**2
            break
        # Its direction is rounding, so the decomposition is repeated without it.
        kept = np.delete(kept, dependent[0])
    return adjusted / max(samples - 1, 1)


def total_adjusted(scores: np.ndarray) -> float:
    """The sum of the adjusted variances of centred scores, one component per row, the strongest first."""
    order = np.argsort(-np.einsum("ij,ij->i", scores, scores), kind="stable")
    return float(adjusted_from_scores(scores[order].T).sum())


def adjusted_from_gram(G: np.ndarray) -> np.ndarray:
    """R_jj² from the Gram matrix G = RᵀR of the scores alone (ZCZᵀ of a covariance C): Schur complements one by one.

    Unlike a Cholesky factorisation this permits dependent scores. It has half the digits of `adjusted_from_scores`.
    """
    left = np.array(G, dtype=np.float64)
    adjusted = np.zeros(len(left))
    for j, whole in enumerate(np.diagonal(G)):
        pivot = left[j, j]
        if pivot > 1e-12 * max(float(whole), 1e-300):
            adjusted[j] = pivot
            left -= np.outer(left[:, j], left[j]) / pivot
    return adjusted


def projected_variance(X: np.ndarray, components: np.ndarray) -> float:
    """The variance of the data projected on the span of the loadings (Shen and Huang 2008).

    Examples
    --------
    >>> import numpy as np
    >>> from givens.metrics import projected_variance, total_variance
    >>> X = np.random.default_rng(0).standard_normal((20, 3))
    >>> bool(np.isclose(projected_variance(X, np.eye(3)), total_variance(X)))
    True
    """
    X, components = _centred(X, components)
    Q = span(components)
    return float(np.sum((X @ Q) ** 2) / max(len(X) - 1, 1))


def projected_from_scores(scores: np.ndarray, components: np.ndarray) -> float:
    """‖Xᵀ projected on the loadings' span‖², from the scores XZᵀ and Z alone: with Zᵀ = QR it is XQ = (XZᵀ)R⁻¹."""
    sizes, axes = np.linalg.eigh(components @ components.T)
    if len(sizes) and sizes[0] > 1e-4 * sizes[-1]:
        # Far from dependent: products, at half their digits, are as good as QR.
        return float(np.sum((scores @ axes) ** 2 / sizes))
    if not components.any():
        return 0.0
    R, pivots = qr(components[:, components.any(axis=0)].T, mode="r", pivoting=True)
    rank = _rank(R)
    if rank == 0:
        return 0.0
    inside = solve_triangular(R[:rank, :rank], scores[:, pivots[:rank]].T, trans="T")
    return float(np.sum(inside**2))


def span(components: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the span of the rows, dependent and zero rows allowed: features x rank."""
    if components.size == 0:
        return np.zeros((components.shape[1], 0))
    Q, R, _ = qr(components.T / power_of_two(components), mode="economic", pivoting=True)
    return Q[:, : _rank(R)]


def _rank(R: np.ndarray) -> int:
    """The numerical rank, from the factor R of a QR decomposition with pivots."""
    size = np.abs(np.diagonal(R))
    return int(np.sum(size > 1e-10 * size[0])) if len(size) and size[0] > 0 else 0


def loading_overlap(components: np.ndarray) -> float:
    """The largest |z_iᵀz_j|, i ≠ j: 0 for orthogonal loadings."""
    components = _rows(components)
    with np.errstate(over="ignore", invalid="ignore"):
        G = np.abs(components @ components.T)
    refuse_too_large(G, "components", "their products", "loadings have the norm 1")
    np.fill_diagonal(G, 0.0)
    return float(G.max()) if G.size else 0.0


def score_correlation(X: np.ndarray, components: np.ndarray) -> float:
    """The largest |correlation| of two scores: 0 for principal components.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.metrics import score_correlation
    >>> X = np.array([[1.0, 2.0], [-1.0, -2.0], [0.5, 1.0]])
    >>> round(score_correlation(X, np.eye(2)), 12)
    1.0
    """
    X, components = _centred(X, components)
    # Correlations do not depend on the size of the data, of the loadings or of the scores.
    scores = _near_one(X, None) @ _near_one(components, 1).T
    scores = _near_one(scores, 0)
    return largest_correlation(scores.T @ scores)


def _near_one(values: np.ndarray, axis: int | None) -> np.ndarray:
    """Divided by powers of two, twice for subnormal numbers, so that the largest along an axis is near 1."""
    for _ in range(2):
        largest = np.max(np.abs(values), axis=axis, keepdims=True, initial=0.0)
        values = values / np.vectorize(power_of_two, otypes=[float])(largest)
    return values


def largest_correlation(G: np.ndarray) -> float:
    """The largest |correlation| of two scores, from their Gram matrix; rounding may have made a diagonal entry negative.

    >>> largest_correlation(np.array([[4.0, 1.0], [1.0, 1.0]]))
    0.5
    """
    size = np.sqrt(np.maximum(np.diagonal(G), 0.0))
    some = size > 0
    if some.sum() < 2:
        return 0.0
    R = np.abs(G[np.ix_(some, some)]) / np.outer(size[some], size[some])
    np.fill_diagonal(R, 0.0)
    return float(min(R.max(), 1.0))


def orthogonality_defect(U: np.ndarray) -> float:
    """The largest entry of |UᵀU − I|."""
    U = _matrix(U, "U")
    with np.errstate(over="ignore", invalid="ignore"):
        defect = float(np.max(np.abs(U.T @ U - np.eye(U.shape[1])), initial=0.0))
    refuse_too_large(defect, "U", "their products", "it is not near orthogonal")
    return defect


def amari(unmixing: np.ndarray, mixing: np.ndarray) -> float:
    """How far unmixing times mixing is from a scaled permutation: 0 for a perfect separation, at most 1 (Amari et al. 1996).

    Parameters
    ----------
    unmixing : array, shape (components, features)
        Such as `components_` of a fitted `ICA`.
    mixing : array, shape (features, components)
        The true one.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from givens.metrics import amari
    >>> amari(np.array([[0.0, 2.0], [-1.0, 0.0]]), np.eye(2))
    0.0
    """
    W, A = check_data(unmixing, "unmixing", 2), check_data(mixing, "mixing", 2)
    if W.shape[1] != len(A):
        raise ValueError(
            f"unmixing must have a column for each row of mixing, got shapes {W.shape} and {A.shape}"
        )
    # One power of two each: the error depends on how rows, or columns, are scaled among themselves.
    P = np.abs((W / power_of_two(W)) @ (A / power_of_two(A)))
    n = len(P)
    if P.shape != (n, n) or n < 2:
        raise ValueError(f"unmixing times mixing must be square, of order 2 at least, got shape {P.shape}")
    if not (P.any(axis=0).all() and P.any(axis=1).all()):
        raise ValueError(
            "unmixing times mixing has a row or a column of zeros: some source was not found at all"
        )
    rows = (P / P.max(axis=1, keepdims=True)).sum() - n
    columns = (P / P.max(axis=0, keepdims=True)).sum() - n
    return float(rows + columns) / (2 * n * (n - 1))


def mutual_information_reduction(X: np.ndarray, unmixing: np.ndarray) -> float:
    """The mutual information of the channels less that of the sources, in nats per sample (Delorme et al. 2012).

    With the channels X and the sources Y = X Wᵀ it is Σ h(x_i) − Σ h(y_i) + log |det W|, where the
    joint entropies have cancelled. Entropies h of single signals come from the spacings of their sorted values. Delorme et al.
    take histograms of the whole range instead, whose bins outliers stretch: where tails are heavy, values differ from theirs.

    Parameters
    ----------
    X : array, shape (samples, n)
    unmixing : array, shape (n, n)
        W, such as `components_` of a fitted `ICA`. Of data of lower rank, or with fewer components than channels, log |det W|
        does not exist, and the measure is not defined.

    Returns
    -------
    float
        Larger is better.

    References
    ----------
    A. Delorme, J. Palmer, J. Onton, R. Oostenveld and S. Makeig, "Independent EEG sources are dipolar", PLoS ONE 7 (2012) e30135.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.metrics import mutual_information_reduction
    >>> S = np.random.default_rng(0).laplace(size=(5000, 2))
    >>> A = np.array([[1.0, 0.8], [0.2, 1.0]])
    >>> mutual_information_reduction(S @ A.T, np.linalg.inv(A)) > 0.1
    True
    """
    X = _matrix(X, "X")
    W = _matrix(unmixing, "unmixing")
    n = X.shape[1]
    if len(X) < 5:
        raise ValueError(f"X must have 5 samples at least, got {len(X)}")
    if W.shape != (n, n):
        raise ValueError(
            f"the mutual information reduction is defined for as many components as channels, here {n}: unmixing has shape "
            f"{W.shape}; for data of lower rank, compare their leading principal components instead"
        )
    sign, logarithm = np.linalg.slogdet(W)
    if sign == 0 or np.linalg.matrix_rank(W) < n:
        raise ValueError("unmixing is singular, so the mutual information reduction is not defined")
    before = sum(_entropy(channel) for channel in X.T)
    return float(before - sum(_entropy(source) for source in (X @ W.T).T) + logarithm)


def _entropy(signal: np.ndarray) -> float:
    """In nats, from the spacings of the sorted values (Vasicek 1976), which need no bins that outliers could stretch.

    Values that occur several times, as those of a digitised signal do, are spread over the interval that is rounded to them.
    """
    from scipy.stats import differential_entropy  # takes longer to import than all of this package

    unit = power_of_two(signal)
    signal = signal / unit
    values, counts = np.unique(signal, return_counts=True)
    if len(values) == 1:
        raise ValueError("a channel or source is constant: its entropy, and so the reduction, is not defined")
    if len(values) < len(signal):
        middles = (values[:-1] + values[1:]) / 2
        edges = np.concatenate(([2 * values[0] - middles[0]], middles, [2 * values[-1] - middles[-1]]))
        place = np.arange(len(signal)) - np.repeat(np.cumsum(counts) - counts, counts)
        spread = edges[:-1].repeat(counts) + (place + 0.5) / counts.repeat(counts) * np.diff(edges).repeat(
            counts
        )
        signal = np.where(counts.repeat(counts) > 1, spread, values.repeat(counts))
    return float(differential_entropy(signal, method="vasicek") + np.log(unit))
