"""The command as a process of its own: a full disk, a missing package, Ctrl-C, a closed pipe.

The golden outputs (`tests/net`) have what every command says of damaged files and of options.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

GOOD = b"name,a,b,c\n" + b"".join(b"s%d,%d,%d,%d\n" % (k, k, k * k % 7, k * 3 % 5) for k in range(12))
ROTATE = ["rotate", "x.csv", "-m", "2", "--out", "results"]


@pytest.fixture
def run(tmp_path):
    """Run a command in a folder with a table; the code before it stands for what goes wrong."""
    (tmp_path / "x.csv").write_bytes(GOOD)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}

    def run_after(before: str, *words: str) -> subprocess.CompletedProcess[str]:
        code = f"import os, sys\n{before}\nsys.argv = ['givens', *sys.argv[1:]]\nfrom givens.app.commands import main\nmain()\n"
        command = [sys.executable, "-c", code, *words]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
        )

    return run_after


def test_a_full_disk_leaves_the_old_results(run, tmp_path):
    """A limit on the size of files stands in for the disk: the report no longer fits, and a write really fails."""
    results = tmp_path / "results"
    results.mkdir()
    (results / "components.csv").write_text("of before")
    # Python would leave cut bytecode behind, which every later import of the module fails on.
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))"
    done = run(f"sys.dont_write_bytecode = True; {limit}", *ROTATE)
    assert done.returncode == 1
    assert "cannot write results" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in results.iterdir()] == ["components.csv"]
    assert (results / "components.csv").read_text() == "of before"


def test_without_the_extra_the_command_says_what_to_install(run):
    done = run("sys.modules['typer'] = None", "--help")
    assert done.returncode == 1
    assert "pip install 'givens[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


INTERRUPT = """
import signal, builtins
find = builtins.__import__
def interrupt(name, *rest):
    if name == 'typer':
        signal.raise_signal(signal.SIGINT)
    return find(name, *rest)
builtins.__import__ = interrupt
"""


def test_ctrl_c_while_the_command_is_imported(run):
    done = run(INTERRUPT, "--version")
    assert (done.returncode, done.stderr) == (130, "error: stopped\n")


def test_nobody_reads_the_summary(run, tmp_path):
    closed = "read, write = os.pipe()\nos.close(read)\nos.dup2(write, 1)\n"
    done = run(closed, *ROTATE, "--json", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "results" / "report.html").exists()


def test_a_file_name_that_is_not_utf8(givens, tmp_path):
    name = os.fsdecode(b"caf\xe9.csv")
    Path(tmp_path / name).write_bytes(GOOD)
    assert givens("rotate", name, "-m", 2, "--out", "out").code == 0
    assert "caf?.csv" in (tmp_path / "out" / "report.html").read_text()
