"""The runner of the benchmarks: what is done is kept, what is missed is said, what crashed fails the run."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from benchmarks import _runner
from benchmarks._markdown import STALE, front, verdicts
from benchmarks._measure import peak
from benchmarks._runner import Suite

MACHINE = {"processor": "none", "cores": 2, "memory_gb": 1.0, "system": "none"}
MACHINE |= {figure: {"1": 1.0, "2": 2.0} for figure in ("gflops", "read_gbs", "copy_gbs")}
CONTEXT = {"machine": MACHINE, "versions": {"python": "3"}}

GOOD = '''
"""How fast nothing is.

A longer word about it.
"""

def run(report):
    report.row(method="givens", seconds=0.5)
    report.row(method="rival", seconds=2.0)
    report.claim("faster than the rival", "3 times", 4.0, True)
    report.claim("free of charge", 0, 1, False)
    report.note(f"{report.machine['cores']} cores")
'''
BAD = """
def run(report):
    report.row(a=1)
    raise RuntimeError("no luck")
"""


@pytest.fixture
def suite(tmp_path, monkeypatch):
    """An empty suite whose machine costs nothing to measure."""
    folder = tmp_path / f"suite_{os.getpid()}"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    monkeypatch.setattr(Suite, "_context", lambda self: CONTEXT)
    return Suite(folder)


def add(suite: Suite, name: str, source: str) -> None:
    (suite.folder / f"{name}.py").write_text(textwrap.dedent(source))


def test_runs_in_order_and_writes_figures_and_table(suite, capfd):
    add(suite, "good", GOOD)
    add(suite, "_helper", GOOD)
    add(suite, "data", "x = 1")
    assert suite.names() == ["good"]
    assert suite.run() == 0
    result = json.loads((suite.results / "good.json").read_text())
    assert result["rows"] == [{"method": "givens", "seconds": 0.5}, {"method": "rival", "seconds": 2.0}]
    assert result["title"] == "How fast nothing is"
    assert result["text"] == "A longer word about it."
    assert result["machine"] == MACHINE
    text = (suite.results / "table.md").read_text()
    assert "| givens | 0.5 |" in text
    assert "1 of 2 targets are met" in text
    assert "**free of charge** (good): 1, target 0" in text
    out = capfd.readouterr().out
    assert text in out
    assert "MISSED free of charge" in out


def test_a_change_of_the_code_makes_results_stale(suite, monkeypatch, tmp_path):
    add(suite, "good", GOOD)
    assert suite.status("good") == "not measured"
    suite.run()
    assert suite.status("good") == "done"
    add(suite, "good", GOOD + "\n")
    assert suite.status("good") == "measured with other code"
    add(suite, "good", GOOD)
    source = tmp_path / "library.py"
    source.write_text("")
    files = _runner.package_files("givens")
    monkeypatch.setattr(_runner, "package_files", lambda package: [*files, source])
    assert suite.status("good") == "measured with other code"


def test_a_crash_fails_the_run_but_not_the_others(suite, capfd):
    add(suite, "bad", BAD)
    add(suite, "good", GOOD)
    add(suite, "killed", "import os, signal\ndef run(report): os.kill(os.getpid(), signal.SIGKILL)")
    assert suite.run() == 1
    assert suite.status("good") == "done"
    assert suite.status("bad") == suite.status("killed") == "crashed"
    assert suite.result("bad")["rows"] == [{"a": 1}]
    text = (suite.results / "table.md").read_text()
    assert "Crashed: bad, killed." in text
    assert "RuntimeError: no luck" in text
    assert "CRASHED: bad" in capfd.readouterr().err


def test_an_interrupt_keeps_what_is_done(suite):
    add(suite, "a_good", GOOD)
    slow = """
        import threading

        def run(report):
            print("waiting", flush=True)
            threading.Event().wait()
    """
    add(suite, "b_slow", slow)
    code = (
        "import json, sys, pathlib, benchmarks._runner as r\n"
        f"r.Suite._context = lambda self: {CONTEXT!r}\n"
        "sys.exit(r.Suite(pathlib.Path(sys.argv[1])).run())"
    )
    environment = _runner.environment(suite.folder)
    command = [sys.executable, "-c", code, str(suite.folder)]
    run = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    while run.stdout.readline() != "waiting\n":
        assert run.poll() is None
    os.killpg(run.pid, signal.SIGINT)
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "interrupted in b_slow; 1 left" in out
    assert suite.status("a_good") == "done"
    assert suite.status("b_slow") == "not measured"
    assert "How fast nothing is" in (suite.results / "table.md").read_text()


def test_what_is_measured_is_published_and_the_rest_is_listed(suite, tmp_path):
    add(suite, "good", GOOD)
    docs = tmp_path / "docs"
    docs.mkdir()
    with pytest.raises(ValueError, match="nothing is measured yet"):
        suite.publish(docs)
    assert list(docs.iterdir()) == []
    suite.run()
    add(suite, "later", GOOD)
    assert suite.publish(docs) == docs / "benchmarks.md"
    assert "# Benchmarks" in (docs / "benchmarks.md").read_text()
    assert json.loads((docs / "claims.json").read_text())[0]["name"] == "good"
    assert (docs / "benchmarks" / "good.md").read_text().startswith("# ")
    assert "| later |  | not yet |" in (docs / "benchmarks.md").read_text()
    add(suite, "bad", "def run(report): raise RuntimeError")
    suite.run(only=["bad"])
    with pytest.raises(ValueError, match="a benchmark that crashed is not published; run again: bad"):
        suite.publish(docs)


def test_what_other_code_measured_is_published_with_a_mark_and_old_pages_go(suite, tmp_path):
    add(suite, "good", GOOD)
    suite.run()
    docs = tmp_path / "docs"
    suite.publish(docs)
    assert "earlier code" not in (docs / "benchmarks.md").read_text()
    (docs / "benchmarks" / "gone.md").write_text("# Gone\n")
    add(suite, "good", GOOD + "\n# changed\n")
    suite.publish(docs)
    assert "with earlier code" in (docs / "benchmarks.md").read_text()
    assert "Measured with other code" in (docs / "benchmarks" / "good.md").read_text()
    assert not (docs / "benchmarks" / "gone.md").exists()


def test_peak_sees_what_the_call_holds_and_not_what_the_parent_does():
    ballast = np.ones(30_000_000)
    measured = peak(np.ones, 10_000_000)
    assert measured.value.shape == (10_000_000,)
    assert measured.bytes - measured.before >= 0.9 * 80e6
    assert measured.bytes < 80e6 * 4
    assert ballast.nbytes > measured.before
    with pytest.raises(ValueError, match="top of a module"):
        peak(lambda: None)


@pytest.mark.parametrize("path", sorted(_runner.ROOT.glob("benchmarks/*.py")), ids=lambda path: path.stem)
def test_benchmarks_import_what_the_package_has(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "givens":
            module = importlib.import_module(node.module)
            for name in node.names:
                assert hasattr(module, name.name) or importlib.import_module(f"{module.__name__}.{name.name}")


def test_the_published_pages_are_those_of_the_published_claims():
    docs = Path(_runner.__file__).resolve().parents[1] / "docs"
    results = json.loads((docs / "claims.json").read_text(encoding="utf-8"))
    stale = set()
    for result in results:
        text = (docs / "benchmarks" / f"{result['name']}.md").read_text(encoding="utf-8")
        if STALE in text:
            stale.add(result["name"])
        assert "\n".join(verdicts(result["claims"])) in text
    text = (docs / "benchmarks.md").read_text(encoding="utf-8")
    unmeasured = re.findall(r"^\| (\w+) \|  \| not yet \|$", text, re.MULTILINE)
    assert text == front(results, stale, unmeasured)
