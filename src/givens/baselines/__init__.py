"""The rivals, implemented as well as we know how: a comparison is worth what the rival's code is worth."""

from givens.baselines.gpower import GPower, fill_pattern, gpower
from givens.baselines.tensor_power import tensor_power

__all__ = ["GPower", "fill_pattern", "gpower", "tensor_power"]
