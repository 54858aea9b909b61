"""Numerical tools that know no objective: threads, tiles, polar factors, scaling, flop counts, packed symmetric tensors."""
