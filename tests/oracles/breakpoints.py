"""The pair problem of sparse PCA, exactly, in plain NumPy: sorted breakpoints.

With x, y two columns of AU, r_k = hypot(x_k, y_k) and φ_k = atan2(y_k, x_k), rotation by θ makes row k of the first
column a = r cos(θ − φ) and of the second b = r cos(θ − φ + π/2). Row k of a column counts on the arcs of half-width
arccos(level/r) around the two angles at which it is largest, where ℓ1 adds

    (|a| − γ)² = a² ∓ 2γa + γ²,      and ℓ0 adds      a² − γ,      a² = r²/2 + (x²−y²)/2·cos 2θ + xy·sin 2θ.

So between breakpoints g(θ) = α + β cos 2θ + δ sin 2θ + ε cos θ + ζ sin θ. Walking over the sorted breakpoints and
carrying the five coefficients along, with the critical points of each piece from a quartic in e^{iθ}, gives the
global maximum in O(D log D) for D rows that count.
"""

from __future__ import annotations

import numpy as np

TURN = 2 * np.pi


def pair_value(
    x: np.ndarray, y: np.ndarray, theta: float | np.ndarray, gammas: tuple[float, float], penalty: str = "l1"
) -> np.ndarray:
    """g(θ) = φ(cos θ·x + sin θ·y) + φ(cos θ·y − sin θ·x) at one angle or several; γ = ∞ means that a column does not count.

    Examples
    --------
    >>> import numpy as np
    >>> from tests.oracles.breakpoints import pair_value
    >>> x, y = np.array([3.0, 0.0]), np.array([0.0, 1.0])
    >>> pair_value(x, y, np.array([0.0, np.pi / 2]), (1.0, np.inf))
    array([4., 0.])
    """
    c, s = np.cos(theta)[..., None], np.sin(theta)[..., None]
    total = np.zeros(np.shape(theta))
    for column, gamma in ((c * x + s * y, gammas[0]), (c * y - s * x, gammas[1])):
        if penalty == "l0":
            total = total + np.maximum(column**2 - gamma, 0.0).sum(axis=-1)
        else:
            total = total + (np.maximum(np.abs(column) - gamma, 0.0) ** 2).sum(axis=-1)
    return total


def breakpoint_search(
    x: np.ndarray, y: np.ndarray, gammas: tuple[float, float], penalty: str = "l1"
) -> tuple[float, float]:
    """The angle that maximises g(θ), and g(θ) − g(0); among equal maxima the smallest |θ|.

    Examples
    --------
    >>> import numpy as np
    >>> from tests.oracles.breakpoints import breakpoint_search
    >>> x, y = np.array([1.0, 0.0]), np.array([1.0, 0.1])
    >>> theta, gain = breakpoint_search(x, y, (0.5, 0.5))
    >>> round(abs(theta) / np.pi, 3), round(gain, 3)
    (0.25, 0.336)
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    # Exact: no square of what follows leaves the range of numbers.
    unit = float(np.ldexp(1.0, np.frexp(np.abs(np.concatenate((x, y))).max(initial=0.0))[1]))
    x, y = x / unit, y / unit
    first, second = (gamma / unit / (unit if penalty == "l0" else 1.0) for gamma in gammas)
    theta, gain = _search_scaled(x, y, (first, second), penalty)
    return theta, gain * unit * unit


def _search_scaled(
    x: np.ndarray, y: np.ndarray, gammas: tuple[float, float], penalty: str
) -> tuple[float, float]:
    arcs = [
        _arcs(x, y, gamma, penalty, quarter) for quarter, gamma in enumerate(gammas) if np.isfinite(gamma)
    ]
    if not arcs:
        return 0.0, 0.0
    centres, widths, coefficients = (np.concatenate(parts) for parts in zip(*arcs))
    starts, sums = _pieces(centres, widths, coefficients)
    stops = np.append(starts[1:], starts[0] + TURN)
    candidates = np.concatenate((starts, _critical(sums, starts, stops), [0.0]))
    candidates = (candidates + np.pi) % TURN - np.pi
    # The walk's sums carry rounding errors of many additions: the few best are evaluated afresh.
    piece = (
        np.searchsorted(starts, np.where(candidates < starts[0], candidates + TURN, candidates), side="right")
        - 1
    )
    rough = _piece_values(sums[piece], candidates)
    best = candidates[rough >= rough.max() - 1e-9 * abs(rough.max())]
    values = np.array([float(pair_value(x, y, theta, gammas, penalty)) for theta in best])
    among = best[values >= values.max() * (1 - 1e-14)]
    theta = float(among[np.argmin(np.abs(among))])
    here = float(pair_value(x, y, 0.0, gammas, penalty))
    return (theta, float(values.max()) - here) if values.max() > here else (0.0, 0.0)


def _arcs(x: np.ndarray, y: np.ndarray, gamma: float, penalty: str, quarter: int) -> tuple[np.ndarray, ...]:
    """Centres, half-widths and coefficients (α, β, δ, ε, ζ) of the arcs on which each row counts."""
    level = np.sqrt(gamma) if penalty == "l0" else gamma
    r = np.hypot(x, y)
    some = (r > level) & (r > 0)
    if not some.any():
        return np.empty(0), np.empty(0), np.empty((0, 5))
    x, y, r = x[some], y[some], r[some]
    if quarter == 1:  # the second column is the first one turned back by π/2
        x, y = y, -x
    centre, width = np.arctan2(y, x), np.arccos(level / r)
    centres, widths, rows = [], [], []
    for sign in (1.0, -1.0):
        linear = -2.0 * level * sign * (penalty == "l1")
        constant = r**2 / 2 + (level**2 if penalty == "l1" else -gamma)
        rows.append(np.column_stack((constant, (x**2 - y**2) / 2, x * y, linear * x, linear * y)))
        centres.append(centre if sign > 0 else centre + np.pi)
        widths.append(width)
    return np.concatenate(centres), np.concatenate(widths), np.concatenate(rows)


def _pieces(
    centres: np.ndarray, widths: np.ndarray, coefficients: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where the pieces start, sorted within [−π, π), and the coefficients that hold on each."""
    opens = (centres - widths + np.pi) % TURN - np.pi
    closes = opens + 2 * widths
    wraps = closes >= np.pi
    closes = np.where(wraps, closes - TURN, closes)
    angles = np.concatenate(([-np.pi], opens, closes))
    initial = coefficients[wraps].sum(axis=0)[None] if len(coefficients) else np.zeros((1, 5))
    changes = np.concatenate((initial, coefficients, -coefficients))
    order = np.argsort(angles, kind="stable")
    return angles[order], np.cumsum(changes[order], axis=0)


def _critical(sums: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """Angles inside their piece at which its g' vanishes: z⁴(δ+iβ) + z³(ζ+iε)/2 + z(ζ−iε)/2 + (δ−iβ) = 0, z = e^{iθ}."""
    _, beta, delta, epsilon, zeta = sums.T
    lead, second = delta + 1j * beta, (zeta + 1j * epsilon) / 2
    size = np.abs(lead)
    # With a vanishing second harmonic the quartic loses its lead: then tan θ = ζ/ε.
    flat = size <= 1e-14 * (np.abs(second) + np.abs(sums[:, 0]) + 1e-300)
    safe = np.where(flat, 1.0, lead)
    companion = np.zeros((len(sums), 4, 4), dtype=complex)
    companion[:, 1, 0] = companion[:, 2, 1] = companion[:, 3, 2] = 1.0
    companion[:, 0, 3] = -np.conj(lead) / safe
    companion[:, 1, 3] = -np.conj(second) / safe
    companion[:, 3, 3] = -second / safe
    companion[flat] = 0.0
    roots = np.angle(np.linalg.eigvals(companion))
    simple = np.arctan2(zeta, epsilon)[:, None] + np.array([0.0, np.pi])
    angles = np.concatenate((roots, simple), axis=1)
    angles = starts[:, None] + (angles - starts[:, None]) % TURN
    return angles[angles < stops[:, None]]


def _piece_values(sums: np.ndarray, theta: np.ndarray) -> np.ndarray:
    basis = np.column_stack(
        (np.ones_like(theta), np.cos(2 * theta), np.sin(2 * theta), np.cos(theta), np.sin(theta))
    )
    return np.einsum("pk,pk->p", sums, basis)
