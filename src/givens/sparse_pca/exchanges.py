"""Exchanges of single entries: a local search over the patterns of loadings with exact counts.

Truncated power steps end where no linearised step leads on, and short loadings have many such places. Here one entry p of
a loading gives way to another q, with the best weight for q beside the entries that stay, and what is compared is the
adjusted variance itself. Take from the score of z_j what the scores before it explain: e' is left, s = ‖e'‖². Take the same
from the scores after it, and orthogonalise these, without z_j: the i-th has the direction q_i and the length g_i. With
a_i = q_i·e' the adjusted variance is, but for a constant,

    T = s − Σ_i g_i² a_i² / (s − Σ_{l<i} a_l²),

s a quadratic and a_i linear in z_j: so hundreds of exchanges are evaluated at once. The candidates are the entries that cost
least and the features that bring most by s alone.

Arrays are stored one component per row; At is samples x features, centred.
"""

from __future__ import annotations

import numpy as np

from givens.metrics import DEPENDENT
from givens.sparse_pca.forms import SampleForm, SparseRows, taken
from givens.sparse_pca.loadings import directions, reported_order
from givens.sparse_pca.truncated_power import settled

LEAVING, ENTERING = 12, 48  # candidates of each loading
EXCHANGE_ROUNDS = 50  # of exchanges, at most
LEAST_GAIN = 1e-4  # of the adjusted variance: a round that gains less is the last
VALUE_GROWTH = 1e-5  # the same for values between two rounds
TIE = 1e-12  # share of the score's square by which gains differ through rounding


def exchanged(
    At: np.ndarray, squares: np.ndarray, loadings: SparseRows, asked: np.ndarray
) -> tuple[SparseRows, float, int]:
    """Loadings with as many non-zeros that exchanges of single entries lead to, the flops, and how many were made.

    `squares` are the squared norms of the features, `asked` are the counts in the order in which components are reported.
    """
    flops, number, held = 0.0, 0, _held(At, loadings, asked)
    for _ in range(EXCHANGE_ROUNDS):
        found, spent, made = _round(At, squares, loadings, asked, held)
        flops += spent
        number += made
        if not made:
            break
        found, spent = settled(SampleForm(At), found, asked, VALUE_GROWTH)
        before, held = held, _held(At, found, asked)
        loadings, flops = found, flops + spent
        if held - before <= LEAST_GAIN * before:
            break
    return loadings, flops, number


def _held(At: np.ndarray, loadings: SparseRows, asked: np.ndarray) -> float:
    E = loadings.scores(At)
    return directions(E, reported_order(E, loadings.counts(), asked))[1]


def _round(
    At: np.ndarray, squares: np.ndarray, loadings: SparseRows, asked: np.ndarray, held: float
) -> tuple[SparseRows, float, int]:
    """The best exchange of each loading, those that gain most first, as long as they gain together; how many they are."""
    E = loadings.scores(At)
    order = reported_order(E, loadings.counts(), asked)
    Q, R = np.linalg.qr(E[order].T)
    size = np.abs(np.diagonal(R))
    if len(size) < len(order) or np.any(size <= DEPENDENT * np.linalg.norm(E[order], axis=1)):
        return loadings, 0.0, 0
    QA = Q.T @ At
    rest = squares - np.vstack((np.zeros(len(squares)), np.cumsum(QA**2, axis=0)[:-1]))
    proposals = []
    for place, j in enumerate(order):
        own = Component(
            At, loadings.where[j], loadings.values[j], Q.T[:place], QA[:place], E[order[place + 1 :]]
        )
        sign = 1.0 if R[place, place] >= 0 else -1.0
        proposals.append((*own.best(size[place] * sign * QA[place], np.maximum(rest[place], 0.0)), j))
    flops, number = 2.0 * QA.size * len(At), 0
    for gain, where, values, j in sorted(proposals, key=lambda proposal: -proposal[0]):
        if gain <= LEAST_GAIN * held / len(order):
            break
        tried = SparseRows(list(loadings.where), list(loadings.values))
        tried.where[j], tried.values[j] = where, values
        now = _held(At, tried, asked)
        flops += 2.0 * len(At) * int(asked.sum())
        if now > held:
            loadings, held, number = tried, now, number + 1
    return loadings, flops, number


class Component:
    """One loading beside the others: B spans the scores before it, F are the scores after it."""

    def __init__(
        self,
        At: np.ndarray,
        where: np.ndarray,
        values: np.ndarray,
        B: np.ndarray,
        BA: np.ndarray,
        F: np.ndarray,
    ) -> None:
        self.At, self.where, self.values, self.BA = At, where, values, BA
        self.G, R = np.linalg.qr((F - (F @ B.T) @ B).T)
        self.after = np.square(np.diagonal(R))

    def best(self, h: np.ndarray, rest: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """The gain of the best exchange, and the loading after it; `h` is Aᵀe', `rest` what is left of the squared norms."""
        where, z = self.where, self.values
        s = float(z @ h[where])
        out = self._leaving(s, h, rest)
        new = self._entering(s, h, rest)
        if len(new) == 0:
            return 0.0, where, z
        p, q = where[out], new
        C = taken(self.At, p).T @ taken(self.At, q) - self.BA[:, p].T @ self.BA[:, q]
        kept = 1.0 - z[out] ** 2
        root = np.sqrt(np.maximum(kept, 0.0))[:, None]
        alone = kept <= 1e-12
        with np.errstate(divide="ignore", invalid="ignore"):
            stay = np.where(alone, 0.0, (s - 2 * z[out] * h[p] + z[out] ** 2 * rest[p]) / kept)[:, None]
            cross = np.where(alone[:, None], 0.0, (h[q] - z[out, None] * C) / root)
        # The best share of the new entry: the leading eigenvector of [[stay, cross], [cross, rest]].
        half = 0.5 * (stay - rest[q])
        top = 0.5 * (stay + rest[q]) + np.hypot(half, cross)
        angle = 0.5 * np.arctan2(2 * cross, stay - rest[q])
        angle = np.where(alone[:, None], 0.5 * np.pi, angle)
        top = np.where(alone[:, None], rest[q], top)
        cos, sin = np.cos(angle), np.sin(angle)
        b = self.G.T @ taken(self.At, np.concatenate((where, q)))
        a = b[:, : len(z)] @ z
        with np.errstate(divide="ignore", invalid="ignore"):
            staying = np.where(alone, 0.0, (a[:, None] - z[out] * b[:, out]) / root[:, 0])
        values = self._value(top, cos * staying[:, :, None] + sin * b[:, None, len(z) :])
        gains = values - self._value(np.array(s), a)
        k = int(np.argmax(gains)) % len(new)
        # Entries that the scores before explain cost nothing: of equal ones the smallest feature leaves, whatever their order.
        most = gains[:, k].max()
        equal = gains[:, k] >= most - TIE * (abs(most) + s)
        i = int(np.argmin(np.where(equal, np.linalg.norm(taken(self.At, p), axis=0), np.inf)))
        return self._after(float(gains[i, k]), int(out[i]), int(q[k]), float(cos[i, k]), float(sin[i, k]))

    def _value(self, s: np.ndarray, a: np.ndarray) -> np.ndarray:
        """T of the module's docstring; −∞ where the scores are dependent."""
        total, left = s.copy(), s.copy()
        for own, square in zip(self.after, a**2):
            good = left > 1e-12 * s
            total = np.where(good, total - own * square / np.where(good, left, 1.0), -np.inf)
            left = left - square
        return np.where(left > 1e-12 * s, total, -np.inf)

    def _leaving(self, s: float, h: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """The entries whose loss costs least."""
        z, where = self.values, self.where
        kept = 1.0 - z**2
        left = (s - 2 * z * h[where] + z**2 * rest[where]) / np.where(kept > 1e-12, kept, 1.0)
        return np.argsort(-left, kind="stable")[:LEAVING]

    def _entering(self, s: float, h: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """The features that would bring most to the score."""
        top = 0.5 * (s + rest) + np.hypot(0.5 * (s - rest), h)
        top[self.where] = -np.inf
        number = min(ENTERING, len(top) - len(self.where))
        return np.argpartition(-top, number - 1)[:number] if number > 0 else self.where[:0]

    def _after(
        self, gain: float, out: int, new: int, cos: float, sin: float
    ) -> tuple[float, np.ndarray, np.ndarray]:
        z = np.delete(self.values, out)
        size = float(np.linalg.norm(z))
        where = np.append(np.delete(self.where, out), new)
        values = np.append(cos * z / (size if size > 0 else 1.0), sin)
        order = np.argsort(where)
        return gain, where[order], values[order]
