"""Derivatives of functions written in PyTorch, JAX or autograd.

Each of these wraps a function f of a matrix so that it returns its value and its gradient, both as NumPy arrays, which is what
`minimize(f, jac=True)` asks for; `minimize(f, jac=True, hess=f.hess)` uses second derivatives too. The library is imported when
the wrapper is made. All of it has to be in double precision: with single precision a gradient is wrong from its seventh digit on,
and runs would end there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from givens.support.imports import require

__all__ = ["autograd", "jax", "torch"]


@dataclass(frozen=True)
class WithGradient:
    """A function that returns its value and its gradient, with products of its second derivatives.

    Attributes
    ----------
    value_and_gradient : callable
        What a call computes.
    hess : callable
        `hess(U, V)`, the derivative of the gradient at U along V, for `minimize(f, jac=True, hess=f.hess)`.
    """

    value_and_gradient: Callable[[np.ndarray], tuple[float, np.ndarray]]
    hess: Callable[[np.ndarray, np.ndarray], np.ndarray]

    def __call__(self, U: np.ndarray) -> tuple[float, np.ndarray]:
        """The value and the gradient at U."""
        return self.value_and_gradient(U)


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
    # A seventh less time than `value_and_grad`, which looks for the argument among several.
    make_vjp = require("autograd.core", extra="autograd").make_vjp

    def with_gradient(U: np.ndarray) -> tuple[float, np.ndarray]:
        products, value = make_vjp(f, U)
        if isinstance(value, float):
            return float(value), products(1.0)
        if not isinstance(value, np.ndarray | np.generic):
            raise TypeError(f"f must return a real number, but it returned {type(value).__name__}")
        _check_number(value.shape, value.dtype.name)
        return float(value.item()), products(np.ones_like(value))

    def gradient(U: Any) -> Any:
        products, value = make_vjp(f, U)
        # autograd warns of a gradient that does not depend on U, as that of a linear f.
        return products(1.0 if isinstance(value, float) else np.ones(np.shape(value))) + 0.0 * U

    def hess(U: np.ndarray, V: np.ndarray) -> np.ndarray:
        # Second derivatives are symmetric, so a product from the left is one from the right.
        return np.asarray(make_vjp(gradient, U)[0](V))

    return WithGradient(with_gradient, hess)


def torch(f: Callable[[Any], Any]) -> WithGradient:
    """Wrap a function of a PyTorch tensor, which it gets in double precision.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> from givens import autodiff, minimize
    >>> M = torch.arange(9.0, dtype=torch.float64).reshape(3, 3)  # doctest: +SKIP
    >>> result = minimize(autodiff.torch(lambda U: -(M * U).sum()), n=3, jac=True, determinant="both")  # doctest: +SKIP
    >>> bool(abs(-result.value - torch.linalg.svdvals(M).sum()) < 1e-9)  # doctest: +SKIP
    True
    """
    library = require("torch", extra="torch")

    def with_gradient(U: np.ndarray) -> tuple[float, np.ndarray]:
        with library.inference_mode(False), library.enable_grad():
            tensor = library.from_numpy(np.array(U, dtype=np.float64)).requires_grad_(True)
            try:
                value = f(tensor)
            except RuntimeError as error:
                if "dtype" not in str(error):
                    raise
                raise TypeError(
                    f"f mixes tensors of single precision with U, which is in double precision ({error}); convert them "
                    "with .double()"
                ) from error
            if not isinstance(value, library.Tensor):
                raise TypeError(
                    f"f must return a tensor of one real number, but it returned {type(value).__name__}"
                )
            _check_number(value.shape, str(value.dtype).removeprefix("torch."))
            if not value.requires_grad:
                raise ValueError(
                    "PyTorch cannot differentiate what f returned: it does not depend on U, or a step such as detach() or "
                    "item() hides how"
                )
            (gradient,) = library.autograd.grad(value, tensor)
            return float(value.detach()), gradient.numpy()

    def hess(U: np.ndarray, V: np.ndarray) -> np.ndarray:
        with library.inference_mode(False), library.enable_grad():
            tensor = library.from_numpy(np.array(U, dtype=np.float64)).requires_grad_(True)
            (gradient,) = library.autograd.grad(f(tensor).sum(), tensor, create_graph=True)
            if not gradient.requires_grad:  # f is linear
                return np.zeros(U.shape)
            direction = library.from_numpy(np.array(V, dtype=np.float64))
            (product,) = library.autograd.grad(gradient, tensor, direction, materialize_grads=True)
            return np.asarray(product.numpy())

    return WithGradient(with_gradient, hess)


def jax(f: Callable[[Any], Any]) -> WithGradient:
    """Wrap a function of a JAX array, compiled by `jax.jit`.

    Double precision has to be switched on before JAX makes its first array.

    Examples
    --------
    >>> import jax  # doctest: +SKIP
    >>> jax.config.update("jax_enable_x64", True)  # doctest: +SKIP
    >>> from givens import autodiff, minimize
    >>> M = jax.numpy.arange(9.0).reshape(3, 3)  # doctest: +SKIP
    >>> result = minimize(autodiff.jax(lambda U: -(M * U).sum()), n=3, jac=True, determinant="both")  # doctest: +SKIP
    >>> bool(jax.numpy.isclose(-result.value, jax.numpy.linalg.svd(M)[1].sum()))  # doctest: +SKIP
    True
    """
    library = require("jax", extra="jax")
    both = library.jit(library.value_and_grad(f))
    product = library.jit(lambda U, V: library.jvp(library.grad(f), (U,), (V,))[1])

    def with_gradient(U: np.ndarray) -> tuple[float, np.ndarray]:
        if not library.config.jax_enable_x64:
            raise ValueError(
                'JAX computes in single precision; call jax.config.update("jax_enable_x64", True) before anything else of JAX'
            )
        try:
            value, gradient = both(U)
        except (library.errors.ConcretizationTypeError, library.errors.TracerArrayConversionError) as error:
            raise TypeError(
                "JAX cannot compile f, which asks for the values of arrays: write it with jax.numpy, without float(), NumPy's "
                "functions, and without if (jax.numpy.where, jax.lax.cond)"
            ) from error
        _check_number(value.shape, value.dtype.name)
        return float(value), np.asarray(gradient)

    return WithGradient(with_gradient, lambda U, V: np.asarray(product(U, V)))


def _check_number(shape: Sequence[int], dtype: str) -> None:
    """One real number in double precision, or an error."""
    if prod(shape) != 1:
        raise TypeError(f"f must return one real number, but it returned an array of shape {tuple(shape)}")
    if not dtype.startswith(("float", "bfloat")):
        raise TypeError(f"f must return a real number, but it returned one of type {dtype}")
    if dtype != "float64":
        raise ValueError(
            f"f must compute in double precision, but it returned a number of type {dtype}; convert its data to float64"
        )
