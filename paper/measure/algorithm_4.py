"""The paper's Algorithm 4, as printed: pairs of columns drawn at random, each turned to the best angle of Σ T(u_i, u_i, u_i).

`givens.decompose` begins elsewhere and takes pairs in blocks; this is what the paper describes, compiled. The auxiliary arrays
T(u_i, ·, ·) make a rotation O(d²), as the paper says can be done.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from givens.rotations import random_orthogonal

TOLERANCE = 1e-4
SWEEPS = 200


class Components(NamedTuple):
    """λ in descending order, none negative, and the v as columns."""

    weights: np.ndarray
    factors: np.ndarray
    flops: float = 0.0


def algorithm_4(
    T: np.ndarray, rng: np.random.Generator, *, tol: float = TOLERANCE, sweeps: int = SWEEPS
) -> Components:
    """Decompose a symmetric tensor from a random start.

    The run ends when as many rotations as there are pairs gained no more than `tol` of the value, or after so many times that.
    """
    from givens.kernels.tensor import turn_pairs

    d = len(T)
    V = np.ascontiguousarray(random_orthogonal(d, rng).T)
    S = np.ascontiguousarray((V @ T.reshape(d, d * d)).reshape(d, d, d))
    W = np.einsum("ikl,il->ik", S, V)
    pairs = np.column_stack(np.triu_indices(d, 1)).astype(np.int64)
    floor = float(np.finfo(np.float64).eps * np.linalg.norm(T))
    flops = 2.0 * d**4 + 2.0 * d**3
    for _ in range(sweeps if len(pairs) else 0):
        drawn = pairs[rng.integers(len(pairs), size=len(pairs))]
        gain, _, spent = turn_pairs(S, S, drawn, d, floor, 1, 0.0, V, W)
        flops += spent
        if gain <= tol * float(np.sum(V * W)):
            break
    heights = np.sum(V * W, axis=1)
    order = np.argsort(-np.abs(heights), kind="stable")
    signs = np.where(heights < 0, -1.0, 1.0)
    return Components(np.abs(heights)[order], np.ascontiguousarray((V * signs[:, None])[order].T), flops)
