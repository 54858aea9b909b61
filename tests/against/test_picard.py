"""What the tests and the documentation of python-picard hold true of `picard` and `Picard` holds for `ICA`.

Where it does not, the test's comment names the line of docs/ica.md, "In place of Picard", that says so.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

from givens import ICA, check_objective, metrics
from givens.objectives import Columns, LogCosh
from tests.ica.sources import picard as ica

# The score of each contrast, up to its sign.
SCORES = {
    "adaptive": np.tanh,
    "logcosh": np.tanh,
    "exp": lambda y: y * np.exp(-y * y / 2),
    "kurtosis": lambda y: y**3,
}


def mixtures(kind, seed=0, number=3, samples=2000):
    """Signals in rows, and their mixing. Sources of variance 1 are Laplace, uniform, Gaussian, or Laplace and uniform in turn."""
    rng = np.random.default_rng(seed)
    shape = (number, samples)
    heavy, light = rng.laplace(size=shape) / np.sqrt(2), np.sqrt(3) * rng.uniform(-1, 1, shape)
    S = {
        "heavy": heavy,
        "light": light,
        "mixed": np.where(np.arange(number)[:, None] % 2, heavy, light),
        "gaussian": rng.standard_normal(shape),
    }[kind]
    A = rng.standard_normal((number, number))
    return A @ S, A


def centred(X):
    return X - X.mean(axis=1, keepdims=True)


def far_from_identity(P):
    """The largest difference from I of a matrix whose rows are permuted and divided by their largest entries."""
    P = P[linear_sum_assignment(-np.abs(P).T)[1]]
    return np.abs(P / np.diag(P)[:, None] - np.eye(len(P))).max()


# Sources.


@pytest.mark.parametrize("contrast", SCORES)
def test_heavy_tails_by_every_density(contrast):
    X, A = mixtures("heavy", seed=4)
    K, W, Y = ica(X, contrast=contrast)
    assert K.shape == W.shape == A.shape
    assert Y.shape == X.shape
    assert far_from_identity(W @ K @ A) < 0.1
    # The gradient on the orthogonal matrices is the skew part of E[ψ(y) yᵀ].
    G = SCORES[contrast](Y) @ Y.T / Y.shape[1]
    np.testing.assert_allclose(G, G.T, atol=1e-7)


@pytest.mark.parametrize("kind", ["heavy", "light", "mixed"])
@pytest.mark.parametrize("seed", range(2))
def test_heavy_and_light_tails(seed, kind):
    X, A = mixtures(kind, seed, number=4, samples=4000)
    K, W, Y = ica(X)
    assert far_from_identity(W @ K @ A) < 0.1
    signs = ICA().fit(X.T).signs_
    G = signs[:, None] * np.tanh(Y) @ Y.T / Y.shape[1]
    np.testing.assert_allclose(G, G.T, atol=1e-7)


def test_without_signs_light_tails_are_lost():
    # `extended=False`: as with Picard, for heavy tails only; ours warns.
    X, A = mixtures("mixed", number=4, samples=4000)
    with pytest.warns(UserWarning, match="light tails"):
        K, W, _ = ica(X, contrast="logcosh")
    assert far_from_identity(W @ K @ A) > 0.1


@pytest.mark.parametrize(("kind", "most"), [("heavy", 17), ("gaussian", 58)])
def test_few_iterations_are_enough(kind, most):
    """Of ten sources of 1,000 samples, also where there is nothing to separate."""
    steps = [ICA(tol=1e-7).fit(mixtures(kind, seed, 10, 1000)[0].T).n_iter_ for seed in range(10)]
    assert np.mean(steps) < most


@pytest.mark.parametrize("scale", [1e-140, 1e-6, 1e140])
def test_no_overflow(scale):
    X, A = mixtures("mixed", number=4, samples=4000)
    X[1] *= 1e4
    K, W, Y = ica(X * scale)
    A[1] *= 1e4
    assert np.isfinite(Y).all()
    assert far_from_identity(W @ (K * scale) @ A) < 0.1


# The three arrays.


@pytest.mark.parametrize("contrast", ["adaptive", "logcosh"])
@pytest.mark.parametrize("start", [None, np.eye])
@pytest.mark.parametrize("n_components", [5, 3])
def test_the_sources_are_those_of_the_matrices(n_components, start, contrast):
    """Also after two steps: they are white, and W is orthogonal."""
    X, _ = mixtures("heavy", number=5, samples=100)
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        K, W, Y = ica(X, n_components, contrast=contrast, max_iter=2, w_init=start and start(n_components))
    assert K.shape == (n_components, 5)
    assert W.shape == (n_components, n_components)
    assert Y.shape == (n_components, 100)
    np.testing.assert_allclose(W @ K @ centred(X), Y, atol=1e-9)
    np.testing.assert_allclose(Y @ Y.T / 100, np.eye(n_components), atol=1e-8)
    np.testing.assert_allclose(W @ W.T, np.eye(n_components), atol=1e-9)
    # The mixing matrix, as Picard's documentation computes it.
    w = W @ K
    A = w.T @ np.linalg.inv(w @ w.T)
    np.testing.assert_allclose(w @ A, np.eye(n_components), atol=1e-9)


@pytest.mark.filterwarnings("ignore:Picard did not converge")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("samples", [8, 500])
def test_the_whitening_is_the_same(samples, seed):
    picard = pytest.importorskip("picard").picard
    X, _ = mixtures("heavy", seed, number=5, samples=samples)
    # "by name": the second argument of `picard` is the density.
    K, _, _ = picard(X, n_components=3, max_iter=1, random_state=0)
    np.testing.assert_allclose(ica(X, 3)[0], K, atol=1e-9)


def test_what_picard_found_is_a_start():
    # `w_init`: of the same coordinates.
    picard = pytest.importorskip("picard").picard
    X, _ = mixtures("heavy", number=5, samples=500)
    _, theirs, _ = picard(X, random_state=0)
    _, ours, _ = ica(X, w_init=theirs)
    np.testing.assert_allclose(np.abs(ours @ theirs.T).max(axis=1), 1.0, atol=1e-6)


def test_the_data_stay_as_they_are():
    X, _ = mixtures("heavy")
    before = X.copy()
    ica(X)
    ica(ica(X)[2], whiten=False)
    np.testing.assert_array_equal(X, before)
    assert ica(X.tolist())[2].shape == X.shape


# Without whitening.


def test_white_data():
    X, A = mixtures("mixed", number=4, samples=4000)
    K, _, _ = ica(X)
    Z = K @ centred(X)
    identity, W, Y = ica(Z, whiten=False)
    np.testing.assert_array_equal(identity, np.eye(4))
    np.testing.assert_allclose(W @ Z, Y, atol=1e-9)
    assert far_from_identity(W @ K @ A) < 0.1
    # `ortho=False`: none, so data that are not white are not separated. Ours warns.
    with pytest.warns(UserWarning, match="X is not white"):
        _, W, Y = ica(X, whiten=False)
    np.testing.assert_allclose(W @ X, Y, atol=1e-9)
    np.testing.assert_allclose(W @ W.T, np.eye(4), atol=1e-9)
    # `n_components`: where Picard warns that it ignores them, ours refuses.
    with pytest.raises(ValueError, match="whiten=False keeps all 4 columns"):
        ica(Z, 3, whiten=False)


def test_centering():
    X, _ = mixtures("heavy", number=5, samples=2000)
    shift = np.arange(5.0)
    K, W, Y = ica(X)
    shifted = ica(X + shift[:, None])
    np.testing.assert_allclose(shifted[1] @ shifted[0], W @ K, atol=1e-6)
    np.testing.assert_allclose(shifted[2], Y, atol=1e-6)
    # `return_X_mean`, `return_n_iter`: attributes of `ICA`.
    model = ICA().fit((X + shift[:, None]).T)
    np.testing.assert_allclose(model.mean_, X.mean(axis=1) + shift)
    assert model.n_iter_ >= 1


# Warnings and errors.


def test_too_few_iterations_warn():
    X, _ = mixtures("heavy")
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        ica(X, max_iter=1)
    with pytest.raises(ValueError, match="max_iter must be a whole number of at least 1"):
        ica(X, max_iter=0)


def test_bad_arguments():
    X, _ = mixtures("heavy")
    for shape in ((2, 2), (4, 4), (3, 2)):
        with pytest.raises(ValueError, match=r"w_init must be a regular matrix of shape \(3, 3\)"):
            ica(X, w_init=np.ones(shape))
    # `fun`: the names are other ones.
    with pytest.raises(ValueError, match=r"contrast must be one of 'adaptive'.* got 'tanh'"):
        ica(X, contrast="tanh")


class WrongDensity(LogCosh):
    """Log cosh with the derivatives of its negative."""

    def look_from(self, sums, rows):
        value, *products = sums
        return super().look_from((value, *(-product for product in products)), rows)


def test_a_wrong_derivative_is_noticed():
    # `fun` (a density): a fit does not compare it with its derivatives, and warns that no step is of use.
    X, _ = mixtures("heavy", samples=300)
    with pytest.warns(ConvergenceWarning, match="no step of the phase 'descent' lowers f"):
        ica(X, contrast=WrongDensity())
    # `check_objective` does what `check_density` does.
    reports = [check_objective(Columns(X.T, density), grid=60) for density in (LogCosh(), WrongDensity())]
    assert reports[0]
    assert not reports[1]
    assert "slopes" in {finding.name for finding in reports[1].findings if not finding.passed}


def test_the_distance_of_amari():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((3, 3))
    W = rng.standard_normal((3, 1)) * np.linalg.inv(A)[rng.permutation(3)]
    assert metrics.amari(W, A) < 1e-6


# The class `Picard`.


def test_the_class_has_sources_of_arbitrary_variance():
    # "The class `Picard`": its `whiten=True` is FastICA's "arbitrary-variance".
    Picard = pytest.importorskip("picard").Picard
    X = mixtures("heavy", number=5, samples=500)[0].T
    theirs = Picard(3, random_state=0).fit(X)
    ours = ICA(3, whiten="arbitrary-variance").fit(X)
    np.testing.assert_allclose(ours.transform(X).var(axis=0), theirs.transform(X).var(axis=0), rtol=1e-6)
    assert ours.components_.shape == theirs.components_.shape == (3, 5)
    assert ours.mixing_.shape == theirs.mixing_.shape == (5, 3)
    np.testing.assert_allclose(
        np.abs(np.linalg.pinv(theirs.mixing_) @ ours.mixing_).max(axis=0), 1.0, atol=1e-2
    )
    with pytest.raises(ValueError, match="whiten must be"):
        ICA(whiten=True).fit(X)
    with pytest.raises(ValueError, match="max_iter must be a whole number"):
        ICA(max_iter=0).fit(X)
