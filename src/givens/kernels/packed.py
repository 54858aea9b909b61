"""Symmetric tensors in packed storage: gather, rotate, unfold, contract.

A symmetric tensor is stored as its d(d+1)(d+2)/6 entries i ≤ j ≤ k in one array P, with entry (i, j, k) at row[i, j] + k. A
rotation within blocks of indices mixes only the entries of the same triple of blocks (I, J, K): a triple is gathered into a
full array, multiplied in its three modes, and written back.
"""

from __future__ import annotations

import math

import numpy as np

from givens.kernels.compile import inline, kernel

TILE = 16
"""Side of the cubes in which a full tensor is read: six of them, one for each order of the indices, fit into the cache."""


LARGEST = 1.7976931348623157e308


@inline
def _place(i: int, j: int, k: int, row: np.ndarray) -> int:
    """The position of entry (i, j, k) in P, for indices in any order."""
    if i > j:
        i, j = j, i
    if j > k:
        j, k = k, j
        if i > j:
            i, j = j, i
    return row[i, j] + k


@inline
def _run(block: np.ndarray, start: int) -> int:
    """Length of the run of consecutive indices that begins at block[start]."""
    n = 1
    while start + n < len(block) and block[start + n] == block[start] + n:
        n += 1
    return n


@inline
def _move(
    P: np.ndarray,
    row: np.ndarray,
    x: int,
    nx: int,
    y: int,
    ny: int,
    z: int,
    nz: int,
    cube: np.ndarray,
    at: int,
    sx: int,
    sy: int,
    sz: int,
    write: bool,
) -> None:
    """Copy between the entries of three runs x ≤ y ≤ z of P and a flat cube with strides sx, sy, sz.

    Distinct runs do not overlap, so the last index is contiguous in P. If the last two runs are the same, an entry of P has two
    or six positions in the cube: all of them are written, and one is read.
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


@inline
def _transfer(
    P: np.ndarray, row: np.ndarray, I: np.ndarray, J: np.ndarray, K: np.ndarray, cube: np.ndarray, write: bool
) -> None:
    """Gather the entries of a triple of ascending blocks into a flat cube (I, J, K), or write them back.

    Equal blocks must be adjacent (I = J or J = K). Entries that the cube has several times are written back once for each pair of
    runs.
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
def gather(P: np.ndarray, row: np.ndarray, block: np.ndarray, cube: np.ndarray) -> None:
    """Copy the subtensor of an ascending block into a flat cube."""
    _transfer(P, row, block, block, block, cube, False)


@kernel
def turn(
    P: np.ndarray,
    row: np.ndarray,
    I: np.ndarray,
    J: np.ndarray,
    K: np.ndarray,
    QI: np.ndarray,
    QJ: np.ndarray,
    QK: np.ndarray,
    here: np.ndarray,
    there: np.ndarray,
) -> None:
    """Multiply a triple of blocks in its three modes; each product moves the next mode to the front.

    `here` and `there` are room for the entries of the triple.
    """
    i, j, k = len(I), len(J), len(K)
    here = here[: i * j * k]
    there = there[: i * j * k]
    _transfer(P, row, I, J, K, here, False)
    np.dot(here.reshape(i, j * k).T, QI, there.reshape(j * k, i))
    np.dot(there.reshape(j, k * i).T, QJ, here.reshape(k * i, j))
    np.dot(here.reshape(k, i * j).T, QK, there.reshape(i * j, k))
    _transfer(P, row, I, J, K, there, True)


@kernel
def rotate_pair(P: np.ndarray, row: np.ndarray, i: int, j: int, c: float, s: float) -> None:
    """Rotate indices i and j of the packed tensor, in O(d²): the update of the paper's auxiliary tensor."""
    d = row.shape[0]
    for y in range(d):
        if y in (i, j):
            continue
        for z in range(y, d):
            if z in (i, j):
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
    P[at_iij] = (
        -c * c * s * a + (c * c * c - 2.0 * c * s * s) * b + (2.0 * c * c * s - s * s * s) * q + c * s * s * e
    )
    P[at_ijj] = (
        c * s * s * a + (s * s * s - 2.0 * c * c * s) * b + (c * c * c - 2.0 * c * s * s) * q + c * c * s * e
    )
    P[at_jjj] = -s * s * s * a + 3.0 * c * s * s * b - 3.0 * c * c * s * q + c * c * c * e


@kernel
def inspect_and_pack(
    T: np.ndarray, row: np.ndarray, first: int, last: int, P: np.ndarray
) -> tuple[float, float]:
    """Pack the entries of T whose smallest index is in [first, last): each is the mean over the six orders of its indices.

    Returns the largest |entry| and the largest difference between orders; infinite if an entry is not finite.
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
                        # Not isfinite, which is x − x == 0: fastmath would simplify it.
                        finite = finite and size + apart <= LARGEST
                        largest = max(largest, size)
                        P[row[i, j] + k] = x
    if not finite:
        return np.inf, np.inf
    return largest, spread


@inline
def _unfold(P: np.ndarray, row: np.ndarray, first: int, last: int, out: np.ndarray) -> None:
    """Write entries (x, j, k), first ≤ j < last, j ≤ k, as out[x, n], where n numbers the pairs (j, k) in order."""
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
def unfold(P: np.ndarray, row: np.ndarray, first: int, last: int, out: np.ndarray) -> None:
    """`_unfold`, for Python."""
    _unfold(P, row, first, last, out)


@inline
def write_products(U: np.ndarray, first: int, last: int, out: np.ndarray) -> None:
    """Write the products of rows j and k of U, first ≤ j < last, j ≤ k, as rows of `out`; times 2 if j < k."""
    d, columns = U.shape
    once, twice = U.dtype.type(1.0), U.dtype.type(2.0)
    n = 0
    for j in range(first, last):
        for k in range(j, d):
            weight = once if j == k else twice
            for i in range(columns):
                out[n, i] = weight * U[j, i] * U[k, i]
            n += 1


@kernel
def products(U: np.ndarray, first: int, last: int, out: np.ndarray) -> None:
    """`write_products`, for Python."""
    write_products(U, first, last, out)


@kernel
def squares(P: np.ndarray, row: np.ndarray, first: int, last: int, U: np.ndarray, out: np.ndarray) -> None:
    """Write the part of T(·, u, u) that belongs to first ≤ j < last, j ≤ k, for the columns u of U."""
    d = row.shape[0]
    pairs = (last - first) * (2 * d - first - last + 1) // 2
    entries = np.empty((d, pairs))
    products_of_rows = np.empty((pairs, U.shape[1]))
    _unfold(P, row, first, last, entries)
    write_products(U, first, last, products_of_rows)
    np.dot(entries, products_of_rows, out)


@kernel
def rotate_first_mode(
    P: np.ndarray, row: np.ndarray, Ut: np.ndarray, first: int, last: int, at: int, half: np.ndarray
) -> None:
    """Write T(u_a, e_j, e_k), first ≤ j < last, j ≤ k, as half[a, n], where n numbers the pairs (j, k) in order from `at` on."""
    d = row.shape[0]
    entries = np.empty((d, (last - first) * (2 * d - first - last + 1) // 2))
    _unfold(P, row, first, last, entries)
    half[:, at : at + entries.shape[1]] = np.dot(Ut, entries)


@kernel
def rotate_other_modes(
    half: np.ndarray, Ut: np.ndarray, first: int, last: int, P: np.ndarray, row: np.ndarray
) -> None:
    """Write the entries (a, b, c), first ≤ a < last, a ≤ b ≤ c, of T(U, U, U) into P, from all of `rotate_first_mode`."""
    d = row.shape[0]
    matrix = np.empty((d, d))
    room = np.empty(d * d)
    for a in range(first, last):
        n = 0
        for j in range(d):
            for k in range(j, d):
                matrix[j, k] = half[a, n]
                matrix[k, j] = half[a, n]
                n += 1
        rows = room[: (d - a) * d].reshape(d - a, d)
        np.dot(Ut[a:], matrix, rows)
        values = np.dot(rows, Ut[a:].T)
        for b in range(a, d):
            base = row[a, b]
            for c in range(b, d):
                P[base + c] = values[b - a, c - a]


@kernel
def doubles(P: np.ndarray, row: np.ndarray, out: np.ndarray) -> None:
    """Write T_iij, from which the derivatives of all pair problems follow, into out[i, j]."""
    d = row.shape[0]
    for i in range(d):
        for j in range(d):
            out[i, j] = P[_place(i, i, j, row)]


@kernel
def contract(P: np.ndarray, row: np.ndarray, r: np.ndarray, out: np.ndarray) -> None:
    """Write T(·, ·, r), of shape (d, d), into `out`."""
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
            # Entries (i, j, j).
            x = P[base + j]
            out[i, j] += x * r[j]
            if i != j:
                out[j, j] += x * r[i]
    for i in range(d):
        for j in range(i):
            out[i, j] = out[j, i]


@kernel
def normalize(P: np.ndarray, most: int) -> int:
    """Divide by the power of two above the largest |entry|, or by 2^most if that is less; return its exponent, 0 for T = 0."""
    largest = 0.0
    for n in range(len(P)):
        largest = max(largest, abs(P[n]))
    exponent = min(math.frexp(largest)[1], most)
    if exponent != 0:
        for n in range(len(P)):
            P[n] = math.ldexp(P[n], -exponent)
    return exponent


@kernel
def squared_norm(P: np.ndarray, row: np.ndarray) -> float:
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
