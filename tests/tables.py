"""Read what the commands wrote."""

from __future__ import annotations

import pandas


def read_exactly(path):
    """A CSV file as a data frame, its numbers to the last bit: pandas has to be asked for that before 3.1."""
    old = tuple(map(int, pandas.__version__.split(".")[:2])) < (3, 1)
    return pandas.read_csv(path, index_col=0, **({"float_precision": "round_trip"} if old else {}))
