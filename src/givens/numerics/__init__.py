"""Numerical tools without an objective: threads, tiles, polar factors, scaling, flop counts, the modes of symmetric tensors."""
