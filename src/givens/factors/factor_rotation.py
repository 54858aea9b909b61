"""Factor rotation with scikit-learn's contract: of a matrix of loadings, or of those of a fitted decomposition.

A loading is the covariance of a variable with a factor of unit variance. A PCA has orthonormal components and scores of variance
λ; its loadings are the components times √λ, and its scores divided by √λ are the factors. A FactorAnalysis has loadings as its
components, and scores that are factors already. The criteria of simple structure are those of the orthomax family,

    F(L) = Σ_j [ Σ_i l_ij⁴ − (κ/p)(Σ_i l_ij²)² ]        for p variables (rows) and m factors (columns), maximised

| method | κ | with it the rotation prefers |
|---|---|---|
| quartimax | 0 | variables with few large loadings |
| biquartimax | 1/2 | a compromise between quartimax and varimax |
| varimax | 1 | factors with few large loadings |
| equamax | m/2 | factors of equal size, more so than varimax |
| parsimax | p(m−1)/(p+m−2) | few large loadings in variables and factors alike |
| factor parsimony | p | factors with few large loadings, whatever the variables look like |

Crawford and Ferguson (1970) have the same family by another name: their κ is ours divided by p.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from givens.factors import target_rotation
from givens.factors.explore import explore
from givens.numerics import parallel
from givens.numerics.scaling import power, power_of_two, unit_rows
from givens.objectives import Columns, Orthomax
from givens.result import Result
from givens.solve.minimize import minimize
from givens.support.arguments import Samples, generator, tolerance, warn_caller, whole
from givens.support.fitting import Transformer, atomic_fit, check_array, validate_data
from givens.support.imports import require
from givens.support.progress import bar

if TYPE_CHECKING:
    import pandas

KAPPAS: dict[str, Callable[[int, int], float]] = {
    "quartimax": lambda p, m: 0.0,
    "biquartimax": lambda p, m: 0.5,
    "varimax": lambda p, m: 1.0,
    "equamax": lambda p, m: m / 2,
    "parsimax": lambda p, m: p * (m - 1) / (p + m - 2) if p + m > 2 else 1.0,
    "parsimony": lambda p, m: float(p),
}
"""κ of each method, as a function of the numbers of variables and factors."""


@dataclass(frozen=True)
class Extraction:
    """What is rotated.

    Attributes
    ----------
    loadings : array of float64, shape (variables, factors)
    scale : array, shape (factors,)
        What the decomposition's scores are divided by to have unit variance; infinite for scores without variance.
    total : float or None
        The variance of all variables together, where it is known.
    variables : list of str or None
        Names.
    """

    loadings: np.ndarray
    scale: np.ndarray
    total: float | None
    variables: list[str] | None


class FactorRotation(Transformer):
    """Rotate factors to simple structure: varimax, quartimax, equamax and the other criteria of the orthomax family.

    Parameters
    ----------
    method : str or float, default="varimax"
        "varimax", "quartimax", "biquartimax", "equamax", "parsimax", "parsimony" (factor parsimony), or the number κ of the
        orthomax criterion Σ_j [Σ_i l_ij⁴ − (κ/p)(Σ_i l_ij²)²]. With "target", the loadings are rotated as near to `target`
        as they get.
    normalize : bool, default=True
        Kaiser's normalisation: give every variable loadings of length 1 while rotating. R's `varimax`, SPSS and factor_analyzer's
        varimax do so by default; GPArotation and statsmodels do not. "target" does not normalise.
    target : array, shape (variables, factors), optional
        For method="target".
    decomposition : estimator, optional
        Where this is a step of a pipeline: the PCA, FactorAnalysis or TruncatedSVD of the step before, the same object, whose
        scores arrive here. Loadings come from it.
    n_starts : int, default=1
        How often to search. One search makes a few sweeps of exact rotations of pairs from up to 16 starts, and follows the best
        of them; where the first two converge at once and to the same value it tries no others, and where a run is expensive it
        starts from the loadings as they are. More searches find better maxima where the loadings have little structure and there
        are many factors.
    tol : float, default=1e-6
        Converged when an iteration gains at most tol² times Σ l⁴: tol is about the error that is left in the loadings.
    max_iter : int, default=500
        Maximum number of iterations: sweeps over all pairs of factors, or steps of all factors at once.
    threads : int, optional
        By default one per core, at most 8. The number changes the time, never the result.
    random_state : int, Generator, RandomState or None, default=0
        For the starts after the first. The default gives the same rotation every time.

    Attributes
    ----------
    loadings_ : array, shape (variables, factors)
        Rotated, the factor that explains most first, the largest loading of each factor positive.
    components_ : array, shape (factors, variables)
        The transpose of `loadings_`, a row for each factor, as in FactorAnalysis.
    n_components_ : int
        Number of factors.
    rotation_ : array, shape (factors, factors)
        Orthogonal: `loadings_` are `unrotated_loadings_` times this.
    explained_variance_ : array, shape (factors,)
        Sums of squared loadings.
    explained_variance_ratio_ : array, shape (factors,), or None
        Their share of the variance of all variables, where a decomposition tells what that is.
    unrotated_loadings_ : array, shape (variables, factors)
        The loadings before the rotation.
    scale_ : array, shape (factors,)
        `transform` divides scores by this before it rotates them: the standard deviations of a PCA's scores, infinite
        for those without variance; 1 for factors.
    kappa_ : float or None
        κ of the method; None for "target".
    criterion_ : float
        The orthomax criterion that was reached, of the normalised loadings if they were normalised. For "target", the sum of
        squared differences from the target. Infinite where a fourth power of the loadings is.
    certificate_ : float
        No rotation of two factors, by any angle, would raise the criterion by more than this. For "target", whose solution
        is exact, 0; infinite where the run did not converge.
    variable_names_in_ : array of str
        Names of the variables, where the loadings or the decomposition had any.
    result_ : Result or None
        The run: value, trace, and why it stopped. None for "target", whose solution needs no run.
    n_iter_ : int
        Number of iterations, which `max_iter` limits; at least 1.
    converged_ : bool
        Whether the run met `tol`. If not, `fit` warns.

    See Also
    --------
    RotatedPCA : PCA and rotation in one estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from givens import FactorRotation
    >>> loadings = np.array([[0.83, -0.40], [0.82, -0.47], [0.79, 0.50], [0.67, 0.46]])
    >>> rotation = FactorRotation("varimax").fit(loadings)
    >>> rotation.loadings_.round(2)
    array([[0.88, 0.26],
           [0.92, 0.2 ],
           [0.25, 0.9 ],
           [0.19, 0.79]])

    From a fitted decomposition, whose scores `transform` then rotates:

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.decomposition import PCA
    >>> X = load_iris().data
    >>> pca = PCA(2).fit(X)
    >>> scores = FactorRotation().fit(pca).transform(pca.transform(X))
    >>> np.cov(scores.T).round(6) + 0.0
    array([[1., 0.],
           [0., 1.]])
    """

    def __init__(
        self,
        method: str | float = "varimax",
        *,
        normalize: bool = True,
        target: Any = None,
        decomposition: Any = None,
        n_starts: int = 1,
        tol: float = 1e-6,
        max_iter: int = 500,
        threads: int | None = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = 0,
    ) -> None:
        self.method = method
        self.normalize = normalize
        self.target = target
        self.decomposition = decomposition
        self.n_starts = n_starts
        self.tol = tol
        self.max_iter = max_iter
        self.threads = threads
        self.random_state = random_state

    _may_be_infinite = ("scale_", "criterion_", "certificate_")
    _row_names = "variable_names_in_"
    kappa_: float | None
    scale_: Any  # in `RotatedPCA` None without `scale`
    result_: Result | None

    @atomic_fit
    def fit(self, X: Samples, y: None = None) -> Self:
        """Find the rotation.

        Parameters
        ----------
        X : array or data frame, shape (variables, factors), or estimator
            Loadings, one row for each variable; or a fitted PCA, FactorAnalysis or TruncatedSVD, whose loadings are taken.
            Where `decomposition` is given, the scores that it made, samples x factors.
        y : ignored, optional

        Returns
        -------
        self
        """
        extraction = self._extraction(X)
        self._rotate(extraction)
        self.scale_ = extraction.scale
        # scikit-learn's checks of what `transform` gets: the names and the number of factors.
        scores = np.empty((1, len(self.rotation_))) if is_decomposition(X) else X
        validate_data(self, scores, skip_check_array=True)
        return self

    def _rotate(self, extraction: Extraction) -> None:
        """Find the rotation, and assign the fitted attributes."""
        p, m = extraction.loadings.shape
        if m > p:
            raise ValueError(
                f"{m} factors of {p} variables are no loadings, which have a row for each variable; pass the transpose "
                "(scikit-learn's components_ have a row for each factor)"
            )
        if m == 1:
            warn_caller(
                "one factor has nothing to rotate with: the loadings stay as they are, but for the sign",
                UserWarning,
            )
        # In the pool, since idle threads of a BLAS would spin and take time from ours.
        with parallel.pool(self.threads):
            if self.method == "target":
                R = self._to_target(extraction.loadings)
            else:
                R = self._to_structure(extraction)
            self._describe(extraction, R)
        if not self.converged_:
            warn_caller(
                f"{type(self).__name__} did not converge in {self.n_iter_} iterations; raise max_iter or tol",
                ConvergenceWarning,
            )

    def _extraction(self, X: Samples) -> Extraction:
        """What to rotate, from any of the three ways to give it; nothing of the model is changed."""
        if is_decomposition(X):
            return of_decomposition(X)
        values = check_array(X, dtype=np.float64, ensure_min_samples=2, estimator=self, input_name="X")
        if self.decomposition is not None:
            return self._of_the_step_before(values.shape[1])
        _warn_of_scores(values)
        labels = list(X.index) if hasattr(X, "iloc") else []
        named = bool(labels) and all(isinstance(label, str) for label in labels)
        return Extraction(values, np.ones(values.shape[1]), None, labels if named else None)

    def _of_the_step_before(self, factors: int) -> Extraction:
        """The loadings of `decomposition`, which has made scores of so many factors."""
        try:
            extraction = of_decomposition(self.decomposition)
        except NotFittedError:
            raise NotFittedError(
                f"decomposition, a {type(self.decomposition).__name__}, is not fitted; it must be the very object that is "
                "the step before in the pipeline (a cloned pipeline no longer shares it: use RotatedPCA there)"
            ) from None
        if factors != extraction.loadings.shape[1]:
            raise ValueError(
                f"X has {factors} columns, but decomposition has {extraction.loadings.shape[1]} components: X must be "
                "the scores that it made"
            )
        return extraction

    def _to_structure(self, extraction: Extraction) -> np.ndarray:
        """Rotate to the largest value of the criterion."""
        rng = generator(self.random_state)
        n_starts = whole(self.n_starts, "n_starts", least=1)
        tol = tolerance(self.tol, "tol")
        max_iter = whole(self.max_iter, "max_iter", least=0)
        variables, factors = extraction.loadings.shape
        kappa = kappa_of(self.method, variables, factors, others=("target",))
        # Its fourth powers are in range.
        A, unit = self._normalized(extraction)
        start = explore(A, kappa, n_starts, tol**2, rng)
        method = None
        if start is not None:
            # A sweep confirms a start that has converged.
            method = ("sweeps",) if start.converged else ("descent", "newton", "sweeps")
        with bar() as shown:
            result = minimize(
                Columns(A, Orthomax(kappa)),
                None if start is None else start.rotation,
                method=method,
                certify=True,
                tol=tol,
                max_iter=max_iter,
                threads=self.threads,
                random_state=rng,
                callback=shown.callback,
            )
        gain = np.inf if result.certificate is None else result.certificate.gain
        # A value of 0 stays 0 where the unit's power is infinite.
        fourth = power(unit, 4)
        self.criterion_, self.certificate_ = (
            value * fourth if value else 0.0 for value in (result.value, gain)
        )
        self.kappa_, self.result_ = kappa, result
        return result.U

    def _to_target(self, loadings: np.ndarray) -> np.ndarray:
        if self.target is None:
            raise ValueError('method="target" needs a target: a matrix of the shape of the loadings')
        R = target_rotation(loadings, self.target)
        difference = loadings @ R - np.asarray(self.target, dtype=np.float64)
        self.criterion_, self.certificate_ = float(np.sum(difference**2)), 0.0
        self.kappa_, self.result_ = None, None
        return R

    def _normalized(self, extraction: Extraction) -> tuple[np.ndarray, float]:
        """The loadings as the criterion sees them, of moderate size, and the power of two they were divided by."""
        loadings, names = extraction.loadings, extraction.variables
        if not self.normalize:
            unit = power_of_two(loadings)
            return loadings / unit, unit
        A = unit_rows(loadings)
        zero = np.flatnonzero(~A.any(axis=1))
        if len(zero):
            name = f" ({names[zero[0]]!r})" if names is not None else ""
            warn_caller(
                f"all loadings of variable {zero[0]}{name} are zero, so Kaiser's normalisation cannot give them length 1 and "
                "they stay zero; leave out such variables, or use normalize=False",
                UserWarning,
            )
        return A, 1.0

    def _describe(self, extraction: Extraction, R: np.ndarray) -> None:
        """Order and sign the factors, and assign the fitted attributes."""
        loadings, names = extraction.loadings, extraction.variables
        unit = power_of_two(loadings)
        rotated = loadings @ R
        variance = np.sum((rotated / unit) ** 2, axis=0)
        if self.method != "target":
            order = np.argsort(-variance, kind="stable")
            peaks = rotated[np.abs(rotated).argmax(axis=0), np.arange(len(R))]
            signs = np.where(peaks < 0, -1.0, 1.0)
            R, rotated, variance = (R * signs)[:, order], (rotated * signs)[:, order], variance[order]
        with np.errstate(over="ignore", under="ignore"):
            variance = variance * unit * unit
        self.loadings_, self.components_ = rotated, rotated.T
        self.n_components_ = len(R)
        self.rotation_ = R
        self.unrotated_loadings_ = loadings
        self.explained_variance_ = variance
        self.explained_variance_ratio_ = None if extraction.total is None else variance / extraction.total
        self.n_iter_ = 1 if self.result_ is None else max(self.result_.steps, 1)
        self.converged_ = self.result_ is None or self.result_.converged
        if names is not None:
            self.variable_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "variable_names_in_"):
            del self.variable_names_in_

    def transform(self, X: Samples) -> np.ndarray:
        """Rotate scores (samples x factors) or loadings.

        Parameters
        ----------
        X : array or data frame, shape (samples, factors)
            Scores of the decomposition that was fitted, which are first given unit variance (by `scale_`): then the rotated
            scores are uncorrelated and of unit variance, too. After `fit` with a loading matrix, factor scores or loadings.

        Returns
        -------
        array, shape (samples, factors)
        """
        X = self._scores(X)
        return (X / self.scale_.astype(X.dtype)) @ self.rotation_.astype(X.dtype)

    def inverse_transform(self, X: Samples) -> np.ndarray:
        """The scores before the rotation, from rotated ones."""
        X = self._scores(X)
        scale = np.where(np.isinf(self.scale_), 0.0, self.scale_)
        return (X @ self.rotation_.T.astype(X.dtype)) * scale.astype(X.dtype)

    def _scores(self, X: Samples) -> np.ndarray:
        check_is_fitted(self)
        if not hasattr(self, "feature_names_in_"):
            # Loadings without names say nothing of the names that scores have.
            X = check_array(X, dtype=[np.float64, np.float32], estimator=self, input_name="X")
        return validate_data(self, X, reset=False, dtype=[np.float64, np.float32])

    def to_pandas(self) -> pandas.DataFrame:
        """The rotated loadings as a pandas frame: a row for each variable, a column for each factor.

        Examples
        --------
        >>> import numpy as np
        >>> from givens import FactorRotation
        >>> FactorRotation().fit(np.eye(2)).to_pandas()
            factorrotation0  factorrotation1
        x0              1.0              0.0
        x1              0.0              1.0
        """
        check_is_fitted(self)
        rows = getattr(self, self._row_names, [f"x{k}" for k in range(len(self.loadings_))])
        frame = require("pandas", extra="pandas").DataFrame
        return frame(self.loadings_, index=list(rows), columns=self.get_feature_names_out())


def kappa_of(method: str | float, variables: int, factors: int, others: tuple[str, ...] = ()) -> float:
    """κ of a method for so many variables and factors; an error lists `others`, methods without κ that the caller takes too.

    Examples
    --------
    >>> from givens.factors.factor_rotation import kappa_of
    >>> [kappa_of(method, 10, 3) for method in ("quartimax", "varimax", "equamax", 0.25)]
    [0.0, 1.0, 1.5, 0.25]
    """
    if isinstance(method, str) and method in KAPPAS:
        return KAPPAS[method](variables, factors)
    if isinstance(method, Real) and not isinstance(method, bool) and np.isfinite(float(method)):
        return float(method)
    names = ", ".join(map(repr, (*KAPPAS, *others)))
    raise ValueError(f"method must be one of {names}, or a finite number (κ of orthomax), got {method!r}")


def _centred(column: np.ndarray, unit: float) -> bool:
    scaled = column / unit
    size = np.sqrt(np.mean(scaled**2))
    return bool(size > 0 and abs(scaled.mean()) <= 1e-9 * size)


def _warn_of_scores(values: np.ndarray) -> None:
    """Tell loadings from a PCA's scores, which a pipeline would pass: those have mean zero, and loadings hardly ever."""
    unit = power_of_two(values)
    if all(_centred(column, unit) for column in values.T):
        warn_caller(
            "every column of X has mean zero, as scores have and loadings hardly ever; behind a PCA in a pipeline, pass that PCA "
            "as decomposition, or use RotatedPCA",
            UserWarning,
        )


def is_decomposition(X: Samples) -> bool:
    """Whether this is an estimator and no matrix."""
    return hasattr(X, "fit") and not hasattr(X, "__array__")


def of_decomposition(model: Any) -> Extraction:
    """Loadings of a fitted PCA, TruncatedSVD, FactorAnalysis or whatever has the same attributes."""
    check_is_fitted(model)
    name = type(model).__name__
    components = getattr(model, "components_", None)
    variances = getattr(model, "explained_variance_", None)
    noise = getattr(model, "noise_variance_", None)
    if components is None or (variances is None and noise is None):
        raise TypeError(
            f"{name} has no loadings to rotate: they come from a fitted PCA, TruncatedSVD or FactorAnalysis, "
            "or are given as a matrix, variables x factors"
        )
    components = np.asarray(components, dtype=np.float64)
    if len(components) == 0:
        raise ValueError(f"{name} has no components to rotate: ask for at least one")
    names = getattr(model, "feature_names_in_", None)
    variables = None if names is None else [str(name) for name in names]
    if variances is None:
        loadings = np.ascontiguousarray(components.T)
        total = float(np.sum(loadings**2) + np.sum(np.asarray(noise)))
        return Extraction(loadings, np.ones(len(components)), total, variables)
    if np.abs(components @ components.T - np.eye(len(components))).max() > 1e-4:
        raise TypeError(f"the components of {name} are not orthonormal, so they are no loadings to rotate")
    variances = np.asarray(variances, dtype=np.float64)
    loadings = np.ascontiguousarray(components.T * np.sqrt(np.maximum(variances, 0.0)))
    explained = float(np.sum(getattr(model, "explained_variance_ratio_", 0.0)))
    scale = score_scale(variances)
    if getattr(model, "whiten", False):
        scale = np.where(np.isinf(scale), np.inf, 1.0)
    return Extraction(
        loadings, scale, float(variances.sum()) / explained if explained > 0 else None, variables
    )


def score_scale(variances: np.ndarray) -> np.ndarray:
    """Standard deviations of scores; infinite for scores without variance, which are rounding and so divided to zero."""
    deviation = np.sqrt(np.maximum(variances, 0.0))
    return np.where(deviation > 1e-7 * deviation.max(initial=0.0), deviation, np.inf)
