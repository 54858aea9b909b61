"""What the tests and the documentation of python-picard hold true of `picard` and `Picard` holds for `ICA`.

Where it does not, the test's comment names the line of docs/ica.md, "In place of Picard", that says so.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

from givens import ICA, check_objective
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


# Without whitening.


# Warnings and errors.


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
