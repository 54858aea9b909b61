"""What can be minimised: data with a contrast, stacks of matrices, tensors, plain functions.

| objective | f(U) |
|---|---|
| `Columns(A, contrast)` | a sum over the columns of AU |
| `SparseColumns(A, gamma)` | sparse PCA: a sum over the entries of AU above a threshold |
| `JointDiagonal(matrices)` | the sum of the squared off-diagonal entries of all UᵀC_kU |
| `SymmetricTensor(T)` | −Σ T(u_i, u_i, u_i) |
| `MomentTensor(Y, a, G)` | the same, for a third moment given by samples; `from_samples` chooses between the two |
| `Function(f, n)` | any function; `Function(f, (n, m))` of n x m matrices with orthonormal columns |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from givens.support.imports import lazy_names

if TYPE_CHECKING:
    from givens.objectives.base import (
        Look,
        NotFinite,
        Objective,
        PairSolutions,
    )
    from givens.objectives.columns import Columns
    from givens.objectives.contrasts import Contrast, Exp, LogCosh, Scalar
    from givens.objectives.function import Function
    from givens.objectives.joint import JointDiagonal
    from givens.objectives.quartic import Kurtosis, Orthomax
    from givens.objectives.sparse_columns import SparseColumns
    from givens.objectives.tensor import SymmetricTensor
    from givens.tensors.from_samples import MomentTensor, from_samples

__all__ = [
    "Columns",
    "Contrast",
    "Exp",
    "Function",
    "JointDiagonal",
    "Kurtosis",
    "LogCosh",
    "Look",
    "MomentTensor",
    "NotFinite",
    "Objective",
    "Orthomax",
    "PairSolutions",
    "Scalar",
    "SparseColumns",
    "SymmetricTensor",
    "from_samples",
]

# Imported when first used: some load compiled code, which a plain function does not need.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Columns": "givens.objectives.columns",
        "Contrast": "givens.objectives.contrasts",
        "Exp": "givens.objectives.contrasts",
        "Function": "givens.objectives.function",
        "JointDiagonal": "givens.objectives.joint",
        "Kurtosis": "givens.objectives.quartic",
        "LogCosh": "givens.objectives.contrasts",
        "Look": "givens.objectives.base",
        "MomentTensor": "givens.tensors.from_samples",
        "NotFinite": "givens.objectives.base",
        "Objective": "givens.objectives.base",
        "Orthomax": "givens.objectives.quartic",
        "PairSolutions": "givens.objectives.base",
        "Scalar": "givens.objectives.contrasts",
        "SparseColumns": "givens.objectives.sparse_columns",
        "SymmetricTensor": "givens.objectives.tensor",
        "from_samples": "givens.tensors.from_samples",
    },
)
