"""Samples, and sums over them: one way from a table, a file, a stream or a cluster to the numbers that an estimator needs.

`rows` checks samples and passes over them, `sources` reads them in batches, `dask` lets chunks stay where they are, `summary`
says what a pass adds up, and `by_rows` calls a fitted estimator on samples of all these kinds.

Moments of data up to the third, from a stream of rows: accumulate, whiten, decompose, revert the whitening.

The third moment of d variables has d³ entries and is never formed. Rows x are projected on r orthonormal axes P about
an origin o, p = Pᵀ(x − o), and what is kept are sums over rows of

    x − o,   (x − o) pᵀ,   p⊗p⊗p,   e = ‖x − o‖² − ‖p‖²  (the energy outside the axes),   e·p:

r³ + r·d numbers, from which every central moment about the mean follows exactly (`ThirdMoments.cumulants`). Sums add up
over batches, machines and time.

Latent variable models have moments M2 = Σ w_i μ_i μ_iᵀ and M3 = Σ w_i μ_i⊗μ_i⊗μ_i. With M2 = QΛQᵀ, `whiten` gives
W = QΛ^{-½} and B = QΛ^{½}; `contract(M3, W)` = Σ λ_i v_i⊗v_i⊗v_i then has orthonormal v_i, which `givens.decompose`
finds, and B V leads back.
"""

from givens.data.cumulants import Cumulants, TooFewDirections, Whitening, contract, whiten
from givens.data.moments import Moments, moments_of
from givens.data.rows import unit_of
from givens.data.span import RowSpan
from givens.data.stream import Stream, StreamedMoments, principal_basis, principal_moments
from givens.data.sums import TILE, Basis, Sums, ThirdMoments

__all__ = [
    "TILE",
    "Basis",
    "Cumulants",
    "Moments",
    "RowSpan",
    "Stream",
    "StreamedMoments",
    "Sums",
    "ThirdMoments",
    "TooFewDirections",
    "Whitening",
    "contract",
    "moments_of",
    "principal_basis",
    "principal_moments",
    "unit_of",
    "whiten",
]
