"""The protocol is small: `JointDiagonal` written anew, with its test, by what an outsider would write."""

from __future__ import annotations

import numpy as np
import pytest

from givens import check_objective, minimize
from givens.objectives import JointDiagonal, Look, Objective, PairSolutions
from givens.rotations import rotate_blocks, turn


class OffDiagonal(Objective):
    """The sum of the squared off-diagonal entries of all B_k = UᵀC_kU."""

    method = ("sweeps", "descent")

    def __init__(self, C):
        self.C = C  # (K, n, n), symmetric
        self.shape, self.active, self.scale = C.shape[1:], C.shape[1], float(np.sum(C**2))

    def state(self, U):
        return U.T @ self.C @ U

    def look(self, B, Q=None, slopes=True):
        B = B if Q is None else Q.T @ B @ Q
        diagonals = np.diagonal(B, axis1=1, axis2=2)
        apart = diagonals[:, :, None] - diagonals[:, None, :]
        bends = np.sum(4 * apart**2 - 16 * B**2, axis=0)
        return Look(np.sum(B**2) - np.sum(diagonals**2), -4 * np.sum(apart * B, axis=0), bends)

    def solve(self, B, blocks, min_gain=0.0):
        i, j = np.asarray(blocks).T
        apart, twice = B[:, i, i] - B[:, j, j], 2 * B[:, i, j]
        a, b = np.sum(apart**2 - twice**2, axis=0) / 2, np.sum(apart * twice, axis=0)
        gains = (np.hypot(a, b) - a) / 2
        gains[gains < 1e-15 * self.scale] = 0
        return PairSolutions(turn(np.arctan2(b, a) / 4), gains)

    def apply(self, B, blocks, rotations, solutions=None):
        for matrix in B:
            rotate_blocks(matrix, blocks, rotations)
            rotate_blocks(matrix.T, blocks, rotations)


@pytest.mark.parametrize("method", ["sweeps", "descent"])
def test_an_objective_of_thirty_lines_does_what_ours_does(rng, method):
    C = rng.standard_normal((3, 6, 6))
    C += C.transpose(0, 2, 1)
    assert check_objective(OffDiagonal(C))
    ours = minimize(JointDiagonal(C), np.eye(6))
    found = minimize(OffDiagonal(C), ours.U, method=method, tol=1e-9)
    assert found.converged
    assert found.value == pytest.approx(ours.value, rel=1e-12)
    assert minimize(OffDiagonal(C), np.eye(6), method="sweeps").value == pytest.approx(ours.value, rel=1e-9)
