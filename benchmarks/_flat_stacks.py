"""Stacks of three matrices on which joint diagonalisation is nearly flat, as on the dipole matrices of delocalised orbitals."""

from __future__ import annotations

import itertools

import numpy as np

ORDERS = 10, 80


def flat_stack(seed):
    """A stack of order 10 to 80, of one of five kinds in turn, in a random basis."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(ORDERS[0], ORDERS[1] + 1))
    C = np.array(KINDS[seed % len(KINDS)](rng, n))
    U = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return U.T @ C @ U


def sheet(rng, n):
    """Coordinates on the lowest modes of a square, and a weak third function of the place."""
    x, y = _lattice(3 * int(np.ceil(np.sqrt(n))), 2)
    B = _modes(int(np.ceil(np.sqrt(n))), 2, n, np.ones(2))
    return [_between(B, z) for z in (x, y, 10.0 ** rng.uniform(-4, -1) * np.sin(3 * x + 5 * y))]


def box(rng, n):
    """Coordinates on the lowest modes of a box that is nearly a cube."""
    B = _modes(5, 3, n, 1 + 1e-3 * rng.standard_normal(3))
    return [_between(B, x) for x in _lattice(15, 3)]


def ring(rng, n):
    """Cosine, sine and a weak height on the lowest modes of a ring: turning all of them along it changes f little."""
    theta = (np.arange(4 * n) + 0.5) * 2 * np.pi / (4 * n)
    waves = [np.ones(4 * n)] + [f(k * theta) for k in range(1, n) for f in (np.cos, np.sin)]
    B = np.linalg.qr(np.array(waves[:n]).T)[0]
    height = 10.0 ** rng.uniform(-4, -1) * np.cos(theta * rng.integers(2, 5) + rng.uniform(0, 6))
    return [_between(B, x) for x in (np.cos(theta), np.sin(theta), height)]


def clusters(rng, n):
    """Places in groups that are close together, and noise of the size of their distances."""
    size, near = int(rng.integers(2, 7)), 10.0 ** rng.uniform(-4, -1)
    places = np.repeat(rng.standard_normal((-(-n // size), 3)), size, axis=0)[:n]
    places += near * rng.standard_normal((n, 3))
    noise = rng.standard_normal((3, n, n)) * 10.0 ** rng.uniform(-1, 0.5) * near / np.sqrt(n)
    return [np.diag(x) + E + E.T for x, E in zip(places.T, noise)]


def alike(rng, n):
    """No structure: three random symmetric matrices."""
    C = rng.standard_normal((3, n, n))
    return C + C.transpose(0, 2, 1)


KINDS = (sheet, box, ring, clusters, alike)


def _lattice(points, dimensions):
    """The coordinates of the points of a lattice in the unit cube."""
    x = (np.arange(points) + 0.5) / points
    return [grid.ravel() for grid in np.meshgrid(*[x] * dimensions, indexing="ij")]


def _modes(number, dimensions, n, stretch):
    """The n lowest modes, products of sines, on a lattice of three points per sine."""
    x = (np.arange(3 * number) + 0.5) / (3 * number)
    S = np.linalg.qr(np.array([np.sin((k + 1) * np.pi * x) for k in range(number)]).T)[0]
    B = S
    for _ in range(dimensions - 1):
        B = np.kron(B, S)
    waves = np.array(list(itertools.product(range(1, number + 1), repeat=dimensions)))
    return B[:, np.argsort(waves**2 @ stretch, kind="stable")[:n]]


def _between(B, x):
    """The matrix of a function of the place between the modes."""
    return B.T @ (x[:, None] * B)
