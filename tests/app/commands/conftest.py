"""Run the command as a user does, in this process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass
class Run:
    code: int
    out: str
    err: str


@pytest.fixture
def givens(capsys, monkeypatch, tmp_path):
    """Run `givens` with these arguments, in an empty folder; an exception that gets out is a failure."""
    from givens.app.commands.app import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")

    def run(*arguments: str | Path) -> Run:
        words = [str(argument) for argument in arguments]
        monkeypatch.setattr("sys.argv", ["givens", *words])
        capsys.readouterr()
        try:
            app(words)
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        captured = capsys.readouterr()
        return Run(code, captured.out, captured.err)

    return run
