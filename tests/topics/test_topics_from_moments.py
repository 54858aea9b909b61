import numpy as np
import pytest

from givens.data.third_moments import TooFewDirections
from givens.topics.word_moments import TopicMoments, solve_topics


def matched(truth, found):
    """Largest difference of the topics in their best order, and that order."""
    order = np.argmin(np.abs(truth[:, None] - found[None]).sum(axis=2), axis=1)
    assert len(set(order)) == len(truth)
    return np.abs(found[order] - truth).max(), order


def population(topics, alpha, axes, weights=None):
    """Exact moments, by the moments of the shares and not by those of the model's tensors."""
    k = len(topics)
    if weights is None:
        total = alpha.sum()
        one = alpha / total
        two = (np.outer(alpha, alpha) + np.diag(alpha)) / (total * (total + 1))
        eye = np.eye(k)
        three = np.einsum("a,b,c->abc", alpha, alpha, alpha)
        for a in range(k):
            for b in range(k):
                for c in range(k):
                    # E[h_a h_b h_c] of a Dirichlet distribution by rising factorials.
                    three[a, b, c] = alpha[a] * (alpha[b] + eye[a, b]) * (alpha[c] + eye[a, c] + eye[b, c])
        three /= total * (total + 1) * (total + 2)
    else:
        one, two = weights, np.diag(weights)
        three = np.zeros((k, k, k))
        three[np.arange(k), np.arange(k), np.arange(k)] = weights
    on_axes = topics @ axes
    return TopicMoments(
        axes=axes,
        mean=one @ topics,
        cross=topics.T @ two @ on_axes,
        second=on_axes.T @ two @ on_axes,
        third=np.einsum("abc,ai,bj,ck->ijk", three, on_axes, on_axes, on_axes, optimize=True),
    )


CASES = [(3, 12, 1.0), (5, 40, 0.2), (8, 30, 6.0), (20, 60, 2.0), (40, 200, 10.0)]


@pytest.mark.parametrize(("k", "words", "alpha0"), CASES)
def test_exact_moments_give_exact_topics(k, words, alpha0):
    rng = np.random.default_rng(k)
    topics = rng.dirichlet(np.full(words, 0.2), size=k)
    alpha = rng.uniform(0.3, 1.7, size=k)
    alpha *= alpha0 / alpha.sum()
    axes = rng.standard_normal((words, k + 5))
    moments = population(topics, alpha, axes)
    found = solve_topics(moments, k, alpha0, rng)
    error, order = matched(topics, found.topics)
    assert error < 1e-8
    np.testing.assert_allclose(alpha0 * found.weights[order], alpha, rtol=1e-7)
    np.testing.assert_allclose(found.topics.sum(axis=1), 1, atol=1e-8)
    assert found.residual < 1e-7


def test_exact_moments_of_the_single_topic_model():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(30, 0.3), size=6)
    weights = rng.dirichlet(np.full(6, 3.0))
    found = solve_topics(population(topics, None, rng.standard_normal((30, 9)), weights), 6, 0.0, rng)
    error, order = matched(topics, found.topics)
    assert error < 1e-8
    np.testing.assert_allclose(found.weights[order], weights, rtol=1e-7)


def test_topics_do_not_depend_on_the_axes():
    rng = np.random.default_rng(1)
    topics = rng.dirichlet(np.full(25, 0.2), size=4)
    alpha = np.array([0.3, 0.5, 0.9, 0.2])
    found = [
        solve_topics(population(topics, alpha, axes), 4, 1.9, rng).topics
        for axes in (np.eye(25), 1e-9 * rng.standard_normal((25, 4)))
    ]
    assert matched(*found)[0] < 1e-8


def test_a_wrong_alpha0_leaves_more_of_the_tensor():
    rng = np.random.default_rng(2)
    topics = rng.dirichlet(np.full(40, 0.1), size=5)
    moments = population(topics, np.array([0.2, 0.3, 0.1, 0.25, 0.15]), np.eye(40))
    left = {alpha0: solve_topics(moments, 5, alpha0, rng).residual for alpha0 in (0.0, 0.3, 1.0, 3.0, 10.0)}
    assert left[1.0] < 1e-7
    assert all(value > 1e-3 for alpha0, value in left.items() if alpha0 != 1.0)


def test_more_topics_than_the_second_moment_shows_are_refused():
    rng = np.random.default_rng(3)
    topics = rng.dirichlet(np.full(20, 0.2), size=3)
    moments = population(topics, np.ones(3), np.eye(20))
    with pytest.raises(TooFewDirections, match="only 3 positive eigenvalues"):
        solve_topics(moments, 4, 3.0, rng)
