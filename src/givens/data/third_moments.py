"""Moments up to the third, on a few axes, and the whitening that makes their components orthonormal.

The third moment of d variables has d³ entries and is never formed. Rows x are projected on r orthonormal axes P about
an origin o, p = Pᵀ(x − o), and what is kept are sums over rows of

    x − o,   (x − o) pᵀ,   p⊗p⊗p,   e = ‖x − o‖² − ‖p‖²  (the energy outside the axes),   e·p:

r³ + r·d numbers, from which every central moment about the mean follows exactly (`ThirdMoments.cumulants`). Sums add up
over batches, machines and time.

Latent variable models have moments M2 = Σ w_i μ_i μ_iᵀ and M3 = Σ w_i μ_i⊗μ_i⊗μ_i. With M2 = QΛQᵀ, `whiten` gives
W = QΛ^{-½} and B = QΛ^{½}; `contract(M3, W)` = Σ λ_i v_i⊗v_i⊗v_i then has orthonormal v_i, which `givens.decompose`
finds, and B V leads back.

The products p_a p_b of a few hundred rows at a time make one matrix, so that nearly all the work is matrix products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from givens.data.moments import Moments, moments_of
from givens.data.passes import Sums
from givens.numerics.scaling import unit_of

_COLUMNS = 256
_PAIRS = 256


@dataclass(frozen=True)
class Basis:
    """The coordinates of third moments: rows x are replaced by unit·x − origin and projected on `axes`."""

    origin: np.ndarray
    axes: np.ndarray
    unit: float = 1.0

    def same(self, other: Basis) -> bool:
        """Whether sums in this basis and in the other may be added: the same numbers, bit for bit."""
        return (
            self.unit == other.unit
            and np.array_equal(self.origin, other.origin)
            and np.array_equal(self.axes, other.axes)
        )


@dataclass(frozen=True)
class Cumulants:
    """Central moments of d variables, the third on r axes only.

    Attributes
    ----------
    count : float
        How many rows they come from; infinite for the moments of a population.
    mean : array of shape (d,)
    axes : array of shape (d, r)
        Orthonormal columns P; p = Pᵀ(x − mean).
    cross : array of shape (d, r)
        E[(x − mean) pᵀ].
    third : array of shape (r, r, r)
        E[p⊗p⊗p].
    energy : float
        E[e], e = ‖x − mean‖² − ‖p‖²: the variance that the axes leave out.
    energy_third : array of shape (r,)
        E[e p].
    """

    count: float
    mean: np.ndarray
    axes: np.ndarray
    cross: np.ndarray
    third: np.ndarray
    energy: float
    energy_third: np.ndarray

    @property
    def covariance(self) -> np.ndarray:
        """E[p pᵀ]."""
        covariance = self.axes.T @ self.cross
        return (covariance + covariance.T) / 2

    def principal(self, rank: int) -> tuple[np.ndarray, Cumulants]:
        """All eigenvalues of the covariance, descending, and the moments on the first `rank` eigenvectors."""
        values, vectors = np.linalg.eigh(self.covariance)
        values, vectors = values[::-1], vectors[:, ::-1]
        kept, left = vectors[:, :rank], vectors[:, rank:]
        lost = np.einsum("abc,af,bf->c", self.third, left, left, optimize=True)
        return values, Cumulants(
            count=self.count,
            mean=self.mean,
            axes=self.axes @ kept,
            cross=self.cross @ kept,
            third=contract(self.third, kept),
            energy=self.energy + float(values[rank:].sum()),
            energy_third=kept.T @ (self.energy_third + lost),
        )


class ThirdMoments(Sums):
    """Moments up to the third in a fixed basis, accumulated in one pass.

    Parameters
    ----------
    basis : Basis
        Origin, axes and unit. Only sums in the same basis can be merged.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.data.third_moments import Basis, ThirdMoments
    >>> X = np.random.default_rng(0).standard_normal((1000, 5))
    >>> state = ThirdMoments(Basis(X.mean(axis=0), np.eye(5)[:, :2]))
    >>> state.add(X[:300])
    >>> state.add(X[300:])
    >>> moments = state.cumulants()
    >>> P = X[:, :2] - X[:, :2].mean(axis=0)
    >>> bool(np.allclose(moments.third, np.einsum("na,nb,nc->abc", P, P, P) / 1000))
    True
    """

    def __init__(self, basis: Basis) -> None:
        d, r = basis.axes.shape
        super().__init__((d,), (d, r), (r * (r + 1) // 2, r), (1 + r,))
        self.basis = basis

    def _tile(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        x = shifted(rows, self.basis.unit, self.basis.origin)
        p = self.basis.axes.T @ x.T
        energy = np.einsum("nd,nd->n", x, x) - np.einsum("rn,rn->n", p, p)
        return x.sum(axis=0), x.T @ p.T, packed_triples(p), np.append(energy.sum(), p @ energy)

    def merge(self, other: Self) -> None:
        """Add the sums of other rows, which must be in the same basis."""
        if not self.basis.same(other.basis):
            raise ValueError(
                "moments kept in different bases cannot be merged: start both from one basis (see `sibling`)"
            )
        super().merge(other)

    def cumulants(self) -> Cumulants:
        """Central moments about the mean of all rows so far."""
        n, axes = self.count, self.basis.axes
        total, cross, packed, energies = (sums / n for sums in self.totals())
        r = axes.shape[1]
        mean = axes.T @ total
        second = axes.T @ cross
        outside = total - axes @ mean
        # Of e = ‖x_⊥‖² about the origin, to ‖x_⊥ − mean_⊥‖²: its mean, and its covariance with p.
        energy = energies[0] - outside @ outside
        lean = (cross - np.outer(total, mean)).T @ outside - (second - np.outer(mean, mean)) @ (
            axes.T @ outside
        )
        energy_third = energies[1:] - mean * energies[0] - 2 * lean
        third = unpacked_triples(packed, r)
        about = np.einsum("ab,c->abc", second, mean) - 2 / 3 * np.einsum("a,b,c->abc", mean, mean, mean)
        third -= about + about.transpose(0, 2, 1) + about.transpose(2, 1, 0)
        return Cumulants(
            count=float(n),
            mean=self.basis.origin + total,
            axes=axes,
            cross=cross - np.outer(total, mean),
            third=third,
            energy=max(float(energy), 0.0),
            energy_third=energy_third,
        )


def principal_basis(seconds: Moments, rank: int) -> tuple[np.ndarray, Basis]:
    """Eigenvalues of the covariance, descending, and the basis of the first `rank` eigenvectors about the mean."""
    values, vectors = np.linalg.eigh(seconds.covariance())
    return values[::-1], Basis(seconds.mean, np.ascontiguousarray(vectors[:, ::-1][:, :rank]), seconds.unit)


def principal_moments(rows: np.ndarray, rank: int) -> ThirdMoments:
    """Third moments, of no rows yet, on the `rank` principal axes of these rows."""
    return ThirdMoments(principal_basis(moments_of(rows, unit_of(rows)), rank)[1])


def shifted(rows: np.ndarray, unit: float, origin: np.ndarray | None) -> np.ndarray:
    """The rows times `unit`, about an origin, in double precision."""
    rows = np.asarray(rows, dtype=float)
    if unit != 1.0:
        rows = rows * unit
    return rows if origin is None else rows - origin


class PairGroup(NamedTuple):
    """The pairs (a, b ≥ a) with low ≤ a < high, and their rows among all pairs."""

    low: int
    high: int
    place: slice


def pair_groups(r: int) -> list[PairGroup]:
    """Divide the first index a into ranges with about 256 pairs (a, b ≥ a) each."""
    groups, start, row, size = [], 0, 0, 0
    for a in range(r):
        size += r - a
        if size >= _PAIRS or a == r - 1:
            groups.append(PairGroup(start, a + 1, slice(row, row + size)))
            start, row, size = a + 1, row + size, 0
    return groups


def packed_triples(p: np.ndarray, columns: int = _COLUMNS) -> np.ndarray:
    """Σ p_a p_b p_c, one row per pair a ≤ b, filled for c ≥ a: symmetry saves more than half of the work.

    `columns` columns of p, which has a row per axis, are multiplied at a time: the order of the sums depends on this number.
    """
    r, n = p.shape
    sums = np.zeros((r * (r + 1) // 2, r), dtype=p.dtype)
    products = np.empty((min(len(sums), _PAIRS + r), min(columns, n)), dtype=p.dtype)
    groups = pair_groups(r)
    for start in range(0, n, columns):
        part = np.ascontiguousarray(p[:, start : start + columns])
        for low, high, place in groups:
            used = 0
            for a in range(low, high):
                np.multiply(part[a], part[a:], out=products[used : used + r - a, : part.shape[1]])
                used += r - a
            sums[place, low:] += products[:used, : part.shape[1]] @ part[low:].T
    return sums


def unpacked_triples(packed: np.ndarray, r: int) -> np.ndarray:
    """The full symmetric tensor; each entry is copied from the place with a ≤ b ≤ c."""
    full = np.empty((r, r, r))
    upper = np.tri(r, dtype=bool).T
    row = 0
    for a in range(r):
        part = packed[row : row + r - a, a:]
        slab = np.where(upper[a:, a:], part, part.T)
        full[a, a:, a:] = slab
        full[a:, a, a:] = slab
        full[a:, a:, a] = slab
        row += r - a
    return full


@dataclass(frozen=True)
class Whitening:
    """W with Wᵀ M2 W = I, and B = M2 W, so that B Wᵀ is the projection on the range of M2."""

    W: np.ndarray
    B: np.ndarray
    eigenvalues: np.ndarray


class TooFewDirections(ValueError):
    """A second moment has fewer positive eigenvalues than the components need: moments cannot tell them apart."""


def whiten(second: np.ndarray, rank: int) -> Whitening:
    """Whiten a second moment by its `rank` largest eigenvalues.

    Parameters
    ----------
    second : array of shape (r, r)
        Symmetric.
    rank : int
        How many eigenvalues must be positive.

    Returns
    -------
    Whitening
        W and B of shape (r, rank), and all r eigenvalues, descending.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.data.third_moments import whiten
    >>> M2 = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> white = whiten(M2, 2)
    >>> bool(np.allclose(white.W.T @ M2 @ white.W, np.eye(2)))
    True
    """
    values, vectors = np.linalg.eigh(second)
    values, vectors = values[::-1], vectors[:, ::-1]
    top = values[:rank]
    # What is left of an exact zero after rounding.
    floor = len(second) * np.finfo(float).eps * max(abs(values[0]), abs(values[-1])) if len(second) else 0.0
    positive = int(np.sum(top > floor))
    if rank > len(second) or positive < rank:
        shown = ", ".join(f"{value:.4g}" for value in values[max(0, positive - 2) : rank + 2])
        raise TooFewDirections(
            f"the second moment must have {rank} positive eigenvalues but has {positive}; "
            f"from number {max(0, positive - 2) + 1} on they are {shown}"
        )
    return Whitening(vectors[:, :rank] / np.sqrt(top), vectors[:, :rank] * np.sqrt(top), values)


def contract(third: np.ndarray, W: np.ndarray) -> np.ndarray:
    """T(W, W, W): the symmetric tensor in the coordinates of the columns of W."""
    r, k = W.shape
    once = third.reshape(r * r, r) @ W
    twice = once.reshape(r, r * k).T @ W
    return (twice.reshape(r, k * k).T @ W).reshape(k, k, k)
