"""The pair problem of a symmetric tensor in closed form, and the pairs of a block one after the other.

**The pair problem.** With a = T_iii, b = T_iij, q = T_ijj, e = T_jjj of the rotated tensor, the sum over both columns is

    g(θ) = A c³ + 3B c²s + 3D cs² + E s³,      A = a+e, B = b−q, D = b+q, E = e−a,

and if only column i counts, A = a, B = b, D = q, E = e. It has the harmonics 1 and 3. In the angle ψ = θ − φ/3, where φ is the
phase of the third one, it is A' cos ψ + B' sin ψ + ρ cos 3ψ, whose maximum over all angles `harmonics.peak` finds.

**A block.** Let the rows v_i of V be the columns after the rotations so far. The slices S_i = T(v_i, ·, ·) and the vectors
w_i = S_i v_i are updated, so that an angle takes four dot products, and a rotation one pass over two slices.

**Near the solution** of a block, all pairs rotate by the angles that are best for each by itself when the pass begins. The slices
are not updated: all w_i are computed from T, in a quarter of the flops. Such passes converge more slowly than others, and not
always, so they are made only while each gains at most a tenth of the one before it.
"""

from __future__ import annotations

import math

import numpy as np

from givens.kernels.compile import inline, kernel
from givens.kernels.harmonics import peak

NARROW = 0.3  # radians: all pairs may rotate at once after a pass with no larger angle
CONTRACTION = 0.1  # largest share of its predecessor's gain that a pass may gain before all pairs rotate at once, and then


@kernel
def symmetrize(T: np.ndarray) -> float:
    """Replace every entry by the mean over the six orders of its indices; return the largest difference between orders."""
    d = len(T)
    tile = 16  # side of a cube: six of them, one for each order of the indices, fit into the cache
    spread = 0.0
    for first in range(0, d, tile):
        for second in range(first, d, tile):
            for third in range(second, d, tile):
                for i in range(first, min(d, first + tile)):
                    for j in range(max(i, second), min(d, second + tile)):
                        for k in range(max(j, third), min(d, third + tile)):
                            spread = max(spread, _average(T, i, j, k))
    return spread


@inline
def _average(T: np.ndarray, i: int, j: int, k: int) -> float:
    """Replace six entries by their mean; return the largest difference between two of them."""
    x = T[i, j, k]
    u, v, w = T[i, k, j] - x, T[j, i, k] - x, T[j, k, i] - x
    y, z = T[k, i, j] - x, T[k, j, i] - x
    lowest = min(0.0, min(min(u, v), min(w, min(y, z))))
    highest = max(0.0, max(max(u, v), max(w, max(y, z))))
    if highest > lowest:
        x += (u + v + w + y + z) / 6.0
        T[i, j, k] = x
        T[i, k, j] = x
        T[j, i, k] = x
        T[j, k, i] = x
        T[k, i, j] = x
        T[k, j, i] = x
    return highest - lowest


@inline
def _narrow_gain(A: float, B: float, D: float, E: float, c: float, s: float) -> float:
    """g(θ) − g(0) for c > 0, without cancellation at small angles: c³ − 1 = −s²(c²+c+1)/(1+c)."""
    return s * (3.0 * B * c * c + s * (3.0 * D * c + E * s - A * (c * c + c + 1.0) / (1.0 + c)))


@inline
def _polished(
    A: float, B: float, D: float, E: float, c: float, s: float
) -> tuple[float, float, float, float]:
    """The maximum near the angle of (c, s), c > 0, with all digits, by Newton's method for tan θ; its gain, and the flops."""
    t, flops = s / c, 19.0
    for _ in range(6):
        curve = A - 2.0 * D + t * (4.0 * B - 2.0 * E + 3.0 * t * D)
        slope = B + t * (2.0 * D - A + t * (E - 2.0 * B - t * D))
        if not abs(slope) < 0.1 * curve:  # nearly a double root
            break
        step = slope / curve
        t += step
        flops += 21.0
        if abs(step) < 1e-6:
            break
    c = 1.0 / math.sqrt(1.0 + t * t)
    s = t * c
    return c, s, _narrow_gain(A, B, D, E, c, s), flops


@inline
def _best_direction(
    A: float, B: float, D: float, E: float, floor: float
) -> tuple[float, float, float, float]:
    """c, s and gain of the largest g, or (1, 0, 0) if there is no gain; and the flops.

    Among angles whose values differ by at most `floor`, the smallest |θ| is taken. A large angle must gain more than `floor`:
    otherwise columns would be exchanged for ever. A small angle may have any gain, since near a maximum the angle is known more
    accurately than the value.
    """
    flops = 8.0
    c, s, gain = 1.0, 0.0, 0.0
    # g ≤ A|c|³ + |E||s|³ + 1.155(|B| + |D|), whose first two terms are convex in s². So under this condition, which holds for
    # nearly all pairs near a solution, the best angle has s² < 0.06, and g is concave there.
    if not (1.16 * (abs(B) + abs(D)) <= min(A - abs(E), 0.07 * A) and A > 0.0):
        shift = math.atan2(3.0 * B - E, A - 3.0 * D) / 3.0
        cs, ss = math.cos(shift), math.sin(shift)
        first, second = 3.0 * ((A + D) * cs + (B + E) * ss), 3.0 * ((B + E) * cs - (A + D) * ss)
        psi = peak(first, second, math.hypot(A - 3.0 * D, 3.0 * B - E), 3)
        theta = _wrapped(shift + psi)
        c, s, gain = _at(A, B, D, E, theta)
        # Two maxima of equal height lie opposite each other, as seen from a minimum of cos 3ψ.
        for k in range(-1, 2, 2):
            other = _wrapped(shift + k * (2.0 * math.pi / 3.0) - psi)
            co, so, high = _at(A, B, D, E, other)
            if high >= gain - floor and abs(other) < abs(theta):
                theta, c, s, gain = other, co, so, high
        flops += 150.0
        if gain <= floor and c < 0.99:
            c, s = 1.0, 0.0
    if c > 0.7:
        c, s, gain, more = _polished(A, B, D, E, c, s)
        flops += more
    if not gain > 0.0:
        c, s, gain = 1.0, 0.0, 0.0
    return c, s, gain, flops


@inline
def _wrapped(theta: float) -> float:
    """The same angle between −π and π."""
    return theta - 2.0 * math.pi * np.floor(theta / (2.0 * math.pi) + 0.5)


@inline
def _at(A: float, B: float, D: float, E: float, theta: float) -> tuple[float, float, float]:
    """cos θ, sin θ and g(θ) − g(0)."""
    c, s = math.cos(theta), math.sin(theta)
    if c > 0.0:
        return c, s, _narrow_gain(A, B, D, E, c, s)
    return c, s, c * (c * (A * c + 3.0 * B * s) + 3.0 * D * s * s) + E * s * s * s - A


@kernel
def directions(coefficients: np.ndarray, floor: float, out: np.ndarray) -> float:
    """Solve many pair problems: for each column (A, B, D, E), write c, s and the gain into one of `out`; return the flops."""
    flops = 0.0
    for n in range(coefficients.shape[1]):
        c, s, gain, cost = _best_direction(
            coefficients[0, n], coefficients[1, n], coefficients[2, n], coefficients[3, n], floor
        )
        out[0, n] = c
        out[1, n] = s
        out[2, n] = gain
        flops += cost
    return flops


@kernel
def derivatives(
    doubles: np.ndarray, active: int, slopes: np.ndarray, curvatures: np.ndarray, coefficients: np.ndarray
) -> None:
    """Write slopes −3B and curvatures 3A − 6D of all pairs, and their A, B, D, E row by row, from the matrix of the T_iij."""
    n = 0
    for i in range(active):
        for j in range(i + 1, doubles.shape[0]):
            A, B, D, E = doubles[i, i], doubles[i, j], doubles[j, i], doubles[j, j]
            if j < active:
                A, B, D, E = A + E, B - D, B + D, E - A
            slopes[i, j] = -3.0 * B
            slopes[j, i] = 3.0 * B
            curvatures[i, j] = curvatures[j, i] = 3.0 * A - 6.0 * D
            coefficients[0, n] = A
            coefficients[1, n] = B
            coefficients[2, n] = D
            coefficients[3, n] = E
            n += 1


@kernel
def turn_pairs(
    T: np.ndarray,
    S: np.ndarray,
    pairs: np.ndarray,
    active: int,
    floor: float,
    passes: int,
    min_gain: float,
    V: np.ndarray,
    W: np.ndarray,
) -> tuple[float, int, float]:
    """Rotate pairs of columns in the given order, each to its best angle, as in the paper's Algorithm 4.

    The rows of V are the columns u_i, S_i = T(u_i, ·, ·) and W_i = T(u_i, u_i, ·); all of them are updated. Of a pair (i, j),
    column i is active, and column j if j < active. Makes up to `passes` passes over the pairs, until another one is unlikely to
    gain more than `min_gain`; the last of several may rotate all pairs at once, and then S is not updated. Returns the gain, the
    number of rotations and the flops.
    """
    b = len(S)
    x, before, safe = np.empty(b), np.empty((b, b)), np.empty((b, b))
    total, rotated, flops, last, value, safe_total = 0.0, 0, 0.0, np.inf, np.inf, 0.0
    # Rotate all pairs at once; contract T first; the pairs influence each other too much for the first.
    # (Not the literal False, for which numba would compile the helpers once more.)
    at_once = contracts = coupled = passes < 0
    for _ in range(passes):
        if contracts:
            reached = _contract(T, V, W, active)
            flops += b * b * (b + 1.0) * (b + 1.0)
            if at_once and value < np.inf and last > 100.0 * floor:
                # What the last pass gained, not as if pairs did not influence each other; a small gain would be lost to rounding.
                total += reached - value - last
            value = reached
        _copy(V, before)
        U = before if at_once else V
        gained, widest, turned, cost = _turn_each(U, pairs, active, floor, at_once, S, V, W, x)
        rotated += turned
        flops += cost
        if at_once and not gained <= CONTRACTION * last:
            # Go back to the last pass that rotated one pair after the other, whose S is still there, and go on like that.
            _copy(safe, V)
            total, last, at_once, coupled = safe_total, np.inf, False, True
            continue
        total += gained
        # The next pass is expected to gain at most the same share of this one as this one of the last; passes over all pairs at
        # once converge linearly, and the first of them follows one that may have converged quadratically.
        share = gained / last if last < np.inf else 1.0
        if gained * (max(share, CONTRACTION) if at_once else share) <= min_gain:
            break
        contracts = at_once
        # The angles that a pass leaves are much smaller than its own.
        if not (at_once or coupled) and share <= CONTRACTION and widest < NARROW:
            at_once, contracts, safe_total = True, True, total
            _copy(V, safe)
        last = gained
    return total, rotated, flops


@inline
def _copy(source: np.ndarray, out: np.ndarray) -> None:
    """An assignment of one array to another would take seconds to compile."""
    for i in range(source.shape[0]):
        for k in range(source.shape[1]):
            out[i, k] = source[i, k]


@inline
def _turn_each(
    U: np.ndarray,
    pairs: np.ndarray,
    active: int,
    floor: float,
    at_once: bool,
    S: np.ndarray,
    V: np.ndarray,
    W: np.ndarray,
    x: np.ndarray,
) -> tuple[float, float, int, float]:
    """One pass over the pairs: its gain, the largest |sin θ|, the number of rotations, and the flops.

    U are the rows of which W is made: V, or, if all pairs rotate at once and nothing but V is to change, a copy of it.
    """
    b = len(V)
    gained, widest, rotated, flops = 0.0, 0.0, 0, 0.0
    for n in range(len(pairs)):
        i, j = pairs[n, 0], pairs[n, 1]
        A, B, D, E = 0.0, 0.0, 0.0, 0.0
        for k in range(b):
            A += U[i, k] * W[i, k]
            B += U[j, k] * W[i, k]
            D += U[i, k] * W[j, k]
            E += U[j, k] * W[j, k]
        if j < active:
            A, B, D, E = A + E, B - D, B + D, E - A
        c, s, gain, cost = _best_direction(A, B, D, E, floor)
        flops += cost + 8.0 * b
        if gain > 0.0:
            gained += gain
            rotated += 1
            widest = max(widest, abs(s))
            flops += 6.0 * b
            if not at_once:
                _turn(S, V, W, x, i, j, c, s)
                flops += 8.0 * b * b + 15.0 * b
            for k in range(b):
                upper, lower = V[i, k], V[j, k]
                V[i, k] = c * upper + s * lower
                V[j, k] = c * lower - s * upper
    return gained, widest, rotated, flops


@inline
def _contract(T: np.ndarray, U: np.ndarray, W: np.ndarray, active: int) -> float:
    """W_i ← T(u_i, u_i, ·) for the rows u_i of U; the sum of T(u_i, u_i, u_i) over the active rows."""
    b = len(U)
    for i in range(b):
        for k in range(b):
            W[i, k] = 0.0
    for p in range(b):
        # Two rows of T at a time: W is read and written half as often.
        for q in range(p, b, 2):
            r = min(q + 1, b - 1)
            first, second = 1.0 if p == q else 2.0, 2.0 if r > q else 0.0
            for i in range(b):
                here = first * U[i, p] * U[i, q]
                there = second * U[i, p] * U[i, r]
                for k in range(b):
                    W[i, k] += here * T[p, q, k] + there * T[p, r, k]
    value = 0.0
    for i in range(active):
        for k in range(b):
            value += U[i, k] * W[i, k]
    return value


@inline
def _turn(
    S: np.ndarray, V: np.ndarray, W: np.ndarray, x: np.ndarray, i: int, j: int, c: float, s: float
) -> None:
    """Rotate the slices S and the w of a pair: w_i ← c²w_i + 2cs·x + s²w_j with x = S_i v_j."""
    b = S.shape[0]
    for k in range(b):
        x[k] = 0.0
    for r in range(b):
        weight = V[j, r]
        for k in range(b):
            upper = S[i, r, k]
            lower = S[j, r, k]
            x[k] += weight * upper
            S[i, r, k] = c * upper + s * lower
            S[j, r, k] = c * lower - s * upper
    for k in range(b):
        upper = W[i, k]
        lower = W[j, k]
        cross = 2.0 * c * s * x[k]
        W[i, k] = c * c * upper + cross + s * s * lower
        W[j, k] = s * s * upper - cross + c * c * lower
