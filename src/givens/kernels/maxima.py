"""The maximum of a function of an angle whose curvature is bounded: the secant method in a bracket, and branch and bound.

Both are made for a function `at(data, c, s, half)`, which returns g and g' at the angle with cosine c and sine s, and an upper
bound of g'' within `half` of that angle; for `half` = 0 this is g'' itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from givens.kernels.compile import inline

# Each interval that is halved leaves one more on the stack, and is halved at most 30 times; at most 17 lie there at first.
STACK_INTERVALS = 64


def local_maximum_of(at: Any) -> Any:
    """Compile the search for a maximum near an angle."""

    @inline
    def local_maximum(
        data: tuple,
        theta: float,
        value: float,
        slope: float,
        trial: float,
        width: float,
        start: float,
        floor: float,
        accuracy: float,
    ) -> tuple[float, float, int]:
        """Find a maximum within `width` of θ by the secant method: the best angle, its value and the number of evaluations.

        `value` and `slope` are those at θ, and `trial` is the next angle. The search ends when the maximum is predicted to be
        higher by at most `floor`, or by at most the share `accuracy` of the gain over `start`.
        """
        low, high = theta - width, theta + width
        top, best, evaluations = theta, value, 0
        for _ in range(60):
            if slope > 0.0:
                low = theta
            else:
                high = theta
            if not low < trial < high:
                trial = 0.5 * (low + high)
            if trial == theta or high - low < 1e-15:
                break
            value, next_slope, _ = at(data, np.cos(trial), np.sin(trial), 0.0)
            evaluations += 1
            if value > best:
                top, best = trial, value
            # Not g'' itself: where g has kinks, the secant sees the curve that they follow.
            curvature = (next_slope - slope) / (trial - theta)
            theta, slope = trial, next_slope
            trial = np.inf  # outside the bracket, so that it is bisected
            if curvature < 0.0:
                if -0.5 * slope * slope / curvature <= max(floor, accuracy * (best - start)):
                    break
                trial = theta - slope / curvature
        return top, best, evaluations

    return local_maximum


def global_maximum_of(at: Any, local_maximum: Any) -> Any:
    """Compile branch and bound over intervals."""

    @inline
    def global_maximum(
        data: tuple, stack: np.ndarray, size: int, theta: float, best: float, tie: float, limit: int
    ) -> tuple[float, float, int]:
        """Find the maximum over intervals, given the best angle so far and its value: angle, value, number of evaluations.

        The first `size` rows of `stack` are the middles and half lengths of the intervals. An interval in which g cannot exceed
        the best value is excluded; if g is concave in it, its maximum is found by `local_maximum`; otherwise it is halved. Of
        maxima that differ by at most `tie` the smallest |angle| is taken. The search ends early when the number of evaluations
        exceeds `limit`.
        """
        evaluations = 0
        while size > 0 and evaluations <= limit:
            size -= 1
            middle, half = stack[size, 0], stack[size, 1]
            value, slope, curvature = at(data, np.cos(middle), np.sin(middle), half)
            evaluations += 1
            concave = curvature < 0.0
            reach = min(-abs(slope) / curvature, half) if concave else half
            bound = value + reach * (abs(slope) + 0.5 * reach * curvature)
            # Where g is nearly constant, rounding must not halve the interval.
            if bound <= best + (-tie if concave else tie):
                continue
            angle, height = middle, value
            if concave:
                trial = middle - slope / curvature
                angle, height, more = local_maximum(data, middle, value, slope, trial, half, best, 0.0, 0.0)
                evaluations += more
            elif half > 1e-9:
                half *= 0.5
                stack[size, 0], stack[size, 1] = middle - half, half
                stack[size + 1, 0], stack[size + 1, 1] = middle + half, half
                size += 2
            if height > best + tie or (height > best - tie and abs(angle) < abs(theta)):
                theta = angle
            best = max(best, height)
        return theta, best, evaluations

    return global_maximum
