"""Joint diagonalisation: accuracy beside LAPACK, speed beside pyRiemann.

For one random symmetric matrix this is Jacobi's eigenvalue method, whose accuracy is compared with `scipy.linalg.eigh`.
Sets of matrices that share a basis are diagonalised jointly; `rjd` is pyRiemann's function for the same
criterion, at its default tolerance, which it reaches.

Flat stacks are those of `_flat_stacks`, where sweeps alone often gain little for hundreds of sweeps. A run is certified if no
rotation of two columns, by any angle, gains more than 1e-12 of the size of f.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from pyriemann.geometry.ajd import rjd

from benchmarks._flat_stacks import flat_stack
from givens import joint_diagonalize, minimize
from givens.objectives import JointDiagonal
from givens.rotations import random_orthogonal

FLAT = range(1000, 1050)
"""Seeds; others were used to choose when sweeps give way."""


def run(report):
    _one_matrix(report)
    ratio, error = _many(report, noise=0.0)
    report.claim(
        "20 matrices of order 50 with a common basis: largest error of the basis",
        "≤ 1e-8",
        error,
        error <= 1e-8,
    )
    report.claim("20 matrices of order 50: faster than rjd", "≥ 20 times", f"{ratio:.1f} times", ratio >= 20)
    report.ratio("joint diagonalisation, 20 of order 50", "pyRiemann rjd", ratio, wanted=20)
    _many(report, noise=1e-3)
    _long_stack(report)
    _flat(report)


def _one_matrix(report):
    A = np.random.default_rng(0).standard_normal((200, 200))
    A = (A + A.T) / 2
    timings = report.race(
        {"eigh": lambda: scipy.linalg.eigh(A), "givens": lambda: minimize(JointDiagonal(A))}, repeat=3, warm=1
    )
    U = timings["givens"].value.U
    exact = timings["eigh"].value[0]
    found = np.sort(np.diag(U.T @ A @ U))
    error = np.abs(found - exact).max() / np.abs(exact).max()
    report.row(matrices=1, order=200, method="givens", seconds=timings["givens"].best, relative_error=error)
    report.row(matrices=1, order=200, method="scipy eigh", seconds=timings["eigh"].best, relative_error=0.0)
    report.claim("order 200: eigenvalues off by, relative to ‖A‖₂", "≤ 1e-10", error, error <= 1e-10)


def _many(report, noise):
    rng = np.random.default_rng(1)
    basis = random_orthogonal(50, rng)
    matrices = np.einsum("ia,ka,ja->kij", basis, rng.standard_normal((20, 50)), basis)
    disturbance = rng.standard_normal(matrices.shape)
    matrices = matrices + noise * (disturbance + disturbance.swapaxes(1, 2)) / 2
    timings = report.race(
        {"givens": lambda: joint_diagonalize(matrices)[0].T, "rjd": lambda: rjd(matrices)[0]},
        repeat=5,
        warm=1,
    )
    ratio = timings["rjd"].best / timings["givens"].best
    errors = {}
    for name, timing in timings.items():
        V = timing.value
        errors[name] = _error(V, basis)
        report.row(
            matrices=20,
            order=50,
            noise=noise,
            method="pyRiemann rjd" if name == "rjd" else name,
            seconds=timing.best,
            error_of_basis=errors[name],
            off_diagonal=_off_diagonal(matrices, V),
        )
    return ratio, errors["givens"]


def _long_stack(report):
    """1,000 of order 30: more than the 465 that span all symmetric matrices of that order."""
    found = report.peak(_diagonalize_many)
    matrices = stack(1000, 30)
    timings = report.race(
        {"givens": lambda: joint_diagonalize(matrices), "rjd": lambda: rjd(matrices)}, repeat=3
    )
    ratio = timings["rjd"].best / timings["givens"].best
    size = 1000 * 30 * 30 * 8
    # Of what is returned, D has the size of the stack.
    report.row(
        matrices=1000,
        order=30,
        seconds=timings["givens"].best,
        rjd_seconds=timings["rjd"].best,
        memory_beyond_the_stack_and_the_outcome_mb=(found.bytes - found.before - 2 * size) / 1e6,
        stack_mb=size / 1e6,
    )
    report.claim(
        "1,000 matrices of order 30: faster than rjd", "≥ 20 times", f"{ratio:.1f} times", ratio >= 20
    )


def _flat(report):
    """50 stacks, as they are and with multiples of the identity added, which change f at no U."""
    certified, apart, seconds, alone = 0, 0.0, 0.0, 0
    for seed in FLAT:
        C = flat_stack(seed)
        problem = JointDiagonal(C)
        timing = report.time(lambda problem=problem: minimize(problem, certify=True, threads=1), repeat=1)
        result = timing.value
        seconds += timing.best
        certified += result.converged and result.certificate.gain <= 1e-12 * result.scale
        alone += minimize(problem, method="sweeps", threads=1).converged
        moved = C + 100 * np.abs(C).max() * np.array([1.0, -2.0, 3.0])[:, None, None] * np.eye(problem.n)
        other = minimize(JointDiagonal(moved), threads=1).U
        values = [problem.look(problem.state(U)).value for U in (result.U, other)]
        apart = max(apart, abs(values[0] - values[1]) / problem.scale)
    report.row(flat_stacks=len(FLAT), certified=certified, by_sweeps_alone=alone, seconds=seconds)
    report.claim("flat stacks: converged and certified", "all 50", certified, certified == len(FLAT))
    report.claim("flat stacks: value with another origin, off by", "≤ 1e-12", apart, apart <= 1e-12)


def stack(number, order):
    rng = np.random.default_rng(2)
    basis = random_orthogonal(order, rng)
    matrices = np.einsum("ia,ka,ja->kij", basis, rng.standard_normal((number, order)), basis)
    disturbance = 1e-3 * rng.standard_normal(matrices.shape)
    return matrices + disturbance + disturbance.swapaxes(1, 2)


def _diagonalize_many():
    joint_diagonalize(stack(10, 30))  # imports and compiles
    joint_diagonalize(stack(1000, 30))


def _error(V, basis):
    """The largest entry of |VᵀB| that is wrong, once columns are matched."""
    overlap = np.abs(V.T @ basis)
    matched = np.zeros_like(overlap)
    matched[np.arange(len(overlap)), overlap.argmax(axis=1)] = 1
    return np.abs(overlap - matched).max()


def _off_diagonal(matrices, V):
    """What is left off the diagonals, relative to all there is."""
    rotated = V.T @ matrices @ V
    diagonal = np.einsum("kii->ki", rotated)
    return 1 - np.sum(diagonal**2) / np.sum(matrices**2)
