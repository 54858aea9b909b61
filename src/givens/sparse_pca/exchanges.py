"""Improvements of loadings with exact counts, one loading at a time: a new one in its place, or another entry in it.

Truncated power steps end where no linearised step leads on, and short loadings have many such places. First each loading, the
weakest first, is compared with a new one, sought in what the scores of all the others leave. Then single entries are exchanged:
an entry p of a loading gives way to another q, with the best weight for q beside the entries that stay, and what is compared is
the adjusted variance itself. With the scores E = ZAᵀ, Eᵀ = QR in the reported order, the score of component k leaves R_kk q_k
beside those before it, s = R_kk². Orthogonalise what those after it leave beside the ones before it, without z_k: the i-th has
the direction g_i and the length l_i. With a_i = g_i·e', e' what a loading's score leaves, the adjusted variance is, but for a
constant,

    T = s − Σ_i l_i² a_i² / (s − Σ_{h<i} a_h²),

s a quadratic and a_i linear in z_k: so hundreds of exchanges are evaluated at once, from QᵀA = R⁻ᵀZAᵀA and few products of
features. The candidates are the entries that cost least and the features that bring most by s alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from givens.numerics import flop_counts
from givens.solve.outer_loops import iterate
from givens.sparse_pca.forms import (
    HEAVY,
    ImagedLoadings,
    ProductForm,
    SampleForm,
    SparseRows,
    largest,
    reported_order,
    settled,
    triangular,
)
from givens.sparse_pca.truncated_power import STEP_GROWTH

LOADING_STEPS = 10  # truncated power steps of one loading, at most
LEAVING, ENTERING = 12, 48  # candidates of each loading
EXCHANGE_ROUNDS = 50  # in each of them every component is offered its best exchange
LEAST_GAIN = 1e-4  # of the adjusted variance: a round that gains less is the last
VALUE_GROWTH = 1e-5  # the same for values between two rounds
ROUNDING = 1e-12  # of a score's square


class ResidualScore(NamedTuple):
    """A loading, the image Aᵀe of what its score leaves beside a basis, e, and the square of e."""

    where: np.ndarray
    values: np.ndarray
    image: np.ndarray
    square: float


class Residual:
    """What the features have beside an orthonormal basis B of scores.

    Parameters
    ----------
    table : SampleForm or ProductForm
    axes : array, shape (axes, features)
        The leading principal columns, AᵀU.
    BA : array, shape (basis, features)
    """

    def __init__(self, table: SampleForm | ProductForm, axes: np.ndarray, BA: np.ndarray) -> None:
        self.table, self.axes, self.BA = table, axes, BA

    def score(self, where: np.ndarray, values: np.ndarray) -> ResidualScore:
        """Of a loading."""
        image = self.table.images(SparseRows([where], [values]))[0] - (self.BA[:, where] @ values) @ self.BA
        flop_counts.count(2.0 * self.BA.size)
        return ResidualScore(where, values, image, max(float(values @ image[where]), 0.0))

    def leading(self) -> np.ndarray:
        """The image of the leading axis, among those of the whole."""
        squares = np.einsum("ij,ij->i", self.axes, self.axes)
        sizes = np.sqrt(squares)
        along = (self.axes @ self.BA.T) / np.where(sizes > 0, sizes, 1.0)[:, None]
        turn = np.linalg.eigh(np.diag(squares) - along @ along.T)[1][:, -1]
        return (turn * sizes) @ self.axes - (turn @ along) @ self.BA

    def best_loading(self, squares: np.ndarray, count: int) -> ResidualScore:
        """A loading of a large score, by truncated power steps; `squares` are the squared norms of the features."""
        pivot = int(np.argmax(squares - np.einsum("ij,ij->j", self.BA, self.BA)))
        strongest = self.score(np.array([pivot]), np.ones(1))
        if count == 1:
            # Nothing else can explain more.
            return strongest
        starts = [self.leading()] + ([strongest.image] if HEAVY * count <= len(squares) else [])
        start = max((self.score(*largest(y, count)) for y in starts), key=lambda found: found.square)

        def step(here: ResidualScore) -> tuple[float, ResidualScore]:
            return here.square, self.score(*largest(here.image, count))

        return iterate(step, start, STEP_GROWTH, LOADING_STEPS, relative=True).best


def one_by_one(
    table: SampleForm | ProductForm, axes: np.ndarray, squares: np.ndarray, counts: np.ndarray
) -> SparseRows:
    """Loadings with these counts, in this order, each in what the scores before it leave."""
    rows, residual = SparseRows([], []), Residual(table, axes, np.zeros((0, table.features)))
    for count in counts:
        found = residual.best_loading(squares, int(count))
        BA = np.vstack((residual.BA, found.image / (np.sqrt(found.square) or 1.0)))
        residual = Residual(table, axes, BA)
        rows.where.append(found.where)
        rows.values.append(found.values)
    return rows


def renewed(here: ImagedLoadings, axes: np.ndarray, squares: np.ndarray) -> ImagedLoadings:
    """Loadings some of which gave way to new ones that explain more beside all the others.

    The weakest is compared first. What counts is what a score has that all the others do not explain, in any order: so
    the adjusted variance may fall.
    """
    m, S = len(here.images), here.products()
    if m == 1:
        return here
    for j in np.argsort([_beside(S, j)[1] for j in range(m)], kind="stable"):
        basis, square = _beside(here.products(), j)
        residual = Residual(here.table, axes, basis @ here.images)
        found = residual.best_loading(squares, len(here.rows.where[j]))
        if found.square > (1 + STEP_GROWTH) * square:
            here = here.replaced(int(j), found.where, found.values)
    return here


def _beside(S: np.ndarray, j: int) -> tuple[np.ndarray, float]:
    """An orthonormal basis of all scores but j, in terms of the scores, and the square of what it leaves of score j."""
    others = np.delete(np.arange(len(S)), j)
    values, vectors = np.linalg.eigh(S[np.ix_(others, others)])
    some = values > ROUNDING * values.max(initial=0.0)
    basis = np.zeros((int(some.sum()), len(S)))
    basis[:, others] = (vectors[:, some] / np.sqrt(values[some])).T
    return basis, max(float(S[j, j] - np.sum((basis @ S[j]) ** 2)), 0.0)


class Exchange(NamedTuple):
    """By how much the adjusted variance grows if one entry of component j gives way to another, and the loading after it."""

    gain: float
    j: int
    where: np.ndarray
    values: np.ndarray


def exchanged(here: ImagedLoadings, squares: np.ndarray, asked: np.ndarray) -> tuple[SparseRows, int]:
    """Loadings that exchanges of single entries lead to, and how many were made.

    Parameters
    ----------
    here : ImagedLoadings
    squares : array, shape (features,)
        The squared norms of the features.
    asked : array of int
        The counts in the order in which components are reported.
    """
    number, explained = 0, here.directions(asked)[2]
    for _ in range(EXCHANGE_ROUNDS):
        there, made = _round(here, squares, asked, explained)
        if not made:
            break
        rows = settled(here.table, there.rows, asked, VALUE_GROWTH)
        here, before = ImagedLoadings.of(here.table, rows), explained
        explained, number = here.directions(asked)[2], number + made
        if explained - before <= LEAST_GAIN * before:
            break
    return here.rows, number


def _round(
    here: ImagedLoadings, squares: np.ndarray, asked: np.ndarray, explained: float
) -> tuple[ImagedLoadings, int]:
    """After the best exchange of each loading, those that gain most first, as long as they gain together; and their number."""
    number, scored = 0, ScoredLoadings(here, squares, asked)
    proposals = map(scored.best_exchange, range(len(scored.order)))
    for gain, j, where, values in sorted(proposals, key=lambda proposal: -proposal.gain):
        if gain <= LEAST_GAIN * explained / len(asked):
            break
        tried = here.replaced(j, where, values)
        now = tried.directions(asked)[2]
        if now > explained:
            here, explained, number = tried, now, number + 1
    return here, number


class ScoredLoadings:
    """Loadings in the reported order, and the decomposition of their scores, Eᵀ = QR.

    Attributes
    ----------
    order : array of int
        Empty if a score is explained by those before it, but for rounding: then no exchange is offered.
    QA : array, shape (components, features)
    rest : array, shape (components, features)
        What the scores before each component leave of the features' squared norms.
    """

    def __init__(self, here: ImagedLoadings, squares: np.ndarray, asked: np.ndarray) -> None:
        self.table, self.squares, self.rows = here.table, squares, here.rows
        S = here.products()
        order = reported_order(np.diagonal(S), here.rows.counts(), asked)
        self.R, self.order = triangular(S, order)
        if len(self.order) < len(order):
            self.order = order[:0]
            return
        self.QA = solve_triangular(self.R, here.images[order], trans="T", check_finite=False)
        flop_counts.count(len(order) * self.QA.size)
        before = np.cumsum(np.vstack((np.zeros(len(squares)), self.QA[:-1] ** 2)), axis=0)
        self.rest = np.maximum(squares - before, 0.0)

    def best_exchange(self, k: int) -> Exchange:
        """The exchange of the k-th component in the reported order that gains most."""
        j = int(self.order[k])
        where, z, QA, R, rest = self.rows.where[j], self.rows.values[j], self.QA, self.R, self.rest[k]
        s, h = R[k, k] ** 2, R[k, k] * QA[k]
        out, q = _leaving(s, h, rest, where, z), _entering(s, h, rest, where)
        if len(q) == 0:
            return Exchange(0.0, j, where, z)
        p = where[out]
        products = self.table.products(p, q) - QA[:k, p].T @ QA[:k, q]
        kept = (1.0 - z[out] ** 2)[:, None]
        alone = kept <= ROUNDING
        root = np.sqrt(np.where(alone, 1.0, kept))
        # The squared score of the entries that stay, of unit length, and its product with the feature that enters.
        stay = np.where(alone, 0.0, (s - 2 * z[out] * h[p] + z[out] ** 2 * rest[p])[:, None] / root**2)
        cross = np.where(alone, 0.0, (h[q] - z[out, None] * products) / root)
        # The best share of the new entry: the leading eigenvector of [[stay, cross], [cross, rest]].
        top = 0.5 * (stay + rest[q]) + np.hypot(0.5 * (stay - rest[q]), cross)
        angle = np.where(alone, 0.5 * np.pi, 0.5 * np.arctan2(2 * cross, stay - rest[q]))
        cos, sin = np.cos(angle), np.sin(angle)
        G, lengths = np.linalg.qr(R[k:, k + 1 :])
        a, after = R[k, k] * G[0], np.square(np.diagonal(lengths))
        along_p, along_q = G.T @ QA[k:, p], G.T @ QA[k:, q]
        staying = np.where(alone[:, 0], 0.0, (a[:, None] - z[out] * along_p) / root[:, 0])
        shares = cos * staying[:, :, None] + sin * along_q[:, None, :]
        gains = _variance(top, shares, after) - _variance(np.array(s), a, after)
        new = int(np.argmax(gains)) % len(q)
        # Entries that the scores before explain cost nothing: of equal ones the smallest feature leaves, whatever their order.
        most = gains[:, new].max()
        equal = gains[:, new] >= most - ROUNDING * (abs(most) + s)
        old = int(np.argmin(np.where(equal, self.squares[p], np.inf)))
        loading = _after(where, z, int(out[old]), int(q[new]), cos[old, new], sin[old, new])
        return Exchange(float(gains[old, new]), j, *loading)


def _variance(s: np.ndarray, shares: np.ndarray, after: np.ndarray) -> np.ndarray:
    """T of the module's docstring, `shares` the a_i along the first axis; −∞ where the scores are dependent."""
    left = s - np.concatenate((np.zeros((1, *shares.shape[1:])), np.cumsum(shares**2, axis=0)))
    good = (left > ROUNDING * s).all(axis=0)
    total = s - np.tensordot(after, shares**2 / np.where(good, left[:-1], 1.0), axes=1)
    return np.where(good, total, -np.inf)


def _leaving(s: float, h: np.ndarray, rest: np.ndarray, where: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The entries whose loss costs least."""
    kept = 1.0 - z**2
    left = (s - 2 * z * h[where] + z**2 * rest[where]) / np.where(kept > ROUNDING, kept, 1.0)
    return np.argsort(-left, kind="stable")[:LEAVING]


def _entering(s: float, h: np.ndarray, rest: np.ndarray, where: np.ndarray) -> np.ndarray:
    """The features that would bring most to the score."""
    top = 0.5 * (s + rest) + np.hypot(0.5 * (s - rest), h)
    top[where] = -np.inf
    number = min(ENTERING, len(top) - len(where))
    return np.argpartition(-top, number - 1)[:number] if number > 0 else where[:0]


def _after(
    where: np.ndarray, z: np.ndarray, out: int, new: int, cos: float, sin: float
) -> tuple[np.ndarray, np.ndarray]:
    """The loading after an exchange: cos times the entries that stay, of unit length, and sin for the new feature."""
    staying = np.delete(z, out)
    size = float(np.linalg.norm(staying))
    features = np.append(np.delete(where, out), new)
    values = np.append(cos * staying / (size if size > 0 else 1.0), sin)
    order = np.argsort(features)
    return features[order], values[order]
