"""One list of objectives that every property is tested on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from givens.objectives import (
    Columns,
    Exp,
    Function,
    JointDiagonal,
    Kurtosis,
    LogCosh,
    MomentTensor,
    Objective,
    Orthomax,
    SparseColumns,
    SymmetricTensor,
)

N = 6


def _data(seed: int, rows: int = 40) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_t(4, size=(rows, N)) @ rng.standard_normal((N, N))


def _whitened(seed: int) -> np.ndarray:
    """Light-tailed sources, turned: what the minimum of Σ y⁴ is for."""
    rng = np.random.default_rng(seed)
    S = rng.uniform(-1, 1, size=(200, N))
    return np.linalg.qr(S - S.mean(0))[0] @ np.linalg.qr(rng.standard_normal((N, N)))[0]


def _stack(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((3, N, N))


def _cubic(seed: int) -> Function:
    T = np.random.default_rng(seed).standard_normal((N, N, N))
    return Function(lambda U: float(np.einsum("abc,ai,bi,ci->", T, U, U, U)), N, degree=3)


def _quartic(seed: int) -> Function:
    A = np.random.default_rng(seed).standard_normal((10, N))
    return Function(
        lambda U: -float(np.sum((A @ U) ** 4)), N, degree=4, jac=lambda U: -4 * A.T @ (A @ U) ** 3
    )


def _smooth(seed: int) -> Function:
    A = np.random.default_rng(seed).standard_normal((10, 4))
    return Function(lambda U: float(np.sum(np.log(np.cosh(A @ U)))), 4)


def _tensor(seed: int, rank: int | None = None) -> SymmetricTensor:
    T = np.random.default_rng(seed).standard_normal((N, N, N))
    return SymmetricTensor(T, rank, symmetrize=True)


def _moments(seed: int, rank: int | None = None) -> MomentTensor:
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((N, N))
    return MomentTensor(rng.exponential(size=(30, N)), rng.standard_normal(N), 0.1 * (G + G.T), rank)


def value_at(objective: Objective, state: object) -> float:
    """f at a state."""
    return objective.look(state, slopes=False).value


CASES: dict[str, Callable[[int], Objective]] = {
    "varimax": lambda seed: Columns(_data(seed), "varimax"),
    "quartimax": lambda seed: Columns(_data(seed), "quartimax"),
    "orthomax": lambda seed: Columns(_data(seed), Orthomax(2.5)),
    "kurtosis": lambda seed: Columns(_data(seed), Kurtosis(1)),
    "light-tailed": lambda seed: Columns(_whitened(seed), Kurtosis(-1)),
    "varimax, 3 of 6 columns": lambda seed: Columns(_data(seed), "varimax", active=3),
    "light-tailed, 1 of 6 columns": lambda seed: Columns(_whitened(seed), Kurtosis(-1), active=1),
    "logcosh": lambda seed: Columns(_data(seed), LogCosh()),
    "logcosh, 2 of 6 columns": lambda seed: Columns(_data(seed), LogCosh(), active=2),
    "logcosh, signs": lambda seed: Columns(_data(seed), LogCosh([1, -1, 1, 1, -1, 1])),
    "exp": lambda seed: Columns(_data(seed), Exp()),
    "sparse, l1": lambda seed: SparseColumns(_data(seed), 1.5),
    "sparse, l0": lambda seed: SparseColumns(_data(seed), 4.0, "l0"),
    "sparse, l1, 2 of 6 columns": lambda seed: SparseColumns(_data(seed), np.array([1.0, 2.0]), active=2),
    "sparse, l0, 3 of 6 columns": lambda seed: SparseColumns(_data(seed), 4.0, "l0", active=3),
    "joint": lambda seed: JointDiagonal(_stack(seed)),
    "one matrix": lambda seed: JointDiagonal(_stack(seed)[0]),
    "tensor": _tensor,
    "tensor, 2 of 6 columns": lambda seed: _tensor(seed, 2),
    "moments": _moments,
    "moments, 3 of 6 columns": lambda seed: _moments(seed, 3),
    "cubic": _cubic,
    "quartic": _quartic,
    "smooth": _smooth,
}


# Of n x m matrices, m < n, of which `minimize` computes no other columns.
FEW: dict[str, Callable[[int], SparseColumns]] = {
    "few components, l1, 2 of 6": lambda seed: SparseColumns(_data(seed), 1.5, active=2),
    "few components, l0, 3 of 6": lambda seed: SparseColumns(_data(seed), 4.0, "l0", active=3),
    "few components, l1, 1 of 6": lambda seed: SparseColumns(_data(seed), 0.5, active=1),
    "few components, no threshold": lambda seed: SparseColumns(_data(seed), 0.0, active=2),
}
