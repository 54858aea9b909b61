"""What can be minimised: data with a contrast, stacks of matrices, tensors, plain functions.

| objective | f(U) |
|---|---|
| `Columns(A, contrast)` | a sum over the columns of AU |
| `SparseColumns(A, gamma)` | what of AU exceeds a threshold: sparse PCA |
| `JointDiagonal(matrices)` | what is off the diagonal of every UᵀC_kU |
| `SymmetricTensor(T)` | −Σ T(u_i, u_i, u_i) |
| `MomentTensor(Y, a, G)` | the same, of a third moment given by its samples; `from_samples` chooses between the two |
| `Function(f, n)` | any function |
"""

from givens.objectives.base import Blocks, Objective, Rotations, Solved
from givens.objectives.columns import Columns
from givens.objectives.contrasts import Contrast, LogCosh, Scalar
from givens.objectives.function import Function
from givens.objectives.joint import JointDiagonal
from givens.objectives.moments import MomentTensor, from_samples
from givens.objectives.quartic import Kurtosis, Orthomax
from givens.objectives.tensor import SymmetricTensor
from givens.objectives.threshold import SparseColumns, Threshold

__all__ = [
    "Blocks",
    "Columns",
    "Contrast",
    "Function",
    "JointDiagonal",
    "Kurtosis",
    "LogCosh",
    "MomentTensor",
    "Objective",
    "Orthomax",
    "Rotations",
    "Scalar",
    "Solved",
    "SparseColumns",
    "SymmetricTensor",
    "Threshold",
    "from_samples",
]
