"""Streams of samples of which only a few columns are kept."""

from givens.streaming.rules import Frequent, Weakest
from givens.streaming.sketch import Sketch, StreamTrace

__all__ = ["Frequent", "Sketch", "StreamTrace", "Weakest"]
