"""Joint diagonalisation: eigenvalues of one matrix, the common basis of many."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from benchmarks._flat_stacks import flat_stack
from givens import joint_diagonalize, minimize, rotations
from givens.objectives import JointDiagonal


def test_one_matrix_of_order_200_has_the_eigenvalues_of_scipy(rng):
    A = rng.standard_normal((200, 200))
    A += A.T
    result = minimize(JointDiagonal(A))
    found = np.sort(np.diag(result.U.T @ A @ result.U))
    assert np.abs(found - np.linalg.eigvalsh(A)).max() <= 1e-10 * np.linalg.norm(A, 2)


def test_a_shared_basis_is_recovered(rng):
    basis = rotations.random_orthogonal(50, rng)
    stack = np.array([basis @ np.diag(rng.standard_normal(50)) @ basis.T for _ in range(20)])
    result = minimize(JointDiagonal(stack))
    overlap = np.abs(basis.T @ result.U)
    assert np.abs(np.sort(overlap, axis=0)[-1] - 1).max() < 1e-8
    assert np.abs(np.sort(overlap, axis=0)[:-1]).max() < 1e-8


@pytest.mark.parametrize("number", [3, 60])
def test_multiples_of_the_identity_change_nothing(number, rng):
    stack = rng.standard_normal((number, 8, 8))
    # Multiples of 2⁻²⁰, so that adding a million is exact.
    stack = np.round((stack + stack.swapaxes(1, 2)) * 2.0**20) / 2.0**20
    far = stack + 1e6 * rng.integers(1, 4, size=(number, 1, 1)) * np.eye(8)
    np.testing.assert_allclose(minimize(JointDiagonal(far)).U, minimize(JointDiagonal(stack)).U, atol=1e-12)
    np.testing.assert_allclose(joint_diagonalize(far)[0], joint_diagonalize(stack)[0], atol=1e-12)


def test_a_look_elsewhere_copies_a_few_matrices_at_a_time(rng):
    objective = JointDiagonal(rng.standard_normal((200, 60, 60)))
    state, Q = objective.state(np.eye(60)), rotations.random_orthogonal(60, rng)
    objective.look(state, Q)  # compiled
    tracemalloc.start()
    objective.look(state, Q)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < state.nbytes


def test_of_matrices_that_are_not_symmetric_all_entries_off_the_diagonal_count(rng):
    stack = 1e3 * rng.standard_normal((4, 5, 5))
    objective = JointDiagonal(stack)
    U = rotations.random_orthogonal(5, rng)
    turned = U.T @ stack @ U
    off = np.sum(turned**2) - np.sum(np.einsum("kii->ki", turned) ** 2)
    assert np.isclose(objective.factor * objective.look(objective.state(U)).value, off, rtol=1e-12)
    symmetric = minimize(JointDiagonal(stack + stack.swapaxes(1, 2)))
    np.testing.assert_allclose(np.abs(symmetric.U), np.abs(minimize(objective).U), atol=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_flat_stacks_converge(seed):
    """Where sweeps would gain little for hundreds of sweeps, they give way, and no pair is left that gains."""
    problem = JointDiagonal(flat_stack(seed))
    result = minimize(problem, certify=True)
    assert result.converged, result.message
    assert result.certificate.gain <= 1e-12 * result.scale


@pytest.mark.parametrize("stop", [2, 6, 12, 24])
def test_a_run_resumes_before_and_after_sweeps_give_way(tmp_path, stop):
    problem = JointDiagonal(flat_stack(5))
    whole = minimize(problem, checkpoint=tmp_path / "whole")
    assert [phase.steps > 0 for phase in whole.phases] == [True, True, True, False]
    minimize(problem, checkpoint=tmp_path / "part", callback=lambda at: at.step == stop)
    resumed = minimize(problem, checkpoint=tmp_path / "part")
    np.testing.assert_array_equal(resumed.U, whole.U)
    assert resumed.trace.value == whole.trace.value
    assert resumed.flops == whole.flops


def test_other_phases_take_no_step_where_sweeps_converge_soon(rng):
    basis = rotations.random_orthogonal(12, rng)
    result = minimize(JointDiagonal(np.einsum("ia,ka,ja->kij", basis, rng.standard_normal((4, 12)), basis)))
    assert result.converged
    assert {phase.name for phase in result.phases if phase.steps} == {"sweeps"}
