"""The rivals, implemented as well as we know how: a comparison is worth what the rival's code is worth."""

from givens.baselines.gpower import GPower, gpower

__all__ = ["GPower", "gpower"]
