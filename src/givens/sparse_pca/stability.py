"""Stability of sparse components: what a fit finds again in halves of the samples.

The samples are split at random into two halves, several times (complementary pairs: Shah and Samworth 2013, after Meinshausen and
Bühlmann's stability selection). Each half is fitted with the same parameters, from the components of the whole fit (so an
optimum that a cold start would miss counts as found), and its components are matched with those of the whole fit so
that the sum of the |cosines| between loadings is largest. Then

- the selection frequency of a variable in a component is the share of halves whose matched component gives it a weight,
- the stability of a component is the mean |cosine| between it and its matches.

A half has half the information: both figures say less than what would be found again in new samples of the full size.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone

from givens.support.arguments import Samples


def halves(n: int, number: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return so many halves of n samples, ascending, in complementary pairs; of an odd number the pairs leave one sample out.

    >>> [part.tolist() for part in halves(4, 2, np.random.default_rng(0))]
    [[0, 2], [1, 3]]
    """
    parts: list[np.ndarray] = []
    while len(parts) < number:
        order = rng.permutation(n)
        parts += [np.sort(order[: n // 2]), np.sort(order[n // 2 : 2 * (n // 2)])]
    return parts[:number]


def matches(whole: np.ndarray, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which row of `part` belongs to each row of `whole`, and the |cosines| between them.

    >>> order, cosines = matches(np.eye(3), -np.eye(3)[[2, 0, 1]])
    >>> order.tolist(), cosines.tolist()
    ([1, 2, 0], [1.0, 1.0, 1.0])
    """
    cosines = np.abs(whole.astype(np.float64) @ part.astype(np.float64).T)
    rows, columns = linear_sum_assignment(-cosines)
    return columns, np.minimum(cosines[rows, columns], 1.0)


def resampled(
    model: Any, X: Samples, number: int, rng: np.random.Generator, sample_weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the selection frequencies (components x features) and the stability of each component of a fitted model.

    Parameters
    ----------
    model : SparsePCA
        Fitted to X.
    X : array or sparse matrix
    number : int
        Of halves.
    rng : Generator
    sample_weight : array, optional
    """
    whole, n_nonzero = model.components_, model.n_nonzero
    if n_nonzero is not None and np.ndim(n_nonzero) > 0:
        # A list of counts belongs to the components in their order, a total to what the whole fit made of it.
        n_nonzero = model.n_nonzero_.tolist()
    frequency, stability = np.zeros(whole.shape), np.zeros(len(whole))
    for part in halves(X.shape[0], number, rng):
        twin = clone(model).set_params(
            n_components=len(whole), n_nonzero=n_nonzero, stability=None, n_starts=1, random_state=0
        )
        with warnings.catch_warnings():
            # A half that stopped early, or has an empty component, counts as it is.
            warnings.simplefilter("ignore")
            twin._fit_from(X[part], None if sample_weight is None else sample_weight[part], whole)
        order, cosines = matches(whole, twin.components_)
        frequency += twin.components_[order] != 0
        stability += cosines
    return frequency / number, stability / number
