"""Tensors with a known decomposition, and slow, plain ways to compute what the library computes fast."""

from __future__ import annotations

import itertools

import numpy as np

ORDERS = list(itertools.permutations(range(3)))


def symmetric(rng, d):
    """Gaussian, symmetrised; entries with different indices have the variance 1."""
    E = rng.standard_normal((d, d, d))
    return sum(E.transpose(order) for order in ORDERS) / np.sqrt(6)


def from_components(weights, factors):
    return np.einsum("a,ia,ja,ka->ijk", weights, factors, factors, factors)


def orthogonal(rng, d, rank=None, noise=0.0, weights=None):
    """T = Σ λ v⊗v⊗v + noise; returns T, λ (descending) and the v."""
    rank = d if rank is None else rank
    V = np.linalg.qr(rng.standard_normal((d, d)))[0][:, :rank]
    weights = np.sort(rng.uniform(1, 2, rank))[::-1] if weights is None else np.asarray(weights, float)
    return from_components(weights, V) + noise * symmetric(rng, d), weights, V


def rotated(T, U):
    return np.einsum("abc,ai,bj,ck->ijk", T, U, U, U, optimize=True)


def distance(factors, truth):
    """The largest entry of the difference, each column matched to its nearest up to sign."""
    cosines = truth.T @ factors
    match = np.argmax(np.abs(cosines), axis=1)
    assert len(set(match)) == truth.shape[1]
    signs = np.sign(cosines[np.arange(truth.shape[1]), match])
    return np.abs(factors[:, match] * signs - truth).max()
