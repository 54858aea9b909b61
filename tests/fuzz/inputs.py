"""Attack every estimator and every public function with random data and parameters."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

import givens
from givens import datasets, factors, metrics, objectives, rotations
from tests.fuzz.data import data, good, is_finite, say, values
from tests.fuzz.judge import Finding, finite, judge

ODD: list[Any] = [
    None,
    -1,
    0,
    1,
    2,
    3.7,
    "x",
    np.nan,
    np.inf,
    1e300,
    1e-300,
    True,
    [1, 2],
    np.int64(2),
    np.float32(0.3),
    (),
]
SMALL = [1, 2, 3, 5]
COMMON = {
    "n_components": [1, 2, 3, None, 5, 40, 0.9],
    "n_starts": [1, 1, 2],
    "threads": [1, 1, 2, None, 7],
    "random_state": [0, 1, None, np.random.RandomState(3)],
    "tol": [1e-6, 0.0, 1e-2, 1e-12],
    "max_iter": [0, 1, 5, 50],
    "scale": [False, True],
    "refit": [False, True],
    "warm_start": [False, True],
    "normalize": [False, True],
    "gamma": [None, 0.0, 0.1, 1.0, 1e10, 1e-200, 1e300],
    "threshold": [None, 0.0, 0.1, 0.5, 0.99, 1.0, ("l0", 0.1)],
    "n_nonzero": [None, 1, 2, 4, [2, 1], [1, 2, 3]],
    "schedule": [None, "random", "cyclic", "tournament", "gradient", "shuffled", "without-replacement"],
    "gamma_grows": [False, True],
    "drop": ["frequent", "weakest"],
    "oversample": [None, 0, 3, 10],
    "inner_rotations": [None, 1, 5],
    "forgetting": [1.0, 0.9, 0.5],
    "stop_after": [None, 5, 0.5],
    "variance": ["common", "distinct"],
    "basis_rank": [None, 2, 5],
    "basis_samples": [10, 2000],
    "basis_documents": [10, 5000],
    "alpha0": [None, 0.0, 1.0, 50.0],
    "topic_word_prior": [0.05, 0.0, 1.0],
    "counts": ["whole", "weights"],
    "vocabulary": [None],
    "contrast": ["logcosh", "exp", "kurtosis", objectives.LogCosh(), objectives.Kurtosis(-1)],
    "whiten": ["unit-variance", "arbitrary-variance", True, False],
    "w_init": [None, None, np.eye(2), np.eye(3)],
    "stability": [0, 0, 2],
    "certify": [False, True],
    "lags": [None, 1, 3, [1, 2], [5, 100]],
    "method": ["varimax", "quartimax", "equamax", "parsimax", "biquartimax", "parsimony", 0.5, "target"],
    "target": [None],
    "decomposition": [None],
    "svd_solver": ["auto", "full", "randomized", "arpack"],
}  # fmt: skip


def estimators() -> list[type]:
    found = [getattr(givens, name) for name in givens.__all__]
    return [cls for cls in found if isinstance(cls, type) and issubclass(cls, BaseEstimator)]


def parameters(rng: np.random.Generator, cls: type) -> dict[str, Any]:
    chosen = {}
    for name in cls().get_params():
        if rng.random() < 0.4 or name == "n_components":
            options = COMMON.get(name, ODD)
            if rng.random() < 0.04 and name not in ("n_starts", "progress"):
                options = ODD
            chosen[name] = copy.deepcopy(options[rng.integers(len(options))])
    thresholds = [name for name in ("gamma", "threshold", "n_nonzero") if chosen.get(name) is not None]
    for name in thresholds[1:]:
        if rng.random() < 0.9:
            chosen.pop(name)
    return chosen


def attempt(
    call: Callable[[], Any], checked: bool = False, what: str = "the outcome", overflow: bool = False
) -> Any:
    """Call it; judge what it raises, or what it returns. None where it was refused."""
    try:
        outcome = call()
    except Exception as error:
        judge(error)
        return None
    if checked:
        finite(outcome, what, overflow)
    return outcome


def check_model(model: BaseEstimator) -> None:
    for name, value in vars(model).items():
        if name.endswith("_") and not name.startswith("_"):
            finite(value, f"{type(model).__name__}.{name}", name in getattr(model, "_may_be_infinite", ()))


def fit(rng: np.random.Generator, note: Callable[[str], None]) -> None:
    """One estimator: fit, predict, fit again, copy."""
    classes = estimators()
    cls = classes[rng.integers(len(classes))]
    chosen, X = parameters(rng, cls), data(rng)
    if rng.random() < 0.3:
        X = np.abs(np.round(good(rng)))
    elif rng.random() < 0.1:
        X = good(rng)
    note(f"{cls.__name__}({', '.join(f'{k}={v!r}' for k, v in chosen.items())}) on {say(X)}")
    model = attempt(lambda: cls(**chosen))
    fits = [name for name in ("fit", "fit", "partial_fit", "fit_covariance") if hasattr(model, name)]
    method = str(rng.choice(fits))
    note(f".{method}")

    def first() -> BaseEstimator:
        if method == "fit_covariance":
            square = rng.random() < 0.7 and isinstance(X, np.ndarray) and is_finite(X) and X.ndim == 2
            matrix = np.cov(X.astype(float).T) if square else X
            return model.fit_covariance(matrix, int(rng.integers(0, 50)))
        return getattr(model, method)(X)

    with np.errstate(all="ignore"):
        cov_problem = method == "fit_covariance" and is_finite(X)
    if attempt(lambda: quiet(first) if cov_problem else first()) is None:
        return
    ordinary = is_finite(X)
    if ordinary:
        check_model(model)
    use(rng, model, X, ordinary, note)


def quiet(call: Callable[[], Any]) -> Any:
    import warnings

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return call()


def use(
    rng: np.random.Generator, model: BaseEstimator, X: Any, ordinary: bool, note: Callable[[str], None]
) -> None:
    """Every method of a fitted model, on its own data and on others."""
    for name in (
        "transform",
        "predict",
        "predict_proba",
        "score_samples",
        "score",
        "bic",
        "aic",
        "perplexity",
    ):
        if hasattr(model, name) and rng.random() < 0.7:
            note(f".{name}")
            checked = ordinary and name in ("transform", "predict_proba")
            attempt(partial(getattr(model, name), X), checked, f"{type(model).__name__}.{name}")
            if rng.random() < 0.5:
                other = data(rng)
                note(f" of {say(other)}")
                attempt(partial(getattr(model, name), other))
    for name in ("get_feature_names_out", "top_words", "to_pandas", "to_sklearn", "sample"):
        if hasattr(type(model), name) and rng.random() < 0.5:
            note(f".{name}")
            attempt(getattr(model, name))
    if hasattr(model, "inverse_transform"):
        scores = attempt(lambda: model.transform(X))
        if scores is not None:
            note(".inverse_transform")
            attempt(lambda: model.inverse_transform(scores))
        attempt(lambda: model.inverse_transform(data(rng)))
    if hasattr(model, "partial_fit") and rng.random() < 0.6:
        other = data(rng)
        note(f".partial_fit of {say(other)}")
        if attempt(lambda: model.partial_fit(other)) is not None and ordinary and is_finite(other):
            check_model(model)
    note(".pickle and clone")
    attempt(lambda: pickle.loads(pickle.dumps(model)).get_params())
    attempt(lambda: clone(model).get_params())


def objective(rng: np.random.Generator) -> Any:
    """An objective of random data, as a user makes it."""
    A = data(rng) if rng.random() < 0.6 else good(rng)
    contrast = [
        "varimax",
        "quartimax",
        "logcosh",
        "exp",
        "kurtosis",
        objectives.Orthomax(2.5),
        objectives.Kurtosis(-1),
        "x",
        3,
    ]
    gamma = rng.choice([0.0, 0.5, 1.0, 1e300, -1.0, np.nan, 1e-310])
    active = [None, None, None, 1, 2, 0, 99, 1.5][rng.integers(8)]
    kind = rng.integers(8)
    if kind == 0:
        return objectives.Columns(A, contrast[rng.integers(len(contrast))], active)
    if kind == 1:
        return objectives.SparseColumns(A, gamma, str(rng.choice(["l1", "l0", "l2"])), active)
    if kind == 2:
        return objectives.JointDiagonal(matrices(rng))
    if kind == 3:
        return objectives.SymmetricTensor(tensor(rng), active, symmetrize=bool(rng.random() < 0.8))
    if kind == 4:
        return objectives.MomentTensor(A, None, None, active)
    if kind == 5:
        return objectives.from_samples(A, rank=active)
    f, n = function(rng), int(rng.choice([1, 2, 3, 5]))
    if kind == 6:
        return objectives.Function(f, (n, int(rng.choice([1, 1, 2, 0, 5]))))
    return objectives.Function(f, n)


def function(rng: np.random.Generator) -> Callable[[np.ndarray], Any]:
    """A function of U: smooth, constant, of any size, or one that returns what is no number."""
    kind = rng.integers(9)
    scale = float(rng.choice([1.0, 1e150, 1e-150, 1e300, 1e-310]))
    odd: list[Any] = [np.nan, np.inf, None, "x", 1j, np.zeros(2), np.array([1.0])]
    bad = odd[rng.integers(len(odd))]

    def f(U: np.ndarray) -> Any:
        if kind == 0:
            return bad
        if kind == 1:
            return scale
        if kind == 2:
            return bad if U[0, 0] < 0 else float(U[0, 0])
        if kind == 3:
            return scale * float(np.abs(U).sum())
        if kind == 4:
            return np.float32(U[0, 0])
        if kind == 5:
            return int(10 * U[0, 0])
        return scale * float(np.sum(U[0] ** 4))

    return f


def matrices(rng: np.random.Generator) -> Any:
    """Stacks of symmetric matrices, more or less."""
    order, number = int(rng.choice([0, 1, 2, 4, 6])), int(rng.choice([0, 1, 2, 5]))
    with np.errstate(all="ignore"):
        stack = values(rng, number, order * order).reshape(number, order, order)
        stack = stack / 2 + stack.swapaxes(1, 2) / 2 if rng.random() < 0.8 else stack
    if rng.random() < 0.15:
        return data(rng)
    return [stack, stack.tolist(), stack.astype("f4", casting="unsafe") if np.abs(stack).max(initial=0) < 1e30 else stack,
            np.asfortranarray(stack), stack[0] if number else stack][rng.integers(5)]  # fmt: skip


def tensor(rng: np.random.Generator) -> Any:
    d = int(rng.choice([0, 1, 2, 3, 5]))
    T = values(rng, d, d * d).reshape(d, d, d)
    if rng.random() < 0.5 and d:
        w, V = values(rng, 1, d)[0], np.linalg.qr(rng.standard_normal((d, d)))[0]
        with np.errstate(all="ignore"):
            T = np.einsum("k,ak,bk,ck->abc", w, V, V, V)
    return data(rng) if rng.random() < 0.1 else T


def start(rng: np.random.Generator, n: int) -> Any:
    options = [
        None,
        None,
        None,
        None,
        np.eye(max(n, 0)),
        np.eye(3),
        np.ones((n, n)),
        np.full((n, n), np.nan),
        "x",
        rotations.random_orthogonal(max(n, 1), 0),
        np.eye(max(n, 0))[:, :1],
    ]
    return options[rng.integers(len(options))]


def run_minimize(rng: np.random.Generator, note: Callable[[str], None]) -> None:
    """`minimize` of any objective, with any options."""
    problem = attempt(lambda: objective(rng))
    if problem is None:
        return
    options: dict[str, Any] = {"max_iter": int(rng.choice([0, 1, 5, 50]))}
    phases = [["sweeps"], ["descent"], ["descent", "sweeps"], ["descent", "cyclic"], [], ["x"], "sweeps"]
    for name, choices in {
        "method": COMMON["schedule"] + phases, "tol": [0.0, 1e-9, 1e-2, -1.0, np.nan], "threads": [1, 2, None],
        "n_starts": [1, 2], "certify": [True, False, 0.5, 2.0], "determinant": [1, -1, "both", 3], "random_state": [0, None],
    }.items():  # fmt: skip
        if rng.random() < 0.3:
            options[name] = choices[rng.integers(len(choices))]
    first = start(rng, problem.n)
    note(f"minimize({type(problem).__name__} of order {problem.n}, {say(first)}, {options})")
    result = attempt(lambda: givens.minimize(problem, first, **options))
    if result is not None:
        finite(result.U, "U")
        finite((result.value, result.gradient_norm), "the result", overflow=True)
        if result.orthogonality > 1e-8:
            raise Finding(
                "not orthogonal", f"U differs from an orthogonal matrix by {result.orthogonality:.1e}"
            )
    if rng.random() < 0.2:
        note("check_objective")
        attempt(lambda: givens.check_objective(problem, pairs=2, grid=20))


def run_decompose(rng: np.random.Generator, note: Callable[[str], None]) -> None:
    """`decompose` and the power method."""
    T = tensor(rng)
    rank = [None, None, 1, 2, 0, 99, "x"][rng.integers(7)]
    options = {"symmetrize": bool(rng.random() < 0.7), "n_starts": int(rng.choice([1, 2])), "max_iter": 20}
    if rng.random() < 0.3:
        options["start"] = start(rng, np.shape(T)[0] if np.ndim(T) else 1)
    note(f"decompose({say(T)}, {rank}, {options})")
    found = attempt(lambda: givens.decompose(T, rank, random_state=0, **options))
    if found is not None:
        finite((found.weights, found.factors, found.residual), "the decomposition", overflow=True)
        attempt(found.reconstruct)


def run_joint(rng: np.random.Generator, note: Callable[[str], None]) -> None:
    """`joint_diagonalize`."""
    stack = matrices(rng)
    weight = [None, None, np.ones(5), values(rng, 1, 5)[0], "x"][rng.integers(5)]
    note(f"joint_diagonalize({say(stack)}, sample_weight={weight!r})")
    found = attempt(
        lambda: givens.joint_diagonalize(stack, sample_weight=weight, max_iter=int(rng.choice([0, 1, 50])))
    )
    if found is not None:
        finite(found, "the joint diagonaliser", overflow=True)


def run_function(rng: np.random.Generator, note: Callable[[str], None]) -> None:
    """Metrics, loadings, rotations, rivals, generators of data."""
    X, other = data(rng), data(rng)
    if rng.random() < 0.4:
        X = good(rng)
        other = rng.standard_normal((int(rng.choice([1, 2, 6])), 6))
    n = [1, 2, 5, 0, -1, "x", 2.5][rng.integers(7)]
    number = float(rng.choice([0.0, 1.0, -2.0, 1e200, 1e-310, np.nan, np.inf]))
    calls: dict[str, Callable[[], Any]] = {
        "metrics.adjusted_variance": lambda: metrics.adjusted_variance(X, other),
        "metrics.projected_variance": lambda: metrics.projected_variance(X, other),
        "metrics.score_correlation": lambda: metrics.score_correlation(X, other),
        "metrics.total_variance": lambda: metrics.total_variance(X),
        "metrics.loading_overlap": lambda: metrics.loading_overlap(X),
        "metrics.orthogonality_defect": lambda: metrics.orthogonality_defect(X),
        "sparse_pca_path": lambda: givens.sparse_pca_path(X, n, n_thresholds=3, max_iter=5).components,
        "metrics.amari": lambda: metrics.amari(X, other),
        "metrics.mutual_information_reduction": lambda: metrics.mutual_information_reduction(X, other),
        "factors.align": lambda: factors.align(X, other),
        "factors.congruence": lambda: factors.congruence(X, other),
        "factors.target_rotation": lambda: factors.target_rotation(X, other),
        "rotations.factor": lambda: rotations.factor(X).angles,
        "rotations.random_orthogonal": lambda: rotations.random_orthogonal(n, 0),
        "rotations.rotation": lambda: rotations.rotation(n, 0, 1, number),
        "rotations.rotate": lambda: rotations.rotate(X, 0, 1, number),
        "make_spherical_mixture": lambda: (
            datasets.make_spherical_mixture(20, n_components=n, n_features=5, random_state=0).X
        ),
        "make_topics": lambda: datasets.make_topics(10, n_components=n, n_words=20, alpha0=number).X,
        "sparse_modules": lambda: (
            datasets.sparse_modules(10, 50, n_modules=n, module_size=5, strength=number).X
        ),
    }
    name = str(rng.choice(list(calls)))
    note(f"{name}: {say(X)}, {say(other)}, n={n!r}, number={number!r}")
    ordinary = is_finite(X) and is_finite(other) and np.isfinite(number)
    attempt(calls[name], ordinary, name, overflow=True)


def attack(rng: np.random.Generator, note: Callable[[str], None]) -> None:
    """One random call of each kind's share."""
    kinds = [
        fit,
        fit,
        fit,
        fit,
        fit,
        fit,
        run_minimize,
        run_minimize,
        run_decompose,
        run_joint,
        run_function,
        run_function,
    ]
    kinds[rng.integers(len(kinds))](rng, note)
