"""Independent components by a contrast: quasi-Newton descent on white samples, from a deterministic start.

Of white samples Z, the estimator finds the orthogonal U for which the sum over the sources S = ZU

    f(U) = Σ_j s_j Σ_t φ(S_tj),        φ = log cosh, −exp(−y²/2) or −y⁴/4,

is smallest. For sources with heavy tails (s_j = 1) that is maximum likelihood with a density proportional to e^−φ. At sources
with light tails f is *largest*. With `contrast="adaptive"`, the default, φ is log cosh and s_j is −1 for them; the module
`adaptive` says how the signs are found. The other contrasts have s_j = 1 for all sources.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from givens.data.moments import Moments, moments_of
from givens.data.rows import Rows
from givens.ica.adaptive import NonGaussianity, tail_moments, tail_signs
from givens.ica.separation import Separated, SourceSeparation, counted_samples
from givens.ica.whitening import WhiteSpace, from_moments, white_space
from givens.numerics.polar import polar
from givens.numerics.scaling import check_data, unit_of
from givens.objectives.columns import Columns
from givens.objectives.contrasts import Contrast, LogCosh
from givens.objectives.turned_rows import HeldRows, PassedRows, TurnedRows
from givens.result import Result
from givens.rotations import random_orthogonal
from givens.solve.race import lowest_run
from givens.solve.state import RunOptions
from givens.sparse_pca.stability import halves, matches
from givens.support.arguments import Samples, generator, one_of, tolerance, warn_caller, whole
from givens.support.fitting import atomic_fit

SIGN_TOL = 1e-3
"""`tol` of the run that ends with signs, and of the fits for `stability_`: errors of samples are larger."""


class ICA(SourceSeparation):
    """Independent components: sources of which the samples are linear mixtures.

    It has the attributes and methods of scikit-learn's `FastICA`; docs/ica.md compares the parameters. All sources are found
    together, by quasi-Newton steps on the orthogonal matrices. The start is deterministic, so `random_state` has no effect unless
    `n_starts` or `stability` ask for random starts. Sources are ordered by the variance they explain, and the largest weight of
    each in `mixing_` is positive.

    Parameters
    ----------
    n_components : int or float, optional
        Number of sources; or, below 1, the share of the variance that the leading principal components keep. By default the rank
        of the data, which may be less than the number of features (for example after an average reference). The float 1.0, which
        may mean one or all, is refused.
    contrast : {"adaptive", "logcosh", "exp", "kurtosis"} or Contrast, default="adaptive"
        "adaptive": log cosh with a sign for each source, for heavy and light tails. The others are for sources that all have
        heavy tails: "logcosh"; "exp", which is more robust; "kurtosis", which is quicker and sensitive to outliers. Or a contrast
        of your own, such as `givens.objectives.Scalar`.
    whiten : {"unit-variance", "arbitrary-variance", False}, default="unit-variance"
        As in `FastICA`: sources have variance 1, or 1/samples. False if X is white already.
    tol : float, default=1e-8
        Converged when an iteration gains at most tol² times the size of the contrast, the sum of |φ| over all entries of the
        sources: tol is about the error that is left in the components.
    max_iter : int, default=1000
        Maximum number of steps of the descent. As many steps at most precede it where they are cheaper, on a sample of the rows,
        or where they find the signs.
    w_init : array, shape (n_components, n_components), optional
        The start, in white coordinates; its polar factor is used. By default the principal axes.
    n_starts : int, default=1
        Number of starts. The first is that of `w_init`, further ones are random. They race (see `minimize`): only the one with
        the best contrast is run to the end. `result_.starts` has the values; with
        "adaptive" those of the measure with which a run begins, Σ (E[log cosh y] − E[log cosh ν])² with ν Gaussian.
    stability : int, optional
        Also separate so many random halves of the samples, each from a random start, and report in `stability_` how much of
        each source is found again.
    certify : bool, default=False
        Search every pair of sources over all angles at the end; `certificate_` is the largest gain of such a rotation.
    threads : int, optional
        By default one per core, at most 8. The number changes the time, never the result.
    random_state : int, Generator or RandomState or None, default=0
        For `n_starts` and `stability` only.

    Attributes
    ----------
    components_ : array, shape (n_components, n_features)
        Unmixing: sources are (X − mean) times its transpose. Ordered by the variance that a source explains, largest first.
    mixing_ : array, shape (n_features, n_components)
        X is sources times its transpose, plus the mean. The largest entry of each column in absolute value is positive.
    n_components_ : int
    explained_variance_ : array, shape (n_components,)
        Variance that each source explains: Σ_k A_kj², summed over the features k, for the `mixing_` matrix A of sources with
        variance 1.
    explained_variance_ratio_ : array, shape (n_components,)
        Its share of the variance of all features.
    whitening_ : array, shape (n_components, n_features)
    mean_ : array, shape (n_features,)
    rank_ : int
        Of the centred data.
    signs_ : array of int, shape (n_components,)
        The factor of each source's contrast: 1 for heavy tails, −1 for light ones.
    kurtosis_ : array, shape (n_components,)
        Excess kurtosis: 0 for Gaussian sources, which no method can tell apart.
    stability_ : array, shape (n_components,), or None
        With `stability`: the mean |correlation| between a source and those that belong to it in the halves. A source near 1 may
        still be lost by other starts.
    gradient_norm_ : float
        Norm of the gradient per sample, at the end.
    certificate_ : float or None
        The largest gain, per sample, of a rotation of two sources by any angle. None unless `certify`.
    result_ : Result
        The descent: value, trace, method, and why it stopped.
    n_iter_ : int
        Number of steps of the descent, which `max_iter` limits; at least 1.
    converged_ : bool
        Whether the descent has converged. If not, `fit` warns.

    Examples
    --------
    >>> import numpy as np
    >>> from givens import ICA
    >>> from givens.metrics import amari
    >>> rng = np.random.default_rng(0)
    >>> S = rng.laplace(size=(5000, 3))
    >>> A = rng.standard_normal((3, 3))
    >>> model = ICA().fit(S @ A.T)
    >>> bool(amari(model.components_, A) < 0.03), model.gradient_norm_ <= 1e-7
    (True, True)
    """

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        contrast: str | Contrast = "adaptive",
        whiten: str | bool = "unit-variance",
        tol: float = 1e-8,
        max_iter: int = 1000,
        w_init: np.ndarray | None = None,
        n_starts: int = 1,
        stability: int | None = None,
        certify: bool = False,
        threads: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.contrast = contrast
        self.whiten = whiten
        self.tol = tol
        self.max_iter = max_iter
        self.w_init = w_init
        self.n_starts = n_starts
        self.stability = stability
        self.certify = certify
        self.threads = threads
        self.random_state = random_state

    @atomic_fit
    def fit(self, X: Samples, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the sources.

        Parameters
        ----------
        X : array or data frame, shape (samples, features)
            For signals: time x channels. A memory map, a data set of zarr or HDF5, a list of arrays, or a dask array or data
            frame chunked along samples is read in chunks: once for the covariance, once for a sample of the rows, and once for
            each evaluation of the contrast. With weights, `stability` or `certify` all of it is read into memory, and data on
            Dask are refused.
        y : ignored, optional
        sample_weight : array, shape (samples,), optional
            How often each sample counts, at least 0: a weight of 2 counts the sample twice, a weight of 0 leaves it out. A
            contrast of your own takes weights only if it is a `Scalar`.

        Returns
        -------
        self
        """
        return self._fit(X, sample_weight)

    def _refuse(self) -> None:
        """Refuse bad options."""
        if not isinstance(self.contrast, Contrast):
            names = ("adaptive", "logcosh", "exp", "kurtosis")
            one_of(self.contrast, "contrast", names, " or a Contrast object")
        if self.whiten is not False:
            one_of(self.whiten, "whiten", ("unit-variance", "arbitrary-variance"), " or False")
        tolerance(self.tol, "tol")
        whole(self.max_iter, "max_iter", 1)
        whole(self.n_starts, "n_starts", 1)
        whole(self.stability or 0, "stability", 0)

    def _separate(self, rows: Rows, sample_weight: ArrayLike | None) -> Separated:
        self._refuse()
        given = {
            "sample_weight": sample_weight is not None,
            "stability": self.stability,
            "certify": self.certify,
        }
        names = [name for name, asked in given.items() if asked]
        if rows.table is None and not names:
            space, white = self._passed(rows)
            return Separated(space, self._rotate(white), white, white.weight)
        X, weights, samples = counted_samples(rows.matrix(" and ".join(names)), sample_weight)
        space, held = self._in_memory(X, weights)
        return Separated(space, self._rotate(held), held, samples)

    def _in_memory(self, X: np.ndarray, weights: np.ndarray | None) -> tuple[WhiteSpace, HeldRows]:
        """White samples in memory."""
        if self.whiten is False:
            X = np.ascontiguousarray(X, dtype=np.float64)
            return self._as_white(moments_of(X, unit_of(X), weights)), HeldRows(X, weights=weights)
        space = self._space(X, weights)
        return space, HeldRows(X, space, weights)

    def _passed(self, rows: Rows) -> tuple[WhiteSpace, PassedRows]:
        """White samples that are made of the rows in every pass."""
        moments = rows.total(Moments(rows.n_features, rows.unit()), "ica-covariance")
        if self.whiten is False:
            space = self._as_white(moments)
        else:
            space = from_moments(moments, *self._number(min(moments.count, rows.n_features)))
        return space, PassedRows(rows, moments.count, space, "ica")

    def _as_white(self, moments: Moments) -> WhiteSpace:
        """The white space of samples that are white already; warns if their second moments are not the identity."""
        mean, samples, features = moments.mean, moments.count, len(moments.mean)
        if self.n_components not in (None, features):
            raise ValueError(
                f"n_components = {self.n_components}, but whiten=False keeps all {features} columns of X: leave out one of them"
            )
        if samples < features:
            raise ValueError(
                f"whiten=False needs at least as many samples as features, got {samples} and {features}"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            second = (moments.covariance() + np.outer(mean, mean)) / moments.unit / moments.unit
            worst = float(np.abs(second - np.eye(features)).max())
        if not worst <= 0.05:
            warn_caller(
                f"whiten=False, but X is not white: its second moments differ from the identity by up to {worst:.2g}; "
                "the components are then rotations of X, not independent sources",
                UserWarning,
            )
        return WhiteSpace(
            np.eye(features), np.eye(features), np.zeros(features), features, float(np.trace(second))
        )

    def _rotate(self, white: TurnedRows) -> Result:
        rng = generator(self.random_state)
        several = {"n_starts": int(self.n_starts), "random_state": rng}
        result = self._separated(white, self._start(white.n), float(self.tol), **several)
        self.stability_ = None
        if self.stability and isinstance(white, HeldRows):
            self.stability_ = self._found_again(white, result.U, rng)
        return result

    def _start(self, n: int) -> np.ndarray:
        """The start in white coordinates."""
        if self.w_init is None:
            return np.eye(n)
        W = check_data(self.w_init, "w_init").astype(np.float64)
        if W.shape != (n, n) or np.linalg.matrix_rank(W) < n:
            raise ValueError(
                f"w_init must be a regular matrix of shape {(n, n)}, one row per component, got shape {W.shape}"
            )
        return np.ascontiguousarray(polar(W).T)

    def _separated(self, white: TurnedRows, start: np.ndarray, tol: float, **several: Any) -> Result:
        """Descend from one start or several; with adaptive signs, to where they can be told first."""
        certify = bool(self.certify) and tol <= self.tol
        if self.contrast != "adaptive":
            return self._descended(white, self.contrast, start, tol, coarse=True, certify=certify, **several)
        # If there are so many rows that a sample of them can be drawn, the run begins on it, and does not go on to all.
        begin = NonGaussianity(squared=True)
        first = self._descended(white, begin, start, max(tol, SIGN_TOL), sampled=True, **several)
        result = self._descended(white, NonGaussianity(squared=False), first.U, tol)
        if certify:
            signed = LogCosh(tail_signs(tail_moments(white, result.U)[1]))
            certified = self._descended(white, signed, result.U, tol, certify=True)
            result = replace(
                certified,
                # With these signs the objective is the same up to a constant.
                value=result.value + certified.value - certified.trace.value[0],
                trace=result.trace,
                flops=result.flops + certified.flops,
                seconds=result.seconds + certified.seconds,
                method=f"{result.method}; then, with fixed signs, {certified.method}",
                phases=result.phases,
            )
        result.starts = first.starts
        return result

    def _descended(
        self,
        white: TurnedRows,
        contrast: str | Contrast,
        start: np.ndarray,
        tol: float,
        *,
        coarse: bool = False,
        sampled: bool = False,
        certify: bool = False,
        **several: Any,
    ) -> Result:
        """Descend until a step gains next to nothing; with `coarse` or `sampled` first, or only, on a sample."""
        objective = Columns(white, contrast)
        options = RunOptions(("descent",), tol=tol, max_iter=int(self.max_iter), certify=float(certify))
        if sampled:
            objective = objective.coarse() or objective
        return lowest_run(objective, start, options, coarse=coarse, **several)

    def _found_again(self, white: HeldRows, U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The mean |correlation| of each source with its matches in halves of the samples, separated from random starts."""
        parts = halves(white.count, int(self.stability or 0), rng)
        cosines = [matches(U.T, self._of_half(white, half, rng))[1] for half in parts]
        return np.mean(cosines, axis=0)

    def _of_half(self, white: HeldRows, half: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The directions of the sources that half of the samples give, as rows of unit length."""
        Z, weights = white.at(half), None if white.weights is None else white.weights[half]
        space = white_space(Z, weights=weights)
        if len(space.W) < Z.shape[1]:
            raise ValueError(
                "half of the samples have a lower rank than all of them; stability needs more samples"
            )
        start = random_orthogonal(Z.shape[1], rng)
        result = self._separated(HeldRows(Z, space, weights), start, max(SIGN_TOL, float(self.tol)))
        directions = result.U.T @ space.whitening
        return directions / np.linalg.norm(directions, axis=1, keepdims=True)

    def _warn_of_light_tails(self, samples: float) -> None:
        """Warn if some sources have light tails, and the contrast is for heavy ones."""
        # In standard errors of Gaussian samples; five are no chance.
        errors = self.kurtosis_ / np.sqrt(24.0 / samples)
        least = min(errors.min(), errors.sum() / np.sqrt(len(errors)))
        if isinstance(self.contrast, str) and self.contrast != "adaptive" and least < -5.0:
            warn_caller(
                f"some sources have light tails (kurtosis {self.kurtosis_.min():.2f}), and contrast={self.contrast!r} cannot "
                "tell two of these apart: fit with contrast='adaptive'",
                UserWarning,
            )

    def _settle(self, separated: Separated, order: np.ndarray) -> None:
        result, white = separated.result, separated.white
        self.rank_ = separated.space.rank
        fourth, log_cosh = tail_moments(white, result.U[:, order])
        self.kurtosis_ = fourth - 3.0
        self.signs_ = tail_signs(log_cosh) if self.contrast == "adaptive" else np.ones(len(fourth), dtype=int)
        self._warn_of_light_tails(white.weight)
        self.stability_ = None if self.stability_ is None else self.stability_[order]
        self.gradient_norm_ = result.gradient_norm / white.weight
        self.certificate_ = None if result.certificate is None else result.certificate.gain / white.weight
        if self.whiten == "arbitrary-variance":
            # As in FastICA, the whitening is not multiplied by the root of the number of samples.
            root = self.components_.dtype.type(np.sqrt(separated.samples))
            self.components_ /= root
            self.whitening_ /= root
            self.mixing_ *= root
