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
from scipy.optimize import linear_sum_assignment

from givens.data.moments import Moments, moments_of
from givens.data.rows import Rows
from givens.ica.adaptive import NonGaussianity, tail_moments, tail_signs
from givens.ica.separation import Separated, SourceSeparation, counted_samples
from givens.ica.whitening import WhiteSpace, from_moments, white_space
from givens.numerics import parallel
from givens.numerics.polar import polar
from givens.numerics.scaling import check_data, unit_of
from givens.objectives.columns import Columns
from givens.objectives.contrasts import Contrast, LogCosh
from givens.objectives.passed_rows import PassedRows
from givens.objectives.turned_rows import HeldRows, TurnedRows
from givens.result import Result
from givens.rotations import random_orthogonal
from givens.solve.race import lowest_run
from givens.solve.state import RunOptions
from givens.support.arguments import (
    generator,
    tolerance,
    warn_caller,
    whole,
)
from givens.support.fitting import atomic_fit

CONTRAST_NAMES = ("adaptive", "logcosh", "exp", "kurtosis")
ROUGH = 1e-3  # gradient norm at which signs are chosen; tolerance of the fits for `stability_`
LIGHT_TAIL_ERRORS = (
    5.0  # a negative kurtosis counts from so many standard errors of Gaussian samples, √(24/samples)
)
NOT_WHITE = 0.05  # with whiten=False, a warning is given if second moments differ from I by more than this


class ICA(SourceSeparation):
    """Independent components: sources of which the samples are linear mixtures.

    It has the attributes and methods of scikit-learn's `FastICA`; docs/ica.md compares the parameters. All sources are found
    together, by quasi-Newton steps on the orthogonal matrices, until the norm of the gradient is at most `tol`. The start is
    deterministic, so `random_state` has no effect unless `n_starts` or `stability` ask for random starts. Sources are ordered by
    the variance they explain, and the largest weight of each in `mixing_` is positive.

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
        Converged when the norm of the gradient, per sample, is at most this.
    max_iter : int, default=1000
        Maximum number of steps of a descent.
    w_init : array, shape (n_components, n_components), optional
        The start, in white coordinates; its polar factor is used. By default the principal axes.
    n_starts : int, default=1
        Number of starts. The first is that of `w_init`, further ones are random. They race (see `minimize`): only the one with
        the best contrast is run to the end. `result_.starts` has the values; with
        "adaptive" those of the measure with which a run begins, Σ (E[log cosh y] − E[log cosh ν])² with ν Gaussian.
    stability : int, default=0
        How many times the samples are divided into two random halves, each of which is separated from a random start.
        `stability_` reports how well each source is found again in the worst case. 0: not computed.
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
    explained_variance_ : array, shape (n_components,)
        Variance that each source explains, summed over the features.
    whitening_ : array, shape (n_components, n_features)
    mean_ : array, shape (n_features,)
    rank_ : int
        Of the centred data.
    signs_ : array of int, shape (n_components,)
        The factor of each source's contrast: 1 for heavy tails, −1 for light ones.
    kurtosis_ : array, shape (n_components,)
        Excess kurtosis: 0 for Gaussian sources, which no method can tell apart.
    stability_ : array, shape (n_components,), or None
        The smallest |correlation| between each source and its match in any of the halves, each of which is separated once, from a
        random start. A source near 1 may still be lost by other starts. None unless `stability`.
    gradient_norm_ : float
        Norm of the gradient per sample, at the end.
    certificate_ : float or None
        The largest gain, per sample, of a rotation of two sources by any angle. None unless `certify`.
    result_ : Result
        The descent: value, trace, method, and why it stopped.
    n_iter_ : int
        Number of steps of the last descent.

    Examples
    --------
    >>> import numpy as np
    >>> from givens import ICA
    >>> from givens.ica import amari_error
    >>> rng = np.random.default_rng(0)
    >>> S = rng.laplace(size=(5000, 3))
    >>> A = rng.standard_normal((3, 3))
    >>> model = ICA().fit(S @ A.T)
    >>> bool(amari_error(model.components_, A) < 0.03), model.gradient_norm_ <= 1e-7
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
        stability: int = 0,
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
    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
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
        self._fit(X, sample_weight)
        return self

    def _refuse(self) -> None:
        """Refuse bad options."""
        if not isinstance(self.contrast, Contrast) and self.contrast not in CONTRAST_NAMES:
            names = ", ".join(repr(name) for name in CONTRAST_NAMES)
            raise ValueError(
                f"there is no contrast {self.contrast!r}; it is one of {names}, or a Contrast object"
            )
        if self.whiten not in ("unit-variance", "arbitrary-variance", False):
            raise ValueError(
                f"whiten must be 'unit-variance', 'arbitrary-variance' or False, got {self.whiten!r}"
            )
        tolerance(self.tol, "tol")
        whole(self.max_iter, "max_iter", 1)
        whole(self.n_starts, "n_starts", 1)
        whole(self.stability, "stability", 0)

    def _separate(self, rows: Rows, sample_weight: Any) -> Separated:
        self._refuse()
        for_all = {
            "sample_weight": sample_weight is not None,
            "stability": self.stability,
            "certify": self.certify,
        }
        names = [name for name, asked in for_all.items() if asked]
        if rows.table is None and not names:
            space, white = self._passed(rows)
            return Separated(space, self._rotate(white), white, white.weight)
        X, weights, samples = counted_samples(rows.matrix(" and ".join(names)), sample_weight)
        space, held = self._held(X, weights)
        return Separated(space, self._rotate(held), held, samples)

    def _held(self, X: np.ndarray, weights: np.ndarray | None) -> tuple[WhiteSpace, HeldRows]:
        """White samples in memory."""
        if self.whiten is False:
            X = np.ascontiguousarray(X, dtype=np.float64)
            return self._as_white(moments_of(X, unit_of(X), weights)), HeldRows(X, weights=weights)
        space = self._space(X, weights)
        return space, HeldRows(X, space, weights)

    def _passed(self, rows: Rows) -> tuple[WhiteSpace, PassedRows]:
        """White samples that are made of the rows in every pass."""
        found = rows.total(Moments(rows.n_features, rows.unit()), "ica-covariance")
        if self.whiten is False:
            space = self._as_white(found)
        else:
            space = from_moments(found, *self._number(min(found.count, rows.n_features)))
        return space, PassedRows(rows, found.count, space, "ica")

    def _as_white(self, found: Moments) -> WhiteSpace:
        """The white space of samples that are white already; warns if their second moments are not the identity."""
        mean, samples, features = found.mean, found.count, len(found.mean)
        if self.n_components not in (None, features):
            raise ValueError(
                f"n_components = {self.n_components}, but whiten=False keeps all {features} columns of X: leave out one of them"
            )
        if samples < features:
            raise ValueError(
                f"whiten=False needs at least as many samples as features, got {samples} and {features}"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            second = (found.covariance() + np.outer(mean, mean)) / found.unit / found.unit
            worst = float(np.abs(second - np.eye(features)).max())
        if not worst <= NOT_WHITE:
            warn_caller(
                f"whiten=False, but X is not white: its second moments differ from the identity by up to {worst:.2g}; "
                "the components are then rotations of X, not independent sources",
                UserWarning,
            )
        return WhiteSpace(np.eye(features), np.eye(features), np.zeros(features), features)

    def _rotate(self, white: TurnedRows) -> Result:
        rng = generator(self.random_state)
        n = white.n
        result = self._separated(white, self._start(n), float(self.tol), int(self.n_starts), rng)
        self.stability_ = None
        if self.stability and isinstance(white, HeldRows):
            self.stability_ = self._found_again(white, result.U, rng)
        return result

    def _start(self, n: int) -> np.ndarray | None:
        """The start in white coordinates that `w_init` gives; None for the default."""
        if self.w_init is None:
            return None
        W = check_data(self.w_init, "w_init").astype(np.float64)
        if W.shape != (n, n) or np.linalg.matrix_rank(W) < n:
            raise ValueError(
                f"w_init must be a regular matrix of shape {(n, n)}, one row per component, got shape {W.shape}"
            )
        return np.ascontiguousarray(polar(W).T)

    def _separated(
        self,
        white: TurnedRows,
        start: np.ndarray | None,
        tol: float,
        n_starts: int = 1,
        rng: np.random.Generator | None = None,
    ) -> Result:
        """Descend from one start or several; with adaptive signs, to where they can be told first."""
        start = np.eye(white.n) if start is None else start
        several: dict[str, Any] = {"n_starts": n_starts, "random_state": rng}
        certify = bool(self.certify) and tol <= self.tol
        if self.contrast != "adaptive":
            return self._descended(white, self.contrast, start, tol, coarse=True, certify=certify, **several)
        # If there are so many rows that a sample of them can be drawn, the run begins on it, and does not go on to all.
        begin = NonGaussianity(squared=True)
        rough = self._descended(white, begin, start, max(tol, ROUGH), sampled=True, **several)
        result = self._descended(white, NonGaussianity(squared=False), rough.U, tol)
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
        result.starts = rough.starts
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
        """Descend to gradients per sample of at most `tol`; with `coarse` or `sampled` first, or only, on a sample."""
        objective = Columns(white, contrast)
        # The scale is 0 if the data are so small that their powers underflow; then any gradient is small enough.
        near = tol * white.weight / (objective.scale * abs(objective.factor) or 1.0)
        options = RunOptions(
            ("descent",), tol=0.0, gradient_tol=near, max_iter=int(self.max_iter), certify=float(certify)
        )
        if sampled:
            objective = objective.coarse() or objective
        with parallel.pool(self.threads):
            return lowest_run(objective, start, options, coarse=coarse, **several)

    def _found_again(self, white: HeldRows, U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The smallest |correlation| of each source with its match in any half of the samples, separated from random starts."""
        least = np.ones(U.shape[1])
        for _ in range(int(self.stability)):
            order = rng.permutation(white.count)
            for part in (0, 1):
                directions = self._of_half(white, np.sort(order[part::2]), rng)
                cosines = np.abs(U.T @ directions)
                least = np.minimum(least, cosines[linear_sum_assignment(-cosines)])
        return least

    def _of_half(self, white: HeldRows, half: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The directions of the sources that half of the samples give, of unit length."""
        Z, weights = white.at(half), None if white.weights is None else white.weights[half]
        space = white_space(Z, weights=weights)
        if len(space.W) < Z.shape[1]:
            raise ValueError(
                "half of the samples have a lower rank than all of them; stability needs more samples"
            )
        start = random_orthogonal(Z.shape[1], rng)
        found = self._separated(HeldRows(Z, space, weights), start, max(ROUGH, float(self.tol)))
        directions = space.whitening.T @ found.U
        return directions / np.linalg.norm(directions, axis=0)

    def _warn_of_light_tails(self, samples: float) -> None:
        """Warn if some sources have light tails, and the contrast is for heavy ones."""
        errors = self.kurtosis_ / np.sqrt(24.0 / samples)
        if (
            self.contrast in CONTRAST_NAMES[1:]
            and min(errors.min(), errors.sum() / np.sqrt(len(errors))) < -LIGHT_TAIL_ERRORS
        ):
            warn_caller(
                f"some sources have light tails (kurtosis {self.kurtosis_.min():.2f}), and contrast={self.contrast!r} cannot "
                "tell two of these apart: fit with contrast='adaptive'",
                UserWarning,
            )

    def _settle(self, found: Separated, order: np.ndarray) -> None:
        result, white = found.result, found.white
        self.rank_ = found.space.rank
        with parallel.pool(self.threads):
            fourth, log_cosh = tail_moments(white, result.U[:, order])
        self.kurtosis_ = fourth - 3.0
        self.signs_ = tail_signs(log_cosh) if self.contrast == "adaptive" else np.ones(len(fourth), dtype=int)
        self._warn_of_light_tails(white.weight)
        self.stability_ = None if self.stability_ is None else self.stability_[order]
        self.gradient_norm_ = result.gradient_norm / white.weight
        self.certificate_ = None if result.certificate is None else result.certificate.gain / white.weight
        if self.whiten == "arbitrary-variance":
            # As in FastICA, the whitening is not multiplied by the root of the number of samples.
            root = self.components_.dtype.type(np.sqrt(found.samples))
            self.components_ /= root
            self.whitening_ /= root
            self.mixing_ *= root
