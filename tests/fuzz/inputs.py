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
from tests.fuzz.data import data, good, is_finite, one_of, say, values
from tests.fuzz.judge import Finding, finite, judge
from tests.test_interrupted_fits import estimators

Note = Callable[[str], None]
ODD = [
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
SCHEDULES = [None, "random", "cyclic", "tournament", "gradient", "shuffled", "without-replacement"]
# What is nearly right. Parameters that are not listed get what is odd.
PARAMETERS: dict[str, list[Any]] = {
    "n_components": [1, 2, 3, None, 5, 40, 0.9],
    "n_starts": [1, 1, 2],
    "threads": [1, 1, 2, None, 7],
    "random_state": [0, 1, None, np.random.RandomState(3)],
    "tol": [1e-6, 0.0, 1e-2, 1e-12],
    "max_iter": [0, 1, 5, 50],
    "scale": [False, True],
    "refit": [False, True],
    "normalize": [False, True],
    "gamma": [None, 0.0, 0.1, 1.0, 1e10, 1e-200, 1e300],
    "threshold": [None, 0.0, 0.1, 0.5, 0.99, 1.0, ("l0", 0.1)],
    "n_nonzero": [None, 1, 2, 4, [2, 1], [1, 2, 3]],
    "schedule": SCHEDULES,
    "sketch": [None, 3, 10, ("algorithm 5", 0.5)],
    "forgetting": [1.0, 0.9, 0.5],
    "variance": ["common", "distinct"],
    "basis_samples": [10, 2000],
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
}
SPARSITY = ("gamma", "threshold", "n_nonzero")  # of which one is given
MODEL_METHODS = {
    "of data": [
        "transform",
        "predict",
        "predict_proba",
        "score_samples",
        "score",
        "bic",
        "aic",
        "perplexity",
    ],
    "of nothing": ["get_feature_names_out", "top_words", "to_pandas", "to_sklearn", "sample"],
}
MINIMIZE: dict[str, list[Any]] = {
    "method": [
        *SCHEDULES,
        ["sweeps"],
        ["descent"],
        ["descent", "sweeps"],
        ["descent", "cyclic"],
        [],
        ["x"],
        "sweeps",
    ],
    "tol": [0.0, 1e-9, 1e-2, -1.0, np.nan],
    "threads": [1, 2, None],
    "n_starts": [1, 2],
    "certify": [True, False, 0.5, 2.0],
    "determinant": [1, -1, "both", 3],
    "random_state": [0, None],
}


def parameters(rng: np.random.Generator, cls: type) -> dict[str, Any]:
    chosen = {}
    for name in cls().get_params():
        if rng.random() < 0.4 or name == "n_components":
            odd = rng.random() < 0.04 and name != "n_starts"
            chosen[name] = copy.deepcopy(one_of(rng, ODD if odd else PARAMETERS.get(name, ODD)))
    for name in [name for name in SPARSITY if chosen.get(name) is not None][1:]:
        if rng.random() < 0.9:
            chosen.pop(name)
    return chosen


def attempt(
    call: Callable[[], Any],
    checked: bool = False,
    what: str = "the outcome",
    overflow: bool = False,
    file: str | None = None,
) -> Any:
    """Call it; judge what it raises, or what it returns. None where it was refused."""
    try:
        outcome = call()
    except Exception as error:
        judge(error, file)
        return None
    if checked:
        finite(outcome, what, overflow)
    return outcome


def check_model(model: BaseEstimator) -> None:
    for name, value in vars(model).items():
        if name.endswith("_") and not name.startswith("_"):
            finite(value, f"{type(model).__name__}.{name}", name in getattr(model, "_may_be_infinite", ()))


def check_result(result: givens.Result) -> None:
    finite(result.U, "U")
    finite((result.value, result.gradient_norm), "the result", overflow=True)
    if result.orthogonality > 1e-8:
        raise Finding("not orthogonal", f"U differs from an orthogonal matrix by {result.orthogonality:.1e}")


def fit(rng: np.random.Generator, note: Note) -> None:
    """Fit an estimator, use it, fit it again, copy it."""
    cls = one_of(rng, estimators())
    chosen = parameters(rng, cls)
    X = one_of(
        rng, [*[lambda: data(rng)] * 6, *[lambda: np.abs(np.round(good(rng)))] * 3, lambda: good(rng)]
    )()
    note(f"{cls.__name__}({', '.join(f'{k}={v!r}' for k, v in chosen.items())}) on {say(X)}")
    model = attempt(lambda: cls(**chosen))
    fits = [name for name in ("fit", "fit", "partial_fit", "fit_covariance") if hasattr(model, name)]
    method = str(rng.choice(fits))
    note(f".{method}")
    ordinary = is_finite(X)
    if method == "fit_covariance":
        square = ordinary and isinstance(X, np.ndarray) and X.ndim == 2 and rng.random() < 0.7
        given = (np.cov(X.astype(float).T) if square else X, int(rng.integers(50)))
    else:
        given = (X,)
    if attempt(lambda: getattr(model, method)(*given)) is None:
        return
    if ordinary:
        check_model(model)
    use(rng, model, X, ordinary, note)


def use(rng: np.random.Generator, model: BaseEstimator, X: Any, ordinary: bool, note: Note) -> None:
    """Call every method of a fitted model, on its own data and on others."""
    for name in MODEL_METHODS["of data"]:
        if hasattr(model, name) and rng.random() < 0.7:
            note(f".{name}")
            checked = ordinary and name in ("transform", "predict_proba")
            attempt(partial(getattr(model, name), X), checked, f"{type(model).__name__}.{name}")
            if rng.random() < 0.5:
                other = data(rng)
                note(f" of {say(other)}")
                attempt(partial(getattr(model, name), other))
    for name in MODEL_METHODS["of nothing"]:
        if hasattr(type(model), name) and rng.random() < 0.5:
            note(f".{name}")
            attempt(getattr(model, name))
    if hasattr(model, "inverse_transform"):
        note(".inverse_transform")
        for scores in (attempt(lambda: model.transform(X)), data(rng)):
            attempt(partial(model.inverse_transform, scores))
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
    names = ["varimax", "quartimax", "logcosh", "exp", "kurtosis", "x", 3]
    contrast = one_of(rng, [*names, objectives.Orthomax(2.5), objectives.Kurtosis(-1)])
    gamma = rng.choice([0.0, 0.5, 1.0, 1e300, -1.0, np.nan, 1e-310])
    active = one_of(rng, [None, None, None, 1, 2, 0, 99, 1.5])
    n, m = one_of(rng, [1, 2, 3, 5]), one_of(rng, [1, 1, 2, 0, 5])
    kinds: list[Callable[[], Any]] = [
        lambda: objectives.Columns(A, contrast, active),
        lambda: objectives.SparseColumns(A, gamma, str(rng.choice(["l1", "l0", "l2"])), active),
        lambda: objectives.JointDiagonal(matrices(rng)),
        lambda: objectives.SymmetricTensor(tensor(rng), active, symmetrize=bool(rng.random() < 0.8)),
        lambda: objectives.MomentTensor(A, None, None, active),
        lambda: objectives.from_samples(A, rank=active),
        lambda: objectives.Function(function(rng), (n, m)),
        lambda: objectives.Function(function(rng), n),
    ]
    return one_of(rng, kinds)()


def function(rng: np.random.Generator) -> Callable[[np.ndarray], Any]:
    """A function of U: smooth, constant, of any size, or one that returns what is no number."""
    scale = float(rng.choice([1.0, 1e150, 1e-150, 1e300, 1e-310]))
    bad = one_of(rng, [np.nan, np.inf, None, "x", 1j, np.zeros(2), np.array([1.0])])
    kinds: list[Callable[[np.ndarray], Any]] = [
        lambda U: bad,
        lambda U: scale,
        lambda U: bad if U[0, 0] < 0 else float(U[0, 0]),
        lambda U: scale * float(np.abs(U).sum()),
        lambda U: np.float32(U[0, 0]),
        lambda U: int(10 * U[0, 0]),
        *[lambda U: scale * float(np.sum(U[0] ** 4))] * 3,
    ]
    return one_of(rng, kinds)


def matrices(rng: np.random.Generator) -> Any:
    """Stacks of symmetric matrices, more or less."""
    if rng.random() < 0.15:
        return data(rng)
    order, number = one_of(rng, [0, 1, 2, 4, 6]), one_of(rng, [0, 1, 2, 5])
    stack = values(rng, number, order * order).reshape(number, order, order)
    stack = stack / 2 + stack.swapaxes(1, 2) / 2 if rng.random() < 0.8 else stack
    single = stack.astype("f4") if np.abs(stack).max(initial=0) < 1e30 else stack
    return one_of(
        rng, [stack, stack.tolist(), single, np.asfortranarray(stack), stack[0] if number else stack]
    )


def tensor(rng: np.random.Generator) -> Any:
    d = one_of(rng, [0, 1, 2, 3, 5])
    V = np.linalg.qr(rng.standard_normal((d, d)))[0]
    orthogonal = np.einsum("k,ak,bk,ck->abc", values(rng, 1, d)[0], V, V, V)
    return (
        one_of(rng, [values(rng, d, d * d).reshape(d, d, d), orthogonal]) if rng.random() < 0.9 else data(rng)
    )


def start(rng: np.random.Generator, n: int) -> Any:
    wrong = [np.eye(3), np.ones((n, n)), np.full((n, n), np.nan), "x"]
    return one_of(
        rng, [*[None] * 4, np.eye(n), np.eye(n)[:, :1], rotations.random_orthogonal(max(n, 1), 0), *wrong]
    )


def run_minimize(rng: np.random.Generator, note: Note) -> None:
    """`minimize` of any objective, with any options."""
    problem = attempt(lambda: objective(rng))
    if problem is None:
        return
    options = {"max_iter": one_of(rng, [0, 1, 5, 50])}
    options |= {name: one_of(rng, choices) for name, choices in MINIMIZE.items() if rng.random() < 0.3}
    first = start(rng, problem.n)
    note(f"minimize({type(problem).__name__} of order {problem.n}, {say(first)}, {options})")
    result = attempt(lambda: givens.minimize(problem, first, **options))
    if result is not None:
        check_result(result)
    if rng.random() < 0.2:
        note("check_objective")
        attempt(lambda: givens.check_objective(problem, pairs=2, grid=20))


def run_decompose(rng: np.random.Generator, note: Note) -> None:
    T = tensor(rng)
    rank = one_of(rng, [None, None, 1, 2, 0, 99, "x"])
    options = {"symmetrize": bool(rng.random() < 0.7), "n_starts": int(rng.choice([1, 2])), "max_iter": 20}
    if rng.random() < 0.3:
        options["start"] = start(rng, np.shape(T)[0] if np.ndim(T) else 1)
    note(f"decompose({say(T)}, {rank}, {options})")
    found = attempt(lambda: givens.decompose(T, rank, random_state=0, **options))
    if found is not None:
        finite((found.weights, found.factors, found.residual), "the decomposition", overflow=True)
        attempt(found.reconstruct)


def run_joint(rng: np.random.Generator, note: Note) -> None:
    stack = matrices(rng)
    weight = one_of(rng, [None, None, np.ones(5), values(rng, 1, 5)[0], "x"])
    options = {"sample_weight": weight, "max_iter": one_of(rng, [0, 1, 50])}
    note(f"joint_diagonalize({say(stack)}, {options})")
    attempt(lambda: givens.joint_diagonalize(stack, **options), True, "the joint diagonaliser", overflow=True)


def run_function(rng: np.random.Generator, note: Note) -> None:
    """Metrics, loadings, rotations, generators of data."""
    X, other = data(rng), data(rng)
    if rng.random() < 0.4:
        X, other = good(rng), rng.standard_normal((one_of(rng, [1, 2, 6]), 6))
    n = one_of(rng, [1, 2, 5, 0, -1, "x", 2.5])
    number = float(rng.choice([0.0, 1.0, -2.0, 1e200, 1e-310, np.nan, np.inf]))
    of_two = [
        metrics.adjusted_variance, metrics.projected_variance, metrics.score_correlation, metrics.amari,
        metrics.mutual_information_reduction, factors.align, factors.congruence, factors.target_rotation,
    ]  # fmt: skip
    of_one = [metrics.total_variance, metrics.loading_overlap, metrics.orthogonality_defect]
    calls: dict[str, Callable[[], Any]] = {f.__name__: partial(f, X, other) for f in of_two}
    calls |= {f.__name__: partial(f, X) for f in of_one} | {
        "sparse_pca_path": lambda: givens.sparse_pca_path(X, n, n_thresholds=3, max_iter=5).components,
        "factor": lambda: rotations.factor(X).angles,
        "random_orthogonal": lambda: rotations.random_orthogonal(n, 0),
        "rotation": lambda: rotations.rotation(n, 0, 1, number),
        "rotate": lambda: rotations.rotate(X, 0, 1, number),
        "make_spherical_mixture": lambda: datasets.make_spherical_mixture(20, n_components=n, n_features=5).X,
        "make_topics": lambda: datasets.make_topics(10, n_components=n, n_words=20, alpha0=number).X,
        "sparse_modules": lambda: (
            datasets.sparse_modules(10, 50, n_modules=n, module_size=5, strength=number).X
        ),
    }
    name = str(rng.choice(list(calls)))
    note(f"{name}: {say(X)}, {say(other)}, n={n!r}, number={number!r}")
    attempt(calls[name], is_finite(X) and is_finite(other) and np.isfinite(number), name, overflow=True)


def attack(rng: np.random.Generator, note: Note) -> None:
    """Make one random call; half of them are fits."""
    other = [run_minimize, run_minimize, run_decompose, run_joint, run_function, run_function]
    one_of(rng, [*[fit] * len(other), *other])(rng, note)
