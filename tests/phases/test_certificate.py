"""The certificate: no rotation of two columns, by any angle, gains more than it says."""

from __future__ import annotations

import numpy as np
import pytest

from givens import minimize, rotations
from tests.cases import CASES


@pytest.mark.parametrize(
    "case", ["cubic", "quartic", "joint", "varimax", "kurtosis", "light-tailed, 1 of 6 columns"]
)
def test_no_angle_of_any_pair_gains_more_than_the_certificate_says(case):
    objective = CASES[case](5)
    result = minimize(objective, random_state=0, phases=["descent"], certify=True)
    assert result.converged
    certificate = result.certificate
    assert certificate.share == 1.0
    assert "certified by" in result.method
    assert 0 <= certificate.gain <= 1e-11 * objective.scale * abs(objective.factor)
    here = objective.value(objective.state(result.U))
    for i in range(objective.active):
        for j in range(i + 1, objective.n):
            for theta in np.linspace(-np.pi, np.pi, 60):
                there = objective.value(objective.state(rotations.rotate(result.U, i, j, theta)))
                assert abs(objective.factor) * (
                    here - there
                ) <= certificate.gain + 1e-12 * objective.scale * abs(objective.factor)


def test_a_local_minimum_that_a_pair_can_leave_is_left():
    """Σ u³ over the first column has a local minimum at (1, 1, 1)/√3 and global ones at −e."""

    def f(U):
        return float(np.sum(U[:, 0] ** 3))

    start = rotations.random_orthogonal(3, 0, determinant=1)
    start[:, 0] = 1 / np.sqrt(3)
    start = np.linalg.qr(start)[0]
    start *= np.sign(start[0, 0])

    def jac(U):
        return np.column_stack((3 * U[:, 0] ** 2, np.zeros((3, 2))))

    plain = minimize(f, start @ rotations.rotation(3, 0, 1, 0.1), jac=jac)
    assert plain.value == pytest.approx(3**-0.5)
    assert plain.certificate is None
    certified = minimize(f, start @ rotations.rotation(3, 0, 1, 0.1), jac=jac, certify=True)
    assert certified.value == pytest.approx(-1)
    assert certified.certificate.gain < 1e-10
    assert "certificate" in certified.trace.phase
    assert np.all(np.diff(certified.trace.value) <= 1e-14)
    # A plain function without slopes is certified unless told otherwise.
    assert minimize(f, start).value == pytest.approx(-1)
    assert minimize(f, start @ rotations.rotation(3, 0, 1, 0.1), certify=False).value == pytest.approx(
        3**-0.5
    )


def test_a_share_of_the_pairs_is_stated():
    result = minimize(CASES["quartic"](0), random_state=0, certify=0.4)
    assert result.certificate.pairs == 6
    assert result.certificate.share == pytest.approx(0.4)
    assert result.method.endswith("of exact searches of 40% of the pairs")
    with pytest.raises(ValueError, match="certify must be True, False or a share between 0 and 1, got 2"):
        minimize(CASES["quartic"](0), certify=2)
