"""Factor rotation beside values that others have published.

Sources: the tests of the R package GPArotation (`tests/Harman.R`, `tests/rotations.R`, `tests/KaiserNormalization.R`, the
last with figures from SPSS), and the output of `psych::principal(Harman74.cor$cov, 4, rotate = "varimax")` as printed in
M. Clark's notes on structural equation modelling.
"""

from __future__ import annotations

import numpy as np
import pytest

from givens import FactorRotation
from givens.datasets import psychological_tests
from givens.factors import align, target_rotation

HARMAN8 = np.array(
    [
        [0.830, -0.396],
        [0.818, -0.469],
        [0.777, -0.470],
        [0.798, -0.401],
        [0.786, 0.500],
        [0.672, 0.458],
        [0.594, 0.444],
        [0.647, 0.333],
    ]
)
HARMAN8_QUARTIMAX = np.array(
    [
        [0.898755404698461491, 0.194819718009510034],
        [0.933943963768413821, 0.129744643590955028],
        [0.902131929972106672, 0.103860391510923730],
        [0.876508987992224209, 0.171280454135453869],
        [0.315575786273609882, 0.876474713336210853],
        [0.251126515144778573, 0.773487862471829213],
        [0.198010187248201075, 0.714677525703678707],
        [0.307860074444663512, 0.659333128670876345],
    ]
)
# Two factors of ability.cov: Varimax(L, eps=1e-8), cfT(L, eps=1e-8), whose κ = 0 is quartimax, and targetT(L, ...).
ABILITY_VARIMAX = np.array(
    [
        [0.515866523962843160, 0.527879475961036904],
        [0.175054634278874244, 0.616460231981747930],
        [0.232057748479543163, 0.853211588623112749],
        [0.122822468397975171, 0.464213243286899446],
        [0.961376376417989453, 0.152689863976982837],
        [0.791292800869773050, 0.200653429940987366],
    ]
)
ABILITY_QUARTIMAX = np.array(
    [
        [0.534721263659975854, 0.508771247100584523],
        [0.197355957387199576, 0.609686779159006154],
        [0.262930651479430233, 0.844208674501022327],
        [0.139621992686633722, 0.459439868910532512],
        [0.966292974385164483, 0.117629160286744874],
        [0.798066049992627313, 0.171745962120156664],
    ]
)
ABILITY_TARGET = np.array(
    [
        [0.551529228817982942, 0.4905002767031292898],
        [0.217748645523411000, 0.6027046291262584399],
        [0.291173432863349457, 0.8348885228488550636],
        [0.154994397662456290, 0.4544843569140373241],
        [0.969702339393929247, 0.0850652965070581996],
        [0.803390575440818822, 0.1448091121037717866],
    ]
)
# Varimax with Kaiser's normalisation of four principal components of the 24 tests, to two digits as printed.
TESTS_VARIMAX = np.array(
    [
        0.16, 0.71, 0.23, 0.14, 0.09, 0.59, 0.08, 0.03,
        0.14, 0.66, -0.04, 0.11, 0.25, 0.62, 0.09, 0.03,
        0.79, 0.15, 0.22, 0.11, 0.81, 0.18, 0.07, 0.21,
        0.85, 0.15, 0.15, 0.06, 0.64, 0.31, 0.24, 0.11,
        0.84, 0.16, 0.06, 0.19, 0.18, -0.13, 0.83, 0.12,
        0.18, 0.05, 0.63, 0.37, 0.02, 0.17, 0.8, 0.05,
        0.18, 0.41, 0.62, 0.03, 0.23, -0.01, 0.06, 0.68,
        0.12, 0.08, 0.05, 0.67, 0.06, 0.46, 0.05, 0.58,
        0.14, 0.01, 0.24, 0.68, -0.02, 0.32, 0.4, 0.5,
        0.14, 0.25, 0.2, 0.42, 0.43, 0.43, 0.09, 0.3,
        0.18, 0.42, 0.5, 0.17, 0.42, 0.41, 0.13, 0.29,
        0.42, 0.52, 0.25, 0.2, 0.4, 0.14, 0.55, 0.26,
    ]
).reshape(24, 4)  # fmt: skip


def test_quartimax_of_eight_physical_variables():
    # GPArotation stops at a gradient of 1e-5.
    model = FactorRotation("quartimax", normalize=False).fit(HARMAN8)
    np.testing.assert_allclose(model.loadings_, HARMAN8_QUARTIMAX, atol=1e-5)


@pytest.mark.parametrize(
    ("method", "before", "published"),
    [("varimax", ABILITY_QUARTIMAX, ABILITY_VARIMAX), ("quartimax", ABILITY_VARIMAX, ABILITY_QUARTIMAX)],
)
def test_varimax_and_quartimax_of_the_ability_tests(method, before, published):
    model = FactorRotation(method, normalize=False).fit(before)
    np.testing.assert_allclose(align(model.loadings_, published), published, atol=2e-7)


def test_target_rotation_of_the_ability_tests():
    # The columns of this target are the factors in reverse. GPArotation's search stays among rotations of determinant 1, so what
    # it published is the nearest of these; among the other orthogonal matrices there is a nearer one, which reverses the columns.
    target = np.column_stack((np.repeat([1.0, 0.0], 3), np.repeat([0.0, 1.0], 3)))
    R = target_rotation(ABILITY_VARIMAX, target)
    assert np.linalg.det(R) == pytest.approx(-1)
    assert np.sum((ABILITY_VARIMAX @ R - target) ** 2) < np.sum((ABILITY_TARGET - target) ** 2) - 4
    # With the columns of the loadings reversed, their halves change places.
    reversed_loadings = ABILITY_VARIMAX[:, ::-1]
    np.testing.assert_allclose(
        reversed_loadings @ target_rotation(reversed_loadings, ABILITY_TARGET), ABILITY_TARGET, atol=1e-5
    )


def test_quartimax_with_kaisers_normalisation_as_in_spss():
    loadings = np.array(
        [
        0.758, 0.413, 0.001164, 0.693, 0.489, -0.199, 0.362, 0.656,
        -0.204, 0.826, 0.06589, 0.235, 0.54, -0.51, 0.441, 0.654,
        -0.335, 0.507, -0.349, 0.539, 0.669, -0.58, 0.45, 0.551,
    ]
    ).reshape(8, 3)  # fmt: skip
    published = np.array(
        [
        0.814, 0.285, -0.0499, 0.856, 0.08321, -0.135, 0.746, -0.203,
        0.07244, 0.576, 0.634, -0.0873, -0.061, 0.85, -0.142, 0.129,
        0.882, -0.0386, 0.02063, -0.0415, 0.927, -0.181, -0.22, 0.873,
    ]
    ).reshape(8, 3)  # fmt: skip
    model = FactorRotation("quartimax").fit(loadings)
    # The loadings before have three digits.
    np.testing.assert_allclose(model.loadings_, published, atol=1e-3)


def test_varimax_of_the_24_psychological_tests(tests_of_24):
    model = FactorRotation("varimax").fit(tests_of_24)
    np.testing.assert_allclose(model.loadings_, TESTS_VARIMAX, atol=0.005 + 1e-4)
    np.testing.assert_allclose(model.explained_variance_, [4.16, 3.31, 3.22, 2.74], atol=0.005)


def test_the_24_tests_have_their_published_correlations():
    table = psychological_tests()
    assert table.R.shape == (24, 24)
    assert table.R[0, 1] == 0.318
    assert table.R[9, 2] == -0.075
    assert table.R[23, 22] == 0.434
    np.testing.assert_array_equal(table.R, table.R.T)
    # Sums of squares of all loadings of four components, as published: 4.16 + 3.31 + 3.22 + 2.74.
    assert np.linalg.eigvalsh(table.R)[-4:].sum() == pytest.approx(13.43, abs=0.01)
