from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  loads a BLAS of its own
from threadpoolctl import threadpool_limits

from tests.properties import load_profile
from tests.tables import strings_that_anndata_can_write

# A shell's background jobs ignore Ctrl-C, and so would the programs that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Idle threads of a BLAS spin beside tests that need the core. The programs and workers that tests start inherit the limit.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
threadpool_limits(int(os.environ["OPENBLAS_NUM_THREADS"]), user_api="blas")

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
def anndata_can_write(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests that use anndata write tables that it can write."""
    path = getattr(request.module, "__file__", None)  # doctests of a page have none
    if path is None or "anndata" not in Path(path).read_text():
        yield
        return
    with strings_that_anndata_can_write():
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20131)
