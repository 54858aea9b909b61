"""Second derivatives of a sum over columns, learned from gradients: one symmetric matrix for each column.

If a step moves column j by s and changes its gradient by y, the second derivatives B_j of column j should satisfy B_j s = y.
`learn` updates B_j so that they do, and `bounded_step` minimises the quadratic model of all B_j over rotations of all columns
within a radius.
"""

from __future__ import annotations

import numpy as np

from givens.kernels.compile import inline, kernel

LEAST, MOST = 1e-290, 1e290  # products outside this range are not used: they may underflow or overflow
# A rank-one update is made if the |cosine| between the step and the error of B_j is above the first, or its size below the
# second times the largest curvature.
DEFINITE, TAME = 0.1, 0.7


@kernel
def begin(S: np.ndarray, C: np.ndarray) -> np.ndarray:
    """Initial matrices: the multiple of the identity that fits the first step best, the same for all columns."""
    n = len(S)
    change, square = 0.0, 0.0
    for j in range(n):
        for a in range(n):
            change += S[j, a] * C[a, j]
            square += S[j, a] * S[j, a]
    size = change / square
    if not abs(size) <= MOST:
        size = 0.0
    B = np.zeros((n, n, n))
    for j in range(n):
        for a in range(n):
            B[j, a, a] = size
    return B


@kernel
def learn(B: np.ndarray, S: np.ndarray, C: np.ndarray, largest: float) -> float:
    """Update every B_j so that B_j s_j = y_j, for the rows s_j of S and the columns y_j of C.

    With the error r = y − B s this is the symmetric rank-one update B + r rᵀ / (r·s), which finds the second derivatives
    of a quadratic function in n steps. It is of size r·r / |r·s|, and wild where r·s is nearly 0. If that is near the `largest`
    curvature |y| / |s| of any column so far or above, and r far from parallel to s, Powell's symmetric update is made instead,
    the smallest change of B in the Frobenius norm. Columns with numbers that are not finite are skipped. Returns the largest
    curvature, these steps included.
    """
    n = len(S)
    for j in range(n):
        ss, yy = 0.0, 0.0
        for a in range(n):
            ss += S[j, a] * S[j, a]
            yy += C[a, j] * C[a, j]
        if ss >= LEAST and yy <= MOST * ss:
            largest = max(largest, np.sqrt(yy / ss))
    r = np.empty(n)
    for j in range(n):
        s, matrix = S[j], B[j]
        ss, rs, rr = 0.0, 0.0, 0.0
        for a in range(n):
            row = matrix[a]
            error = C[a, j]
            for b in range(n):
                error -= row[b] * s[b]
            r[a] = error
            ss += s[a] * s[a]
            rs += error * s[a]
            rr += error * error
        if ss < LEAST or rr < LEAST or not ss * rr <= MOST:
            continue
        if rr <= TAME * largest * abs(rs) or abs(rs) > DEFINITE * np.sqrt(rr) * np.sqrt(ss):
            for a in range(n):
                row, first = matrix[a], r[a] / rs
                for b in range(n):
                    row[b] += first * r[b]
        else:
            for a in range(n):
                row, second = matrix[a], s[a] / ss
                first = r[a] / ss - second * (rs / ss)
                for b in range(n):
                    row[b] += first * s[b] + second * r[b]
    return largest


@inline
def _product(
    B: np.ndarray,
    Ut: np.ndarray,
    U: np.ndarray,
    D: np.ndarray,
    Kt: np.ndarray,
    X: np.ndarray,
    Z: np.ndarray,
    W: np.ndarray,
) -> None:
    """X ← the gradient of ½ Σ x_j·B_j x_j − ½ Σ k_j·D k_j, where x_j = U k_j and the k_j are the rows of Kt; Z, W: workspace."""
    n = len(B)
    np.dot(Kt, Ut, X)
    for j in range(n):
        x = X[j]
        for a in range(n):
            row = B[j, a]
            total = 0.0
            for b in range(n):
                total += row[b] * x[b]
            Z[j, a] = total
    np.dot(Z, U, W)
    np.dot(Kt, D, Z)
    for i in range(n):
        for j in range(n):
            X[i, j] = (W[i, j] - Z[i, j]) - (W[j, i] - Z[j, i])


@inline
def _inner(A: np.ndarray, B: np.ndarray) -> float:
    """The inner product over pairs of columns, each of which occurs twice in an antisymmetric matrix."""
    total = 0.0
    for i in range(len(A)):
        a, b = A[i], B[i]
        for j in range(len(A)):
            total += a[j] * b[j]
    return 0.5 * total


@kernel
def bounded_step(
    B: np.ndarray, Ut: np.ndarray, E: np.ndarray, radius: float, little: float, most: int
) -> tuple[np.ndarray, float, bool, int]:
    """The antisymmetric K within a radius that minimises the quadratic model

    f(U exp(K)) ≈ f(U) + ⟨M, K⟩ + ½ Σ_j (UK)_j·B_j (UK)_j + ½ ⟨M, K²⟩,  M = UᵀE,

    by at most `most` steps of conjugate gradients (Steihaug 1983), until a share `little` of the slopes is left. Returns K, the
    predicted decrease of f, whether K ends at the radius, and the number of steps.
    """
    n = len(Ut)
    U = Ut.T.copy()
    M = np.dot(Ut, E)
    D = np.empty((n, n))
    left = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            D[i, j] = 0.5 * (M[i, j] + M[j, i])
            # Rows of `left` are columns of K: the transpose of M − Mᵀ.
            left[i, j] = M[j, i] - M[i, j]
    slopes = left.copy()
    K = np.zeros((n, n))
    image = np.zeros((n, n))
    direction = -left
    X, Z, W = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    size = _inner(left, left)
    smallest = little * little * size
    square = 0.0
    bounded = False
    products = 0
    while products < most and size > smallest:
        products += 1
        _product(B, Ut, U, D, direction, X, Z, W)
        curvature = _inner(direction, X)
        long, along = _inner(direction, direction), _inner(K, direction)
        room = (-along + np.sqrt(max(along * along + long * (radius * radius - square), 0.0))) / long
        length = room
        if curvature > 0.0 and size < room * curvature:
            length = size / curvature
        else:
            bounded = True
        for i in range(n):
            for j in range(n):
                K[i, j] += length * direction[i, j]
                image[i, j] += length * X[i, j]
                left[i, j] += length * X[i, j]
        if bounded:
            break
        square = _inner(K, K)
        before, size = size, _inner(left, left)
        for i in range(n):
            for j in range(n):
                direction[i, j] = (size / before) * direction[i, j] - left[i, j]
    promised = -_inner(slopes, K) - 0.5 * _inner(K, image)
    return K.T.copy(), promised, bounded, products
