"""A few attacks of `make fuzz`, always the same, and Ctrl-C to every command: what it looks for is not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz import run
from tests.fuzz.interrupts import COMMANDS
from tests.fuzz.judge import Finding, allowed, finite

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("kind", "seeds"), [("inputs", range(40)), ("files", range(12)), ("saves", range(40))]
)
def test_attacks_find_nothing(kind, seeds):
    assert {seed: report for seed in seeds if (report := run(kind, seed))} == {}


def caught(call) -> Exception:
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_the_judge_knows_raw_exceptions():
    import givens

    assert allowed(caught(lambda: givens.SparsePCA(n_components=-1).fit(np.eye(4))))
    assert allowed(caught(lambda: givens.SparsePCA().transform(np.eye(4))))
    assert not allowed(caught(lambda: np.linalg.inv(np.zeros((2, 2)))))
    assert not allowed(caught(lambda: givens.minimize(lambda U: {}["no key"], n=2)))
    assert allowed(caught(Path("no such file").read_text), "no such file")
    assert not allowed(caught(Path("no such file").read_text), "another file")
    with pytest.raises(Finding):
        finite({"a": [np.array([1.0, np.nan])]}, "it")


def test_every_command_is_attacked():
    from givens.app.commands.app import app

    assert {command.name for command in app.registered_commands} == {words[0] for words in COMMANDS.values()}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    ("kind", "outcome", "least"), [("commands", "interrupted", 8), ("kills", "3 killed", 9)]
)
def test_ctrl_c_and_kills_leave_whole_results_of_every_command(kind, outcome, least):
    """Three times each, at moments drawn by lot, in a process of their own."""
    path = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.interrupts", kind, "3", "1"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(outcome) >= least
    assert kind != "kills" or "files found behind" in done.stdout
