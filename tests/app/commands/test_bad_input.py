"""Bad input: one sentence, a non-zero exit, no traceback, nothing half-written.

The golden outputs (`tests/net`) have what every command says of damaged files and of options.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

GOOD = b"name,a,b,c\n" + b"".join(b"s%d,%d,%d,%d\n" % (k, k, k * k % 7, k * 3 % 5) for k in range(12))


def test_a_spreadsheet_gets_one_sentence_and_nothing_is_written(givens, tmp_path):
    (tmp_path / "x.csv").write_bytes(b"PK\x03\x04rest")
    run = givens("sparse-pca", "x.csv", "--out", "deep/results", "--json", "--quiet")
    assert (run.code, run.out) == (1, "")
    assert run.err.startswith("error: ")
    assert run.err.count("\n") == 1
    assert "spreadsheet" in run.err
    assert not (tmp_path / "deep").exists()


def test_a_stream_of_genes_is_no_stream_of_samples(givens, tmp_path):
    (tmp_path / "x.csv").write_bytes(GOOD.replace(b"name", b"gene"))
    run = givens("sparse-pca", "x.csv", "-m", "2", "--stream", "--out", "results", "--quiet")
    assert run.code == 1
    assert "the rows are headed 'gene'" in run.err
    run = givens(
        "sparse-pca", "x.csv", "-m", "2", "--stream", "--samples", "rows", "--out", "results", "--quiet"
    )
    assert run.code == 0


def test_a_place_that_cannot_be_written(givens, tmp_path):
    (tmp_path / "x.csv").write_bytes(GOOD)
    (tmp_path / "file").write_text("in the way")
    for out in ("file", "file/results", "/proc/results"):
        run = givens("rotate", "x.csv", "-m", "2", "--out", out)
        assert run.code == 1
        assert "cannot write results" in run.err
    assert (tmp_path / "file").read_text() == "in the way"


def start(tmp_path: Path, *arguments: str, before: str = "") -> subprocess.Popen[str]:
    code = f"import sys\n{before}\nsys.argv = ['givens', *sys.argv[1:]]\nfrom givens.app.commands import main\nmain()\n"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_full_disk_leaves_the_old_results(tmp_path):
    """A limit on the size of files stands in for the disk: the report no longer fits, and a write really fails."""
    (tmp_path / "x.csv").write_bytes(GOOD)
    results = tmp_path / "results"
    results.mkdir()
    (results / "components.csv").write_text("of before")
    # Python would leave cut bytecode behind, which every later import of the module fails on.
    limit = (
        "import resource, sys; sys.dont_write_bytecode = True; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))"
    )
    child = start(tmp_path, "rotate", "x.csv", "-m", "2", "--out", "results", before=limit)
    _, err = child.communicate(timeout=120)
    assert child.returncode == 1
    assert "cannot write results" in err
    assert "Traceback" not in err
    assert [path.name for path in results.iterdir()] == ["components.csv"]
    assert (results / "components.csv").read_text() == "of before"


def test_ctrl_c_leaves_nothing(tmp_path):
    (tmp_path / "x.csv").write_bytes(GOOD)
    wait = (
        "import givens.app.tables.write as w, threading\n"
        "def wait(self):\n    print('ready', flush=True)\n    threading.Event().wait()\nw.Staged.publish = wait"
    )
    child = start(tmp_path, "rotate", "x.csv", "-m", "2", "--out", "results", before=wait)
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "stopped" in err
    assert not (tmp_path / "results").exists()


def test_without_the_extra_the_command_says_what_to_install(tmp_path):
    child = start(tmp_path, "--help", before="sys.modules['typer'] = None")
    _, err = child.communicate(timeout=60)
    assert child.returncode == 1
    assert "pip install 'givens[cli]'" in err
    assert "Traceback" not in err


def test_ctrl_c_while_the_command_is_imported(tmp_path):
    before = (
        "import signal, builtins\nfind = builtins.__import__\n"
        "def interrupt(name, *rest):\n"
        "    if name == 'typer':\n        signal.raise_signal(signal.SIGINT)\n"
        "    return find(name, *rest)\n"
        "builtins.__import__ = interrupt"
    )
    child = start(tmp_path, "--version", before=before)
    _, err = child.communicate(timeout=120)
    assert (child.returncode, err) == (130, "error: stopped\n")
