"""Compiled linearisation of the sparse PCA objective, through the few entries that exceed their threshold."""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import kernel

CHUNK = 16  # entries that are looked at together: most chunks hold nothing


@kernel
def linearise(T: np.ndarray, levels: np.ndarray, l0: bool, B: np.ndarray, E: np.ndarray) -> tuple[float, int]:
    """E ← E + S(T)B for the rows T of a tile and its features B; returns Σ φ(T) and the number of non-zeros of S.

    For ℓ0 a level is √γ: |t| > level is what t² > γ means.
    """
    total = 0.0
    nonzeros = 0
    for j in range(len(levels)):
        level = levels[j]
        t = T[j]
        e = E[j]
        for start in range(0, len(t), CHUNK):
            stop = min(start + CHUNK, len(t))
            above = 0
            for k in range(start, stop):
                above += abs(t[k]) > level
            if above == 0:
                continue
            nonzeros += above
            for k in range(start, stop):
                if abs(t[k]) > level:
                    size = abs(t[k]) - level
                    s = t[k] if l0 else np.copysign(size, t[k])
                    total += t[k] * t[k] - level * level if l0 else size * size
                    b = B[k]
                    for i in range(len(e)):
                        e[i] += s * b[i]
    return total, nonzeros
