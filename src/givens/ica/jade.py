"""JADE: independent components by the joint diagonalisation of fourth-order cumulant matrices (Cardoso and Souloumiac 1993).

Of white samples z, the cumulant matrices are

    Q_pq = E[z_p z_q z zᵀ] − δ_pq I − e_p e_qᵀ − e_q e_pᵀ,        p ≤ q:  n(n+1)/2 of them for n components.

Independent sources make all of them diagonal. An orthogonal U that makes Σ_pq off(UᵀQ_pqU)² smallest, pairs p < q counted twice,
is an estimate of the mixing that needs no choice of a nonlinearity.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from givens.data.rows import Rows
from givens.ica.separation import Separated, SourceSeparation, counted_samples
from givens.numerics import parallel
from givens.numerics.scaling import check_data, refuse_too_large
from givens.objectives.fourth_moments import gram_of_products
from givens.objectives.joint import JointDiagonal
from givens.solve.minimize import minimize
from givens.support.arguments import Samples
from givens.support.fitting import atomic_fit


class JADE(SourceSeparation):
    """Independent components by the joint diagonalisation of fourth-order cumulants.

    Separates sources with heavy tails and sources with light tails; at most one of them may be Gaussian. Time and memory grow
    with the fourth power of the number of components, and are moderate up to about 60: choose `n_components` accordingly.

    Parameters
    ----------
    n_components : int or float, optional
        As for `ICA`.
    tol : float, default=1e-5
        Converged when an iteration gains at most tol² times the sum of squares of all cumulant matrices: tol is about the error
        that is left in the components. The default is far below the sampling error of the cumulants.
    max_iter : int, default=1000
        Maximum number of steps: sweeps and, where these gain little, steps of descent and of Newton's method.
    threads : int, optional
        By default one per core, at most 8. The number changes the time, never the result.

    Attributes
    ----------
    components_, n_components_, mixing_, explained_variance_, explained_variance_ratio_, whitening_, mean_
        As in `ICA`.
    n_iter_ : int
        Number of steps, which `max_iter` limits.
    converged_ : bool
        Whether the run has converged.
    result_ : Result
        The run of the joint diagonalisation.

    References
    ----------
    J.-F. Cardoso and A. Souloumiac, "Blind beamforming for non-Gaussian signals", IEE Proceedings F 140 (1993) 362-370.

    Examples
    --------
    >>> import numpy as np
    >>> from givens import JADE
    >>> from givens.metrics import amari
    >>> rng = np.random.default_rng(0)
    >>> S = np.column_stack((rng.laplace(size=20_000), rng.uniform(-1, 1, 20_000)))
    >>> A = np.array([[1.0, 0.5], [0.3, 1.0]])
    >>> model = JADE().fit(S @ A.T)
    >>> amari(model.components_, A) < 0.05
    True
    """

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        tol: float = 1e-5,
        max_iter: int = 1000,
        threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.tol = tol
        self.max_iter = max_iter
        self.threads = threads

    @atomic_fit
    def fit(self, X: Samples, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the sources.

        Parameters
        ----------
        X : array or data frame, shape (samples, features)
            For signals: time x channels.
        y : ignored, optional
        sample_weight : array, shape (samples,), optional
            How often each sample counts, at least 0, as for `ICA`.

        Returns
        -------
        self
        """
        return self._fit(X, sample_weight)

    def _separate(self, rows: Rows, sample_weight: ArrayLike | None) -> Separated:
        X, weights, _ = counted_samples(rows.matrix("JADE"), sample_weight)
        space = self._space(X, weights)
        n = len(space.W)
        if n > 128:  # whose cumulant matrices take 8·n⁴/2 bytes: 1.1 GB
            raise ValueError(
                f"JADE of {n} components would need {n * (n + 1) // 2:,} cumulant matrices; use n_components, at most 128"
            )
        objective = JointDiagonal(cumulant_matrices(space.coordinates(X), weights))
        return Separated(
            space, minimize(objective, tol=self.tol, max_iter=self.max_iter, threads=self.threads)
        )


def cumulant_matrices(Z: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """The fourth-order cumulant matrices of white samples; those with p < q are multiplied by √2.

    Parameters
    ----------
    Z : array, shape (samples, n)
        Mean 0, covariance I.
    weights : array, shape (samples,), optional
        How often each sample counts.

    Returns
    -------
    array, shape (n(n+1)/2, n, n)
        In the order of `numpy.triu_indices(n)`.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.ica.jade import cumulant_matrices
    >>> signs = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])  # two coins: each has the cumulant −2
    >>> cumulant_matrices(signs)[0]
    array([[-2.,  0.],
           [ 0.,  0.]])
    """
    Z = check_data(Z, "Z", 2)
    samples, n = Z.shape
    if 0 in Z.shape:
        raise ValueError(f"Z must have samples and components, got shape {Z.shape}")
    p, q = np.triu_indices(n)
    # If no pool is open, this opens one: a BLAS with several threads is slower on small products.
    with parallel.pool(parallel.width()), np.errstate(over="ignore", invalid="ignore"):
        if weights is not None:
            Z, samples = Z * weights[:, None] ** 0.25, weights.sum()
        fourth = gram_of_products(np.ascontiguousarray(Z.T, dtype=np.float64))[1:, 1:] / samples
    refuse_too_large(fourth, "Z", "their fourth powers", "whiten it first")
    Q = np.empty((len(p), n, n))
    Q[:, p, q] = Q[:, q, p] = fourth
    same = p == q
    Q[same] -= np.eye(n)
    k = np.arange(len(p))
    Q[k, p, q] -= 1.0
    Q[k, q, p] -= 1.0
    Q[~same] *= np.sqrt(2.0)
    return Q
