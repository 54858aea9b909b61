"""Numerical tools without an objective: threads, tiles, polar factors, scaling, flop counts, packed symmetric tensors."""
