"""Time and memory of sparse PCA as the numbers of features and samples double, m = n, up to 100,000 x 400.

Simulated modules, γ = 0.2 γmax. A sweep should take no longer than in proportion to d·n², and the peak of memory
should stay below three times the data, the data themselves included and the bare process not.
"""

from __future__ import annotations

import numpy as np

from givens import minimize
from givens.datasets import sparse_modules
from givens.numerics.scaling import power_of_two
from givens.objectives import SparseColumns

SIZES = ((12_500, 100), (25_000, 100), (50_000, 100), (25_000, 200), (50_000, 200), (100_000, 400))


def run(report):
    rows = []
    sweep_of(2000, 40)
    for d, n in SIZES:
        peak = report.peak(sweep_of, d, n)
        seconds, data = peak.value
        rows.append((d, n, seconds))
        report.row(
            features=d,
            samples=n,
            seconds_per_sweep=seconds,
            nanoseconds_per_dn2=seconds / (d * n * n) * 1e9,
            peak_over_data=(peak.bytes - peak.before) / data,
        )
        if (d, n) == SIZES[-1]:
            ratio = (peak.bytes - peak.before) / data
            report.claim("peak memory at 100,000 x 400 over the data", "≤ 3", f"{ratio:.2f}", ratio <= 3)
    first, last = rows[0], rows[-1]
    growth = (last[2] / first[2]) / (last[0] * last[1] ** 2 / (first[0] * first[1] ** 2))
    report.claim("growth of a sweep's time over that of d·n²", "≤ 1", f"{growth:.2f}", growth <= 1)


def sweep_of(d, n):
    """Median seconds of a sweep, and the bytes of the data."""
    A = sparse_modules(n, d, n_modules=20, module_size=min(100, d // 20), spread=0.6, random_state=0).X
    A -= A.mean(axis=0)
    A /= power_of_two(A)  # as the estimator does: the objective then needs no scaled copy
    gamma = 0.2 * np.sqrt(np.einsum("ij,ij->j", A, A).max())
    objective = SparseColumns(A.T, gamma)
    objective.trace_slopes = False
    result = minimize(objective, np.eye(n), max_iter=3)
    return float(np.median(np.diff(result.trace.seconds))), A.nbytes
