"""Central moments, and the whitening that makes their components orthonormal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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
    >>> from givens.data.cumulants import whiten
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
