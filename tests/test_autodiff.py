"""Functions written in autograd, PyTorch and JAX: value and gradient are those of NumPy, and misuse gets a sentence."""

from __future__ import annotations

import doctest
import sys
import warnings

import numpy as np
import pytest

from givens import autodiff, minimize, rotations

A = np.random.default_rng(1).standard_normal((10, 4))
LIBRARIES = ["autograd", "torch", "jax"]


class Library:
    """The functions of one of the libraries that the tests need, under NumPy's names."""

    def __init__(self, name):
        self.name = name
        self.wrap = getattr(autodiff, name)
        if name == "autograd":
            self.numpy = pytest.importorskip("autograd.numpy")
            self.array = np.asarray
        elif name == "torch":
            self.numpy = pytest.importorskip("torch")
            self.array = self.numpy.from_numpy
        else:
            jax = pytest.importorskip("jax")
            before = jax.config.jax_enable_x64
            jax.config.update("jax_enable_x64", True)
            self.restore = lambda: jax.config.update("jax_enable_x64", before)
            self.numpy, self.array = jax.numpy, jax.numpy.asarray

    def single(self, U):
        return U.float() if self.name == "torch" else U.astype("float32")

    restore = staticmethod(lambda: None)


@pytest.fixture(params=LIBRARIES)
def library(request):
    found = Library(request.param)
    yield found
    found.restore()


def log_cosh(library):
    data = library.array(A)
    return lambda U: library.numpy.sum(library.numpy.log(library.numpy.cosh(data @ U)))


def test_value_and_gradient_are_those_of_numpy(library):
    U = rotations.random_orthogonal(4, 0)
    before = U.copy()
    value, gradient = library.wrap(log_cosh(library))(U)
    assert type(value) is float
    assert value == pytest.approx(float(np.sum(np.log(np.cosh(A @ U)))), rel=1e-13)
    assert isinstance(gradient, np.ndarray)
    assert gradient.dtype == np.float64
    np.testing.assert_allclose(gradient, A.T @ np.tanh(A @ U), rtol=1e-12)
    assert np.array_equal(U, before)


def test_products_of_second_derivatives_are_those_of_numpy(library):
    U, V = rotations.random_orthogonal(4, 0), np.random.default_rng(1).standard_normal((4, 4))
    f = library.wrap(log_cosh(library))
    np.testing.assert_allclose(f.hess(U, V), A.T @ ((A @ V) / np.cosh(A @ U) ** 2), rtol=1e-11)
    data = library.array(A[:4])
    linear = library.wrap(lambda U: library.numpy.sum(data * U))
    np.testing.assert_array_equal(linear.hess(U, V), np.zeros((4, 4)))
    result = minimize(f, U, jac=True, hess=f.hess)
    assert result.converged
    assert "Newton" in result.method
    assert result.gradient_norm <= 1e-8


def test_a_tuple_instead_of_a_number_is_refused(library):
    f = log_cosh(library)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Output seems independent of input")  # autograd's, beside the error
        with pytest.raises(TypeError, match=r"(tuple|Output was)"):
            minimize(library.wrap(lambda U: (f(U), 1.0)), n=4, jac=True)


def test_data_in_single_precision_either_work_or_are_refused(library):
    """NumPy and JAX make products with them in double precision; PyTorch does not."""
    data = library.array(A.astype(np.float32))
    wrapped = library.wrap(lambda U: library.numpy.sum((data @ U) ** 4))
    if library.name == "torch":
        with pytest.raises(TypeError, match=r"f mixes tensors of single precision with U.*\.double\(\)"):
            minimize(wrapped, n=4, jac=True)
    else:
        assert minimize(wrapped, n=4, jac=True, random_state=0).converged


def test_the_example_of_the_docstring_runs(library):
    """Those of packages that most machines lack are skipped with the other doctests."""
    text = library.wrap.__doc__.replace("# doctest: +SKIP", "")
    test = doctest.DocTestParser().get_doctest(text, {}, library.name, None, None)
    assert len(test.examples) >= 5
    outcome = doctest.DocTestRunner().run(test)
    assert outcome.failed == 0
    assert outcome.attempted == len(test.examples)


def test_torch_needs_a_value_that_depends_on_u():
    torch = pytest.importorskip("torch")
    for hidden in (lambda U: U.detach().sum(), lambda U: torch.ones((), dtype=torch.float64)):
        with pytest.raises(ValueError, match="PyTorch cannot differentiate what f returned"):
            minimize(autodiff.torch(hidden), n=3, jac=True)
    with pytest.raises(TypeError, match="f must return a tensor of one real number, but it returned float"):
        minimize(autodiff.torch(lambda U: U.sum().item()), n=3, jac=True)
    with pytest.raises(TypeError, match="complex128"):
        minimize(autodiff.torch(lambda U: (1j * U).sum()), n=3, jac=True)
    with pytest.raises(RuntimeError, match="size of tensor"):  # not a matter of precision: as it is
        minimize(autodiff.torch(lambda U: (U + torch.ones(7)).sum()), n=3, jac=True)


def test_torch_works_where_gradients_are_switched_off():
    torch = pytest.importorskip("torch")
    wrapped = autodiff.torch(lambda U: (U**4).sum())
    expected = wrapped(np.eye(3))[1]
    for off in (torch.no_grad(), torch.inference_mode()):
        with off:
            assert np.array_equal(wrapped(np.eye(3))[1], expected)


def test_jax_needs_double_precision_and_a_function_that_it_can_compile():
    jax = pytest.importorskip("jax")
    library = Library("jax")
    try:
        for wrong in (
            lambda U: float(jax.numpy.sum(U)),
            lambda U: np.sum(np.asarray(U)),
            lambda U: jax.numpy.sum(U) if U[0, 0] > 0 else jax.numpy.sum(2 * U),
        ):
            with pytest.raises(TypeError, match="JAX cannot compile f"):
                minimize(autodiff.jax(wrong), n=3, jac=True)
        jax.config.update("jax_enable_x64", False)
        with pytest.raises(ValueError, match="JAX computes in single precision"):
            minimize(autodiff.jax(jax.numpy.sum), n=3, jac=True)
    finally:
        library.restore()


def test_autograd_accepts_arrays_of_one_number():
    anp = pytest.importorskip("autograd.numpy")
    value, gradient = autodiff.autograd(lambda U: anp.sum(U**2, keepdims=True))(np.eye(3))
    assert (value, gradient.tolist()) == (3.0, (2 * np.eye(3)).tolist())
    with pytest.warns(UserWarning, match="Output seems independent of input"):
        value, gradient = autodiff.autograd(lambda U: 3.0)(np.eye(2))
    assert value == 3.0
    assert not gradient.any()


def test_a_library_that_is_missing_is_named(monkeypatch):
    for name in LIBRARIES:
        for module in (name, "autograd.core"):
            monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ImportError, match=rf"pip install 'givens\[{name}\]'"):
            getattr(autodiff, name)(lambda U: 0.0)
