"""Moments of data up to the third, from a stream of rows: accumulate, whiten, decompose, revert the whitening.

The third moment of d variables has d³ entries and is never formed. Rows x are projected on r orthonormal axes P about
an origin o, p = Pᵀ(x − o), and what is kept are sums over rows of

    x − o,   (x − o) pᵀ,   p⊗p⊗p,   e = ‖x − o‖² − ‖p‖²  (the energy outside the axes),   e·p:

r³ + r·d numbers, from which every central moment about the mean follows exactly (`ThirdMoments.cumulants`). Sums add up
over batches, machines and time.

Latent variable models have moments M2 = Σ w_i μ_i μ_iᵀ and M3 = Σ w_i μ_i⊗μ_i⊗μ_i. With M2 = QΛQᵀ, `whiten` gives
W = QΛ^{-½} and B = QΛ^{½}; `contract(M3, W)` = Σ λ_i v_i⊗v_i⊗v_i then has orthonormal v_i, which `givens.decompose`
finds, and B V leads back.
"""

from givens.moments.cumulants import Cumulants, TooFewDirections, Whitening, contract, whiten
from givens.moments.span import RowSpan
from givens.moments.stream import Stream, StreamedMoments, principal_basis, second_moments
from givens.moments.sums import TILE, Basis, SecondMoments, Sums, ThirdMoments, unit_of

__all__ = [
    "TILE",
    "Basis",
    "Cumulants",
    "RowSpan",
    "SecondMoments",
    "Stream",
    "StreamedMoments",
    "Sums",
    "ThirdMoments",
    "TooFewDirections",
    "Whitening",
    "contract",
    "principal_basis",
    "second_moments",
    "unit_of",
    "whiten",
]
