"""How many additions and multiplications LAPACK's factorisations take, by Golub and Van Loan's textbook.

Flops are counted as executed, everywhere and for the rivals too: an addition or a multiplication is one; divisions, comparisons,
sorts and functions such as cos are none. Operations inside LAPACK cannot be counted, so these figures stand for them.
"""

from __future__ import annotations


def svd(rows: int, columns: int) -> float:
    """The thin singular value decomposition."""
    m, n = max(rows, columns), min(rows, columns)
    return 6.0 * m * n * n + 20.0 * n**3


def qr(rows: int, columns: int) -> float:
    """Both thin factors."""
    m, n = max(rows, columns), min(rows, columns)
    return 4.0 * n * n * m - 4.0 * n**3 / 3.0


def eigh(n: int) -> float:
    """Eigenvalues and eigenvectors of a symmetric matrix."""
    return 9.0 * n**3


def determinant(n: int) -> float:
    """By LU factors."""
    return 2.0 * n**3 / 3.0


def cholesky(n: int) -> float:
    """The triangular factor of a positive definite matrix."""
    return n**3 / 3.0
