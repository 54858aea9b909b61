"""Orthogonal decomposition of symmetric third-order tensors: the paper's Algorithm 4."""
