"""Tables that tests write and read."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

import pandas


@contextmanager
def strings_that_anndata_can_write() -> Iterator[None]:
    """Hold the strings of pandas 3 as objects: before its version 0.13 anndata cannot write them to files."""
    try:
        old = tuple(map(int, version("anndata").split(".")[:2])) < (0, 13)
    except PackageNotFoundError:
        old = False
    if not old or version("pandas") < "3":
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the option is deprecated
        with pandas.option_context("future.infer_string", False):
            yield


def read_exactly(path):
    """A CSV file as a data frame, its numbers to the last bit: pandas has to be asked for that before 3.1."""
    old = tuple(map(int, pandas.__version__.split(".")[:2])) < (3, 1)
    return pandas.read_csv(path, index_col=0, **({"float_precision": "round_trip"} if old else {}))
