"""A few attacks of `make fuzz`, always the same, and Ctrl-C to every command: what it looks for is not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.child import run
from tests.fuzz.interrupts import COMMANDS
from tests.fuzz.judge import Finding, allowed, finite

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("kind", "seeds"), [("inputs", range(40)), ("files", range(12)), ("saves", range(40))]
)
@pytest.mark.filterwarnings("ignore")
def test_attacks_find_nothing(kind, seeds):
    found = {seed: report for seed in seeds if (report := run(kind, seed))}
    assert not found


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


def attacked(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.interrupts", *words],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "OPENBLAS_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


NAMES = ",".join(COMMANDS)


def test_every_command_is_attacked():
    from givens.app.commands.app import app

    there = {command.name for command in app.registered_commands}
    assert there == {words[0] for words in COMMANDS.values()}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_ctrl_c_to_every_command():
    """At function calls drawn by lot, the signal sent by the process to itself: three times each, in a process of their own."""
    assert attacked("commands", "3", "1", NAMES, "by-calls").count("interrupted") >= len(COMMANDS) - 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_what_killed_commands_leave_behind_is_removed_by_the_next():
    lines = attacked("kills", "3", "1", NAMES).splitlines()
    assert len(lines) == len(COMMANDS)
    assert all("3 killed" in line for line in lines)
    assert sum(int(line.split(" files found behind")[0].split()[-1]) for line in lines) >= 5
