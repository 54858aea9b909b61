"""What can be minimised: data with a contrast, stacks of matrices, tensors, plain functions.

| objective | f(U) |
|---|---|
| `Columns(A, contrast)` | a sum over the columns of AU |
| `JointDiagonal(matrices)` | what is off the diagonal of every UᵀC_kU |
| `Function(f, n)` | any function |
"""

from givens.objectives.base import Blocks, Objective, Rotations, Solved
from givens.objectives.columns import Columns
from givens.objectives.contrasts import Contrast, LogCosh, Scalar
from givens.objectives.function import Function
from givens.objectives.joint import JointDiagonal
from givens.objectives.quartic import Kurtosis, Orthomax

__all__ = [
    "Blocks",
    "Columns",
    "Contrast",
    "Function",
    "JointDiagonal",
    "Kurtosis",
    "LogCosh",
    "Objective",
    "Orthomax",
    "Rotations",
    "Scalar",
    "Solved",
]
