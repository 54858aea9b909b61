"""Streams of samples of which only a few columns are kept."""

from givens.streams.rules import Frequent, Leftover, Weakest
from givens.streams.sketch import Sketch, StreamTrace

__all__ = ["Frequent", "Leftover", "Sketch", "StreamTrace", "Weakest"]
