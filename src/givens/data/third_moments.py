"""Moments up to the third, on a few axes, and the whitening that makes their components orthonormal.

The third moment of d variables has d³ entries and is never formed. Rows x are projected on r orthonormal axes P about
an origin o, p = Pᵀ(x − o), and what is kept are sums over rows of

    x − o,   (x − o) pᵀ,   p⊗p⊗p,   e = ‖x − o‖² − ‖p‖²  (the energy outside the axes),   e·p:

r³ + r·d numbers, from which every central moment about the mean follows exactly (`ThirdMoments.cumulants`). Sums add up
over batches, machines and time.

Latent variable models have moments M2 = Σ w_i μ_i μ_iᵀ and M3 = Σ w_i μ_i⊗μ_i⊗μ_i. With M2 = QΛQᵀ, `whiten` gives
W = QΛ^{-½}; `contract(M3, W)` = Σ λ_i v_i⊗v_i⊗v_i then has orthonormal v_i, which `givens.decompose` finds, and
M2 W V leads back.

Whatever is known of the noise is subtracted as the placements of f⊗f⊗g: f⊗f⊗g + f⊗g⊗f + g⊗f⊗f. By

    placements of f⊗f⊗g = ½ (f + g)⊗(f + g)⊗(f + g) − ½ (f − g)⊗(f − g)⊗(f − g) − g⊗g⊗g

they are a sum of cubes, as third moments are: one function sums both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from givens.data.moments import Moments, moments_of
from givens.data.passes import Sums
from givens.numerics import parallel
from givens.numerics.scaling import unit_of
from givens.numerics.tiles import add_in_order


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
    >>> state = ThirdMoments(Basis(X.mean(axis=0), np.eye(5)[:, :2])).begin(0)
    >>> state.add(X[:300])
    >>> state.add(X[300:])
    >>> moments = state.cumulants()
    >>> P = X[:, :2] - X[:, :2].mean(axis=0)
    >>> bool(np.allclose(moments.third, np.einsum("na,nb,nc->abc", P, P, P) / 1000))
    True
    """

    def __init__(self, basis: Basis) -> None:
        d, r = basis.axes.shape
        super().__init__(first=(d,), cross=(d, r), cubes=(packed_size(r),), energies=(1 + r,))
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
        total, cross, packed, energies = (getattr(self, name) / n for name in self.shapes)
        mean = axes.T @ total
        second = axes.T @ cross
        outside = total - axes @ mean
        # Of e = ‖x_⊥‖² about the origin, to ‖x_⊥ − mean_⊥‖²: its mean, and its covariance with p.
        energy = energies[0] - outside @ outside
        lean = (cross - np.outer(total, mean)).T @ outside - (second - np.outer(mean, mean)) @ (
            axes.T @ outside
        )
        energy_third = energies[1:] - mean * energies[0] - 2 * lean
        third = unpacked_triples(packed, axes.shape[1])
        third -= placements(np.multiply.outer(second - 2 / 3 * np.outer(mean, mean), mean))
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


def shifted(rows: np.ndarray, unit: float, origin: np.ndarray | float) -> np.ndarray:
    """The rows times `unit`, about an origin, in double precision."""
    return np.asarray(rows, dtype=float) * unit - origin


def packed_size(r: int) -> int:
    """How many numbers `packed_triples` returns for r axes."""
    return r * (r + 1) * (2 * r + 1) // 6


def packed_triples(p: np.ndarray) -> np.ndarray:
    """Σ p⊗p⊗p over the columns of p: for each a the entries (a, b, c) with b, c ≥ a, one after the other."""
    products = [((p[a] * p[a:]) @ p[a:].T).ravel() for a in range(len(p))]
    return np.concatenate([np.empty(0), *products])


def summed_triples(rows: np.ndarray) -> np.ndarray:
    """As `packed_triples`, over many rows, which the threads share."""
    total = np.zeros(packed_size(rows.shape[1]))

    def tile(part: slice) -> list[np.ndarray]:
        return [packed_triples(np.ascontiguousarray(rows[part].T))]

    # The cubes of 1,024 rows are summed by one matrix product per axis.
    add_in_order([total], tile, parallel.slices(len(rows), 1024))
    return total


def packed_blocks(packed: np.ndarray, r: int) -> list[np.ndarray]:
    """For each a the matrix of the entries (a, b, c) with b, c ≥ a."""
    starts = np.cumsum([(r - a) ** 2 for a in range(r)][:-1])
    return [block.reshape(r - a, r - a) for a, block in enumerate(np.split(packed, starts)[:r])]


def unpacked_triples(packed: np.ndarray, r: int) -> np.ndarray:
    """The full symmetric tensor."""
    full = np.empty((r, r, r))
    for a, block in enumerate(packed_blocks(packed, r)):
        full[a, a:, a:] = full[a:, a, a:] = full[a:, a:, a] = block
    return full


def placements(pairs: np.ndarray) -> np.ndarray:
    """The sum of a tensor, symmetric in its first two indices, over the three placements of the third."""
    return pairs + pairs.transpose(0, 2, 1) + pairs.transpose(2, 1, 0)


def cubes_of_placements(f: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Rows y with Σ y⊗y⊗y = Σ f⊗f⊗g in its three placements, over the rows of f and g."""
    lengths = [np.linalg.norm(part, axis=1, keepdims=True) for part in (f, g)]
    # Of unit length, so that nothing cancels.
    u, v = (part / np.where(size > 0, size, 1.0) for part, size in zip((f, g), lengths))
    size = np.cbrt(lengths[0]) ** 2 * np.cbrt(lengths[1])
    half = np.cbrt(0.5) * size
    return np.concatenate((half * (u + v), half * (v - u), -size * v))


@dataclass(frozen=True)
class Whitening:
    """W with Wᵀ M2 W = I, and the eigenvalues of M2."""

    W: np.ndarray
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
        W of shape (r, rank), and all r eigenvalues, descending.

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
    # More than what is left of an exact zero after rounding.
    floor = len(second) * np.finfo(float).eps * np.abs(values).max(initial=0.0)
    positive = int(np.sum(values > floor))
    if positive < rank:
        raise TooFewDirections(
            f"the second moment has only {positive} positive eigenvalues, so moments cannot tell {rank} components apart: "
            f"ask for at most {positive}, or give more samples"
        )
    return Whitening(vectors[:, :rank] / np.sqrt(values[:rank]), values)


def contract(third: np.ndarray, W: np.ndarray) -> np.ndarray:
    """T(W, W, W): the symmetric tensor in the coordinates of the columns of W."""
    r, k = W.shape
    once = third.reshape(r * r, r) @ W
    twice = once.reshape(r, r * k).T @ W
    return (twice.reshape(r, k * k).T @ W).reshape(k, k, k)
