"""Compiled contrasts: cached code of one must never be run for another."""

import os
import subprocess
import sys

import numpy as np
import pytest

VALUE = """
import sys
import numpy as np
from givens.objectives import Columns
A = np.arange(24.0).reshape(8, 3) / 10 - 1
for name in sys.argv[1:]:
    objective = Columns(A, name)
    print(objective.look(objective.state(np.eye(3))).value)
"""


def values(folder, *names):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", VALUE, *names], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [float(line) for line in done.stdout.split()]


def test_contrasts_cached_by_different_processes_are_told_apart(tmp_path):
    """Alone in its process, each has the same place in the order of compiled closures."""
    A = np.arange(24.0).reshape(8, 3) / 10 - 1
    expected = {
        "logcosh": np.sum(np.logaddexp(A, -A) - np.log(2)),
        "exp": -np.sum(np.exp(-(A**2) / 2)),
        "quartimax": -np.sum(A**4),
    }
    for names in (["logcosh"], ["exp", "logcosh"], ["quartimax", "logcosh", "exp"], ["exp", "quartimax"]):
        found = values(tmp_path, *names)
        assert found == pytest.approx([expected[name] for name in names], rel=1e-12)
