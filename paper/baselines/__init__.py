"""Rival algorithms, implemented with the same care as the library's own, for comparisons."""

from paper.baselines.gpower import GPower, fill_pattern, gpower
from paper.baselines.tensor_power import tensor_power

__all__ = ["GPower", "fill_pattern", "gpower", "tensor_power"]
