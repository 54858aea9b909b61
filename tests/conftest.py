from __future__ import annotations

import signal

import numpy as np
import pytest

from tests.properties import load_profile

# A shell's background jobs ignore Ctrl-C, and so would the programs that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

load_profile()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20131)
