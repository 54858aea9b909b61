"""The best angle of a pair of sparse PCA, exactly, by its sorted breakpoints.

Entry k of a rotated column is a = u·cos θ + v·sin θ, with (u, v) = (x, y) in the first column and (y, −x) in the second. It
exceeds its threshold on an arc around the angle at which |a| is largest, modulo π. There it contributes, with r² = u² + v²,

    ℓ1: (|a| − γ)² = r²/2 + γ² + (u²−v²)/2·cos 2θ + uv·sin 2θ ∓ 2γ(u·cos θ + v·sin θ),

and for ℓ0 the same with −γ instead of γ² and without the last term. Between two ends of arcs the sum of all contributions has
this form. Its third derivative is bounded, so that most intervals are excluded by one evaluation.
"""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import inline, kernel
from givens.kernels.maxima import STACK_INTERVALS, global_maximum_of, local_maximum_of


@inline
def _add(sums: np.ndarray, u: float, v: float, level: float, l0: bool, sign: float, weight: float) -> None:
    """Add the five coefficients of an entry (weight 1), or subtract them (weight −1)."""
    square = level * level
    sums[0] += weight * (0.5 * (u * u + v * v) + (-square if l0 else square))
    sums[1] += weight * 0.5 * (u * u - v * v)
    sums[2] += weight * u * v
    if not l0:
        sums[3] -= weight * sign * 2.0 * level * u
        sums[4] -= weight * sign * 2.0 * level * v


@inline
def _at(data: tuple, c: float, s: float, half: float) -> tuple[float, float, float]:
    """Value and slope of the sum, and an upper bound of its curvature; see `maxima`."""
    (sums,) = data
    double_c, double_s = c * c - s * s, 2.0 * c * s
    second = sums[1] * double_c + sums[2] * double_s
    first = sums[3] * c + sums[4] * s
    slope = 2.0 * (sums[2] * double_c - sums[1] * double_s) + sums[4] * c - sums[3] * s
    third = 8.0 * np.hypot(sums[1], sums[2]) + np.hypot(sums[3], sums[4])
    return sums[0] + second + first, slope, -4.0 * second - first + third * half


_global_maximum = global_maximum_of(_at, local_maximum_of(_at))


@kernel
def sorted_search(
    x: np.ndarray,
    y: np.ndarray,
    number: int,
    first: float,
    second: float,
    l0: bool,
    theta: float,
    best: float,
) -> tuple[float, float]:
    """Find the best angle of a pair, from the first `number` features, given a good angle and its value; and the flops.

    Among equal maxima the smallest |angle| is taken.
    """
    end = 0.25 * np.pi if first == second else 0.5 * np.pi  # of half a period
    ends = np.empty(12 * number)
    codes = np.empty(12 * number, np.int64)  # entry, column, whether the arc begins, the sign of the entry
    count, scale = 0, 0.0
    for k in range(number):
        r = np.hypot(x[k], y[k])
        for column in range(2):
            level = second if column else first
            if not r > level:
                continue
            scale += r * r
            middle, width = np.arctan2(y[k], x[k]) - 0.5 * np.pi * column, np.arccos(level / r)
            for turn in range(-1, 3):  # every half turn changes the sign
                low = max(middle - width + turn * np.pi, -end)
                high = min(middle + width + turn * np.pi, end)
                if low < high:
                    code = 8 * k + 4 * column + (turn + 1) % 2
                    ends[count], codes[count] = low, code + 2
                    ends[count + 1], codes[count + 1] = high, code
                    count += 2
    order = np.argsort(ends[:count])
    sums, stack = np.zeros(5), np.empty((STACK_INTERVALS, 2))
    left = -end
    for t in range(count + 1):
        right = ends[order[t]] if t < count else end
        if right > left:
            stack[0, 0], stack[0, 1] = 0.5 * (left + right), 0.5 * (right - left)
            # Maxima that differ by less than this share of Σr² over both columns are equal.
            theta, best, _ = _global_maximum((sums,), stack, 1, theta, best, 1e-14 * scale, 1 << 30)
        if t < count:
            code = codes[order[t]]
            k, second_column = code // 8, (code // 4) % 2
            u, v, level = (y[k], -x[k], second) if second_column else (x[k], y[k], first)
            _add(sums, u, v, level, l0, 2.0 * (code % 2) - 1.0, 2.0 * (code // 2 % 2) - 1.0)
        left = right
    return theta, 60.0 * (number + count)
