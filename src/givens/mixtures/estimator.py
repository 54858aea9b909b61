"""`SphericalMixture`: mixtures of spherical Gaussians from moments up to the third, refined by EM."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.mixture import GaussianMixture
from sklearn.utils import check_random_state

from givens.data.by_rows import by_rows
from givens.data.moments import Moments
from givens.data.passes import TILE_ROWS, EveryNth, Together, computed
from givens.data.rows import Numbers, Rows
from givens.data.stream import Stream, StreamedMoments
from givens.data.third_moments import (
    ThirdMoments,
    TooFewDirections,
    principal_basis,
    principal_moments,
    shifted,
)
from givens.mixtures.em import EM, Mixture, posterior
from givens.mixtures.whitened_moments import SolvedMixture, by_givens, solve
from givens.numerics import parallel
from givens.numerics.scaling import unit_of
from givens.solve.outer_loops import no_run
from givens.support.arguments import Samples, counted, is_dask, one_of, tolerance, whole
from givens.support.fitting import atomic_fit, validate_data, warn_unless_converged


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
        taken before `tol` is met, there is a ConvergenceWarning.
    n_starts : int, default=10
        Number of starts of EM. The first is the solution from moments. The others are drawn as in k-means++ and tried on at most
        1,024 rows. If the best of them is clearly more likely there than the first, EM is run from both on all rows, and the more
        likely result is kept. Starts in which a component has fewer than two rows are discarded: with its own variance, the
        likelihood would be unbounded. All are drawn if moments cannot tell the components apart.
    tol : float, default=0.01
        Converged when an iteration gains at most tol² times one nat in the mean log-likelihood of a row.
    basis_samples : int, default=2000
        For `partial_fit`: moments are kept on the first 2k principal axes of this many first rows.
    threads : int, optional
        By default one per core, at most 8. The result has the same bits for any number.
    random_state : int, RandomState or None, default=0
        For the start of the decomposition, on which the result seldom depends, for the random starts of EM, and for `sample`.

    Attributes
    ----------
    weights_ : array of shape (k,)
    means_ : array of shape (k, d)
    variances_ : array of shape (k,)
    covariances_, precisions_ : array of shape (k,)
        As in scikit-learn's `GaussianMixture` with spherical covariances: the variances, and one over them.
    lower_bound_ : float
        Mean log-likelihood of the rows; NaN without EM.
    n_components_ : int
        k.
    n_iter_ : int
        Number of steps of EM.
    converged_ : bool
        Whether EM converged; without EM, the decomposition and the fit to the moments.
    result_ : Result
        The run of EM: its trace has the mean log-likelihood of the rows, first that of the start. U is that of the decomposition.
        Without EM, the run that decomposed the tensor. If moments cannot tell the components apart, U is empty.
    eigenvalues_ : array
        Eigenvalues of the covariance, descending: k − 1 of them must stand out from the rest, which are the noise.
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
        n_starts: int = 10,
        tol: float = 1e-2,
        basis_samples: int = 2000,
        threads: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.n_components = n_components
        self.variance = variance
        self.max_iter = max_iter
        self.n_starts = n_starts
        self.tol = tol
        self.basis_samples = basis_samples
        self.threads = threads
        self.random_state = random_state

    @atomic_fit
    def fit(self, X: Samples, y: object = None) -> Self:
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
            head = rows.head(max(TILE_ROWS, features))
            fit = self._fit_span if len(head) < features else self._fit_passes
            solved = fit(rows, head)
        self._solved, self._stream = solved, None
        warn_unless_converged(solved.result.converged, solved.result.message)
        return self

    def _fit_span(self, data: Rows, rows: np.ndarray) -> SolvedMixture:
        """Fit to fewer rows than features, in the coordinates of their span.

        N rows differ in at most N − 1 directions. With the QR decomposition (X − mean)ᵀ = QR the rows of Rᵀ are those of X about
        their mean in the orthonormal basis Q, so that all distances, and the result, are the same.
        """
        unit, features = unit_of(rows), rows.shape[1]
        scaled = shifted(rows, unit, 0.0)
        origin = scaled.mean(axis=0)
        basis, R = np.linalg.qr((scaled - origin).T)
        coordinates = np.ascontiguousarray(R.T) / unit
        found = self._fit_passes(Rows(coordinates), coordinates, features - basis.shape[1])
        means = origin * (found.unit / unit) + found.mixture.means @ basis.T
        return replace(found, mixture=found.mixture._replace(means=means))

    def _fit_passes(self, data: Rows, head: np.ndarray, beyond: int = 0) -> SolvedMixture:
        """Fit to rows that are read several times; in `beyond` further directions, without coordinates, all rows are equal."""
        k, steps = int(self.n_components), int(self.max_iter)
        seconds = data.total(Moments(data.n_features, unit_of(head[:TILE_ROWS])), "mixture-second-moments")
        spread, basis = principal_basis(seconds, k - 1)
        sample = EveryNth(-(-seconds.count // 1024))  # EM starts are compared on so many rows
        thirds, sample = data.total(Together(ThirdMoments(basis), sample), "mixture-third-moments").parts
        unit, origin, features = basis.unit, basis.origin, len(spread) + beyond
        spread = np.append(spread, np.zeros(beyond))
        starts: dict[str, Mixture] = {}
        try:
            solved = replace(self._solve(thirds, beyond), spread=spread)
            if not steps:
                return solved
            starts["the moments' solution"] = solved.mixture.moved(1.0, origin)
            first, method = solved.result, solved.result.method
        except TooFewDirections:
            if not steps:
                raise
            first = no_run()
            method = f"no tensor is decomposed, since moments cannot tell {k} components apart in these {features} features"
        em = EM(self._common, 1e-12 * float(spread[0]), float(self.tol) ** 2, beyond, unit, origin)
        drawn = int(self.n_starts) - len(starts)
        if drawn:
            than = next(iter(starts.values()), None)
            other = em.better_start(sample.rows(), k, than, drawn, self._seed())
            if other is not None:
                starts[f"the best of {counted(drawn, 'start', 'starts')} drawn as in k-means++"] = other
        ends = [em.refine(data, start, steps) for start in starts.values()]
        # Of equal ends, the first.
        name, end = max(zip(starts, ends), key=lambda pair: pair[1].values[-1])
        end = end._replace(values=[value + features * np.log(unit) for value in end.values])
        taken = len(end.values) - 1
        method = f"{method}; {counted(taken, 'step', 'steps')} of EM from {name}"
        result = end.result(first, "EM", "in mean log-likelihood", method)
        return SolvedMixture(end.last.moved(1.0, -origin), spread, result, unit, taken)

    @atomic_fit
    def partial_fit(self, X: Samples, y: object = None) -> Self:
        """Update the model with a batch of rows. The result depends on the division into batches by rounding errors only.

        The first `basis_samples` rows determine 2k axes, on which the moments of all rows are kept. There is no EM. Parameters
        are computed when they are first used; before the axes are determined, from the rows so far.

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
            start = partial(principal_moments, rank=2 * int(self.n_components))
            self._stream = Stream(int(self.basis_samples), start, Numbers())
        self._add(X)
        return self

    def predict_proba(self, X: Samples) -> np.ndarray:
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
        return by_rows(self, "_probabilities", X, self.n_components_, np.float64)

    def predict(self, X: Samples) -> np.ndarray:
        """Most probable component of each row.

        Parameters
        ----------
        X : array-like of shape (n, d), or anything that `fit` takes

        Returns
        -------
        array of shape (n,)
        """
        return np.argmax(self.predict_proba(X), axis=1)

    def fit_predict(self, X: Samples, y: object = None) -> np.ndarray:
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

    def score_samples(self, X: Samples) -> np.ndarray:
        """Log-likelihood of each row.

        Parameters
        ----------
        X : array-like of shape (n, d), or anything that `fit` takes

        Returns
        -------
        array of shape (n,)
        """
        self._fitted()
        return by_rows(self, "_log_likelihoods", X, None, np.float64)

    def score(self, X: Samples, y: object = None) -> float:
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

    def bic(self, X: Samples) -> float:
        """Bayesian information criterion on X; lower is better."""
        scores = self.score_samples(X)
        # Scores are counted, since the number of rows of a dask array may be unknown.
        total, n = scores.sum(), (~np.isnan(scores)).sum()
        if is_dask(X):
            total, n = computed((total, n))
        return float(-2 * total + self._freedom() * np.log(n))

    def aic(self, X: Samples) -> float:
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
        solved = self._fitted()
        weights, means, variances = solved.mixture
        rng = check_random_state(self.random_state)
        y = rng.choice(len(weights), size=n_samples, p=weights)
        noise = rng.standard_normal((n_samples, means.shape[1]))
        return (means[y] + np.sqrt(variances)[y, None] * noise) / solved.unit, y

    def to_sklearn(self) -> GaussianMixture:
        """The same mixture as a fitted `sklearn.mixture.GaussianMixture` with spherical covariances.

        Returns
        -------
        GaussianMixture
        """
        other = GaussianMixture(
            self.n_components_, covariance_type="spherical", random_state=self.random_state
        )
        for name in ("weights_", "means_", "covariances_", "precisions_"):
            setattr(other, name, getattr(self, name).copy())
        other.precisions_cholesky_ = np.sqrt(other.precisions_)
        for name in ("converged_", "n_iter_", "lower_bound_", "n_features_in_"):
            setattr(other, name, getattr(self, name))
        return other

    @property
    def weights_(self) -> np.ndarray:
        """Weights of the components."""
        return self._fitted().weights

    @property
    def means_(self) -> np.ndarray:
        """Means, one row per component."""
        solved = self._fitted()
        return solved.mixture.means / solved.unit

    @property
    def variances_(self) -> np.ndarray:
        """Variance of each component; infinite or 0 where float64 cannot hold it."""
        solved = self._fitted()
        return solved.squared(solved.mixture.variances)

    @property
    def covariances_(self) -> np.ndarray:
        """The same as `variances_`."""
        return self.variances_

    @property
    def precisions_(self) -> np.ndarray:
        """One over the variances."""
        with np.errstate(divide="ignore"):
            return 1 / self.variances_

    @property
    def lower_bound_(self) -> float:
        """Mean log-likelihood of the rows; NaN without EM."""
        return self.result_.value if self.n_iter_ else float("nan")

    @property
    def _common(self) -> bool:
        return self.variance == "common"

    def _posterior(self, X: Samples) -> tuple[np.ndarray, np.ndarray]:
        solved = self._fitted()
        X = validate_data(self, X, dtype=[np.float64, np.float32], order="C", reset=False)
        with parallel.pool(self.threads):
            return posterior(solved.mixture, X, solved.unit)

    def _probabilities(self, X: Samples) -> np.ndarray:
        return self._posterior(X)[0]

    def _log_likelihoods(self, X: Samples) -> np.ndarray:
        return self._posterior(X)[1]

    def _freedom(self) -> int:
        k, d = self._fitted().mixture.means.shape
        return k * d + k - 1 + (1 if self._common else k)

    def _solve_moments(self, moments: ThirdMoments) -> SolvedMixture:
        solved = self._solve(moments)
        warn_unless_converged(solved.result.converged, solved.result.message)
        return solved

    def _solve(self, thirds: ThirdMoments, beyond: int = 0) -> SolvedMixture:
        """Compute the parameters from the moments, in the unit of the moments."""
        k, rank = int(self.n_components), thirds.basis.axes.shape[1]
        if thirds.count < max(k, 2):
            raise ValueError(f"n_samples={thirds.count} rows are too few for n_components={k}")
        moments = thirds.cumulants()
        if not np.trace(moments.covariance) + moments.energy > 1e-30 * (moments.mean @ moments.mean):
            raise ValueError("all rows are equal, so that there is no variance to fit")
        self._check_shape(len(moments.mean) + beyond)
        if rank < k - 1:
            raise ValueError(
                f"moments are kept on {rank} axes, too few for n_components={k}: start a new stream"
            )
        decomposition = partial(by_givens, random_state=self._seed(), threads=self.threads)
        solved = solve(moments, k, common=self._common, decomposition=decomposition, beyond=beyond)
        method = f"moments up to the third, decomposed by {solved.result.method}, and fitted by their noise"
        return replace(solved, unit=thirds.basis.unit, result=replace(solved.result, method=method))

    def _seed(self) -> int:
        seed = self.random_state
        return int(seed if isinstance(seed, Integral) else check_random_state(seed).randint(2**31))

    def _check(self) -> None:
        """Refuse invalid parameters."""
        for name in ("n_components", "n_starts", "basis_samples"):
            whole(getattr(self, name), name, 1)
        whole(self.max_iter, "max_iter", 0)
        one_of(self.variance, "variance", ("common", "distinct"))
        tolerance(self.tol, "tol")

    def _check_shape(self, features: int) -> None:
        if self.n_components > features:
            raise TooFewDirections(
                f"n_components={self.n_components} is more than n_features={features}: moments tell at most as many "
                "components apart as there are features; ask for fewer, or fit with steps of EM (max_iter)"
            )
