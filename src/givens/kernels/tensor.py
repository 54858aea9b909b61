"""The pair problem of a symmetric tensor in closed form, and the pairs of a block one after the other.

**The pair problem.** With a = T_iii, b = T_iij, q = T_ijj, e = T_jjj of the rotated tensor, the sum over both columns is

    g(θ) = A c³ + 3B c²s + 3D cs² + E s³,      A = a+e, B = b−q, D = b+q, E = e−a,

and if only column i counts, A = a, B = b, D = q, E = e. Its critical angles are the real directions of the cubic form

    B c³ + (2D−A) c²s + (E−2B) cs² − D s³ = 0,

which is solved in rotated axes in which its leading coefficient is large: no direction is lost, not even ±π/2. Since
g(θ+π) = −g(θ), the best angle is given by the direction of the largest |g|.

**A block.** Let the rows v_i of V be the columns after the rotations so far. The slices S_i = T(v_i, ·, ·) and the vectors
w_i = S_i v_i are updated, so that an angle takes four dot products, and a rotation one pass over two slices.

**Near the solution** of a block, all pairs rotate at once, each by its own Newton step B/(A − 2D). One matrix product gives all
w_i, and takes less than a quarter of the time of a pass over the pairs. These steps converge more slowly than passes, and not
always, so they are made only while each reduces the gain that is left to a tenth.
"""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import inline, kernel
from givens.kernels.polar import orthogonalize
from givens.kernels.rotate import write_rotation

NARROW = 0.1  # radians: all pairs may rotate at once if no angle is larger
TILE = 16  # side of the cubes in which a tensor is read: six of them, one for each order of the indices, fit into the cache
CONTRACTION = 0.1  # largest share of the gain left that such a step may leave
STEP = 37.0  # flops of a Newton step along the circle
ROOTS = 300.0  # flops of all critical directions and their values, before these steps


@kernel
def symmetrize(T: np.ndarray) -> float:
    """Replace every entry by the mean over the six orders of its indices; return the largest difference between orders."""
    d = len(T)
    spread = 0.0
    for first in range(0, d, TILE):
        for second in range(first, d, TILE):
            for third in range(second, d, TILE):
                for i in range(first, min(d, first + TILE)):
                    for j in range(max(i, second), min(d, second + TILE)):
                        for k in range(max(j, third), min(d, third + TILE)):
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
def _real_roots(a: float, b: float, c: float) -> tuple[float, float, float]:
    """The real roots of t³ + a t² + b t + c, as three numbers; if there is only one, the others are not roots."""
    shift = a / 3.0
    p = (a * a - 3.0 * b) / 9.0
    r = (2.0 * a * a * a - 9.0 * a * b + 27.0 * c) / 54.0
    if r * r < p * p * p:
        root = np.sqrt(p)
        angle = np.arccos(max(-1.0, min(1.0, r / (root * root * root)))) / 3.0
        third = 2.0943951023931953
        x = -2.0 * root * np.cos(angle) - shift
        y = -2.0 * root * np.cos(angle + third) - shift
        z = -2.0 * root * np.cos(angle - third) - shift
    else:
        u = np.cbrt(abs(r) + np.sqrt(max(0.0, r * r - p * p * p)))
        if r > 0.0:
            u = -u
        v = p / u if u != 0.0 else 0.0
        x = u + v - shift
        # The real part of the two other roots: a root if it is double, else a candidate that is not chosen.
        y = -0.5 * (u + v) - shift
        z = y
    return x, y, z


@inline
def _slope_and_bend(A: float, B: float, D: float, E: float, c: float, s: float) -> tuple[float, float]:
    """g'(θ)/3 and g''(θ)/3."""
    cc = c * c
    cs = c * s
    ss = s * s
    slope = c * (B * cc + (2.0 * D - A) * cs + (E - 2.0 * B) * ss) - D * s * ss
    bend = (
        c * ((2.0 * D - A) * cc + (2.0 * E - 7.0 * B) * cs + (2.0 * A - 7.0 * D) * ss)
        + (2.0 * B - E) * s * ss
    )
    return slope, bend


@inline
def _narrow_gain(A: float, B: float, D: float, E: float, c: float, s: float) -> float:
    """g(θ) − g(0) for c > 0, without cancellation at small angles: c³ − 1 = −s²(c²+c+1)/(1+c)."""
    return s * (3.0 * B * c * c + s * (3.0 * D * c + E * s - A * (c * c + c + 1.0) / (1.0 + c)))


@inline
def _axis(p0: float, p1: float, p2: float, p3: float) -> tuple[float, float]:
    """The axes (x, y), (−y, x) in which the leading coefficient of the form, its value at (−y, x), is large.

    A cubic form vanishes in at most three directions, so in one of four its value is not small.
    """
    h = 0.7071067811865476
    x, y, lead = 1.0, 0.0, abs(p3)
    if abs(p0) > lead:
        x, y, lead = 0.0, -1.0, abs(p0)
    even = (p0 + p2) * h * h * h
    odd = (p1 + p3) * h * h * h
    if abs(even + odd) > lead:
        x, y, lead = h, -h, abs(even + odd)
    if abs(even - odd) > lead:
        x, y = h, h
    return x, y


@inline
def _directions(
    p0: float, p1: float, p2: float, p3: float
) -> tuple[float, float, float, float, float, float]:
    """Three directions (c, s), not normalised, among which are all where p0 c³ + p1 c²s + p2 cs² + p3 s³ vanishes.

    With c = x·C − y·S and s = y·C + x·S the form is q0 C³ + q1 C²S + q2 CS² + q3 S³, and q3 is large.
    """
    x, y = _axis(p0, p1, p2, p3)
    xx = x * x
    xy = x * y
    yy = y * y
    q0 = x * (p0 * xx + p1 * xy + p2 * yy) + p3 * y * yy
    q1 = x * (p1 * (xx - 2.0 * yy) - 3.0 * p0 * xy + 3.0 * p3 * yy) + p2 * y * (2.0 * xx - yy)
    q2 = x * (3.0 * p0 * yy + p2 * (xx - 2.0 * yy) + 3.0 * p3 * xy) + p1 * y * (yy - 2.0 * xx)
    q3 = -p0 * y * yy + x * (p1 * yy - p2 * xy + p3 * xx)
    if q3 == 0.0:
        return 1.0, 0.0, 1.0, 0.0, 1.0, 0.0
    t, u, v = _real_roots(q2 / q3, q1 / q3, q0 / q3)
    return x - y * t, y + x * t, x - y * u, y + x * u, x - y * v, y + x * v


@inline
def _near_zero(A: float, B: float, D: float, E: float) -> tuple[float, float, float, float]:
    """The best direction if it is known to be near θ = 0, by Newton's method for t = tan θ."""
    t, flops = 0.0, 19.0
    for _ in range(6):
        step = (B + t * (2.0 * D - A + t * (E - 2.0 * B - t * D))) / (
            A - 2.0 * D + t * (4.0 * B - 2.0 * E + 3.0 * t * D)
        )
        t += step
        flops += 21.0
        if abs(step) < 1e-6:
            break
    c = 1.0 / np.sqrt(1.0 + t * t)
    s = t * c
    gain = _narrow_gain(A, B, D, E, c, s)
    if not gain > 0.0:
        c, s, gain = 1.0, 0.0, 0.0
    return c, s, gain, flops


@inline
def _anywhere(A: float, B: float, D: float, E: float, floor: float) -> tuple[float, float, float, float]:
    """The best of all critical directions."""
    roots = _directions(B, 2.0 * D - A, E - 2.0 * B, -D)
    best_c, best_s, best_gain, flops = 1.0, 0.0, -np.inf, ROOTS
    for n in range(3):
        c = roots[2 * n]
        s = roots[2 * n + 1]
        w = 1.0 / np.sqrt(c * c + s * s)
        c *= w
        s *= w
        for _ in range(2):
            # A Newton step along the circle, unless the root is nearly double.
            slope, bend = _slope_and_bend(A, B, D, E, c, s)
            if abs(slope) < 0.1 * abs(bend):
                step = -slope / bend
                c, s = c - step * s, s + step * c
                w = 1.0 / np.sqrt(c * c + s * s)
                c *= w
                s *= w
                flops += STEP
        value = c * (c * (A * c + 3.0 * B * s) + 3.0 * D * s * s) + E * s * s * s
        if value < 0.0:
            c = -c
            s = -s
            value = -value
        gain = _narrow_gain(A, B, D, E, c, s) if c > 0.0 else value - A
        if gain > best_gain + floor or (gain >= best_gain - floor and c > best_c):
            best_c, best_s, best_gain = c, s, gain
    if not best_gain > 0.0 or (best_gain <= floor and best_c < 0.99):
        best_c, best_s, best_gain = 1.0, 0.0, 0.0
    return best_c, best_s, best_gain, flops


@inline
def _best_direction(
    A: float, B: float, D: float, E: float, floor: float
) -> tuple[float, float, float, float]:
    """c, s and gain of the largest g, or (1, 0, 0) if there is no gain; and the flops.

    Among directions whose values differ by at most `floor`, the one with the smallest |θ| is taken. A large angle must gain
    more than `floor`: otherwise columns would be exchanged for ever. A small angle may have any gain, since near a maximum the
    angle is known more accurately than the value.
    """
    # g ≤ A|c|³ + |E||s|³ + 1.155(|B| + |D|), whose first two terms are convex in s². So under this condition, which holds for
    # nearly all pairs near a solution, the best angle has s² < 0.06, and g is concave there.
    if 1.16 * (abs(B) + abs(D)) <= min(A - abs(E), 0.07 * A) and A > 0.0:
        c, s, gain, flops = _near_zero(A, B, D, E)
    else:
        c, s, gain, flops = _anywhere(A, B, D, E, floor)
    return c, s, gain, flops + 8.0


@inline
def _solve(
    a: float, b: float, q: float, e: float, both: bool, floor: float
) -> tuple[float, float, float, float]:
    """Solve the pair problem with T_iii, T_iij, T_ijj, T_jjj; `both` if both columns are active, not only the first."""
    if both:
        A, B, D, E = a + e, b - q, b + q, e - a
    else:
        A, B, D, E = a, b, q, e
    return _best_direction(A, B, D, E, floor)


@inline
def _solve_rows(
    V: np.ndarray, W: np.ndarray, i: int, j: int, both: bool, floor: float
) -> tuple[float, float, float, float]:
    """Solve the pair problem of v_i and v_j, given w_i = T(v_i, v_i, ·) and w_j."""
    t_iii = 0.0
    t_iij = 0.0
    t_ijj = 0.0
    t_jjj = 0.0
    for k in range(V.shape[1]):
        t_iii += V[i, k] * W[i, k]
        t_iij += V[j, k] * W[i, k]
        t_ijj += V[i, k] * W[j, k]
        t_jjj += V[j, k] * W[j, k]
    c, s, gain, cost = _solve(t_iii, t_iij, t_ijj, t_jjj, both, floor)
    return c, s, gain, 8.0 * V.shape[1] + cost


@kernel
def directions(coefficients: np.ndarray, floor: float, out: np.ndarray) -> None:
    """Solve many pair problems: for each row (A, B, D, E), write c, s and the gain of `_best_direction` into `out`."""
    for n in range(coefficients.shape[0]):
        A, B, D, E = coefficients[n]
        c, s, gain, _flops = _best_direction(A, B, D, E, floor)
        out[n, 0] = c
        out[n, 1] = s
        out[n, 2] = gain


@kernel
def solve_block(
    S: np.ndarray, active: int, floor: float, passes: int, min_gain: float, V: np.ndarray, W: np.ndarray
) -> tuple[float, int, float]:
    """Rotate every pair of a block, on its own subtensor S (b, b, b), which is overwritten.

    Makes at most `passes` passes over the pairs, until another one is unlikely to gain more than `min_gain`. The transposed
    rotation is written into V; W is workspace. Pairs (i, j) with i ≥ active are skipped. Returns the gain, the number of
    rotations and the flops.
    """
    b = S.shape[0]
    for i in range(b):
        for k in range(b):
            V[i, k] = 1.0 if i == k else 0.0
            W[i, k] = S[i, i, k]
    x = np.empty(b)
    to_the_end = passes > 1 and active == b
    T = _unfolded(S) if to_the_end else np.empty((0, 0))
    total = 0.0
    rotated = 0
    flops = 0.0
    last = 0.0
    for n in range(passes):
        gained = 0.0
        widest = 0.0
        for i in range(min(active, b - 1)):
            for j in range(i + 1, b):
                c, s, gain, cost = _solve_rows(V, W, i, j, j < active, floor)
                flops += cost
                if gain > 0.0:
                    gained += gain
                    rotated += 1
                    widest = max(widest, abs(s))
                    _turn(S, V, W, x, i, j, c, s)
                    flops += 8.0 * b * b + 21.0 * b
        total += gained
        # The next pass is expected to gain at most the same share of this one as this one of the last.
        share = gained / last if n > 0 else 1.0
        if gained * share <= min_gain:
            break
        last = gained
        # The angles that a pass leaves are much smaller than its own.
        if to_the_end and widest < 3.0 * NARROW and share <= CONTRACTION:
            gained, cost = _turn_all(T, V, floor, min_gain)
            flops += cost
            if gained > 0.0:
                total += gained
                break
            to_the_end = False
    return total, rotated, flops


@inline
def _unfolded(S: np.ndarray) -> np.ndarray:
    """The entries (x, j, k), j ≤ k, of a symmetric tensor, as a matrix (b, b(b+1)/2)."""
    b = S.shape[0]
    out = np.empty((b, b * (b + 1) // 2))
    for x in range(b):
        n = 0
        for j in range(b):
            for k in range(j, b):
                out[x, n + k - j] = S[x, j, k]
            n += b - j
    return out


@inline
def _write_products(U: np.ndarray, out: np.ndarray) -> None:
    """Write the products of rows j ≤ k of U, as rows of `out`; times 2 if j < k."""
    b = len(U)
    n = 0
    for j in range(b):
        for k in range(j, b):
            weight = 1.0 if j == k else 2.0
            for i in range(b):
                out[n, i] = weight * U[j, i] * U[k, i]
            n += 1


@inline
def _turn_all(T: np.ndarray, V: np.ndarray, floor: float, min_gain: float) -> tuple[float, float]:
    """Rotate all pairs at once, until another step is unlikely to gain more than `min_gain`.

    T is unfolded. Returns the gain and the flops. If the steps do not converge, the gain is 0 and V is unchanged.
    """
    b, columns = T.shape
    X, squares = V.copy(), np.empty((columns, b))
    K, excess = np.empty((b, b)), np.empty((b, b))
    total, flops, last, value = 0.0, 0.0, np.inf, 0.0
    while True:
        _write_products(X.T.copy(), squares)
        # Entry (i, j) is T_ijj.
        products = np.dot(X, np.dot(T, squares))
        flops += columns * b * (2.0 * b + 2.0) + 8.0 * b * b * b
        before, value, left, narrow = value, 0.0, 0.0, True
        for i in range(b):
            value += products[i, i]
            K[i, i] = 0.0
            for j in range(i + 1, b):
                t_iij, t_ijj = products[j, i], products[i, j]
                bend = products[i, i] + products[j, j] - 2.0 * (t_iij + t_ijj)
                slope = t_iij - t_ijj
                narrow &= abs(slope) <= NARROW * bend
                angle = slope / bend if bend > 0.0 else 0.0
                K[i, j] = angle
                K[j, i] = -angle
                left += 1.5 * slope * angle
        if last < np.inf:
            # The last step was expected to gain `last`, as if pairs did not influence each other; a difference of values would
            # lose a small gain to rounding.
            gained = value - before if last > 100.0 * floor else last
            total += gained
            narrow &= gained > 0.0 and left <= CONTRACTION * last
        np.dot(K, X, excess)
        for i in range(b):
            for k in range(b):
                X[i, k] += excess[i, k]
        if not (narrow and orthogonalize(X, excess, K)):
            return 0.0, flops
        share = left / last if last < np.inf else 1.0
        if left * share <= min_gain:
            for i in range(b):
                for k in range(b):
                    V[i, k] = X[i, k]
            return total + left, flops
        last = left


@kernel
def turn_pairs(
    S: np.ndarray, pairs: np.ndarray, floor: float, V: np.ndarray, W: np.ndarray
) -> tuple[float, float]:
    """Rotate pairs of columns in the given order, each to its best angle: the paper's Algorithm 4.

    The rows of V are the columns u_i, S_i = T(u_i, ·, ·) and W_i = T(u_i, u_i, ·); all of them are updated. Returns the gain and
    the flops.
    """
    b = S.shape[0]
    x = np.empty(b)
    gained = 0.0
    flops = 0.0
    for n in range(pairs.shape[0]):
        i = pairs[n, 0]
        j = pairs[n, 1]
        c, s, gain, cost = _solve_rows(V, W, i, j, True, floor)
        flops += cost
        if gain > 0.0:
            gained += gain
            _turn(S, V, W, x, i, j, c, s)
            flops += 8.0 * b * b + 21.0 * b
    return gained, flops


@inline
def _turn(
    S: np.ndarray, V: np.ndarray, W: np.ndarray, x: np.ndarray, i: int, j: int, c: float, s: float
) -> None:
    """Rotate the slices S, the v and the w of a pair: w_i ← c²w_i + 2cs·x + s²w_j with x = S_i v_j."""
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
        upper = V[i, k]
        lower = V[j, k]
        V[i, k] = c * upper + s * lower
        V[j, k] = c * lower - s * upper


@kernel
def solve_pairs(
    T: np.ndarray,
    pairs: np.ndarray,
    active: int,
    floor: float,
    rotations: np.ndarray,
    gains: np.ndarray,
) -> float:
    """Write the best rotation of each pair, from four entries of the tensor T, and its gain; return the flops."""
    flops = 0.0
    for n in range(pairs.shape[0]):
        i = pairs[n, 0]
        j = pairs[n, 1]
        c, s, gain, cost = _solve(T[i, i, i], T[i, i, j], T[i, j, j], T[j, j, j], j < active, floor)
        flops += cost
        write_rotation(rotations[n], c, s)
        gains[n] = gain
    return flops


@kernel
def look(
    doubles: np.ndarray, active: int, floor: float, most: float
) -> tuple[float, np.ndarray, np.ndarray, float]:
    """Value, slopes and curvatures, from the matrix of the T_iij; and the sum of the gains of all pairs, each by itself.

    Only a part of this sum is computed if it exceeds `most`.
    """
    n = doubles.shape[0]
    slopes = np.zeros((n, n))
    curvatures = np.zeros((n, n))
    value = 0.0
    left = 0.0
    for i in range(active):
        t_iii = doubles[i, i]
        value -= t_iii
        for j in range(i + 1, n):
            t_iij = doubles[i, j]
            t_ijj = doubles[j, i]
            t_jjj = doubles[j, j]
            both = j < active
            slope = -3.0 * (t_iij - t_ijj) if both else -3.0 * t_iij
            bend = 3.0 * (t_iii + t_jjj) - 6.0 * (t_iij + t_ijj) if both else 3.0 * t_iii - 6.0 * t_ijj
            slopes[i, j] = slope
            slopes[j, i] = -slope
            curvatures[i, j] = bend
            curvatures[j, i] = bend
            if left <= most:
                _c, _s, gain, _flops = _solve(t_iii, t_iij, t_ijj, t_jjj, both, floor)
                left += gain
    return value, slopes, curvatures, left


@kernel
def moments_of_pairs(z: np.ndarray, pairs: np.ndarray, out: np.ndarray) -> None:
    """Write the means of z_i³, z_i²z_j, z_iz_j² and z_j³ over the samples, for each pair of rows of z, into `out`."""
    N = z.shape[1]
    for n in range(pairs.shape[0]):
        i = pairs[n, 0]
        j = pairs[n, 1]
        iii = 0.0
        iij = 0.0
        ijj = 0.0
        jjj = 0.0
        for k in range(N):
            x = z[i, k]
            y = z[j, k]
            iii += x * x * x
            iij += x * x * y
            ijj += x * y * y
            jjj += y * y * y
        out[n, 0] = iii / N
        out[n, 1] = iij / N
        out[n, 2] = ijj / N
        out[n, 3] = jjj / N


@kernel
def solve_moments(
    moments: np.ndarray,
    pairs: np.ndarray,
    a: np.ndarray,
    G: np.ndarray,
    active: int,
    floor: float,
    rotations: np.ndarray,
    gains: np.ndarray,
) -> float:
    """As `solve_pairs`, for the third moments less a⊗G in its three placements."""
    flops = 14.0 * len(pairs)
    for n in range(pairs.shape[0]):
        i = pairs[n, 0]
        j = pairs[n, 1]
        t_iii = moments[n, 0] - 3.0 * a[i] * G[i, i]
        t_iij = moments[n, 1] - 2.0 * a[i] * G[i, j] - a[j] * G[i, i]
        t_ijj = moments[n, 2] - 2.0 * a[j] * G[i, j] - a[i] * G[j, j]
        t_jjj = moments[n, 3] - 3.0 * a[j] * G[j, j]
        c, s, gain, cost = _solve(t_iii, t_iij, t_ijj, t_jjj, j < active, floor)
        flops += cost
        write_rotation(rotations[n], c, s)
        gains[n] = gain
    return flops
