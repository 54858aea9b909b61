"""Certificates: how long they take beside a sweep, and how often they find a way out.

When a run has converged, `certify=True` searches every pair of columns over all angles. Each objective is run from twenty random
rotations, by its first phase only; what is searched there is what descent or leaps left, and a certificate that gains more than
1e-11 of the scale has found a way out of a local minimum. The time of a certificate is that of a run that starts where another
one had converged, less that of the same run without a certificate. Beside it stand a sweep of exact rotations of one pair after
the other, from there, less a run of no sweep, and a sweep in the objective's own order, in blocks where those are faster: there
pairs of sparse columns are not solved exactly. From there a sweep turns nothing, so these are the shortest sweeps that there are.
"""

from __future__ import annotations

import numpy as np

from givens import minimize
from givens.objectives import (
    Columns,
    Exp,
    Function,
    JointDiagonal,
    LogCosh,
    SparseColumns,
    SymmetricTensor,
)
from givens.rotations import random_orthogonal

STARTS = 20
REPEAT = 9  # and 3 of plain functions, which take much longer


def objectives():
    """Name, order, and the objective."""
    rng = np.random.default_rng(0)
    n = 16
    mixed = rng.laplace(size=(5_000, n)) @ np.linalg.qr(rng.standard_normal((n, n)))[0]
    small, large = rng.standard_t(4, size=(200, n)), rng.standard_t(4, size=(5_000, 32))
    matrices = rng.standard_normal((20, n, n))
    tensor = rng.standard_normal((n, n, n))
    orders = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
    tensor = sum(tensor.transpose(order) for order in orders) / 6
    A = rng.standard_normal((30, 10))
    T = tensor[:10, :10, :10]

    def cubic(U):
        images = np.einsum("abc,bi,ci->ai", T, U, U)
        return -float(np.sum(U * images)), -3 * images

    def quartic(U):
        Y = A @ U
        return -float(np.sum(Y**4)), -4 * A.T @ Y**3

    def log_cosh(U):
        Y = A @ U
        return float(np.sum(np.log(np.cosh(Y)))), A.T @ np.tanh(Y)

    return {
        "kurtosis": Columns(mixed, "kurtosis"),
        "log cosh": Columns(mixed, LogCosh()),
        "exp": Columns(mixed, Exp()),
        "varimax": Columns(large, "varimax"),
        "varimax, 200 rows": Columns(small, "varimax"),
        "quartimax": Columns(large, "quartimax"),
        "quartimax, 200 rows": Columns(small, "quartimax"),
        "joint diagonalisation": JointDiagonal(matrices + matrices.transpose(0, 2, 1)),
        "symmetric tensor": SymmetricTensor(tensor),
        "sparse columns": SparseColumns(large, 2.0),
        "sparse columns, 200 rows": SparseColumns(small, 2.0),
        "cubic, plain function": Function(cubic, 10, jac=True),
        "quartic, plain function": Function(quartic, 10, jac=True),
        "log cosh, plain function": Function(log_cosh, 10, jac=True),
    }


def run(report):
    for name, objective in objectives().items():
        # Descent by itself; an objective without slopes, by sweeps.
        smooth = objective.look(objective.state(np.eye(objective.n))).slopes is not None
        phases = ["descent"] if smooth else ["sweeps"]
        rng = np.random.default_rng(1)
        starts = [random_orthogonal(objective.n, rng, determinant=1) for _ in range(STARTS)]
        certified = [minimize(objective, start, method=phases, certify=True) for start in starts]
        found = sum("certificate" in result.trace.phase for result in certified)
        converged = sum(result.converged for result in certified)
        U = certified[0].U
        runs = {
            "plain": lambda o=objective, U=U, p=phases: minimize(o, U, method=p),
            "certified": lambda o=objective, U=U, p=phases: minimize(o, U, method=p, certify=True),
            "none": lambda o=objective, U=U: minimize(o, U, method="sweeps", max_iter=0),
            "pairs": lambda o=objective, U=U: minimize(o, U, method="tournament", max_iter=1),
            "blocks": lambda o=objective, U=U: minimize(o, U, method="sweeps", max_iter=1),
        }
        repeat = 3 if isinstance(objective, Function) else REPEAT
        seconds = {key: timing.best for key, timing in report.race(runs, repeat=repeat, warm=1).items()}
        # What is too short to be measured is 0.
        certificate = max(seconds["certified"] - seconds["plain"], 0.0)
        sweeps = {
            "exact pairs": seconds["pairs"] - seconds["none"],
            "its own order": seconds["blocks"] - seconds["none"],
        }
        report.row(
            objective=name,
            order=objective.n,
            certificate_seconds=certificate,
            sweep_of_pairs_seconds=sweeps["exact pairs"],
            own_sweep_seconds=sweeps["its own order"],
            ways_out=f"{found} of {STARTS}",
            converged=f"{converged} of {STARTS}",
            largest_certificate_over_scale=max(
                result.certificate.gain / (abs(objective.factor) * objective.scale)
                for result in certified
                if result.certificate is not None
            ),
        )
        for kind, sweep in sweeps.items():
            ratio = certificate / sweep if sweep > 0 else float("inf")
            report.claim(
                f"{name}: time to certify after convergence, over that of a sweep of {kind}",
                "at most 2",
                ratio,
                ratio <= 2,
            )
