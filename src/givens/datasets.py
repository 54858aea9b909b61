"""Small classical tables, and generators of data with known parameters."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.stats import invwishart

from givens.support.arguments import generator, refuse_no_counts, whole

__all__ = [
    "make_spherical_mixture",
    "make_topics",
    "pitprops",
    "psychological_tests",
    "sparse_modules",
]


class Correlations(NamedTuple):
    """A correlation matrix.

    Attributes
    ----------
    R : array, shape (features, features)
    names : tuple of str
    n_obs : int
        How many observations it was computed from.
    """

    R: np.ndarray
    names: tuple[str, ...]
    n_obs: int


def pitprops() -> Correlations:
    """Thirteen measurements of 180 pit props cut from pine timber: the classical example of sparse PCA.

    References
    ----------
    J. N. R. Jeffers, "Two case studies in the application of principal component analysis", Applied Statistics 16 (1967)
    225-236.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.datasets import pitprops
    >>> table = pitprops()
    >>> table.names[:3], table.n_obs
    (('topdiam', 'length', 'moist'), 180)
    >>> np.linalg.eigvalsh(table.R)[::-1][:3].round(3)
    array([4.219, 2.378, 1.878])
    """
    names = (
        "topdiam", "length", "moist", "testsg", "ovensg", "ringtop", "ringbut", "bowmax", "bowdist", "whorls",
        "clear", "knots", "diaknot",
    )  # fmt: skip
    triangle = """
954
364 297
342 284 882
-129 -118 -148 220
313 291 153 381 364
496 503 -29 174 296 813
424 419 -54 -59 4 90 372
592 648 125 137 -39 211 465 482
545 569 -81 -14 37 274 679 557 526
84 76 162 97 -91 -36 -113 61 85 -319
-19 -36 220 169 -145 24 -232 -357 -127 -368 29
134 144 126 15 -208 -329 -424 -202 -76 -291 7 184
"""
    return _correlations(triangle, names, 180)


def psychological_tests() -> Correlations:
    """Twenty-four psychological tests of 145 pupils of the seventh and eighth grade: the classical example of factor rotation.

    References
    ----------
    K. J. Holzinger and F. Swineford, "A study in factor analysis", University of Chicago (1939); the correlations are those of
    H. H. Harman, "Modern Factor Analysis", third edition (1976), table 7.4.

    Examples
    --------
    >>> import numpy as np
    >>> from givens.datasets import psychological_tests
    >>> table = psychological_tests()
    >>> table.names[:3], table.n_obs
    (('visual perception', 'cubes', 'paper form board'), 145)
    >>> np.linalg.eigvalsh(table.R)[::-1][:4].round(3)
    array([8.135, 2.096, 1.693, 1.502])
    """
    names = (
        "visual perception", "cubes", "paper form board", "flags", "general information",
        "paragraph comprehension", "sentence completion", "word classification", "word meaning", "addition",
        "code", "counting dots", "straight-curved capitals", "word recognition", "number recognition",
        "figure recognition", "object-number", "number-figure", "figure-word", "deduction", "numerical puzzles",
        "problem reasoning", "series completion", "arithmetic problems",
    )  # fmt: skip
    triangle = """
318
403 317
468 230 305
321 285 247 227
335 234 268 327 622
304 157 223 335 656 722
332 157 382 391 578 527 619
326 195 184 325 723 714 685 532
116 57 -75 99 311 203 246 285 170
308 150 91 110 344 353 232 300 280 484
314 145 140 160 215 95 181 271 113 585 428
489 239 321 327 344 309 345 395 280 408 535 512
125 103 177 66 280 292 236 252 260 172 350 131 195
238 131 65 127 229 251 172 175 248 154 240 173 139 370
414 272 263 322 187 291 180 296 242 124 314 119 281 412 325
176 5 177 187 208 273 228 255 274 289 362 278 194 341 345 324
368 255 211 251 263 167 159 250 208 317 350 349 323 201 334 344 448
270 112 312 137 190 251 226 274 274 190 290 110 263 206 192 258 324 358
365 292 297 339 398 435 451 427 446 173 202 246 241 302 272 388 262 301 167
369 306 165 349 318 263 314 362 266 405 399 355 425 183 232 348 173 357 331 413
413 232 250 380 441 386 396 357 483 160 304 193 279 243 246 283 273 317 342 463 374
474 348 383 335 435 431 405 501 504 262 251 350 382 242 256 360 287 272 303 509 451 503
282 211 203 248 420 433 437 388 424 531 412 414 358 304 165 262 326 405 374 366 448 375 434
"""
    return _correlations(triangle, names, 145)


def _correlations(triangle: str, names: tuple[str, ...], n_obs: int) -> Correlations:
    """A matrix from its entries below the diagonal, row by row, in thousandths."""
    R = np.eye(len(names))
    i, j = np.tril_indices(len(names), -1)
    R[i, j] = R[j, i] = np.array(triangle.split(), dtype=np.float64) / 1000
    return Correlations(R, names, n_obs)


class Modules(NamedTuple):
    """Data made of planted sparse modules.

    Attributes
    ----------
    X : array, shape (samples, features)
    components : array, shape (modules, features)
        The planted loadings: unit norm, disjoint supports.
    scores : array, shape (samples, modules)
        X = scores @ components + noise.
    """

    X: np.ndarray
    components: np.ndarray
    scores: np.ndarray


def sparse_modules(
    n_samples: int = 100,
    n_features: int = 2000,
    *,
    n_modules: int = 5,
    module_size: int = 30,
    strength: float = 3.0,
    spread: float = 0.0,
    background: float = 0.0,
    random_state: int | np.random.Generator | None = 0,
) -> Modules:
    """Data like gene expression: a few modules of features that rise and fall together, and noise.

    Parameters
    ----------
    n_samples : int, default=100
    n_features : int, default=2000
    n_modules : int, default=5
        The modules share no feature.
    module_size : int, default=30
        Number of features of each module.
    strength : float, default=3.0
        Standard deviation that the strongest module gives each of its features, on average; the noise has 1, and each
        further module is a tenth weaker than the one before.
    spread : float, default=0.0
        Noise levels differ between features, as exp(spread · normal): 0.6 is about what log-intensities show.
    background : float, default=0.0
        Strength of one more score that moves all features a little, as a difference between batches does; it is not among
        `components`.
    random_state : int or Generator or None, default=0

    Examples
    --------
    >>> from givens.datasets import sparse_modules
    >>> data = sparse_modules(20, 100, n_modules=3, module_size=10, random_state=0)
    >>> data.X.shape, (data.components != 0).sum(axis=1)
    ((20, 100), array([10, 10, 10]))
    """
    refuse_no_counts(n_samples=n_samples, n_features=n_features, n_modules=n_modules, module_size=module_size)
    if n_modules * module_size > n_features:
        raise ValueError(
            f"{n_modules} modules of {module_size} features do not fit into {n_features} features without sharing"
        )
    rng = generator(random_state)
    chosen = rng.permutation(n_features)[: n_modules * module_size].reshape(n_modules, module_size)
    components = np.zeros((n_modules, n_features))
    for j, features in enumerate(chosen):
        loading = rng.choice([-1.0, 1.0], module_size) * rng.uniform(0.5, 1.5, module_size)
        components[j, features] = loading / np.linalg.norm(loading)
    sizes = strength * np.sqrt(module_size) * 0.9 ** np.arange(n_modules)
    scores = rng.standard_normal((n_samples, n_modules)) * sizes
    X = rng.standard_normal((n_samples, n_features))
    if spread:
        X *= np.exp(spread * rng.standard_normal(n_features))
    if background:
        X += np.outer(background * rng.standard_normal(n_samples), rng.standard_normal(n_features))
    X += scores @ components
    return Modules(X, components, scores)


@dataclass(frozen=True)
class MixtureSample:
    """Rows drawn from a mixture, and the mixture.

    Attributes
    ----------
    X : array of shape (n, d)
    y : array of shape (n,)
        The component of each row.
    weights, means, variances : arrays of shape (k,), (k, d) and (k,)
        Parameters of the mixture.
    """

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    means: np.ndarray
    variances: np.ndarray


def make_spherical_mixture(
    n_samples: int = 10_000,
    *,
    n_components: int = 20,
    n_features: int = 50,
    weights: np.ndarray | None = None,
    variances: float | np.ndarray = 2.0,
    degrees: float | None = None,
    scale: float = 1.0,
    random_state: int | np.random.Generator | None = 0,
) -> MixtureSample:
    """Draw from a mixture of spherical Gaussians whose centres share an inverse-Wishart covariance.

    Parameters
    ----------
    n_samples : int, default=10_000
        n.
    n_components : int, default=20
        k.
    n_features : int, default=50
        d.
    weights : array of shape (k,), optional
        Equal by default.
    variances : float or array of shape (k,), default=2.0
        Variances of the components; the paper's is 2.
    degrees : float, optional
        Degrees of freedom of the inverse Wishart distribution, more than d − 1; d + 2 by default, with which its
        mean is the scale matrix.
    scale : float, default=1.0
        The scale matrix of the inverse Wishart distribution is this multiple of the identity.
    random_state : int or Generator or None, default=0

    Returns
    -------
    MixtureSample

    Examples
    --------
    >>> from givens.datasets import make_spherical_mixture
    >>> data = make_spherical_mixture(1000, n_components=3, n_features=5, random_state=0)
    >>> data.X.shape, data.means.shape, data.variances
    ((1000, 5), (3, 5), array([2., 2., 2.]))
    """
    refuse_no_counts(n_samples=n_samples, n_components=n_components, n_features=n_features)
    weights = np.full(n_components, 1 / n_components) if weights is None else np.asarray(weights, dtype=float)
    if weights.shape != (n_components,) or weights.min() < 0 or not np.isclose(weights.sum(), 1):
        raise ValueError(f"weights must be {n_components} numbers of at least 0 that sum to 1")
    variances = np.broadcast_to(np.asarray(variances, dtype=float), (n_components,)).copy()
    if not variances.min() >= 0:
        raise ValueError("variances must be at least 0")
    rng = generator(random_state)
    means = _centres(n_components, n_features, degrees, scale, rng)
    y = rng.choice(n_components, size=n_samples, p=weights)
    X = rng.standard_normal((n_samples, n_features))
    X *= np.sqrt(variances)[y, None]
    X += means[y]
    return MixtureSample(X, y, weights, means, variances)


def _centres(k: int, d: int, degrees: float | None, scale: float, rng: np.random.Generator) -> np.ndarray:
    """Draw k points from a Gaussian whose covariance is drawn from an inverse Wishart distribution."""
    degrees = d + 2 if degrees is None else degrees
    if degrees <= d - 1:
        raise ValueError(f"degrees must be more than n_features - 1 = {d - 1}, got {degrees!r}")
    spread = invwishart(df=degrees, scale=scale * np.eye(d)).rvs(random_state=rng)
    root = np.linalg.cholesky(np.reshape(spread, (d, d)))
    return rng.standard_normal((k, d)) @ root.T


class TopicSample(NamedTuple):
    """Documents, and the parameters that they were drawn from.

    Attributes
    ----------
    X : sparse matrix of shape (documents, words)
        Counts.
    topics : array of shape (k, words)
        Probabilities of the words of each topic.
    alpha : array of shape (k,)
        Dirichlet parameters of the documents' topic shares.
    shares : array of shape (documents, k)
    """

    X: sparse.csr_matrix
    topics: np.ndarray
    alpha: np.ndarray
    shares: np.ndarray


def make_topics(
    n_documents: int = 1000,
    *,
    n_components: int = 10,
    n_words: int = 1000,
    document_length: int = 100,
    alpha0: float = 1.0,
    topic_sparsity: float = 0.05,
    topics: np.ndarray | None = None,
    alpha: np.ndarray | None = None,
    random_state: Any = 0,
) -> TopicSample:
    """Draw documents from a latent Dirichlet allocation.

    Parameters
    ----------
    n_documents : int, default=1000
    n_components : int, default=10
    n_words : int, default=1000
    document_length : int, default=100
        Number of words of every document.
    alpha0 : float, default=1.0
        Sum of the Dirichlet parameters, which are proportional to draws from a Gamma distribution of shape 5. 0: one topic per
        document.
    topic_sparsity : float, default=0.05
        Topics are drawn from a symmetric Dirichlet distribution with this parameter.
    topics : array of shape (k, words), optional
        Topics to draw from, instead of random ones.
    alpha : array of shape (k,), optional
        Dirichlet parameters to draw from, instead of random ones.
    random_state : int, RandomState, Generator or None, default=0

    Returns
    -------
    TopicSample

    Examples
    --------
    >>> from givens.datasets import make_topics
    >>> sample = make_topics(50, n_components=3, n_words=20, document_length=40)
    >>> sample.X.shape, int(sample.X.sum()), sample.topics.shape
    ((50, 20), 2000, (3, 20))
    """
    n = whole(n_documents, "n_documents", 1)
    length = whole(document_length, "document_length", 1)
    rng = generator(random_state)
    if not (isinstance(alpha0, Real) and 0 <= float(alpha0) < 1e15):
        raise ValueError(f"alpha0 must be a number of at least 0, got {alpha0!r}")
    if topics is None:
        k, words = whole(n_components, "n_components", 1), whole(n_words, "n_words", 1)
        topics = rng.gamma(topic_sparsity, size=(k, words)) + 1e-12
    topics = np.asarray(topics, dtype=float)
    topics = topics / topics.sum(axis=1, keepdims=True)
    k = len(topics)
    weights = rng.gamma(5.0, size=k) if alpha is None else np.asarray(alpha, dtype=float)
    if alpha is None:
        alpha = alpha0 * weights / weights.sum()
    alpha = np.asarray(alpha, dtype=float)
    shares = _shares(alpha, weights, n, rng)
    return TopicSample(_drawn(shares, topics, length, rng), topics, alpha, shares)


def _shares(alpha: np.ndarray, weights: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """The topic shares of n documents; where α is zero, each document has one topic, drawn with these weights."""
    if alpha.sum() > 0:
        return rng.dirichlet(np.maximum(alpha, 1e-9), size=n)
    return np.eye(len(alpha))[rng.choice(len(alpha), size=n, p=weights / weights.sum())]


def _drawn(
    shares: np.ndarray, topics: np.ndarray, length: int, rng: np.random.Generator
) -> sparse.csr_matrix:
    """Counts of documents with `length` words: first the number of words of each topic is drawn, then the words."""
    numbers = rng.multinomial(length, shares)
    rows, columns = [], []
    for number, topic in zip(numbers.T, topics):
        drawn = np.searchsorted(np.cumsum(topic), rng.random(int(number.sum())))
        columns.append(np.minimum(drawn, len(topic) - 1))
        rows.append(np.repeat(np.arange(len(shares)), number))
    row, column = np.concatenate(rows), np.concatenate(columns)
    counts = sparse.coo_matrix((np.ones(len(row)), (row, column)), shape=(len(shares), topics.shape[1]))
    return sparse.csr_matrix(counts)
