"""The orthomax family of criteria of simple structure.

    F(L) = Σ_j [ Σ_i l_ij⁴ − (κ/p)(Σ_i l_ij²)² ]        for p variables (rows) and m factors (columns), maximised

| method | κ | with it the rotation prefers |
|---|---|---|
| quartimax | 0 | variables with few large loadings |
| biquartimax | 1/2 | a compromise of the two beside it |
| varimax | 1 | factors with few large loadings |
| equamax | m/2 | factors of equal size, more so than varimax |
| parsimax | p(m−1)/(p+m−2) | few large loadings in variables and factors alike |
| factor parsimony | p | factors with few large loadings, whatever the variables look like |

Crawford and Ferguson (1970) have the same family by another name: their κ is ours divided by p.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from givens.numerics.scaling import check_data, power, power_of_two
from givens.support.arguments import whole

METHODS: dict[str, Callable[[int, int], float]] = {
    "quartimax": lambda p, m: 0.0,
    "biquartimax": lambda p, m: 0.5,
    "varimax": lambda p, m: 1.0,
    "equamax": lambda p, m: m / 2,
    "parsimax": lambda p, m: p * (m - 1) / (p + m - 2) if p + m > 2 else 1.0,
    "parsimony": lambda p, m: float(p),
}
"""κ of each method, as a function of the numbers of variables and factors."""


def kappa_of(method: str | float, variables: int, factors: int, others: tuple[str, ...] = ()) -> float:
    """κ of a method of the orthomax family.

    Parameters
    ----------
    method : str or float
        "quartimax", "biquartimax", "varimax", "equamax", "parsimax" or "parsimony" (factor parsimony); or κ itself.
    variables : int
        Number of rows of the loading matrix.
    factors : int
        Number of its columns.
    others : tuple of str, default=()
        Methods without κ that the caller takes too; an error lists them.

    Returns
    -------
    float

    Examples
    --------
    >>> from givens.factors.criteria import kappa_of
    >>> [kappa_of(method, 10, 3) for method in ("quartimax", "varimax", "equamax")]
    [0.0, 1.0, 1.5]
    """
    if isinstance(method, str) and method in METHODS:
        return METHODS[method](whole(variables, "variables", least=0), whole(factors, "factors", least=0))
    if isinstance(method, Real) and not isinstance(method, bool) and np.isfinite(float(method)):
        return float(method)
    names = ", ".join(repr(name) for name in (*METHODS, *others))
    raise ValueError(f"method must be one of {names}, or a finite number (κ of orthomax), got {method!r}")


def orthomax(loadings: Any, kappa: float) -> float:
    """The orthomax criterion of a loading matrix: Σ_j [Σ_i l_ij⁴ − (κ/p)(Σ_i l_ij²)²].

    Parameters
    ----------
    loadings : array, shape (variables, factors)
    kappa : float

    Returns
    -------
    float

    Examples
    --------
    >>> from givens.factors.criteria import orthomax
    >>> orthomax([[1.0, 0.0], [0.0, 1.0]], kappa=1.0)
    1.0
    """
    A = check_data(loadings, "loadings", 2).astype(np.float64)
    if len(A) == 0:
        raise ValueError("loadings must have at least one variable, got none")
    # Exact, and the difference of two terms is infinite only where it has to be.
    unit = power_of_two(A)
    squares = (A / unit) ** 2
    value = float(np.sum(squares**2) - kappa / len(squares) * np.sum(squares.sum(axis=0) ** 2))
    return value * power(unit, 4) if value else 0.0
