"""SOBI: sources with different spectra, by the joint diagonalisation of lagged covariances (Belouchrani et al. 1997).

The lagged covariances of white samples z_t are R_τ = E[z_t z_{t+τ}ᵀ]; their symmetric parts are used. In the coordinates of
uncorrelated sources all of them are diagonal, with the autocorrelations of the sources on the diagonals. Two sources can be
separated if their autocorrelations differ for some lag.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from givens.data.rows import Rows
from givens.ica.diagonalize import reduced_stack
from givens.ica.separation import Separated, SourceSeparation
from givens.numerics import parallel
from givens.numerics.scaling import check_data, power_of_two
from givens.numerics.tiles import tiled_sum
from givens.objectives.joint import JointDiagonal
from givens.solve.minimize import minimize
from givens.support.arguments import whole


class SOBI(SourceSeparation):
    """Sources with different spectra, from covariances at several lags.

    The rows of X are a time series. The sources may be Gaussian; their autocorrelations must differ.

    Parameters
    ----------
    n_components : int or float, optional
        As for `ICA`.
    lags : int or sequence of int, optional
        Lags in samples, at least 1 and less than the number of samples; an integer stands for 1, 2, ..., lags. By default 100, or
        half the number of samples if that is less.
    tol : float, default=1e-6
        Converged when an iteration gains at most tol² times the sum of squares of all lagged covariances: tol is about the error
        that is left in the components.
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
    lags_ : array of int
        The lags that were used.

    References
    ----------
    A. Belouchrani, K. Abed-Meraim, J.-F. Cardoso and E. Moulines, "A blind source separation technique using second-order
    statistics", IEEE Transactions on Signal Processing 45 (1997) 434-444.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.signal import lfilter
    >>> from givens import SOBI
    >>> from givens.metrics import amari
    >>> noise = np.random.default_rng(0).standard_normal((2, 20_000))
    >>> S = np.column_stack((lfilter([1.0], [1.0, -0.9], noise[0]), lfilter([1.0], [1.0, 0.5], noise[1])))
    >>> A = np.array([[1.0, 0.5], [0.3, 1.0]])
    >>> model = SOBI(lags=10).fit(S @ A.T)
    >>> amari(model.components_, A) < 0.02
    True
    """

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        lags: int | Iterable[int] | None = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
        threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.lags = lags
        self.tol = tol
        self.max_iter = max_iter
        self.threads = threads

    def _separate(self, rows: Rows, sample_weight: ArrayLike | None) -> Separated:
        X = rows.matrix("SOBI")
        self.lags_ = as_lags(self.lags, len(X))
        space = self._space(X)
        objective = JointDiagonal(reduced_stack(lagged_covariances(space.coordinates(X), self.lags_)))
        return Separated(
            space, minimize(objective, tol=self.tol, max_iter=self.max_iter, threads=self.threads)
        )


def as_lags(lags: Any, samples: int) -> np.ndarray:
    """The lags that a number, a sequence or None stands for; raise an error if they are invalid."""
    if lags is None:
        return np.arange(1, min(100, samples // 2) + 1)
    if np.ndim(lags) == 0:
        return np.arange(1, whole(lags, "lags", 1, samples - 1, "the number of samples less 1") + 1)
    numbers = np.asarray(lags)
    if numbers.ndim != 1 or len(numbers) == 0:
        raise ValueError(
            f"lags must be at least one whole number, got {'none' if numbers.size == 0 else numbers.shape}"
        )
    if numbers.dtype.kind not in "iu" or (numbers < 1).any():
        raise ValueError(f"lags must be whole numbers of at least 1, got {lags!r}")
    if numbers.max() >= samples:
        raise ValueError(f"lags must be less than the number of samples, {samples}, got {numbers.max()}")
    return numbers.astype(np.int64)


def lagged_covariances(Z: np.ndarray, lags: Any) -> np.ndarray:
    """The symmetric parts of Σ_t z_t z_{t+τ}ᵀ / (samples − τ), for each lag τ.

    Parameters
    ----------
    Z : array, shape (samples, n)
        With mean 0.
    lags : sequence of int

    Returns
    -------
    array, shape (len(lags), n, n)

    Examples
    --------
    >>> import numpy as np
    >>> from givens.ica.sobi import lagged_covariances
    >>> lagged_covariances(np.array([[1.0], [-1.0], [1.0], [-1.0]]), [1, 2]).ravel()
    array([-1.,  1.])
    """
    Z = check_data(Z, "Z", 2)
    samples, n = Z.shape
    if 0 in Z.shape:
        raise ValueError(f"Z must have samples and components, got shape {Z.shape}")
    lags = as_lags(lags, samples)
    unit = power_of_two(Z)  # divided by it, products cannot overflow
    # Zeros after the last sample: lags that reach beyond it add nothing.
    padded = np.concatenate((Z.astype(np.float64) / unit, np.zeros((int(lags.max()), n))))

    def sums(part: slice) -> np.ndarray:
        later = padded[np.arange(part.start, part.stop)[:, None] + lags]
        return padded[part].T @ later.reshape(len(later), -1)

    # If no pool is open, this opens one of a single thread: a BLAS with several threads is slower on small products.
    with parallel.pool(parallel.width()):
        # The lagged samples of a tile take half a megabyte, which a core's cache holds.
        total = tiled_sum(parallel.slices(samples, max(16, (1 << 16) // (n * len(lags)))), sums)
    total = total.reshape(n, len(lags), n).swapaxes(0, 1)
    total /= (samples - lags)[:, None, None]
    with np.errstate(over="ignore", under="ignore"):
        return (total + total.swapaxes(1, 2)) / 2 * unit * unit
