from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Iterator
from importlib.metadata import version

import numpy as np
import pytest

from tests.properties import load_profile

# A shell's background jobs ignore Ctrl-C, and so would the programs that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

load_profile()


def shared_state() -> tuple[object, ...]:
    """What a test may change for those that run after it in the same process."""
    dask = sys.modules.get("dask")
    scheduler = dask.config.get("scheduler", None) if dask else None
    return signal.getsignal(signal.SIGINT), np.geterr(), scheduler


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Fail if a test leaves another handler of Ctrl-C, other rules for floating-point errors, or a scheduler of Dask."""
    before = shared_state()
    yield
    assert shared_state() == before


@pytest.fixture(scope="module", autouse=True)
def strings_that_anndata_can_write(request: pytest.FixtureRequest) -> Iterator[None]:
    """The strings of pandas 3 as objects in tests that use anndata: before its version 0.13 it cannot write them to files."""
    if not {"anndata", "AnnData"} & set(vars(request.module)):
        yield
        return
    old = tuple(map(int, version("anndata").split(".")[:2])) < (0, 13)
    if not old or version("pandas") < "3":
        yield
        return
    import pandas

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the option is deprecated
        with pandas.option_context("future.infer_string", False):
            yield


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20131)
