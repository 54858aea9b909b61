"""Factor rotation: loadings turned to simple structure, or towards a target, and solutions compared.

Solutions of a factor analysis differ by rotation, order and signs. The rotation that takes loadings L as near as it can to a
target T is a Procrustes problem: with the singular value decomposition LᵀT = P S Qᵀ, R = P Qᵀ makes ‖LR − T‖ smallest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from givens.numerics.polar import polar
from givens.numerics.scaling import power_of_two, unit_rows
from givens.support.fitting import check_array

__all__ = ["align", "congruence", "target_rotation"]


def target_rotation(loadings: Any, target: Any) -> np.ndarray:
    """The orthogonal matrix that rotates loadings as near to a target as they get (orthogonal Procrustes).

    Parameters
    ----------
    loadings : array, shape (variables, factors)
    target : array, shape (variables, factors)
        Loadings of another study, or zeros and ones where small and large loadings are expected.

    Returns
    -------
    array, shape (factors, factors)
        R, orthogonal, of the smallest ‖loadings·R − target‖.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.factors import target_rotation
    >>> target = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> turned = target @ np.array([[0.6, -0.8], [0.8, 0.6]])
    >>> (turned @ target_rotation(turned, target)).round(12) + 0.0
    array([[1., 0.],
           [1., 0.],
           [0., 1.]])
    """
    A, B = _two(loadings, target, "loadings", "target")
    if A.shape != B.shape:
        raise ValueError(f"target must have the shape of the loadings, {A.shape}, got {B.shape}")
    return polar((A / power_of_two(A)).T @ (B / power_of_two(B)))


def congruence(loadings: Any, others: Any) -> np.ndarray:
    """Tucker's coefficients of congruence of every two factors: the cosines of the angles between their columns of loadings.

    Parameters
    ----------
    loadings : array, shape (variables, factors)
    others : array, shape (variables, other factors)
        Loadings of the same variables.

    Returns
    -------
    array, shape (factors, other factors)
        Between −1 and 1; 0 for a factor whose loadings are all zero. Factors are commonly called equal above 0.95, and fairly
        similar from 0.85 (Lorenzo-Seva and ten Berge 2006).

    Examples
    --------
    >>> import numpy as np
    >>> from givens.factors import congruence
    >>> congruence([[0.6, 0.0], [0.8, 0.0], [0.0, 1.0]], [[0.8, 0.0], [0.6, 0.0], [0.0, -2.0]]).round(2) + 0.0
    array([[ 0.96,  0.  ],
           [ 0.  , -1.  ]])
    """
    A, B = _two(loadings, others, "loadings", "others")
    return np.clip(unit_rows(A.T) @ unit_rows(B.T).T, -1.0, 1.0)


def align(loadings: Any, reference: Any) -> np.ndarray:
    """Loadings with their factors in the order and with the signs of a reference.

    Factors are paired so that the sum of their absolute congruences is largest. Nothing is rotated.

    Parameters
    ----------
    loadings : array, shape (variables, factors)
    reference : array, shape (variables, factors)

    Returns
    -------
    array, shape (variables, factors)

    Examples
    --------
    >>> from givens.factors import align
    >>> align([[0.0, 1.0], [0.9, 0.0]], [[-1.0, 0.0], [0.0, 1.0]])
    array([[-1. ,  0. ],
           [-0. ,  0.9]])
    """
    A, B = _two(loadings, reference, "loadings", "reference")
    if A.shape != B.shape:
        raise ValueError(f"reference must have the shape of the loadings, {A.shape}, got {B.shape}")
    cosines = congruence(A, B)
    order = linear_sum_assignment(-np.abs(cosines.T))[1]
    signs = np.where(cosines[order, np.arange(len(order))] < 0, -1.0, 1.0)
    return A[:, order] * signs


def _two(first: Any, second: Any, name: str, other: str) -> tuple[np.ndarray, np.ndarray]:
    A = check_array(first, dtype=np.float64, input_name=name)
    B = check_array(second, dtype=np.float64, input_name=other)
    if len(A) != len(B):
        raise ValueError(f"{name} and {other} must be of the same variables, got {len(A)} and {len(B)} rows")
    return A, B
