"""Rotations of a symmetric tensor: the best angle of a pair, the pairs of a block, and the packed array that rotates.

**The pair problem.** With a = T_iii, b = T_iij, q = T_ijj, e = T_jjj of the rotated tensor, the sum over both columns is

    g(θ) = A c³ + 3B c²s + 3D cs² + E s³,      A = a+e, B = b−q, D = b+q, E = e−a,

and if only column i counts, A = a, B = b, D = q, E = e. Its critical angles are the real directions of the cubic form

    B c³ + (2D−A) c²s + (E−2B) cs² − D s³ = 0,

which is solved in the axis where its leading coefficient is largest: no direction, ±π/2 included, is lost. g changes its
sign from θ to θ+π, so the best angle is the direction of the largest |g|.

**A block.** With V the rotations so far, the slices S_i = T(v_i, ·, ·) and w_i = S_i v_i are kept, so that an angle takes
four dot products, and a rotation one pass over two slices. Nothing is moved between modes.

**Storage.** A symmetric tensor is kept as its d(d+1)(d+2)/6 entries i ≤ j ≤ k in one array P: entry (i, j, k) stands at
row[i, j] + k. Rotating blocks of indices by themselves changes the entries of a triple of blocks (I, J, K) among
themselves only; a triple is gathered, multiplied in its three modes, and scattered.
"""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import inline, kernel

TILE = 16
"""Side of the cubes by which a full tensor is read: six of them, one for each order of the indices, stay in cache."""


@inline
def _place(i, j, k, row):
    """Where entry {i, j, k} stands, whatever the order."""
    if i > j:
        i, j = j, i
    if j > k:
        j, k = k, j
        if i > j:
            i, j = j, i
    return row[i, j] + k


@inline
def _real_roots(a, b, c):
    """Real roots of t³ + a t² + b t + c, as three numbers (repeated where there are fewer)."""
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
        # At a double root the two others meet at the midpoint; elsewhere this is merely a candidate that loses.
        y = -0.5 * (u + v) - shift
        z = y
    return x, y, z


@inline
def _slope_and_bend(A, B, D, E, c, s):
    """g'(θ)/3 and g''(θ)/3."""
    cc = c * c
    cs = c * s
    ss = s * s
    slope = c * (B * cc + (2.0 * D - A) * cs + (E - 2.0 * B) * ss) - D * s * ss
    bend = c * ((2.0 * D - A) * cc + (2.0 * E - 7.0 * B) * cs + (2.0 * A - 7.0 * D) * ss) + (2.0 * B - E) * s * ss
    return slope, bend


@inline
def _narrow_gain(A, B, D, E, c, s):
    """g(θ) − g(0) for c > 0: by c³ − 1 = −s²(c²+c+1)/(1+c), there is no cancellation however narrow the turn."""
    return s * (3.0 * B * c * c + s * (3.0 * D * c + E * s - A * (c * c + c + 1.0) / (1.0 + c)))


@inline
def _best_direction(A, B, D, E, floor):
    """Return (c, s, gain) of the largest g; (1, 0, 0) if nothing is to be gained.

    Among directions whose values differ by no more than `floor` the one of the smallest |θ| is taken, and a turn by a wide
    angle for no more than `floor` is not made: columns would swap for ever. A narrow turn is made however small its gain,
    since near a maximum the angle is known far better than the value.
    """
    if 1.16 * (abs(B) + abs(D)) <= min(A - abs(E), 0.07 * A):
        # g ≤ A|c|³ + |E||s|³ + 1.155(|B| + |D|), whose first two terms are convex in s². So the best angle has s² < 0.06, and
        # there g is concave: Newton's steps from 0 find it, as nearly always near a solution.
        c, s = 1.0, 0.0
        for _ in range(5):
            slope, bend = _slope_and_bend(A, B, D, E, c, s)
            step = -slope / bend
            c, s = c - step * s, s + step * c
            w = 1.0 / np.sqrt(c * c + s * s)
            c *= w
            s *= w
            if abs(step) < 1e-6:
                break
        gain = _narrow_gain(A, B, D, E, c, s)
        if not gain > 0.0:
            c, s, gain = 1.0, 0.0, 0.0
        return c, s, gain
    p0 = B
    p1 = 2.0 * D - A
    p2 = E - 2.0 * B
    p3 = -D
    # The leading coefficient in an axis is the form's value there; a cubic form vanishes in three directions at most.
    h = 0.7071067811865476
    lead = abs(p3)
    x, y = 1.0, 0.0
    if abs(p0) > lead:
        lead = abs(p0)
        x, y = 0.0, -1.0
    even = (p0 + p2) * h * h * h
    odd = (p1 + p3) * h * h * h
    if abs(even + odd) > lead:
        lead = abs(even + odd)
        x, y = h, -h
    if abs(even - odd) > lead:
        lead = abs(even - odd)
        x, y = h, h
    best_c, best_s, best_gain = 1.0, 0.0, 0.0
    if lead > 0.0:
        # New axes (x, y), (−y, x): c = x·C − y·S, s = y·C + x·S, so that S = 1 is the direction of the large coefficient.
        q0 = p0 * x * x * x + p1 * x * x * y + p2 * x * y * y + p3 * y * y * y
        q1 = (
            -3.0 * p0 * x * x * y
            + p1 * (x * x * x - 2.0 * x * y * y)
            + p2 * (2.0 * x * x * y - y * y * y)
            + 3.0 * p3 * x * y * y
        )
        q2 = (
            3.0 * p0 * x * y * y
            + p1 * (y * y * y - 2.0 * x * x * y)
            + p2 * (x * x * x - 2.0 * x * y * y)
            + 3.0 * p3 * x * x * y
        )
        q3 = -p0 * y * y * y + p1 * x * y * y - p2 * x * x * y + p3 * x * x * x
        roots = _real_roots(q2 / q3, q1 / q3, q0 / q3)
        best_gain = -np.inf
        for n in range(3):
            t = roots[n]
            w = 1.0 / np.sqrt(1.0 + t * t)
            c = (x - y * t) * w
            s = (y + x * t) * w
            for _ in range(2):
                # Newton's step for g'(θ) = 0 along the circle; refused where it is none (a double root).
                slope, bend = _slope_and_bend(A, B, D, E, c, s)
                if abs(slope) < 0.1 * abs(bend):
                    step = -slope / bend
                    c, s = c - step * s, s + step * c
                    w = 1.0 / np.sqrt(c * c + s * s)
                    c *= w
                    s *= w
            value = A * c * c * c + 3.0 * B * c * c * s + 3.0 * D * c * s * s + E * s * s * s
            if value < 0.0:
                c = -c
                s = -s
                value = -value
            if c > 0.0:
                gain = _narrow_gain(A, B, D, E, c, s)
            else:
                gain = value - A
            if gain > best_gain + floor or (gain >= best_gain - floor and c > best_c):
                best_c, best_s, best_gain = c, s, gain
        if not best_gain > 0.0 or (best_gain <= floor and best_c < 0.99):
            best_c, best_s, best_gain = 1.0, 0.0, 0.0
    return best_c, best_s, best_gain


@kernel
def directions(coefficients, floor, out):
    """Rows of (A, B, D, E) to rows of (c, s, gain): `_best_direction` for many pair problems."""
    for n in range(coefficients.shape[0]):
        A, B, D, E = coefficients[n]
        c, s, gain = _best_direction(A, B, D, E, floor)
        out[n, 0] = c
        out[n, 1] = s
        out[n, 2] = gain


@kernel
def solve_block(S, active, floor, passes, enough, V, W):
    """Turn every pair of a block, on its own subtensor S (b, b, b), which is overwritten.

    At most `passes` times, until a pass over the pairs gains no more than `enough`. The rows of V become the new
    directions: Q = Vᵀ. Pairs (i, j) with i ≥ active are left alone. Returns the gain, the number of rotations
    and the number of passes.
    """
    b = S.shape[0]
    for i in range(b):
        for k in range(b):
            V[i, k] = 1.0 if i == k else 0.0
            W[i, k] = S[i, i, k]
    x = np.empty(b)
    total = 0.0
    rotated = 0
    made = 0
    for _ in range(passes):
        gained = 0.0
        for i in range(min(active, b - 1)):
            for j in range(i + 1, b):
                t_iii = 0.0
                t_iij = 0.0
                t_ijj = 0.0
                t_jjj = 0.0
                for k in range(b):
                    t_iii += V[i, k] * W[i, k]
                    t_iij += V[j, k] * W[i, k]
                    t_ijj += V[i, k] * W[j, k]
                    t_jjj += V[j, k] * W[j, k]
                if j < active:
                    c, s, gain = _best_direction(
                        t_iii + t_jjj, t_iij - t_ijj, t_iij + t_ijj, t_jjj - t_iii, floor
                    )
                else:
                    c, s, gain = _best_direction(t_iii, t_iij, t_ijj, t_jjj, floor)
                if gain > 0.0:
                    gained += gain
                    rotated += 1
                    _turn(S, V, W, x, i, j, c, s)
        total += gained
        made += 1
        if gained <= enough:
            break
    return total, rotated, made


@inline
def _turn(S, V, W, x, i, j, c, s):
    """Rotate slices, directions and w of the pair: w_i = c²w_i + 2cs·x + s²w_j with x = S_i v_j."""
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
def solve_pairs(P, row, pairs, active, floor, rotations, gains):
    """The best rotation of each pair, from the four entries it depends on."""
    for n in range(pairs.shape[0]):
        i = pairs[n, 0]
        j = pairs[n, 1]
        t_iii = P[row[i, i] + i]
        t_iij = P[row[i, i] + j]
        t_ijj = P[row[i, j] + j]
        t_jjj = P[row[j, j] + j]
        if j < active:
            c, s, gain = _best_direction(
                t_iii + t_jjj, t_iij - t_ijj, t_iij + t_ijj, t_jjj - t_iii, floor
            )
        else:
            c, s, gain = _best_direction(t_iii, t_iij, t_ijj, t_jjj, floor)
        rotations[n, 0, 0] = c
        rotations[n, 0, 1] = -s
        rotations[n, 1, 0] = s
        rotations[n, 1, 1] = c
        gains[n] = gain


@kernel
def moments_of_pairs(z, pairs, out):
    """Means of z_i³, z_i²z_j, z_iz_j² and z_j³ over the samples, for each pair of rows of z."""
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
def solve_moments(moments, pairs, a, G, active, floor, rotations, gains):
    """The best rotation of each pair, from its third moments less those of a⊗G in its three placements."""
    for n in range(pairs.shape[0]):
        i = pairs[n, 0]
        j = pairs[n, 1]
        t_iii = moments[n, 0] - 3.0 * a[i] * G[i, i]
        t_iij = moments[n, 1] - 2.0 * a[i] * G[i, j] - a[j] * G[i, i]
        t_ijj = moments[n, 2] - 2.0 * a[j] * G[i, j] - a[i] * G[j, j]
        t_jjj = moments[n, 3] - 3.0 * a[j] * G[j, j]
        if j < active:
            c, s, gain = _best_direction(
                t_iii + t_jjj, t_iij - t_ijj, t_iij + t_ijj, t_jjj - t_iii, floor
            )
        else:
            c, s, gain = _best_direction(t_iii, t_iij, t_ijj, t_jjj, floor)
        rotations[n, 0, 0] = c
        rotations[n, 0, 1] = -s
        rotations[n, 1, 0] = s
        rotations[n, 1, 1] = c
        gains[n] = gain


@inline
def _run(block, start):
    """Length of the run of consecutive indices that begins at block[start]."""
    n = 1
    while start + n < len(block) and block[start + n] == block[start] + n:
        n += 1
    return n


@inline
def _move(P, row, x, nx, y, ny, z, nz, cube, at, sx, sy, sz, write):
    """Copy between the entries of three runs x ≤ y ≤ z of P and a flat cube with strides sx, sy, sz.

    Distinct runs do not overlap, so the last index is contiguous in P. Where the last two runs are one, an entry of P has
    two or six places in the cube: all are filled, one is read.
    """
    for i in range(nx):
        for j in range(i if x == y and y == z else 0, ny):
            base = row[min(x + i, y + j), max(x + i, y + j)] + z
            here = at + i * sx + j * sy
            if write:
                for k in range(j if y == z else 0, nz):
                    P[base + k] = cube[here + k * sz]
            elif y < z:
                for k in range(nz):
                    cube[here + k * sz] = P[base + k]
            elif x < y:
                there = at + i * sx + j * sz
                for k in range(j, nz):
                    value = P[base + k]
                    cube[here + k * sz] = value
                    cube[there + k * sy] = value
            else:
                for k in range(j, nz):
                    value = P[base + k]
                    cube[at + i * sx + j * sy + k * sz] = value
                    cube[at + i * sx + k * sy + j * sz] = value
                    cube[at + j * sx + i * sy + k * sz] = value
                    cube[at + j * sx + k * sy + i * sz] = value
                    cube[at + k * sx + i * sy + j * sz] = value
                    cube[at + k * sx + j * sy + i * sz] = value


@kernel
def transfer(P, row, I, J, K, cube, write):
    """Gather the entries of a triple of ascending blocks into a flat cube (I, J, K), or write them back.

    Equal blocks are to be adjacent (I = J or J = K). What stands in P once and in the cube several times is written once
    for every pair of runs.
    """
    sj = len(K)
    si = len(J) * sj
    same_ij = I[0] == J[0]
    same_jk = J[0] == K[0]
    a = 0
    while a < len(I):
        na = _run(I, a)
        b = a if write and same_ij else 0
        while b < len(J):
            nb = _run(J, b)
            c = b if write and same_jk else 0
            while c < len(K):
                nc = _run(K, c)
                at = a * si + b * sj + c
                x, nx, sx = I[a], na, si
                y, ny, sy = J[b], nb, sj
                z, nz, sz = K[c], nc, 1
                if x > y:
                    x, nx, sx, y, ny, sy = y, ny, sy, x, nx, sx
                if y > z:
                    y, ny, sy, z, nz, sz = z, nz, sz, y, ny, sy
                    if x > y:
                        x, nx, sx, y, ny, sy = y, ny, sy, x, nx, sx
                _move(P, row, x, nx, y, ny, z, nz, cube, at, sx, sy, sz, write)
                c += nc
            b += nb
        a += na


@kernel
def rotate_pair(P, row, i, j, c, s):
    """Rotate indices i and j of the packed tensor: O(d²) entries, the paper's auxiliary tensor."""
    d = row.shape[0]
    for y in range(d):
        if y == i or y == j:
            continue
        for z in range(y, d):
            if z == i or z == j:
                continue
            at_i = _place(i, y, z, row)
            at_j = _place(j, y, z, row)
            upper = P[at_i]
            lower = P[at_j]
            P[at_i] = c * upper + s * lower
            P[at_j] = c * lower - s * upper
        at_ii = _place(i, i, y, row)
        at_ij = _place(i, j, y, row)
        at_jj = _place(j, j, y, row)
        ii = P[at_ii]
        ij = P[at_ij]
        jj = P[at_jj]
        P[at_ii] = c * c * ii + 2.0 * c * s * ij + s * s * jj
        P[at_ij] = c * s * (jj - ii) + (c * c - s * s) * ij
        P[at_jj] = s * s * ii - 2.0 * c * s * ij + c * c * jj
    at_iii = row[i, i] + i
    at_iij = _place(i, i, j, row)
    at_ijj = _place(i, j, j, row)
    at_jjj = row[j, j] + j
    a = P[at_iii]
    b = P[at_iij]
    q = P[at_ijj]
    e = P[at_jjj]
    P[at_iii] = c * c * c * a + 3.0 * c * c * s * b + 3.0 * c * s * s * q + s * s * s * e
    P[at_iij] = -c * c * s * a + (c * c * c - 2.0 * c * s * s) * b + (2.0 * c * c * s - s * s * s) * q + c * s * s * e
    P[at_ijj] = c * s * s * a + (s * s * s - 2.0 * c * c * s) * b + (c * c * c - 2.0 * c * s * s) * q + c * c * s * e
    P[at_jjj] = -s * s * s * a + 3.0 * c * s * s * b - 3.0 * c * c * s * q + c * c * c * e


@kernel
def inspect_and_pack(T, row, first, last, P):
    """Pack the tiles of T whose smallest index is in [first, last): the mean of each entry's six places.

    Returns the largest |entry| and the largest difference between an entry's places, NaN if they are not finite.
    """
    d = T.shape[0]
    largest = 0.0
    spread = 0.0
    finite = True
    for j_tile in range(first, d, TILE):
        for k_tile in range(j_tile, d, TILE):
            for i in range(first, last):
                for j in range(max(i, j_tile), min(d, j_tile + TILE)):
                    for k in range(max(j, k_tile), min(d, k_tile + TILE)):
                        x = np.float64(T[i, j, k])
                        u1 = T[i, k, j] - x
                        u2 = T[j, i, k] - x
                        u3 = T[j, k, i] - x
                        u4 = T[k, i, j] - x
                        u5 = T[k, j, i] - x
                        size = abs(x)
                        apart = abs(u1) + abs(u2) + abs(u3) + abs(u4) + abs(u5)
                        if apart != 0.0:
                            lowest = min(0.0, min(min(u1, u2), min(u3, min(u4, u5))))
                            highest = max(0.0, max(max(u1, u2), max(u3, max(u4, u5))))
                            spread = max(spread, highest - lowest)
                            x += (u1 + u2 + u3 + u4 + u5) / 6.0
                        finite = finite and np.isfinite(size + apart)
                        largest = max(largest, size)
                        P[row[i, j] + k] = x
    if not finite:
        return np.nan, np.nan
    return largest, spread


@kernel
def unfold(P, row, first, last, out):
    """Write entries (x, j, k), first ≤ j < last, j ≤ k, as out[x, n], n counting the (j, k) in order."""
    d = row.shape[0]
    for x in range(d):
        n = 0
        for j in range(first, last):
            low = min(x, j)
            high = max(x, j)
            k = j
            while k < min(high, d):
                out[x, n] = P[row[low, k] + high]
                n += 1
                k += 1
            base = row[low, high]
            for m in range(k, d):
                out[x, n + m - k] = P[base + m]
            n += d - k


@kernel
def products(U, first, last, out):
    """Write the products of rows j and k of U, first ≤ j < last, j ≤ k, as the rows of out; twice those of j < k."""
    d, columns = U.shape
    n = 0
    for j in range(first, last):
        for k in range(j, d):
            weight = 1.0 if j == k else 2.0
            for i in range(columns):
                out[n, i] = weight * U[j, i] * U[k, i]
            n += 1


@kernel
def square(half, out):
    """Write out a symmetric matrix given by its upper triangle, row by row."""
    d = out.shape[0]
    n = 0
    for j in range(d):
        for k in range(j, d):
            out[j, k] = half[n]
            out[k, j] = half[n]
            n += 1


@kernel
def store_slice(P, row, i, values):
    """Write entries (i, j, k), i ≤ j ≤ k, from values[j − i, k − i]."""
    d = row.shape[0]
    for j in range(i, d):
        base = row[i, j]
        for k in range(j, d):
            P[base + k] = values[j - i, k - i]


@kernel
def doubles(P, row, out):
    """Write T_iij into out[i, j]: all that the derivatives of the pair problems need."""
    d = row.shape[0]
    for i in range(d):
        for j in range(d):
            out[i, j] = P[_place(i, i, j, row)]


@kernel
def contract(P, row, r, out):
    """Write T(·, ·, r) into out (d, d)."""
    d = row.shape[0]
    out[:] = 0.0
    for i in range(d):
        for j in range(i, d):
            base = row[i, j]
            inner = 0.0
            for k in range(j + 1, d):
                x = P[base + k]
                inner += x * r[k]
                out[i, k] += x * r[j]
                if i != j:
                    out[j, k] += x * r[i]
            out[i, j] += inner
            # Entries (i, j, j): once for each place the repeated index can take.
            x = P[base + j]
            out[i, j] += x * r[j]
            if i != j:
                out[j, j] += x * r[i]
    for i in range(d):
        for j in range(i):
            out[i, j] = out[j, i]


@kernel
def squared_norm(P, row):
    """Sum of squares over all d³ entries of the packed tensor."""
    d = row.shape[0]
    total = 0.0
    for i in range(d):
        for j in range(i, d):
            base = row[i, j]
            inner = 0.0
            for k in range(j + 1, d):
                inner += P[base + k] * P[base + k]
            x = P[base + j]
            if i == j:
                total += 3.0 * inner + x * x
            else:
                total += 6.0 * inner + 3.0 * x * x
    return total
