"""The four figures: what is drawn is what is in the model."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from givens import minimize, plotting
from givens.objectives import JointDiagonal


@pytest.fixture(autouse=True)
def fresh():
    plt.close("all")
    yield
    plt.close("all")


def test_convergence_draws_the_trace():
    A = np.random.default_rng(0).standard_normal((6, 6))
    result = minimize(JointDiagonal(A + A.T))
    ax = plotting.convergence(result)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), result.trace.value)
    _, other = plt.subplots()
    assert plotting.convergence(result, gradient=True, ax=other) is other
    assert other.get_yscale() == "log"

    class Holder:
        result_ = result

    assert len(plotting.convergence(Holder()).lines) == 2


def test_components_draw_the_largest_weights_first_and_any_name():
    weights = np.array([[0.0, 0.5, -0.7, 0.1, 0.0]])
    names = ["a", "$x^", "<b>", "_", "e"]
    ax = plotting.components(weights, names=names, most=3)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["<b>", "$x^", "_"]
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], [-0.7, 0.5, 0.1])
    assert ax.yaxis_inverted()
    ax.figure.savefig("/dev/null", format="png")


def test_scores_colour_by_label():
    values = np.random.default_rng(0).normal(size=(9, 3))
    ax = plotting.scores(values, labels=["$b$", "a", 3] * 3, axes=(0, 2))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["$b$", "3", "a"]
    drawn = np.concatenate([group.get_offsets() for group in ax.collections])
    assert sorted(map(tuple, drawn.tolist())) == sorted(map(tuple, values[:, [0, 2]].tolist()))
    assert ax.get_ylabel() == "component 3"
    ax.figure.savefig("/dev/null", format="png")
    _, plain = plt.subplots()
    assert plotting.scores(values, ax=plain).get_legend() is None


@pytest.mark.parametrize(
    ("draw", "error", "match"),
    [
        (lambda: plotting.convergence(None), TypeError, "result must be a Result, or hold one, got NoneType"),
        (lambda: plotting.path(np.eye(2)), TypeError, "curve must be what sparse_pca_path returns"),
        (lambda: plotting.components(None), TypeError, "must be fitted, or an array of components"),
        (lambda: plotting.components(np.eye(2), 2), ValueError, "2 components, counted from 0"),
        (lambda: plotting.components(np.eye(2), names=["a"]), ValueError, "1 names for 2 variables"),
        (lambda: plotting.scores(np.ones(3)), TypeError, "samples x components"),
        (lambda: plotting.scores(np.ones((3, 1))), ValueError, r"no axes \(0, 1\)"),
        (lambda: plotting.scores(np.eye(3), labels=["a"]), ValueError, "1 labels for 3 samples"),
    ],
)
def test_mistakes_are_explained_and_draw_nothing(draw, error, match):
    with pytest.raises(error, match=match):
        draw()
    assert not plt.get_fignums()
