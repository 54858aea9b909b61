from __future__ import annotations

import signal
import threading

import numpy as np
import pytest

from tests.properties import load_profile


def pytest_runtest_setup() -> None:
    """Let Ctrl-C raise KeyboardInterrupt, in the test and in the programs that it starts.

    A shell's background jobs ignore Ctrl-C, and what another test used may have left a handler of its own.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


load_profile()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20131)
