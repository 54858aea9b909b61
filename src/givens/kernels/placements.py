"""Factors of the sum over words of f⊗f⊗g + f⊗g⊗f + g⊗f⊗f, which is one matrix product (see `topics.word_moments`)."""

from __future__ import annotations

from givens.kernels.compile import kernel


@kernel
def partners(f, g, low, high, out):  # type: ignore[no-untyped-def]
    """Write f_a g_b + ½ g_a f_b, for low ≤ a < high and all b ≥ a, into rows of `out`; f_a and g_a are rows of f and g."""
    r, n = f.shape
    row = 0
    for a in range(low, high):
        for b in range(a, r):
            for v in range(n):
                out[row, v] = f[a, v] * g[b, v] + f[b, v] * (0.5 * g[a, v])
            row += 1
