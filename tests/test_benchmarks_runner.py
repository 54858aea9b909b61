"""The runner of the benchmarks: what is done is kept, what is missed is said, what crashed fails the run."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks import _runner
from benchmarks.__main__ import main
from benchmarks._chart import chart
from benchmarks._markdown import STALE, front, page, table, verdicts
from benchmarks._measure import peak, race
from benchmarks._report import Report, find_data, show
from benchmarks._runner import Suite, plain, replace, write

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


def test_goes_on_with_what_is_not_done(suite, capfd):
    add(suite, "first", GOOD)
    add(suite, "second", GOOD)
    assert suite.run(only=["first"]) == 0
    before = (suite.results / "first.json").stat().st_mtime_ns
    capfd.readouterr()
    assert suite.run() == 0
    out = capfd.readouterr().out
    assert "already done with this code: first" in out
    assert "[1/1] second" in out
    assert (suite.results / "first.json").stat().st_mtime_ns == before
    assert suite.run(fresh=True) == 0
    assert (suite.results / "first.json").stat().st_mtime_ns > before


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


def test_only_names_that_exist(suite):
    add(suite, "good", GOOD)
    with pytest.raises(ValueError, match=r"no such benchmark: nothing; there are good"):
        suite.run(only=["good", "nothing"])
    assert not suite.results.exists()


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


def test_figures_of_another_checkout_stay_where_a_benchmark_was_not_measured_here(suite, tmp_path):
    add(suite, "good", GOOD)
    suite.run()
    docs = tmp_path / "docs"
    suite.publish(docs)
    shutil.rmtree(suite.results)
    add(suite, "later", GOOD.replace("0.5", "0.25"))
    suite.run(only=["later"])
    suite.publish(docs)
    assert [result["name"] for result in json.loads((docs / "claims.json").read_text())] == ["good", "later"]
    for name, seconds in (("good", "0.5"), ("later", "0.25")):
        assert f"| {seconds} |" in (docs / "benchmarks" / f"{name}.md").read_text()


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


def test_the_chart_has_a_bar_for_every_ratio_with_the_figure_beside_it():
    rows = [
        {"task": "a <task>", "rival": "rival & son", "times": 12.34, "wanted": 5.0},
        {"task": "another", "rival": "other", "times": 0.5, "wanted": None},
    ]
    picture = ElementTree.fromstring(chart(rows))
    texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a <task>", "12.3 × rival & son", "another", "0.5 × other"} <= set(texts)
    bars = [e for e in picture.iter("{http://www.w3.org/2000/svg}rect") if e.get("rx")]
    assert len(bars) == 2
    # The slower one lies left of 1, the faster one right of it.
    assert float(bars[1].get("x")) + float(bars[1].get("width")) == pytest.approx(
        float(bars[0].get("x")), abs=0.2
    )
    assert ElementTree.fromstring(chart([])) is not None


def test_a_figure_has_a_point_for_every_measurement_and_is_published(suite, tmp_path):
    add(
        suite,
        "curved",
        "def run(report):\n"
        "    points = [(10, 1.0), (1000, 0.1)]\n"
        "    report.figure('falls', 'How <it> falls', 'n', 'error', {'one': points, 'two': [(10, 2), (100, 1)]}, slope=-0.5)\n",
    )
    suite.run()
    docs = tmp_path / "docs"
    docs.mkdir()
    suite.publish(docs)
    assert "![How <it> falls](falls.svg)" in (docs / "benchmarks" / "curved.md").read_text()
    picture = ElementTree.parse(docs / "benchmarks" / "falls.svg").getroot()
    name = "{http://www.w3.org/2000/svg}"
    assert {"How <it> falls", "n", "error", "one", "two", "10", "0.1"} <= {
        e.text for e in picture.iter(name + "text")
    }
    places = [(float(e.get("cx")), float(e.get("cy"))) for e in picture.iter(name + "circle")]
    assert len(places) == 4
    # The curve of slope -1/2 lies on its dashed line, and a smaller error lies lower.
    dashed = [e.get("d") for e in picture.iter(name + "path") if e.get("stroke-dasharray")]
    assert dashed[0].endswith(f"L{places[1][0]:.1f} {places[1][1]:.1f}")
    assert places[1][1] > places[0][1]


def test_data_that_arrives_later_is_measured(suite, monkeypatch, tmp_path):
    add(suite, "real", "def run(report): report.row(found=report.data('flowers') is not None)")
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("GIVENS_DATA", str(folder))
    suite.run()
    assert suite.result("real")["rows"] == [{"found": False}]
    assert "flowers" in suite.result("real")["notes"][0]
    assert suite.status("real") == "done"
    (folder / "flowers_3x4.npz").touch()
    assert suite.status("real") == "measured without data that is now here"
    suite.run()
    assert suite.result("real")["rows"] == [{"found": True}]
    assert suite.status("real") == "done"


def test_data_is_found_by_name_or_beginning(monkeypatch, tmp_path):
    monkeypatch.setenv("GIVENS_DATA", str(tmp_path))
    (tmp_path / "one_2x2.npz").touch()
    (tmp_path / "two_a.npz").touch()
    (tmp_path / "two_b.npz").touch()
    assert find_data("one") == tmp_path / "one_2x2.npz"
    assert find_data("two_b.npz") == tmp_path / "two_b.npz"
    assert find_data("two") is None
    assert find_data("three") is None


def test_race_takes_turns_and_keeps_values():
    calls = []
    timings = race(
        {"a": lambda: calls.append("a") or 1, "b": lambda: calls.append("b") or 2}, repeat=2, warm=1
    )
    assert calls == ["a", "b", "a", "b", "a", "b"]
    assert timings["b"].value == 2
    assert len(timings["a"].seconds) == 2
    assert timings["a"].best == min(timings["a"].seconds) <= timings["a"].median
    with pytest.raises(ValueError, match="repeat must be at least 1"):
        Report().time(lambda: None, repeat=0)


def test_peak_sees_what_the_call_holds_and_not_what_the_parent_does():
    ballast = np.ones(30_000_000)
    measured = peak(np.ones, 10_000_000)
    assert measured.value.shape == (10_000_000,)
    assert measured.bytes - measured.before >= 0.9 * 80e6
    assert measured.bytes < 80e6 * 4
    assert ballast.nbytes > measured.before
    with pytest.raises(ValueError, match="top of a module"):
        peak(lambda: None)


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (True, "yes"),
        (12345, "12,345"),
        (0.5, "0.5"),
        (1234.567, "1,235"),
        (54321.9, "54,322"),
        (1e-9, "1e-09"),
        (2.5e7, "2.5e+07"),
        (np.float64(0.25), "0.25"),
        (None, ""),
        ("words", "words"),
        (0.0, "0"),
    ],
)
def test_figures_are_shown_as_people_read_them(figure, text):
    assert show(figure) == text


def test_tables_of_different_rows_stand_apart():
    rows = [{"a": 1}, {"a": 2}, {"b": "x|y"}]
    result = {"name": "n", "title": "T", "error": None, "date": "2000-01-01", "seconds": 1.0, **CONTEXT}
    text = page([result | {"rows": rows, "claims": [], "notes": []}], stale={"n"})
    assert "| a |\n|---:|\n| 1 |\n| 2 |\n" in text
    assert "| b |\n|---|\n| x\\|y |\n" in text
    assert "Measured with other code" in text
    assert table([{"a_b": None}, {"a_b": 2.0}]) == ["| a b |", "|---:|", "|  |", "| 2 |", ""]
    assert "Nothing is measured yet" in page([])


def test_json_holds_numpy_and_what_is_not_finite(tmp_path):
    figures = {"x": np.float32(0.5), "y": [np.int64(3), float("nan")], "z": np.arange(2), "b": np.bool_(True)}
    write(tmp_path / "new" / "a.json", figures)
    assert json.loads((tmp_path / "new" / "a.json").read_text()) == {
        "x": 0.5,
        "y": [3, "nan"],
        "z": [0, 1],
        "b": True,
    }
    assert plain((1, "a")) == [1, "a"]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    write(path, {"old": 1})
    with pytest.raises(TypeError):
        write(path, {"new": object()})

    def full(self, *arguments, **options):
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="no space"):
        replace(path, "new")
    assert json.loads(path.read_text()) == {"old": 1}


def test_command_line_lists_and_refuses(capsys):
    assert main(["--list"]) == 0
    names = capsys.readouterr().out.split("\n")
    assert main(["--only", "no_such_thing"]) == 2
    assert "no such benchmark: no_such_thing" in capsys.readouterr().err
    assert not any(name.startswith("_") for name in names)


def test_the_real_machine_is_described():
    from benchmarks._machine import measure, versions

    machine = measure(order=50, megabytes=1, repeat=1)
    assert machine["cores"] >= 1
    assert set(machine["gflops"]) <= {"1", "2"}
    assert all(speed >= 0 for speed in machine["read_gbs"].values())
    assert versions()["numpy"] == np.__version__
    assert set(MACHINE) <= set(machine)


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
