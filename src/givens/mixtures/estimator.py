"""`SphericalMixture`: mixtures of spherical Gaussians from moments up to the third, refined by EM."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.utils import check_random_state

from givens.data.by_rows import by_rows
from givens.data.moments import Moments
from givens.data.passes import TILE, EveryNth, Together, computed
from givens.data.rows import Numbers, Rows
from givens.data.stream import Stream, StreamedMoments
from givens.data.third_moments import (
    ThirdMoments,
    TooFewDirections,
    principal_basis,
    principal_moments,
    shifted,
)
from givens.mixtures.em import EM, SAMPLE_ROWS, Mixture, posterior
from givens.mixtures.whitened_moments import SolvedMixture, by_givens, solve, undecomposed
from givens.numerics import parallel
from givens.numerics.scaling import unit_of
from givens.result import Result
from givens.support.arguments import counted, is_dask, one_of, tolerance, warn_caller, whole
from givens.support.fitting import atomic_fit, validate_data

_VARIANCES = {"common": True, "distinct": False}


class SphericalMixture(StreamedMoments, DensityMixin, BaseEstimator):
    """Gaussian mixture with spherical covariances, from moments.

    The second moment gives the directions in which the means differ. The third, whitened, is an orthogonal tensor whose
    components are the means. Weights, means and variances are then fitted to the moments, each weighted by its noise, and refined
    by EM. If the data are such a mixture, this takes two passes over them and one more for each step of EM. On other data the
    solution from moments is one start of EM among others, which are compared on a sample of the rows. Moments tell at most as
    many components apart as there are features; for more, EM starts from the best of the others, and `result_.method` says so.

    Parameters
    ----------
    n_components : int, default=1
        k. Without EM (`max_iter=0`, `partial_fit`) it is at most the number of features, and the rows must span k − 1 dimensions
        about their mean.
    variance : {"common", "distinct"}, default="common"
        One variance for all components, or one for each.
    max_iter : int, default=100
        Maximum number of steps of EM after the fit to the moments, each one more pass over the data. 0: moments only. If all are
        taken and the last gains more than `tol`, there is a ConvergenceWarning.
    n_starts : int, default=21
        Number of starts of EM. The first is the solution from moments. The others are drawn as in k-means++ and tried on at most
        1,024 rows. If the best of them is clearly more likely there than the first, EM is run from both on all rows, and the more
        likely result is kept. Starts in which a component has fewer than two rows are discarded: with its own variance, the
        likelihood would be unbounded. All are drawn if moments cannot tell the components apart.
    tol : float, default=1e-4
        EM stops when a step gains less than this in mean log-likelihood.
    basis_rank : int, optional
        For `partial_fit`: the number of axes on which moments are kept, at least k; at most the number of features is used. By
        default 2k.
    basis_samples : int, default=2000
        For `partial_fit`: the axes are the principal axes of this many first rows.
    threads : int, optional
        By default one per core, at most 8. The result has the same bits for any number.
    random_state : int, RandomState or None, default=0
        For the start of the decomposition, on which the result seldom depends, for the random starts of EM, and for `sample`.

    Attributes
    ----------
    weights_ : array of shape (k,)
    means_ : array of shape (k, d)
    variances_ : array of shape (k,)
    converged_ : bool
        The last step of EM gained less than `tol`; without EM, the decomposition and the fit to the moments converged.
    result_ : Result
        The run that decomposed the tensor, with the `method`, `converged` and `message` of the whole fit. If moments cannot tell
        the components apart, nothing was decomposed, and U is empty.
    eigenvalues_ : array
        Eigenvalues of the covariance, descending: k − 1 of them must stand out from the rest, which are the noise.
    log_likelihood_ : list of float
        Mean log-likelihood of the rows before each step of EM.
    n_features_in_ : int

    Examples
    --------
    >>> from givens import SphericalMixture
    >>> from givens.datasets import make_spherical_mixture
    >>> data = make_spherical_mixture(20_000, n_components=3, n_features=10, scale=10, random_state=0)
    >>> model = SphericalMixture(n_components=3).fit(data.X)
    >>> model.weights_.round(2), model.variances_.round(1)
    (array([0.33, 0.34, 0.33]), array([2., 2., 2.]))
    """

    _solved: SolvedMixture | None

    def __init__(
        self,
        n_components: int = 1,
        *,
        variance: str = "common",
        max_iter: int = 100,
        n_starts: int = 21,
        tol: float = 1e-4,
        basis_rank: int | None = None,
        basis_samples: int = 2000,
        threads: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.n_components = n_components
        self.variance = variance
        self.max_iter = max_iter
        self.n_starts = n_starts
        self.tol = tol
        self.basis_rank = basis_rank
        self.basis_samples = basis_samples
        self.threads = threads
        self.random_state = random_state

    @atomic_fit
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit in two passes, and one more per step of EM.

        Parameters
        ----------
        X : array-like of shape (n, d), or iterable of such, or dask array or data frame
            A table; or a list of tables, or an object whose `__iter__` yields tables each time it is called: the data need not
            fit in memory. A dask array must be chunked along samples; only sums, and some first rows, leave the workers.
        y : ignored, optional

        Returns
        -------
        self
        """
        self._check()
        rows = Rows(X, self)
        features = rows.n_features
        with parallel.pool(self.threads):
            head = rows.head(max(TILE, features))
            fit = self._fit_span if len(head) < features else self._fit_passes
            self._solved = fit(rows, head)
        self._stream = None
        _warn_unless_converged(self._solved)
        return self

    def _fit_span(self, data: Rows, rows: np.ndarray) -> SolvedMixture:
        """Fit to fewer rows than features, in the coordinates of their span.

        N rows differ in at most N − 1 directions. With the QR decomposition (X − mean)ᵀ = QR the rows of Rᵀ are those of X about
        their mean in the orthonormal basis Q, so that all distances, and the result, are the same.
        """
        unit, features = unit_of(rows), rows.shape[1]
        scaled = np.asarray(rows, dtype=float) * unit
        origin = scaled.mean(axis=0)
        basis, R = np.linalg.qr((scaled - origin).T)
        coordinates = np.ascontiguousarray(R.T)
        found = self._fit_passes(Rows(coordinates), coordinates, features - basis.shape[1])
        eigenvalues = np.zeros(features)
        eigenvalues[: len(found.eigenvalues)] = found.eigenvalues / found.unit / found.unit
        weights, means, variances = found.mixture.moved(1 / found.unit, 0.0)
        mixture = Mixture(weights, origin + means @ basis.T, variances)
        history = [value + features * np.log(unit) for value in found.history]
        return SolvedMixture(mixture, eigenvalues, found.result, unit, history)

    def _fit_passes(self, data: Rows, head: np.ndarray, beyond: int = 0) -> SolvedMixture:
        """Fit to rows that are read several times; in `beyond` further directions, without coordinates, all rows are equal."""
        k, steps = self._whole_number("n_components"), self._whole_number("max_iter")
        seconds = data.total(Moments(data.n_features, unit_of(head[:TILE])), "mixture-second-moments")
        eigenvalues, basis = principal_basis(seconds, k - 1)
        thirds, sample = ThirdMoments(basis), EveryNth(-(-seconds.count // SAMPLE_ROWS))
        thirds, sample = data.total(Together(thirds, sample), "mixture-third-moments").parts
        unit, origin = basis.unit, basis.origin
        starts: dict[str, Mixture] = {}
        try:
            found = self._solve(thirds, eigenvalues, beyond)
            if not steps:
                return found
            starts["the moments' solution"], result = found.mixture.moved(1.0, origin), found.result
        except TooFewDirections:
            if not steps:
                raise
            features = len(eigenvalues) + beyond
            result = undecomposed(f"moments cannot tell {k} components apart in these {features} features")
        em = EM(self._common, 1e-12 * float(eigenvalues[0]), self.tol, beyond)
        drawn = self._whole_number("n_starts") - len(starts)
        if drawn:
            than = next(iter(starts.values()), None)
            other = em.better_start(shifted(sample.rows(), unit, origin), k, than, drawn, self._seed())
            if other is not None:
                starts[f"the best of {counted(drawn, 'start', 'starts')} drawn as in k-means++"] = other
        ends = [em.refine(data, start, steps, unit, origin) for start in starts.values()]
        # Of equal ends, the first.
        name, end = max(zip(starts, ends), key=lambda pair: pair[1].values[-1])
        history = [value + (len(origin) + beyond) * np.log(unit) for value in end.values]
        taken = counted(len(history), "step", "steps")
        message = f"converged: the last of {taken} of EM gained less than tol={self.tol:g}"
        if not end.converged:
            message = f"EM did not converge in {taken}: raise max_iter or tol"
        method = f"{result.method}; {taken} of EM from {name}"
        result = replace(result, method=method, converged=end.converged, message=message)
        return SolvedMixture(end.following.moved(1.0, -origin), eigenvalues, result, unit, history)

    @atomic_fit
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Update the model with a batch of rows. The result depends on the division into batches by rounding errors only.

        The first `basis_samples` rows determine a basis of `basis_rank` axes, on which the moments of all rows are kept. There is
        no EM. Parameters are computed when they are first used; before the basis is determined, from the rows so far.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : ignored, optional

        Returns
        -------
        self
        """
        self._check()
        stream = getattr(self, "_stream", None)
        X = validate_data(self, X, dtype=[np.float64, np.float32], order="C", reset=stream is None)
        self._check_shape(X.shape[1])
        if stream is None:
            rank = 2 * self._whole_number("n_components")
            if self.basis_rank is not None:
                rank = self._whole_number("basis_rank")
            self._stream = Stream(
                self._whole_number("basis_samples"), partial(principal_moments, rank=rank), Numbers()
            )
        self._add(X)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each component, given each row.

        Parameters
        ----------
        X : array-like of shape (n, d), or anything that `fit` takes
            A list of tables gives one array of all rows.
            For a dask array or data frame, this method, `predict` and `score_samples` return a dask array, not computed yet.

        Returns
        -------
        array of shape (n, k)
        """
        return by_rows(self, "_probabilities", X, len(self._mixture()[0].weights), np.float64)

    def predict(self, X: Any) -> np.ndarray:
        """Most probable component of each row.

        Parameters
        ----------
        X : array-like of shape (n, d), or anything that `fit` takes

        Returns
        -------
        array of shape (n,)
        """
        self._mixture()
        return by_rows(self, "_most_probable", X, None, np.intp)

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, and return the most probable component of each row.

        Parameters
        ----------
        X : array-like of shape (n, d), or anything that `fit` takes
        y : ignored, optional

        Returns
        -------
        array of shape (n,)
        """
        return self.fit(X).predict(X)

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-likelihood of each row.

        Parameters
        ----------
        X : array-like of shape (n, d), or anything that `fit` takes

        Returns
        -------
        array of shape (n,)
        """
        self._mixture()
        return by_rows(self, "_log_likelihoods", X, None, np.float64)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of the rows.

        Parameters
        ----------
        X : array-like of shape (n, d), or anything that `fit` takes
        y : ignored, optional

        Returns
        -------
        float
        """
        return float(np.mean(self.score_samples(X)))

    def bic(self, X: Any) -> float:
        """Bayesian information criterion on X; lower is better."""
        scores = self.score_samples(X)
        # Scores are counted, since the number of rows of a dask array may be unknown.
        total, n = scores.sum(), (~np.isnan(scores)).sum()
        if is_dask(X):
            total, n = computed((total, n))
        return float(-2 * total + self._freedom() * np.log(n))

    def aic(self, X: Any) -> float:
        """Akaike's information criterion on X; lower is better."""
        return float(-2 * self.score_samples(X).sum() + 2 * self._freedom())

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows from the fitted mixture.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        X : array of shape (n_samples, d)
        y : array of shape (n_samples,)
            The component of each row.
        """
        n_samples = whole(n_samples, "n_samples", 1)
        mixture, unit = self._mixture()
        rng = check_random_state(self.random_state)
        y = rng.choice(len(mixture.weights), size=n_samples, p=mixture.weights)
        noise = rng.standard_normal((n_samples, mixture.means.shape[1]))
        return (mixture.means[y] + np.sqrt(mixture.variances)[y, None] * noise) / unit, y

    def to_sklearn(self) -> GaussianMixture:
        """The same mixture as a fitted `sklearn.mixture.GaussianMixture` with spherical covariances.

        Returns
        -------
        GaussianMixture
        """
        mixture, unit = self._mixture()
        other = GaussianMixture(
            len(mixture.weights), covariance_type="spherical", random_state=self.random_state
        )
        other.weights_, other.means_, other.covariances_ = (
            part.copy() for part in mixture.moved(1 / unit, 0.0)
        )
        other.precisions_cholesky_ = 1 / np.sqrt(other.covariances_)
        other.precisions_ = other.precisions_cholesky_**2
        other.converged_ = self.converged_
        other.n_iter_ = len(self.log_likelihood_)
        other.lower_bound_ = self.log_likelihood_[-1] if self.log_likelihood_ else -np.inf
        other.n_features_in_ = self.n_features_in_
        return other

    @property
    def weights_(self) -> np.ndarray:
        """Weights of the components."""
        return self._fitted().mixture.weights

    @property
    def means_(self) -> np.ndarray:
        """Means, one row per component."""
        found = self._fitted()
        return found.mixture.means / found.unit

    @property
    def variances_(self) -> np.ndarray:
        """Variance of each component; infinite or 0 where float64 cannot hold it."""
        found = self._fitted()
        with np.errstate(over="ignore", under="ignore"):
            return found.mixture.variances / found.unit / found.unit

    @property
    def eigenvalues_(self) -> np.ndarray:
        """Eigenvalues of the covariance, descending."""
        found = self._fitted()
        with np.errstate(over="ignore", under="ignore"):
            return found.eigenvalues / found.unit / found.unit

    @property
    def converged_(self) -> bool:
        """Whether all iterations converged."""
        return self._fitted().result.converged

    @property
    def result_(self) -> Result:
        """The run that decomposed the tensor."""
        return self._fitted().result

    @property
    def log_likelihood_(self) -> list[float]:
        """Mean log-likelihood of the rows before each step of EM."""
        return self._fitted().history

    @property
    def _common(self) -> bool:
        return _VARIANCES[self.variance]

    def _mixture(self) -> tuple[Mixture, float]:
        found = self._fitted()
        return found.mixture, found.unit

    def _posterior(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        mixture, unit = self._mixture()
        X = validate_data(self, X, dtype=[np.float64, np.float32], order="C", reset=False)
        with parallel.pool(self.threads):
            return posterior(mixture, X, unit)

    def _probabilities(self, X: Any) -> np.ndarray:
        return self._posterior(X)[0]

    def _most_probable(self, X: Any) -> np.ndarray:
        return np.argmax(self._probabilities(X), axis=1)

    def _log_likelihoods(self, X: Any) -> np.ndarray:
        return self._posterior(X)[1]

    def _freedom(self) -> int:
        k, d = self._mixture()[0].means.shape
        return k * d + k - 1 + (1 if self._common else k)

    def _solve_moments(self, moments: ThirdMoments) -> SolvedMixture:
        found = self._solve(moments)
        _warn_unless_converged(found)
        return found

    def _solve(
        self, thirds: ThirdMoments, eigenvalues: np.ndarray | None = None, beyond: int = 0
    ) -> SolvedMixture:
        """Compute the parameters from the moments, in the unit of the moments."""
        k = self._whole_number("n_components")
        if thirds.count < max(k, 2):
            raise ValueError(f"n_samples={thirds.count} rows are too few for n_components={k}")
        moments = thirds.cumulants()
        if not np.trace(moments.covariance) + moments.energy > 1e-30 * (moments.mean @ moments.mean):
            raise ValueError("all rows are equal, so that there is no variance to fit")
        self._check_shape(len(moments.mean) + beyond)
        if thirds.basis.axes.shape[1] < k - 1:
            raise ValueError(
                f"moments are kept on {thirds.basis.axes.shape[1]} axes, too few for n_components={k}: start a new stream"
            )
        decomposition = partial(by_givens, random_state=self._seed(), threads=self.threads)
        found = solve(moments, k, common=self._common, decomposition=decomposition, beyond=beyond)
        values = found.eigenvalues if eigenvalues is None else eigenvalues
        method = f"moments up to the third, decomposed by {found.result.method}, and fitted by their noise"
        result = replace(found.result, method=method)
        return replace(found, eigenvalues=values, unit=thirds.basis.unit, result=result)

    def _seed(self) -> int:
        seed = self.random_state
        return int(seed if isinstance(seed, Integral) else check_random_state(seed).randint(2**31))

    def _whole_number(self, name: str) -> int:
        """A parameter that is a whole number; it may be given as a float."""
        return whole(getattr(self, name), name, 0 if name == "max_iter" else 1)

    def _check(self) -> None:
        """Refuse invalid parameters."""
        for name in ("n_components", "max_iter", "n_starts", "basis_samples"):
            self._whole_number(name)
        if self.basis_rank is not None:
            whole(self.basis_rank, "basis_rank", self._whole_number("n_components"))
        one_of(self.variance, "variance", _VARIANCES)
        tolerance(self.tol, "tol")

    def _check_shape(self, features: int) -> None:
        if self.n_components > features:
            raise TooFewDirections(
                f"n_components={self.n_components} is more than n_features={features}: moments tell at most as many "
                "components apart as there are features; ask for fewer, or fit with steps of EM (max_iter)"
            )


def _warn_unless_converged(found: SolvedMixture) -> None:
    if not found.result.converged:
        warn_caller(found.result.message, ConvergenceWarning)
