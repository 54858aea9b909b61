"""Bad input: one sentence, a non-zero exit, no traceback, nothing half-written."""

from __future__ import annotations

import gzip
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

GOOD = b"name,a,b,c\n" + b"".join(b"s%d,%d,%d,%d\n" % (k, k, k * k % 7, k * 3 % 5) for k in range(12))

CASES = {
    "nothing": ("x.csv", None, "no file"),
    "empty": ("x.csv", b"", "empty"),
    "header only": ("x.csv", b"a,b,c\n", "no rows"),
    "text in a number's place": (
        "x.csv",
        GOOD + b"s99,1,oops,2\n",
        "line 14, column 3 ('b'): 'oops' is not a number",
    ),
    "ragged": ("x.csv", GOOD + b"s99,1\n", "line 14 has 2 fields where the others have 4"),
    "duplicate variables": ("x.csv", GOOD.replace(b"name,a,b", b"name,a,a"), "'a'"),
    "duplicate samples": ("x.csv", GOOD + b"s3,1,2,3\n", "'s3'"),
    "NaN": ("x.csv", GOOD + b"s99,1,NaN,\n", "2 values of 39 are missing"),
    "truncated gzip": ("x.csv.gz", gzip.compress(GOOD * 50)[:-20], "truncated"),
    "not gzip": ("x.csv.gz", GOOD, "not a gzip file"),
    "gzip without the ending": ("x.csv", gzip.compress(GOOD), "gzip"),
    "not an array": ("x.npy", GOOD, "does not hold a NumPy array"),
    "a pickle": ("x.npy", pickle.dumps([1, 2]), "pickle"),
    "a spreadsheet": ("x.csv", b"PK\x03\x04rest", "spreadsheet"),
    "an unknown ending": ("x.doc", GOOD, "ending"),
}


@pytest.mark.parametrize("command", ["sparse-pca", "rotate", "mixture"])
@pytest.mark.parametrize("case", CASES)
def test_one_sentence_and_nothing_written(givens, tmp_path, command, case):
    name, content, sentence = CASES[case]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    extra = {"mixture": ["-k", "2"], "rotate": ["-m", "2"]}.get(command, [])
    run = givens(command, name, *extra, "--out", "deep/results", "--json", "--quiet")
    assert run.code == 1
    assert sentence in run.err
    assert run.err.startswith("error: ")
    assert run.err.count("\n") == 1
    assert "Traceback" not in run.err
    assert run.out == ""
    assert not (tmp_path / "deep").exists()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (np.ones((3, 3)), "not three equal dimensions"),
        (np.ones((3, 3, 2)), "not three equal dimensions"),
        (np.full((2, 2, 2), np.nan), "8 entries are not finite, of 8, the first at"),
        (np.arange(8.0).reshape(2, 2, 2), "symmetric"),
        (np.array([[["a"]]]), "not real numbers"),
    ],
)
def test_tensors_that_will_not_do(givens, tmp_path, content, sentence):
    np.save(tmp_path / "x.npy", content)
    run = givens("tensor", "x.npy", "--out", "results")
    assert run.code == 1
    assert sentence in run.err
    assert not (tmp_path / "results").exists()


def refused(givens, tmp_path, options):
    (tmp_path / "x.csv").write_bytes(GOOD)
    run = givens("sparse-pca", "x.csv", "-m", "2", *options, "--out", "results", "--quiet")
    assert run.err.startswith("error: ")
    assert run.err.count("\n") == 1
    assert not (tmp_path / "results").exists()
    return run.code


@pytest.mark.parametrize(
    "options",
    [
        ["--n-nonzero", "99"],
        ["--n-nonzero", "99", "--stream"],
        ["-m", "4"],
        ["--labels", "colour"],
        ["--drop", "colour"],
        ["--names", "colour"],
        ["--header", "99"],
        ["--skip-rows", "99", "--stream"],
        ["--header", "1", "--cluster", "local"],
    ],
    ids=" ".join,
)
def test_options_that_contradict_the_data_exit_with_1(givens, tmp_path, options):
    assert refused(givens, tmp_path, options) == 1


@pytest.mark.parametrize(
    "options",
    [
        ["--n-nonzero", "many"],
        ["--n-nonzero", "0"],
        ["--n-nonzero", "2,0"],
        ["--n-nonzero", "0", "--stream"],
        ["--n-nonzero", "2", "--alpha", "0.5"],
        ["--n-nonzero", "2", "--alpha", "0.5", "--stream"],
        ["--n-nonzero", "3,2,1"],
        ["--n-nonzero", "3,2,1", "--stream"],
        ["--n-nonzero-total", "1"],
        ["--alpha", "1.5"],
        ["--alpha", "nan", "--stream"],
        ["--gamma", "-1"],
        ["--stream", "--samples", "columns"],
        ["--stream", "--impute", "median"],
        ["--stream", "--schedule", "random"],
        ["--oversample", "9"],
        ["--schedule", "random", "--n-nonzero", "2"],
        ["--schedule", "random", "--n-nonzero-total", "4"],
        ["--floor", "10"],
        ["--log2", "--floor", "0"],
    ],
    ids=" ".join,
)
def test_options_that_no_data_could_suit_exit_with_2(givens, tmp_path, options):
    assert refused(givens, tmp_path, options) == 2


def test_a_stream_of_genes_is_no_stream_of_samples(givens, tmp_path):
    (tmp_path / "x.csv").write_bytes(GOOD.replace(b"name", b"gene"))
    run = givens("sparse-pca", "x.csv", "-m", "2", "--stream", "--out", "results", "--quiet")
    assert run.code == 1
    assert "the rows are headed 'gene'" in run.err
    run = givens(
        "sparse-pca", "x.csv", "-m", "2", "--stream", "--samples", "rows", "--out", "results", "--quiet"
    )
    assert run.code == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--drop", "a"], None),
        (["--standardise"], "--standardise is for data"),
        (["--samples", "rows"], "--samples is for data"),
        (["--log2"], "--log2 is for data"),
    ],
)
def test_loadings_are_not_data(givens, tmp_path, options, sentence):
    (tmp_path / "x.csv").write_bytes(GOOD)
    run = givens("rotate", "x.csv", *options, "--out", "results", "--quiet")
    assert run.code == (0 if sentence is None else 2)
    assert (sentence or "") in run.err
    wide = b"name,a,b,c\nx,1,2,3\ny,4,5,6\n"
    (tmp_path / "wide.csv").write_bytes(wide)
    run = givens("rotate", "wide.csv", "--out", "wide", "--quiet")
    assert run.code == 1
    assert "3 factors of 2 variables are no loadings" in run.err


def test_what_is_not_understood_exits_with_2(givens, tmp_path):
    (tmp_path / "x.csv").write_bytes(GOOD)
    assert givens("sparse-pca", "x.csv", "-m", "0").code == 2
    assert givens("sparse-pca", "x.csv", "--penalty", "l7").code == 2
    assert givens("sparse-pca", "x.csv", "--seed", "-1").code == 2
    assert givens("sparse-pca").code == 2
    assert givens("no-such-command").code == 2


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
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))"
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
