"""Gradients of functions written in PyTorch, JAX or autograd.

Each of these wraps a function of a matrix so that it returns its value and its gradient, both as NumPy arrays, which is what
`minimize(..., jac=True)` asks for. The library is imported when the wrapper is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from givens.support.extras import require

WithGradient = Callable[[np.ndarray], tuple[float, np.ndarray]]


def autograd(f: Callable[[Any], Any]) -> WithGradient:
    """Wrap a function written with `autograd.numpy`.

    Examples
    --------
    >>> import autograd.numpy as np
    >>> from givens import autodiff, minimize
    >>> M = np.arange(9.0).reshape(3, 3)
    >>> result = minimize(autodiff.autograd(lambda U: -np.sum(M * U)), n=3, jac=True, determinant="both")
    >>> bool(np.isclose(-result.value, np.linalg.svd(M)[1].sum()))
    True
    """
    both = require("autograd", extra="autograd").value_and_grad(f)

    def with_gradient(U: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = both(U)
        return float(value), gradient

    return with_gradient


def torch(f: Callable[[Any], Any]) -> WithGradient:
    """Wrap a function of a PyTorch tensor, which it gets in double precision."""
    library = require("torch", extra="torch")

    def with_gradient(U: np.ndarray) -> tuple[float, np.ndarray]:
        tensor = library.from_numpy(np.ascontiguousarray(U)).requires_grad_(True)
        value = f(tensor)
        (gradient,) = library.autograd.grad(value, tensor)
        return float(value.detach()), gradient.numpy()

    return with_gradient


def jax(f: Callable[[Any], Any]) -> WithGradient:
    """Wrap a function of a JAX array, compiled by `jax.jit`.

    Double precision has to be switched on before JAX makes its first array: `jax.config.update("jax_enable_x64", True)`.
    """
    library = require("jax", extra="jax")
    both = library.jit(library.value_and_grad(f))

    def with_gradient(U: np.ndarray) -> tuple[float, np.ndarray]:
        if not library.config.jax_enable_x64:
            raise ValueError(
                'JAX computes in single precision; call jax.config.update("jax_enable_x64", True) before anything else of JAX'
            )
        value, gradient = both(U)
        return float(value), np.asarray(gradient)

    return with_gradient
