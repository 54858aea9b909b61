"""Streams of samples of which only a few columns are kept."""

from givens.streams.sketch import Sketch, StreamTrace
from givens.streams.rules import Frequent, Weakest

__all__ = ["Frequent", "Sketch", "StreamTrace", "Weakest"]
