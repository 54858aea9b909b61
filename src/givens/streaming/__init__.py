"""Streams of samples of which only a few columns are kept."""
